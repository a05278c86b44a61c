"""When to stop, and which model to keep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from hopefear.errors import HopefearError

# Averages may rise again after three epochs, of long runs after more.
LEAST_PATIENCE = 3
_LOSSES = ("error", "log_loss", "brier", "cost", "wer", "ter", "cer")


def sign_of(metric: str) -> float:
    """1 where more of a score is better, -1 where less is.

    >>> sign_of("f1"), sign_of("cost")
    (1.0, -1.0)
    """
    return -1.0 if metric in _LOSSES else 1.0


@dataclass
class Stopping:
    """Stop when a score on held-out data has not improved for some passes; keep the best model.

    Parameters
    ----------
    metric : str
        Name of the score, as evaluation reports it. Losses count as better when lower.
    patience : int
        Passes without improvement before training stops; unless said a third of all there may be,
        3 at least, or as many as suit a batch learner or network. 0 never stops early, but still
        keeps the best.

    Examples
    --------
    >>> stopping = Stopping("accuracy", patience=1)
    >>> [stopping.see(epoch, {"accuracy": a}) for epoch, a in enumerate([80.0, 79.0])]
    [True, False]
    >>> stopping.best_epoch, stopping.is_over(1)
    (0, True)
    """

    metric: str = "accuracy"
    patience: int | None = None
    best: float | None = None
    best_epoch: int = -1

    def suit(self, learner: Any, epochs: int) -> None:
        """Takes the learner's own patience, or a third of the epochs, where none is given."""
        if self.patience is None:
            self.patience = learner.patience or max(LEAST_PATIENCE, epochs // 3)

    def check(self, names: Iterable[str]) -> None:
        """Refuse what makes no sense before a pass is spent on it."""
        known = self.patience is None or isinstance(self.patience, Integral)
        if not known or (self.patience or 0) < 0:
            raise HopefearError(
                f"patience must be a whole number, 0 or more, not {self.patience!r}"
            )
        if self.metric not in (scores := sorted(names)):
            raise HopefearError(
                f"no score {self.metric!r} to stop on; there are {', '.join(scores)}"
            )

    def see(self, epoch: int, scores: dict[str, float]) -> bool:
        """Take note of a pass; True when it is the best so far."""
        self.check(scores)
        value = scores[self.metric]
        sign = sign_of(self.metric)
        if self.best is None or sign * value > sign * self.best:
            self.best, self.best_epoch = value, epoch
            return True
        return False

    def is_over(self, epoch: int) -> bool:
        """Whether training should end after this pass."""
        return 0 < (self.patience or 0) <= epoch - self.best_epoch

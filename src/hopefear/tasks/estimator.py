"""What estimators of structured outputs share: parameters, errors, progress, held-out data."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np

from hopefear.errors import HopefearError
from hopefear.training.checkpoints import InterruptedTrainingError
from hopefear.training.loop import Event


class ArgumentError(HopefearError, ValueError):
    """Data or a parameter that an estimator cannot work with."""


class LearnerParameters:
    """Parameters of the estimator's own, and in ``params`` those of its learner.

    Stands before scikit-learn's BaseEstimator among the bases.
    """

    params: dict[str, Any]
    n_jobs: int | None
    callbacks: Sequence[Callable[[Event], None]] | None
    verbose: int | bool

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters, those of the learner that were given among them."""
        return {**super().get_params(deep), **self.params}  # type: ignore[misc]

    def set_params(self, **params: Any) -> Self:
        """Replace parameters; a name that is not the estimator's own is one of the learner's."""
        own = super().get_params(deep=False)  # type: ignore[misc]
        super().set_params(**{k: v for k, v in params.items() if k in own})  # type: ignore[misc]
        self.params = {**self.params, **{k: v for k, v in params.items() if k not in own}}
        return self

    def _jobs(self) -> int:
        if self.n_jobs is None:
            return 1
        return self.n_jobs if self.n_jobs > 0 else os.cpu_count() or 1

    def _listeners(self) -> list[Callable[[Event], None]]:
        return [*(self.callbacks or ()), *([say] if self.verbose else [])]


def held_out(n: int, fraction: float, seed: int, what: str) -> tuple[np.ndarray, np.ndarray]:
    """``(rest, held out)``: numbers of examples, drawn at random, in rising order.

    >>> [part.tolist() for part in held_out(5, 0.4, 1, "lists")]
    [[1, 2, 3], [0, 4]]
    """
    if not 0.0 < fraction < 1.0:
        raise HopefearError(f"validation_fraction must be between 0 and 1, not {fraction}")
    size = round(n * fraction)
    if not 0 < size < n:
        raise HopefearError(
            f"validation_fraction={fraction} of {n} {what} leaves none on one side; give X_val and "
            "y_val, or another fraction"
        )
    order = np.random.default_rng(seed).permutation(n)
    return np.sort(order[size:]), np.sort(order[:size])


def say(event: Event) -> None:
    """A line on the standard error stream for every pass."""
    if "pass_mistakes" in event:
        said = {key: event[key] for key in ("epoch", "loss", "pass_mistakes", "nnz")}
        said |= {f"dev {key}": value for key, value in event.get("dev", {}).items()}
        print(*(f"{key} {value:.6g}" for key, value in said.items()), sep=", ", file=sys.stderr)


@contextmanager
def as_value_errors() -> Iterator[None]:
    """Errors as scikit-learn's users expect them; a stop by signal goes on as that signal."""
    try:
        yield
    except InterruptedTrainingError as error:
        signal.raise_signal(error.signum)
        raise
    except HopefearError as error:
        if isinstance(error, ValueError):
            raise
        raise ArgumentError(str(error)) from None

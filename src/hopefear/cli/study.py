"""Learners side by side, for compare and demo: what every task shows of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from hopefear.report import Plot

PIECES = 20


@dataclass
class Result:
    """A learner's run, and how it did on the test data."""

    name: str
    trained: Any
    events: list[dict[str, Any]]
    scores: dict[str, Any]
    p_value: float | None = None  # of the difference to one learner; None for that one
    without_p: ClassVar[str] = "best"  # what tables call that learner

    @property
    def seconds(self) -> float:
        """Of the fastest pass, so that compilation does not count."""
        return min(e["seconds"] for e in self.events if "seconds" in e)

    @property
    def nnz(self) -> int:
        """Non-zero weights of the model."""
        return self.trained.model.nnz

    @property
    def last_nnz(self) -> int:
        """Non-zero weights at the end of training."""
        return self.trained.fit.trainer.support()[0]

    @property
    def p(self) -> str:
        """The p-value as tables show it."""
        return self.without_p if self.p_value is None else f"{self.p_value:.4f}"

    def shared_facts(self) -> dict[str, Any]:
        """What ``--json`` says of a learner of any task."""
        return {
            "nnz": self.nnz,
            "last_nnz": self.last_nnz,
            "seconds_per_pass": self.seconds,
            "p_value": self.p_value,
            "signature": self.trained.model.signature,
        }


def plots(
    results: Sequence[Result],
    metric: str,
    name: str,
    *,
    unit: str = " in percent",
    held: str = "Test",
) -> list[Plot]:
    """Mistakes, a score and sparsity while training, and the trade between the last two.

    Parameters
    ----------
    results : sequence of Result
        The learners.
    metric, name, unit : str
        The score, what people call it, and what it is counted in.
    held : str
        The data that it was taken on after each pass.
    """
    mistakes = Plot("Mistakes while training", "samples", "mistakes so far")
    score = Plot(f"{held} {name} after each pass", "samples", f"{name}{unit}")
    sparsity = Plot("Sparsity while training", "samples", "non-zero weights")
    trade = Plot(
        f"{name[:1].upper()}{name[1:]} against sparsity",
        "non-zero weights kept",
        f"{name}{unit}",
        x_scale="log",
    )
    for look, result in enumerate(results):
        moments = [e["samples"] for e in result.events]
        passes = [e for e in result.events if "dev" in e]
        mistakes.line(moments, [e["mistakes"] for e in result.events], result.name, look=look)
        sparsity.line(moments, [e["nnz"] for e in result.events], result.name, look=look)
        if passes:
            score.line(
                [e["samples"] for e in passes],
                [e["dev"][metric] for e in passes],
                result.name,
                look=look,
            )
        trade.points([max(1, result.nnz)], [result.scores[metric]], result.name, look=look)
    return [mistakes, score, sparsity, trade]

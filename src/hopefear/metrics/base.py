"""Protocol of metrics: statistics of examples, and scores from their sums.

``statistics(references, outputs)`` has one row of counts for each example, ``scores(sums)`` turns
summed rows into numbers by name. Rows of parts add up to those of the whole, so scores of shards,
resamples and swaps need no second look at the outputs, and
:mod:`hopefear.metrics.significance` tests differences of any metric.

A `ListMetric` compares candidates of lists with references, and gives each candidate a cost.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear import __version__
from hopefear.errors import HopefearError

Scores = dict[str, Any]
Statistics = NDArray[Any]  # int64, or float64 where a metric counts in fractions


class Metric(ABC):
    """Metric of outputs against references.

    Scores are percentages unless their name denotes something else.
    """

    name: ClassVar[str]
    main: ClassVar[str]  # the score that is reported first
    higher: ClassVar[bool] = True  # whether more of it is better
    # Columns of the statistics that a score is made of; all, of a score that is not named.
    reads: ClassVar[Mapping[str, tuple[int, ...]]] = {}

    @abstractmethod
    def statistics(self, references: Any, outputs: Any) -> Statistics:
        """Returns the statistics of each example, ``[examples, S]``."""

    def total(self, references: Any, outputs: Any, *arguments: Any) -> Statistics:
        """Returns the sum of the statistics of all examples, ``[S]``."""
        sums: Statistics = self.statistics(references, outputs, *arguments).sum(axis=0)
        return sums

    @abstractmethod
    def scores(self, sums: ArrayLike) -> Scores:
        """Returns scores by name, of one sum ``[S]`` or of many ``[..., S]`` at once."""

    @property
    @abstractmethod
    def signature(self) -> str:
        """Returns the settings of the scores, as sacreBLEU writes them."""


@dataclass(frozen=True)
class ListMetric(Metric):
    """Metric of candidates, each against its references, that also gives each a cost.

    A cost is 0 for a perfect candidate and grows as it gets worse, to 1 where the metric has
    bounds.
    """

    made_by: ClassVar[str] = "it has no counts of its own"  # for messages

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Names of the columns of the statistics."""

    @abstractmethod
    def costs(self, statistics: ArrayLike) -> NDArray[np.float64]:
        """Returns the cost of each row of statistics."""

    def statistics(self, references: Any, outputs: Any) -> Statistics:
        """Returns the statistics of candidates, each with its own references."""
        raise HopefearError(
            f"{self.name} is not counted from texts and references: {self.made_by}; to count text "
            "choose bleu, chrf, ter, wer, edit or f1"
        )

    @property
    def counts_words(self) -> bool:
        """Whether `word_statistics` counts words that readers have hashed already."""
        return False

    def word_statistics(
        self,
        words: np.ndarray,
        offsets: np.ndarray,
        groups: np.ndarray,
        reference_words: np.ndarray,
        reference_offsets: np.ndarray,
        reference_starts: np.ndarray,
    ) -> np.ndarray:
        """Returns the statistics of candidates whose words are numbers; see `Bleu`."""
        raise NotImplementedError

    @property
    def signature(self) -> str:
        return self.signature_for(1)

    def signature_for(self, n_references: int) -> str:
        """Returns the settings of the scores (-1 references: lists have different numbers)."""
        return f"metric:{self.name}{_listed(self.parameters())}|v:{__version__}"

    def cost_signature(self) -> str:
        """Returns the settings of the costs."""
        return f"cost:{self.name}{_listed(self.parameters())}"

    def parameters(self) -> dict[str, Any]:
        """Returns parameters that ``metric_named(name, **parameters)`` takes."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def by_column(self, statistics: ArrayLike) -> NDArray[Any]:
        """Returns statistics with their columns first; HopefearError if they have others."""
        rows, columns = np.asarray(statistics), self.columns
        if rows.ndim < 1 or rows.shape[-1] != len(columns):
            raise HopefearError(
                f"{self.name} has {len(columns)} counts a row ({', '.join(columns)}), but these "
                f"have the shape {rows.shape}; count with the same metric and parameters"
            )
        return np.moveaxis(rows, -1, 0)


def _listed(parameters: dict[str, Any]) -> str:
    text = ",".join(f"{name}={value}" for name, value in parameters.items() if value is not None)
    return f"({text})" if text else ""


@dataclass(frozen=True)
class FMeasure(ListMetric):
    """F-measure of what two sides have in common: ``F = 2 matched / (gold + ours)``."""

    main: ClassVar[str] = "f1"

    def costs(self, statistics: ArrayLike) -> NDArray[np.float64]:
        """``1 - F``; 0 where there is nothing to match and nothing was put forward."""
        # Statistics may be kept in bytes, in which sums and products have no room.
        matched, gold, predicted = self.by_column(statistics)[:3].astype(np.int64)
        return 1.0 - ratio(2 * matched, gold + predicted, empty=1.0)

    def scores(self, sums: ArrayLike) -> Scores:
        matched, gold, predicted = self.by_column(sums)[:3]
        return plain(
            {
                "f1": percent(2 * matched, gold + predicted),
                "precision": percent(matched, predicted),
                "recall": percent(matched, gold),
            }
        )


@dataclass(frozen=True)
class GivenCost(ListMetric):
    """Mean of given costs, in their own unit.

    ``cost = sum of costs / number of lists``

    Examples
    --------
    >>> metric = GivenCost()
    >>> metric.scores(metric.statistics_of([0.5, 0.25]).sum(axis=0))
    {'cost': 0.375}
    """

    name: ClassVar[str] = "cost"
    main: ClassVar[str] = "cost"
    higher: ClassVar[bool] = False
    made_by: ClassVar[str] = "a file gives the cost of each candidate"

    @property
    def columns(self) -> tuple[str, ...]:
        return ("cost", "number")

    def statistics_of(self, costs: ArrayLike) -> NDArray[np.float64]:
        """Returns the statistics ``[m, 2]`` of candidates whose costs are known."""
        column = np.asarray(costs, np.float64)
        return np.stack((column, np.ones_like(column)), axis=-1)

    def costs(self, statistics: ArrayLike) -> NDArray[np.float64]:
        return np.array(self.by_column(statistics)[0], np.float64)

    def scores(self, sums: ArrayLike) -> Scores:
        total, number = self.by_column(sums)
        return plain({"cost": ratio(total, number)})


def ratio(part: ArrayLike, total: ArrayLike, empty: float = 0.0) -> np.ndarray:
    """``part / whole``, and ``empty`` where there is nothing to divide by."""
    a, b = np.asarray(part, np.float64), np.asarray(total, np.float64)
    return np.divide(a, b, out=np.full(b.shape, empty), where=b != 0)


def percent(part: Any, total: Any) -> np.ndarray:
    """``100 part / whole``, and 0 where there is nothing to divide by."""
    return ratio(100.0 * part, total)


def plain(scores: Scores) -> Scores:
    """Scores of one sum as Python numbers; those of many stay arrays."""
    return {k: v.item() if np.ndim(v) == 0 else v for k, v in scores.items()}

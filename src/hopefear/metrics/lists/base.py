"""What every metric of candidates offers: counts, costs from counts, scores from summed counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear import __version__
from hopefear.errors import HopefearError
from hopefear.metrics.interface import Scores, plain, ratio

Counts = NDArray[Any]  # int64, or float64 where a metric counts in fractions


@dataclass(frozen=True)
class ListMetric(ABC):
    """A metric of candidates against references, in three steps.

    ``counts`` are statistics of each candidate, ``costs(counts)`` how bad each is by itself, and
    ``scores(sum of counts)`` what a whole choice of candidates is worth. Sums of counts over
    different choices, shards and resamples need no second look at the texts.

    Notes
    -----
    A cost is 0 for a perfect candidate and grows as it gets worse, to 1 where the metric has
    bounds. Scores are percentages. ``scores`` takes one sum ``[S]`` or many ``[..., S]`` at once.
    """

    name: ClassVar[str]
    main: ClassVar[str]  # the score people look at
    higher: ClassVar[bool]  # whether more of it is better
    made_by: ClassVar[str] = "it has no counts of its own"  # for messages

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """What the columns of counts hold."""

    @abstractmethod
    def costs(self, counts: ArrayLike) -> NDArray[np.float64]:
        """Cost of each row of counts."""

    @abstractmethod
    def scores(self, sums: ArrayLike) -> Scores:
        """Scores by their usual names, from summed counts."""

    def counts(self, texts: Sequence[str], references: Sequence[Sequence[str]]) -> Counts:
        """Counts ``[m, S]`` of candidates, each with its own references."""
        raise HopefearError(
            f"{self.name} is not counted from texts and references: {self.made_by}; to count text "
            "choose bleu, chrf, ter, wer, edit or f1"
        )

    def counts_by_list(
        self, texts: Sequence[str], starts: ArrayLike, references: Sequence[Sequence[str]]
    ) -> Counts:
        """Counts ``[m, S]`` of candidates in lists, one sequence of references for each list."""
        return self.counts(texts, references)

    @property
    def signature(self) -> str:
        """How scores against one reference were made."""
        return self.signature_for(1)

    def signature_for(self, n_references: int) -> str:
        """How the scores were made; ``n_references`` is -1 where lists have different numbers."""
        return f"metric:{self.name}{_listed(self.parameters())}|v:{__version__}"

    def cost_signature(self) -> str:
        """How the costs were made."""
        return f"cost:{self.name}{_listed(self.parameters())}"

    def parameters(self) -> dict[str, Any]:
        """What makes the same metric again: ``metric_named(name, **parameters)``."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def checked_starts(starts: ArrayLike, candidates: int) -> NDArray[np.int64]:
    """``starts`` as an array, if it cuts ``candidates`` into lists none of which is empty."""
    bounds = np.asarray(starts, np.int64)
    if bounds.ndim != 1 or len(bounds) < 1 or bounds[0] != 0 or bounds[-1] != candidates:
        raise HopefearError(
            f"starts must run from 0 to the number of candidates, {candidates}; "
            f"they are {bounds.ravel()[:1].tolist()} .. {bounds.ravel()[-1:].tolist()}"
        )
    empty = np.flatnonzero(bounds[1:] <= bounds[:-1])
    if len(empty):
        raise HopefearError(
            f"list {empty[0]} has no candidates, and nothing can be chosen from it; leave it out"
        )
    return bounds


def checked_sets(
    which: ArrayLike, starts: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both as arrays, if each candidate is of a set of references and no set is empty."""
    sets, bounds = np.asarray(which, np.int64), np.asarray(starts, np.int64)
    if sets.size and not 0 <= sets.min() <= sets.max() < len(bounds) - 1:
        raise HopefearError(
            f"candidates have the references {sets.min()} to {sets.max()}, and there are "
            f"{len(bounds) - 1} sets of them; give a set for every list"
        )
    if bounds.size > 1 and np.diff(bounds).min() < 1:
        i = int(np.diff(bounds).argmin())
        raise HopefearError(f"list {i} has no reference; give at least one")
    return sets, bounds


def columns_of(counts: ArrayLike, metric: ListMetric) -> NDArray[Any]:
    """Counts with their columns first, if they have those of ``metric``."""
    rows = np.asarray(counts)
    columns = metric.columns
    if rows.ndim < 1 or rows.shape[-1] != len(columns):
        raise HopefearError(
            f"{metric.name} has {len(columns)} counts a row ({', '.join(columns)}), but these have "
            f"the shape {rows.shape}; count with the same metric and parameters"
        )
    return np.moveaxis(rows, -1, 0)


def _listed(parameters: dict[str, Any]) -> str:
    text = ",".join(f"{name}={value}" for name, value in parameters.items() if value is not None)
    return f"({text})" if text else ""


@dataclass(frozen=True)
class GivenCost(ListMetric):
    """Mean of given costs, in their own unit.

    ``cost = sum of costs / number of lists``

    Examples
    --------
    >>> metric = GivenCost()
    >>> counts = metric.counts_of([0.5, 0.25])
    >>> metric.scores(counts.sum(axis=0))
    {'cost': 0.375}
    """

    name: ClassVar[str] = "cost"
    main: ClassVar[str] = "cost"
    higher: ClassVar[bool] = False
    made_by: ClassVar[str] = "a file gives the cost of each candidate"

    @property
    def columns(self) -> tuple[str, ...]:
        return ("cost", "number")

    def counts_of(self, costs: ArrayLike) -> NDArray[np.float64]:
        """Counts ``[m, 2]`` of candidates whose costs are known."""
        column = np.asarray(costs, np.float64)
        return np.stack((column, np.ones_like(column)), axis=-1)

    def costs(self, counts: ArrayLike) -> NDArray[np.float64]:
        return np.array(columns_of(counts, self)[0], np.float64)

    def scores(self, sums: ArrayLike) -> Scores:
        total, number = columns_of(sums, self)
        return plain({"cost": ratio(total, number)})


def signed(prefix: str, scorer: Any, n_references: int) -> str:
    """The signature that sacreBLEU prints beside a score."""
    scorer.num_refs = n_references
    return f"{prefix}|{scorer.get_signature()}"

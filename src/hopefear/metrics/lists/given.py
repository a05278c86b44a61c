"""Costs that a file gives: nothing to count, their mean is the score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear.metrics.classification import Scores, _plain
from hopefear.metrics.lists.base import ListMetric, columns_of, ratio


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
        found = np.asarray(costs, np.float64)
        return np.stack((found, np.ones_like(found)), axis=-1)

    def costs(self, counts: ArrayLike) -> NDArray[np.float64]:
        return np.array(columns_of(counts, self)[0], np.float64)

    def scores(self, sums: ArrayLike) -> Scores:
        total, number = columns_of(sums, self)
        return _plain({"cost": ratio(total, number)})

"""Exact line searches through weights, on one set of lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from hopefear.data.lists.dataset import ListDataset, ListRows
from hopefear.structures.nbest import NBest
from hopefear.tasks.rerank.judging import counts_of
from hopefear.training.predictors import LinearPredictor
from hopefear.training.ranking import Ranker
from hopefear.translation.tuners.envelope import NARROW, LineSearch, Step
from hopefear.translation.tuners.problem import TuningProblem
from hopefear.translation.tuners.quick_worth import quick_worth


class WeightSearch:
    """How far to go from weights along a direction, by the metric of a problem.

    Parameters
    ----------
    problem : TuningProblem
        Says what choices are worth.
    data : ListDataset, optional
        Lists to choose from; those of the problem by default.

    Examples
    --------
    >>> from hopefear.data.lists.dataset import ListRows
    >>> from hopefear.metrics.lists import GivenCost
    >>> rows = ListRows([0, 2], [0, 1], [0], [0, 0, 1], [0], [1.0], [0, 0], [0.5, 0], [1], [1])
    >>> problem = TuningProblem(ListDataset(rows), GivenCost(), np.zeros(1))
    >>> WeightSearch(problem).best([-1.0], [1.0], low=0.0, high=2.0).t
    1.5
    """

    def __init__(self, problem: TuningProblem, data: ListDataset | None = None) -> None:
        data = problem.data if data is None else data
        self.rows = data.rows
        self._free = data.replaced(offsets=np.zeros_like(data.rows.offsets)).rows
        counts = counts_of(data, problem.metric)
        self._search = LineSearch(data.rows.starts, counts, quick_worth(problem.metric))

    def best(self, weights: Any, direction: Any, **more: Any) -> Step:
        """The best ``t`` for ``weights + t * direction``; see ``LineSearch.best``."""
        intercepts, slopes = self._scores(weights, self.rows), self._scores(direction, self._free)
        # Weights are read in 32 bits later, which must not miss the interval.
        width = NARROW * self._spread(intercepts) / (self._spread(slopes) or 1.0)
        return self._search.best(intercepts, slopes, width=width, **more)

    def _scores(self, weights: Any, rows: ListRows) -> np.ndarray:
        w = np.asarray(weights, np.float64)
        return Ranker(NBest(len(w)), LinearPredictor(w)).scores(rows)

    def _spread(self, scores: np.ndarray) -> float:
        """How far scores within lists are apart, over all lists."""
        first = self.rows.starts[:-1]
        if not len(first):
            return 0.0
        most, least = (each.reduceat(scores, first) for each in (np.maximum, np.minimum))
        return float((most - least).sum())

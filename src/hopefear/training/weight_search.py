"""Exact line searches through weights, on one set of lists."""

from __future__ import annotations

from typing import Any

import numpy as np

from hopefear.data.lists import ListDataset
from hopefear.structures.nbest import NBest
from hopefear.training.envelope import LineSearch, Step
from hopefear.training.judging import counts_of
from hopefear.training.predictors import LinearPredictor
from hopefear.training.quick_worth import quick_worth
from hopefear.training.ranking import Ranker
from hopefear.training.tuning_problem import TuningProblem


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
    >>> from hopefear.data.lists import ListRows
    >>> from hopefear.metrics.lists import GivenCost
    >>> rows = ListRows([0, 2], [0, 1], [0], [0, 0, 1], [0], [1.0], [0, 0], [0.5, 0], [1], [1])
    >>> problem = TuningProblem(ListDataset(rows), GivenCost(), np.zeros(1))
    >>> WeightSearch(problem).best([-1.0], [1.0], low=0.0, high=2.0).t
    1.5
    """

    def __init__(self, problem: TuningProblem, data: ListDataset | None = None) -> None:
        data = problem.data if data is None else data
        self.rows = data.rows
        counts = counts_of(data, problem.metric)
        self._search = LineSearch(data.rows.starts, counts, quick_worth(problem.metric))

    def best(self, weights: Any, direction: Any, **more: Any) -> Step:
        """The best ``t`` for ``weights + t * direction``; see ``LineSearch.best``."""
        slopes = self._scores(direction) - self.rows.offsets
        return self._search.best(self._scores(weights), slopes, **more)

    def _scores(self, weights: Any) -> np.ndarray:
        w = np.asarray(weights, np.float64)
        return Ranker(NBest(len(w)), LinearPredictor(w)).scores(self.rows)

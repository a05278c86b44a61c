"""The sizes of candidate lists that good step lengths depend on."""

from __future__ import annotations

import math
import operator
from itertools import pairwise
from typing import Any

import numpy as np

from hopefear.core.component import kernel
from hopefear.data.lists.dataset import ListDataset
from hopefear.recipes.base import USUAL_COST, Scale
from hopefear.training.decoders.lists import in_lists

# Candidates whose costs are looked at together.
_COSTS = 1 << 20


def scale_of(data: ListDataset) -> Scale:
    """The sizes that good step lengths depend on."""
    square, reach = mean_distances(data.rows).mean(axis=0).tolist()
    cost = mean_regret(data.rows)
    # Of candidates without any difference, rounding may leave a little less than 0.
    square, reach = (value if value > 0.0 else 1.0 for value in (square, reach))
    return Scale(square, len(data), reach, cost or USUAL_COST)


@kernel
def distances(data: Any, local: Any, out: Any) -> None:
    """Mean squared and mean absolute distance of the oracle from the others, for each list."""
    for i in range(data.weights.size):
        start, n = data.starts[i], data.starts[i + 1] - data.starts[i]
        oracle = start + data.oracles[i]
        for e in range(data.indptr[oracle], data.indptr[oracle + 1]):
            local[data.columns[e]] = data.values[e]
        squares, sizes = 0.0, 0.0
        for c in range(start, start + n):
            for e in range(data.indptr[oracle], data.indptr[oracle + 1]):
                value = np.float64(data.values[e])
                squares += value * value
                sizes += abs(value)
            for e in range(data.indptr[c], data.indptr[c + 1]):
                value, there = np.float64(data.values[e]), local[data.columns[e]]
                squares += value * (value - 2.0 * there)
                sizes += abs(value - there) - abs(there)
        for e in range(data.indptr[oracle], data.indptr[oracle + 1]):
            local[data.columns[e]] = 0.0
        out[i, 0] = squares / max(n - 1, 1)
        out[i, 1] = sizes / max(n - 1, 1)


def mean_distances(rows: Any) -> np.ndarray:
    """As :func:`distances` (float64, two columns)."""
    out = np.zeros((len(rows.weights), 2))
    distances(rows, np.zeros(int(np.diff(rows.scopes).max(initial=1))), out)
    return out


def mean_regret(rows: Any) -> float:
    """What candidates cost more than the cheapest of their list, on average.

    Of many candidates it is the mean of means, so that memory need not hold all of them.
    """
    means, sizes = [], []
    places = np.arange(0, rows.costs.size, _COSTS)
    cuts = np.unique(np.append(np.searchsorted(rows.starts, places), len(rows.weights)))
    for begin, end in pairwise(cuts.tolist()):
        starts = rows.starts[begin : end + 1]
        costs = rows.costs[starts[0] : starts[-1]]
        least = in_lists(np.minimum, costs, starts - starts[0])
        means.append(float((costs - np.repeat(least, np.diff(starts))).mean()))
        sizes.append(costs.size)
    if len(means) < 2:
        return means[0] if means else 0.0
    return math.fsum(map(operator.mul, means, sizes)) / sum(sizes)

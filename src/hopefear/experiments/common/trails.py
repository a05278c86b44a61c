"""How numbers move while a learner is on its way."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Trail:
    """A learner on its way: what it had at some numbers of samples."""

    strength: float
    samples: np.ndarray
    nnz: np.ndarray  # of the weights at that moment
    mistakes: np.ndarray


def exponent(trail: Trail, n: int) -> float:
    """b of ``mistakes ~ samples^b``, least squares over the first pass in logarithms.

    >>> samples = np.array([0, 100, 1000, 10000])
    >>> round(exponent(Trail(0.0, samples, samples, np.array([0, 10, 100, 1000])), 10000), 6)
    1.0
    """
    use = (trail.samples >= 50) & (trail.samples <= n) & (trail.mistakes > 0)
    if use.sum() < 2:
        return float("nan")
    return float(np.polyfit(np.log(trail.samples[use]), np.log(trail.mistakes[use]), 1)[0])


def order_of(first: Iterable[float], second: Iterable[float]) -> float:
    """Spearman's rank correlation; 0 where one side is all alike.

    >>> order_of([1, 2, 3], [30, 20, 10]), order_of([1, 2, 3], [5, 5, 5])
    (-1.0, 0.0)
    """
    a, b = (_ranks(np.asarray(list(v), float)) for v in (first, second))
    if a.std() == 0.0 or b.std() == 0.0:
        return 0.0
    return round(float(np.corrcoef(a, b)[0, 1]), 12)


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks, the mean of their places for equal ones."""
    below = (values[:, None] > values).sum(axis=1)
    return below + ((values[:, None] == values).sum(axis=1) - 1) / 2.0

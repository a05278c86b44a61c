"""Whether two choices of parses differ by more than chance, and how curves move while training."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from hopefear.experiments.common.differences import Difference, compare_choices
from hopefear.experiments.vrda_reranking.runs import Trail
from hopefear.metrics.lists.fmeasure import Brackets


def compare(first: Sequence[np.ndarray], second: Sequence[np.ndarray], samples: int) -> Difference:
    """Paired bootstrap and approximate randomisation over lists, on F.

    Parameters
    ----------
    first, second, samples
        As in :func:`hopefear.experiments.common.differences.compare_choices`; counts of brackets.

    Examples
    --------
    >>> good, bad = np.array([[4, 4, 4]] * 50), np.array([[2, 4, 4]] * 50)
    >>> compare([good], [bad, bad], 100).points
    50.0
    """
    return compare_choices(Brackets(), "f1", first, second, samples)


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


def settled(trail: Trail, room: float) -> int:
    """Samples after which NNZ stays within ``room`` of where it ends.

    >>> samples = np.array([0, 10, 20, 30])
    >>> settled(Trail(0.0, samples, np.array([0, 90, 101, 100]), samples), 5.0)
    20
    """
    away = np.flatnonzero(np.abs(trail.nnz - trail.nnz[-1]) > room)
    return int(trail.samples[min(away[-1] + 1, trail.samples.size - 1)]) if away.size else 0

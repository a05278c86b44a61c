"""Whether two choices of parses differ by more than chance, and how curves move while training."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hopefear.experiments.common.differences import Difference, compare_choices
from hopefear.experiments.common.trails import Trail
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


def settled(trail: Trail, room: float) -> int:
    """Samples after which NNZ stays within ``room`` of where it ends.

    >>> samples = np.array([0, 10, 20, 30])
    >>> settled(Trail(0.0, samples, np.array([0, 90, 101, 100]), samples), 5.0)
    20
    """
    away = np.flatnonzero(np.abs(trail.nnz - trail.nnz[-1]) > room)
    return int(trail.samples[min(away[-1] + 1, trail.samples.size - 1)]) if away.size else 0

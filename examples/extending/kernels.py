"""Compiled functions: called by Python, shared by kernels, or part of the code of kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import helper, kernel, shared_kernel


class Rows(NamedTuple):
    """Sparse rows."""

    offsets: np.ndarray  # int64[n + 1]
    indices: np.ndarray  # int32
    values: np.ndarray  # float32


@helper
def row_score(rows, i, weights):
    """Returns the score of a row."""
    total = 0.0
    for p in range(rows.offsets[i], rows.offsets[i + 1]):
        total += weights[rows.indices[p]] * rows.values[p]
    return total


@shared_kernel
def best_row(rows, first, last, weights):
    """Returns the row of the highest score among ``first .. last - 1``."""
    best = first
    for i in range(first, last):
        if row_score(rows, i, weights) > row_score(rows, best, weights):
            best = i
    return best


@kernel
def best_rows(rows, starts, weights):
    """Returns the best row of every group.

    >>> rows = Rows(np.arange(4), np.array([0, 1, 2]), np.ones(3, np.float32))
    >>> best_rows(rows, np.array([0, 2, 3]), np.array([1.0, 2.0, 3.0])).tolist()
    [1, 2]
    """
    best = np.empty(starts.size - 1, np.int64)
    for g in range(best.size):
        best[g] = best_row(rows, starts[g], starts[g + 1], weights)
    return best

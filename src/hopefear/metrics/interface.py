"""What every metric offers: statistics of examples, and scores from their sums.

Sums of parts add up to the sum of the whole, so scores of shards, resamples and swaps need no
second look at the outputs.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

Scores = dict[str, Any]


class Metric(Protocol):
    """A metric as tests of significance see it.

    Metrics of classes, taggings and trees also have ``rows(reference, output)``, the statistics of
    each example ``[examples, S]``, and ``stats(reference, output)``, their sum; metrics of
    candidates have ``counts``, the statistics of each candidate.
    """

    def scores(self, sums: Any) -> Scores:
        """Scores by name, from one sum of statistics ``[S]`` or from many ``[..., S]`` at once."""

    @property
    def signature(self) -> str:
        """How the numbers were made."""


def ratio(part: ArrayLike, whole: ArrayLike, empty: float = 0.0) -> np.ndarray:
    """``part / whole``, and ``empty`` where there is nothing to divide by."""
    a, b = np.asarray(part, np.float64), np.asarray(whole, np.float64)
    return np.divide(a, b, out=np.full(b.shape, empty), where=b != 0)


def percent(part: Any, whole: Any) -> np.ndarray:
    """``100 part / whole``, and 0 where there is nothing to divide by."""
    return ratio(100.0 * part, whole)


def plain(scores: Scores) -> Scores:
    """Scores of one sum as Python numbers; those of many stay arrays."""
    return {k: v.item() if np.ndim(v) == 0 else v for k, v in scores.items()}

"""Whether two learners differ by more than chance, and how curves over passes move."""

from __future__ import annotations

import numpy as np

from hopefear.experiments.common.differences import Difference
from hopefear.metrics import Tagging, approximate_randomisation, paired_bootstrap
from hopefear.metrics.tagging import READ_BY

TAIL = 3  # passes in a row whose mean stands for where a curve is


def compare(first: np.ndarray, second: np.ndarray, metric: str, replicates: int) -> Difference:
    """Paired bootstrap and approximate randomisation over sentences.

    Parameters
    ----------
    first, second : int64[sentences, 7]
        Counts as ``Tagging.rows`` gives.
    metric : str
        ``f1`` or ``accuracy``.
    replicates : int
        Of either test.
    """
    used = np.isin(np.arange(first.shape[1]), READ_BY[metric])
    # Equal counts are drawn together, so counts the score does not read are made equal.
    a, b, how = first * used, second * used, Tagging()
    drawn = paired_bootstrap(how, a, b, metric, replicates=replicates, seed=1)
    traded = approximate_randomisation(how, a, b, metric, replicates=replicates, seed=1)
    return Difference(
        drawn.first, drawn.second, drawn.low, drawn.high, drawn.p_value, traded.p_value
    )


def fall(curve: np.ndarray) -> float:
    """How far the mean over seeds ends below its best: best three passes in a row less the last.

    A single best pass would be the luckiest one, and every curve that swings would fall.

    >>> round(fall(np.array([[90.0, 93.0, 93.0, 93.0, 92.0, 92.0, 92.0]])), 6)
    1.0
    """
    mean = np.atleast_2d(curve).mean(axis=0)
    width = min(TAIL, mean.size)
    smooth = np.convolve(mean, np.full(width, 1.0 / width), "valid")
    return float(smooth.max() - smooth[-1])


def swing(curve: np.ndarray) -> float:
    """Deviation from pass to pass in the second half, within a seed, mean over seeds."""
    late = np.atleast_2d(curve)[:, curve.shape[-1] // 2 :]
    return float(late.std(axis=1).mean())


def exponent(sizes: np.ndarray) -> float:
    """b of ``size ~ pass^b``, least squares in logarithms; 1 is linear growth, 0 is none.

    >>> round(exponent(np.array([2.0, 4.0, 6.0, 8.0])), 6)
    1.0
    """
    passes = np.arange(1, sizes.size + 1)
    return float(np.polyfit(np.log(passes), np.log(np.maximum(sizes, 1e-300)), 1)[0])


def late_growth(sizes: np.ndarray) -> float:
    """Growth over the second half of the passes, as a share."""
    return float(sizes[-1] / sizes[(sizes.size - 1) // 2] - 1.0)

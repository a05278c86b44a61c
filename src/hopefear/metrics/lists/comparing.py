"""Whether one choice of candidates is better than another, by resampling whole lists."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear.metrics.classification import Scores
from hopefear.metrics.lists.base import ListMetric, checked_starts, columns_of
from hopefear.metrics.lists.choices import numbered
from hopefear.metrics.significance import approximate_randomisation, paired_bootstrap


class Resampled(NamedTuple):
    """A metric of candidates, as resampling asks for one."""

    metric: ListMetric

    def value(self, stats: NDArray[Any]) -> Scores:
        return self.metric.scores(stats)

    @property
    def signature(self) -> str:
        return self.metric.signature()


def compare_lists(
    metric: ListMetric,
    counts: ArrayLike,
    starts: ArrayLike,
    first: ArrayLike,
    second: ArrayLike,
    *,
    score: str | None = None,
    samples: int = 1000,
    seed: int = 1,
) -> Scores:
    """Is one choice of candidates better than another by more than chance?

    Both are scored on the same resamples of lists (Koehn, 2004), and trade places by coin
    (Noreen, 1989).

    Parameters
    ----------
    metric : ListMetric
        Turns summed counts into scores.
    counts : array [candidates, S]
        What the metric counted.
    starts : int array
        List i has the candidates ``starts[i] .. starts[i + 1] - 1``.
    first, second : int arrays
        Position of the chosen candidate in each list.
    score : str, optional
        Which score; the metric's main one otherwise.
    samples : int
        Resamples and shuffles; more make p steadier.
    seed : int
        Same seed, same result.

    Returns
    -------
    dict
        ``first``, ``second``, ``difference`` with its 95 % bounds ``low`` and ``high``,
        ``p_bootstrap``, ``p_randomisation`` and ``signature``.

    Examples
    --------
    >>> from hopefear.metrics.lists import WordErrors
    >>> counts = np.array([[0, 4], [2, 4]] * 30)
    >>> starts = np.arange(0, 61, 2)
    >>> found = compare_lists(WordErrors(), counts, starts, [0] * 30, [0] * 10 + [1] * 20)
    >>> round(found["difference"], 1), found["p_bootstrap"] < 0.01
    (-33.3, True)
    """
    rows = np.moveaxis(columns_of(counts, metric), 0, -1)
    starts = checked_starts(starts, len(rows))
    a = rows[numbered(first, starts, "first")]
    b = rows[numbered(second, starts, "second")]
    return paired_tests(metric, a, b, score or metric.main, samples, seed)


def paired_tests(
    metric: ListMetric, a: ArrayLike, b: ArrayLike, score: str, samples: int, seed: int
) -> Scores:
    """Both tests on counts ``[lists, S]`` of two choices."""
    scorer = Resampled(metric)
    boot = paired_bootstrap(scorer, a, b, score, replicates=samples, seed=seed)
    shuffled = approximate_randomisation(scorer, a, b, score, replicates=samples, seed=seed)
    return {
        "first": boot.first,
        "second": boot.second,
        "difference": boot.difference,
        "low": boot.low,
        "high": boot.high,
        "p_bootstrap": boot.p_value,
        "p_randomisation": shuffled.p_value,
        "signature": f"{boot.signature},randomisation(n={samples},seed={seed})",
    }

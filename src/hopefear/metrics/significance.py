"""Intervals and tests of scores, by resampling the statistics of single examples.

Scores are recomputed from summed statistics, so corpus-level scores (F1, BLEU) are as good as
means. Examples with equal statistics are drawn together, by multinomial and binomial counts: the
same distribution as drawing them one by one, at a cost that does not grow with their number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear.core.progress import stage
from hopefear.errors import HopefearError
from hopefear.metrics.base import Metric, Scores

CELLS = 1 << 22  # counts held at a time


class Interval(NamedTuple):
    """A score and the bounds between which it stays in ``level`` percent of the resamples."""

    value: float
    low: float
    high: float
    level: float
    signature: str


class Comparison(NamedTuple):
    """Two systems on the same examples: is the difference chance?"""

    first: float
    second: float
    difference: float  # first - second
    p_value: float
    low: float  # bounds of the difference, 95 %; nan where the test gives none
    high: float
    signature: str


def confidence_interval(
    metric: Metric,
    rows: ArrayLike,
    name: str,
    *,
    level: float = 95.0,
    replicates: int = 1000,
    seed: int = 0,
) -> Interval:
    """Bootstrap percentile interval of a score (Efron, 1979).

    Parameters
    ----------
    metric : Metric
        Turns summed statistics into scores.
    rows : array [examples, S]
        ``metric.statistics(references, outputs)``.
    name : str
        Which score, such as ``f1``.
    level : float
        Percent of resamples inside; higher is wider.
    replicates : int
        Resamples; more make the bounds steadier, at proportional cost.
    seed : int
        Same seed, same bounds.

    Examples
    --------
    >>> from hopefear.metrics import Accuracy
    >>> metric = Accuracy()
    >>> rows = metric.statistics([1] * 100, [1] * 90 + [0] * 10)
    >>> result = confidence_interval(metric, rows, "accuracy")
    >>> result.value, result.low < 90 < result.high
    (90.0, True)
    """
    rows = _checked(rows)
    _check_draws(replicates, level)
    patterns, counts = _distinct(rows)
    scores = np.concatenate(
        [
            _score(metric, sample @ patterns, name)
            for sample in _resamples(np.random.default_rng(seed), counts, replicates)
        ]
    )
    low, high = np.percentile(scores, (50.0 - level / 2.0, 50.0 + level / 2.0))
    value = _score(metric, rows.sum(axis=0), name)
    signature = f"{metric.signature}|score:{name}|test:bootstrap(n={replicates},seed={seed})"
    return Interval(float(value), float(low), float(high), level, signature)


def paired_bootstrap(
    metric: Metric,
    first: ArrayLike,
    second: ArrayLike,
    name: str,
    *,
    replicates: int = 1000,
    seed: int = 0,
) -> Comparison:
    """Paired bootstrap test: both systems are scored on the same resamples (Koehn, 2004).

    ``p = (1 + #{|d* - mean d*| >= |d|}) / (1 + replicates)``, two-sided

    Parameters
    ----------
    metric : Metric
        Turns summed statistics into scores.
    first, second : array [examples, S]
        Statistics of the two systems, example by example.
    name : str
        Which score.
    replicates : int
        Resamples; the smallest p there can be is ``1 / (1 + replicates)``.
    seed : int
        Same seed, same result.

    Examples
    --------
    >>> from hopefear.metrics import Accuracy
    >>> metric, gold = Accuracy(), [1] * 100
    >>> a = metric.statistics(gold, [1] * 95 + [0] * 5)
    >>> b = metric.statistics(gold, [1] * 60 + [0] * 40)
    >>> result = paired_bootstrap(metric, a, b, "accuracy")
    >>> result.difference, result.p_value < 0.01
    (35.0, True)
    """
    a, b = _paired(first, second)
    _check_draws(replicates)
    patterns, counts = _distinct(np.hstack((a, b)))
    first_patterns, second_patterns = patterns[:, : a.shape[1]], patterns[:, a.shape[1] :]
    differences = np.concatenate(
        [
            _score(metric, sample @ first_patterns, name)
            - _score(metric, sample @ second_patterns, name)
            for sample in _resamples(np.random.default_rng(seed), counts, replicates)
        ]
    )
    low, high = np.percentile(differences, (2.5, 97.5))
    extremes = np.abs(differences - differences.mean())
    test = f"paired-bootstrap(n={replicates},seed={seed})"
    return _compare(metric, a, b, name, extremes, float(low), float(high), test)


def approximate_randomisation(
    metric: Metric,
    first: ArrayLike,
    second: ArrayLike,
    name: str,
    *,
    replicates: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Randomisation test: outputs of the two systems trade places by coin (Noreen, 1989).

    ``p = (1 + #{|d*| >= |d|}) / (1 + replicates)``, two-sided

    Parameters
    ----------
    metric, first, second, name, seed
        As in `paired_bootstrap`.
    replicates : int
        Shuffles; the smallest p there can be is ``1 / (1 + replicates)``.

    Examples
    --------
    >>> from hopefear.metrics import Accuracy
    >>> metric, gold = Accuracy(), [1] * 100
    >>> a = metric.statistics(gold, [1] * 95 + [0] * 5)
    >>> approximate_randomisation(metric, a, a, "accuracy").p_value
    1.0
    """
    a, b = _paired(first, second)
    _check_draws(replicates)
    # Examples on which both systems have the same statistics change nothing by trading places.
    differ = (a != b).any(axis=1)
    patterns, counts = _distinct(np.hstack((a[differ], b[differ])))
    change = patterns[:, a.shape[1] :] - patterns[:, : a.shape[1]]
    sum_a, sum_b = a.sum(axis=0), b.sum(axis=0)
    rng = np.random.default_rng(seed)
    extremes = []
    for size in _blocks(replicates, len(counts), "shuffling"):
        swaps = rng.binomial(counts, 0.5, (size, len(counts))) @ change
        shuffled = _score(metric, sum_a + swaps, name) - _score(metric, sum_b - swaps, name)
        extremes.append(np.abs(shuffled))
    test = f"randomisation(n={replicates},seed={seed})"
    return _compare(metric, a, b, name, np.concatenate(extremes), np.nan, np.nan, test)


def compare_outputs(
    metric: Metric,
    references: Any,
    first: Any,
    second: Any,
    *arguments: Any,
    score: str | None = None,
    samples: int = 10_000,
    seed: int = 1,
) -> Scores:
    """Tests whether one output is better than another by more than chance.

    Parameters
    ----------
    metric : Metric
        What counts; whole examples of it, such as sentences, are drawn and traded.
    references, first, second, *more
        References as for `metric.statistics`, each output, and further arguments.
    score : str, optional
        Which score; the metric's main one otherwise.
    samples : int
        Resamples of the bootstrap and shuffles of the randomisation; more make p steadier.
    seed : int
        Same seed, same result.

    Returns
    -------
    dict
        ``metric`` (the score), ``first``, ``second``, ``difference`` with its 95 % bounds ``low``
        and ``high``, ``p_bootstrap``, ``p_randomisation`` and ``signature``.

    Examples
    --------
    >>> from hopefear.metrics import Tagging
    >>> gold = [["B-X", "O"]] * 40
    >>> worse = gold[:30] + [["O", "O"]] * 10
    >>> result = compare_outputs(Tagging(), gold, gold, worse, score="accuracy", samples=200)
    >>> result["difference"], result["p_randomisation"] < 0.05
    (12.5, True)
    """
    name = metric.main if score is None else score
    first_rows, second_rows = (
        metric.statistics(references, output, *arguments) for output in (first, second)
    )
    if name in metric.reads:
        # Equal rows are drawn together, so columns that the score does not read are made equal.
        used = np.isin(np.arange(first_rows.shape[1]), metric.reads[name])
        first_rows, second_rows = first_rows * used, second_rows * used
    return {"metric": name} | paired_tests(metric, first_rows, second_rows, name, samples, seed)


def paired_tests(
    metric: Metric, first: ArrayLike, second: ArrayLike, name: str, samples: int, seed: int
) -> Scores:
    """Both tests on the statistics of two systems: bounds and two p-values by name."""
    boot = paired_bootstrap(metric, first, second, name, replicates=samples, seed=seed)
    shuffled = approximate_randomisation(metric, first, second, name, replicates=samples, seed=seed)
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


def _compare(
    metric: Metric,
    a: NDArray[Any],
    b: NDArray[Any],
    name: str,
    extremes: NDArray[np.float64],
    low: float,
    high: float,
    test: str,
) -> Comparison:
    first, second = (float(_score(metric, x.sum(axis=0), name)) for x in (a, b))
    # Sums in another order may miss equality by rounding, which must not make p smaller.
    slack = 1e-9 * max(abs(first), abs(second))
    p = (1 + int((extremes >= abs(first - second) - slack).sum())) / (1 + len(extremes))
    signature = f"{metric.signature}|score:{name}|test:{test}"
    return Comparison(first, second, first - second, p, low, high, signature)


def _score(metric: Metric, sums: NDArray[Any], name: str) -> NDArray[np.float64]:
    scores = metric.scores(sums)
    if name not in scores:
        raise HopefearError(
            f"{metric.signature} has no score {name!r}; it has {', '.join(sorted(scores))}"
        )
    return np.asarray(scores[name], np.float64)


def _distinct(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Different rows, and how often each occurs."""
    if len(rows) == 0:
        return rows, np.zeros(0, np.int64)
    # Any order that brings equal rows together will do; bytes sort faster than many columns.
    keys = np.ascontiguousarray(rows).view(np.dtype((np.void, rows.itemsize * rows.shape[1])))
    rows = rows[np.argsort(keys.ravel())]
    starts = np.flatnonzero(np.r_[True, (rows[1:] != rows[:-1]).any(axis=1)])
    return rows[starts], np.diff(np.r_[starts, len(rows)])


def _resamples(
    rng: np.random.Generator, counts: NDArray[np.int64], replicates: int
) -> Iterator[NDArray[np.int64]]:
    n = int(counts.sum())
    for size in _blocks(replicates, len(counts), "resampling"):
        yield rng.multinomial(n, counts / n, size)


def _blocks(replicates: int, width: int, title: str) -> Iterator[int]:
    step = max(1, CELLS // max(1, width))
    with stage(title, replicates, "samples") as work:
        for start in range(0, replicates, step):
            size = min(step, replicates - start)
            yield size
            work.advance(size)


def _checked(rows: Any) -> NDArray[Any]:
    rows = np.asarray(rows)
    if rows.dtype.kind in "iu":  # differences of small or unsigned ones would wrap around
        rows = rows.astype(np.int64)
    if rows.ndim != 2 or len(rows) == 0:
        raise HopefearError(
            f"statistics of shape {rows.shape}; a test needs rows [examples, S] of at least "
            "one example, as metric.statistics(references, outputs) gives"
        )
    return rows


def _paired(first: Any, second: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    a, b = _checked(first), _checked(second)
    if a.shape != b.shape:
        raise HopefearError(
            f"statistics of shapes {a.shape} and {b.shape} do not pair up; "
            "score both systems on the same examples with the same metric"
        )
    return a, b


def _check_draws(replicates: int, level: float = 95.0) -> None:
    if replicates < 1 or not 0.0 < level < 100.0:
        raise HopefearError(
            f"replicates={replicates}, level={level:g}: give at least 1 replicate and "
            "a level between 0 and 100"
        )

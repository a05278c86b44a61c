"""Reliability of probabilities, and a temperature that mends them.

Dividing scores by a temperature keeps every order of candidates and changes only how sure the
model is (Guo, Pleiss, Sun and Weinberger, 2017).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear import __version__
from hopefear.core.progress import stage
from hopefear.errors import HopefearError

_RATIO = (math.sqrt(5.0) - 1.0) / 2.0  # the golden section


class Reliability(NamedTuple):
    """Confidence against accuracy, bin by bin; percentages but for ``edges``.

    Parameters
    ----------
    edges : float array [bins + 1]
        Bin b holds probabilities above ``edges[b]``, up to ``edges[b + 1]``.
    counts : int array [bins]
        Predictions in each bin.
    confidence, accuracy : float array [bins]
        Mean probability and share of right predictions; 0 in empty bins.
    ece, mce : float
        Mean distance of the two, weighted by counts, and the largest.
    signature : str
        How they were made.
    """

    edges: NDArray[np.float64]
    counts: NDArray[np.int64]
    confidence: NDArray[np.float64]
    accuracy: NDArray[np.float64]
    ece: float
    mce: float
    signature: str

    def as_dict(self) -> dict[str, Any]:
        """All but the edges, by name."""
        names = ("ece", "mce", "confidence", "accuracy", "counts", "signature")
        return {name: getattr(self, name) for name in names}


class Temperature(NamedTuple):
    """Temperature of the highest likelihood in a range."""

    value: float
    at_bound: bool  # the likelihood still rises beyond the range


def reliability(probabilities: ArrayLike, correct: ArrayLike, *, bins: int = 10) -> Reliability:
    """Reliability table and expected calibration error (Naeini, Cooper and Hauskrecht, 2015).

    ``ece = sum_b counts[b] |accuracy[b] - confidence[b]| / n``

    Parameters
    ----------
    probabilities : float array
        Probability the model gave to each of its predictions.
    correct : bool array
        Whether each was right.
    bins : int
        Bins of equal width; more show finer structure and give noisier, larger errors.

    Examples
    --------
    >>> result = reliability([0.95, 0.95, 0.55, 0.55], [True, True, True, False])
    >>> round(result.ece, 3), result.counts[[5, 9]].tolist()
    (5.0, [2, 2])
    """
    p, right = np.asarray(probabilities, np.float64), np.asarray(correct)
    if p.ndim != 1 or p.shape != right.shape:
        raise HopefearError(
            f"probabilities of shape {p.shape} and correct of shape {right.shape} do not pair "
            "up; give one of each for every prediction"
        )
    if not ((p >= 0.0) & (p <= 1.0)).all():
        bad = int(np.argmin((p >= 0.0) & (p <= 1.0)))
        raise HopefearError(f"probability {bad} is {p[bad]:g}; give numbers between 0 and 1")
    if bins < 1:
        raise HopefearError(f"bins={bins}: a table needs at least 1 bin")
    edges = np.linspace(0.0, 1.0, bins + 1)
    bin_of = np.maximum(np.searchsorted(edges, p) - 1, 0)
    counts = np.bincount(bin_of, minlength=bins)
    sizes = np.maximum(counts, 1)
    confidence = 100.0 * np.bincount(bin_of, p, bins) / sizes
    accuracy = 100.0 * np.bincount(bin_of, right.astype(float), bins) / sizes
    gaps = np.abs(accuracy - confidence)
    ece = float(counts @ gaps / max(len(p), 1))
    signature = f"metric:reliability|bins:{bins}|v:{__version__}"
    return Reliability(edges, counts, confidence, accuracy, ece, float(gaps.max()), signature)


def best_temperature(
    log_likelihood: Callable[[float], float],
    *,
    low: float = 0.01,
    high: float = 100.0,
    tolerance: float = 1e-6,
) -> Temperature:
    """Temperature of the highest held-out likelihood, by golden section in its logarithm.

    Parameters
    ----------
    log_likelihood : callable
        Mean log-likelihood at a temperature; rises to one peak, as that of any log-linear model.
    low, high : float
        Range searched.
    tolerance : float
        Of the logarithm of the temperature. Larger asks for fewer likelihoods: 1e-6 for some 35,
        1e-3 for some 21.

    Examples
    --------
    >>> result = best_temperature(lambda t: -(t - 2.0) ** 2)
    >>> round(result.value, 3), result.at_bound
    (2.0, False)
    """
    if not 0.0 < low < high < math.inf:
        raise HopefearError(f"low={low:g}, high={high:g}: give 0 < low < high")
    with stage("fitting the temperature", None, "likelihoods") as work:

        def counted(t: float) -> float:
            work.advance()
            return log_likelihood(t)

        work.total = 2 + math.ceil(math.log(tolerance / math.log(high / low)) / math.log(_RATIO))
        return _highest(counted, low, high, tolerance)


def _highest(
    log_likelihood: Callable[[float], float], low: float, high: float, tolerance: float
) -> Temperature:
    a, b = math.log(low), math.log(high)
    c, d = b - _RATIO * (b - a), a + _RATIO * (b - a)
    at_c, at_d = log_likelihood(math.exp(c)), log_likelihood(math.exp(d))
    while b - a > tolerance:
        if at_c >= at_d:
            b, d, at_d = d, c, at_c
            c = b - _RATIO * (b - a)
            at_c = log_likelihood(math.exp(c))
        else:
            a, c, at_c = c, d, at_d
            d = a + _RATIO * (b - a)
            at_d = log_likelihood(math.exp(d))
    value = math.exp((a + b) / 2.0)
    at_bound = min(value / low, high / value) < 1.0 + 10.0 * tolerance
    return Temperature(value, at_bound)


def temperature_of(scores: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """Returns the temperature at which answers are right as often as they are probable.

    ``mean of max_c p_c(t) = share of right answers``, of examples that were not learned from. Of a
    few hundred, likelihood tells the temperature half as exactly: single mistakes decide it. As if
    one more example were as often right as by chance, so that few examples make nothing certain.
    Scores have one column for two classes, else one for each.

    >>> scores = np.array([[0.2], [0.1], [-0.1], [0.3]] * 5)
    >>> right = np.array([1, 1, 0, 0] * 5)
    >>> t = temperature_of(scores, right, np.ones(20))
    >>> round(float((1.0 / (1.0 + np.exp(-np.abs(scores) / t))).mean()), 2)
    0.74
    """
    if scores.shape[1] == 1:
        scores = np.hstack([-scores / 2.0, scores / 2.0])
    right = scores.argmax(axis=1) == labels
    scores = scores - scores.max(axis=1, keepdims=True)
    total = weights.sum(dtype=np.float64)
    share = (weights @ right + 1.0 / scores.shape[1]) / (total + 1.0)
    weights = weights / total
    size = -float(weights @ scores.mean(axis=1))  # of differences of scores
    if not size:
        return 1.0

    def nearness(t: float) -> float:
        return -abs(float(weights @ (1.0 / np.exp(scores / (size * t)).sum(axis=1))) - share)

    return size * best_temperature(nearness, tolerance=1e-3).value

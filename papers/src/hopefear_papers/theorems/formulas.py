"""The arithmetic of the mistake bounds: regret, Theorem 1 and Corollary 1 from plain numbers.

``voted_rda.py`` gets the numbers from a run; ``docs/theory.md`` derives the formulas.
"""

from __future__ import annotations

import math
from typing import Any


def lemma_1(a: float, b: float, c: float) -> tuple[float, float, float]:
    """Largest x with ``a x - b sqrt(x) - c <= 0``, and the paper's two simpler bounds on it.

    ``((b + sqrt(b^2 + 4ac)) / 2a)^2 <= c/a + (b/a)^2 + (b/a) sqrt(c/a) <= (sqrt(c/a) + b/a)^2``

    Examples
    --------
    >>> lemma_1(1.0, 3.0, 4.0)
    (16.0, 19.0, 25.0)
    """
    root = (b + math.sqrt(b * b + 4.0 * a * c)) / (2.0 * a)
    p, q = b / a, math.sqrt(c / a)
    return root * root, q * q + p * p + p * q, (q + p) ** 2


def regret_bound(
    M: float, norm: float, G: float, eta: float | None = None, l2: float = 0.0
) -> float:
    """Most that RDA's regularised loss over M >= 1 updates can exceed that of u.

    ``(eta/2 |u|^2 + G^2/eta) sqrt(M)``, and sqrt(2) G |u| sqrt(M) with the best eta (eq. 6)

    With ``l2 > 0`` the regulariser is strongly convex and ``G^2/eta sqrt(M)`` becomes
    ``G^2/2 ((2 l2 + eta)/s^2 + 1/s + 2/l2 log((l2 sqrt(M) + eta)/s))``, ``s = l2 + eta``; without
    an auxiliary term (eta = 0) that is ``G^2 / (2 l2) (3 + log M)``.

    Parameters
    ----------
    M : float
        Updates.
    norm, G : float
        Lengths of the comparator and of the longest direction.
    eta : float, optional
        Of the run: ``1 / rate``. None is the best for this comparator; with ``l2``, none at all.
    l2 : float
        Strength of the regulariser's square.

    Examples
    --------
    >>> round(regret_bound(100, 3.0, 1.0), 4), round(regret_bound(100, 3.0, 1.0, l2=0.5), 4)
    (42.4264, 7.6052)
    """
    if l2 == 0.0:
        if eta is None:
            return math.sqrt(2.0 * M) * G * norm
        return (0.5 * eta * norm * norm + G * G / eta) * math.sqrt(M)
    eta = eta or 0.0
    start = l2 + eta
    growth = 2.0 / l2 * math.log((l2 * math.sqrt(M) + eta) / start)
    steps = (start + l2) / start**2 + 1.0 / start + growth
    return 0.5 * eta * norm * norm * math.sqrt(M) + 0.5 * G * G * steps


def inequality(
    M: int,
    loss: float,
    norm: float,
    delta: float,
    lam: float,
    G: float,
    eta: float | None = None,
    floor: float = 1.0,
    l2: float = 0.0,
) -> tuple[float, float]:
    """Both sides of inequality (11): ``floor M`` and ``L(u) + M lam Delta(u) + regret``.

    Examples
    --------
    >>> inequality(8, loss=2.0, norm=3.0, delta=0.5, lam=0.1, G=1.0)
    (8.0, 14.4)
    """
    regret = regret_bound(M, norm, G, eta, l2) if M else 0.0
    return floor * M, loss + M * lam * delta + regret


def mistake_bound(
    loss: float,
    norm: float,
    delta: float,
    lam: float,
    G: float,
    eta: float | None = None,
    floor: float = 1.0,
    l2: float = 0.0,
) -> float:
    """Theorem 1: the most mistakes that a run with these terms can have made.

    ``(sqrt(L(u) / a) + b / a)^2``, ``a = floor - lam Delta(u)``, ``b = eta/2 |u|^2 + G^2/eta``

    Where u separates the data with margin ``gamma = 1 / |u|``, the best eta makes it
    ``2 (1 / (1 - lam Delta(u)))^2 (G / gamma)^2``. With ``l2 > 0`` there is no closed form: (11)
    with its logarithmic regret is solved for M.

    Parameters
    ----------
    loss, norm : float
        L(u) over the mistakes, and the length of u.
    delta, lam : float
        Relative strength of regularisation and its factor. From ``lam * delta = floor`` on, the
        bound is infinite.
    G, eta, l2
        As in ``regret_bound``.
    floor : float
        Least loss of a mistake: 1 for hinge, exponential and base-2 logistic loss, log 2 for
        natural logistic loss.

    Examples
    --------
    >>> round(mistake_bound(loss=0.0, norm=3.0, delta=0.0, lam=0.0, G=1.0), 6)
    18.0
    >>> mistake_bound(loss=0.0, norm=3.0, delta=10.0, lam=0.1, G=1.0)
    inf
    """
    a = floor - lam * delta
    if a <= 0.0:
        return math.inf
    if l2 == 0.0:
        return lemma_1(a, regret_bound(1.0, norm, G, eta), loss)[2]
    return _largest(a, lambda M: loss + regret_bound(M, norm, G, eta, l2))


def corollary_1(bound: float, m: int) -> float:
    """About the most probable an error on a new example is, after one pass over ``m`` examples.

    ``2 / (m + 1) * bound``

    The corollary has the *expected* bound over samples of m + 1 examples where this has the bound
    of one run, so it is an estimate; above 1 it says nothing.

    Examples
    --------
    >>> corollary_1(50.0, 999)
    0.1
    """
    return 2.0 / (m + 1) * bound


def regime(delta: float, lam: float, floor: float = 1.0) -> str:
    """How strongly u is regularised beside the run: under, over, perfect or vacuous.

    ``perfect`` includes ``lam = 0``: nothing is penalised, and the bound is the same.

    Examples
    --------
    >>> regime(-1.0, 0.1), regime(1.0, 0.1), regime(1.0, 0.0), regime(10.0, 0.1)
    ('under', 'over', 'perfect', 'vacuous')
    """
    penalty = lam * delta
    if penalty >= floor:
        return "vacuous"
    return "perfect" if penalty == 0.0 else "over" if penalty > 0.0 else "under"


def _largest(a: float, right: Any) -> float:
    """Largest M >= 1 with ``a M <= right(M)``."""
    low = high = 1.0
    if a > right(1.0):  # right is concave and its slope at 1 below its value: all others fail too
        return right(1.0) / a
    while a * high <= right(high):
        low, high = high, 2.0 * high
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if a * middle <= right(middle) else (low, middle)
    return high

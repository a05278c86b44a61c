"""Minimisation by L-BFGS (Liu and Nocedal, 1989) and OWL-QN (Andrew and Gao, 2007).

Both move along minus the gradient times an estimate of the inverse Hessian that the last few steps
``s`` and changes of the gradient ``y`` imply. The direction is a sum of those vectors and the
gradient, and its coefficients follow from their inner products alone (Chen, Wang and Zhou, 2014):
the history is read twice in an iteration, in blocks that fit a cache, instead of four times.
No BLAS is called, so results do not depend on its number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import helper, kernel
from hopefear.errors import HopefearError, ModelError
from hopefear.storage import array_of

Function = Callable[[np.ndarray], tuple[float, np.ndarray]]

_BLOCK = 1 << 12  # coordinates of all vectors of the history at a time
_LARGE = 1 << 20  # from here on the history is kept in float32: memory counts more than digits
_DECREASE, _CURVATURE = 1e-4, 0.9  # what the conditions of Wolfe ask for
_SEARCHES = 30  # evaluations in one line search


class Minimum(NamedTuple):
    """What :func:`minimise` found."""

    w: np.ndarray
    value: float
    iterations: int
    evaluations: int
    converged: bool


class Minimiser:
    """Minimise ``function(w) + l1 * sum(abs(w))``, one iteration a call.

    Parameters
    ----------
    function : callable
        Value and gradient (a new array) at a float64 vector; smooth, and convex for best results.
    w0 : array
        Where to start.
    l1 : float
        Weight of the sum of sizes. Above 0 the method is OWL-QN, and weights become exactly 0.
    memory : int
        Steps remembered. More means fewer iterations, and two more vectors of memory each.

    Examples
    --------
    >>> bowl = Minimiser(lambda w: (float(w @ w), 2.0 * w), np.array([3.0, -4.0]))
    >>> while bowl.step():
    ...     pass
    >>> round(bowl.value, 9)
    0.0
    """

    def __init__(self, function: Function, w0: Any, *, l1: float = 0.0, memory: int = 6) -> None:
        if memory < 1:
            raise HopefearError(f"memory must be at least 1 step, not {memory}")
        if not 0.0 <= l1 < math.inf:
            raise HopefearError(f"l1 must be finite and not negative, but is {l1}")
        self.function, self.l1, self.memory = function, float(l1), int(memory)
        self.w = np.array(w0, np.float64)
        self.iterations = self.evaluations = 0
        n = self.w.size
        # Row 2k holds a step, row 2k + 1 the change of the gradient; the oldest are overwritten.
        self.history = np.zeros((2 * memory, n), np.float32 if n >= _LARGE else np.float64)
        self.products = np.zeros((2 * memory, 2 * memory))
        self.kept = 0
        self.value, self.gradient = self._evaluate(self.w)
        if not math.isfinite(self.value):
            raise HopefearError(f"the function is {self.value} where minimisation starts")

    def step(self) -> bool:
        """One iteration; False when no step makes the value smaller any more."""
        slope = self._downhill()
        steep = norm(slope)
        if steep == 0.0:
            return False
        direction, length = self._direction(slope), 1.0
        if self.kept == 0:
            length = 1.0 / steep
        found = self._search(direction, slope, length)
        if found is None and self.kept > 0:  # a bad estimate; the gradient itself may still do
            self.kept = 0
            found = self._search(-slope, slope, 1.0 / steep)
        if found is None:
            return False
        w, value, gradient = found
        self._remember(w, gradient)
        self.w, self.value, self.gradient = w, value, gradient
        self.iterations += 1
        return True

    def steepness(self) -> float:
        """Length of the gradient (with L1, of its shortest subgradient) over that of the weights.

        Lengths of weights below 1 count as 1, as in CRFsuite's test for convergence.
        """
        return norm(self._downhill()) / max(1.0, norm(self.w))

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        counts = (self.iterations, self.evaluations, self.kept)
        return {
            "w": self.w,
            "gradient": self.gradient,
            "history": self.history[: 2 * min(self.kept, self.memory)],
            "products": self.products,
            "value": np.array([self.value]),
            "counts": np.array(counts, np.int64),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take up what ``arrays`` gave, or ModelError; function and memory must be the same."""
        n, memory = self.w.size, self.memory
        counts = array_of(arrays, "counts", np.int64, (3,)).tolist()
        used = 2 * min(max(0, counts[2]), memory)
        w, gradient = (array_of(arrays, name, np.float64, (n,)) for name in ("w", "gradient"))
        history = array_of(arrays, "history", self.history.dtype, (used, n))
        products = array_of(arrays, "products", np.float64, self.products.shape)
        value = array_of(arrays, "value", np.float64, (1,))
        finite = all(np.isfinite(a).all() for a in (w, gradient, history, products, value))
        # What the direction is divided by: every step s has s.y > 0, and so y.y > 0.
        curved = products[:used:2, 1:used:2].diagonal().min(initial=1.0) > 0.0
        curved &= products[1:used:2, 1:used:2].diagonal().min(initial=1.0) > 0.0
        if min(counts) < 0 or not finite or not curved:
            raise ModelError(f"the search counts {counts} and holds numbers no search comes to")
        self.w, self.gradient, self.products = np.array(w), np.array(gradient), np.array(products)
        self.history[:used] = history
        self.value = float(value[0])
        self.iterations, self.evaluations, self.kept = counts

    def _evaluate(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        self.evaluations += 1
        value, gradient = self.function(w)
        if self.l1 > 0.0:
            value += self.l1 * sum(float(np.abs(w[b]).sum()) for b in _blocks(w.size))
        return float(value), gradient

    def _downhill(self) -> np.ndarray:
        """The gradient, or with L1 the shortest subgradient (Andrew and Gao, eq. 4)."""
        if self.l1 == 0.0:
            return self.gradient
        slope = np.empty_like(self.w)
        for b in _blocks(slope.size):
            w, g = self.w[b], self.gradient[b]
            at_zero = g - np.clip(g, -self.l1, self.l1)
            slope[b] = np.where(w == 0.0, at_zero, g + np.copysign(self.l1, w))
        return slope

    def _direction(self, slope: np.ndarray) -> np.ndarray:
        if self.kept == 0:
            return -slope
        used = 2 * min(self.kept, self.memory)
        onto = np.zeros((used, 1))
        _inner(self.history[:used], slope.reshape(1, -1), onto)
        scale, shares = self._shares(onto[:, 0], used)
        direction = np.empty_like(slope)
        _combine(self.history[:used], shares, scale, slope, self.l1 > 0.0, direction)
        return direction

    def _shares(self, onto: np.ndarray, used: int) -> tuple[float, np.ndarray]:
        """The direction is ``shares @ history - scale * slope``: the two loops, on coefficients."""
        products = self.products
        newest = (self.kept - 1) % self.memory
        order = [(newest - k) % self.memory for k in range(used // 2)]
        shares = np.zeros(used)
        alphas = {}
        for k in order:
            s, y = 2 * k, 2 * k + 1
            along = float(np.dot(products[s, :used], shares)) - onto[s]
            alphas[k] = along / products[s, y]
            shares[y] -= alphas[k]
        s, y = 2 * newest, 2 * newest + 1
        scale = float(products[s, y] / products[y, y])
        shares *= scale
        for k in reversed(order):
            s, y = 2 * k, 2 * k + 1
            along = float(np.dot(products[y, :used], shares)) - scale * onto[y]
            shares[s] += alphas[k] - along / products[s, y]
        return scale, shares

    def _search(
        self, direction: np.ndarray, slope: np.ndarray, length: float
    ) -> tuple[np.ndarray, float, np.ndarray] | None:
        if self.l1 > 0.0:
            return self._search_orthant(direction, slope, length)
        return self._search_line(direction, slope, length)

    def _search_line(
        self, direction: np.ndarray, slope: np.ndarray, length: float
    ) -> tuple[np.ndarray, float, np.ndarray] | None:
        """A step that meets Wolfe's weak conditions, by interpolation within a bracket."""
        fall = _dot(direction, slope)
        if not fall < 0.0:
            return None
        low, high, best = 0.0, math.inf, None
        for _ in range(_SEARCHES):
            w = self.w + length * direction
            value, gradient = self._evaluate(w)
            here = _dot(direction, gradient) if math.isfinite(value) else math.inf
            if not value <= self.value + _DECREASE * length * fall:
                high = length
                guess = -0.5 * fall * length**2 / (value - self.value - fall * length)
            elif here < _CURVATURE * fall:
                best, low = w, length
                guess = length * fall / (fall - here) if here > fall else math.inf
            else:
                return w, value, gradient
            if not math.isfinite(guess):
                guess = 0.0 if high < math.inf else math.inf
            if high < math.inf:
                margin = 0.1 * (high - low)
                length = min(max(guess, low + margin), high - margin)
            else:
                length = min(max(guess, 2.0 * low), 10.0 * low)
        # Callers may look at what the function left behind, so its last call is the one accepted.
        return None if best is None else (best, *self._evaluate(best))

    def _search_orthant(
        self, direction: np.ndarray, slope: np.ndarray, length: float
    ) -> tuple[np.ndarray, float, np.ndarray] | None:
        """Shorten the step until the value falls enough; coordinates stop where the sign ends."""
        for _ in range(_SEARCHES):
            w, fall = np.empty_like(self.w), 0.0
            for b in _blocks(w.size):
                before = self.w[b]
                after = before + length * direction[b]
                after[after * np.where(before == 0.0, -slope[b], before) <= 0.0] = 0.0
                fall += _dot(slope[b], after - before)
                w[b] = after
            value, gradient = self._evaluate(w)
            if fall < 0.0 and value <= self.value + _DECREASE * fall:
                return w, value, gradient
            length *= 0.5
        return None

    def _remember(self, w: np.ndarray, gradient: np.ndarray) -> None:
        """Put the step and the change of the gradient in place of the oldest."""
        ss = sy = yy = 0.0
        for b in _blocks(w.size):
            step, change = w[b] - self.w[b], gradient[b] - self.gradient[b]
            ss, sy, yy = ss + _dot(step, step), sy + _dot(step, change), yy + _dot(change, change)
        # Without curvature the estimate would not be positive definite.
        if sy <= 1e-10 * math.sqrt(ss) * math.sqrt(yy):
            return
        k = self.kept % self.memory
        np.subtract(w, self.w, out=self.history[2 * k], casting="same_kind")
        np.subtract(gradient, self.gradient, out=self.history[2 * k + 1], casting="same_kind")
        self.kept += 1
        used = 2 * min(self.kept, self.memory)
        inner = np.zeros((used, 2))
        _inner(self.history[:used], self.history[2 * k : 2 * k + 2], inner)
        self.products[:used, 2 * k : 2 * k + 2] = inner
        self.products[2 * k : 2 * k + 2, :used] = inner.T


def minimise(
    function: Function,
    w0: Any,
    *,
    l1: float = 0.0,
    memory: int = 6,
    max_iter: int = 1000,
    tolerance: float = 1e-5,
    period: int = 10,
) -> Minimum:
    """Minimise ``function(w) + l1 * sum(abs(w))``; see :class:`Minimiser`.

    Parameters
    ----------
    max_iter : int
        Iterations at most.
    tolerance : float
        Stop when the slope is this small beside the weights, or the value has fallen by less than
        this share of itself in ``period`` iterations. Smaller is more exact and slower.

    Examples
    --------
    >>> def bowl(w):
    ...     return float((w - 3.0) @ (w - 3.0)), 2.0 * (w - 3.0)
    >>> found = minimise(bowl, [0.0, 0.0], l1=2.0)
    >>> found.w.round(6).tolist(), found.converged
    ([2.0, 2.0], True)
    """
    search = Minimiser(function, w0, l1=l1, memory=memory)
    values = [search.value]
    while search.iterations < max_iter:
        if search.steepness() <= tolerance or not search.step():
            return _minimum(search, True)
        values.append(search.value)
        if has_settled(values, period, tolerance):
            return _minimum(search, True)
    return _minimum(search, False)


def has_settled(values: list[float], period: int, tolerance: float) -> bool:
    """Whether the last ``period`` iterations gained less than this share of the value.

    >>> has_settled([9.0, 8.0, 7.9], period=1, tolerance=0.1)
    True
    """
    if len(values) <= period:
        return False
    return values[-1 - period] - values[-1] < tolerance * abs(values[-1])


def _minimum(search: Minimiser, converged: bool) -> Minimum:
    return Minimum(search.w, search.value, search.iterations, search.evaluations, converged)


def _blocks(n: int) -> Iterator[slice]:
    """Stretches that fit a cache, so that what is made of them in between does too."""
    return (slice(a, a + _BLOCK) for a in range(0, n, _BLOCK))


def norm(v: np.ndarray) -> float:
    """Euclidean length, without BLAS."""
    return math.sqrt(_dot(v, v))


def _dot(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.einsum("j,j->", a, b))


@kernel
def _inner(history, vectors, total):
    """Add all inner products of these with those to ``total``."""
    for first in range(0, history.shape[1], _BLOCK):
        for k in range(history.shape[0]):
            for c in range(vectors.shape[0]):
                a = history[k, first : first + _BLOCK]
                total[k, c] += _product(a, vectors[c, first : first + _BLOCK])


@helper
def _product(a, b):
    # Four sums, because an addition must wait for the one before it.
    t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
    fours = a.size // 4
    for q in range(fours):
        p = 4 * q
        t0 += np.float64(a[p]) * np.float64(b[p])
        t1 += np.float64(a[p + 1]) * np.float64(b[p + 1])
        t2 += np.float64(a[p + 2]) * np.float64(b[p + 2])
        t3 += np.float64(a[p + 3]) * np.float64(b[p + 3])
    for p in range(4 * fours, a.size):
        t0 += np.float64(a[p]) * np.float64(b[p])
    return (t0 + t1) + (t2 + t3)


@kernel
def _combine(history, shares, scale, slope, align, direction):
    """``shares @ history - scale * slope``; ``align``: 0 where that is not downhill."""
    for first in range(0, slope.size, _BLOCK):
        out, downhill = direction[first : first + _BLOCK], slope[first : first + _BLOCK]
        for p in range(out.size):
            out[p] = -scale * downhill[p]
        for k in range(shares.size):
            row, share = history[k, first : first + _BLOCK], shares[k]
            for p in range(out.size):
                out[p] += share * np.float64(row[p])
        if align:  # the model is right within one orthant only
            for p in range(out.size):
                out[p] = out[p] if out[p] * downhill[p] < 0.0 else 0.0

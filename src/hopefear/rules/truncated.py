"""Truncated gradient (Langford, Li and Zhang, 2009)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import DROP, RATE, UpdateRule, WeightView
from hopefear.core.workspace import (
    average_clock,
    inverse_soft_threshold,
    learning_rate_at,
    shrink,
    soft_threshold,
)


class TruncatedState(NamedTuple):
    m: np.ndarray  # float64: weight plus the gravity spent when it was last touched
    free: np.ndarray  # uint8: the weight is above the threshold and feels no gravity
    clock: np.ndarray


@component(WeightView)
class Truncated(NamedTuple):
    """Weights under gravity, except the free ones."""

    m: np.ndarray
    free: np.ndarray
    drop: float

    def at(self, j):
        return shrink(self.m[j], 0.0 if self.free[j] else self.drop)


@component(UpdateRule, may_be_infinite=("threshold",))
class TruncatedGradient(NamedTuple):
    """A gradient step, and every K steps a pull of small weights towards zero.

    ``w <- T(w + rate_t g, K rate_t gravity)`` when K divides t, else ``w + rate_t g``;
    ``T(v, a) = shrink(v, a)`` for ``|v| <= threshold``, else v

    Parameters
    ----------
    rate : float
        Length of the first step. Larger learns faster and less evenly.
    gravity : float
        Pull per step; plays the part of l1. Larger gives fewer non-zero weights.
    every : int
        K: steps between truncations. Larger truncates rarely and by more at once.
    threshold : float
        Weights beyond it are left alone. Infinity makes gravity an L1 penalty.
    power : float
        ``rate_t = rate / t**power``.

    Notes
    -----
    A weight that is not touched keeps its side of the threshold, since gravity only shrinks. So
    lazy reading is exact for any threshold.

    Examples
    --------
    >>> rule = TruncatedGradient(rate=1.0, gravity=0.1, every=2)
    >>> state = rule.init(1, np.float64)
    >>> rule.update(state, 0, 1.0, 1.0, 0.0); rule.tick(state, 1)
    >>> one = rule.weight_view(state).at(0); rule.tick(state, 2)
    >>> one, round(rule.weight_view(state).at(0), 6)
    (1.0, 0.8)
    """

    rate: float = 1.0
    gravity: float = 0.0
    every: int = 10
    threshold: float = math.inf
    power: float = 0.0

    def parameter_error(self):
        if self.rate <= 0.0 or self.threshold <= 0.0:
            return "rate and threshold must be above zero"
        return "" if self.every >= 1 else f"every must be at least 1, not {self.every}"

    def why_all_zero(self, state, ticks):
        if self.gravity == 0.0:
            return UpdateRule.why_all_zero(self, state, ticks)
        return f"gravity={self.gravity:g} is too large for this data: make it smaller"

    def init(self, n, dtype):
        return TruncatedState(np.zeros(n), np.zeros(n, np.uint8), np.array([1.0, 0.0, self.rate]))

    def merged_clock(self, base, clocks, shares, t):
        return average_clock(clocks, shares, learning_rate_at(self.rate, self.power, 1.0, 1.0, t))

    def to_sums(self, state, clock):
        return (np.where(state.free, state.m, soft_threshold(state.m, clock[DROP])),)

    def from_sums(self, sums, clock):
        w = sums[0]
        free = np.abs(w) > self.threshold
        return np.where(free, w, inverse_soft_threshold(w, clock[DROP])), free

    def weight_view(self, state):
        return Truncated(state.m, state.free, state.clock[DROP])

    def lazy_weight(self, state, j):
        return state.m[j], 1.0, 0.0 if state.free[j] else 1.0

    def update(self, state, j, g, a, b):
        drop = state.clock[DROP]
        w = shrink(state.m[j], 0.0 if state.free[j] else drop) + a * state.clock[RATE] * g
        free = abs(w) > self.threshold
        state.free[j] = free
        state.m[j] = w if free or w == 0.0 else w + math.copysign(drop, w)

    def tick(self, state, t):
        if t % self.every == 0:
            state.clock[DROP] += self.every * self.gravity * state.clock[RATE]
        state.clock[RATE] = learning_rate_at(self.rate, self.power, 1.0, 1.0, t)

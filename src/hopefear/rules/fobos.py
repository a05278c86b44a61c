"""Forward-backward splitting (Duchi and Singer, 2009)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import DROP, MIN_SCALE, RATE, SCALE, UpdateRule
from hopefear.core.workspace import (
    SoftThresholdedWeights,
    average_clock,
    inverse_soft_threshold,
    learning_rate_at,
    shrink,
    soft_threshold,
)


class FobosState(NamedTuple):
    m: np.ndarray  # float64: (weight / scale) plus the drop spent when it was last touched
    clock: np.ndarray


@component(UpdateRule)
class FOBOS(NamedTuple):
    """A gradient step, then the regulariser's own minimisation.

    ``w <- shrink(w + rate_t g, rate_t l1) / (1 + rate_t l2)``

    Parameters
    ----------
    rate : float
        Length of the first step. Larger learns faster and less evenly.
    power : float
        ``rate_t = rate / t**power``.
    l1 : float
        Larger gives fewer non-zero weights.
    l2 : float
        Larger pulls all weights towards zero.

    Examples
    --------
    >>> rule = FOBOS(rate=1.0, power=0.0, l1=0.5)
    >>> state = rule.init(1, np.float64)
    >>> rule.update(state, 0, 2.0, 1.0, 0.0); rule.tick(state, 1)
    >>> float(rule.weight_view(state).at(0))
    1.5
    """

    rate: float = 1.0
    power: float = 0.5
    l1: float = 0.0
    l2: float = 0.0

    def parameter_error(self):
        return "" if self.rate > 0.0 else "rate must be above zero"

    def init(self, n, dtype):
        return FobosState(np.zeros(n), np.array([1.0, 0.0, self.rate]))

    def merged_clock(self, base, clocks, shares, t):
        return average_clock(clocks, shares, learning_rate_at(self.rate, self.power, 1.0, 1.0, t))

    def to_sums(self, state, clock):
        return (clock[SCALE] * soft_threshold(state.m, clock[DROP]),)

    def from_sums(self, sums, clock):
        return (inverse_soft_threshold(sums[0] / clock[SCALE], clock[DROP]),)

    def weight_view(self, state):
        return SoftThresholdedWeights(state.m, state.clock[SCALE], state.clock[DROP])

    def lazy_weight(self, state, j):
        return state.m[j], 1.0, 1.0 if self.l1 > 0.0 else 0.0

    def update(self, state, j, g, a, b):
        drop = state.clock[DROP]
        m = shrink(state.m[j], drop) + a * state.clock[RATE] * g / state.clock[SCALE]
        state.m[j] = m + math.copysign(drop, m) if m != 0.0 else 0.0

    def tick(self, state, t):
        rate = state.clock[RATE]
        state.clock[DROP] += rate * self.l1 / state.clock[SCALE]
        state.clock[SCALE] /= 1.0 + rate * self.l2
        state.clock[RATE] = learning_rate_at(self.rate, self.power, 1.0, 1.0, t)

    def needs_rescaling(self, state):
        return state.clock[SCALE] < MIN_SCALE

    def rescale(self, state, j):
        state.m[j] *= state.clock[SCALE]

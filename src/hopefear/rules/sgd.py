"""Stochastic gradient steps with L2 decay and the cumulative L1 penalty (Tsuruoka et al., 2009)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import DROP, MIN_SCALE, RATE, SCALE, UpdateRule
from hopefear.core.workspace import SoftThresholdedWeights, average_clock, learning_rate_at


class SGDState(NamedTuple):
    m: np.ndarray  # weights before decay and penalty
    clock: np.ndarray


@component(UpdateRule)
class SGD(NamedTuple):
    """A step along the direction, shorter with time if asked.

    ``w <- (1 - rate_t l2) w + rate_t g``, then the penalty ``u_t = l1 * sum(rate_1 .. rate_t)``

    The cumulative penalty of Tsuruoka et al. keeps, per weight, how much of ``u_t`` it has
    received. Writing m for the weight less what it has received, every one of their updates is
    ``m += rate_t g`` and the weight is ``shrink(m, u_t)``: no second array is needed, and weights
    that were not touched are penalised exactly on time.

    Parameters
    ----------
    rate : float
        Length of the first step. Larger learns faster and less evenly.
    power : float
        ``rate_t = rate / t**power``: 0 is constant, 0.5 the usual 1/sqrt(t).
    decay : float
        Factor on the rate per ``period`` steps (exponential decay); 1 is none.
    period : float
        Ticks in which ``decay`` acts once; training sets it to the number of examples, which is one
        pass on every example, and longer where only mistakes tick.
    l1 : float
        Larger gives fewer non-zero weights.
    l2 : float
        Larger pulls all weights towards zero.

    Examples
    --------
    >>> rule = SGD(rate=0.5, l1=0.1)
    >>> state = rule.init(2, np.float64)
    >>> rule.update(state, 0, 1.0, a=0.5, b=0.0); rule.tick(state, 1)
    >>> float(rule.weight_view(state).at(0))
    0.45
    """

    rate: float = 1.0
    power: float = 0.0
    decay: float = 1.0
    period: float = 1.0
    l1: float = 0.0
    l2: float = 0.0

    def parameter_error(self):
        if self.rate <= 0.0 or self.period <= 0.0 or self.decay <= 0.0:
            return "rate, period and decay must be above zero"
        if self.rate * self.l2 >= 1.0:
            return (
                f"rate * l2 must be below one, or a step turns weights around; it is "
                f"{self.rate * self.l2:g}"
            )
        return ""

    def init(self, n, dtype):
        return SGDState(np.zeros(n, dtype), np.array([1.0, 0.0, self.rate]))

    def merged_clock(self, base, clocks, shares, t):
        rate = learning_rate_at(self.rate, self.power, self.decay, self.period, t)
        return average_clock(clocks, shares, rate)

    def to_sums(self, state, clock):
        return (state.m * np.float64(clock[SCALE]),)

    def from_sums(self, sums, clock):
        return (sums[0] / clock[SCALE],)

    def weight_view(self, state):
        real = state.m.dtype.type
        return SoftThresholdedWeights(state.m, real(state.clock[SCALE]), real(state.clock[DROP]))

    def lazy_weight(self, state, j):
        return state.m[j], 1.0, 1.0 if self.l1 > 0.0 else 0.0

    def step_size(self, structure, x, mu, state, value, margin, importance):
        # The tick that follows multiplies the scale by (1 - rate l2), which must not shorten this
        # step.
        rate = state.clock[RATE]
        return rate / (state.clock[SCALE] * (1.0 - rate * self.l2)), 0.0

    def update(self, state, j, g, a, b):
        state.m[j] += state.m.dtype.type(a) * g

    def tick(self, state, t):
        rate = state.clock[RATE]
        state.clock[SCALE] *= 1.0 - rate * self.l2
        state.clock[DROP] += rate * self.l1 / state.clock[SCALE]
        state.clock[RATE] = learning_rate_at(self.rate, self.power, self.decay, self.period, t)

    def needs_rescaling(self, state):
        return state.clock[SCALE] < MIN_SCALE

    def rescale(self, state, j):
        state.m[j] *= state.clock[SCALE]

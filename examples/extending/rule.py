"""Steps of one length, whatever the size of the gradient (signSGD, Bernstein et al., 2018)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import DROP, UpdateRule
from hopefear.core.workspace import SoftThresholdedWeights, shrink


class SignState(NamedTuple):
    m: np.ndarray  # weight plus the drop there was when it was last touched
    clock: np.ndarray


@component(UpdateRule)
class SignDescent(NamedTuple):
    """Every coordinate of a direction moves its weight by the same amount.

    ``w <- shrink(w + rate sign(g), rate l1)``

    Parameters
    ----------
    rate : float
        Length of a step. Larger learns faster and less evenly.
    l1 : float
        Share of a step by which every weight shrinks at every tick. Larger gives fewer weights.

    Examples
    --------
    >>> rule = SignDescent(rate=0.5, l1=0.1)
    >>> state = rule.init(1, np.float64)
    >>> rule.update(state, 0, -3.0, 1.0, 0.0); rule.tick(state, 1)
    >>> float(rule.weight_view(state).at(0))
    -0.45
    """

    rate: float = 0.1
    l1: float = 0.0

    def parameter_error(self):
        return "" if self.rate > 0.0 else "rate must be above zero"

    def init(self, n, dtype):
        return SignState(np.zeros(n, dtype), np.array([1.0, 0.0, self.rate]))

    def additive(self):
        return False  # the sign of a sum is not the sum of signs

    def weight_view(self, state):
        real = state.m.dtype.type
        return SoftThresholdedWeights(state.m, real(1.0), real(state.clock[DROP]))

    def lazy_weight(self, state, j):
        return state.m[j], 1.0, 1.0 if self.l1 > 0.0 else 0.0

    def update(self, state, j, g, a, b):
        drop = state.clock[DROP]
        w = shrink(state.m[j], drop) + math.copysign(self.rate, g)
        state.m[j] = w + math.copysign(drop, w) if w != 0.0 else 0.0

    def tick(self, state, t):
        state.clock[DROP] = self.rate * self.l1 * t

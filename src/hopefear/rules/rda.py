"""Regularized dual averaging (Xiao, 2010); on mistakes only, voted RDA (Xu et al.; Gao et al.)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import DROP, SCALE, UpdateRule
from hopefear.core.workspace import SoftThresholdedWeights


class RDAState(NamedTuple):
    m: np.ndarray  # sum of all directions (minus the paper's s)
    clock: np.ndarray


# Sums of directions; ticks count them.
@component(UpdateRule, may_be_infinite=("rate",), is_sum_over_examples=True)
class RDA(NamedTuple):
    """The minimiser of everything seen so far, linearised, plus the regulariser.

    ``w = shrink(m, l1 k) / (l2 k + sqrt(k) / rate)``, m the sum of k directions (eqs. 1, 2 and 4)

    Parameters
    ----------
    rate : float
        ``1 / eta`` of the papers (beta_k = eta sqrt(k)). Larger moves faster. ``inf`` with ``l2 >
        0`` drops the auxiliary term: the strongly convex case, whose regret grows like log k.
    l1 : float
        Larger gives fewer non-zero weights; the threshold is on the *mean* direction.
    l2 : float
        Larger pulls all weights towards zero.

    Examples
    --------
    >>> rule = RDA(rate=2.0, l1=0.1)
    >>> state = rule.init(2, np.float64)
    >>> rule.update(state, 0, -0.5, 1.0, 0.0); rule.tick(state, 1)
    >>> float(rule.weight_view(state).at(0)), float(rule.weight_view(state).at(1))
    (-0.8, 0.0)
    """

    rate: float = 1.0
    l1: float = 0.0
    l2: float = 0.0

    def parameter_error(self):
        if self.rate == math.inf and self.l2 == 0.0:
            return (
                "an infinite rate needs l2 > 0: only a strongly convex regulariser can do "
                "without the auxiliary term"
            )
        return "" if self.rate > 0.0 else "rate must be above zero"

    def why_all_zero(self, state, ticks):
        if self.l1 == 0.0:
            return UpdateRule.why_all_zero(self, state, ticks)
        largest = float(np.abs(state.m).max()) / ticks
        return (
            f"l1={self.l1:g} is above the largest mean direction, {largest:.3g}: "
            f"try {largest / 10:.1g} or less"
        )

    def init(self, n, dtype):
        return RDAState(np.zeros(n, dtype), np.array([1.0, 0.0, self.rate]))

    def to_sums(self, state, clock):
        return (state.m.astype(np.float64),)

    def from_sums(self, sums, clock):
        return sums

    def weight_view(self, state):
        real = state.m.dtype.type
        return SoftThresholdedWeights(state.m, real(state.clock[SCALE]), real(state.clock[DROP]))

    def lazy_weight(self, state, j):
        return state.m[j], 1.0, 1.0 if self.l1 > 0.0 else 0.0

    def update(self, state, j, g, a, b):
        state.m[j] += g

    def tick(self, state, t):
        state.clock[SCALE] = 1.0 / (self.l2 * t + math.sqrt(t) / self.rate)
        state.clock[DROP] = self.l1 * t

"""AdaGrad by composite mirror descent (Duchi, Hazan and Singer, 2011, section 5)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import DROP, UpdateRule
from hopefear.core.workspace import AdaGradWeights, inverse_soft_threshold, shrink, soft_threshold


class AdaGradState(NamedTuple):
    cells: np.ndarray  # [n, 2]: line m, root of the sum of squared directions
    clock: np.ndarray


@component(UpdateRule)
class AdaGrad(NamedTuple):
    """Steps that shrink for coordinates that have moved often.

    ``w <- shrink(w + r g, r l1)`` with ``r = rate / (eps + sqrt(sum of g**2 so far))``

    The shrinking of untouched coordinates is read off lazily: they store ``m = w / r + l1 k``.

    Parameters
    ----------
    rate : float
        Length of the first step of every coordinate. Larger learns faster and less evenly.
    l1 : float
        Larger gives fewer non-zero weights; sparser models come from ``AdaGradRDA``.
    eps : float
        Keeps divisions finite, so it must be above zero; larger calms rare features.

    Examples
    --------
    >>> rule = AdaGrad(rate=0.5, eps=1e-12)
    >>> state = rule.init(2, np.float64)
    >>> for t in (1, 2):
    ...     rule.update(state, 0, 1.0, 1.0, 0.0); rule.tick(state, t)
    >>> round(float(rule.weight_view(state).at(0)), 3)
    0.854
    """

    rate: float = 0.1
    l1: float = 0.0
    eps: float = 1e-6

    def parameter_error(self):
        return "" if self.rate > 0.0 and self.eps > 0.0 else "rate and eps must be above zero"

    def init(self, n, dtype):
        return AdaGradState(np.zeros((n, 2), dtype), np.array([1.0, 0.0, self.rate]))

    def to_sums(self, state, clock):
        m, root = state.cells.astype(np.float64).T
        return soft_threshold(m, clock[DROP]) * self.rate / (self.eps + root), root * root

    def from_sums(self, sums, clock):
        root = np.sqrt(np.maximum(sums[1], 0.0))
        m = inverse_soft_threshold(sums[0] * (self.eps + root) / self.rate, clock[DROP])
        return (np.stack((m, root), axis=1),)

    def additive(self):
        return False  # squares of the direction are remembered

    def weight_view(self, state):
        real = state.cells.dtype.type
        return AdaGradWeights(state.cells, real(state.clock[DROP]), real(self.rate), real(self.eps))

    def lazy_weight(self, state, j):
        f = 1.0 if self.l1 > 0.0 else 0.0
        return state.cells[j, 0], self.rate / (self.eps + state.cells[j, 1]), f

    def update(self, state, j, g, a, b):
        cells, drop = state.cells, state.clock[DROP]
        before = cells[j, 1]
        root = math.sqrt(before * before + g * g)
        # w / r in units of the new rate, plus the step
        m = shrink(cells[j, 0], drop) * (self.eps + root) / (self.eps + before) + g
        cells[j, 0] = m + math.copysign(drop, m) if m != 0.0 else 0.0
        cells[j, 1] = root

    def tick(self, state, t):
        state.clock[DROP] = self.l1 * t

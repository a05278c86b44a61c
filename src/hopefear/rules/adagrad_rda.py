"""Adaptive dual averaging (Duchi, Hazan and Singer, 2011, section 5: primal-dual form)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import DROP, UpdateRule
from hopefear.core.workspace import AdaGradWeights


class AdaGradRDAState(NamedTuple):
    cells: np.ndarray  # [n, 2]: sum of directions, root of the sum of their squares
    clock: np.ndarray


# Sums of directions and of their squares; ticks count them.
@component(UpdateRule, is_sum_over_examples=True)
class AdaGradRDA(NamedTuple):
    """Dual averaging in which every coordinate has a rate of its own.

    ``w = rate * shrink(m, l1 k) / (eps + sqrt(h))``, m and h the sums of directions and their
    squares

    Parameters
    ----------
    rate : float
        Length of the first step of every coordinate. Larger learns faster and less evenly.
    l1 : float
        Larger gives fewer non-zero weights.
    eps : float
        Keeps divisions finite, so it must be above zero; larger calms rare features.

    Examples
    --------
    >>> rule = AdaGradRDA(rate=1.0, l1=0.1, eps=1e-12)
    >>> state = rule.init(1, np.float64)
    >>> rule.update(state, 0, 2.0, 1.0, 0.0); rule.tick(state, 1)
    >>> round(float(rule.weight_view(state).at(0)), 6)
    0.95
    """

    rate: float = 1.0
    l1: float = 0.0
    eps: float = 1e-6

    def parameter_error(self):
        return "" if self.rate > 0.0 and self.eps > 0.0 else "rate and eps must be above zero"

    def init(self, n, dtype):
        return AdaGradRDAState(np.zeros((n, 2), dtype), np.array([1.0, 0.0, self.rate]))

    def to_sums(self, state, clock):
        m, root = state.cells.astype(np.float64).T
        return m, root * root

    def from_sums(self, sums, clock):
        return (np.stack((sums[0], np.sqrt(np.maximum(sums[1], 0.0))), axis=1),)

    def additive(self):
        return False  # squares of the direction are remembered

    def weight_view(self, state):
        real = state.cells.dtype.type
        return AdaGradWeights(state.cells, real(state.clock[DROP]), real(self.rate), real(self.eps))

    def lazy_weight(self, state, j):
        f = 1.0 if self.l1 > 0.0 else 0.0
        return state.cells[j, 0], self.rate / (self.eps + state.cells[j, 1]), f

    def update(self, state, j, g, a, b):
        root = state.cells[j, 1]
        state.cells[j, 0] += g
        state.cells[j, 1] = math.sqrt(root * root + g * g)

    def tick(self, state, t):
        state.clock[DROP] = self.l1 * t

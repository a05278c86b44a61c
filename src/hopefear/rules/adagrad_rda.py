"""Adaptive dual averaging (Duchi, Hazan and Singer, 2011, section 5; primal-dual subgradient form)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hopefear.component import component
from hopefear.example import Stretched
from hopefear.interfaces import DROP, Rule


class AdaGradRDAState(NamedTuple):
    cells: np.ndarray  # [n, 4]: sum of directions, its own rate, sum of squares, unused (alignment)
    clock: np.ndarray


@component(Rule)
class AdaGradRDA(NamedTuple):
    """Dual averaging in which every coordinate has a rate of its own.

    ``w = rate * shrink(m, l1 k) / (eps + sqrt(h))``, m and h the sums of directions and their squares

    Parameters
    ----------
    rate : float
        Length of the first step of every coordinate. Larger learns faster and less evenly.
    l1 : float
        Larger gives fewer non-zero weights.
    eps : float
        Keeps the first division finite; larger calms rare features.

    Examples
    --------
    >>> rule = AdaGradRDA(rate=1.0, l1=0.1, eps=0.0)
    >>> state = rule.init(1, np.float64)
    >>> rule.move(state, 0, 2.0, 1.0, 0.0); rule.tick(state, 1)
    >>> float(rule.reading(state).at(0))
    0.95
    """

    rate: float = 1.0
    l1: float = 0.0
    eps: float = 1e-6

    def init(self, n, dtype):
        return AdaGradRDAState(np.zeros((n, 4), dtype), np.array([1.0, 0.0, self.rate]))

    def reading(self, state):
        return Stretched(state.cells, state.cells.dtype.type(state.clock[DROP]))

    def line(self, state, j):
        return state.cells[j, 0], state.cells[j, 1], 1.0

    def move(self, state, j, g, a, b):
        cells = state.cells
        squares = cells[j, 2] + g * g
        cells[j, 0] += g
        cells[j, 1] = self.rate / (self.eps + math.sqrt(squares))
        cells[j, 2] = squares

    def tick(self, state, t):
        state.clock[DROP] = self.l1 * t

"""FTRL-proximal (McMahan et al., 2013)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import UpdateRule, WeightView


class FTRLState(NamedTuple):
    cells: np.ndarray  # [n, 4]: weight, z, root of n (sum of squares), unused
    clock: np.ndarray


@component(WeightView)
class FirstOfCell(NamedTuple):
    """Weights kept as the first entry of each coordinate's cell."""

    cells: np.ndarray

    def at(self, j):
        return self.cells[j, 0]


@component(UpdateRule)
class FTRL(NamedTuple):
    """Follow the regularised leader with a rate per coordinate.

    ``w = -shrink(z, l1) / ((beta + sqrt(n)) / rate + l2)``; on a direction g:
    ``z += -g - (sqrt(n + g**2) - sqrt(n)) / rate * w``, ``n += g**2``

    Parameters
    ----------
    rate : float
        alpha of the paper. Larger learns faster.
    beta : float
        Calms the first steps of a coordinate; larger is slower.
    l1 : float
        Larger gives fewer non-zero weights; here it is a threshold on a sum, not on a mean.
    l2 : float
        Larger pulls all weights towards zero.

    Examples
    --------
    >>> rule = FTRL(rate=1.0, beta=1.0, l1=0.5)
    >>> state = rule.init(1, np.float64)
    >>> rule.update(state, 0, 1.0, 1.0, 0.0)
    >>> float(rule.weight_view(state).at(0))
    0.25
    """

    rate: float = 0.1
    beta: float = 1.0
    l1: float = 0.0
    l2: float = 0.0

    def parameter_error(self):
        return "" if self.rate > 0.0 and self.beta > 0.0 else "rate and beta must be above zero"

    def init(self, n, dtype):
        return FTRLState(np.zeros((n, 4), dtype), np.array([1.0, 0.0, self.rate]))

    def to_sums(self, state, clock):
        w, z, root, _ = state.cells.astype(np.float64).T
        return w, z, root * root

    def from_sums(self, sums, clock):
        w, root = sums[0], np.sqrt(np.maximum(sums[2], 0.0))
        # z holds past weights times rates that shards share; of a weight there is but one z.
        rate = (self.beta + root) / self.rate + self.l2
        z = np.where(
            w == 0.0,
            np.clip(sums[1], -self.l1, self.l1),
            -np.copysign(np.abs(w) * rate + self.l1, w),
        )
        return (np.stack((w, z, root, np.zeros(w.size)), axis=1),)

    def additive(self):
        return False  # squares of the direction are remembered

    def weight_view(self, state):
        return FirstOfCell(state.cells)

    def lazy_weight(self, state, j):
        return state.cells[j, 0], 1.0, 0.0

    def update(self, state, j, g, a, b):
        cells = state.cells
        before = cells[j, 2]
        after = math.sqrt(before * before + g * g)
        z = cells[j, 1] - g - (after - before) / self.rate * cells[j, 0]
        rest = abs(z) - self.l1
        cells[j, 0] = 0.0
        if rest > 0.0:
            cells[j, 0] = -math.copysign(rest, z) / ((self.beta + after) / self.rate + self.l2)
        cells[j, 1] = z
        cells[j, 2] = after

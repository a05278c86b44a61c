"""Adaptive regularisation of weight vectors (Crammer, Kulesza and Dredze, 2009), diagonal."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import UpdateRule
from hopefear.core.workspace import DenseWeights


class AROWState(NamedTuple):
    w: np.ndarray
    variance: np.ndarray
    clock: np.ndarray


# Examples add to 1 / variance and to w / variance: Gaussians multiply.
@component(UpdateRule, is_sum_over_examples=True)
class AROW(NamedTuple):
    """Weights with a variance each: uncertain ones move far, settled ones little.

    ``v = sum variance g**2``, ``b = 1 / (v + r)``, ``a = loss * b``;
    ``w += a variance g``, ``variance -= b (variance g)**2``

    Parameters
    ----------
    r : float
        Larger makes every step, and the loss of variance, smaller.

    Examples
    --------
    >>> rule = AROW(r=1.0)
    >>> state = rule.init(1, np.float64)
    >>> rule.update(state, 0, 1.0, 0.5, 0.5)
    >>> float(state.w[0]), float(state.variance[0])
    (0.5, 0.5)
    """

    r: float = 1.0

    def parameter_error(self):
        return "" if self.r > 0.0 else "r must be above zero"

    def incompatible_with(self, loss, update_on):
        if loss.value(0.0) <= 0.0:
            return (
                "steps are in proportion to the loss, which is zero at a tie, so weights "
                "would never leave zero; use Hinge"
            )
        return ""

    def init(self, n, dtype):
        return AROWState(np.zeros(n, dtype), np.ones(n, dtype), np.array([1.0, 0.0, 1.0]))

    def to_sums(self, state, clock):
        precision = 1.0 / state.variance.astype(np.float64)
        return precision * state.w, precision

    def from_sums(self, sums, clock):
        return sums[0] / sums[1], 1.0 / sums[1]

    def additive(self):
        return False  # squares of the direction are remembered

    def weight_view(self, state):
        return DenseWeights(state.w)

    def lazy_weight(self, state, j):
        return state.w[j], 1.0, 0.0

    def step_size(self, structure, x, mu, state, value, margin, importance):
        b = 1.0 / (
            structure.weighted_squared_norm(x, mu, DenseWeights(state.variance))
            + self.r * importance
        )
        return value * b, b

    def update(self, state, j, g, a, b):
        spread = state.variance[j] * g
        state.w[j] += a * spread
        state.variance[j] -= b * spread * spread

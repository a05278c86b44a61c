"""Confidence-weighted learning, variance form (Dredze, Crammer and Pereira, 2008), diagonal."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import UpdateRule
from hopefear.core.workspace import DenseWeights


class ConfidenceState(NamedTuple):
    w: np.ndarray
    variance: np.ndarray
    clock: np.ndarray


# Examples add to 1 / variance and to w / variance: Gaussians multiply.
@component(UpdateRule, is_sum_over_examples=True)
class ConfidenceWeighted(NamedTuple):
    """The closest Gaussian over weights that gets the example right with a given probability.

    The step a >= 0 solves ``z + a v = phi v / (1 + 2 a phi v)`` with ``v = sum variance g**2``;
    ``w += a variance g``, ``1 / variance += 2 a phi g**2``

    Parameters
    ----------
    phi : float
        Quantile of the probability asked for: 1.2816 asks for 90 %, 0.6745 for 75 %. Larger is more
        aggressive, and worse on noisy labels.

    Notes
    -----
    The rule decides itself when to move, so it goes with ``Linear`` (always asked) or with losses
    of force one. An example with z >= phi v leaves everything as it is.

    Examples
    --------
    >>> rule = ConfidenceWeighted()
    >>> state = rule.init(1, np.float64)
    >>> rule.update(state, 0, 1.0, 0.5, 1.0)
    >>> float(state.w[0]), float(state.variance[0])
    (0.5, 0.5)
    """

    phi: float = 1.2816

    def parameter_error(self):
        return "" if self.phi > 0.0 else "phi must be above zero"

    def incompatible_with(self, loss, update_on):
        if any(loss.negative_derivative(z) not in (0.0, 1.0) for z in (-2.0, 0.0, 0.5, 2.0)):
            return (
                "the rule solves for the margin itself and needs a loss of force one; use "
                "Linear, Hinge or Perceptron, or the rule AROW"
            )
        return ""

    def init(self, n, dtype):
        return ConfidenceState(np.zeros(n, dtype), np.ones(n, dtype), np.array([1.0, 0.0, 1.0]))

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
        v = structure.weighted_squared_norm(x, mu, DenseWeights(state.variance))
        if v <= 0.0:
            return 0.0, 0.0
        z = importance * margin  # the example counts as if it were that much longer
        half = 1.0 + 2.0 * self.phi * z
        root = half * half - 8.0 * self.phi * (z - self.phi * v)
        a = max(0.0, (math.sqrt(max(root, 0.0)) - half) / (4.0 * self.phi * v))
        return a, 2.0 * a * self.phi

    def update(self, state, j, g, a, b):
        variance = state.variance[j]
        state.w[j] += a * variance * g
        state.variance[j] = variance / (1.0 + b * variance * g * g)

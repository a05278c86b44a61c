"""Passive-aggressive updates (Crammer et al., 2006): PA, PA-I and PA-II."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import UpdateRule
from hopefear.core.workspace import DenseWeights, Ones


class PAState(NamedTuple):
    w: np.ndarray
    clock: np.ndarray


@component(UpdateRule, may_be_infinite=("C",))
class PassiveAggressive(NamedTuple):
    """The smallest change of the weights that satisfies the example.

    ``w += tau g``: ``tau = loss / |g|**2`` (variant 0), ``min(C, .)`` (variant 1, PA-I),
    ``loss / (|g|**2 + 1/(2C))`` (variant 2, PA-II)

    With the hinge loss this is the published algorithm; with another loss tau is the step that
    brings the linearised loss to zero.

    Parameters
    ----------
    C : float
        Aggressiveness. Larger trusts single examples more; smaller averages over many.
    variant : int
        0, 1 or 2, as above.

    Examples
    --------
    >>> rule = PassiveAggressive(C=0.5)
    >>> state = rule.init(1, np.float64)
    >>> rule.update(state, 0, 1.0, 0.5, 0.0)
    >>> float(rule.weight_view(state).at(0))
    0.5
    """

    C: float = 1.0
    variant: int = 1

    def parameter_error(self):
        if self.variant not in (0, 1, 2):
            return f"variant must be 0, 1 or 2, not {self.variant}"
        return "" if self.C > 0.0 else "C must be above zero"

    def incompatible_with(self, loss, update_on):
        if loss.value(0.0) <= 0.0:
            return (
                "steps are in proportion to the loss, which is zero at a tie, so weights "
                "would never leave zero; use Hinge"
            )
        return ""

    def init(self, n, dtype):
        return PAState(np.zeros(n, dtype), np.array([1.0, 0.0, 1.0]))

    def to_sums(self, state, clock):
        return (state.w.astype(np.float64),)

    def from_sums(self, sums, clock):
        return sums

    def weight_view(self, state):
        return DenseWeights(state.w)

    def lazy_weight(self, state, j):
        return state.w[j], 1.0, 0.0

    def step_size(self, structure, x, mu, state, value, margin, importance):
        norm = structure.weighted_squared_norm(x, mu, Ones(1.0))
        if norm <= 0.0:
            return 0.0, 0.0
        if self.variant == 2:
            return value / (norm + 0.5 * importance / self.C), 0.0
        if self.variant == 1:
            return min(self.C, value / norm), 0.0
        return value / norm, 0.0

    def update(self, state, j, g, a, b):
        state.w[j] += a * g

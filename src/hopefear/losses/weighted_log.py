"""Log loss against a set of good candidates, each by its cost."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.component import component
from hopefear.costs.regret import Regret
from hopefear.interfaces import Loss


@component(Loss)
class WeightedLog(NamedTuple):
    """How far the model's probabilities are from those that the costs ask for.

    ``sum_j Q_j log(Q_j / P_j)`` with ``Q = softmax(-sharp * cost)`` and ``P = softmax(score)``; the
    direction is ``sum_j (Q_j - P_j) phi_j``

    Parameters
    ----------
    cost : Cost
        Price of a candidate.
    sharp : float
        How fast the wanted probability falls with the cost. Larger wants the cheapest only.

    Examples
    --------
    >>> WeightedLog(sharp=20).sharp
    20.0
    """

    cost: Any = Regret()
    sharp: float = 10.0

    def needs(self):
        return ("risk",)

    def subgradient(self, structure, x, work):
        importance = np.float64(x.data.weights[x.i])
        value = structure.expect_good(x, work.theta, self.cost, self.sharp, importance, work.mu)
        work.loss[0] = importance * value
        work.gap[0] = structure.violation(x, work.theta, work.y)
        return 1 if importance > 0.0 else 0

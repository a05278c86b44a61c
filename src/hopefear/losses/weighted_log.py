"""Log loss against a set of good candidates, each by its cost."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import Loss
from hopefear.costs.regret import Regret


@component(Loss)
class WeightedLog(NamedTuple):
    """How far the model's probabilities are from those that the costs ask for.

    ``sum_j Q_j log(Q_j / P_j)`` with ``Q = softmax(-inverse_temperature * cost)`` and
    ``P = softmax(score)``; the direction is ``sum_j (Q_j - P_j) phi_j``. A fixed part of the score
    is in the exponent of Q too.

    Parameters
    ----------
    cost : Cost
        Price of a candidate.
    inverse_temperature : float
        How fast the wanted probability falls with the cost. Larger wants the cheapest only.

    Examples
    --------
    >>> WeightedLog(inverse_temperature=20).inverse_temperature
    20.0
    """

    cost: Any = Regret()
    inverse_temperature: float = 10.0

    def requires(self):
        return ("expectation", "risk", *self.cost.requires())

    def probabilistic(self):
        return True

    def value(self, z):
        """Of two outputs, the rival costing 1."""
        rival = 0.5 - 0.5 * math.tanh(0.5 * self.inverse_temperature)
        wanted = (1.0 - rival) * math.log(1.0 - rival)
        if rival > 0.0:
            wanted += rival * math.log(rival)
        return wanted + max(0.0, -z) + math.log1p(math.exp(-abs(z))) + rival * z

    def negative_derivative(self, z):
        return 0.5 * math.tanh(0.5 * self.inverse_temperature) - 0.5 * math.tanh(0.5 * z)

    def subgradient(self, structure, x, work):
        importance = np.float64(x.data.weights[x.i])
        value, _ = structure.kl_and_gradient(
            x, work.theta, self.cost, self.inverse_temperature, importance, work.mu
        )
        work.loss[0] = importance * value
        work.gold_margin[0] = structure.margin(x, work.theta, work.y, False)
        return 1 if importance > 0.0 else 0

"""Bayes risk: the expected cost (eqs. 7 and 21 of the paper on voted dual averaging)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import Loss
from hopefear.costs.regret import Regret


@component(Loss)
class Risk(NamedTuple):
    """Mean cost of the candidates under their probabilities.

    ``R = sum_j P_j cost_j`` with ``P = softmax(inverse_temperature * score)``; the direction that
    lowers it is ``inverse_temperature * sum_j P_j (R - cost_j) phi_j``

    Parameters
    ----------
    cost : Cost
        Price of a candidate.
    inverse_temperature : float
        Scale of the scores before they become probabilities. Larger looks at the best candidates
        only, and comes closer to the cost of the best one.

    Notes
    -----
    The paper writes, below eq. 21, ``U(w, y) = loss(w) - sBleu(y)`` for the weight of a candidate
    in the subgradient. With ``cost = -sBleu`` and ``loss = -sum P sBleu`` the derivative is
    ``sum_j P_j (cost_j - loss) phi_j``, so that U is ``-sBleu - loss``: its sign before ``loss`` is
    a slip.

    Examples
    --------
    >>> Risk(inverse_temperature=2).inverse_temperature
    2.0
    """

    cost: Any = Regret()
    inverse_temperature: float = 1.0

    def parameter_error(self):
        return "" if self.inverse_temperature > 0.0 else "inverse_temperature must be above zero"

    def requires(self):
        return ("expectation", "risk", *self.cost.requires())

    def value(self, z):
        """Of two outputs, the rival costing 1."""
        return 0.5 - 0.5 * math.tanh(0.5 * self.inverse_temperature * z)

    def negative_derivative(self, z):
        rival = self.value(z)
        return self.inverse_temperature * rival * (1.0 - rival)

    def subgradient(self, structure, x, work):
        importance = np.float64(x.data.weights[x.i])
        risk = structure.risk_and_gradient(
            x, work.theta, self.cost, self.inverse_temperature, importance, work.mu
        )
        work.loss[0] = importance * risk
        work.gold_margin[0] = structure.margin(x, work.theta, work.y, False)
        return 1 if importance > 0.0 else 0

"""Cost margin at the prediction: the loss of 1-best MIRA (Crammer and Singer, 2003)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import Loss
from hopefear.costs.hamming import Hamming


@component(Loss)
class PredictionHinge(NamedTuple):
    """How much the prediction, when it is wrong, breaks the margin that its cost asks for.

    ``cost(y) - (score_gold - score_y)`` for y the best-scored output, 0 when that is gold

    Parameters
    ----------
    cost : Cost
        Price of an output.
    root : bool
        Ask for the square root of the price, as two programs in wide use do.

    Examples
    --------
    >>> PredictionHinge(root=True).root
    True
    """

    cost: Any = Hamming()
    root: bool = False

    def requires(self):
        return ("cost", *self.cost.requires())

    def is_mistake_driven(self):
        return True

    def subgradient(self, structure, x, work):
        importance = np.float64(x.data.weights[x.i])
        z = structure.margin(x, work.theta, work.y, False)
        work.gold_margin[0] = z
        work.loss[0] = 0.0
        if z > 0.0 or importance == 0.0:
            return 0
        price = structure.output_cost(x, self.cost, work.y)
        if self.root:
            price = math.sqrt(price)
        work.loss[0] = importance * (price - z)
        structure.add_difference(x, work.y, importance, work.mu, True)
        return 1

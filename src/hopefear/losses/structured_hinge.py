"""Structured hinge: margins in proportion to the cost (Taskar et al., 2003)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import Loss
from hopefear.costs.hamming import Hamming


@component(Loss)
class StructuredHinge(NamedTuple):
    """How much the most feared output breaks the margin that its cost asks for.

    ``max_y cost(y) - (score_gold - score_y)``

    Parameters
    ----------
    cost : Cost
        Price of an output; decomposes over positions, so the search is exact.

    Examples
    --------
    >>> StructuredHinge(Hamming(0.5)).cost.each
    0.5
    """

    cost: Any = Hamming()

    def requires(self):
        return ("cost", *self.cost.requires())

    def subgradient(self, structure, x, work):
        importance = np.float64(x.data.weights[x.i])
        z, price = structure.cost_augmented_argmax(x, work.theta, self.cost, 1.0, work.y)
        work.gold_margin[0] = z
        work.loss[0] = importance * max(0.0, price - z)
        if structure.is_gold(x, work.y):
            work.gold_margin[0] = 1.0
            return 0
        if work.loss[0] <= 0.0 and price > 0.0:
            work.gold_margin[0] = 1.0
            return 0
        structure.add_difference(x, work.y, importance, work.mu, True)
        if z > 0.0:  # what is feared loses; what is predicted may still be wrong
            work.gold_margin[0] = structure.margin(x, work.theta, work.y, False)
        return 1 if importance > 0.0 else 0

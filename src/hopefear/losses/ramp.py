"""Ramp loss: the most feared output against the most hoped for (Gimpel and Smith, 2012)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import Loss
from hopefear.costs.hamming import Hamming


@component(Loss)
class Ramp(NamedTuple):
    """From fear to hope, where gold itself may be out of reach.

    ``max_y (score_y + cost_y) - max_y (score_y - cost_y)``

    Parameters
    ----------
    cost : Cost
        Price of an output.

    Examples
    --------
    >>> Ramp(Hamming(0.5)).cost.each
    0.5
    """

    cost: Any = Hamming()

    def requires(self):
        return ("cost", *self.cost.requires())

    def n_outputs(self):
        return 2

    def new_scratch(self, places):
        return np.zeros(places, np.int32)

    def subgradient(self, structure, x, work):
        importance, hoped = np.float64(x.data.weights[x.i]), work.scratch
        z, price = structure.cost_augmented_argmax(x, work.theta, self.cost, 1.0, work.y)
        up, better = structure.cost_augmented_argmax(x, work.theta, self.cost, -1.0, hoped)
        work.loss[0] = importance * (price - z + better + up)
        structure.add_difference(x, work.y, importance, work.mu, True)
        structure.add_difference(x, hoped, -importance, work.mu, False)
        one = True  # the same output is hoped for and feared: there is nowhere to go
        for t in range(structure.n_positions(x)):
            one = one and work.y[t] == hoped[t]
        work.gold_margin[0] = structure.margin(x, work.theta, work.y, False)
        return 1 if work.loss[0] > 0.0 and not one else 0

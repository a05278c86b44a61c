"""Ramp loss with hopes held fixed: convex, and above the ramp loss (Gimpel and Smith, 2012)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import Loss
from hopefear.costs.hamming import Hamming

_NONE = np.zeros((0, 1), np.int64)


@component(Loss)
class FixedHope(NamedTuple):
    """From fear to a hope that was chosen before.

    ``max_y (score_y + cost_y) - (score_hope - cost_hope)``

    Parameters
    ----------
    cost : Cost
        Price of an output.
    hopes : int array
        An output for each example, one a row, as the structure leaves them in ``y``.

    Examples
    --------
    >>> FixedHope(Hamming(0.5)).requires()
    ('cost',)
    """

    cost: Any = Hamming()
    hopes: np.ndarray = _NONE

    def requires(self):
        return ("cost", *self.cost.requires())

    def n_outputs(self):
        return 2

    def subgradient(self, structure, x, work):
        importance, hope = np.float64(x.data.weights[x.i]), self.hopes[x.i]
        z, price = structure.cost_augmented_argmax(x, work.theta, self.cost, 1.0, work.y)
        up, better = (
            structure.margin_over(x, work.theta, hope),
            structure.output_cost(x, self.cost, hope),
        )
        work.loss[0] = importance * max(0.0, price - z + better + up)
        structure.add_difference(x, work.y, importance, work.mu, True)
        structure.add_difference(x, hope, -importance, work.mu, False)
        work.gold_margin[0] = structure.margin(x, work.theta, work.y, False)
        # A hope that is feared most of all has a cost, though no direction leads away from it.
        return 1 if importance > 0.0 else 0

"""Margin between a hope and a fear, of any of the usual choices (Crammer et al.; Chiang, 2012)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import Loss
from hopefear.costs.regret import Regret

HOPE, ORACLE = 0, 1
FEAR, PREDICTION, WORST = 0, 1, 2


@component(Loss)
class HopeFear(NamedTuple):
    """How much the fear breaks the margin over the hope that their costs ask for.

    ``max(0, (cost_fear - cost_hope) - (score_hope - score_fear))``

    Parameters
    ----------
    cost : Cost
        Price of a candidate.
    toward : {"hope", "oracle"}
        Hope is the highest score minus cost, the oracle the lowest cost.
    away : {"fear", "prediction", "worst"}
        Fear is the highest score plus cost, the prediction the highest score, the worst the
        highest cost.

    Examples
    --------
    >>> HopeFear.choices["away"][HopeFear().away]
    'fear'
    """

    cost: Any = Regret()
    toward: int = HOPE
    away: int = FEAR

    def parameter_error(self):
        known = self.toward in (HOPE, ORACLE) and self.away in (FEAR, PREDICTION, WORST)
        return "" if known else "toward is hope or oracle, away is fear, prediction or worst"

    def requires(self):
        searches = ("cost", "worst") if self.away == WORST else ("cost",)
        return (*searches, *self.cost.requires())

    def n_outputs(self):
        return 2

    def new_scratch(self, places):
        return np.zeros(places, np.int32)

    def subgradient(self, structure, x, work):
        importance, hoped, theta = np.float64(x.data.weights[x.i]), work.scratch, work.theta
        up, better = 0.0, 0.0
        if self.toward == HOPE:
            up, better = structure.cost_augmented_argmax(x, theta, self.cost, -1.0, hoped)
        if self.away != PREDICTION:
            sign = 1.0 if self.away == FEAR else math.inf
            down, worse = structure.cost_augmented_argmax(x, theta, self.cost, sign, work.y)
        else:
            structure.argmax(x, theta, work.y)
            down = structure.margin_over(x, theta, work.y)
            worse = structure.output_cost(x, self.cost, work.y)
        work.loss[0] = importance * max(0.0, worse - better - (down - up))
        structure.add_difference(x, work.y, importance, work.mu, True)
        if self.toward == HOPE:
            structure.add_difference(x, hoped, -importance, work.mu, False)
        work.gold_margin[0] = structure.margin(x, theta, work.y, False)
        return 1 if work.loss[0] > 0.0 else 0


HopeFear.choices = {  # type: ignore[attr-defined]
    "toward": ("hope", "oracle"),
    "away": ("fear", "prediction", "worst"),
}

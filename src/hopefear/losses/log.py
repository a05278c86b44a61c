"""Log loss over all outputs: the conditional random field (Lafferty et al., 2001)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import Loss


@component(Loss)
class Log(NamedTuple):
    """Minus the log probability of gold among all outputs.

    ``log sum_y exp(score_y) - score_gold``, with gold minus expectation for a direction

    Parameters
    ----------
    force : float
        Factor on the loss; only scales the steps of additive rules.

    Examples
    --------
    >>> Log().requires()
    ('expectation',)
    """

    force: float = 1.0

    def parameter_error(self):
        return "" if self.force > 0.0 else "force must be above zero"

    def requires(self):
        return ("expectation",)

    def probabilistic(self):
        return True

    def value(self, z):
        """Of two outputs."""
        return self.force * (max(0.0, -z) + math.log1p(math.exp(-abs(z))))

    def negative_derivative(self, z):
        return self.force * (0.5 - 0.5 * math.tanh(0.5 * z))

    def subgradient(self, structure, x, work):
        coef = self.force * np.float64(x.data.weights[x.i])
        value, wins = structure.kl_and_gradient(x, work.theta, None, 1.0, coef, work.mu)
        work.loss[0] = coef * value
        if wins:
            work.gold_margin[0] = 1.0
        elif math.isfinite(value):
            work.gold_margin[0] = structure.margin(x, work.theta, work.y, False)
        else:
            work.gold_margin[0] = value
        return 1 if coef > 0.0 else 0

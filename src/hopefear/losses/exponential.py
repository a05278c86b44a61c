"""Exponential loss (the loss of boosting)."""

from __future__ import annotations

import math
from typing import NamedTuple

from hopefear.core.component import component
from hopefear.core.interfaces import Loss


@component(Loss, may_be_infinite=("limit",))
class Exponential(NamedTuple):
    """Penalty that grows without bound for confident mistakes.

    ``exp(-z)``, continued by its tangent below ``-limit``

    Parameters
    ----------
    limit : float
        Margin, in size, beyond which a mistake pulls no harder. The paper's loss has none;
        without one a single bad example can throw all weights to infinity in an online learner.

    Examples
    --------
    >>> Exponential().value(0.0), Exponential().negative_derivative(0.0)
    (1.0, 1.0)
    """

    limit: float = 8.0

    def value(self, z):
        capped = max(z, -self.limit)
        return math.exp(-capped) * (1.0 + capped - z)

    def negative_derivative(self, z):
        return math.exp(-max(z, -self.limit))

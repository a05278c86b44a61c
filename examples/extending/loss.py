"""Savage loss (Masnadi-Shirazi and Vasconcelos, 2008)."""

from __future__ import annotations

import math
from typing import NamedTuple

from hopefear.core.component import component
from hopefear.core.interfaces import Loss


@component(Loss)
class Savage(NamedTuple):
    """A bounded loss: examples that are far on the wrong side, as wrong labels are, lose force.

    ``1 / (1 + exp(z / width))**2``

    Parameters
    ----------
    width : float
        What margins are divided by. Larger gives up fewer examples.

    Examples
    --------
    >>> loss = Savage()
    >>> loss.value(0.0), loss.negative_derivative(0.0), round(loss.negative_derivative(-9.0), 4)
    (0.25, 0.25, 0.0002)
    """

    width: float = 1.0

    def parameter_error(self):
        return "" if self.width > 0.0 else "width must be above zero"

    def value(self, z):
        small = math.exp(-abs(z) / self.width)  # never too large for a number
        return ((small if z > 0.0 else 1.0) / (1.0 + small)) ** 2

    def negative_derivative(self, z):
        value = self.value(z)
        return 2.0 * value * (1.0 - math.sqrt(value)) / self.width

"""Hinge loss (Vapnik, 1995), the surrogate of the voted RDA paper's section 4.1."""

from __future__ import annotations

from typing import NamedTuple

from hopefear.core.component import component
from hopefear.core.interfaces import Loss


@component(Loss)
class Hinge(NamedTuple):
    """How far the margin falls short of what is asked.

    ``max(0, asked - z)``, with force 1 while z < asked

    Parameters
    ----------
    asked : float
        Margin asked for. Larger separates more strictly and updates more often.

    Examples
    --------
    >>> Hinge().value(0.25), Hinge().negative_derivative(0.25), Hinge().negative_derivative(1.0)
    (0.75, 1.0, 0.0)
    """

    asked: float = 1.0

    def value(self, z):
        return max(0.0, self.asked - z)

    def negative_derivative(self, z):
        return 1.0 if z < self.asked else 0.0

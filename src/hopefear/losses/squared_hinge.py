"""Squared hinge loss (the L2-loss support vector machine)."""

from __future__ import annotations

from typing import NamedTuple

from hopefear.core.component import component
from hopefear.core.interfaces import Loss


@component(Loss)
class SquaredHinge(NamedTuple):
    """The square of how far the margin falls short: smooth, and harder on bad mistakes.

    ``max(0, asked - z)**2``

    Parameters
    ----------
    asked : float
        Margin asked for. Larger separates more strictly and updates more often.

    Examples
    --------
    >>> SquaredHinge().value(-1.0), SquaredHinge().negative_derivative(-1.0)
    (4.0, 4.0)
    """

    asked: float = 1.0

    def value(self, z):
        return max(0.0, self.asked - z) ** 2

    def negative_derivative(self, z):
        return 2.0 * max(0.0, self.asked - z)

"""Smoothed hinge loss (Rennie and Srebro, 2005)."""

from __future__ import annotations

from typing import NamedTuple

from hopefear.core.component import component
from hopefear.core.interfaces import Loss


@component(Loss)
class SmoothedHinge(NamedTuple):
    """The hinge with its corner rounded off, so that its force fades instead of ending.

    ``(asked - z)**2 / (2 width)`` for ``asked - width < z < asked``, 0 above, a straight line below

    Parameters
    ----------
    asked : float
        Margin asked for. Larger separates more strictly and updates more often.
    width : float
        Margins over which the force falls from 1 to 0. Larger rounds off more.

    Examples
    --------
    >>> loss = SmoothedHinge()
    >>> loss.value(0.5), loss.negative_derivative(0.5), loss.negative_derivative(-2.0)
    (0.125, 0.5, 1.0)
    """

    asked: float = 1.0
    width: float = 1.0

    def parameter_error(self):
        return "" if self.width > 0.0 else "width must be above zero; use Hinge for a corner"

    def value(self, z):
        short = max(0.0, self.asked - z)
        bent = min(short, self.width)
        return bent * bent / (2.0 * self.width) + short - bent

    def negative_derivative(self, z):
        return min(1.0, max(0.0, self.asked - z) / self.width)

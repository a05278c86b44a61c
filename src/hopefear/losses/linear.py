"""The margin itself as a loss, for rules that decide on their own when to move."""

from __future__ import annotations

from typing import NamedTuple

from hopefear.core.component import component
from hopefear.core.interfaces import Loss


@component(Loss)
class Linear(NamedTuple):
    """Minus the margin: always the same force.

    ``-force * z``

    It has no minimum, so it belongs with rules that stop by themselves (confidence-weighted
    learning) or with updates on mistakes only, where it is the perceptron.

    Parameters
    ----------
    force : float
        Size of the direction.

    Examples
    --------
    >>> Linear().value(2.0), Linear().negative_derivative(2.0)
    (-2.0, 1.0)
    """

    force: float = 1.0

    def parameter_error(self):
        return "" if self.force > 0.0 else "force must be above zero"

    def value(self, z):
        return -self.force * z

    def negative_derivative(self, z):
        return self.force

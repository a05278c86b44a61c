"""Perceptron loss (Rosenblatt, 1958; Collins, 2002)."""

from __future__ import annotations

from typing import NamedTuple

from hopefear.core.component import component
from hopefear.core.interfaces import Loss


@component(Loss)
class Perceptron(NamedTuple):
    """How far the rival is ahead.

    ``max(0, -z)``, with force 1 whenever z <= 0: a tie is a mistake, else all-zero weights would
    never move.

    Parameters
    ----------
    force : float
        Size of the direction on a mistake; only scales the weights of additive rules.

    Examples
    --------
    >>> loss = Perceptron()
    >>> loss.value(-0.5), loss.negative_derivative(0.0), loss.negative_derivative(0.1)
    (0.5, 1.0, 0.0)
    """

    force: float = 1.0

    def parameter_error(self):
        return "" if self.force > 0.0 else "force must be above zero"

    def value(self, z):
        return self.force * max(0.0, -z)

    def negative_derivative(self, z):
        return self.force if z <= 0.0 else 0.0

    def is_mistake_driven(self):
        return True

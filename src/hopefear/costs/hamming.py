"""Hamming cost: the number of wrong labels."""

from __future__ import annotations

from typing import NamedTuple

from hopefear.core.component import component
from hopefear.core.interfaces import Cost


@component(Cost)
class Hamming(NamedTuple):
    """The same price for every wrong label.

    Parameters
    ----------
    each : float
        Price of one wrong label. Larger asks for wider margins.

    Examples
    --------
    >>> Hamming().label_cost(2, 2), Hamming().label_cost(2, 1)
    (0.0, 1.0)
    """

    each: float = 1.0

    def label_cost(self, gold, label):
        return 0.0 if gold == label else self.each

"""Regret: how much worse a candidate is than the one to learn."""

from __future__ import annotations

from typing import NamedTuple

from hopefear.core.component import component
from hopefear.core.interfaces import Cost


@component(Cost)
class Regret(NamedTuple):
    """The difference of the costs that the data gives.

    Where outputs are candidates of a list, ``gold`` and ``label`` are what the two cost.

    Parameters
    ----------
    each : float
        Price of one unit of cost. Larger asks for wider margins.

    Examples
    --------
    >>> Regret(10.0).label_cost(0.25, 0.5)
    2.5
    """

    each: float = 1.0

    def requires(self):
        return ("regret",)

    def label_cost(self, gold, label):
        return self.each * (label - gold)

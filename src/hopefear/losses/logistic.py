"""Logistic loss, with natural or binary logarithm."""

from __future__ import annotations

import math
from typing import NamedTuple

from hopefear.component import component
from hopefear.interfaces import Loss


@component(Loss)
class Logistic(NamedTuple):
    """Surprise at the pair (gold, best rival) under a logistic model.

    ``log(1 + exp(-z)) / log(base)``

    Parameters
    ----------
    base : float
        Base of the logarithm: e (default) as in the experiments of the voted RDA paper, or 2 as in its
        section 2, where the loss must be an upper bound of the number of mistakes. Base 2 multiplies
        value and force by 1.4427.

    Examples
    --------
    >>> Logistic(base=2).value(0.0), round(Logistic().value(0.0), 4), Logistic().slope(0.0)
    (1.0, 0.6931, 0.5)
    """

    base: float = math.e

    def value(self, z):
        # log1p of a small number on either side: exact for margins of hundreds
        loss = math.log1p(math.exp(-z)) if z > 0.0 else math.log1p(math.exp(z)) - z
        return loss / math.log(self.base)

    def slope(self, z):
        small = math.exp(-abs(z))
        force = small / (1.0 + small) if z > 0.0 else 1.0 / (1.0 + small)
        return force / math.log(self.base)

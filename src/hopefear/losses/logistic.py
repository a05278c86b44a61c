"""Logistic loss, with natural or binary logarithm."""

from __future__ import annotations

import math
from typing import NamedTuple

from hopefear.core.component import component
from hopefear.core.interfaces import Loss


@component(Loss)
class Logistic(NamedTuple):
    """Surprise at the pair (gold, best rival) under a logistic model.

    ``log(1 + exp(-z)) / log(base)``

    Parameters
    ----------
    base : float
        Base of the logarithm: e (default) as in the experiments of the voted RDA paper, or 2 as
        in its section 2, where the loss must be an upper bound of the number of mistakes. Base 2
        multiplies value and force by 1.4427.

    Examples
    --------
    >>> loss = Logistic()
    >>> Logistic(base=2).value(0.0), round(loss.value(0.0), 4), loss.negative_derivative(0.0)
    (1.0, 0.6931, 0.5)
    """

    base: float = math.e

    def parameter_error(self):
        return "" if self.base > 1.0 else f"base must be above one, not {self.base:g}"

    def value(self, z):
        # Both branches of log(1 + exp(-z)) through one small exponential: exact for any margin.
        return (math.log1p(math.exp(-abs(z))) + max(-z, 0.0)) / math.log(self.base)

    def negative_derivative(self, z):
        small = math.exp(-abs(z))
        return (small if z > 0.0 else 1.0) / ((1.0 + small) * math.log(self.base))

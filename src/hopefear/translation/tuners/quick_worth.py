"""What many sums of counts are worth, as quickly as a line search asks for it."""

from __future__ import annotations

import math

import numpy as np

from hopefear.core.component import kernel
from hopefear.metrics.lists import Bleu, ListMetric
from hopefear.metrics.lists.bleu import ORDERS
from hopefear.translation.tuners.envelope import Worth


def quick_worth(metric: ListMetric) -> Worth:
    """The metric's main score of many sums, more is better; BLEU in a kernel of its own.

    >>> from hopefear.metrics.lists import Ter
    >>> quick_worth(Ter())(np.array([[1.0, 4.0]])).tolist()
    [-25.0]
    """
    if isinstance(metric, Bleu):
        return _bleu

    def worth(sums: np.ndarray) -> np.ndarray:
        found = np.asarray(metric.scores(sums)[metric.main])
        return found if metric.higher else -found

    return worth


@kernel
def _bleu(sums):
    """Corpus BLEU as sacreBLEU smooths it, without a logarithm."""
    found = np.zeros(len(sums))
    for k in range(len(sums)):
        product, missed, hit = 1.0, 1.0, False
        for n in range(ORDERS):
            matches, total = float(sums[k, n]), sums[k, ORDERS + n]
            if total == 0:
                product = 0.0
                break
            if matches > 0.0:
                hit = True
            else:
                missed *= 0.5
                matches = missed
            product *= matches / total
        length, wanted = sums[k, 2 * ORDERS], sums[k, 2 * ORDERS + 1]
        if hit and length > 0:
            brevity = 1.0 if length >= wanted else math.exp(1.0 - wanted / length)
            found[k] = 100.0 * brevity * math.sqrt(math.sqrt(product))
    return found

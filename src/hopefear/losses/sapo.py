"""SAPO: probabilities over the n best outputs (Sun, Ma, Zhang and Ren), Algorithm 1."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import Loss


@component(Loss)
class SAPO(NamedTuple):
    """Gold against the n best outputs, each by its probability among them.

    ``log sum_k exp(score_k - score_gold)``; ``P_k = exp(score_k) / sum over the n`` (eq. 1), and
    the direction is gold minus the mean of the n under P (eqs. 3 and 4)

    With n = 1 the direction is the perceptron's, with all outputs it is the CRF's. As in Algorithm
    1 gold is not added to the n where it is missing.

    Parameters
    ----------
    n : int
        Outputs to look at. More come closer to the CRF and cost more; the paper finds 5 or 10
        enough.
    ratio : float
        Stop the search at an output this many times less probable than the best; 0 never stops.
        The authors' program stops at 20.

    Examples
    --------
    >>> SAPO(n=10).n_outputs()
    10
    """

    n: int = 5
    ratio: float = 0.0

    def parameter_error(self):
        return "" if self.n >= 1 else "n must be at least 1"

    def requires(self):
        return ("nbest",)

    def n_outputs(self):
        return self.n

    def new_scratch(self, places):
        return np.zeros(self.n)

    def value(self, z):
        """Of two outputs."""
        return max(0.0, -z) if self.n == 1 else max(0.0, -z) + math.log1p(math.exp(-abs(z)))

    def negative_derivative(self, z):
        if self.n == 1:
            return 1.0 if z <= 0.0 else 0.0
        return 0.5 - 0.5 * math.tanh(0.5 * z)

    def subgradient(self, structure, x, work):
        share, importance = work.scratch, np.float64(x.data.weights[x.i])
        count = structure.k_best(x, work.theta, None, self.ratio, work.outputs)
        if count == 0:  # a beam that found nothing allowed
            work.gold_margin[0], work.loss[0] = -1.0, 0.0
            return 0
        for k in range(count):
            share[k] = -structure.margin_over(x, work.theta, work.outputs[k])
        first, total = share[0], 0.0
        wins = structure.is_gold(x, work.outputs[0])
        work.gold_margin[0] = (
            0.0 if first < 0.0 else -first
        )  # but for rounding the first is the best
        if wins:
            work.gold_margin[0] = -share[1] if count > 1 and share[1] < 0.0 else 1.0
        for k in range(count):
            share[k] = math.exp(share[k] - first)
            total += share[k]
        work.loss[0] = importance * (first + math.log(total))
        if importance == 0.0 or (wins and count == 1):
            return 0
        for k in range(count):
            coef = importance * share[k] / total
            structure.add_difference(x, work.outputs[k], coef, work.mu, k == 0)
        return 1

"""BLEU of a sentence in the company of those before it (Watanabe et al., 2007; Chiang, 2008)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hopefear.core.component import component, helper
from hopefear.core.interfaces import CostSource

HOPE, PREDICTION, ORACLE = 0, 1, 2
ORDERS = 4
LENGTH, REFERENCE = 2 * ORDERS, 2 * ORDERS + 1


@component(CostSource)
class PseudoCorpus(NamedTuple):
    """Costs of candidates by what they would make of the BLEU of a pseudo-corpus.

    With the statistics ``c`` of a candidate, and those of the translations chosen for the
    sentences before it, ``s_1, s_2, …``, the last one first,

    ``cost(c) = -BLEU(B + c) (reference length of B + c) / reach``,
    ``B = memory s_1 + memory**2 s_2 + …``

    The lengths make it a change of the corpus and not of an average; ``reach``, the mean length of
    a reference, brings the usual cost into the range of a sentence's own BLEU.

    Parameters
    ----------
    counts : array [candidates, 10]
        Statistics of all candidates: n-grams matched, n-grams in all, length, reference length.
    background : float64 array [10]
        The pseudo-corpus; changes with every list. Starts with a count of 1 everywhere, so that
        nothing is divided by 0.
    reach : float
        Mean length of a reference.
    memory : float
        Share of a sentence, and of all before it, that the next one finds. Larger remembers longer.
    enters : {"hope", "prediction", "oracle"}
        Which candidate of a list enters the pseudo-corpus: the one of the highest score less cost,
        of the highest score, or of the lowest cost.
    each : float
        Of a unit of cost, where it is held against scores to find the hope.

    Examples
    --------
    >>> PseudoCorpus.choices["enters"]
    ('hope', 'prediction', 'oracle')
    """

    counts: np.ndarray
    background: np.ndarray
    reach: float = 1.0
    memory: float = 0.9
    enters: int = HOPE
    each: float = 1.0

    def update_costs(self, x, points):
        costs, start = x.data.costs, x.data.starts[x.i]
        oracle, entering = 0, 0
        for c in range(x.data.starts[x.i + 1] - start):
            costs[start + c] = -gain(self.background, self.counts[start + c]) / self.reach
            if costs[start + c] < costs[start + oracle]:
                oracle = c
            if self.enters == HOPE:
                ahead = points[c] - self.each * costs[start + c]
                behind = points[entering] - self.each * costs[start + entering]
            else:
                ahead, behind = points[c], points[entering]
            if ahead > behind:
                entering = c
        x.data.oracles[x.i] = oracle
        if self.enters == ORACLE:
            entering = oracle
        for k in range(self.background.size):
            self.background[k] += self.counts[start + entering, k]
            self.background[k] *= self.memory


PseudoCorpus.choices = {"enters": ("hope", "prediction", "oracle")}  # type: ignore[attr-defined]


@helper
def gain(background, counts):
    """BLEU of the pseudo-corpus with one candidate more, times its reference length."""
    matched, total = 1.0, 1.0
    for n in range(ORDERS):
        matched *= background[n] + counts[n]
        total *= background[ORDERS + n] + counts[ORDERS + n]
    length = background[LENGTH] + counts[LENGTH]
    reference = background[REFERENCE] + counts[REFERENCE]
    if matched <= 0.0:
        return 0.0
    bleu = math.sqrt(math.sqrt(matched / total))
    if length < reference:
        bleu *= math.exp(1.0 - reference / length)
    return bleu * reference

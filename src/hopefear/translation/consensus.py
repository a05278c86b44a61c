"""Agreement within a list: how much of a translation the other candidates have too.

Choosing the candidate with the most is consensus decoding, a relative of minimum Bayes risk. Here
it is a dense feature beside others, and tuning says what it is worth.

References
----------
Tromble, Kumar, Och and Macherey, *Lattice minimum Bayes-risk decoding for statistical machine
translation*, EMNLP 2008. DeNero, Chiang and Knight, *Fast consensus decoding over translation
forests*, ACL 2009.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.data.moses.lists import TuningLists
from hopefear.errors import HopefearError
from hopefear.translation.candidate_words import candidate_words
from hopefear.translation.derived_kernels import consensus

CONSENSUS = "Consensus0"
ORDERS = 4  # as in BLEU


def with_consensus(lists: TuningLists, sharp: float = 3.0) -> TuningLists:
    """The lists with one dense feature of four numbers more, ``Consensus0``.

    ``Σ_g p(g)`` over the different n-grams g of a candidate, for n = 1..4, where ``p(g)`` is the
    probability of the candidates that have g, and candidates have ``softmax(sharp · decoder
    score)`` within their list. Words are told apart by 64-bit hashes.

    Parameters
    ----------
    lists : TuningLists
        With texts, and with scores of one decoder: scores of runs under different weights do not
        compare.
    sharp : float
        Factor on the scores. Larger listens to the decoder's first choices only, 0 to all alike.

    Examples
    --------
    >>> from hopefear.translation.memory import lists_in_memory
    >>> lists = lists_in_memory([[("a b", {"LM0": -1.0}), ("a c", {"LM0": -2.0})]])
    >>> found = with_consensus(lists)
    >>> found.layout, found.dense[0].tolist()
    ((('LM0', 1), ('Consensus0', 4)), [-1.0, 1.5, 0.5, 0.0, 0.0])
    """
    if not (math.isfinite(sharp) and sharp >= 0.0):
        raise HopefearError(f"sharp is a factor on scores, 0 or more, not {sharp}")
    if has_consensus(lists):
        raise HopefearError(f"{lists.source} has a feature {CONSENSUS} already; do not add another")
    dense = np.empty((lists.n_candidates, lists.dense.shape[1] + ORDERS), np.float32)
    dense[:, :-ORDERS] = lists.dense
    for a, b, found in candidate_words(lists, "consensus"):
        out = np.empty((b - a, ORDERS))
        scores = lists.scores[a:b].astype(np.float64)
        with np.errstate(over="ignore"):  # uncompiled kernels warn where compiled ones do not
            consensus(
                *(found.words, found.ptr, found.starts, scores, float(sharp)),
                *(found.grams(ORDERS), out),
            )
        dense[a:b, -ORDERS:] = out
    return replace(lists, layout=(*lists.layout, (CONSENSUS, ORDERS)), dense=frozen(dense))


def has_consensus(lists: TuningLists) -> bool:
    """Whether the lists have the feature already."""
    return any(name == CONSENSUS for name, _ in lists.layout)

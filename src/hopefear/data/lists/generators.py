"""Candidate lists with a known truth.

They are functions of their arguments and the seed alone: the same call gives the same bytes.
"""

from __future__ import annotations

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.data.lists.candidates import CandidateLists, NamedValues
from hopefear.errors import HopefearError


def candidate_lists(
    n: int,
    candidates: int = 8,
    features: int = 50,
    *,
    per_candidate: int = 5,
    noise: float = 0.1,
    doubt: float = 1.0,
    seed: int = 1,
) -> CandidateLists:
    """Lists whose costs depend on hidden weights of sparse features.

    A candidate is worth ``u = w . f + noise * e``; its cost is how much less that is than the best
    of its list, as a share of the range there. The generator scores it ``u + doubt * e'`` and lists
    the highest scores first, as generators do.

    Parameters
    ----------
    n, candidates : int
        Lists, and candidates of each.
    features, per_candidate : int
        Features there are, ``f0``, ``f1`` and so on, and those of one candidate. The first are the
        most frequent.
    noise : float
        What no feature tells, beside hidden weights of length 1 each. More makes lists harder.
    doubt : float
        How far the generator is off. More leaves more to gain.
    seed : int
        Same seed, same lists.

    Examples
    --------
    >>> lists = candidate_lists(2, candidates=3, seed=1)
    >>> lists.starts.tolist(), float(lists.costs.min()), lists.named.names[:2]
    ([0, 3, 6], 0.0, ['f0', 'f1'])
    """
    if min(n, candidates) < 1 or not 1 <= per_candidate <= features:
        raise HopefearError(
            f"{n} lists of {candidates} candidates with {per_candidate} of {features} features: "
            "give at least one of each, and no more features to a candidate than there are"
        )
    random = np.random.default_rng(seed)
    truth = random.normal(size=features)
    total = n * candidates
    # The highest of random keys, larger on average for earlier features, choose without repetition.
    keys = random.random((total, features)) ** np.sqrt(1.0 + np.arange(features))
    ids = np.sort(np.argsort(-keys, axis=1, kind="stable")[:, :per_candidate], axis=1)
    values = random.integers(1, 4, ids.shape).astype(np.float64)
    worth = (truth[ids] * values).sum(axis=1) + noise * random.normal(size=total)
    scores = worth + doubt * random.normal(size=total)
    by_list = worth.reshape(n, candidates)
    best, least = by_list.max(axis=1, keepdims=True), by_list.min(axis=1, keepdims=True)
    costs = (best - by_list) / np.where(best > least, best - least, 1.0)
    order = np.argsort(-scores.reshape(n, candidates), axis=1, kind="stable")
    order = (order + candidates * np.arange(n)[:, None]).ravel()
    named = NamedValues(
        [f"f{j}" for j in range(features)],
        frozen(np.arange(total + 1, dtype=np.int64) * per_candidate),
        frozen(ids[order].astype(np.int32).ravel()),
        frozen(values[order].ravel()),
    )
    return CandidateLists(
        [str(i + 1) for i in range(n)],
        frozen(np.arange(n + 1, dtype=np.int64) * candidates),
        [""] * total,
        frozen(scores[order]),
        frozen(costs.ravel()[order]),
        named=named,
        source="generated",
    )

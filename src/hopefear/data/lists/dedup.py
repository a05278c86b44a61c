"""Candidates that say the same: which of them to keep."""

from __future__ import annotations

from dataclasses import replace
from itertools import compress, pairwise

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.data.lists.candidates import CandidateLists, NamedValues
from hopefear.errors import HopefearError
from hopefear.features.brackets.take import take_trees

POLICIES = ("none", "first", "best")


def deduplicated(lists: CandidateLists, policy: str = "first") -> CandidateLists:
    """The lists with one candidate for each text.

    Parameters
    ----------
    lists : CandidateLists
        Candidates without text are all kept.
    policy : {"none", "first", "best"}
        Keep all; the first of equal texts; or the one of highest score, the first among those,
        which is the best derivation h of an output y by the generator's score, not by the model's:
        ``max_h score(x, y, h)``. Those kept stay in their order.

    Examples
    --------
    >>> lists = CandidateLists(
    ...     ["a"], np.array([0, 3]), ["hope", "fear", "hope"], np.array([1.0, 3.0, 2.0])
    ... )
    >>> deduplicated(lists).scores.tolist(), deduplicated(lists, "best").scores.tolist()
    ([1.0, 3.0], [3.0, 2.0])
    """
    keep = without_copies(lists, policy)
    return lists if keep.all() else kept(lists, keep)


def without_copies(lists: CandidateLists, policy: str = "first") -> np.ndarray:
    """Which candidates (bool) `deduplicated` keeps."""
    check_policy(policy)
    keep = np.ones(lists.n_candidates, bool)
    if policy == "none":
        return keep
    starts = lists.starts.tolist()
    for begin, end in pairwise(starts):
        texts = lists.texts[begin:end]
        if len(set(texts)) < len(texts):
            _mark(keep[begin:end], texts, lists.scores[begin:end], policy == "best")
    return keep


def kept(lists: CandidateLists, keep: np.ndarray) -> CandidateLists:
    """The lists with the candidates that a mask marks."""
    before = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep)])
    derivations = None
    if lists.derivations is not None:
        derivations = list(compress(lists.derivations, keep.tolist()))
    return replace(
        lists,
        starts=frozen(before[lists.starts]),
        texts=list(compress(lists.texts, keep.tolist())),
        scores=frozen(lists.scores[keep]),
        costs=None if lists.costs is None else frozen(lists.costs[keep]),
        counts=None if lists.counts is None else frozen(lists.counts[keep]),
        named=None if lists.named is None else _kept_values(lists.named, keep),
        trees=None if lists.trees is None else take_trees(lists.trees, keep),
        derivations=derivations,
    )


def check_policy(policy: str) -> None:
    """HopefearError unless the word is known."""
    if policy not in POLICIES:
        raise HopefearError(f"dedup must be one of {', '.join(POLICIES)}, not {policy!r}")


def _mark(keep: np.ndarray, texts, scores: np.ndarray, best: bool) -> None:
    chosen: dict[str, int] = {}
    for c, text in enumerate(texts):
        if not text:
            continue
        other = chosen.setdefault(text, c)
        if other != c:
            worse = other if best and scores[c] > scores[other] else c
            keep[worse] = False
            chosen[text] = other if worse == c else c


def _kept_values(named: NamedValues, keep: np.ndarray) -> NamedValues:
    sizes = np.diff(named.indptr)
    indptr = np.zeros(int(np.count_nonzero(keep)) + 1, np.int64)
    np.cumsum(sizes[keep], out=indptr[1:])
    entries = np.repeat(keep, sizes)
    return NamedValues(
        named.names, frozen(indptr), frozen(named.ids[entries]), frozen(named.values[entries])
    )

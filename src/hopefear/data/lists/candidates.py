"""Lists of candidates as files give them: texts, scores, references; features not numbered yet.

Candidates that say the same can be merged; which of them stays is said by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, pairwise

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.errors import HopefearError
from hopefear.features.brackets import Trees, take_trees


@dataclass(frozen=True)
class NamedValues:
    """Features that a file names: entry e of candidate c, ``indptr[c] <= e < indptr[c + 1]``.

    It is the feature ``names[ids[e]]`` with the value ``values[e]``; a candidate has a name once.
    """

    names: Sequence[str]
    indptr: np.ndarray  # int64[candidates + 1]
    ids: np.ndarray  # int32
    values: np.ndarray  # float64


@dataclass(frozen=True)
class CandidateLists:
    """Whole lists of candidates, in the order of the file.

    Parameters
    ----------
    ids : sequence of str
        Name of each list.
    starts : int64 array
        List i has the candidates ``starts[i] .. starts[i + 1] - 1``.
    texts : sequence of str
        Each candidate as the file writes it: a sentence, a bracketed tree, or nothing.
    scores : float64 array
        What the generator thought of each candidate; more is better. Zeros where nothing is said.
    costs : float64 array, optional
        How bad each candidate is against the reference; less is better, and only differences
        matter. None where nobody knows.
    counts : int64 array, optional
        Statistics of each candidate, one row each, that ``metric`` adds up and turns into scores.
    metric : str
        The metric behind ``costs`` and ``counts``.
    references : sequence of sequences of str, optional
        What each list should have held.
    named : NamedValues, optional
        Features that the file names.
    trees : Trees, optional
        The candidates, when they are trees.
    derivations : sequence, optional
        How each candidate came about, as the file says it: a string, or None.
    weights : float64 array, optional
        What each list counts in training; 1 for all where None.
    source, lines : str, int64 array
        The file, and the line on which each list begins, for messages.
    """

    ids: Sequence[str]
    starts: np.ndarray
    texts: Sequence[str]
    scores: np.ndarray
    costs: np.ndarray | None = None
    counts: np.ndarray | None = None
    metric: str = "cost"
    references: Sequence[Sequence[str]] | None = None
    named: NamedValues | None = None
    trees: Trees | None = None
    weights: np.ndarray | None = None
    source: str = "memory"
    lines: np.ndarray | None = field(default=None, repr=False)
    derivations: Sequence[str | None] | None = None

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def n_candidates(self) -> int:
        return int(self.starts[-1])

    def place(self, i: int) -> int:
        """Line of list ``i``; its number, from 1, where lines are not known."""
        return int(self.lines[i]) if self.lines is not None else i + 1


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


def _mark(keep: np.ndarray, texts: Iterable[str | None], scores: np.ndarray, best: bool) -> None:
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

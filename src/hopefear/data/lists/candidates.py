"""Lists of candidates as files give them: texts, scores, features by name, references, statistics.

Rerankers and tuners read the same lists; candidates that say the same can be merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import Strings, Texts, frozen, gathered
from hopefear.errors import HopefearError
from hopefear.features.brackets import BracketTrees, take_trees


class NamedEntries(NamedTuple):
    """Entry e of candidate c, ``indptr[c] <= e < indptr[c + 1]``, is ``names[ids[e]]``."""

    names: Sequence[str]
    indptr: np.ndarray  # int64[candidates + 1]
    ids: np.ndarray  # int32
    values: np.ndarray | None = None  # float32 or float64; None where every entry counts 1

    def take(self, candidates: np.ndarray) -> NamedEntries:
        """Returns the entries of these candidates, in this order."""
        indptr, entries = gathered(self.indptr, candidates)
        values = None if self.values is None else frozen(self.values[entries])
        return self._replace(indptr=frozen(indptr), ids=frozen(self.ids[entries]), values=values)

    def of(self, c: int) -> list[tuple[str, float]]:
        """Returns names and values of candidate ``c``."""
        span = slice(int(self.indptr[c]), int(self.indptr[c + 1]))
        names = [self.names[j] for j in self.ids[span].tolist()]
        values = [1.0] * len(names) if self.values is None else self.values[span].tolist()
        return list(zip(names, values, strict=True))


Layout = tuple[tuple[str, int], ...]
_NONE = frozen(np.zeros((0, 0), np.float32))


@dataclass(frozen=True)
class CandidateLists:
    """Whole lists of candidates, in the order of the file.

    Parameters
    ----------
    ids : sequence of str
        Name of each list; those of Moses are numbers, of lines of the references from 0.
    starts : int64 array
        List i has the candidates ``starts[i] .. starts[i + 1] - 1``.
    texts : sequence of str
        Each candidate as the file writes it: a sentence, a bracketed tree, or an empty string.
        Nothing where texts were not kept.
    scores : float array
        The generator's score of each candidate; more is better. Zeros where there is none.
    costs : float64 array, optional
        How bad each candidate is against the reference; less is better, and only differences
        matter.
    counts : array [candidates, statistics], optional
        Statistics of each candidate that ``metric`` adds up; fractions only where TER has several
        references.
    metric : str
        The metric behind ``costs`` and ``counts``.
    references : sequence of sequences of str, optional
        References of each list.
    n_references : int
        References of a list; -1 where lists have different numbers.
    layout : tuple of (str, int)
        Names of the dense features and how many numbers each has.
    dense : float32 array [candidates, features], optional
        The dense features, which all candidates have.
    sparse : NamedEntries, optional
        Other features that the file names.
    phrases : NamedEntries, optional
        Phrase pairs of each derivation, named ``source words ||| target words``, each once.
    trees : Trees, optional
        The candidates, when they are trees.
    derivations : sequence of str or None, optional
        Derivation of each candidate, as the file has it: for Moses the fields after the score.
    weights : float64 array, optional
        Weight of each list in training; 1 for all where None.
    source, lines : str, int64 array
        The file, and the line on which each list begins, for messages.
    dropped : int
        Candidates left out because their list has the same words with the same features already.
    """

    ids: Sequence[str]
    starts: np.ndarray
    texts: Sequence[str]
    scores: np.ndarray
    costs: np.ndarray | None = None
    counts: np.ndarray | None = None
    metric: str = "cost"
    references: Sequence[Sequence[str]] | None = None
    n_references: int = 1
    layout: Layout = ()
    dense: np.ndarray = field(default_factory=lambda: _NONE)
    sparse: NamedEntries | None = None
    phrases: NamedEntries | None = None
    trees: BracketTrees | None = None
    derivations: Sequence[str | None] | None = None
    weights: np.ndarray | None = None
    source: str = "memory"
    lines: np.ndarray | None = field(default=None, repr=False)
    dropped: int = 0

    def __post_init__(self) -> None:
        if not self.layout and len(self.dense) != self.n_candidates:
            object.__setattr__(self, "dense", np.zeros((self.n_candidates, 0), np.float32))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def n_candidates(self) -> int:
        return int(self.starts[-1])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the dense features: ``LM0``, or ``TM0.0``, ``TM0.1`` … where it has several."""
        return dense_names(self.layout)

    def line_of(self, i: int) -> int:
        """Returns the line of list ``i``; its number, from 1, where lines are not known."""
        return int(self.lines[i]) if self.lines is not None else i + 1

    def features_of(self, c: int) -> dict[str, float]:
        """Returns the features of candidate ``c`` by name, the dense ones first."""
        features = dict(zip(self.names, self.dense[c].tolist(), strict=True))
        return features if self.sparse is None else features | dict(self.sparse.of(c))

    def take(self, indices: np.ndarray) -> CandidateLists:
        """Returns the lists of these numbers, in this order."""
        indices = np.asarray(indices, np.int64)
        starts, candidates = gathered(self.starts, indices)
        chosen = _selected(self, OF_LISTS, indices) | _selected(self, OF_CANDIDATES, candidates)
        return replace(self, starts=frozen(starts), **chosen)

    def keep(self, mask: np.ndarray) -> CandidateLists:
        """Returns the lists with the candidates that a mask marks."""
        before = np.concatenate([np.zeros(1, np.int64), np.cumsum(mask)])
        chosen = _selected(self, OF_CANDIDATES, np.flatnonzero(mask))
        return replace(self, starts=frozen(before[self.starts]), **chosen)


OF_LISTS = ("ids", "references", "weights", "lines")
OF_CANDIDATES = (
    *("texts", "scores", "costs", "counts", "dense", "sparse", "phrases", "trees", "derivations"),
)


def dense_names(layout: Layout) -> tuple[str, ...]:
    """Returns ``LM0``, or ``TM0.0``, ``TM0.1`` … where a name has several numbers."""
    return tuple(
        name if width == 1 else f"{name}.{k}" for name, width in layout for k in range(width)
    )


def _selected(lists: CandidateLists, fields: Iterable[str], indices: np.ndarray) -> dict[str, Any]:
    return {name: _selected_values(getattr(lists, name), indices) for name in fields}


def _selected_values(values: Any, indices: np.ndarray) -> Any:
    if values is None or len(values) == 0:
        return values
    if isinstance(values, NamedEntries):
        return values.take(indices)
    if isinstance(values, BracketTrees):
        return take_trees(values, indices)
    if isinstance(values, Texts):
        offsets, letters = gathered(values.packed.offsets, indices)
        return Texts(Strings(frozen(values.packed.text[letters]), frozen(offsets)))
    if isinstance(values, np.ndarray):
        return frozen(values[indices])
    return [values[i] for i in indices.tolist()]


def concatenated(blocks: list[CandidateLists]) -> CandidateLists:
    """Returns the lists of all blocks, one behind the other; ``blocks`` is emptied to save memory.

    Blocks are of one layout and metric, and number names alike, so that the last knows all.
    """
    if len(blocks) == 1:
        return blocks.pop()
    last, sizes = blocks[-1], [block.n_candidates for block in blocks]
    parts = {name: [getattr(b, name) for b in blocks] for name in (*OF_LISTS, *OF_CANDIDATES)}
    ends = np.cumsum([0, *sizes])
    starts = [[0], *(b.starts[1:] + end for b, end in zip(blocks, ends.tolist(), strict=False))]
    dropped = sum(block.dropped for block in blocks)
    blocks.clear()
    fields = {name: _joined(parts.pop(name), sizes) for name in (*OF_LISTS, *OF_CANDIDATES)}
    return replace(last, starts=frozen(np.concatenate(starts)), dropped=dropped, **fields)


def _joined(parts: list[Any], sizes: Sequence[int]) -> Any:
    first = next((part for part in parts if part is not None), None)
    if first is None:
        return None
    if isinstance(first, NamedEntries):
        pairs = zip(parts, sizes, strict=True)
        counts = [np.zeros(n) if part is None else np.diff(part.indptr) for part, n in pairs]
        indptr = np.concatenate([[0], np.cumsum(np.concatenate(counts), dtype=np.int64)])
        parts = [part for part in parts if part is not None]
        ids = np.concatenate([part.ids for part in parts])
        values = None
        if first.values is not None:
            values = frozen(np.concatenate([part.values for part in parts]))
        return NamedEntries(parts[-1].names, frozen(indptr), frozen(ids), values)
    if any(part is None for part in parts):
        return None
    if isinstance(first, Texts):
        strings = [part.packed for part in parts]
        ends = np.cumsum([0, *(len(s.text) for s in strings)]).tolist()
        offsets = [[0], *(s.offsets[1:] + end for s, end in zip(strings, ends, strict=False))]
        text = np.concatenate([s.text for s in strings])
        return Texts(Strings(frozen(text), frozen(np.concatenate(offsets))))
    if isinstance(first, np.ndarray):
        return frozen(np.concatenate(parts))
    return list(chain.from_iterable(parts))


def merged(lists: CandidateLists, numbers: np.ndarray) -> CandidateLists:
    """Returns the lists in the order of their numbers, those of one number as one list."""
    order = np.argsort(numbers, kind="stable")
    if (np.diff(order) != 1).any():
        lists, numbers = lists.take(order), numbers[order]
    first = np.flatnonzero(np.diff(numbers, prepend=-1))
    if len(first) == len(lists):
        return lists
    starts = np.append(lists.starts[first], lists.starts[-1])
    return replace(lists, starts=frozen(starts), **_selected(lists, OF_LISTS, first))


def interleaved(
    parts: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the entries of several parts candidate by candidate, in the order of the parts.

    A part is ``(indptr, ids, values)``.

    Examples
    --------
    >>> one = np.array([0, 1, 2]), np.array([7, 8]), np.array([1.0, 2.0])
    >>> interleaved([one, one])[1].tolist()
    [7, 7, 8, 8]
    """
    if len(parts) == 1:
        return parts[0]
    owners = np.concatenate([np.repeat(np.arange(len(p) - 1), np.diff(p)) for p, _, _ in parts])
    order = np.argsort(owners, kind="stable")
    indptr = np.sum([part[0] for part in parts], axis=0)
    ids, values = (np.concatenate([part[k] for part in parts])[order] for k in (1, 2))
    return indptr, ids, values


def packed(strings: Sequence[str]) -> Strings:
    """Returns strings as one array of UTF-8 bytes."""
    return strings.packed if isinstance(strings, Texts) else Strings.pack(strings)


POLICIES = ("none", "first", "best")


def deduplicated(lists: CandidateLists, policy: str = "first") -> CandidateLists:
    """Returns the lists with one candidate for each text.

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
    mask = without_copies(lists, policy)
    return lists if mask.all() else lists.keep(mask)


def without_copies(lists: CandidateLists, policy: str = "first") -> np.ndarray:
    """Returns which candidates (bool) `deduplicated` keeps."""
    check_policy(policy)
    mask = np.ones(lists.n_candidates, bool)
    if policy == "none" or not lists.texts:
        return mask
    starts = lists.starts.tolist()
    for begin, end in pairwise(starts):
        texts = lists.texts[begin:end]
        if len(set(texts)) < len(texts):
            _mark(mask[begin:end], texts, lists.scores[begin:end], policy == "best")
    return mask


def check_policy(policy: str) -> None:
    """HopefearError unless the word is known."""
    if policy not in POLICIES:
        raise HopefearError(f"dedup must be one of {', '.join(POLICIES)}, not {policy!r}")


def _mark(mask: np.ndarray, texts: Iterable[str | None], scores: np.ndarray, best: bool) -> None:
    chosen: dict[str, int] = {}
    for c, text in enumerate(texts):
        if not text:
            continue
        rival = chosen.setdefault(text, c)
        if rival != c:
            worse = rival if best and scores[c] > scores[rival] else c
            mask[worse] = False
            chosen[text] = rival if worse == c else c

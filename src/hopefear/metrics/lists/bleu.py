"""BLEU (Papineni et al., 2002), counted and summed as sacreBLEU does (Post, 2018)."""

from __future__ import annotations

import functools
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear.core.component import helper, kernel
from hopefear.core.hashing import key_slot
from hopefear.errors import HopefearError
from hopefear.metrics.base import ListMetric, Scores, Statistics, plain, ratio
from hopefear.metrics.lists.texts import grouped, signed

ORDERS = 4
COLUMNS = (
    *(f"matched_{n}" for n in range(1, ORDERS + 1)),
    *(f"total_{n}" for n in range(1, ORDERS + 1)),
    "length",
    "reference_length",
)


class _GramTable(NamedTuple):
    """N-grams of the references of one list."""

    slots: np.ndarray  # int32[power of two]: n-gram + 1, 0 if empty
    keys: np.ndarray  # uint64[n-grams]
    max_counts: np.ndarray  # int32[n-grams]: how often at most in one reference
    used: np.ndarray  # int32[n-grams]: how often so far in the text of ``owner``
    owner: np.ndarray  # int64[n-grams]


def _checked_sets(
    groups: ArrayLike, starts: ArrayLike
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Both as arrays, if each candidate is of a set of references and no set is empty."""
    sets, bounds = np.asarray(groups, np.int64), np.asarray(starts, np.int64)
    if sets.size and not 0 <= sets.min() <= sets.max() < len(bounds) - 1:
        raise HopefearError(
            f"candidates have the references {sets.min()} to {sets.max()}, and there are "
            f"{len(bounds) - 1} sets of them; give a set for every list"
        )
    if bounds.size > 1 and np.diff(bounds).min() < 1:
        i = int(np.diff(bounds).argmin())
        raise HopefearError(f"list {i} has no reference; give at least one")
    return sets, bounds


@kernel
def _count(words, offsets, groups, reference_words, reference_offsets, starts, table, counts):
    last = -1
    for c in range(len(groups)):
        i = groups[c]
        if i != last:
            _learn(reference_words, reference_offsets, starts[i], starts[i + 1], table)
            last = i
        begin, end = offsets[c], offsets[c + 1]
        size = end - begin
        for k in range(begin, end):
            h = np.uint64(0)
            for n in range(min(ORDERS, end - k)):
                h = _mix(h, words[k + n])
                g = table.slots[key_slot(table.slots, table.keys, h)] - 1
                if g < 0:  # what begins with an n-gram that is in no reference is in none
                    break
                if table.owner[g] != c:
                    table.owner[g] = c
                    table.used[g] = 0
                table.used[g] += 1
                if table.used[g] <= table.max_counts[g]:
                    counts[c, n] += 1
        for n in range(ORDERS):
            counts[c, ORDERS + n] = max(0, size - n)
        counts[c, 2 * ORDERS] = size
        counts[c, 2 * ORDERS + 1] = _closest(size, reference_offsets, starts[i], starts[i + 1])


@helper
def _learn(words, offsets, first, stop, table):
    """Fill the table with the n-grams of these references, each as often as in one at most."""
    table.slots[:] = 0
    grams = 0
    for r in range(first, stop):
        for k in range(offsets[r], offsets[r + 1]):
            h = np.uint64(0)
            for n in range(min(ORDERS, offsets[r + 1] - k)):
                h = _mix(h, words[k + n])
                slot = key_slot(table.slots, table.keys, h)
                if table.slots[slot] == 0:
                    table.keys[grams] = h
                    table.max_counts[grams] = 0
                    table.owner[grams] = -1
                    grams += 1
                    table.slots[slot] = grams
                g = table.slots[slot] - 1
                if table.owner[g] != -2 - r:
                    table.owner[g] = -2 - r
                    table.used[g] = 0
                table.used[g] += 1
                table.max_counts[g] = max(table.max_counts[g], table.used[g])


@helper
def _mix(h, word):
    """Hash of an n-gram from that of its first words and the last."""
    h = (h + word + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xD6E8FEB86659FD93)
    h ^= h >> np.uint64(32)
    h *= np.uint64(0xD6E8FEB86659FD93)
    return h ^ (h >> np.uint64(29))


@helper
def _closest(size, offsets, first, stop):
    """Length of the reference closest in length, the shorter of two that are equally close."""
    best = offsets[first + 1] - offsets[first]
    for r in range(first + 1, stop):
        length = offsets[r + 1] - offsets[r]
        if abs(length - size) < abs(best - size) or (
            abs(length - size) == abs(best - size) and length < best
        ):
            best = length
    return best


# The value each smoothing uses where none is given; None where it needs none.
SMOOTHINGS: dict[str, float | None] = {
    "none": None,
    "floor": 0.1,
    "add-k": 1.0,
    "exp": None,
    "add-one": None,
}


@dataclass(frozen=True)
class Bleu(ListMetric):
    """Matched n-grams of one to four words, with a penalty for brevity.

    ``BLEU = min(1, exp(1 - r / c)) * (p1 p2 p3 p4) ** (1 / 4)``

    Parameters
    ----------
    smoothing : {"add-one", "none", "floor", "add-k", "exp"}
        What a sentence without matches of some order gets, in costs only. ``add-one`` adds 1 to
        matches and totals of the orders above 1 (Lin and Och, 2004); the others are sacreBLEU's.
    value : float, optional
        What ``floor`` counts for no match (0.1) or ``add-k`` adds (1). Larger brings the costs of
        poor sentences closer together.
    tokenize : str
        How sacreBLEU splits text: ``13a``, ``intl``, ``zh``, ``char``, or ``none`` for text that
        is split already.
    lowercase : bool
        Ignore case.

    Notes
    -----
    The score of a corpus is sacreBLEU's own, with its own smoothing (``exp``), which matters only
    where a whole corpus has no match of some order. Costs leave out the orders a sentence is too
    short for, as sacreBLEU's sentence scores do.

    References
    ----------
    Chen and Cherry (2014), A systematic comparison of smoothing techniques for sentence-level
    BLEU.

    Examples
    --------
    >>> bleu = Bleu(tokenize="none")
    >>> statistics = bleu.statistics([["the cat sat"]] * 2, ["the cat sat", "a cat"])
    >>> statistics.tolist()
    [[3, 2, 1, 0, 3, 2, 1, 0, 3, 3], [1, 0, 0, 0, 2, 1, 0, 0, 2, 3]]
    >>> bleu.costs(statistics).round(3).tolist()
    [0.0, 0.571]
    """

    name: ClassVar[str] = "bleu"
    main: ClassVar[str] = "bleu"

    smoothing: str = "add-one"
    value: float | None = None
    tokenize: str = "13a"
    lowercase: bool = False

    def __post_init__(self) -> None:
        if self.smoothing not in SMOOTHINGS:
            raise HopefearError(
                f"bleu has no smoothing {self.smoothing!r}; choose one of {', '.join(SMOOTHINGS)}"
            )
        if self.value is not None and SMOOTHINGS[self.smoothing] is None:
            raise HopefearError(
                f"smoothing {self.smoothing} takes no value; leave {self.value:g} out, or use "
                "floor or add-k"
            )
        if self.value is not None and not 0.0 < self.value < np.inf:
            raise HopefearError(f"smoothing value {self.value:g} must be a number above 0")
        _scorer(self.tokenize, self.lowercase)

    @property
    def columns(self) -> tuple[str, ...]:
        return COLUMNS

    def costs(self, statistics: ArrayLike) -> NDArray[np.float64]:
        """One minus smoothed sentence BLEU."""
        score = _bleu(self.by_column(statistics), self.smoothing, self.value, effective=True)
        return np.maximum(0.0, 1.0 - score)

    def scores(self, sums: ArrayLike) -> Scores:
        """``bleu``, and what it is made of."""
        rows = self.by_column(sums)
        length, reference = rows[-2], rows[-1]
        precision = {
            f"precision_{n + 1}": 100.0 * ratio(rows[n], rows[ORDERS + n]) for n in range(ORDERS)
        }
        return plain(
            {
                "bleu": _corpus_bleu(rows),
                **precision,
                "brevity_penalty": 100.0 * _brevity(length, reference),
                "length_ratio": 100.0 * ratio(length, reference),
            }
        )

    def signature_for(self, n_references: int) -> str:
        return signed("BLEU", _scorer(self.tokenize, self.lowercase), n_references)

    @property
    def counts_words(self) -> bool:
        return self.tokenize == "none" and not self.lowercase

    def statistics(self, references: Sequence[Sequence[str]], outputs: Sequence[str]) -> Statistics:
        groups, sets = grouped(references, outputs)
        numbers: dict[str, int] = {}
        starts = np.cumsum([0, *map(len, sets)])
        words, offsets = self._numbered(outputs, numbers)
        gold = self._numbered((line for lines in sets for line in lines), numbers)
        return self.word_statistics(words, offsets, groups, *gold, starts).astype(np.int64)

    def word_statistics(
        self,
        words: np.ndarray,
        offsets: np.ndarray,
        groups: np.ndarray,
        reference_words: np.ndarray,
        reference_offsets: np.ndarray,
        reference_starts: np.ndarray,
    ) -> np.ndarray:
        """Returns statistics (int32) of candidates whose words are numbers, such as hashes.

        Parameters
        ----------
        words, ptr : uint64, int64 arrays
            Candidate c has the words ``words[ptr[c]:ptr[c + 1]]``.
        groups : int64 array
            The set of references of each candidate. Neighbours of the same set share the work on
            it.
        reference_words, reference_ptr : uint64, int64 arrays
            The same for references.
        reference_starts : int64 array
            Set i has the references ``reference_starts[i] .. reference_starts[i + 1] - 1``.

        Examples
        --------
        >>> words, ptr = np.array([1, 2, 3, 1, 2], np.uint64), np.array([0, 3, 5])
        >>> Bleu().word_statistics(words, ptr, [0, 0], words, ptr[:2], [0, 1]).tolist()
        [[3, 2, 1, 0, 3, 2, 1, 0, 3, 3], [2, 1, 0, 0, 2, 1, 0, 0, 2, 3]]
        """
        offsets, reference_offsets = (
            np.asarray(offsets, np.int64),
            np.asarray(reference_offsets, np.int64),
        )
        groups, starts = _checked_sets(groups, reference_starts)
        grams = ORDERS * int(np.diff(reference_offsets[starts]).max(initial=0))
        table = _GramTable(
            np.zeros(1 << (2 * grams + 16).bit_length(), np.int32),
            np.zeros(grams, np.uint64),
            np.zeros(grams, np.int32),
            np.zeros(grams, np.int32),
            np.zeros(grams, np.int64),
        )
        counts = np.zeros((len(groups), len(COLUMNS)), np.int32)
        with np.errstate(over="ignore"):  # uncompiled kernels warn where compiled ones do not
            _count(
                words, offsets, groups, reference_words, reference_offsets, starts, table, counts
            )
        return counts

    def _numbered(
        self, lines: Iterable[str], numbers: dict[str, int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Returns the words of all lines as numbers, and where lines begin."""
        words, offsets = array("Q"), [0]
        for line in lines:
            words.extend(numbers.setdefault(word, len(numbers)) for word in self.words(line))
            offsets.append(len(words))
        return np.array(words, np.uint64), np.array(offsets, np.int64)

    def words(self, text: str) -> list[str]:
        """The words of a line, as they are counted."""
        text = text.lower() if self.lowercase else text
        if self.tokenize == "none":
            return text.split()
        return _scorer(self.tokenize, self.lowercase).tokenizer(text.rstrip()).split()


@functools.cache
def _scorer(tokenize: str, lowercase: bool) -> Any:
    from sacrebleu.metrics import BLEU

    if tokenize not in BLEU.TOKENIZERS:
        raise HopefearError(
            f"bleu has no tokenize {tokenize!r}; choose one of {', '.join(BLEU.TOKENIZERS)}"
        )
    try:
        return BLEU(tokenize=tokenize, lowercase=lowercase)
    except Exception as problem:  # some tokenizers need further packages or downloads
        raise HopefearError(
            f"sacreBLEU cannot make its tokenizer {tokenize}: {problem}; choose another, or split "
            "the text beforehand and use none"
        ) from problem


def _corpus_bleu(rows: NDArray[Any]) -> NDArray[np.float64]:
    if rows.ndim > 1:
        return 100.0 * _bleu(rows, "exp", None, effective=False)
    # This sum follows sacreBLEU's arithmetic to the last digit.
    from sacrebleu.metrics import BLEU

    *counts, length, reference = (int(n) for n in rows)
    scores = BLEU.compute_bleu(
        counts[:ORDERS], counts[ORDERS:], length, reference, smooth_method="exp"
    )
    return np.asarray(scores.score)


def _bleu(
    rows: NDArray[Any], smoothing: str, value: float | None, effective: bool
) -> NDArray[np.float64]:
    """BLEU between 0 and 1 of counts with their columns first."""
    hits, totals = rows[:ORDERS].astype(np.float64), rows[ORDERS : 2 * ORDERS].astype(np.float64)
    any_hit = (hits > 0).any(axis=0)
    if value is None:
        value = SMOOTHINGS[smoothing]
    if smoothing in ("add-k", "add-one"):
        hits[1:] += value or 1.0
        totals[1:] += value or 1.0
    misses = hits == 0
    if smoothing == "floor":
        hits[misses] = value or 0.0
    elif smoothing == "exp":
        hits = np.where(misses, 0.5 ** np.cumsum(misses & (totals > 0), axis=0), hits)
    used = np.logical_and.accumulate(totals > 0, axis=0)
    precision = ratio(hits, totals)
    with np.errstate(divide="ignore"):
        logs = np.where(used, np.log(precision), 0.0 if effective else -np.inf)
    orders = np.maximum(used.sum(axis=0), 1) if effective else ORDERS
    score = _brevity(rows[-2], rows[-1]) * np.exp(logs.sum(axis=0) / orders)
    return np.where(any_hit, score, 0.0)


def _brevity(length: NDArray[Any], reference: NDArray[Any]) -> NDArray[np.float64]:
    return np.exp(np.minimum(0.0, 1.0 - ratio(reference, length, empty=np.inf)))

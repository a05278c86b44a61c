"""chrF and chrF++ (Popović, 2015 and 2017), counted and summed as sacreBLEU does."""

from __future__ import annotations

import functools
import string
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear.core.component import helper, kernel
from hopefear.errors import HopefearError
from hopefear.metrics.interface import Scores, plain, ratio
from hopefear.metrics.lists.base import Counts, columns_of, signed
from hopefear.metrics.lists.text import Lines, TextMetric, Units


def _marks() -> np.ndarray:
    marks = np.zeros(128, np.bool_)
    marks[[ord(mark) for mark in string.punctuation]] = True
    marks.flags.writeable = False
    return marks


_MARKS = _marks()


class _Side(NamedTuple):
    """Lines as characters and as words: line i has ``points[ptr[i]:ptr[i + 1]]``, and so on."""

    points: np.ndarray  # uint32
    ptr: np.ndarray  # int64
    words: np.ndarray  # uint64
    word_ptr: np.ndarray  # int64


class _Table(NamedTuple):
    """N-grams of one reference: the slot of each follows from that of its first part."""

    keys: np.ndarray  # uint64[slots], 0 where there is none
    most: np.ndarray  # int32[slots]: how often in the reference
    left: np.ndarray  # int32[slots]: how many of those ``owner`` has not matched yet
    owner: np.ndarray  # int64[slots]


def chrf_counts(
    ours: Lines,
    gold: Lines,
    which: np.ndarray,
    starts: np.ndarray,
    char_order: int,
    word_order: int,
    beta: int,
) -> np.ndarray:
    """Counts (int32) as the columns of `Chrf` have them.

    Parameters
    ----------
    ours, gold, which, starts
        As in :meth:`hopefear.metrics.lists.text.TextMetric.line_counts`.
    char_order, word_order, beta : int
        As in `Chrf`.

    Examples
    --------
    >>> sides = Lines.packed(["abc", "abd"]), Lines.packed(["abc"])
    >>> chrf_counts(*sides, np.array([0, 0]), np.array([0, 1]), 2, 0, 2).tolist()
    [[3, 3, 3, 2, 2, 2], [3, 3, 2, 2, 2, 1]]
    """
    sides = [_side(lines) for lines in (ours, gold)]
    counts = np.zeros((len(which), 3 * (char_order + word_order)), np.int32)
    chars, words = _table(char_order, sides[1].ptr), _table(word_order, sides[1].word_ptr)
    with np.errstate(over="ignore"):  # uncompiled kernels warn where compiled ones do not
        _count(
            *(sides[0], which, sides[1], starts, char_order, word_order),
            *(beta**2, chars, words, counts),
        )
    return counts


def _side(lines: Lines) -> _Side:
    units = lines.units()
    words = np.empty(2 * len(units.words), np.int64)
    word_ptr = np.zeros(len(units.ptr), np.int64)
    _cut(units.points, units.words, units.word_ptr, _MARKS, words, word_ptr)
    cut = Units(units.points, units.ptr, words[: word_ptr[-1] + 1], word_ptr)
    return _Side(units.points, units.ptr, cut.word_numbers(), word_ptr)


def _table(orders: int, ptr: np.ndarray) -> _Table:
    slots = _slots(orders * int(np.diff(ptr).max(initial=0)))
    return _Table(
        np.zeros(slots, np.uint64),
        np.zeros(slots, np.int32),
        np.zeros(slots, np.int32),
        np.zeros(slots, np.int64),
    )


@kernel
def _slots(grams):
    """Slots for so many n-grams: a power of two."""
    slots = 16
    while slots < 2 * grams:
        slots *= 2
    return slots


@kernel
def _cut(points, words, word_ptr, marks, cut, cut_ptr):
    """One mark of punctuation off the end of each word, or else off its beginning."""
    used = 0
    for line in range(len(word_ptr) - 1):
        for k in range(word_ptr[line], word_ptr[line + 1]):
            begin, last = words[k], words[k + 1] - 1
            cut[used] = begin
            used += 1
            if begin < last and points[last] < 128 and marks[points[last]]:
                cut[used] = last
                used += 1
            elif begin < last and points[begin] < 128 and marks[points[begin]]:
                cut[used] = begin + 1
                used += 1
        cut_ptr[line + 1] = used
    cut[used] = words[len(words) - 1]


@kernel
def _count(ours, which, gold, starts, char_order, word_order, factor, chars, words, counts):
    row = np.zeros(counts.shape[1], np.int32)
    best = np.zeros(len(which), np.float64)
    first = 0
    while first < len(which):
        stop = first + 1
        while stop < len(which) and which[stop] == which[first]:
            stop += 1
        begin, end = starts[which[first]], starts[which[first] + 1]
        for r in range(begin, end):
            _learn(gold.points, gold.ptr[r], gold.ptr[r + 1], char_order, chars)
            _learn(gold.words, gold.word_ptr[r], gold.word_ptr[r + 1], word_order, words)
            for c in range(first, stop):
                _compare(
                    *(ours.points, ours.ptr[c], ours.ptr[c + 1], gold.ptr[r + 1] - gold.ptr[r]),
                    *(char_order, chars, c, row, 0),
                )
                size = gold.word_ptr[r + 1] - gold.word_ptr[r]
                _compare(
                    *(ours.words, ours.word_ptr[c], ours.word_ptr[c + 1], size),
                    *(word_order, words, c, row, char_order),
                )
                value = _value(row, factor) if end > begin + 1 else 0.0
                if r == begin or value > best[c]:
                    best[c] = value
                    for k in range(len(row)):
                        counts[c, k] = row[k]
        first = stop


@kernel
def _learn(numbers, begin, end, orders, table):
    """Fill the table with the n-grams of a reference."""
    slots = _slots(orders * (end - begin))
    mask = np.uint64(slots - 1)
    for slot in range(slots):
        table.keys[slot] = 0
    for k in range(begin, end):
        before = np.uint64(0)
        for n in range(min(orders, end - k)):
            key, slot = _find(before, np.uint64(numbers[k + n]), table.keys, mask)
            if table.keys[slot] == 0:
                table.keys[slot] = key
                table.most[slot] = 0
                table.owner[slot] = -1
            table.most[slot] += 1
            before = slot + np.uint64(1)


@kernel
def _compare(numbers, begin, end, gold_size, orders, table, c, row, at):
    """Statistics of candidate c against the reference in the table, from order ``at`` on."""
    slots = _slots(orders * gold_size)
    mask = np.uint64(slots - 1)
    for n in range(orders):
        gold = max(0, gold_size - n)
        # An order that the reference is too short for says nothing about the candidate.
        row[3 * (at + n)] = max(0, end - begin - n) if gold > 0 else 0
        row[3 * (at + n) + 1] = gold
        row[3 * (at + n) + 2] = 0
    for k in range(begin, end):
        before = np.uint64(0)
        for n in range(min(orders, end - k)):
            _, slot = _find(before, np.uint64(numbers[k + n]), table.keys, mask)
            if table.keys[slot] == 0:  # what begins with an absent n-gram is absent
                break
            if table.owner[slot] != c:
                table.owner[slot] = c
                table.left[slot] = table.most[slot]
            if table.left[slot] > 0:
                table.left[slot] -= 1
                row[3 * (at + n) + 2] += 1
            before = slot + np.uint64(1)


@helper(inline=True)
def _find(before, number, keys, mask):
    """Key of an n-gram, from the slot of its first part and the last unit, and its slot."""
    h = (number + before * np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xD6E8FEB86659FD93)
    h ^= h >> np.uint64(32)
    h *= np.uint64(0xD6E8FEB86659FD93)
    key = max(h, np.uint64(1))
    slot = (h >> np.uint64(20)) & mask
    while keys[slot] != 0 and keys[slot] != key:
        slot = (slot + np.uint64(1)) & mask
    return key, slot


@kernel
def _value(row, factor):
    """chrF of one row, by the arithmetic of `Chrf`, since ties between references are common."""
    precision, recall, orders = 0.0, 0.0, 0
    for i in range(0, len(row), 3):
        if row[i] > 0 and row[i + 1] > 0:
            precision += row[i + 2] / row[i]
            recall += row[i + 2] / row[i + 1]
            orders += 1
    if orders == 0:
        return 0.0
    precision /= orders
    recall /= orders
    below = factor * precision + recall
    return (1 + factor) * precision * recall / below if below != 0.0 else 0.0


@dataclass(frozen=True)
class Chrf(TextMetric):
    """F-measure of character n-grams, and of word n-grams where asked for.

    ``chrF = (1 + beta**2) P R / (beta**2 P + R)``, P and R means over the orders

    Parameters
    ----------
    char_order : int
        Longest n-gram of characters; white space is left out.
    word_order : int
        Longest n-gram of words: 0 is chrF, 2 is chrF++.
    beta : int
        How many times as much recall matters as precision.
    lowercase : bool
        Ignore case.

    Notes
    -----
    With several references the one of the highest sentence score counts.

    Examples
    --------
    >>> chrf = Chrf(char_order=2)
    >>> counts = chrf.counts(["abc", "abd"], [["abc"]] * 2)
    >>> counts.tolist()
    [[3, 3, 3, 2, 2, 2], [3, 3, 2, 2, 2, 1]]
    >>> chrf.costs(counts).round(3).tolist()
    [0.0, 0.417]
    """

    name: ClassVar[str] = "chrf"
    main: ClassVar[str] = "chrf"
    higher: ClassVar[bool] = True

    char_order: int = 6
    word_order: int = 0
    beta: int = 2
    lowercase: bool = False

    def __post_init__(self) -> None:
        if self.char_order < 1 or self.word_order < 0 or self.beta < 1:
            raise HopefearError(
                f"chrf with char_order={self.char_order}, word_order={self.word_order}, "
                f"beta={self.beta}: give at least 1, 0 and 1"
            )

    @property
    def columns(self) -> tuple[str, ...]:
        kinds = [f"char_{n + 1}" for n in range(self.char_order)]
        kinds += [f"word_{n + 1}" for n in range(self.word_order)]
        return tuple(f"{what}_{kind}" for kind in kinds for what in ("ours", "gold", "matched"))

    def costs(self, counts: ArrayLike) -> NDArray[np.float64]:
        """One minus sentence chrF."""
        return np.maximum(0.0, 1.0 - self._value(columns_of(counts, self)))

    def scores(self, sums: ArrayLike) -> Scores:
        return plain({"chrf": 100 * self._value(columns_of(sums, self))})

    def signature_for(self, n_references: int) -> str:
        prefix = f"chrF{self.beta}" + "+" * self.word_order
        return signed(prefix, _scorer(*self.parameters().values()), n_references)

    def _value(self, rows: Any) -> Any:
        """chrF between 0 and 1 of counts with their columns first."""
        precision = recall = orders = np.zeros(np.shape(rows)[1:])
        for i in range(0, len(rows), 3):
            ours, gold, hits = rows[i : i + 3]
            # Orders that one side is too short for are left out of both means.
            long_enough = (ours > 0) & (gold > 0)
            precision = precision + np.where(long_enough, ratio(hits, ours), 0.0)
            recall = recall + np.where(long_enough, ratio(hits, gold), 0.0)
            orders = orders + long_enough
        precision, recall = ratio(precision, orders), ratio(recall, orders)
        factor = self.beta**2
        return ratio((1 + factor) * precision * recall, factor * precision + recall)

    def line_counts(
        self, ours: Lines, which: np.ndarray, gold: Lines, starts: np.ndarray
    ) -> Counts:
        if self.lowercase:
            ours, gold = ours.lowered(), gold.lowered()
        orders = self.char_order, self.word_order
        return chrf_counts(ours, gold, which, starts, *orders, self.beta)


@functools.cache
def _scorer(char_order: int, word_order: int, beta: int, lowercase: bool) -> Any:
    from sacrebleu.metrics import CHRF

    return CHRF(char_order=char_order, word_order=word_order, beta=beta, lowercase=lowercase)

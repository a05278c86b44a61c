"""Statistics of BLEU from words as numbers, for millions of candidates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numba.extending import register_jitable

from hopefear.core.component import kernel
from hopefear.metrics.lists.base import checked_sets

ORDERS = 4
COLUMNS = (
    *(f"matched_{n}" for n in range(1, ORDERS + 1)),
    *(f"total_{n}" for n in range(1, ORDERS + 1)),
    "length",
    "reference_length",
)


class _Table(NamedTuple):
    """N-grams of the references of one list."""

    slots: np.ndarray  # int32[power of two]: n-gram + 1, 0 if empty
    keys: np.ndarray  # uint64[n-grams]
    most: np.ndarray  # int32[n-grams]: how often at most in one reference
    used: np.ndarray  # int32[n-grams]: how often so far in the text of ``owner``
    owner: np.ndarray  # int64[n-grams]


@dataclass(frozen=True)
class BleuCounts:
    """Counts of `Bleu` for text that is split into words and numbered already.

    Equal to sacreBLEU's with ``tokenize="none"``, as long as no two words share a number.

    Examples
    --------
    >>> words, ptr = np.array([1, 2, 3, 1, 2], np.uint64), np.array([0, 3, 5])
    >>> BleuCounts().word_counts(words, ptr, [0, 0], words, ptr[:2], [0, 1]).tolist()
    [[3, 2, 1, 0, 3, 2, 1, 0, 3, 3], [2, 1, 0, 0, 2, 1, 0, 0, 2, 3]]
    """

    name: ClassVar[str] = "bleu"

    @property
    def columns(self) -> tuple[str, ...]:
        return COLUMNS

    def word_counts(
        self,
        words: np.ndarray,
        ptr: np.ndarray,
        which: np.ndarray,
        reference_words: np.ndarray,
        reference_ptr: np.ndarray,
        reference_starts: np.ndarray,
    ) -> np.ndarray:
        """Counts (int32), one row for each candidate.

        Parameters
        ----------
        words, ptr : uint64, int64 arrays
            Candidate c has the words ``words[ptr[c]:ptr[c + 1]]``.
        which : int64 array
            The set of references of each candidate. Neighbours of the same set share the work on
            it.
        reference_words, reference_ptr : uint64, int64 arrays
            The same for references.
        reference_starts : int64 array
            Set i has the references ``reference_starts[i] .. reference_starts[i + 1] - 1``.
        """
        ptr, reference_ptr = np.asarray(ptr, np.int64), np.asarray(reference_ptr, np.int64)
        which, starts = checked_sets(which, reference_starts)
        grams = ORDERS * int(np.diff(reference_ptr[starts]).max(initial=0))
        table = _Table(
            np.zeros(1 << (2 * grams + 16).bit_length(), np.int32),
            np.zeros(grams, np.uint64),
            np.zeros(grams, np.int32),
            np.zeros(grams, np.int32),
            np.zeros(grams, np.int64),
        )
        counts = np.zeros((len(which), len(COLUMNS)), np.int32)
        with np.errstate(over="ignore"):
            _count(words, ptr, which, reference_words, reference_ptr, starts, table, counts)
        return counts


@kernel
def _count(words, ptr, which, reference_words, reference_ptr, starts, table, counts):
    last = -1
    for c in range(len(which)):
        i = which[c]
        if i != last:
            _learn(reference_words, reference_ptr, starts[i], starts[i + 1], table)
            last = i
        begin, end = ptr[c], ptr[c + 1]
        size = end - begin
        for k in range(begin, end):
            h = np.uint64(0)
            for n in range(min(ORDERS, end - k)):
                h = _mix(h, words[k + n])
                g = table.slots[_slot(table, h)] - 1
                if g < 0:  # what begins with an n-gram that is in no reference is in none
                    break
                if table.owner[g] != c:
                    table.owner[g] = c
                    table.used[g] = 0
                table.used[g] += 1
                if table.used[g] <= table.most[g]:
                    counts[c, n] += 1
        for n in range(ORDERS):
            counts[c, ORDERS + n] = max(0, size - n)
        counts[c, 2 * ORDERS] = size
        counts[c, 2 * ORDERS + 1] = _closest(size, reference_ptr, starts[i], starts[i + 1])


@register_jitable
def _learn(words, ptr, first, stop, table):
    """Fill the table with the n-grams of these references, each as often as in one at most."""
    table.slots[:] = 0
    grams = 0
    for r in range(first, stop):
        for k in range(ptr[r], ptr[r + 1]):
            h = np.uint64(0)
            for n in range(min(ORDERS, ptr[r + 1] - k)):
                h = _mix(h, words[k + n])
                slot = _slot(table, h)
                if table.slots[slot] == 0:
                    table.keys[grams] = h
                    table.most[grams] = 0
                    table.owner[grams] = -1
                    grams += 1
                    table.slots[slot] = grams
                g = table.slots[slot] - 1
                if table.owner[g] != -2 - r:
                    table.owner[g] = -2 - r
                    table.used[g] = 0
                table.used[g] += 1
                table.most[g] = max(table.most[g], table.used[g])


@register_jitable
def _slot(table, h):
    """Slot of an n-gram, or the empty one where it would go."""
    mask = np.uint64(table.slots.size - 1)
    slot = h & mask
    while table.slots[slot] != 0 and table.keys[table.slots[slot] - 1] != h:
        slot = (slot + np.uint64(1)) & mask
    return slot


@register_jitable
def _mix(h, word):
    """Hash of an n-gram from that of its first words and the last."""
    h = (h + word + np.uint64(0x9E3779B97F4A7C15)) * np.uint64(0xD6E8FEB86659FD93)
    h ^= h >> np.uint64(32)
    h *= np.uint64(0xD6E8FEB86659FD93)
    return h ^ (h >> np.uint64(29))


@register_jitable
def _closest(size, ptr, first, stop):
    """Length of the reference closest in length, the shorter of two that are equally close."""
    best = ptr[first + 1] - ptr[first]
    for r in range(first + 1, stop):
        length = ptr[r + 1] - ptr[r]
        if abs(length - size) < abs(best - size) or (
            abs(length - size) == abs(best - size) and length < best
        ):
            best = length
    return best

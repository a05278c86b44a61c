"""Marks that say which coordinates may have moved, so that nothing else need be looked at.

A state has millions of coordinates, and a round of a shard moves few of them. Eight neighbours, an
*octet*, share a mark: their totals are a cache line, so that none is visited in vain, and they are
merged as one vector. A mark is a byte, since writing one costs a learner less than to look up the
bits of others beside it.
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, inlined, lean
from hopefear.core.interfaces import Readout, Row

OCTET = np.uint64(8)
_SHIFT, _MARK, _ONE = np.uint64(3), np.uint8(1), np.uint64(1)
_TURNED = np.uint64(0 if sys.byteorder == "little" else 7)  # where the first mark of a word is


class Marks(NamedTuple):
    kept: Any  # memory of the readout that is watched
    moved: np.ndarray  # uint8[octets]: where a coordinate has moved
    begun: np.ndarray  # uint8[octets]: where a feature begins that has moved as a whole


@component(Row)
class Marker(NamedTuple):
    """A row that marks coordinates on their way to another row."""

    row: Any
    moved: np.ndarray
    begun: np.ndarray

    def additive(self):
        return self.row.additive()

    def ask(self, j):
        self.row.ask(j)

    def put(self, j, g):
        mark(self.moved, j)
        self.row.put(j, g)

    def hold(self, values, at, width):
        self.row.hold(values, at, width)

    def spread(self, base, values, at, width):
        mark(self.begun, base)
        self.row.spread(base, values, at, width)


@component(Readout)
class Marked(NamedTuple):
    """Any readout, and beside it marks of the coordinates that moved.

    Where books are settled, lines that are not zero are marked too: they earn something then, and
    may be written anew.

    Parameters
    ----------
    readout : Readout
        What is really kept.

    Examples
    --------
    >>> from hopefear.readouts.last import Last
    >>> readout = Marked(Last())
    >>> memory = readout.init_memory(100, 1)
    >>> readout.settle(memory, (0.0, 0.0, 0.0), 65, 0.5, 1.0, 0.0)
    >>> np.flatnonzero(memory.moved)
    array([8])
    """

    readout: Any

    def refusal(self, loss, offers):
        return self.readout.refusal(loss, offers)

    def keeps_scale(self):
        return self.readout.keeps_scale()

    def replays(self):
        return self.readout.replays()

    def init_memory(self, n, window):
        return Marks(self.readout.init_memory(n, window), new_marks(n), new_marks(n))

    def with_room(self, memory, ticks, entries):
        return memory._replace(kept=self.readout.with_room(memory.kept, ticks, entries))

    def afresh(self, memory):
        self.readout.afresh(memory.kept)

    def books(self, memory):
        return self.readout.books(memory.kept)

    def watched(self, memory, row):
        return Marker(self.readout.watched(memory.kept, row), memory.moved, memory.begun)

    def close(self, memory, clock):
        self.readout.close(memory.kept, clock)

    def now(self, memory):
        return self.readout.now(memory.kept)

    def expect_touch(self, memory, j):
        self.readout.expect_touch(memory.kept, j)

    def alone(self):
        return self.readout.alone()

    def touch(self, memory, now, j, g, m0, r0, f0, m1, r1, f1):
        self.readout.touch(memory.kept, now, j, g, m0, r0, f0, m1, r1, f1)

    def survive(self, memory):
        self.readout.survive(memory.kept)

    def full(self, memory):
        return self.readout.full(memory.kept)

    def settle(self, memory, now, j, m, r, f):
        if m != 0.0:
            mark(memory.moved, j)
        self.readout.settle(memory.kept, now, j, m, r, f)


def new_marks(n: int) -> np.ndarray:
    """No marks, for so many coordinates; a whole number of words of eight.

    >>> new_marks(65).size
    16
    """
    return np.zeros(-(-n // 64) * 8, np.uint8)


def cover(moved: np.ndarray, begun: np.ndarray, width: int) -> None:
    """Mark all that features of this width may reach which begin where it is marked; forget these.

    >>> moved, begun = new_marks(64), new_marks(64)
    >>> begun[1] = 1
    >>> cover(moved, begun, 11)
    >>> moved
    array([0, 1, 1, 1, 0, 0, 0, 0], dtype=uint8)
    """
    if not begun.any():
        return
    reached, further = 0, (width + 6) // 8
    while reached < further:
        step = min(reached + 1, further - reached)
        begun[step:] |= begun[:-step]
        reached += step
    moved |= begun
    begun[:] = 0


@inlined
def mark(marks, j):
    """Mark the octet of coordinate ``j``."""
    marks[np.uint64(j) >> _SHIFT] = _MARK


@lean
def mark_all(marks, ids):
    """Mark several coordinates."""
    for k in range(ids.size):
        mark(marks, ids[k])


def octets_of(marks: np.ndarray) -> np.ndarray:
    """Which octets are marked, in rising order.

    >>> octets_of(np.array([0, 1, 0, 0, 0, 1, 0, 0], np.uint8))
    array([1, 5], dtype=uint64)
    """
    octets = np.empty(np.count_nonzero(marks) + 1, np.uint64)
    return octets[: list_all(marks.view(np.uint64)[None], octets)]


@lean
def list_all(words, octets):
    """Write down which octets are marked; their number."""
    return list_octets(words, 0, words.shape[1], octets)


@inlined
def list_octets(words, first, last, octets):
    """Write down which octets some shard has marked; their number.

    ``words`` are the marks of all shards, eight in a word; those from ``first`` to ``last - 1`` are
    looked at. One more octet is written than there are.
    """
    size = 0
    for w in range(first, last):
        word = united(words, w)
        if word != 0:
            for c in range(OCTET):
                octets[size] = OCTET * np.uint64(w) + c
                size += np.int64((word >> OCTET * (c ^ _TURNED)) & _ONE)
    return size


@inlined
def united(words, w):
    """The marks that any shard has in a word."""
    word = words[0, w]
    for k in range(1, words.shape[0]):
        word |= words[k, w]
    return word

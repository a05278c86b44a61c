"""Bits that say which coordinates have moved, so that nothing else need be looked at.

A state has millions of coordinates, and a round of a shard moves few of them. A bit for each takes
a thirty-second of the weights, which stays in the cache while a learner learns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, inlined, intrinsic, lean, overload, types
from hopefear.core.interfaces import Readout, Row

_ALL, _ONE, _SIX, _LAST = np.uint64(0xFFFFFFFFFFFFFFFF), np.uint64(1), np.uint64(6), np.uint64(63)


class Marks(NamedTuple):
    kept: Any  # memory of the readout that is watched
    bits: np.ndarray  # uint64[words]: those of coordinates that moved


@component(Row)
class Marker(NamedTuple):
    """A row that marks coordinates on their way to another row."""

    row: Any
    bits: np.ndarray

    def additive(self):
        return self.row.additive()

    def ask(self, j):
        self.row.ask(j)

    def put(self, j, g):
        mark(self.bits, j)
        self.row.put(j, g)

    def hold(self, values, at, width):
        self.row.hold(values, at, width)

    def spread(self, base, values, at, width):
        mark_stretch(self.bits, base, width)
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
    >>> memory.bits
    array([0, 2], dtype=uint64)
    """

    readout: Any

    def refusal(self, loss, offers):
        return self.readout.refusal(loss, offers)

    def keeps_scale(self):
        return self.readout.keeps_scale()

    def replays(self):
        return self.readout.replays()

    def init_memory(self, n, window):
        return Marks(self.readout.init_memory(n, window), new_bits(n))

    def with_room(self, memory, ticks, entries):
        return memory._replace(kept=self.readout.with_room(memory.kept, ticks, entries))

    def afresh(self, memory):
        self.readout.afresh(memory.kept)

    def books(self, memory):
        return self.readout.books(memory.kept)

    def watched(self, memory, row):
        return Marker(self.readout.watched(memory.kept, row), memory.bits)

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
            mark(memory.bits, j)
        self.readout.settle(memory.kept, now, j, m, r, f)


def new_bits(n: int) -> np.ndarray:
    """No marks, for so many coordinates.

    >>> new_bits(65).size
    2
    """
    return np.zeros(-(-n // 64), np.uint64)


def ids_of(bits: np.ndarray) -> np.ndarray:
    """The coordinates that are marked, in rising order.

    >>> ids_of(np.array([5, 1], np.uint64))
    array([ 0,  2, 64])
    """
    ids = np.empty(count(bits), np.int64)
    list_marks(bits, ids)
    return ids


@inlined
def mark(bits, j):
    """Mark coordinate ``j``."""
    j = np.uint64(j)
    bits[j >> _SIX] |= _ONE << (j & _LAST)


@inlined
def mark_stretch(bits, base, width):
    """Mark coordinates ``base`` to ``base + width - 1``."""
    base = np.uint64(base)
    end = base + np.uint64(width) - _ONE
    first, last = base >> _SIX, end >> _SIX
    low, high = _ALL << (base & _LAST), _ALL >> (_LAST - (end & _LAST))
    if first == last:
        bits[first] |= low & high
    else:
        bits[first] |= low
        for k in range(first + _ONE, last):
            bits[k] = _ALL
        bits[last] |= high


@lean
def mark_all(bits, ids):
    """Mark several coordinates."""
    for k in range(ids.size):
        mark(bits, ids[k])


@lean
def count(bits):
    """How many coordinates are marked."""
    n = 0
    for k in range(bits.size):
        n += ones(bits[k])
    return n


@lean
def list_marks(bits, ids):
    """Write down which coordinates are marked."""
    n = 0
    for k in range(bits.size):
        word = bits[k]
        while word != 0:
            ids[n] = 64 * k + lowest(word)
            word &= word - _ONE
            n += 1


def lowest(word):
    """Place of the lowest bit of a word that is not zero.

    >>> lowest(np.uint64(12))
    2
    """
    word = int(word)
    return (word & -word).bit_length() - 1


@overload(lowest)
def _lowest(word):
    return lambda word: _trailing_zeros(word)


def ones(word):
    """How many bits of a word are set.

    >>> ones(np.uint64(12))
    2
    """
    return int(word).bit_count()


@overload(ones)
def _ones(word):
    return lambda word: _count_ones(word)


@intrinsic
def _count_ones(typing_context, word):
    def generate(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate


@intrinsic
def _trailing_zeros(typing_context, word):
    def generate(context, builder, signature, args):
        return builder.cttz(args[0], context.get_constant(types.boolean, True))

    return types.int64(types.uint64), generate

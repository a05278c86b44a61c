"""Numbers of the features of one arc, or of an arc and a word more, computed when they are needed.

A feature is a 64-bit sum: a seed for its template and, for each field, a random value of what
stands there times an odd number of the field's own. No string is made and no table is looked
into; the sum, spread and cut to size, is the feature's coordinate. Of a dictionary it is cut to 32
bits and looked up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import component, helper, kernel, shared_kernel
from hopefear.core.interfaces import ArcFeatures
from hopefear.features.arcs.templates import (
    BETWEEN,
    COLUMNS,
    FIRST_MORPH,
    REACH,
    SECOND_MORPH,
    ArcProgram,
    ArcTemplates,
)

# Rows before the root, the root, and rows behind the last word.
BEFORE, EXTRA = REACH, 2 * REACH + 1
# The word that a child without a sibling before it has for one: a row in front of the root.
NONE = -1
_ODD = np.uint64(0x9E3779B97F4A7C15)
_SPREAD = np.uint64(0xD6E8FEB86659FD93)
_LEFT = np.uint64(0x5851F42D4C957F2D)
_OUTSIDE = np.uint64(0x14057B7EF767814F)
_WIDTH = len(COLUMNS)
_DISTANCES = np.array([0, 1, 2, 3, 4, 5, 6, 6, 7, 7, 7, 8, 8, 8, 8, 8, 9], np.uint64)
_MOST_COUNTED = 3
_MOST_COARSE = 64


class Pad(NamedTuple):
    """Buffer of the features of one part."""

    keys: np.ndarray  # uint32
    values: np.ndarray  # uint64: values of the fields of the templates


class Lookup(NamedTuple):
    """Hash table from keys of features to their numbers, with linear probing."""

    keys: np.ndarray  # uint32[slots]
    numbers: np.ndarray  # int32[slots]: -1 where the slot is empty


@component(ArcFeatures)
class HashedArcs(NamedTuple):
    """Templates, and how many coordinates their features share, or which of them are known.

    Parameters
    ----------
    program : Program
        Compiled templates.
    plain : int
        Coordinates of features without a relation; a power of two, unless there is a dictionary.
    rows : int
        Places where the weights of a feature with relations may begin; likewise.
    known, known_rows : Lookup
        The dictionary of either kind; without slots there is none.
    """

    program: ArcProgram
    plain: int
    rows: int
    known: Lookup
    known_rows: Lookup

    def new_buffer(self, data):
        code = self.program.code
        longest = 1 + int(np.diff(data.morph_ptr).max(initial=0))
        max_features = int(code[3:20:5].max()) * (_MOST_COARSE + longest * longest)
        return Pad(
            np.zeros(max_features, np.uint32), np.zeros(int(code[1:20:5].max()) + 1, np.uint64)
        )

    def max_keys(self, data):
        return 4 * len(self.new_buffer(data).keys)

    def arc_keys(self, x, h, m, pad):
        side = np.uint64(0) if h < m else _LEFT
        return keys_of(self, 0, x, h, m, m, h, m, side, pad)

    def label_keys(self, x, h, m, pad):
        side = np.uint64(0) if h < m else _LEFT
        return keys_of(self, 1, x, h, m, m, h, m, side, pad)

    def sibling_keys(self, x, h, s, m, pad):
        side = np.uint64(0) if h < m else _LEFT
        s = s if s > 0 else NONE
        return keys_of(self, 2, x, h, s, m, s, m, side, pad)

    def outermost_child_keys(self, x, h, m, pad):
        side = _ODD if h < m else _ODD + _LEFT
        end = x.data.starts[x.i + 1] - x.data.starts[x.i] + 1
        return keys_of(self, 2, x, h, m, end, m, m, side, pad)

    def grandparent_keys(self, x, g, h, m, pad):
        side = np.uint64(0) if h < m else _LEFT
        if (g < h) != (h < m):
            side += _OUTSIDE if (m - g) * (h - g) < 0 else _ODD
        return keys_of(self, 3, x, g, h, m, g, m, side, pad)


def hashed_arcs(templates: ArcTemplates, plain_bits: int, row_bits: int) -> HashedArcs:
    """Returns hashed features of ``templates``: ``plain_bits`` and ``row_bits`` bits wide."""
    none = Lookup(np.empty(0, np.uint32), np.empty(0, np.int32))
    return HashedArcs(templates.program(), 1 << plain_bits, 1 << row_bits, none, none)


def lookup(keys: np.ndarray, step: int = 1) -> Lookup:
    """Slots for keys, which get the numbers 0, ``step``, … in their order.

    >>> table = lookup(np.array([7, 2**31], np.uint32))
    >>> table.keys.size, sorted(table.numbers.tolist())[-2:]
    (8, [0, 1])
    """
    size = 1 << int(2 * len(keys) + 1).bit_length()
    table = Lookup(np.zeros(size, np.uint32), np.full(size, -1, np.int32))
    fill_slots(table, keys, step)
    return table


@kernel
def fill_slots(table, keys, step):
    """Put every key into the first slot that is free for it."""
    for k in range(keys.size):
        at = np.int64(keys[k]) & (table.keys.size - 1)
        while table.numbers[at] >= 0:
            at = (at + 1) & (table.keys.size - 1)
        table.keys[at] = keys[k]
        table.numbers[at] = k * step


@helper
def keys_of(arcs, family, x, a, b, c, u, v, side, pad):
    """Write the features of words a, b and c into the pad, as numbers; returns how many."""
    table, size = arcs.known, arcs.plain
    if family == 1:
        table, size = arcs.known_rows, arcs.rows
    listed = table.keys.size > 0
    size = 1 << 32 if listed else size
    count = spell(arcs.program, family, x.data, x.i, a, b, c, u, v, side, size, pad)
    return look_up(table, pad, count) if listed else count


@helper
def look_up(table, pad, count):
    """Put numbers in the place of keys, and leave out what is unknown; returns how many stay."""
    mask, n_found = table.keys.size - 1, 0
    for k in range(count):
        key = pad.keys[k]
        at = np.int64(key) & mask
        while table.numbers[at] >= 0 and table.keys[at] != key:
            at = (at + 1) & mask
        if table.numbers[at] >= 0:
            pad.keys[n_found] = table.numbers[at]
            n_found += 1
    return n_found


@shared_kernel
def spell(program, family, data, i, a, b, c, u, v, side, size, pad):
    """Write the features of words a, b and c into the pad; returns how many.

    Lists and distances are those of the words u and v. ``size`` is a power of two.
    """
    base, code = data.starts[i] + EXTRA * i + BEFORE, program.code
    _fields(code, code[5 * family], code[5 * family + 1], data, base, a, b, c, u, v, pad.values)
    keys, values, mask, count = pad.keys, pad.values, np.uint64(size - 1), 0
    first, second = base + u, base + v
    begin1, end1 = data.morph_ptr[first], data.morph_ptr[first + 1]
    begin2, end2 = data.morph_ptr[second], data.morph_ptr[second + 1]
    low, high = min(u, v), max(u, v)
    tags_between = np.uint64(0)
    if low >= 0:
        for k in range(base + low + 1, base + high):
            tags_between |= np.uint64(1) << np.uint64(data.coarse[k])
    at, seed = np.int64(code[5 * family + 2]), np.int64(code[5 * family + 4])
    for t in range(code[5 * family + 3]):
        h, kinds, stop = program.seeds[seed + t] + side, code[at + 1], at + 2 + code[at]
        odd = _ODD
        for s in range(at + 2, stop):
            h += values[code[s]] * odd
            odd += _ODD + _ODD
        at = stop
        if kinds == 0:
            keys[count] = _cut(h, mask)
            count += 1
            continue
        if kinds & BETWEEN:
            remaining, tag = tags_between, np.uint64(1)
            while remaining != 0:
                if remaining & np.uint64(1):
                    keys[count] = _cut(h + tag * _SPREAD, mask)
                    count += 1
                remaining >>= np.uint64(1)
                tag += np.uint64(1)
        elif kinds == FIRST_MORPH:
            for p in range(begin1, end1):
                keys[count] = _cut(h + data.morphs[p] * odd, mask)
                count += 1
        elif kinds == SECOND_MORPH:
            odd += _ODD + _ODD
            for q in range(begin2, end2):
                keys[count] = _cut(h + data.morphs[q] * odd, mask)
                count += 1
        else:
            factor = odd + _ODD + _ODD
            for p in range(begin1, end1):
                g = h + data.morphs[p] * odd
                for q in range(begin2, end2):
                    keys[count] = _cut(g + data.morphs[q] * factor, mask)
                    count += 1
    return count


@helper(inline=True)
def _cut(h, mask):
    """The low bits of a sum whose high bits have been spread over them."""
    h ^= h >> np.uint64(32)
    h *= _SPREAD
    return np.uint32((h >> np.uint64(32)) & mask)


@helper
def _fields(code, begin, count, data, base, a, b, c, u, v, values):
    """Computes the value of every field of the templates."""
    for f in range(count):
        role, offset, column = code[begin + 3 * f], code[begin + 3 * f + 1], code[begin + 3 * f + 2]
        if role >= 0:
            at = a if role == 0 else (b if role == 1 else c)
            values[f] = data.words[(base + at + offset) * _WIDTH + column]
        elif column == _WIDTH:
            values[f] = (_distance(abs(u - v)) + np.uint64(1)) * _SPREAD
        else:
            values[f] = (_between(data, base, u, v, column) + np.uint64(1)) * _SPREAD


@helper
def _distance(length):
    if length < _DISTANCES.size:
        return _DISTANCES[length]
    return np.uint64(10) if length <= 30 else np.uint64(11)


@helper
def _between(data, base, u, v, column):
    """Counts punctuation, or words like the first, between two words; at most 3."""
    low, high, count = min(u, v), max(u, v), 0
    if low < 0:
        return np.uint64(0)
    like = data.coarse[base + u]
    for k in range(base + low + 1, base + high):
        if column == _WIDTH + 1:
            count += data.marks[k] != 0
        else:
            count += data.coarse[k] == like
        if count == _MOST_COUNTED:
            break
    return np.uint64(count)

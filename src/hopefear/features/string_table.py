"""Numbers for strings: a hash table that kernels fill and ask, exact for every string.

Millions of strings are looked at once, most of them known already; what takes time is waiting for
memory. So strings come in stretches of bytes, and slots are asked for before they are needed.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

import numpy as np

from hopefear.core.component import inlined, kernel, prefetch
from hopefear.features.checks import frozen
from hopefear.features.ngram_tables import mix
from hopefear.features.strings import Strings
from hopefear.features.words import load_part, same_bytes

_BATCH = 1 << 18  # strings to hold as bytes at a time
_AHEAD = 16  # slots to ask for before they are needed


class _Table(NamedTuple):
    slots: np.ndarray  # uint64[2 * power of two]: hash; number + 1, 0 if empty
    hashes: np.ndarray  # uint64[room]
    offsets: np.ndarray  # int64[room + 1]
    text: np.ndarray  # uint8
    used: np.ndarray  # int64[2]: strings, bytes of text


class StringTable:
    """Distinct strings, numbered in order of first appearance.

    Examples
    --------
    >>> table = StringTable()
    >>> table.intern(["hope", "fear", "hope"]).tolist(), table.strings().get(1)
    ([0, 1, 0], 'fear')
    >>> table.find(Strings.pack(["fear", "joy"])).tolist()
    [1, -1]
    """

    def __init__(self, room: int = 1 << 10) -> None:
        self._table = _empty(room, 16 * room)

    @classmethod
    def of(cls, strings: Strings) -> StringTable:
        """A table of these; two of them may be the same, and then :attr:`size` is smaller."""
        table = cls(max(strings.size, 16))
        table._ask(strings.text, strings.offsets[:-1], strings.offsets[1:], True)
        return table

    @property
    def size(self) -> int:
        return int(self._table.used[0])

    def strings(self) -> Strings:
        """All strings by their numbers."""
        size, length = self._table.used.tolist()
        return Strings(
            frozen(self._table.text[:length].copy()), frozen(self._table.offsets[: size + 1].copy())
        )

    def intern(self, strings: Iterable[str]) -> np.ndarray:
        """Numbers (int32) of strings; new ones get the next.

        TypeError where one is no string, UnicodeEncodeError where one is no Unicode text.
        """
        numbers = [np.empty(0, np.int32)]
        strings = iter(strings)
        while batch := list(islice(strings, _BATCH)):
            numbers.append(self._ask(*_as_bytes(batch), True))
        return np.concatenate(numbers)

    def intern_spans(self, text: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Numbers (int32) of the stretches ``text[begins[e]:ends[e]]`` of UTF-8 bytes."""
        numbers = [np.empty(0, np.int32)]
        for e in range(0, len(begins), _BATCH):
            numbers.append(self._ask(text, begins[e : e + _BATCH], ends[e : e + _BATCH], True))
        return np.concatenate(numbers)

    def find(self, strings: Strings) -> np.ndarray:
        """Numbers (int32) of strings, -1 where they are not in the table."""
        return self._ask(strings.text, strings.offsets[:-1], strings.offsets[1:], False)

    def _ask(
        self, text: np.ndarray, begins: np.ndarray, ends: np.ndarray, grow: bool
    ) -> np.ndarray:
        if grow and len(begins):
            self._make_room(len(begins), int(ends[-1] - begins[0]))
        with np.errstate(over="ignore"):  # uncompiled kernels warn where compiled ones do not
            return _numbers(self._table, text, begins, ends, grow)

    def _make_room(self, strings: int, length: int) -> None:
        old = self._table
        size, used = old.used.tolist()
        if size + strings <= len(old.hashes) and used + length <= len(old.text):
            return
        new = _empty(max(size + strings, 2 * size), max(used + length, 2 * used))
        new.hashes[:size] = old.hashes[:size]
        new.offsets[: size + 1] = old.offsets[: size + 1]
        new.text[:used] = old.text[:used]
        new.used[:] = old.used
        _fill(new)
        self._table = new


def _empty(strings: int, text: int) -> _Table:
    slots = 1 << max(4, (4 * strings // 3).bit_length())
    return _Table(
        np.zeros(2 * slots, np.uint64),
        np.empty(strings, np.uint64),
        np.zeros(strings + 1, np.int64),
        np.empty(text, np.uint8),
        np.zeros(2, np.int64),
    )


def _as_bytes(batch: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Strings one behind the other, and where each begins and ends."""
    text = np.frombuffer("\0".join([*batch, ""]).encode(), np.uint8)
    ends = np.flatnonzero(text == 0)
    if len(ends) == len(batch):
        return text, np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1]), ends
    packed = Strings.pack(batch)  # a string holds the separator
    return packed.text, packed.offsets[:-1], packed.offsets[1:]


@inlined
def _slot(slots, h):
    return np.int64(h & np.uint64(len(slots) // 2 - 1)) * 2


@kernel
def _fill(table):
    slots = table.slots
    used = table.used[0]
    for i in range(used):
        prefetch(slots, _slot(slots, table.hashes[min(i + _AHEAD, used - 1)]))
        slot = _slot(slots, table.hashes[i])
        while slots[slot + 1] != 0:
            slot = (slot + 2) & (len(slots) - 1)
        slots[slot] = table.hashes[i]
        slots[slot + 1] = np.uint64(i + 1)


@kernel
def _numbers(table, text, begins, ends, grow):
    n = len(begins)
    slots = table.slots
    hashes = np.empty(n, np.uint64)
    for e in range(n):
        size = ends[e] - begins[e]
        h = np.uint64(size)
        for p in range(begins[e], ends[e], 8):
            h = mix(h, load_part(text, p, min(8, ends[e] - p)))
        hashes[e] = h
    numbers = np.empty(n, np.int32)
    for e in range(n):
        prefetch(slots, _slot(slots, hashes[min(e + _AHEAD, n - 1)]))
        h, begin, size = hashes[e], begins[e], ends[e] - begins[e]
        slot = _slot(slots, h)
        number = -1
        while slots[slot + 1] != 0:
            if slots[slot] == h:
                i = np.int64(slots[slot + 1]) - 1
                first = table.offsets[i]
                if table.offsets[i + 1] - first == size and same_bytes(
                    table.text, first, text, begin, size
                ):
                    number = i
                    break
            slot = (slot + 2) & (len(slots) - 1)
        if number < 0 and grow:
            number = table.used[0]
            first = table.used[1]
            for k in range(size):
                table.text[first + k] = text[begin + k]
            table.offsets[number + 1] = first + size
            table.hashes[number] = h
            slots[slot] = h
            slots[slot + 1] = np.uint64(number + 1)
            table.used[0] = number + 1
            table.used[1] = first + size
        numbers[e] = number
    return numbers

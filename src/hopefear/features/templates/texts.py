"""Hashes of what views make of the distinct strings of a column.

A part of an attribute is known by a 64-bit hash of its string, which is the same in every process
and for every file, so a model needs no strings to recognise the attributes of new text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hopefear.core.component import inlined, kernel
from hopefear.core.hashing import mix
from hopefear.features.templates.spec import View
from hopefear.features.templates.views import LISTS, MAPS


class Values(NamedTuple):
    """String i has the values ``hashes[ptr[i]:ptr[i + 1]]``, in the order of ``views.seen``."""

    ptr: np.ndarray  # int64[strings + 1]
    hashes: np.ndarray  # uint64


class Packed(NamedTuple):
    """Strings as code points: string i is ``points[ends[i] - sizes[i]:ends[i]]``."""

    points: np.ndarray  # uint32
    ends: np.ndarray  # int64
    sizes: np.ndarray  # int64


class Types:
    """The distinct strings of one column, and every view of them worked out once.

    Parameters
    ----------
    strings : sequence of str
        The distinct strings.

    Examples
    --------
    >>> types = Types(["going", "a"])
    >>> types.values((View("suffix", (3,)),)).ptr.tolist()
    [0, 1, 1]
    """

    def __init__(self, strings: Sequence[str]) -> None:
        self._mapped: dict[tuple[View, ...], Sequence[str]] = {(): strings}
        self._packed: dict[tuple[View, ...], Packed] = {}

    def mapped(self, views: tuple[View, ...]) -> Sequence[str]:
        """The strings through views that give one string each."""
        if views not in self._mapped:
            function = MAPS[views[-1].name]
            self._mapped[views] = list(map(function, self.mapped(views[:-1])))
        return self._mapped[views]

    def values(self, views: tuple[View, ...]) -> Values:
        """Hashes of the strings through any views; only the last may give none or several."""
        if not views or views[-1].name in MAPS:
            packed = self._pack(views)
            return _whole(packed)
        name, args = views[-1]
        if name in ("prefix", "suffix"):
            return _affixes(self._pack(views[:-1]), int(args[0]), name == "suffix")
        if name == "substrings":
            return _all_substrings(self._pack(views[:-1]), int(args[0]), int(args[1]))
        lists = [LISTS[name](text, *args) for text in self.mapped(views[:-1])]
        ptr = _pointers(np.fromiter(map(len, lists), np.int64, len(lists)))
        return Values(ptr, hashes_of([value for values in lists for value in values]))

    def _pack(self, views: tuple[View, ...]) -> Packed:
        if views not in self._packed:
            self._packed[views] = pack(self.mapped(views))
        return self._packed[views]


def pack(strings: Sequence[str]) -> Packed:
    """Code points of strings; lone surrogates, which no file can hold, become ``?``."""
    joined = "".join(strings).encode("utf-32-le", "replace")
    sizes = np.fromiter(map(len, strings), np.int64, len(strings))
    return Packed(np.frombuffer(joined, "<u4").astype(np.uint32), np.cumsum(sizes), sizes)


def hashes_of(strings: Sequence[str]) -> np.ndarray:
    """Hash of each string.

    >>> int(hashes_of(["hope"])[0]) == int(hashes_of(["hope"])[0])
    True
    """
    return _whole(pack(strings)).hashes


def _whole(packed: Packed) -> Values:
    return Values(
        np.arange(len(packed.ends) + 1), _hash(packed, packed.ends - packed.sizes, packed.ends)
    )


def _affixes(packed: Packed, size: int, last: bool) -> Values:
    long_enough = packed.sizes >= size
    ptr = _pointers(long_enough)
    ends = packed.ends[long_enough]
    begins = ends - (size if last else packed.sizes[long_enough])
    return Values(ptr, _hash(packed, begins, begins + size))


def _all_substrings(packed: Packed, low: int, high: int) -> Values:
    sizes = packed.sizes
    most = np.zeros(len(sizes), np.int64)
    for n in range(low, high + 1):
        most += np.maximum(sizes - n + 1, 0)
    hashes = np.empty(int(most.sum()), np.uint64)
    ptr = np.zeros(len(sizes) + 1, np.int64)
    room = 1 << (2 * int(most.max(initial=0))).bit_length()
    with np.errstate(over="ignore"):  # hashes wrap; only uncompiled kernels warn
        used = _substrings(
            packed, low, high, hashes, ptr, np.zeros(room, np.int64), np.zeros(room, np.uint64)
        )
    return Values(ptr, hashes[:used].copy())


def _pointers(counts: np.ndarray) -> np.ndarray:
    ptr = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=ptr[1:])
    return ptr


def _hash(packed: Packed, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return _hash_spans(packed.points, begins, ends)


@inlined
def _finish(h, size):
    return mix(h, np.uint64(size))


@kernel
def _hash_spans(points, begins, ends):
    hashes = np.empty(len(begins), np.uint64)
    for i in range(len(begins)):
        h = np.uint64(0)
        for p in range(begins[i], ends[i]):
            h = mix(h, np.uint64(points[p]))
        hashes[i] = _finish(h, ends[i] - begins[i])
    return hashes


@kernel
def _substrings(packed, low, high, hashes, ptr, stamps, marks):
    """Hashes of the distinct substrings of every string; ``stamps`` say whose a mark is."""
    used = 0
    for i in range(len(packed.ends)):
        begin, end = packed.ends[i] - packed.sizes[i], packed.ends[i]
        for first in range(begin, end):
            h = np.uint64(0)
            for p in range(first, min(end, first + high)):
                h = mix(h, np.uint64(packed.points[p]))
                size = p - first + 1
                if size < low:
                    continue
                value = _finish(h, size)
                slot = np.int64(value & np.uint64(len(marks) - 1))
                while stamps[slot] == i + 1 and marks[slot] != value:
                    slot = (slot + 1) & (len(marks) - 1)
                if stamps[slot] != i + 1:
                    stamps[slot] = i + 1
                    marks[slot] = value
                    hashes[used] = value
                    used += 1
        ptr[i + 1] = used
    return used

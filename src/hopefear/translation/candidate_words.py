"""Words of candidates, some lists at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from hopefear.core.arrays import Strings
from hopefear.data.files import PADDING
from hopefear.data.moses.lists import TuningLists
from hopefear.data.moses.words import NEWLINE, split_lines
from hopefear.errors import HopefearError
from hopefear.translation.derived_kernels import Grams, write_lines

# Lists that are looked at together: enough to be fast, few enough to be small.
_BLOCK = 500


class Words(NamedTuple):
    """Candidate c of a block has the words ``ptr[c] .. ptr[c + 1] - 1``."""

    starts: np.ndarray  # int64[lists + 1]: candidates of each list
    text: np.ndarray  # uint8
    ptr: np.ndarray  # int64[candidates + 1]
    begins: np.ndarray  # int64[words]
    ends: np.ndarray  # int64[words]
    words: np.ndarray  # uint64[words], their hashes

    def most(self, orders: int) -> int:
        """N-grams of the longest list, or a few more."""
        return orders * int(np.diff(self.ptr[self.starts]).max(initial=1))

    def grams(self, orders: int) -> Grams:
        """Space for the n-grams of any of the lists."""
        most = self.most(orders)
        return Grams(
            np.empty(1 << max(4, (2 * most).bit_length()), np.int32),
            np.empty(most, np.uint64),
            np.empty(most, np.int64),
            np.empty(most, np.int32),
            np.empty(most, np.int64),
            np.empty(most),
            np.empty(most, np.int32),
        )


def candidate_words(lists: TuningLists, purpose: str) -> Iterator[tuple[int, int, Words]]:
    """``(first candidate, last + 1, words)`` of some lists at a time, split as `str.split` does.

    Parameters
    ----------
    lists : TuningLists
        With texts.
    purpose : str
        What needs the words, for the message where there are none.
    """
    if lists.texts is None:
        raise HopefearError(
            f"{lists.source}: {purpose} needs the words of candidates, and those were not kept; "
            "read the lists with texts=True"
        )
    for begin in range(0, len(lists), _BLOCK):
        starts = lists.starts[begin : begin + _BLOCK + 1]
        a, b = int(starts[0]), int(starts[-1])
        yield a, b, _split(lists.texts, a, b, starts - a)


def _split(texts: Strings, a: int, b: int, starts: np.ndarray) -> Words:
    offsets = texts.offsets[a : b + 1]
    size = int(offsets[-1] - offsets[0]) + b - a
    text = np.full(size + PADDING, NEWLINE, np.uint8)
    write_lines(texts.text, offsets, text)
    room = size // 2 + 1
    ptr = np.zeros(b - a + 1, np.int64)
    begins, ends = np.empty(room, np.int64), np.empty(room, np.int64)
    words = np.empty(room, np.uint64)
    with np.errstate(over="ignore"):  # uncompiled kernels warn where compiled ones do not
        split_lines(text, b - a, ptr, begins, ends, words)
    return Words(starts, text, ptr, begins, ends, words)

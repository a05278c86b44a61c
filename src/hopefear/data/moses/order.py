"""Candidates put in the order of their lists, without copies, in little memory."""

from __future__ import annotations

from typing import Any

import numpy as np

from hopefear.core.arrays import frozen, gathered

_CHUNK = 1 << 16  # rows to move at a time


class Putter:
    """Moves candidates to their lists and leaves copies out, in little memory."""

    def __init__(self, moved: np.ndarray | None, keep: np.ndarray | None) -> None:
        self.moved, self.keep = moved, keep

    def starts(self, starts: np.ndarray) -> np.ndarray:
        if self.keep is None:
            return starts
        return np.concatenate([[0], np.cumsum(self.keep)])[starts]

    def rows(self, array: np.ndarray) -> np.ndarray:
        if self.moved is not None:
            array = array[self.moved if self.keep is None else self.moved[self.keep]]
        elif self.keep is not None:
            array = _squeezed(array, self.keep)
        return frozen(array)

    def entries(self, sizes: np.ndarray, *arrays: np.ndarray) -> tuple[Any, ...]:
        """Offsets, and arrays with so many entries for each candidate."""
        indptr = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        if self.moved is not None:
            chosen = self.moved if self.keep is None else self.moved[self.keep]
            indptr, places = gathered(indptr, chosen)
            return frozen(indptr), *(frozen(a[places]) for a in arrays)
        if self.keep is not None:
            entries = np.repeat(self.keep, sizes)
            indptr = np.concatenate([[0], np.cumsum(sizes[self.keep], dtype=np.int64)])
            return frozen(indptr), *(frozen(_squeezed(a, entries)) for a in arrays)
        return frozen(indptr), *(frozen(a) for a in arrays)


def _squeezed(array: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """The rows to keep, moved to the front of the same memory."""
    used = 0
    for begin in range(0, len(array), _CHUNK):
        rows = array[begin : begin + _CHUNK][keep[begin : begin + _CHUNK]]
        array[used : used + len(rows)] = rows
        used += len(rows)
    return array[:used]

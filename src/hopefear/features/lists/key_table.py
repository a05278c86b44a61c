"""Numbers for 64-bit keys, and in how many lists each was seen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import inlined, kernel, prefetch

_AHEAD = 16  # slots to ask for before they are needed


class _Table(NamedTuple):
    slots: np.ndarray  # int32[power of two]: number + 1, 0 if empty
    keys: np.ndarray  # uint64[room]: by number
    seen: np.ndarray  # int32[room]
    used: np.ndarray  # int64[1]


class KeyTable:
    """Distinct keys, numbered in order of first appearance.

    Examples
    --------
    >>> table = KeyTable()
    >>> table.count(np.array([5, 8, 5], np.uint64)).tolist(), table.seen.tolist()
    ([0, 1, 0], [2, 1])
    >>> table.find(np.array([8, 9], np.uint64)).tolist()
    [1, -1]
    """

    def __init__(self, keys: np.ndarray | None = None) -> None:
        self._table = _empty(1 << 10)
        if keys is not None:
            self.count(keys)

    @property
    def size(self) -> int:
        return int(self._table.used[0])

    @property
    def keys(self) -> np.ndarray:
        """All keys by number."""
        return self._table.keys[: self.size]

    @property
    def seen(self) -> np.ndarray:
        """How often each was counted."""
        return self._table.seen[: self.size]

    def count(self, keys: np.ndarray) -> np.ndarray:
        """Numbers (int32) of keys, new ones get the next; each is counted once more."""
        size = self.size
        if size + len(keys) > len(self._table.keys):
            old, self._table = self._table, _empty(max(size + len(keys), 2 * size))
            _ask(self._table, old.keys[:size], True)
            self._table.seen[:size] = old.seen[:size]
        return _ask(self._table, keys, True)

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Numbers (int32) of keys, -1 where they are not in the table."""
        return _ask(self._table, keys, False)


def _empty(room: int) -> _Table:
    return _Table(
        np.zeros(1 << max(4, (2 * room - 1).bit_length()), np.int32),
        np.zeros(room, np.uint64),
        np.zeros(room, np.int32),
        np.zeros(1, np.int64),
    )


@inlined
def _slot(slots, key):
    return (key ^ (key >> np.uint64(32))) & np.uint64(slots.size - 1)


@kernel
def _ask(table, keys, grow):
    slots, out = table.slots, np.empty(keys.size, np.int32)
    for e in range(keys.size):
        prefetch(slots, _slot(slots, keys[min(e + _AHEAD, keys.size - 1)]))
        key = keys[e]
        slot = _slot(slots, key)
        while slots[slot] != 0 and table.keys[slots[slot] - 1] != key:
            slot = (slot + np.uint64(1)) & np.uint64(slots.size - 1)
        if slots[slot] == 0 and grow:
            n = table.used[0]
            table.keys[n] = key
            slots[slot] = n + 1
            table.used[0] = n + 1
        out[e] = slots[slot] - 1
        if grow:
            table.seen[slots[slot] - 1] += 1
    return out

"""Directions whose features repeat: entries of one coordinate are added up before they count.

Weights of structured models come in rows of ``width`` coordinates (one feature, all its labels), so
a direction is a bag of rows: an open-addressing table from row number to a block of sums. It is
as large as one example needs and stays in the cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import linked

# 32 bits: products with row numbers stay within 64, where plain Python would warn.
_GOLDEN = 0x9E3779B1


class Bag(NamedTuple):
    """A sparse direction, by rows."""

    keys: np.ndarray  # int64[power of two]: row number + 1, 0 = free
    slots: np.ndarray  # int32[same]: which block
    rows: np.ndarray  # int64[most]: row numbers in order of arrival
    spots: np.ndarray  # int64[most]: where their keys are
    sums: np.ndarray  # float[most * width]
    used: np.ndarray  # int64[2]: number of rows; 1 while they are those of the present direction


def new_bag(most: int, width: int, dtype: Any) -> Bag:
    """A bag for at most ``most`` different rows."""
    size = 1 << max(4, int(2 * most).bit_length())
    return Bag(
        np.zeros(size, np.int64),
        np.zeros(size, np.int32),
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
        np.zeros(most * width, dtype),
        np.zeros(2, np.int64),
    )


@linked
def empty_bag(bag):
    """Forget all rows."""
    for k in range(bag.used[0]):
        bag.keys[bag.spots[k]] = 0
    bag.used[0] = 0
    bag.used[1] = 0


@linked
def bag_place(bag, row):
    """Where the key of ``row`` is, or would be."""
    mask = np.uint64(bag.keys.size - 1)
    low = np.uint64(row) & np.uint64(0xFFFFFFFF)
    place = (low * np.uint64(_GOLDEN) >> np.uint64(20)) & mask
    while bag.keys[place] != 0 and bag.keys[place] != row + 1:
        place = (place + np.uint64(1)) & mask
    return place


@linked
def bag_block(bag, row, width):
    """Start of the sums of ``row``, which is added when it is new."""
    place = bag_place(bag, row)
    if bag.keys[place] == 0:
        k = bag.used[0]
        bag.keys[place] = row + 1
        bag.slots[place] = k
        bag.rows[k] = row
        bag.spots[k] = place
        bag.used[0] = k + 1
        for c in range(k * width, (k + 1) * width):
            bag.sums[c] = 0.0
    return bag.slots[place] * width


@linked
def bag_find(bag, row, width):
    """Start of the sums of ``row``, or -1."""
    place = bag_place(bag, row)
    return bag.slots[place] * width if bag.keys[place] != 0 else -1

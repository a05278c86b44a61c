"""Some trees out of many."""

from __future__ import annotations

import numpy as np

from hopefear.features.brackets.rows import TreeRows, Trees


def take_trees(trees: Trees, keep: np.ndarray) -> Trees:
    """The trees that a mask marks, in their order; symbols keep their numbers."""
    rows = trees.rows
    sizes = np.diff(rows.starts)
    starts = np.zeros(int(np.count_nonzero(keep)) + 1, np.int64)
    np.cumsum(sizes[keep], out=starts[1:])
    nodes = np.repeat(keep, sizes)
    arrays = [starts, *(array[nodes] for array in rows[1:])]
    for array in arrays:
        array.flags.writeable = False
    return Trees(TreeRows(*arrays), trees.symbols)

"""Features of the trees of a treebank, for parsers that use no others."""

from __future__ import annotations

from typing import Any

import numpy as np

from hopefear.core.component import helper, kernel
from hopefear.core.workspace import Example
from hopefear.features.arcs.feature_hashing import HashedArcs

_BITS = 32
# Keys that are collected before duplicates are removed.
_MAX_KEYS = 1 << 23


def gold_keys(
    arcs: HashedArcs, rows: Any, heads: np.ndarray, order: int
) -> tuple[np.ndarray, np.ndarray]:
    """Keys of 32 bits, rising: those of features without relations, and of the others.

    Parameters
    ----------
    arcs : HashedArcs
        Templates.
    rows : TreeRows
        Sentences.
    heads : int array
        The head of every word, 0 for the root.
    order : int
        2: siblings and grandparents have features too.
    """
    wide = arcs._replace(plain=1 << _BITS, rows=1 << _BITS)
    pad = wide.new_buffer(rows)
    plain, labelled = (np.empty(_MAX_KEYS + 16 * len(pad.keys), np.uint32) for _ in range(2))
    keys_found = [np.empty(0, np.uint32), np.empty(0, np.uint32)]
    at = np.zeros(2, np.int64)
    counts = np.zeros(2, np.int64)
    heads = np.ascontiguousarray(heads, np.int32)
    while at[0] < len(rows.weights):
        counts[:] = 0
        collect(wide, rows, heads, order, pad, plain, labelled, _MAX_KEYS, at, counts)
        for group, keys in enumerate((plain, labelled)):
            keys_found[group] = np.union1d(keys_found[group], keys[: counts[group]])
    return keys_found[0], keys_found[1]


@kernel
def collect(arcs, data, heads, order, pad, plain, labelled, max_keys, at, counts):
    """Collects keys of trees until there are ``max_keys``; ``at`` is where it resumes."""
    while at[0] < data.weights.size:
        x = Example(data, at[0])
        start, n = data.starts[x.i], data.starts[x.i + 1] - data.starts[x.i]
        while at[1] < n:
            if max(counts[0], counts[1]) > max_keys:
                return
            m = at[1] + 1
            h = np.int64(heads[start + m - 1])
            put(pad, arcs.arc_keys(x, h, m, pad), plain, counts, 0)
            put(pad, arcs.label_keys(x, h, m, pad), labelled, counts, 1)
            if order == 2:
                step = 1 if h < m else -1
                s = m - step
                while s != h and heads[start + s - 1] != h:
                    s -= step
                put(pad, arcs.sibling_keys(x, h, 0 if s == h else s, m, pad), plain, counts, 0)
                e = m + step
                while 1 <= e <= n and heads[start + e - 1] != h:
                    e += step
                if not 1 <= e <= n:
                    put(pad, arcs.outermost_child_keys(x, h, m, pad), plain, counts, 0)
                if h > 0:
                    g = np.int64(heads[start + h - 1])
                    put(pad, arcs.grandparent_keys(x, g, h, m, pad), plain, counts, 0)
            at[1] += 1
        at[0] += 1
        at[1] = 0


@helper
def put(pad, count, keys, counts, group):
    """Append the keys of a pad."""
    for k in range(count):
        keys[counts[group] + k] = pad.keys[k]
    counts[group] += count

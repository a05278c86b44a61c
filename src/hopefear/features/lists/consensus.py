"""Agreement within a list: how much of a tree the other candidates have too.

Choosing the candidate of the highest expected overlap with all others is minimum Bayes risk
decoding (Goodman, 1996; Kumar and Byrne, 2004). Here the overlap is a feature beside others, and
each bracket counts by its label and its share of the probability.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from hopefear.core.component import kernel
from hopefear.errors import HopefearError
from hopefear.features.brackets.rows import Trees
from hopefear.features.lists.keyed import Keyed
from hopefear.features.lists.named import key_of

# Shares of the probability at which brackets begin to be counted apart.
BINS = (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98)
EXPECTED = "Consensus|F"
MOST_WORDS = 1 << 16  # a bracket is a label and two positions in one number of 64 bits


class _Table(NamedTuple):
    """Brackets of one list."""

    slots: np.ndarray  # int32[power of two]: bracket + 1, 0 if empty
    spans: np.ndarray  # uint64[brackets + 1]: label, begin, end; behind them the one asked for
    share: np.ndarray  # float64[brackets]
    last: np.ndarray  # int32[brackets]: candidate that counted it last


def consensus_names(labels: list[str]) -> dict[int, str]:
    """Keys and names of all features about these labels."""
    names = [EXPECTED] + [f"Consensus|{label}|{k}" for label in labels for k in _bins()]
    return {key_of(name): name for name in names}


def consensus_keys(trees: Trees, starts: np.ndarray, scores: np.ndarray, sharp: float) -> Keyed:
    """Expected F against the list in percent, and brackets by label and share.

    Parameters
    ----------
    trees : Trees
        The candidates.
    starts : int64 array
        Where lists start among them.
    scores : float64 array
        Log scores of the generator.
    sharp : float
        Factor on the scores before they become probabilities. Smaller hears more candidates.
    """
    rows = trees.rows
    if rows.ends.max(initial=0) >= MOST_WORDS:
        raise HopefearError(
            f"consensus: a tree of {rows.ends.max():,} words is too long, the limit is "
            f"{MOST_WORDS - 1:,}; leave it out, or take features without consensus"
        )
    inner = np.diff(rows.starts)
    indptr = np.concatenate([[0], np.cumsum(inner + 1)])
    keys, values = np.zeros(indptr[-1], np.uint64), np.zeros(indptr[-1])
    used = np.zeros(len(inner), np.int64)
    names = np.zeros((len(trees.symbols), len(BINS) + 1), np.uint64)
    inner_labels = np.zeros(len(trees.symbols), bool)
    inner_labels[rows.labels[rows.words < 0]] = True
    for s in np.flatnonzero(inner_labels).tolist():
        names[s] = [key_of(f"Consensus|{trees.symbols[s]}|{k}") for k in _bins()]
    most = int(np.diff(rows.starts[starts]).max(initial=1))
    table = _Table(
        np.zeros(1 << (2 * most).bit_length(), np.int32),
        np.zeros(most + 1, np.uint64),
        np.zeros(most),
        np.zeros(most, np.int32),
    )
    with np.errstate(over="ignore"):
        _consensus(
            *(rows, starts, scores, sharp, names, np.uint64(key_of(EXPECTED)), np.array(BINS)),
            *(table, indptr, keys, values, used),
        )
    return _squeezed(indptr, used, keys, values)


def _bins() -> list[str]:
    edges = ["0", *(f"{b:g}" for b in BINS), "1"]
    return [f"{a}-{b}" for a, b in pairwise(edges)]


def _squeezed(indptr: np.ndarray, used: np.ndarray, keys: np.ndarray, values: np.ndarray) -> Keyed:
    place = np.arange(len(keys)) - np.repeat(indptr[:-1], np.diff(indptr))
    kept = place < np.repeat(used, np.diff(indptr))
    return Keyed(np.concatenate([[0], np.cumsum(used)]), keys[kept], values[kept])


@kernel
def _consensus(
    rows, starts, scores, sharp, names, expected, bins, table, indptr, keys, values, used
):
    for i in range(starts.size - 1):
        first, last = starts[i], starts[i + 1]
        top = scores[first:last].max()
        total = 0.0
        for c in range(first, last):
            total += math.exp(sharp * (scores[c] - top))
        n, mean = 0, 0.0
        for c in range(first, last):
            share = math.exp(sharp * (scores[c] - top)) / total
            n, brackets = hear(rows, c, share, table, n)
            mean += share * brackets
        for c in range(first, last):
            agreed, brackets, at = 0.0, 0, indptr[c]
            for k in range(rows.starts[c] + 1, rows.starts[c + 1]):
                if rows.words[k] >= 0:
                    continue
                q = table.share[table.slots[find(rows, k, table)] - 1]
                agreed += min(q, 1.0)
                brackets += 1
                keys[at] = names[rows.labels[k], np.searchsorted(bins, q)]
                values[at] = 1.0
                at += 1
            keys[at] = expected
            values[at] = 200.0 * agreed / max(1.0, brackets + mean)
            used[c] = at + 1 - indptr[c]
        table.slots[:] = 0


@register_jitable
def find(rows, k, table):
    """Slot of the bracket of node ``k``."""
    span = (
        (np.uint64(rows.labels[k]) << np.uint64(32))
        | (np.uint64(rows.begins[k]) << np.uint64(16))
        | np.uint64(rows.ends[k])
    )
    mask = np.uint64(table.slots.size - 1)
    h = span * np.uint64(0x9E3779B97F4A7C15)
    slot = (h >> np.uint64(33)) & mask
    while table.slots[slot] != 0 and table.spans[table.slots[slot] - 1] != span:
        slot = (slot + np.uint64(1)) & mask
    if table.slots[slot] == 0:
        table.spans[-1] = span  # for whoever takes the slot
    return slot


@register_jitable
def hear(rows, c, share, table, n):
    """Add the share of a tree to its brackets; (brackets known, brackets of this tree)."""
    brackets = 0
    for k in range(rows.starts[c] + 1, rows.starts[c + 1]):
        if rows.words[k] >= 0:
            continue
        brackets += 1
        slot = find(rows, k, table)
        if table.slots[slot] == 0:
            table.spans[n] = table.spans[-1]
            table.share[n] = 0.0
            table.last[n] = -1
            n += 1
            table.slots[slot] = n
        b = table.slots[slot] - 1
        if table.last[b] != c:  # a bracket twice in one tree is one
            table.share[b] += share
            table.last[b] = c
    return n, brackets

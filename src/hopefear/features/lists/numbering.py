"""From keys to numbered features: those of enough lists are kept, and all lists go together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from hopefear.core.component import kernel
from hopefear.features.lists.relative import Relative


class Numbered(NamedTuple):
    """Features of lists by number; list i has ``features[scopes[i]:scopes[i + 1]]``."""

    scopes: np.ndarray  # int64[lists + 1]
    features: np.ndarray  # int32
    indptr: np.ndarray  # int64[candidates + 1]
    columns: np.ndarray  # int32
    values: np.ndarray  # float32


def numbered(block: Relative, numbers: np.ndarray) -> Numbered:
    """The block with these numbers in place of its keys."""
    return Numbered(block.scopes, numbers, block.indptr, block.columns, block.values)


def pruned(block: Numbered, starts: np.ndarray, new: np.ndarray) -> Numbered:
    """The block in other numbers: feature k becomes ``new[k]`` and goes where that is negative."""
    scopes, indptr = np.zeros_like(block.scopes), np.zeros_like(block.indptr)
    features, columns = block.features.copy(), block.columns.copy()
    values = block.values.copy()
    most = int(np.diff(block.scopes).max(initial=1))
    fresh = np.zeros(most, np.int32)
    _prune(block, starts, new, fresh, Numbered(scopes, features, indptr, columns, values))
    kept, used = int(scopes[-1]), int(indptr[-1])
    return Numbered(
        scopes, features[:kept].copy(), indptr, columns[:used].copy(), values[:used].copy()
    )


@kernel
def _prune(block, starts, new, fresh, out):
    for i in range(starts.size - 1):
        first = block.scopes[i]
        scope = out.scopes[i]
        for k in range(first, block.scopes[i + 1]):
            number = new[block.features[k]] if block.features[k] >= 0 else -1
            fresh[k - first] = -1
            if number >= 0:
                fresh[k - first] = scope - out.scopes[i]
                out.features[scope] = number
                scope += 1
        out.scopes[i + 1] = scope
        for c in range(starts[i], starts[i + 1]):
            at = out.indptr[c]
            for e in range(block.indptr[c], block.indptr[c + 1]):
                column = fresh[block.columns[e]]
                if column >= 0:
                    out.columns[at] = column
                    out.values[at] = block.values[e]
                    at += 1
            out.indptr[c + 1] = at


def side_by_side(parts: Sequence[Relative], starts: np.ndarray) -> Relative:
    """One block of the features of several, for the same lists."""
    if len(parts) == 1:
        return parts[0]
    sizes = sum(np.diff(part.scopes) for part in parts)
    entries = sum(np.diff(part.indptr) for part in parts)
    out = Relative(
        np.concatenate([[0], np.cumsum(sizes)]),
        np.zeros(sum(len(part.keys) for part in parts), np.uint64),
        np.concatenate([[0], np.cumsum(entries)]),
        np.zeros(sum(len(part.columns) for part in parts), np.int32),
        np.zeros(sum(len(part.values) for part in parts), np.float32),
    )
    keys_before = np.zeros(len(starts) - 1, np.int64)
    entries_before = np.zeros(int(starts[-1]), np.int64)
    for part in parts:
        _lay(part, starts, keys_before, entries_before, out)
        keys_before += np.diff(part.scopes)
        entries_before += np.diff(part.indptr)
    return out


@kernel
def _lay(part, starts, keys_before, entries_before, out):
    for i in range(starts.size - 1):
        shift = keys_before[i]
        at = out.scopes[i] + shift
        for k in range(part.scopes[i], part.scopes[i + 1]):
            out.keys[at] = part.keys[k]
            at += 1
        for c in range(starts[i], starts[i + 1]):
            at = out.indptr[c] + entries_before[c]
            for e in range(part.indptr[c], part.indptr[c + 1]):
                out.columns[at] = part.columns[e] + shift
                out.values[at] = part.values[e]
                at += 1


def joined(blocks: list[Numbered]) -> Numbered:
    """All lists of several blocks; the blocks are emptied on the way, to save memory."""
    lists = 1 + sum(len(b.scopes) - 1 for b in blocks)
    candidates = 1 + sum(len(b.indptr) - 1 for b in blocks)
    out = Numbered(
        np.zeros(lists, np.int64),
        np.empty(sum(len(b.features) for b in blocks), np.int32),
        np.zeros(candidates, np.int64),
        np.empty(sum(len(b.columns) for b in blocks), np.int32),
        np.empty(sum(len(b.values) for b in blocks), np.float32),
    )
    i = c = k = e = 0
    blocks.reverse()
    while blocks:
        block = blocks.pop()
        out.scopes[i + 1 : i + len(block.scopes)] = block.scopes[1:] + k
        out.indptr[c + 1 : c + len(block.indptr)] = block.indptr[1:] + e
        out.features[k : k + len(block.features)] = block.features
        out.columns[e : e + len(block.columns)] = block.columns
        out.values[e : e + len(block.values)] = block.values
        i, c = i + len(block.scopes) - 1, c + len(block.indptr) - 1
        k, e = k + len(block.features), e + len(block.columns)
    return out

"""What tells the candidates of a list apart: values relative to what most of them have."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from hopefear.core.component import kernel
from hopefear.features.lists.keyed import Keyed

# Counts have few different values; real numbers have many, and none of them is common.
_KINDS = 16


class Relative(NamedTuple):
    """Features of a block of lists; ``keys[scopes[i]:scopes[i + 1]]`` are those of list i.

    Candidate c has those at the positions ``columns[indptr[c]:indptr[c + 1]]`` among them.
    """

    scopes: np.ndarray  # int64[lists + 1]
    keys: np.ndarray  # uint64
    indptr: np.ndarray  # int64[candidates + 1]
    columns: np.ndarray  # int32
    values: np.ndarray  # float32


class _Scratch(NamedTuple):
    """Space for one list."""

    slots: np.ndarray  # int32[power of two]: number of a key + 1, 0 if empty
    numbers: np.ndarray  # int32[entries]: number of the key of each entry
    keys: np.ndarray  # uint64[entries]: keys by number
    heads: np.ndarray  # int32[entries + 1]: where the entries of a key start, once in order
    order: np.ndarray  # int32[entries]: entries by key
    owner: np.ndarray  # int32[entries]: candidate of each entry
    dense: np.ndarray  # float64[candidates]: values of one key
    kinds: np.ndarray  # float64[_KINDS]: different values of one key
    often: np.ndarray  # int64[_KINDS]: candidates that have them


def relative(starts: np.ndarray, keyed: Keyed) -> Relative:
    """Add up repeated keys, and take the commonest value of each key in a list off all.

    Of values that are equally common, 0 goes first, then that of the earlier candidate. Keys with
    one value throughout a list tell nothing and are left out; so are differences of 0.

    Examples
    --------
    >>> keyed = Keyed(np.array([0, 2, 3]), np.array([7, 9, 7], np.uint64), np.ones(3, np.float32))
    >>> found = relative(np.array([0, 2]), keyed)
    >>> found.keys.tolist(), found.indptr.tolist(), found.values.tolist()
    ([9], [0, 1, 1], [1.0])
    """
    bounds = keyed.indptr[starts]
    most = int(np.diff(bounds).max(initial=1))
    longest = int(np.diff(starts).max(initial=1))
    scratch = _Scratch(
        np.zeros(1 << max(4, (2 * most).bit_length()), np.int32),
        np.zeros(most, np.int32),
        np.zeros(most, np.uint64),
        np.zeros(most + 1, np.int32),
        np.zeros(most, np.int32),
        np.zeros(most, np.int32),
        np.zeros(longest),
        np.zeros(_KINDS),
        np.zeros(_KINDS, np.int64),
    )
    entries = len(keyed.keys)
    out = Relative(
        np.zeros(len(starts), np.int64),
        np.zeros(entries, np.uint64),
        np.zeros(starts[-1] + 1, np.int64),
        np.zeros(entries, np.int32),
        np.zeros(entries, np.float32),
    )
    found = _Found(np.zeros(most, np.int32), np.zeros(most, np.int32), np.zeros(most, np.float32))
    _relative(starts, keyed.indptr, keyed.keys, keyed.values, scratch, found, out)
    keys, used = int(out.scopes[-1]), int(out.indptr[-1])
    return out._replace(
        keys=out.keys[:keys].copy(),
        columns=out.columns[:used].copy(),
        values=out.values[:used].copy(),
    )


class _Found(NamedTuple):
    """Differences of one list, by key."""

    owners: np.ndarray  # int32: candidates
    columns: np.ndarray  # int32
    amounts: np.ndarray  # float32


@kernel
def _relative(starts, indptr, keys, values, scratch, found, out):
    for i in range(starts.size - 1):
        start, count = starts[i], starts[i + 1] - starts[i]
        first, last = indptr[start], indptr[starts[i + 1]]
        n = number_keys(keys, first, last, scratch)
        order_entries(indptr, start, count, first, last, n, scratch)
        kept, used = 0, 0
        scope = out.scopes[i]
        for k in range(n):
            common = commonest(values, first, k, count, scratch)
            before = used
            for c in range(count):
                value = np.float32(scratch.dense[c] - common)
                if value != 0.0:
                    found.owners[used] = c
                    found.columns[used] = kept
                    found.amounts[used] = value
                    used += 1
            if used > before:
                out.keys[scope + kept] = scratch.keys[k]
                kept += 1
        out.scopes[i + 1] = scope + kept
        by_candidate(found, used, start, count, out)


@register_jitable
def number_keys(keys, first, last, scratch):
    """Number the different keys of a list in order of appearance; returns how many there are."""
    mask = np.uint64(scratch.slots.size - 1)
    n = 0
    for e in range(first, last):
        key = keys[e]
        slot = (key ^ (key >> np.uint64(32))) & mask
        while scratch.slots[slot] != 0 and scratch.keys[scratch.slots[slot] - 1] != key:
            slot = (slot + np.uint64(1)) & mask
        if scratch.slots[slot] == 0:
            scratch.keys[n] = key
            n += 1
            scratch.slots[slot] = n
        scratch.numbers[e - first] = scratch.slots[slot] - 1
    for k in range(n):  # leave the slots empty for the next list
        key = scratch.keys[k]
        slot = (key ^ (key >> np.uint64(32))) & mask
        while scratch.slots[slot] != 0:
            scratch.slots[slot] = 0
            slot = (slot + np.uint64(1)) & mask
    return n


@register_jitable
def order_entries(indptr, start, count, first, last, n, scratch):
    """Sort the entries of a list by key, candidates in their order."""
    heads = scratch.heads
    heads[: n + 1] = 0
    for e in range(last - first):
        heads[scratch.numbers[e] + 1] += 1
    for k in range(n):
        heads[k + 1] += heads[k]
    for c in range(count):
        for e in range(indptr[start + c] - first, indptr[start + c + 1] - first):
            k = scratch.numbers[e]
            scratch.order[heads[k]] = e
            scratch.owner[heads[k]] = c
            heads[k] += 1
    for k in range(n, 0, -1):
        heads[k] = heads[k - 1]
    heads[0] = 0


@register_jitable
def commonest(values, first, k, count, scratch):
    """Lay out the values of key ``k`` by candidate, and return the commonest."""
    dense, kinds, often = scratch.dense, scratch.kinds, scratch.often
    dense[:count] = 0.0
    for q in range(scratch.heads[k], scratch.heads[k + 1]):
        dense[scratch.owner[q]] += values[first + scratch.order[q]]
    kinds[0], often[0], n = 0.0, 0, 1
    for c in range(count):
        q = 0
        while q < n and kinds[q] != dense[c]:
            q += 1
        if q == n == _KINDS:
            continue
        if q == n:
            kinds[n], often[n] = dense[c], 0
            n += 1
        often[q] += 1
    best = 0
    for q in range(1, n):
        if often[q] > often[best]:
            best = q
    return kinds[best]


@register_jitable
def by_candidate(found, used, start, count, out):
    """Write the differences of a list, sorted by candidate."""
    indptr = out.indptr
    base = indptr[start]
    indptr[start + 1 : start + count + 1] = 0
    for q in range(used):
        indptr[start + found.owners[q] + 1] += 1
    for c in range(start, start + count):
        indptr[c + 1] += indptr[c]
    for q in range(used):  # the start of a candidate serves as its pen
        c = start + found.owners[q]
        out.columns[indptr[c]] = found.columns[q]
        out.values[indptr[c]] = found.amounts[q]
        indptr[c] += 1
    for c in range(start + count, start, -1):
        indptr[c] = indptr[c - 1]
    indptr[start] = base

"""Features of candidates by their keys, relative to their list, and the numbers they get.

Values are relative to the most common value of a list; only differences are stored.
Keys that were seen in enough lists are numbered, and all lists go together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from hopefear.core.component import helper, kernel
from hopefear.core.hashing import key_slot


class Keyed(NamedTuple):
    """Candidate c has the features ``keys[indptr[c]:indptr[c + 1]]`` with their values.

    A key is the hash of what a feature says, never 0; a candidate may have one several times, and
    then the values add up.
    """

    indptr: np.ndarray  # int64[candidates + 1]
    keys: np.ndarray  # uint64[n]
    values: np.ndarray  # float32[n]


SCORE = "score"


def key_of(name: str) -> int:
    """Returns the key of a name.

    >>> key_of("score") == key_of("score") != key_of("scores")
    True
    """
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little")


def keys_of(names: Iterable[str]) -> np.ndarray:
    """Returns the keys of names (uint64)."""
    return np.array([key_of(name) for name in names], np.uint64)


def score_keys(scores: np.ndarray) -> Keyed:
    """Returns the generator's score as a feature."""
    n = len(scores)
    return Keyed(np.arange(n + 1), np.full(n, key_of(SCORE), np.uint64), scores.astype(np.float64))


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
    one value throughout a list are left out; so are differences of 0.

    Examples
    --------
    >>> keyed = Keyed(np.array([0, 2, 3]), np.array([7, 9, 7], np.uint64), np.ones(3, np.float32))
    >>> result = relative(np.array([0, 2]), keyed)
    >>> result.keys.tolist(), result.indptr.tolist(), result.values.tolist()
    ([9], [0, 1, 1], [1.0])
    """
    bounds = keyed.indptr[starts]
    max_keys = int(np.diff(bounds).max(initial=1))
    longest = int(np.diff(starts).max(initial=1))
    scratch = _Scratch(
        np.zeros(1 << max(4, (2 * max_keys).bit_length()), np.int32),
        np.zeros(max_keys, np.int32),
        np.zeros(max_keys, np.uint64),
        np.zeros(max_keys + 1, np.int32),
        np.zeros(max_keys, np.int32),
        np.zeros(max_keys, np.int32),
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
    scratch_entries = _Entries(
        np.zeros(max_keys, np.int32), np.zeros(max_keys, np.int32), np.zeros(max_keys, np.float32)
    )
    _relative(starts, keyed.indptr, keyed.keys, keyed.values, scratch, scratch_entries, out)
    keys, used = int(out.scopes[-1]), int(out.indptr[-1])
    return out._replace(
        keys=out.keys[:keys].copy(),
        columns=out.columns[:used].copy(),
        values=out.values[:used].copy(),
    )


class _Entries(NamedTuple):
    """Differences of one list, by key."""

    owners: np.ndarray  # int32: candidates
    columns: np.ndarray  # int32
    amounts: np.ndarray  # float32


@kernel
def _relative(starts, indptr, keys, values, scratch, entries, out):
    for i in range(starts.size - 1):
        start, count = starts[i], starts[i + 1] - starts[i]
        first, last = indptr[start], indptr[starts[i + 1]]
        n = number_keys(keys, first, last, scratch)
        order_entries(indptr, start, count, first, last, n, scratch)
        n_keys, used = 0, 0
        scope = out.scopes[i]
        for k in range(n):
            common = commonest(values, first, k, count, scratch)
            before = used
            for c in range(count):
                value = np.float32(scratch.dense[c] - common)
                if value != 0.0:
                    entries.owners[used] = c
                    entries.columns[used] = n_keys
                    entries.amounts[used] = value
                    used += 1
            if used > before:
                out.keys[scope + n_keys] = scratch.keys[k]
                n_keys += 1
        out.scopes[i + 1] = scope + n_keys
        by_candidate(entries, used, start, count, out)


@helper
def number_keys(keys, first, last, scratch):
    """Number the different keys of a list in order of appearance; returns how many there are."""
    mask = np.uint64(scratch.slots.size - 1)
    n = 0
    for e in range(first, last):
        key = keys[e]
        slot = key_slot(scratch.slots, scratch.keys, key)
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


@helper
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


@helper
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


@helper
def by_candidate(entries, used, start, count, out):
    """Write the differences of a list, sorted by candidate."""
    indptr = out.indptr
    base = indptr[start]
    indptr[start + 1 : start + count + 1] = 0
    for q in range(used):
        indptr[start + entries.owners[q] + 1] += 1
    for c in range(start, start + count):
        indptr[c + 1] += indptr[c]
    for q in range(used):  # the start of a candidate serves as its pen
        c = start + entries.owners[q]
        out.columns[indptr[c]] = entries.columns[q]
        out.values[indptr[c]] = entries.amounts[q]
        indptr[c] += 1
    for c in range(start + count, start, -1):
        indptr[c] = indptr[c - 1]
    indptr[start] = base


# Features of a list that positions of 16 bits reach.
SHORT = 1 << 16


class NumberedLists(NamedTuple):
    """Features of lists by number; list i has ``features[scopes[i]:scopes[i + 1]]``."""

    scopes: np.ndarray  # int64[lists + 1]
    features: np.ndarray  # int32
    indptr: np.ndarray  # int64[candidates + 1]
    columns: np.ndarray  # int32, or uint16 where no list has over 65,536 features
    values: np.ndarray  # float32


def numbered(block: Relative, numbers: np.ndarray) -> NumberedLists:
    """Returns the block with these numbers in place of its keys."""
    return NumberedLists(block.scopes, numbers, block.indptr, block.columns, block.values)


def pruned(block: NumberedLists, starts: np.ndarray, new: np.ndarray) -> NumberedLists:
    """Returns the block with feature k as ``new[k]``, left out where that is negative."""
    block = block._replace(columns=block.columns.astype(np.int32, copy=False))
    scopes, indptr = np.zeros_like(block.scopes), np.zeros_like(block.indptr)
    features, columns = block.features.copy(), block.columns.copy()
    values = block.values.copy()
    max_keys = int(np.diff(block.scopes).max(initial=1))
    fresh = np.zeros(max_keys, np.int32)
    _prune(block, starts, new, fresh, NumberedLists(scopes, features, indptr, columns, values))
    n_keys, used = int(scopes[-1]), int(indptr[-1])
    short = np.diff(scopes).max(initial=0) <= SHORT
    return NumberedLists(
        scopes,
        features[:n_keys].copy(),
        indptr,
        columns[:used].astype(np.uint16 if short else np.int32),
        values[:used].copy(),
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


def joined(blocks: list[NumberedLists]) -> NumberedLists:
    """All lists of several blocks; the blocks are emptied on the way, to save memory."""
    lists = 1 + sum(len(b.scopes) - 1 for b in blocks)
    candidates = 1 + sum(len(b.indptr) - 1 for b in blocks)
    out = NumberedLists(
        np.zeros(lists, np.int64),
        np.empty(sum(len(b.features) for b in blocks), np.int32),
        np.zeros(candidates, np.int64),
        np.empty(sum(len(b.columns) for b in blocks), _columns_type(blocks)),
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


def _columns_type(blocks: list[NumberedLists]) -> np.dtype:
    return np.result_type(np.uint16, *(block.columns.dtype for block in blocks))

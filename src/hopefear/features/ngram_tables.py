"""Hash tables of tokens and n-grams that kernels fill and ask.

A token is found by its bytes. An n-gram is found by a pair of integers: the entry of its first
n - 1 tokens and its last token. Both comparisons are exact, so no two n-grams ever share a column,
and the strings of n-grams are never built while reading.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

TOKENS, TEXT, ENTRIES = 0, 1, 2  # positions in NGramTables.used


class NGramTables(NamedTuple):
    """Tokens, entries (n-grams) and the open-addressing slots over both.

    Entry e is the n-gram "the n-gram ``parent[e]``, then the token ``token[e]``"; a unigram has
    parent -1. Slots hold -1 where empty and are at most half full.
    """

    token_slots: np.ndarray  # int32[power of two]
    token_hash: np.ndarray  # uint64[tokens]
    offsets: np.ndarray  # int64[tokens + 1]
    text: np.ndarray  # uint8, bytes of the tokens
    unigram: np.ndarray  # int32[tokens], entry of the token alone
    entry_slots: np.ndarray  # int32[power of two]
    parent: np.ndarray  # int32[entries]
    token: np.ndarray  # int32[entries]
    documents: np.ndarray  # int32[entries], rows the n-gram was seen in
    row: np.ndarray  # int64[entries], last row that had it
    place: np.ndarray  # int64[entries], where that row keeps its count
    used: np.ndarray  # int64[3]: tokens, bytes of text, entries


def empty_tables(tokens: int = 1 << 12, text: int = 1 << 16, entries: int = 1 << 13) -> NGramTables:
    """Tables with room for so many tokens, bytes of text and n-grams."""
    return NGramTables(
        np.full(_slots_for(tokens), -1, np.int32),
        np.zeros(tokens, np.uint64),
        np.zeros(tokens + 1, np.int64),
        np.zeros(text, np.uint8),
        np.full(tokens, -1, np.int32),
        np.full(_slots_for(entries), -1, np.int32),
        np.zeros(entries, np.int32),
        np.zeros(entries, np.int32),
        np.zeros(entries, np.int32),
        np.full(entries, -1, np.int64),
        np.zeros(entries, np.int64),
        np.zeros(3, np.int64),
    )


def grown_tables(old: NGramTables, tokens: int, text: int, entries: int) -> NGramTables:
    """The same content with room for that much more; at least doubled where it was short."""
    room = [len(old.token_hash), len(old.text), len(old.parent)]
    need = [int(u) + more for u, more in zip(old.used, (tokens, text, entries), strict=True)]
    new = empty_tables(*(r if n <= r else max(n, 2 * r) for r, n in zip(room, need, strict=True)))
    for target, source in zip(new, old, strict=True):
        if target is not new.token_slots and target is not new.entry_slots:
            target[: len(source)] = source
    with np.errstate(over="ignore"):
        fill_slots(new)
    return new


def _slots_for(entries: int) -> int:
    return 1 << max(4, (2 * entries - 1).bit_length())


@njit(cache=True, nogil=True)
def mix(a, b):
    """A well-spread 64-bit hash of two 64-bit numbers."""
    h = (np.uint64(a) ^ (np.uint64(b) * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(
        0xD6E8FEB86659FD93
    )
    h ^= h >> np.uint64(32)
    h *= np.uint64(0xD6E8FEB86659FD93)
    return h ^ (h >> np.uint64(29))


@njit(cache=True, nogil=True)
def fill_slots(tables):
    """Put every token and entry into its slot again."""
    mask = len(tables.token_slots) - 1
    for t in range(tables.used[TOKENS]):
        slot = np.int64(tables.token_hash[t] & np.uint64(mask))
        while tables.token_slots[slot] >= 0:
            slot = (slot + 1) & mask
        tables.token_slots[slot] = t
    mask = len(tables.entry_slots) - 1
    for e in range(tables.used[ENTRIES]):
        h = mix(np.int64(tables.parent[e]) + 1, np.int64(tables.token[e]))
        slot = np.int64(h & np.uint64(mask))
        while tables.entry_slots[slot] >= 0:
            slot = (slot + 1) & mask
        tables.entry_slots[slot] = e


@njit(cache=True, nogil=True)
def token_at(tables, word, size, h, grow):
    """Number of the token ``word[:size]`` with hash h; new ones get the next, or -1."""
    mask = len(tables.token_slots) - 1
    slot = np.int64(h & np.uint64(mask))
    while tables.token_slots[slot] >= 0:
        t = tables.token_slots[slot]
        begin = tables.offsets[t]
        if tables.token_hash[t] == h and tables.offsets[t + 1] - begin == size:
            same = True
            for i in range(size):
                if tables.text[begin + i] != word[i]:
                    same = False
                    break
            if same:
                return np.int64(t)
        slot = (slot + 1) & mask
    if not grow:
        return np.int64(-1)
    t = tables.used[TOKENS]
    begin = tables.used[TEXT]
    for i in range(size):
        tables.text[begin + i] = word[i]
    tables.offsets[t] = begin
    tables.offsets[t + 1] = begin + size
    tables.token_hash[t] = h
    tables.token_slots[slot] = t
    tables.used[TOKENS] = t + 1
    tables.used[TEXT] = begin + size
    return t


@njit(cache=True, nogil=True)
def entry_at(tables, parent, token, grow):
    """Entry of "parent, then token"; new ones get the next number, or -1."""
    mask = len(tables.entry_slots) - 1
    slot = np.int64(mix(parent + 1, token) & np.uint64(mask))
    while tables.entry_slots[slot] >= 0:
        e = tables.entry_slots[slot]
        if tables.parent[e] == parent and tables.token[e] == token:
            return np.int64(e)
        slot = (slot + 1) & mask
    if not grow:
        return np.int64(-1)
    e = tables.used[ENTRIES]
    tables.parent[e] = parent
    tables.token[e] = token
    tables.entry_slots[slot] = e
    tables.used[ENTRIES] = e + 1
    return e


@njit(cache=True, nogil=True)
def text_hash(word, size):
    """Hash of the bytes ``word[:size]``."""
    h = np.uint64(0xCBF29CE484222325)
    for i in range(size):
        h = (h ^ np.uint64(word[i])) * np.uint64(0x100000001B3)
    return h ^ (h >> np.uint64(31))


@njit(cache=True, nogil=True)
def hash_tokens(tables):
    """Fill in the hash of every token from its bytes."""
    for t in range(tables.used[TOKENS]):
        begin, end = tables.offsets[t], tables.offsets[t + 1]
        tables.token_hash[t] = text_hash(tables.text[begin:end], end - begin)

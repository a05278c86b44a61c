"""Hash tables of tokens and n-grams that kernels fill and ask.

A token is found by its bytes. An n-gram is found by a pair of integers: the entry of its first
n - 1 tokens and its last token. Both comparisons are exact, so no two n-grams ever share a column,
and the strings of n-grams are never built while reading. Memory is what takes time here, so a slot
holds all that a comparison needs, and callers ask for slots ahead with ``prefetch``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import inlined, kernel, prefetch
from hopefear.features.words import load_part, same_bytes

TOKENS, TEXT, ENTRIES = 0, 1, 2  # positions in NGramTables.used
_AHEAD = 16  # slots to ask for before they are needed


class NGramTables(NamedTuple):
    """Tokens, entries (n-grams) and the open-addressing slots over both.

    Entry e is the n-gram "the n-gram ``parent[e]``, then the token ``token[e]``"; a unigram has
    parent -1. A slot is two numbers side by side; at most three of four are taken.
    """

    token_slots: np.ndarray  # uint64[2 * power of two]: hash; size << 32 | token + 1, 0 if empty
    token_hash: np.ndarray  # uint64[tokens]
    offsets: np.ndarray  # int64[tokens + 1]
    text: np.ndarray  # uint8, bytes of the tokens
    unigram: np.ndarray  # int32[tokens], entry of the token alone
    entry_slots: np.ndarray  # uint64[2 * power of two]: parent + 1 << 32 | token, 0 if empty; entry
    parent: np.ndarray  # int32[entries]
    token: np.ndarray  # int32[entries]
    seen: np.ndarray  # int64[2 * entries]: last row << 32 | its place in it; rows it was seen in
    used: np.ndarray  # int64[3]: tokens, bytes of text, entries


def empty_tables(tokens: int = 3 << 11, text: int = 1 << 16, entries: int = 3 << 12) -> NGramTables:
    """Tables with room for so many tokens, bytes of text and n-grams."""
    return NGramTables(
        np.zeros(2 * _slots_for(tokens), np.uint64),
        np.zeros(tokens, np.uint64),
        np.zeros(tokens + 1, np.int64),
        np.zeros(text, np.uint8),
        np.full(tokens, -1, np.int32),
        np.zeros(2 * _slots_for(entries), np.uint64),
        np.zeros(entries, np.int32),
        np.zeros(entries, np.int32),
        fresh_marks(entries),
        np.zeros(3, np.int64),
    )


def fresh_marks(entries: int) -> np.ndarray:
    """``NGramTables.seen`` of n-grams that no row has had."""
    seen = np.zeros(2 * entries, np.int64)
    seen[::2] = -1
    return seen


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
    return 1 << max(4, (4 * entries // 3).bit_length())


@inlined
def mix(a, b):
    """A well-spread 64-bit hash of two 64-bit numbers; for a given ``a`` no two ``b`` share one."""
    h = (np.uint64(a) ^ (np.uint64(b) * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(
        0xD6E8FEB86659FD93
    )
    h ^= h >> np.uint64(32)
    h *= np.uint64(0xD6E8FEB86659FD93)
    return h ^ (h >> np.uint64(29))


@inlined
def slot_of(slots, h):
    """Where the search for a hash begins in an array of slots."""
    return np.int64(h & np.uint64(len(slots) // 2 - 1)) * 2


@inlined
def entry_key(parent, token):
    """What the slots of n-grams hold."""
    return (np.uint64(parent + 1) << np.uint64(32)) | np.uint64(token)


@inlined
def _key(tables, e):
    return entry_key(np.int64(tables.parent[e]), np.int64(tables.token[e]))


@kernel
def fill_slots(tables):
    """Put every token and every n-gram of two and more into its slot again."""
    slots = tables.token_slots
    used = tables.used[TOKENS]
    for t in range(used):
        prefetch(slots, slot_of(slots, tables.token_hash[min(t + _AHEAD, used - 1)]))
        slot = slot_of(slots, tables.token_hash[t])
        while slots[slot + 1] != 0:
            slot = (slot + 2) & (len(slots) - 1)
        size = tables.offsets[t + 1] - tables.offsets[t]
        slots[slot] = tables.token_hash[t]
        slots[slot + 1] = np.uint64((size << 32) | (t + 1))
    slots = tables.entry_slots
    used = tables.used[ENTRIES]
    for e in range(used):
        prefetch(slots, slot_of(slots, mix(np.uint64(0), _key(tables, min(e + _AHEAD, used - 1)))))
        if tables.parent[e] >= 0:
            key = _key(tables, e)
            slot = slot_of(slots, mix(np.uint64(0), key))
            while slots[slot] != 0:
                slot = (slot + 2) & (len(slots) - 1)
            slots[slot] = key
            slots[slot + 1] = np.uint64(e)


@inlined
def token_at(tables, text, begin, size, h, grow):
    """Number of the token ``text[begin:begin + size]``, of hash h; new ones get the next, or -1."""
    slots = tables.token_slots
    slot = slot_of(slots, h)
    while slots[np.uint64(slot + 1)] != 0:
        about = np.int64(slots[np.uint64(slot + 1)])
        if slots[np.uint64(slot)] == h and (about >> 32) == size:
            t = (about & 0xFFFFFFFF) - 1
            # Up to 8 bytes, tokens of one size have different hashes.
            if size <= 8 or same_bytes(tables.text, tables.offsets[t], text, begin, size):
                return t
        slot = (slot + 2) & (len(slots) - 1)
    if not grow:
        return np.int64(-1)
    t = tables.used[TOKENS]
    first = tables.used[TEXT]
    for k in range(size):
        tables.text[first + k] = text[begin + k]
    tables.offsets[t] = first
    tables.offsets[t + 1] = first + size
    tables.token_hash[t] = h
    slots[slot] = h
    slots[slot + 1] = np.uint64((np.int64(size) << 32) | (t + 1))
    tables.used[TOKENS] = t + 1
    tables.used[TEXT] = first + size
    return t


@inlined
def unigram_at(tables, token, grow):
    """Entry of a token alone; a new one gets the next number, or -1."""
    e = np.int64(tables.unigram[np.uint64(token)])
    if e >= 0 or not grow:
        return e
    e = _new_entry(tables, -1, token)
    tables.unigram[token] = e
    return e


@inlined
def entry_at(tables, parent, token, h, grow):
    """Entry of "parent, then token", whose key has the hash h; a new one gets the next, or -1."""
    slots, key = tables.entry_slots, entry_key(parent, token)
    slot = slot_of(slots, h)
    while slots[np.uint64(slot)] != 0:
        if slots[np.uint64(slot)] == key:
            return np.int64(slots[np.uint64(slot + 1)])
        slot = (slot + 2) & (len(slots) - 1)
    if not grow:
        return np.int64(-1)
    e = _new_entry(tables, parent, token)
    slots[slot] = key
    slots[slot + 1] = np.uint64(e)
    return e


@inlined
def _new_entry(tables, parent, token):
    e = tables.used[ENTRIES]
    tables.parent[e] = parent
    tables.token[e] = token
    tables.used[ENTRIES] = e + 1
    return e


@inlined
def text_hash(text, begin, size):
    """Hash of ``text[begin:begin + size]``; up to 8 bytes, texts of one size never share one."""
    h = mix(np.uint64(0), load_part(text, begin, size))
    done = 8
    while done < size:
        h = mix(h, load_part(text, begin + done, size - done))
        done += 8
    return h


@kernel
def hash_tokens(tables):
    """Fill in the hash of every token from its bytes."""
    for t in range(tables.used[TOKENS]):
        begin, end = tables.offsets[t], tables.offsets[t + 1]
        tables.token_hash[t] = text_hash(tables.text, begin, end - begin)

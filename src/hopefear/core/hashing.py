"""Open-addressing tables that kernels fill and ask, over bytes, n-grams and 64-bit keys.

Text is read eight bytes at a time: reading byte by byte waits for a branch at every byte, and the
lengths of numbers and words are what a processor guesses worst. A word of eight bytes says in a few
operations how many of them belong. The first byte is the lowest of the word, on every machine.

Strings are compared byte by byte and n-grams by their parts, so no two of them share a number.
What takes time is waiting for memory, so a slot holds all that a comparison needs, and slots are
asked for ahead with ``prefetch``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import islice
from typing import NamedTuple

import numpy as np

from hopefear.core.arrays import Strings, frozen
from hopefear.core.component import helper, intrinsic, ir, kernel, overload, prefetch, types


def load8(text, p):
    """Bytes ``text[p:p + 8]`` as one number; the caller knows that all eight are there."""
    return np.uint64(int.from_bytes(text[p : p + 8].tobytes(), "little"))


def lowest_bit(word):
    """Position of the lowest set bit, 64 where there is none."""
    word = int(word)
    return np.uint64((word & -word).bit_length() - 1 if word else 64)


@helper(inline=True)
def first_byte(marks):
    """Which byte has the first mark, the top bit of a byte; 8 where none has."""
    return lowest_bit(marks) >> np.uint64(3)


@overload(load8)
def _load8(text, p):
    load_word = intrinsic(_load_word)
    return lambda text, p: load_word(text, np.intp(p))


@overload(lowest_bit)
def _lowest_bit(word):
    count_zeros = intrinsic(_count_zeros)
    return lambda word: count_zeros(np.uint64(word))


def _load_word(typing_context, text, p):
    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        number = ir.IntType(64)
        place = builder.bitcast(builder.gep(data, [args[1]]), number.as_pointer())
        word = builder.load(place)
        word.align = 1
        return word if sys.byteorder == "little" else builder.bswap(word)

    return types.uint64(text, types.intp), generate


def _count_zeros(typing_context, word):
    def generate(context, builder, signature, args):
        return builder.cttz(args[0], ir.IntType(1)(0))

    return types.uint64(types.uint64), generate


_LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_TOP_BITS = np.uint64(0x8080808080808080)
# Added to a byte below 128, these reach its top bit from "0", behind "9", from "a", behind "z" on.
_FROM_0, _BEHIND_9 = np.uint64(0x5050505050505050), np.uint64(0x4646464646464646)
_FROM_A, _BEHIND_Z = np.uint64(0x1F1F1F1F1F1F1F1F), np.uint64(0x0505050505050505)


@helper(inline=True)
def plain_run(word):
    """How many bytes of a word are ``a-z0-9`` before the first that is none."""
    low = word & _LOW_BITS
    digits = (low + _FROM_0) & ~(low + _BEHIND_9)
    letters = (low + _FROM_A) & ~(low + _BEHIND_Z)
    return first_byte((~(digits | letters) | word) & _TOP_BITS)


@helper(inline=True)
def load_part(text, p, size):
    """Bytes ``text[p:p + size]`` as one number, at most 8 of them; nothing else is looked at."""
    if p + 8 <= len(text):
        word = load8(text, p)
        if size < 8:
            word &= (np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)
        return word
    word = np.uint64(0)
    for k in range(min(size, 8)):
        word |= np.uint64(text[p + k]) << np.uint64(8 * k)
    return word


@helper(inline=True)
def same_bytes(a, p, b, q, size):
    """Whether ``a[p:p + size]`` equals ``b[q:q + size]``."""
    different = 0
    for k in range(size):
        different += a[p + k] != b[q + k]
    return different == 0


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


@helper(inline=True)
def mix(a, b):
    """A well-spread 64-bit hash of two 64-bit numbers; for a given ``a`` no two ``b`` share one."""
    h = (np.uint64(a) ^ (np.uint64(b) * np.uint64(0x9E3779B97F4A7C15))) * np.uint64(
        0xD6E8FEB86659FD93
    )
    h ^= h >> np.uint64(32)
    h *= np.uint64(0xD6E8FEB86659FD93)
    return h ^ (h >> np.uint64(29))


@helper(inline=True)
def slot_of(slots, h):
    """Where the search for a hash begins in an array of slots."""
    return np.int64(h & np.uint64(len(slots) // 2 - 1)) * 2


@helper(inline=True)
def find_slot(slots, key, start, step):
    """Returns the place from ``start`` on, in steps, that holds ``key`` or is empty.

    No key is 0: that marks an empty place. There are ``2**n`` places, and one is empty.
    """
    slot = start
    while slots[np.uint64(slot)] != 0 and slots[np.uint64(slot)] != key:
        slot = (slot + step) & (len(slots) - 1)
    return slot


@helper(inline=True)
def find_numbered_slot(slots, keys, key, start):
    """Returns the place from ``start`` (uint64) on that is empty or holds the number of ``key``.

    Places hold numbers plus 1, and ``keys`` has the keys by number.
    """
    mask = np.uint64(slots.size - 1)
    slot = start
    while slots[slot] != 0 and keys[slots[slot] - 1] != key:
        slot = (slot + np.uint64(1)) & mask
    return slot


@helper(inline=True)
def pair_slot(slots, h, key):
    """Returns where slots of pairs (key, value) hold ``key``, of hash h, or have room for it."""
    return find_slot(slots, key, slot_of(slots, h), 2)


@helper(inline=True)
def entry_key(parent, token):
    """What the slots of n-grams hold."""
    return (np.uint64(parent + 1) << np.uint64(32)) | np.uint64(token)


@helper(inline=True)
def _key(tables, e):
    return entry_key(np.int64(tables.parent[e]), np.int64(tables.token[e]))


@kernel
def fill_token_slots(tables):
    """Put every token into its slot again."""
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


@kernel
def fill_slots(tables):
    """Put every token and every n-gram of two and more into its slot again."""
    fill_token_slots(tables)
    slots = tables.entry_slots
    used = tables.used[ENTRIES]
    for e in range(used):
        prefetch(slots, slot_of(slots, mix(np.uint64(0), _key(tables, min(e + _AHEAD, used - 1)))))
        if tables.parent[e] >= 0:
            key = _key(tables, e)
            slot = pair_slot(slots, mix(np.uint64(0), key), key)
            slots[slot] = key
            slots[slot + 1] = np.uint64(e)


@helper(inline=True)
def _token_slot(slots, offsets, known, text, begin, size, h):
    """Slot of the token ``text[begin:begin + size]``, of hash h, or the empty one it would get."""
    slot = slot_of(slots, h)
    while slots[np.uint64(slot + 1)] != 0:
        about = np.int64(slots[np.uint64(slot + 1)])
        if slots[np.uint64(slot)] == h and (about >> 32) == size:
            # Up to 8 bytes, tokens of one size have different hashes.
            t = (about & 0xFFFFFFFF) - 1
            if size <= 8 or same_bytes(known, offsets[t], text, begin, size):
                break
        slot = (slot + 2) & (len(slots) - 1)
    return slot


@helper(inline=True)
def _new_token(tables, slot, text, begin, size, h):
    t = tables.used[TOKENS]
    first = tables.used[TEXT]
    for k in range(size):
        tables.text[first + k] = text[begin + k]
    tables.offsets[t] = first
    tables.offsets[t + 1] = first + size
    tables.token_hash[t] = h
    tables.token_slots[slot] = h
    tables.token_slots[slot + 1] = np.uint64((np.int64(size) << 32) | (t + 1))
    tables.used[TOKENS] = t + 1
    tables.used[TEXT] = first + size
    return t


@helper(inline=True)
def token_at(tables, text, begin, size, h, grow):
    """Number of the token ``text[begin:begin + size]``, of hash h; new ones get the next, or -1."""
    slots = tables.token_slots
    slot = _token_slot(slots, tables.offsets, tables.text, text, begin, size, h)
    if slots[np.uint64(slot + 1)] != 0:
        return (np.int64(slots[np.uint64(slot + 1)]) & 0xFFFFFFFF) - 1
    return _new_token(tables, slot, text, begin, size, h) if grow else np.int64(-1)


@helper(inline=True)
def unigram_at(tables, token, grow):
    """Entry of a token alone; a new one gets the next number, or -1."""
    e = np.int64(tables.unigram[np.uint64(token)])
    if e >= 0 or not grow:
        return e
    e = _new_entry(tables, -1, token)
    tables.unigram[token] = e
    return e


@helper(inline=True)
def entry_at(tables, parent, token, h, grow):
    """Entry of "parent, then token", whose key has the hash h; a new one gets the next, or -1."""
    slots, key = tables.entry_slots, entry_key(parent, token)
    slot = pair_slot(slots, h, key)
    if slots[np.uint64(slot)] != 0:
        return np.int64(slots[np.uint64(slot + 1)])
    if not grow:
        return np.int64(-1)
    e = _new_entry(tables, parent, token)
    slots[slot] = key
    slots[slot + 1] = np.uint64(e)
    return e


@helper(inline=True)
def _new_entry(tables, parent, token):
    e = tables.used[ENTRIES]
    tables.parent[e] = parent
    tables.token[e] = token
    tables.used[ENTRIES] = e + 1
    return e


@helper(inline=True)
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


_BATCH = 1 << 12  # strings to make room for at a time: in a small table they are found sooner


class _Tokens(NamedTuple):
    """The part of `NGramTables` that numbers strings."""

    token_slots: np.ndarray
    token_hash: np.ndarray
    offsets: np.ndarray
    text: np.ndarray
    used: np.ndarray  # int64[2]: strings, bytes of text


class StringTable:
    """Distinct strings, numbered in order of first appearance.

    Examples
    --------
    >>> table = StringTable()
    >>> table.intern(["hope", "fear", "hope"]).tolist(), table.strings().get(1)
    ([0, 1, 0], 'fear')
    >>> table.find(Strings.pack(["fear", "joy"])).tolist()
    [1, -1]
    """

    def __init__(self, room: int = 1 << 10) -> None:
        self._table = _empty_strings(room, 16 * room)

    @classmethod
    def of(cls, strings: Strings) -> StringTable:
        """A table of these; two of them may be the same, and then :attr:`size` is smaller."""
        table = cls(max(strings.size, 16))
        table.intern_spans(strings.text, strings.offsets[:-1], strings.offsets[1:])
        return table

    @property
    def size(self) -> int:
        return int(self._table.used[0])

    def strings(self) -> Strings:
        """All strings by their numbers."""
        size, length = self._table.used.tolist()
        return Strings(
            frozen(self._table.text[:length].copy()), frozen(self._table.offsets[: size + 1].copy())
        )

    def intern(self, strings: Iterable[str]) -> np.ndarray:
        """Numbers (int32) of strings; new ones get the next.

        TypeError where one is no string, UnicodeEncodeError where one is no Unicode text.
        """
        numbers = [np.empty(0, np.int32)]
        strings = iter(strings)
        while batch := list(islice(strings, _BATCH)):
            numbers.append(self.intern_spans(*_as_bytes(batch)))
        return np.concatenate(numbers)

    def intern_spans(
        self, text: np.ndarray, begins: np.ndarray, ends: np.ndarray, first: int = 0, step: int = 1
    ) -> np.ndarray:
        """Numbers (int32) of the stretches ``text[begins[e]:ends[e]]`` of UTF-8 bytes.

        Of every so many, from the first on, where there is a step.
        """
        begins, ends = begins[first:], ends[first:]
        numbers, done = np.empty(-(-len(begins) // step), np.int32), 0
        while (done := self._ask(text, begins, ends, step, True, numbers, done)) < len(numbers):
            last = min(done + _BATCH, len(numbers)) - 1
            self._make_room(last + 1 - done, int(ends[last * step] - begins[done * step]))
        return numbers

    def find(self, strings: Strings) -> np.ndarray:
        """Numbers (int32) of strings, -1 where they are not in the table."""
        numbers = np.empty(strings.size, np.int32)
        self._ask(strings.text, strings.offsets[:-1], strings.offsets[1:], 1, False, numbers, 0)
        return numbers

    def _ask(
        self,
        text: np.ndarray,
        begins: np.ndarray,
        ends: np.ndarray,
        step: int,
        grow: bool,
        numbers: np.ndarray,
        done: int,
    ) -> int:
        hashes = np.empty(min(_BATCH, len(numbers)), np.uint64)
        with np.errstate(over="ignore"):  # uncompiled kernels warn where compiled ones do not
            return _string_numbers(
                self._table, text, begins, ends, step, grow, hashes, numbers, done
            )

    def _make_room(self, strings: int, length: int) -> None:
        old = self._table
        size, used = old.used.tolist()
        # Twice, as the next may be as many, and hardly any of these are new.
        new = _empty_strings(max(size + 2 * strings, 2 * size), max(used + 2 * length, 2 * used))
        new.token_hash[:size] = old.token_hash[:size]
        new.offsets[: size + 1] = old.offsets[: size + 1]
        new.text[:used] = old.text[:used]
        new.used[:] = old.used
        fill_token_slots(new)
        self._table = new


def _empty_strings(strings: int, text: int) -> _Tokens:
    return _Tokens(
        np.zeros(2 * _slots_for(strings), np.uint64),
        np.empty(strings, np.uint64),
        np.zeros(strings + 1, np.int64),
        np.empty(text, np.uint8),
        np.zeros(2, np.int64),
    )


def _as_bytes(batch: list[str]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Strings one behind the other, and where each begins and ends."""
    text = np.frombuffer("\0".join([*batch, ""]).encode(), np.uint8)
    ends = np.flatnonzero(text == 0)
    if len(ends) == len(batch):
        return text, np.concatenate([np.zeros(1, np.int64), ends[:-1] + 1]), ends
    packed = Strings.pack(batch)  # a string holds the separator
    return packed.text, packed.offsets[:-1], packed.offsets[1:]


@kernel(refcount=False)
def _string_numbers(tables, text, begins, ends, step, grow, hashes, numbers, done):
    """Number strings from those that are done on; how many are, as a table that grows may be full.

    As many as there are ``hashes`` at a time, all of which might be new.
    """
    slots, offsets, known = tables.token_slots, tables.offsets, tables.text
    while done < len(numbers):
        n = min(len(numbers) - done, len(hashes))
        length = np.int64(ends[(done + n - 1) * step]) - np.int64(begins[done * step])
        full = tables.used[TOKENS] + n > len(tables.token_hash)
        if grow and (full or tables.used[TEXT] + length > len(known)):
            return done
        for e in range(n):
            begin = np.int64(begins[(done + e) * step])
            hashes[e] = text_hash(text, begin, np.int64(ends[(done + e) * step]) - begin)
        for e in range(n):
            prefetch(slots, slot_of(slots, hashes[min(e + _AHEAD, n - 1)]))
            begin = np.int64(begins[(done + e) * step])
            size = np.int64(ends[(done + e) * step]) - begin
            slot = _token_slot(slots, offsets, known, text, begin, size, hashes[e])
            if slots[slot + 1] == 0 and grow:
                _new_token(tables, slot, text, begin, size, hashes[e])
            numbers[done + e] = np.int64(slots[slot + 1] & np.uint64(0xFFFFFFFF)) - 1
        done += n
    return done


class _KeySlots(NamedTuple):
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
        self._table = _empty_keys(1 << 10)
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
            old, self._table = self._table, _empty_keys(max(size + len(keys), 2 * size))
            _key_numbers(self._table, old.keys[:size], True)
            self._table.seen[:size] = old.seen[:size]
        return _key_numbers(self._table, keys, True)

    def find(self, keys: np.ndarray) -> np.ndarray:
        """Numbers (int32) of keys, -1 where they are not in the table."""
        return _key_numbers(self._table, keys, False)


def _empty_keys(room: int) -> _KeySlots:
    return _KeySlots(
        np.zeros(1 << max(4, (2 * room - 1).bit_length()), np.int32),
        np.zeros(room, np.uint64),
        np.zeros(room, np.int32),
        np.zeros(1, np.int64),
    )


@helper(inline=True)
def key_slot(slots, keys, key):
    """Returns where slots of numbers hold that of a well-spread key, or have room for it."""
    return find_numbered_slot(slots, keys, key, _first_slot(slots, key))


@helper(inline=True)
def _first_slot(slots, key):
    return (key ^ (key >> np.uint64(32))) & np.uint64(slots.size - 1)


@kernel
def _key_numbers(table, keys, grow):
    slots, out = table.slots, np.empty(keys.size, np.int32)
    for e in range(keys.size):
        prefetch(slots, _first_slot(slots, keys[min(e + _AHEAD, keys.size - 1)]))
        slot = key_slot(slots, table.keys, keys[e])
        if slots[slot] == 0 and grow:
            n = table.used[0]
            table.keys[n] = keys[e]
            slots[slot] = n + 1
            table.used[0] = n + 1
        out[e] = slots[slot] - 1
        if grow:
            table.seen[slots[slot] - 1] += 1
    return out

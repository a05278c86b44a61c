"""Attributes of tokens as integers: keys, and the table that numbers them.

An attribute is known by a 64-bit key, the hash of its template and of the strings of its terms.
Two different attributes share a key with a probability of about n² / 2^65 for n attributes
(one in 300 million for 335,000); they would then share their weights, and nothing else happens.
Keys are made for a block of tokens, and their slots asked for, before the first is looked up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import inlined, kernel, prefetch
from hopefear.core.hashing import mix, slot_of
from hopefear.features.templates.spec import FIRST_TOKEN, LAST_TOKEN

BLOCK = 512  # keys made ahead; more than fits the first-level cache would be fetched twice
SENTENCE, TOKEN, ENTRIES, USED = 0, 1, 2, 3  # positions in Work.state


class Plan(NamedTuple):
    """Templates in the numbers of one file: slots are views of its columns.

    Template t has the terms ``ptr[t]:ptr[t + 1]``, the one that may have several values last.
    String s in slot j has the values ``hashes[value_ptr[r]:value_ptr[r + 1]]``, r = base[j] + s;
    padding d tokens before the sentence is ``hashes[pad + d - 1]``, d tokens behind it
    ``hashes[pad + depth + d - 1]``.
    """

    seeds: np.ndarray  # uint64[templates]
    where: np.ndarray  # int64[templates], bits
    ptr: np.ndarray  # int64[templates + 1]
    slot: np.ndarray  # int64[terms]
    offset: np.ndarray  # int64[terms]
    number: np.ndarray  # int64[templates], number slot or -1
    number_offset: np.ndarray  # int64[templates]
    source: np.ndarray  # int64[slots], row of ids
    base: np.ndarray  # int64[slots]
    value_ptr: np.ndarray  # int64
    hashes: np.ndarray  # uint64
    number_source: np.ndarray  # int64[number slots]
    number_base: np.ndarray  # int64[number slots]
    reals: np.ndarray  # float32
    starts: np.ndarray  # int64[sentences + 1]
    ids: np.ndarray  # int32[sources, tokens]; -1 = no string here
    pad: int
    depth: int
    padding: bool
    edges: bool  # fires on edges, of which the first token of a sentence has none
    most: int  # keys of one token, at most


class Work(NamedTuple):
    """Keys of the tokens of a block, and how far the work is."""

    keys: np.ndarray  # uint64[BLOCK + most]
    template: np.ndarray  # int64
    which: np.ndarray  # int64, which value of the last term
    amount: np.ndarray  # float32
    bound: np.ndarray  # int64[BLOCK + 1], keys before each token of the block
    state: np.ndarray  # int64[4]


class Born(NamedTuple):
    """Where each attribute was met first; empty if nobody will ask for names."""

    token: np.ndarray  # int64
    template: np.ndarray  # uint16
    which: np.ndarray  # int32


def new_work(most: int) -> Work:
    """Room for a block."""
    room = BLOCK + most
    return Work(
        np.zeros(room, np.uint64),
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
        np.zeros(room, np.float32),
        np.zeros(BLOCK + 1, np.int64),
        np.zeros(4, np.int64),
    )


@inlined
def _values_at(plan, j, p, begin, end):
    """First and behind-last place in ``plan.hashes`` of term j at token p."""
    if p < begin:
        if not plan.padding:
            return np.int64(0), np.int64(0)
        place = plan.pad + begin - p - 1
        return place, place + 1
    if p >= end:
        if not plan.padding:
            return np.int64(0), np.int64(0)
        place = plan.pad + plan.depth + p - end
        return place, place + 1
    slot = plan.slot[j]
    string = np.int64(plan.ids[plan.source[slot], p])
    if string < 0:
        return np.int64(0), np.int64(0)
    row = plan.base[slot] + string
    return plan.value_ptr[row], plan.value_ptr[row + 1]


@inlined
def _emit(work, n, h, t, which, value):
    work.keys[n] = h if h != np.uint64(0) else np.uint64(1)  # 0 marks an empty slot
    work.template[n] = t
    work.which[n] = which
    work.amount[n] = value
    return n + 1


@inlined
def _keys_at(plan, work, n, k, begin, end):
    """Put the keys of token k behind the first n of a block; how many there are then."""
    if plan.edges and k == begin:
        return n
    for t in range(len(plan.seeds)):
        where = plan.where[t]
        if (where & FIRST_TOKEN and k != begin) or (where & LAST_TOKEN and k != end - 1):
            continue
        value = np.float32(1.0)
        if plan.number[t] >= 0:
            p = k + plan.number_offset[t]
            if p < begin or p >= end:
                continue
            number = plan.number[t]
            string = np.int64(plan.ids[plan.number_source[number], p])
            value = plan.reals[plan.number_base[number] + string]
        h = plan.seeds[t]
        last = plan.ptr[t + 1] - 1
        if last < plan.ptr[t]:
            n = _emit(work, n, h, t, 0, value)
            continue
        fires = True
        for j in range(plan.ptr[t], last):
            low, high = _values_at(plan, j, k + plan.offset[j], begin, end)
            if low == high:
                fires = False
                break
            h = mix(h, plan.hashes[low])
        if fires:
            low, high = _values_at(plan, last, k + plan.offset[last], begin, end)
            for v in range(low, high):
                n = _emit(work, n, mix(h, plan.hashes[v]), t, v - low, value)
    return n


@inlined
def _fill_block(plan, work, slots, sentence, k):
    """Keys of the tokens from k on, as many as fit; token and sentence behind them."""
    n, size, tokens = 0, 0, plan.ids.shape[1]
    while k < tokens and n + plan.most <= len(work.keys) and size < BLOCK:
        while k >= plan.starts[sentence + 1]:
            sentence += 1
        more = _keys_at(plan, work, n, k, plan.starts[sentence], plan.starts[sentence + 1])
        if len(slots) > 0:
            for p in range(n, more):
                prefetch(slots, slot_of(slots, work.keys[p]))
        n = more
        k += 1
        size += 1
        work.bound[size] = n
    return size, sentence, k


@kernel
def number_keys(plan, work, slots, born, fired, indptr, indices, values):
    """Number the attributes of all tokens in the order they come; False if the table is too full.

    A slot holds a key, and in the next place its count and number: ``count << 32 | number``.
    Called again with a larger table, it goes on where it stopped.
    """
    state = work.state
    while state[TOKEN] < plan.ids.shape[1]:
        first = state[TOKEN]
        size, sentence, k = _fill_block(plan, work, slots, state[SENTENCE], first)
        if 3 * len(slots) < 8 * (state[USED] + work.bound[size]):
            return False
        used, entries = state[USED], state[ENTRIES]
        for token in range(size):
            for n in range(work.bound[token], work.bound[token + 1]):
                key = work.keys[n]
                slot = slot_of(slots, key)
                while slots[slot] != 0 and slots[slot] != key:
                    slot = (slot + 2) & (len(slots) - 1)
                if slots[slot] == 0:
                    slots[slot] = key
                    slots[slot + 1] = np.uint64(used)
                    if len(born.token) > 0:
                        born.token[used] = first + token
                        born.template[used] = work.template[n]
                        born.which[used] = work.which[n]
                    used += 1
                slots[slot + 1] += np.uint64(1 << 32)
                fired[work.template[n]] += 1
                indices[entries + n] = np.int32(slots[slot + 1] & np.uint64(0xFFFFFFFF))
                if len(values) > 0:
                    values[entries + n] = work.amount[n]
            indptr[first + token + 1] = entries + work.bound[token + 1]
        state[USED], state[ENTRIES] = used, entries + work.bound[size]
        state[SENTENCE], state[TOKEN] = sentence, k
    return True


@kernel
def look_up(plan, work, slots, shift, indptr, indices, values):
    """Numbers of the known attributes of all tokens; hashed ones by the top bits of their keys."""
    entries, sentence, k = 0, 0, 0
    while k < plan.ids.shape[1]:
        first = k
        size, sentence, k = _fill_block(plan, work, slots, sentence, first)
        for token in range(size):
            for n in range(work.bound[token], work.bound[token + 1]):
                key = work.keys[n]
                number = np.int64(key >> np.uint64(shift)) if shift > 0 else _find(slots, key)
                if number >= 0:
                    indices[entries] = number
                    if len(values) > 0:
                        values[entries] = work.amount[n]
                    entries += 1
            indptr[first + token + 1] = entries
    return entries


@inlined
def _find(slots, key):
    slot = slot_of(slots, key)
    while slots[slot] != 0:
        if slots[slot] == key:
            return np.int64(slots[slot + 1] & np.uint64(0xFFFFFFFF))
        slot = (slot + 2) & (len(slots) - 1)
    return np.int64(-1)


@kernel
def move_slots(old, new):
    """Put the content of a table into a larger, empty one."""
    for place in range(0, len(old), 2):
        if old[place] != 0:
            slot = slot_of(new, old[place])
            while new[slot] != 0:
                slot = (slot + 2) & (len(new) - 1)
            new[slot] = old[place]
            new[slot + 1] = old[place + 1]


@kernel
def read_slots(slots, keys, counts):
    """Key and count of every number in a table."""
    for place in range(0, len(slots), 2):
        if slots[place] != 0:
            number = np.int64(slots[place + 1] & np.uint64(0xFFFFFFFF))
            keys[number] = slots[place]
            counts[number] = np.int64(slots[place + 1] >> np.uint64(32))


@kernel
def fill_slots(slots, keys):
    """Number keys by their places; how many were put in before one came twice or was 0."""
    for i in range(len(keys)):
        slot = slot_of(slots, keys[i])
        while slots[slot] != 0:
            if slots[slot] == keys[i]:
                return i
            slot = (slot + 2) & (len(slots) - 1)
        if keys[i] == 0:
            return i
        slots[slot] = keys[i]
        slots[slot + 1] = np.uint64(i)
    return len(keys)


@kernel
def renumber(number, indptr, indices, values):
    """Give entries their new numbers and leave out those of -1, in place; entries left."""
    entries, before = 0, indptr[0]
    for k in range(len(indptr) - 1):
        end = indptr[k + 1]
        for p in range(before, end):
            new = number[indices[p]]
            if new >= 0:
                indices[entries] = new
                if len(values) > 0:
                    values[entries] = values[p]
                entries += 1
        before = end
        indptr[k + 1] = entries
    return entries

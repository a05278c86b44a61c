"""Attributes of a text numbered template by template, so that threads never wait for each other.

Attributes of different templates have different keys, so each template is numbered by itself, in a
table that is small enough for the caches near a core, and threads take templates as they come. A
template writes down what it says of the tokens, one after the other, in numbers of its own. Where
each attribute was met first then gives it its number in the order of the text, and stretches of the
text, one for each thread, are written as rows.

Templates that may share keys form a group, which has one table: those with the same text around
their terms, and those that share a key by chance (see `program`), which is looked for in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import inlined, lean, prefetch
from hopefear.core.crew import new_crew, take
from hopefear.core.hashing import mix
from hopefear.core.memory import in_pages
from hopefear.core.threads import Team
from hopefear.features.templates.program import (
    BLOCK,
    Born,
    Bound,
    Program,
    fires_at,
    keys_of_template,
    not_empty,
)

# Tokens of a stretch, at least, that a thread of its own is worth.
_STRETCH = 1 << 13
_ROWS = 64  # rows that are written at a time: they fit the cache next to a core

NOTHING = -(1 << 31)  # what a template says of a token on which it does not fire
GROUP, SENTENCE, TOKEN, USED, SLOTS = range(5)  # positions in Desk.state


class Groups(NamedTuple):
    """Group g has the templates ``template[ptr[g]:ptr[g + 1]]``, rising; long work comes first."""

    ptr: np.ndarray  # int64[groups + 1]
    template: np.ndarray  # int64[templates]
    first: np.ndarray  # int64[groups + 1], where its attributes are in Met
    slots: np.ndarray  # int64[groups], powers of two: of the table it begins with
    plain: np.ndarray  # bool[groups]: one template, which makes one attribute at most


class Sayings(NamedTuple):
    """What templates say of tokens, that of template t from ``entries[first[t]]`` on.

    For every token the numbers of its attributes in the group, the last of them as ``~number``, or
    `NOTHING` alone.
    """

    entries: np.ndarray  # int32
    amounts: np.ndarray  # float32, or empty where all are 1
    first: np.ndarray  # int64[templates]


class Marks(NamedTuple):
    """How far everything is where each stretch of the text begins, and behind the last."""

    token: np.ndarray  # int64[stretches + 1]
    place: np.ndarray  # int64[stretches + 1, templates], in Sayings.entries
    fired: np.ndarray  # int64[stretches + 1, templates]
    used: np.ndarray  # int64[stretches + 1, groups], attributes


class Met(NamedTuple):
    """Attributes of each group, with room for all it could have, and where they were met first."""

    key: np.ndarray  # uint64
    token: np.ndarray  # int64
    template: np.ndarray  # uint16
    which: np.ndarray  # int32, which value of the last term


_MET = np.uint64, np.int64, np.uint16, np.int32


class Desk(NamedTuple):
    """What a thread works with: a block of keys, and how far it is."""

    keys: np.ndarray  # uint64[BLOCK + most]
    fires: np.ndarray  # bool[BLOCK]
    bound: np.ndarray  # int64[BLOCK + templates], keys before each token and template of the block
    amount: np.ndarray  # float32, of each token and template
    place: np.ndarray  # int64[templates]
    fired: np.ndarray  # int64[templates]
    state: np.ndarray  # int64[5]


def new_desk(most: int, templates: int) -> Desk:
    """The desk of a thread; of one token there are so many keys, at most."""
    return Desk(
        np.empty(BLOCK + most, np.uint64),
        np.empty(BLOCK, bool),
        np.zeros(BLOCK + templates, np.int64),
        np.empty(BLOCK + templates, np.float32),
        np.zeros(templates, np.int64),
        np.zeros(templates, np.int64),
        np.zeros(5, np.int64),
    )


class Swept(NamedTuple):
    """Attributes in the order of the text, and their rows."""

    keys: np.ndarray  # uint64, by number
    born: Born
    fired: np.ndarray  # int64[templates], occurrences
    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray
    beside: Any  # what was done meanwhile


def sweep_text(
    bound: Bound,
    program: Program,
    group: np.ndarray,
    keep_names: bool,
    team: Team,
    beside: Callable[[Born], Any],
) -> Swept:
    """Number the attributes of a text by templates, of which ``group`` says which belong together.

    Parameters
    ----------
    bound, program : Bound, Program
        Text and templates.
    group : array of int
        For every template a number that only those have which must share a table.
    keep_names : bool
        Whether to say where attributes were born.
    team : Team
        Threads; nothing depends on how many there are.
    beside : callable
        What else to do once it is known where attributes were born, while rows are written.
    """
    plan, tokens = bound.plan(program), bound.ids.shape[1]
    threads = min(team.size, tokens // _STRETCH + 1)
    n = 16 * threads if threads > 1 else 1  # so that nobody waits long for the last
    group = np.unique(group, return_inverse=True)[1]
    room = bound.room(program)
    kinds = np.minimum(bound.kinds(program), room).astype(np.int64)
    groups = _groups(program, group, room, kinds, plan.most)
    marks = _marks(bound.starts, n, len(group), len(groups.plain))
    begins = _before(room + tokens * program.several)  # what does not fire takes an entry too
    valued = bool((program.number >= 0).any())
    # Whatever of these is not touched takes no memory.
    entries, amounts = in_pages((begins[-1], np.int32), (begins[-1] if valued else 0, np.float32))
    sayings = Sayings(entries, amounts, np.array(begins[:-1]))
    total = int(groups.first[-1])
    *places, final = in_pages(*((total, kind) for kind in (*_MET, np.int32)))
    met, crew = Met(*places), new_crew(threads)
    slots = _slots_for(int(np.diff(groups.first).max()) + BLOCK + plan.most)

    def number_some() -> None:
        desk, (table,) = new_desk(plan.most, len(group)), in_pages((4 * slots, np.uint64))
        with np.errstate(over="ignore"):  # hashes wrap; only uncompiled kernels warn
            sweep(plan, crew, groups, desk, table, met, sayings, marks)

    team.run([number_some] * threads)
    of_template = np.empty(len(group), np.int64)
    of_template[groups.template] = np.repeat(np.arange(len(groups.plain)), np.diff(groups.ptr))
    used, fired = int(marks.used[-1].sum()), marks.fired[-1]
    named, filled = used if keep_names else 0, int(fired.sum())
    keys, template = in_pages((used, np.uint64), (named, np.uint16))  # these stay
    token, which = in_pages((named, np.int64), (named, np.int32))
    born = Born(token, template, which)
    indptr, indices, values = in_pages(
        *((tokens + 1, np.int64), (filled, np.int32), (filled if valued else 0, np.float32))
    )
    indptr[0] = 0

    def order(s: int) -> None:
        following = np.zeros(int(marks.token[s + 1] - marks.token[s]) + 1, np.int32)
        rank(marks, s, of_template, groups.first, met, following, final, keys, born)

    def write(s: int) -> None:
        place, ends = marks.place[s].copy(), np.empty(_ROWS, np.int64)
        first = groups.first[of_template]
        write_rows(marks, s, first, place, ends, sayings, final, indptr, indices, values)

    ends = groups.first[:-1] + marks.used[-1]
    everything = partial(_shared, met.key, groups.first, ends)
    shared, *_ = team.run([everything, *(partial(order, s) for s in range(n))])
    if shared.size:
        twins = [
            group[groups.template[groups.ptr[g]]]
            for g, end in enumerate(ends)
            if shared[0] in met.key[groups.first[g] : end]
        ]
        group[np.isin(group, twins)] = twins[0]
        return sweep_text(bound, program, group, keep_names, team, beside)
    result, *_ = team.run([partial(beside, born), *(partial(write, s) for s in range(n))])
    return Swept(keys, born, fired, indptr, indices, values, result)


def _groups(
    program: Program, group: np.ndarray, room: np.ndarray, kinds: np.ndarray, most: int
) -> Groups:
    """Groups of templates of which each makes so many entries and attributes, at most."""
    rooms, sizes = np.bincount(group, room), np.bincount(group, kinds).astype(np.int64)
    order = np.argsort(-rooms * np.log2(sizes + 2), kind="stable")
    members = [np.flatnonzero(group == g) for g in order]
    single = ~program.several & ~(program.number >= 0).any()
    likely = np.minimum(sizes, rooms // 8)[order] + BLOCK + most
    return Groups(
        np.array(_before(map(len, members))),
        np.concatenate(members),
        np.array(_before(sizes[order])),
        np.array([_slots_for(int(size)) for size in likely]),
        np.array([len(some) == 1 and single[some[0]] for some in members]),
    )


def _slots_for(attributes: int) -> int:
    return 1 << (4 * attributes // 3).bit_length()


def _marks(starts: np.ndarray, n: int, templates: int, groups: int) -> Marks:
    """Nothing noted yet of n stretches of sentences, with about as many tokens each."""
    cuts = np.searchsorted(starts, np.linspace(0, starts[-1], n + 1))
    cuts[0], cuts[-1] = 0, len(starts) - 1
    widths = templates, templates, groups
    return Marks(starts[cuts], *(np.zeros((n + 1, width), np.int64) for width in widths))


def _before(sizes: Any) -> list[int]:
    """How much comes before each, and before the end."""
    return [0, *accumulate(map(int, sizes))]


def _shared(keys: np.ndarray, begins: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Keys that two groups have, of which group g has ``keys[begins[g]:ends[g]]``."""
    used = int((ends - begins[:-1]).sum())
    seen = np.zeros(1 << (2 * used).bit_length(), np.uint8)
    mark_keys(keys, begins, ends, seen)
    candidates = np.empty(keep_twins(keys, begins, ends, seen, np.empty(0, np.uint64)), np.uint64)
    keep_twins(keys, begins, ends, seen, candidates)
    candidates.sort()
    return candidates[1:][candidates[1:] == candidates[:-1]]


@lean
def sweep(plan, crew, groups, desk, slots, met, sayings, marks):
    """Number groups of templates until none is left.

    A table of s slots, each a key and its number, lies from slot s on, so that one of twice the
    size lies behind it.
    """
    state = desk.state
    while True:
        g = take(crew)
        if g >= len(groups.plain):
            return
        state[GROUP], state[SENTENCE], state[TOKEN], state[USED] = g, 0, 0, 0
        state[SLOTS] = groups.slots[g]
        _clear(slots, state[SLOTS])
        for j in range(groups.ptr[g], groups.ptr[g + 1]):
            desk.place[groups.template[j]] = sayings.first[groups.template[j]]
        for s in range(len(marks.token) - 1):
            _mark(groups, desk, marks, s)
            _sweep_to(marks.token[s + 1], plan, groups, desk, slots, met, sayings)
        _mark(groups, desk, marks, len(marks.token) - 1)


@inlined
def _mark(groups, desk, marks, s):
    g = desk.state[GROUP]
    marks.used[s, g] = desk.state[USED]
    for j in range(groups.ptr[g], groups.ptr[g + 1]):
        t = groups.template[j]
        marks.place[s, t] = desk.place[t]
        marks.fired[s, t] = desk.fired[t]


@inlined
def _sweep_to(stop, plan, groups, desk, slots, met, sayings):
    state, g = desk.state, desk.state[GROUP]
    while state[TOKEN] < stop:
        if groups.plain[g]:
            t = groups.template[groups.ptr[g]]
            n = min(stop - state[TOKEN], BLOCK)
            sentence = _fill_plain(plan, desk, t, state[TOKEN], n)
            k = state[TOKEN] + n
        else:
            n, k, sentence = _fill_block(plan, groups, desk, stop)
        while 4 * (state[USED] + n) > 3 * state[SLOTS]:
            _double(slots, state[SLOTS])
            state[SLOTS] *= 2
        table = state[SLOTS]
        for i in range(n):
            prefetch(slots, _slot(table, desk.keys[i]))
        if groups.plain[g]:
            _number_plain(groups, desk, slots, met, sayings, n)
        else:
            _number_block(groups, desk, slots, met, sayings, k)
        state[TOKEN], state[SENTENCE] = k, sentence


@inlined
def _fill_plain(plan, desk, t, start, n):
    """The key that a template makes of each of n tokens, 0 for none; the sentence of the last."""
    k, stop, sentence = start, start + n, desk.state[SENTENCE]
    while k < stop:
        while k >= plan.starts[sentence + 1]:
            sentence += 1
        begin, end = plan.starts[sentence], plan.starts[sentence + 1]
        last = min(end, stop)
        for i in range(k - start, last - start):
            desk.keys[i] = plan.seeds[t]
            desk.fires[i] = True
        for j in range(plan.ptr[t], plan.ptr[t + 1]):
            _mix_term(plan, desk, j, k, last, begin, end, start)
        for i in range(k - start, last - start):
            desk.keys[i] = not_empty(desk.keys[i]) if desk.fires[i] else np.uint64(0)
        if plan.where[t] != 0 or plan.edges:
            for p in range(k, last):
                if not fires_at(plan, t, p, begin, end):
                    desk.keys[p - start] = 0
        k = last
    return sentence


@inlined
def _mix_term(plan, desk, j, k, last, begin, end, start):
    """Mix the value of a term into the keys of the tokens from k to last, of one sentence."""
    offset, slot = plan.offset[j], plan.slot[j]
    row, source = plan.base[slot], plan.source[slot]
    inner = max(k, min(last, begin - offset))
    behind = max(inner, min(last, end - offset))
    for p in range(k, inner):
        _mix_padding(plan, desk, p - start, plan.pad + begin - p - offset - 1)
    for p in range(inner, behind):
        i, string = np.uint64(p - start), np.int64(plan.ids[source, np.uint64(p + offset)])
        low = plan.value_ptr[np.uint64(row + max(string, 0))]
        if string >= 0 and low < plan.value_ptr[np.uint64(row + string + 1)]:
            desk.keys[i] = mix(desk.keys[i], plan.hashes[np.uint64(low)])
        else:
            desk.fires[i] = False
    for p in range(behind, last):
        _mix_padding(plan, desk, p - start, plan.pad + plan.depth + p + offset - end)


@inlined
def _mix_padding(plan, desk, i, place):
    if plan.padding:
        desk.keys[i] = mix(desk.keys[i], plan.hashes[place])
    else:
        desk.fires[i] = False


@inlined
def _fill_block(plan, groups, desk, stop):
    """Keys of the tokens of a block, template by template; how many, token and sentence behind."""
    state = desk.state
    k, sentence, n, pairs = state[TOKEN], state[SENTENCE], 0, 0
    first, last = groups.ptr[state[GROUP]], groups.ptr[state[GROUP] + 1]
    while k < stop and n <= BLOCK and pairs + last - first < len(desk.bound):
        while k >= plan.starts[sentence + 1]:
            sentence += 1
        begin, end = plan.starts[sentence], plan.starts[sentence + 1]
        for j in range(first, last):
            n, value = keys_of_template(plan, groups.template[j], k, begin, end, desk.keys, n)
            desk.amount[pairs] = value
            pairs += 1
            desk.bound[pairs] = n
        k += 1
    return n, k, sentence


@inlined
def _number_plain(groups, desk, slots, met, sayings, n):
    state = desk.state
    t = groups.template[groups.ptr[state[GROUP]]]
    table, base, used = state[SLOTS], groups.first[state[GROUP]], state[USED]
    place, fired = desk.place[t], 0
    for i in range(n):
        key = desk.keys[np.uint64(i)]
        said = np.int64(NOTHING)
        if key != 0:
            slot = _find_slot(slots, table, key)
            if slots[np.uint64(slot)] == 0:
                _meet(slots, slot, met, base, used, key, state[TOKEN] + i, t, 0)
                used += 1
            said = ~np.int64(slots[np.uint64(slot + 1)])
            fired += 1
        sayings.entries[np.uint64(place + i)] = said
    desk.place[t] = place + n
    desk.fired[t] += fired
    state[USED] = used


@inlined
def _meet(slots, slot, met, base, used, key, token, t, which):
    slots[slot] = key
    slots[slot + 1] = np.uint64(used)
    met.key[base + used] = key
    met.token[base + used] = token
    met.template[base + used] = t
    met.which[base + used] = which


@inlined
def _number_block(groups, desk, slots, met, sayings, stop):
    state = desk.state
    first, last = groups.ptr[state[GROUP]], groups.ptr[state[GROUP] + 1]
    table, base, used, pair = state[SLOTS], groups.first[state[GROUP]], state[USED], 0
    for token in range(state[TOKEN], stop):
        for j in range(first, last):
            t = groups.template[j]
            low, high, place = desk.bound[pair], desk.bound[pair + 1], desk.place[t]
            if low == high:
                sayings.entries[place] = NOTHING
            for i in range(low, high):
                key = desk.keys[i]
                slot = _find_slot(slots, table, key)
                if slots[slot] == 0:
                    _meet(slots, slot, met, base, used, key, token, t, i - low)
                    used += 1
                number = np.int64(slots[slot + 1])
                sayings.entries[place + i - low] = number if i < high - 1 else ~number
                if len(sayings.amounts) > 0:
                    sayings.amounts[place + i - low] = desk.amount[pair]
            desk.place[t] = place + max(high - low, 1)
            desk.fired[t] += high - low
            pair += 1
    state[USED] = used


@inlined
def _slot(table, key):
    return 2 * (table + np.int64(key & np.uint64(table - 1)))


@inlined
def _find_slot(slots, table, key):
    """Where a table holds a key, or has room for it."""
    slot = _slot(table, key)
    while slots[np.uint64(slot)] != 0 and slots[np.uint64(slot)] != key:
        slot = 2 * table + ((slot + 2) & (2 * table - 1))
    return slot


@inlined
def _clear(slots, table):
    for place in range(2 * table, 4 * table):
        slots[place] = 0


@inlined
def _double(slots, table):
    """Put the content of a table into one of twice the size, behind it."""
    _clear(slots, 2 * table)
    for place in range(2 * table, 4 * table, 2):
        if slots[place] != 0:
            slot = _find_slot(slots, 2 * table, slots[place])
            slots[slot] = slots[place]
            slots[slot + 1] = slots[place + 1]


@lean
def rank(marks, s, group, first, met, following, final, keys, born):
    """Number the attributes that were met first in a stretch, in the order of the text.

    Template t belongs to ``group[t]``, whose attributes begin at ``met[first[g]]``. ``following``,
    with as many zeros as the stretch has tokens and one more, gets the number that follows at each
    token; the attribute at i gets ``final[i]``.
    """
    start, number = marks.token[s], 0
    for g in range(len(first) - 1):
        number += marks.used[s, g]
        for i in range(first[g] + marks.used[s, g], first[g] + marks.used[s + 1, g]):
            following[met.token[i] - start + 1] += 1
    following[0] = number
    for k in range(1, len(following)):
        following[k] += following[k - 1]
    for t in range(len(group)):
        g = group[t]
        for i in range(first[g] + marks.used[s, g], first[g] + marks.used[s + 1, g]):
            if met.template[i] != t:
                continue
            k = met.token[i] - start
            number = following[k]
            following[k] = number + 1
            final[i] = number
            keys[number] = met.key[i]
            if len(born.token) > 0:
                born.token[number] = met.token[i]
                born.template[number] = t
                born.which[number] = met.which[i]


@lean
def write_rows(marks, s, first, place, ends, sayings, final, indptr, indices, values):
    """Write the rows of a stretch: template t has its attributes at ``final[first[t]]``.

    ``place`` is where templates speak of the first token of the stretch. They are asked one after
    the other about a block of tokens, whose rows end at ``ends``.
    """
    n = 0
    for t in range(len(first)):
        n += marks.fired[s, t]
    k, stop = marks.token[s], marks.token[s + 1]
    while k < stop:
        size = min(stop - k, len(ends))
        _count_rows(place, sayings, size, ends)
        for i in range(size):
            count = ends[i]
            ends[i] = n
            n += count
            indptr[k + i + 1] = n
        for t in range(len(first)):
            p, base = place[t], first[t]
            for i in range(size):
                said, e = np.int64(sayings.entries[np.uint64(p)]), ends[np.uint64(i)]
                while said >= 0:
                    indices[np.uint64(e)] = final[np.uint64(base + said)]
                    if len(values) > 0:
                        values[np.uint64(e)] = sayings.amounts[np.uint64(p)]
                    e += 1
                    p += 1
                    said = np.int64(sayings.entries[np.uint64(p)])
                if said != NOTHING:
                    indices[np.uint64(e)] = final[np.uint64(base + ~said)]
                    if len(values) > 0:
                        values[np.uint64(e)] = sayings.amounts[np.uint64(p)]
                    e += 1
                ends[np.uint64(i)] = e
                p += 1
            place[t] = p
        k += size


@inlined
def _count_rows(place, sayings, size, counts):
    """How many attributes each token of a block has."""
    for i in range(size):
        counts[i] = 0
    for t in range(len(place)):
        p = place[t]
        for i in range(size):
            said, n = np.int64(sayings.entries[np.uint64(p)]), 0
            while said >= 0:
                n += 1
                p += 1
                said = np.int64(sayings.entries[np.uint64(p)])
            counts[np.uint64(i)] += n + np.int64(said != NOTHING)
            p += 1


@lean
def mark_keys(keys, begins, ends, seen):
    """Note by some bits of keys, two of ``seen`` for each, whether none, one or more have them."""
    for g in range(len(ends)):
        for i in range(begins[g], ends[g]):
            byte, shift = _mark_of(keys[np.uint64(i)], seen)
            seen[byte] += np.uint8((((seen[byte] >> shift) & 3) < 2) << shift)


@lean
def keep_twins(keys, begins, ends, seen, twins):
    """How many keys have bits that more have; they are copied where there is room."""
    n = 0
    for g in range(len(ends)):
        for i in range(begins[g], ends[g]):
            byte, shift = _mark_of(keys[np.uint64(i)], seen)
            if (seen[byte] >> shift) & 3 == 2:
                if len(twins) > 0:
                    twins[n] = keys[i]
                n += 1
    return n


@inlined
def _mark_of(key, seen):
    return key & np.uint64(len(seen) - 1), np.uint8(
        (key >> np.uint64(60)) & np.uint64(3)
    ) * np.uint8(2)

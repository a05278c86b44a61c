"""Templates as arrays, and attributes of tokens as integers: keys, and a table that numbers them.

An attribute is known by a 64-bit key, the hash of its template and of the strings of its terms.
Two different attributes share a key with a probability of about n² / 2^65 for n attributes
(one in 300 million for 335,000); they would then share their weights, and nothing else happens.
Keys are made for a block of tokens, and their slots prefetched, before the first is looked up.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import helper, kernel, prefetch
from hopefear.core.hashing import mix, pair_slot, slot_of
from hopefear.errors import HopefearError, InputError
from hopefear.features.templates.spec import (
    FIRST_TOKEN,
    LAST_TOKEN,
    ON_EDGES,
    POSITIONS,
    Lexicon,
    StringSource,
    Template,
    Templates,
    Term,
)
from hopefear.features.templates.string_features import SEVERAL, Types, hashes_of, seen

BLOCK = 512  # keys made ahead; more than fits the first-level cache would be fetched twice
SENTENCE, TOKEN, ENTRIES, USED = 0, 1, 2, 3  # positions in Work.state


class KeyPlan(NamedTuple):
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
    max_keys: int  # keys of one token, at most


class Work(NamedTuple):
    """Keys of the tokens of a block, and how far the work is."""

    keys: np.ndarray  # uint64[BLOCK + most]
    template: np.ndarray  # int64
    value_index: np.ndarray  # int64, which value of the last term
    amount: np.ndarray  # float32
    bound: np.ndarray  # int64[BLOCK + 1], keys before each token of the block
    state: np.ndarray  # int64[4]


class FirstOccurrences(NamedTuple):
    """First occurrence of each attribute; empty where names are not kept."""

    token: np.ndarray  # int64
    template: np.ndarray  # uint16
    value_index: np.ndarray  # int32


def new_work(max_keys: int) -> Work:
    """Room for a block."""
    room = BLOCK + max_keys
    return Work(
        np.zeros(room, np.uint64),
        np.zeros(room, np.int64),
        np.zeros(room, np.int64),
        np.zeros(room, np.float32),
        np.zeros(BLOCK + 1, np.int64),
        np.zeros(4, np.int64),
    )


@helper(inline=True)
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


@helper(inline=True)
def fires_at(plan, t, k, begin, end):
    """Whether a template looks at token k at all; an edge leads to none of the first tokens."""
    where = plan.where[t]
    if (where & FIRST_TOKEN and k != begin) or (where & LAST_TOKEN and k != end - 1):
        return False
    return not plan.edges or k > begin


@helper(inline=True)
def keys_of_template(plan, t, k, begin, end, keys, n):
    """Put the keys of template t on token k behind the first n; how many there are, their value."""
    value = np.float32(1.0)
    if not fires_at(plan, t, k, begin, end):
        return n, value
    if plan.number[t] >= 0:
        p = k + plan.number_offset[t]
        if p < begin or p >= end:
            return n, value
        number = plan.number[t]
        string = np.int64(plan.ids[plan.number_source[number], p])
        value = plan.reals[plan.number_base[number] + string]
    h = plan.seeds[t]
    last = plan.ptr[t + 1] - 1
    if last < plan.ptr[t]:
        keys[n] = not_empty(h)
        return n + 1, value
    for j in range(plan.ptr[t], last):
        low, high = _values_at(plan, j, k + plan.offset[j], begin, end)
        if low == high:
            return n, value
        h = mix(h, plan.hashes[low])
    low, high = _values_at(plan, last, k + plan.offset[last], begin, end)
    for v in range(low, high):
        keys[n] = not_empty(mix(h, plan.hashes[v]))
        n += 1
    return n, value


@helper(inline=True)
def not_empty(h):
    return h if h != np.uint64(0) else np.uint64(1)  # 0 marks an empty slot


@helper(inline=True)
def _keys_at(plan, work, n, k, begin, end):
    """Put the keys of token k behind the first n of a block; how many there are then."""
    for t in range(len(plan.seeds)):
        n_keys, value = keys_of_template(plan, t, k, begin, end, work.keys, n)
        for p in range(n, n_keys):
            work.template[p] = t
            work.value_index[p] = p - n
            work.amount[p] = value
        n = n_keys
    return n


@helper(inline=True)
def _fill_block(plan, work, slots, sentence, k):
    """Fills a block with keys of tokens from ``k`` on; returns count, sentence and next token."""
    n, size, tokens = 0, 0, plan.ids.shape[1]
    while k < tokens and n + plan.max_keys <= len(work.keys) and size < BLOCK:
        while k >= plan.starts[sentence + 1]:
            sentence += 1
        n_keys = _keys_at(plan, work, n, k, plan.starts[sentence], plan.starts[sentence + 1])
        if len(slots) > 0:
            for p in range(n, n_keys):
                prefetch(slots, slot_of(slots, work.keys[p]))
        n = n_keys
        k += 1
        size += 1
        work.bound[size] = n
    return size, sentence, k


@kernel(refcount=False)
def number_keys(plan, work, slots, occurrences, fired, indptr, indices, values):
    """Numbers the attributes of all tokens by first occurrence; False if the table is too full.

    A slot holds a key, and in the next place its count and number: ``count << 32 | number``.
    Called again with a larger table, it resumes where it stopped.
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
                slot = pair_slot(slots, key, key)
                if slots[slot] == 0:
                    slots[slot] = key
                    slots[slot + 1] = np.uint64(used)
                    if len(occurrences.token) > 0:
                        occurrences.token[used] = first + token
                        occurrences.template[used] = work.template[n]
                        occurrences.value_index[used] = work.value_index[n]
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


@kernel(refcount=False)
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


@helper(inline=True)
def _find(slots, key):
    slot = pair_slot(slots, key, key)
    return np.int64(slots[slot + 1] & np.uint64(0xFFFFFFFF)) if slots[slot] != 0 else np.int64(-1)


@kernel(refcount=False)
def move_slots(old, new):
    """Put the content of a table into a larger, empty one."""
    for k in range(0, len(old), 2):
        if old[k] != 0:
            slot = pair_slot(new, old[k], old[k])
            new[slot] = old[k]
            new[slot + 1] = old[k + 1]


@kernel(refcount=False)
def read_slots(slots, keys, counts):
    """Key and count of every number in a table."""
    for k in range(0, len(slots), 2):
        if slots[k] != 0:
            number = np.int64(slots[k + 1] & np.uint64(0xFFFFFFFF))
            keys[number] = slots[k]
            counts[number] = np.int64(slots[k + 1] >> np.uint64(32))


@kernel(refcount=False)
def fill_slots(slots, keys):
    """Number keys by their places; how many were put in before one came twice or was 0."""
    for i in range(len(keys)):
        slot = pair_slot(slots, keys[i], keys[i])
        if keys[i] == 0 or slots[slot] != 0:
            return i
        slots[slot] = keys[i]
        slots[slot + 1] = np.uint64(i)
    return len(keys)


@kernel(refcount=False)
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


class Program(NamedTuple):
    """The templates that fire on labels, or those that fire on edges, as arrays of a Plan."""

    templates: tuple[Template, ...]
    terms: tuple[tuple[int, ...], ...]  # places of the terms, the one of several values last
    edges: bool
    seeds: np.ndarray
    where: np.ndarray
    ptr: np.ndarray
    slot: np.ndarray
    offset: np.ndarray
    number: np.ndarray
    number_offset: np.ndarray
    several: np.ndarray  # bool[templates]


class Slots:
    """Everything that templates look at: sources, views of them and columns of numbers.

    Parameters
    ----------
    templates : Templates
        With every column by its name.
    """

    def __init__(self, templates: Templates) -> None:
        self.templates = templates
        everything = [t for template in templates.templates for t in template.all_terms()]
        self.sources = tuple(dict.fromkeys(term.source for term in everything))
        self.views = tuple(
            dict.fromkeys(
                (t.source, t.views) for template in templates.templates for t in template.terms
            )
        )
        self.numbers = tuple(
            dict.fromkeys(t.number.source for t in templates.templates if t.number is not None)
        )
        self.depth = max((abs(term.offset) for term in everything), default=0)
        self.columns = tuple(dict.fromkeys(source.needs() for source in self.sources))
        rows = {source: row for row, source in enumerate(self.sources)}
        self._rows = np.array([rows[source] for source, _ in self.views], np.int64)
        self._number_rows = np.array([rows[source] for source in self.numbers], np.int64)
        self._pads = hashes_of([padding_name(-1 - i, self.depth) for i in range(2 * self.depth)])
        self._lexicons = {s: self._lexicon(s) for s in self.sources if s.lexicon}

    def program(self, on: str) -> Program:
        """The templates that fire on ``labels`` or on ``edges``."""
        chosen = tuple(t for t in self.templates.templates if t.on in (on, "both"))
        orders = tuple(_hash_order(t.terms) for t in chosen)
        terms = [t.terms[i] for t, order in zip(chosen, orders, strict=True) for i in order]
        slot_of = {pair: i for i, pair in enumerate(self.views)}
        number_of = {source: i for i, source in enumerate(self.numbers)}
        return Program(
            chosen,
            orders,
            on == ON_EDGES,
            hashes_of(["\x00".join((*t.pieces, str(len(t.terms)))) for t in chosen]),
            np.array([t.where for t in chosen], np.int64),
            np.cumsum([0, *(len(t.terms) for t in chosen)]),
            np.array([slot_of[t.source, t.views] for t in terms], np.int64),
            np.array([t.offset for t in terms], np.int64),
            np.array([number_of[t.number.source] if t.number else -1 for t in chosen], np.int64),
            np.array([t.number.offset if t.number else 0 for t in chosen], np.int64),
            np.array([any(map(_several, t.terms)) for t in chosen], bool),
        )

    def bind(self, sentences: Any) -> Bound:
        """Returns the slots in the numbers of a file of sentences."""
        _check_columns(sentences, self.columns)
        tokens = int(sentences.starts[-1])
        types = {c: Types(sentences.columns[c].strings) for c in self.columns}
        ids = np.empty((len(self.sources), tokens), np.int32)
        for row, source in enumerate(self.sources):
            column = sentences.columns[source.needs()]
            ids[row] = (
                self._lexicons[source].match(
                    sentences.starts, types[source.needs()].mapped(source.views), column.ids
                )
                if source.lexicon
                else column.ids
            )
        tables = self._tables(types)
        numbers = [_numbers(sentences, source.needs()) for source in self.numbers]
        return self._bound(tables, numbers, np.array(sentences.starts, np.int64), ids)

    def bind_strings(self, strings: dict[str, Sequence[str]]) -> Bound:
        """The slots for columns that have these distinct strings, without any token."""
        types = {c: Types(strings.get(c, ())) for c in self.columns}
        tables = self._tables(types)
        ids = np.empty((len(self.sources), 0), np.int32)
        numbers = [np.zeros(0, np.float32) for _ in self.numbers]
        return self._bound(tables, numbers, np.zeros(1, np.int64), ids)

    def row_of(self, slot: int) -> int:
        """Returns the index of the source that a slot reads."""
        return int(self._rows[slot])

    def strings_of(self, source: StringSource, strings: dict[str, Sequence[str]]) -> Sequence[str]:
        """Distinct strings of a source, given those of the columns."""
        return POSITIONS if source.lexicon else strings[source.needs()]

    def _tables(self, types: dict[str, Types]) -> list[Any]:
        with np.errstate(over="ignore"):  # hashes wrap; only uncompiled kernels warn
            return [self._types(source, types).values(views) for source, views in self.views]

    def _types(self, source: StringSource, types: dict[str, Types]) -> Types:
        return Types(POSITIONS) if source.lexicon else types[source.needs()]

    def _lexicon(self, source: StringSource) -> Lexicon:
        def view(word: str) -> str | None:
            return seen(word, source.views)[0]

        return Lexicon(self.templates.lexicons[source.lexicon], view)

    def _bound(
        self, tables: list[Any], numbers: list[np.ndarray], starts: np.ndarray, ids: np.ndarray
    ) -> Bound:
        base, value_ptr, n_values, rows = [], [], 0, 0
        for table in tables:
            base.append(rows)
            value_ptr.append(table.ptr + n_values)
            rows += len(table.ptr)
            n_values += len(table.hashes)
        return Bound(
            self._rows,
            np.array(base, np.int64),
            np.concatenate([np.zeros(0, np.int64), *value_ptr]),
            np.concatenate([np.zeros(0, np.uint64), *(t.hashes for t in tables), self._pads]),
            self._number_rows,
            np.cumsum([0, *map(len, numbers)])[:-1],
            np.concatenate([np.zeros(0, np.float32), *numbers]),
            starts,
            ids,
            n_values,
            self.depth,
            self.templates.padding,
        )


class Bound(NamedTuple):
    """The part of a Plan that labels and edges share."""

    source: np.ndarray
    base: np.ndarray
    value_ptr: np.ndarray
    hashes: np.ndarray
    number_source: np.ndarray
    number_base: np.ndarray
    reals: np.ndarray
    starts: np.ndarray
    ids: np.ndarray
    pad: int
    depth: int
    padding: bool

    def plan(self, program: Program) -> KeyPlan:
        """Returns the arrays that a kernel reads to make the keys of a program."""
        max_keys = len(program.seeds)
        for t in np.flatnonzero(program.several).tolist():  # one more where there is padding
            max_keys += int(self._sizes(program.slot[program.ptr[t + 1] - 1]).max(initial=0))
        values: tuple[Any, ...] = (*program[3:10], *self, program.edges, max_keys)
        return KeyPlan(*values)

    def room(self, program: Program) -> np.ndarray:
        """Entries that each template of a program makes, at most."""
        tokens, entries = self.ids.shape[1], dict[int, int]()
        capacity = np.full(len(program.seeds), tokens)
        if not tokens:
            return capacity
        for t in np.flatnonzero(program.several).tolist():
            last = program.ptr[t + 1] - 1
            slot = int(program.slot[last])
            if slot not in entries:  # where there is no string, -1, any number will do
                entries[slot] = int(self._sizes(slot)[self.ids[self.source[slot]]].sum())
            # Outside the sentence, padding counts as one more.
            capacity[t] = entries[slot] + abs(int(program.offset[last])) * len(self.starts)
        return capacity

    def kinds(self, program: Program) -> np.ndarray:
        """Attributes that each template of a program could make, as float64."""
        ends = np.append(self.base, len(self.value_ptr))[1:] - 1
        values = (self.value_ptr[ends] - self.value_ptr[self.base] + 2 * self.depth)[program.slot]
        spans = zip(program.ptr[:-1], program.ptr[1:], strict=True)
        return np.array([values[a:b].prod(dtype=np.float64) for a, b in spans])

    def _sizes(self, slot: int) -> np.ndarray:
        """Number of values of each string in a slot."""
        ends = np.append(self.base, len(self.value_ptr))
        return np.diff(self.value_ptr[ends[slot] : ends[slot + 1]])


def _check_columns(sentences: Any, names: Sequence[str]) -> None:
    """Refuse what kernels would follow to places outside of their arrays."""
    starts = np.asarray(sentences.starts)
    if starts.ndim != 1 or not starts.size or starts[0] != 0 or (starts[1:] < starts[:-1]).any():
        raise HopefearError(f"{sentences.source}: starts must rise from 0")
    for name in names:
        ids, n_strings = sentences.columns[name].ids, len(sentences.columns[name].strings)
        if ids.shape != (int(starts[-1]),):
            raise HopefearError(
                f"{sentences.source}: the column {name!r} has {ids.size} rows for "
                f"{int(starts[-1])} tokens"
            )
        if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= n_strings):
            raise HopefearError(
                f"{sentences.source}: the column {name!r} has {n_strings} strings, and its ids go "
                f"from {int(ids.min())} to {int(ids.max())}"
            )


def padding_name(code: int, depth: int) -> str:
    """Returns the padding token of a code: -1 to -depth before the sentence, further ones after it.

    >>> padding_name(-2, 3), padding_name(-4, 3)
    ('_B-2', '_B+1')
    """
    distance = -code
    return f"_B-{distance}" if distance <= depth else f"_B+{distance - depth}"


def _several(term: Term) -> bool:
    return bool(term.views) and term.views[-1].name in SEVERAL


def _hash_order(terms: tuple[Term, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(terms)), key=lambda i: _several(terms[i])))


def _numbers(sentences: Any, name: str) -> np.ndarray:
    """Value of each distinct string of a column, or InputError for one that is no number."""
    column = sentences.columns[name]
    numbers = np.fromiter((_number(s) for s in column.strings), np.float64, len(column.strings))
    with np.errstate(over="ignore"):
        values = numbers.astype(np.float32)
    bad = ~np.isfinite(values)
    if bad.any():
        positions = np.flatnonzero(bad[column.ids])
        if positions.size:
            k = int(positions[0])
            raise InputError(
                sentences.source,
                sentences.place(k),
                f"a finite number in the column {name!r}",
                column.strings[column.ids[k]],
            )
        values[bad] = 0.0
    return values


def _number(text: str) -> float:
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan

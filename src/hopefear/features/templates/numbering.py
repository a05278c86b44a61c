"""Numbers and names of attributes: counted, cut off or hashed while they are made.

An attribute is stored as its template and, for every term, the number of a string in the
vocabulary of a column. Names follow from that, and so do keys: a model file holds no others.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import Strings
from hopefear.core.component import kernel
from hopefear.core.hashing import mix
from hopefear.core.stages import stage
from hopefear.features.templates.program import (
    ENTRIES,
    USED,
    Born,
    Bound,
    Plan,
    Program,
    Slots,
    fill_slots,
    join_keys,
    look_up,
    move_slots,
    new_work,
    number_keys,
    padding_name,
    read_slots,
    renumber,
)
from hopefear.features.templates.spec import POSITIONS, Template
from hopefear.features.templates.views import seen

_FIRST_ROOM = 1 << 12
# Tokens of a stretch, at least, that a thread of its own is worth.
_STRETCH = 1 << 13


class Rows(NamedTuple):
    """Attributes of every token, as in ``Attributes``."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray


class Numbered(NamedTuple):
    """What one pass over the tokens finds."""

    keys: np.ndarray  # uint64, by number
    counts: np.ndarray  # int64, occurrences
    born: Born
    fired: np.ndarray  # int64[templates], occurrences
    rows: Rows


class Table:
    """Numbers by key: the place of the key in ``keys``, or its top ``bits`` bits.

    Parameters
    ----------
    keys : array of uint64
        Distinct, none 0; unused where attributes are hashed.
    bits : int
        0, or attributes are hashed to ``2**bits`` numbers.
    """

    def __init__(self, keys: np.ndarray, bits: int = 0) -> None:
        self.keys, self.bits = keys, bits

    @property
    def size(self) -> int:
        return 1 << self.bits if self.bits else len(self.keys)

    def encode(self, bound: Bound, program: Program) -> Rows:
        """Known attributes of every token."""
        plan = bound.plan(program)
        rows = _room_for(bound, program)
        with np.errstate(over="ignore"):
            used = look_up(
                plan, new_work(plan.most), self._slots, 64 - self.bits if self.bits else 0, *rows
            )
        return _cut(rows, used)

    def distinct(self) -> bool:
        """Whether no key is 0 or there twice."""
        return self._filled[0]

    @property
    def _slots(self) -> np.ndarray:
        return self._filled[1]

    @functools.cached_property
    def _filled(self) -> tuple[bool, np.ndarray]:
        if self.bits:
            return True, np.zeros(0, np.uint64)
        slots = _slots_for(len(self.keys))
        return fill_slots(slots, np.array(self.keys)) == len(self.keys), slots


def number(bound: Bound, program: Program, keep_names: bool, n_jobs: int = 1) -> Numbered:
    """Number the attributes of a program in the order they come.

    Threads number those of a stretch of sentences each, which are then joined: attributes that were
    new in a stretch get their numbers in the order in which it met them.
    """
    tokens = bound.ids.shape[1]
    stretches = bound.stretches(min(n_jobs, tokens // _STRETCH + 1))
    with stage(f"features of {tokens:,} tokens"):
        if len(stretches) == 1:
            return _number(bound, program, keep_names)[0]
        with ThreadPoolExecutor(len(stretches)) as pool:
            parts = list(pool.map(lambda part: _number(part, program, keep_names), stretches))
            return _joined(parts, [part.ids.shape[1] for part in stretches], pool)


def _number(bound: Bound, program: Program, keep_names: bool) -> tuple[Numbered, np.ndarray]:
    """Attributes of a program, and the table of their keys."""
    plan: Plan = bound.plan(program)
    rows, work = _room_for(bound, program), new_work(plan.most)
    slots = _slots_for(_FIRST_ROOM + 4 * plan.most)
    born = _born(len(slots) // 2 if keep_names else 0)
    fired = np.zeros(len(program.seeds), np.int64)
    with np.errstate(over="ignore"):  # hashes wrap; only uncompiled kernels warn
        while not number_keys(plan, work, slots, born, fired, *rows):
            larger = np.zeros(2 * len(slots), np.uint64)
            move_slots(slots, larger)
            slots = larger
            if keep_names:
                born = Born(*(_longer(a, len(slots) // 2) for a in born))
        used = int(work.state[USED])
        keys, counts = np.zeros(used, np.uint64), np.zeros(used, np.int64)
        read_slots(slots, keys, counts)
    born = Born(*(a[: used if keep_names else 0].copy() for a in born))
    return Numbered(keys, counts, born, fired, _cut(rows, int(work.state[ENTRIES]))), slots


def _joined(
    parts: list[tuple[Numbered, np.ndarray]], tokens: list[int], pool: ThreadPoolExecutor
) -> Numbered:
    """What one pass over all tokens would have found, from passes over stretches of them."""
    (first, slots), used = parts[0], len(parts[0][0].keys)
    numbers: list[np.ndarray] = []
    places: list[Any] = [slice(None)]  # of the attributes that each part met first
    for part, _ in parts[1:]:
        while 3 * len(slots) < 8 * (used + len(part.keys)):
            slots, smaller = np.zeros(2 * len(slots), np.uint64), slots
            move_slots(smaller, slots)
        new = np.empty(len(part.keys), np.int32)
        before, used = used, join_keys(slots, used, part.keys, new)
        numbers.append(new)
        places.append(new >= before)
    total = np.zeros(used, np.int64)
    total[: len(first.counts)] = first.counts
    for (part, _), new in zip(parts[1:], numbers, strict=True):
        total[new] += part.counts
    rows = [part.rows for part, _ in parts]
    list(pool.map(lambda new, some: renumber(new, *some), numbers, rows[1:]))
    starts = np.cumsum([0, *tokens])
    ends = np.cumsum([0, *(len(some.indices) for some in rows)])
    born = [
        Born(part.born.token + start, part.born.template, part.born.which)
        for (part, _), start in zip(parts, starts, strict=False)
    ]
    named = len(first.born.token) > 0
    indptr = [some.indptr[1:] + end for some, end in zip(rows, ends, strict=False)]
    return Numbered(
        np.concatenate([part.keys[where] for (part, _), where in zip(parts, places, strict=True)]),
        total,
        Born(
            *(
                np.concatenate([a[where] for a, where in zip(arrays, places, strict=True)])
                for arrays in zip(*born, strict=True)
            )
        )
        if named
        else first.born,
        np.sum([part.fired for part, _ in parts], axis=0),
        Rows(
            np.concatenate([np.zeros(1, np.int64), *indptr]),
            np.concatenate([some.indices for some in rows]),
            np.concatenate([some.values for some in rows]),
        ),
    )


def cut_off(attributes: Numbered, min_count: int) -> Numbered:
    """Leave out the attributes that were seen fewer times."""
    keep = attributes.counts >= min_count
    if keep.all():
        return attributes
    new = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
    used = renumber(new, *attributes.rows)
    born = (
        Born(*(a[keep] for a in attributes.born)) if len(attributes.born.token) else attributes.born
    )
    return attributes._replace(
        keys=attributes.keys[keep],
        counts=attributes.counts[keep],
        born=born,
        rows=_cut(attributes.rows, used),
    )


def hash_to(attributes: Numbered, bits: int) -> tuple[Rows, np.ndarray, float]:
    """Rows with hashed numbers, the number of each key, and the share of keys that share one."""
    columns = (attributes.keys >> np.uint64(64 - bits)).astype(np.int32)
    rows = attributes.rows._replace(indices=columns[attributes.rows.indices])
    ordered = np.sort(columns)
    same = ordered[1:] == ordered[:-1]
    shared = np.zeros(len(ordered), bool)
    shared[1:] |= same
    shared[:-1] |= same
    return rows, columns, float(shared.mean()) if len(shared) else 0.0


def no_rows() -> Rows:
    """Rows where no template could fire."""
    return Rows(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))


def _room_for(bound: Bound, program: Program) -> Rows:
    room = bound.room(program)
    return Rows(
        np.zeros(bound.ids.shape[1] + 1, np.int64),
        np.empty(room, np.int32),
        np.empty(room if (program.number >= 0).any() else 0, np.float32),
    )


def _cut(rows: Rows, used: int) -> Rows:
    return Rows(rows.indptr, rows.indices[:used], rows.values[:used])


def _slots_for(entries: int) -> np.ndarray:
    return np.zeros(2 << max(4, (4 * entries // 3).bit_length()), np.uint64)


def _born(room: int) -> Born:
    return Born(np.zeros(room, np.int64), np.zeros(room, np.uint16), np.zeros(room, np.int32))


def _longer(array: np.ndarray, room: int) -> np.ndarray:
    longer = np.zeros(room, array.dtype)
    longer[: len(array)] = array
    return longer


class Names(NamedTuple):
    """Attribute i is template ``template[i]`` on ``parts[ptr[i]:ptr[i + 1]]``.

    Parts are numbers of strings in the order of the kernel's terms, negative for padding; where a
    term has several values, which of them comes last.
    """

    template: np.ndarray  # uint16[attributes]
    parts: np.ndarray  # int32
    ptr: np.ndarray  # int64[attributes + 1]

    @classmethod
    def of(cls, program: Program, template: np.ndarray, parts: np.ndarray) -> Names:
        """Names with their pointers, which the templates determine."""
        return cls(template, parts, _pointers(program, template))

    def take(self, which: np.ndarray) -> Names:
        """The names of these attributes."""
        sizes = np.diff(self.ptr)[which]
        ptr = np.concatenate([[0], np.cumsum(sizes)])
        places = np.arange(ptr[-1]) + np.repeat(self.ptr[which] - ptr[:-1], sizes)
        return Names(self.template[which], self.parts[places], ptr)


def part_sizes(program: Program) -> np.ndarray:
    """Number of parts of an attribute, for every template."""
    return np.diff(program.ptr) + program.several


def _pointers(program: Program, template: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(part_sizes(program)[template])]).astype(np.int64)


class Recorder:
    """Makes the names of attributes, and vocabularies of the strings they use.

    Parameters
    ----------
    slots : Slots
        What the templates look at.
    strings : dict of str to sequence of str
        Distinct strings of every column.
    """

    def __init__(self, slots: Slots, strings: dict[str, Sequence[str]]) -> None:
        self._slots, self._strings = slots, strings
        sizes = [len(slots.strings_of(s, strings)) for s in slots.sources]
        self._base = np.cumsum([0, *sizes])
        self._new = np.full(int(self._base[-1]), -1, np.int32)
        self._old = np.zeros(int(self._base[-1]), np.int32)
        self._used = np.zeros(len(sizes), np.int64)
        for row, source in enumerate(slots.sources):
            if source.lexicon:
                self._new[self._base[row] : self._base[row + 1]] = np.arange(sizes[row])

    def names(self, program: Program, plan: Plan, born: Born) -> Names:
        """Names of attributes that were first met at these places, in rising order of tokens."""
        ptr = _pointers(program, born.template)
        parts = np.zeros(int(ptr[-1]), np.int32)
        _record(
            plan, born, program.several, ptr, parts, self._base, self._new, self._old, self._used
        )
        return Names(born.template, parts, ptr)

    def vocabularies(self) -> dict[str, Strings]:
        """The strings that names use, by column."""
        texts = {}
        for row, source in enumerate(self._slots.sources):
            if not source.lexicon:
                strings, first = self._strings[source.needs()], int(self._base[row])
                old = self._old[first : first + int(self._used[row])]
                texts[source.needs()] = Strings.pack([strings[i] for i in old.tolist()])
        return texts


def strings_of(
    slots: Slots, program: Program, names: Names, strings: Mapping[str, Strings], i: int
) -> tuple[Template, list[str]]:
    """The template of attribute i, and the string of each of its terms."""
    t = int(names.template[i])
    template, order = program.templates[t], program.terms[t]
    codes = names.parts[names.ptr[i] : names.ptr[i + 1]].tolist()
    which = codes.pop() if program.several[t] else 0
    shown = [""] * len(order)
    for rank, place in enumerate(order):
        term, code = template.terms[place], codes[rank]
        if code < 0:
            shown[place] = padding_name(code, slots.depth)
            continue
        source = term.source
        text = POSITIONS[code] if source.lexicon else strings[source.needs()].get(code)
        values = seen(text, term.views)
        shown[place] = values[which if rank == len(order) - 1 and program.several[t] else 0]
    return template, shown


def name_of(
    slots: Slots, program: Program, names: Names, strings: Mapping[str, Strings], i: int
) -> str:
    """Name of attribute i: ``word[-1]|word[0]=the|cat``."""
    template, shown = strings_of(slots, program, names, strings, i)
    return "".join(
        a + b for a, b in zip(template.pieces, [*shown, ""][: len(template.pieces)], strict=True)
    )


def keys_of(bound: Bound, program: Program, names: Names) -> np.ndarray | None:
    """Keys of attributes, or None if a part is none of its column's strings or values."""
    keys = np.zeros(len(names.template), np.uint64)
    sizes = np.append(bound.base[1:], len(bound.value_ptr)) - bound.base - 1
    with np.errstate(over="ignore"):  # hashes wrap; only uncompiled kernels warn
        good = _keys(
            bound.plan(program),
            program.several,
            sizes,
            names.template,
            names.ptr,
            names.parts,
            keys,
        )
    return keys if good else None


@kernel
def _record(plan, born, several, ptr, parts, base, new, old, used):
    sentence = 0
    for i in range(len(born.token)):
        k, t, place = born.token[i], np.int64(born.template[i]), ptr[i]
        while k >= plan.starts[sentence + 1]:
            sentence += 1
        begin, end = plan.starts[sentence], plan.starts[sentence + 1]
        for j in range(plan.ptr[t], plan.ptr[t + 1]):
            p = k + plan.offset[j]
            if p < begin:
                code = p - begin
            elif p >= end:
                code = -plan.depth - (p - end + 1)
            else:
                source = plan.source[plan.slot[j]]
                string = np.int64(plan.ids[source, p])
                code = np.int64(new[base[source] + string])
                if code < 0:
                    code = used[source]
                    new[base[source] + string] = code
                    old[base[source] + code] = string
                    used[source] += 1
            parts[place] = code
            place += 1
        if several[t]:
            parts[place] = born.which[i]


@kernel
def _keys(plan, several, sizes, template, ptr, parts, keys):
    for i in range(len(template)):
        t, place = np.int64(template[i]), ptr[i]
        h = plan.seeds[t]
        for j in range(plan.ptr[t], plan.ptr[t + 1]):
            code = np.int64(parts[place])
            place += 1
            which = np.int64(0)
            if several[t] and j == plan.ptr[t + 1] - 1:
                which = np.int64(parts[place])
            if code < 0:
                if not plan.padding or code < -2 * plan.depth or which != 0:
                    return False
                h = mix(h, plan.hashes[plan.pad - code - 1])
                continue
            slot = plan.slot[j]
            if code >= sizes[slot]:
                return False
            row = plan.base[slot] + code
            if which < 0 or plan.value_ptr[row] + which >= plan.value_ptr[row + 1]:
                return False
            h = mix(h, plan.hashes[plan.value_ptr[row] + which])
        keys[i] = h if h != np.uint64(0) else np.uint64(1)
    return True

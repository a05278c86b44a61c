"""Numbers and names of attributes: counted, cut off or hashed while they are made.

An attribute is stored as its template and, for every term, the number of a string in the
vocabulary of a column. Names follow from that, and so do keys: a model file holds no others.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hopefear.core.arrays import Strings, Texts
from hopefear.core.component import kernel
from hopefear.core.hashing import mix
from hopefear.core.progress import stage
from hopefear.features.templates.program import (
    ENTRIES,
    USED,
    Bound,
    FirstOccurrences,
    KeyPlan,
    Program,
    Slots,
    fill_slots,
    look_up,
    move_slots,
    new_work,
    number_keys,
    padding_name,
    read_slots,
    renumber,
)
from hopefear.features.templates.spec import POSITIONS, Template
from hopefear.features.templates.string_features import seen

_FIRST_ROOM = 1 << 12


class AttributeIndices(NamedTuple):
    """Attributes of every token, as in ``Attributes``."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray


class NumberedAttributes(NamedTuple):
    """Attributes of the tokens, numbered in one scan."""

    keys: np.ndarray  # uint64, by number
    occurrences: FirstOccurrences
    fired: np.ndarray  # int64[templates], occurrences
    rows: AttributeIndices


class AttributeTable:
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

    def encode(self, bound: Bound, program: Program) -> AttributeIndices:
        """Known attributes of every token."""
        plan = bound.plan(program)
        rows = _room_for(bound, program)
        with np.errstate(over="ignore"):
            used = look_up(
                plan,
                new_work(plan.max_keys),
                self._slots,
                64 - self.bits if self.bits else 0,
                *rows,
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


def number(bound: Bound, program: Program, keep_names: bool) -> NumberedAttributes:
    """Returns the attributes of a program, numbered by first occurrence."""
    growing = GrowingAttributes(len(program.seeds), keep_names)
    if program.edges and not program.templates:
        return NumberedAttributes(
            np.zeros(0, np.uint64), growing.occurrences, growing.fired, no_rows()
        )
    with stage(f"features of {bound.ids.shape[1]:,} tokens"):
        rows = growing.encode(bound, program)
    return NumberedAttributes(growing.table()[0], growing.occurrences, growing.fired, rows)


class GrowingAttributes:
    """A table of attributes that grows with the text.

    Parameters
    ----------
    n_templates : int
        Templates of the program.
    keep_names : bool
        Keep the first occurrence of each attribute.
    """

    def __init__(self, n_templates: int, keep_names: bool) -> None:
        self.used = 0
        self.fired = np.zeros(n_templates, np.int64)  # occurrences
        self._keep_names = keep_names
        self._occurrences = _occurrences(0)
        self._slots = np.zeros(0, np.uint64)

    @property
    def occurrences(self) -> FirstOccurrences:
        return FirstOccurrences(*(a[: self.used] for a in self._occurrences))

    def encode(self, bound: Bound, program: Program) -> AttributeIndices:
        """Numbers the attributes of a text, new ones behind those that are known."""
        plan = bound.plan(program)
        rows, work = _room_for(bound, program), new_work(plan.max_keys)
        work.state[USED] = self.used
        if not len(self._slots):
            self._slots = _slots_for(_FIRST_ROOM + 4 * plan.max_keys)
            self._make_room()
        with np.errstate(over="ignore"):  # hashes wrap; only uncompiled kernels warn
            while not number_keys(plan, work, self._slots, self._occurrences, self.fired, *rows):
                larger = np.zeros(2 * len(self._slots), np.uint64)
                move_slots(self._slots, larger)
                self._slots = larger
                self._make_room()
        self.used = int(work.state[USED])
        return _cut(rows, int(work.state[ENTRIES]))

    def table(self) -> tuple[np.ndarray, np.ndarray]:
        """Returns key and count of every attribute."""
        keys, counts = np.zeros(self.used, np.uint64), np.zeros(self.used, np.int64)
        read_slots(self._slots, keys, counts)
        return keys, counts

    def _make_room(self) -> None:
        if self._keep_names:
            self._occurrences = FirstOccurrences(
                *(_longer(a, len(self._slots) // 2) for a in self._occurrences)
            )


def cut_off(attributes: NumberedAttributes, min_count: int) -> NumberedAttributes:
    """Leave out the attributes that were seen fewer times."""
    if min_count == 1:
        return attributes
    keep = np.bincount(attributes.rows.indices, minlength=len(attributes.keys)) >= min_count
    new = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
    used = renumber(new, *attributes.rows)
    occurrences = (
        FirstOccurrences(*(a[keep] for a in attributes.occurrences))
        if len(attributes.occurrences.token)
        else attributes.occurrences
    )
    return attributes._replace(
        keys=attributes.keys[keep], occurrences=occurrences, rows=_cut(attributes.rows, used)
    )


def hash_to(
    attributes: NumberedAttributes, bits: int
) -> tuple[AttributeIndices, np.ndarray, float]:
    """Rows with hashed numbers, the number of each key, and the share of keys that share one."""
    columns = (attributes.keys >> np.uint64(64 - bits)).astype(np.int32)
    rows = attributes.rows._replace(indices=columns[attributes.rows.indices])
    ordered = np.sort(columns)
    is_repeated = ordered[1:] == ordered[:-1]
    shared = np.zeros(len(ordered), bool)
    shared[1:] |= is_repeated
    shared[:-1] |= is_repeated
    return rows, columns, float(shared.mean()) if len(shared) else 0.0


def no_rows() -> AttributeIndices:
    """Rows where no template could fire."""
    return AttributeIndices(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))


def _room_for(bound: Bound, program: Program) -> AttributeIndices:
    room = int(bound.room(program).sum())
    return AttributeIndices(
        np.zeros(bound.ids.shape[1] + 1, np.int64),
        np.empty(room, np.int32),
        np.empty(room if (program.number >= 0).any() else 0, np.float32),
    )


def _cut(rows: AttributeIndices, used: int) -> AttributeIndices:
    return AttributeIndices(rows.indptr, rows.indices[:used], rows.values[:used])


def _slots_for(entries: int) -> np.ndarray:
    return np.zeros(2 << max(4, (4 * entries // 3).bit_length()), np.uint64)


def _occurrences(room: int) -> FirstOccurrences:
    return FirstOccurrences(
        np.zeros(room, np.int64), np.zeros(room, np.uint16), np.zeros(room, np.int32)
    )


def _longer(array: np.ndarray, room: int) -> np.ndarray:
    longer = np.zeros(room, array.dtype)
    longer[: len(array)] = array
    return longer


class AttributeNames(NamedTuple):
    """Attribute i is template ``template[i]`` on ``parts[ptr[i]:ptr[i + 1]]``.

    Parts are numbers of strings in the order of the kernel's terms, negative for padding; where a
    term has several values, which of them comes last.
    """

    template: np.ndarray  # uint16[attributes]
    parts: np.ndarray  # int32
    offsets: np.ndarray  # int64[attributes + 1]

    @classmethod
    def of(cls, program: Program, template: np.ndarray, parts: np.ndarray) -> AttributeNames:
        """Names with their pointers, which the templates determine."""
        return cls(template, parts, _pointers(program, template))

    def take(self, indices: np.ndarray) -> AttributeNames:
        """The names of these attributes."""
        sizes = np.diff(self.offsets)[indices]
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        selected = np.arange(offsets[-1]) + np.repeat(self.offsets[indices] - offsets[:-1], sizes)
        return AttributeNames(self.template[indices], self.parts[selected], offsets)


def part_sizes(program: Program) -> np.ndarray:
    """Number of parts of an attribute, for every template."""
    return np.diff(program.ptr) + program.several


def _pointers(program: Program, template: np.ndarray) -> np.ndarray:
    offsets = np.empty(len(template) + 1, np.int64)
    _add_up(template, part_sizes(program), offsets)
    return offsets


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

    def names(
        self, program: Program, plan: KeyPlan, occurrences: FirstOccurrences
    ) -> AttributeNames:
        """Returns names of attributes that were first met at these places, in rising order."""
        sizes, n = part_sizes(program), len(occurrences.template)
        offsets = np.empty(n + 1, np.int64)
        _add_up(occurrences.template, sizes, offsets)
        parts = np.empty(int(offsets[-1]), np.int32)
        _record(
            plan,
            occurrences,
            program.several,
            offsets,
            parts,
            self._base,
            self._new,
            self._old,
            self._used,
        )
        return AttributeNames(occurrences.template, parts, offsets)

    @property
    def vocabularies(self) -> dict[str, Strings]:
        """The strings that names use, by column."""
        texts = {}
        for row, source in enumerate(self._slots.sources):
            if not source.lexicon:
                strings, first = self._strings[source.needs()], int(self._base[row])
                old = self._old[first : first + int(self._used[row])]
                texts[source.needs()] = _packed(strings, old)
        return texts


def _packed(strings: Sequence[str], indices: np.ndarray) -> Strings:
    """The strings of these numbers; mostly they are all there are, in their order."""
    if isinstance(strings, Texts) and np.array_equal(indices, np.arange(len(strings))):
        return strings.packed
    return Strings.pack([strings[i] for i in indices.tolist()])


def strings_of(
    slots: Slots, program: Program, names: AttributeNames, strings: Mapping[str, Strings], i: int
) -> tuple[Template, list[str]]:
    """The template of attribute i, and the string of each of its terms."""
    t = int(names.template[i])
    template, order = program.templates[t], program.terms[t]
    codes = names.parts[names.offsets[i] : names.offsets[i + 1]].tolist()
    value_index = codes.pop() if program.several[t] else 0
    texts = [""] * len(order)
    for rank, position in enumerate(order):
        term, code = template.terms[position], codes[rank]
        if code < 0:
            texts[position] = padding_name(code, slots.depth)
            continue
        source = term.source
        text = POSITIONS[code] if source.lexicon else strings[source.needs()].get(code)
        values = seen(text, term.views)
        texts[position] = values[
            value_index if rank == len(order) - 1 and program.several[t] else 0
        ]
    return template, texts


def name_of(
    slots: Slots, program: Program, names: AttributeNames, strings: Mapping[str, Strings], i: int
) -> str:
    """Name of attribute i: ``word[-1]|word[0]=the|cat``."""
    template, texts = strings_of(slots, program, names, strings, i)
    return "".join(
        a + b for a, b in zip(template.pieces, [*texts, ""][: len(template.pieces)], strict=True)
    )


def keys_of(bound: Bound, program: Program, names: AttributeNames) -> np.ndarray | None:
    """Keys of attributes, or None if a part is none of its column's strings or values."""
    keys = np.zeros(len(names.template), np.uint64)
    sizes = np.append(bound.base[1:], len(bound.value_ptr)) - bound.base - 1
    with np.errstate(over="ignore"):  # hashes wrap; only uncompiled kernels warn
        good = _keys(
            bound.plan(program),
            program.several,
            sizes,
            names.template,
            names.offsets,
            names.parts,
            keys,
        )
    return keys if good else None


@kernel(refcount=False)
def _add_up(template, sizes, offsets):
    """Computes the offsets of the parts of each attribute from the sizes of templates."""
    offsets[0] = 0
    for i in range(len(template)):
        offsets[i + 1] = offsets[i] + sizes[template[i]]


@kernel(refcount=False)
def _record(plan, occurrences, several, offsets, parts, base, new, old, used):
    sentence = 0
    for i in range(len(occurrences.token)):
        k, t, position = occurrences.token[i], np.int64(occurrences.template[i]), offsets[i]
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
            parts[position] = code
            position += 1
        if several[t]:
            parts[position] = occurrences.value_index[i]


@kernel
def _keys(plan, several, sizes, template, offsets, parts, keys):
    for i in range(len(template)):
        t, position = np.int64(template[i]), offsets[i]
        h = plan.seeds[t]
        for j in range(plan.ptr[t], plan.ptr[t + 1]):
            code = np.int64(parts[position])
            position += 1
            value_index = np.int64(0)
            if several[t] and j == plan.ptr[t + 1] - 1:
                value_index = np.int64(parts[position])
            if code < 0:
                if not plan.padding or code < -2 * plan.depth or value_index != 0:
                    return False
                h = mix(h, plan.hashes[plan.pad - code - 1])
                continue
            slot = plan.slot[j]
            if code >= sizes[slot]:
                return False
            row = plan.base[slot] + code
            if value_index < 0 or plan.value_ptr[row] + value_index >= plan.value_ptr[row + 1]:
                return False
            h = mix(h, plan.hashes[plan.value_ptr[row] + value_index])
        keys[i] = h if h != np.uint64(0) else np.uint64(1)
    return True

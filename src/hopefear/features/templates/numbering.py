"""Numbers and names of attributes: counted, cut off or hashed while they are made.

An attribute is stored as its template and, for every term, the number of a string in the
vocabulary of a column. Names follow from that, and so do keys: a model file holds no others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import Strings
from hopefear.core.component import kernel, lean
from hopefear.core.hashing import mix
from hopefear.core.memory import together
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
    find_keys,
    join_keys,
    join_rows,
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
    stretches = bound.stretches(min(n_jobs, tokens // _STRETCH + 1) if program.templates else 1)
    rows = _room_for(bound, program)
    with stage(f"features of {tokens:,} tokens"):
        if len(stretches) == 1:
            return _number(bound, program, keep_names, rows)[0]
        with ThreadPoolExecutor(len(stretches)) as pool:
            size = stretches[0].ids.shape[1] + 1
            rooms = [rows._replace(indptr=rows.indptr[:size])]
            rooms += [_room_for(part, program) for part in stretches[1:]]
            work = partial(_number, program=program, keep_names=keep_names)
            parts = list(pool.map(lambda part, room: work(part, rows=room), stretches, rooms))
            return _joined(parts, rows, pool)


def _number(
    bound: Bound, program: Program, keep_names: bool, rows: Rows
) -> tuple[Numbered, np.ndarray]:
    """Attributes of a program, and the table of their keys."""
    plan: Plan = bound.plan(program)
    work = new_work(plan.most)
    # Most sets of templates make more attributes than there are tokens.
    likely = bound.ids.shape[1] if program.templates else 0
    slots = _slots_for(max(_FIRST_ROOM + 4 * plan.most, likely))
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
        keys, counts = np.empty(used, np.uint64), np.empty(used, np.int64)
        read_slots(slots, keys, counts)
    born = Born(*(a[: used if keep_names else 0] for a in born))
    return Numbered(keys, counts, born, fired, _cut(rows, int(work.state[ENTRIES]))), slots


def _joined(
    parts: list[tuple[Numbered, np.ndarray]], rows: Rows, pool: ThreadPoolExecutor
) -> Numbered:
    """What one pass over all tokens would have found, from passes over stretches of them.

    An attribute gets its number in the first stretch that has it. ``rows`` begin with those of the
    first stretch, whose numbers stay.
    """
    firsts = _before([len(part.keys) for part, _ in parts])
    starts = _before([len(part.rows.indptr) - 1 for part, _ in parts])
    ends = _before([len(part.rows.indices) for part, _ in parts])
    room = firsts[-1]
    named = room if any(len(part.born.token) for part, _ in parts) else 0
    places, numbers, counts, born_token, born_which = together(
        *((room, np.int32), (room, np.int32), (room, np.int64)),
        *((named, np.int64), (named, np.int32)),
    )
    keys, template = together((room, np.uint64), (named, np.uint16))
    whole = keys, counts, Born(born_token, template, born_which)
    places[:], counts[:] = -1, 0

    def find(part: int, begin: int, end: int) -> None:
        place = places[firsts[part] + begin : firsts[part] + end]
        for before, (_, slots) in zip(firsts[:part], parts, strict=False):
            find_keys(slots, parts[part][0].keys[begin:end], before, place)

    def join(part: int, used: int) -> int:
        some, place = parts[part][0], places[firsts[part] : firsts[part + 1]]
        known = some.keys, some.counts, some.born
        return join_keys(place, known, starts[part], firsts[part], used, numbers, whole)

    def copy(part: int, begin: int, end: int) -> None:
        some, start = parts[part][0].rows, starts[part]
        join_rows(
            numbers[firsts[part] : firsts[part + 1]],
            *(some.indptr[begin : end + 1], *some[1:], ends[part]),
            *(rows.indptr[start + begin : start + end + 1], *rows[1:]),
        )

    first = pool.submit(join, 0, 0)
    _run(pool, _pieces(find, firsts))
    used = first.result()
    for k in range(1, len(parts)):
        used = join(k, used)
    _run(pool, _pieces(copy, starts))
    return Numbered(
        keys[:used],
        counts[:used],
        Born(*(array[:used] for array in whole[2])),
        np.sum([part.fired for part, _ in parts], axis=0),
        _cut(rows, ends[-1]),
    )


def _before(sizes: list[int]) -> list[int]:
    """How much comes before each, and before the end."""
    return [0, *accumulate(sizes)]


def _run(pool: ThreadPoolExecutor, tasks: Iterable[tuple[Any, ...]]) -> None:
    for task in [pool.submit(*task) for task in tasks]:
        task.result()


def _pieces(work: Callable[[int, int, int], None], ends: list[int]) -> Iterator[tuple[Any, ...]]:
    """``work`` and its arguments, part, begin and end, for pieces of all parts but the first."""
    n = len(ends) - 1
    for part in range(1, n):
        size = ends[part + 1] - ends[part]
        for k in range(n):
            yield work, part, k * size // n, (k + 1) * size // n


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


@lean
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

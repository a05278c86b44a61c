"""What attributes are called: template and strings, kept as numbers until somebody asks.

An attribute is stored as its template and, for every term, the number of a string in the
vocabulary of a column. Names follow from that, and so do keys: a model file holds no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from hopefear.core.arrays import Strings
from hopefear.core.component import kernel
from hopefear.core.hashing import mix
from hopefear.features.templates.kernels import Born, Plan
from hopefear.features.templates.lexicon import POSITIONS
from hopefear.features.templates.program import Bound, Program, Slots, padding_name
from hopefear.features.templates.views import seen


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
        kept = {}
        for row, source in enumerate(self._slots.sources):
            if not source.lexicon:
                strings, first = self._strings[source.needs()], int(self._base[row])
                old = self._old[first : first + int(self._used[row])]
                kept[source.needs()] = Strings.pack([strings[i] for i in old.tolist()])
        return kept


def name_of(
    slots: Slots, program: Program, names: Names, strings: Mapping[str, Strings], i: int
) -> str:
    """Name of attribute i: ``word[-1]|word[0]=the|cat``."""
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

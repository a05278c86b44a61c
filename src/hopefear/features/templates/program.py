"""Templates as arrays: what they ask for, and what that is in the numbers of one file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hopefear.errors import HopefearError, InputError
from hopefear.features.templates.kernels import Plan
from hopefear.features.templates.lexicon import POSITIONS, Lexicon
from hopefear.features.templates.spec import (
    ON_EDGES,
    Source,
    Template,
    Templates,
    Term,
)
from hopefear.features.templates.texts import Types, hashes_of
from hopefear.features.templates.views import SEVERAL, seen


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
        """The slots in the numbers of a file of sentences."""
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
        tables = [self._types(source, types).values(views) for source, views in self.views]
        numbers = [_numbers(sentences, source.needs()) for source in self.numbers]
        return self._bound(tables, numbers, np.array(sentences.starts, np.int64), ids)

    def bind_strings(self, strings: dict[str, Sequence[str]]) -> Bound:
        """The slots for columns that have these distinct strings, without any token."""
        types = {c: Types(strings.get(c, ())) for c in self.columns}
        tables = [self._types(source, types).values(views) for source, views in self.views]
        ids = np.empty((len(self.sources), 0), np.int32)
        numbers = [np.zeros(0, np.float32) for _ in self.numbers]
        return self._bound(tables, numbers, np.zeros(1, np.int64), ids)

    def strings_of(self, source: Source, strings: dict[str, Sequence[str]]) -> Sequence[str]:
        """Distinct strings of a source, given those of the columns."""
        return POSITIONS if source.lexicon else strings[source.needs()]

    def _types(self, source: Source, types: dict[str, Types]) -> Types:
        return Types(POSITIONS) if source.lexicon else types[source.needs()]

    def _lexicon(self, source: Source) -> Lexicon:
        def view(word: str) -> str | None:
            return seen(word, source.views)[0]

        return Lexicon(self.templates.lexicons[source.lexicon], view)

    def _bound(
        self, tables: list[Any], numbers: list[np.ndarray], starts: np.ndarray, ids: np.ndarray
    ) -> Bound:
        base, value_ptr, places, rows = [], [], 0, 0
        for table in tables:
            base.append(rows)
            value_ptr.append(table.ptr + places)
            rows += len(table.ptr)
            places += len(table.hashes)
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
            places,
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

    def plan(self, program: Program) -> Plan:
        """What a kernel needs to make the keys of a program."""
        most = int(self._counts(program, np.max).sum())
        values: tuple[Any, ...] = (*program[3:10], *self, program.edges, most)
        return Plan(*values)

    def room(self, program: Program) -> int:
        """Entries that a program makes, at most."""
        return int(self._counts(program, np.sum).sum())

    def _counts(self, program: Program, total: Any) -> np.ndarray:
        """For every template the largest number of entries of a token, or their sum."""
        tokens = self.ids.shape[1]
        counts = np.full(len(program.seeds), tokens if total is np.sum else 1)
        if not tokens:
            return counts
        for t in np.flatnonzero(program.several):
            slot = program.slot[program.ptr[t + 1] - 1]
            ids = self.ids[self.source[slot]]
            rows = self.base[slot] + np.maximum(ids, 0)
            sizes = self.value_ptr[rows + 1] - self.value_ptr[rows]
            # Outside the sentence, padding counts as one more.
            outside = abs(int(program.offset[program.ptr[t + 1] - 1])) * len(self.starts)
            counts[t] = total(sizes) + (outside if total is np.sum else 1)
        return counts


def _check_columns(sentences: Any, names: Sequence[str]) -> None:
    """Refuse what kernels would follow to places outside of their arrays."""
    starts = np.asarray(sentences.starts)
    if starts.ndim != 1 or not starts.size or starts[0] != 0 or (starts[1:] < starts[:-1]).any():
        raise HopefearError(f"{sentences.source}: starts must rise from 0")
    for name in names:
        ids, known = sentences.columns[name].ids, len(sentences.columns[name].strings)
        if ids.shape != (int(starts[-1]),):
            raise HopefearError(
                f"{sentences.source}: the column {name!r} has {ids.size} rows for "
                f"{int(starts[-1])} tokens"
            )
        if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= known):
            raise HopefearError(
                f"{sentences.source}: the column {name!r} has {known} strings, and its ids go "
                f"from {int(ids.min())} to {int(ids.max())}"
            )


def padding_name(code: int, depth: int) -> str:
    """What stands outside of the sentence: codes -1 to -depth before it, further ones behind.

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
    found = np.fromiter((_number(s) for s in column.strings), np.float64, len(column.strings))
    with np.errstate(over="ignore"):
        values = found.astype(np.float32)
    bad = ~np.isfinite(values)
    if bad.any():
        places = np.flatnonzero(bad[column.ids])
        if places.size:
            k = int(places[0])
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

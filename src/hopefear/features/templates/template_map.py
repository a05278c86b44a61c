"""The feature map of templates: what the attributes of tokens mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hopefear.core.arrays import Strings, column_in_range
from hopefear.errors import HopefearError
from hopefear.features.encoded import Attributes
from hopefear.features.hashed import MAX_BITS, MAX_NAMES
from hopefear.features.templates import stored
from hopefear.features.templates.kernels import Born
from hopefear.features.templates.loading import load_templates
from hopefear.features.templates.naming import Names, Recorder, name_of
from hopefear.features.templates.numbering import (
    Numbered,
    Table,
    cut_off,
    hash_to,
    no_rows,
    number,
)
from hopefear.features.templates.program import Program, Slots
from hopefear.features.templates.spec import ON_EDGES, ON_LABELS, Templates


class TemplateFeatures:
    """Attributes that templates make of tokens; immutable, made by ``fit`` or ``fit_encode``.

    Attribute numbers are given in the order of first appearance, those of edges by themselves.

    Parameters
    ----------
    templates : Templates
        With every column by its name.
    labels, edges : Table
        Numbers of the attributes that fire on labels, and on pairs of labels.
    names : pair of Names, optional
        What they are called; without, ``#3`` and the like.
    strings : dict of str to Strings
        By column, the strings that names use.
    collisions : float
        Share of the distinct attributes that share a number with another; 0 unless hashed.
    named : array of int32, optional
        Of hashed attributes, the numbers that have a name, rising.

    Examples
    --------
    >>> from types import SimpleNamespace as Space
    >>> import numpy as np
    >>> from hopefear.features.templates import parse_templates
    >>> words = Space(strings=["the", "cat"], ids=np.array([0, 1], np.int32))
    >>> sentences = Space(starts=np.array([0, 2]), columns={"word": words}, source="memory")
    >>> templates = parse_templates('[[templates]]\\nfeatures = ["word[0]", "word[-1] word[0]"]')
    >>> features, attributes = TemplateFeatures.fit_encode(templates, sentences)
    >>> attributes.indptr.tolist(), attributes.indices.tolist()
    ([0, 1, 3], [0, 1, 2])
    >>> features.name(2)
    'word[-1]|word[0]=the|cat'
    """

    kind = "templates"

    def __init__(
        self,
        templates: Templates,
        labels: Table,
        edges: Table,
        names: tuple[Names, Names] | None = None,
        strings: Mapping[str, Strings] | None = None,
        collisions: float = 0.0,
        named: np.ndarray | None = None,
    ) -> None:
        self.templates = templates
        self.collisions = collisions
        self._labels, self._edges = labels, edges
        self._names, self._named = names, named
        self._strings = dict(strings or {})
        self._slots = Slots(templates)
        self._program = self._slots.program(ON_LABELS)
        self._edge_program = self._slots.program(ON_EDGES)

    @classmethod
    def fit(cls, templates: Templates | str, sentences: Any, **options: Any) -> TemplateFeatures:
        """The attributes of some sentences; parameters as of ``fit_encode``."""
        return cls.fit_encode(templates, sentences, **options)[0]

    @classmethod
    def fit_encode(
        cls,
        templates: Templates | str,
        sentences: Any,
        *,
        min_count: int = 1,
        hash_bits: int | None = None,
        keep_names: bool = True,
    ) -> tuple[TemplateFeatures, Attributes]:
        """Number the attributes of sentences and encode these, in one pass.

        Parameters
        ----------
        templates : Templates or str
            Templates, or what ``load_templates`` reads.
        sentences : Sentences
            Training text.
        min_count : int
            Attributes seen fewer times are left out; more makes smaller models.
        hash_bits : int, optional
            Hash attributes of labels to ``2**hash_bits`` numbers instead of giving each its own;
            more bits mean fewer collisions and more memory. Edges are never hashed: each of
            theirs has a weight for every pair of labels.
        keep_names : bool
            Keep what names are made of; without, models are smaller and cannot be inspected.
        """
        if min_count < 1:
            raise HopefearError(f"min_count must be 1 or more, not {min_count}")
        if hash_bits is not None and not 1 <= hash_bits <= MAX_BITS:
            raise HopefearError(f"hash_bits must be 1 to {MAX_BITS}, not {hash_bits}")
        if hash_bits is not None and min_count > 1:
            raise HopefearError(
                "min_count needs a table of attributes, which hash_bits avoids; use one of them"
            )
        if isinstance(templates, str):
            templates = load_templates(templates)
        templates = templates.for_columns(sentences.columns)
        slots = Slots(templates)
        strings = {c: sentences.columns[c].strings for c in slots.columns}
        bound, recorder = slots.bind(sentences), Recorder(slots, strings)
        programs = slots.program(ON_LABELS), slots.program(ON_EDGES)
        tables, names, rows = [], [], []
        collisions, named = 0.0, None
        for program in programs:
            found = number(bound, program, keep_names)
            _check_fired(templates, program, found, sentences)
            found = cut_off(found, min_count)
            order = None
            if hash_bits is not None and not program.edges:
                hashed, columns, collisions = hash_to(found, hash_bits)
                found = found._replace(rows=hashed)
                if keep_names:
                    first = _first_of_each(columns)
                    order = np.argsort(columns[first])
                    named = columns[first][order]
                    found = found._replace(born=Born(*(a[first] for a in found.born)))
            called = recorder.names(program, bound.plan(program), found.born)
            names.append(called if order is None else called.take(order))
            tables.append(Table(found.keys, 0 if program.edges else hash_bits or 0))
            rows.append(found.rows if program.templates or not program.edges else no_rows())
        features = cls(
            templates,
            tables[0],
            tables[1],
            (names[0], names[1]) if keep_names else None,
            recorder.vocabularies() if keep_names else None,
            collisions,
            named,
        )
        return features, Attributes(*rows[0], *rows[1])

    def encode(self, sentences: Any) -> Attributes:
        """Attributes of other sentences; those never seen in training are left out."""
        if not all(name in sentences.columns for name in self.needs):
            self.templates.for_columns(sentences.columns)  # says which is missing
        bound = self._slots.bind(sentences)
        rows = self._labels.encode(bound, self._program)
        edges = no_rows()
        if self._edge_program.templates:
            edges = self._edges.encode(bound, self._edge_program)
        return Attributes(*rows, *edges)

    @property
    def size(self) -> int:
        return self._labels.size

    @property
    def edge_size(self) -> int:
        return self._edges.size

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns that sentences must have."""
        return self._slots.columns

    @property
    def hash_bits(self) -> int | None:
        """Bits of hashed attributes, None where each has its own number."""
        return self._labels.bits or None

    def name(self, column: int) -> str:
        """Name of an attribute of labels, such as ``word[0]=cat``."""
        column = column_in_range(column, self.size)
        if self._names is None:
            return f"#{column}"
        if self._named is not None:
            place = int(np.searchsorted(self._named, column))
            if place == len(self._named) or self._named[place] != column:
                return f"#{column}"
            column = place
        return self._name(self._program, self._names[0], column)

    def edge_name(self, column: int) -> str:
        """Name of an attribute of edges."""
        column = column_in_range(column, self.edge_size)
        if self._names is None:
            return f"#{column}"
        return self._name(self._edge_program, self._names[1], column)

    def names(self, columns: Iterable[int]) -> list[str]:
        return [self.name(c) for c in columns]

    def columns(self, ids: np.ndarray) -> np.ndarray:
        raise HopefearError(
            "these features are templates over columns of text, which a file of numeric ids "
            "lacks; give a file of columns"
        )

    def ids(self, columns: np.ndarray) -> np.ndarray:
        # Many readers take ids from 1 only.
        return columns.astype(np.int64) + 1

    def select(self, columns: np.ndarray, edge_columns: np.ndarray) -> TemplateFeatures:
        """The map of these attributes only, in this order: what a sparse model needs.

        Parameters
        ----------
        columns, edge_columns : arrays of int
            Distinct attributes to keep.
        """
        if self._labels.bits:
            raise HopefearError("hashed attributes have fixed numbers, so none can be left out")
        names = self._names
        if names is not None:
            names = names[0].take(columns), names[1].take(edge_columns)
        return TemplateFeatures(
            self.templates,
            Table(self._labels.keys[columns]),
            Table(self._edges.keys[edge_columns]),
            names,
            self._strings,
        )

    def to_header(self) -> dict[str, Any]:
        return {"kind": self.kind} | stored.header_of(
            self.templates, self._labels, self._edges, self._names is not None, self.collisions
        )

    def arrays(self) -> dict[str, np.ndarray]:
        return stored.arrays_of(
            self.templates, self._labels, self._edges, self._names, self._strings, self._named
        )

    @classmethod
    def from_parts(
        cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> TemplateFeatures:
        return cls(*stored.parts_of(header, arrays))

    def _name(self, program: Program, names: Names, i: int) -> str:
        return name_of(self._slots, program, names, self._strings, i)


def _first_of_each(columns: np.ndarray) -> np.ndarray:
    """Attributes that came first on their hashed number, rising; the earliest so many of them."""
    order = np.argsort(columns, kind="stable")
    ordered = columns[order]
    change = np.ones(len(ordered), bool)
    change[1:] = ordered[1:] != ordered[:-1]
    return np.sort(order[change])[:MAX_NAMES]


def _check_fired(templates: Templates, program: Program, found: Numbered, sentences: Any) -> None:
    if not int(sentences.starts[-1]):
        return
    for template, count in zip(program.templates, found.fired.tolist(), strict=True):
        if not count and not template.optional:
            raise HopefearError(
                f"{templates.place(template)} fires on nothing in {sentences.source}; remove it, "
                "or say optional = true where that may happen"
            )

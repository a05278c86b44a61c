"""The feature map of templates: what attributes of tokens mean, and how a model file holds that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hopefear.core.arrays import (
    Strings,
    column_in_range,
    in_range,
    only_these,
    vector,
    whole_number,
)
from hopefear.errors import HopefearError, ModelError
from hopefear.features.attributes import Attributes
from hopefear.features.maps import MAX_COLUMNS
from hopefear.features.ngrams import MAX_BITS, MAX_NAMES
from hopefear.features.templates.loading import TemplateError, load_templates, parse, template_of
from hopefear.features.templates.numbering import (
    AttributeNames,
    AttributeTable,
    NumberedAttributes,
    Recorder,
    cut_off,
    hash_to,
    keys_of,
    name_of,
    no_rows,
    number,
    strings_of,
)
from hopefear.features.templates.program import Bound, FirstOccurrences, Program, Slots
from hopefear.features.templates.spec import (
    MAX_TEMPLATES,
    ON_BOTH,
    ON_EDGES,
    ON_LABELS,
    Template,
    Templates,
)

_Parts = tuple[
    Templates,
    AttributeTable,
    AttributeTable,
    tuple[AttributeNames, AttributeNames] | None,
    Mapping[str, Strings],
    float,
    np.ndarray | None,
]


def header_of(
    templates: Templates,
    labels: AttributeTable,
    edges: AttributeTable,
    named: bool,
    collisions: float,
) -> dict[str, Any]:
    """Returns the header fields of template features, except for their kind."""
    return {
        "syntax": templates.syntax,
        "padding": templates.padding,
        "transitions": templates.transitions,
        "source": templates.source,
        "templates": [[t.text, t.on, t.line] for t in templates.templates],
        "fields": _fields(templates),
        "lexicons": list(templates.lexicons),
        "bits": labels.bits,
        "size": labels.size,
        "edge_size": edges.size,
        "named": named,
        "collisions": collisions,
    }


def arrays_of(
    templates: Templates,
    labels: AttributeTable,
    edges: AttributeTable,
    names: tuple[AttributeNames, AttributeNames] | None,
    strings: Mapping[str, Strings],
    named: np.ndarray | None,
) -> dict[str, np.ndarray]:
    """Arrays of template features; keys follow from names, so only one of both is written."""
    arrays: dict[str, np.ndarray] = {}
    for i, entries in enumerate(templates.lexicons.values()):
        arrays |= Strings.pack(entries).arrays(f"lexicon{i}")
    if names is None:
        if not labels.bits:
            arrays["label_keys"] = labels.keys
        return arrays | {"edge_keys": edges.keys}
    if named is not None:
        arrays["named"] = named
    for i, column in enumerate(Slots(templates).columns):
        # Columns that only lexicons read need no strings.
        arrays |= strings.get(column, Strings.pack(())).arrays(f"strings{i}")
    for kind, of in zip(("label", "edge"), names, strict=True):
        arrays |= {f"{kind}_template": of.template, f"{kind}_parts": of.parts}
    return arrays


def parts_of(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> _Parts:
    """Arguments of TemplateFeatures, from parts that are not trusted."""
    bits = whole_number(header, "bits", 0, MAX_BITS)
    size = whole_number(header, "size", 0, MAX_COLUMNS)
    edge_size = whole_number(header, "edge_size", 0, MAX_COLUMNS)
    named, collisions = _flag(header, "named"), header.get("collisions")
    if isinstance(collisions, bool) or not isinstance(collisions, int | float):
        raise ModelError(f"feature map: expected collisions 0 to 1, found {collisions!r:.60}")
    if not 0 <= collisions <= 1:
        raise ModelError(f"feature map: expected collisions 0 to 1, found {collisions!r:.60}")
    templates = _templates(header, arrays)
    slots = Slots(templates)
    programs = slots.program(ON_LABELS), slots.program(ON_EDGES)
    only_these(arrays, _allowed(templates, slots, named, bits))
    if edge_size and not programs[1].templates:
        raise ModelError(f"feature map: {edge_size} edge attributes, but no template makes any")
    if not named:
        keys = np.zeros(0, np.uint64) if bits else vector(arrays, "label_keys", np.uint64)
        tables = AttributeTable(keys, bits), AttributeTable(vector(arrays, "edge_keys", np.uint64))
        _check_tables(tables, size, edge_size)
        return templates, *tables, None, {}, float(collisions), None
    strings = {c: Strings.from_parts(arrays, f"strings{i}") for i, c in enumerate(slots.columns)}
    bound = slots.bind_strings({c: [s.get(i) for i in range(s.size)] for c, s in strings.items()})
    names, keys_found = [], []
    for kind, program in zip(("label", "edge"), programs, strict=True):
        of = _names(arrays, kind, program)
        names.append(of)
        keys_found.append(_keys(bound, program, of, kind))
    columns = None
    if bits:
        columns = _named(arrays, bits, keys_found[0])
        keys_found[0] = np.zeros(0, np.uint64)
    tables = AttributeTable(keys_found[0], bits), AttributeTable(keys_found[1])
    _check_tables(tables, size, edge_size)
    return templates, *tables, (names[0], names[1]), strings, float(collisions), columns


def _allowed(templates: Templates, slots: Slots, named: bool, bits: int) -> tuple[str, ...]:
    names = [f"lexicon{i}_{part}" for i in range(len(templates.lexicons)) for part in _STRINGS]
    if not named:
        return (*names, "edge_keys", *([] if bits else ["label_keys"]))
    names += [f"strings{i}_{part}" for i in range(len(slots.columns)) for part in _STRINGS]
    names += [f"{kind}_{part}" for kind in ("label", "edge") for part in ("template", "parts")]
    return (*names, "named") if bits else tuple(names)


_STRINGS = ("text", "offsets")


def _check_tables(tables: tuple[AttributeTable, AttributeTable], size: int, edge_size: int) -> None:
    for table, declared in zip(tables, (size, edge_size), strict=True):
        if table.size != declared:
            raise ModelError(
                f"feature map: the header says {declared} attributes, found {table.size}"
            )
        if not table.distinct():
            raise ModelError("feature map: an attribute is there twice")


def _names(arrays: Mapping[str, np.ndarray], kind: str, program: Program) -> AttributeNames:
    template = vector(arrays, f"{kind}_template", np.uint16)
    parts = vector(arrays, f"{kind}_parts", np.int32)
    in_range(template, f"{kind}_template", 0, len(program.templates) - 1)
    names = AttributeNames.of(program, template, parts)
    if names.offsets[-1] != len(parts):
        raise ModelError(
            f"feature map: the {kind} attributes have {names.offsets[-1]} parts, found {len(parts)}"
        )
    return names


def _keys(bound: Bound, program: Program, names: AttributeNames, kind: str) -> np.ndarray:
    keys = keys_of(bound, program, names)
    if keys is None:
        raise ModelError(f"feature map: a part of a {kind} attribute does not exist")
    return keys


def _named(arrays: Mapping[str, np.ndarray], bits: int, keys: np.ndarray) -> np.ndarray:
    columns = vector(arrays, "named", np.int32)
    if len(columns) != len(keys):
        raise ModelError(f"feature map: {len(columns)} hashed numbers have {len(keys)} names")
    if (columns[1:] <= columns[:-1]).any():
        raise ModelError("feature map: the named attributes are not rising")
    if (columns != (keys >> np.uint64(64 - bits)).astype(np.int32)).any():
        raise ModelError("feature map: an attribute does not have the number of its name")
    return columns


def _flag(header: Mapping[str, Any], key: str) -> bool:
    value = header.get(key)
    if not isinstance(value, bool):
        raise ModelError(f"feature map: expected {key} to be true or false, found {value!r:.60}")
    return value


def _texts(header: Mapping[str, Any], key: str) -> list[str]:
    value = header.get(key)
    if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
        raise ModelError(f"feature map: expected {key} to be a list of strings")
    return value


def _templates(header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Templates:
    syntax, source, rows = header.get("syntax"), header.get("source"), header.get("templates")
    if syntax not in ("toml", "crfpp") or not isinstance(source, str):
        raise ModelError("feature map: templates of no known syntax, or without their source")
    if not isinstance(rows, list) or len(rows) > MAX_TEMPLATES:
        raise ModelError("feature map: expected a list of templates")
    lexicons = {}
    for i, name in enumerate(_texts(header, "lexicons")):
        entries = Strings.from_parts(arrays, f"lexicon{i}")
        lexicons[name] = tuple(entries.get(k) for k in range(entries.size))
    templates = Templates(
        tuple(_template(row, str(syntax)) for row in rows),
        _flag(header, "padding"),
        str(syntax),
        _flag(header, "transitions"),
        lexicons,
        source,
    )
    for template in templates.templates:
        for term in template.all_terms():
            if term.source.lexicon and term.source.lexicon not in lexicons:
                raise ModelError(f"feature map: no lexicon {term.source.lexicon!r:.60}")
    try:
        resolved = templates.for_columns(_texts(header, "fields"))
    except HopefearError as error:
        raise ModelError(f"feature map: {error}") from None
    if list(resolved.lexicons) != list(lexicons):
        raise ModelError("feature map: a lexicon that no template uses")
    return resolved


def _template(row: Any, syntax: str) -> Template:
    if not isinstance(row, list) or len(row) != 3 or not isinstance(row[0], str) or not row[0]:
        raise ModelError(f"feature map: expected [template, on, line], found {row!r:.60}")
    text, on, line = row
    if on not in (ON_LABELS, ON_EDGES, ON_BOTH):
        raise ModelError(f"feature map: a template on {on!r:.60}")
    if isinstance(line, bool) or not isinstance(line, int) or line < 0:
        raise ModelError(f"feature map: a template on line {line!r:.60}")
    try:
        parsed = [template_of(text, "model", 0)] if syntax == "crfpp" else parse(text)
    except (TemplateError, HopefearError) as error:
        raise ModelError(f"feature map: the template {text!r:.60}: {error}") from None
    if len(parsed) != 1:
        raise ModelError(f"feature map: {text!r:.60} is more than one template")
    return replace(parsed[0], on=on, line=line)


def _fields(templates: Templates) -> list[str]:
    """Columns by their places where templates count them, else those that are needed."""
    if templates.syntax != "crfpp":
        return list(templates.columns())
    name_of = {
        int(counted.source.column): term.source.needs()
        for template in templates.templates
        for counted, term in zip(
            template_of(template.text, templates.source, template.line).terms,
            template.terms,
            strict=True,
        )
    }
    return [name_of.get(i, "") for i in range(max(name_of, default=-1) + 1)]


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
        labels: AttributeTable,
        edges: AttributeTable,
        names: tuple[AttributeNames, AttributeNames] | None = None,
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
        check_options(min_count, hash_bits)
        tables, names, rows = [], [], []
        collisions, named = 0.0, None
        if isinstance(templates, str):
            templates = load_templates(templates)
        templates = templates.for_columns(sentences.columns)
        slots = Slots(templates)
        strings = {c: sentences.columns[c].strings for c in slots.columns}
        bound, recorder = slots.bind(sentences), Recorder(slots, strings)
        for program in (slots.program(ON_LABELS), slots.program(ON_EDGES)):
            bits = None if program.edges else hash_bits
            attributes = number(bound, program, keep_names)
            _check_fired(templates, program, attributes, sentences)
            attributes = cut_off(attributes, min_count)
            order = None
            if bits is not None:
                hashed, columns, collisions = hash_to(attributes, bits)
                attributes = attributes._replace(rows=hashed)
                if keep_names:
                    first = _first_of_each(columns)
                    order = np.argsort(columns[first])
                    named = columns[first][order]
                    attributes = attributes._replace(
                        occurrences=FirstOccurrences(*(a[first] for a in attributes.occurrences))
                    )
            called = recorder.names(program, bound.plan(program), attributes.occurrences)
            names.append(called if order is None else called.take(order))
            tables.append(AttributeTable(attributes.keys, bits or 0))
            rows.append(attributes.rows)
        features = cls(
            templates,
            tables[0],
            tables[1],
            (names[0], names[1]) if keep_names else None,
            recorder.vocabularies if keep_names else None,
            collisions,
            named,
        )
        return features, Attributes(*rows[0], *rows[1])

    @classmethod
    def hashed(cls, templates: Templates | str, columns: Any, bits: int) -> TemplateFeatures:
        """Makes features without a table: numbers are hashes, for streams of unknown length.

        Parameters
        ----------
        templates : Templates or str
            Templates, or what ``load_templates`` reads; none may fire on edges.
        columns : mapping
            Columns of the sentences, by name.
        bits : int
            There are ``2**bits`` numbers.
        """
        check_options(1, bits)
        if isinstance(templates, str):
            templates = load_templates(templates)
        templates = templates.for_columns(columns)
        if Slots(templates).program(ON_EDGES).templates:
            raise HopefearError(
                f"{templates.source}: templates on pairs of labels are numbered by a table, which "
                "a stream has not; leave them out, or train on a file"
            )
        no_keys = np.zeros(0, np.uint64)
        return cls(templates, AttributeTable(no_keys, bits), AttributeTable(no_keys))

    def encode(self, sentences: Any) -> Attributes:
        """Attributes of other sentences; those never seen in training are left out."""
        if not all(name in sentences.columns for name in self.needs):
            self.templates.for_columns(sentences.columns)  # raises for missing columns
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
            index = int(np.searchsorted(self._named, column))
            if index == len(self._named) or self._named[index] != column:
                return f"#{column}"
            column = index
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
            AttributeTable(self._labels.keys[columns]),
            AttributeTable(self._edges.keys[edge_columns]),
            names,
            self._strings,
        )

    def to_header(self) -> dict[str, Any]:
        return {"kind": self.kind} | header_of(
            self.templates, self._labels, self._edges, self._names is not None, self.collisions
        )

    def arrays(self) -> dict[str, np.ndarray]:
        return arrays_of(
            self.templates, self._labels, self._edges, self._names, self._strings, self._named
        )

    @classmethod
    def from_parts(
        cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> TemplateFeatures:
        return cls(*parts_of(header, arrays))

    def spelled(self, column: int, edges: bool = False) -> tuple[Template, list[str]]:
        """The template of an attribute of labels, or of edges, and the strings of its terms."""
        if self._names is None or self._labels.bits:
            kind = "hashed" if self._labels.bits else "without names"
            raise HopefearError(
                f"these attributes are {kind}, so nobody knows what they are made of; train "
                "without --hash-bits and --no-names"
            )
        program = self._edge_program if edges else self._program
        return strings_of(self._slots, program, self._names[edges], self._strings, column)

    def _name(self, program: Program, names: AttributeNames, i: int) -> str:
        return name_of(self._slots, program, names, self._strings, i)


def check_options(min_count: int, hash_bits: int | None) -> None:
    """Refuse what cannot be, alone or together."""
    if min_count < 1:
        raise HopefearError(f"min_count must be 1 or more, not {min_count}")
    if hash_bits is not None and not 1 <= hash_bits <= MAX_BITS:
        raise HopefearError(f"hash_bits must be 1 to {MAX_BITS}, not {hash_bits}")
    if hash_bits is not None and min_count > 1:
        raise HopefearError(
            "min_count needs a table of attributes, which hash_bits avoids; use one of them"
        )


def _first_of_each(columns: np.ndarray) -> np.ndarray:
    """Returns the first attributes of hashed numbers, ascending, one for each."""
    order = np.argsort(columns, kind="stable")
    ordered = columns[order]
    change = np.ones(len(ordered), bool)
    change[1:] = ordered[1:] != ordered[:-1]
    return np.sort(order[change])[:MAX_NAMES]


def _check_fired(
    templates: Templates, program: Program, attributes: NumberedAttributes, sentences: Any
) -> None:
    if not int(sentences.starts[-1]):
        return
    for template, count in zip(program.templates, attributes.fired.tolist(), strict=True):
        if not count and not template.optional:
            raise HopefearError(
                f"{templates.place(template)} fires on nothing in {sentences.source}; remove it, "
                "or say optional = true where that may happen"
            )

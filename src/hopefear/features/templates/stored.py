"""Template features in a model file: parts that are written, and checked when they come back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from hopefear.core.arrays import Strings, in_range, only_these, vector, whole_number
from hopefear.errors import HopefearError, ModelError
from hopefear.features.hashed import MAX_BITS
from hopefear.features.interface import MAX_COLUMNS
from hopefear.features.templates.crfpp import template_of
from hopefear.features.templates.expressions import TemplateError, parse
from hopefear.features.templates.naming import Names, keys_of
from hopefear.features.templates.numbering import Table
from hopefear.features.templates.program import Bound, Program, Slots
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
    Table,
    Table,
    tuple[Names, Names] | None,
    Mapping[str, Strings],
    float,
    np.ndarray | None,
]


def header_of(
    templates: Templates, labels: Table, edges: Table, named: bool, collisions: float
) -> dict[str, Any]:
    """What the header of a model file says of template features, but for their kind."""
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
    labels: Table,
    edges: Table,
    names: tuple[Names, Names] | None,
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
        # What only lexicons look at has no strings of its own.
        arrays |= strings.get(column, Strings.pack(())).arrays(f"strings{i}")
    for what, of in zip(("label", "edge"), names, strict=True):
        arrays |= {f"{what}_template": of.template, f"{what}_parts": of.parts}
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
        tables = Table(keys, bits), Table(vector(arrays, "edge_keys", np.uint64))
        _check_tables(tables, size, edge_size)
        return templates, *tables, None, {}, float(collisions), None
    strings = {c: Strings.from_parts(arrays, f"strings{i}") for i, c in enumerate(slots.columns)}
    bound = slots.bind_strings({c: [s.get(i) for i in range(s.size)] for c, s in strings.items()})
    names, keys_found = [], []
    for what, program in zip(("label", "edge"), programs, strict=True):
        of = _names(arrays, what, program)
        names.append(of)
        keys_found.append(_keys(bound, program, of, what))
    columns = None
    if bits:
        columns = _named(arrays, bits, keys_found[0])
        keys_found[0] = np.zeros(0, np.uint64)
    tables = Table(keys_found[0], bits), Table(keys_found[1])
    _check_tables(tables, size, edge_size)
    return templates, *tables, (names[0], names[1]), strings, float(collisions), columns


def _allowed(templates: Templates, slots: Slots, named: bool, bits: int) -> tuple[str, ...]:
    names = [f"lexicon{i}_{part}" for i in range(len(templates.lexicons)) for part in _STRINGS]
    if not named:
        return (*names, "edge_keys", *([] if bits else ["label_keys"]))
    names += [f"strings{i}_{part}" for i in range(len(slots.columns)) for part in _STRINGS]
    names += [f"{what}_{part}" for what in ("label", "edge") for part in ("template", "parts")]
    return (*names, "named") if bits else tuple(names)


_STRINGS = ("text", "offsets")


def _check_tables(tables: tuple[Table, Table], size: int, edge_size: int) -> None:
    for table, said in zip(tables, (size, edge_size), strict=True):
        if table.size != said:
            raise ModelError(f"feature map: the header says {said} attributes, found {table.size}")
        if not table.distinct():
            raise ModelError("feature map: an attribute is there twice")


def _names(arrays: Mapping[str, np.ndarray], what: str, program: Program) -> Names:
    template = vector(arrays, f"{what}_template", np.uint16)
    parts = vector(arrays, f"{what}_parts", np.int32)
    in_range(template, f"{what}_template", 0, len(program.templates) - 1)
    names = Names.of(program, template, parts)
    if names.ptr[-1] != len(parts):
        raise ModelError(
            f"feature map: the {what} attributes have {names.ptr[-1]} parts, found {len(parts)}"
        )
    return names


def _keys(bound: Bound, program: Program, names: Names, what: str) -> np.ndarray:
    keys = keys_of(bound, program, names)
    if keys is None:
        raise ModelError(f"feature map: a part of a {what} attribute does not exist")
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
    found = Templates(
        tuple(_template(row, str(syntax)) for row in rows),
        _flag(header, "padding"),
        str(syntax),
        _flag(header, "transitions"),
        lexicons,
        source,
    )
    for template in found.templates:
        for term in template.all_terms():
            if term.source.lexicon and term.source.lexicon not in lexicons:
                raise ModelError(f"feature map: no lexicon {term.source.lexicon!r:.60}")
    try:
        resolved = found.for_columns(_texts(header, "fields"))
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
    place = {
        int(counted.source.column): term.source.needs()
        for template in templates.templates
        for counted, term in zip(
            template_of(template.text, templates.source, template.line).terms,
            template.terms,
            strict=True,
        )
    }
    return [place.get(i, "") for i in range(max(place, default=-1) + 1)]

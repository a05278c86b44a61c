"""Weights as JSON: ``{"format": "hopefear-weights", "version": 1, "dense": {…}, …}``."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from hopefear.errors import InputError
from hopefear.translation.weights_names import ABOUT, BARS, DENSE, PHRASES, SPARSE, Parts
from hopefear.translation.weights_text import no_constant

FORMAT, VERSION = "hopefear-weights", 1
_SECTIONS = (DENSE, SPARSE, PHRASES, ABOUT)
_KEYS = ("format", "version", *_SECTIONS)
_BLANKS = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()

Place = tuple[str, ...]


def read_json(path: str, text: str) -> Parts:
    """Weights from JSON.

    Parameters
    ----------
    path : str
        For messages.
    text : str
        All of the file.

    Examples
    --------
    >>> parts = read_json("w.json", '{"format": "hopefear-weights", "dense": {"TM0": [1, 0.5]}}')
    >>> parts.layout, parts.dense
    ((('TM0', 2),), [1.0, 0.5])
    """
    found = _loaded(path, text)

    def refuse(place: Place, expected: str, value: object) -> Any:
        shown = json.dumps(value, ensure_ascii=False)
        raise InputError(path, _line(text, place), expected, shown)

    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(path, 0, f'a JSON object with "format": "{FORMAT}"')
    version = found.get("version", VERSION)
    if version != VERSION:
        refuse(("version",), f"version {VERSION} (newer files need a newer hopefear)", version)
    for key, value in found.items():
        if key not in _KEYS:
            refuse((key,), f"one of {', '.join(_KEYS)}", key)
        if key in _SECTIONS and not isinstance(value, dict):
            refuse((key,), f"an object under {key}", value)

    def number(value: object, place: Place) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            return refuse(place, f"a number under {place[-1]}", value)
        try:
            value = float(value)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            refuse(place, f"a finite number under {place[-1]}", value)
        return value

    layout, dense = [], []
    for name, values in found.get(DENSE, {}).items():
        values = values if isinstance(values, list) else [values]
        if not name or not values:
            refuse((DENSE, name), "a name and at least one number", {name: values})
        layout.append((name, len(values)))
        dense += [number(value, (DENSE, name)) for value in values]
    sparse, phrases = (
        {name: number(value, (kind, name)) for name, value in found.get(kind, {}).items()}
        for kind in (SPARSE, PHRASES)
    )
    for name in sparse:
        if not name or name in found.get(DENSE, {}):
            refuse((SPARSE, name), "a name that is not dense", name)
    for pair in phrases:
        if BARS not in pair:
            refuse((PHRASES, pair), f"a phrase pair, 'source words{BARS}target words'", pair)
    return Parts(tuple(layout), dense, sparse, phrases, found.get(ABOUT, {}))


def write_json(parts: Parts) -> Iterator[str]:
    """Lines of JSON, one feature to each, that :func:`read_json` reads as the same weights."""
    yield "{"
    yield f' "format": {_dumped(FORMAT)},'
    yield f' "version": {VERSION},'
    first, dense = 0, []
    for name, width in parts.layout:
        dense.append((name, parts.dense[first : first + width]))
        first += width
    yield from _object(DENSE, dense, ",")
    yield from _object(SPARSE, list(parts.sparse.items()), ",")
    yield from _object(PHRASES, list(parts.phrases.items()), ",")
    yield from _object(ABOUT, sorted(parts.about.items()), "")
    yield "}"


def _object(key: str, items: list[Any], end: str) -> Iterator[str]:
    if not items:
        yield f" {_dumped(key)}: {{}}{end}"
        return
    yield f" {_dumped(key)}: {{"
    for i, (name, value) in enumerate(items, 1):
        yield f"  {_dumped(name)}: {_dumped(value)}{',' if i < len(items) else ''}"
    yield f" }}{end}"


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, allow_nan=False)


class _TwiceError(Exception):
    """A key that an object has twice."""


def _loaded(path: str, text: str) -> Any:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            raise _TwiceError
        return found

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=no_constant)
    except json.JSONDecodeError as error:
        shown = text[error.pos : error.pos + 20] or "the end"
        raise InputError(path, error.lineno, f"JSON ({error.msg})", shown) from None
    except RecursionError:
        raise InputError(path, 0, "JSON of a few levels", "too many") from None
    except _TwiceError:
        seen = set()
        for place, i in _walk(text):
            if place in seen:
                raise InputError(path, _at(text, i), f"{place[-1]} once", place[-1]) from None
            seen.add(place)
        raise InputError(path, 0, "every key once in an object") from None
    except ValueError as error:  # NaN or an infinity
        for place, i in _walk(text):
            begin = _value_at(text, i)
            value = None if text[begin] == "{" else _DECODER.raw_decode(text, begin)[0]
            values = value if isinstance(value, list) else [value]
            if not all(math.isfinite(v) for v in values if isinstance(v, float)):
                expected = f"a finite number under {place[-1]}"
                raise InputError(path, _at(text, i), expected, str(error).split()[0]) from None
        raise InputError(path, 0, "finite numbers", str(error).split()[0]) from None


def _line(text: str, place: Place) -> int:
    return next((_at(text, i) for found, i in _walk(text) if found == place), 0)


def _at(text: str, i: int) -> int:
    return text.count("\n", 0, i) + 1


def _walk(text: str) -> Iterator[tuple[Place, int]]:
    """Keys of all objects, with their positions, as far as the text parses.

    Only messages need positions, so only messages pay for them.
    """
    try:
        yield from _members(text, 0, ())
    except (ValueError, IndexError, RecursionError):
        return


def _members(text: str, i: int, place: Place) -> Iterator[tuple[Place, int]]:
    i = _skip(text, i) + 1
    while text[i := _skip(text, i)] != "}":
        key, _ = _DECODER.raw_decode(text, i)
        inner = (*place, key)
        yield inner, i
        i = _value_at(text, i)
        if text[i] == "{":
            yield from _members(text, i, inner)
        i = _skip(text, _DECODER.raw_decode(text, i)[1])
        i += text[i] == ","


def _value_at(text: str, i: int) -> int:
    return _skip(text, _skip(text, _DECODER.raw_decode(text, i)[1]) + 1)


def _skip(text: str, i: int) -> int:
    found = _BLANKS.match(text, i)
    return found.end() if found else i

"""Reads the bodies of requests."""

from __future__ import annotations

import difflib
import json
from typing import Any, NamedTuple

from hopefear.errors import HopefearError

MAX_INPUTS = 1000  # of one request
# Numbers that a request may have: least, most and default. They are whole where their bounds are.
NUMBERS: dict[str, dict[str, tuple[float, float, float | None]]] = {
    "predict": {"unknown": (0.0, 1.0, None)},
    "nbest": {"n": (1, 100, 5)},
    "explain": {"top": (1, 1000, 10), "sentence": (0, 2**31, None), "token": (0, 2**31, None)},
}


class Request(NamedTuple):
    """A request, its inputs not read yet."""

    verb: str
    model: str | None
    values: list[Any]  # the inputs
    single: bool  # whether it has one input, and wants one output
    numbers: tuple[tuple[str, Any], ...]  # by name; ``unknown_label`` and ``proba`` too


def read_request(verb: str, body: bytes) -> Request:
    """Returns the request in a body; HopefearError says what is wrong with it.

    >>> read_request("nbest", b'{"input": "It rains", "n": 2}')
    Request(verb='nbest', model=None, values=['It rains'], single=True, numbers=(('n', 2),))
    """
    fields = _parsed(body)
    known = ("model", "input", "inputs", *NUMBERS[verb])
    known += ("unknown_label", "proba") if verb == "predict" else ()
    if not isinstance(fields, dict):
        raise HopefearError(f"expected a JSON object with {', '.join(known)}; found {fields!r:.60}")
    for name in fields.keys() - set(known):
        near = difflib.get_close_matches(name, known, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        raise HopefearError(f"{verb} has no field {name!r:.60}; {hint}")
    model = fields.get("model")
    if model is not None and not isinstance(model, str):
        raise HopefearError(f"model is a name, not {model!r:.60}")
    if ("input" in fields) == ("inputs" in fields):
        raise HopefearError("a request has either input, for one answer, or inputs, a list")
    single = "input" in fields
    values = [fields["input"]] if single else fields["inputs"]
    if not isinstance(values, list) or not 1 <= len(values) <= MAX_INPUTS:
        found = f"{len(values):,}" if isinstance(values, list) else f"{values!r:.60}"
        raise HopefearError(f"inputs is a list of 1 to {MAX_INPUTS:,} inputs, not {found}")
    numbers: dict[str, Any] = {}
    for name, (least, most, usual) in NUMBERS[verb].items():
        value = usual if fields.get(name) is None else fields[name]
        if value is None:
            continue
        whole = isinstance(least, int)
        if type(value) not in ((int,) if whole else (int, float)) or not least <= value <= most:
            kind = "whole number" if whole else "number"
            raise HopefearError(f"{name} is a {kind} from {least:g} to {most:,}, not {value!r:.60}")
        numbers[name] = value
    label = fields.get("unknown_label")
    if label is not None:
        if not isinstance(label, str) or "unknown" not in numbers:
            raise HopefearError(
                f"unknown_label is a text beside unknown, a number, not {label!r:.60}"
            )
        numbers["unknown_label"] = label
    proba = fields.get("proba") or False
    if not isinstance(proba, bool):
        raise HopefearError(f"proba is true or false, not {proba!r:.60}")
    if proba:
        numbers["proba"] = True
    return Request(verb, model, values, single, tuple(numbers.items()))


def _parsed(body: bytes) -> Any:
    try:
        fields = _DECODER.decode(body.decode())
        if b"\\u" in body:  # half a character can be escaped, and is no text
            json.dumps(fields, ensure_ascii=False).encode()
        return fields
    except RecursionError:
        raise HopefearError("the body is JSON in too many brackets") from None
    except UnicodeEncodeError:
        raise HopefearError("the body has half a character (a lone surrogate)") from None
    except ValueError as error:
        raise HopefearError(f"the body is no JSON: {error}") from None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no number")


_DECODER = json.JSONDecoder(parse_constant=_refuse)

"""Lists as JSON, one object to a line: of trees, or of anything with named features."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from hopefear.data.lists.input import ListInput, RawList, finite, number_wanted, where
from hopefear.errors import InputError

COUNTS = ("matched", "gold_brackets", "test_brackets")

_MISSING: Any = object()
_NUMBERS = {int, float}
_VALUES = {int, float, bool}


def json_lists(
    source: ListInput, lines: Iterable[tuple[int, bytes]], trees: bool, judged: bool = True
) -> Iterator[RawList]:
    """Lists of a file, bad ones refused by ``source``.

    Parameters
    ----------
    source : ListInput
        The file, for messages.
    lines : iterable of (int, bytes)
        Its lines and their numbers.
    trees : bool
        Whether candidates are trees (``tree``, ``logprob``), else texts.
    judged : bool
        Whether costs, and what they are made of, are looked at.
    """
    for number, line in lines:
        if not line.strip():
            continue
        try:
            record = _Record(source, number, line)
            raw = record.tree_list(judged) if trees else record.text_list(judged)
            source.enter(raw.id, number)
        except InputError as error:
            source.refuse(error)
            continue
        yield raw


def holds_trees(line: bytes) -> bool | None:
    """Whether a line is a list of trees; None where it is no list at all."""
    try:
        first = json.loads(line)["candidates"][0]
        return "tree" in first if isinstance(first, dict) else None
    except (ValueError, LookupError, TypeError, RecursionError):
        return None


class _Record:
    """One line, and the checks of what it should hold."""

    def __init__(self, source: ListInput, number: int, line: bytes) -> None:
        self.source, self.number = source, number
        self.id: str | None = None
        text = source.text(number, line)
        self.record = self._parsed(text)
        self.id = self._name()
        self.candidates = self._candidates()
        self._check_names(text)

    def tree_list(self, judged: bool) -> RawList:
        """The list of a parser: ``tokens``, ``gold``, ``candidates`` of ``tree``, ``logprob``."""
        raw = self._common(self._texts("tree", required=True), "logprob")
        raw.tokens = self._strings("tokens")
        if judged:
            gold = self._optional(self.record, "gold", str, "a bracketed tree as gold")
            raw.references = None if gold is None else [gold]
            raw.counts = self._counts()
            raw.costs = self._numbers("cost")
        return raw

    def text_list(self, judged: bool) -> RawList:
        """Any list: ``reference`` or ``references``, ``candidates`` of ``text``, ``cost`` …"""
        raw = self._common(self._texts("text", required=False), "score")
        if judged:
            speechless = (c for c, one in enumerate(self.candidates) if "text" not in one)
            raw.unspoken = next(speechless, None)
            reference = self._optional(self.record, "reference", str, "a string as reference")
            raw.references = [reference] if reference is not None else self._strings("references")
            if raw.references == []:
                raise self._bad("at least one reference", "[]")
            raw.costs = self._numbers("cost")
        return raw

    def _common(self, texts: list[str], score: str) -> RawList:
        scores = self._numbers(score)
        if scores is None and score != "score":
            scores = self._numbers("score")
        if scores is None:
            scores = [0.0] * len(texts)
        assert self.id is not None
        features = None
        if any("features" in candidate for candidate in self.candidates):
            features = self._all_features()
        return RawList(
            self.id,
            self.number,
            texts,
            scores,
            weight=self._weight(),
            features=features,
            derivations=self._derivations(),
        )

    def _bad(self, expected: str, found: Any = _MISSING, candidate: int | None = None):
        shown = None if found is _MISSING else found if type(found) is str else _shown(found)
        place = f"{expected} in {where(self.id, candidate)}"
        return self.source.error(self.number, place, shown)

    def _parsed(self, text: str) -> dict[str, Any]:
        try:
            record = json.loads(text)
        except json.JSONDecodeError as error:
            at = text[error.pos : error.pos + 40] or "the end of the line"
            raise self._bad(f"JSON ({error.msg}, column {error.colno})", at) from None
        except (ValueError, RecursionError) as error:
            raise self._bad("JSON of a modest depth and with modest numbers", str(error)) from None
        if not isinstance(record, dict):
            raise self._bad('an object {"id": …, "candidates": […]}', text[:60])
        return record

    def _check_names(self, text: str) -> None:
        """Refuse an object with a name twice, of which a parser keeps the last."""
        names = len(self.record)
        for candidate in self.candidates:
            names += len(candidate)
            if type(features := candidate.get("features")) is dict:
                names += len(features)
        # Counting tells most lists to be good; the rest, some with colons in texts, are read again
        # more slowly.
        if text.count('":') + text.count('" :') != names:
            try:
                json.loads(text, object_pairs_hook=_named_once)
            except _TwiceError as error:
                raise self._bad("every name once in an object", str(error)) from None

    def _name(self) -> str:
        name = self.record.get("id", _MISSING)
        if type(name) is int:
            return str(name)
        if type(name) is not str or not name:
            raise self._bad("an id, a string or a whole number,", _given(name))
        return name

    def _candidates(self) -> list[dict[str, Any]]:
        candidates = self.record.get("candidates", _MISSING)
        if type(candidates) is not list:
            raise self._bad("a list of candidates", _given(candidates))
        if not candidates:
            raise self._bad("at least one candidate", "[]")
        for c, candidate in enumerate(candidates):
            if type(candidate) is not dict:
                raise self._bad("an object", candidate, c)
        return candidates

    def _texts(self, key: str, required: bool) -> list[str]:
        texts = [candidate.get(key, _MISSING) for candidate in self.candidates]
        if set(map(type, texts)) == {str}:
            return texts
        for c, text in enumerate(texts):
            if text is _MISSING and not required:
                texts[c] = ""
            elif type(text) is not str:
                raise self._bad(f"a string as {key}", _given(text), c)
        return texts

    def _numbers(self, key: str) -> list[float] | None:
        """Finite numbers of all candidates, None where none has one."""
        values = [candidate.get(key, _MISSING) for candidate in self.candidates]
        if set(map(type, values)) <= _NUMBERS and finite(values):
            return values
        if all(value is _MISSING for value in values):
            return None
        for c, value in enumerate(values):
            if value is _MISSING:
                raise self._bad(f"a {key}, as other candidates have,", "nothing", c)
            if type(value) not in _NUMBERS or not finite([value]):
                raise self._bad(f"{number_wanted(value)} as {key}", value, c)
        raise AssertionError("numbers that are bad together are bad one by one")

    def _counts(self) -> np.ndarray | None:
        rows = [[candidate.get(key, _MISSING) for key in COUNTS] for candidate in self.candidates]
        if all(value is _MISSING for row in rows for value in row):
            return None
        for c, row in enumerate(rows):
            if set(map(type, row)) != {int} or not 0 <= row[0] <= min(row[1:]) <= max(row) < 2**31:
                shown = ", ".join("nothing" if v is _MISSING else _shown(v) for v in row)
                raise self._bad(
                    "matched, gold_brackets and test_brackets as counts that fit together, in all "
                    "candidates or in none,",
                    shown,
                    c,
                )
        return np.array(rows, np.int64)

    def _weight(self) -> float | None:
        weight = self.record.get("weight", _MISSING)
        if weight is _MISSING:
            return None
        if type(weight) not in _NUMBERS or not finite([weight]) or weight < 0.0:
            raise self._bad("a weight of 0 or more (and of at most 1e15)", weight)
        return float(weight)

    def _derivations(self) -> list[str | None] | None:
        if not any("derivation" in candidate for candidate in self.candidates):
            return None
        return [
            self._optional(candidate, "derivation", str, "a string as derivation", c)
            for c, candidate in enumerate(self.candidates)
        ]

    def _all_features(self) -> list[dict[str, Any]]:
        found = [candidate.get("features", {}) for candidate in self.candidates]
        if set(map(type, found)) == {dict}:
            values = list(chain.from_iterable(map(dict.values, found)))
            # One look at numbers without fault is quicker than one at each candidate.
            if set(map(type, values)) <= _VALUES and finite(values):
                return found
        return [self._features(c) for c in range(len(found))]

    def _features(self, c: int) -> dict[str, Any]:
        features = self.candidates[c].get("features", _MISSING)
        if features is _MISSING:
            return {}
        if type(features) is not dict:
            raise self._bad('features as an object {"name": number}', features, c)
        kinds = set(map(type, features.values()))
        if kinds <= _VALUES and finite(features.values()):
            return features
        named: dict[str, Any] = {}
        for name, value in features.items():
            if type(value) is str:
                name, value = f"{name}={value}", 1.0
            elif type(value) not in _VALUES or not finite([value]):
                expected = f"{number_wanted(value)} or a string as feature {name[:40]!r}"
                raise self._bad(expected, value, c)
            if name in named:
                raise self._bad("every feature once", name, c)
            named[name] = value
        return named

    def _strings(self, key: str) -> list[str] | None:
        strings = self._optional(self.record, key, list, f"a list of strings as {key}")
        if strings is not None and not set(map(type, strings)) <= {str}:
            raise self._bad(f"a list of strings as {key}", strings)
        return strings

    def _optional(
        self, table: dict[str, Any], key: str, kind: type, expected: str, c: int | None = None
    ) -> Any:
        value = table.get(key)
        if value is not None and type(value) is not kind:
            raise self._bad(expected, value, c)
        return value


class _TwiceError(Exception):
    """A name that an object has twice."""


def _named_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise _TwiceError(next(name for k, name in enumerate(names) if name in names[:k]))
    return found


def _given(value: Any) -> Any:
    return "nothing" if value is _MISSING else value


def _shown(value: Any) -> str:
    return json.dumps(value)[:80]

"""Weights as text: one feature to a line, ``LM0= 0.5``, ``TM0= 0.2 0.2 0.3``, ``wt_a~b= -0.1``.

Lines that begin with ``#`` are comments, but for a few that begin with ``#:``. ``#: dense``,
``#: sparse`` and ``#: phrases`` say what the names that follow are; they are written where the
names alone would not tell. ``#: about {…}`` holds, as JSON, where the weights came from.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from hopefear.errors import InputError
from hopefear.translation.weights_names import (
    ABOUT,
    DENSE,
    PHRASES,
    SPARSE,
    Parts,
    escaped,
    is_phrase_name,
    kind_of,
    phrase_name,
    phrase_pair,
    unescaped,
)

MARK = "#:"
FORM = "NAME= NUMBER …"
NAMED = "named"  # sparse, or phrase pairs
_BLANKS = re.compile(r"[ \t\r\v\f]+")


class Collector:
    """Weights as they come from the lines of a file.

    Parameters
    ----------
    path : str
        For messages.
    dense : collection of str
        Dense features of another file, which have their weights already.
    bare : bool
        Names have no ``=`` behind them: one that ends so is meant.
    """

    def __init__(self, path: str, dense: Collection[str] = (), bare: bool = False) -> None:
        self.path, self.bare = path, bare
        self.taken = frozenset(dense)
        self.parts = Parts((), [], {}, {}, {})
        self._layout: list[tuple[str, int]] = []
        self._lines: dict[tuple[str, str], int] = {}

    def add(self, line: int, text: str, kind: str | None = None) -> None:
        """Take the feature on a line; InputError where there is none."""
        name, numbers = self._split(line, text, kind)
        values = [self._number(line, number) for number in numbers]
        if kind is None:
            kind = kind_of(name, len(values))
        elif kind == NAMED:
            kind = PHRASES if is_phrase_name(name) else SPARSE
        if kind != DENSE and len(values) > 1:
            self.refuse(line, f"one number under {name}", " ".join(numbers))
        if kind == PHRASES:
            if not is_phrase_name(name):
                self.refuse(line, "a phrase pair, pp_SOURCE,WORDS~TARGET,WORDS", name)
            key = phrase_pair(name)
        else:
            key = unescaped(name)
        # Dense and sparse names are of one kind here: readers of lists must tell them apart.
        before = self._lines.setdefault((PHRASES if kind == PHRASES else "", key), line)
        if before != line:
            self.refuse(line, f"{name} once (it is on line {before} too)", text)
        if kind == SPARSE and key in self.taken:
            self.refuse(line, "a name that is not dense", text)
        if kind == DENSE:
            self._layout.append((key, len(values)))
            self.parts.dense.extend(values)
        else:
            (self.parts.phrases if kind == PHRASES else self.parts.sparse)[key] = values[0]

    def describe(self, line: int, text: str) -> None:
        """Take what a line says about the weights."""
        try:
            found = json.loads(text, parse_constant=no_constant)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            self.refuse(line, f"a JSON object behind '{MARK} {ABOUT}'", text)
        self.parts.about.update(found)

    def finish(self) -> Parts:
        """All that came."""
        return self.parts._replace(layout=tuple(self._layout))

    def refuse(self, line: int, expected: str, found: str) -> Any:
        """Raise InputError at a line."""
        raise InputError(self.path, line, expected, found)

    def _split(self, line: int, text: str, kind: str | None) -> tuple[str, list[str]]:
        first, *numbers = _BLANKS.split(text)
        name = first
        if self.bare:
            pass
        elif first.endswith("="):
            name = first[:-1]
        elif not numbers:
            name, _, number = first.rpartition("=")
            numbers = [number] if name else []
        elif "=" in first and kind in (None, DENSE) and _is_number(first.rpartition("=")[2]):
            # TM0=0.2 0.3 would else be one number under the name TM0=0.2.
            self.refuse(line, f"a blank behind '=' ({FORM})", text)
        if not name or not numbers:
            self.refuse(line, "NAME NUMBER" if self.bare else FORM, text)
        return name, numbers

    def _number(self, line: int, text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = None
        if value is None or "_" in text:
            return self.refuse(line, "a number", text)
        if not math.isfinite(value):
            self.refuse(line, "a finite number", text)
        return value


def read_text(path: str, lines: Iterable[str]) -> Parts:
    """Weights from lines of text.

    Parameters
    ----------
    path : str
        For messages.
    lines : iterable of str
        The lines, without their ends.

    Examples
    --------
    >>> parts = read_text("w.txt", ["LM0= 0.5", "TM0= 1 2", "a_b= 3", "pp_das,haus~house= 4"])
    >>> parts.layout, parts.dense
    ((('LM0', 1), ('TM0', 2)), [0.5, 1.0, 2.0])
    >>> parts.sparse, parts.phrases
    ({'a_b': 3.0}, {'das haus ||| house': 4.0})
    """
    collector = Collector(path)
    add_lines(collector, enumerate(lines, 1))
    return collector.finish()


def add_lines(
    collector: Collector, lines: Iterable[tuple[int, str]], kind: str | None = None
) -> None:
    """Hand over the features, and what stands behind ``#:``, on numbered lines.

    Parameters
    ----------
    collector : Collector
        Takes them.
    lines : iterable of (int, str)
        Numbers and texts.
    kind : str, optional
        What names are that no line says anything of; without it their looks decide.
    """
    for number, text in lines:
        text = text.strip(" \t\r\v\f")
        if text.startswith(MARK):
            word, _, rest = text[len(MARK) :].strip().partition(" ")
            if word == ABOUT:
                collector.describe(number, rest)
            elif word in (DENSE, SPARSE, PHRASES) and not rest:
                kind = word
            else:
                expected = f"{DENSE}, {SPARSE}, {PHRASES} or {ABOUT} behind '{MARK}'"
                collector.refuse(number, expected, text)
        elif text and not text.startswith("#"):
            collector.add(number, text, kind)


def write_text(parts: Parts) -> Iterator[str]:
    """Lines of text that :func:`read_text` reads as the same weights.

    Examples
    --------
    >>> for line in write_text(Parts((("LM0", 1),), [0.5], {"a_b": 3.0}, {"x ||| y": -1.0}, {})):
    ...     print(line)
    LM0= 0.5
    a_b= 3.0
    pp_x~y= -1.0
    """
    yield from about_lines(parts)
    marked = needs_marks(parts)
    if parts.layout:
        yield from [f"{MARK} {DENSE}"] if marked else []
        yield from dense_lines(parts)
    yield from named_lines(parts, marked, "= ")


def about_lines(parts: Parts) -> list[str]:
    """The line that says where weights came from, where that is known."""
    if not parts.about:
        return []
    return [f"{MARK} {ABOUT} {json.dumps(parts.about, ensure_ascii=False, sort_keys=True)}"]


def dense_lines(parts: Parts) -> Iterator[str]:
    """``NAME= NUMBER …`` for every dense feature."""
    first = 0
    for name, width in parts.layout:
        values = " ".join(map(repr, parts.dense[first : first + width]))
        first += width
        yield f"{escaped(name)}= {values}"


def named_lines(parts: Parts, marked: bool, between: str) -> Iterator[str]:
    """Sparse features, then phrase pairs: names and numbers with ``between`` between them."""
    if parts.sparse:
        yield from [f"{MARK} {SPARSE}"] if marked else []
        yield from (f"{escaped(name)}{between}{value!r}" for name, value in parts.sparse.items())
    if parts.phrases:
        yield from [f"{MARK} {PHRASES}"] if marked else []
        for pair, value in parts.phrases.items():
            yield f"{phrase_name(pair)}{between}{value!r}"


def needs_marks(parts: Parts) -> bool:
    """Whether names alone would not tell what is dense, sparse or a phrase pair."""
    return any(kind_of(escaped(name), width) != DENSE for name, width in parts.layout) or any(
        kind_of(escaped(name), 1) != SPARSE for name in parts.sparse
    )


def no_constant(text: str) -> Any:
    """Refuse NaN and infinities, which are no JSON."""
    raise ValueError(f"{text} is no JSON")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True

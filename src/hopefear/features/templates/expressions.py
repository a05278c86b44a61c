"""One template of a TOML file: ``suffix(word, 1..3)[0] pos[-1]``.

A template is terms with spaces between them. A term is a column or a view of one, and an offset in
brackets (0 if left out); ``bias``, ``bos`` and ``eos`` stand alone. A range ``a..b`` stands for
one template for each of its numbers.
"""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

from hopefear.features.templates.spec import (
    FIRST_TOKEN,
    LAST_TOKEN,
    MAX_OFFSET,
    Source,
    Template,
    Term,
    View,
)
from hopefear.features.templates.views import ARGUMENTS, CLASSES, CUTS, LISTS, MAPS, SEVERAL

_TOKEN = re.compile(r"\s*([()\[\],]|[^\s()\[\],]+)")
_RANGE = re.compile(r"([+-]?\d{1,6})(?:\.\.([+-]?\d{1,6}))?")
_PLACES = {"bias": 0, "bos": FIRST_TOKEN, "eos": LAST_TOKEN}
_WORD = "word"  # column a lexicon is asked about unless told otherwise
_MAX_SIZE = 32
_MAX_EXPANSION = 1000
_MAX_DEPTH = 20


class TemplateError(Exception):
    """What was expected in a template and what stood there; the caller knows the file."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(f"expected {expected}, found {found!r}")
        self.expected, self.found = expected, found


class _Piece(NamedTuple):
    label: str
    term: Term | None = None
    number: bool = False
    where: int = 0


def parse(text: str) -> list[Template]:
    """The templates that one expression stands for; TemplateError if it is none.

    >>> [t.text for t in parse("word[-1..0] suffix(word,2)")]
    ['word[-1] suffix(word,2)[0]', 'word[0] suffix(word,2)[0]']
    """
    reader = _Reader(text)
    pieces: list[list[_Piece]] = []
    while reader.peek():
        pieces.append(_piece(reader))
    if not pieces:
        raise TemplateError("a term such as word[0]", text)
    ways = 1
    for alternatives in pieces:
        ways *= len(alternatives)
    if ways > _MAX_EXPANSION:
        raise TemplateError(f"ranges that stand for at most {_MAX_EXPANSION} templates", text)
    return [_template(list(choice), text) for choice in itertools.product(*pieces)]


def _template(pieces: list[_Piece], text: str) -> Template:
    terms = tuple(p.term for p in pieces if p.term is not None and not p.number)
    numbers = [p.term for p in pieces if p.number]
    if len(numbers) > 1:
        raise TemplateError("at most one number() in a template", text)
    if sum(_several(term) for term in terms) > 1:
        raise TemplateError("at most one view that gives several strings in a template", text)
    where = 0
    for p in pieces:
        where |= p.where
    label = "|".join(p.label for p in pieces)
    if len(pieces) == 1 and numbers and numbers[0] is not None and numbers[0].offset == 0:
        label = str(numbers[0].source.column)
    around = (label + "=", *["|"] * (len(terms) - 1), "") if terms else (label,)
    canonical = " ".join(p.label for p in pieces)
    return Template(canonical, around, terms, numbers[0] if numbers else None, where)


def _several(term: Term) -> bool:
    return bool(term.views) and term.views[-1].name in SEVERAL


class _Reader:
    """Tokens of an expression, one after the other."""

    def __init__(self, text: str) -> None:
        self.text, self.at = text, 0

    def peek(self) -> str:
        match = _TOKEN.match(self.text, self.at)
        return match.group(1) if match else ""

    def take(self) -> str:
        match = _TOKEN.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match.group(1) if match else ""

    def need(self, token: str) -> None:
        if self.peek() != token:
            raise TemplateError(f"{token!r} after {self.text[: self.at]!r}", self.rest())
        self.take()

    def accept(self, token: str) -> bool:
        found = self.peek() == token
        if found:
            self.take()
        return found

    def rest(self) -> str:
        return self.text[self.at :].strip()

    def word(self, what: str) -> str:
        if self.peek() in ("", *"()[],"):
            raise TemplateError(what, self.rest())
        return self.take()

    def numbers(self, what: str, low: int, high: int) -> range:
        """``3`` or ``1..4``, within bounds."""
        found = self.word(what)
        match = _RANGE.fullmatch(found)
        if match is None:
            raise TemplateError(what, found)
        first = int(match.group(1))
        last = first if match.group(2) is None else int(match.group(2))
        if not low <= first <= last <= high:
            raise TemplateError(f"{what}, {low} to {high}, the smaller end of a range first", found)
        return range(first, last + 1)


def _piece(reader: _Reader) -> list[_Piece]:
    name = reader.word("a column or a view")
    if reader.peek() not in ("(", "[") and name in _PLACES:
        return [_Piece(name, where=_PLACES[name])]
    if reader.peek() != "(":
        return _with_offsets(reader, [(name, Source(name), ())])
    reader.need("(")
    if name == "number":
        column = reader.word("the name of a column")
        reader.need(")")
        found = _with_offsets(reader, [(f"number({column})", Source(column), ())])
        return [p._replace(number=True) for p in found]
    if name == "lexicon":
        return _with_offsets(reader, [_lexicon(reader)])
    if name not in MAPS and name not in CUTS and name not in LISTS:
        known = sorted([*MAPS, *CUTS, *LISTS, "lexicon", "number"])
        raise TemplateError(f"one of {', '.join(known)}", name)
    inner, column, views = _inner(reader)
    choices = [
        (f"{name}({inner}{shown})", Source(column), (*views, View(name, args)))
        for shown, args in _arguments(reader, name)
    ]
    reader.need(")")
    return _with_offsets(reader, choices)


def _lexicon(reader: _Reader) -> tuple[str, Source, tuple[View, ...]]:
    lexicon = reader.word("the name of a lexicon")
    inner, column, views = _inner(reader) if reader.accept(",") else (_WORD, _WORD, ())
    reader.need(")")
    return f"lexicon({lexicon},{inner})", Source(column, lexicon, views), ()


def _inner(reader: _Reader, depth: int = 1) -> tuple[str, str, tuple[View, ...]]:
    """A column, or a view of one that gives exactly one string."""
    if depth > _MAX_DEPTH:
        raise TemplateError(f"at most {_MAX_DEPTH} views inside of each other", reader.rest()[:60])
    name = reader.word("a column")
    if not reader.accept("("):
        return name, name, ()
    if name not in MAPS:
        raise TemplateError(f"a column or one of {', '.join(MAPS)} inside of another view", name)
    inner, column, views = _inner(reader, depth + 1)
    reader.need(")")
    return f"{name}({inner})", column, (*views, View(name))


def _arguments(reader: _Reader, name: str) -> list[tuple[str, tuple[int | str, ...]]]:
    kind = ARGUMENTS.get(name)
    if kind is None:
        return [("", ())]
    reader.need(",")
    if kind == "class":
        found = reader.word("the name of a class")
        if found not in CLASSES:
            raise TemplateError(f"one of the classes {', '.join(CLASSES)}", found)
        return [(f",{found}", (found,))]
    sizes = reader.numbers(f"a length or a range of lengths in {name}()", 1, _MAX_SIZE)
    if kind == "size":
        return [(f",{n}", (n,)) for n in sizes]
    low, high = sizes[0], sizes[-1]
    return [(f",{low}" if low == high else f",{low}..{high}", (low, high))]


def _with_offsets(
    reader: _Reader, choices: list[tuple[str, Source, tuple[View, ...]]]
) -> list[_Piece]:
    offsets = range(1)
    if reader.accept("["):
        offsets = reader.numbers("an offset", -MAX_OFFSET, MAX_OFFSET)
        reader.need("]")
    return [
        _Piece(f"{label}[{offset}]", Term(source, views, offset))
        for label, source, views in choices
        for offset in offsets
    ]

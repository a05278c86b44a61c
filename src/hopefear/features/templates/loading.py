"""Template files, in TOML or as CRF++ has them: from a name, a path or a text to templates.

A template in TOML, ``suffix(word, 1..3)[0] pos[-1]``, is terms with spaces between them. A term is
a column or a view of one, and an offset in brackets (0 if left out); ``bias``, ``bos`` and ``eos``
stand alone. A range ``a..b`` stands for one template for each of its numbers.

CRF++ templates (and Wapiti patterns of the same form) are read as they are: ``U02:%x[0,0]/%x[1,1]``
is an attribute of a token, ``B…`` of a pair of labels, ``*…`` (Wapiti) of both; ``%x[row,column]``
is the string so many tokens away in a column counted from 0. Lines with the same text around their
macros share attributes, which makes bags of words.
"""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

from hopefear.errors import HopefearError, InputError
from hopefear.features.templates.spec import (
    FIRST_TOKEN,
    LAST_TOKEN,
    MAX_OFFSET,
    MAX_TEMPLATES,
    ON_BOTH,
    ON_EDGES,
    ON_LABELS,
    StringSource,
    StringView,
    Template,
    Templates,
    Term,
    read_lexicon,
)
from hopefear.features.templates.string_features import (
    ARGUMENTS,
    CLASSES,
    CUTS,
    LISTS,
    MAPS,
    SEVERAL,
    seen,
)
from hopefear.storage import is_beside, read_small

_TOKEN = re.compile(r"\s*([()\[\],]|[^\s()\[\],]+)")
_RANGE = re.compile(r"([+-]?\d{1,6})(?:\.\.([+-]?\d{1,6}))?")
_POSITIONS = {"bias": 0, "bos": FIRST_TOKEN, "eos": LAST_TOKEN}
_WORD = "word"  # column that a lexicon matches by default
_MAX_SIZE = 32
_MAX_EXPANSION = 1000
_MAX_DEPTH = 20


class TemplateError(Exception):
    """The expected and the actual text of a template; the caller knows the file."""

    def __init__(self, expected: str, found: str) -> None:
        super().__init__(f"expected {expected}, found {found!r}")
        self.expected, self.found = expected, found


class _Piece(NamedTuple):
    label: str
    term: Term | None = None
    number: bool = False
    where: int = 0


def parse(text: str) -> list[Template]:
    """Parses one expression into templates; raises TemplateError where it is invalid.

    >>> [t.text for t in parse("word[-1..0] suffix(word,2)")]
    ['word[-1] suffix(word,2)[0]', 'word[0] suffix(word,2)[0]']
    """
    reader = _ExpressionReader(text)
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


class _ExpressionReader:
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
            raise TemplateError(f"{token!r} after {self.text[: self.at]!r}", self.remainder())
        self.take()

    def accept(self, token: str) -> bool:
        matches = self.peek() == token
        if matches:
            self.take()
        return matches

    def remainder(self) -> str:
        return self.text[self.at :].strip()

    def word(self, expected: str) -> str:
        if self.peek() in ("", *"()[],"):
            raise TemplateError(expected, self.remainder())
        return self.take()

    def numbers(self, expected: str, low: int, high: int) -> range:
        """``3`` or ``1..4``, within bounds."""
        text = self.word(expected)
        match = _RANGE.fullmatch(text)
        if match is None:
            raise TemplateError(expected, text)
        first = int(match.group(1))
        last = first if match.group(2) is None else int(match.group(2))
        if not low <= first <= last <= high:
            raise TemplateError(
                f"{expected}, {low} to {high}, the smaller end of a range first", text
            )
        return range(first, last + 1)


def _piece(reader: _ExpressionReader) -> list[_Piece]:
    name = reader.word("a column or a view")
    if reader.peek() not in ("(", "[") and name in _POSITIONS:
        return [_Piece(name, where=_POSITIONS[name])]
    if reader.peek() != "(":
        return _with_offsets(reader, [(name, StringSource(name), ())])
    reader.need("(")
    if name == "number":
        column = reader.word("the name of a column")
        reader.need(")")
        terms = _with_offsets(reader, [(f"number({column})", StringSource(column), ())])
        return [p._replace(number=True) for p in terms]
    if name == "lexicon":
        return _with_offsets(reader, [_lexicon(reader)])
    if name not in MAPS and name not in CUTS and name not in LISTS:
        functions = sorted([*MAPS, *CUTS, *LISTS, "lexicon", "number"])
        raise TemplateError(f"one of {', '.join(functions)}", name)
    inner, column, views = _inner(reader)
    choices = [
        (f"{name}({inner}{suffix})", StringSource(column), (*views, StringView(name, args)))
        for suffix, args in _arguments(reader, name)
    ]
    reader.need(")")
    return _with_offsets(reader, choices)


def _lexicon(reader: _ExpressionReader) -> tuple[str, StringSource, tuple[StringView, ...]]:
    lexicon = reader.word("the name of a lexicon")
    inner, column, views = _inner(reader) if reader.accept(",") else (_WORD, _WORD, ())
    reader.need(")")
    return f"lexicon({lexicon},{inner})", StringSource(column, lexicon, views), ()


def _inner(reader: _ExpressionReader, depth: int = 1) -> tuple[str, str, tuple[StringView, ...]]:
    """A column, or a view of one that gives exactly one string."""
    if depth > _MAX_DEPTH:
        raise TemplateError(
            f"at most {_MAX_DEPTH} views inside of each other", reader.remainder()[:60]
        )
    name = reader.word("a column")
    if not reader.accept("("):
        return name, name, ()
    if name not in MAPS:
        raise TemplateError(f"a column or one of {', '.join(MAPS)} inside of another view", name)
    inner, column, views = _inner(reader, depth + 1)
    reader.need(")")
    return f"{name}({inner})", column, (*views, StringView(name))


def _arguments(reader: _ExpressionReader, name: str) -> list[tuple[str, tuple[int | str, ...]]]:
    kind = ARGUMENTS.get(name)
    if kind is None:
        return [("", ())]
    reader.need(",")
    if kind == "class":
        class_name = reader.word("the name of a class")
        if class_name not in CLASSES:
            raise TemplateError(f"one of the classes {', '.join(CLASSES)}", class_name)
        return [(f",{class_name}", (class_name,))]
    sizes = reader.numbers(f"a length or a range of lengths in {name}()", 1, _MAX_SIZE)
    if kind == "size":
        return [(f",{n}", (n,)) for n in sizes]
    low, high = sizes[0], sizes[-1]
    return [(f",{low}" if low == high else f",{low}..{high}", (low, high))]


def _with_offsets(
    reader: _ExpressionReader, choices: list[tuple[str, StringSource, tuple[StringView, ...]]]
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


# Reading keys of many parts takes the square of their length.
_DOTTED = re.compile(r"(?m)(?:^|[{,\[])\s*(?:[\w\"'-]+\s*\.\s*){20}")
_AT_LINE = re.compile(r"\s*\(at (?:line (\d+), column \d+|end of document)\)")
_TOML_ON = {False: ON_LABELS, True: ON_EDGES, "both": ON_BOTH}
_GROUP_KEYS = ("features", "edges", "when", "optional")
_FILE_KEYS = ("padding", "templates", "lexicons")


def parse_toml(
    text: str, source: str, read_lexicon: Callable[[str, str], tuple[str, ...]]
) -> Templates:
    """Read the text of a template file.

    Parameters
    ----------
    text : str
        The file.
    source : str
        Its path, for messages.
    read_lexicon : callable
        Entries of the lexicon of a name and a path as the file gives it.
    """
    try:
        if _DOTTED.search(text):
            raise RecursionError
        content = tomllib.loads(text)
    except RecursionError:
        many = "lists or tables in many"
        raise InputError(source, 0, "a template file of two levels", many) from None
    except ValueError as error:
        if not isinstance(error, tomllib.TOMLDecodeError):  # of an integer without end
            raise InputError(source, 0, f"TOML ({str(error).partition(';')[0]})") from None
        match = _AT_LINE.search(str(error))
        line = int((match and match.group(1)) or text.count("\n") + 1)
        raise InputError(source, line, f"TOML ({_AT_LINE.sub('', str(error))})") from None
    lines = _Lines(text)
    _known_keys(content, _FILE_KEYS, source, lines, "a template file")
    padding = content.get("padding", False)
    if not isinstance(padding, bool):
        raise InputError(source, lines.of_key("padding"), "padding = true or false", str(padding))
    groups = content.get("templates", [])
    if not isinstance(groups, list) or not groups:
        raise InputError(source, 0, "at least one group [[templates]]")
    templates: list[Template] = []
    for group in groups:
        templates += _group(group, source, lines)
    _check_all(templates, source)
    lexicons = _lexicons(content, templates, source, lines, read_lexicon)
    return Templates(tuple(templates), padding, lexicons=lexicons, source=source)


def _group(group: Any, source: str, lines: _Lines) -> list[Template]:
    if not isinstance(group, dict):
        raise InputError(source, 0, "groups [[templates]]", repr(group))
    _known_keys(group, _GROUP_KEYS, source, lines, "[[templates]]")
    features = group.get("features")
    features = [features] if isinstance(features, str) else features
    if not isinstance(features, list) or not features:
        raise InputError(source, lines.of_key("features"), 'features = [ "word[0]", … ]')
    edges, optional = group.get("edges", False), group.get("optional", False)
    if not isinstance(edges, bool | str) or edges not in _TOML_ON:
        raise InputError(source, lines.of_key("edges"), 'edges = true, false or "both"', str(edges))
    if not isinstance(optional, bool):
        raise InputError(source, lines.of_key("optional"), "optional = true or false")
    when = group.get("when", [])
    when = [when] if isinstance(when, str) else when
    if not isinstance(when, list) or not all(isinstance(name, str) for name in when):
        raise InputError(source, lines.of_key("when"), "when = the name of a column, or a list")
    templates = []
    for text in features:
        if not isinstance(text, str):
            raise InputError(source, 0, "templates as strings", repr(text))
        line = lines.of_text(text)
        try:
            parsed = parse(text)
        except TemplateError as mistake:
            raise InputError(
                source, line, f"{mistake.expected} in the template {text!r:.200}", mistake.found
            ) from None
        templates += [
            replace(t, on=_TOML_ON[edges], line=line, when=tuple(when), optional=optional)
            for t in parsed
        ]
    return templates


def _check_all(templates: list[Template], source: str) -> None:
    if len(templates) > MAX_TEMPLATES:
        raise InputError(source, 0, f"at most {MAX_TEMPLATES} templates", str(len(templates)))
    line_of: dict[tuple[str, str], int] = {}
    for template in templates:
        for on in (ON_LABELS, ON_EDGES) if template.on == ON_BOTH else (template.on,):
            if (template.text, on) in line_of:
                raise InputError(
                    source,
                    template.line,
                    f"every template once, and line {line_of[template.text, on]} has this one too",
                    template.text,
                )
            line_of[template.text, on] = template.line


def _lexicons(
    content: Mapping[str, Any],
    templates: list[Template],
    source: str,
    lines: _Lines,
    read_lexicon: Callable[[str, str], tuple[str, ...]],
) -> dict[str, tuple[str, ...]]:
    files = content.get("lexicons", {})
    if not isinstance(files, dict) or not all(isinstance(path, str) for path in files.values()):
        raise InputError(source, lines.of_key("lexicons"), '[lexicons] with lines name = "file"')
    for template in templates:
        for term in template.all_terms():
            if term.source.lexicon and term.source.lexicon not in files:
                raise InputError(
                    source,
                    template.line,
                    f"the lexicon {term.source.lexicon!r} to have a file under [lexicons]",
                    ", ".join(files) or "none",
                )
    return {name: read_lexicon(name, path) for name, path in files.items()}


def _known_keys(
    table: Mapping[str, Any], permitted: tuple[str, ...], source: str, lines: _Lines, section: str
) -> None:
    for key in table:
        if key not in permitted:
            raise InputError(source, lines.of_key(key), f"{', '.join(permitted)} in {section}", key)


class _Lines:
    """Finds lines in a file, which the TOML reader does not keep."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0

    def of_text(self, text: str) -> int:
        """Line of the next string of this content, 0 if it was written in another way."""
        for quote in "\"'":
            position = self._text.find(f"{quote}{text}{quote}", self._at)
            if position >= 0:
                self._at = position + len(text) + 2
                return self._text.count("\n", 0, position) + 1
        return 0

    def of_key(self, key: str) -> int:
        match = re.compile(rf"^\s*\[*\"?{re.escape(key)}\b", re.MULTILINE).search(
            self._text, self._at
        )
        return self._text.count("\n", 0, match.end()) + 1 if match else 0


_MACRO = re.compile(
    r"""%(?:([xX])|([mMtT])(?=[^\]"]*"))"""
    r"""\[\s*([+-]?\d+)\s*,\s*(\d+)\s*(?(2),\s*"((?:[^"\\]|\\.)*)"\s*)\]"""
)
_MACRO_VIEWS = {
    "x": (),
    "X": (StringView("lower"),),
    "m": (StringView("match"),),
    "M": (StringView("match-lower"),),
    **dict.fromkeys("tT", (StringView("test"),)),
}
_OTHER_MACRO = re.compile(r"%[A-Za-z]\S*")
_LINE = re.compile(r"[UuBb*](\S*[:%]|\d*$)")
_CRFPP_ON = {"U": ON_LABELS, "B": ON_EDGES, "*": ON_BOTH}
_MAX_COLUMN = 999


def looks_like_crfpp(text: str) -> bool:
    """Whether the first line with content is a CRF++ template.

    >>> looks_like_crfpp("# Unigram\\nU00:%x[-2,0]"), looks_like_crfpp("padding = true")
    (True, False)
    """
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            return _LINE.match(line) is not None
    return False


def parse_crfpp(text: str, source: str) -> Templates:
    """Read the text of a CRF++ template file."""
    templates: list[Template] = []
    transitions = False
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        template = template_of(line, source, number)
        if template.on != ON_LABELS and not template.terms:
            transitions = True
            if template.on == ON_EDGES:
                continue
        templates.append(template)
    if not templates and not transitions:
        raise InputError(source, 0, "at least one CRF++ template such as U00:%x[0,0]")
    if len(templates) > MAX_TEMPLATES:
        raise InputError(source, 0, f"at most {MAX_TEMPLATES} templates", str(len(templates)))
    return Templates(tuple(templates), True, "crfpp", transitions, source=source)


def template_of(line: str, source: str, number: int) -> Template:
    """The template on one line.

    >>> t = template_of("U05:%x[-1,0]/%x[0,0]", "template", 7)
    >>> t.pieces, [term.offset for term in t.terms]
    (('U05:', '/', ''), [-1, 0])
    """
    on = _CRFPP_ON.get(line[0].upper())
    if on is None:
        raise InputError(source, number, "a template that begins with U, B or *", line)
    terms: list[Term] = []
    for plain, tested, row, column, pattern in _MACRO.findall(line):
        # Digits without end would be refused by int() itself.
        if len(row) > 6 or not -MAX_OFFSET <= int(row) <= MAX_OFFSET:
            raise InputError(source, number, f"rows from -{MAX_OFFSET} to {MAX_OFFSET}", row)
        if len(column) > 6 or int(column) > _MAX_COLUMN:
            raise InputError(source, number, f"columns from 0 to {_MAX_COLUMN}", column)
        views = _MACRO_VIEWS[plain or tested]
        if pattern or tested:
            try:
                views = (StringView(views[0].name, (pattern,)),)
                seen("", views)
            except HopefearError as error:
                raise InputError(source, number, "a pattern of Wapiti's", str(error)) from None
        terms.append(Term(StringSource(int(column)), views, int(row)))
    pieces = tuple(_MACRO.split(line)[::6])
    for piece in pieces:
        macro = _OTHER_MACRO.search(piece)
        if macro is not None:
            raise InputError(
                source,
                number,
                '%x[row,column], or Wapiti\'s %m[row,column,"pattern"] and %t (@ and * before rows '
                "are not; use a TOML file with views)",
                macro.group(),
            )
    return Template(line, pieces, tuple(terms), on=on, line=number)


BUILT_IN = (
    *("pos", "chunking", "crfsuite-chunking", "ner", "bioner"),
    *("sapo-pos", "sapo-chunking", "sapo-bioner"),
)


def load_templates(name_or_path: str | Path, allow_outside: bool = False) -> Templates:
    """Read a built-in set, a TOML template file or a CRF++ template file.

    Parameters
    ----------
    name_or_path : str or Path
        A name of ``BUILT_IN``, or a path; a file that ends in ``.toml`` is TOML, others are what
        they look like.
    allow_outside : bool
        Also read lexicons that lie outside of the file's own folder. A template file from others
        could name any file there is, whose lines would end up in models.

    Examples
    --------
    >>> load_templates("pos").columns()
    ('word',)
    """
    name = str(name_or_path)
    if name in BUILT_IN:
        text = (files("hopefear.features.templates") / "sets" / f"{name}.toml").read_text("utf-8")
        return parse_templates(text, name)
    path = Path(name)
    try:
        with path.open("rb") as file:
            raw = read_small(file, name)
    except FileNotFoundError:
        raise HopefearError(
            f"{name}: no such template file, and no built-in set of that name; built in are "
            f"{', '.join(BUILT_IN)}"
        ) from None
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise HopefearError(f"{name!r}: cannot be read ({reason})") from None
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(name, line, "a template file in UTF-8") from None
    return parse_templates(text, name, path.parent, allow_outside)


def parse_templates(
    text: str, source: str = "memory", folder: Path | None = None, allow_outside: bool = False
) -> Templates:
    """Read the text of a template file, TOML or CRF++.

    Parameters
    ----------
    text : str
        Content of the file.
    source : str
        Its path, for messages.
    folder : Path, optional
        Folder of lexicons; without it, a file that names one is refused.
    allow_outside : bool
        As for :func:`load_templates`.

    Examples
    --------
    >>> crfpp = parse_templates("U00:%x[-1,0]/%x[0,0]\\nB")
    >>> crfpp.padding, crfpp.transitions, len(crfpp)
    (True, True, 1)
    """
    text = text.replace("\r\n", "\n")
    if not source.endswith(".toml") and looks_like_crfpp(text):
        return parse_crfpp(text, source)

    def lexicon(name: str, path: str) -> tuple[str, ...]:
        if folder is None:
            raise InputError(source, 0, f"a template file on disk, for the lexicon {name!r}", path)
        if "\0" not in path and not allow_outside and not is_beside(folder / path, folder):
            raise InputError(
                source,
                0,
                f"the lexicon {name!r:.60} in the folder of the template file; where you trust "
                "that file, give --allow-outside (allow_outside=True of load_templates)",
                path,
            )
        return read_lexicon(folder / path, source)

    return parse_toml(text, source, lexicon)

"""Files of weights as text, for Moses and as JSON; each is whole or not there.

*Text* has one feature to a line: ``LM0= 0.5``, ``TM0= 0.2 0.2 0.3``, ``wt_a~b= -0.1``. Lines that
begin with ``#`` are comments, but for a few that begin with ``#:``. ``#: dense``, ``#: sparse`` and
``#: phrases`` say what the names that follow are; they are written where the names alone would not
tell. ``#: about {…}`` holds, as JSON, where the weights came from. *Moses* has a ``[weight]``
section, and a file beside it for sparse weights. *JSON* is
``{"format": "hopefear-weights", "version": 1, "dense": {…}, …}``.
"""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import math
import os
import re
import secrets
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from hopefear.data.moses.word_hashes import check_text
from hopefear.data.sources import MAX_LINE_BYTES, open_bytes
from hopefear.errors import HopefearError, InputError
from hopefear.storage import check_plain, is_beside, read_small, write_atomically
from hopefear.translation.names import (
    ABOUT,
    BARS,
    DENSE,
    PHRASES,
    SPARSE,
    WeightParts,
    escaped,
    is_phrase_name,
    kind_of,
    phrase_name,
    phrase_pair,
    unescaped,
)

FORMATS = ("text", "moses", "json")

_SUFFIXES = {".ini": "moses", ".json": "json"}
_PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": lambda data: gzip.compress(data, mtime=0),  # equal weights, equal bytes
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}


def read_parts(path: str | os.PathLike[str], allow_outside: bool = False) -> WeightParts:
    """Reads weights of a file in any format, recognised by its content.

    ``allow_outside``: see :meth:`hopefear.translation.weights.Weights.read`.
    """
    name = os.fspath(path)
    lines = read_lines(path)
    begin = next((line.lstrip() for line in lines if line.strip()), "")
    if begin.startswith("{"):
        parts = read_json(name, "\n".join(lines))
    elif any(map(is_section, lines)):
        parts = read_moses_ini(name, lines, allow_outside)
    else:
        parts = read_text(name, lines)
    if not (parts.layout or parts.sparse or parts.phrases):
        raise InputError(name, 0, "at least one weight (NAME= NUMBER …)", "none")
    _check_about(name, parts.about)
    return parts


def _check_about(path: str, metadata: Mapping[str, Any]) -> None:
    """Raises InputError where a file's metadata has values of other types."""
    for key in ("learner", "signature", "metric"):
        if not isinstance(metadata.get(key), str | None):
            raise InputError(path, 0, f"a string as {key} in {ABOUT}", repr(metadata[key]))
    scores = metadata.get("scores", {})
    numbers: Iterable[Any] = scores.values() if isinstance(scores, dict) else ("none",)
    if not all(type(score) in (int, float) and abs(score) < 1e300 for score in numbers):
        raise InputError(path, 0, f"an object of numbers as scores in {ABOUT}", repr(scores))


def write_parts(
    parts: WeightParts, path: str | os.PathLike[str], format: str | None = None
) -> None:
    """Write weights; see :meth:`hopefear.translation.weights.Weights.write`."""
    name = os.fspath(path)
    format = format or format_of(name)
    if format not in FORMATS:
        raise HopefearError(f"weights are written as {', '.join(FORMATS)}, not {format!r}")
    if not (parts.layout or parts.sparse or parts.phrases):
        raise HopefearError(f"{name}: there are no weights to write; tune some first")
    if format == "json":
        _put(name, write_json(parts))
    elif format == "text":
        _put(name, write_text(parts))
    else:
        _put_moses(parts, name)


def format_of(name: str) -> str:
    """Returns the format for a file's name: ``.ini`` is ``moses``, ``.json`` JSON, any other text.

    Examples
    --------
    >>> format_of("moses.ini"), format_of("weights.json.gz"), format_of("weights")
    ('moses', 'json', 'text')
    """
    stem, suffix = os.path.splitext(name)
    if suffix in _PACKERS:
        suffix = os.path.splitext(stem)[1]
    return _SUFFIXES.get(suffix, "text")


def _put_moses(parts: WeightParts, name: str) -> None:
    sidecar = name + SIDECAR
    lines = write_moses_ini(parts, os.path.basename(sidecar))
    if not (parts.sparse or parts.phrases):
        _put(name, lines)
        return
    if name == "-":
        raise HopefearError(
            "the format moses keeps sparse weights in a second file, for which standard output "
            "has no place; give a path, or use text or json"
        )
    with _reading(sidecar):
        _put(sidecar, write_sidecar(parts))
        _put(name, lines)


@contextmanager
def _reading(path: str) -> Iterator[None]:
    """Have the file as it was again when what is done here fails."""
    path = os.path.realpath(path)
    # A second name for the old file: bringing it back must not need room on a full disk.
    backup = f"{path}.{secrets.token_hex(8)}"
    existed = os.path.exists(path)
    with suppress(OSError):
        os.link(path, backup)
    try:
        yield
    except BaseException:
        with suppress(OSError):
            if existed:
                os.replace(backup, path)
            else:
                os.unlink(path)
        raise
    finally:
        with suppress(OSError):
            os.unlink(backup)


def _put(name: str, lines: Iterable[str]) -> None:
    suffix = os.path.splitext(name)[1]
    if suffix == ".zst":
        raise HopefearError(f"{name}: weights are not packed as .zst; use .gz, .xz or .bz2")
    try:
        data = "".join(f"{line}\n" for line in lines).encode()
    except UnicodeEncodeError as error:
        name_around = error.object[max(0, error.start - 10) : error.end + 10]
        raise HopefearError(f"{name}: a name that is no Unicode text: {name_around!a}") from error
    if name == "-":
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        write_atomically(name, _PACKERS.get(suffix, bytes)(data))


MARK = "#:"
FORM = "NAME= NUMBER …"
NAMED = "named"  # sparse, or phrase pairs
_BLANKS = re.compile(r"[ \t\r\v\f]+")


class WeightCollector:
    """Weights while the lines of a file are read.

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
        self.dense_names = frozenset(dense)
        self.parts = WeightParts((), [], {}, {}, {})
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
        # Dense and sparse names are of one kind here: readers of lists must distinguish them.
        before = self._lines.setdefault((PHRASES if kind == PHRASES else "", key), line)
        if before != line:
            self.refuse(line, f"{name} once (it is on line {before} too)", text)
        if kind == SPARSE and key in self.dense_names:
            self.refuse(line, "a name that is not dense", text)
        if kind == DENSE:
            self._layout.append((key, len(values)))
            self.parts.dense.extend(values)
        else:
            (self.parts.phrases if kind == PHRASES else self.parts.sparse)[key] = values[0]

    def describe(self, line: int, text: str) -> None:
        """Reads metadata of the weights from a line."""
        try:
            record = json.loads(text, parse_constant=no_constant)
            check_plain(record)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            self.refuse(line, f"a JSON object behind '{MARK} {ABOUT}'", text)
        self.parts.about.update(record)

    def finish(self) -> WeightParts:
        """All that came."""
        return self.parts._replace(layout=tuple(self._layout))

    def refuse(self, line: int, expected: str, actual: str) -> Any:
        """Raise InputError at a line."""
        raise InputError(self.path, line, expected, actual)

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


def read_text(path: str, lines: Iterable[str]) -> WeightParts:
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
    collector = WeightCollector(path)
    add_lines(collector, enumerate(lines, 1))
    return collector.finish()


def add_lines(
    collector: WeightCollector, lines: Iterable[tuple[int, str]], kind: str | None = None
) -> None:
    """Passes on the features, and the sections after ``#:``, of numbered lines.

    Parameters
    ----------
    collector : Collector
        Takes them.
    lines : iterable of (int, str)
        Numbers and texts.
    kind : str, optional
        Kinds of names that no line declares; without it they are guessed.
    """
    for number, text in lines:
        text = text.strip(" \t\r\v\f")
        if text.startswith(MARK):
            word, _, remainder = text[len(MARK) :].strip().partition(" ")
            if word == ABOUT:
                collector.describe(number, remainder)
            elif word in (DENSE, SPARSE, PHRASES) and not remainder:
                kind = word
            else:
                expected = f"{DENSE}, {SPARSE}, {PHRASES} or {ABOUT} behind '{MARK}'"
                collector.refuse(number, expected, text)
        elif text and not text.startswith("#"):
            collector.add(number, text, kind)


def write_text(parts: WeightParts) -> Iterator[str]:
    """Lines of text that :func:`read_text` reads as the same weights.

    Examples
    --------
    >>> parts = WeightParts((("LM0", 1),), [0.5], {"a_b": 3.0}, {"x ||| y": -1.0}, {})
    >>> for line in write_text(parts):
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


def about_lines(parts: WeightParts) -> list[str]:
    """Returns the line with the origin of the weights, where it is known."""
    if not parts.about:
        return []
    return [f"{MARK} {ABOUT} {json.dumps(parts.about, ensure_ascii=False, sort_keys=True)}"]


def dense_lines(parts: WeightParts) -> Iterator[str]:
    """``NAME= NUMBER …`` for every dense feature."""
    first = 0
    for name, width in parts.layout:
        values = " ".join(map(repr, parts.dense[first : first + width]))
        first += width
        yield f"{escaped(name)}= {values}"


def named_lines(parts: WeightParts, marked: bool, between: str) -> Iterator[str]:
    """Sparse features, then phrase pairs: names and numbers with ``between`` between them."""
    if parts.sparse:
        yield from [f"{MARK} {SPARSE}"] if marked else []
        yield from (f"{escaped(name)}{between}{value!r}" for name, value in parts.sparse.items())
    if parts.phrases:
        yield from [f"{MARK} {PHRASES}"] if marked else []
        for pair, value in parts.phrases.items():
            yield f"{phrase_name(pair)}{between}{value!r}"


def needs_marks(parts: WeightParts) -> bool:
    """Whether dense, sparse and phrase features cannot be distinguished by their names."""
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


SIDECAR = ".sparse"
_SECTION = re.compile(r"\[\s*([^\]\s]+)\s*\]")


def is_section(line: str) -> bool:
    """Whether a line is a heading such as ``[weight]``."""
    return _SECTION.fullmatch(line.partition("#")[0].strip()) is not None


def read_moses_ini(path: str, lines: Sequence[str], allow_outside: bool = False) -> WeightParts:
    """Weights of a ``moses.ini``; its other sections are left alone.

    Parameters
    ----------
    path : str
        For messages, and because the file of ``[weight-file]`` is in the same folder.
    lines : sequence of str
        The lines, without their ends.
    allow_outside : bool
        Whether that file may be in another folder.

    Examples
    --------
    >>> lines = ["[feature]", "Distortion", "", "[weight]", "Distortion0= 0.3", "TM0= 1 2"]
    >>> read_moses_ini("moses.ini", lines).layout
    (('Distortion0', 1), ('TM0', 2))
    """
    collector = WeightCollector(path)
    section, sections, sidecars = "", set(), []
    for number, line in enumerate(lines, 1):
        if line.startswith(f"{MARK} {ABOUT} "):
            collector.describe(number, line.removeprefix(f"{MARK} {ABOUT} "))
        text = line.partition("#")[0].strip()
        heading = _SECTION.fullmatch(text)
        if heading:
            section = heading[1]
            sections.add(section)
        elif text and section == "weight":
            collector.add(number, text, DENSE)
        elif text and section == "weight-file":
            sidecars.append((number, text))
    if "weight" not in sections:
        headings = ", ".join(f"[{name}]" for name in sorted(sections))
        raise InputError(path, 0, "a section [weight], as Moses has from version 1.0 on", headings)
    if len(sidecars) > 1:
        collector.refuse(sidecars[1][0], "one file under [weight-file]", sidecars[1][1])
    parts = collector.finish()
    for number, name in sidecars:
        sidecar = os.path.join(os.path.dirname(path), name)
        inside = "\0" in name or is_beside(sidecar, os.path.dirname(path))
        if not (allow_outside or inside):
            collector.refuse(
                number,
                "a file of sparse weights in the folder of this one; where you trust this one, "
                "give --allow-outside (allow_outside=True of Weights.read)",
                name,
            )
        sidecar_parts = _read_sidecar(path, number, name, [name for name, _ in parts.layout])
        parts = parts._replace(sparse=sidecar_parts.sparse, phrases=sidecar_parts.phrases)
    return parts


def _read_sidecar(path: str, line: int, name: str, dense: list[str]) -> WeightParts:
    sidecar = os.path.join(os.path.dirname(path), name)
    try:
        lines = read_lines(sidecar)
    except InputError:
        raise
    except HopefearError as error:
        raise InputError(path, line, f"a file of sparse weights ({error})", name) from error
    collector = WeightCollector(sidecar, dense, bare=True)
    add_lines(collector, enumerate(lines, 1), NAMED)
    parts = collector.finish()
    if parts.layout:
        raise InputError(sidecar, 0, "sparse weights only, for dense ones are in " + path)
    return parts


def read_lines(path: str | os.PathLike[str]) -> list[str]:
    """Lines of a plain or compressed UTF-8 file, without their ends; ``-`` is standard input."""
    with open_bytes(path) as stream:
        data = read_small(stream, path, MAX_LINE_BYTES)
    check_text(data, os.fspath(path), 1)
    return data.decode("utf-8-sig").split("\n")


def write_moses_ini(parts: WeightParts, sidecar: str) -> Iterator[str]:
    """Lines of a ``[weight]`` section, and of one that names the file of sparse weights.

    Parameters
    ----------
    parts : Parts
        The weights.
    sidecar : str
        Name of that file, as it is written there.

    Examples
    --------
    >>> parts = WeightParts((("LM0", 1),), [0.5], {"a_b": 1.0}, {}, {})
    >>> for line in write_moses_ini(parts, "w.sparse"):
    ...     print(line)
    [weight]
    LM0= 0.5
    <BLANKLINE>
    [weight-file]
    w.sparse
    """
    yield from about_lines(parts)
    yield "[weight]"
    # To Moses the sign begins a comment, wherever it is.
    yield from (line.replace("#", "%23") for line in dense_lines(parts))
    if parts.sparse or parts.phrases:
        yield from ("", "[weight-file]", sidecar)


def write_sidecar(parts: WeightParts) -> Iterator[str]:
    """Lines ``NAME NUMBER`` of sparse weights and phrase pairs."""
    return named_lines(parts, any(map(is_phrase_name, parts.sparse)), " ")


FORMAT, VERSION = "hopefear-weights", 1
_SECTIONS = (DENSE, SPARSE, PHRASES, ABOUT)
_KEYS = ("format", "version", *_SECTIONS)


def read_json(path: str, text: str) -> WeightParts:
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
    record = _loaded(path, text)

    def refuse(name: str, expected: str, value: object) -> Any:
        literal = json.dumps(value, ensure_ascii=False)
        raise InputError(path, _line(text, name), expected, literal)

    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise InputError(path, 0, f'a JSON object with "format": "{FORMAT}"')
    version = record.get("version", VERSION)
    if version != VERSION:
        refuse("version", f"version {VERSION} (newer files need a newer hopefear)", version)
    for key, value in record.items():
        if key not in _KEYS:
            refuse(key, f"one of {', '.join(_KEYS)}", key)
        if key in _SECTIONS and not isinstance(value, dict):
            refuse(key, f"an object under {key}", value)

    def number(value: object, name: str) -> float:
        if not isinstance(value, int | float) or isinstance(value, bool):
            return refuse(name, f"a number under {name}", value)
        try:
            value = float(value)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            refuse(name, f"a finite number under {name}", value)
        return value

    layout, dense = [], []
    for name, values in record.get(DENSE, {}).items():
        values = values if isinstance(values, list) else [values]
        if not name or not values:
            refuse(name, "a name and at least one number", {name: values})
        layout.append((name, len(values)))
        dense += [number(value, name) for value in values]
    sparse, phrases = (
        {name: number(value, name) for name, value in record.get(kind, {}).items()}
        for kind in (SPARSE, PHRASES)
    )
    for name in sparse:
        if not name or name in record.get(DENSE, {}):
            refuse(name, "a name that is not dense", name)
    for pair in phrases:
        if BARS not in pair:
            refuse(pair, f"a phrase pair, 'source words{BARS}target words'", pair)
    return WeightParts(tuple(layout), dense, sparse, phrases, record.get(ABOUT, {}))


def write_json(parts: WeightParts) -> Iterator[str]:
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


def _loaded(path: str, text: str) -> Any:
    def unique_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        members = dict(pairs)
        if len(members) < len(pairs):
            names = [name for name, _ in pairs]
            name = next(name for k, name in enumerate(names) if name in names[:k])
            raise InputError(path, _line(text, name), f"{name} once", name)
        return members

    try:
        record = json.loads(text, object_pairs_hook=unique_pairs)
    except json.JSONDecodeError as error:
        excerpt = text[error.pos : error.pos + 20] or "the end"
        raise InputError(path, error.lineno, f"JSON ({error.msg})", excerpt) from None
    except (ValueError, RecursionError) as error:
        raise InputError(path, 0, "JSON of a few levels and modest numbers", str(error)) from None
    try:
        check_plain(record)
    except ValueError as error:
        raise InputError(path, 0, "JSON that can be written again", str(error)) from None
    return record


def _line(text: str, name: str) -> int:
    """Returns the last line that has a name; 0 where it is spelled otherwise."""
    i = text.rfind(_dumped(name))
    return 0 if i < 0 else text.count("\n", 0, i) + 1

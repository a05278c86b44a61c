"""Labelled texts in other formats, rewritten as lines of ``label<TAB>text`` while they are read.

A rewritten file has as many lines as the original, so that messages name the right ones: a record
of several lines is followed by blank ones.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

from hopefear.data.files import ReadReport
from hopefear.data.labels import class_name
from hopefear.data.sources import Source, open_bytes, utf8_wanted
from hopefear.errors import HopefearError, InputError

TEXTS = (
    *("text", "sentence", "review", "content", "document", "body", "comment", "message", "tweet"),
    *("headline", "utterance", "question", "abstract", "phrase", "description"),
)
LABELS = (
    *("label", "labels", "class", "category", "target", "sentiment", "polarity", "intent", "topic"),
    *("y", "stars", "rating", "score", "gold"),
)
PREFIX = "__label__"
_LABEL = re.compile(rf"(?<!\S){PREFIX}(\S*)", re.ASCII)
MAX_FIELD = 1 << 24
_NAMED = "(text, label, or what --text-column and --label-column say)"

_DELIMITERS = ("\t", ",", ";")


class Rewritten(Source):
    """A file whose bytes are rewritten on the way.

    Parameters
    ----------
    path : str or path
        The file.
    rewrite : callable
        Gets the binary file, gives pieces of bytes.
    """

    _rewrite: Callable[[io.BufferedReader], Iterator[bytes]]
    _below: Source

    def __new__(cls, path: Any, rewrite: Callable[[io.BufferedReader], Iterator[bytes]]) -> Any:
        self = str.__new__(cls, str(path))
        self._stream, self._head, self._opened = None, bytearray(), False
        self._below, self._rewrite = Source(path), rewrite
        return self

    def open(self) -> io.BufferedReader:
        stream = open_bytes(self._below)
        return io.BufferedReader(_Pieces(self._rewrite(stream), stream), 1 << 20)


class _Pieces(io.RawIOBase):
    def __init__(self, pieces: Iterator[bytes], stream: io.BufferedReader) -> None:
        self._pieces, self._stream, self._rest = pieces, stream, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


class Columns(NamedTuple):
    """What the text and the label are called; a label of None where there is none."""

    text: str
    label: str | None

    def said(self) -> str:
        label = "no label" if self.label is None else f"the label in {self.label!r}"
        return f"the text in {self.text!r}, {label}"


class Texts(NamedTuple):
    """How bad records are dealt with.

    Parameters
    ----------
    name : str
        The file, for messages.
    require_labels : bool
        Whether every text needs a label.
    skip : bool
        Leave bad records out and count them instead of raising.
    report : ReadReport
        Where they are counted.
    """

    name: str
    require_labels: bool
    skip: bool
    report: ReadReport

    def line(self, number: int, label: str | None, text: str, columns: Columns) -> bytes:
        """``label<TAB>text``, without its newline."""
        text = text.translate(_BLANKS)
        if label is not None:
            label = label.strip()
            if _BLANKS.keys() & set(map(ord, label)):
                raise InputError(self.name, number, "a label without tabs and newlines", label)
        try:
            if not label and self.require_labels:
                found = f"none beside {text[:40]!r}"
                raise InputError(self.name, number, f"a label in {columns.label!r}", found)
            return f"{label or '?'}\t{text}".encode()  # where labels are not needed any will do
        except UnicodeEncodeError:
            raise InputError(self.name, number, "Unicode text", repr(text[:40])) from None

    def refuse(self, error: InputError) -> None:
        if not self.skip:
            raise error
        self.report.skip(str(error))


_BLANKS = {9: " ", 10: " ", 13: " "}


def csv_columns(line: bytes, wanted: Columns | None = None, tabs: bool = False) -> Any:
    """``(delimiter, columns)`` of a header, or None where a line is none.

    Parameters
    ----------
    line : bytes
        The first line.
    wanted : Columns, optional
        Names that are asked for; the usual ones without.
    tabs : bool
        Whether only lines with tabs are looked at, and both columns must have usual names.

    Examples
    --------
    >>> csv_columns(b"id,Review,stars")
    (',', Columns(text='Review', label='stars'))
    >>> csv_columns(b"good,what a film") is None
    True
    """
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return None
    for delimiter in _DELIMITERS[: 1 if tabs else None]:
        try:
            names = next(csv.reader([text.rstrip("\r")], delimiter=delimiter), [])
        except csv.Error:
            continue
        if len(names) < 2 and wanted is None:
            continue
        columns = _columns([name.strip() for name in names], wanted, tabs or delimiter == "\t")
        if columns is not None:
            return delimiter, columns
    return None


def _columns(names: Sequence[str], wanted: Columns | None, both: bool) -> Columns | None:
    if wanted is not None and wanted.text:
        text: str | None = wanted.text if wanted.text in names else None
    else:
        text = next((name for name in names if name.lower() in TEXTS), None)
    if text is None:
        return None
    others = [name for name in names if name != text]
    if wanted is not None and wanted.label:
        return Columns(text, wanted.label) if wanted.label in names else None
    usual = [name for name in others if name.lower() in LABELS]
    if usual:
        return Columns(text, min(usual, key=lambda name: LABELS.index(name.lower())))
    if both or len(others) > 1:
        return None
    return Columns(text, others[0] if others else None)


def csv_lines(
    stream: io.BufferedReader, how: Texts, delimiter: str, columns: Columns, quoted: bool = True
) -> Iterator[bytes]:
    """Records of a CSV file behind its header, as lines of ``label<TAB>text``."""
    csv.field_size_limit(MAX_FIELD)
    lines = io.TextIOWrapper(stream, "utf-8-sig", newline="")
    rules: dict[str, Any] = {"delimiter": delimiter, "strict": True}
    if not quoted:
        rules["quoting"] = csv.QUOTE_NONE
    reader = csv.reader(lines, **rules)
    names: list[str] = []
    done = 0
    try:
        for record in reader:
            first, done = done + 1, reader.line_num
            row = b""
            if not names:
                names = [name.strip() for name in record]
            elif record:
                try:
                    row = _csv_row(record, names, first, how, columns)
                except InputError as error:
                    how.refuse(error)
            yield row + b"\n" * (done - first + 1)
    except csv.Error as error:
        expected = "CSV, with quotes that are closed and doubled inside"
        raise InputError(how.name, done + 1, expected, str(error)) from None
    except UnicodeDecodeError as error:
        shown = error.object[error.start : error.start + 20].decode("utf-8", "backslashreplace")
        raise InputError(how.name, done + 1, utf8_wanted(error.object), shown) from None


def _csv_row(
    record: list[str], names: list[str], number: int, how: Texts, columns: Columns
) -> bytes:
    if len(record) != len(names):
        expected = f"{len(names)} columns, as the header has"
        raise InputError(how.name, number, expected, f"{len(record)}: {record[0][:40]}")
    fields = dict(zip(names, record, strict=True))
    label = None if columns.label is None else fields[columns.label]
    return how.line(number, label, fields[columns.text], columns)


def json_columns(line: bytes, wanted: Columns | None = None) -> Columns | None:
    """What the fields of a JSON object are called; None where a line is none with a text.

    >>> json_columns(b'{"text": "fine", "label": 1}')
    Columns(text='text', label='label')
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or "candidates" in record:
        return None
    asked = wanted is not None and wanted.label
    if asked:  # a label may be absent from new texts
        record.setdefault(wanted.label, None)  # type: ignore[union-attr]
    return _columns(list(record), wanted, True) or _columns(list(record)[:1], wanted, False)


def json_lines(stream: io.BufferedReader, how: Texts, columns: Columns) -> Iterator[bytes]:
    """Objects, one to a line, as lines of ``label<TAB>text``."""
    for number, line in enumerate(stream, 1):
        row = b""
        if line.strip():
            try:
                row = _json_row(line, number, how, columns)
            except InputError as error:
                how.refuse(error)
        yield row + b"\n"


def json_wanted(name: str, line: bytes, wanted: Columns | None) -> HopefearError:
    """The error for a file of JSON that does not begin with an object of known fields."""
    asked = [column for column in (wanted or ()) if column]
    named = " and ".join(map(repr, asked)) or f"the text and the label {_NAMED}"
    found, remedy = line.decode("utf-8", "replace").strip(), ""
    with contextlib.suppress(ValueError, RecursionError):
        record = json.loads(line)
        found = f"fields {', '.join(record)}" if isinstance(record, dict) else found
    if found.startswith("["):
        remedy = " (jq -c '.[]' makes such lines of a list)"
    elif found == "{":
        remedy = " (jq -c . makes one line of an object)"
    return InputError(name, 1, f"a JSON object on every line, with {named}{remedy}", found)


def _json_row(line: bytes, number: int, how: Texts, columns: Columns) -> bytes:
    try:
        record = json.loads(line)
    except UnicodeDecodeError:
        shown = line[:60].decode("utf-8", "backslashreplace")
        raise InputError(how.name, number, utf8_wanted(line), shown) from None
    except (ValueError, RecursionError) as error:
        raise InputError(how.name, number, "a JSON object", str(error)) from None
    if not isinstance(record, dict):
        raise InputError(how.name, number, "a JSON object", repr(record))
    text, label = record.get(columns.text), record.get(columns.label or "")
    if not isinstance(text, str):
        found = "none" if text is None else repr(text)
        raise InputError(how.name, number, f"a string in {columns.text!r}", found)
    if not isinstance(label, str | int | float | None):
        expected = f"a string or a number in {columns.label!r}"
        raise InputError(how.name, number, expected, repr(label))
    return how.line(number, None if label is None else class_name(label), text, columns)


def fasttext_lines(stream: io.BufferedReader, how: Texts) -> Iterator[bytes]:
    """Lines of ``__label__x text`` as lines of ``label<TAB>text``; the label may stand anywhere."""
    columns = Columns("text", f"{PREFIX}LABEL")
    for number, line in enumerate(stream, 1):
        row = b""
        if line.strip():
            try:
                text = how_decoded(line, number, how)
                labels = _LABEL.findall(text)
                if len(labels) > 1 or any(PREFIX in label or label[-1:] == "," for label in labels):
                    expected = "one label a line, as a classifier gives one, without ',' at its end"
                    raise InputError(how.name, number, expected, PREFIX + f" {PREFIX}".join(labels))
                label = labels[0] if labels else None
                row = how.line(number, label, _LABEL.sub("", text, count=1), columns)
            except InputError as error:
                how.refuse(error)
        yield row + b"\n"


def how_decoded(text: bytes, number: int, how: Texts) -> str:
    """Text of bytes, or InputError."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        shown = text[:60].decode("utf-8", "backslashreplace")
        raise InputError(how.name, number, utf8_wanted(text), shown) from None


class Words:
    """Words as labels of svmlight lines, rewritten as numbers.

    Parameters
    ----------
    names : iterable of str
        Labels whose numbers are known.
    how : Texts
        Refuses nan and infinity, and other labels where those of ``names`` are required.

    Examples
    --------
    >>> words = Words((), Texts("a.svm", True, False, ReadReport()))
    >>> b"".join(words.lines([b"spam 1:2\\n", b"ham 3:1\\n", b"spam 7:1\\n"]))
    b'0 1:2\\n1 3:1\\n0 7:1\\n'
    """

    def __init__(self, names: Iterable[str], how: Texts) -> None:
        self.numbers = {name: i for i, name in enumerate(names)}
        self._how, self._closed = how, bool(self.numbers) and how.require_labels

    def lines(self, stream: Iterable[bytes]) -> Iterator[bytes]:
        for place, line in enumerate(stream, 1):
            first, *rest = line.split(None, 1) or [b"#"]
            if first.startswith(b"#") or b":" in first:
                yield line
                continue
            try:
                name = class_label(first.decode("utf-8", "backslashreplace"))
                if self._closed and name not in self.numbers:
                    raise unknown_label(name, list(self.numbers))
            except ValueError as error:
                self._how.refuse(input_error(self._how.name, place, error))
                yield b"\n"
                continue
            number = self.numbers.setdefault(name, len(self.numbers))
            yield b"%d %s" % (number, rest[0] if rest else b"\n")


def unknown_label(label: str, classes: Sequence[str]) -> ValueError:
    """Says which labels there are."""
    shown = ", ".join(classes[:10]) + (", …" if len(classes) > 10 else "")
    return ValueError(f"a label out of {shown}; found {label!r}")


def input_error(name: str, line: int, error: ValueError) -> InputError:
    """The error of a line, from one that says ``EXPECTED; found FOUND``."""
    expected, _, found = str(error).partition("; found ")
    return InputError(name, line, expected, found.strip("'") if found else None)


def class_label(text: str) -> str:
    """The class that a label of a file means: numbers in their canonical form.

    ValueError for nan and infinity.

    >>> class_label("+1"), class_label("1.0"), class_label("spam")
    ('1', '1', 'spam')
    """
    try:
        number = float(text)
    except ValueError:
        return text
    if not math.isfinite(number):
        raise ValueError(f"a finite number or a word as the label; found {text!r}")
    return class_name(number)


def header_wanted(name: str, line: bytes, wanted: Columns | None) -> HopefearError:
    """What to say of a CSV file whose columns are not known."""
    shown = line[:80].decode("utf-8", "replace").strip()
    asked = [column for column in (wanted or ()) if column]
    expected = (
        f"a header with {' and '.join(map(repr, asked))}"
        if asked
        else f"a header that names the text and the label {_NAMED}"
    )
    return InputError(name, 1, expected, shown)


def closed_quotes(lines: Iterable[bytes], delimiter: str) -> bool:
    """Whether quotes at the beginning of fields are those of CSV, as far as these lines tell."""
    text = (line.decode("utf-8", "replace") + "\n" for line in lines)
    try:
        return bool(list(csv.reader(chain(text, [""]), delimiter=delimiter, strict=True)))
    except csv.Error:
        return False

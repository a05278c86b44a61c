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
from hopefear.errors import HopefearError, InputError, Problem

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


class ConvertingReader(Source):
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
        return io.BufferedReader(_ConvertedStream(self._rewrite(stream), stream), 1 << 20)


class _ConvertedStream(io.RawIOBase):
    def __init__(self, pieces: Iterator[bytes], stream: io.BufferedReader) -> None:
        self._pieces, self._stream, self._remainder = pieces, stream, memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._remainder:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._remainder = memoryview(piece)
        size = min(len(buffer), len(self._remainder))
        buffer[:size], self._remainder = self._remainder[:size], self._remainder[size:]
        return size

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


class TextColumns(NamedTuple):
    """Names of the columns of text and label; the label is None where there is none."""

    text: str
    label: str | None

    def description(self) -> str:
        label = "no label" if self.label is None else f"the label in {self.label!r}"
        return f"the text in {self.text!r}, {label}"


class TextRecords(NamedTuple):
    """Treatment of bad records of a file.

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
    rows : list, optional
        Gets the bytes of every record that is read, and of a header before them.
    """

    name: str
    require_labels: bool
    skip: bool
    report: ReadReport
    rows: list[bytes] | None = None

    def line(self, number: int, label: str | None, text: str, columns: TextColumns) -> bytes:
        """``label<TAB>text``, without its newline."""
        text = text.translate(_BLANKS)
        if label is not None:
            label = label.strip()
            if _BLANKS.keys() & set(map(ord, label)):
                raise InputError(self.name, number, "a label without tabs and newlines", label)
        try:
            if not label and self.require_labels:
                problem = Problem(f"there is none beside {text[:40]!r}")
                raise InputError(self.name, number, f"a label in {columns.label!r}", problem)
            return f"{label or '?'}\t{text}".encode()  # where labels are not needed any will do
        except UnicodeEncodeError:
            raise InputError(self.name, number, "Unicode text", repr(text[:40])) from None

    def keep(self, row: bytes, record: bytes) -> bytes:
        """The row, having kept its record; an empty row has none."""
        if row and self.rows is not None:
            self.rows.append(record)
        return row

    def refuse(self, error: InputError) -> None:
        if not self.skip:
            raise error
        self.report.skip(str(error))


_BLANKS = {9: " ", 10: " ", 13: " "}


def csv_columns(line: bytes, requested: TextColumns | None = None, tabs: bool = False) -> Any:
    """``(delimiter, columns)`` of a header, or None where a line is none.

    Parameters
    ----------
    line : bytes
        The first line.
    requested : Columns, optional
        Requested names; by default the usual ones.
    tabs : bool
        Whether only lines with tabs are looked at, and both columns must have usual names.

    Examples
    --------
    >>> csv_columns(b"id,Review,stars")
    (',', TextColumns(text='Review', label='stars'))
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
        if len(names) < 2 and requested is None:
            continue
        columns = _columns([name.strip() for name in names], requested, tabs or delimiter == "\t")
        if columns is not None:
            return delimiter, columns
    return None


def _columns(
    names: Sequence[str], requested: TextColumns | None, has_label: bool
) -> TextColumns | None:
    if requested is not None and requested.text:
        text: str | None = requested.text if requested.text in names else None
    else:
        text = next((name for name in names if name.lower() in TEXTS), None)
    if text is None:
        return None
    remaining = [name for name in names if name != text]
    if requested is not None and requested.label:
        return TextColumns(text, requested.label) if requested.label in names else None
    labels = [name for name in remaining if name.lower() in LABELS]
    if labels:
        return TextColumns(text, min(labels, key=lambda name: LABELS.index(name.lower())))
    if has_label or len(remaining) > 1:
        return None
    return TextColumns(text, remaining[0] if remaining else None)


def csv_lines(
    stream: io.BufferedReader,
    texts: TextRecords,
    delimiter: str,
    columns: TextColumns,
    quoted: bool = True,
) -> Iterator[bytes]:
    """Records of a CSV file behind its header, as lines of ``label<TAB>text``."""
    csv.field_size_limit(MAX_FIELD)
    lines, read = io.TextIOWrapper(stream, "utf-8-sig", newline=""), list[str]()

    def recorded() -> Iterator[str]:
        for line in lines:
            read.append(line)
            yield line

    rules: dict[str, Any] = {"delimiter": delimiter, "strict": True}
    if not quoted:
        rules["quoting"] = csv.QUOTE_NONE
    reader = csv.reader(recorded() if texts.rows is not None else lines, **rules)
    names: list[str] = []
    last_line = 0
    try:
        for record in reader:
            first, last_line = last_line + 1, reader.line_num
            row = b""
            source_lines = "".join(read).encode()
            read.clear()
            if not names:
                names = [name.strip() for name in record]
                texts.keep(b"header", source_lines)
            elif record:
                try:
                    row = _csv_row(record, names, first, texts, columns)
                except InputError as error:
                    texts.refuse(error)
            yield texts.keep(row, source_lines) + b"\n" * (last_line - first + 1)
    except csv.Error as error:
        expected = "CSV, with quotes that are closed and doubled inside"
        raise InputError(texts.name, last_line + 1, expected, str(error)) from None
    except UnicodeDecodeError as error:
        excerpt = error.object[error.start : error.start + 20].decode("utf-8", "backslashreplace")
        raise InputError(texts.name, last_line + 1, utf8_wanted(error.object), excerpt) from None


def _csv_row(
    record: list[str], names: list[str], number: int, texts: TextRecords, columns: TextColumns
) -> bytes:
    if len(record) != len(names):
        expected = f"{len(names)} columns, as the header has"
        problem = Problem(f"this line has {len(record)}, the first {record[0][:40]!r}")
        raise InputError(texts.name, number, expected, problem)
    fields = dict(zip(names, record, strict=True))
    label = None if columns.label is None else fields[columns.label]
    return texts.line(number, label, fields[columns.text], columns)


def json_columns(line: bytes, requested: TextColumns | None = None) -> TextColumns | None:
    """Returns the names of the fields of a JSON object; None where a line has no text.

    >>> json_columns(b'{"text": "fine", "label": 1}')
    TextColumns(text='text', label='label')
    """
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict) or "candidates" in record:
        return None
    has_requested_label = requested is not None and requested.label
    if has_requested_label:  # a label may be absent from new texts
        record.setdefault(requested.label, None)  # type: ignore[union-attr]
    return _columns(list(record), requested, True) or _columns(list(record)[:1], requested, False)


def json_lines(
    stream: io.BufferedReader, texts: TextRecords, columns: TextColumns
) -> Iterator[bytes]:
    """Objects, one to a line, as lines of ``label<TAB>text``."""
    for number, line in enumerate(stream, 1):
        row = b""
        if line.strip():
            try:
                row = _json_row(line, number, texts, columns)
            except InputError as error:
                texts.refuse(error)
        yield texts.keep(row, line) + b"\n"


def json_wanted(name: str, line: bytes, requested: TextColumns | None) -> HopefearError:
    """The error for a file of JSON that does not begin with an object of known fields."""
    names = [column for column in (requested or ()) if column]
    named = " and ".join(map(repr, names)) or f"the text and the label {_NAMED}"
    actual, remedy = line.decode("utf-8", "replace").strip(), ""
    with contextlib.suppress(ValueError, RecursionError):
        record = json.loads(line)
        actual = f"fields {', '.join(record)}" if isinstance(record, dict) else actual
    if actual.startswith("["):
        remedy = " (jq -c '.[]' makes such lines of a list)"
    elif actual == "{":
        remedy = " (jq -c . makes one line of an object)"
    return InputError(name, 1, f"a JSON object on every line, with {named}{remedy}", actual)


def _json_row(line: bytes, number: int, texts: TextRecords, columns: TextColumns) -> bytes:
    try:
        record = json.loads(line)
    except UnicodeDecodeError:
        excerpt = line[:60].decode("utf-8", "backslashreplace")
        raise InputError(texts.name, number, utf8_wanted(line), excerpt) from None
    except (ValueError, RecursionError) as error:
        raise InputError(texts.name, number, "a JSON object", str(error)) from None
    if not isinstance(record, dict):
        raise InputError(texts.name, number, "a JSON object", repr(record))
    text, label = record.get(columns.text), record.get(columns.label or "")
    if not isinstance(text, str):
        actual = "none" if text is None else repr(text)
        raise InputError(texts.name, number, f"a string in {columns.text!r}", actual)
    if not isinstance(label, str | int | float | None):
        expected = f"a string or a number in {columns.label!r}"
        raise InputError(texts.name, number, expected, repr(label))
    return texts.line(number, None if label is None else class_name(label), text, columns)


def fasttext_lines(stream: io.BufferedReader, texts: TextRecords) -> Iterator[bytes]:
    """Rewrites lines of ``__label__x text`` as lines of ``label<TAB>text``."""
    columns = TextColumns("text", f"{PREFIX}LABEL")
    for number, line in enumerate(stream, 1):
        row = b""
        if line.strip():
            try:
                text = how_decoded(line, number, texts)
                labels = _LABEL.findall(text)
                if len(labels) > 1 or any(PREFIX in label or label[-1:] == "," for label in labels):
                    expected = "one label a line, as a classifier gives one, without ',' at its end"
                    raise InputError(
                        texts.name, number, expected, PREFIX + f" {PREFIX}".join(labels)
                    )
                label = labels[0] if labels else None
                row = texts.line(number, label, _LABEL.sub("", text, count=1), columns)
            except InputError as error:
                texts.refuse(error)
        yield texts.keep(row, line) + b"\n"


def text_lines(stream: io.BufferedReader, texts: TextRecords, labelled: bool) -> Iterator[bytes]:
    """Rewrites lines that are texts, or labels and texts, as lines of ``label<TAB>text``."""
    columns = TextColumns("text", None)
    for number, line in enumerate(stream, 1):
        row = b""
        if line.strip():
            try:
                text = how_decoded(line.rstrip(b"\r\n"), number, texts)
                row = text.encode() if labelled else texts.line(number, None, text, columns)
            except InputError as error:
                texts.refuse(error)
        yield texts.keep(row, line) + b"\n"


def how_decoded(text: bytes, number: int, texts: TextRecords) -> str:
    """Text of bytes, or InputError."""
    try:
        return text.decode()
    except UnicodeDecodeError:
        excerpt = text[:60].decode("utf-8", "backslashreplace")
        raise InputError(texts.name, number, utf8_wanted(text), excerpt) from None


class NumberedLabels:
    """Words as labels of svmlight lines, rewritten as numbers.

    Parameters
    ----------
    names : iterable of str
        Labels whose numbers are known.
    how : Texts
        Refuses nan and infinity, and other labels where those of ``names`` are required.

    Examples
    --------
    >>> words = NumberedLabels((), TextRecords("a.svm", True, False, ReadReport()))
    >>> b"".join(words.lines([b"spam 1:2\\n", b"ham 3:1\\n", b"spam 7:1\\n"]))
    b'0 1:2\\n1 3:1\\n0 7:1\\n'
    """

    def __init__(self, names: Iterable[str], texts: TextRecords) -> None:
        self.numbers = {name: i for i, name in enumerate(names)}
        self._texts, self._closed = texts, bool(self.numbers) and texts.require_labels

    def lines(self, stream: Iterable[bytes]) -> Iterator[bytes]:
        for place, line in enumerate(stream, 1):
            first, *remainder = line.split(None, 1) or [b"#"]
            if first.startswith(b"#") or b":" in first:
                yield line
                continue
            try:
                name = class_label(first.decode("utf-8", "backslashreplace"))
                if self._closed and name not in self.numbers:
                    raise unknown_label(name, list(self.numbers))
            except ValueError as error:
                self._texts.refuse(input_error(self._texts.name, place, error))
                yield b"\n"
                continue
            number = self.numbers.setdefault(name, len(self.numbers))
            yield b"%d %s" % (number, remainder[0] if remainder else b"\n")


def unknown_label(label: str, classes: Sequence[str]) -> ValueError:
    """Says which labels there are."""
    listed = ", ".join(classes[:10]) + (", …" if len(classes) > 10 else "")
    return ValueError(f"a label out of {listed}; found {label!r}")


def input_error(name: str, line: int, error: ValueError) -> InputError:
    """Makes the error of a line from a message ``EXPECTED; found FOUND``."""
    expected, _, actual = str(error).partition("; found ")
    return InputError(name, line, expected, actual.strip("'") if actual else None)


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


def header_wanted(name: str, line: bytes, requested: TextColumns | None) -> HopefearError:
    """Makes the error for a CSV file whose columns are not known."""
    excerpt = line[:80].decode("utf-8", "replace").strip()
    names = [column for column in (requested or ()) if column]
    expected = (
        f"a header with {' and '.join(map(repr, names))}"
        if names
        else f"a header that names the text and the label {_NAMED}"
    )
    return InputError(name, 1, expected, excerpt)


def closed_quotes(lines: Iterable[bytes], delimiter: str) -> bool:
    """Whether the first lines quote fields as CSV does."""
    text = (line.decode("utf-8", "replace") + "\n" for line in lines)
    try:
        return bool(list(csv.reader(chain(text, [""]), delimiter=delimiter, strict=True)))
    except csv.Error:
        return False

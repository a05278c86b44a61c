"""Labelled examples in every format there is, known by name or by their first lines."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hopefear.data.files import ReadReport, check_on_error
from hopefear.data.labels import sort_classes
from hopefear.data.sources import Source
from hopefear.data.sparse import SparseDataset
from hopefear.data.svmlight import iter_svmlight, read_svmlight
from hopefear.data.text import iter_text, read_text
from hopefear.data.text_formats import (
    PREFIX,
    ConvertingReader,
    NumberedLabels,
    TextColumns,
    TextRecords,
    class_label,
    closed_quotes,
    csv_columns,
    csv_lines,
    fasttext_lines,
    header_wanted,
    json_columns,
    json_lines,
    json_wanted,
    text_lines,
)
from hopefear.data.vowpal import iter_vowpal, read_vowpal
from hopefear.errors import HopefearError
from hopefear.features import FeatureMap

FORMATS = ("svmlight", "tsv", "csv", "json", "fasttext", "vw")

_PACKED = (".gz", ".xz", ".bz2", ".zst")
_SUFFIXES = {
    ".svm": "svmlight",
    ".svmlight": "svmlight",
    ".libsvm": "svmlight",
    ".csv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".vw": "vw",
}
_SVMLIGHT = re.compile(rb"\s*[-+]?[\d.][\d.eE+-]*(\s+(qid|\d+):\S+)*\s*(#.*)?")
_WORDY = re.compile(rb"\s*[^\s:#|]+(\s+qid:\d+)?(\s+\d+:[-+.\deE]+)+\s*(#.*)?")
_NUMBER = re.compile(rb"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?(\s|$)")
_VOWPAL = re.compile(rb"\s*([^\s|]+(\s+[-+.:\deE]+)*)?(\s+'?[^\s|]*)?\s*\|")
_JSON = re.compile(rb'\s*\[?\s*\{\s*"')  # an object begins, by itself or in a list
_LOOKED_AT = 50
_MOST_NEW = 1000  # classes that are not known


class Examples(NamedTuple):
    """A file that can be read, and what is known of it.

    Parameters
    ----------
    path : Source
        The file, rewritten where a reader of another format reads it.
    format : str
        One of `FORMATS`.
    said : str
        What was recognised, for the user; empty for plain svmlight and text.
    words : NumberedLabels, optional
        Labels of svmlight lines that are words.
    delimiter : str
        What stands between columns.
    """

    path: Source
    format: str
    message: str = ""
    words: NumberedLabels | None = None
    delimiter: str = "\t"

    @property
    def kind(self) -> str:
        """Kind of the source: ``svmlight``, ``text`` or ``vw``."""
        return self.format if self.format in ("svmlight", "vw") else "text"

    def read(
        self, *, classes: Sequence[str] | None = None, n_jobs: int = 1, **options: Any
    ) -> SparseDataset:
        """All rows; parameters as for the readers of the formats.

        Threads parse svmlight; where its labels are words, they are rewritten by one.
        """
        if self.words is not None:
            data = read_svmlight(self.path, classes=self._numbers(classes), **options)
            return self._with_labels(data, classes)
        readers: dict[str, Callable[..., SparseDataset]] = {
            "svmlight": partial(read_svmlight, n_jobs=n_jobs),
            "text": read_text,
            "vw": read_vowpal,
        }
        return readers[self.kind](self.path, classes=classes, **options)

    def blocks(
        self,
        *,
        features: FeatureMap,
        classes: Sequence[str] | None,
        n_jobs: int = 1,
        **options: Any,
    ) -> Iterator[SparseDataset]:
        """The rows block by block, in given columns; threads as for `read`.

        Without classes they are those of the rows so far, in the order in which they came.
        """
        if self.words is not None:
            for data in iter_svmlight(
                self.path, features=features, classes=self._numbers(classes), **options
            ):
                yield self._with_labels(data, classes)
            return
        readers: dict[str, Callable[..., Iterator[SparseDataset]]] = {
            "svmlight": partial(iter_svmlight, n_jobs=n_jobs),
            "text": iter_text,
            "vw": iter_vowpal,
        }
        reader = readers[self.kind]
        yield from reader(self.path, features=features, classes=classes, **options)

    def blocks_with_new_classes(
        self, features: FeatureMap, classes: Sequence[str], **how: Any
    ) -> Iterator[SparseDataset]:
        """Gives the rows block by block; classes that are not known come behind those that are."""
        names = [*classes]
        codes = {class_label(name): i for i, name in enumerate(names)}
        codes.update((name, i) for i, name in enumerate(names))
        for data in self.blocks(features=features, classes=None, **how):
            for name in data.classes:
                if name not in codes:
                    codes[name] = len(names)
                    names.append(name)
            new = names[len(classes) :]
            if len(new) > _MOST_NEW:
                raise HopefearError(
                    f"{self.path} has more than {_MOST_NEW:,} classes that the model lacks, such "
                    f"as {', '.join(new[:5])}; give labels, not targets, of the model's kind"
                )
            table = np.array([*(codes[name] for name in data.classes), -1], np.int32)
            yield data.labelled(table[data.rows.labels], names)

    def texts(self, numbers: Collection[int], total: int) -> dict[int, str]:
        """The texts of some rows, by number; none where rows are no texts or cannot be read again.

        ``total`` is the number of rows: where bad lines were left out, numbers would not fit.
        """
        if self.kind != "text" or not os.path.isfile(self.path):
            return {}
        texts, number = dict[int, str](), 0
        with self.path.open() as lines:
            for line in lines:
                if line.strip():
                    if number in numbers:
                        _, tab, text = line.partition(b"\t")
                        content = (text if tab else line).decode("utf-8", "replace")
                        texts[number] = " ".join(content.split())
                    number += 1
        return texts if number == total else {}

    def _numbers(self, classes: Sequence[str] | None) -> tuple[str, ...] | None:
        return None if classes is None else tuple(map(str, range(len(classes))))

    def _with_labels(self, data: SparseDataset, classes: Sequence[str] | None) -> SparseDataset:
        """The rows with words as classes."""
        assert self.words is not None
        if classes is not None:
            return SparseDataset(data.rows, data.n_features, classes, data.features, data.source)
        words = list(self.words.numbers)
        names = sort_classes([words[int(number)] for number in data.classes])
        codes = [names.index(words[int(number)]) for number in data.classes]
        labels = np.array([*codes, -1], np.int32)[data.rows.labels]
        rows = data.rows._replace(labels=labels)
        return SparseDataset(rows, data.n_features, names, data.features, data.source)


def examples(
    path: str | os.PathLike[str],
    format: str = "auto",
    *,
    text_column: str | None = None,
    label_column: str | None = None,
    classes: Sequence[str] | None = None,
    features: FeatureMap | None = None,
    require_labels: bool = True,
    on_error: str = "raise",
    report: ReadReport | None = None,
    rows: list[bytes] | None = None,
) -> Examples:
    """Looks at a file of labelled examples and decides how to read it.

    *svmlight* has lines of ``label id:value …``, with numbers or words as labels; *tsv* of
    ``label<TAB>text``; *csv* has a header that names a column of texts and one of labels, between
    commas, semicolons or tabs; *json* an object with both to a line; *fasttext* lines of
    ``__label__x text``; *vw* is Vowpal Wabbit's format.

    Parameters
    ----------
    path : str or path
        Plain or compressed file; ``-`` is standard input.
    format : str
        One of these, or ``auto``, which goes by the name of the file and its first lines.
    text_column, label_column : str, optional
        What they are called in ``csv`` and ``json``; without, the usual names are looked for.
    classes : sequence of str, optional
        Classes of a model.
    features : FeatureMap, optional
        Columns of a model; ``auto`` then takes a format that has such features.
    require_labels, on_error, report
        As for :func:`hopefear.data.svmlight.read_svmlight`. Where no labels are required there is
        one more format, *text*: every line is a text as a whole.
    rows : list, optional
        Gets the bytes of every text that is read, as they are, and of a header before them.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as f:
    ...     _ = f.write('review,stars\\n"Good, good fun!",5\\nNot good,1\\n')
    ...     f.flush()
    ...     found = examples(f.name)
    ...     data = found.read()
    >>> found.format, data.classes, data.features.names(data.rows.indices[:2])
    ('csv', ('1', '5'), ['good', 'fun'])
    """
    report = ReadReport() if report is None else report
    columns = TextColumns(text_column or "", label_column) if text_column or label_column else None
    texts = TextRecords(os.fspath(path), require_labels, on_error == "skip", report, rows)
    check_on_error(on_error)
    file = _recognised(Source(path), format, columns, classes, features, texts)
    report.notes += [file.message] if file.message else []
    return file


def _recognised(
    source: Source,
    format: str,
    requested: TextColumns | None,
    classes: Sequence[str] | None,
    features: FeatureMap | None,
    texts: TextRecords,
) -> Examples:
    name = texts.name
    if format not in ("auto", *FORMATS, *(() if texts.require_labels else ("text",))):
        raise HopefearError(f"format must be auto, {', '.join(FORMATS)}, not {format!r}")
    if format == "auto" and requested is not None:
        format = "json" if _first(source).lstrip().startswith(b"{") else "csv"
    if requested is not None and format not in ("csv", "json"):
        raise HopefearError(f"{name}: a file of {format} has no columns of texts and labels")
    kind = None if features is None else features.kind
    if format == "auto":
        format = _guessed(source, kind)
    first = _first(source)
    if format in ("tsv", "csv"):
        header = csv_columns(first, requested, tabs=format == "tsv")
        if header is None and format == "csv":
            raise header_wanted(name, first, requested)
        if header is not None:
            return _csv(source, texts, *header)
    if format == "json":
        columns = json_columns(first, requested)
        if columns is None:
            raise json_wanted(name, first, requested)
        rewrite = partial(json_lines, texts=texts, columns=columns)
        message = f"{name}: JSON lines, {columns.description()}"
        return Examples(ConvertingReader(source, rewrite), format, message)
    if format == "fasttext":
        message = f"{name}: lines of fastText, {PREFIX}LABEL and a text"
        return Examples(
            ConvertingReader(source, partial(fasttext_lines, texts=texts)), format, message
        )
    if format == "text" or (format == "tsv" and texts.rows is not None):
        rewrite = partial(text_lines, texts=texts, labelled=format == "tsv")
        return Examples(ConvertingReader(source, rewrite), format)
    if format == "vw":
        return Examples(source, format, f"{name}: lines of Vowpal Wabbit")
    if format == "svmlight" and _wordy(source, classes):
        words = NumberedLabels(classes or (), texts)
        message = f"{name}: svmlight with words as labels"
        return Examples(ConvertingReader(source, words.lines), format, message, words)
    return Examples(source, format)


def _csv(source: Source, texts: TextRecords, delimiter: str, columns: TextColumns) -> Examples:
    quoted = delimiter != "\t" or closed_quotes(islice(source.look(), _LOOKED_AT), delimiter)
    between = {"\t": "tabs", ",": "commas", ";": "semicolons"}[delimiter]
    message = f"{texts.name}: a header and {between} between columns, {columns.description()}"
    rewrite = partial(csv_lines, texts=texts, delimiter=delimiter, columns=columns, quoted=quoted)
    return Examples(ConvertingReader(source, rewrite), "csv", message, delimiter=delimiter)


def _first(source: Source) -> bytes:
    """The first line with something on it that is no comment."""
    lines = (line for line in islice(source.look(), _LOOKED_AT) if line.strip())
    return next((line for line in lines if not line.startswith(b"#")), b"")


def _guessed(source: Source, kind: str | None) -> str:
    """Guesses the format from name and first line, among those that a model's features allow."""
    name = Path(source.lower())
    suffix = name.with_suffix("").suffix if name.suffix in _PACKED else name.suffix
    if kind == "named":
        return "vw"
    if kind is not None and kind not in ("ngrams", "hashed"):
        return "svmlight"
    if suffix in _SUFFIXES and (kind is None or _SUFFIXES[suffix] in ("csv", "json")):
        return _SUFFIXES[suffix]
    line = _first(source)
    if json_columns(line) is not None or _JSON.match(line):
        return "json"
    if line.lstrip().startswith(PREFIX.encode()):
        return "fasttext"
    if suffix == ".tsv":
        return "tsv"
    if _SVMLIGHT.fullmatch(line) is None:
        if f" {PREFIX}".encode() in line and b"\t" not in line:
            return "fasttext"
        if csv_columns(line) is not None:
            return "csv"
        if kind is None and _VOWPAL.match(line) and b"\t" not in line.partition(b"|")[0]:
            return "vw"
        if kind is None and b"\t" not in line and line.lstrip()[:1] in (b"{", b"["):
            return "json"
        if b"\t" in line and not _WORDY.fullmatch(line):
            return "tsv"
    return "svmlight" if kind is None else "tsv"


def _wordy(source: Source, classes: Sequence[str] | None) -> bool:
    """Whether svmlight lines have words as labels: those of a model, or that of the first line."""
    if classes is not None:
        return any(_NUMBER.fullmatch(name.encode()) is None for name in classes)
    line = _first(source)
    return _NUMBER.match(line) is None and _WORDY.fullmatch(line) is not None

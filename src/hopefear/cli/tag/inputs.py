"""Files of tokens as readers give them, and as a model wants them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hopefear.data.crfsuite import AttributeFile, read_crfsuite
from hopefear.data.files import ReadReport
from hopefear.data.sequences import Column, Sentences, SequenceDataset
from hopefear.data.sources import Source as DataSource
from hopefear.data.token_files import TokenFile, named_tokens, read_sentences, token_format
from hopefear.data.token_objects import begins_with_object, check_named
from hopefear.data.token_stream import arriving_text, read_parts
from hopefear.errors import HopefearError, InputError
from hopefear.features.attributes import AttributeRows
from hopefear.tasks.tag import text as tagged_text
from hopefear.tasks.tag.model import SequenceModel, encoded
from hopefear.tasks.tag.text import CharacterSpans


@dataclass(frozen=True)
class Text:
    """Tokens of a file, however they are written there.

    Parameters
    ----------
    form : {"columns", "conllu", "crfsuite", "json", "text"}
        How they are written.
    content : Sentences or AttributeRows
        What features are made of.
    labels : Column, optional
        Labels that stand beside attributes; others are columns of the content.
    weights : float32 array, optional
        Weights of the sequences.
    file : TokenFile, optional
        What can be written back.
    characters : CharacterSpans, optional
        Where tokens stand in what was text without columns.
    """

    form: str
    content: Sentences | AttributeRows
    source: str
    lines: np.ndarray = field(repr=False)
    labels: Column | None = None
    weights: np.ndarray | None = None
    file: TokenFile | None = field(default=None, repr=False)
    characters: CharacterSpans | None = field(default=None, repr=False)

    @property
    def starts(self) -> np.ndarray:
        return self.content.starts

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.content.columns) if isinstance(self.content, Sentences) else ()

    def place(self, k: int) -> tuple[str, int]:
        """File and line of token ``k``."""
        return self.source, int(self.lines[k])

    def take(self, keep: np.ndarray) -> Text:
        """The sentences that are marked; what could be written back is all or nothing."""
        if keep.all():
            return self
        content, which = (
            self.content.take(np.flatnonzero(keep)),
            np.repeat(keep, np.diff(self.starts)),
        )
        labels = (
            None if self.labels is None else Column(self.labels.strings, self.labels.ids[which])
        )
        weights = None if self.weights is None else self.weights[keep]
        return Text(self.form, content, self.source, self.lines[which], labels, weights)

    @property
    def words(self) -> Column | None:
        """Tokens as people know them, where there is such a column."""
        if isinstance(self.content, Sentences) and "word" in self.content.columns:
            return self.content.columns["word"]
        return None

    def column(self, name: str | None) -> tuple[str, Column]:
        """Name and content of the column of labels."""
        if not isinstance(self.content, Sentences):
            if name is not None:
                raise HopefearError(
                    f"--column {name}: {self.source} is a CRFsuite file, whose labels come "
                    "first; leave it out"
                )
            assert self.labels is not None
            return "label", self.labels
        columns: Any = self.content.columns
        if name is None:
            name = "upos" if self.form == "conllu" else self.names[-1]
            if len(self.names) < 2:
                raise InputError(
                    *self.place(0), "two or more columns, the last one with labels", columns["0"][0]
                )
        if name not in columns:
            raise HopefearError(
                f"{self.source} has no column {name!r}; there are {', '.join(self.names)}"
            )
        name = getattr(columns, "aliases", {}).get(name, name)
        if self.form == "json" and self.file is not None:
            check_named(self.file, name)
        return name, columns[name]

    def encode(
        self, features: Any, labels: Sequence[str] = (), gold: Column | None = None
    ) -> SequenceDataset:
        """The tokens as a feature map sees them."""
        return encoded(self, features.encode(self.content), labels, gold, features)


def read_text(
    path: str,
    form: str,
    report: ReadReport,
    *,
    columns: Sequence[str] | None = None,
    optional: int = 0,
    on_error: str = "raise",
) -> Text:
    """A file of tokens."""
    form = token_format(path, form, columns)
    if form == "crfsuite":
        if columns is not None:
            raise HopefearError(
                f"{path} is a CRFsuite file and has no columns; leave out --columns"
            )
        return text_of(read_crfsuite(path, on_error=on_error, report=report))
    how: dict[str, Any] = {"on_error": on_error, "report": report}
    return text_of(read_sentences(path, format=form, columns=columns, optional=optional, **how))


def text_of(file: TokenFile | AttributeFile) -> Text:
    """What a reader gives, whatever it is."""
    if isinstance(file, AttributeFile):
        return Text("crfsuite", file.rows, file.source, file.lines, file.labels, file.weights)
    sentences, lines = file.sentences, file.sentences.lines
    assert lines is not None
    return Text(file.format, sentences, sentences.source, lines, file=file)


def read_for(model: SequenceModel, path: str, args: Any, report: ReadReport) -> Text:
    """A file for a model: its columns bear the names they had in training.

    Columns behind the last that features need may be missing, as labels are in new text.
    """
    if args.format == "text":
        whole = "".join(arriving_text(path))
        return _plain(model, path, whole, model.tokenizer.sentences(whole))
    form, columns, optional = _as_trained(model, path, args)
    return read_text(path, form, report, columns=columns, optional=optional, on_error=args.on_error)


def arriving_for(
    model: SequenceModel, path: str, args: Any, report: ReadReport
) -> Iterator[Text | bytes]:
    """The same bit by bit, as sentences come; bytes where there are none to be tagged."""
    if args.format == "text":
        empty, line = True, 1
        for at, text, sentences in model.tokenizer.stream(arriving_text(path)):
            if sentences:
                empty = False
                yield _plain(model, path, text, sentences, at, line)
            line += text.count("\n")
        if empty:
            raise InputError(path, 0, "text", "nothing but blanks")
        return
    form, columns, optional = _as_trained(model, path, args)
    for part in read_parts(
        path,
        format=form,
        columns=columns,
        optional=optional,
        on_error=args.on_error,
        report=report,
    ):
        if part.file is not None:
            yield text_of(part.file)
        elif form != "crfsuite":
            yield part.text


def _plain(
    model: SequenceModel, path: str, text: str, bounds: Any, at: int = 0, line: int = 1
) -> Text:
    """Text without columns."""
    read = tagged_text.read_text(text, model.tokenizer, model, bounds, at)
    if not read.bounds:
        raise InputError(path, 0, "text", "nothing but blanks")
    breaks = np.array([match.start() for match in re.finditer("\n", text)], np.int64)
    begins = np.array([a for one in read.bounds for a, _ in one], np.int64)
    lines = line + np.searchsorted(breaks, begins)
    return Text("text", read.sentences, path, lines, characters=read)


def _as_trained(
    model: SequenceModel, path: str, args: Any
) -> tuple[str, Sequence[str] | None, int]:
    """Format, names of columns, and how many of the last may be missing."""
    reading = how(model)
    attributes = model.features.kind == "attributes"
    form = args.format
    if form == "auto":
        form = "crfsuite" if attributes else named_tokens(path) or reading["format"]
        if not attributes and form in ("columns", "json"):
            line = next(DataSource(path).look(), b"")
            form = "json" if begins_with_object(line) else "columns"
    if attributes != (form == "crfsuite"):
        kind = "attributes of CRFsuite files" if attributes else "templates over columns"
        raise HopefearError(f"{path}: {args.model} has features from {kind}, and this is {form}")
    columns, optional = args.columns, 0
    if form == "columns":
        columns = columns or reading["columns"] or None
    if columns is not None:
        needed = [_position(name, columns) for name in model.features.needs]
        optional = len(columns) - 1 - max(needed, default=0)
    return form, columns, optional


def _position(name: str, columns: Sequence[str]) -> int:
    """Where a column stands; it may be called by its number, and what is missing is told later."""
    if name in columns:
        return columns.index(name)
    return min(int(name), len(columns) - 1) if name.isdecimal() else 0


def how(model: SequenceModel) -> Mapping[str, Any]:
    """How the training data of a model was written; models made elsewhere may not say."""
    plain = {"format": "auto", "columns": None, "column": None, "scheme": model.scheme}
    return {**plain, "trained_scheme": model.scheme, **model.about.get("reading", {})}

"""Files of tokens, as the verbs want them: columns, CoNLL-U or CRFsuite, labelled or not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hopefear.cli.console import Console
from hopefear.cli.reading import head, tell_skipped
from hopefear.data.crfsuite import read_crfsuite
from hopefear.data.files import ReadReport
from hopefear.data.sequences import Column, Sentences, SequenceDataset
from hopefear.data.token_files import TokenFile, read_sentences
from hopefear.errors import HopefearError, InputError
from hopefear.features.attributes import AttributeRows
from hopefear.tasks.tag.model import SequenceModel, encoded

_NAMES = {"conllu": r"\.conllu", "crfsuite": r"\.crfsuite(\.txt)?"}
_ATTRIBUTE = re.compile(rb"=|:[-+]?[0-9.]+(e[-+]?[0-9]+)?$")
_FORMATS = "columns, conllu or crfsuite"


@dataclass(frozen=True)
class Text:
    """Tokens of a file, however they are written there.

    Parameters
    ----------
    form : {"columns", "conllu", "crfsuite"}
        How they are written.
    content : Sentences or AttributeRows
        What features are made of.
    labels : Column, optional
        Labels that stand beside attributes; others are columns of the content.
    weights : float32 array, optional
        Weights of the sequences.
    file : TokenFile, optional
        What can be written back.
    """

    form: str
    content: Sentences | AttributeRows
    source: str
    lines: np.ndarray = field(repr=False)
    labels: Column | None = None
    weights: np.ndarray | None = None
    file: TokenFile | None = field(default=None, repr=False)

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

    @property
    def words(self) -> Column | None:
        """Tokens as people know them, where there is such a column."""
        if isinstance(self.content, Sentences) and "word" in self.content.columns:
            return self.content.columns["word"]
        return None

    def column(self, wanted: str | None) -> tuple[str, Column]:
        """Name and content of the column of labels."""
        if not isinstance(self.content, Sentences):
            if wanted is not None:
                raise HopefearError(
                    f"--column {wanted}: {self.source} is a CRFsuite file, whose labels come "
                    "first; leave it out"
                )
            assert self.labels is not None
            return "label", self.labels
        columns: Any = self.content.columns
        if wanted is None:
            wanted = "upos" if self.form == "conllu" else self.names[-1]
            if len(self.names) < 2:
                raise InputError(
                    *self.place(0), "two or more columns, the last one with labels", columns["0"][0]
                )
        if wanted not in columns:
            raise HopefearError(
                f"{self.source} has no column {wanted!r}; there are {', '.join(self.names)}"
            )
        return getattr(columns, "aliases", {}).get(wanted, wanted), columns[wanted]

    def encode(
        self, features: Any, labels: Sequence[str] = (), gold: Column | None = None
    ) -> SequenceDataset:
        """The tokens as a feature map sees them."""
        return encoded(self, features.encode(self.content), labels, gold, features)


def read(
    path: str,
    form: str,
    console: Console,
    *,
    columns: Sequence[str] | None = None,
    optional: int = 0,
    on_error: str = "raise",
) -> tuple[Text, int]:
    """A file of tokens, and how many bad lines were left out of it."""
    report = ReadReport()
    form = _format(path, form, columns)
    if form == "crfsuite":
        if columns is not None:
            raise HopefearError(
                f"{path} is a CRFsuite file and has no columns; leave out --columns"
            )
        found = read_crfsuite(path, on_error=on_error, report=report)
        text = Text(
            form, found.rows, found.source, found.lines, found.labels, weights=found.weights
        )
    else:
        file = read_sentences(
            path, format=form, columns=columns, optional=optional, on_error=on_error, report=report
        )
        sentences, lines = file.sentences, file.sentences.lines
        assert lines is not None
        text = Text(file.format, sentences, sentences.source, lines, file=file)
    tell_skipped(report, console)
    return text, report.skipped


def read_for(model: SequenceModel, path: str, args: Any, console: Console) -> tuple[Text, int]:
    """A file for a model: its columns bear the names they had in training.

    Columns behind the last that features need may be missing, as labels are in new text.
    """
    reading = how(model)
    attributes = model.features.kind == "attributes"
    form = args.format
    if form == "auto":
        form = "crfsuite" if attributes else _named(path) or reading["format"]
    if attributes != (form == "crfsuite"):
        made = "attributes of CRFsuite files" if attributes else "templates over columns"
        raise HopefearError(f"{path}: {args.model} has features from {made}, and this is {form}")
    columns, optional = args.columns, 0
    if form == "columns":
        columns = columns or reading["columns"] or None
    if columns is not None:
        needed = [_position(name, columns) for name in model.features.needs]
        optional = len(columns) - 1 - max(needed, default=0)
    return read(path, form, console, columns=columns, optional=optional, on_error=args.on_error)


def _position(name: str, columns: Sequence[str]) -> int:
    """Where a column stands; it may be called by its number, and what is missing is told later."""
    if name in columns:
        return columns.index(name)
    return min(int(name), len(columns) - 1) if name.isdecimal() else 0


def how(model: SequenceModel) -> Mapping[str, Any]:
    """How the training data of a model was written; models made elsewhere may not say."""
    plain = {"format": "auto", "columns": None, "column": None, "scheme": model.scheme}
    return {**plain, "trained_scheme": model.scheme, **model.about.get("reading", {})}


def known_words(model: SequenceModel) -> set[str] | None:
    """Words that the model has features for, where its names tell."""
    features = model.features
    if features.kind != "templates" or features.hash_bits or not features.to_header()["named"]:
        return None
    for i, column in enumerate(features.needs):
        if column in ("word", "form"):
            from hopefear.core.arrays import Strings

            strings = Strings.from_parts(features.arrays(), f"strings{i}")
            return {strings.get(k) for k in range(strings.size)}
    return None


def _format(path: str, form: str, columns: Sequence[str] | None) -> str:
    """The format asked for, or what name or content say; ``auto`` where the reader shall see."""
    if form != "auto":
        return form
    if columns is not None:
        return "columns"
    found = _named(path)
    return found or ("crfsuite" if _has_attributes(head(path, _FORMATS)) else "auto")


def _named(path: str) -> str | None:
    for form, ending in _NAMES.items():
        if re.search(rf"{ending}(\.(gz|xz|bz2|zst))?$", path, re.IGNORECASE):
            return form
    return None


def _has_attributes(text: bytes) -> bool:
    """Whether the first token looks as in CRFsuite's files.

    >>> _has_attributes(b"B-NP\\tw[0]=He\\tpos=PRP\\n"), _has_attributes(b"He\\tPRP\\tB-NP\\n")
    (True, False)
    """
    lines = (line for line in text.split(b"\n") if line.strip() and line[:1] not in b"#@")
    first, *fields = next(lines, b"").split(b"\t")
    fields = [name for name in fields if name.strip()]
    conllu = first.isdigit() and len(fields) == 9
    return not conllu and 2 * sum(map(bool, map(_ATTRIBUTE.search, fields))) > len(fields)

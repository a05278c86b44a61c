"""CRFsuite's files of attributes: ``label TAB name TAB name:value …``, one token to a line."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hopefear.core.hashing import StringTable
from hopefear.data.files import ReadReport, check_on_error
from hopefear.data.sequences import Column
from hopefear.data.sources import BOM, load
from hopefear.data.token_files import Lines
from hopefear.errors import InputError
from hopefear.features.attributes import AttributeRows, renamed

FLOAT32_END = 3.402823567e38  # numbers from here on round to infinity

_ESCAPE = re.compile(r"\\([\\:])")
_NAME = re.compile(r"(?:\\[\\:]|[^:])*")  # up to the first colon without a backslash
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


@dataclass(frozen=True)
class AttributeFile:
    """Sequences of labelled tokens with attributes.

    Parameters
    ----------
    rows : AttributeRows
        Sequences, tokens and attributes.
    labels : Column
        The label of every token.
    weights : float32 array
        The weight of every sequence; 1 where the file gives none.
    source : str
        Name of the file.
    lines : int64 array
        Line number of each token, from 1.
    """

    rows: AttributeRows
    labels: Column
    weights: np.ndarray
    source: str
    lines: np.ndarray = field(repr=False)


def read_crfsuite(
    path: str | os.PathLike[str], *, on_error: str = "raise", report: ReadReport | None = None
) -> AttributeFile:
    r"""Read a file of CRFsuite attributes.

    A line is a token: its label, then its attributes, between tabs. ``name:2.5`` gives an attribute
    a value, 1 without; a colon or backslash in a name is written ``\:`` and ``\\``. A line
    ``@weight:2`` gives its sequence a weight. Empty fields are ignored.

    Parameters
    ----------
    path : str or path
        Plain or compressed UTF-8 file; ``-`` is standard input.
    on_error : {"raise", "skip"}
        Stop at the first bad line, or leave out the sequences that hold one.
    report : ReadReport, optional
        Filled in with the number of sequences and the messages of bad lines.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as f:
    ...     _ = f.write("B-NP\tw=He\tlen:2\nB-VP\tw=is\n\n@weight:0.5\nO\tw=\\:\n")
    ...     f.flush()
    ...     file = read_crfsuite(f.name)
    >>> file.labels.texts(), file.weights.tolist(), file.rows.starts.tolist()
    (['B-NP', 'B-VP', 'O'], [1.0, 0.5], [0, 2, 3])
    >>> [file.rows.strings.get(i) for i in file.rows.ids], file.rows.values.tolist()
    (['w=He', 'len', 'w=is', 'w=:'], [1.0, 2.0, 1.0, 1.0])
    """
    check_on_error(on_error)
    report = ReadReport() if report is None else report
    text = load(path).removeprefix(BOM)
    return parse_crfsuite(Lines.of(text, os.fspath(path), on_error == "skip", report))


def parse_crfsuite(lines: Lines) -> AttributeFile:
    """Tokens of a file of CRFsuite attributes."""
    broken = lines.undecodable()
    blank = lines.words() == 0
    declaration = lines.starting([b"@"]) & ~broken
    token = ~blank & ~declaration & ~broken
    weight, bad = _weights(lines, declaration, np.cumsum(blank))
    fields = _fields(lines, token)
    bad |= broken | _check(lines, token, fields)
    good = lines.short_enough(lines.without_sentences(token, blank, bad), blank)
    if not np.array_equal(good, token):
        fields = _fields(lines, good)
    return _assembled(lines, good, blank, fields, weight)


class _Fields(NamedTuple):
    """Fields of the token lines, each distinct one kept once."""

    texts: list[str]
    ids: np.ndarray  # int32[fields]
    offsets: np.ndarray  # int64[tokens + 1]: where the fields of a token begin

    def of_attributes(self) -> np.ndarray:
        """Mask of the fields that are not labels."""
        mask = np.ones(len(self.ids), bool)
        mask[self.offsets[:-1]] = False
        return mask


def _fields(lines: Lines, token: np.ndarray) -> _Fields:
    text = np.frombuffer(lines.join(token, b"\t"), np.uint8)
    sizes = lines.count(lines.buffer == 9)[token] + 1
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    table = StringTable()
    if len(sizes):
        tabs = np.flatnonzero(text == 9)
        starts = np.concatenate([np.zeros(1, np.int64), tabs + 1])
        ids = table.intern_spans(text, starts, np.append(tabs, len(text)))
    else:
        ids = np.empty(0, np.int32)
    strings = table.strings()
    data, ends = strings.text.tobytes(), strings.offsets.tolist()
    texts = [data[a:b].decode() for a, b in pairwise(ends)]
    return _Fields(texts, ids, offsets)


def _check(lines: Lines, token: np.ndarray, fields: _Fields) -> np.ndarray:
    """Lines with a label or an attribute that cannot be read."""
    attribute = fields.of_attributes()
    is_bad = np.zeros(len(lines), bool)
    wrong = np.zeros(len(fields.ids), bool)
    for mask, fault in ((~attribute, _label_fault), (attribute, _attribute_fault)):
        faulty = np.zeros(len(fields.texts) + 1, bool)
        used = np.bincount(fields.ids[mask], minlength=len(fields.texts))
        for raw in np.flatnonzero(used).tolist():
            faulty[raw] = bool(fault(fields.texts[raw]))
        wrong |= mask & faulty[fields.ids]
    positions = np.flatnonzero(token)
    for e in np.flatnonzero(wrong).tolist():
        k = int(positions[int(np.searchsorted(fields.offsets, e, "right")) - 1])
        if not is_bad[k]:
            text = fields.texts[fields.ids[e]]
            fault = _attribute_fault if attribute[e] else _label_fault
            lines.bad(k, fault(text), text)
            is_bad[k] = True
    return is_bad


def _label_fault(text: str) -> str:
    if not text:
        return "a label before the first tab"
    return "" if _NAME.fullmatch(text) else "a label whose colons are written '\\:'"


def _attribute_fault(text: str) -> str:
    if ":" not in text:
        return ""
    name, _, value = _parts(text)
    if not name:
        return "a name before the colon"
    if value and not _NUMBER.fullmatch(value):
        return "a number behind the colon (a colon in a name is written '\\:')"
    return "" if not value or abs(float(value)) < FLOAT32_END else "a number within float32"


def _parts(text: str) -> tuple[str, str, str]:
    """Name, colon and value of an attribute, escapes in place."""
    cut = _NAME.match(text).end()  # type: ignore[union-attr]
    return text[:cut], text[cut : cut + 1], text[cut + 1 :]


def _meaning(text: str) -> tuple[str, float]:
    """Name and value; an empty field is worth nothing."""
    if "\\" not in text and ":" not in text:
        return text, 1.0 if text else 0.0
    name, _, value = _parts(text)
    return _ESCAPE.sub(r"\1", name), float(value) if value else 1.0


def _weights(
    lines: Lines, declaration: np.ndarray, sentence: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Weights of all stretches between blank lines, and the declarations that cannot be read."""
    weights = np.ones(int(sentence[-1]) + 1, np.float32)
    bad = np.zeros(len(lines), bool)
    for k in np.flatnonzero(declaration).tolist():
        word, _, value = lines.line(k).decode().rstrip("\t ").partition(":")
        if word != "@weight":
            lines.bad(k, "the declaration @weight, the only one there is", word)
        elif not _NUMBER.fullmatch(value) or not 0.0 <= float(value) < FLOAT32_END:
            lines.bad(k, "a weight that is a number from 0 on", value)
        else:
            weights[sentence[k]] = float(value)
            continue
        bad[k] = True
    return weights, bad


def _assembled(
    lines: Lines, token: np.ndarray, blank: np.ndarray, fields: _Fields, weight: np.ndarray
) -> AttributeFile:
    positions = np.flatnonzero(token)
    if not len(positions):
        raise InputError(lines.source, 0, "at least one token", lines.emptiness())
    sentence = np.cumsum(blank)[positions]
    first_tokens = np.concatenate([[0], np.flatnonzero(np.diff(sentence)) + 1])
    starts = np.append(first_tokens, len(positions)).astype(np.int64)
    attribute = fields.of_attributes()
    used = np.bincount(fields.ids[attribute], minlength=len(fields.texts)) > 0
    meaning = [
        _meaning(text) if is_used else ("", 0.0)
        for text, is_used in zip(fields.texts, used.tolist(), strict=True)
    ]
    indptr = fields.offsets - np.arange(len(fields.offsets))
    rows = renamed(starts, indptr, fields.ids[attribute], meaning)
    raw = fields.ids[fields.offsets[:-1]].tolist()
    labels = Column.of([_ESCAPE.sub(r"\1", fields.texts[i]) for i in raw])
    lines.report.rows += len(starts) - 1
    return AttributeFile(rows, labels, weight[sentence[first_tokens]], lines.source, positions + 1)

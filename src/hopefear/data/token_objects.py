"""Sentences as JSON objects, one a line: a list of tokens, and lists of the same length."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from hopefear.core.arrays import Strings, Texts
from hopefear.core.hashing import StringTable
from hopefear.data.sequences import Column, ColumnTable, Sentences
from hopefear.data.sources import BOM
from hopefear.errors import InputError

if TYPE_CHECKING:
    from hopefear.data.token_files import Lines, TokenFile

WORDS, LABELS = ("tokens", "words"), ("ner_tags", "tags", "labels")
_BEGINNING = re.compile(rb"[\s\[]*\{\s*\"[^\"\n]*\"\s*:")


def begins_with_object(text: bytes) -> bool:
    """Whether a text is JSON rather than a token.

    >>> begins_with_object(b'{"tokens": ["a"]}'), begins_with_object(b"{ -LRB-")
    (True, False)
    """
    return _BEGINNING.match(text) is not None


def parse_objects(lines: Lines, max_tokens: int) -> Sentences:
    """Sentences of JSON lines: the column ``word``, and one for each list of strings or numbers.

    The words are under ``tokens`` or ``words``; a list under ``ner_tags``, ``tags`` or ``labels``
    is the last column. What the first object has all must have.

    Parameters
    ----------
    lines : Lines
        The text.
    max_tokens : int
        The longest sentence.
    """
    skipped = lines.undecodable()
    keys: list[str] = []
    texts: list[list[str]] = []
    starts, line_numbers = [0], []
    for k, line in enumerate(lines.text.split(b"\n")):
        if skipped[k] or not line.strip():
            continue
        try:
            lists = _lists(line, keys, max_tokens)
        except _NoSentenceError as error:
            lines.bad(k, *error.args)
            continue
        if not lists["word"]:
            continue
        if not keys:
            keys, texts = list(lists), [[] for _ in lists]
        for column, key in zip(texts, keys, strict=True):
            column += lists[key]
        starts.append(len(texts[0]))
        line_numbers += [k + 1] * (starts[-1] - starts[-2])
    if not line_numbers:
        raise InputError(lines.source, 0, "at least one token", lines.emptiness())
    lines.report.rows += len(starts) - 1
    columns = {key: _column(texts[c]) for c, key in enumerate(keys)}
    aliases = {str(c): key for c, key in enumerate(keys)} | dict.fromkeys(WORDS, "word")
    table = ColumnTable(columns, {a: key for a, key in aliases.items() if a not in columns})
    return Sentences(
        np.array(starts, np.int64), table, lines.source, np.array(line_numbers, np.int64)
    )


class _NoSentenceError(Exception):
    """The expected content of a line, and the actual one."""


def _lists(line: bytes, keys: list[str], max_tokens: int) -> dict[str, list[str]]:
    """The lists of an object by name, those of the first object or, of itself, all that fit."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        excerpt = line[:60].decode(errors="replace")
        raise _NoSentenceError("a JSON object a line (jq -c '.[]' makes them of an array)", excerpt)
    name = next((name for name in WORDS if name in content), "tokens")
    words = _strings(content.get(name))
    if words is None or len(words) > max_tokens:
        expected = f"an object with a list of at most {max_tokens:,} strings under tokens"
        raise _NoSentenceError(expected, f"the keys {', '.join(content)}"[:100])
    label = next((key for key in LABELS if key in content), None)
    list_keys = keys[1:]
    if not keys:
        fits = [
            key
            for key in content
            if key not in (name, label, "word") and _fits(content[key], words)
        ]
        list_keys = fits if label is None else [*fits, label]
    lists = {"word": words}
    for key in list_keys:
        if not _fits(content.get(key), words):
            expected = f"a list of {len(words)} strings under {key}, one a token"
            raise _NoSentenceError(expected, json.dumps(content.get(key))[:60])
        lists[key] = [str(value) for value in content[key]]
    return lists


def _fits(value: Any, words: list[str]) -> bool:
    return _strings(value) is not None and len(value) == len(words)


def _strings(value: Any) -> list[str] | None:
    """A list of strings, or of whole numbers, which features may read; None of anything else."""
    if not isinstance(value, list) or not {*map(type, value)} <= {str, int} or "" in value:
        return None
    strings = [str(text) for text in value]
    try:
        "".join(strings).encode()
    except UnicodeEncodeError:
        return None
    return strings


def _column(texts: list[str]) -> Column:
    packed, table = Strings.pack(texts), StringTable()
    ids = table.intern_spans(packed.text, packed.offsets[:-1], packed.offsets[1:])
    return Column(Texts(table.strings()), ids)


def check_named(file: TokenFile, name: str) -> None:
    """Raises InputError where labels are numbers whose names only their dataset has."""
    sentences = file.sentences
    line = sentences.place(0)
    content = json.loads(_lines(file)[line - 1])
    value = content.get(name, ("",))[0]
    if isinstance(value, int):
        raise InputError(
            sentences.source,
            line,
            f"names of labels under {name}, such as B-PER (the data set that numbers them has "
            f"their names: features[{name!r}].feature.names)",
            str(value),
        )


def with_labels(file: TokenFile, name: str, labels: Column) -> Iterator[bytes]:
    """Pieces of the file with the labels of each object's tokens under a name."""
    sentences, texts, lines = file.sentences, labels.texts(), _lines(file)
    bounds = list(pairwise(sentences.starts.tolist()))
    for (first, after), line in zip(bounds, _first_lines(sentences), strict=True):
        content = {**json.loads(lines[line - 1]), name: texts[first:after]}
        lines[line - 1] = json.dumps(content, ensure_ascii=False).encode()
    yield b"\n".join(lines)


def other_fields(file: TokenFile) -> list[dict[str, Any]]:
    """Returns what the object of each sentence has beside its tokens."""
    lines = _lines(file)
    objects = [json.loads(lines[line - 1]) for line in _first_lines(file.sentences)]
    return [{key: one[key] for key in one if key not in WORDS} for one in objects]


def _first_lines(sentences: Sentences) -> list[int]:
    assert sentences.lines is not None
    return [int(line) for line in sentences.lines[sentences.starts[:-1]]]


def _lines(file: TokenFile) -> list[bytes]:
    return file.text.removeprefix(BOM).split(b"\n")

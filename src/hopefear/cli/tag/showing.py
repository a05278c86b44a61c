"""Tagged sentences as people and programs want them: columns, a line with brackets, JSON."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from hopefear.cli.tag.inputs import Text
from hopefear.data.sequences import Column, Sentences
from hopefear.errors import HopefearError
from hopefear.tasks.tag.text import Paint, as_dict, inline, spans_by_sentence

_COLOURS = (32, 34, 35, 36, 33, 31)  # green, blue, magenta, cyan, yellow, red
_BLANKS = re.compile(r"\s+")


def painter(labels: Sequence[str], spans: bool) -> Paint:
    """Colours for a terminal, one a kind of span; labels of other kinds stand dim behind words.

    >>> painter(["O", "B-X"], True)("Ann", "X")
    '\\x1b[1;32mAnn\\x1b[0;2m X\\x1b[0m'
    """
    if not spans:
        return lambda word, label: f"{word}\x1b[2m/{label}\x1b[0m"
    kinds = sorted({label.partition("-")[2] for label in labels if "-" in label})
    colour = {kind: _COLOURS[i % len(_COLOURS)] for i, kind in enumerate(kinds)}
    return lambda text, kind: f"\x1b[1;{colour.get(kind, 32)}m{text}\x1b[0;2m {kind}\x1b[0m"


def is_coloured(output: str) -> bool:
    """Whether an output is a terminal that shows colours."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return output == "-" and not plain and sys.stdout.isatty()


def words_of(text: Text) -> list[str] | None:
    """The tokens as they stand in the input; None where there are attributes alone."""
    if text.characters is not None:
        whole = text.characters.text
        return [whole[a:b] for one in text.characters.bounds for a, b in one]
    if not isinstance(text.content, Sentences):
        return None
    return (text.words or next(iter(text.content.columns.values()))).texts()


def columns(text: Text, table: Any) -> Iterator[bytes]:
    """A token a line, its label behind a tab; for text, which had no columns."""
    words, new = words_of(text), [_texts(column) for column in table.columns("label").values()]
    for i, tokens, (start, after) in _copies(text, table):
        facts = table.comments[i] if table.comments else ()
        rows = zip(words[tokens], *(column[start:after] for column in new), strict=True)  # type: ignore[index]
        lines = [*(f"# {fact}" for fact in facts), *map("\t".join, rows)]
        yield ("\n".join(lines) + "\n\n").encode()


def lines(text: Text, table: Any, scheme: str | None, paint: Paint | None) -> Iterator[bytes]:
    """A sentence a line, with brackets around its spans, or in colours."""
    words = words_of(text)
    if words is None:
        raise HopefearError(
            f"{text.source} has attributes and no words: --output-format inline is for columns, "
            "CoNLL-U and text"
        )
    labels = table.labels.texts()
    groups = None if scheme is None else spans_by_sentence(table.labels, table.starts, scheme)
    for i, tokens, (start, after) in _copies(text, table):
        spans = None if groups is None else groups[i]
        if text.characters is not None and paint is not None and spans is not None:
            line = _painted(text, tokens, spans, paint)
        else:
            line = inline(words[tokens], labels[start:after], spans, paint)
        yield f"{line}\n".encode()


def objects(text: Text, table: Any, scheme: str | None) -> Iterator[bytes]:
    """A JSON object a sentence, one a line."""
    words, labels = words_of(text), table.labels.texts()
    groups = None if scheme is None else spans_by_sentence(table.labels, table.starts, scheme)
    sentences = None
    if text.characters is not None:
        copies = text.characters.repeated(table.starts, table.counts)
        sentences = list(copies.tagged(labels, table.labels, scheme))
    for i, tokens, (start, after) in _copies(text, table):
        fact: dict[str, Any] = dict(table.facts[i]) if table.facts else {}
        if sentences is not None:
            fact |= as_dict(sentences[i])
        else:
            some = labels[start:after]
            own = [{}] * len(some) if words is None else [{"text": w} for w in words[tokens]]
            fact["tokens"] = [{**one, "label": label} for one, label in zip(own, some, strict=True)]
            fact["spans"] = [
                {"label": kind, "first": a, "after": b, **_joined(words, tokens, a, b)}
                for a, b, kind in (groups[i] if groups else ())
            ]
        if table.probabilities is not None:
            for token, p in zip(fact["tokens"], table.probabilities[start:after], strict=True):
                token["probability"] = float(p)
        if table.spans is not None and groups is not None:
            for span, (first, _, _) in zip(fact["spans"], groups[i], strict=True):
                span["probability"] = float(table.spans[start + first])
        if groups is None:
            del fact["spans"]
        yield (json.dumps(fact, ensure_ascii=False) + "\n").encode()


def _copies(text: Text, table: Any) -> Iterator[tuple[int, slice, tuple[int, int]]]:
    """For every sentence of the table: its number, its tokens in the text, its rows there."""
    bounds = list(pairwise(text.starts.tolist()))
    counts = np.ones(len(bounds), int) if table.counts is None else table.counts
    which = np.repeat(np.arange(len(bounds)), counts).tolist()
    for i, rows in enumerate(pairwise(table.starts.tolist())):
        yield i, slice(*bounds[which[i]]), rows


def _joined(words: list[str] | None, tokens: slice, first: int, after: int) -> Mapping[str, str]:
    return {} if words is None else {"text": " ".join(words[tokens][first:after])}


def _painted(text: Text, tokens: slice, spans: Sequence[Any], paint: Paint) -> str:
    """The sentence as it stands in the text, in one line, its spans in colours."""
    assert text.characters is not None
    whole, i = text.characters.text, int(np.searchsorted(text.starts, tokens.start, "right")) - 1
    bounds = text.characters.bounds[i]
    parts, done = [], bounds[0][0]
    for first, after, kind in spans:
        a, b = bounds[first][0], bounds[after - 1][1]
        parts += [_BLANKS.sub(" ", whole[done:a]), paint(_BLANKS.sub(" ", whole[a:b]), kind)]
        done = b
    return "".join([*parts, _BLANKS.sub(" ", whole[done : bounds[-1][1]])])


def _texts(column: Column | Sequence[str]) -> Sequence[str]:
    return column.texts() if isinstance(column, Column) else column

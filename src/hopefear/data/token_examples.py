"""Sequences of tokens as taggers take them: from files, from text, from Python objects."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import stretches
from hopefear.data.crfsuite import AttributeFile, read_crfsuite
from hopefear.data.files import ReadReport
from hopefear.data.sequences import Column, ColumnTable, Sentences
from hopefear.data.token_files import TokenFile, read_sentences, token_format
from hopefear.data.token_objects import check_named
from hopefear.data.token_stream import arriving_text, read_parts
from hopefear.errors import HopefearError, InputError
from hopefear.features.attributes import AttributeRows, place

LABELS = "(labels)"  # the column of gold labels, under a name that no template has


class Characters(NamedTuple):
    """Where tokens stand in a text."""

    text: str
    bounds: list[list[tuple[int, int]]]  # start and end of the tokens of each sentence
    at: int = 0  # where the text begins in a longer one


@dataclass(frozen=True)
class TokenExamples:
    """Sentences of tokens, with their labels where these are known.

    Parameters
    ----------
    content : Sentences or AttributeRows
        What features are made of.
    source : str
        Where it came from, for messages.
    form : {"objects", "columns", "conllu", "crfsuite", "json", "text"}
        How it was written there.
    lines : int64 array, optional
        Line number of each token in a file, from 1.
    gold : Column, optional
        The label of every token.
    column : str
        Name of the column that the labels came from.
    weights : float array, optional
        Weights of the sentences.
    file : TokenFile, optional
        What can be written back.
    characters : Characters, optional
        Where tokens stand in what was text.
    """

    content: Sentences | AttributeRows
    source: str = "memory"
    form: str = "objects"
    lines: np.ndarray | None = field(default=None, repr=False)
    gold: Column | None = None
    column: str = "label"
    weights: np.ndarray | None = None
    file: TokenFile | None = field(default=None, repr=False)
    characters: Characters | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def starts(self) -> np.ndarray:
        """Sentence i has the tokens ``starts[i] .. starts[i + 1] - 1``."""
        return self.content.starts

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.content.columns) if isinstance(self.content, Sentences) else ()

    @property
    def words(self) -> Column | None:
        """The column of words, where there is one of that name."""
        if isinstance(self.content, Sentences) and "word" in self.content.columns:
            return self.content.columns["word"]
        return None

    def texts(self) -> list[str]:
        """Returns every token as it stands in the input: its word, or all its attributes."""
        if self.characters is not None:
            text = self.characters.text
            return [text[a:b] for bounds in self.characters.bounds for a, b in bounds]
        content = self.content
        if isinstance(content, AttributeRows):
            names = list(map(content.strings.get, content.ids.tolist()))
            return [" ".join(names[a:b]) for a, b in pairwise(content.indptr.tolist())]
        return (self.words or next(iter(content.columns.values()))).texts()

    def place(self, k: int) -> tuple[str, int]:
        """Returns file and line of token ``k``; its sequence and number, where there is no file."""
        if self.lines is None:
            return place(self.starts, k), 0
        return self.source, int(self.lines[k])

    def labelled(self, name: str | None = None) -> TokenExamples:
        """Returns the same with the gold labels of a column, the usual one unless named."""
        if not isinstance(self.content, Sentences):
            if name is not None:
                raise HopefearError(
                    f"--column {name}: {self.source} is a CRFsuite file, whose labels come "
                    "first; leave it out"
                )
            return self
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
        return replace(self, gold=columns[name], column=name)

    @property
    def inputs(self) -> Any:
        """The content without the column of labels under its name.

        Else a template with ``when`` there is a column of that name would take it.
        """
        if not isinstance(self.content, Sentences) or self.gold is None or self.form == "objects":
            return self.content
        table, name = self.content.columns, self.column
        columns = {
            (LABELS if key == name else key): (self.gold if key == name else column)
            for key, column in table.items()
        }
        aliases = {a: key for a, key in getattr(table, "aliases", {}).items() if key != name}
        return replace(self.content, columns=ColumnTable(columns, aliases))

    def renamed(self, names: Sequence[str]) -> TokenExamples:
        """Returns the same with other names of columns."""
        assert isinstance(self.content, Sentences)
        table = ColumnTable(dict(zip(names, self.content.columns.values(), strict=True)), {})
        return replace(self, content=replace(self.content, columns=table))

    def take(self, which: np.ndarray) -> TokenExamples:
        """Returns the sentences of these numbers; what could be written back is all or nothing."""
        tokens = stretches(self.starts[which], np.diff(self.starts)[which])
        return replace(
            self,
            content=self.content.take(which),
            lines=None if self.lines is None else self.lines[tokens],
            gold=None if self.gold is None else _rows(self.gold, tokens),
            weights=None if self.weights is None else self.weights[which],
            file=None,
            characters=None,
        )


def _rows(column: Column, which: np.ndarray) -> Column:
    """Some rows of a column, with the strings that these have, in order of appearance."""
    ids = column.ids[which]
    first = np.sort(np.unique(ids, return_index=True)[1])
    number = np.zeros(len(column.strings), np.int32)
    number[ids[first]] = np.arange(len(first))
    return Column([column.strings[i] for i in ids[first].tolist()], number[ids])


def of_file(file: TokenFile | AttributeFile) -> TokenExamples:
    """Returns what a reader gives, whatever it is."""
    if isinstance(file, AttributeFile):
        return TokenExamples(
            file.rows,
            file.source,
            "crfsuite",
            file.lines,
            file.labels,
            weights=file.weights,
        )
    sentences = file.sentences
    return TokenExamples(sentences, sentences.source, file.format, sentences.lines, file=file)


def read_tokens(
    path: str | os.PathLike[str],
    format: str = "auto",
    *,
    columns: Sequence[str] | None = None,
    optional: int = 0,
    on_error: str = "raise",
    report: ReadReport | None = None,
) -> TokenExamples:
    """Reads a file of tokens.

    Parameters
    ----------
    path, columns, optional, on_error, report
        As for :func:`hopefear.data.token_files.read_sentences`.
    format : {"auto", "columns", "conllu", "json", "crfsuite"}
        How it is written.
    """
    form = token_format(os.fspath(path), format, columns)
    how: dict[str, Any] = {"on_error": on_error, "report": report}
    if form == "crfsuite":
        if columns is not None:
            raise HopefearError(
                f"{path} is a CRFsuite file and has no columns; leave out --columns"
            )
        return of_file(read_crfsuite(path, **how))
    return of_file(read_sentences(path, format=form, columns=columns, optional=optional, **how))


def token_parts(path: str, **how: Any) -> Iterator[TokenExamples]:
    """Reads a file of tokens piece by piece, with the lines of tokens as they are in all of it.

    ``how`` is as for :func:`hopefear.data.token_stream.read_parts`.
    """
    before = 0
    for part in read_parts(path, **how):
        if part.file is not None:
            examples = of_file(part.file)
            assert examples.lines is not None
            yield replace(examples, lines=examples.lines + before)
        before += part.text.count(b"\n")


def of_text(
    text: str,
    tokenizer: Any,
    names: Sequence[str] = ("word",),
    *,
    bounds: list[list[tuple[int, int]]] | None = None,
    at: int = 0,
    source: str = "text",
    line: int = 1,
) -> TokenExamples:
    """Returns the sentences of a text, whose tokens are words alone.

    Parameters
    ----------
    text : str
        What is read.
    tokenizer : Tokenizer
        Finds sentences, and says how their tokens are written.
    names : sequence of str
        What features call the column of words.
    bounds : list of lists of (start, end), optional
        The tokens of the sentences, where they are known.
    at, line : int
        Where the text begins in a longer one: characters before it, and its line.
    source : str
        Where it came from.
    """
    found = tokenizer.sentences(text) if bounds is None else bounds
    bounds = [list(sentence) for sentence in found if sentence]
    words = [word for sentence in bounds for word in tokenizer.words(text, sentence)]
    starts = np.concatenate([[0], np.cumsum([len(one) for one in bounds])]).astype(np.int64)
    breaks = np.array([match.start() for match in re.finditer("\n", text)], np.int64)
    begins = np.array([a for sentence in bounds for a, _ in sentence], np.int64)
    sentences = Sentences(starts, dict.fromkeys(names, Column.of(words)), source)
    return TokenExamples(
        sentences,
        source,
        "text",
        line + np.searchsorted(breaks, begins),
        characters=Characters(text, bounds, at),
    )


def text_parts(
    path: str, tokenizer: Any, names: Sequence[str], whole: bool
) -> Iterator[TokenExamples]:
    """Reads a file of text: as sentences come, or all of it at once."""
    line, pieces = 1, arriving_text(path)
    if whole:
        text = "".join(pieces)
        stream: Any = [(0, text, tokenizer.sentences(text))]
    else:
        stream = tokenizer.stream(pieces)
    empty = True
    for at, text, bounds in stream:
        if bounds:
            empty = False
            where: Mapping[str, Any] = {"bounds": bounds, "at": at, "source": path, "line": line}
            yield of_text(text, tokenizer, names, **where)
        line += text.count("\n")
    if empty:
        raise InputError(path, 0, "text", "nothing but blanks")

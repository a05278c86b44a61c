"""Tagged text on its way out: the file as it was with more columns, or labels alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hopefear.cli.guard import write_out
from hopefear.cli.tag.reading import Text
from hopefear.data.sequences import Column, Sentences
from hopefear.data.token_files import BOM, TokenFile
from hopefear.data.write_tokens import with_columns
from hopefear.storage import write_atomically


class Table(NamedTuple):
    """What is said of tokens."""

    starts: np.ndarray
    labels: Column
    probabilities: Sequence[str] | None = None
    spans: Sequence[str] | None = None
    comments: Sequence[Sequence[str]] | None = None  # before each sentence
    counts: np.ndarray | None = None  # how often each sentence of the file comes

    def columns(self, name: str) -> dict[str, Column | Sequence[str]]:
        """Columns by name, without those that are not there."""
        all_ = {name: self.labels, "Probability": self.probabilities, "SpanProbability": self.spans}
        return {key: column for key, column in all_.items() if column is not None}


def put(out: str, pieces: Iterable[bytes]) -> None:
    """Write pieces to a file, all or nothing, or to standard output."""
    if out == "-":
        for piece in pieces:
            write_out(piece)
    else:
        write_atomically(out, pieces)


def tagged(text: Text, name: str, table: Table) -> Iterator[bytes]:
    """The text with its labels in a column of that name."""
    if text.file is None:
        return _labels_alone(table)
    file = text.file if table.counts is None else repeated(text.file, table.counts)
    return with_columns(file, table.columns(name), comments=table.comments)


def repeated(file: TokenFile, counts: Sequence[int] | np.ndarray) -> TokenFile:
    """The file with every sentence, and the comments before it, written so many times.

    Parameters
    ----------
    file : TokenFile
        What was read.
    counts : sequence of int
        Copies of each sentence, at least 1; what stands between sentences stays once.
    """
    sentences = file.sentences
    assert sentences.lines is not None
    mark = BOM if file.text.startswith(BOM) else b""
    lines = file.text[len(mark) :].split(b"\n")
    out: list[bytes] = []
    places, tokens, sizes = [], [], [0]
    written = 0
    for (start, after), count in zip(pairwise(sentences.starts.tolist()), counts, strict=True):
        rows = sentences.lines[start:after] - 1
        begin, end = _bounds(lines, file.format, int(rows[0]), int(rows[-1]) + 1, written)
        out += lines[written:begin]
        blank = lines[end] if end < len(lines) and not lines[end].strip() else b""
        for copy in range(count):
            if copy:
                out.append(blank)
            places.append(rows - begin + len(out))
            tokens.append(np.arange(start, after))
            sizes.append(after - start)
            out += lines[begin:end]
        written = end
    out += lines[written:]
    index = np.concatenate(tokens)
    copies = Sentences(
        np.cumsum(sizes),
        {name: Column(c.strings, c.ids[index]) for name, c in sentences.columns.items()},
        sentences.source,
        np.concatenate(places) + 1,
    )
    return TokenFile(copies, file.format, file.separator, mark + b"\n".join(out))


def _bounds(lines: list[bytes], form: str, first: int, after: int, written: int) -> tuple[int, int]:
    """Lines of a sentence: with its comments and, in CoNLL-U, all that is no blank line."""
    begin = first
    while begin > written and (
        lines[begin - 1].startswith(b"#") or (form == "conllu" and lines[begin - 1].strip())
    ):
        begin -= 1
    while form == "conllu" and after < len(lines) and lines[after].strip():
        after += 1
    return begin, after


def _labels_alone(table: Table) -> Iterator[bytes]:
    """Lines of labels, and what is said of them, between tabs."""
    columns = [c.texts() if isinstance(c, Column) else c for c in table.columns("label").values()]
    for i, (start, after) in enumerate(pairwise(table.starts.tolist())):
        head = "".join(f"# {text}\n" for text in table.comments[i]) if table.comments else ""
        rows = zip(*(column[start:after] for column in columns), strict=True)
        yield (head + "".join("\t".join(row) + "\n" for row in rows) + "\n").encode()

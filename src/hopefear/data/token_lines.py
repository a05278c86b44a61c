"""Lines of token files as arrays: where they are, which are tokens, where sentences begin."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np

from hopefear.data.files import open_bytes
from hopefear.data.report import ReadReport
from hopefear.data.sequences import Column, Sentences
from hopefear.errors import InputError

MAX_TOKEN_BYTES = 1_000_000
MAX_SENTENCE_TOKENS = 1_000_000
BOM = b"\xef\xbb\xbf"
WHITE = b" \t\n\r\x0b\x0c"  # what bytes.split() splits at

_IS_WHITE = np.zeros(256, bool)
_IS_WHITE[list(WHITE)] = True


class ColumnTable(dict[str, Column]):
    """Columns by name, in the order of the file; other names lead to them too.

    Examples
    --------
    >>> table = ColumnTable({"word": Column.of(["a"])}, {"0": "word"})
    >>> table["0"][0], "0" in table, list(table)
    ('a', True, ['word'])
    """

    def __init__(self, columns: dict[str, Column], aliases: dict[str, str]) -> None:
        super().__init__(columns)
        self.aliases = aliases

    def __missing__(self, name: str) -> Column:
        return super().__getitem__(self.aliases[name])

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.aliases

    def get(self, name, default=None):
        return super().get(self.aliases.get(name, name), default)


@dataclass(frozen=True)
class Lines:
    """Text cut at newlines: line k, from 0, is ``text[begins[k]:ends[k]]``.

    Parameters
    ----------
    text : bytes
        The file without byte-order mark, its lines ended by a newline alone.
    source : str
        Name of the file, for messages.
    skip : bool
        Count bad lines in the report instead of raising the first.
    report : ReadReport
        Where lines and sentences are counted.
    """

    text: bytes
    source: str
    skip: bool
    report: ReadReport
    begins: np.ndarray
    ends: np.ndarray
    buffer: np.ndarray

    @classmethod
    def of(cls, text: bytes, source: str, skip: bool, report: ReadReport) -> Lines:
        """Cut a text."""
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").removesuffix(b"\r")
        buffer = np.frombuffer(text, np.uint8)
        newlines = np.flatnonzero(buffer == 10)
        begins = np.concatenate([[0], newlines + 1])
        return cls(text, source, skip, report, begins, np.append(newlines, len(text)), buffer)

    def __len__(self) -> int:
        return len(self.begins)

    def line(self, k: int) -> bytes:
        return self.text[self.begins[k] : self.ends[k]]

    def words(self) -> np.ndarray:
        """Number of stretches without white space in each line."""
        white = _IS_WHITE[self.buffer]
        first = ~white
        first[1:] &= white[:-1]
        return self.count(first)

    def count(self, mask: np.ndarray) -> np.ndarray:
        """Number of marked bytes in each line."""
        places = np.searchsorted(np.flatnonzero(mask), np.append(self.begins, len(self.text)))
        return np.diff(places)

    def starting(self, prefixes: Sequence[bytes]) -> np.ndarray:
        """Lines that begin with one of these."""
        found = np.zeros(len(self), bool)
        wanted = tuple(p for p in prefixes if p)
        if not wanted or not self.text:
            return found
        heads = self.buffer[np.minimum(self.begins, len(self.text) - 1)]
        for k in np.flatnonzero(np.isin(heads, [p[0] for p in wanted])).tolist():
            found[k] = self.text.startswith(wanted, self.begins[k], self.ends[k])
        return found

    def join(self, mask: np.ndarray, glue: bytes) -> bytes:
        """The marked lines, one behind the other."""
        return glue.join(compress(self.text.split(b"\n"), mask.tolist()))

    def bad(self, k: int, expected: str, found: str) -> None:
        """Raise what is wrong with line k, from 0, or count it where bad lines are skipped."""
        error = InputError(self.source, k + 1, expected, found)
        if not self.skip:
            raise error
        self.report.skip(str(error))

    def shown(self, k: int) -> str:
        return self.line(k)[:100].decode("utf-8", "backslashreplace")

    def undecodable(self) -> np.ndarray:
        """Lines that are not UTF-8."""
        found = np.zeros(len(self), bool)
        try:
            self.text.decode()
        except UnicodeDecodeError as error:
            first = int(np.searchsorted(self.ends, error.start))
            for k in range(first, len(self)):
                try:
                    self.line(k).decode()
                except UnicodeDecodeError:
                    self.bad(k, "UTF-8 text", self.shown(k))
                    found[k] = True
        return found

    def too_long(self, token: np.ndarray, separator: bytes) -> np.ndarray:
        """Token lines with a field beyond the limit."""
        found = np.zeros(len(self), bool)
        for k in np.flatnonzero(token & (self.ends - self.begins > MAX_TOKEN_BYTES)).tolist():
            fields = self.line(k).split(separator if separator == b"\t" else None)
            longest = max(map(len, fields))
            if longest > MAX_TOKEN_BYTES:
                self.bad(k, f"fields of at most {MAX_TOKEN_BYTES:,} bytes", f"{longest:,} bytes")
                found[k] = True
        return found

    def without_sentences(
        self, token: np.ndarray, boundary: np.ndarray, bad: np.ndarray
    ) -> np.ndarray:
        """The token lines of sentences that hold no bad line."""
        if not bad.any():
            return token
        sentence = np.cumsum(boundary)
        broken = np.zeros(int(sentence[-1]) + 1, bool)
        broken[sentence[bad]] = True
        return token & ~broken[sentence]

    def short_enough(self, token: np.ndarray, boundary: np.ndarray) -> np.ndarray:
        """The token lines of sentences within the limit."""
        if np.count_nonzero(token) <= MAX_SENTENCE_TOKENS:
            return token
        sentence = np.cumsum(boundary)
        sizes = np.bincount(sentence[token])
        bad = np.zeros(len(self), bool)
        for s in np.flatnonzero(sizes > MAX_SENTENCE_TOKENS).tolist():
            k = int(np.flatnonzero(token & (sentence == s))[0])
            self.bad(k, f"sentences of at most {MAX_SENTENCE_TOKENS:,} tokens", f"{sizes[s]:,}")
            bad[k] = True
        return self.without_sentences(token, boundary, bad)

    def hollow(self, token: np.ndarray) -> np.ndarray:
        """Token lines with nothing between two tabs, or before or behind one."""
        edge = np.concatenate([[10], self.buffer, [10]])
        closed = (edge == 9) | (edge == 10)
        empty = (edge[1:-1] == 9) & (closed[:-2] | closed[2:])
        found = token & (self.count(empty) > 0)
        for k in np.flatnonzero(found).tolist():
            self.bad(k, "text in every column", f"an empty one: {self.shown(k)}")
        return found

    def sentences(
        self,
        names: Sequence[str],
        aliases: dict[str, str],
        fields: list[bytes],
        token: np.ndarray,
        boundary: np.ndarray,
    ) -> Sentences:
        """Encode fields, row after row of the token lines; a boundary line ends a sentence."""
        places = np.flatnonzero(token)
        if not len(places):
            raise InputError(self.source, 0, "at least one token", self.emptiness())
        fresh = np.flatnonzero(np.diff(np.cumsum(boundary)[places])) + 1
        starts = np.concatenate([[0], fresh, [len(places)]]).astype(np.int64)
        self.report.rows += len(starts) - 1
        columns = {name: _encoded(fields[c :: len(names)]) for c, name in enumerate(names)}
        return Sentences(starts, ColumnTable(columns, aliases), self.source, places + 1)

    def emptiness(self) -> str:
        """What a file without tokens has instead."""
        if not self.text:
            return "an empty file"
        if self.report.skipped:
            return "only lines that were skipped"
        return "only blank lines, comments and marks of documents"


def load(path: str | os.PathLike[str]) -> bytes:
    """All bytes of a file, unpacked; UTF-16 is refused."""
    with open_bytes(path) as stream:
        data = stream.read()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(os.fspath(path), 1, "UTF-8 text", "UTF-16 text; convert it first")
    return data


def _encoded(texts: list[bytes]) -> Column:
    raw = Column.of(texts)  # type: ignore[arg-type]
    return Column([text.decode() for text in raw.strings], raw.ids)  # type: ignore[attr-defined]

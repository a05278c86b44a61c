"""Lines of plain text as words and their hashes, and references for metrics of either."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hopefear.core.arrays import gathered
from hopefear.core.component import helper, kernel
from hopefear.core.hashing import load8, load_part, mix
from hopefear.data.files import PADDING, read_blocks
from hopefear.data.parse_numbers import is_blank
from hopefear.data.sources import utf8_wanted
from hopefear.errors import HopefearError, InputError, Problem
from hopefear.metrics.base import ListMetric

if TYPE_CHECKING:
    from hopefear.data.moses.parsing import RawBlock

NEWLINE = 10
_WORD, _BLANK, _PERHAPS, _END = range(4)
_BARS, _THREE = np.uint64(0x7C7C7C), np.uint64(0xFFFFFF)


def _kinds() -> np.ndarray:
    """Makes the table of bytes: part of a word, a blank, the first of a blank of several bytes."""
    kinds = np.zeros(256, np.uint8)
    kinds[[9, 11, 12, 13, 28, 29, 30, 31, 32]] = _BLANK
    kinds[[0xC2, 0xE1, 0xE2, 0xE3]] = _PERHAPS
    kinds[NEWLINE] = _END
    kinds.flags.writeable = False
    return kinds


_KINDS = _kinds()


class HashedText(NamedTuple):
    """Lines of a file as words: line i has the words ``offsets[i] .. offsets[i + 1] - 1``."""

    name: str
    text: np.ndarray  # uint8
    offsets: np.ndarray  # int64[lines + 1]
    starts: np.ndarray  # int64[words]
    ends: np.ndarray  # int64[words]
    words: np.ndarray  # uint64[words], their hashes

    @property
    def size(self) -> int:
        return len(self.offsets) - 1

    def lines(self) -> list[str]:
        """The text of every line, from its first word to its last."""
        starts, ends = line_spans(self.offsets, self.starts, self.ends)
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        return [self.text[a:b].tobytes().decode() for a, b in spans]


def parallel_sentences(
    refs: str | os.PathLike[str] | HashedText | Sequence[Any],
) -> list[HashedText]:
    """References of one or several files; InputError unless every line has one.

    Files that have been read already are accepted for their paths.
    """
    several = [refs] if isinstance(refs, str | os.PathLike | HashedText) else list(refs)
    files = [file if isinstance(file, HashedText) else read_sentences(file) for file in several]
    if not files:
        raise HopefearError("refs: expected at least one file of references, found none")
    check_parallel(files)
    empty = np.ones(files[0].size, bool)
    for sentences in files:
        empty &= np.diff(sentences.offsets) == 0
    if empty.any():
        line = int(np.flatnonzero(empty)[0]) + 1
        raise InputError(files[0].name, line, "a reference", Problem("the line is empty"))
    return files


def read_sentences(path: str | os.PathLike[str]) -> HashedText:
    """A file of one sentence to a line, split where it has blanks of any kind.

    Parameters
    ----------
    path : str or path
        Plain or compressed UTF-8 file; ``-`` is standard input.
    """
    name = os.fspath(path)
    pieces = []
    for piece, line in read_blocks(path):
        check_text(piece, name, line)
        pieces.append(piece)
    pieces.append(b"\n" * PADDING)
    text = np.frombuffer(b"".join(pieces), np.uint8)
    end = len(text) - PADDING
    lines = int(np.count_nonzero(text[:end] == NEWLINE))
    room = end // 2 + 1
    offsets = np.zeros(lines + 1, np.int64)
    starts, ends = np.empty(room, np.int64), np.empty(room, np.int64)
    words = np.empty(room, np.uint64)
    with np.errstate(over="ignore"):
        used = split_lines(text, lines, offsets, starts, ends, words)
    return HashedText(name, text, offsets, *(a[:used].copy() for a in (starts, ends, words)))


def check_text(text: bytes | memoryview, name: str, first_line: int) -> None:
    """InputError at the first line that is no UTF-8."""
    try:
        str(text, "utf-8")
    except UnicodeDecodeError as error:
        before = bytes(text[: error.start])
        excerpt = bytes(text[error.start : error.start + 20]).decode("utf-8", "backslashreplace")
        line = first_line + before.count(b"\n")
        line_bytes = (
            before[before.rfind(b"\n") + 1 :] + bytes(text[error.start :]).split(b"\n", 1)[0]
        )
        raise InputError(name, line, utf8_wanted(line_bytes), excerpt) from None


def check_parallel(files: list[HashedText]) -> None:
    """InputError where files that go line by line have different numbers of them."""
    first = files[0]
    for file in files[1:]:
        if file.size != first.size:
            line = min(file.size, first.size) + 1
            raise InputError(
                file.name,
                line,
                f"{first.size} lines, as {first.name} has",
                Problem(f"this file has {file.size}"),
            )


def line_spans(
    offsets: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Returns the start and end of the text of each line, from the positions of its words."""
    first, stop = np.zeros(len(offsets) - 1, np.int64), np.zeros(len(offsets) - 1, np.int64)
    spoken = offsets[1:] > offsets[:-1]
    first[spoken] = starts[offsets[:-1][spoken]]
    stop[spoken] = ends[offsets[1:][spoken] - 1]
    return first, stop


@kernel
def split_lines(text, lines, offsets, starts, ends, words):
    """Splits ``lines`` lines into words; returns how many words there are."""
    i, used = 0, 0
    for line in range(lines):
        i, used, _ = split_words(text, i, starts, ends, words, used, False)
        i += 1
        offsets[line + 1] = used
    return used


@kernel
def split_words(text, i, starts, ends, words, used, bars):
    """Words from ``text[i]`` to the end of the line, or to ``|||``; ``(position, used, bars met)``.

    The position is that of the newline or of the bars.
    """
    while True:
        size = blank_size(text, i)
        while size > 0:
            i += size
            size = blank_size(text, i)
        if text[i] == NEWLINE:
            return i, used, False
        if bars and at_bars(text, i):
            return i, used, True
        begin = i
        i += 1
        while True:
            kind = _KINDS[text[i]]
            if kind == _WORD or (kind == _PERHAPS and blank_size(text, i) == 0):
                i += 1
            else:
                break
        starts[used], ends[used] = begin, i
        words[used] = word_hash(text, begin, i)
        used += 1


@helper(inline=True)
def word_hash(text, begin, end):
    """A 64-bit hash of ``text[begin:end]``."""
    h = np.uint64(end - begin)
    for p in range(begin, end, 8):
        h = mix(h, load_part(text, p, min(8, end - p)))
    return h


@helper(inline=True)
def at_bars(text, i):
    """Whether the token at ``text[i]`` is ``|||``."""
    if (load8(text, i) & _THREE) != _BARS:
        return False
    return text[i + 3] == NEWLINE or is_blank(text[i + 3])


@kernel
def blank_size(text, i):
    """Bytes of the blank at ``text[i]``, 0 where there is none; what ``str.split`` splits at."""
    kind = _KINDS[text[i]]
    if kind == _BLANK:
        return 1
    if kind != _PERHAPS:
        return 0
    a, b, c = text[i], text[i + 1], text[i + 2]
    if a == 0xC2:
        return 2 if b == 0x85 or b == 0xA0 else 0
    if a == 0xE1:
        return 3 if b == 0x9A and c == 0x80 else 0
    if a == 0xE3:
        return 3 if b == 0x80 and c == 0x80 else 0
    if b == 0x81:
        return 3 if c == 0x9F else 0
    if b != 0x80:
        return 0
    return 3 if 0x80 <= c <= 0x8A or c == 0xA8 or c == 0xA9 or c == 0xAF else 0


class References:
    """References of all lists, and the metric that compares candidates with them, if any."""

    def __init__(self, files: Sequence[HashedText], metric: ListMetric | None) -> None:
        self.metric, self.name, self.size = metric, files[0].name, files[0].size
        self.n_references = len(files)
        if metric is None:  # references are only looked for
            return
        if not metric.counts_words:
            self.lines = list(zip(*(file.lines() for file in files), strict=True))
            return
        # References of one line are adjacent, in the order of the files.
        order = np.arange(self.size * len(files)).reshape(len(files), -1).T.ravel()
        self.starts = np.arange(self.size + 1) * len(files)
        offsets = np.concatenate(
            [[0], np.cumsum(np.concatenate([np.diff(f.offsets) for f in files]))]
        )
        self.offsets, words = gathered(offsets, order)
        self.words = np.concatenate([f.words for f in files])[words]

    def counts(self, raw: RawBlock) -> np.ndarray:
        """Statistics of the candidates of a block, which `check` has seen."""
        assert self.metric is not None
        scratch, rows = raw.scratch, raw.rows
        ids, offsets = scratch.ids[:rows], scratch.word_ptr[: rows + 1]
        if not self.metric.counts_words:
            starts, ends = line_spans(offsets, scratch.starts, scratch.ends)
            text, spans = raw.buffer.tobytes(), zip(starts.tolist(), ends.tolist(), strict=True)
            texts = [text[a:b].decode("utf-8", "surrogatepass") for a, b in spans]
            return self.metric.statistics([self.lines[i] for i in ids.tolist()], texts)
        words = scratch.words[: offsets[-1]]
        return self.metric.word_statistics(
            words, offsets, ids, self.words, self.offsets, self.starts
        )

    def check(self, raw: RawBlock) -> None:
        """InputError where a candidate has no reference."""
        ids = raw.scratch.ids[: raw.rows]
        beyond = np.flatnonzero(ids >= self.size)
        if len(beyond):
            raise InputError(
                raw.path,
                raw.line(int(beyond[0])),
                f"a list with a reference: {self.name} has {self.size} lines (ids from 0)",
                Problem(f"this one is list {ids[beyond[0]]}"),
            )

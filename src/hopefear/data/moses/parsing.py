"""Moses N-best files in blocks of candidates: ``ID ||| words ||| Name= v v … ||| score``."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator
from itertools import islice, takewhile
from typing import NamedTuple

import numpy as np

from hopefear.core.component import helper, kernel
from hopefear.core.hashing import key_slot, mix
from hopefear.data.files import ReadReport, fill_blocks, line_of
from hopefear.data.moses.word_hashes import NEWLINE, at_bars, check_text, split_words
from hopefear.data.parse_numbers import (
    LARGEST,
    behind_line,
    is_blank,
    names_non_finite,
    parse_number,
    parse_plain,
)
from hopefear.data.sources import Source
from hopefear.data.text_formats import ConvertingReader
from hopefear.errors import InputError, Problem, shortened

DONE, BAD_ID, FEW_FIELDS, NO_NAME, APPEARED, VANISHED, REPEATED, WIDTH, ONE_VALUE = range(9)
BAD_VALUE, NOT_FINITE, BAD_SCORE, NO_BARS = range(9, 13)
_EQUALS, _UNDERSCORE = 61, 95
_LONGEST_ID = 18  # digits


class Layout(NamedTuple):
    """Feature names as a kernel reads them: the dense blocks, and names that may be absent.

    Dense name k is ``text[offsets[k]:offsets[k + 1]]``, its ``=`` included, and has the columns
    ``columns[k] .. columns[k + 1] - 1``; declared sparse names are in ``loose`` in the same way.
    """

    text: np.ndarray  # uint8
    offsets: np.ndarray  # int64[names + 1]
    columns: np.ndarray  # int64[names + 1]
    loose: np.ndarray  # uint8
    loose_offsets: np.ndarray  # int64


class LineScratch(NamedTuple):
    """Room for the candidates of a block, used again for the next."""

    ids: np.ndarray  # int64
    lines: np.ndarray  # int64, where each line begins
    tails: np.ndarray  # int64, behind the bars that follow the score, or the newline
    scores: np.ndarray  # float32
    dense: np.ndarray  # float32, row after row
    word_ptr: np.ndarray  # int64[n + 1]
    starts: np.ndarray  # int64[words]
    ends: np.ndarray  # int64[words]
    words: np.ndarray  # uint64[words]
    named_ptr: np.ndarray  # int64[n + 1]
    name_begins: np.ndarray  # int64[named]
    name_ends: np.ndarray  # int64[named]
    values: np.ndarray  # float32[named]
    last_row: np.ndarray  # int64[names], the last row that had each


@kernel
def parse_lines(text, i, end, layout, out, rows):
    """Parses ``text[i:end]``, whole lines, after ``rows`` rows; ``(code, position, rows, name)``.

    Where the code is not DONE, the position is that of what is wrong in a line and the name the
    number of the dense name it is about; nothing of that line is among the rows.
    """
    out.last_row[:] = -1
    while i < end:
        i = skip(text, i)
        if text[i] == NEWLINE:
            i += 1
            continue
        start = i
        number = np.int64(0)
        while 48 <= text[i] <= 57 and i - start < _LONGEST_ID:
            number = number * 10 + np.int64(text[i] - 48)
            i += 1
        if i == start or not (is_blank(text[i]) or text[i] == NEWLINE):
            return BAD_ID, start, rows, -1
        i = skip(text, i)
        if not at_bars(text, i):
            return (FEW_FIELDS if text[i] == NEWLINE else BAD_ID), start, rows, -1
        i, words, is_complete = split_words(
            text, i + 3, out.starts, out.ends, out.words, out.word_ptr[rows], True
        )
        if not is_complete:
            return FEW_FIELDS, start, rows, -1
        code, i, named, k = parse_features(text, i + 3, layout, out, rows)
        if code != DONE:
            return code, i, rows, k
        i = skip(text, i + 3)
        value, after, ok = parse_number(text, i)
        if not ok or not (is_blank(text[after]) or text[after] == NEWLINE):
            if text[i] == NEWLINE:
                return FEW_FIELDS, start, rows, -1
            return (NOT_FINITE if names_non_finite(text, i) else BAD_SCORE), i, rows, -1
        if not abs(value) <= LARGEST:
            return NOT_FINITE, i, rows, -1
        i = skip(text, after)
        if text[i] != NEWLINE and not at_bars(text, i):
            return NO_BARS, i, rows, -1
        out.ids[rows] = number
        out.lines[rows] = start
        out.tails[rows] = i if text[i] == NEWLINE else i + 3
        out.scores[rows] = value
        rows += 1
        out.word_ptr[rows] = words
        out.named_ptr[rows] = named
        i = behind_line(text, i)
    return DONE, i, rows, -1


@kernel
def parse_features(text, i, layout, out, row):
    """The features of one line, up to ``|||``; ``(code, position, named so far, name)``."""
    n = len(layout.offsets) - 1
    base = row * layout.columns[n]
    named = out.named_ptr[row]
    missing, expected = n, 0
    while True:
        i = skip(text, i)
        if text[i] == NEWLINE:
            return FEW_FIELDS, i, named, -1
        if at_bars(text, i):
            break
        name_index = -1
        if expected < n and is_name(text, i, layout.text, layout.offsets, expected):
            name_index = expected  # names have the same order on nearly every line
        else:
            name_index = find_name(text, i, layout.text, layout.offsets)
        if name_index >= 0:
            if out.last_row[name_index] == row:
                return REPEATED, i, named, name_index
            out.last_row[name_index] = row
            missing -= 1
            expected = name_index + 1
            name = i
            i += layout.offsets[name_index + 1] - layout.offsets[name_index]
            for c in range(
                base + layout.columns[name_index], base + layout.columns[name_index + 1]
            ):
                code, i, value = parse_value(text, i)
                if code != DONE:
                    return code, (name if code == WIDTH else i), named, name_index
                out.dense[c] = value
            if has_value(text, i):
                return WIDTH, name, named, name_index
            continue
        stop = token_end(text, i)
        if text[stop - 1] != _EQUALS or stop - 1 == i:
            return NO_NAME, i, named, -1
        if not (
            has_underscore(text, i, stop)
            or find_name(text, i, layout.loose, layout.loose_offsets) >= 0
        ):
            return APPEARED, i, named, -1
        code, after, value = parse_value(text, stop)
        if code == WIDTH or (code == DONE and has_value(text, after)):
            return ONE_VALUE, i, named, -1
        if code != DONE:
            return code, after, named, -1
        out.name_begins[named], out.name_ends[named] = i, stop - 1
        out.values[named] = value
        named += 1
        i = after
    if missing > 0:
        for k in range(n):
            if out.last_row[k] != row:
                return VANISHED, i, named, k
    return DONE, i, named, -1


@helper(inline=True)
def parse_value(text, i):
    """Returns ``(code, position, value)`` of the number after blanks; WIDTH where there is none."""
    i = skip(text, i)
    value, after = parse_plain(text, i)
    if after < 0:
        value, after, ok = parse_number(text, i)
        if not ok or not (is_blank(text[after]) or text[after] == NEWLINE):
            if text[i] == NEWLINE or at_bars(text, i) or text[token_end(text, i) - 1] == _EQUALS:
                return WIDTH, i, value
            return (NOT_FINITE if names_non_finite(text, i) else BAD_VALUE), i, value
    if not abs(value) <= LARGEST:
        return NOT_FINITE, i, value
    return DONE, after, value


@helper(inline=True)
def has_value(text, i):
    """Whether a number follows."""
    i = skip(text, i)
    c = text[i]
    if not (48 <= c <= 57 or c == 45 or c == 43 or c == 46):
        return False
    return text[token_end(text, i) - 1] != _EQUALS


@helper(inline=True)
def skip(text, i):
    """Position behind blanks."""
    while is_blank(text[i]):
        i += 1
    return i


@helper(inline=True)
def token_end(text, i):
    """Position of the blank or newline behind a token."""
    while not (is_blank(text[i]) or text[i] == NEWLINE):
        i += 1
    return i


@helper(inline=True)
def is_name(text, i, names, offsets, k):
    """Whether name ``k`` is at ``text[i]``."""
    for p in range(offsets[k], offsets[k + 1]):
        if names[p] != text[i]:  # names hold no newline, so this ends before the padding does
            return False
        i += 1
    return is_blank(text[i]) or text[i] == NEWLINE


@kernel
def find_name(text, i, names, offsets):
    """Number of the name at ``text[i]``, -1 where it is none of them."""
    for k in range(len(offsets) - 1):
        if is_name(text, i, names, offsets, k):
            return k
    return -1


@helper(inline=True)
def has_underscore(text, i, stop):
    """Whether the token has an underscore, as sparse names do."""
    while i < stop and text[i] != _UNDERSCORE:
        i += 1
    return i < stop


@kernel
def candidate_keys(word_ptr, words, dense, named_ptr, names, values, keys):
    """Hashes the words and features of each candidate to 64 bits; values enter as their bits."""
    rows = len(keys)
    width = len(dense) // max(rows, 1)
    for c in range(rows):
        h = np.uint64(word_ptr[c + 1] - word_ptr[c])
        for k in range(word_ptr[c], word_ptr[c + 1]):
            h = mix(h, words[k])
        for k in range(c * width, (c + 1) * width):
            h = mix(h, np.uint64(dense[k]))
        total = np.uint64(0)
        for k in range(named_ptr[c], named_ptr[c + 1]):
            # A sum, because the order of sparse features varies.
            total += mix(np.uint64(names[k] + 1), np.uint64(values[k]))
        keys[c] = mix(h, total)


@kernel
def first_of_each(keys, starts, longest, keep):
    """Mark in each list the first candidate of every key; how many are kept."""
    size = 16
    while size < 2 * longest:
        size *= 2
    slots = np.zeros(size, np.int64)
    count = 0
    for i in range(len(starts) - 1):
        slots[:] = 0
        for c in range(starts[i], starts[i + 1]):
            slot = key_slot(slots, keys, keys[c])
            keep[c] = slots[slot] == 0
            if keep[c]:
                slots[slot] = c + 1
                count += 1
    return count


@kernel
def repeated_name(offsets, names, last, before):
    """The first entry whose candidate has that name already, -1 where there is none.

    ``last`` is the last candidate of each name, in a count that goes on from ``before``.
    """
    for c in range(len(offsets) - 1):
        for k in range(offsets[c], offsets[c + 1]):
            if last[names[k]] == before + c:
                return k
            last[names[k]] = before + c
    return -1


_LOOKED_AT = 50  # lines, for one that is not blank
BLOCK_BYTES = 1 << 18  # scratch takes ten times as much
FORM = "ID ||| words ||| Name= numbers … ||| score"

_BARS = re.compile(r"(?<!\S)\|\|\|(?!\S)")
_BARS_OF_BYTES = re.compile(rb"(?<!\S)\|\|\|(?!\S)")

Blocks = tuple[tuple[str, int], ...]

_EXPECTED = {
    BAD_ID: f"the number of a list before '|||' ({FORM})",
    FEW_FIELDS: FORM,
    NO_NAME: "a name that ends in '=', or '|||'",
    ONE_VALUE: "one number under a sparse name",
    BAD_VALUE: "a number",
    NOT_FINITE: "a finite number of at most 1e15 in size",
    BAD_SCORE: "a number as the score",
    NO_BARS: "'|||' or the end of the line behind the score",
}


class RawBlock(NamedTuple):
    """Candidates of one block; the arrays are used again for the next."""

    path: str
    buffer: np.ndarray
    first_line: int
    scratch: LineScratch
    rows: int

    def line(self, row: int) -> int:
        """Line number of a candidate."""
        return line_of(self.buffer, int(self.scratch.lines[row]), self.first_line)


class MosesLayout:
    """The dense names of the first line, and how many numbers each has.

    Parameters
    ----------
    dense : collection of str
        Names that are dense although they have an underscore and one number.
    sparse : collection of str
        Names without an underscore that may be absent from a line.
    """

    def __init__(self, dense: Collection[str] = (), sparse: Collection[str] = ()) -> None:
        self.dense, self.sparse = frozenset(dense), frozenset(sparse)
        self.blocks: Blocks | None = None
        self.arrays: Layout | None = None
        self.used = False  # whether any candidate has it

    @property
    def width(self) -> int:
        return sum(width for _, width in self.blocks or ())

    def learn(self, line: str) -> None:
        """Takes the names of a line; errors in it are left for the kernel to report."""
        fields = _BARS.split(line)
        sizes: dict[str, int] = {}
        name = ""
        for token in fields[2].split() if len(fields) > 2 else ():
            if token.endswith("="):
                name = "" if token[:-1] in sizes else token[:-1]
                sizes.setdefault(name, 0)
            elif name:
                sizes[name] += 1
        blocks = ((name, max(1, size)) for name, size in sizes.items() if name)
        self.blocks = tuple((name, size) for name, size in blocks if self._is_dense(name, size))
        text, offsets = _packed([name for name, _ in self.blocks])
        columns = np.cumsum([0, *(size for _, size in self.blocks)])
        self.arrays = Layout(text, offsets, columns, *_packed(sorted(self.sparse)))

    def _is_dense(self, name: str, size: int) -> bool:
        if name in self.sparse:
            return False
        return size > 1 or "_" not in name or name in self.dense

    def expected(self, code: int, k: int) -> str:
        """Describes the text expected where the kernel stopped (-1: not at a dense name)."""
        blocks = self.blocks or ()
        if code == APPEARED:
            names = shortened(", ".join(name for name, _ in blocks), 500) or "none"
            return (
                f"one of the dense names of the first line ({names}), or a sparse name, which has "
                "a '_' (in Python: or is declared as sparse)"
            )
        if code == REPEATED:
            return f"{shortened(blocks[k][0])}= once in a line"
        if code in (WIDTH, VANISHED):
            name, width = blocks[k]
            numbers = "1 number" if width == 1 else f"{width} numbers"
            return f"{numbers} under {shortened(name)}=, as on the first line"
        return _EXPECTED[code]


def raw_blocks(
    path: str | os.PathLike[str],
    layout: MosesLayout,
    block_bytes: int = BLOCK_BYTES,
    check: Callable[[RawBlock], None] | None = None,
    report: ReadReport | None = None,
) -> Iterator[RawBlock]:
    """Parse a file block by block; the first line of the first file makes the layout.

    Parameters
    ----------
    path : str or path
        Plain or compressed UTF-8 file; ``-`` is standard input.
    layout : MosesLayout
        What the lines must hold; filled in where it is still empty.
    block_bytes : int
        Text to hold at a time; larger needs more memory and fewer steps.
    check : callable, optional
        Raises InputError about a line of a block for further reasons.
    report : ReadReport, optional
        Where bad lines are counted, which are then left out; without one they are errors.
    """
    path = Source(path)
    first = next((line for line in islice(path.look(), _LOOKED_AT) if line.strip()), b"")
    if _usual_line(first) != first:
        path = ConvertingReader(path, lambda stream: map(_usual_line, stream))
    parser = _Parser(str(path), layout, report)
    any_line = False
    for buffer, length, first_line in fill_blocks(path, block_bytes):
        while True:
            try:
                raw = parser.block(buffer, length, first_line)
                if raw is not None and check is not None:
                    check(raw)
                break
            except InputError as error:
                parser.skip(error, buffer, length, first_line)
                if not layout.used:
                    layout.arrays = None  # it may be the bad line's
        if raw is not None:
            any_line = layout.used = True
            yield raw
    if not any_line:
        problem = Problem("the file is empty")
        if report and report.skipped:
            problem = Problem(f"all {report.skipped} lines are bad and were skipped")
        raise InputError(parser.name, 0, f"at least one candidate ({FORM})", problem)


def _usual_line(line: bytes) -> bytes:
    """A line of earlier versions of Moses as later ones write it.

    >>> _usual_line(b"0|||a b|||d: 0 -7.6 lm: -3|||-4")
    b'0 ||| a b ||| d= 0 -7.6 lm= -3 ||| -4'
    """
    bars, between = _BARS_OF_BYTES, b"|||"
    if re.match(rb"\s*[0-9]+\|\|\|", line):
        bars, between = re.compile(rb"\|\|\|"), b" ||| "
    fields = bars.split(line)
    if len(fields) > 2 and re.match(rb"\s*\S+:\s", fields[2]):
        fields[2] = re.sub(rb":(?!\S)", b"=", fields[2])
    return between.join(fields)


class _Parser:
    """Blocks of one file; bad lines become blank ones where there is a report."""

    def __init__(self, name: str, layout: MosesLayout, report: ReadReport | None) -> None:
        self.name, self.layout, self.report = name, layout, report
        self.scratch: LineScratch | None = None
        self.room = 0

    def block(self, buffer: np.ndarray, length: int, first_line: int) -> RawBlock | None:
        """The candidates of a block, None where it has none."""
        check_text(buffer[:length].data, self.name, first_line)
        layout = self.layout
        if layout.arrays is None:
            first = _first_line(buffer, length)
            if not first:
                return None
            layout.learn(first)
            self.scratch = None
        assert layout.arrays is not None
        if self.scratch is None or self.room < length:
            self.scratch, self.room = _scratch(length, layout), length
        i, rows = 0, 0
        while True:
            with np.errstate(over="ignore"):  # uncompiled kernels warn where compiled ones do not
                code, i, rows, k = parse_lines(buffer, i, length, layout.arrays, self.scratch, rows)
            if code == DONE:
                return RawBlock(self.name, buffer, first_line, self.scratch, rows) if rows else None
            actual = token_at(buffer, i, length)
            if code == VANISHED:
                actual = Problem("the line has no such name")
            elif code == WIDTH:
                actual = _numbers(buffer[i:length].tobytes())
            elif code == FEW_FIELDS:
                actual = _line(buffer, i, length)
            line = line_of(buffer, i, first_line)
            error = InputError(self.name, line, layout.expected(code, k), actual)
            if not rows and not layout.used:
                raise error  # the caller may continue with another layout
            i = self.skip(error, buffer, length, first_line)

    def skip(self, error: InputError, buffer: np.ndarray, length: int, first_line: int) -> int:
        """Blank a bad line, or raise the error; the position behind the line."""
        if self.report is None or not error.line:
            raise error
        self.report.skip(str(error))
        ends = np.flatnonzero(buffer[:length] == NEWLINE)
        k = error.line - first_line
        buffer[ends[k - 1] + 1 if k else 0 : ends[k]] = 32
        return int(ends[k]) + 1


def _scratch(length: int, layout: MosesLayout) -> LineScratch:
    """Arrays large enough for a block: a number and a word take 2 bytes, a line 14."""
    lines, short = length // 14 + 2, length // 2 + layout.width + 2
    named = length // 4 + 2
    assert layout.arrays is not None
    return LineScratch(
        ids=np.empty(lines, np.int64),
        lines=np.empty(lines, np.int64),
        tails=np.empty(lines, np.int64),
        scores=np.empty(lines, np.float32),
        dense=np.empty(short, np.float32),
        word_ptr=np.zeros(lines + 1, np.int64),
        starts=np.empty(short, np.int64),
        ends=np.empty(short, np.int64),
        words=np.empty(short, np.uint64),
        named_ptr=np.zeros(lines + 1, np.int64),
        name_begins=np.empty(named, np.int64),
        name_ends=np.empty(named, np.int64),
        values=np.empty(named, np.float32),
        last_row=np.empty(len(layout.arrays.offsets) - 1, np.int64),
    )


def _packed(names: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Names with their ``=`` one behind the other, and where each begins."""
    pieces = [f"{name}=".encode() for name in names]
    offsets = np.cumsum([0, *map(len, pieces)])
    return np.frombuffer(b"".join(pieces), np.uint8), offsets


def _first_line(buffer: np.ndarray, length: int) -> str:
    for line in buffer[:length].tobytes().split(b"\n"):
        if line.strip():
            return line.decode()
    return ""


def _line(buffer: np.ndarray, i: int, end: int) -> str:
    """The line that position i is in, or what there is of it."""
    start = buffer[max(0, i - 4096) : i].tobytes().rfind(b"\n") + 1 + max(0, i - 4096)
    return (
        buffer[start : min(start + 200, end)].tobytes().split(b"\n")[0].decode("utf-8", "replace")
    )


def _numbers(text: bytes) -> Problem:
    """Counts and quotes the numbers after the name at the beginning of a text.

    >>> _numbers(b"TM0= 1 2 3 ||| 1")
    "this line has 3: 'TM0= 1 2 3'"
    """
    name, *tokens = text.split(b"\n", 1)[0].decode("utf-8", "replace").split()
    values = list(takewhile(lambda token: token != "|||" and token[-1] != "=", tokens))
    return Problem(f"this line has {len(values)}: {shortened(' '.join((name, *values)))!r}")


def token_at(buffer: np.ndarray, i: int, end: int) -> str:
    words = buffer[i : min(i + 200, end)].tobytes().split(None, 1)
    return words[0].decode("utf-8", "backslashreplace") if words else ""

"""Moses N-best files in blocks of candidates, as the file has them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from hopefear.data.files import ReadReport, fill_blocks, line_of
from hopefear.data.moses import kernel as codes
from hopefear.data.moses.kernel import DONE, Layout, Scratch, parse_lines
from hopefear.data.moses.words import NEWLINE, check_text
from hopefear.errors import InputError

BLOCK_BYTES = 1 << 18  # scratch takes ten times as much
FORM = "ID ||| words ||| Name= numbers … ||| score"

_BARS = re.compile(r"(?<!\S)\|\|\|(?!\S)")

Blocks = tuple[tuple[str, int], ...]

_EXPECTED = {
    codes.BAD_ID: f"the number of a list before '|||' ({FORM})",
    codes.FEW_FIELDS: FORM,
    codes.NO_NAME: "a name that ends in '=', or '|||'",
    codes.ONE_VALUE: "one number under a sparse name",
    codes.BAD_VALUE: "a number",
    codes.NOT_FINITE: "a finite number of at most 1e15 in size",
    codes.BAD_SCORE: "a number as the score",
    codes.NO_BARS: "'|||' or the end of the line behind the score",
}


class RawBlock(NamedTuple):
    """Candidates of one block; the arrays are used again for the next."""

    path: str
    buffer: np.ndarray
    first_line: int
    scratch: Scratch
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
        """Take the names of a line; whatever is wrong with it the kernel will find."""
        fields = _BARS.split(line)
        found: dict[str, int] = {}
        name = ""
        for token in fields[2].split() if len(fields) > 2 else ():
            if token.endswith("="):
                name = "" if token[:-1] in found else token[:-1]
                found.setdefault(name, 0)
            elif name:
                found[name] += 1
        blocks = ((name, max(1, size)) for name, size in found.items() if name)
        self.blocks = tuple((name, size) for name, size in blocks if self._is_dense(name, size))
        text, offsets = _packed([name for name, _ in self.blocks])
        columns = np.cumsum([0, *(size for _, size in self.blocks)])
        self.arrays = Layout(text, offsets, columns, *_packed(sorted(self.sparse)))

    def _is_dense(self, name: str, size: int) -> bool:
        if name in self.sparse:
            return False
        return size > 1 or "_" not in name or name in self.dense

    def expected(self, code: int, k: int) -> str:
        """What should have stood where the kernel stopped, at the dense name k if it is not -1."""
        blocks = self.blocks or ()
        if code == codes.APPEARED:
            names = ", ".join(name for name, _ in blocks) or "none"
            return (
                f"one of the dense names of the first line ({names}), or a sparse name, which has "
                "a '_' (in Python: or is declared as sparse)"
            )
        if code == codes.REPEATED:
            return f"{blocks[k][0]}= once in a line"
        if code in (codes.WIDTH, codes.VANISHED):
            name, width = blocks[k]
            numbers = "1 number" if width == 1 else f"{width} numbers"
            return f"{numbers} under {name}=, as on the first line"
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
        Raises InputError about a line of a block for reasons of its own.
    report : ReadReport, optional
        Where bad lines are counted, which are then left out; without one they are errors.
    """
    parser = _Parser(os.fspath(path), layout, report)
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
        found = f"{report.skipped} bad lines" if report and report.skipped else "an empty file"
        raise InputError(parser.name, 0, f"at least one candidate ({FORM})", found)


class _Parser:
    """Blocks of one file; bad lines become blank ones where there is a report."""

    def __init__(self, name: str, layout: MosesLayout, report: ReadReport | None) -> None:
        self.name, self.layout, self.report = name, layout, report
        self.scratch: Scratch | None = None
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
            found = token_at(buffer, i, length)
            if code == codes.VANISHED:
                found = "no such name"
            elif code == codes.WIDTH:
                found = _numbers(buffer[i:length].tobytes())
            elif code == codes.FEW_FIELDS:
                found = _line(buffer, i, length)
            line = line_of(buffer, i, first_line)
            error = InputError(self.name, line, layout.expected(code, k), found)
            if not rows and not layout.used:
                raise error  # whoever goes on begins with another layout
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


def _scratch(length: int, layout: MosesLayout) -> Scratch:
    """Arrays large enough for a block: a number and a word take 2 bytes, a line 14."""
    lines, short = length // 14 + 2, length // 2 + layout.width + 2
    named = length // 4 + 2
    assert layout.arrays is not None
    return Scratch(
        ids=np.empty(lines, np.int64),
        lines=np.empty(lines, np.int64),
        tails=np.empty(lines, np.int64),
        scores=np.empty(lines, np.float32),
        dense=np.empty(short, np.float32),
        word_ptr=np.zeros(lines + 1, np.int64),
        begins=np.empty(short, np.int64),
        ends=np.empty(short, np.int64),
        words=np.empty(short, np.uint64),
        named_ptr=np.zeros(lines + 1, np.int64),
        name_begins=np.empty(named, np.int64),
        name_ends=np.empty(named, np.int64),
        values=np.empty(named, np.float32),
        seen=np.empty(len(layout.arrays.offsets) - 1, np.int64),
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


def _numbers(text: bytes) -> str:
    """How many numbers stand behind the name that a text begins with, and which.

    >>> _numbers(b"TM0= 1 2 3 ||| 1")
    '3: TM0= 1 2 3'
    """
    name, *tokens = text.split(b"\n", 1)[0].decode("utf-8", "replace").split()
    values = list(takewhile(lambda token: token != "|||" and token[-1] != "=", tokens))
    return f"{len(values)}: {' '.join((name, *values))}"


def token_at(buffer: np.ndarray, i: int, end: int) -> str:
    words = buffer[i : min(i + 200, end)].tobytes().split(None, 1)
    return words[0].decode("utf-8", "backslashreplace") if words else ""

"""Lines of files in blocks, and reports of what readers left out."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field, fields

import numpy as np

from hopefear.core.progress import Stage, stage
from hopefear.data.sources import BOM, MAX_LINE_BYTES, open_bytes
from hopefear.errors import HopefearError, InputError, Problem

MAX_LISTED = 100


@dataclass
class ReadReport:
    """Counts that a reader fills in; hand one in to see them.

    Attributes
    ----------
    rows : int
        Rows that were read.
    skipped : int
        Bad lines left out under ``on_error="skip"``.
    messages : list of str
        What was wrong with them: the first 100.
    unknown_features : int
        Values dropped because the given feature map lacks their id or n-gram.
    unknown_labels : int
        Rows whose label is absent or not among the given classes.
    unsorted : int
        Lines whose feature ids were not in rising order, and were sorted.
    repeated : int
        Feature ids that a line had before, and whose values were added to the first.
    qids : int
        Times that a ``qid:``, which is for rankings, was left out.
    tabbed : int
        Texts to predict whose part before a tab is no class, and was taken as text.
    notes : list of str
        What was recognised, for the user.
    """

    rows: int = 0
    skipped: int = 0
    messages: list[str] = field(default_factory=list)
    unknown_features: int = 0
    unknown_labels: int = 0
    unsorted: int = 0
    repeated: int = 0
    qids: int = 0
    tabbed: int = 0
    notes: list[str] = field(default_factory=list)

    def skip(self, message: str) -> None:
        """Count a bad line, and list it while there are few."""
        self.skipped += 1
        if len(self.messages) < MAX_LISTED:
            self.messages.append(message)

    def add(self, later: ReadReport) -> None:
        """Count in what a reader of later lines has counted."""
        for counter in fields(self):
            if counter.type == "int":
                total = getattr(self, counter.name) + getattr(later, counter.name)
                setattr(self, counter.name, total)
        self.messages += later.messages[: MAX_LISTED - len(self.messages)]
        self.notes += later.notes


BLOCK_BYTES = 1 << 20
PADDING = 16  # newlines behind every block, so that kernels may look ahead without a check


def read_blocks(
    path: str | os.PathLike[str], size: int = BLOCK_BYTES
) -> Iterator[tuple[bytes, int]]:
    """Yield ``(block, first line number)``; every block ends with a newline.

    Parameters
    ----------
    path : str or path
        As for :func:`open_bytes`. A byte-order mark is dropped.
    size : int
        Bytes to read at a time; larger needs more memory and fewer steps. A longer line makes a
        longer block.
    """
    for buffer, length, line in fill_blocks(path, size):
        yield buffer[:length].tobytes(), line


def fill_blocks(
    path: str | os.PathLike[str],
    size: int = BLOCK_BYTES,
    max_line: int = MAX_LINE_BYTES,
    n_buffers: int = 1,
) -> Iterator[tuple[np.ndarray, int, int]]:
    """Like :func:`read_blocks`, without a copy: ``(buffer, length, first line number)``.

    The buffer is used again ``n_buffers`` blocks later; behind ``length`` it holds newlines.
    """
    name = os.fspath(path)
    buffers = deque(np.empty(max(size, len(BOM)) + PADDING, np.uint8) for _ in range(n_buffers))
    buffer = buffers.popleft()
    flags = np.empty(0, bool)
    kept_bytes, line, first = 0, 1, True
    tail = b""
    # The size of compressed text is unknown until it is read.
    total = None if name.endswith((".gz", ".bz2", ".xz", ".zst")) else file_size(path) or None
    title = f"reading {os.path.basename(name)}"
    # Lines of a pipe are read when they come, and not when a block is full; somebody may type them,
    # so nothing is drawn.
    pipe = is_pipe(path)
    watched = contextlib.nullcontext(Stage(title)) if pipe else stage(title, total, "bytes")
    with open_bytes(path) as stream, watched as work:
        fill = stream.readinto1 if pipe else stream.readinto
        while True:
            if kept_bytes == len(buffer) - PADDING:
                if kept_bytes >= max_line:
                    raise InputError(
                        name,
                        line,
                        f"lines of at most {max_line} bytes",
                        Problem("this one is longer"),
                    )
                buffer = np.concatenate([buffer, np.empty(kept_bytes, np.uint8)])
            n_read = fill(buffer[kept_bytes : len(buffer) - PADDING].data)
            n_bytes = kept_bytes + n_read
            if first:
                n_bytes = _without_mark(buffer, n_bytes, name)
                first = False
            work.advance(n_read)
            if n_read == 0:
                if n_bytes:
                    buffer[n_bytes] = 10
                    yield _padded(buffer, n_bytes + 1), n_bytes + 1, line
                return
            end = _last_newline(buffer, kept_bytes, n_bytes)
            if end == 0:
                kept_bytes = n_bytes
                continue
            tail = buffer[end:n_bytes].tobytes()
            yield _padded(buffer, end), end, line
            if len(flags) < end:
                flags = np.empty(len(buffer), bool)
            line += count_lines(buffer[:end], flags)
            kept_bytes = len(tail)
            buffers.append(buffer)
            buffer = buffers.popleft()
            if kept_bytes > len(buffer) - PADDING:  # behind a long line, for which another one grew
                buffer = np.empty(kept_bytes + PADDING, np.uint8)
            buffer[:kept_bytes] = np.frombuffer(tail, np.uint8)


def file_size(path: str | os.PathLike[str]) -> int:
    """Returns the bytes of a file on disk, 0 where they are unknown before reading."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def is_pipe(path: str | os.PathLike[str]) -> bool:
    """Whether a path is standard input from a pipe or a terminal, or a named pipe."""
    name = os.fspath(path)
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode if name == "-" else os.stat(name).st_mode
    except (OSError, ValueError, AttributeError):
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or (name == "-" and stat.S_ISCHR(mode))


def count_lines(text: np.ndarray, flags: np.ndarray | None = None) -> int:
    """Counts newlines in an array of bytes; ``flags`` is scratch of as many booleans."""
    out = None if flags is None else flags[: len(text)]
    return int(np.count_nonzero(np.equal(text, 10, out=out)))


def line_of(buffer: np.ndarray, position: int, first_line: int) -> int:
    """Number of the line that holds this byte."""
    return first_line + count_lines(buffer[:position])


def _padded(buffer: np.ndarray, length: int) -> np.ndarray:
    buffer[length : length + PADDING - 1] = 10
    return buffer


def _last_newline(buffer: np.ndarray, start: int, stop: int) -> int:
    """Position behind the last newline in ``buffer[start:stop]``, 0 when there is none."""
    step = 1 << 12
    for begin in range(max(start, stop - step), start - step, -step):
        begin = max(begin, start)
        position = buffer[begin : min(begin + step, stop)].tobytes().rfind(b"\n")
        if position >= 0:
            return begin + position + 1
        if begin == start:
            break
    return 0


def _without_mark(buffer: np.ndarray, have: int, name: str) -> int:
    head = buffer[: min(have, 4)].tobytes()
    if head.startswith(BOM):
        buffer[: have - 3] = buffer[3:have].copy()
        return have - 3
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(
            name, 1, "UTF-8 text", Problem("the file is UTF-16: say --encoding utf-16")
        )
    return have


def check_on_error(on_error: str) -> None:
    """HopefearError unless the word is known."""
    if on_error not in ("raise", "skip"):
        raise HopefearError(f"on_error must be raise or skip, not {on_error!r}")


def require_rows(path: str | os.PathLike[str], count: int, report: ReadReport) -> None:
    """InputError for a file that gave no row."""
    if count == 0:
        skipped = f"all {report.skipped} lines are bad and were skipped"
        problem = Problem(skipped if report.skipped else "the file is empty")
        raise InputError(os.fspath(path), 0, "at least one row", problem)

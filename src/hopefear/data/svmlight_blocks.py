"""svmlight text in blocks of rows, as the file has them: raw ids, raw labels."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from hopefear.data.files import BLOCK_BYTES, file_size, fill_blocks, line_of
from hopefear.data.report import ReadReport
from hopefear.data.svmlight_kernel import DONE, EXPECTED, behind_line, parse_rows
from hopefear.errors import HopefearError, InputError


class RawRows(NamedTuple):
    """Rows of one block; the arrays are used again for the next."""

    indptr: np.ndarray  # int64[n + 1]
    ids: np.ndarray  # int64[nnz]
    values: np.ndarray  # float32[nnz]
    labels: np.ndarray  # float64[n], nan where a line has none
    line: Callable[[int], int]  # line number of a row
    share: float  # of the file, read by the end of this block; 0 where it is not known


def raw_blocks(
    path: str | os.PathLike[str],
    *,
    block_bytes: int = BLOCK_BYTES,
    require_labels: bool = True,
    on_error: str = "raise",
    report: ReadReport,
    watch: Callable[[memoryview], Any] | None = None,
) -> Iterator[RawRows]:
    """Parse a file block by block.

    Parameters
    ----------
    path : str or path
        The file; ``-`` is standard input.
    block_bytes : int
        Text to hold at a time.
    require_labels : bool
        Whether a line must begin with a label.
    on_error : {"raise", "skip"}
        What to do with a bad line.
    report : ReadReport
        Where skipped lines are counted.
    watch : callable, optional
        Gets the bytes of each block, for a hash of the source.
    """
    check_on_error(on_error)
    name = os.fspath(path)
    scratch = _Scratch(0)
    size, done = file_size(path), 0
    for buffer, length, first_line in fill_blocks(path, block_bytes):
        if watch is not None:
            watch(buffer[:length].data)
        if scratch.room < length:
            scratch = _Scratch(length)
        done += length
        rows, i, line, counted = 0, 0, first_line, 0
        while True:
            with np.errstate(over="ignore"):  # uncompiled kernels warn where compiled ones do not
                code, i, rows = parse_rows(
                    buffer, i, length, not require_labels, *scratch.arrays, rows
                )
            if code == DONE:
                break
            line += int(np.count_nonzero(buffer[counted:i] == 10))
            counted = i
            error = InputError(name, line, EXPECTED[code], _token(buffer, i, length))
            if on_error == "raise":
                raise error
            report.skip(str(error))
            i = behind_line(buffer, i)
        if rows:
            yield scratch.rows(rows, buffer, first_line, done / size if size else 0.0)


class _Scratch:
    """Arrays large enough for every row of a block: a pair takes 4 bytes, a row 2."""

    def __init__(self, length: int) -> None:
        self.room = length
        self.arrays = (
            np.empty(length // 4 + 2, np.int64),
            np.empty(length // 4 + 2, np.float32),
            np.zeros(length // 2 + 2, np.int64),
            np.empty(length // 2 + 2, np.float64),
            np.empty(length // 2 + 2, np.int64),
        )

    def rows(self, count: int, buffer: np.ndarray, first_line: int, share: float) -> RawRows:
        ids, values, indptr, labels, starts = self.arrays
        nnz = int(indptr[count])
        return RawRows(
            indptr[: count + 1],
            ids[:nnz],
            values[:nnz],
            labels[:count],
            lambda row: line_of(buffer, int(starts[row]), first_line),
            share,
        )


def check_on_error(on_error: str) -> None:
    """HopefearError unless the word is known."""
    if on_error not in ("raise", "skip"):
        raise HopefearError(f"on_error must be raise or skip, not {on_error!r}")


def _token(buffer: np.ndarray, i: int, end: int) -> str:
    text = buffer[i : min(i + 100, end)].tobytes()
    if b"\0" in text:
        return "binary data"
    words = text.split(None, 1)
    return words[0].decode("utf-8", "backslashreplace") if words else ""

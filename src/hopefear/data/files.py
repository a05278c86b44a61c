"""Bytes in and out: plain or compressed files, standard input, lines in blocks, reports."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hopefear.errors import HopefearError, InputError

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
    """

    rows: int = 0
    skipped: int = 0
    messages: list[str] = field(default_factory=list)
    unknown_features: int = 0
    unknown_labels: int = 0

    def skip(self, message: str) -> None:
        """Count a bad line, and list it while there are few."""
        self.skipped += 1
        if len(self.messages) < MAX_LISTED:
            self.messages.append(message)


BLOCK_BYTES = 1 << 20
MAX_LINE_BYTES = 1 << 28
PADDING = 16  # newlines behind every block, so that kernels may look ahead without a check

_MAGIC = {
    "gzip": b"\x1f\x8b\x08",
    "xz": b"\xfd7zXZ\x00",
    "bzip2": b"BZh",
    "zstd": b"\x28\xb5\x2f\xfd",
}
_SUFFIX = {".gz": "gzip", ".xz": "xz", ".bz2": "bzip2", ".zst": "zstd"}
_BOM = b"\xef\xbb\xbf"


def open_bytes(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a file for reading, unpacked on the way; every failure is a HopefearError.

    Compression is known by the first bytes of the file, so a wrong or missing suffix does no
    harm; a suffix that promises what the bytes do not hold is refused.

    Parameters
    ----------
    path : str or path
        Plain, ``.gz``, ``.xz``, ``.bz2`` or ``.zst`` file; ``-`` is standard input.
    """
    name = os.fspath(path)
    try:
        if name == "-":
            raw: Any = sys.stdin.buffer
        else:
            raw = open(name, "rb")  # noqa: SIM115 - handed on to the caller
    except (OSError, ValueError) as error:
        raise HopefearError(f"{name}: cannot be read: {_reason(error)}") from error
    if not isinstance(raw, io.BufferedReader):
        raw = io.BufferedReader(_Reader(raw, name))
    try:
        stream = _unpacked(raw, raw.peek(6)[:6], name)
    except BaseException as error:
        if name != "-":
            raw.close()
        if isinstance(error, OSError):
            raise HopefearError(f"{name}: cannot be read: {_reason(error)}") from error
        raise
    return io.BufferedReader(_Reader(stream, name, raw), BLOCK_BYTES)


def _unpacked(raw: Any, head: bytes, name: str) -> Any:
    promised = _SUFFIX.get(Path(name).suffix.lower())
    packing = next((kind for kind, magic in _MAGIC.items() if head.startswith(magic)), None)
    if packing == "bzip2" and promised != "bzip2" and not head[4:].startswith(b"1A"):
        packing = None  # text may begin with BZh
    if promised and packing != promised:
        raise InputError(name, 0, f"{promised} data, as the name says", _shown(head))
    if packing == "gzip":
        return gzip.GzipFile(fileobj=raw)
    if packing == "xz":
        return lzma.LZMAFile(raw)
    if packing == "bzip2":
        return bz2.BZ2File(raw)
    if packing == "zstd":
        return _Zstd(raw, name)
    return raw


class _Reader(io.RawIOBase):
    """A stream whose failures name the file."""

    def __init__(self, stream: Any, name: str, raw: Any = None) -> None:
        self._stream, self._name, self._raw = stream, name, raw

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            if not hasattr(self._stream, "read1"):
                return self._stream.readinto(buffer)
            # Of a pipe what is there is enough. readinto1 would wait for more where some of it was
            # looked at before.
            piece = self._stream.read1(len(buffer))
            buffer[: len(piece)] = piece
            return len(piece)
        except EOFError as error:
            raise HopefearError(f"{self._name}: the compressed data is cut short") from error
        except (gzip.BadGzipFile, zlib.error, lzma.LZMAError, ValueError) as error:
            raise HopefearError(f"{self._name}: the compressed data is damaged: {error}") from error
        except OSError as error:
            raise HopefearError(f"{self._name}: cannot be read: {_reason(error)}") from error

    def close(self) -> None:
        # Standard input belongs to the process; unpackers leave the file beneath them open.
        if not self.closed and self._name != "-":
            for stream in (self._stream, self._raw):
                if stream is not None:
                    stream.close()
        super().close()


class _Zstd:
    """Zstandard frames; a missing end is an error, which the library's own reader forgives."""

    def __init__(self, raw: Any, name: str) -> None:
        try:
            import zstandard
        except ImportError as error:
            raise HopefearError(
                f"{name}: reading .zst needs the package zstandard; install hopefear[zstd]"
            ) from error
        self._raw, self._library = raw, zstandard
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._left, self._fresh = b"", True

    def readinto(self, buffer: Any) -> int:
        while not self._left:
            packed = self._frame.unused_data if self._frame.eof else b""
            packed = packed or self._raw.read(1 << 17)
            if self._frame.eof:
                self._frame = self._library.ZstdDecompressor().decompressobj()
                self._fresh = True
            if not packed:
                if not self._fresh:
                    raise EOFError
                return 0
            self._fresh = False
            try:
                self._left = self._frame.decompress(packed)
            except self._library.ZstdError as error:
                raise ValueError(str(error)) from error
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size

    def close(self) -> None:
        self._raw.close()


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
    stream: Any = None,
) -> Iterator[tuple[np.ndarray, int, int]]:
    """Like :func:`read_blocks`, without a copy: ``(buffer, length, first line number)``.

    The buffer is used again for the next block; behind ``length`` it holds newlines. ``stream`` is
    the file where it is open already; the path is for messages then.
    """
    name = os.fspath(path)
    buffer = np.empty(max(size, len(_BOM)) + PADDING, np.uint8)
    rest, line, first = 0, 1, True
    tail = b""
    with stream or open_bytes(path) as stream:
        while True:
            if rest == len(buffer) - PADDING:
                if rest >= max_line:
                    raise InputError(name, line, f"lines of at most {max_line} bytes", "more")
                buffer = np.concatenate([buffer, np.empty(rest, np.uint8)])
            got = stream.readinto(buffer[rest : len(buffer) - PADDING].data)
            have = rest + got
            if first:
                have = _without_mark(buffer, have, name)
                first = False
            if got == 0:
                if have:
                    buffer[have] = 10
                    yield _padded(buffer, have + 1), have + 1, line
                return
            end = _last_newline(buffer, rest, have)
            if end == 0:
                rest = have
                continue
            tail = buffer[end:have].tobytes()
            yield _padded(buffer, end), end, line
            line += count_lines(buffer[:end])
            rest = len(tail)
            buffer[:rest] = np.frombuffer(tail, np.uint8)


def file_size(path: str | os.PathLike[str]) -> int:
    """Bytes in a file as it lies on disk, 0 where they cannot be known before reading."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0


def count_lines(text: np.ndarray) -> int:
    """Newlines in an array of bytes."""
    return int(np.count_nonzero(text == 10))


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
        place = buffer[begin : min(begin + step, stop)].tobytes().rfind(b"\n")
        if place >= 0:
            return begin + place + 1
        if begin == start:
            break
    return 0


def _without_mark(buffer: np.ndarray, have: int, name: str) -> int:
    head = buffer[: min(have, 4)].tobytes()
    if head.startswith(_BOM):
        buffer[: have - 3] = buffer[3:have].copy()
        return have - 3
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(name, 1, "UTF-8 text", "UTF-16 text; convert it first")
    return have


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error)


def _shown(data: bytes) -> str:
    return data.decode("ascii", "backslashreplace") if data else "an empty file"


def check_on_error(on_error: str) -> None:
    """HopefearError unless the word is known."""
    if on_error not in ("raise", "skip"):
        raise HopefearError(f"on_error must be raise or skip, not {on_error!r}")


def require_rows(path: str | os.PathLike[str], count: int, report: ReadReport) -> None:
    """InputError for a file that gave no row."""
    if count == 0:
        what = f"{report.skipped} bad lines, all skipped" if report.skipped else "an empty file"
        raise InputError(os.fspath(path), 0, "at least one row", what)

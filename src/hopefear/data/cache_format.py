"""The layout of a cache file: a first page, sections on page borders, a JSON header at the end.

bytes 0-15     magic with the format version
bytes 16-31    position and length of the header, little-endian
bytes 32-95    SHA-256 of the header, in hexadecimal
from 4096 on   the sections, each on a page border
at the end     the header: sizes, types, places and hashes of the sections, and the rest
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Mapping
from typing import IO, Any

import numpy as np

from hopefear.errors import HopefearError

MAGIC = b"hopefear-cache 1"
PAGE = 4096
_FIRST = struct.Struct("<16sQQ64s")


class SectionWriter:
    """One array written piece by piece to its place in a file, with a running hash."""

    def __init__(self, out: IO[bytes], offset: int, dtype: Any) -> None:
        self._out, self._next = out, offset
        self.offset, self.dtype, self.count = offset, np.dtype(dtype), 0
        self._hash = hashlib.sha256()

    def write(self, piece: np.ndarray) -> None:
        piece = np.ascontiguousarray(piece, self.dtype)
        data = piece.view(np.uint8).data
        self._out.seek(self._next)
        self._out.write(data)
        self._hash.update(data)
        self._next += data.nbytes
        self.count += len(piece)

    def entry(self) -> dict[str, Any]:
        """What the header says of the section."""
        return {
            "dtype": self.dtype.str,
            "offset": self.offset,
            "count": self.count,
            "sha256": self._hash.hexdigest(),
        }


def page_up(offset: int) -> int:
    """The next page border."""
    return -(-offset // PAGE) * PAGE


def write_header(out: IO[bytes], offset: int, header: Mapping[str, Any]) -> None:
    """Write the header at a position, and the first page that points to it."""
    data = json.dumps(header).encode()
    out.seek(offset)
    out.write(data)
    out.seek(0)
    digest = hashlib.sha256(data).hexdigest().encode()
    out.write(_FIRST.pack(MAGIC, offset, len(data), digest))


def read_header(data: Any, name: str) -> dict[str, Any]:
    """The header of a mapped cache file, checked; HopefearError when it is not sound."""
    if len(data) < PAGE or data[:14] != MAGIC[:14]:
        raise HopefearError(f"{name}: not a hopefear cache")
    magic, offset, length, digest = _FIRST.unpack(data[: _FIRST.size])
    if magic != MAGIC:
        raise HopefearError(f"{name}: a cache of another format version; build it again")
    if offset + length != len(data):
        raise damaged(name, "its length is not what it was")
    text = data[offset : offset + length]
    if hashlib.sha256(text).hexdigest().encode() != digest:
        raise damaged(name, "its header has changed")
    try:
        header = json.loads(text)
    except ValueError:
        header = None
    if not isinstance(header, dict):
        raise damaged(name, "its header is not JSON")
    return header


def section(data: Any, entry: Any, name: str) -> np.ndarray:
    """Read-only view of a section of a mapped file."""
    try:
        dtype, offset, count = np.dtype(entry["dtype"]), entry["offset"], entry["count"]
        sound = (
            dtype.kind in "iuf"
            and isinstance(offset, int)
            and isinstance(count, int)
            and offset >= PAGE
            and count >= 0
            and offset + count * dtype.itemsize <= len(data)
        )
    except (TypeError, KeyError, ValueError):
        sound = False
    if not sound:
        raise damaged(name, "a section does not fit the file")
    return np.frombuffer(data, dtype, count, offset)


def damaged(name: str, what: str) -> HopefearError:
    """The error for a file that cannot be trusted."""
    return HopefearError(f"{name}: the cache is damaged: {what}; build it again")

"""Sources of bytes: plain or compressed files, pipes, standard input; light to import."""

from __future__ import annotations

import bz2
import codecs
import contextlib
import gzip
import io
import lzma
import os
import re
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

from hopefear.errors import HopefearError, InputError, Problem

MAX_LINE_BYTES = 1 << 28
MAX_SENTENCE_BYTES = 1 << 26
BOM = b"\xef\xbb\xbf"

_BUFFER = 1 << 20
_MAGIC = {
    "gzip": b"\x1f\x8b\x08",
    "xz": b"\xfd7zXZ\x00",
    "bzip2": b"BZh",
    "zstd": b"\x28\xb5\x2f\xfd",
}
_SUFFIX = {".gz": "gzip", ".xz": "xz", ".bz2": "bzip2", ".zst": "zstd"}
# Bytes that are unpacked at a time: 2 KiB of Zstandard are at most 64 MiB of text.
_PACKED = 1 << 11
_BLANK_LINE = re.compile(rb"\n[ \t\r]*\n")


def open_bytes(path: str | os.PathLike[str]) -> io.BufferedReader:
    """Open a file for reading, unpacked on the way; every failure is a HopefearError.

    Compression is known by the first bytes of the file, so a wrong or missing suffix does no
    harm; a suffix that promises what the bytes do not hold is refused.

    Parameters
    ----------
    path : str or path
        Plain, ``.gz``, ``.xz``, ``.bz2`` or ``.zst`` file; ``-`` is standard input. A `Source` is
        read from its beginning, whatever was looked at.
    """
    if isinstance(path, Source):
        return path.open()
    name = os.fspath(path)
    try:
        if name == "-":
            raw: Any = sys.stdin.buffer
        else:
            raw = open(name, "rb")  # noqa: SIM115 - handed on to the caller
    except (OSError, ValueError) as error:
        raise HopefearError(f"{name}: cannot be read: {_reason(error)}") from error
    if not isinstance(raw, io.BufferedReader):
        raw = io.BufferedReader(_UnpackingReader(raw, name))
    try:
        head = raw.peek(6)[:6]
        if not _is_plain(name):  # a pipe may bring the first bytes one by one
            head = raw.read(6)
            raw = io.BufferedReader(_Behind(head, raw))
        stream = unpacked(raw, head, name)
    except BaseException as error:
        if name != "-":
            raw.close()
        if isinstance(error, OSError):
            raise HopefearError(f"{name}: cannot be read: {_reason(error)}") from error
        raise
    return io.BufferedReader(_UnpackingReader(stream, name, raw), _BUFFER)


def load(path: str | os.PathLike[str]) -> bytes:
    """Returns all bytes of a file of sentences, unpacked.

    UTF-16 is refused, and so are bytes that no blank lines part into sentences.
    """
    pieces = []
    with open_bytes(path) as stream:
        piece, unparted, ended = stream.read1(_BUFFER), 0, False
        if piece.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise InputError(
                os.fspath(path),
                1,
                "UTF-8 text",
                Problem("the file is UTF-16: say --encoding utf-16"),
            )
        objects = piece.removeprefix(BOM).lstrip().startswith(b"{")  # one a line, no blank lines
        while piece:
            blank = _BLANK_LINE.search(piece) or (ended and piece.startswith((b"\n", b"\r\n")))
            blank = blank or (objects and b"\n" in piece)
            unparted = 0 if blank else unparted + len(piece)
            if unparted > MAX_SENTENCE_BYTES:
                raise endless_sentence(path, unparted)
            pieces.append(piece)
            ended = piece.endswith(b"\n")
            piece = stream.read1(_BUFFER)
    return b"".join(pieces)


def endless_sentence(path: str | os.PathLike[str], size: int) -> InputError:
    """Makes the error for a file with ``size`` bytes without a blank line."""
    problem = Problem(f"there are {size:,} bytes without a blank line")
    return InputError(os.fspath(path), 0, "sentences, with blank lines between them", problem)


class Source(str):
    """A path whose beginning can be looked at before it is read, though it be a pipe.

    It is a string like any path. What `look` has seen stays in front of what `open` gives, so that
    a pipe, a process substitution and standard input lose nothing; they can be opened once.

    Parameters
    ----------
    path : str or path
        As for :func:`open_bytes`.
    encoding : str, optional
        What the text is written in, such as ``latin-1``; it is UTF-8 for those who read it.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as f:
    ...     _ = f.write("hope\\nfear\\n")
    ...     f.flush()
    ...     source = Source(f.name)
    ...     next(source.look()), source.open().read()
    (b'hope', b'hope\\nfear\\n')
    """

    def __new__(cls, path: str | os.PathLike[str], encoding: str | None = None) -> Source:
        if isinstance(path, cls):
            return path
        self = super().__new__(cls, os.fspath(path))
        self._encoding = None if encoding is None else checked_encoding(encoding)
        self._stream, self._head, self._opened = None, bytearray(), False
        return self

    _stream: io.BufferedReader | None
    _head: bytearray
    _opened: bool
    _encoding: str | None = None

    def look(self) -> Iterator[bytes]:
        """Lines from the beginning on, without newlines or byte-order mark; they stay there."""
        try:
            begin = end = len(BOM) if self._begun().startswith(BOM) else 0
            while True:
                newline = self._head.find(b"\n", end)
                if newline >= 0:
                    yield bytes(self._head[begin:newline])
                    begin = end = newline + 1
                    continue
                end = len(self._head)
                if end - begin > MAX_LINE_BYTES or not self._read_more():
                    if end > begin:
                        yield bytes(self._head[begin:])
                    return
        finally:
            if self._stream is not None and _is_plain(self):  # it can be opened again
                self._stream.close()
                self._stream, self._head = None, bytearray()

    def open(self) -> io.BufferedReader:
        """All bytes, unpacked; of what is no plain file once only."""
        stream = self._ready()
        head, self._head, self._stream = self._head, bytearray(), None
        self._opened = True
        return io.BufferedReader(_Behind(bytes(head), stream), _BUFFER) if head else stream

    def _begun(self) -> bytearray:
        while len(self._head) < len(BOM) and self._read_more():
            pass
        return self._head

    def _ready(self) -> io.BufferedReader:
        if self._stream is None:
            if self._opened and not _is_plain(self):
                raise HopefearError(
                    f"{self}: is a pipe and has been read already; store what it holds in a file"
                )
            self._stream = open_bytes(str(self))
            if self._encoding is not None:
                recoded = _Recoded(self._stream, self, self._encoding)
                self._stream = io.BufferedReader(recoded, _BUFFER)
        return self._stream

    def _read_more(self) -> bool:
        piece = self._ready().read1(1 << 16)
        self._head += piece
        return bool(piece)


class _Behind(io.RawIOBase):
    """A stream whose first bytes were read ahead."""

    def __init__(self, head: bytes, stream: io.BufferedReader) -> None:
        self._head, self._stream = head, stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._head:
            return _at_once(self._stream)(buffer)
        size = min(len(buffer), len(self._head))
        buffer[:size], self._head = self._head[:size], self._head[size:]
        return size

    def close(self) -> None:
        if not self.closed and self._stream is not getattr(sys.stdin, "buffer", None):
            self._stream.close()
        super().close()


class _Recoded(io.RawIOBase):
    """Text of another encoding as UTF-8."""

    def __init__(self, stream: io.BufferedReader, name: str, encoding: str) -> None:
        self._stream, self._name, self._encoding = stream, name, encoding
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._buffered, self._line = b"", 1

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = b" "
        while piece and not self._buffered:
            piece = self._stream.read1(1 << 16)
            try:
                text = self._decoder.decode(piece, final=not piece)
                self._buffered = text.encode()
            except UnicodeError as error:
                problem, before = Problem("this is no such text"), b""
                if isinstance(error, UnicodeDecodeError):
                    problem = Problem(f"the byte 0x{error.object[error.start]:02x} is none")
                    before = error.object[: error.start]
                line = self._line + before.count(b"\n")
                raise InputError(self._name, line, f"{self._encoding} text", problem) from None
            self._line += text.count("\n")
        size = min(len(buffer), len(self._buffered))
        buffer[:size], self._buffered = self._buffered[:size], self._buffered[size:]
        return size

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()


def checked_encoding(name: str) -> str | None:
    """The name of an encoding as Python has it, None for UTF-8; HopefearError for no encoding.

    >>> checked_encoding("Latin-1"), checked_encoding("UTF8")
    ('iso8859-1', None)
    """
    try:
        codec = codecs.lookup(name)
        codecs.getincrementaldecoder(name)().decode(b"", True).encode()
    except (LookupError, ValueError, TypeError, AttributeError):
        raise HopefearError(
            f"there is no encoding {name!r}; there are utf-8, utf-16, latin-1, windows-1252, "
            "windows-1251, shift_jis, gb18030 and others that Python knows"
        ) from None
    return None if codec.name in ("utf-8", "utf-8-sig") else codec.name


def utf8_wanted(data: bytes) -> str:
    """Describes bytes that are not UTF-8: the first wrong byte, its position, the likely encoding.

    >>> utf8_wanted("café".encode("latin-1"))
    'UTF-8 text (byte 4 is 0xe9; perhaps it is windows-1252: say --encoding windows-1252)'
    >>> utf8_wanted(b"PK\\3\\0\\xff")
    'UTF-8 text (byte 5 is 0xff; the file looks like a binary one)'
    """
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-8 text (perhaps it is utf-16: say --encoding utf-16)"
    try:
        data.decode()
    except UnicodeDecodeError as error:
        likely, position = _likely(data), error.start
        hint = f"perhaps it is {likely}: say --encoding {likely}"
        if b"\0" in data:
            hint = "the file looks like a binary one"
        return f"UTF-8 text (byte {position + 1} is 0x{data[position]:02x}; {hint})"
    return "UTF-8 text"


def _likely(data: bytes) -> str:
    """An encoding that suits bytes that are no UTF-8."""
    high = [c for c in data if c >= 0x80]
    pairs = sum(a >= 0x80 and b >= 0x80 for a, b in pairwise(data))
    if 2 * pairs >= len(high):  # letters that are not ASCII are adjacent
        if 10 * sum(c >= 0xE0 for c in high) > 7 * len(high):
            return "windows-1251"
        if 10 * sum(0xC0 <= c < 0xE0 for c in high) > 7 * len(high):
            return "koi8-r"
        # Two bytes from 0xa1 on make a character of GB 2312; others begin lower.
        for name in ("gb18030",) if min(high) >= 0xA1 else ("shift_jis", "gb18030"):
            with contextlib.suppress(UnicodeDecodeError):
                data.decode(name)
                return name
    return "windows-1252"


def _is_plain(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return path != "-"


def unpacked(raw: Any, head: bytes, name: str) -> Any:
    """Returns a stream of the text of a file that begins with ``head``."""
    promised = _SUFFIX.get(Path(name).suffix.lower())
    packing = next((kind for kind in _MAGIC if _begins(head, kind)), None)
    if packing == "bzip2" and promised != "bzip2" and not head[4:].startswith(b"1A"):
        packing = None  # text may begin with BZh
    if promised and packing != promised:
        raise InputError(name, 0, f"{promised} data, as the name says", _excerpt(head))
    if packing == "gzip":
        return gzip.GzipFile(fileobj=raw)
    if packing == "xz":
        return _Members(raw, packing, lzma.LZMADecompressor)
    if packing == "bzip2":
        return _Members(raw, packing, bz2.BZ2Decompressor)
    if packing == "zstd":
        try:
            import zstandard
        except ImportError as error:
            raise HopefearError(
                f"{name}: reading .zst needs the package zstandard; install hopefear[zstd]"
            ) from error
        return _Members(raw, packing, lambda: _ZstdFrame(zstandard))
    return raw


def _begins(head: bytes, packing: str) -> bool:
    # Parallel packers put a frame of Zstandard to be skipped before every other.
    skipped = packing == "zstd" and head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5
    return skipped or head.startswith(_MAGIC[packing])


class _UnpackingReader(io.RawIOBase):
    """A stream whose failures name the file."""

    def __init__(self, stream: Any, name: str, raw: Any = None) -> None:
        self._stream, self._name, self._raw = stream, name, raw
        self._readinto = stream.readinto if _is_plain(name) else _at_once(stream)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            # For a pipe the available bytes suffice; it must not block for more.
            return self._readinto(buffer)
        except EOFError as error:
            raise HopefearError(f"{self._name}: the compressed data is cut short") from error
        except (gzip.BadGzipFile, zlib.error, lzma.LZMAError, ValueError) as error:
            raise HopefearError(f"{self._name}: the compressed data is damaged: {error}") from error
        except OSError as error:
            raise HopefearError(f"{self._name}: cannot be read: {_reason(error)}") from error

    def close(self) -> None:
        # The process owns standard input; unpackers leave the file beneath them open.
        if not self.closed and self._name != "-":
            for stream in (self._stream, self._raw):
                if stream is not None:
                    stream.close()
        super().close()


def _at_once(stream: Any) -> Callable[[Any], int]:
    """Returns a ``readinto`` that returns at once with the bytes that are available.

    ``readinto1`` would, where some of it was looked at before.
    """
    if not hasattr(stream, "read1"):
        return stream.readinto

    def readinto(buffer: Any) -> int:
        piece = stream.read1(len(buffer))
        buffer[: len(piece)] = piece
        return len(piece)

    return readinto


class _Members:
    """Members of a compressed file, one behind the other.

    The files of Python's own modules end without a word at a member that is damaged or padded.

    Parameters
    ----------
    raw : BufferedReader
        The compressed bytes.
    packing : str
        Their kind, one of `_MAGIC`.
    new_member : callable
        Creates what unpacks one member, with the methods of :class:`bz2.BZ2Decompressor`.
    """

    def __init__(self, raw: io.BufferedReader, packing: str, new_member: Callable[[], Any]) -> None:
        self._raw, self._packing, self._new_member = raw, packing, new_member
        self._member: Any = new_member()
        self._packed = b""

    def readinto(self, buffer: Any) -> int:
        while self._member is not None:
            if self._member.eof:
                self._next_member()
                continue
            packed = b""
            if self._member.needs_input:
                packed, self._packed = self._packed or self._raw.read1(_PACKED), b""
                if not packed:
                    raise EOFError
            try:
                piece = self._member.decompress(packed, len(buffer))
            except OSError as error:  # of bz2
                raise ValueError(str(error)) from error
            if piece:
                buffer[: len(piece)] = piece
                return len(piece)
        return 0

    def _next_member(self) -> None:
        """Goes on to the next member; there is none at the end of the file."""
        padding, packed = 0, self._member.unused_data or self._raw.read1(_PACKED)
        while self._packing == "xz" and packed.startswith(b"\0"):
            remainder = packed.lstrip(b"\0")
            padding += len(packed) - len(remainder)
            packed = remainder or self._raw.read1(_PACKED)
        while packed and len(packed) < 6 and (piece := self._raw.read1(_PACKED)):
            packed += piece
        if padding % 4 or (packed and not _begins(packed, self._packing)):
            raise ValueError("what stands behind a member begins no other; pack the file anew")
        self._member, self._packed = self._new_member() if packed else None, packed

    def close(self) -> None:
        self._raw.close()


class _ZstdFrame:
    """A frame of Zstandard, with the methods of :class:`bz2.BZ2Decompressor`."""

    def __init__(self, library: Any) -> None:
        self._library, self._frame = library, library.ZstdDecompressor().decompressobj()
        self._unpacked = memoryview(b"")

    @property
    def needs_input(self) -> bool:
        return not self._unpacked

    @property
    def eof(self) -> bool:
        return self._frame.eof and not self._unpacked

    @property
    def unused_data(self) -> bytes:
        data: bytes = self._frame.unused_data
        return data

    def decompress(self, packed: bytes, size: int) -> memoryview:
        if packed:
            try:
                self._unpacked = memoryview(self._frame.decompress(packed))
            except self._library.ZstdError as error:
                raise ValueError(str(error)) from error
        piece, self._unpacked = self._unpacked[:size], self._unpacked[size:]
        return piece


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or str(error)


def _excerpt(data: bytes) -> str:
    return data.decode("ascii", "backslashreplace") if data else Problem("the file is empty")

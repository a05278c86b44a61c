"""Files that are whole or absent."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, FileIO
from typing import IO, Any

from hopefear.errors import HopefearError, InputError, Problem

Buffer = bytes | bytearray | memoryview
MAX_SMALL_BYTES = 1 << 24

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


def write_atomically(path: str | os.PathLike[str], data: Buffer | Iterable[bytes]) -> None:
    """Put ``data`` under ``path`` whole, or leave what was there.

    Written to a temporary name in the same folder, synced, renamed, and the folder synced.

    Parameters
    ----------
    path : str or path
        Final name. A link keeps pointing where it did; the file it names is replaced. Devices and
        pipes cannot be replaced and are written to directly.
    data : bytes or iterable of bytes
        The content, or its pieces in order; pieces need not be in memory together.

    Raises
    ------
    HopefearError
        When the file cannot be written. The old file is intact and no temporary file is left
        (only a killed process leaves one, named ``.hopefear-*.tmp``; it can be deleted).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "scores.txt")
    >>> write_atomically(path, [b"one ", b"two"])
    >>> path.read_bytes()
    b'one two'
    >>> folder.cleanup()
    """
    chunks = [data] if isinstance(data, bytes | bytearray | memoryview) else data
    total = sum(map(_size, chunks)) if isinstance(chunks, list) else 0
    with atomic_file(path, total) as file:
        for chunk in chunks:
            file.write(chunk)


@contextmanager
def atomic_file(path: str | os.PathLike[str], size: int = 0) -> Iterator[IO[bytes]]:
    """A file to write to that takes its name only when all of it is on disk.

    Parameters
    ----------
    path : str or path
        Final name, treated as :func:`write_atomically` does, with the same errors.
    size : int
        How many bytes it will have, if that is known; said where the disk is full.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = pathlib.Path(folder.name, "scores.txt")
    >>> with atomic_file(path) as file:
    ...     _ = file.write(b"one two")
    ...     path.exists()
    False
    >>> path.read_bytes()
    b'one two'
    >>> folder.cleanup()
    """
    name = os.fspath(path)
    with _named(name):
        stream = _is_stream(name)
    target = name if stream else os.path.realpath(name)
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".hopefear-{secrets.token_hex(8)}.tmp")
    # Not tempfile: its mode 0600 would survive the rename and lock out other readers.
    # To be read too: what is written may be mapped before it is complete.
    flags = os.O_WRONLY if stream else os.O_RDWR | os.O_CREAT | os.O_EXCL
    try:
        with _named(name):
            handle = os.open(target if stream else temporary, flags, 0o666)
        file = BufferedWriter(_Target(handle, name, size), 1 << 16)
        try:
            yield file
            file.flush()
            if not stream:
                with _named(name, max(size, file.tell())):
                    os.fsync(handle)
        except BaseException:
            # Closing flushes again and fails again; the first error is reported.
            with suppress(OSError, HopefearError):
                file.close()
            raise
        with _named(name, size):
            file.close()
        if not stream:
            with _named(name):
                with suppress(FileNotFoundError):
                    os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
                os.replace(temporary, target)
                _sync_folder(folder)
    except BaseException:
        if not stream:
            with suppress(OSError):
                os.unlink(temporary)
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """HopefearError where :func:`write_atomically` could not begin; nothing is written.

    Examples
    --------
    >>> check_writable("no-such-folder/model")
    Traceback (most recent call last):
    hopefear.errors.HopefearError: cannot write no-such-folder/model: No such file or directory
    """
    name = os.fspath(path)
    with _named(name):
        if _is_stream(name):
            return
        target = os.path.realpath(name)
        temporary = os.path.join(os.path.dirname(target), f".hopefear-{secrets.token_hex(8)}.tmp")
        os.close(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        os.unlink(temporary)


def read_small(
    file: IO[bytes], path: str | os.PathLike[str], max_bytes: int = MAX_SMALL_BYTES
) -> bytes:
    """Reads all bytes of a small file: settings, templates, weights of a decoder.

    Parameters
    ----------
    file : file
        Open for reading.
    path : str or path
        How messages call it.
    max_bytes : int
        Bytes that it may have; a device such as ``/dev/zero`` has no end.

    Examples
    --------
    >>> import io
    >>> read_small(io.BytesIO(b"hope and fear"), "a.toml", 8)
    Traceback (most recent call last):
    hopefear.errors.InputError: a.toml: expected a file of at most 8 bytes; it is larger
    """
    data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise InputError(
            os.fspath(path), 0, f"a file of at most {max_bytes:,} bytes", Problem("it is larger")
        )
    return data


def is_beside(path: str | os.PathLike[str], folder: str | os.PathLike[str]) -> bool:
    """Whether a file that another file names is in the folder of that file or below it.

    Examples
    --------
    >>> is_beside("models/names.txt", "models"), is_beside("models/../names.txt", "models")
    (True, False)
    """
    inner, outer = os.path.realpath(path), os.path.realpath(folder)
    return os.path.commonpath((inner, outer)) == outer


class _Target(FileIO):
    """A file whose errors of writing name it, and no error of anything else does."""

    def __init__(self, handle: int, name: str, size: int) -> None:
        super().__init__(handle, "wb")
        self._name, self._least, self._written = name, size, 0

    def write(self, data: Any) -> int:
        with _named(self._name, max(self._least, self._written + _size(data))):
            count = super().write(data)
        self._written += count
        return count


def _size(chunk: Buffer) -> int:
    return memoryview(chunk).nbytes


def _is_stream(path: str) -> bool:
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return False
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    return not stat.S_ISREG(mode)


def _sync_folder(folder: str) -> None:
    if os.name != "posix":
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder one may write to but not list
        return
    try:
        os.fsync(handle)
    except OSError as error:
        # Some network file systems cannot sync folders; the rename itself has succeeded.
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(handle)


@contextmanager
def _named(path: str, size: int = 0) -> Iterator[None]:
    """Turn an ``OSError`` into one that names the path, and the bytes needed on a full disk."""
    try:
        yield
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError
        reason = getattr(error, "strerror", None) or str(error)
        if getattr(error, "errno", None) in _NO_ROOM:
            folder = os.path.dirname(os.path.realpath(path))
            free = shutil.disk_usage(folder).free
            reason += f" (it needs at least {size:,} bytes, {free:,} are free)"
        raise HopefearError(f"cannot write {path}: {reason}") from error

"""Files that are whole or absent."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress

from hopefear.errors import HopefearError

Buffer = bytes | bytearray | memoryview

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
    shown = os.fspath(path)
    chunks: Iterable[Buffer]
    chunks = [data] if isinstance(data, bytes | bytearray | memoryview) else data
    with _named(shown):
        if _is_stream(shown):
            with open(shown, "wb") as file:
                file.writelines(chunks)
            return
    target = os.path.realpath(shown)
    folder = os.path.dirname(target)
    temporary = os.path.join(folder, f".hopefear-{secrets.token_hex(8)}.tmp")
    try:
        with _named(shown):
            # Not tempfile: its mode 0600 would survive the rename and lock out other readers.
            handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        _fill(handle, chunks, shown)
        with _named(shown):
            with suppress(FileNotFoundError):
                os.chmod(temporary, stat.S_IMODE(os.stat(target).st_mode))
            os.replace(temporary, target)
            _sync_folder(folder)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise


def _fill(handle: int, chunks: Iterable[Buffer], path: str) -> None:
    known = sum(map(_size, chunks)) if isinstance(chunks, list) else 0
    written = 0
    file = os.fdopen(handle, "wb")
    try:
        for chunk in chunks:
            written += _size(chunk)
            with _named(path, max(known, written)):
                file.write(chunk)
        with _named(path, written):
            file.flush()
            os.fsync(handle)
    except BaseException:
        # Closing flushes again and fails again; the first error is the one to tell.
        with suppress(OSError):
            file.close()
        raise
    with _named(path, written):
        file.close()


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
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in _NO_ROOM:
            folder = os.path.dirname(os.path.realpath(path))
            free = shutil.disk_usage(folder).free
            reason += f" (it needs at least {size:,} bytes, {free:,} are free)"
        raise HopefearError(f"cannot write {path}: {reason}") from error

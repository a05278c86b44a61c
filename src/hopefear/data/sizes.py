"""Files that memory cannot hold, recognised before they are read."""

from __future__ import annotations

import io
import os

from hopefear.core.memory import available_memory
from hopefear.data.files import file_size
from hopefear.data.sources import unpacked
from hopefear.errors import HopefearError

# Packed bytes from which the growth of the file is estimated, and the largest plausible growth.
_LOOKED_AT, _MOST_GROWTH = 1 << 20, 100
_CHUNK = 1 << 18


def check_fits(path: str | os.PathLike[str], factor: float, remedies: str) -> None:
    """HopefearError where a file is clearly too large to be read into memory.

    What it takes is its size, unpacked, times ``factor``. A pipe has no size, and is read.

    Parameters
    ----------
    path : str or path
        The file.
    factor : float
        Bytes of memory for each byte of text, at least.
    remedies : str
        What to do about it, for the message.
    """
    size, available = file_size(path), available_memory()
    # Most files are so small that nothing needs to be looked at.
    if available is None or size * factor * _MOST_GROWTH <= available:
        return
    growth = growth_of(path)
    needed = int(size * growth * factor)
    if needed > available:
        text = f"{_in_words(size)} of text"
        if growth > 1.0:
            text = f"{_in_words(size)}, packed, about {_in_words(int(size * growth))} of text"
        raise HopefearError(
            f"{os.fspath(path)}: {text} take at least {_in_words(needed)} of memory, and "
            f"{_in_words(available)} are available; {remedies}"
        )


def growth_of(path: str | os.PathLike[str]) -> float:
    """Returns how many bytes of text a byte of a file is, by its beginning; 1 for plain files.

    >>> import gzip, tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".gz") as f:
    ...     _ = f.write(gzip.compress(b"hope and fear " * 10_000))
    ...     f.flush()
    ...     growth_of(f.name) > 100
    True
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            head = file.read(_LOOKED_AT)
        stream = unpacked(io.BufferedReader(io.BytesIO(head)), head[:6], name)
    except (OSError, HopefearError):  # which reading the file explains
        return 1.0
    buffer, text = bytearray(_CHUNK), 0
    try:
        while (count := stream.readinto(buffer)) and text < _MOST_GROWTH * _LOOKED_AT:
            text += count
    except Exception:  # the head ends within a member
        pass
    return text / len(head) if text > len(head) else 1.0


def _in_words(size: int) -> str:
    unit, name = (1 << 30, "GiB") if size >= 1 << 30 else (1 << 20, "MiB")
    return f"{size / unit:,.1f} {name}"

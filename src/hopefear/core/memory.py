"""Memory that goes back to the system before its owner lets it go, where the system can take it.

Only peaks change, never what is computed: where a system knows no such calls, nothing happens.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import sys
from typing import Any

import numpy as np

_NOT_NEEDED = 4  # MADV_DONTNEED of Linux: such pages read as zeros from then on
_MAPPED_FROM, _LARGE = -3, 1 << 20  # M_MMAP_THRESHOLD of the GNU C library, and bytes


def keep_apart() -> None:
    """Have large arrays lie apart from small things, so that they go back as they are freed.

    The C library does so at first, then takes those that come and go for cheap ones; what stays
    between them then keeps all of it. For programs of our own, as the whole process changes.
    """
    if hasattr(_system(), "mallopt"):
        _system().mallopt(_MAPPED_FROM, _LARGE)


def trim() -> None:
    """Give back what was freed between things that are still used.

    Reading text and numbering features leave many such holes, tens of megabytes in all.
    """
    if hasattr(_system(), "malloc_trim"):
        _system().malloc_trim(0)


def use_up(array: np.ndarray) -> None:
    """Give back the pages of a part of an array that nobody reads any more; its values are lost.

    Examples
    --------
    >>> books = np.ones(100_000)
    >>> use_up(books[:50_000])
    >>> books[50_000:].all()
    np.True_
    """
    start = -(-array.ctypes.data // mmap.PAGESIZE) * mmap.PAGESIZE
    size = (array.ctypes.data + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE - start
    if size > 0 and sys.platform == "linux":
        _system().madvise(ctypes.c_void_p(start), ctypes.c_size_t(size), _NOT_NEEDED)


@functools.cache
def _system() -> Any:
    return ctypes.CDLL(None) if sys.platform == "linux" else object()

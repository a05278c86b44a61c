"""Memory that comes in large pieces, and goes back to the system before its owner lets it go.

Only peaks and times change, never what is computed: where a system knows no such calls, nothing
happens.
"""

from __future__ import annotations

import ctypes
import functools
import math
import mmap
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

_NOT_NEEDED = 4  # MADV_DONTNEED of Linux: such pages read as zeros from then on
_LINE = 64  # bytes
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


def together(*arrays: tuple[int, Any]) -> list[np.ndarray]:
    """Arrays of these sizes and types in one piece of memory, not filled in.

    From 4 MB on numpy asks for large pages, and hundreds of small ones cost more than filling them.
    All of it stays as long as one of them does.

    Examples
    --------
    >>> keys, counts = together((3, np.uint64), (2, np.int32))
    >>> keys.dtype, counts.shape
    (dtype('uint64'), (2,))
    """
    return _cut(np.empty(_size_of(arrays), np.uint8), arrays)


def _size_of(arrays: Sequence[tuple[int, Any]]) -> int:
    return sum(-(-size * np.dtype(dtype).itemsize // _LINE) * _LINE for size, dtype in arrays)


def _cut(memory: np.ndarray, arrays: Sequence[tuple[int, Any]]) -> list[np.ndarray]:
    """Arrays one behind the other, whole cache lines apart."""
    pieces, begin = [], 0
    for size, dtype in arrays:
        pieces.append(memory[begin : begin + size * np.dtype(dtype).itemsize].view(dtype))
        begin += _size_of([(size, dtype)])
    return pieces


def zeros(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Zeros whose first one begins a cache line, where those of numpy may begin in the middle.

    Eight neighbours of 8 bytes are then one line, and not two.

    Examples
    --------
    >>> zeros((3,), np.float32).ctypes.data % 64
    0
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    memory = np.zeros(size + _LINE, np.uint8)
    begin = -memory.ctypes.data % _LINE
    return memory[begin : begin + size].view(dtype).reshape(shape)


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins a cache line.

    Examples
    --------
    >>> aligned(np.arange(3)).tolist()
    [0, 1, 2]
    """
    copy = zeros(array.shape, array.dtype)
    copy[...] = array
    return copy


def in_lines(rows: int, columns: int, dtype: Any) -> np.ndarray:
    """Zeros, each row in cache lines of its own.

    Examples
    --------
    >>> in_lines(3, 5, np.int64).strides
    (64, 8)
    """
    line = _LINE // np.dtype(dtype).itemsize
    return zeros((rows, -(-columns // line) * line), dtype)[:, :columns]


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


def in_memory(address: int) -> bool:
    """Whether the page there is in memory; no where the system does not say.

    Of a mapped file that others own and that this process may not write to, Linux says yes always.

    Examples
    --------
    >>> page = mmap.mmap(-1, mmap.PAGESIZE)
    >>> page[0] = 1
    >>> in_memory(np.frombuffer(page, np.uint8).ctypes.data) or sys.platform != "linux"
    True
    """
    if not hasattr(_system(), "mincore"):
        return False
    start, there = address // mmap.PAGESIZE * mmap.PAGESIZE, ctypes.c_ubyte()
    failed = _system().mincore(ctypes.c_void_p(start), ctypes.c_size_t(1), ctypes.byref(there))
    return not failed and bool(there.value & 1)


@functools.cache
def _system() -> Any:
    return ctypes.CDLL(None) if sys.platform == "linux" else object()

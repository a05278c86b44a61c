"""Memory: arrays in large pieces and on cache lines, memory given back, and how much is left.

Where a system knows no such calls, peaks and times change, never what is computed.
"""

from __future__ import annotations

import ctypes
import functools
import math
import mmap
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

_NOT_NEEDED = 4  # MADV_DONTNEED of Linux: such pages read as zeros from then on
_LINE = 64  # bytes


def trim() -> None:
    """Give back what was freed between things that are still used.

    Reading text and numbering features leave many such holes, tens of megabytes in all.
    """
    if hasattr(_system(), "malloc_trim"):
        _system().malloc_trim(0)


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


def available_memory() -> int | None:
    """Bytes that this process may still take, as far as the system tells; None where it does not.

    The least of what is free, what a control group leaves, and the limits on data and on addresses
    (``ulimit -d``, ``ulimit -v``).
    """
    limits = []
    try:
        with open("/proc/meminfo") as file:
            words = (line.split() for line in file)
            limits += [int(word[1]) * 1024 for word in words if word[0] == "MemAvailable:"]
    except (OSError, ValueError, IndexError):
        return None
    limits += _group_limits()
    try:
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_DATA)
        if soft != resource.RLIM_INFINITY:
            limits.append(soft)
        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft != resource.RLIM_INFINITY:
            with open("/proc/self/statm") as file:
                limits.append(soft - int(file.read().split()[0]) * mmap.PAGESIZE)
    except (ImportError, OSError, ValueError):
        pass
    return max(0, min(limits)) if limits else None


def _group_limits() -> Iterator[int]:
    """What the control groups of this process leave; pages of files can go and do not count."""
    try:
        with open("/proc/self/cgroup") as file:
            groups = [line.rstrip("\n").split(":", 2) for line in file]
    except OSError:
        return
    for _, controllers, path in groups:
        first = "memory" in controllers.split(",")
        if controllers and not first:
            continue
        root = "/sys/fs/cgroup/memory" if first else "/sys/fs/cgroup"
        limit = "memory.limit_in_bytes" if first else "memory.max"
        for folder in {root, root + path}:
            try:
                with open(f"{folder}/{limit}") as most, open(f"{folder}/memory.stat") as file:
                    stat = dict(line.split() for line in file)
                    yield int(most.read()) - int(stat["rss" if first else "anon"])
            except (OSError, ValueError, KeyError):
                continue


@functools.cache
def _system() -> Any:
    return ctypes.CDLL(None) if sys.platform == "linux" else object()

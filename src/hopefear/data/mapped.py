"""Datasets in blocks of examples: views of their arrays, whose pages may go when they are read.

A dataset says in ``spans(begin, end)`` which stretch of each of its arrays some examples take, and
in ``pointers`` which arrays hold places in others. So blocks are cut alike for all kinds of rows,
in memory or mapped from a file.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from hopefear.core.checks import check_at_least

Spans = dict[str, tuple[int, int]]
# Bytes to hash at a time.
_SLICE = 1 << 22


def block(dataset: Any, begin: int, end: int) -> Any:
    """The rows of the examples from ``begin`` to ``end``, as views; pointers begin with 0.

    Examples
    --------
    >>> from hopefear.data.sparse import SparseDataset
    >>> data = SparseDataset.from_csr([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]])
    >>> rows = block(data, 1, 3)
    >>> rows.indptr.tolist(), rows.values.tolist()
    ([0, 1, 3], [2.0, 3.0, 4.0])
    """
    fields = {}
    for name, (first, last) in dataset.spans(begin, end).items():
        array = getattr(dataset.rows, name)
        if name in dataset.pointers:
            array = array[first : last + 1] - array[first]
            array.flags.writeable = False
            fields[name] = array
        else:
            fields[name] = array[first:last]
    return type(dataset.rows)(**fields)


def blocks(dataset: Any, rows_per_block: int, order: Iterable[int] | None = None) -> Iterator[Any]:
    """Yield the rows, so many at a time, as views; finished pages of a map may go.

    Parameters
    ----------
    dataset
        Mapped or in memory, of any task.
    rows_per_block : int
        Larger blocks mean fewer kernel calls and more memory at a time.
    order : iterable of int, optional
        Numbers of the blocks that are wanted; all in order unless said.

    Examples
    --------
    >>> from hopefear.data.sparse import SparseDataset
    >>> data = SparseDataset.from_csr([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    >>> [b.values.tolist() for b in blocks(data, 2)], [len(b.labels) for b in blocks(data, 2, [1])]
    ([[1.0, 2.0], [3.0]], [1])
    """
    check_at_least("rows_per_block", rows_per_block, 1)
    if dataset.mapping is not None and hasattr(mmap, "MADV_RANDOM"):
        # Examples come in any order. For a page that is not there the system would read what lies
        # around it, megabytes of every array on some disks, and drop pages of the block for it.
        dataset.mapping.madvise(mmap.MADV_RANDOM)
    for number in range(n_blocks(dataset, rows_per_block)) if order is None else order:
        begin = number * rows_per_block
        end = min(begin + rows_per_block, len(dataset))
        if dataset.mapping is None:
            yield block(dataset, begin, end)
            continue
        stretches = [
            (getattr(dataset.rows, name), first, last)
            for name, (first, last) in dataset.spans(begin, end).items()
        ]
        for stretch in stretches:
            ask_for(dataset.mapping, *stretch)
        yield block(dataset, begin, end)
        for stretch in stretches:
            let_go(dataset.mapping, *stretch)


def n_blocks(dataset: Any, rows_per_block: int) -> int:
    """How many blocks of so many examples there are."""
    return -(-len(dataset) // rows_per_block)


def stored_bytes(dataset: Any, begin: int = 0, end: int | None = None) -> int:
    """What the arrays of all examples take, or of those from ``begin`` to ``end``."""
    if end is None:
        return sum(array.nbytes for array in dataset.rows)
    spans = dataset.spans(begin, end).items()
    return sum(
        (last - first) * getattr(dataset.rows, name).itemsize for name, (first, last) in spans
    )


def rows_of(dataset: Any, size: int) -> int:
    """How many examples take about so many bytes, on average."""
    return max(1, size * len(dataset) // max(1, stored_bytes(dataset)))


def ask_for(mapping: mmap.mmap, array: np.ndarray, first: int, last: int) -> None:
    """Tell the system that these elements of a mapped array will be read soon."""
    _advise(mapping, "MADV_WILLNEED", array, first, last)


def let_go(mapping: mmap.mmap, array: np.ndarray, first: int, last: int) -> None:
    """Tell the system that these elements of a mapped array will not be read again soon."""
    # The page that the next block begins in stays.
    _advise(mapping, "MADV_DONTNEED", array, first, last)


def _advise(mapping: mmap.mmap, advice: str, array: np.ndarray, first: int, last: int) -> None:
    """Advise on the pages that these elements begin in, but for that of the last."""
    if not hasattr(mmap, advice) or last <= first:
        return
    base = np.frombuffer(mapping, np.uint8).ctypes.data
    if not base <= array.ctypes.data < base + len(mapping):
        return  # weights changed in memory do not lie in the map
    start = array.ctypes.data - base + first * array.itemsize
    stop = array.ctypes.data - base + last * array.itemsize
    start, stop = start // mmap.PAGESIZE * mmap.PAGESIZE, stop // mmap.PAGESIZE * mmap.PAGESIZE
    if stop > start:
        mapping.madvise(getattr(mmap, advice), start, stop - start)


def stretches_of(dataset: Any, *names: str) -> Iterator[tuple[np.ndarray, ...]]:
    """Arrays of equal length of a dataset, stretch by stretch; pages that were read may go.

    Examples
    --------
    >>> from hopefear.data.sparse import SparseDataset
    >>> data = SparseDataset.from_csr([[1.0], [2.0]], [0, 1])
    >>> [labels.tolist() for (labels,) in stretches_of(data, "labels")]
    [[0, 1]]
    """
    arrays = [getattr(dataset.rows, name) for name in names]
    step = _SLICE // 8
    for first in range(0, arrays[0].size, step):
        last = min(first + step, arrays[0].size)
        if dataset.mapping is not None:
            for array in arrays:
                ask_for(dataset.mapping, array, first, last)
        yield tuple(array[first:last] for array in arrays)
        if dataset.mapping is not None:
            for array in arrays:
                let_go(dataset.mapping, array, first, last)


def update_hash(digest: Any, array: np.ndarray, mapping: mmap.mmap | None = None) -> None:
    """Hash the bytes of an array, some pages at a time."""
    flat = array.reshape(-1)
    step = max(1, _SLICE // flat.itemsize)
    for first in range(0, flat.size, step):
        last = min(first + step, flat.size)
        if mapping is not None:
            ask_for(mapping, flat, first, last)
        digest.update(flat[first:last].view(np.uint8).data)
        if mapping is not None:
            let_go(mapping, flat, first, last)


def rows_digest(words: Sequence[str], rows: Any, mapping: mmap.mmap | None = None) -> str:
    """SHA-256 of some words, and of the size and content of every array."""
    digest = hashlib.sha256("\x1f".join(words).encode())
    for array in rows:
        digest.update(str(array.size).encode())
        update_hash(digest, array, mapping)
    return digest.hexdigest()


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

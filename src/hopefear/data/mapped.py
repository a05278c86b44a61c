"""Datasets in blocks of examples: views of their arrays, whose pages may go when they are read.

A dataset says in ``spans(begin, end)`` which stretch of each of its arrays some examples take, and
in ``pointers`` which arrays hold places in others. So blocks are cut alike for all kinds of rows,
in memory or mapped from a file.
"""

from __future__ import annotations

import contextlib
import hashlib
import mmap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.checks import check_at_least
from hopefear.core.memory import in_memory

Spans = dict[str, tuple[int, int]]
# Bytes to hash at a time.
_SLICE = 1 << 22
# Bytes that come and go together as a rule: one page of them tells of all.
_ALIKE = 1 << 20
# Bytes to ask for at a time: of more, Linux reads no more than it would read ahead.
_ASKED = 1 << 17


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
    for number in range(n_blocks(dataset, rows_per_block)) if order is None else order:
        begin = number * rows_per_block
        end = min(begin + rows_per_block, len(dataset))
        if dataset.mapping is None:
            yield block(dataset, begin, end)
            continue
        stretches = [
            _pages(dataset.mapping, getattr(dataset.rows, name), first, last)
            for name, (first, last) in dataset.spans(begin, end).items()
        ]
        for stretch in stretches:
            _ask_for(dataset.mapping, stretch)
        yield block(dataset, begin, end)
        for stretch in stretches:
            _let_go(dataset.mapping, stretch)


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


class _Pages(NamedTuple):
    """Whole pages of a map: where they begin and end in it, and where it begins in memory."""

    start: int
    stop: int
    base: int


def _pages(mapping: mmap.mmap, array: np.ndarray, first: int, last: int) -> _Pages:
    """The pages that elements of an array begin in, but for that of the last.

    The next block begins in that one.
    """
    base = np.frombuffer(mapping, np.uint8).ctypes.data
    begin = array.ctypes.data - base
    if not 0 <= begin < len(mapping):  # weights changed in memory do not lie in the map
        return _Pages(0, 0, base)
    start, stop = begin + first * array.itemsize, begin + last * array.itemsize
    size = mmap.PAGESIZE
    return _Pages(start // size * size, stop // size * size, base)


def _ask_for(mapping: mmap.mmap, pages: _Pages) -> None:
    """Have the system read pages that will soon be needed, where they are not in memory.

    To ask for pages that are there costs as much as some learners take to go over them.
    """
    if not hasattr(mmap, "MADV_WILLNEED"):
        return
    tells = getattr(mapping, "tells", False)
    for start in range(pages.start, pages.stop, _ALIKE):
        stop = min(start + _ALIKE, pages.stop)
        if tells and in_memory(pages.base + stop - mmap.PAGESIZE):
            continue
        for begin in range(start, stop, _ASKED):
            mapping.madvise(mmap.MADV_WILLNEED, begin, min(_ASKED, stop - begin))


def _let_go(mapping: mmap.mmap, pages: _Pages) -> None:
    """Tell the system that pages will not be read again soon."""
    if hasattr(mmap, "MADV_DONTNEED") and pages.stop > pages.start:
        mapping.madvise(mmap.MADV_DONTNEED, pages.start, pages.stop - pages.start)


def let_go(dataset: Any) -> None:
    """Tell the system that nothing of a dataset, where it is mapped, will be read again soon."""
    if dataset.mapping is not None:
        _advise(dataset.mapping, "MADV_DONTNEED")


def stretches_of(dataset: Any, *names: str) -> Iterator[tuple[np.ndarray, ...]]:
    """Arrays of equal length of a dataset, stretch by stretch; pages that were read may go.

    Examples
    --------
    >>> from hopefear.data.sparse import SparseDataset
    >>> data = SparseDataset.from_csr([[1.0], [2.0]], [0, 1])
    >>> [labels.tolist() for (labels,) in stretches_of(data, "labels")]
    [[0, 1]]
    """
    arrays, mapping = [getattr(dataset.rows, name) for name in names], dataset.mapping
    step = _SLICE // 8
    for first in range(0, arrays[0].size, step):
        last = min(first + step, arrays[0].size)
        pages = [] if mapping is None else [_pages(mapping, a, first, last) for a in arrays]
        for stretch in pages:
            _ask_for(mapping, stretch)
        yield tuple(array[first:last] for array in arrays)
        for stretch in pages:
            _let_go(mapping, stretch)


def at_random(mapping: mmap.mmap) -> None:
    """Declare that a map will be read here and there.

    For a page that is not there the system would else read what lies around it, megabytes of every
    array on some disks, and drop pages of a block for it.
    """
    _advise(mapping, "MADV_RANDOM")


@contextlib.contextmanager
def in_order(mapping: mmap.mmap) -> Iterator[None]:
    """While all of a map is read once, from its beginning to its end.

    Pages then come to memory in large pieces, which take less time to map, now and later.
    """
    _advise(mapping, "MADV_SEQUENTIAL", "MADV_HUGEPAGE")
    try:
        yield
    finally:
        at_random(mapping)
        _advise(mapping, "MADV_NOHUGEPAGE")  # else a missing page brings a large piece with it


def _advise(mapping: mmap.mmap, *advice: str) -> None:
    """Give advice on all of a map, as far as the system takes it."""
    for word in advice:
        with contextlib.suppress(AttributeError, OSError):
            mapping.madvise(getattr(mmap, word))


def update_hash(digest: Any, array: np.ndarray, mapping: mmap.mmap | None = None) -> None:
    """Hash the bytes of an array, some pages at a time."""
    flat = array.reshape(-1)
    step = max(1, _SLICE // flat.itemsize)
    for first in range(0, flat.size, step):
        last = min(first + step, flat.size)
        digest.update(flat[first:last].view(np.uint8).data)
        if mapping is not None:
            _let_go(mapping, _pages(mapping, flat, first, last))


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

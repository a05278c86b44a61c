"""Blocks of examples: parts of the arrays of a dataset, in memory or read from a cache.

``spans(start, end)`` of a dataset returns the range of each array that examples occupy, and
``offsets`` names the arrays with positions in others. So blocks of all kinds of rows are cut alike.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from hopefear.core.checks import check_at_least

Spans = dict[str, tuple[int, int]]
# Elements of an array that are looked at together.
_CHUNK = 1 << 19


def block(dataset: Any, start: int, end: int) -> Any:
    """Returns the rows of the examples from ``start`` to ``end``; offsets begin with 0.

    Those of data in memory are views, those of a cache are read.

    Examples
    --------
    >>> from hopefear.data.sparse import SparseDataset
    >>> data = SparseDataset.from_csr([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]])
    >>> rows = block(data, 1, 3)
    >>> rows.indptr.tolist(), rows.values.tolist()
    ([0, 1, 3], [2.0, 3.0, 4.0])
    """
    if dataset.cache is not None:
        dataset.cache.check()
    fields = {}
    for name, (first, last) in dataset.spans(start, end).items():
        if name in dataset.offsets:
            array = elements(dataset, name, first, last + 1)
            array = array - array[0]
            array.flags.writeable = False
        else:
            array = elements(dataset, name, first, last)
        fields[name] = array
    if dataset.cache is not None:  # nor was anything written meanwhile
        dataset.cache.check()
    return type(dataset.rows)(**fields)


def elements(dataset: Any, name: str, start: int = 0, end: int | None = None) -> np.ndarray:
    """Returns elements of an array of a dataset; those of a cache are read.

    So memory holds no more of it, and a file that was cut short is an error, not a signal.
    """
    array = getattr(dataset.rows, name)
    end = array.size if end is None else end
    if dataset.cache is not None and dataset.cache.holds(name, array):
        return dataset.cache.read(name, start, end)
    return array[start:end]


def span(dataset: Any, offsets: str, start: int, end: int) -> tuple[int, int]:
    """Returns the range of an array's elements, by its ``offsets``, for a range of examples."""
    first, last = (int(elements(dataset, offsets, k, k + 1)[0]) for k in (start, end))
    return first, last


def blocks(dataset: Any, rows_per_block: int, order: Iterable[int] | None = None) -> Iterator[Any]:
    """Yields the rows of ``rows_per_block`` examples at a time.

    Parameters
    ----------
    dataset
        Examples or sentences, in memory or of a cache.
    rows_per_block : int
        Larger blocks mean fewer kernel calls and more memory at a time.
    order : iterable of int, optional
        Numbers of the selected blocks; by default all, in order.

    Examples
    --------
    >>> from hopefear.data.sparse import SparseDataset
    >>> data = SparseDataset.from_csr([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    >>> [b.values.tolist() for b in blocks(data, 2)], [len(b.labels) for b in blocks(data, 2, [1])]
    ([[1.0, 2.0], [3.0]], [1])
    """
    check_at_least("rows_per_block", rows_per_block, 1)
    for number in range(n_blocks(dataset, rows_per_block)) if order is None else order:
        start = number * rows_per_block
        yield block(dataset, start, min(start + rows_per_block, len(dataset)))


def n_blocks(dataset: Any, rows_per_block: int) -> int:
    """Returns the number of blocks of ``rows_per_block`` examples."""
    return -(-len(dataset) // rows_per_block)


def stored_bytes(dataset: Any, start: int, end: int) -> int:
    """Returns the bytes that the arrays of the examples from ``start`` to ``end`` take."""
    spans = dataset.spans(start, end).items()
    return sum(
        (last - first) * getattr(dataset.rows, name).itemsize for name, (first, last) in spans
    )


def rows_of(dataset: Any, size: int) -> int:
    """Returns the number of examples that take about ``size`` bytes, on average."""
    stored = sum(array.nbytes for array in dataset.rows)
    return max(1, size * len(dataset) // max(1, stored))


def chunks_of(dataset: Any, *names: str) -> Iterator[tuple[np.ndarray, ...]]:
    """Yields arrays of equal length of a dataset, chunk by chunk.

    Examples
    --------
    >>> from hopefear.data.sparse import SparseDataset
    >>> data = SparseDataset.from_csr([[1.0], [2.0]], [0, 1])
    >>> [labels.tolist() for (labels,) in chunks_of(data, "labels")]
    [[0, 1]]
    """
    size = getattr(dataset.rows, names[0]).size
    for start in range(0, size, _CHUNK):
        yield tuple(elements(dataset, name, start, min(start + _CHUNK, size)) for name in names)


def rows_digest(words: Sequence[str], rows: Any) -> str:
    """Returns the SHA-256 of some words, and of the size and content of every array."""
    digest = hashlib.sha256("\x1f".join(words).encode())
    for array in rows:
        digest.update(str(array.size).encode())
        digest.update(array.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()

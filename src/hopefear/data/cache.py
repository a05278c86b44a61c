"""Data larger than memory: a binary cache on disk, read by mapping it."""

from __future__ import annotations

import hashlib
import mmap
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from hopefear.data.cache_build import build_cache
from hopefear.data.cache_format import damaged, read_header, section
from hopefear.data.row_kernels import rows_sound
from hopefear.data.sparse import DTYPES, SparseDataset, SparseRows
from hopefear.errors import HopefearError, ModelError
from hopefear.features import from_parts

__all__ = ["blocks", "build_cache", "cache_options", "open_cache"]

# Numbers to hold at a time while everything is checked.
_SLICE = 1 << 20


def open_cache(
    cache_path: str | os.PathLike[str], *, check_source: bool = True, verify: bool = False
) -> SparseDataset:
    """Map a cache that :func:`hopefear.data.cache_build.build_cache` wrote.

    The arrays are read-only views of the file; pages come in as they are read and can go again,
    see :func:`blocks`. The sizes and the header are always checked.

    Parameters
    ----------
    cache_path : str or path
        The cache file.
    check_source : bool
        Refuse a cache whose source file is there but has another size or time.
    verify : bool
        Check the hash of every section too, which reads the whole file.
    """
    name = os.fspath(cache_path)
    mapping = map_file(name)
    header = read_header(mapping, name)
    try:
        arrays = {key: section(mapping, e, name) for key, e in header["arrays"].items()}
        rows = SparseRows(*(arrays[key] for key in SparseRows._fields))
        _check_shapes(rows, header["n_rows"], name)
        own = {k[len("features.") :]: a for k, a in arrays.items() if k.startswith("features.")}
        features = from_parts(header["features"], own)
        source, digest = header["source"], header["digest"]
        dataset = SparseDataset(
            rows, header["n_features"], header["classes"], features, source["path"], digest
        )
        if check_source:
            _check_source(source, name)
        dataset.mapping = mapping
        if verify:
            _check_content(header["arrays"], arrays, dataset, name)
    except (KeyError, TypeError, AttributeError, ModelError) as error:
        raise damaged(name, f"its header is not sound ({error})") from error
    return dataset


def cache_options(cache_path: str | os.PathLike[str]) -> dict[str, Any]:
    """How a cache was built: format, transforms, n-grams."""
    with map_file(cache_path) as data:
        return read_header(data, os.fspath(cache_path)).get("options", {})


def map_file(path: str | os.PathLike[str]) -> mmap.mmap:
    """A read-only map of a whole file."""
    try:
        with open(path, "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "an empty file"
        raise HopefearError(f"{os.fspath(path)}: cannot be read: {reason}") from error


def blocks(dataset: SparseDataset, rows_per_block: int) -> Iterator[SparseRows]:
    """Yield the rows in order, so many at a time, as views; finished pages of a map may go.

    Parameters
    ----------
    dataset : SparseDataset
        Mapped or in memory.
    rows_per_block : int
        Larger blocks mean fewer kernel calls and more memory at a time.

    Examples
    --------
    >>> data = SparseDataset.from_csr([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
    >>> [b.values.tolist() for b in blocks(data, 2)]
    [[1.0, 2.0], [3.0]]
    """
    if rows_per_block < 1:
        raise HopefearError(f"rows_per_block must be at least 1, not {rows_per_block}")
    rows = dataset.rows
    for begin in range(0, len(dataset), rows_per_block):
        end = min(begin + rows_per_block, len(dataset))
        a, b = int(rows.indptr[begin]), int(rows.indptr[end])
        indptr = rows.indptr[begin : end + 1] - a
        indptr.flags.writeable = False
        yield SparseRows(
            indptr,
            rows.indices[a:b],
            rows.values[a:b],
            rows.labels[begin:end],
            rows.weights[begin:end],
        )
        if dataset.mapping is not None:
            for array, first, last in (
                (rows.indptr, begin, end),
                (rows.indices, a, b),
                (rows.values, a, b),
                (rows.labels, begin, end),
                (rows.weights, begin, end),
            ):
                _let_go(dataset.mapping, array, first, last)


def _let_go(mapping: mmap.mmap, array: np.ndarray, first: int, last: int) -> None:
    if not hasattr(mmap, "MADV_DONTNEED") or last <= first:
        return
    base = np.frombuffer(mapping, np.uint8).ctypes.data
    if not base <= array.ctypes.data < base + len(mapping):
        return  # weights changed in memory do not lie in the map
    start = array.ctypes.data - base + first * array.itemsize
    stop = array.ctypes.data - base + last * array.itemsize
    # The page that the next block begins in stays.
    start, stop = start // mmap.PAGESIZE * mmap.PAGESIZE, stop // mmap.PAGESIZE * mmap.PAGESIZE
    if stop > start:
        mapping.madvise(mmap.MADV_DONTNEED, start, stop - start)


def _check_shapes(rows: SparseRows, n_rows: Any, name: str) -> None:
    sound = (
        isinstance(n_rows, int)
        and all(a.dtype == t for a, t in zip(rows, DTYPES, strict=True))
        and len(rows.indptr) == n_rows + 1
        and len(rows.labels) == len(rows.weights) == n_rows
        and len(rows.indices) == len(rows.values) == rows.indptr[-1]
        and rows.indptr[0] == 0
    )
    if not sound:
        raise damaged(name, "its arrays do not fit each other")


def _check_source(source: dict[str, Any], name: str) -> None:
    try:
        now = os.stat(source["path"])
    except OSError:
        return  # the cache stands for itself
    if (now.st_size, now.st_mtime_ns) != (source["size"], source["mtime_ns"]):
        raise HopefearError(
            f"{name}: the cache is older than {source['path']}, which has changed since; "
            "build it again"
        )


def _check_content(
    entries: dict[str, Any], arrays: dict[str, np.ndarray], dataset: SparseDataset, name: str
) -> None:
    """Read everything once, some pages at a time."""
    for key, array in arrays.items():
        digest = hashlib.sha256()
        flat = array.reshape(-1)
        for first in range(0, flat.size, _SLICE):
            last = min(first + _SLICE, flat.size)
            digest.update(flat[first:last].view(np.uint8).data)
            if dataset.mapping is not None:
                _let_go(dataset.mapping, flat, first, last)
        if digest.hexdigest() != entries[key]["sha256"]:
            raise damaged(name, f"the section {key} has changed")
    for r in blocks(dataset, _SLICE // 64):
        if not rows_sound(r.indptr, r.indices, r.labels, dataset.n_features, len(dataset.classes)):
            raise damaged(name, "a row points outside the arrays")

"""Datasets told by where they lie, so that other processes open the same bytes themselves."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.data.cache import CacheMap, Stamp, open_again, section
from hopefear.data.mapped import Spans


class Located(NamedTuple):
    """A dataset as another process can open it: of a cache its path, of every array its place.

    Arrays that do not lie in the cache, such as weights by classes, go along as they are. Nothing
    else of the dataset does: passes ask for rows alone.

    Parameters
    ----------
    kind, rows : type
        Of the dataset and of its rows.
    source : str
        Where the data came from, for messages.
    cache : tuple, optional
        Path, digest and stamp of the cache, as :func:`hopefear.data.cache.open_again` takes them;
        None where all arrays go along.
    arrays : dict
        By name, the array or where it begins: what the header of a cache says of it.

    Examples
    --------
    >>> from hopefear.data.sparse import SparseDataset
    >>> data = Located.of(SparseDataset.from_csr([[1.0], [2.0]])).open()
    >>> len(data), data.spans(1, 2)["values"]
    (2, (1, 2))
    """

    kind: Any
    rows: Any
    source: str
    cache: tuple[str, str, Stamp] | None
    arrays: dict[str, Any]

    @classmethod
    def of(cls, dataset: Any) -> Located:
        """Where a dataset lies."""
        mapping, arrays = dataset.mapping, dataset.rows._asdict()
        cache = None
        if isinstance(mapping, CacheMap):
            cache = mapping.path, mapping.digest, mapping.stamp
            arrays = {name: _place(mapping, array) for name, array in arrays.items()}
        return cls(type(dataset), type(dataset.rows), dataset.source, cache, arrays)

    def open(self) -> Opened:
        """The dataset; HopefearError where there is another file, or none."""
        if self.cache is None:
            return Opened(self.kind, self.rows(**self.arrays), None, self.source)
        mapping = open_again(*self.cache)
        fields = {
            name: section(mapping, place, mapping.path) if isinstance(place, dict) else place
            for name, place in self.arrays.items()
        }
        return Opened(self.kind, self.rows(**fields), mapping, self.source)


class Opened:
    """What passes ask of a dataset: its rows, where each example lies in them, and its map."""

    def __init__(self, kind: Any, rows: Any, mapping: CacheMap | None, source: str) -> None:
        self._kind, self.pointers = kind, kind.pointers
        self.rows, self.mapping, self.source = rows, mapping, source

    def __len__(self) -> int:
        return len(self.rows.weights)

    def spans(self, begin: int, end: int) -> Spans:
        """As the dataset has it, which asks its rows alone."""
        spans: Spans = self._kind.spans(self, begin, end)
        return spans


def _place(mapping: CacheMap, array: np.ndarray) -> Any:
    """Where an array lies in a map, or the array itself; what is said has no shape but a length."""
    offset = array.ctypes.data - np.frombuffer(mapping, np.uint8).ctypes.data
    flat = array.ndim == 1 and array.flags.c_contiguous
    if not (array.size and flat and 0 <= offset < len(mapping)):
        return array
    return {"dtype": array.dtype.str, "offset": offset, "count": array.size}

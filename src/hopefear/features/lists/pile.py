"""Arrays that wait on disk: blocks one behind the other, and the whole when all have come."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from hopefear.errors import HopefearError
from hopefear.features.lists.numbering import Numbered

# What the numbers of a block are; offsets count from its own start.
_DTYPES: Any = Numbered._make(map(np.dtype, ("i8", "i4", "i8", "i4", "f4")))


class Pile:
    """Numbered features of many lists, kept in files until they are asked for.

    The files are gone after ``close()``, or when nobody holds the pile any more.

    Parameters
    ----------
    folder : path, optional
        Where the files go; the system's place for temporary files unless said.
    short : bool
        Columns have 16 bits: no list has over 65,536 features.

    Examples
    --------
    >>> pile = Pile()
    >>> arrays = [0, 1], [7], [0, 0, 1], [0], [1.0]
    >>> block = Numbered(*map(np.array, arrays))
    >>> pile.add(block)
    >>> pile.add(block)
    >>> pile.whole().scopes.tolist(), pile.whole().indptr.tolist()
    ([0, 1, 2], [0, 0, 1, 1, 2])
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None, short: bool = False) -> None:
        self._dtypes: Any = _DTYPES._replace(columns=np.dtype("u2")) if short else _DTYPES
        try:
            self._path = Path(tempfile.mkdtemp(prefix="hopefear-", dir=folder))
        except OSError as error:
            raise HopefearError(f"{folder}: cannot keep files here: {error.strerror}") from error
        self.close = weakref.finalize(self, shutil.rmtree, self._path, ignore_errors=True)
        self._sizes: list[tuple[int, ...]] = []
        for name in Numbered._fields:
            (self._path / name).touch()

    def add(self, block: Numbered) -> None:
        """Put a block on top."""
        try:
            for name, array, dtype in zip(Numbered._fields, block, self._dtypes, strict=True):
                with open(self._path / name, "ab") as file:
                    np.ascontiguousarray(array, dtype).tofile(file)
        except OSError as error:
            raise HopefearError(
                f"{self._path.parent}: no room for the features of all lists "
                f"({error.strerror or error}); name another folder for them"
            ) from error
        self._sizes.append(tuple(len(array) for array in block))

    def blocks(self) -> Iterator[Numbered]:
        """All blocks, from the first."""
        at = [0] * len(Numbered._fields)
        for sizes in self._sizes:
            yield Numbered(
                *(
                    np.fromfile(self._path / name, dtype, size, offset=start * dtype.itemsize)
                    for name, dtype, size, start in zip(
                        Numbered._fields, self._dtypes, sizes, at, strict=True
                    )
                )
            )
            at = [start + size for start, size in zip(at, sizes, strict=True)]

    def whole(self, mapped: bool = False) -> Numbered:
        """All blocks as one; ``mapped`` leaves the long arrays on disk."""

        def array(name: str) -> np.ndarray:
            path, dtype = self._path / name, getattr(self._dtypes, name)
            if not mapped or path.stat().st_size == 0:
                return np.fromfile(path, dtype)
            return np.memmap(path, dtype, "r")

        long = {name: array(name) for name in ("features", "columns", "values")}
        scopes, indptr = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
        short = [np.fromfile(self._path / name, np.int64) for name in ("scopes", "indptr")]
        at = [0, 0]
        for sizes in self._sizes:
            for offsets, read, k, where in ((scopes, short[0], 0, 0), (indptr, short[1], 1, 2)):
                offsets.append(read[at[k] + 1 : at[k] + sizes[where]] + offsets[-1][-1])
                at[k] += sizes[where]
        return Numbered(scopes=np.concatenate(scopes), indptr=np.concatenate(indptr), **long)

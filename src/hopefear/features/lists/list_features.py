"""The feature map of candidate lists: keys by number, and the names that people read.

While lists are read, their features wait on disk, blocks one behind the other.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hopefear.core.arrays import Strings, column_in_range, frozen, only_these, vector
from hopefear.core.hashing import KeyTable
from hopefear.errors import HopefearError, ModelError
from hopefear.features.lists.extraction import Extraction
from hopefear.features.lists.keyed import Numbered, numbered, pruned

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
        return Numbered(scopes=self._offsets("scopes"), indptr=self._offsets("indptr"), **long)

    def _offsets(self, name: str) -> np.ndarray:
        """Where entries begin in all blocks, of which each begins at 0."""
        field = Numbered._fields.index(name)
        sizes = [each[field] for each in self._sizes]
        offsets = np.zeros(1 + sum(sizes) - len(sizes), np.int64)
        end = at = 0
        for size in sizes:
            own = np.fromfile(self._path / name, np.int64, size, offset=8 * at)
            offsets[end : end + size] = own + offsets[end]
            end, at = end + size - 1, at + size
        return offsets


# Features of a list that positions of 16 bits reach.
SHORT = 1 << 16


class ListFeatures:
    """Numbers of features that were seen in enough lists.

    Parameters
    ----------
    extraction : Extraction
        What is looked at.
    keys : uint64 array
        Key of each feature.
    names : Strings
        Name of each feature.

    Attributes
    ----------
    seen : int, optional
        Different features that training lists had, those left out among them.
    pile : Pile, optional
        The files that hold the features of training lists, where memory does not.
    """

    kind = "lists"

    def __init__(self, extraction: Extraction, keys: np.ndarray, names: Strings) -> None:
        self.extraction, self.keys, self._names = extraction, frozen(keys), names
        self._table = KeyTable(keys)
        self.pile: Pile | None = None
        self.seen: int | None = None

    @property
    def size(self) -> int:
        return len(self.keys)

    def name(self, column: int) -> str:
        return self._names.get(column_in_range(column, self.size))

    def names(self, columns: Iterable[int]) -> list[str]:
        return [self.name(column) for column in columns]

    def encode(self, block: Any) -> Numbered:
        """Numbered features of a block of lists; unknown ones are left out."""
        keyed = self.extraction.extract(block)
        everything = np.arange(self.size, dtype=np.int32)
        return pruned(numbered(keyed, self._table.find(keyed.keys)), block.starts, everything)

    def kept(self, columns: np.ndarray) -> ListFeatures:
        """Only these features, in this order."""
        names = Strings.pack(self.name(int(j)) for j in columns)
        return ListFeatures(self.extraction, self.keys[columns], names)

    def to_header(self) -> dict[str, Any]:
        return {"kind": self.kind, "extraction": self.extraction.to_header()}

    def arrays(self) -> dict[str, np.ndarray]:
        return {"keys": self.keys, **self._names.arrays("names")}

    @classmethod
    def from_parts(
        cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> ListFeatures:
        only_these(arrays, ("keys", "names_text", "names_offsets"))
        keys, names = vector(arrays, "keys", np.uint64), Strings.from_parts(arrays, "names")
        if names.size != keys.size:
            raise ModelError(f"feature map: {keys.size} keys, but {names.size} names")
        features = cls(Extraction.from_header(header.get("extraction") or {}), keys, names)
        if features._table.size != keys.size:
            raise ModelError("feature map: a key comes twice")
        return features


class ListNumbering:
    """Numbers the features of blocks of lists as they come, and says at the end which are kept.

    Parameters
    ----------
    extraction : Extraction
        What is looked at.
    min_count : int
        Features that tell candidates apart in fewer lists are left out.

    Attributes
    ----------
    widest : int
        Features of one list, at most.
    """

    def __init__(self, extraction: Extraction, min_count: int = 1) -> None:
        self.extraction, self.min_count = extraction, min_count
        self.widest = 0
        self._table = KeyTable()
        self._names: dict[int, str] = {}

    @property
    def seen(self) -> int:
        """Number of different features so far."""
        return self._table.size

    def add(self, block: Any) -> Numbered:
        """The features of a block, in numbers of first appearance."""
        keyed = self.extraction.extract(block)
        self.widest = max(self.widest, int(np.diff(keyed.scopes).max(initial=0)))
        before = self._table.size
        rare = self._table.seen < self.min_count
        result = numbered(keyed, self._table.count(keyed.keys))
        now = self._table.seen >= self.min_count  # names are asked for when a feature is in
        now[:before] &= rare
        wanted = np.sort(self._table.keys[now])
        if wanted.size:
            names = self.extraction.names(block, wanted)
            self._names |= {key: names[key] for key in wanted.tolist()}
        return result

    def finish(self) -> tuple[ListFeatures, np.ndarray]:
        """The feature map, and for `pruned` the final number of each feature; no more blocks."""
        frequent = np.flatnonzero(self._table.seen >= self.min_count)
        new = np.full(self._table.size, -1, np.int32)
        new[frequent] = np.arange(len(frequent), dtype=np.int32)
        keys = self._table.keys[frequent].copy()
        names = Strings.pack(map(self._names.pop, keys.tolist()))
        self._table = KeyTable()  # room for what follows
        features = ListFeatures(self.extraction, keys, names)
        features.seen = len(new)
        return features, new


class PiledNumbering:
    """Takes blocks of lists, one after the other, and puts their features together at the end.

    What was extracted waits on disk, because most features turn out to be too rare to keep.

    Parameters
    ----------
    numbering : ListNumbering
        What numbers them.
    folder : path, optional
        Where features wait, and stay: arrays are then mapped from files there, for lists that
        memory would not hold. Unless said they wait among the system's temporary files and end in
        memory.
    """

    def __init__(
        self, numbering: ListNumbering, folder: str | os.PathLike[str] | None = None
    ) -> None:
        self._numbering, self._folder = numbering, folder
        self._pile = Pile(folder)
        self._starts: list[np.ndarray] = []

    def add(self, block: Any) -> None:
        """Extract the features of a block."""
        self._pile.add(self._numbering.add(block))
        self._starts.append(block.starts)

    def close(self) -> None:
        """Forget what was extracted."""
        self._pile.close()

    def finish(self) -> tuple[ListFeatures, Numbered]:
        """The feature map, and the features of all blocks."""
        features, new = self._numbering.finish()
        pile = Pile(self._folder, short=self._numbering.widest <= SHORT)
        for block, starts in zip(self._pile.blocks(), self._starts, strict=True):
            pile.add(pruned(block, starts, new))
        self._pile.close()
        whole = pile.whole(mapped=self._folder is not None)
        if self._folder is None:
            pile.close()
        else:
            features.pile = pile  # the files live as long as what they mean
        return features, whole

"""Feature maps: how columns get their meaning, and keep it in a model file.

Columns are the ids of a file, scattered 64-bit ids, n-grams of words and characters, or what these
are hashed to.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from hopefear.core.arrays import (
    Strings,
    column_in_range,
    frozen,
    only_these,
    vector,
    whole_number,
)
from hopefear.core.component import kernel
from hopefear.errors import HopefearError, ModelError

MAX_COLUMNS = 2**31 - 1


@runtime_checkable
class FeatureMap(Protocol):
    """Meaning of the columns ``0 .. size - 1`` of a dataset or a model.

    A map is immutable. It is written to a model file as ``to_header()`` (plain JSON values, with
    a ``kind``) and ``arrays()``, and comes back by :func:`hopefear.features.from_parts`, which
    trusts neither.
    """

    kind: str

    @property
    def size(self) -> int: ...

    def name(self, column: int) -> str: ...

    def names(self, columns: Iterable[int]) -> list[str]: ...

    def columns(self, ids: np.ndarray) -> np.ndarray:
        """Columns (int32) of feature ids (int64) as a file gives them; -1 where unknown."""
        ...

    def ids(self, columns: np.ndarray) -> np.ndarray:
        """Returns ids (int64) of columns, as files of numbers have them."""
        ...

    def to_header(self) -> dict[str, Any]: ...

    def arrays(self) -> dict[str, np.ndarray]: ...

    @classmethod
    def from_parts(
        cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> FeatureMap: ...


class IdentityFeatures:
    """Column j is feature id j, with names where a file gave them.

    Parameters
    ----------
    size : int
        Number of columns; a file whose ids begin with 1 leaves column 0 unused.
    names : sequence of str, optional
        Name of id 1, 2, … (line i of a names file belongs to id i). Ids beyond are numbers.

    Examples
    --------
    >>> IdentityFeatures(4, names=["good", "bad"]).names([1, 3])
    ['good', '3']
    """

    kind = "identity"

    def __init__(self, size: int, names: Sequence[str] | Strings | None = None) -> None:
        if not 0 <= size <= MAX_COLUMNS:
            raise HopefearError(f"a feature map has 0 to {MAX_COLUMNS} columns, not {size}")
        self._size = int(size)
        self._names = names if names is None or isinstance(names, Strings) else Strings.pack(names)

    @property
    def size(self) -> int:
        return self._size

    def name(self, column: int) -> str:
        column = column_in_range(column, self._size)
        if self._names is not None and 1 <= column <= self._names.size:
            return self._names.get(column - 1)
        return str(column)

    def names(self, columns: Iterable[int]) -> list[str]:
        return [self.name(c) for c in columns]

    def columns(self, ids: np.ndarray) -> np.ndarray:
        if len(ids) and ids.min() >= 0 and ids.max() < self._size:
            return ids.astype(np.int32)
        is_known = (ids >= 0) & (ids < self._size)
        return np.where(is_known, ids, -1).astype(np.int32)

    def ids(self, columns: np.ndarray) -> np.ndarray:
        return columns.astype(np.int64)

    def to_header(self) -> dict[str, Any]:
        return {"kind": self.kind, "size": self._size, "named": self._names is not None}

    def arrays(self) -> dict[str, np.ndarray]:
        return {} if self._names is None else self._names.arrays("names")

    @classmethod
    def from_parts(
        cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> IdentityFeatures:
        size = whole_number(header, "size", 0, MAX_COLUMNS)
        named = header.get("named")
        if not isinstance(named, bool):
            raise ModelError(f"feature map: expected named to be true or false, found {named!r}")
        only_these(arrays, ("names_text", "names_offsets") if named else ())
        return cls(size, Strings.from_parts(arrays, "names") if named else None)


class TableFeatures:
    """Column j is the j-th smallest id that was seen: ``ids[j]``, any non-negative int64.

    Parameters
    ----------
    ids : array of int64
        The ids, strictly rising.

    Examples
    --------
    >>> import numpy as np
    >>> table = TableFeatures(np.array([7, 2**62]))
    >>> table.columns(np.array([2**62, 8])).tolist()
    [1, -1]
    >>> table.name(0)
    '7'
    """

    kind = "table"

    def __init__(self, ids: np.ndarray) -> None:
        self._ids = frozen(np.asarray(ids, np.int64))
        if self._ids.size > MAX_COLUMNS:
            raise HopefearError(
                f"{self._ids.size} distinct feature ids, but at most {MAX_COLUMNS} columns"
            )

    @property
    def size(self) -> int:
        return int(self._ids.size)

    def name(self, column: int) -> str:
        return str(self._ids[column_in_range(column, self.size)])

    def names(self, columns: Iterable[int]) -> list[str]:
        return [self.name(c) for c in columns]

    def columns(self, ids: np.ndarray) -> np.ndarray:
        return _find(self._ids, np.ascontiguousarray(ids, np.int64))

    def ids(self, columns: np.ndarray) -> np.ndarray:
        return self._ids[columns]

    def to_header(self) -> dict[str, Any]:
        return {"kind": self.kind, "size": self.size}

    def arrays(self) -> dict[str, np.ndarray]:
        return {"ids": self._ids}

    @classmethod
    def from_parts(
        cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> TableFeatures:
        size = whole_number(header, "size", 0, MAX_COLUMNS)
        only_these(arrays, ("ids",))
        ids = vector(arrays, "ids", np.int64)
        if ids.size != size:
            raise ModelError(f"feature map: the header says {size} ids, the table has {ids.size}")
        if ids.size and (ids[0] < 0 or (ids[1:] <= ids[:-1]).any()):
            raise ModelError("feature map: the id table is not rising from 0 or more")
        return cls(ids)


class NamedFeatures:
    """Column j has the name ``names[j]``, as files with words for features have them.

    Parameters
    ----------
    names : sequence of str or Strings
        The names, each once.

    Examples
    --------
    >>> features = NamedFeatures(["title^good", "bad"])
    >>> features.find(["bad", "ugly"]).tolist(), features.name(0)
    ([1, -1], 'title^good')
    """

    kind = "named"

    def __init__(self, names: Sequence[str] | Strings) -> None:
        self._names = names if isinstance(names, Strings) else Strings.pack(names)
        self._index_of: dict[str, int] | None = None

    @property
    def size(self) -> int:
        return self._names.size

    def name(self, column: int) -> str:
        return self._names.get(column_in_range(column, self.size))

    def names(self, columns: Iterable[int]) -> list[str]:
        return [self.name(c) for c in columns]

    def find(self, names: Iterable[str]) -> np.ndarray:
        """Columns (int32) of names, -1 where unknown."""
        if self._index_of is None:
            self._index_of = {self._names.get(i): i for i in range(self.size)}
        index_of = self._index_of
        return np.array([index_of.get(name, -1) for name in names], np.int32)

    def columns(self, ids: np.ndarray) -> np.ndarray:
        raise HopefearError(
            "these features have names, which a file of numeric ids lacks; give lines as Vowpal "
            "Wabbit has them"
        )

    def ids(self, columns: np.ndarray) -> np.ndarray:
        return columns.astype(np.int64) + 1  # many readers take ids from 1 only

    def to_header(self) -> dict[str, Any]:
        return {"kind": self.kind, "size": self.size}

    def arrays(self) -> dict[str, np.ndarray]:
        return self._names.arrays("names")

    @classmethod
    def from_parts(
        cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> NamedFeatures:
        size = whole_number(header, "size", 0, MAX_COLUMNS)
        only_these(arrays, ("names_text", "names_offsets"))
        names = Strings.from_parts(arrays, "names")
        if names.size != size:
            raise ModelError(f"feature map: the header says {size} names, there are {names.size}")
        return cls(names)


@kernel
def _find(table, ids):
    indices = np.empty(len(ids), np.int32)
    for i in range(len(ids)):
        low, high = 0, len(table)
        while low < high:
            middle = (low + high) >> 1
            if table[middle] < ids[i]:
                low = middle + 1
            else:
                high = middle
        indices[i] = low if low < len(table) and table[low] == ids[i] else -1
    return indices

"""Columns that are the ids of the file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hopefear.core.arrays import Strings, column_in_range, only_these, whole_number
from hopefear.errors import HopefearError, ModelError
from hopefear.features.interface import MAX_COLUMNS


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
        known = (ids >= 0) & (ids < self._size)
        return np.where(known, ids, -1).astype(np.int32)

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

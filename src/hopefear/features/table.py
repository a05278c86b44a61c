"""Columns that stand for scattered 64-bit ids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hopefear.core.arrays import column_in_range, frozen, only_these, vector, whole_number
from hopefear.core.component import kernel
from hopefear.errors import HopefearError, ModelError
from hopefear.features.interface import MAX_COLUMNS


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


@kernel
def _find(table, ids):
    found = np.empty(len(ids), np.int32)
    for i in range(len(ids)):
        low, high = 0, len(table)
        while low < high:
            middle = (low + high) >> 1
            if table[middle] < ids[i]:
                low = middle + 1
            else:
                high = middle
        found[i] = low if low < len(table) and table[low] == ids[i] else -1
    return found

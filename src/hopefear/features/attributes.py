"""Attributes by their names, as in CRFsuite: one column for each string that was seen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hopefear.core.arrays import Strings, column_in_range, frozen, only_these, whole_number
from hopefear.core.component import kernel
from hopefear.core.hashing import StringTable
from hopefear.errors import HopefearError, ModelError
from hopefear.features.attribute_rows import AttributeRows
from hopefear.features.encoded import Attributes
from hopefear.features.interface import MAX_COLUMNS


class AttributeFeatures:
    """Column j is the j-th attribute seen in training.

    Parameters
    ----------
    strings : Strings
        The attributes, all different.

    Examples
    --------
    >>> rows = AttributeRows.of([[["w=a", "bos"], ["w=b", "w=b"]]])
    >>> features = AttributeFeatures.fit(rows)
    >>> features.size, features.name(2)
    (3, 'w=b')
    >>> encoded = features.encode(AttributeRows.of([[["w=b", "w=c", "bos"]]]))
    >>> encoded.indices.tolist(), encoded.indptr.tolist()
    ([2, 1], [0, 2])
    """

    kind = "attributes"
    edge_size = 0

    def __init__(self, strings: Strings) -> None:
        if strings.size > MAX_COLUMNS:
            raise HopefearError(
                f"{strings.size} distinct attributes, but at most {MAX_COLUMNS} columns"
            )
        self._strings = strings
        self._table = StringTable.of(strings)

    @classmethod
    def fit(cls, rows: AttributeRows, min_count: int = 1) -> AttributeFeatures:
        """Give every attribute a column, in order of first appearance.

        Parameters
        ----------
        rows : AttributeRows
            Training data.
        min_count : int
            Leave out attributes that occur less often, whatever their values; larger gives fewer
            columns.
        """
        if min_count < 1:
            raise HopefearError(f"min_count must be at least 1, not {min_count}")
        counts = np.bincount(rows.ids, minlength=rows.strings.size)
        return cls(_kept(rows.strings, counts >= min_count))

    def encode(self, rows: AttributeRows) -> Attributes:
        """Columns of the attributes, in their order.

        Attributes without a column are dropped. One that a token has twice counts once, with the
        sum of its values.
        """
        columns = self._table.find(rows.strings)
        indptr, indices, values = rows.indptr, columns[rows.ids], rows.values
        if (columns < 0).any():
            known = indices >= 0
            indptr = np.concatenate([np.zeros(1, np.int64), np.cumsum(known)])[indptr]
            indices = indices[known]
            values = values[known] if values.size else values
        last = np.full(self.size, -1, np.int64)
        if _repeats(indptr, indices, last):
            if not values.size:
                values = np.ones(len(indices), np.float32)
            last[:] = -1
            with np.errstate(over="ignore"):  # as compiled; checked below
                indptr, indices, values = _merged(indptr, indices, values, last)
            if not np.isfinite(values).all():
                e = int(np.argmin(np.isfinite(values)))
                raise HopefearError(
                    f"{rows.place(int(np.searchsorted(indptr, e, 'right')) - 1)}: the values of "
                    f"{self.name(indices[e])!r} add up to more than float32 holds"
                )
        none, nothing = np.empty(0, np.int32), np.empty(0, np.float32)
        return Attributes(indptr, indices, values, np.zeros(1, np.int64), none, nothing)

    @property
    def size(self) -> int:
        return self._strings.size

    def name(self, column: int) -> str:
        return self._strings.get(column_in_range(column, self.size))

    def names(self, columns: Iterable[int]) -> list[str]:
        return [self.name(c) for c in columns]

    def edge_name(self, column: int) -> str:
        raise HopefearError(f"column {column} does not exist: attributes belong to no edges")

    def to_header(self) -> dict[str, Any]:
        return {"kind": self.kind, "size": self.size}

    def arrays(self) -> dict[str, np.ndarray]:
        return self._strings.arrays("names")

    @classmethod
    def from_parts(
        cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> AttributeFeatures:
        size = whole_number(header, "size", 0, MAX_COLUMNS)
        only_these(arrays, ("names_text", "names_offsets"))
        strings = Strings.from_parts(arrays, "names")
        if strings.size != size:
            raise ModelError(
                f"feature map: the header says {size} attributes, the table has {strings.size}"
            )
        features = cls(strings)
        if features._table.size < size:
            raise ModelError("feature map: an attribute has two columns")
        return features


def _kept(strings: Strings, mask: np.ndarray) -> Strings:
    if mask.all():
        return strings
    sizes = np.diff(strings.offsets)
    text = strings.text[np.repeat(mask, sizes)]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes[mask])])
    return Strings(frozen(text), frozen(offsets))


@kernel
def _repeats(indptr, indices, last):
    for k in range(len(indptr) - 1):
        for e in range(indptr[k], indptr[k + 1]):
            if last[indices[e]] == k:
                return True
            last[indices[e]] = k
    return False


@kernel
def _merged(indptr, indices, values, last):
    starts = np.zeros(len(indptr), np.int64)
    columns = np.empty(len(indices), np.int32)
    sums = np.empty(len(indices), np.float32)
    size = 0
    for k in range(len(indptr) - 1):
        for e in range(indptr[k], indptr[k + 1]):
            j = indices[e]
            if last[j] >= starts[k]:
                sums[last[j]] += values[e]
            else:
                last[j] = size
                columns[size] = j
                sums[size] = values[e]
                size += 1
        starts[k + 1] = size
    return starts, columns[:size].copy(), sums[:size].copy()

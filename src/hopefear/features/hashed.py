"""Columns that n-grams are hashed to, with the names of some."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import Strings, column_in_range, frozen, only_these, vector, whole_number
from hopefear.errors import HopefearError, ModelError
from hopefear.features.ngrams import MAX_ORDER

MAX_BITS = 30
MAX_NAMES = 1 << 16  # common n-grams come early, so the first columns are those one asks about
_BYTES_PER_NAME = 24  # on average, at most


class NameSample(NamedTuple):
    """Names that a kernel collects: the n-gram that came first on each of the first columns."""

    columns: np.ndarray  # int32[most], in the order they came
    offsets: np.ndarray  # int64[most + 1]
    text: np.ndarray  # uint8
    used: np.ndarray  # int64[1], names

    def sorted(self) -> tuple[np.ndarray, Strings]:
        """Columns in rising order, and their names."""
        n = int(self.used[0])
        order = np.argsort(self.columns[:n])
        begins, sizes = self.offsets[:n][order], np.diff(self.offsets[: n + 1])[order]
        offsets = np.zeros(n + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        places = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], sizes)
        return self.columns[:n][order], Strings(frozen(self.text[places]), frozen(offsets))


def empty_names(most: int) -> NameSample:
    """Room for so many names."""
    return NameSample(
        np.zeros(most, np.int32),
        np.zeros(most + 1, np.int64),
        np.zeros(_BYTES_PER_NAME * most, np.uint8),
        np.zeros(1, np.int64),
    )


class HashedFeatures:
    """Column of an n-gram is the top ``bits`` bits of its hash; memory never grows.

    Parameters
    ----------
    order : int
        Longest n-gram, 1 to 3.
    bits : int
        Number of columns is ``2**bits``; more bits mean fewer collisions and more memory.
    collisions : float
        Share of the n-gram occurrences read in training that fell on a column another n-gram had
        claimed first; nan before training.
    columns : array of int32, optional
        Columns whose first n-gram is known, rising.
    names : Strings, optional
        Those n-grams. Others may share the column: ``collisions`` says how likely.

    Examples
    --------
    >>> features = HashedFeatures(1, 10, 0.0, np.array([3]), Strings.pack(["good"]))
    >>> features.names([3, 4])
    ['good', '#4']
    """

    kind = "hashed"

    def __init__(
        self,
        order: int,
        bits: int,
        collisions: float = float("nan"),
        columns: np.ndarray | None = None,
        names: Strings | None = None,
    ) -> None:
        if not 1 <= bits <= MAX_BITS:
            raise HopefearError(f"hash_bits must be 1 to {MAX_BITS}, not {bits}")
        self.order, self.bits, self.collisions = order, bits, collisions
        known = np.zeros(0, np.int32) if columns is None else columns
        self._columns = frozen(np.asarray(known, np.int32))
        self._names = Strings.pack([]) if names is None else names

    @property
    def size(self) -> int:
        return 1 << self.bits

    def name(self, column: int) -> str:
        column = column_in_range(column, self.size)
        place = int(np.searchsorted(self._columns, column))
        if place < len(self._columns) and self._columns[place] == column:
            return self._names.get(place)
        return f"#{column}"

    def names(self, columns: Iterable[int]) -> list[str]:
        return [self.name(c) for c in columns]

    def columns(self, ids: np.ndarray) -> np.ndarray:
        raise HopefearError(
            "these features are hashed word n-grams, which a file of numeric ids lacks; "
            "give lines of label<TAB>text"
        )

    def ids(self, columns: np.ndarray) -> np.ndarray:
        return columns.astype(np.int64) + 1

    def to_header(self) -> dict[str, Any]:
        known = self.collisions == self.collisions
        return {
            "kind": self.kind,
            "order": self.order,
            "bits": self.bits,
            "collisions": self.collisions if known else None,
        }

    def arrays(self) -> dict[str, np.ndarray]:
        return {"columns": self._columns} | self._names.arrays("names")

    @classmethod
    def from_parts(
        cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> HashedFeatures:
        order = whole_number(header, "order", 1, MAX_ORDER)
        bits = whole_number(header, "bits", 1, MAX_BITS)
        only_these(arrays, ("columns", "names_text", "names_offsets"))
        columns, names = vector(arrays, "columns", np.int32), Strings.from_parts(arrays, "names")
        if len(columns) != names.size:
            raise ModelError(f"feature map: {len(columns)} columns have {names.size} names")
        if columns.size and (columns[0] < 0 or (columns[1:] <= columns[:-1]).any()):
            raise ModelError("feature map: the named columns are not rising from 0 or more")
        if columns.size and columns[-1] >= 1 << bits:
            raise ModelError(f"feature map: a name for column {columns[-1]} of {1 << bits}")
        rate = header.get("collisions")
        if rate is None:
            return cls(order, bits, columns=columns, names=names)
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
            raise ModelError(f"feature map: expected collisions from 0 to 1, found {rate!r:.60}")
        return cls(order, bits, float(rate), columns, names)

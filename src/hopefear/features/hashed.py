"""Columns that n-grams are hashed to, without their strings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hopefear.errors import HopefearError, ModelError
from hopefear.features.checks import column_in_range, only_these, whole_number
from hopefear.features.ngrams import MAX_ORDER

MAX_BITS = 30


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

    Examples
    --------
    >>> HashedFeatures(1, 10).name(3)
    '#3'
    """

    kind = "hashed"

    def __init__(self, order: int, bits: int, collisions: float = float("nan")) -> None:
        if not 1 <= bits <= MAX_BITS:
            raise HopefearError(f"hash_bits must be 1 to {MAX_BITS}, not {bits}")
        self.order, self.bits, self.collisions = order, bits, collisions

    @property
    def size(self) -> int:
        return 1 << self.bits

    def name(self, column: int) -> str:
        return f"#{column_in_range(column, self.size)}"

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
        return {}

    @classmethod
    def from_parts(
        cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> HashedFeatures:
        order = whole_number(header, "order", 1, MAX_ORDER)
        bits = whole_number(header, "bits", 1, MAX_BITS)
        only_these(arrays, ())
        rate = header.get("collisions")
        if rate is None:
            return cls(order, bits)
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 <= rate <= 1:
            raise ModelError(f"feature map: expected collisions from 0 to 1, found {rate!r:.60}")
        return cls(order, bits, float(rate))

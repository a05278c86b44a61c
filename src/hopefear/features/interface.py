"""The one page about feature maps: how columns get their meaning, and keep it in a model file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

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
        """Ids (int64) that stand for columns when they are written to a file of numbers."""
        ...

    def to_header(self) -> dict[str, Any]: ...

    def arrays(self) -> dict[str, np.ndarray]: ...

    @classmethod
    def from_parts(
        cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> FeatureMap: ...

"""The feature map of candidate lists: keys by number, and the names that people read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hopefear.errors import HopefearError, ModelError
from hopefear.features.checks import column_in_range, frozen, only_these, vector
from hopefear.features.lists.extraction import Extraction
from hopefear.features.lists.key_table import KeyTable
from hopefear.features.lists.numbering import Numbered, joined, numbered, pruned
from hopefear.features.strings import Strings


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
    """

    kind = "lists"

    def __init__(self, extraction: Extraction, keys: np.ndarray, names: Strings) -> None:
        self.extraction, self.keys, self._names = extraction, frozen(keys), names
        self._table = KeyTable(keys)

    @property
    def size(self) -> int:
        return len(self.keys)

    def name(self, column: int) -> str:
        return self._names.get(column_in_range(column, self.size))

    def names(self, columns: Iterable[int]) -> list[str]:
        return [self.name(column) for column in columns]

    def encode(self, block: Any) -> Numbered:
        """Numbered features of a block of lists; unknown ones are left out."""
        found = self.extraction.extract(block)
        everything = np.arange(self.size, dtype=np.int32)
        return pruned(numbered(found, self._table.find(found.keys)), block.starts, everything)

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
        made = cls(Extraction.from_header(header.get("extraction") or {}), keys, names)
        if made._table.size != keys.size:
            raise ModelError("feature map: a key comes twice")
        return made


class ListNumbering:
    """Takes blocks of lists, one after the other, and numbers their features at the end.

    Parameters
    ----------
    extraction : Extraction
        What is looked at.
    min_count : int
        Features that tell candidates apart in fewer lists are left out.
    """

    def __init__(self, extraction: Extraction, min_count: int = 1) -> None:
        self.extraction, self.min_count = extraction, min_count
        self._table = KeyTable()
        self._names: dict[int, str] = {}
        self._blocks: list[Numbered] = []
        self._starts: list[np.ndarray] = []

    def add(self, block: Any) -> None:
        """Extract the features of a block."""
        found = self.extraction.extract(block)
        before = self._table.seen.copy()
        self._blocks.append(numbered(found, self._table.count(found.keys)))
        self._starts.append(block.starts)
        now = self._table.seen >= self.min_count  # names are asked for when a feature is in
        now[: len(before)] &= before < self.min_count
        wanted = np.sort(self._table.keys[now])
        if wanted.size:
            names = self.extraction.names(block, wanted)
            self._names |= {key: names[key] for key in wanted.tolist()}

    def finish(self) -> tuple[ListFeatures, Numbered]:
        """The feature map, and the features of all blocks."""
        if not self._blocks:
            raise HopefearError("there are no lists to learn from")
        kept = np.flatnonzero(self._table.seen >= self.min_count)
        new = np.full(self._table.size, -1, np.int32)
        new[kept] = np.arange(len(kept), dtype=np.int32)
        keys = self._table.keys[kept].copy()
        names = Strings.pack(self._names[key] for key in keys.tolist())
        for b, starts in enumerate(self._starts):
            self._blocks[b] = pruned(self._blocks[b], starts, new)
        return ListFeatures(self.extraction, keys, names), joined(self._blocks)

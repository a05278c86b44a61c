"""The feature map of candidate lists: keys by number, and readable names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hopefear.core.arrays import Strings, column_in_range, frozen, only_these, vector
from hopefear.core.hashing import KeyTable
from hopefear.errors import ModelError
from hopefear.features.lists.extraction import Extraction
from hopefear.features.lists.numbering import SHORT, NumberedLists, joined, numbered, pruned


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
    """

    kind = "lists"

    def __init__(self, extraction: Extraction, keys: np.ndarray, names: Strings) -> None:
        self.extraction, self.keys, self._names = extraction, frozen(keys), names
        self._table = KeyTable(keys)
        self.seen: int | None = None

    @property
    def size(self) -> int:
        return len(self.keys)

    def name(self, column: int) -> str:
        return self._names.get(column_in_range(column, self.size))

    def names(self, columns: Iterable[int]) -> list[str]:
        return [self.name(column) for column in columns]

    def encode(self, block: Any) -> NumberedLists:
        """Numbered features of a block of lists; unknown ones are left out."""
        keyed = self.extraction.extract(block)
        everything = np.arange(self.size, dtype=np.int32)
        return pruned(numbered(keyed, self._table.find(keyed.keys)), block.starts, everything)

    def selected(self, columns: np.ndarray) -> ListFeatures:
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
    """Numbers the features of blocks of lists, and leaves out rare ones.

    Parameters
    ----------
    extraction : Extraction
        What is looked at.
    min_count : int
        Features that distinguish candidates in fewer lists are left out.
    """

    def __init__(self, extraction: Extraction, min_count: int = 1) -> None:
        self.extraction, self.min_count = extraction, min_count
        self._table = KeyTable()
        self._names: dict[int, str] = {}
        self._blocks: list[tuple[np.ndarray, NumberedLists]] = []  # with the starts of their lists

    def add(self, block: Any) -> None:
        """Extracts the features of a block and numbers them by first appearance."""
        keyed = self.extraction.extract(block)
        before = self._table.size
        rare = self._table.seen < self.min_count
        result = numbered(keyed, self._table.count(keyed.keys))
        now = self._table.seen >= self.min_count  # names are made once a feature is frequent
        now[:before] &= rare
        new_keys = np.sort(self._table.keys[now])
        if new_keys.size:
            names = self.extraction.names(block, new_keys)
            self._names |= {key: names[key] for key in new_keys.tolist()}
        # Most features turn out to be rare, so that columns of 16 bits save a lot until then.
        if np.diff(keyed.scopes).max(initial=0) <= SHORT:
            result = result._replace(columns=result.columns.astype(np.uint16))
        self._blocks.append((block.starts, result))

    def finish(self) -> tuple[ListFeatures, NumberedLists]:
        """Returns the feature map and the features of all blocks; call it after the last block."""
        frequent = np.flatnonzero(self._table.seen >= self.min_count)
        new = np.full(self._table.size, -1, np.int32)
        new[frequent] = np.arange(len(frequent), dtype=np.int32)
        keys = self._table.keys[frequent].copy()
        names = Strings.pack(map(self._names.pop, keys.tolist()))
        self._table = KeyTable()  # room for what follows
        features = ListFeatures(self.extraction, keys, names)
        features.seen = len(new)
        blocks: list[NumberedLists] = []
        self._blocks.reverse()  # so that each is freed when its features have been selected
        while self._blocks:
            starts, block = self._blocks.pop()
            blocks.append(pruned(block, starts, new))
        return features, joined(blocks)

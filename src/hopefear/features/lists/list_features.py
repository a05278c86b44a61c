"""The feature map of candidate lists: keys by number, and the names that people read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hopefear.core.arrays import Strings, column_in_range, frozen, only_these, vector
from hopefear.core.hashing import KeyTable
from hopefear.errors import HopefearError, ModelError
from hopefear.features.lists.extraction import Extraction
from hopefear.features.lists.numbering import Numbered, numbered, pruned
from hopefear.features.lists.pile import Pile

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

    What was extracted waits on disk, because most features turn out to be too rare to keep.

    Parameters
    ----------
    extraction : Extraction
        What is looked at.
    min_count : int
        Features that tell candidates apart in fewer lists are left out.
    folder : path, optional
        Where features wait, and stay: arrays are then mapped from files there, for lists that
        memory would not hold. Unless said they wait among the system's temporary files and end in
        memory.
    """

    def __init__(
        self,
        extraction: Extraction,
        min_count: int = 1,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self.extraction, self.min_count, self.folder = extraction, min_count, folder
        self._table = KeyTable()
        self._names: dict[int, str] = {}
        self._pile = Pile(folder)
        self._starts: list[np.ndarray] = []
        self._widest = 0

    @property
    def seen(self) -> int:
        """Number of different features so far."""
        return self._table.size

    def add(self, block: Any) -> None:
        """Extract the features of a block."""
        found = self.extraction.extract(block)
        self._widest = max(self._widest, int(np.diff(found.scopes).max(initial=0)))
        before = self._table.size
        rare = self._table.seen < self.min_count
        self._pile.add(numbered(found, self._table.count(found.keys)))
        self._starts.append(block.starts)
        now = self._table.seen >= self.min_count  # names are asked for when a feature is in
        now[:before] &= rare
        wanted = np.sort(self._table.keys[now])
        if wanted.size:
            names = self.extraction.names(block, wanted)
            self._names |= {key: names[key] for key in wanted.tolist()}

    def close(self) -> None:
        """Forget what was extracted."""
        self._pile.close()

    def finish(self) -> tuple[ListFeatures, Numbered]:
        """The feature map, and the features of all blocks."""
        if not self._starts:
            raise HopefearError("there are no lists to learn from")
        kept = np.flatnonzero(self._table.seen >= self.min_count)
        new = np.full(self._table.size, -1, np.int32)
        new[kept] = np.arange(len(kept), dtype=np.int32)
        keys = self._table.keys[kept].copy()
        names = Strings.pack(map(self._names.pop, keys.tolist()))
        self._table = KeyTable()  # room for what follows
        pile = Pile(self.folder, short=self._widest <= SHORT)
        for block, starts in zip(self._pile.blocks(), self._starts, strict=True):
            pile.add(pruned(block, starts, new))
        self._pile.close()
        features = ListFeatures(self.extraction, keys, names)
        features.seen = len(new)
        whole = pile.whole(mapped=self.folder is not None)
        if self.folder is None:
            pile.close()
        else:
            features.pile = pile  # the files live as long as what they mean
        return features, whole

"""Columns that are word n-grams, with every string kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hopefear.core.arrays import (
    Strings,
    column_in_range,
    frozen,
    in_range,
    only_these,
    vector,
    whole_number,
)
from hopefear.core.hashing import (
    ENTRIES,
    TEXT,
    TOKENS,
    NGramTables,
    empty_tables,
    fill_slots,
    hash_tokens,
)
from hopefear.errors import HopefearError, ModelError
from hopefear.features.interface import MAX_COLUMNS

MAX_ORDER = 3


class NGramFeatures:
    """Column j is the n-gram ``parent[j]`` followed by ``token[j]``; names are exact.

    Parameters
    ----------
    order : int
        Longest n-gram, 1 to 3.
    tokens : Strings
        The distinct tokens.
    parent, token : arrays of int32
        For each column the column of its first n - 1 tokens (-1 for a single token) and its last
        token.

    Examples
    --------
    >>> import numpy as np
    >>> words = Strings.pack(["not", "good"])
    >>> parent, token = np.array([-1, -1, 0]), np.array([0, 1, 1])
    >>> NGramFeatures(2, words, parent, token).names([1, 2])
    ['good', 'not good']
    """

    kind = "ngrams"

    def __init__(self, order: int, tokens: Strings, parent: np.ndarray, token: np.ndarray) -> None:
        self.order = order
        self._tokens = tokens
        self._parent = frozen(np.asarray(parent, np.int32))
        self._token = frozen(np.asarray(token, np.int32))
        self._tables: NGramTables | None = None

    @property
    def size(self) -> int:
        return int(self._parent.size)

    def name(self, column: int) -> str:
        column = column_in_range(column, self.size)
        words = []
        while column >= 0:
            words.append(self._tokens.get(int(self._token[column])))
            column = int(self._parent[column])
        return " ".join(reversed(words))

    def names(self, columns: Iterable[int]) -> list[str]:
        return [self.name(c) for c in columns]

    def columns(self, ids: np.ndarray) -> np.ndarray:
        raise HopefearError(
            "these features are word n-grams, which a file of numeric ids lacks; "
            "give lines of label<TAB>text"
        )

    def ids(self, columns: np.ndarray) -> np.ndarray:
        # Many readers take ids from 1 only.
        return columns.astype(np.int64) + 1

    def tables(self) -> NGramTables:
        """Hash tables for a reader that looks n-grams up; built once."""
        if self._tables is None:
            self._tables = self._build_tables()
        return self._tables

    def to_header(self) -> dict[str, Any]:
        return {"kind": self.kind, "size": self.size, "order": self.order}

    def arrays(self) -> dict[str, np.ndarray]:
        return self._tokens.arrays("tokens") | {"parent": self._parent, "token": self._token}

    @classmethod
    def from_parts(
        cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]
    ) -> NGramFeatures:
        size = whole_number(header, "size", 0, MAX_COLUMNS)
        order = whole_number(header, "order", 1, MAX_ORDER)
        only_these(arrays, ("tokens_text", "tokens_offsets", "parent", "token"))
        tokens = Strings.from_parts(arrays, "tokens")
        parent, token = vector(arrays, "parent", np.int32), vector(arrays, "token", np.int32)
        if not parent.size == token.size == size:
            raise ModelError(
                f"feature map: the header says {size} n-grams, the arrays have "
                f"{parent.size} and {token.size}"
            )
        in_range(token, "token", 0, tokens.size - 1)
        in_range(parent, "parent", -1, size - 1)
        # A parent before its child rules out cycles, so every name ends.
        if (parent >= np.arange(size)).any():
            raise ModelError("feature map: an n-gram stands before its own beginning")
        depth = np.ones(size, np.int64)
        for _ in range(order):
            depth = np.where(parent < 0, 1, depth[parent] + 1) if size else depth
        if size and int(depth.max()) > order:
            raise ModelError(f"feature map: an n-gram is longer than {order} tokens")
        return cls(order, tokens, parent, token)

    def _build_tables(self) -> NGramTables:
        count, size = self._tokens.size, self.size
        tables = empty_tables(max(1, count), max(1, self._tokens.text.size), max(1, size))
        tables.text[: self._tokens.text.size] = self._tokens.text
        tables.offsets[: count + 1] = self._tokens.offsets
        tables.parent[:size] = self._parent
        tables.token[:size] = self._token
        tables.used[TOKENS], tables.used[TEXT] = count, self._tokens.text.size
        tables.used[ENTRIES] = size
        alone = np.flatnonzero(self._parent < 0)
        tables.unigram[self._token[alone]] = alone
        with np.errstate(over="ignore"):  # hashes wrap; only uncompiled kernels warn
            hash_tokens(tables)
            fill_slots(tables)
        return tables


def ngrams_from_tables(
    tables: NGramTables, order: int, min_count: int
) -> tuple[NGramFeatures, np.ndarray]:
    """The n-grams seen in at least min_count rows, and the new column of each entry (or -1).

    Every beginning of a kept n-gram is seen at least as often, so it is kept too.
    """
    size, count = int(tables.used[ENTRIES]), int(tables.used[TOKENS])
    keep = tables.seen[1 : 2 * size : 2] >= min_count
    column = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
    keep_token = keep[tables.unigram[:count]] if count else np.zeros(0, bool)
    number = (np.cumsum(keep_token) - 1).astype(np.int32)
    parent = tables.parent[:size][keep]
    parent = np.where(parent < 0, -1, column[parent]).astype(np.int32)
    lengths = np.diff(tables.offsets[: count + 1])
    offsets = np.zeros(int(keep_token.sum()) + 1, np.int64)
    np.cumsum(lengths[keep_token], out=offsets[1:])
    text = tables.text[: tables.used[TEXT]][np.repeat(keep_token, lengths)]
    words = Strings(frozen(text), frozen(offsets))
    return NGramFeatures(order, words, parent, number[tables.token[:size][keep]]), column

"""Constituent trees as arrays: what readers make, what feature and scoring kernels walk."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np


class TreeRows(NamedTuple):
    """The arrays a kernel sees; all read-only and contiguous.

    Tree t has the nodes ``starts[t] .. starts[t + 1] - 1``, in preorder: a node stands before its
    children, and its subtree is one stretch. Words are no nodes; the tag above a word carries it.
    Positions of nodes count from the root of their tree, positions of tokens from its first.
    """

    starts: np.ndarray  # int64[trees + 1]
    labels: np.ndarray  # int32[nodes]: symbol of a constituent or of a tag
    words: np.ndarray  # int32[nodes]: symbol of the word under a tag; -1 above tags
    parents: np.ndarray  # int32[nodes]: position in the tree; -1 at the root
    nexts: np.ndarray  # int32[nodes]: position behind the last node of the subtree
    begins: np.ndarray  # int32[nodes]: first token covered
    ends: np.ndarray  # int32[nodes]: behind the last token covered


@dataclass(frozen=True)
class Trees:
    """Trees and the strings that their symbols stand for."""

    rows: TreeRows
    symbols: Sequence[str]

    def __len__(self) -> int:
        return len(self.rows.starts) - 1

    def compact(self) -> Trees:
        """The same trees with only the symbols they use, in the same order.

        >>> rows = TreeRows(*map(np.array, ([0, 1], [5], [7], [-1], [1], [0], [1])))
        >>> found = Trees(rows, list("abcdefgh")).compact()
        >>> found.symbols, found.rows.labels.tolist(), found.rows.words.tolist()
        (['f', 'h'], [0], [1])
        """
        rows, used = self.rows, np.zeros(len(self.symbols) + 1, bool)
        used[rows.labels] = used[rows.words] = True  # no word is -1, which is the last
        used[-1] = False
        numbers = np.cumsum(used, dtype=np.int32) - np.int32(1)
        numbers[-1] = -1
        symbols = [self.symbols[s] for s in np.flatnonzero(used).tolist()]
        return Trees(rows._replace(labels=numbers[rows.labels], words=numbers[rows.words]), symbols)

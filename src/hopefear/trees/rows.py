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

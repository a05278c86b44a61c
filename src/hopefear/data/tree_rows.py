"""Dependency trees ready for training: arrays, and what their numbers mean."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import check_range, check_rising, frozen_as, gathered, stretches
from hopefear.core.checks import check_not_negative
from hopefear.data.blocks import rows_digest
from hopefear.errors import HopefearError

# Rows that the words of a sentence have beside its own: two in front, the root, two behind.
EXTRA_ROWS = 5


class TreeRows(NamedTuple):
    """The arrays a kernel sees; all read-only and contiguous.

    Sentence i has the tokens ``starts[i] .. starts[i + 1] - 1``, its words 1, 2 and so on; word 0
    is the root. What features look at (``words`` to ``morphs``) has five rows more for each
    sentence. The heads that token k may have are ``heads[ptr[k]:ptr[k + 1]]``, ascending. Its label
    is ``head * relations + relation``.
    """

    starts: np.ndarray  # int64[n + 1]
    words: np.ndarray  # uint64[rows * columns]
    coarse: np.ndarray  # uint8[rows]
    marks: np.ndarray  # uint8[rows]
    morph_ptr: np.ndarray  # int64[rows + 1]
    morphs: np.ndarray  # uint64
    ptr: np.ndarray  # int64[tokens + 1]
    heads: np.ndarray  # int32[arcs]
    labels: np.ndarray  # int32[tokens]; -1 = unknown
    weights: np.ndarray  # float32[n]

    @property
    def n_values(self) -> int:
        """Estimates how many features the parts of all sentences have."""
        return 200 * self.heads.size


DTYPES = tuple(np.dtype(t) for t in ("i8", "u8", "u1", "u1", "i8", "u8", "i8", "i4", "i4", "f4"))


class TreeKind(NamedTuple):
    """Kind of trees in a dataset.

    Parameters
    ----------
    order : int
        1: arcs are scored one by one; 2: with siblings and grandparents.
    projective : bool
        Whether arcs must not cross.
    single : bool
        Whether one word hangs on the root, or any number.
    """

    order: int = 2
    projective: bool = False
    single: bool = False

    @property
    def name(self) -> str:
        return "projective" if self.projective else "nonprojective"


class TreeDataset:
    """Sentences with candidate arcs and, where they are known, trees.

    Parameters
    ----------
    rows : TreeRows
        The arrays; other types are converted, and all become read-only. Those that kernels would
        follow out of bounds are refused.
    labels : sequence of str
        Names of the relations.
    features : ArcMap
        What fires on arcs.
    source : str
        Where the data came from, for messages and model files.
    kind : TreeKind
        Which trees there are.
    pruner : Pruner, optional
        What chose the arcs.
    bank : Treebank, optional
        What the arrays were made of.
    lifted : int
        Arcs of the bank that cross others and hang elsewhere here.
    """

    def __init__(
        self,
        rows: TreeRows,
        labels: Sequence[str],
        features: Any,
        source: str = "memory",
        kind: TreeKind = TreeKind(),  # noqa: B008 - frozen
        pruner: Any = None,
        bank: Any = None,
        lifted: int = 0,
    ) -> None:
        self.kind, self.pruner, self.bank, self.lifted = kind, pruner, bank, lifted
        self.rows = TreeRows(*(frozen_as(a, t) for a, t in zip(rows, DTYPES, strict=True)))
        self.labels = tuple(labels)
        self.features = features
        self.source = source
        self._check()

    def __len__(self) -> int:
        return len(self.rows.weights)

    @property
    def n_tokens(self) -> int:
        return len(self.rows.labels)

    def __repr__(self) -> str:
        return (
            f"<TreeDataset {self.source}: {len(self)} sentences, {self.n_tokens} tokens, "
            f"{self.rows.heads.size} arcs, {len(self.labels)} relations>"
        )

    def _check(self) -> None:
        """Checks that numbers are within their arrays: kernels index without checks."""
        rows, source, n = self.rows, self.source, len(self.rows.labels)
        check_rising(rows.starts, "starts", len(rows.weights), n, source)
        check_rising(rows.ptr, "ptr", n, len(rows.heads), source)
        lengths = np.diff(rows.starts)
        check_range(rows.heads, "heads", 0, int(lengths.max(initial=0)) + 1, source)
        max_heads = np.repeat(lengths, lengths)
        owners = np.repeat(np.arange(n), np.diff(rows.ptr))
        within = bool(np.all(rows.heads <= max_heads[owners]))
        check_range(np.array([0 if within else -1]), "heads of a sentence", 0, 1, source)
        table = n + EXTRA_ROWS * len(rows.weights)
        check_rising(rows.morph_ptr, "morph_ptr", table, len(rows.morphs), source)
        if not rows.coarse.size == rows.marks.size == table or rows.words.size % max(1, table):
            raise HopefearError(f"{source}: sentences need {table} rows of words")
        codes = (int(lengths.max(initial=0)) + 1) * max(1, len(self.labels))
        check_range(rows.labels, "labels", -1, codes, source)
        check_not_negative(f"{source}: sentence weights", rows.weights)

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the content: names of relations and every array."""
        return rows_digest([*self.labels, str(self.features.size)], self.rows)

    def take(self, indices: Sequence[int] | np.ndarray) -> TreeDataset:
        """The sentences of these numbers, in this order."""
        indices, rows = np.asarray(indices, np.int64), self.rows
        lengths = rows.starts[indices + 1] - rows.starts[indices]
        tokens = stretches(rows.starts[indices], lengths)
        row_indices = stretches(rows.starts[indices] + EXTRA_ROWS * indices, lengths + EXTRA_ROWS)
        morph_ptr, morphs = gathered(rows.morph_ptr, row_indices)
        arc_offsets, arcs = gathered(rows.ptr, tokens)
        columns = rows.words.size // max(1, rows.coarse.size)
        selected = TreeRows(
            np.concatenate([[0], np.cumsum(lengths)]),
            rows.words.reshape(-1, max(1, columns))[row_indices].ravel(),
            rows.coarse[row_indices],
            rows.marks[row_indices],
            morph_ptr,
            rows.morphs[morphs],
            arc_offsets,
            rows.heads[arcs],
            rows.labels[tokens],
            rows.weights[indices],
        )
        bank = None if self.bank is None else self.bank.take(indices)
        metadata = (self.features, self.source, self.kind, self.pruner, bank, self.lifted)
        return TreeDataset(selected, self.labels, *metadata)

    def with_arcs(self, arc_offsets: np.ndarray, heads: np.ndarray, pruner: Any) -> TreeDataset:
        """The same sentences with the arcs that a pruner chose."""
        rows = self.rows._replace(ptr=arc_offsets, heads=heads)
        metadata = (self.features, self.source, self.kind, pruner, self.bank, self.lifted)
        return TreeDataset(rows, self.labels, *metadata)

    def known(self, bank: Any, lifted: int) -> TreeDataset:
        """The same, with the treebank it was made of and how many of its arcs were lifted."""
        metadata = (self.features, self.source, self.kind, self.pruner, bank, lifted)
        return TreeDataset(self.rows, self.labels, *metadata)

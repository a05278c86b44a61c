"""Sequences of tokens: what taggers read, what they are trained on."""

from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import check_range, check_rising, frozen_as, gathered, stretches
from hopefear.core.checks import check_not_negative
from hopefear.data.blocks import Spans, rows_digest, span
from hopefear.errors import HopefearError


class TokenRows(NamedTuple):
    """The arrays a kernel sees; all read-only and contiguous.

    Sequence i has the tokens ``starts[i] .. starts[i + 1] - 1``; token k has the attributes
    ``indices[indptr[k]:indptr[k + 1]]``. Empty ``values`` mean that all of them are 1, which is the
    usual case and costs no memory. Edge attributes fire on pairs of labels (the label of the token
    and the one before); ``edge_indptr`` is ``[0]`` where there are none.
    """

    starts: np.ndarray  # int64[n + 1]
    indptr: np.ndarray  # int64[tokens + 1]
    indices: np.ndarray  # int32[nnz]
    values: np.ndarray  # float32[nnz] or float32[0]
    edge_indptr: np.ndarray  # int64[tokens + 1] or [0]
    edge_indices: np.ndarray  # int32[edge nnz]
    edge_values: np.ndarray  # float32[edge nnz] or float32[0]
    labels: np.ndarray  # int32[tokens], position in the label names; -1 = unknown
    weights: np.ndarray  # float32[n]


DTYPES = tuple(np.dtype(t) for t in ("i8", "i8", "i4", "f4", "i8", "i4", "f4", "i4", "f4"))


@dataclass(frozen=True)
class Column:
    """One column of text, each distinct string kept once: row k reads ``strings[ids[k]]``."""

    strings: Sequence[str]
    ids: np.ndarray  # int32[tokens]

    def __getitem__(self, k: int) -> str:
        return self.strings[self.ids[k]]

    def texts(self) -> list[str]:
        """All rows as strings."""
        strings = list(self.strings)
        return [strings[i] for i in self.ids.tolist()]

    @classmethod
    def of(cls, texts: Sequence[str]) -> Column:
        """Encode strings; ids in order of first appearance.

        >>> Column.of(["a", "b", "a"]).ids.tolist()
        [0, 1, 0]
        """
        code = dict.fromkeys(texts, 0)
        for i, text in enumerate(code):
            code[text] = i
        ids = np.fromiter(map(code.__getitem__, texts), np.int32, len(texts))
        return cls(list(code), ids)


class ColumnTable(dict[str, Column]):
    """Columns by name, in the order of the file; other names lead to them too.

    Examples
    --------
    >>> table = ColumnTable({"word": Column.of(["a"])}, {"0": "word"})
    >>> table["0"][0], "0" in table, list(table)
    ('a', True, ['word'])
    """

    def __init__(self, columns: dict[str, Column], aliases: dict[str, str]) -> None:
        super().__init__(columns)
        self.aliases = aliases

    def __missing__(self, name: str) -> Column:
        return super().__getitem__(self.aliases[name])

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.aliases

    def get(self, name: str, default: Any = None) -> Any:
        return super().get(self.aliases.get(name, name), default)


@dataclass(frozen=True)
class Sentences:
    """Tokens in sentences, as named columns of text.

    Parameters
    ----------
    starts : int64 array
        Sentence i has the tokens ``starts[i] .. starts[i + 1] - 1``.
    columns : dict of str to Column
        In the order of the file.
    source : str
        Where they came from, for messages.
    lines : int64 array, optional
        Line number of each token in that file, from 1.
    """

    starts: np.ndarray
    columns: dict[str, Column]
    source: str = "memory"
    lines: np.ndarray | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def n_tokens(self) -> int:
        return int(self.starts[-1])

    def take(self, indices: np.ndarray) -> Sentences:
        """The sentences of these numbers, in this order."""
        lengths = np.diff(self.starts)[indices]
        tokens = stretches(self.starts[indices], lengths)
        columns = copy.copy(self.columns)  # other names than those of a dict stay
        for key, column in self.columns.items():
            columns[key] = Column(column.strings, column.ids[tokens])
        starts = np.concatenate([[0], np.cumsum(lengths)])
        lines = None if self.lines is None else self.lines[tokens]
        return Sentences(starts, columns, self.source, lines)

    def place(self, k: int) -> int:
        """Line of token ``k``; its number, from 1, where lines are not known."""
        return int(self.lines[k]) if self.lines is not None else k + 1


class SequenceDataset:
    """Sequences ready for training: arrays, and what attributes and labels mean.

    Parameters
    ----------
    rows : TokenRows
        The arrays; other types are converted, and all become read-only. Those that kernels would
        follow out of bounds are refused.
    labels : sequence of str
        Label names in the order of the label codes.
    features : feature map
        Meaning of the attributes; has ``size`` and ``edge_size``. None: attributes may have any
        number, and whoever uses them must know how many there are.
    source : str
        Where the data came from, for messages and model files.
    cache : CachedArrays, optional
        The cache beneath the arrays, where there is one.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> rows = TokenRows([0, 2], [0, 1, 3], [4, 0, 4], [], [0], [], [], [1, 0], [1.0])
    >>> data = SequenceDataset(rows, ("N", "V"), SimpleNamespace(size=5, edge_size=0))
    >>> len(data), data.n_tokens
    (1, 2)
    """

    offsets = frozenset({"starts", "indptr", "edge_indptr"})

    def __init__(
        self,
        rows: TokenRows,
        labels: Sequence[str],
        features: Any,
        source: str = "memory",
        cache: Any = None,
    ) -> None:
        self.rows = TokenRows(*(frozen_as(a, t) for a, t in zip(rows, DTYPES, strict=True)))
        self.labels = tuple(labels)
        self.features = features
        self.source = source
        self.cache = cache
        if cache is None:  # else block by block, by the code that opened it
            self._check()

    def __len__(self) -> int:
        return len(self.rows.weights)

    @property
    def n_tokens(self) -> int:
        return len(self.rows.labels)

    def spans(self, begin: int, end: int) -> Spans:
        """Returns start and end in each array for the sequences from ``begin`` to ``end``."""
        rows, sequences = self.rows, (begin, end)
        tokens = span(self, "starts", begin, end)
        entries = span(self, "indptr", *tokens)
        edges, edge_tokens = (0, 0), (0, 0)
        if rows.edge_indptr.size > 1:
            edge_tokens = tokens
            edges = span(self, "edge_indptr", *tokens)
        values = entries if rows.values.size else (0, 0)
        edge_values = edges if rows.edge_values.size else (0, 0)
        spans = (
            sequences,
            tokens,
            entries,
            values,
            edge_tokens,
            edges,
            edge_values,
            tokens,
            sequences,
        )
        return dict(zip(TokenRows._fields, spans, strict=True))

    def __repr__(self) -> str:
        return (
            f"<SequenceDataset {self.source}: {len(self)} sequences, {self.n_tokens} tokens, "
            f"{self.features.size} attributes, {len(self.labels)} labels>"
        )

    def _check(self) -> None:
        """Checks that numbers are within their arrays: kernels index without checks."""
        rows, features, source = self.rows, self.features, self.source
        sizes = (None, None) if features is None else (features.size, features.edge_size)
        if flat := [name for name, a in rows._asdict().items() if a.ndim != 1]:
            raise HopefearError(f"{source}: {flat[0]} must have one dimension")
        check_rising(rows.starts, "starts", len(rows.weights), len(rows.labels), source)
        check_rising(rows.indptr, "indptr", len(rows.labels), len(rows.indices), source)
        if sizes[1] or rows.edge_indptr.size != 1 or rows.edge_indices.size:
            n, ends = len(rows.labels), len(rows.edge_indices)
            check_rising(rows.edge_indptr, "edge_indptr", n, ends, source)
        elif rows.edge_indptr[0] != 0:
            raise HopefearError(f"{source}: edge_indptr must begin with 0")
        check_range(rows.indices, "indices", 0, sizes[0], source)
        check_range(rows.edge_indices, "edge_indices", 0, sizes[1], source)
        check_range(rows.labels, "labels", -1, len(self.labels), source)
        for values, of in ((rows.values, rows.indices), (rows.edge_values, rows.edge_indices)):
            if values.size not in (0, of.size):
                raise HopefearError(
                    f"{source}: {of.size} attributes need as many values, or none, not "
                    f"{values.size}"
                )
            if values.size and not (np.isfinite(values.min()) and np.isfinite(values.max())):
                raise HopefearError(f"{source}: a value of an attribute is not finite")
        check_not_negative(f"{source}: sequence weights", rows.weights)

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the content: label names, sizes and every array."""
        words = [*self.labels, str(self.features.size), str(self.features.edge_size)]
        return rows_digest(words, self.rows)

    def take(self, indices: Sequence[int] | np.ndarray) -> SequenceDataset:
        """The sequences of these numbers, in this order."""
        if self.cache is not None:
            self.cache.check()
        indices = np.asarray(indices, np.int64)
        rows = self.rows
        lengths = np.diff(rows.starts)[indices]
        starts = np.concatenate([[0], np.cumsum(lengths)])
        tokens = stretches(rows.starts[indices], lengths)
        edges = rows.edge_indptr.size > 1
        indptr, entries = gathered(rows.indptr, tokens)
        edge_indptr, edge_entries = (
            gathered(rows.edge_indptr, tokens) if edges else (rows.edge_indptr, np.empty(0, int))
        )
        return SequenceDataset(
            TokenRows(
                starts,
                indptr,
                rows.indices[entries],
                rows.values[entries] if rows.values.size else rows.values,
                edge_indptr,
                rows.edge_indices[edge_entries],
                rows.edge_values[edge_entries] if rows.edge_values.size else rows.edge_values,
                rows.labels[tokens],
                rows.weights[indices],
            ),
            self.labels,
            self.features,
            self.source,
        )

    def weighted(self, weights: Any) -> SequenceDataset:
        """The same sequences with these weights."""
        weights = np.asarray(weights, np.float32)
        if weights.shape != (len(self),):
            raise HopefearError(
                f"{len(self)} sequences need as many weights, not an array of {weights.shape}"
            )
        rows = self.rows._replace(weights=weights)
        return SequenceDataset(rows, self.labels, self.features, self.source, self.cache)

"""Sequences of tokens with what fires on stretches of them: what segments are learned from."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import check_range, check_rising, frozen_as, gathered, stretches
from hopefear.core.checks import check_not_negative
from hopefear.data.blocks import Spans, rows_digest, span
from hopefear.data.schemes import BEGIN, INSIDE, split_label
from hopefear.data.sequences import Column, SequenceDataset
from hopefear.errors import HopefearError


class SegmentRows(NamedTuple):
    """The arrays a kernel sees; those of ``TokenRows``, with segments in place of edges.

    The segment of d tokens that begins at token k is number ``k * longest + d - 1``. Segment s has
    the attributes ``span_indices[span_indptr[s]:span_indptr[s + 1]]``, none where it would leave
    its sequence. Labels are codes of tokens, as BIO columns have them.
    """

    starts: np.ndarray  # int64[n + 1]
    indptr: np.ndarray  # int64[tokens + 1]
    indices: np.ndarray  # int32[nnz]
    values: np.ndarray  # float32[nnz] or float32[0]
    span_indptr: np.ndarray  # int64[tokens * longest + 1]
    span_indices: np.ndarray  # int32[span nnz]
    labels: np.ndarray  # int32[tokens], position in the label names; -1 = unknown
    weights: np.ndarray  # float32[n]


DTYPES = tuple(np.dtype(t) for t in ("i8", "i8", "i4", "f4", "i8", "i4", "i4", "f4"))


class SegmentDataset(SequenceDataset):
    """Sequences ready for segments to be learned from.

    Parameters
    ----------
    rows : SegmentRows
        The arrays; other types are converted, and all become read-only.
    labels : sequence of str
        Names of the codes, in BIO.
    features : SegmentFeatures
        Meaning of the attributes; has ``size`` and ``longest``.
    source : str
        Where the data came from, for messages and model files.
    """

    offsets = frozenset({"starts", "indptr", "span_indptr"})

    def __init__(
        self, rows: SegmentRows, labels: Sequence[str], features: Any, source: str = "memory"
    ) -> None:
        self.rows: Any = SegmentRows(*(frozen_as(a, t) for a, t in zip(rows, DTYPES, strict=True)))
        self.labels, self.features, self.source = tuple(labels), features, source
        self.cache = None
        self._check()

    def spans(self, begin: int, end: int) -> Spans:
        """The part of each array that the sequences from ``begin`` to ``end`` take."""
        rows, longest = self.rows, self.features.longest
        tokens = span(self, "starts", begin, end)
        entries = span(self, "indptr", *tokens)
        segments = tokens[0] * longest, tokens[1] * longest
        values = entries if rows.values.size else (0, 0)
        spans = ((begin, end), tokens, entries, values, segments)
        tail = (span(self, "span_indptr", *segments), tokens, (begin, end))
        return dict(zip(SegmentRows._fields, (*spans, *tail), strict=True))

    def _check(self) -> None:
        """Refuse numbers that would lead kernels out of their arrays."""
        rows, source, size = self.rows, self.source, self.features.size
        tokens = len(rows.labels)
        check_rising(rows.starts, "starts", len(rows.weights), tokens, source)
        check_rising(rows.indptr, "indptr", tokens, len(rows.indices), source)
        n, end = tokens * self.features.longest, len(rows.span_indices)
        check_rising(rows.span_indptr, "span_indptr", n, end, source)
        check_range(rows.indices, "indices", 0, size, source)
        check_range(rows.span_indices, "span_indices", 0, size, source)
        check_range(rows.labels, "labels", -1, len(self.labels), source)
        if rows.values.size not in (0, rows.indices.size):
            raise HopefearError(
                f"{source}: {rows.indices.size} attributes need as many values, or none, not "
                f"{rows.values.size}"
            )
        if not np.isfinite(rows.values).all():
            raise HopefearError(f"{source}: a value of an attribute is not finite")
        check_not_negative(f"{source}: sequence weights", rows.weights)

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the content: label names, sizes and every array."""
        words = [*self.labels, str(self.features.size), str(self.features.longest)]
        return rows_digest(words, self.rows)

    def take(self, indices: Sequence[int] | np.ndarray) -> SegmentDataset:
        """The sequences of these numbers, in this order."""
        indices, rows, longest = np.asarray(indices, np.int64), self.rows, self.features.longest
        lengths = np.diff(rows.starts)[indices]
        tokens = stretches(rows.starts[indices], lengths)
        indptr, entries = gathered(rows.indptr, tokens)
        segments = stretches(rows.starts[indices] * longest, lengths * longest)
        span_indptr, span_entries = gathered(rows.span_indptr, segments)
        selected = SegmentRows(
            np.concatenate([[0], np.cumsum(lengths)]),
            indptr,
            rows.indices[entries],
            rows.values[entries] if rows.values.size else rows.values,
            span_indptr,
            rows.span_indices[span_entries],
            rows.labels[tokens],
            rows.weights[indices],
        )
        return SegmentDataset(selected, self.labels, self.features, self.source)

    def weighted(self, weights: Any) -> SegmentDataset:
        """The same sequences with these weights."""
        weights = np.asarray(weights, np.float32)
        if weights.shape != (len(self),):
            raise HopefearError(
                f"{len(self)} sequences need as many weights, not an array of {weights.shape}"
            )
        rows = self.rows._replace(weights=weights)
        return SegmentDataset(rows, self.labels, self.features, self.source)


def segment_codes(labels: Sequence[str]) -> tuple[list[int], list[int]]:
    """Codes of the first and of other tokens of every kind of segment; -1 where it has no others.

    >>> segment_codes(["O", "B-gene", "I-gene", "B-cell"])
    ([0, 1, 3], [-1, 2, -1])
    """
    codes = {split_label(label, "bio"): code for code, label in enumerate(labels)}
    firsts = [code for code, label in enumerate(labels) if not label.startswith("I")]
    kinds = [(split_label(labels[code], "bio") or (BEGIN, ""))[1] for code in firsts]
    inside = [
        -1 if labels[code] == "O" else codes.get((INSIDE, kind), -1)
        for code, kind in zip(firsts, kinds, strict=True)
    ]
    if None in codes or len(firsts) + sum(code >= 0 for code in inside) != len(labels):
        raise HopefearError(
            f"segments are learned from BIO labels that begin with B-; found {', '.join(labels)}"
        )
    return firsts, inside


def check_segments(data: SequenceDataset) -> None:
    """Refuse labels that are no segments, which kernels would follow out of their arrays."""
    rows, longest = data.rows, data.features.longest
    begin, inside = segment_codes(data.labels)
    before = np.full(len(data.labels), -1)  # codes of the same segment
    before[[code for code in inside if code >= 0]] = [
        first for first, inner in zip(begin, inside, strict=True) if inner >= 0
    ]
    codes = rows.labels
    continues = before[codes] >= 0
    k = np.arange(codes.size)
    first = np.maximum.accumulate(np.where(continues, 0, k))
    opens = np.zeros(codes.size, bool)
    opens[rows.starts[:-1][np.diff(rows.starts) > 0]] = True
    wrong = continues & (opens | (codes[first] != before[codes]) | (k - first >= longest))
    wrong[1:] |= continues[1:] & continues[:-1] & (before[codes[1:]] != before[codes[:-1]])
    if wrong.any():
        raise HopefearError(
            f"{data.source}: token {int(np.argmax(wrong)) + 1} goes on with no span of up to "
            f"{longest} tokens"
        )


class Shortened(NamedTuple):
    """BIO labels without long spans, and the number of spans that were cut."""

    labels: Column
    n_cut: int


def shorten_spans(labels: Column, longest: int) -> Shortened:
    """Cut spans of more than ``longest`` tokens, in BIO labels, into spans of that length.

    >>> shorten_spans(Column.of(["B-x", "I-x", "I-x", "O"]), 2).labels.texts()
    ['B-x', 'I-x', 'B-x', 'O']
    """
    inside = np.array([label.startswith("I") for label in labels.strings], bool)[labels.ids]
    k = np.arange(inside.size)
    offsets = k - np.maximum.accumulate(np.where(inside, 0, k))
    cut = inside & (offsets % longest == 0)
    if not cut.any():
        return Shortened(labels, 0)
    strings = [*labels.strings]
    numbers = {label: number for number, label in enumerate(strings)}
    first = np.arange(len(strings), dtype=np.int32)
    for number, label in enumerate(labels.strings):
        if label.startswith("I"):
            begin = f"B{label[1:]}"
            first[number] = numbers.setdefault(begin, len(numbers))
            strings = list(numbers)
    ids = np.where(cut, first[labels.ids], labels.ids)
    return Shortened(Column(strings, ids), int(np.count_nonzero(inside & (offsets == longest))))

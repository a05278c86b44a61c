"""All segmentations of a few tokens, for contracts."""

from __future__ import annotations

import itertools

import numpy as np

from hopefear.core.interfaces import n_weights
from hopefear.data.segments import SegmentRows
from hopefear.structures.segments.segments import Segments
from hopefear.testing.worlds import Outputs, attributes, outputs_of, tiny_rows


@outputs_of.register(Segments)
def segment_outputs(structure: Segments, rows: SegmentRows, i: int) -> Outputs:
    """Every way to cut a sequence into segments, under cuts labelling."""
    first, last = int(rows.starts[i]), int(rows.starts[i + 1])
    gold = tuple(rows.labels[first:last].tolist())
    cuts = [
        cut
        for cut in segmentations(structure, last - first)
        if all(permitted(structure, first, at, end, c) for at, end, c in cut)
    ]
    ys = [codes_of(structure, cut) for cut in cuts]
    return Outputs(
        ys,
        np.array([segment_features(structure, rows, first, cut) for cut in cuts]),
        np.array([y == gold for y in ys]),
        lambda cost: np.array(
            [sum(cost.label_cost(g, c) for g, c in zip(gold, y, strict=True)) for y in ys]
        ),
        any_tie=True,
    )


def segmentations(structure: Segments, tokens: int) -> list[list[tuple[int, int, int]]]:
    """All lists of (first token, end, label) that cover a number of tokens."""
    if tokens == 0:
        return [[]]
    return [
        [*before, (at, tokens, c)]
        for at in range(max(0, tokens - structure.longest), tokens)
        for before in segmentations(structure, at)
        for c in range(len(structure.begin))
        if tokens - at == 1 or structure.inside[c] >= 0
    ]


def codes_of(structure: Segments, cut: list[tuple[int, int, int]]) -> tuple[int, ...]:
    """The output of a segmentation as the structure writes it."""
    codes = [
        [int(structure.begin[c]), *[int(structure.inside[c])] * (end - at - 1)]
        for at, end, c in cut
    ]
    return tuple(itertools.chain.from_iterable(codes))


def permitted(structure: Segments, first: int, at: int, end: int, c: int) -> bool:
    """Whether limits allow a segment in the sequence whose first token is the ``first`` of all."""
    if structure.limits.size == 0:
        return True
    codes = codes_of(structure, [(at, end, c)])
    limits = structure.limits.reshape(-1, structure.labels)
    return all(limits[first + at + d, code] == 0.0 for d, code in enumerate(codes))


def segment_features(
    structure: Segments, rows: SegmentRows, first: int, cut: list[tuple[int, int, int]]
) -> np.ndarray:
    """F(x, y), part after part as the class ``Segments`` orders their coordinates."""
    W, f, before = structure.width, np.zeros(n_weights(structure)), -1
    for at, end, c in cut:
        for d, code in enumerate(codes_of(structure, [(at, end, c)])):
            for a, value in attributes(rows.indptr, rows.indices, rows.values, first + at + d):
                f[a * W + code] += value
        segment = (first + at) * structure.longest + end - at - 1
        for a, _ in attributes(rows.span_indptr, rows.span_indices, np.empty(0), segment):
            f[a * W + structure.begin[c]] += 1.0
        if before >= 0:
            f[(structure.attributes + structure.begin[c]) * W + structure.begin[before]] += 1.0
        before = c
    return f


@tiny_rows.register(Segments)
def tiny_segments(structure: Segments, seed: int = 0) -> SegmentRows:
    """Five short sequences; gold is one of their segmentations that the limits allow."""
    rng = np.random.default_rng(seed)
    lengths = [1, 2, 3, 4, 2]
    starts = np.concatenate([[0], np.cumsum(lengths)])
    tokens = int(starts[-1])
    indptr = np.concatenate([[0], np.cumsum(rng.integers(1, 4, tokens))])
    sizes = rng.integers(0, 3, (tokens, structure.longest))
    for first, last in itertools.pairwise(starts.tolist()):
        for k in range(first, last):
            sizes[k, last - k :] = 0  # these would leave the sequence
    span_indptr = np.concatenate([[0], np.cumsum(sizes.ravel())])
    rows = SegmentRows(
        starts,
        indptr,
        rng.integers(0, structure.attributes, indptr[-1]).astype(np.int32),
        rng.normal(size=indptr[-1]) + 0.7,
        span_indptr,
        rng.integers(0, structure.attributes, span_indptr[-1]).astype(np.int32),
        np.zeros(tokens, np.int32),
        np.ones(len(lengths)),
    )
    for i, (first, last) in enumerate(itertools.pairwise(starts.tolist())):
        ys = segment_outputs(structure, rows, i).ys
        rows.labels[first:last] = ys[int(rng.integers(len(ys)))]
    return rows

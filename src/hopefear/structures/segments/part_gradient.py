"""From signed weights on segments back to a direction of their coordinates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import helper, shared_kernel
from hopefear.structures.chain.mu import Bag, BagProduct, BagRow, empty_bag, scatter_nodes
from hopefear.structures.chain.theta import length
from hopefear.structures.segments.part_scores import (
    blank_spans,
    end_of,
    label_at,
    pair_row,
    stop_of,
)

# Entries of ``SegmentMu.extent``.
DENSE, TOKENS, CELLS = 0, 1, 2


class SegmentMu(NamedTuple):
    """Signed weights on the parts of one sequence."""

    nodes: np.ndarray  # float[tokens * width]: what the segments make of codes at tokens
    spans: np.ndarray  # float64, as in SegmentTheta
    pairs: np.ndarray  # float64[labels * labels]
    live: np.ndarray  # uint8[tokens]: the token has weights
    marked: np.ndarray  # uint8[spans]: the segment is among the cells
    cells: np.ndarray  # int64[spans]: segments that have weights
    extent: np.ndarray  # int64[3]: 1 when all parts have weights; tokens; number of cells
    bag: Bag
    total: np.ndarray  # float64[1]


@shared_kernel
def forget_segments(structure, x, mu):
    """Set the weights of all parts to zero; the bag keeps what it has."""
    width, extent = structure.width, mu.extent
    for t in range(extent[TOKENS]):
        if mu.live[t]:
            mu.live[t] = 0
            for c in range(t * width, (t + 1) * width):
                mu.nodes[c] = 0.0
    if extent[DENSE]:
        blank_spans(structure, extent[TOKENS], mu.spans)
    for k in range(extent[CELLS]):
        mu.spans[mu.cells[k]] = 0.0
        mu.marked[mu.cells[k]] = 0
    for q in range(mu.pairs.size):
        mu.pairs[q] = 0.0
    extent[DENSE], extent[TOKENS], extent[CELLS] = 0, length(x), 0


@shared_kernel
def clear_segments(structure, x, mu):
    """Set the weights of all parts, and the direction in full, to zero."""
    forget_segments(structure, x, mu)
    empty_bag(mu.bag)


@shared_kernel
def add_segment_difference(structure, x, y, coef, mu, clear):
    """Add ``coef`` times (parts of gold minus parts of ``y``)."""
    first, gold, width, amount = (
        x.data.starts[x.i],
        x.data.labels,
        structure.width,
        mu.nodes.dtype.type(coef),
    )
    if clear:
        clear_segments(structure, x, mu)
    mu.bag.used[1] = 0
    for t in range(length(x)):
        right = gold[first + t]
        if right != y[t]:
            mu.live[t] = 1
            mu.nodes[t * width + right] += amount
            mu.nodes[t * width + y[t]] -= amount
    add_segments(structure, x, gold, first, coef, mu)
    add_segments(structure, x, y, 0, -coef, mu)


@shared_kernel
def add_segments(structure, x, codes, first, amount, mu):
    """Add to the weights of the segments and label pairs of an output, not to those of tokens."""
    K, T, longest, before, at = structure.begin.size, length(x), structure.longest, -1, 0
    while at < T:
        c = label_at(structure, codes[first + at])
        end = end_of(structure, codes, first, at, T, c)
        q = (at * longest + end - at - 1) * K + c
        if not (mu.marked[q] or mu.extent[DENSE]):
            mu.marked[q] = 1
            mu.cells[mu.extent[CELLS]] = q
            mu.extent[CELLS] += 1
        mu.spans[q] += amount
        if at > 0:
            mu.pairs[c * K + before] += amount
        before, at = c, end


@helper
def make_dense(structure, T, mu, factor):
    """Multiply weights that all segments and label pairs have, and spread them over the tokens."""
    longest, K, width = structure.longest, structure.begin.size, structure.width
    mu.extent[DENSE], mu.extent[TOKENS] = 1, T
    for q in range(K * K):
        mu.pairs[q] *= factor
    for t in range(T):
        mu.live[t] = 1
        for c in range(K):
            tail = 0.0
            for d in range(min(longest, T - t) - 1, -1, -1):
                q = (t * longest + d) * K + c
                mu.spans[q] *= factor
                tail += mu.spans[q]
                code = structure.begin[c] if d == 0 else structure.inside[c]
                if code >= 0:
                    mu.nodes[(t + d) * width + code] += mu.nodes.dtype.type(tail)


@helper
def scatter_spans(structure, x, mu, row):
    """Entries of the direction that come from segments as wholes and from label pairs."""
    longest, K, T = structure.longest, structure.begin.size, length(x)
    width, number = np.uint64(structure.width), mu.nodes.dtype.type
    if mu.extent[DENSE]:
        for t in range(T):
            for q in range(t * longest * K, stop_of(structure, T, t)):
                scatter_span(structure, x, mu, q, row)
    else:
        for k in range(mu.extent[CELLS]):
            scatter_span(structure, x, mu, mu.cells[k], row)
    for c in range(K):
        first = pair_row(structure, c) * width
        for b in range(K):
            if mu.pairs[c * K + b] != 0.0:
                row.add_entry(first + np.uint64(structure.begin[b]), number(mu.pairs[c * K + b]))


@helper(inline=True)
def scatter_span(structure, x, mu, q, row):
    """Entries of the direction that come from one segment."""
    data, K, width = x.data, structure.begin.size, np.uint64(structure.width)
    g = mu.nodes.dtype.type(mu.spans[q])
    if g != 0.0:
        k, code = data.starts[x.i] * structure.longest + q // K, structure.begin[q % K]
        for p in range(data.span_indptr[k], data.span_indptr[k + 1]):
            row.add_entry(np.uint64(data.span_indices[p]) * width + np.uint64(code), g)


@shared_kernel
def fill_bag(structure, x, mu):
    """Add the direction up in the bag, unless it is there already."""
    if mu.bag.used[1]:
        return
    empty_bag(mu.bag)
    mu.bag.used[1] = 1
    row = BagRow(mu.bag, structure.width)
    scatter_nodes(structure, x, mu, row)
    scatter_spans(structure, x, mu, row)


@shared_kernel
def product_with_bag(structure, x, mu):
    """The direction of the parts, multiplied with the one that was added up."""
    row = BagProduct(mu.bag, structure.width, mu.total)
    mu.total[0] = 0.0
    scatter_nodes(structure, x, mu, row)
    scatter_spans(structure, x, mu, row)
    return mu.total[0]

"""From signed weights on a chain's parts back to a direction of its coordinates.

Features repeat: entries of one coordinate are added up before they count.
Weights of structured models come in rows of ``width`` coordinates (one feature, all its labels), so
a direction is a bag of rows: an open-addressing table from row number to a block of sums. It is
as large as one example needs and stays in the cache.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, helper
from hopefear.core.hashing import find_slot
from hopefear.core.interfaces import GradientSink
from hopefear.structures.chain.theta import (
    AHEAD,
    ask_row,
    length,
    pair_base,
    table_size,
    tables_used,
    triple_base,
)

# 32 bits: products with row numbers stay within 64, where plain Python would warn.
_GOLDEN = 0x9E3779B1


class Bag(NamedTuple):
    """A sparse direction, by rows."""

    keys: np.ndarray  # int64[power of two]: row number + 1, 0 = free
    slots: np.ndarray  # int32[same]: which block
    rows: np.ndarray  # int64[most]: row numbers in order of arrival
    spots: np.ndarray  # int64[most]: where their keys are
    sums: np.ndarray  # float[most * width]
    used: np.ndarray  # int64[2]: number of rows; 1 while they are those of the present direction


def new_bag(most: int, width: int, dtype: Any) -> Bag:
    """A bag for at most ``most`` different rows."""
    size = 1 << max(4, int(2 * most).bit_length())
    return Bag(
        np.zeros(size, np.int64),
        np.zeros(size, np.int32),
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
        np.zeros(most * width, dtype),
        np.zeros(2, np.int64),
    )


@helper
def empty_bag(bag):
    """Forget all rows."""
    for k in range(bag.used[0]):
        bag.keys[bag.spots[k]] = 0
    bag.used[0] = 0
    bag.used[1] = 0


@helper
def bag_place(bag, row):
    """Where the key of ``row`` is, or would be."""
    mask = np.uint64(bag.keys.size - 1)
    low = np.uint64(row) & np.uint64(0xFFFFFFFF)
    place = (low * np.uint64(_GOLDEN) >> np.uint64(20)) & mask
    return np.uint64(find_slot(bag.keys, row + 1, np.int64(place), 1))


@helper
def bag_block(bag, row, width):
    """Start of the sums of ``row``, which is added when it is new."""
    place = bag_place(bag, row)
    if bag.keys[place] == 0:
        k = bag.used[0]
        bag.keys[place] = row + 1
        bag.slots[place] = k
        bag.rows[k] = row
        bag.spots[k] = place
        bag.used[0] = k + 1
        for c in range(k * width, (k + 1) * width):
            bag.sums[c] = 0.0
    return bag.slots[place] * width


@helper
def bag_find(bag, row, width):
    """Start of the sums of ``row``, or -1."""
    place = bag_place(bag, row)
    return bag.slots[place] * width if bag.keys[place] != 0 else -1


class ChainMu(NamedTuple):
    """Signed weights on the parts of one sequence."""

    nodes: np.ndarray  # as in Scores
    edges: np.ndarray
    live: np.ndarray  # uint8[T]: the position has weights
    marked: np.ndarray  # uint8[edges]: the entry is among the cells
    cells: np.ndarray  # int64: entries of edges that have weights
    extent: np.ndarray  # int64[3]: 1 when all parts have weights; positions; number of cells
    bag: Bag
    total: np.ndarray  # float64[1]


@component(GradientSink)
class BagRow(NamedTuple):
    """A row that adds entries up."""

    bag: Bag
    width: int

    def add_entry(self, j, g):
        row = np.int64(j) // self.width
        lane = np.int64(j) - row * self.width
        self.bag.sums[bag_block(self.bag, row, self.width) + lane] += g


@component(GradientSink)
class BagProduct(NamedTuple):
    """A row that multiplies entries with those of a bag."""

    bag: Bag
    width: int
    total: np.ndarray

    def add_entry(self, j, g):
        row = np.int64(j) // self.width
        block = bag_find(self.bag, row, self.width)
        if block >= 0:
            lane = np.int64(j) - row * self.width
            self.total[0] += np.float64(g) * np.float64(self.bag.sums[block + lane])


@helper
def forget_parts(chain, x, mu):
    """Set all weights to zero; the bag keeps what it has."""
    width, extent = chain.width, mu.extent
    for t in range(extent[1]):
        if mu.live[t]:
            mu.live[t] = 0
            for c in range(t * width, (t + 1) * width):
                mu.nodes[c] = 0.0
    if extent[0]:
        for q in range(tables_used(chain, extent[1]) * table_size(chain)):
            mu.edges[q] = 0.0
    for k in range(extent[2]):
        mu.edges[mu.cells[k]] = 0.0
        mu.marked[mu.cells[k]] = 0
    extent[0], extent[1], extent[2] = 0, length(x), 0


@helper
def clear_parts(chain, x, mu):
    """Sets all weights to zero, those of the bag as well."""
    forget_parts(chain, x, mu)
    empty_bag(mu.bag)


@helper
def scale_parts(chain, T, mu, factor):
    """Multiply weights that all parts of a sequence have been given."""
    mu.extent[0], mu.extent[1] = 1, max(T, mu.extent[1])
    empty_bag(mu.bag)
    narrow = mu.nodes.dtype.type(factor)
    for t in range(T):
        mu.live[t] = 1
    for q in range(T * chain.width):
        mu.nodes[q] *= narrow
    for q in range(tables_used(chain, T) * table_size(chain)):
        mu.edges[q] *= narrow


@helper(inline=True)
def add_cell(mu, q, amount):
    """Add to the weight of an edge entry, and remember that it has one."""
    if not mu.marked[q]:
        mu.marked[q] = 1
        mu.cells[mu.extent[2]] = q
        mu.extent[2] += 1
    mu.edges[q] += amount


@helper(inline=True)
def put_block(row, base, values, at, width):
    """Puts ``values[at : at + width]`` at ``base`` and behind."""
    if row.additive():
        for c in range(width):  # zeros too: then it is one vector
            row.add_entry(base + c, values[at + c])
    else:
        for c in range(width):
            if values[at + c] != 0.0:
                row.add_entry(base + c, values[at + c])


@helper(inline=True)
def scatter_nodes(chain, x, mu, row):
    """Entries of the direction that come from labels at positions."""
    indptr, indices, values, nodes = x.data.indptr, x.data.indices, x.data.values, mu.nodes
    width, start = np.uint64(chain.width), x.data.starts[x.i]
    unit, dense = values.size == 0, mu.extent[0] == 1
    last = indptr[x.data.starts[x.i + 1]] - 1
    for t in range(length(x)):
        if not mu.live[t]:
            continue
        at = np.uint64(t) * width
        first, stop = indptr[start + t], indptr[start + t + 1]
        if dense and unit:  # all labels at once: rows of weights are whole vectors
            spread_rows(row, indices, first, stop, last, nodes, at, width)
            continue
        for c in range(width):
            g = nodes[at + c]
            if g == 0.0:
                continue
            for p in range(first, stop):
                value = g if unit else g * values[p]
                row.add_entry(np.uint64(indices[p]) * width + c, value)


@helper(inline=True)
def spread_rows(row, indices, first, stop, last, nodes, at, width):
    """Give every feature of a token the weights of all labels; ``last`` is the last to ask for."""
    for p in range(first, stop):
        ask_row(row, indices[min(p + AHEAD, last)], width)
        put_block(row, np.uint64(indices[p]) * width, nodes, at, width)


@helper(inline=True)
def scatter_edges(chain, x, mu, row):
    """Entries of the direction that come from label pairs and triples."""
    count = mu.extent[2]
    if mu.extent[0] and chain.order == 1 and chain.edge_attributes == 0:
        if chain.transitions and length(x) > 1:
            width, base = np.uint64(chain.width), np.uint64(pair_base(chain))
            for at in range(np.uint64(0), width * width, width):
                put_block(row, base + at, mu.edges, at, width)
        return
    if mu.extent[0]:
        count = tables_used(chain, length(x)) * table_size(chain)
    for k in range(count):
        q = np.int64(k) if mu.extent[0] else mu.cells[k]
        g = mu.edges[q]
        if g == 0.0:
            continue
        size, width = table_size(chain), chain.width
        table, inside = q // size, q % size
        pair = inside if chain.order == 1 else inside // width
        if chain.transitions:
            row.add_entry(np.uint64(pair_base(chain) + pair), g)
        if chain.order == 2 and table > 0:
            row.add_entry(np.uint64(triple_base(chain) + inside), g)
        if chain.edge_attributes > 0:
            data = x.data
            token = data.starts[x.i] + table + 1
            for p in range(data.edge_indptr[token], data.edge_indptr[token + 1]):
                base = pair_base(chain) + (1 + np.int64(data.edge_indices[p])) * width * width
                value = data.edge_values[p] * g if data.edge_values.size else g
                row.add_entry(np.uint64(base + pair), value)


@helper
def fill_bag(chain, x, mu):
    """Add the direction up in the bag, unless it is there already."""
    bag, data, width = mu.bag, x.data, chain.width
    if bag.used[1]:
        return
    empty_bag(bag)
    bag.used[1] = 1
    start = data.starts[x.i]
    unit = data.values.size == 0
    for t in range(length(x)):
        if mu.live[t]:
            for p in range(data.indptr[start + t], data.indptr[start + t + 1]):
                block = bag_block(bag, np.int64(data.indices[p]), width)
                value = np.float32(1.0) if unit else data.values[p]
                for c in range(width):
                    bag.sums[block + c] += value * mu.nodes[t * width + c]
    scatter_edges(chain, x, mu, BagRow(bag, width))

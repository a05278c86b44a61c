"""From signed weights on a chain's parts back to a direction of its coordinates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.bags import Bag, bag_block, bag_find, empty_bag
from hopefear.core.component import component, inlined, linked
from hopefear.core.interfaces import Row
from hopefear.structures.chain.layout import length, pair_base, table_size, tables_used, triple_base
from hopefear.structures.chain.theta import AHEAD, ask_row


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


@component(Row)
class BagRow(NamedTuple):
    """A row that adds entries up."""

    bag: Bag
    width: int

    def put(self, j, g):
        row = np.int64(j) // self.width
        lane = np.int64(j) - row * self.width
        self.bag.sums[bag_block(self.bag, row, self.width) + lane] += g


@component(Row)
class BagProduct(NamedTuple):
    """A row that multiplies entries with those of a bag."""

    bag: Bag
    width: int
    total: np.ndarray

    def put(self, j, g):
        row = np.int64(j) // self.width
        block = bag_find(self.bag, row, self.width)
        if block >= 0:
            lane = np.int64(j) - row * self.width
            self.total[0] += np.float64(g) * np.float64(self.bag.sums[block + lane])


@linked
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


@linked
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


@inlined
def add_cell(mu, q, amount):
    """Add to the weight of an edge entry, and remember that it has one."""
    if not mu.marked[q]:
        mu.marked[q] = 1
        mu.cells[mu.extent[2]] = q
        mu.extent[2] += 1
    mu.edges[q] += amount


@inlined
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
            row.hold(nodes, at, width)
            for p in range(first, stop):
                ask_row(row, indices[min(p + AHEAD, last)], width)
                row.spread(np.uint64(indices[p]) * width, nodes, at, width)
            continue
        for c in range(width):
            g = nodes[at + c]
            if g == 0.0:
                continue
            for p in range(first, stop):
                value = g if unit else g * values[p]
                row.put(np.uint64(indices[p]) * width + c, value)


@inlined
def scatter_edges(chain, x, mu, row):
    """Entries of the direction that come from label pairs and triples."""
    count = mu.extent[2]
    if mu.extent[0] and chain.order == 1 and chain.edge_attributes == 0:
        if chain.transitions and length(x) > 1:
            width, base = np.uint64(chain.width), np.uint64(pair_base(chain))
            for at in range(np.uint64(0), width * width, width):
                row.hold(mu.edges, at, width)
                row.spread(base + at, mu.edges, at, width)
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
            row.put(np.uint64(pair_base(chain) + pair), g)
        if chain.order == 2 and table > 0:
            row.put(np.uint64(triple_base(chain) + inside), g)
        if chain.edge_attributes > 0:
            data = x.data
            token = data.starts[x.i] + table + 1
            for p in range(data.edge_indptr[token], data.edge_indptr[token + 1]):
                base = pair_base(chain) + (1 + np.int64(data.edge_indices[p])) * width * width
                value = data.edge_values[p] * g if data.edge_values.size else g
                row.put(np.uint64(base + pair), value)


@linked
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

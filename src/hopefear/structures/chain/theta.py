"""The parts of a chain: where they lie, and from weights to their scores."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import helper
from hopefear.structures.lattice.shape import Scores, Shape, offset

# Rows of weights are scattered over memory and each is read once: ask for them so many rows early
# (measured, docs/design.md). LINE is a cache line, in weights.
AHEAD, LINE = 24, 16


@helper(inline=True)
def chain_shape(chain):
    """How the searches see a chain."""
    return Shape(chain.labels, chain.width, chain.order, chain.edge_attributes > 0)


@helper(inline=True)
def length(x):
    """Tokens of a sequence."""
    return x.data.starts[x.i + 1] - x.data.starts[x.i]


@helper(inline=True)
def cell(shape, t, labels, start):
    """Entry of ``Scores.edges`` for the labels at position ``t`` of a path and before it."""
    at = start + t
    state = np.int64(labels[at])
    oldest = np.int64(labels[at - 1])
    if shape.order == 2:
        state = state * shape.width + oldest
        oldest = np.int64(labels[at - 2]) if t > 1 else 0
    return offset(shape, t) + state * shape.width + oldest


@helper(inline=True)
def table_size(chain):
    """Entries of one edge table: states times width."""
    return (chain.width if chain.order == 2 else 1) * chain.width * chain.width


@helper(inline=True)
def tables_used(chain, T):
    """Edge tables a sequence of ``T`` tokens looks into."""
    if T < 2:
        return 0
    return T - 1 if chain.edge_attributes > 0 else min(T - 1, chain.order)


@helper(inline=True)
def pair_base(chain):
    """First coordinate of the plain transitions."""
    return chain.attributes * chain.width


@helper(inline=True)
def triple_base(chain):
    """First coordinate of the label triples."""
    return (chain.attributes + (1 + chain.edge_attributes) * chain.width) * chain.width


@helper
def gold_path(x, path):
    """The gold labels of a sequence, as a path."""
    start, T = x.data.starts[x.i], length(x)
    for t in range(T):
        path[t] = x.data.labels[start + t]
    return path[:T]


@helper
def is_gold(x, y):
    """Whether a path is the gold one."""
    start = x.data.starts[x.i]
    for t in range(length(x)):  # noqa: SIM110 - compiled
        if x.data.labels[start + t] != y[t]:
            return False
    return True


@helper
def mix_paths(x, y, taken, path):
    """Labels of ``y`` where taken, else gold's (mixed assignments, SWVP definition 1)."""
    start = x.data.starts[x.i]
    for t in range(length(x)):
        path[t] = y[t] if taken[t] else x.data.labels[start + t]


class Limits(NamedTuple):
    """What outputs may look like: 0 where allowed, -inf where not; empty arrays allow everything.

    Labels count in the padded width, so that a token or a label has one row.
    """

    start: np.ndarray  # float32[width]
    end: np.ndarray  # float32[width]
    step: np.ndarray  # float32[width * width]: label * width + label before
    tokens: np.ndarray  # float32[tokens of the data * width]


def no_limits() -> Limits:
    """Everything is allowed."""
    empty = np.empty(0, np.float32)
    return Limits(empty, empty, empty, empty)


def tokens_only(limits: Limits) -> Limits:
    """The limits of tokens without those of what follows what."""
    if limits.tokens.size == 0:
        return no_limits()
    return limits._replace(
        start=np.zeros_like(limits.start),
        end=np.zeros_like(limits.end),
        step=np.zeros_like(limits.step),
    )


def limits_of_tokens(limits: Limits, width: int, tokens: np.ndarray) -> Limits:
    """Limits with more for every token (float32[tokens, width], 0 or -inf)."""
    if limits.step.size == 0:
        row, table = np.zeros(width, np.float32), np.zeros(width * width, np.float32)
        limits = Limits(row, row, table, limits.tokens)
    if limits.tokens.size:
        tokens = tokens + limits.tokens.reshape(-1, width)
    return limits._replace(tokens=np.ascontiguousarray(tokens, np.float32).ravel())


class ChainTheta(NamedTuple):
    """Scores of one sequence and the space its searches need."""

    scores: Scores
    charged: Scores  # with costs; shares the edges
    space: Any
    forward: Any
    path: np.ndarray  # int32[T]
    sums: Any  # for expected costs


@helper(inline=True)
def score_nodes(chain, x, weights, nodes):
    """Scores of all labels at all positions."""
    indptr, indices, values = x.data.indptr, x.data.indices, x.data.values
    width, start, stop = np.uint64(chain.width), x.data.starts[x.i], x.data.starts[x.i + 1]
    unit, last = values.size == 0, indptr[stop] - 1
    for k in range(start, stop):
        at = np.uint64(k - start) * width
        for c in range(width):
            nodes[at + c] = 0.0
        for p in range(indptr[k], indptr[k + 1]):
            ask_row(weights, indices[min(p + AHEAD, last)], width)
            if unit:
                add_row(weights, indices[p], width, nodes, at)
            else:
                add_times_row(values[p], weights, indices[p], width, nodes, at)


@helper(inline=True)
def add_row(weights, row, width, sums, at):
    """Add the weights of all labels in a row to sums from ``at`` on."""
    base = np.uint64(row) * width
    for c in range(width):
        sums[at + c] += weights.at(base + c)


@helper(inline=True)
def add_times_row(factor, weights, row, width, sums, at):
    """Add as :func:`add_row` does, so many times."""
    base = np.uint64(row) * width
    for c in range(width):
        sums[at + c] += factor * weights.at(base + c)


@helper(inline=True)
def ask_row(weights, row, width):
    """A row of coordinates comes up soon: ask for its cache lines."""
    base = np.int64(row) * np.int64(width)
    for c in range(0, np.int64(width), LINE):
        weights.prefetch(base + c)


@helper(inline=True)
def score_rest(chain, x, weights, scores):
    """Scores of what labels at positions do not tell, and limits of all."""
    score_edges(chain, x, weights, scores.edges)
    if chain.limits.step.size:
        limit_scores(chain, x, scores)


@helper(inline=True)
def score_edges(chain, x, weights, edges):
    """Scores of all label pairs (or triples), in as many tables as differ."""
    width, size, pairs = chain.width, table_size(chain), pair_base(chain)
    tables = tables_used(chain, length(x))
    if tables == 0:
        return
    first_order = chain.order == 1
    if first_order:
        for q in range(size):
            edges[q] = weights.at(np.uint64(pairs + q))
    else:
        triples = triple_base(chain)
        for u in range(width * width):
            pair = weights.at(np.uint64(pairs + u))
            for i in range(width):
                edges[u * width + i] = pair
            if tables > 1:
                for i in range(width):
                    q = u * width + i
                    edges[size + q] = pair + weights.at(np.uint64(triples + q))
    if chain.edge_attributes == 0:
        return
    # Rich edges: every position has a table. The last plain one serves all later positions.
    plain = (min(tables, chain.order) - 1) * size
    for table in range(tables - 1, -1, -1):
        source = min(table * size, plain)
        if source != table * size:
            for q in range(size):
                edges[table * size + q] = edges[source + q]
        _add_edge_attributes(chain, x, weights, edges, table)


@helper(inline=True)
def _add_edge_attributes(chain, x, weights, edges, table):
    data, width, size = x.data, chain.width, table_size(chain)
    k = data.starts[x.i] + table + 1
    at = table * size
    for p in range(data.edge_indptr[k], data.edge_indptr[k + 1]):
        base = pair_base(chain) + (1 + np.int64(data.edge_indices[p])) * width * width
        value = data.edge_values[p] if data.edge_values.size else np.float32(1.0)
        if chain.order == 1:
            for q in range(size):
                edges[at + q] += value * weights.at(np.uint64(base + q))
        else:
            for u in range(width * width):
                amount = value * weights.at(np.uint64(base + u))
                for i in range(width):
                    edges[at + u * width + i] += amount


@helper
def limit_scores(chain, x, scores):
    """Forbid what the limits of the chain do not allow."""
    limits, width, T = chain.limits, chain.width, length(x)
    for c in range(width):
        scores.nodes[c] += limits.start[c]
        scores.nodes[(T - 1) * width + c] += limits.end[c]
    for q in range(tables_used(chain, T) * table_size(chain)):
        inside = q % table_size(chain)
        scores.edges[q] += limits.step[inside if chain.order == 1 else inside // width]
    if limits.tokens.size:
        base = x.data.starts[x.i] * width
        for q in range(T * width):
            scores.nodes[q] += limits.tokens[base + q]


@helper(inline=True)
def charge_nodes(chain, x, theta, cost, sign):
    """Add (or take off) the price of every label to its score."""
    width, start = chain.width, x.data.starts[x.i]
    for t in range(length(x)):
        gold = x.data.labels[start + t]
        for c in range(t * width, t * width + chain.labels):
            price = sign * cost.label_cost(gold, c - t * width)
            theta.charged.nodes[c] = theta.scores.nodes[c] + price


@helper
def price_nodes(chain, x, cost, prices):
    """The price of every label at every position."""
    width, start = chain.width, x.data.starts[x.i]
    for t in range(length(x)):
        for c in range(chain.labels):
            prices[t * width + c] = cost.label_cost(x.data.labels[start + t], c)


@helper
def copy_scores(chain, T, scores, factor, out):
    """``factor`` times the scores of all parts; what is forbidden stays so."""
    for q in range(T * chain.width):
        node = scores.nodes[q]
        out.nodes[q] = factor * node if node > -np.inf else node
    for q in range(tables_used(chain, T) * table_size(chain)):
        edge = scores.edges[q]
        out.edges[q] = factor * edge if edge > -np.inf else edge


@helper
def expected_score(chain, T, counts, scores):
    """Mean score of sequences whose parts have these expected counts."""
    total = 0.0
    for t in range(T):
        for q in range(t * chain.width, t * chain.width + chain.labels):
            if counts.nodes[q] > 0.0:
                total += np.float64(counts.nodes[q]) * np.float64(scores.nodes[q])
    for q in range(tables_used(chain, T) * table_size(chain)):
        if counts.edges[q] > 0.0:
            total += np.float64(counts.edges[q]) * np.float64(scores.edges[q])
    return total

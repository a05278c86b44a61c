"""Scores of chains from two halves of the attributes, each read and moved by threads of its own.

Where two threads score sentences under the same weights and then move these weights, every row that
one of them has moved must travel to the other, which costs more than adding it up. So attributes
fall into two halves. A thread adds up the rows of its half for all sentences; scores of a label are
the sum of both. Rows of weights then stay with one core, and what travels is two numbers a label
and token. Sums are made in this way by one thread too, so that no bit depends on how many there
are.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import inlined, lean, prefetch
from hopefear.core.crew import HALVES, half_of, stretch_of
from hopefear.core.threads import Team
from hopefear.structures.chain.mu import spread_rows
from hopefear.structures.chain.theta import AHEAD, LINE, add_row, add_times_row, ask_row, length

# Attributes of a sequence that are asked for while another one is read; then the processor sees the
# pattern. And tokens whose weights are asked for ahead, across sequences.
_SOON, _TOKENS, _ROWS = 128, np.uint64(12), 32


class Desk(NamedTuple):
    """The attributes of all tokens by halves, and what threads lay down of those of a block."""

    attributes: np.ndarray  # int32[2, most + 1]: those of a half, token after token
    values: np.ndarray  # real[2, most + 1], or nothing where all are 1
    begins: np.ndarray  # int64[2, all tokens + 1]: where the attributes of a token begin
    spots: np.ndarray  # int64[sequences of an order]: where the tokens of one lie, in its block
    firsts: np.ndarray  # int64[sequences of an order + 1]: the first token of one
    heads: np.ndarray  # int64[2, sequences of an order + 1]: and where its attributes begin
    nodes: np.ndarray  # real[3, tokens * width]: scores of both halves, and weights that were left
    live: np.ndarray  # uint8[tokens]: 0: no weights were left for a token, 1: some, 2: all


def new_desk(chain: Any, data: Any, dtype: Any, threads: int = 1) -> Desk:
    """The attributes of all tokens by halves; there is no room for blocks yet."""
    indices, values = data.indices, data.values
    counts = np.empty(HALVES, np.int64)
    shift = np.uint64(stretch_of(chain.width))
    count_halves(indices, shift, counts)
    most = int(counts.max()) + 1  # `deal` writes one too many
    desk = Desk(
        np.empty((HALVES, most), indices.dtype),
        np.empty((HALVES, most if values.size else 0), values.dtype),
        np.empty((HALVES, data.indptr.size), np.int64),
        np.empty(0, np.int64),
        np.empty(0, np.int64),
        np.empty((HALVES, 0), np.int64),
        np.empty((HALVES + 1, 0), dtype),
        np.empty(0, np.uint8),
    )
    tasks = [partial(deal, data.indptr, indices, values, shift, desk, k) for k in range(HALVES)]
    with Team(threads) as team:
        team.run(tasks)
    return desk


def lay(chain: Any, desk: Desk, data: Any, order: np.ndarray, block: int) -> Desk:
    """The desk with room for every block of so many sequences of an order."""
    firsts = data.starts[np.append(order, order[-1:])]  # behind the last nothing comes up
    spots, most = spots_in_blocks(data.starts[order + 1] - data.starts[order], block)
    nodes = np.empty((HALVES + 1, most * chain.width), desk.nodes.dtype)
    return desk._replace(
        spots=spots,
        firsts=firsts,
        heads=desk.begins.take(firsts, axis=1),  # rows stay together
        nodes=nodes,
        live=np.empty(most, np.uint8),
    )


def spots_in_blocks(sizes: np.ndarray, block: int) -> tuple[np.ndarray, int]:
    """Where things of these sizes begin in their blocks, and the size of the largest block.

    >>> spots_in_blocks(np.array([3, 1, 2]), 2)
    (array([0, 3, 0]), 4)
    """
    begins = np.cumsum(sizes) - sizes
    begins -= np.repeat(begins[::block], block)[: sizes.size]
    return begins, int((begins + sizes).max(initial=0))


@lean
def count_halves(indices, shift, counts):
    """How many attributes there are of each half."""
    other = np.uint64(0)
    for p in range(np.uint64(indices.size)):
        other += half_of(indices[p], shift)
    counts[0], counts[1] = indices.size - np.int64(other), np.int64(other)


@lean
def deal(indptr, indices, values, shift, desk, half):
    """Deal the attributes of all tokens to a half."""
    attributes, factors, begins = desk.attributes[half], desk.values[half], desk.begins[half]
    side, e, unit = np.uint64(half), np.uint64(0), values.size == 0
    for k in range(indptr.size - 1):
        begins[k] = e
        for p in range(np.uint64(indptr[k]), np.uint64(indptr[k + 1])):
            # Which half comes next nobody can guess, so all are written, others written over.
            attributes[e] = indices[p]
            if not unit:
                factors[e] = values[p]
            e += np.uint64(half_of(indices[p], shift) == side)
    begins[indptr.size - 1] = e


@inlined
def score_half(chain, x, n, half, weights, sums, desk):
    """Add up the rows of a half for all tokens of a sequence, the n-th.

    They are added up in ``sums`` and laid down at once: lines of the desk were last read by another
    core, which must be told of every one that is written.
    """
    attributes, factors, begins = desk.attributes[half], desk.values[half], desk.begins[half]
    width, start, T = np.uint64(chain.width), desk.firsts[n], length(x)
    unit, end, at = factors.size == 0, begins[start + T], np.uint64(0)
    # What the next sequence begins with is not in the cache: ask for it while this one is read.
    prefetch(begins, desk.firsts[n + 1])
    follower = desk.heads[half][n + 1]
    most = begins[begins.size - 1] - 1
    for p in range(follower, min(follower + _SOON, most), LINE):
        prefetch(attributes, p)
    skip = follower - end
    for k in range(start, start + T):
        for c in range(width):
            sums[at + c] = 0.0
        for p in range(begins[k], begins[k + 1]):
            ahead = p + _ROWS
            if ahead >= end:
                ahead = min(ahead + skip, most)
            ask_row(weights, attributes[ahead], width)
            if unit:
                add_row(weights, attributes[p], width, sums, at)
            else:
                add_times_row(factors[p], weights, attributes[p], width, sums, at)
        at += width
    lay_down(sums, np.uint64(0), at, desk.nodes[half], np.uint64(desk.spots[n]) * width)


@inlined
def lay_down(values, at, size, nodes, begin):
    """Copy so many values to the desk."""
    for q in range(size):
        nodes[begin + q] = values[at + q]


@inlined
def ask_for(values, at, width):
    """So many values come up soon: ask for their cache lines."""
    for q in range(at, min(at + width, np.uint64(values.size)), np.uint64(LINE)):
        prefetch(values, q)


@inlined
def join_nodes(chain, x, n, desk, nodes):
    """Scores of all labels at all positions, from those of both halves."""
    one, other = desk.nodes[0], desk.nodes[1]
    begin = np.uint64(desk.spots[n] * chain.width)
    for q in range(np.uint64(length(x) * chain.width)):
        nodes[q] = one[begin + q] + other[begin + q]


@inlined
def leave_nodes(chain, x, n, mu, desk):
    """Lay down the weights of labels at positions, not where a next block may have scores."""
    width, begin, T = np.uint64(chain.width), np.uint64(desk.spots[n]), np.uint64(length(x))
    nodes, live, whole = desk.nodes[HALVES], desk.live, mu.extent[0] == 1
    for t in range(T):
        live[begin + t] = mu.live[t] + (mu.live[t] and whole)
    if whole:
        lay_down(mu.nodes, np.uint64(0), T * width, nodes, begin * width)
        return
    for t in range(T):
        if mu.live[t]:
            lay_down(mu.nodes, t * width, width, nodes, (begin + t) * width)


@inlined
def scatter_half(chain, x, n, half, row, desk):
    """Entries of the direction that come from the attributes of a half, given what was left."""
    attributes, factors, begins = desk.attributes[half], desk.values[half], desk.begins[half]
    width, start, T = np.uint64(chain.width), desk.firsts[n], length(x)
    spot, last, nodes = np.uint64(desk.spots[n]), begins[start + T] - 1, desk.nodes[HALVES]
    unit = factors.size == 0
    for k in range(start, start + T):
        live, at = desk.live[spot], spot * width
        spot += np.uint64(1)
        if live == 0:
            continue
        if live == 2:
            ask_for(nodes, at + _TOKENS * width, width)  # another core may have left it
            if unit:  # all labels at once: rows of weights are whole vectors
                spread_rows(row, attributes, begins[k], begins[k + 1], last, nodes, at, width)
                continue
        for c in range(width):
            g = nodes[at + c]
            if g == 0.0:
                continue
            for p in range(begins[k], begins[k + 1]):
                row.ask(np.uint64(attributes[min(p + AHEAD, last)]) * width + c)
                value = g if unit else g * factors[p]
                row.put(np.uint64(attributes[p]) * width + c, value)

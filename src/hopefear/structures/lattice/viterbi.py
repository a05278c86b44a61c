"""The best label sequence (Viterbi, 1967), from a table of best completions.

The table is filled from the last position to the first, then labels are chosen from the first to
the last. So among equally good sequences the one with the smaller label at the first difference
wins, and every prefix knows the score of its best completion, which is what A* search needs.
"""

from __future__ import annotations

import numpy as np

from hopefear.core.component import helper, shared_kernel
from hopefear.structures.lattice.lanes import add_one, add_to, max_plus
from hopefear.structures.lattice.shape import contexts, offset, states


@helper
def fill_table(shape, T, scores, table):
    """Best score from every state on, its own label included: ``table[t * S + state]``."""
    L, W, K, S = shape.labels, shape.width, contexts(shape), states(shape)
    nodes, edges = scores.nodes, scores.edges
    older = L if K > 1 else 1
    for m in range(older):
        place = (T - 1) * S + m * W
        for i in range(W):
            table[place + i] = nodes[(T - 1) * W + (m if K > 1 else i)]
    for t in range(T - 2, -1, -1):
        e, after = offset(shape, t + 1), (t + 1) * S
        for m in range(older):
            place = t * S + m * W
            max_plus(table, place, edges, e + m * W, K * W, table, after + m, K, L, W)
            if K == 1:
                add_to(table, place, nodes, t * W, W)
            else:
                add_one(table, place, nodes, t * W + m, W)


@helper(inline=True)
def column(shape, t, older, oldest):
    """``(e, s)``: label c continues a prefix by ``edges[e + c * K * W] + table[s + c * K]``.

    ``older`` and ``oldest`` are the labels at t - 1 and t - 2 (0 where there is none); t >= 1.
    """
    W, S = shape.width, states(shape)
    if shape.order == 1:
        return offset(shape, t) + older, t * S
    return offset(shape, t) + older * W + oldest, t * S + older


@helper(inline=True)
def best_first(shape, table):
    """``(label, value)`` of the best label at position 0; the smallest of equals."""
    K = contexts(shape)
    label, best = 0, table[0]
    for c in range(1, shape.labels):
        v = table[c * K]
        if v > best:
            label, best = c, v
    return label, best


@helper(inline=True)
def best_next(shape, scores, table, t, older, oldest):
    """The best label at ``t`` >= 1 behind these two; the smallest of equals."""
    K = contexts(shape)
    stride = K * shape.width
    e, s = column(shape, t, older, oldest)
    label, best = 0, scores.edges[e] + table[s]
    for c in range(1, shape.labels):
        e += stride
        s += K
        v = scores.edges[e] + table[s]
        if v > best:
            label, best = c, v
    return label


@helper
def complete(shape, T, scores, table, y, start, known):
    """Put the best labels behind the first ``known`` >= 1 of ``y[start:start + T]``."""
    for t in range(known, T):
        oldest = np.int64(y[start + t - 2]) if t > 1 else 0
        y[start + t] = best_next(shape, scores, table, t, np.int64(y[start + t - 1]), oldest)


@shared_kernel
def viterbi(shape, T, scores, table, y):
    """Put the best labels into ``y[:T]`` and return their score.

    ``max_y sum_t nodes[t, y_t] + edges[t, y_t, y_(t-1)]``

    Minus infinity: no sequence is allowed, and ``y`` holds arbitrary labels. ``table`` has room
    for T * S numbers of the type of the scores.
    """
    fill_table(shape, T, scores, table)
    label, best = best_first(shape, table)
    y[0] = label
    complete(shape, T, scores, table, y, 0, 1)
    return np.float64(best)

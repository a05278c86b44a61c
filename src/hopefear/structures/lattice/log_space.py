"""The sums of ``marginals.py`` in logarithms: for scores whose exponentials leave float64.

Slower by two exponentials for every transition at every position, and exact wherever the scores
are.
"""

from __future__ import annotations

import math

import numpy as np

from hopefear.core.component import helper
from hopefear.structures.lattice.shape import contexts, offset, states


@helper
def log_forward(shape, T, scores, alpha):
    """log Z; ``alpha[t * S + u]`` becomes the log of the sum over all ways into state u at t."""
    L, W, K, S = shape.labels, shape.width, contexts(shape), states(shape)
    nodes, edges = scores.nodes, scores.edges
    total = -np.inf
    for t in range(T):
        known = 1 if K > 1 and t == 1 else L
        total = -np.inf
        for c in range(L):
            for m in range(L if K > 1 and t > 0 else 1):
                v = np.float64(nodes[t * W + c])
                if t > 0:
                    e = offset(shape, t) + (c * K + m) * W
                    v += _log_sum(edges, e, 1, alpha, (t - 1) * S + m * W, 1, known)
                alpha[t * S + c * K + m] = v
                if t == T - 1:
                    total = _log_add(total, v)
    return total


@helper
def log_marginals(shape, T, scores, alpha, x, out):
    """As ``marginals``, into an ``out`` of zeros.

    ``x[t * S + u]`` becomes the log of the sum over all ways on from state u at t, its own label
    included.
    """
    L, W, K, S = shape.labels, shape.width, contexts(shape), states(shape)
    nodes, edges = scores.nodes, scores.edges
    node_counts, edge_counts = out.nodes, out.edges
    total = log_forward(shape, T, scores, alpha)
    if total == -np.inf:
        return total
    for t in range(T - 1, -1, -1):
        known = 1 if K > 1 and t == 1 else L
        for c in range(L):
            p = 0.0
            for m in range(L if K > 1 and t > 0 else 1):
                u = c * K + m
                v = 0.0
                if t < T - 1:
                    # As the next one's context, this state is (its newest, its older label).
                    newest, i = (c, m) if K > 1 else (0, c)
                    e = offset(shape, t + 1) + newest * W + i
                    v = _log_sum(edges, e, K * W, x, (t + 1) * S + newest, K, L)
                p += math.exp(alpha[t * S + u] + v - total)
                x[t * S + u] = v + np.float64(nodes[t * W + c])
                if t > 0:
                    e, s = offset(shape, t) + u * W, (t - 1) * S + m * W
                    after = x[t * S + u] - total
                    for i in range(known):
                        v = alpha[s + i] + np.float64(edges[e + i]) + after
                        edge_counts[e + i] += math.exp(v)
            node_counts[t * W + c] = p
    return total


@helper(inline=True)
def _log_sum(edges, e, stride, values, s, step, count):
    """``log sum_k exp(edges[e + k * stride] + values[s + k * step])``"""
    best = -np.inf
    for k in range(count):
        best = max(best, np.float64(edges[e + k * stride]) + values[s + k * step])
    if best == -np.inf:
        return best
    total = 0.0
    for k in range(count):
        total += math.exp(np.float64(edges[e + k * stride]) + values[s + k * step] - best)
    return best + math.log(total)


@helper(inline=True)
def _log_add(a, b):
    high, low = max(a, b), min(a, b)
    if low == -np.inf:
        return high
    return high + math.log1p(math.exp(low - high))

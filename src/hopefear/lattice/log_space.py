"""The sums of ``marginals.py`` in logarithms: for scores whose exponentials leave float64.

Slower by an exponential for every transition at every position, and exact wherever the scores are.
"""

from __future__ import annotations

import math

import numpy as np
from numba.extending import register_jitable

from hopefear.lattice.shape import contexts, offset, states


@register_jitable
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
                u = c * K + m
                before = 0.0
                if t > 0:
                    before = -np.inf
                    e, s = offset(shape, t) + u * W, (t - 1) * S + m * W
                    for i in range(known):
                        before = _log_add(before, np.float64(edges[e + i]) + alpha[s + i])
                alpha[t * S + u] = before + np.float64(nodes[t * W + c])
                total = _log_add(total, alpha[t * S + u])
    return total


@register_jitable
def log_marginals(shape, T, scores, alpha, beta, out):
    """As ``marginals``, into an ``out`` of zeros; ``beta`` holds sums over all ways out."""
    L, W, K, S = shape.labels, shape.width, contexts(shape), states(shape)
    edges = scores.edges
    total = log_forward(shape, T, scores, alpha)
    if total == -np.inf:
        return total
    for t in range(T - 1, -1, -1):
        older = L if K > 1 and t > 0 else 1
        for c in range(L):
            for m in range(older):
                s = c * K + m
                behind = 0.0
                if t < T - 1:
                    behind = _ways_out(shape, t, s, scores, beta)
                beta[t * S + s] = behind
                out.nodes[t * W + c] += math.exp(alpha[t * S + s] + behind - total)
        if t == T - 1:
            continue
        for c in range(L):
            node = np.float64(scores.nodes[(t + 1) * W + c])
            for m in range(L if K > 1 else 1):
                u = c * K + m
                e, s = offset(shape, t + 1) + u * W, t * S + m * W
                after = node + beta[(t + 1) * S + u] - total
                for i in range(1 if K > 1 and t == 0 else L):
                    out.edges[e + i] += math.exp(alpha[s + i] + np.float64(edges[e + i]) + after)
    return total


@register_jitable
def _ways_out(shape, t, s, scores, beta):
    """Log of the sum over all sequences behind state ``s`` at ``t``."""
    L, W, K, S = shape.labels, shape.width, contexts(shape), states(shape)
    m, i = (s // W, s % W) if K > 1 else (0, s)
    total = -np.inf
    for c in range(L):
        u = c * K + m
        v = np.float64(scores.edges[offset(shape, t + 1) + u * W + i])
        v += np.float64(scores.nodes[(t + 1) * W + c]) + beta[(t + 1) * S + u]
        total = _log_add(total, v)
    return total


@register_jitable(forceinline=True)
def _log_add(a, b):
    high, low = max(a, b), min(a, b)
    if low == -np.inf:
        return high
    return high + math.log1p(math.exp(low - high))

"""The n best label sequences by list Viterbi (Seshadri and Sundberg, 1994).

Every state keeps its n best completions. It does more work than A* and finds the same; it stands
here to be compared with.
"""

from __future__ import annotations

import math

import numpy as np

from hopefear.core.component import helper, shared_kernel
from hopefear.structures.lattice.shape import contexts, offset, states


@shared_kernel
def list_viterbi(shape, T, scores, space, n, ratio):
    """Find the ``n`` best sequences, best first; returns how many there are.

    As :func:`astar`; ``space`` must be made with ``lists=True``.
    """
    L, W, K, S = shape.labels, shape.width, contexts(shape), states(shape)
    nodes, edges = scores.nodes, scores.edges
    value, filled, code = space.scores, space.filled, space.code
    for t in range(T - 1, -1, -1):
        now, then = (t % 2) * S, (1 - t % 2) * S
        for m in range(L if K > 1 else 1):
            for i in range(L):
                newest = m if K > 1 else i
                s = m * W + i
                node = nodes[t * W + newest]
                if t == T - 1:
                    filled[now + s] = 1 if node > -np.inf else 0
                    value[(now + s) * n] = node
                    continue
                size = 0
                for c in range(L):
                    u = c * K + m
                    edge = edges[offset(shape, t + 1) + u * W + i]
                    size = _merge(
                        value,
                        code,
                        filled[then + u],
                        edge,
                        (then + u) * n,
                        (now + s) * n,
                        (t * S + s) * n,
                        size,
                        c,
                        n,
                    )
                for r in range(size):
                    value[(now + s) * n + r] += node
                filled[now + s] = size if node > -np.inf else 0
    # The lists of the first labels are merged where those of odd positions lay.
    size = 0
    for c in range(L):
        size = _merge(value, code, filled[c * K], 0.0, c * K * n, S * n, T * S * n, size, c, n)
    return _write_paths(shape, T, space, n, size, ratio)


@helper(inline=True)
def _merge(value, code, more, edge, source, values, codes, size, c, n):
    """Merge ``more`` entries at ``source``, reached by label c, into a list of ``size``."""
    for r in range(more):
        # At equal scores the smaller label stays in front, then the smaller rank.
        v = edge + value[source + r]
        if v == -np.inf or (size == n and v <= value[values + n - 1]):
            break
        j = min(size, n - 1)
        while j > 0 and v > value[values + j - 1]:
            value[values + j] = value[values + j - 1]
            code[codes + j] = code[codes + j - 1]
            j -= 1
        value[values + j] = v
        code[codes + j] = c * n + r
        size = min(size + 1, n)
    return size


@helper
def _write_paths(shape, T, space, n, size, ratio):
    K, S = contexts(shape), states(shape)
    for k in range(size):
        total = np.float64(space.scores[S * n + k])
        if ratio > 0.0 and total < space.totals[0] - math.log(ratio) and k > 0:
            return k
        space.totals[k] = total
        code = np.int64(space.code[T * S * n + k])
        older = 0
        for t in range(T):
            label, rank = code // n, code % n
            space.paths[k * space.length + t] = label
            s = label * K + (older if K > 1 else 0)
            code = np.int64(space.code[(t * S + s) * n + rank])
            older = label
    return size

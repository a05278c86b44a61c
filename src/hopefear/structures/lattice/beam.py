"""Label sequences by beam search: from left to right, the best partial sequences are kept.

The beam lies in lexicographic order, so its extensions come in that order too: among equals the
earlier one is the smaller one, and nothing needs sorting before the end.
"""

from __future__ import annotations

import math

import numpy as np

from hopefear.core.component import helper, shared_kernel
from hopefear.structures.lattice.shape import contexts, offset


@shared_kernel
def beam(shape, T, scores, space, n, width, ratio):
    """Find up to ``n`` good sequences, best first; returns how many.

    As :func:`astar`, but a sequence is lost where one of its beginnings is not among the ``width``
    best; exact where all of them are. None may be found where most sequences are forbidden.

    Parameters
    ----------
    width : int
        Partial sequences kept at every position. Larger is slower and misses less.
    """
    L, W = shape.labels, shape.width
    trail, partial, grown, heap = space.trail, space.partial, space.grown, space.heap
    size = 1
    partial[0] = 0.0
    for t in range(T):
        _grow(shape, t, scores, trail, partial, grown, width, size)
        last = _threshold(grown, heap, size, L, W, width)
        size = _keep(trail, partial, grown, t, size, L, W, width, last)
    return _write_best(shape, T, space, n, width, size, ratio)


@helper(inline=True)
def _grow(shape, t, scores, trail, partial, grown, width, size):
    """Scores of all partial sequences with one more label."""
    L, W, K = shape.labels, shape.width, contexts(shape)
    nodes, edges = scores.nodes, scores.edges
    for k in range(size):
        if t == 0:
            for c in range(L):
                grown[c] = nodes[c]
            return
        last = np.int64(trail[(t - 1) * width + k])
        e = offset(shape, t) + last % W
        if K > 1:
            oldest = np.int64(trail[(t - 2) * width + last // W]) % W if t > 1 else 0
            e = offset(shape, t) + last % W * W + oldest
        for c in range(L):
            v = np.float64(nodes[t * W + c]) + np.float64(edges[e + c * K * W])
            grown[k * W + c] = partial[k] + v


@helper(inline=True)
def _threshold(grown, heap, size, L, W, width):
    """Place of the last extension that is kept, in the order best first; -1 keeps all."""
    kept = 0
    for k in range(size):
        for c in range(L):
            place = k * W + c
            if grown[place] == -np.inf:
                continue
            if kept < width:
                j = kept
                kept += 1
                while j > 0 and _worse(grown, place, heap[(j - 1) // 2]):
                    heap[j] = heap[(j - 1) // 2]
                    j = (j - 1) // 2
                heap[j] = place
            elif grown[place] > grown[heap[0]]:
                _replace_worst(grown, heap, place, kept)
    return np.int64(heap[0]) if kept == width else np.int64(-1)


@helper(inline=True)
def _worse(grown, a, b):
    return grown[a] < grown[b] or (grown[a] == grown[b] and a > b)


@helper(inline=True)
def _replace_worst(grown, heap, place, kept):
    j = 0
    while 2 * j + 1 < kept:
        child = 2 * j + 1
        if child + 1 < kept and _worse(grown, heap[child + 1], heap[child]):
            child += 1
        if not _worse(grown, heap[child], place):
            break
        heap[j] = heap[child]
        j = child
    heap[j] = place


@helper(inline=True)
def _keep(trail, partial, grown, t, size, L, W, width, last):
    """Make the extensions up to ``last`` the new beam, in their order; returns its size."""
    new = 0
    for k in range(size):
        for c in range(L):
            place = k * W + c
            if grown[place] == -np.inf:
                continue
            if last < 0 or place == last or _worse(grown, last, place):
                trail[t * width + new] = place
                partial[new] = grown[place]
                new += 1
    return new


@helper
def _write_best(shape, T, space, n, width, size, ratio):
    W = shape.width
    trail, partial = space.trail, space.partial
    paths, totals, length = space.paths, space.totals, space.length
    for k in range(min(n, size)):
        best = 0
        for j in range(1, size):
            if partial[j] > partial[best]:
                best = j
        total = partial[best]
        if k > 0 and ratio > 0.0 and total < totals[0] - math.log(ratio):
            return k
        totals[k] = total
        partial[best] = -np.inf
        j = best
        for t in range(T - 1, -1, -1):
            place = np.int64(trail[t * width + j])
            paths[k * length + t] = place % W
            j = place // W
    return min(n, size)

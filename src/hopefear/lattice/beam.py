"""Label sequences by beam search: from left to right, the best partial sequences are kept.

The beam lies in lexicographic order, so its extensions come in that order too: among equals the
earlier one is the smaller one, and nothing needs sorting before the end.
"""

from __future__ import annotations

import math

import numpy as np
from numba.extending import register_jitable

from hopefear.lattice.shape import contexts, offset


@register_jitable
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
    size = 1
    space.partial[0] = 0.0
    for t in range(T):
        _grow(shape, t, scores, space, width, size)
        last = _threshold(space, size, L, W, width)
        size = _keep(space, t, size, L, W, width, last)
    return _write_best(shape, T, space, n, width, size, ratio)


@register_jitable
def _grow(shape, t, scores, space, width, size):
    """Scores of all partial sequences with one more label."""
    L, W, K = shape.labels, shape.width, contexts(shape)
    for k in range(size):
        older, oldest = 0, 0
        if t > 0:
            last = np.int64(space.trail[(t - 1) * width + k])
            older = last % W
            if t > 1:
                oldest = np.int64(space.trail[(t - 2) * width + last // W]) % W
        for c in range(L):
            v = np.float64(scores.nodes[t * W + c])
            if t > 0:
                place = (c * W + older) * W + oldest if K > 1 else c * W + older
                v += np.float64(scores.edges[offset(shape, t) + place])
            space.grown[k * W + c] = space.partial[k] + v


@register_jitable
def _threshold(space, size, L, W, width):
    """Place of the last extension that is kept, in the order best first; -1 keeps all."""
    heap, kept = space.heap, 0
    for k in range(size):
        for c in range(L):
            place = k * W + c
            if space.grown[place] == -np.inf:
                continue
            if kept < width:
                j = kept
                kept += 1
                while j > 0 and _worse(space, place, heap[(j - 1) // 2]):
                    heap[j] = heap[(j - 1) // 2]
                    j = (j - 1) // 2
                heap[j] = place
            elif space.grown[place] > space.grown[heap[0]]:
                _replace_worst(space, place, kept)
    return np.int64(heap[0]) if kept == width else np.int64(-1)


@register_jitable(forceinline=True)
def _worse(space, a, b):
    return space.grown[a] < space.grown[b] or (space.grown[a] == space.grown[b] and a > b)


@register_jitable
def _replace_worst(space, place, kept):
    heap, j = space.heap, 0
    while 2 * j + 1 < kept:
        child = 2 * j + 1
        if child + 1 < kept and _worse(space, heap[child + 1], heap[child]):
            child += 1
        if not _worse(space, heap[child], place):
            break
        heap[j] = heap[child]
        j = child
    heap[j] = place


@register_jitable
def _keep(space, t, size, L, W, width, last):
    """Make the extensions up to ``last`` the new beam, in their order; returns its size."""
    new = 0
    for k in range(size):
        for c in range(L):
            place = k * W + c
            if space.grown[place] == -np.inf:
                continue
            if last < 0 or place == last or _worse(space, last, place):
                space.trail[t * width + new] = place
                space.partial[new] = space.grown[place]
                new += 1
    return new


@register_jitable
def _write_best(shape, T, space, n, width, size, ratio):
    W = shape.width
    for k in range(min(n, size)):
        best = 0
        for j in range(1, size):
            if space.partial[j] > space.partial[best]:
                best = j
        total = space.partial[best]
        if k > 0 and ratio > 0.0 and total < space.totals[0] - math.log(ratio):
            return k
        space.totals[k] = total
        space.partial[best] = -np.inf
        j = best
        for t in range(T - 1, -1, -1):
            place = np.int64(space.trail[t * width + j])
            space.paths[k * space.length + t] = place % W
            j = place // W
    return min(n, size)

"""The n best label sequences by A* search (Sun, 2015, §2.1), and the best but one.

The table of best completions is an exact heuristic: the value of a prefix is the score of a whole
sequence, so nothing is expanded in vain. A sequence waits in the queue as (parent, position,
label): the parent's labels up to the position, the label there, the best completion behind. Taken
from the queue, it leaves behind one sequence for every position from there on, with the next best
label at it. These sets of sequences do not overlap, so none is found twice.

References
----------
Sun, X. (2015). Towards shockingly easy structured classification: a search-based probabilistic
online learning framework. arXiv:1503.08381.
"""

from __future__ import annotations

import math

import numpy as np
from numba.extending import register_jitable

from hopefear.lattice.shape import contexts
from hopefear.lattice.viterbi import column, complete, fill_table, viterbi


@register_jitable
def astar(shape, T, scores, space, n, ratio):
    """Find the ``n`` best sequences, best first; returns how many there are.

    They go to ``space.paths`` and ``space.totals``. Forbidden sequences are never returned.

    Parameters
    ----------
    shape, T, scores : Shape, int, Scores
        The chain, the number of tokens, the scores of its parts.
    space : Space
        Made for at least ``n`` sequences of ``T`` tokens.
    n : int
        Sequences wanted.
    ratio : float
        Sequences that are more than this many times less probable than the best are left out;
        0 keeps all. Smaller stops earlier.
    """
    fill_table(shape, T, scores, space.table)
    if not _first_path(shape, T, scores, space):
        return 0
    worst = space.totals[0] - math.log(ratio) if ratio > 0.0 else -np.inf
    end = 1
    for k in range(n):
        if k == end:
            return k
        start = k * space.length
        split = 0
        if k > 0:
            split = space.split[k]
            _follow(shape, T, scores, space, k)
        total = space.totals[k]
        for t in range(split, T):
            value = total - space.loss[start + t]
            if value > -np.inf and value >= worst and k + 1 < n:
                if end == n and value < space.totals[n - 1]:
                    continue
                end = _insert(space, value, k, t, end, n)
    return n


@register_jitable
def rival(shape, T, scores, space, gold, y):
    """Put the best labels that are not ``gold[:T]`` into ``y[:T]``; returns their score.

    Minus infinity: every other sequence is forbidden.
    """
    best = viterbi(shape, T, scores, space.table, y)
    for t in range(T):
        if y[t] != gold[t]:
            return best
    if best == -np.inf:
        return best
    loss, place, label = np.inf, 0, 0
    for t in range(T):
        _gather(shape, t, scores, space, y, 0)
        other = _next_best(shape, space.row, np.int64(y[t]))
        less = np.float64(space.row[y[t]]) - np.float64(space.row[other])
        # Of two equally good, the earlier one is smaller if its label is.
        if other != y[t] and (less < loss or (less == loss and label > y[place] and loss < np.inf)):
            loss, place, label = less, t, other
    if loss == np.inf:
        return -np.inf
    y[place] = label
    complete(shape, T, scores, space.table, y, 0, place + 1)
    return best - loss


@register_jitable(forceinline=True)
def _gather(shape, t, scores, space, y, start):
    """Values of the labels at ``t`` behind ``y[start:start + t]``, best completions included."""
    K = contexts(shape)
    if t == 0:
        for c in range(shape.labels):
            space.row[c] = space.table[c * K]
        return
    oldest = np.int64(y[start + t - 2]) if t > 1 else 0
    e, s = column(shape, t, np.int64(y[start + t - 1]), oldest)
    stride = K * shape.width
    for c in range(shape.labels):
        space.row[c] = scores.edges[e + c * stride] + space.table[s + c * K]


@register_jitable(forceinline=True)
def _best(shape, row):
    label = 0
    for c in range(1, shape.labels):
        if row[c] > row[label]:
            label = c
    return label


@register_jitable(forceinline=True)
def _next_best(shape, row, label):
    """The label behind ``label`` in order of value, then number; ``label`` itself if the last."""
    found = label
    for c in range(shape.labels):
        behind = row[c] < row[label] or (row[c] == row[label] and c > label)
        if behind and (found == label or row[c] > row[found]):
            found = c
    return found


@register_jitable(forceinline=True)
def _enter(shape, space, place, label):
    """Put a label at a place of the paths, and the next best beside it."""
    other = _next_best(shape, space.row, label)
    space.paths[place] = label
    space.second[place] = other
    space.loss[place] = (
        np.float64(space.row[label]) - np.float64(space.row[other]) if other != label else np.inf
    )


@register_jitable
def _first_path(shape, T, scores, space):
    for t in range(T):
        _gather(shape, t, scores, space, space.paths, 0)
        label = _best(shape, space.row)
        if t == 0:
            space.totals[0] = space.row[label]
            if space.row[label] == -np.inf:
                return False
        _enter(shape, space, t, label)
    return True


@register_jitable
def _follow(shape, T, scores, space, k):
    """Write out path ``k``: its parent's labels, its own label, the best completion."""
    start, model = k * space.length, space.parent[k] * space.length
    split = np.int64(space.split[k])
    for t in range(split):
        space.paths[start + t] = space.paths[model + t]
    _gather(shape, split, scores, space, space.paths, start)
    _enter(shape, space, start + split, np.int64(space.label[k]))
    t = split + 1
    apart = shape.order  # positions until the two paths are in the same state again
    while t < T and apart > 0:
        _gather(shape, t, scores, space, space.paths, start)
        _enter(shape, space, start + t, _best(shape, space.row))
        same = space.paths[start + t] == space.paths[model + t]
        apart = apart - 1 if same else shape.order
        t += 1
    for r in range(t, T):
        space.paths[start + r] = space.paths[model + r]
        space.second[start + r] = space.second[model + r]
        space.loss[start + r] = space.loss[model + r]


@register_jitable
def _insert(space, total, parent, split, end, n):
    """Queue a sequence among ``k + 1 .. end - 1``, which are in order; returns the new end."""
    label = space.second[parent * space.length + split]
    if end == n:
        if not _before(space, total, parent, split, label, n - 1):
            return n
        end -= 1
    j = end
    while j > parent + 1 and _before(space, total, parent, split, label, j - 1):
        space.totals[j] = space.totals[j - 1]
        space.parent[j] = space.parent[j - 1]
        space.split[j] = space.split[j - 1]
        space.label[j] = space.label[j - 1]
        j -= 1
    space.totals[j] = total
    space.parent[j] = parent
    space.split[j] = split
    space.label[j] = label
    return end + 1


@register_jitable
def _before(space, total, parent, split, label, j):
    """Whether a sequence stands before number ``j`` of the queue.

    Neither lies in the set of the other, so they differ where the first of them leaves its parent,
    if not before: labels behind need not be known.
    """
    if total != space.totals[j]:
        return total > space.totals[j]
    other = space.parent[j]
    mine, theirs = parent * space.length, other * space.length
    place = min(split, space.split[j])
    common = _common(space, parent, other, place)
    if common < place:
        return space.paths[mine + common] < space.paths[theirs + common]
    a = label if split == place else space.paths[mine + place]
    b = space.label[j] if space.split[j] == place else space.paths[theirs + place]
    return a < b


@register_jitable
def _common(space, a, b, most):
    """How many labels two paths share from the start, up to ``most``."""
    while a != b:
        if a < b:
            a, b = b, a
        most = min(most, space.split[a])
        a = space.parent[a]
    return most

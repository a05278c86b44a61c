"""The n best label sequences by A* search (Sun et al., SAPO, §2.1), and the best but one.

The table of best completions is an exact heuristic: the value of a prefix is the score of a whole
sequence, so nothing is expanded in vain. A sequence waits in the queue as (parent, position,
label): the parent's labels up to the position, the label there, the best completion behind. Taken
from the queue, it leaves behind one sequence for every position from there on, with the next best
label at it. These sets of sequences do not overlap, so none is found twice.

References
----------
Sun, X., Ma, S., Zhang, Y. and Ren, X. Towards easier and faster sequence labeling for natural
language processing: a search-based probabilistic online learning framework (SAPO).
"""

from __future__ import annotations

import math

import numpy as np

from hopefear.core.component import helper, shared_kernel
from hopefear.structures.lattice.shape import contexts
from hopefear.structures.lattice.viterbi import column, complete, fill_table, viterbi


@shared_kernel
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

    Examples
    --------
    >>> from hopefear.structures.lattice import new_scores, new_shape, new_space
    >>> shape = new_shape(2)
    >>> scores, space = new_scores(shape, 3), new_space(shape, 3, n=2)
    >>> scores.nodes.reshape(3, 4)[:, 1] = [1, -1, 2]
    >>> astar(shape, 3, scores, space, 2, 0.0)
    2
    >>> space.totals.tolist(), space.paths.reshape(2, 3).tolist()
    ([3.0, 2.0], [[1, 0, 1], [0, 0, 1]])
    """
    fill_table(shape, T, scores, space.table)
    totals, split, loss, length = space.totals, space.split, space.loss, space.length
    totals[0] = _first_path(shape, T, scores, space)
    split[0] = 0
    if totals[0] == -np.inf:
        return 0
    worst = totals[0] - math.log(ratio) if ratio > 0.0 else -np.inf
    end = 1
    for k in range(n - 1):
        # Those found are 0 .. k, in order; those waiting are k + 1 .. end - 1, in order.
        if k > 0:
            _follow(shape, T, scores, space, k)
        total = totals[k]
        for t in range(split[k], T):
            value = total - loss[k * length + t]
            if value >= worst and value > -np.inf and (end < n or value >= totals[n - 1]):
                end = _insert(space, value, k, t, end, n)
        if end == k + 1:
            return end
    if n > 1:
        _follow(shape, T, scores, space, n - 1)
    return n


@shared_kernel
def rival(shape, T, scores, space, gold, y):
    """Put the best labels that are not ``gold[:T]`` into ``y[:T]``; returns their score.

    Minus infinity: every other sequence is forbidden.
    """
    table, row = space.table, space.row
    best = viterbi(shape, T, scores, table, y)
    for t in range(T):
        if y[t] != gold[t]:
            return best
    if best == -np.inf:
        return best
    loss, place, label = np.inf, 0, 0
    older, oldest = 0, 0
    for t in range(T):
        _gather(shape, t, scores.edges, table, row, older, oldest)
        mine = np.int64(y[t])
        other = _next_best(shape.labels, row, mine)
        less = np.float64(row[mine]) - np.float64(row[other])
        # Of two equally good, the earlier one is smaller if its label is.
        earlier = less == loss and label > y[place] and loss < np.inf
        if other != mine and (less < loss or earlier):
            loss, place, label = less, t, other
        older, oldest = mine, older
    if loss == np.inf:
        return -np.inf
    y[place] = label
    complete(shape, T, scores, table, y, 0, place + 1)
    return best - loss


@helper(inline=True)
def _gather(shape, t, edges, table, row, older, oldest):
    """Values of the labels at ``t`` behind these two, best completions included."""
    K = contexts(shape)
    if t == 0:
        for c in range(shape.labels):
            row[c] = table[c * K]
        return
    e, s = column(shape, t, older, oldest)
    stride = K * shape.width
    for c in range(shape.labels):
        row[c] = edges[e + c * stride] + table[s + c * K]


@helper(inline=True)
def _two_best(L, row):
    """The best label, and the second; twice the same where there is only one."""
    first, second = 0, 0
    best, next_best = row[0], -np.inf
    for c in range(1, L):
        if row[c] > best:
            second, next_best = first, np.float64(best)
            first, best = c, row[c]
        elif row[c] > next_best:
            second, next_best = c, np.float64(row[c])
    return first, second


@helper(inline=True)
def _next_best(L, row, label):
    """The label behind ``label`` in order of value, then number; ``label`` itself if the last."""
    found = label
    for c in range(L):
        behind = row[c] < row[label] or (row[c] == row[label] and c > label)
        if behind and (found == label or row[c] > row[found]):
            found = c
    return found


@helper(inline=True)
def _difference(row, first, second):
    if first == second:
        return np.inf
    return np.float64(row[first]) - np.float64(row[second])


@helper
def _first_path(shape, T, scores, space):
    edges, table, row = scores.edges, space.table, space.row
    paths, second, loss = space.paths, space.second, space.loss
    best = -np.inf
    older, oldest = 0, 0
    for t in range(T):
        _gather(shape, t, edges, table, row, older, oldest)
        label, other = _two_best(shape.labels, row)
        if t == 0:
            best = np.float64(row[label])
            if best == -np.inf:
                return best
        paths[t], second[t], loss[t] = label, other, _difference(row, label, other)
        older, oldest = label, older
    return best


@helper
def _follow(shape, T, scores, space, k):
    """Write out path ``k``: its parent's labels, its own label, the best completion."""
    edges, table, row = scores.edges, space.table, space.row
    paths, second, loss = space.paths, space.second, space.loss
    start, model = k * space.length, np.int64(space.parent[k]) * space.length
    split, label = np.int64(space.split[k]), np.int64(space.label[k])
    for t in range(split):
        paths[start + t] = paths[model + t]
    older = np.int64(paths[start + split - 1]) if split > 0 else 0
    oldest = np.int64(paths[start + split - 2]) if split > 1 else 0
    _gather(shape, split, edges, table, row, older, oldest)
    other = _next_best(shape.labels, row, label)
    place = start + split
    paths[place], second[place], loss[place] = label, other, _difference(row, label, other)
    t = split + 1
    apart = shape.order  # positions until the two paths are in the same state again
    while t < T and apart > 0:
        older, oldest = label, older
        _gather(shape, t, edges, table, row, older, oldest)
        label, other = _two_best(shape.labels, row)
        place = start + t
        paths[place], second[place], loss[place] = label, other, _difference(row, label, other)
        apart = apart - 1 if label == paths[model + t] else shape.order
        t += 1
    for r in range(t, T):
        paths[start + r] = paths[model + r]
        second[start + r] = second[model + r]
        loss[start + r] = loss[model + r]


@helper(inline=True)
def _insert(space, total, parent, place, end, n):
    """Queue what leaves ``parent`` at ``place``; returns the new end of the queue."""
    totals, parents, splits, labels = space.totals, space.parent, space.split, space.label
    label = space.second[parent * space.length + place]
    if end == n:
        if total == totals[n - 1] and not _smaller(space, parent, place, label, n - 1):
            return n
        end -= 1
    j = end
    while j > parent + 1:
        if total < totals[j - 1]:
            break
        if total == totals[j - 1] and not _smaller(space, parent, place, label, j - 1):
            break
        totals[j] = totals[j - 1]
        parents[j] = parents[j - 1]
        splits[j] = splits[j - 1]
        labels[j] = labels[j - 1]
        j -= 1
    totals[j], parents[j], splits[j], labels[j] = total, parent, place, label
    return end + 1


@helper
def _smaller(space, parent, split, label, j):
    """Whether a sequence is lexicographically smaller than number ``j`` of the queue.

    Neither lies in the set of the other, so they differ where the first of them leaves its parent,
    if not before: labels behind need not be known.
    """
    other = space.parent[j]
    mine, theirs = parent * space.length, other * space.length
    place = min(split, space.split[j])
    common = _common(space, parent, other, place)
    if common < place:
        return space.paths[mine + common] < space.paths[theirs + common]
    a = label if split == place else space.paths[mine + place]
    b = space.label[j] if space.split[j] == place else space.paths[theirs + place]
    return a < b


@helper
def _common(space, a, b, most):
    """How many labels two paths share from the start, up to ``most``."""
    while a != b:
        if a < b:
            a, b = b, a
        most = min(most, space.split[a])
        a = space.parent[a]
    return most

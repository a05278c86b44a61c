"""Projective trees with sibling and grandparent parts: the best one, and sums over all.

The g-spans of Koo and Collins (2010). Every item is a half of what a head h dominates, and knows
the head g of h. For m to the right of h (to the left everything is mirrored):

    C[g, h, e]  all of h's right children and what is below them, up to word e; 0 for e = h
                max over children m <= e of  I[g, h, m] + last(h, m) + C[h, m, e]
    I[g, h, m]  the right children of h up to m, with the half of m that faces h
                arc(h, m) + grand(g, h, m) + max(first(h, m) + C[h, m, h + 1],
                max over children s before m of  I[g, h, s] + sib(h, s, m) + S[h, s, m])
    S[h, s, m]  what lies between two adjacent children s, m of h
                max over r of  C[h, s, r] + C[h, m, r + 1]

Here (g, h), (h, m), (h, s) run over candidate arcs only. C is stored by the arc (g, h) and e, I by
the grandparent part and S by the sibling part: with k candidates for each of n words that is
O(n^2 k) numbers and O(n^3 k) steps at most. All innermost loops run along the candidates g of one
h, which are adjacent in memory. Items whose g lies inside the span are computed along with the
rest, but no item of a tree refers to them.

References
----------
Koo and Collins. Efficient third-order dependency parsers. ACL 2010. (Model 1, with its g-sibling
parts restricted to sums of sibling and grandparent scores.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from hopefear.core.component import kernel
from hopefear.structures.tree.parts import LEFT, RIGHT, Counts


class SecondOrder(NamedTuple):
    """Working memory of the search."""

    complete: np.ndarray  # float64[(longest + 1) * (arcs + 1)]: C, by end and arc; root: last arc
    incomplete: np.ndarray  # float64[grandparent parts + longest + 1]: I; of the root: by child
    between: np.ndarray  # float64[sibling parts]: S
    stack: np.ndarray  # int32[2 * (longest + 1)]: halves that are still to be read off


def new_second_order(longest: int, counts: Counts) -> SecondOrder:
    """Memory for sentences of up to ``longest`` words and so many parts."""
    return SecondOrder(
        complete=np.zeros((longest + 1) * (counts.arcs + 1)),
        incomplete=np.zeros(counts.grands + longest + 1),
        between=np.zeros(counts.siblings),
        stack=np.zeros(2 * (longest + 1), np.int32),
    )


@kernel
def projective_second(n, arcs, scores, single, space, heads):
    """Put the best projective tree of candidate arcs into ``heads`` and return its score.

    Parameters
    ----------
    n, arcs, scores : int, Arcs, Scores
        The number of words, their candidate arcs, the scores of all parts.
    single : bool
        Whether the root has exactly one child.
    space : SecondOrder
        Working memory.
    heads : int32[n + 1]
        The head of every word; left alone where there is no such tree, whose score is minus
        infinity.

    Examples
    --------
    >>> from hopefear.structures.tree.parts import fill_arcs, new_arcs, new_part_scores
    >>> arcs, counts = new_arcs(2, 4), Counts(4, 5, 4)
    >>> n_arcs = fill_arcs(arcs, 2, np.array([0, 2, 4]), np.array([0, 2, 0, 1], np.int32))
    >>> scores, heads = new_part_scores(counts), np.zeros(3, np.int32)
    >>> scores.arcs[:] = [1, 2, 3, 4]
    >>> space = new_second_order(2, counts)
    >>> float(projective_second(2, arcs, scores, True, space, heads)), heads.tolist()
    (5.0, [0, 0, 1])
    """
    width = arcs.first[n + 1] + 1
    complete = space.complete
    for i in range(n, -1, -1):
        _best_right(n, arcs, scores, single, space, i)
        for j in range(i + 1, n + 1 if i > 0 else 0):
            _best_left(n, arcs, scores, space, i, j)
    if not single:
        best = complete[n * width + width - 1]
    else:
        best = -np.inf
        for p in range(arcs.kids_first[1], arcs.kids_first[2]):
            best = max(best, _lone(n, arcs, scores, complete, arcs.kids[p]))
    if best > -np.inf:
        _read_off(n, arcs, scores, single, space, heads)
    return best


@register_jitable
def _lone(n, arcs, scores, complete, a):
    """Score of the best tree in which the child of arc ``a`` is the only one of the root."""
    width = arcs.first[n + 1] + 1
    halves = complete[width + a] + complete[n * width + a]
    return scores.arcs[a] + scores.siblings[arcs.siblings[a]] + scores.lasts[a] + halves


@register_jitable(forceinline=True)
def _owners(n, arcs, h):
    """The stretch of arcs to ``h``, over which its items run: (first, how many)."""
    if h == 0:
        return arcs.first[n + 1], 1
    return arcs.first[h], arcs.first[h + 1] - arcs.first[h]


@register_jitable(forceinline=True)
def _row(n, arcs, a):
    """Where the I items of arc ``a`` start."""
    if arcs.head[a] == 0:
        return arcs.grands[arcs.first[n + 1]] + arcs.mod[a]
    return arcs.grands[a]


@register_jitable
def _best_right(n, arcs, scores, single, space, h):
    """All right halves of ``h``."""
    complete, incomplete = space.complete, space.incomplete
    first, last = arcs.kids_first[2 * h + RIGHT], arcs.kids_first[2 * h + RIGHT + 1]
    width = arcs.first[n + 1] + 1
    owner, owners = _owners(n, arcs, h)
    for g in range(owners):
        complete[h * width + owner + g] = 0.0
    if h == 0 and single:
        return
    for p in range(first, last):
        _best_incomplete(n, arcs, scores, space, h, first, p, h + 1)
    for e in range(h + 1, n + 1):
        _best_complete(n, arcs, scores, complete, incomplete, h, first, last, e)


@register_jitable
def _best_left(n, arcs, scores, space, e, h):
    """The left halves of ``h`` that end at ``e``."""
    first, last = arcs.kids_first[2 * h + LEFT], arcs.kids_first[2 * h + LEFT + 1]
    a = arcs.lookup[e * (n + 1) + h]
    if a >= 0:
        _best_incomplete(n, arcs, scores, space, h, first, first + arcs.rank[a], h - 1)
    _best_complete(n, arcs, scores, space.complete, space.incomplete, h, first, last, e)


@register_jitable
def _best_complete(n, arcs, scores, complete, incomplete, h, first, last, e):
    width = arcs.first[n + 1] + 1
    owner, owners = _owners(n, arcs, h)
    place = e * width + owner
    for g in range(owners):
        complete[place + g] = -np.inf
    for p in range(first, last):
        a = arcs.kids[p]
        if abs(arcs.mod[a] - h) > abs(e - h):
            break
        rest = scores.lasts[a] + complete[e * width + a]
        if rest > -np.inf:
            row = _row(n, arcs, a)
            for g in range(owners):
                complete[place + g] = max(complete[place + g], incomplete[row + g] + rest)


@register_jitable
def _best_incomplete(n, arcs, scores, space, h, first, p, near):
    """I of the arc ``kids[p]``, whose head has its children from place ``first``.

    ``near`` is the word next to h on that side.
    """
    incomplete, between, kids = space.incomplete, space.between, arcs.kids
    width = arcs.first[n + 1] + 1
    a = kids[p]
    row, owners = _row(n, arcs, a), _owners(n, arcs, h)[1]
    part = arcs.siblings[a]
    start = scores.siblings[part] + space.complete[near * width + a]
    for g in range(owners):
        incomplete[row + g] = start
    for q in range(first, p):
        b = kids[q]
        part += 1
        between[part] = _best_between(arcs, space.complete, width, a, b)
        step = scores.siblings[part] + between[part]
        if step > -np.inf:
            before = _row(n, arcs, b)
            for g in range(owners):
                incomplete[row + g] = max(incomplete[row + g], incomplete[before + g] + step)
    arc = scores.arcs[a]
    for g in range(owners):
        incomplete[row + g] += arc
    if h > 0:
        for g in range(owners):
            incomplete[row + g] += scores.grands[row + g]


@register_jitable
def _best_between(arcs, complete, width, a, b):
    """S of the children of two arcs."""
    if arcs.mod[a] > arcs.mod[b]:
        a, b = b, a
    best = -np.inf
    for r in range(arcs.mod[a], arcs.mod[b]):
        best = max(best, complete[r * width + a] + complete[(r + 1) * width + b])
    return best


@register_jitable
def _read_off(n, arcs, scores, single, space, heads):
    """Write the best tree, each half by finding again where its maximum comes from."""
    complete, incomplete, stack = space.complete, space.incomplete, space.stack
    width = arcs.first[n + 1] + 1
    depth = 0
    if single:
        best, a = -np.inf, -1
        for p in range(arcs.kids_first[1], arcs.kids_first[2]):
            v = _lone(n, arcs, scores, complete, arcs.kids[p])
            if v > best:
                best, a = v, arcs.kids[p]
        heads[arcs.mod[a]] = 0
        depth = _put(arcs, stack, _put(arcs, stack, 0, a, 1), a, n)
    else:
        stack[0], stack[1] = width - 1, n
        depth = 1
    while depth > 0:
        depth -= 1
        b, e = stack[2 * depth], stack[2 * depth + 1]
        h = arcs.mod[b] if b < width - 1 else 0
        side, near = (RIGHT, h + 1) if e > h else (LEFT, h - 1)
        first = arcs.kids_first[2 * h + side]
        g = b - _owners(n, arcs, h)[0]
        best, last = -np.inf, -1
        for p in range(first, arcs.kids_first[2 * h + side + 1]):
            a = arcs.kids[p]
            if abs(arcs.mod[a] - h) > abs(e - h):
                break
            v = incomplete[_row(n, arcs, a) + g] + scores.lasts[a] + complete[e * width + a]
            if v > best:
                best, last = v, p
        a = arcs.kids[last]
        depth = _put(arcs, stack, depth, a, e)
        while last >= 0:
            heads[arcs.mod[a]] = h
            part = arcs.siblings[a]
            best, before = scores.siblings[part] + complete[near * width + a], -1
            for q in range(first, last):
                part += 1
                v = incomplete[_row(n, arcs, arcs.kids[q]) + g]
                v += scores.siblings[part] + space.between[part]
                if v > best:
                    best, before = v, q
            if before < 0:
                depth = _put(arcs, stack, depth, a, near)
            else:
                depth = _put_between(arcs, stack, depth, complete, width, a, arcs.kids[before])
                a = arcs.kids[before]
            last = before
    return depth


@register_jitable
def _put(arcs, stack, depth, a, e):
    """Remember the half of the child of ``a`` that ends at ``e``; returns how many are waiting."""
    if arcs.mod[a] == e:
        return depth
    stack[2 * depth], stack[2 * depth + 1] = a, e
    return depth + 1


@register_jitable
def _put_between(arcs, stack, depth, complete, width, a, b):
    if arcs.mod[a] > arcs.mod[b]:
        a, b = b, a
    best, cut = -np.inf, arcs.mod[a]
    for r in range(arcs.mod[a], arcs.mod[b]):
        v = complete[r * width + a] + complete[(r + 1) * width + b]
        if v > best:
            best, cut = v, r
    return _put(arcs, stack, _put(arcs, stack, depth, a, cut), b, cut + 1)

"""Non-projective trees with sibling and grandparent parts, by dual decomposition.

The best tree with all parts is NP-hard to find, but two easier problems share its arcs: a spanning
tree of arc scores, and for every head an automaton (Koo et al. 2010) that picks the arc to that
head and, by Viterbi, its left and right children, with all second-order scores. Multipliers move
arc scores between the three places in which an arc a = (h, m) occurs,

    tree[a] + child[a] + parent[a] = arc score         child: automaton of h, parent: that of m

and the sum of the separate maxima is an upper bound on the score of every tree. Subgradient steps
lower it: a place that has an arc which another one lacks gets less for it. When all agree their
tree is the best one, and so it is when its score reaches the bound.

References
----------
Koo, Rush, Collins, Jaakkola and Sontag. Dual decomposition for parsing with non-projective head
automata. EMNLP 2010.

Martins, Smith, Aguiar and Figueiredo. Dual decomposition with many overlapping components. EMNLP
2011.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from hopefear.core.component import kernel
from hopefear.structures.tree.parts import (
    LEFT,
    RIGHT,
    Counts,
    owner_row,
    owners_of,
    score_of,
    side_score,
)
from hopefear.structures.tree.spanning import SpanningSpace, new_spanning_space, spanning_tree

# Steps are those of Polyak: a fraction of what would close the gap if the bound were linear. They
# need no scale of their own, as the rates of Koo et al. do. On random sentences of 10 to 40 words,
# fractions from 1.5 to 2 certify most, in the fewest rounds.
_FRACTION, _SHRINK = 1.5, 0.8
_PATIENCE = 10  # rounds without a lower bound after which the fraction shrinks
_GAP = 1e-9  # relative, between bound and score of a tree that is as good as the best


class Decomposition(NamedTuple):
    """Working memory of :func:`nonprojective_second`."""

    tree: np.ndarray  # float64[(longest + 1)**2]: arc scores that the spanning tree sees
    child: np.ndarray  # float64[arcs]: those that the automaton of the head sees
    parent: np.ndarray  # float64[arcs]: those that the automaton of the modifier sees
    as_child: np.ndarray  # int8[arcs]: whether the automaton of the head uses an arc
    as_parent: np.ndarray  # int8[arcs]: whether that of the modifier does
    best: np.ndarray  # float64[longest + 1]: what every automaton comes to
    stale: np.ndarray  # int8[longest + 1]: whether its scores have changed since
    rows: np.ndarray  # float64[grandparent parts + longest + 1]: children up to an arc, by owner
    sides: np.ndarray  # float64[2 * (longest + 1)]: best of the left, of the right side, by owner
    heads: np.ndarray  # int32[longest + 1]: the spanning tree
    spanning: SpanningSpace


def new_decomposition(longest: int, counts: Counts) -> Decomposition:
    """Memory for sentences of up to ``longest`` words and so many parts."""
    return Decomposition(
        tree=np.zeros((longest + 1) ** 2),
        child=np.zeros(counts.arcs),
        parent=np.zeros(counts.arcs),
        as_child=np.zeros(counts.arcs, np.int8),
        as_parent=np.zeros(counts.arcs, np.int8),
        best=np.zeros(longest + 1),
        stale=np.zeros(longest + 1, np.int8),
        rows=np.zeros(counts.grands + longest + 1),
        sides=np.zeros(2 * (longest + 1)),
        heads=np.zeros(longest + 1, np.int32),
        spanning=new_spanning_space(longest),
    )


@kernel
def nonprojective_second(n, arcs, scores, single, rounds, space, heads):
    """Put a good tree of candidate arcs, arcs may cross, into ``heads``.

    Parameters
    ----------
    n, arcs, scores : int, Arcs, Scores
        The number of words, their candidate arcs, the scores of all parts.
    single : bool
        Whether the root has exactly one child.
    rounds : int
        Most rounds, at least 1; with more of them more trees are proved best. Where the bound
        itself lies above the best tree no number suffices.
    space : Decomposition
        Working memory.
    heads : int32[n + 1]
        The head of every word; holds anything where no tree is allowed.

    Returns
    -------
    score : float
        Of the tree; minus infinity where none is allowed.
    certain : bool
        Whether no tree is better. Otherwise no change of a single head betters this one.

    Examples
    --------
    >>> from hopefear.structures.tree.parts import fill_arcs, new_arcs, new_part_scores
    >>> arcs, counts = new_arcs(2, 4), Counts(4, 5, 4)
    >>> n_arcs = fill_arcs(arcs, 2, np.array([0, 2, 4]), np.array([0, 2, 0, 1], np.int32))
    >>> scores, heads = new_part_scores(counts), np.zeros(3, np.int32)
    >>> scores.arcs[:] = [1, 2, 2, 4]
    >>> space = new_decomposition(2, counts)
    >>> score, certain = nonprojective_second(2, arcs, scores, True, 100, space, heads)
    >>> float(score), bool(certain), heads.tolist()
    (5.0, True, [0, 0, 1])
    """
    _share_out(n, arcs, scores, space)
    best, bound, fraction, idle = -np.inf, np.inf, _FRACTION, 0
    for _ in range(rounds):
        total = spanning_tree(n, space.tree, single, space.spanning, space.heads)
        for h in range(n + 1):
            if space.stale[h]:
                space.best[h] = _automaton(n, arcs, scores, single, space, h)
                space.stale[h] = 0
            total += space.best[h]
        if total == -np.inf:
            return total, True
        score = score_of(arcs, n, scores, space.heads)
        if score > best:
            best = score
            for m in range(1, n + 1):
                heads[m] = space.heads[m]
        idle += 1
        if total < bound:
            bound, idle = total, 0
        elif idle == _PATIENCE:
            fraction, idle = fraction * _SHRINK, 0
        conflicts = _conflicts(n, arcs, space)
        if conflicts == 0 or _is_closed(bound, best):
            return best, True
        # The lowest bound, not this round's: steps that overshoot would grow without end.
        gap = bound - best if best > -np.inf else 1.0 + abs(bound)
        _step(n, arcs, space, fraction * gap / conflicts)
    if best > -np.inf:
        _climb(n, arcs, scores, single, heads)
        best = score_of(arcs, n, scores, heads)
    return best, _is_closed(bound, best)


@register_jitable
def _is_closed(bound, best):
    return best > -np.inf and bound - best <= _GAP * max(1.0, abs(best))


@register_jitable
def _share_out(n, arcs, scores, space):
    """Give each place of an arc a third of its score."""
    for p in range((n + 1) * (n + 1)):
        space.tree[p] = -np.inf
    for a in range(arcs.first[n + 1]):
        third = scores.arcs[a] / 3.0
        space.tree[arcs.mod[a] * (n + 1) + arcs.head[a]] = third
        space.child[a] = space.parent[a] = third
    for h in range(n + 1):
        space.stale[h] = 1


@register_jitable
def _conflicts(n, arcs, space):
    """How often an automaton and the spanning tree differ about an arc."""
    count = 0
    for a in range(arcs.first[n + 1]):
        used = 1 if space.heads[arcs.mod[a]] == arcs.head[a] else 0
        count += (used != space.as_child[a]) + (used != space.as_parent[a])
    return count


@register_jitable
def _step(n, arcs, space, rate):
    """Move score from the places that use an arc to those that do not."""
    for a in range(arcs.first[n + 1]):
        h, m = arcs.head[a], arcs.mod[a]
        used = 1 if space.heads[m] == h else 0
        if used != space.as_child[a]:
            change = rate * (used - space.as_child[a])
            space.child[a] += change
            space.tree[m * (n + 1) + h] -= change
            space.stale[h] = 1
        if used != space.as_parent[a]:
            change = rate * (used - space.as_parent[a])
            space.parent[a] += change
            space.tree[m * (n + 1) + h] -= change
            space.stale[m] = 1


@register_jitable
def _climb(n, arcs, scores, single, heads):
    """Change single heads, each word's to its best, until that betters the tree no more."""
    changes = 1
    while changes > 0:
        changes = 0
        for m in range(1, n + 1):
            old = heads[m]
            start = _around(n, arcs, scores, heads, m, old)
            best, choice = 1e-12 * (1.0 + abs(start)), old
            for a in range(arcs.first[m], arcs.first[m + 1]):
                h = arcs.head[a]
                # With one child of the root, neither it nor its place can be had.
                if h == old or (single and (h == 0 or old == 0)) or _is_below(heads, h, m):
                    continue
                before = start + _side(n, arcs, scores, heads, h, m)
                heads[m] = h
                after = _around(n, arcs, scores, heads, m, old) + _side(
                    n, arcs, scores, heads, h, m
                )
                heads[m] = old
                if after - before > best:
                    best, choice = after - before, h
            if choice != old:
                heads[m] = choice
                changes += 1


@register_jitable
def _side(n, arcs, scores, heads, h, m):
    """Score of the parts on that side of ``h`` on which ``m`` is."""
    return side_score(arcs, n, scores, heads, h, RIGHT if m > h else LEFT)[0]


@register_jitable
def _around(n, arcs, scores, heads, m, h):
    """Score of the parts on the side of ``h`` on which ``m`` is, and below ``m``."""
    left = side_score(arcs, n, scores, heads, m, LEFT)[0]
    right = side_score(arcs, n, scores, heads, m, RIGHT)[0]
    return _side(n, arcs, scores, heads, h, m) + left + right


@register_jitable
def _is_below(heads, h, m):
    """Whether ``h`` is ``m`` or a descendant of it."""
    while h != 0 and h != m:
        h = heads[h]
    return h == m


@register_jitable
def _automaton(n, arcs, scores, single, space, h):
    """Choose the arc to ``h`` and its children; returns what they come to."""
    rows, sides, child, kids = space.rows, space.sides, space.child, arcs.kids
    owner, owners = owners_of(arcs, n, h)
    for side in range(2):
        first, last = arcs.kids_first[2 * h + side], arcs.kids_first[2 * h + side + 1]
        place = side * (n + 1)
        # The root has a child, everyone else may have none.
        none = -np.inf if h == 0 and side == RIGHT else 0.0
        for g in range(owners):
            sides[place + g] = none
        for p in range(first, last):
            a = kids[p]
            row = owner_row(arcs, n, a)
            part = arcs.siblings[a]
            start = scores.siblings[part]
            for g in range(owners):
                rows[row + g] = start
            for q in range(first, p if h > 0 or not single else first):
                part += 1
                step = scores.siblings[part]
                before = owner_row(arcs, n, kids[q])
                for g in range(owners):
                    rows[row + g] = max(rows[row + g], rows[before + g] + step)
            arc = child[a]
            for g in range(owners):
                rows[row + g] += arc
            if h > 0:
                for g in range(owners):
                    rows[row + g] += scores.grands[row + g]
                loop = arcs.lookup[h * (n + 1) + arcs.mod[a]]
                if loop >= 0:
                    rows[row + loop - owner] = -np.inf
            rest = scores.lasts[a]
            for g in range(owners):
                sides[place + g] = max(sides[place + g], rows[row + g] + rest)
    best, choice = -np.inf, 0
    for g in range(owners):
        v = sides[g] + sides[n + 1 + g]
        if h > 0:
            v += space.parent[owner + g]
        if v > best:
            best, choice = v, g
    if h > 0:
        for g in range(owners):
            space.as_parent[owner + g] = 1 if g == choice else 0
    for side in range(2):
        _read_side(n, arcs, scores, single, space, h, side, choice)
    return best


@register_jitable
def _read_side(n, arcs, scores, single, space, h, side, g):
    """Mark the children of ``h`` on a side, given the number of its owner."""
    rows, kids, used = space.rows, arcs.kids, space.as_child
    first, last = arcs.kids_first[2 * h + side], arcs.kids_first[2 * h + side + 1]
    best, place = (-np.inf if h == 0 else 0.0), -1
    for p in range(first, last):
        used[kids[p]] = 0
        v = rows[owner_row(arcs, n, kids[p]) + g] + scores.lasts[kids[p]]
        if v > best:
            best, place = v, p
    while place >= 0:
        a = kids[place]
        used[a] = 1
        part = arcs.siblings[a]
        best, before = scores.siblings[part], -1
        for q in range(first, place if h > 0 or not single else first):
            part += 1
            v = rows[owner_row(arcs, n, kids[q]) + g] + scores.siblings[part]
            if v > best:
                best, before = v, q
        place = before

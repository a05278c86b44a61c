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

from hopefear.core.component import helper, shared_kernel
from hopefear.structures.lattice.lanes import max_plus
from hopefear.structures.tree.parts import (
    GROUP,
    LEFT,
    RIGHT,
    Counts,
    Lanes,
    fill_lanes,
    new_lanes,
    new_owner_table,
    score_of,
)
from hopefear.structures.tree.spanning import SpanningSpace, new_spanning_space, spanning_tree

# Steps are those of Polyak: a fraction of what would close the gap if the bound were linear. They
# need no scale of their own, as the rates of Koo et al. do. On 900 random sentences of 10 to 40
# words, easy ones to mere noise, a fraction of 1.5 certified 59 % in 200 rounds, one of 1 54 %, and
# a rate of Koo et al. that starts at the standard deviation of the noise in arc scores 58 %.
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
    lanes: Lanes
    table: np.ndarray  # float64: best children up to an arc, by arc and owner
    steps: np.ndarray  # float64[longest + 1 + group]: what is added to the rows of a head
    sides: np.ndarray  # float64[2 * (longest + 1 + group)]: best of the left, the right side
    heads: np.ndarray  # int32[longest + 1]: the spanning tree
    spanning: SpanningSpace
    certain: np.ndarray  # int8[1]: whether the last tree that was asked for is proved best


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
        lanes=new_lanes(longest, counts),
        table=new_owner_table(longest, counts),
        steps=np.zeros(longest + 1 + GROUP),
        sides=np.zeros(2 * (longest + 1 + GROUP)),
        heads=np.zeros(longest + 1, np.int32),
        spanning=new_spanning_space(longest),
        certain=np.zeros(1, np.int8),
    )


@shared_kernel
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
        if total > -np.inf:
            total += _automata(n, arcs, scores, single, space)
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


@helper
def _is_closed(bound, best):
    return best > -np.inf and bound - best <= _GAP * max(1.0, abs(best))


@helper
def _share_out(n, arcs, scores, space):
    """Give each place of an arc a third of its score."""
    fill_lanes(arcs, n, space.lanes, space.table)
    for p in range((n + 1) * (n + 1)):
        space.tree[p] = -np.inf
    for a in range(arcs.first[n + 1]):
        third = scores.arcs[a] / 3.0
        space.tree[arcs.mod[a] * (n + 1) + arcs.head[a]] = third
        space.child[a] = space.parent[a] = third
    for h in range(n + 1):
        space.stale[h] = 1


@helper
def _conflicts(n, arcs, space):
    """How often an automaton and the spanning tree differ about an arc."""
    count = 0
    for a in range(arcs.first[n + 1]):
        used = 1 if space.heads[arcs.mod[a]] == arcs.head[a] else 0
        count += (used != space.as_child[a]) + (used != space.as_parent[a])
    return count


@helper
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


@helper
def _climb(n, arcs, scores, single, heads):
    """Change single heads, each word's to its best, until that betters the tree no more."""
    kids_first, kids, mod, first = arcs.kids_first, arcs.kids, arcs.mod, arcs.first
    rank, siblings, grands, lookup = arcs.rank, arcs.siblings, arcs.grands, arcs.lookup
    arc_scores, sibling_scores = scores.arcs, scores.siblings
    last_scores, grand_scores, head = scores.lasts, scores.grands, arcs.head
    changes = 1
    while changes > 0:
        changes = 0
        for m in range(1, n + 1):
            old = heads[m]
            choice, best_gain = old, 0.0
            for a in range(first[m], first[m + 1]):
                new = head[a]
                above = new
                while above != 0 and above != m:
                    above = heads[above]
                # With one child of the root, neither it nor its place can be had.
                if new == old or above == m or (single and (new == 0 or old == 0)):
                    continue
                # What changes are the parts beside m, at the old head and at the new, and those
                # below m.
                before, after = 0.0, 0.0
                for state in range(2):
                    heads[m] = new if state == 1 else old
                    total = 0.0
                    for k in range(4):
                        h, side = m, k - 2
                        if k < 2:
                            h = new if k == 1 else old
                            side = RIGHT if m > h else LEFT
                        g = heads[h] if h > 0 else -1
                        owner = lookup[h * (n + 1) + g] - first[h] if h > 0 else 0
                        last = -1
                        for p in range(kids_first[2 * h + side], kids_first[2 * h + side + 1]):
                            b = kids[p]
                            if heads[mod[b]] == h:
                                part = siblings[b] + (1 + rank[last] if last >= 0 else 0)
                                total += arc_scores[b] + sibling_scores[part]
                                if h > 0:
                                    total += grand_scores[grands[b] + owner]
                                last = b
                        if last >= 0:
                            total += last_scores[last]
                    before, after = (total, after) if state == 0 else (before, total)
                heads[m] = old
                # Gains that rounding makes could go round in circles.
                if after - before > max(best_gain, 1e-12 * (1.0 + abs(before))):
                    choice, best_gain = new, after - before
            if choice != old:
                heads[m] = choice
                changes += 1


@helper
def _automata(n, arcs, scores, single, space):
    """Run the automata whose scores have changed; returns what all come to.

    A single function with every array in a variable, as in ``second_order``. A row holds, for an
    arc (h, m) and all owners of h, the best children of h up to m.
    """
    kids_first, kids, mod, lookup = arcs.kids_first, arcs.kids, arcs.mod, arcs.lookup
    firsts, siblings, grands = arcs.first, arcs.siblings, arcs.grands
    sibling_scores, last_scores, grand_scores = scores.siblings, scores.lasts, scores.grands
    lanes, rows, table = space.lanes.starts, space.lanes.rows, space.table
    steps, sides, child, parent = space.steps, space.sides, space.child, space.parent
    as_child, as_parent, best, stale = space.as_child, space.as_parent, space.best, space.stale
    total = 0.0
    for h in range(n + 1):
        if not stale[h]:
            total += best[h]
            continue
        stale[h] = 0
        own, owner = lanes[h + 1] - lanes[h], firsts[h]
        owners = firsts[h + 1] - owner if h > 0 else 1
        lone = h == 0 and single
        for side in range(2):
            first, last = kids_first[2 * h + side], kids_first[2 * h + side + 1]
            zeros = rows[h] + (side + first - kids_first[2 * h]) * own
            for p in range(first, last):
                a, part, row = kids[p], siblings[kids[p]], zeros + (1 + p - first) * own
                count = 1 if lone else 1 + p - first
                max_plus(table, row, table, zeros, own, sibling_scores, part, 1, count, own)
                arc, grand = child[a], grands[a]
                for g in range(owners):
                    table[row + g] += arc
                for g in range(grands[a + 1] - grand):
                    table[row + g] += grand_scores[grand + g]
                loop = lookup[h * (n + 1) + mod[a]]
                if loop >= 0:  # m -> h -> m
                    table[row + loop - owner] = -np.inf
                steps[1 + p - first] = last_scores[a]
            # The root has a child, everyone else may have none.
            steps[0] = -np.inf if h == 0 and side == RIGHT else 0.0
            place = side * len(steps)
            max_plus(sides, place, table, zeros, own, steps, 0, 1, 1 + last - first, own)
        top, choice = -np.inf, 0
        for g in range(owners):
            v = sides[g] + sides[len(steps) + g] + (parent[owner + g] if h > 0 else 0.0)
            if v > top:
                top, choice = v, g
        best[h] = top
        total += top
        for g in range(owners if h > 0 else 0):
            as_parent[owner + g] = 1 if g == choice else 0
        for side in range(2):
            first, last = kids_first[2 * h + side], kids_first[2 * h + side + 1]
            zeros = rows[h] + (side + first - kids_first[2 * h]) * own + choice
            top, place = -np.inf if h == 0 else 0.0, 0
            for k in range(1, 1 + last - first):
                a = kids[first + k - 1]
                as_child[a] = 0
                v = table[zeros + k * own] + last_scores[a]
                if v > top:
                    top, place = v, k
            while place > 0:
                a = kids[first + place - 1]
                as_child[a] = 1
                part, end, place = siblings[a], 1 if lone else place, 0
                top = sibling_scores[part]
                for k in range(1, end):
                    v = table[zeros + k * own] + sibling_scores[part + k]
                    if v > top:
                        top, place = v, k
    return total

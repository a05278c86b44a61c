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

Here (g, h), (h, m), (h, s) run over candidate arcs only. With k candidates for each of n words that
is O(n^2 k) numbers and O(n^3 k) steps at most. All innermost loops run along the lanes of the arcs
(g, h) to one h, its owners (see `Lanes`). C has one table for both halves, by their end; S is by
sibling part.

Items whose g lies inside the span are computed along with the rest, but no item of a tree refers to
them.

Every tree is built in one way only, so with log-sum-exp in place of max the same recursions give
log Z. Its derivatives with respect to the scores are the probabilities of the parts; they are found
by going through the recursions backwards.

References
----------
Koo and Collins. Efficient third-order dependency parsers. ACL 2010. (Model 1, with its g-sibling
parts restricted to sums of sibling and grandparent scores.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import helper, shared_kernel
from hopefear.structures.lattice.exponential import exp_from
from hopefear.structures.lattice.lanes import max_plus, sum_product
from hopefear.structures.tree.parts import (
    GROUP,
    LEFT,
    RIGHT,
    Counts,
    Lanes,
    fill_lanes,
    new_lanes,
    new_owner_table,
    owner_row,
)


class SecondOrder(NamedTuple):
    """Working memory of search and sums."""

    lanes: Lanes
    complete: np.ndarray  # float64: C, at e * width + lane, with one width of lanes for each end e
    incomplete: np.ndarray  # float64: I, by arc and owner
    between: np.ndarray  # float64[sibling parts]: S
    steps: np.ndarray  # float64[longest + 1]: what is added to the rows of a head
    totals: np.ndarray  # float64[lanes of a head]: what sums are measured by, or sums
    terms: np.ndarray  # float64: exponentials, row by row
    ones: np.ndarray  # float64[longest + 1]
    complete_slopes: np.ndarray  # float64: d log Z / d C
    incomplete_slopes: np.ndarray  # float64: d log Z / d I
    stack: np.ndarray  # int32[2 * (longest + 1)]: halves that are still to be read off


def new_second_order(longest: int, counts: Counts, sums: bool = False) -> SecondOrder:
    """Memory for sentences of up to ``longest`` words and so many parts.

    40 words of 10 candidates each need 0.3 MB, and twice that with ``sums``, without which
    :func:`projective_second_marginals` has no room.
    """
    words = longest + 1
    complete = words * (counts.arcs + GROUP * words)
    most = words + GROUP
    return SecondOrder(
        lanes=new_lanes(longest, counts),
        complete=np.zeros(complete),
        incomplete=new_owner_table(longest, counts),
        between=np.zeros(counts.siblings),
        steps=np.zeros(words),
        totals=np.zeros(most),
        terms=np.zeros(words * most if sums else 0),
        ones=np.ones(words),
        complete_slopes=np.zeros(complete if sums else 0),
        incomplete_slopes=new_owner_table(longest, counts) if sums else np.zeros(0),
        stack=np.zeros(2 * words, np.int32),
    )


@shared_kernel
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
    >>> scores.arcs[:] = [1, 2, 2, 4]
    >>> space = new_second_order(2, counts)
    >>> float(projective_second(2, arcs, scores, True, space, heads)), heads.tolist()
    (5.0, [0, 0, 1])
    """
    best = _inside(n, arcs, scores, single, None, space)
    if best > -np.inf:
        _read_off(n, arcs, scores, single, space, heads)
    return best


@shared_kernel
def projective_second_marginals(n, arcs, scores, single, space, out):
    """Put the probabilities of all parts into ``out`` and return log Z.

    Parameters
    ----------
    n, arcs, scores, single : int, Arcs, Scores, bool
        As for :func:`projective_second`; a tree has the probability ``exp(score - log Z)``.
    space : SecondOrder
        Working memory made with ``sums=True``.
    out : Scores
        Laid out as the scores. Zero everywhere if there is no tree (log Z is then minus infinity).

    Examples
    --------
    >>> from hopefear.structures.tree.parts import fill_arcs, new_arcs, new_part_scores
    >>> arcs, counts = new_arcs(2, 4), Counts(4, 5, 4)
    >>> n_arcs = fill_arcs(arcs, 2, np.array([0, 2, 4]), np.array([0, 2, 0, 1], np.int32))
    >>> scores, out = new_part_scores(counts), new_part_scores(counts)
    >>> scores.arcs[:] = np.log([1, 1, 1, 2])
    >>> space = new_second_order(2, counts, sums=True)
    >>> log_z = projective_second_marginals(2, arcs, scores, False, space, out)
    >>> round(float(np.exp(log_z)), 6), out.arcs.round(6).tolist()
    (4.0, [0.75, 0.25, 0.5, 0.5])
    """
    d_complete, d_incomplete = space.complete_slopes, space.incomplete_slopes
    log_z = _inside(n, arcs, scores, single, True, space)
    n_arcs, width = arcs.first[n + 1], space.lanes.starts[n + 1]
    for p in range((n + 1) * width):
        d_complete[p] = 0.0
    for p in range(space.lanes.rows[n + 1]):
        d_incomplete[p] = 0.0
    for a in range(n_arcs):
        out.lasts[a] = 0.0
    for p in range(arcs.siblings[n_arcs]):
        out.siblings[p] = 0.0
    if log_z > -np.inf:
        if single:
            for p in range(arcs.kids_first[1], arcs.kids_first[2]):
                a = arcs.kids[p]
                chance = np.exp(_lone(n, arcs, scores, space, a) - log_z)
                out.siblings[arcs.siblings[a]] = out.lasts[a] = chance
                d_incomplete[owner_row(arcs, space.lanes, 0, RIGHT, p)] = chance
                d_complete[width + space.lanes.of[a]] += chance
                d_complete[n * width + space.lanes.of[a]] += chance
        else:
            d_complete[n * width] = 1.0
        _outside(n, arcs, scores, single, space, out)
    _count_owners(n, arcs, space, out)
    return log_z


@helper
def _count_owners(n, arcs, space, out):
    """Read the probabilities of arcs and grandparent parts off the slopes of I."""
    kids_first, kids, grands, first = arcs.kids_first, arcs.kids, arcs.grands, arcs.first
    d_incomplete, d_arcs, d_grands = space.incomplete_slopes, out.arcs, out.grands
    for h in range(n + 1):
        owners = first[h + 1] - first[h] if h > 0 else 1
        for side in range(2):
            for p in range(kids_first[2 * h + side], kids_first[2 * h + side + 1]):
                a, row = kids[p], owner_row(arcs, space.lanes, h, side, p)
                chance = 0.0
                for g in range(owners):
                    chance += d_incomplete[row + g]
                d_arcs[a] = chance
                for g in range(owners if h > 0 else 0):
                    d_grands[grands[a] + g] = d_incomplete[row + g]


@helper(inline=True)
def _lone(n, arcs, scores, space, a):
    """What trees come to in which the child of arc ``a`` is the only one of the root."""
    width, lane = space.lanes.starts[n + 1], space.lanes.of[a]
    halves = space.complete[width + lane] + space.complete[n * width + lane]
    return scores.arcs[a] + scores.siblings[arcs.siblings[a]] + scores.lasts[a] + halves


@helper
def _inside(n, arcs, scores, single, soft, space):
    """Fill all items: with best scores where ``soft`` is None, else with logarithms of sums.

    Items are computed by their left end i, from the last word to the first: of i itself all right
    halves, of the heads behind it the left halves that end at i. This is one function, with every
    array in a variable, because reference counts of arrays cost more than the work between calls.
    With None the compiler leaves the sums out.
    """
    fill_lanes(arcs, n, space.lanes, space.incomplete)
    kids_first, kids, mod, lookup = arcs.kids_first, arcs.kids, arcs.mod, arcs.lookup
    rank, siblings, grands = arcs.rank, arcs.siblings, arcs.grands
    arc_scores, sibling_scores = scores.arcs, scores.siblings
    last_scores, grand_scores = scores.lasts, scores.grands
    lanes, rows, lane_of = space.lanes.starts, space.lanes.rows, space.lanes.of
    complete, incomplete, between = space.complete, space.incomplete, space.between
    steps, totals, terms, ones = space.steps, space.totals, space.terms, space.ones
    width = lanes[n + 1]
    for i in range(n, -1, -1):
        for lane in range(lanes[i], lanes[i + 1]):
            complete[i * width + lane] = 0.0
        if i == 0 and single:
            break
        for h in range(i, n + 1 if i > 0 else 1):
            side = RIGHT if h == i else LEFT
            first, last, near = kids_first[2 * h + side], kids_first[2 * h + side + 1], h + 1
            low, high, start, stop = first, last, i + 1, n + 1
            if side == LEFT:
                a = lookup[i * (n + 1) + h]
                low, high = (first + rank[a], first + rank[a] + 1) if a >= 0 else (last, last)
                near, start, stop = h - 1, i, i + 1
            own = lanes[h + 1] - lanes[h]
            zeros = rows[h] + (side + first - kids_first[2 * h]) * own
            for p in range(low, high):
                a, part, count = kids[p], siblings[kids[p]], 1 + p - first
                row = zeros + count * own
                steps[0] = sibling_scores[part] + complete[near * width + lane_of[a]]
                for q in range(1, count):
                    b = kids[first + q - 1]
                    left, right = (a, b) if mod[a] < mod[b] else (b, a)
                    place = mod[left] * width + lane_of[left]
                    facing = (mod[left] + 1) * width + lane_of[right]
                    reach = mod[right] - mod[left]
                    best = -np.inf
                    for r in range(reach):
                        best = max(best, complete[place + r * width] + complete[facing + r * width])
                    if soft is not None and best > -np.inf:
                        for r in range(reach):
                            terms[r] = complete[place + r * width] + complete[facing + r * width]
                        exp_from(terms, 0, terms, 0, best, _grouped(reach))
                        total = 0.0
                        for r in range(reach):
                            total += terms[r]
                        best += np.log(total)
                    between[part + q] = best
                    steps[q] = sibling_scores[part + q] + best
                max_plus(incomplete, row, incomplete, zeros, own, steps, 0, 1, count, own)
                if soft is not None:
                    _soften(
                        incomplete, zeros, steps, count, incomplete, row, own, totals, terms, ones
                    )
                arc, grand = arc_scores[a], grands[a]
                for g in range(own):
                    incomplete[row + g] += arc
                for g in range(grands[a + 1] - grand):
                    incomplete[row + g] += grand_scores[grand + g]
            for e in range(start, stop):
                count, place = 0, e * width
                while first + count < last:
                    a = kids[first + count]
                    if abs(mod[a] - h) > abs(e - h):
                        break
                    steps[count] = last_scores[a] + complete[place + lane_of[a]]
                    count += 1
                place += lanes[h]
                row = zeros + own
                max_plus(complete, place, incomplete, row, own, steps, 0, 1, count, own)
                if soft is not None:
                    _soften(
                        incomplete, row, steps, count, complete, place, own, totals, terms, ones
                    )
    if not single:
        return complete[n * width]
    best, total = -np.inf, 0.0
    for p in range(kids_first[1], kids_first[2]):
        best = max(best, _lone(n, arcs, scores, space, kids[p]))
    if soft is None or best == -np.inf:
        return best
    for p in range(kids_first[1], kids_first[2]):
        total += np.exp(_lone(n, arcs, scores, space, kids[p]) - best)
    return best + np.log(total)


@helper(inline=True)
def _grouped(count):
    return (count + GROUP - 1) // GROUP * GROUP


@helper(inline=True)
def _soften(incomplete, row, steps, count, items, place, own, totals, terms, ones):
    """Turn maxima of ``rows + steps`` into logarithms of sums of exponentials."""
    for g in range(own):
        totals[g] = items[place + g]
    _exponentials(incomplete, row, steps, count, own, totals, terms)
    sum_product(totals, 0, terms, 0, own, ones, 0, 1, count, own)
    for g in range(own):
        if totals[g] > 1.0:  # the maximum is one of the terms
            items[place + g] += np.log(totals[g])


@helper(inline=True)
def _exponentials(incomplete, row, steps, count, own, totals, terms):
    """``exp(rows + steps - totals)`` into ``terms``; 0 in lanes where the total is -inf."""
    lanes, base, place = np.uintp(own), np.uintp(row), np.uintp(0)  # no index is below 0
    for g in range(lanes):
        totals[g] = totals[g] if totals[g] > -np.inf else np.inf
    for k in range(count):
        step = steps[k]
        for g in range(lanes):
            terms[place + g] = incomplete[base + g] + step - totals[g]
        place, base = place + lanes, base + lanes
    exp_from(terms, 0, terms, 0, 0.0, count * own)


@helper
def _outside(n, arcs, scores, single, space, out):
    """Hand the slopes of all items on to those they were made of, in the opposite order."""
    kids_first, kids, mod, lookup = arcs.kids_first, arcs.kids, arcs.mod, arcs.lookup
    rank, siblings, grands = arcs.rank, arcs.siblings, arcs.grands
    arc_scores, sibling_scores = scores.arcs, scores.siblings
    last_scores, grand_scores = scores.lasts, scores.grands
    lanes, rows, lane_of = space.lanes.starts, space.lanes.rows, space.lanes.of
    complete, incomplete, between = space.complete, space.incomplete, space.between
    steps, totals, terms = space.steps, space.totals, space.terms
    d_complete, d_incomplete = space.complete_slopes, space.incomplete_slopes
    d_siblings, d_lasts = out.siblings, out.lasts
    width = lanes[n + 1]
    for i in range(1 if single else 0, n + 1):
        for h in range(n if i > 0 else 0, i - 1, -1):
            side = RIGHT if h == i else LEFT
            first, last, near = kids_first[2 * h + side], kids_first[2 * h + side + 1], h + 1
            low, high, start, stop = first, last, i + 1, n + 1
            if side == LEFT:
                a = lookup[i * (n + 1) + h]
                low, high = (first + rank[a], first + rank[a] + 1) if a >= 0 else (last, last)
                near, start, stop = h - 1, i, i + 1
            own = lanes[h + 1] - lanes[h]
            zeros = rows[h] + (side + first - kids_first[2 * h]) * own
            for e in range(start, stop):
                place, slope, count = e * width + lanes[h], 0.0, 0
                for g in range(own):
                    slope += d_complete[place + g]
                    totals[g] = complete[place + g]
                if slope == 0.0:
                    continue
                while first + count < last:
                    a = kids[first + count]
                    if abs(mod[a] - h) > abs(e - h):
                        break
                    steps[count] = last_scores[a] + complete[e * width + lane_of[a]]
                    count += 1
                row = zeros + own
                _exponentials(incomplete, row, steps, count, own, totals, terms)
                _share(d_complete, place, own, count, terms, d_incomplete, row, steps)
                for k in range(count):
                    a = kids[first + k]
                    d_lasts[a] += steps[k]
                    d_complete[e * width + lane_of[a]] += steps[k]
            for p in range(high - 1, low - 1, -1):
                a, part, count = kids[p], siblings[kids[p]], 1 + p - first
                row, slope = zeros + count * own, 0.0
                for g in range(own):
                    slope += d_incomplete[row + g]
                if slope == 0.0:
                    continue
                arc, grand, owners = arc_scores[a], grands[a], grands[a + 1] - grands[a]
                for g in range(own):  # what I came to before the scores of its own parts were added
                    totals[g] = np.inf
                    if d_incomplete[row + g] > 0.0:
                        score = arc + (grand_scores[grand + g] if g < owners else 0.0)
                        totals[g] = incomplete[row + g] - score
                steps[0] = sibling_scores[part] + complete[near * width + lane_of[a]]
                for k in range(1, count):
                    steps[k] = sibling_scores[part + k] + between[part + k]
                _exponentials(incomplete, zeros, steps, count, own, totals, terms)
                _share(d_incomplete, row, own, count, terms, d_incomplete, zeros, steps)
                d_complete[near * width + lane_of[a]] += steps[0]
                d_siblings[part] = steps[0]
                for k in range(1, count):
                    slope = steps[k]
                    d_siblings[part + k] = slope
                    if slope == 0.0:
                        continue
                    b = kids[first + k - 1]
                    left, right = (a, b) if mod[a] < mod[b] else (b, a)
                    place = mod[left] * width + lane_of[left]
                    facing = (mod[left] + 1) * width + lane_of[right]
                    reach = mod[right] - mod[left]
                    for r in range(reach):
                        terms[r] = complete[place + r * width] + complete[facing + r * width]
                    exp_from(terms, 0, terms, 0, between[part + k], _grouped(reach))
                    for r in range(reach):
                        d_complete[place + r * width] += slope * terms[r]
                        d_complete[facing + r * width] += slope * terms[r]


@helper(inline=True)
def _share(slopes, place, own, count, terms, d_incomplete, row, steps):
    """Add ``slopes * terms`` to the slopes of the rows; ``steps`` become their sums by row."""
    lanes, base, here, slope = np.uintp(own), np.uintp(row), np.uintp(0), np.uintp(place)
    for k in range(count):
        for g in range(lanes):
            # A lane without a slope may belong to no tree and hold anything.
            share = terms[here + g] * slopes[slope + g] if slopes[slope + g] > 0.0 else 0.0
            terms[here + g] = share
            d_incomplete[base + g] += share
        total = 0.0
        for g in range(lanes):
            total += terms[here + g]
        steps[k] = total
        here, base = here + lanes, base + lanes


@helper(inline=True)
def _read_off(n, arcs, scores, single, space, heads):
    """Write the best tree, each half by finding again where its maximum comes from."""
    complete, incomplete, stack, kids = space.complete, space.incomplete, space.stack, arcs.kids
    width = space.lanes.starts[n + 1]
    stack[0], stack[1] = -1, n  # -1 stands for the arc to the root, which is none
    depth = 1
    if single:
        best, a = -np.inf, -1
        for p in range(arcs.kids_first[1], arcs.kids_first[2]):
            v = _lone(n, arcs, scores, space, kids[p])
            if v > best:
                best, a = v, kids[p]
        heads[arcs.mod[a]] = 0
        depth = _put(arcs, stack, _put(arcs, stack, 0, a, 1), a, n)
    while depth > 0:
        depth -= 1
        b, e = stack[2 * depth], stack[2 * depth + 1]
        h, g = (arcs.mod[b], b - arcs.first[arcs.mod[b]]) if b >= 0 else (0, 0)
        side, near = (RIGHT, h + 1) if e > h else (LEFT, h - 1)
        first = arcs.kids_first[2 * h + side]
        best, place = -np.inf, -1
        for p in range(first, arcs.kids_first[2 * h + side + 1]):
            a = kids[p]
            if abs(arcs.mod[a] - h) > abs(e - h):
                break
            v = incomplete[owner_row(arcs, space.lanes, h, side, p) + g]
            v += scores.lasts[a] + complete[e * width + space.lanes.of[a]]
            if v > best:
                best, place = v, p
        depth = _put(arcs, stack, depth, kids[place], e)
        while place >= 0:
            a = kids[place]
            heads[arcs.mod[a]] = h
            part = arcs.siblings[a]
            best, before = (
                scores.siblings[part] + complete[near * width + space.lanes.of[a]],
                -1,
            )
            for q in range(first, place):
                part += 1
                v = incomplete[owner_row(arcs, space.lanes, h, side, q) + g]
                v += scores.siblings[part] + space.between[part]
                if v > best:
                    best, before = v, q
            if before < 0:
                depth = _put(arcs, stack, depth, a, near)
            else:
                depth = _put_between(n, arcs, space, depth, a, kids[before])
            place = before


@helper(inline=True)
def _put(arcs, stack, depth, a, e):
    """Remember the half of the child of ``a`` that ends at ``e``; returns how many are waiting."""
    if arcs.mod[a] == e:
        return depth
    stack[2 * depth], stack[2 * depth + 1] = a, e
    return depth + 1


@helper(inline=True)
def _put_between(n, arcs, space, depth, a, b):
    """Remember the two halves between the children of two arcs."""
    complete, width = space.complete, space.lanes.starts[n + 1]
    if arcs.mod[a] > arcs.mod[b]:
        a, b = b, a
    best, cut = -np.inf, arcs.mod[a]
    for r in range(arcs.mod[a], arcs.mod[b]):
        v = complete[r * width + space.lanes.of[a]]
        v += complete[(r + 1) * width + space.lanes.of[b]]
        if v > best:
            best, cut = v, r
    return _put(arcs, space.stack, _put(arcs, space.stack, depth, a, cut), b, cut + 1)

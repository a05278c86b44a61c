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
from numba.extending import register_jitable

from hopefear.core.component import kernel
from hopefear.structures.lattice.exponential import exp_from
from hopefear.structures.tree.parts import LEFT, RIGHT, Counts, owner_row, owners_of, sibling_part

_GROUP = 8  # exponentials are taken in whole groups


class SecondOrder(NamedTuple):
    """Working memory of search and sums."""

    complete: np.ndarray  # float64[(longest + 1) * (arcs + 1)]: C, by end and arc; root: last arc
    incomplete: np.ndarray  # float64[grandparent parts + longest + 1]: I; of the root: by child
    between: np.ndarray  # float64[sibling parts]: S
    terms: np.ndarray  # float64[longest + 1 + group]: what exponentials are taken of
    totals: np.ndarray  # float64[longest + 1]: sums of exponentials
    complete_slopes: np.ndarray  # float64: d log Z / d C
    incomplete_slopes: np.ndarray  # float64: d log Z / d I
    stack: np.ndarray  # int32[2 * (longest + 1)]: halves that are still to be read off


def new_second_order(longest: int, counts: Counts, sums: bool = False) -> SecondOrder:
    """Memory for sentences of up to ``longest`` words and so many parts.

    40 words of 10 candidates each need 0.2 MB, and twice that with ``sums``, without which
    :func:`projective_second_marginals` has no room.
    """
    complete, incomplete = (longest + 1) * (counts.arcs + 1), counts.grands + longest + 1
    return SecondOrder(
        complete=np.zeros(complete),
        incomplete=np.zeros(incomplete),
        between=np.zeros(counts.siblings),
        terms=np.zeros(longest + 1 + _GROUP),
        totals=np.zeros(longest + 1),
        complete_slopes=np.zeros(complete if sums else 0),
        incomplete_slopes=np.zeros(incomplete if sums else 0),
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
    >>> scores.arcs[:] = [1, 2, 2, 4]
    >>> space = new_second_order(2, counts)
    >>> float(projective_second(2, arcs, scores, True, space, heads)), heads.tolist()
    (5.0, [0, 0, 1])
    """
    best = _inside(n, arcs, scores, single, False, space)
    if best > -np.inf:
        _read_off(n, arcs, scores, single, space, heads)
    return best


@kernel
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
    complete, d_complete, d_incomplete = (
        space.complete,
        space.complete_slopes,
        space.incomplete_slopes,
    )
    n_arcs = arcs.first[n + 1]
    width, n_grands = n_arcs + 1, arcs.grands[n_arcs]
    for p in range((n + 1) * width):
        d_complete[p] = 0.0
    for p in range(n_grands + n + 1):
        d_incomplete[p] = 0.0
    for a in range(n_arcs):
        out.arcs[a] = out.lasts[a] = 0.0
    for p in range(arcs.siblings[n_arcs]):
        out.siblings[p] = 0.0
    log_z = _inside(n, arcs, scores, single, True, space)
    if log_z > -np.inf:
        if single:
            for p in range(arcs.kids_first[1], arcs.kids_first[2]):
                a = arcs.kids[p]
                chance = np.exp(_lone(n, arcs, scores, complete, a) - log_z)
                out.siblings[arcs.siblings[a]] = out.lasts[a] = chance
                d_incomplete[n_grands + arcs.mod[a]] = chance
                d_complete[width + a] += chance
                d_complete[n * width + a] += chance
        else:
            d_complete[n * width + n_arcs] = 1.0
            _outside_right(n, arcs, scores, space, out, 0)
        for i in range(1, n + 1):
            for j in range(n, i, -1):
                _outside_left(n, arcs, scores, space, out, i, j)
            _outside_right(n, arcs, scores, space, out, i)
    for p in range(n_grands):
        out.grands[p] = d_incomplete[p]
    for a in range(n_arcs):
        row = owner_row(arcs, n, a)
        for g in range(owners_of(arcs, n, arcs.head[a])[1]):
            out.arcs[a] += d_incomplete[row + g]
    return log_z


@register_jitable
def _lone(n, arcs, scores, complete, a):
    """What trees come to in which the child of arc ``a`` is the only one of the root."""
    width = arcs.first[n + 1] + 1
    halves = complete[width + a] + complete[n * width + a]
    return scores.arcs[a] + scores.siblings[arcs.siblings[a]] + scores.lasts[a] + halves


@register_jitable
def _inside(n, arcs, scores, single, soft, space):
    """Fill all items: with best scores, or with logarithms of sums where ``soft``.

    Items are computed by their left end, from the last word to the first: right halves of a head at
    once, left halves end by end.
    """
    complete, kids = space.complete, arcs.kids
    width = arcs.first[n + 1] + 1
    for h in range(n, -1, -1):
        owner, owners = owners_of(arcs, n, h)
        for g in range(owners):
            complete[h * width + owner + g] = 0.0
        if h == 0 and single:
            break
        first, last = arcs.kids_first[2 * h + RIGHT], arcs.kids_first[2 * h + RIGHT + 1]
        for p in range(first, last):
            _incomplete(n, arcs, scores, soft, space, h, first, p, h + 1)
        for e in range(h + 1, n + 1):
            _complete(n, arcs, scores, soft, space, h, first, last, e)
        for j in range(h + 1, n + 1 if h > 0 else 0):
            first, last = arcs.kids_first[2 * j + LEFT], arcs.kids_first[2 * j + LEFT + 1]
            a = arcs.lookup[h * (n + 1) + j]
            if a >= 0:
                _incomplete(n, arcs, scores, soft, space, j, first, first + arcs.rank[a], j - 1)
            _complete(n, arcs, scores, soft, space, j, first, last, h)
    if not single:
        return complete[n * width + width - 1]
    best, total = -np.inf, 0.0
    for p in range(arcs.kids_first[1], arcs.kids_first[2]):
        best = max(best, _lone(n, arcs, scores, complete, kids[p]))
    if not soft or best == -np.inf:
        return best
    for p in range(arcs.kids_first[1], arcs.kids_first[2]):
        total += np.exp(_lone(n, arcs, scores, complete, kids[p]) - best)
    return best + np.log(total)


@register_jitable
def _complete(n, arcs, scores, soft, space, h, first, last, e):
    """C of all heads of ``h``, whose children are those of ``kids[first:last]``, up to ``e``."""
    complete, incomplete = space.complete, space.incomplete
    width = arcs.first[n + 1] + 1
    owner, owners = owners_of(arcs, n, h)
    place = e * width + owner
    for g in range(owners):
        complete[place + g] = -np.inf
    for p in range(first, last):
        a = arcs.kids[p]
        if abs(arcs.mod[a] - h) > abs(e - h):
            break
        rest = scores.lasts[a] + complete[e * width + a]
        if rest > -np.inf:
            row = owner_row(arcs, n, a)
            for g in range(owners):
                complete[place + g] = max(complete[place + g], incomplete[row + g] + rest)
    if soft:
        _start_sums(complete, place, owners, space)
        for p in range(first, last):
            a = arcs.kids[p]
            if abs(arcs.mod[a] - h) > abs(e - h):
                break
            rest = scores.lasts[a] + complete[e * width + a]
            if rest > -np.inf:
                _add_exponentials(
                    incomplete, owner_row(arcs, n, a), rest, complete, place, owners, space
                )
        _end_sums(complete, place, owners, space)


@register_jitable
def _incomplete(n, arcs, scores, soft, space, h, first, p, near):
    """I of the arc ``kids[p]``, whose head ``h`` has its children of that side from ``first``.

    ``near`` is the word next to h on that side.
    """
    complete, incomplete, between, kids = space.complete, space.incomplete, space.between, arcs.kids
    width = arcs.first[n + 1] + 1
    a = kids[p]
    row, owners = owner_row(arcs, n, a), owners_of(arcs, n, h)[1]
    part = arcs.siblings[a]
    start = scores.siblings[part] + complete[near * width + a]
    for g in range(owners):
        incomplete[row + g] = start
    for q in range(first, p):
        part += 1
        between[part] = _between(arcs, soft, space, width, a, kids[q])
        step = scores.siblings[part] + between[part]
        if step > -np.inf:
            before = owner_row(arcs, n, kids[q])
            for g in range(owners):
                incomplete[row + g] = max(incomplete[row + g], incomplete[before + g] + step)
    if soft:
        part = arcs.siblings[a]
        _start_sums(incomplete, row, owners, space)
        if start > -np.inf:
            for g in range(owners):
                space.totals[g] = np.exp(start - incomplete[row + g])
        for q in range(first, p):
            part += 1
            step = scores.siblings[part] + between[part]
            if step > -np.inf:
                before = owner_row(arcs, n, kids[q])
                _add_exponentials(incomplete, before, step, incomplete, row, owners, space)
        _end_sums(incomplete, row, owners, space)
    arc = scores.arcs[a]
    for g in range(owners):
        incomplete[row + g] += arc
    if h > 0:
        for g in range(owners):
            incomplete[row + g] += scores.grands[row + g]


@register_jitable
def _between(arcs, soft, space, width, a, b):
    """S of the children of two arcs."""
    complete, terms = space.complete, space.terms
    if arcs.mod[a] > arcs.mod[b]:
        a, b = b, a
    low, high = arcs.mod[a], arcs.mod[b]
    best = -np.inf
    for r in range(low, high):
        best = max(best, complete[r * width + a] + complete[(r + 1) * width + b])
    if not soft or best == -np.inf:
        return best
    for r in range(low, high):
        terms[r - low] = complete[r * width + a] + complete[(r + 1) * width + b]
    _exponentiate(terms, best, high - low)
    total = 0.0
    for k in range(high - low):
        total += terms[k]
    return best + np.log(total)


@register_jitable(forceinline=True)
def _exponentiate(terms, top, count):
    """``exp(terms - top)`` in place, for what is not above ``top``."""
    exp_from(terms, 0, terms, 0, top, (count + _GROUP - 1) // _GROUP * _GROUP)


@register_jitable
def _start_sums(items, place, owners, space):
    for g in range(owners):
        space.totals[g] = 0.0
        if items[place + g] == -np.inf:  # differences from it are to be minus infinity, not NaN
            items[place + g] = 0.0


@register_jitable
def _add_exponentials(parts, row, rest, items, place, owners, space):
    """Add ``exp(parts + rest - items)`` to the sums of all owners."""
    terms, totals = space.terms, space.totals
    for g in range(owners):
        terms[g] = parts[row + g] + rest - items[place + g]
    _exponentiate(terms, 0.0, owners)
    for g in range(owners):
        totals[g] += terms[g]


@register_jitable
def _end_sums(items, place, owners, space):
    for g in range(owners):
        items[place + g] += np.log(space.totals[g]) if space.totals[g] > 0.0 else -np.inf


@register_jitable
def _outside_right(n, arcs, scores, space, out, h):
    first, last = arcs.kids_first[2 * h + RIGHT], arcs.kids_first[2 * h + RIGHT + 1]
    for e in range(h + 1, n + 1):
        _outside_complete(n, arcs, scores, space, out, h, first, last, e)
    for p in range(last - 1, first - 1, -1):
        _outside_incomplete(n, arcs, scores, space, out, h, first, p, h + 1)


@register_jitable
def _outside_left(n, arcs, scores, space, out, e, h):
    first, last = arcs.kids_first[2 * h + LEFT], arcs.kids_first[2 * h + LEFT + 1]
    _outside_complete(n, arcs, scores, space, out, h, first, last, e)
    a = arcs.lookup[e * (n + 1) + h]
    if a >= 0:
        _outside_incomplete(n, arcs, scores, space, out, h, first, first + arcs.rank[a], h - 1)


@register_jitable
def _outside_complete(n, arcs, scores, space, out, h, first, last, e):
    """Hand the slopes of C on to the items it was made of."""
    complete, d_complete = space.complete, space.complete_slopes
    width = arcs.first[n + 1] + 1
    owner, owners = owners_of(arcs, n, h)
    place = e * width + owner
    if not _any(d_complete, place, owners):
        return
    for g in range(owners):
        space.totals[g] = complete[place + g]
    for p in range(first, last):
        a = arcs.kids[p]
        if abs(arcs.mod[a] - h) > abs(e - h):
            break
        rest = scores.lasts[a] + complete[e * width + a]
        if rest > -np.inf:
            share = _hand_on(space, owner_row(arcs, n, a), rest, d_complete, place, owners)
            out.lasts[a] += share
            d_complete[e * width + a] += share


@register_jitable
def _outside_incomplete(n, arcs, scores, space, out, h, first, p, near):
    """Hand the slopes of I on to the items it was made of."""
    complete, incomplete, between = space.complete, space.incomplete, space.between
    d_complete, d_incomplete, terms = space.complete_slopes, space.incomplete_slopes, space.terms
    width = arcs.first[n + 1] + 1
    a = arcs.kids[p]
    row, owners = owner_row(arcs, n, a), owners_of(arcs, n, h)[1]
    if not _any(d_incomplete, row, owners):
        return
    for g in range(owners):  # what I came to before the scores of its own parts were added
        space.totals[g] = 0.0
        if d_incomplete[row + g] > 0.0:
            own = scores.arcs[a] + (scores.grands[row + g] if h > 0 else 0.0)
            space.totals[g] = incomplete[row + g] - own
    for q in range(first, p):
        b = arcs.kids[q]
        part = sibling_part(arcs, a, b)
        step = scores.siblings[part] + between[part]
        if step > -np.inf:
            share = _hand_on(space, owner_row(arcs, n, b), step, d_incomplete, row, owners)
            out.siblings[part] = share
            left, right = (a, b) if arcs.mod[a] < arcs.mod[b] else (b, a)
            low, high = arcs.mod[left], arcs.mod[right]
            for r in range(low, high):
                terms[r - low] = complete[r * width + left] + complete[(r + 1) * width + right]
            _exponentiate(terms, between[part], high - low)
            for r in range(low, high):
                d_complete[r * width + left] += share * terms[r - low]
                d_complete[(r + 1) * width + right] += share * terms[r - low]
    part = arcs.siblings[a]
    start = scores.siblings[part] + complete[near * width + a]
    share = 0.0
    for g in range(owners):
        if d_incomplete[row + g] > 0.0:
            share += d_incomplete[row + g] * np.exp(start - space.totals[g])
    out.siblings[part] = share
    d_complete[near * width + a] += share


@register_jitable
def _any(slopes, place, owners):
    total = 0.0
    for g in range(owners):
        total += slopes[place + g]
    return total > 0.0


@register_jitable
def _hand_on(space, row, rest, slopes, place, owners):
    """Give I items their share ``slope * exp(I + rest - totals)``; returns the sum."""
    incomplete, terms = space.incomplete, space.terms
    for g in range(owners):
        # Items without a slope may be of no tree and hold anything.
        used = slopes[place + g] > 0.0
        terms[g] = incomplete[row + g] + rest - space.totals[g] if used else -np.inf
    _exponentiate(terms, 0.0, owners)
    share = 0.0
    for g in range(owners):
        terms[g] *= slopes[place + g]
        space.incomplete_slopes[row + g] += terms[g]
        share += terms[g]
    return share


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
        g = b - owners_of(arcs, n, h)[0]
        best, last = -np.inf, -1
        for p in range(first, arcs.kids_first[2 * h + side + 1]):
            a = arcs.kids[p]
            if abs(arcs.mod[a] - h) > abs(e - h):
                break
            v = incomplete[owner_row(arcs, n, a) + g] + scores.lasts[a] + complete[e * width + a]
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
                v = incomplete[owner_row(arcs, n, arcs.kids[q]) + g]
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

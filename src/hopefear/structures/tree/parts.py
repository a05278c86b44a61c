"""Candidate arcs of a sentence, and the numbers of the parts that second-order models score.

The words of a sentence are 1 .. n, the root is 0. Only some heads of a word are candidates. With
arc a = (h, m), and "before" meaning nearer to the head h on the same side of it, the parts are

    arc           a                              h -> m
    sibling       siblings[a]                    m is the first child of h on its side
                  siblings[a] + 1 + rank[b]      the child of h before m is that of arc b
    last          a                              m is the outermost child of h on its side
    grandparent   grands[a] + b - first[h]       the arc of h is b = (g, h); none for h = 0

and the score of a tree is the sum of the scores of its parts. A grandparent part with g = m has a
number, because numbers are then a matter of adding, but it is in no tree and its score is not read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import helper, shared_kernel

LEFT, RIGHT = 0, 1  # side of a head on which a child stands
GROUP = 8  # lanes are taken in whole groups, or in half a group


class Arcs(NamedTuple):
    """The candidate arcs of one sentence; arcs are in the order of (modifier, head)."""

    first: np.ndarray  # int32[longest + 2]: arcs of word m are first[m] .. first[m + 1] - 1
    head: np.ndarray  # int32[most]
    mod: np.ndarray  # int32[most]
    lookup: np.ndarray  # int32[(longest + 1)**2]: arc h -> m is at m * (n + 1) + h, or -1
    rank: np.ndarray  # int32[most]: candidate children of the head before this one
    kids_first: np.ndarray  # int32[2 * longest + 3]: where the arcs to side s of h start: 2 h + s
    kids: np.ndarray  # int32[most]: arcs by head and side, the nearest child first
    siblings: np.ndarray  # int64[most + 1]: first sibling part of an arc
    grands: np.ndarray  # int64[most + 1]: first grandparent part of an arc


class Lanes(NamedTuple):
    """Where tables by arc and owner keep their numbers.

    The owners of a head are the arcs to it; the root has one. Each has a lane, and a head has whole
    groups of them. In a table by arc (h, m) and owner of h, the arcs from h have a row of lanes
    each, left ones first, nearest first, and a row of zeros precedes either side.
    """

    starts: np.ndarray  # int64[longest + 2]: lanes of h are starts[h] .. starts[h + 1] - 1
    rows: np.ndarray  # int64[longest + 2]: where the rows of h start
    of: np.ndarray  # int64[most]: the lane of an arc among all


class Scores(NamedTuple):
    """Scores of the parts of one sentence, or what is expected of them."""

    arcs: np.ndarray  # float64[arcs]
    siblings: np.ndarray  # float64[sibling parts]
    lasts: np.ndarray  # float64[arcs]
    grands: np.ndarray  # float64[grandparent parts]


class Counts(NamedTuple):
    """How many parts a sentence has; ``max`` of the fields over sentences sizes a workspace."""

    arcs: int
    siblings: int
    grands: int


def new_arcs(longest: int, most: int) -> Arcs:
    """Memory for the arcs of sentences of up to ``longest`` words and ``most`` candidate arcs."""
    return Arcs(
        first=np.zeros(longest + 2, np.int32),
        head=np.zeros(most, np.int32),
        mod=np.zeros(most, np.int32),
        lookup=np.full((longest + 1) ** 2, -1, np.int32),
        rank=np.zeros(most, np.int32),
        kids_first=np.zeros(2 * longest + 3, np.int32),
        kids=np.zeros(most, np.int32),
        siblings=np.zeros(most + 1, np.int64),
        grands=np.zeros(most + 1, np.int64),
    )


def new_lanes(longest: int, counts: Counts) -> Lanes:
    """Memory for the lanes of sentences of up to ``longest`` words and so many arcs."""
    starts, rows = np.zeros((2, longest + 2), np.int64)
    return Lanes(starts, rows, np.zeros(counts.arcs, np.int64))


def new_owner_table(longest: int, counts: Counts) -> np.ndarray:
    """A table by arc and owner; whole groups take up to 7 lanes more for every row."""
    size = counts.grands + (GROUP + 1) * counts.arcs + 2 * GROUP * (longest + 1)
    return np.zeros(size)


def new_part_scores(counts: Counts) -> Scores:
    """Zeros for the scores of up to so many parts."""
    return Scores(
        arcs=np.zeros(counts.arcs),
        siblings=np.zeros(counts.siblings),
        lasts=np.zeros(counts.arcs),
        grands=np.zeros(counts.grands),
    )


def part_counts(starts: np.ndarray, heads: np.ndarray, n: int) -> Counts:
    """Numbers of parts of a sentence whose candidate heads are given as for :func:`fill_arcs`.

    Examples
    --------
    >>> part_counts(np.array([0, 2, 4]), np.array([0, 2, 0, 1]), 2)
    Counts(arcs=4, siblings=5, grands=4)
    """
    ends = np.asarray(starts[: n + 1], np.int64)
    widths = ends[1:] - ends[:-1]
    of_arcs = np.asarray(heads[starts[0] : starts[n]], np.int64)
    mods = np.repeat(np.arange(1, n + 1), widths)
    children = np.bincount(2 * of_arcs + (mods > of_arcs), minlength=1)
    return Counts(
        arcs=len(of_arcs),
        siblings=int((children * (children + 1) // 2).sum()),
        grands=int(np.concatenate([[0], widths])[of_arcs].sum()),
    )


@shared_kernel
def fill_arcs(arcs, n, starts, heads):
    """Number the candidate arcs of a sentence and their parts; returns how many arcs there are.

    Parameters
    ----------
    arcs : Arcs
        What is filled in. Its last used entries of ``siblings`` and ``grands``, at the number of
        arcs, are the numbers of those parts.
    n : int
        Number of words.
    starts, heads : int[n + 1], int32[]
        ``heads[starts[m - 1]:starts[m]]`` are the candidate heads of word m, ascending.

    Examples
    --------
    >>> arcs = new_arcs(2, 4)
    >>> int(fill_arcs(arcs, 2, np.array([0, 2, 4]), np.array([0, 2, 0, 1], np.int32)))
    4
    >>> [(int(h), int(m)) for h, m in zip(arcs.head, arcs.mod)]
    [(0, 1), (2, 1), (0, 2), (1, 2)]
    >>> arcs.siblings.tolist(), arcs.grands.tolist()
    ([0, 1, 2, 4, 5], [0, 0, 2, 2, 4])
    """
    first, head, mod, lookup = arcs.first, arcs.head, arcs.mod, arcs.lookup
    rank, kids_first, kids = arcs.rank, arcs.kids_first, arcs.kids
    siblings, grands = arcs.siblings, arcs.grands
    for p in range((n + 1) * (n + 1)):
        lookup[p] = -1
    for p in range(2 * n + 3):
        kids_first[p] = 0
    first[0] = 0
    a = 0
    for m in range(1, n + 1):
        first[m] = a
        for p in range(starts[m - 1], starts[m]):
            h = heads[p]
            head[a], mod[a] = h, m
            lookup[m * (n + 1) + h] = a
            kids_first[2 * h + (RIGHT if m > h else LEFT) + 1] += 1
            a += 1
    first[n + 1] = a
    for p in range(2 * n + 2):
        kids_first[p + 1] += kids_first[p]
    # Modifiers ascend along the arcs: right children come nearest first, left ones outermost first.
    # Each entry of kids_first is a cursor here; what it moved by is taken back below.
    for k in range(2 * a):
        b = k if k < a else 2 * a - 1 - k
        if (mod[b] > head[b]) == (k < a):
            side = 2 * head[b] + (RIGHT if k < a else LEFT)
            rank[b] = kids_first[side]
            kids[rank[b]] = b
            kids_first[side] += 1
    for p in range(2 * n + 2, 0, -1):
        kids_first[p] = kids_first[p - 1]
    kids_first[0] = 0
    siblings[0], grands[0] = 0, 0
    for b in range(a):
        h = head[b]
        rank[b] -= kids_first[2 * h + (RIGHT if mod[b] > h else LEFT)]
        siblings[b + 1] = siblings[b] + rank[b] + 1
        grands[b + 1] = grands[b] + (first[h + 1] - first[h] if h > 0 else 0)
    return a


@helper
def fill_lanes(arcs, n, lanes, table):
    """Give every head its lanes and rows, those of the root first; write the rows of zeros."""
    lane, row = 0, 0
    for h in range(n + 1):
        owners = arcs.first[h + 1] - arcs.first[h] if h > 0 else 1
        own = GROUP // 2
        if owners > own:
            own = (owners + GROUP - 1) // GROUP * GROUP
        lanes.starts[h], lanes.rows[h] = lane, row
        for g in range(owners if h > 0 else 0):
            lanes.of[arcs.first[h] + g] = lane + g
        left, right = arcs.kids_first[2 * h], arcs.kids_first[2 * h + 1]
        for g in range(own):
            table[row + g] = table[row + (1 + right - left) * own + g] = 0.0
        lane += own
        row += (2 + arcs.kids_first[2 * h + 2] - left) * own
    lanes.starts[n + 1], lanes.rows[n + 1] = lane, row


@helper
def owner_row(arcs, lanes, h, side, p):
    """Where the row of the arc ``kids[p]``, from ``h`` to that side, is."""
    own = lanes.starts[h + 1] - lanes.starts[h]
    return lanes.rows[h] + (1 + side + p - arcs.kids_first[2 * h]) * own


@helper
def score_of(arcs, n, scores, heads):
    """Score of a head assignment, which need not be a tree; minus infinity off the candidates.

    Examples
    --------
    >>> arcs = new_arcs(2, 4)
    >>> n_arcs = fill_arcs(arcs, 2, np.array([0, 2, 4]), np.array([0, 2, 0, 1], np.int32))
    >>> scores = new_part_scores(Counts(4, 5, 4))
    >>> scores.arcs[:] = [1, 2, 3, 4]
    >>> scores.grands[2] = 10  # 0 -> 1 -> 2
    >>> [float(score_of(arcs, 2, scores, np.array(heads))) for heads in ([0, 0, 1], [0, 2, 0])]
    [15.0, 5.0]
    """
    # Arrays in variables, here and in what follows: to take them from a tuple again and again
    # counts references, which costs more than the sums.
    kids_first, kids, mod, first = arcs.kids_first, arcs.kids, arcs.mod, arcs.first
    rank, siblings, grands, lookup = arcs.rank, arcs.siblings, arcs.grands, arcs.lookup
    arc_scores, sibling_scores = scores.arcs, scores.siblings
    last_scores, grand_scores = scores.lasts, scores.grands
    total, count = 0.0, 0
    for h in range(n + 1):
        g = heads[h] if h > 0 else -1
        owner = lookup[h * (n + 1) + g] - first[h] if h > 0 else 0
        for side in range(2):
            before = -1
            for p in range(kids_first[2 * h + side], kids_first[2 * h + side + 1]):
                a = kids[p]
                if heads[mod[a]] == h:
                    total += arc_scores[a]
                    total += sibling_scores[siblings[a] + (1 + rank[before] if before >= 0 else 0)]
                    if h > 0 and g != mod[a]:
                        total += grand_scores[grands[a] + owner]
                    before = a
                    count += 1
            if before >= 0:
                total += last_scores[before]
    return total if count == n else -np.inf


@helper
def parts_of(arcs, n, heads, out_siblings, out_lasts, out_grands):
    """List the parts of a head assignment, by modifier; -1 where a word has no such part.

    Parameters
    ----------
    arcs, n : Arcs, int
        The candidate arcs and the number of words.
    heads : int[n + 1]
        The head of every word.
    out_siblings, out_lasts, out_grands : int64[n + 1]
        The parts whose modifier is m, at m; entry 0 is -1. A word whose head is no candidate has
        none and counts as no sibling of others.

    Examples
    --------
    >>> arcs = new_arcs(2, 4)
    >>> n_arcs = fill_arcs(arcs, 2, np.array([0, 2, 4]), np.array([0, 2, 0, 1], np.int32))
    >>> siblings, lasts, grands = np.zeros((3, 3), np.int64)
    >>> parts_of(arcs, 2, np.array([0, 0, 0]), siblings, lasts, grands)
    >>> siblings.tolist(), lasts.tolist(), grands.tolist()
    ([-1, 0, 3], [-1, -1, 2], [-1, -1, -1])
    """
    kids_first, kids, mod, first = arcs.kids_first, arcs.kids, arcs.mod, arcs.first
    rank, siblings, grands, lookup = arcs.rank, arcs.siblings, arcs.grands, arcs.lookup
    for m in range(n + 1):
        out_siblings[m] = out_lasts[m] = out_grands[m] = -1
    for h in range(n + 1):
        g = heads[h] if h > 0 else -1
        arc = lookup[h * (n + 1) + g] if h > 0 else -1
        for side in range(2):
            before = -1
            for p in range(kids_first[2 * h + side], kids_first[2 * h + side + 1]):
                a = kids[p]
                m = mod[a]
                if heads[m] == h:
                    out_siblings[m] = siblings[a] + (1 + rank[before] if before >= 0 else 0)
                    if arc >= 0 and g != m:
                        out_grands[m] = grands[a] + arc - first[h]
                    before = a
            if before >= 0:
                out_lasts[mod[before]] = before

"""Structured weighted violations perceptron (Dror and Reichart, 2016)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, helper, interface, python_only, required
from hopefear.core.interfaces import Loss
from hopefear.errors import HopefearError

APPROACHES = ("aggressive", "balanced", "passive")
WEIGHTINGS = ("wm", "wmr", "wmr-printed")
SUBSTRUCTURES = ("single", "errors", "runs", "segments", "own", "lengths", "subtrees", "power")
AGGRESSIVE, BALANCED, PASSIVE = range(3)
WM, WMR, WMR_PRINTED = range(3)
SINGLE, ERRORS, RUNS, SEGMENTS, OWN, LENGTHS, SUBTREES, POWER = range(8)
# Entries of ``Violations.counts``.
MISTAKES, NONE_USABLE, CONDITION_BROKEN, BACKED_OFF, UNSUITABLE, USED = range(6)
_MOST_SETS = 1 << 20
# Longest output whose every set of positions is looked at: 65,536 mixtures a mistake.
LONGEST_POWER = 16


class Substructures(NamedTuple):
    """Sets of positions of one's own: set k holds ``members[ends[k - 1]:ends[k]]``.

    Positions count from 0, or from -1 at the end; those a sequence does not have are left out.
    """

    members: np.ndarray  # int64
    ends: np.ndarray  # int64

    def spelled(self) -> str:
        """The sets as people write them.

        >>> substructures([[0, 1], [-1]]).spelled()
        '0,1; -1'
        """
        sets = np.split(self.members, self.ends[:-1]) if self.ends.size else []
        return "; ".join(",".join(str(k) for k in one) for one in sets)


def substructures(sets: Any) -> Substructures:
    """From a list of lists of positions.

    >>> substructures([[0, 1], [-1]]).ends.tolist()
    [2, 3]
    """
    members = [int(k) for one in sets for k in one]
    ends = np.cumsum([len(one) for one in sets])
    return Substructures(np.array(members, np.int64), np.array(ends, np.int64))


class Violations(NamedTuple):
    """The mixed assignments of one example, and what became of all examples so far."""

    taken: np.ndarray  # uint8[places]
    mixture: np.ndarray  # int32[places]
    first: np.ndarray  # int64: first position of J, or the number of J where it is no stretch
    last: np.ndarray  # int64: last position of J, or -1 where J is no stretch
    margins: np.ndarray
    gamma: np.ndarray
    order: np.ndarray  # int64: the J by the sizes of their margins
    counts: (
        np.ndarray
    )  # int64[6]: mistakes; no J usable; (2) broken; backed off; unsuitable; J in use


@interface
class Inference:
    """Finds the output whose mixtures with gold are looked at."""

    @python_only
    def parameter_error(self):
        """Why the parameters make no sense, or nothing."""
        return ""

    @required
    def guess(self, structure, x, work):
        """Write an output to ``work.y``; returns the lead of gold and whether it is wrong."""


@component(Inference)
class Argmax(NamedTuple):
    """The best output: where it is wrong it violates."""

    unused: int = 0

    def guess(self, structure, x, work):
        z = structure.margin(x, work.theta, work.y, False)
        return z, z <= 0.0


@component(Inference)
class Search(NamedTuple):
    """The first that the structure's search for the n best finds; a beam may miss gold."""

    unused: int = 0

    def guess(self, structure, x, work):
        if structure.k_best(x, work.theta, None, 0.0, work.outputs[:1]) == 0:
            return 1.0, False
        path = work.outputs[0]
        for t in range(structure.n_positions(x)):
            work.y[t] = path[t]
        if structure.is_gold(x, work.y):
            return 1.0, False
        return structure.margin_over(x, work.theta, work.y), True


@component(Loss)
class SWVP(NamedTuple):
    """Gold against mixtures of gold and prediction, weighted by how much they violate.

    On a mistake every set of positions J gives a mixed assignment m_J: the prediction in J, gold
    elsewhere (definition 1). The direction is ``sum_J gamma_J (gold - m_J)``, with
    ``gamma_J = |margin_J|**beta / sum`` (WM) or ``((N - rank_J) / N)**beta / sum`` (WMR; rank 0 is
    the largest |margin|, the first of equals; N is the number of sets; as printed, without the
    sum).

    Parameters
    ----------
    approach : {"aggressive", "balanced", "passive"}
        Use violating m_J only, all, or non-violating only.
    weighting : {"wm", "wmr", "wmr-printed"}
        By margin, or by its rank, divided by the sum or as printed.
    beta : float
        Larger favours the largest margins; 0 treats all alike.
    jj : {"single", "errors", "runs", "segments", "own", "lengths", "subtrees", "power"}
        Sets of positions: each position; each wrong position; each unbroken run of wrong positions;
        every stretch of positions; sets of one's own; of trees, by gold, words as far from their
        heads, and each word with all below it; all sets there are, of outputs of at most 16
        positions. "single" and "errors" differ in N only.
    checked : bool
        Back off to the perceptron when the weights break condition (2), that is when the mixture
        as a whole does not violate (property 3). The paper's experiments did not check; a passive
        update always breaks it, so it is always checked.
    excluding : bool
        Where it is checked, first leave out non-violating m_J, those of the largest margins first,
        until condition (2) holds; back off only where nothing is left.
    own : Substructures
        The sets for "own"; on the command line as text, ``0-2; 3,5; -1``, or a file with a set a
        line.
    inference : Argmax or Search
        What is mixed with gold: the best output, or with "search" the first that the structure's
        search for the n best finds. With a beam that may score below gold. Property 2 is then the
        guarantee: an update takes place only where a mixture violates, it is always checked, and
        an output from which no violation can be made is left alone.

    Notes
    -----
    The formula printed for WMR is not divided by its sum and so breaks the paper's own condition
    (1); "wmr" is divided, "wmr-printed" is not, and its steps are up to N times as long. Where all
    margins are zero, as they are before the first update, WM is 0/0; here all weights are then
    equal. Where no m_J is usable, because none violates (aggressive) or none differs from gold
    (sets of one's own), the perceptron's update takes place, checked or not.

    Examples
    --------
    >>> SWVP(beta=2.0).beta
    2.0
    """

    approach: int = AGGRESSIVE
    weighting: int = WM
    beta: float = 1.0
    jj: int = SINGLE
    checked: bool = True
    excluding: bool = False
    own: Any = Substructures(np.empty(0, np.int64), np.empty(0, np.int64))
    inference: Any = Argmax()

    def parameter_error(self):
        if (self.jj == OWN) != (self.own.ends.size > 0):
            return "jj=own and sets of positions go together; give both or neither"
        if not self.checked and isinstance(self.inference, Search):
            return "inference=search needs checked=true: what a search finds need not violate"
        if self.excluding and not (self.checked or self.approach == PASSIVE):
            return "excluding needs checked=true: where nothing is checked, nothing is left out"
        return ""

    def requires(self):
        heads = ("heads",) if self.jj in (LENGTHS, SUBTREES) else ()
        return ("places", *heads, *(("nbest",) if isinstance(self.inference, Search) else ()))

    def n_outputs(self):
        # Two labels at each of three positions: as many label triples as 4 outputs have at most.
        return 3

    def new_scratch(self, places):
        n = places * (places + 1) // 2 if self.jj == SEGMENTS else max(places, self.own.ends.size)
        if self.jj == POWER:
            if places > LONGEST_POWER:
                raise HopefearError(
                    f"jj=power has 2^{places} sets of {places} positions to look at, the limit is "
                    f"{LONGEST_POWER} positions; use jj=segments, or leave longer outputs out"
                )
            n = 1 << places
        if n > _MOST_SETS and self.jj == SEGMENTS:
            raise HopefearError(
                f"jj=segments has {n:,} stretches of {places:,} positions to look at, the limit is "
                f"{_MOST_SETS:,}; use jj=runs, or split the sequence"
            )
        return Violations(
            np.zeros(places, np.uint8),
            np.zeros(places, np.int32),
            np.zeros(n, np.int64),
            np.zeros(n, np.int64),
            np.zeros(n),
            np.zeros(n),
            np.zeros(n, np.int64),
            np.zeros(6, np.int64),
        )

    def value(self, z):
        return max(0.0, -z)

    def negative_derivative(self, z):
        return 1.0 if z <= 0.0 else 0.0

    def is_mistake_driven(self):
        return True

    def subgradient(self, structure, x, work):
        importance, found = np.float64(x.data.weights[x.i]), work.scratch
        z, wrong = self.inference.guess(structure, x, work)
        work.gold_margin[0] = min(z, 0.0) if wrong else z
        work.loss[0] = importance * max(0.0, -z)
        if not wrong or importance == 0.0:
            return 0
        places = structure.n_positions(x)
        count, sets = list_sets(self, structure, x, work.y, found, places)
        count = mixed_margins(self, structure, x, work, count, places)
        usable = weigh(self, found, count, sets)
        broken = condition_broken(found, count)
        checked = self.checked or self.approach == PASSIVE
        found.counts[MISTAKES] += 1
        found.counts[NONE_USABLE] += usable == 0
        found.counts[CONDITION_BROKEN] += broken
        # An output that does not violate is nothing to back off to (property 2).
        if checked and broken and (self.excluding or z > 0.0):
            usable, broken = exclude(self, found, count), False
        if usable == 0 or (checked and broken):
            if z > 0.0:
                found.counts[UNSUITABLE] += 1
                return 0
            found.counts[BACKED_OFF] += 1
            found.first[0], found.last[0], found.gamma[0] = 0, places - 1, 1.0
            count = 1
        found.counts[USED] = count
        moves = 0
        for k in range(count):
            if found.gamma[k] > 0.0:
                take(self, structure, x, found, k, places)
                structure.mix_labels(x, work.y, found.taken, found.mixture)
                coef = importance * found.gamma[k]
                structure.add_difference(x, found.mixture, coef, work.mu, moves == 0)
                moves = 1
        return moves


SWVP.choices = {  # type: ignore[attr-defined]
    "approach": APPROACHES,
    "weighting": WEIGHTINGS,
    "jj": SUBSTRUCTURES,
}
SWVP.parts = {"inference": {"argmax": Argmax, "search": Search}}  # type: ignore[attr-defined]


@helper
def mixed_margins(loss, structure, x, work, count, places):
    """Margins of gold over the m_J; forbidden ones are left out. Returns how many there are."""
    found, kept = work.scratch, 0
    for k in range(count):
        take(loss, structure, x, found, k, places)
        structure.mix_labels(x, work.y, found.taken, found.mixture)
        margin = structure.margin_over(x, work.theta, found.mixture)
        if math.isfinite(margin):
            found.first[kept], found.last[kept] = found.first[k], found.last[k]
            found.margins[kept] = margin
            kept += 1
    return kept


@helper
def list_sets(loss, structure, x, y, found, places):
    """Write down all J whose m_J differs from gold; returns (how many, size of JJ)."""
    count, sets, jj = 0, places, loss.jj
    if jj in (OWN, LENGTHS, SUBTREES, POWER):
        sets = 0
        n = loss.own.ends.size if jj == OWN else places
        for k in range(1 << places if jj == POWER else n):
            found.first[count], found.last[count] = k, -1
            size = take(loss, structure, x, found, count, places)
            sets += size > 0 or jj in (OWN, POWER)
            for t in range(places):
                if found.taken[t] and structure.wrong_at(x, y, t):
                    count += 1
                    break
        return count, sets
    for first in range(places):
        wrong = structure.wrong_at(x, y, first)
        if jj == RUNS and first > 0 and structure.wrong_at(x, y, first - 1):
            continue
        last = first
        if jj == SEGMENTS:
            for last in range(first, places):
                wrong = wrong or structure.wrong_at(x, y, last)
                if wrong:
                    found.first[count], found.last[count] = first, last
                    count += 1
        elif wrong:
            while jj == RUNS and last + 1 < places and structure.wrong_at(x, y, last + 1):
                last += 1
            found.first[count], found.last[count] = first, last
            count += 1
    if jj == SEGMENTS:
        sets = places * (places + 1) // 2
    return count, sets if jj in (SINGLE, SEGMENTS) else count


@helper
def take(loss, structure, x, found, k, places):
    """Mark the positions of the k-th J; returns how many there are."""
    first, last = found.first[k], found.last[k]
    for t in range(places):
        found.taken[t] = first <= t <= last
    if last < 0 and loss.jj == OWN:
        start = loss.own.ends[first - 1] if first > 0 else 0
        for e in range(start, loss.own.ends[first]):
            t = loss.own.members[e]
            if t < 0:
                t += places
            if 0 <= t < places:
                found.taken[t] = 1
    elif last < 0 and loss.jj == POWER:
        for t in range(places):
            found.taken[t] = (first >> t) & 1
    elif last < 0:
        for t in range(places):
            found.taken[t] = in_tree_set(loss.jj, structure, x, first, t)
    size = 0
    for t in range(places):
        size += found.taken[t]
    return size


@helper
def in_tree_set(jj, structure, x, k, t):
    """Whether t has an arc of length k + 1, or, of subtrees, is k or below it."""
    if jj == LENGTHS:
        return abs(t - structure.gold_head(x, t)) == k + 1
    for _ in range(structure.n_positions(x)):  # gold of somebody else may go round in a circle
        if t < 0 or t == k:
            break
        t = structure.gold_head(x, t)
    return t == k


@helper
def weigh(loss, found, count, sets):
    """Fill gamma, which sums to 1 but as WMR is printed; returns how many J are usable."""
    usable, largest = 0, 0.0
    for k in range(count):
        found.gamma[k] = 0.0
        if counts_for(loss, found.margins[k]):
            usable += 1
            largest = max(largest, abs(found.margins[k]))
    if loss.approach != BALANCED:  # footnote 5
        sets = usable
    if loss.weighting != WM:
        rank = 0
        sort_margins(found.margins, found.order, count)
        for j in range(count):
            k = found.order[j]
            if counts_for(loss, found.margins[k]):
                found.gamma[k] = ((sets - rank) / sets) ** loss.beta
                rank += 1
    else:  # as shares of the largest, margins can be raised to any power
        for k in range(count):
            if counts_for(loss, found.margins[k]):
                share = abs(found.margins[k]) / largest if largest > 0.0 else 1.0
                found.gamma[k] = share**loss.beta
    total = 0.0
    for k in range(count):
        total += found.gamma[k]
    if loss.weighting != WMR_PRINTED:
        for k in range(count):
            found.gamma[k] /= max(total, 1.0)
    return usable


@helper
def sort_margins(margins, order, count):
    """Put 0 .. count - 1 in order, the largest margin first and the first of equals (a heap)."""
    for k in range(count):
        order[k] = k
    for top in range(count // 2 - 1, -1, -1):
        _sift(margins, order, top, count)
    for end in range(count - 1, 0, -1):
        order[0], order[end] = order[end], order[0]
        _sift(margins, order, 0, end)


@helper
def _sift(margins, order, top, end):
    """Let the one at ``top`` sink below all that come after it in order."""
    while 2 * top + 1 < end:
        child = 2 * top + 1
        if child + 1 < end and _comes_first(margins, order[child], order[child + 1]):
            child += 1
        if not _comes_first(margins, order[top], order[child]):
            return
        order[top], order[child] = order[child], order[top]
        top = child


@helper(inline=True)
def _comes_first(margins, j, k):
    a, b = abs(margins[j]), abs(margins[k])
    return a > b or (a == b and j < k)


@helper
def condition_broken(found, count):
    """Whether gold leads the mixture of the m_J, by more than the sum rounds: against (2)."""
    mixture, size = 0.0, 0.0
    for k in range(count):
        term = found.gamma[k] * found.margins[k]
        mixture += term
        size += abs(term)
    return mixture > 1e-12 * size


@helper
def exclude(loss, found, count):
    """Leave out the m_J of the largest margins until condition (2) holds; returns how many stay."""
    # The sum is made anew each time: without a term that was nearly all of it, it would be noise.
    while condition_broken(found, count):
        top = -1
        for k in range(count):
            if found.gamma[k] > 0.0 and (top < 0 or found.margins[k] > found.margins[top]):
                top = k
        found.gamma[top] = 0.0
    rest, stay = 0.0, 0
    for k in range(count):
        rest += found.gamma[k]
        stay += found.gamma[k] > 0.0
    if loss.weighting != WMR_PRINTED:
        for k in range(count):
            found.gamma[k] /= max(rest, 1e-300)
    return stay


@helper(inline=True)
def counts_for(loss, margin):
    """Whether the approach uses an m_J of this margin."""
    return loss.approach == BALANCED or (margin <= 0.0) == (loss.approach == AGGRESSIVE)

"""Structured weighted violations perceptron (Dror and Reichart, 2016)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from hopefear.component import component
from hopefear.interfaces import Loss

APPROACHES = ("aggressive", "balanced", "passive")
WEIGHTINGS = ("wm", "wmr")
SUBSTRUCTURES = ("single", "errors", "runs", "segments", "own")
AGGRESSIVE, BALANCED, PASSIVE = range(3)
WM, WMR = range(2)
SINGLE, ERRORS, RUNS, SEGMENTS, OWN = range(5)


class Substructures(NamedTuple):
    """Sets of positions of one's own: set k holds ``members[ends[k - 1]:ends[k]]``.

    Positions count from 0, or from -1 at the end; those a sequence does not have are left out.
    """

    members: np.ndarray  # int64
    ends: np.ndarray  # int64


def substructures(sets: Any) -> Substructures:
    """From a list of lists of positions.

    >>> substructures([[0, 1], [-1]]).ends.tolist()
    [2, 3]
    """
    members = [int(k) for one in sets for k in one]
    ends = np.cumsum([len(one) for one in sets])
    return Substructures(np.array(members, np.int64), np.array(ends, np.int64))


class Violations(NamedTuple):
    """The mixed assignments of one example."""

    taken: np.ndarray  # uint8[places]
    first: np.ndarray  # int64: first position of J, or the number of a set of one's own
    last: np.ndarray
    margins: np.ndarray
    gamma: np.ndarray


@component(Loss)
class SWVP(NamedTuple):
    """Gold against mixtures of gold and prediction, weighted by how much they violate.

    On a mistake every set of positions J gives a mixed assignment m_J: the prediction in J, gold
    elsewhere (definition 1). The direction is ``sum_J gamma_J (gold - m_J)``, with
    ``gamma_J = |margin_J|**beta / sum`` (WM) or ``((N - rank_J) / N)**beta / sum`` (WMR; rank 0 is
    the largest |margin|, N the number of sets).

    The formula printed for WMR is not divided by its sum and so breaks the paper's own condition
    (1); here it is. Where all margins are zero (WM is then 0/0) all weights are equal.

    Parameters
    ----------
    approach : {"aggressive", "balanced", "passive"}
        Use violating m_J only, all, or non-violating only.
    weighting : {"wm", "wmr"}
        By margin, or by its rank.
    beta : float
        Larger favours the largest margins; 0 treats all alike.
    jj : {"single", "errors", "runs", "segments", "own"}
        Sets of positions: each position; each wrong position; each unbroken run of wrong positions;
        every stretch of positions; sets of one's own. "single" and "errors" differ in N only.
    checked : bool
        Back off to the perceptron when the weights break condition (2), that is when the mixture
        as a whole does not violate (property 3). The paper's experiments did not check; a passive
        update always breaks it, so it is always checked.
    own : Substructures
        The sets for "own".

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
    own: Any = Substructures(np.empty(0, np.int64), np.empty(0, np.int64))

    choices = {  # noqa: RUF012 - not a field
        "approach": APPROACHES,
        "weighting": WEIGHTINGS,
        "jj": SUBSTRUCTURES,
    }

    def fault(self):
        if self.jj == OWN and self.own.ends.size == 0:
            return "jj=own needs sets of positions"
        return ""

    def needs(self):
        return ("places",)

    def notes(self, places):
        n = places * (places + 1) // 2 if self.jj == SEGMENTS else max(places, self.own.ends.size)
        return Violations(
            np.zeros(places, np.uint8),
            np.zeros(n, np.int64),
            np.zeros(n, np.int64),
            np.zeros(n),
            np.zeros(n),
        )

    def content(self):
        return True

    def subgradient(self, structure, x, work):
        importance, found = np.float64(x.data.weights[x.i]), work.pad
        z = structure.violation(x, work.theta, work.y)
        work.gap[0] = z
        work.loss[0] = importance * max(0.0, -z)
        if z > 0.0 or importance == 0.0:
            return 0
        places = structure.places(x)
        count, sets = mixed_margins(self, structure, x, work, places)
        total, kept = weigh(self, found, count, sets)
        mixture = 0.0
        for k in range(count):
            mixture += found.gamma[k] * found.margins[k]
        checked = self.checked or self.approach == PASSIVE
        if kept == 0 or total == 0.0 or (checked and mixture > 0.0):
            structure.contrast(x, work.y, importance, work.mu)
            return 1
        structure.clear(x, work.mu)
        for k in range(count):
            if found.gamma[k] > 0.0:
                take(self, found, k, places)
                coef = importance * found.gamma[k] / total
                structure.pull_mixed(x, work.y, found.taken, coef, work.mu)
        return 1


@register_jitable
def mixed_margins(loss, structure, x, work, places):
    """Margins of gold over all m_J that differ from it; returns (how many, size of JJ)."""
    count, sets = 0, places
    if loss.jj == SEGMENTS:
        sets = places * (places + 1) // 2
        for first in range(places):
            for last in range(first, places):
                count = look_at(loss, structure, x, work, places, count, first, last)
    elif loss.jj == OWN:
        sets = loss.own.ends.size
        for k in range(sets):
            count = look_at(loss, structure, x, work, places, count, k, k)
    elif loss.jj == RUNS:
        first = 0
        while first < places:
            last = first
            if structure.wrong_at(x, work.y, first):
                while last + 1 < places and structure.wrong_at(x, work.y, last + 1):
                    last += 1
                count = look_at(loss, structure, x, work, places, count, first, last)
            first = last + 1
        sets = count
    else:
        for t in range(places):
            if structure.wrong_at(x, work.y, t):
                count = look_at(loss, structure, x, work, places, count, t, t)
        if loss.jj == ERRORS:
            sets = count
    return count, sets


@register_jitable
def look_at(loss, structure, x, work, places, count, first, last):
    """Write down one J, if it makes a difference."""
    found = work.pad
    found.first[count], found.last[count] = first, last
    take(loss, found, count, places)
    differs = False
    for t in range(places):
        differs = differs or (found.taken[t] and structure.wrong_at(x, work.y, t))
    if not differs:
        return count
    found.margins[count] = structure.mixed(x, work.theta, work.y, found.taken)
    return count + 1


@register_jitable
def take(loss, found, k, places):
    """Mark the positions of the k-th J."""
    for t in range(places):
        found.taken[t] = found.first[k] <= t <= found.last[k] and loss.jj != OWN
    if loss.jj == OWN:
        which = found.first[k]
        start = loss.own.ends[which - 1] if which > 0 else 0
        for e in range(start, loss.own.ends[which]):
            t = loss.own.members[e]
            if t < 0:
                t += places
            if 0 <= t < places:
                found.taken[t] = 1


@register_jitable
def weigh(loss, found, count, sets):
    """Fill gamma, not yet divided by its sum; returns (sum, how many J are used)."""
    kept = 0
    for k in range(count):
        violates = found.margins[k] <= 0.0
        used = loss.approach == BALANCED or violates == (loss.approach == AGGRESSIVE)
        found.gamma[k] = 1.0 if used else 0.0
        kept += used
    if loss.approach != BALANCED:
        sets = kept
    total = 0.0
    for k in range(count):
        if found.gamma[k] == 0.0:
            continue
        size = abs(found.margins[k])
        if loss.weighting == WM:
            found.gamma[k] = size**loss.beta if size > 0.0 else -1.0
        else:
            rank = 0
            for m in range(count):
                other = abs(found.margins[m])
                counts = loss.approach == BALANCED or (found.margins[m] <= 0.0) == (
                    loss.approach == AGGRESSIVE
                )
                rank += counts and (other > size or (other == size and m < k))
            found.gamma[k] = ((sets - rank) / sets) ** loss.beta
        total += max(found.gamma[k], 0.0)
    for k in range(count):
        if found.gamma[k] < 0.0:  # a margin of zero: counts only if all are
            found.gamma[k] = 1.0 if total == 0.0 else 0.0
    if total == 0.0:
        total = float(kept)
    return total, kept

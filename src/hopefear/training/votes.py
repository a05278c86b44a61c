"""Votes: every predictor there was chooses, and counts as often as it survived an example.

The scores of an example change only where lines of its own features begin, end or fall with the
drop. So these changes are sorted by predictor, and the predictors are walked over once. Many parts
share a feature, and most candidates of a list the same amount of it, which then counts once for all
of them. A predictor that scores everything zero abstains (Freund and Schapire, 1999; voted RDA,
Figure 2).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, interface, kernel, required
from hopefear.core.interfaces import Row
from hopefear.core.workspace import Example


@interface
class Ballot:
    """One example as voters see it: the features of its parts, and how scores choose an output."""

    @required
    def spell(self, part, row):
        """Put the features of a part into ``row``."""

    @required
    def choose(self, scores):
        """Number of the best output, given the scores of all parts; -1 where none is allowed."""


class Lines(NamedTuple):
    """What a voted predictor keeps, by coordinate; see ``VotedPredictor``."""

    coordinates: np.ndarray
    starts: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    level: np.ndarray
    fall: np.ndarray


class Entries(NamedTuple):
    """Features of one part."""

    ids: np.ndarray
    amounts: np.ndarray
    used: np.ndarray  # int64[1]


@component(Row)
class Collector(NamedTuple):
    """A row that writes down what it is given."""

    entries: Entries

    def put(self, j, g):
        n = self.entries.used[0]
        self.entries.ids[n] = j
        self.entries.amounts[n] = g
        self.entries.used[0] = n + 1


class Uses(NamedTuple):
    """Which parts use a coordinate, and how much of it; sorted by coordinate."""

    ids: np.ndarray  # int64[uses]
    part: np.ndarray  # int64[uses]
    amount: np.ndarray  # float64[uses]


class Changes(NamedTuple):
    """How the weights of coordinates change from predictor to predictor."""

    head: np.ndarray  # int64[predictors + 1]: first change at each predictor, -1 = none
    link: np.ndarray  # int64[changes]: the next one
    first: np.ndarray  # int64[changes]: the first use of the coordinate
    weight: np.ndarray  # float64[changes, 3]: of the level, of the fall, of the lines alive


class Replay:
    """All predictors of a voted learner, to be asked about one example after another.

    Parameters
    ----------
    votes : VotedPredictor
        What a learner with the readout ``voted`` leaves behind.
    most : int
        Features of a part, at most.
    """

    def __init__(self, votes: Any, most: int) -> None:
        self.lines = Lines(*(getattr(votes, name) for name in Lines._fields))
        self.drops, self.survived = votes.drops, votes.survived
        self.entries = Entries(np.zeros(most, np.int64), np.zeros(most), np.zeros(1, np.int64))

    @property
    def cast(self) -> float:
        """Votes of all predictors together."""
        return max(1.0, float(self.survived[-1]))

    def count(self, ballot: Any, parts: int, votes: np.ndarray) -> bool:
        """Add the votes for each output to ``votes``; False where no output is allowed."""
        told = (self.lines, self.drops, self.survived, self.entries)
        return bool(count_votes(ballot, parts, *told, votes))


@component(Ballot)
class ClassBallot(NamedTuple):
    """An example of classes."""

    structure: Any
    data: Any
    i: int
    mu: np.ndarray
    theta: np.ndarray
    y: np.ndarray

    def spell(self, part, row):
        self.mu[:] = 0.0
        self.mu[part] = 1.0
        self.structure.scatter(Example(self.data, self.i), self.mu, row)

    def choose(self, scores):
        self.theta[:] = scores
        self.structure.argmax(Example(self.data, self.i), self.theta, self.y)
        return self.y[0]


@kernel
def count_votes(ballot, parts, lines, drops, survived, entries, votes):
    """Let every predictor choose, and add up the votes for each output."""
    uses = uses_of(ballot, parts, entries)
    used, n = 0, uses.ids.size
    for first in range(n):
        if first == 0 or uses.ids[first] != uses.ids[first - 1]:
            begin, end = lines_of(lines, uses.ids[first])
            used += 2 * (end - begin)
    changes = Changes(
        np.full(drops.size + 1, -1, np.int64),
        np.empty(used, np.int64),
        np.empty(used, np.int64),
        np.empty((used, 3)),
    )
    used = 0
    for first in range(n):
        if first == 0 or uses.ids[first] != uses.ids[first - 1]:
            begin, end = lines_of(lines, uses.ids[first])
            for q in range(begin, end):
                level, fall = lines.level[q], lines.fall[q]
                enter_change(changes, used, lines.begin[q], first, level, fall, 1.0)
                enter_change(changes, used + 1, lines.end[q], first, -level, -fall, -1.0)
                used += 2
    return walk(ballot, parts, uses, changes, drops, survived, votes)


@kernel
def uses_of(ballot, parts, entries):
    """The features of all parts, sorted."""
    size, used = 1024, 0
    ids, part_of, amounts = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
    for part in range(parts):
        entries.used[0] = 0
        ballot.spell(part, Collector(entries))
        count = entries.used[0]
        if used + count > size:
            size = 2 * (used + count)
            ids, part_of, amounts = grown(ids, size), grown(part_of, size), grown(amounts, size)
        for e in range(count):
            ids[used], part_of[used], amounts[used] = entries.ids[e], part, entries.amounts[e]
            used += 1
    order = np.argsort(ids[:used], kind="mergesort")
    return Uses(ids[order], part_of[order], amounts[order])


@kernel
def grown(array, size):
    """The same entries with room for more."""
    more = np.empty(size, array.dtype)
    more[: array.size] = array
    return more


@kernel
def lines_of(lines, coordinate):
    """(first, last + 1) of the lines of a coordinate."""
    place = np.searchsorted(lines.coordinates, coordinate)
    if place == lines.coordinates.size or lines.coordinates[place] != coordinate:
        return 0, 0
    return lines.starts[place], lines.starts[place + 1]


@kernel
def enter_change(changes, n, when, first, level, fall, born):
    """Write down a change."""
    changes.link[n] = changes.head[when]
    changes.head[when] = n
    changes.first[n] = first
    changes.weight[n, 0] = level
    changes.weight[n, 1] = fall
    changes.weight[n, 2] = born


@kernel
def ends_of(parts, uses):
    """Behind the last use of the coordinate of each first one; negative where parts are alike."""
    ends, n, first = np.zeros(uses.ids.size, np.int64), uses.ids.size, 0
    while first < n:
        end, alike = first + 1, True
        while end < n and uses.ids[end] == uses.ids[first]:
            alike = alike and uses.amount[end] == uses.amount[first]
            alike = alike and uses.part[end] != uses.part[end - 1]
            end += 1
        ends[first] = -end if alike and end - first == parts and parts > 1 else end
        first = end
    return ends


@kernel
def walk(ballot, parts, uses, changes, drops, survived, votes):
    """From predictor to predictor; whether all of them found an output that is allowed."""
    # The last row is what all parts have alike.
    now, scores, ends = np.zeros((parts + 1, 3)), np.zeros(parts), ends_of(parts, uses)
    choice, silent = 0, True
    for k in range(drops.size):
        n = changes.head[k]
        moved = n >= 0
        while n >= 0:
            first = changes.first[n]
            end = ends[first] if ends[first] > 0 else first + 1
            for u in range(first, end):
                part = np.uint64(uses.part[u] if ends[first] > 0 else parts)
                now[part, 0] += uses.amount[u] * changes.weight[n, 0]
                now[part, 1] += uses.amount[u] * changes.weight[n, 1]
                now[part, 2] += changes.weight[n, 2]
                if now[part, 2] == 0.0:  # no line is alive: what is left is rounding
                    now[part, 0] = 0.0
                    now[part, 1] = 0.0
            n = changes.link[n]
        if moved or (k > 0 and drops[k] != drops[k - 1]):
            silent = True
            alike = now[parts, 0] - now[parts, 1] * drops[k]
            for part in range(parts):
                scores[part] = now[part, 0] - now[part, 1] * drops[k] + alike
                silent = silent and scores[part] == 0.0
            if not silent:
                choice = ballot.choose(scores)
                if choice < 0:
                    return False
        if not silent:
            votes[choice] += survived[k + 1] - survived[k]
    return True

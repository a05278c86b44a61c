"""Votes: every predictor there was chooses, and counts as often as it survived an example.

The scores of an example change only where lines of its own features begin, end or fall with the
drop. So these changes are sorted by predictor, and the predictors are walked over once. A predictor
that scores everything zero abstains (Freund and Schapire, 1999; voted RDA, Figure 2).
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


class Changes(NamedTuple):
    """How the scores of parts change from predictor to predictor."""

    head: np.ndarray  # int64[predictors + 1]: first change at each predictor, -1 = none
    link: np.ndarray  # int64[changes]: the next one
    part: np.ndarray  # int64[changes]
    amount: np.ndarray  # float64[changes, 3]: of the level, of the fall, of the lines alive


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
    changes = Changes(
        np.full(drops.size + 1, -1, np.int64),
        np.empty(1024, np.int64),
        np.empty(1024, np.int64),
        np.empty((1024, 3)),
    )
    used = 0
    for part in range(parts):
        entries.used[0] = 0
        ballot.spell(part, Collector(entries))
        for e in range(entries.used[0]):
            place = np.searchsorted(lines.coordinates, entries.ids[e])
            if place == lines.coordinates.size or lines.coordinates[place] != entries.ids[e]:
                continue
            first, last = lines.starts[place], lines.starts[place + 1]
            if used + 2 * (last - first) > changes.link.size:
                changes = longer(changes, used + 2 * (last - first))
            for q in range(first, last):
                level = entries.amounts[e] * lines.level[q]
                fall = entries.amounts[e] * lines.fall[q]
                enter_change(changes, used, lines.begin[q], part, level, fall, 1.0)
                enter_change(changes, used + 1, lines.end[q], part, -level, -fall, -1.0)
                used += 2
    return walk(ballot, parts, changes, drops, survived, votes)


@kernel
def longer(changes, need):
    """The same changes with room for more."""
    used, size = changes.link.size, max(need, 2 * changes.link.size)
    link, part, amount = np.empty(size, np.int64), np.empty(size, np.int64), np.empty((size, 3))
    link[:used] = changes.link
    part[:used] = changes.part
    amount[:used] = changes.amount
    return Changes(changes.head, link, part, amount)


@kernel
def enter_change(changes, n, when, part, level, fall, born):
    """Write down a change."""
    changes.link[n] = changes.head[when]
    changes.head[when] = n
    changes.part[n] = part
    changes.amount[n, 0] = level
    changes.amount[n, 1] = fall
    changes.amount[n, 2] = born


@kernel
def walk(ballot, parts, changes, drops, survived, votes):
    """From predictor to predictor; whether all of them found an output that is allowed."""
    now, scores = np.zeros((parts, 3)), np.zeros(parts)
    choice, silent = 0, True
    for k in range(drops.size):
        n = changes.head[k]
        moved = n >= 0
        while n >= 0:
            part = np.uint64(changes.part[n])
            for q in range(3):
                now[part, q] += changes.amount[n, q]
            if now[part, 2] == 0.0:  # no line is alive: what is left is rounding
                now[part, 0] = 0.0
                now[part, 1] = 0.0
            n = changes.link[n]
        if moved or (k > 0 and drops[k] != drops[k - 1]):
            silent = True
            for part in range(parts):
                scores[part] = now[part, 0] - now[part, 1] * drops[k]
                silent = silent and scores[part] == 0.0
            if not silent:
                choice = ballot.choose(scores)
                if choice < 0:
                    return False
        if not silent:
            votes[choice] += survived[k + 1] - survived[k]
    return True

"""Votes: every predictor there was chooses, and counts as often as it survived an example.

The scores of an example change only where lines of its own features begin, end or fall with the
drop. Predictors are walked over once, a block at a time: first the lines that begin or end in the
block are added up, by predictor and part, in memory that stays in the cache. Many parts share a
feature, and most candidates of a list the same amount of it, which then counts once for all of
them. A predictor that scores everything zero abstains (Freund and Schapire, 1999; voted RDA,
Figure 2).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, helper, interface, kernel, required
from hopefear.core.interfaces import GradientSink

_CELLS = 1 << 13  # predictors times parts of a block: three numbers each stay in the cache


@interface
class VotingView:
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


@component(GradientSink)
class Collector(NamedTuple):
    """A row that writes down what it is given."""

    entries: Entries

    def add_entry(self, j, g):
        n = self.entries.used[0]
        self.entries.ids[n] = j
        self.entries.amounts[n] = g
        self.entries.used[0] = n + 1


class Uses(NamedTuple):
    """Which parts use a coordinate, and how much of it; sorted by coordinate."""

    ids: np.ndarray  # int64[uses]
    part: np.ndarray  # int64[uses]
    amount: np.ndarray  # float64[uses]


class Cursors(NamedTuple):
    """Coordinates of an example that have lines, and the next of these to begin and to end."""

    first: np.ndarray  # int64[coordinates]: the first use
    begin: np.ndarray  # int64[coordinates]: of lines, as the next two
    end: np.ndarray  # int64[coordinates]
    stop: np.ndarray  # int64[coordinates]: behind the last line


class VoteReplay:
    """All predictors of a voted learner, to be asked about one example after another.

    Parameters
    ----------
    votes : VotedPredictor
        What a learner with the averaging ``voted`` leaves behind.
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

    def count(self, view: Any, parts: int, votes: np.ndarray) -> bool:
        """Add the votes for each output to ``votes``; False where no output is allowed."""
        kept = (self.lines, self.drops, self.survived, self.entries)
        return bool(count_votes(view, parts, *kept, votes))


@kernel
def count_votes(view, parts, lines, drops, survived, entries, votes):
    """Add up the votes for each output; whether all predictors found one that is allowed."""
    uses = uses_of(view, parts, entries)
    ends, cursors = ends_of(parts, uses), cursors_of(uses, lines)
    # The last column is what all parts have alike.
    block = min(drops.size, max(1, _CELLS // (parts + 1)))
    changes, moved = np.zeros((block, parts + 1, 3)), np.zeros(block, np.uint8)
    now, scores = np.zeros((parts + 1, 3)), np.zeros(parts)
    choice, silent = 0, True
    for start in range(0, drops.size, block):
        count = min(block, drops.size - start)
        for c in range(cursors.first.size):
            enter_changes(uses, ends, lines, cursors, c, start, start + count, changes, moved)
        for b in range(count):
            k = start + b
            if moved[b]:
                moved[b] = 0
                for part in range(parts + 1):
                    for q in range(3):
                        now[part, q] += changes[b, part, q]
                        changes[b, part, q] = 0.0
                    if now[part, 2] == 0.0:  # no line is alive: what is left is rounding
                        now[part, 0] = 0.0
                        now[part, 1] = 0.0
            elif k == 0 or drops[k] == drops[k - 1]:
                if not silent:
                    votes[choice] += survived[k + 1] - survived[k]
                continue
            silent = True
            alike = now[parts, 0] - now[parts, 1] * drops[k]
            for part in range(parts):
                scores[part] = now[part, 0] - now[part, 1] * drops[k] + alike
                silent = silent and scores[part] == 0.0
            if not silent:
                choice = view.choose(scores)
                if choice < 0:
                    return False
                votes[choice] += survived[k + 1] - survived[k]
    return True


@helper
def enter_changes(uses, ends, lines, cursors, c, start, stop, changes, moved):
    """Add what the lines of a coordinate change at the predictors from ``start`` to ``stop``."""
    first, last = cursors.first[c], np.uint64(cursors.stop[c])
    shared = np.uint64(changes.shape[1] - 1)
    alike = ends[first] < 0
    end = first + 1 if alike else ends[first]
    for sign in (1.0, -1.0):
        ats, places = (lines.begin, cursors.begin) if sign > 0.0 else (lines.end, cursors.end)
        q = np.uint64(places[c])
        for u in range(first, end):
            part, amount = shared if alike else np.uint64(uses.part[u]), sign * uses.amount[u]
            q = np.uint64(places[c])
            # There are many lines: no slices here, whose references would be counted.
            while q < last and ats[q] < stop:
                b = np.uint64(ats[q] - start)
                changes[b, part, 0] += amount * lines.level[q]
                changes[b, part, 1] += amount * lines.fall[q]
                changes[b, part, 2] += sign
                moved[b] = 1
                q += np.uint64(1)
        places[c] = q


@kernel
def cursors_of(uses, lines):
    """Cursors before the first line of every coordinate that has any."""
    used, n = 0, uses.ids.size
    first, begin, stop = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    for u in range(n):
        if u == 0 or uses.ids[u] != uses.ids[u - 1]:
            first[used] = u
            begin[used], stop[used] = lines_of(lines, uses.ids[u])
            used += begin[used] < stop[used]
    return Cursors(first[:used], begin[:used], begin[:used].copy(), stop[:used])


@kernel
def uses_of(view, parts, entries):
    """The features of all parts, sorted."""
    size, used = 1024, 0
    ids, part_of, amounts = np.empty(size, np.int64), np.empty(size, np.int64), np.empty(size)
    for part in range(parts):
        entries.used[0] = 0
        view.spell(part, Collector(entries))
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

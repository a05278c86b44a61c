"""What training leaves behind: one weight vector, or a sequence of predictors that vote."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hopefear.component import component, kernel
from hopefear.errors import ModelError
from hopefear.example import Example, Plain
from hopefear.interfaces import Row
from hopefear.training.kernels import score_all


@dataclass(frozen=True)
class LinearPredictor:
    """A single weight vector."""

    weights: np.ndarray

    def decide(self, structure: Any, data: Any) -> tuple[np.ndarray, np.ndarray]:
        """(best outputs, scores of parts) of every row."""
        n = data.indptr.size - 1
        scores, labels = np.zeros((n, structure.n_parts())), np.zeros(n, np.int64)
        score_all(structure, Plain(self.weights), data, scores, labels)
        return labels, scores

    @property
    def nnz(self) -> int:
        """Number of non-zero weights."""
        return int(np.count_nonzero(self.weights))

    def arrays(self) -> dict[str, np.ndarray]:
        """Only the non-zero weights, with their coordinates."""
        ids = np.flatnonzero(self.weights)
        return {
            "weights.ids": ids,
            "weights.values": self.weights[ids],
            "weights.size": np.array([self.weights.size]),
        }


@dataclass(frozen=True)
class VotedPredictor:
    """All predictors there were, kept as changes of lines, by coordinate and then by time."""

    coordinates: np.ndarray  # int64[touched]: sorted
    starts: np.ndarray  # int64[touched + 1]
    first: np.ndarray  # int64[entries]: predictor from which the line holds
    lines: np.ndarray  # float64[entries, 3]
    drops: np.ndarray  # float64[predictors]
    survived: np.ndarray  # float64[predictors + 1]: running sum of c_k

    @classmethod
    def from_votes(cls, votes: Any, clock: np.ndarray) -> VotedPredictor:
        """Index the updates by coordinate and add the present predictor."""
        ticks = np.repeat(np.arange(1, votes.survived.size + 1), np.diff(votes.ends))
        by_coordinate = np.argsort(votes.coordinates, kind="stable")
        sorted_ids = votes.coordinates[by_coordinate]
        heads = np.flatnonzero(np.diff(sorted_ids, prepend=-1))
        c = np.append(votes.survived, votes.lived[0])
        return cls(
            sorted_ids[heads],
            np.append(heads, sorted_ids.size).astype(np.int64),
            ticks[by_coordinate],
            votes.lines[by_coordinate],
            np.append(votes.drops, clock[1]),
            np.append(0.0, np.cumsum(c)),
        )

    def decide(self, structure: Any, data: Any) -> tuple[np.ndarray, np.ndarray]:
        """(outputs with most votes, shares of the votes) of every row.

        With one part (two classes) the score is the share for minus the share against.
        """
        n = data.indptr.size - 1
        votes = np.zeros((n, structure.n_labels()))
        longest = np.array([np.argmax(np.diff(data.indptr))] if n else [], np.int64)
        width = structure.entries(data, longest) * structure.n_parts()
        room = Found(np.zeros(width, np.int64), np.zeros(width), np.zeros(1, np.int64))
        count_votes(
            structure,
            structure.n_parts(),
            data,
            self.coordinates,
            self.starts,
            self.first,
            self.lines,
            self.drops,
            self.survived,
            room,
            votes,
        )
        votes /= max(1.0, float(self.survived[-1]))
        labels = votes.argmax(axis=1)
        scores = votes[:, 1:] - votes[:, :1] if structure.n_parts() == 1 else votes
        return labels, scores

    @property
    def nnz(self) -> int:
        """Number of coordinates that any predictor ever used."""
        return int(self.coordinates.size)

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything, by name."""
        return {
            f"votes.{name}": getattr(self, name)
            for name in ("coordinates", "starts", "first", "lines", "drops", "survived")
        }


Predictor = LinearPredictor | VotedPredictor


def predictor_from_arrays(arrays: Mapping[str, np.ndarray]) -> Predictor:
    """Rebuild what ``arrays()`` gave; anything inconsistent is a ModelError."""
    if "weights.ids" in arrays:
        return LinearPredictor(_dense(arrays))
    return _checked_votes(arrays)


def _dense(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    ids, values = arrays["weights.ids"], arrays["weights.values"]
    size = int(arrays["weights.size"][0])
    if ids.shape != values.shape or ids.ndim != 1 or not 0 <= size < 2**40:
        raise ModelError("the weights do not fit their coordinates")
    if ids.size and (ids[0] < 0 or ids[-1] >= size or np.any(np.diff(ids) <= 0)):
        raise ModelError("the coordinates of the weights are not sorted or not in range")
    if not np.all(np.isfinite(values)):
        raise ModelError("a weight is not finite")
    weights = np.zeros(size, np.float32)
    weights[ids] = values
    return weights


def _checked_votes(arrays: Mapping[str, np.ndarray]) -> VotedPredictor:
    names = ("coordinates", "starts", "first", "lines", "drops", "survived")
    try:
        votes = VotedPredictor(*(np.ascontiguousarray(arrays[f"votes.{name}"]) for name in names))
    except KeyError as error:
        raise ModelError(f"the votes lack {error}") from error
    entries, predictors = votes.first.size, votes.drops.size
    sound = (
        votes.starts.shape == (votes.coordinates.size + 1,)
        and votes.starts[0] == 0
        and votes.starts[-1] == entries
        and votes.lines.shape == (entries, 3)
        and predictors > 0
        and votes.survived.shape == (predictors + 1,)
        and bool(np.all(np.diff(votes.starts) >= 0))
        and bool(np.all(np.diff(votes.drops) >= 0))
        and bool(np.all(np.diff(votes.coordinates) > 0))
        and (entries == 0 or (votes.first.min() >= 0 and votes.first.max() <= predictors))
        and all(bool(np.all(np.isfinite(a))) for a in (votes.lines, votes.drops, votes.survived))
    )
    if not sound:
        raise ModelError("the votes contradict themselves")
    return votes


class Found(NamedTuple):
    ids: np.ndarray
    amounts: np.ndarray
    used: np.ndarray


@component(Row)
class Collector(NamedTuple):
    """A row that writes down what it is given."""

    found: Found

    def put(self, j, g):
        n = self.found.used[0]
        self.found.ids[n] = j
        self.found.amounts[n] = g
        self.found.used[0] = n + 1


@kernel
def count_votes(
    structure, parts, data, coordinates, starts, first, lines, drops, survived, room, votes
):
    """Add up, for every row, how often each output would have been predicted."""
    for i in range(votes.shape[0]):
        x = Example(data, i)
        events = gather_events(structure, x, parts, coordinates, starts, first, lines, drops, room)
        when, part, level, slope, born = events
        sweep(structure, x, parts, when, part, level, slope, born, drops, survived, votes[i])


@kernel
def gather_events(structure, x, parts, coordinates, starts, first, lines, drops, room):
    """Births and deaths of all lines that score ``x``: (when, part, level, slope, +1 or -1).

    While alive, a line adds ``level - slope * drop`` to the score of its part (up to the scale,
    which is positive and common to all, so it changes no vote).
    """
    mu = np.zeros(parts)
    total = 0
    owner = np.zeros(parts + 1, np.int64)
    room.used[0] = 0
    for c in range(parts):
        mu[:] = 0.0
        mu[c] = 1.0
        structure.scatter(x, mu, Collector(room))
        owner[c + 1] = room.used[0]
    place = np.searchsorted(coordinates, room.ids[: room.used[0]])
    for n in range(room.used[0]):
        if place[n] < coordinates.size and coordinates[place[n]] == room.ids[n]:
            total += starts[place[n] + 1] - starts[place[n]]
    when, part = np.empty(2 * total, np.int64), np.empty(2 * total, np.int64)
    level, slope = np.empty(2 * total), np.empty(2 * total)
    born = np.empty(2 * total, np.int64)
    count = 0
    for c in range(parts):
        for n in range(owner[c], owner[c + 1]):
            if place[n] >= coordinates.size or coordinates[place[n]] != room.ids[n]:
                continue
            stop = starts[place[n] + 1]
            for e in range(starts[place[n]], stop):
                m, r, f = lines[e, 0], lines[e, 1], lines[e, 2]
                begin, end = first[e], first[e + 1] if e + 1 < stop else drops.size
                if f > 0.0:
                    end = min(end, np.searchsorted(drops, abs(m) / f))
                if m == 0.0 or begin >= end:
                    continue
                for sign in (1, -1):
                    when[count] = begin if sign > 0 else end
                    part[count] = c
                    level[count] = sign * room.amounts[n] * r * m
                    slope[count] = sign * room.amounts[n] * r * f * math_sign(m)
                    born[count] = sign
                    count += 1
    order = np.argsort(when[:count], kind="mergesort")
    return when[order], part[order], level[order], slope[order], born[order]


@kernel
def sweep(structure, x, parts, when, part, level, slope, born, drops, survived, votes):
    """Walk through time and count, between events, who wins."""
    base, fall = np.zeros(parts), np.zeros(parts)
    living = np.zeros(parts, np.int64)
    theta, y = np.zeros(parts), np.zeros(2, np.int64)
    stack = np.empty((64, 2), np.int64)
    n, start = 0, 0
    while start < drops.size:
        while n < when.size and when[n] <= start:
            c = part[n]
            base[c] += level[n]
            fall[c] += slope[n]
            living[c] += born[n]
            if living[c] == 0:  # what is left is rounding
                base[c] = 0.0
                fall[c] = 0.0
            n += 1
        stop = min(when[n], drops.size) if n < when.size else drops.size
        # Scores are linear in the drop, so an output that wins at both ends wins in between.
        depth = 1
        stack[0, 0], stack[0, 1] = start, stop
        while depth > 0:
            depth -= 1
            low, high = stack[depth, 0], stack[depth, 1]
            at_low = winner(structure, x, base, fall, drops[low], theta, y)
            at_high = winner(structure, x, base, fall, drops[high - 1], theta, y)
            if at_low == at_high:
                if at_low >= 0:
                    votes[at_low] += survived[high] - survived[low]
            else:
                middle = (low + high) // 2
                stack[depth, 0], stack[depth, 1] = low, middle
                stack[depth + 1, 0], stack[depth + 1, 1] = middle, high
                depth += 2
        start = stop


@kernel
def winner(structure, x, base, fall, drop, theta, y):
    """Best output at one drop, or -1 when every part scores zero."""
    opinion = False
    for c in range(theta.size):
        theta[c] = base[c] - fall[c] * drop
        opinion = opinion or theta[c] != 0.0
    structure.argmax(x, theta, y)
    return y[0] if opinion else -1


@kernel
def math_sign(m):
    return 1.0 if m > 0.0 else -1.0

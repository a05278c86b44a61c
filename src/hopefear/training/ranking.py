"""Asking a model about lists: scores of candidates, the best, their order, probabilities, votes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import kernel
from hopefear.core.workspace import Example, Plain
from hopefear.data.lists.dataset import cheapest
from hopefear.errors import CombinationError
from hopefear.losses.perceptron import Perceptron
from hopefear.readouts.voted import Voted
from hopefear.structures.nbest import NBest
from hopefear.training.predictors import LinearPredictor, Lines, Predictor, VotedPredictor


class Ranker:
    """Weights, or votes, on lists of candidates.

    Under weights the score of a candidate is ``w . f(x, y) + b(x, y)``. Under votes it is its share
    of them: every predictor there was votes for its best candidate, as often as it survived a list,
    and one that tells no candidates apart abstains (voted dual averaging, Figure 2). Of equal
    candidates the first is the best.

    Parameters
    ----------
    structure : NBest
        The lists.
    predictor : Predictor
        Weights, or votes.
    temperature : float
        Scores under weights are divided by it before they become probabilities. Higher evens out.
    """

    def __init__(self, structure: NBest, predictor: Predictor, temperature: float = 1.0) -> None:
        self.structure, self.predictor, self.temperature = structure, predictor, temperature

    def scores(self, rows: Any) -> np.ndarray:
        """Scores of all candidates (float64)."""
        if isinstance(self.predictor, VotedPredictor):
            votes = list_votes(self.predictor, rows)
            return votes / max(1.0, float(self.predictor.survived[-1]))
        out = np.zeros(len(rows.costs))
        work = self.structure.workspace(rows, Perceptron(), np.float64)
        score_lists(self.structure, Plain(self.predictor.weights), rows, work, out)
        return out

    def best(self, rows: Any, scores: np.ndarray | None = None) -> np.ndarray:
        """Position of the best candidate of each list (int64)."""
        scores = self.scores(rows) if scores is None else scores
        return cheapest(-scores, rows.starts).astype(np.int64)

    def ranked(self, rows: Any, scores: np.ndarray | None = None) -> np.ndarray:
        """Positions of all candidates (int64): those of the first list, best first, and so on."""
        scores = self.scores(rows) if scores is None else scores
        lengths = np.diff(rows.starts)
        order = np.lexsort((-scores, np.repeat(np.arange(len(lengths)), lengths)))
        return order - np.repeat(rows.starts[:-1], lengths)

    def probabilities(self, rows: Any, scores: np.ndarray | None = None) -> np.ndarray:
        """Probabilities of all candidates (float64), which add up to 1 in each list.

        Under votes they are shares of those that were cast; all are equal where none was.
        """
        scores = self.scores(rows) if scores is None else scores
        if isinstance(self.predictor, LinearPredictor):
            return softmax(scores / self.temperature, rows.starts)
        lengths = np.diff(rows.starts)
        cast = np.repeat(in_lists(np.add, scores, rows.starts), lengths)
        return np.divide(scores, cast, out=1.0 / np.repeat(lengths, lengths), where=cast > 0.0)


def in_lists(ufunc: Any, values: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """One number for each list: a sum, a maximum.

    >>> in_lists(np.add, np.array([1.0, 2.0, 5.0]), np.array([0, 2, 3])).tolist()
    [3.0, 5.0]
    """
    return ufunc.reduceat(values, starts[:-1]) if len(starts) > 1 else values[:0]


def softmax(scores: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Probabilities in each list: ``exp(score) / sum of exp(scores)``."""
    lengths = np.diff(starts)
    shares = np.exp(scores - np.repeat(in_lists(np.maximum, scores, starts), lengths))
    return shares / np.repeat(in_lists(np.add, shares, starts), lengths)


def check_offsets(kept: Any, rows: Any) -> None:
    """Votes know weights up to a factor, so that fixed scores cannot be added to them."""
    if isinstance(kept, VotedPredictor | Voted) and rows.offsets.any():
        raise CombinationError(
            "Voted and baseline=offset: votes keep every weight up to a factor, and a fixed score "
            "cannot be added to that; use baseline=feature, or readout=averaged"
        )


def list_votes(votes: VotedPredictor, rows: Any) -> np.ndarray:
    """Votes for every candidate (float64).

    The scores of a list change only with its own features: for each list their lines are sorted by
    when they begin and end, and the predictors are walked over once.
    """
    check_offsets(votes, rows)
    out = np.zeros(len(rows.costs))
    if not len(votes.coordinates) or not len(rows.features):
        return out
    places = np.searchsorted(votes.coordinates, rows.features)
    places[places == len(votes.coordinates)] = 0
    places[votes.coordinates[places] != rows.features] = -1
    counts = np.where(places >= 0, np.diff(votes.starts)[places], 0)
    events = 2 * np.diff(np.concatenate([[0], np.cumsum(counts)])[rows.scopes])
    most, entries = (int(sizes.max(initial=1)) for sizes in (events, np.diff(rows.scopes)))
    longest = int(np.diff(rows.starts).max(initial=1))
    stored = int(np.diff(rows.indptr[rows.starts]).max(initial=1))
    space = Space(
        np.full(len(votes.drops) + 1, -1, np.int64),
        np.zeros(most, np.int64),
        np.zeros(most, np.int64),
        np.zeros(most),
        np.zeros(most),
        np.zeros(most),
        np.zeros(entries + 1, np.int64),
        np.zeros(stored, np.int64),
        np.zeros(stored),
        np.zeros(longest),
        np.zeros(longest),
        np.zeros(longest),
    )
    lines = Lines(votes.coordinates, votes.starts, votes.begin, votes.end, votes.level, votes.fall)
    count_list_votes(rows, places, lines, votes.drops, votes.survived, space, out)
    return out


class Space(NamedTuple):
    """Room for one list: when its lines begin and end, its features by column, its scores."""

    head: np.ndarray  # int64[predictors + 1]: first change at each predictor, -1 = none
    link: np.ndarray  # int64[changes]: the next one
    column: np.ndarray  # int64[changes]: feature of the list
    raised: np.ndarray  # float64[changes]: by how much its level rises
    sunk: np.ndarray  # float64[changes]: by how much its fall does
    born: np.ndarray  # float64[changes]: lines that begin less lines that end
    begins: np.ndarray  # int64[features + 1]: where the values of a column start
    owners: np.ndarray  # int64[values]: candidate of each
    values: np.ndarray  # float64[values]
    level: np.ndarray  # float64[candidates]
    fall: np.ndarray  # float64[candidates]
    alive: np.ndarray  # float64[candidates]: lines that speak for or against a candidate


@kernel
def score_lists(structure, weights, data, work, out):
    """Scores of all candidates of all lists."""
    for i in range(data.weights.size):
        structure.score(Example(data, i), weights, work.theta)
        start = data.starts[i]
        for c in range(data.starts[i + 1] - start):
            out[start + c] = work.theta.points[c]


@kernel
def count_list_votes(data, places, lines, drops, survived, space, votes):
    """Let every predictor choose from every list, and add up the votes for each candidate."""
    for i in range(data.weights.size):
        by_column(data, i, space)
        enter_lines(data, i, places, lines, space)
        start, n = data.starts[i], data.starts[i + 1] - data.starts[i]
        space.level[:n] = 0.0
        space.fall[:n] = 0.0
        space.alive[:n] = 0.0
        best, silent = 0, True
        for k in range(drops.size):
            moved = move_scores(k, space)
            if moved or (k > 0 and drops[k] != drops[k - 1]):
                best, silent, top = 0, True, 0.0
                for c in range(n):
                    score = space.level[c] - space.fall[c] * drops[k]
                    silent = silent and score == 0.0
                    if c == 0 or score > top:
                        best, top = c, score
            if not silent:
                votes[start + best] += survived[k + 1] - survived[k]
        space.head[drops.size] = -1


@kernel
def by_column(data, i, space):
    """Sort the values of a list by feature."""
    begins, room = space.begins, data.scopes[i + 1] - data.scopes[i]
    begins[: room + 1] = 0
    for e in range(data.indptr[data.starts[i]], data.indptr[data.starts[i + 1]]):
        begins[np.int64(data.columns[e]) + 1] += 1
    for k in range(room):
        begins[k + 1] += begins[k]
    for c in range(data.starts[i], data.starts[i + 1]):
        for e in range(data.indptr[c], data.indptr[c + 1]):
            at = begins[data.columns[e]]
            space.owners[at] = c - data.starts[i]
            space.values[at] = data.values[e]
            begins[data.columns[e]] += 1
    for k in range(room, 0, -1):
        begins[k] = begins[k - 1]
    begins[0] = 0


@kernel
def enter_lines(data, i, places, lines, space):
    """Write down, by predictor, how the lines of the list's features begin, go on and end."""
    used = 0
    for k in range(data.scopes[i], data.scopes[i + 1]):
        if places[k] < 0:
            continue
        column, last = k - data.scopes[i], lines.starts[places[k] + 1] - 1
        level, fall, born = 0.0, 0.0, 1.0
        for q in range(lines.starts[places[k]], last + 1):
            raised, sunk = lines.level[q] - level, lines.fall[q] - fall
            enter_change(space, used, lines.begin[q], column, raised, sunk, born)
            used += 1
            level, fall, born = lines.level[q], lines.fall[q], 0.0
            if q == last or lines.begin[q + 1] != lines.end[q]:
                enter_change(space, used, lines.end[q], column, -level, -fall, -1.0)
                used += 1
                level, fall, born = 0.0, 0.0, 1.0


@kernel
def enter_change(space, n, when, column, raised, sunk, born):
    """Write down a change."""
    space.link[n] = space.head[when]
    space.head[when] = n
    space.column[n] = column
    space.raised[n] = raised
    space.sunk[n] = sunk
    space.born[n] = born


@kernel
def move_scores(k, space):
    """Bring the scores to predictor ``k``; whether any moved. Its changes are used up."""
    n = space.head[k]
    space.head[k] = -1
    moved = n >= 0
    while n >= 0:
        raised, sunk, born = space.raised[n], space.sunk[n], space.born[n]
        column = space.column[n]
        for p in range(space.begins[column], space.begins[column + 1]):
            c, value = np.uint64(space.owners[p]), space.values[p]
            space.level[c] += value * raised
            space.fall[c] += value * sunk
        if born != 0.0:
            for p in range(space.begins[column], space.begins[column + 1]):
                c = np.uint64(space.owners[p])
                space.alive[c] += born
                if space.alive[c] == 0.0:  # no line is alive: what is left is rounding
                    space.level[c] = 0.0
                    space.fall[c] = 0.0
        n = space.link[n]
    return moved


@kernel
def distances(data, local, out):
    """Mean squared and mean absolute distance of the oracle from the others, for each list."""
    for i in range(data.weights.size):
        start, n = data.starts[i], data.starts[i + 1] - data.starts[i]
        oracle = start + data.oracles[i]
        for e in range(data.indptr[oracle], data.indptr[oracle + 1]):
            local[data.columns[e]] = data.values[e]
        squares, sizes = 0.0, 0.0
        for c in range(start, start + n):
            for e in range(data.indptr[oracle], data.indptr[oracle + 1]):
                value = np.float64(data.values[e])
                squares += value * value
                sizes += abs(value)
            for e in range(data.indptr[c], data.indptr[c + 1]):
                value, there = np.float64(data.values[e]), local[data.columns[e]]
                squares += value * (value - 2.0 * there)
                sizes += abs(value - there) - abs(there)
        for e in range(data.indptr[oracle], data.indptr[oracle + 1]):
            local[data.columns[e]] = 0.0
        out[i, 0] = squares / max(n - 1, 1)
        out[i, 1] = sizes / max(n - 1, 1)


def mean_distances(rows: Any) -> np.ndarray:
    """As :func:`distances` (float64, two columns)."""
    out = np.zeros((len(rows.weights), 2))
    distances(rows, np.zeros(int(np.diff(rows.scopes).max(initial=1))), out)
    return out


def mean_regret(rows: Any) -> float:
    """What candidates cost more than the cheapest of their list, on average."""
    if not rows.costs.size:
        return 0.0
    least = in_lists(np.minimum, rows.costs, rows.starts)
    return float((rows.costs - np.repeat(least, np.diff(rows.starts))).mean())

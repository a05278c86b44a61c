"""Decodes lists of candidates: scores, the best, their order and probabilities."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, kernel
from hopefear.core.workspace import DenseWeights, Example
from hopefear.data.lists.dataset import cheapest
from hopefear.errors import CombinationError
from hopefear.losses.perceptron import Perceptron
from hopefear.training.decoders.base import Decoder, KBest, chosen
from hopefear.training.decoders.votes import VoteReplay, VotingView


class ListDecoder(Decoder):
    """Weights, or votes, on lists: see :class:`~hopefear.training.decoders.base.Decoder`.

    Under weights the score of a candidate is ``w . f(x, y) + b(x, y)``. Under votes it is its share
    of them: every predictor there was votes for its best candidate, as often as it survived a list,
    and one that tells no candidates apart abstains (voted dual averaging, Figure 2). Of equal
    candidates the first is the best.
    """

    def predict(self, rows: Any, scores: np.ndarray | None = None) -> np.ndarray:
        """Position of the best candidate of each list (int64)."""
        scores = self.scores(rows) if scores is None else scores
        return cheapest(-scores, rows.starts).astype(np.int64)

    def k_best(self, rows: Any, k: int) -> list[KBest]:
        """Positions, scores and probabilities of the ``k`` best candidates of each list."""
        scores = self.scores(rows)
        order, shares = self.ranked(rows, scores), self.probabilities(rows, scores)
        return [
            chosen(np.arange(b - a)[:, None], scores[a:b], shares[a:b], order[a:b][:k])
            for a, b in pairwise(rows.starts.tolist())
        ]

    def scores(self, rows: Any) -> np.ndarray:
        """Scores of all candidates (float64)."""
        out = np.zeros(len(rows.costs))
        if self.predictor.linear:
            work = self.structure.workspace(rows, Perceptron(), np.float64)
            score_lists(self.structure, DenseWeights(self.predictor.weights), rows, work, out)
            return out
        check_offsets(self.predictor, rows)
        replay = VoteReplay(self.predictor, int(np.diff(rows.indptr).max(initial=1)))
        for i, (a, b) in enumerate(pairwise(rows.starts.tolist())):
            replay.count(ListVotes(rows, i), b - a, out[a:b])
        return out / replay.cast

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
        if self.predictor.linear:
            return softmax(scores / self.temperature, rows.starts)
        lengths = np.diff(rows.starts)
        cast = np.repeat(in_lists(np.add, scores, rows.starts), lengths)
        return np.divide(scores, cast, out=1.0 / np.repeat(lengths, lengths), where=cast > 0.0)

    def log_likelihoods(self, rows: Any, scores: np.ndarray | None = None) -> np.ndarray:
        """Log probability of the cheapest candidates of each list, together (float64)."""
        least = np.repeat(in_lists(np.minimum, rows.costs, rows.starts), np.diff(rows.starts))
        shares = np.where(rows.costs == least, self.probabilities(rows, scores), 0.0)
        return np.log(np.maximum(in_lists(np.add, shares, rows.starts), np.finfo(float).tiny))


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
    if not kept.keeps_scale and rows.offsets.any():
        raise CombinationError(
            "Voted and baseline=offset: votes keep every weight up to a factor, and a fixed score "
            "cannot be added to that; use baseline=feature, or averaging=averaged"
        )


@component(VotingView)
class ListVotes(NamedTuple):
    """A list of candidates, each a part and an output."""

    data: Any
    i: int

    def spell(self, part, row):
        data, first = self.data, self.data.scopes[self.i]
        candidate = data.starts[self.i] + part
        for e in range(data.indptr[candidate], data.indptr[candidate + 1]):
            row.add_entry(
                np.int64(data.features[first + data.columns[e]]), np.float64(data.values[e])
            )

    def choose(self, scores):
        best = 0
        for c in range(1, scores.size):
            if scores[c] > scores[best]:
                best = c
        return best


@kernel
def score_lists(structure, weights, data, work, out):
    """Scores of all candidates of all lists."""
    for i in range(data.weights.size):
        structure.score(Example(data, i), weights, work.theta)
        start = data.starts[i]
        for c in range(data.starts[i + 1] - start):
            out[start + c] = work.theta.points[c]

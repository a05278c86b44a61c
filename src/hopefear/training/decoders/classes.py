"""Decodes classes: scores, the best, their order and probabilities, under weights or votes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, kernel
from hopefear.core.progress import stage
from hopefear.core.workspace import DenseWeights, Example
from hopefear.training.decoders.base import Decoder, KBest, chosen
from hopefear.training.decoders.votes import VoteReplay, VotingView


class ClassDecoder(Decoder):
    """Weights, or votes, on classes: see :class:`~hopefear.training.decoders.base.Decoder`.

    Examples
    --------
    >>> from hopefear.data.sparse import SparseDataset
    >>> from hopefear.structures.classes import Binary
    >>> from hopefear.training.predictors import LinearPredictor
    >>> rows = SparseDataset.from_csr([[1.0], [-3.0]], [1, 1]).rows
    >>> decoder = ClassDecoder(Binary(1), LinearPredictor(np.ones(1, np.float32)))
    >>> decoder.predict(rows).tolist(), decoder.probabilities(rows).round(2).tolist()
    ([1, 0], [[0.27, 0.73], [0.95, 0.05]])
    """

    def decide(self, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        """Returns (the best class, scores) of every row.

        Scores have one column for two classes, else one for each. Of a vote they are shares, the
        one of two classes the share for minus the share against.
        """
        structure, n, parts = self.structure, rows.indptr.size - 1, self.structure.n_parts()
        if self.predictor.linear:
            scores, labels = np.zeros((n, parts)), np.zeros(n, np.int64)
            score_all(structure, DenseWeights(self.predictor.weights), rows, scores, labels)
            return labels, scores
        votes = np.zeros((n, structure.n_labels))
        replay = VoteReplay(self.predictor, int(np.diff(rows.indptr).max(initial=0)) + 1)
        space = (np.zeros(parts), np.zeros(1, np.int64))
        with stage("votes", n, "examples") as work:
            for i in range(n):
                replay.count(ClassVotes(structure, rows, i, *space), parts, votes[i])
                work.advance()
        votes /= replay.cast
        return votes.argmax(axis=1), votes[:, 1:] - votes[:, :1] if parts == 1 else votes

    def predict(self, rows: Any) -> np.ndarray:
        """Position of the best class of every row (int64)."""
        return self.decide(rows)[0]

    def k_best(self, rows: Any, k: int) -> list[KBest]:
        """Positions, scores and probabilities of the ``k`` best classes of every row."""
        scores = self.scores(rows)
        shares = self.shares(scores)
        points = np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores
        numbers = np.arange(shares.shape[1])[:, None]
        order = np.argsort(-points, axis=1, kind="stable")[:, :k]
        each = zip(points, shares, order, strict=True)
        return [chosen(numbers, point, share, top) for point, share, top in each]

    def scores(self, rows: Any) -> np.ndarray:
        """One column for two classes, else one for each (float64)."""
        return self.decide(rows)[1]

    def probabilities(self, rows: Any) -> np.ndarray:
        """One column a class: softmax of the scores by the temperature; of a vote, the shares."""
        return self.shares(self.scores(rows))

    def shares(self, scores: np.ndarray) -> np.ndarray:
        """The same of scores that are known.

        >>> from hopefear.training.predictors import LinearPredictor
        >>> decoder = ClassDecoder(None, LinearPredictor(np.zeros(1)))
        >>> decoder.shares(np.array([[0.0]])).tolist()
        [[0.5, 0.5]]
        """
        if not self.predictor.linear:
            if scores.shape[1] == 1:
                return np.hstack([(1.0 - scores) / 2.0, (1.0 + scores) / 2.0])
            rest = (1.0 - scores.sum(axis=1, keepdims=True)) / scores.shape[1]
            return scores + rest  # abstentions are shared out evenly
        scores = scores / self.temperature
        if scores.shape[1] == 1:
            scores = np.hstack([-scores / 2.0, scores / 2.0])
        shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
        return shifted / shifted.sum(axis=1, keepdims=True)

    def log_likelihoods(self, rows: Any) -> np.ndarray:
        """Log probability of the label of every row."""
        shares = self.probabilities(rows)[np.arange(rows.labels.size), rows.labels]
        return np.log(np.maximum(shares, np.finfo(float).tiny))


@component(VotingView)
class ClassVotes(NamedTuple):
    """An example of classes, whose parts are those of scores."""

    structure: Any
    data: Any
    i: int
    mu: np.ndarray
    y: np.ndarray

    def spell(self, part, row):
        self.mu[:] = 0.0
        self.mu[part] = 1.0
        self.structure.scatter(Example(self.data, self.i), self.mu, row)

    def choose(self, scores):
        self.structure.argmax(Example(self.data, self.i), scores, self.y)
        return self.y[0]


@kernel
def score_all(structure, weights, data, scores, labels):
    """Scores of all parts and the best output of every row."""
    y = np.zeros(1, np.int64)
    for i in range(scores.shape[0]):
        x = Example(data, i)
        structure.score(x, weights, scores[i])
        structure.argmax(x, scores[i], y)
        labels[i] = y[0]

"""What can be asked of a model about rows of data, whatever outputs look like."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from hopefear.training.predictors import Predictor


class Ranked(NamedTuple):
    """The n best outputs of one example, best first."""

    labels: np.ndarray  # int[count, positions]: labels of the output, or its number
    scores: np.ndarray  # float64[count]
    probabilities: np.ndarray  # float64[count]: under the whole model
    shares: np.ndarray  # float64[count]: among these


class Answers(Protocol):
    """Weights or votes on a structure, and every question one can ask them.

    Outputs are classes (:class:`ClassAnswers`), labels of tokens
    (:class:`~hopefear.training.decoding.Decoder`,
    :class:`~hopefear.training.decoding.VotedDecoder`) or candidates
    (:class:`~hopefear.training.ranking.Ranker`).
    """

    structure: Any

    def best(self, rows: Any) -> np.ndarray:
        """The best outputs, one after another."""

    def nbest(self, rows: Any, n: int) -> list[Ranked]:
        """The ``n`` best outputs of every example."""

    def scores(self, rows: Any) -> np.ndarray:
        """Scores of what is chosen from: classes, candidates; of sequences the best output."""

    def probabilities(self, rows: Any) -> np.ndarray:
        """Probabilities of classes, of labels at every token, or of candidates."""

    def log_likelihoods(self, rows: Any) -> np.ndarray:
        """Log probability of the right output of every example."""


class ClassAnswers:
    """Weights, or votes, on classes: the :class:`Answers`.

    Parameters
    ----------
    structure : Binary or Multiclass
        The classes.
    predictor : Predictor
        Weights, or votes.
    temperature : float
        Scores under weights are divided by it before they become probabilities.

    Examples
    --------
    >>> from hopefear.data.sparse import SparseDataset
    >>> from hopefear.structures.classes import Binary
    >>> from hopefear.training.predictors import LinearPredictor
    >>> rows = SparseDataset.from_csr([[1.0], [-3.0]], [1, 1]).rows
    >>> answers = ClassAnswers(Binary(1), LinearPredictor(np.ones(1, np.float32)))
    >>> answers.best(rows).tolist(), answers.probabilities(rows).round(2).tolist()
    ([1, 0], [[0.27, 0.73], [0.95, 0.05]])
    """

    def __init__(self, structure: Any, predictor: Predictor, temperature: float = 1.0) -> None:
        self.structure, self.predictor, self.temperature = structure, predictor, temperature

    def best(self, rows: Any) -> np.ndarray:
        """Position of the best class of every row (int64)."""
        return self.predictor.decide(self.structure, rows)[0]

    def nbest(self, rows: Any, n: int) -> list[Ranked]:
        """Positions, scores and probabilities of the ``n`` best classes of every row."""
        scores = self.scores(rows)
        shares = self.shares(scores)
        points = np.hstack([-scores, scores]) if scores.shape[1] == 1 else scores
        numbers = np.arange(shares.shape[1])[:, None]
        order = np.argsort(-points, axis=1, kind="stable")[:, :n]
        each = zip(points, shares, order, strict=True)
        return [best_of(numbers, point, share, top) for point, share, top in each]

    def scores(self, rows: Any) -> np.ndarray:
        """One column for two classes, else one for each (float64)."""
        return self.predictor.decide(self.structure, rows)[1]

    def probabilities(self, rows: Any) -> np.ndarray:
        """One column a class: softmax of the scores by the temperature; of a vote, the shares."""
        return self.shares(self.scores(rows))

    def shares(self, scores: np.ndarray) -> np.ndarray:
        """The same of scores that are known."""
        return probabilities(self.predictor, scores / self._heat)

    def log_likelihoods(self, rows: Any) -> np.ndarray:
        """Log probability of the label of every row."""
        shares = self.probabilities(rows)[np.arange(rows.labels.size), rows.labels]
        return np.log(np.maximum(shares, np.finfo(float).tiny))

    @property
    def _heat(self) -> float:
        return self.temperature if self.predictor.linear else 1.0


def probabilities(predictor: Predictor, scores: np.ndarray) -> np.ndarray:
    """Class probabilities from the scores of ``Predictor.decide``.

    >>> from hopefear.training.predictors import LinearPredictor
    >>> probabilities(LinearPredictor(np.zeros(1)), np.array([[0.0]])).tolist()
    [[0.5, 0.5]]
    """
    if not predictor.linear:
        if scores.shape[1] == 1:
            return np.hstack([(1.0 - scores) / 2.0, (1.0 + scores) / 2.0])
        rest = (1.0 - scores.sum(axis=1, keepdims=True)) / scores.shape[1]
        return scores + rest  # abstentions are shared out evenly
    if scores.shape[1] == 1:
        scores = np.hstack([-scores / 2.0, scores / 2.0])
    shifted = np.exp(scores - scores.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def ranked_outputs(
    starts: np.ndarray,
    paths: np.ndarray,
    scores: np.ndarray,
    counts: np.ndarray,
    temperature: float,
    totals: np.ndarray | None,
) -> list[Ranked]:
    """The n best of sequences, from where searches left them.

    Parameters
    ----------
    starts : int array
        Sequence i has the tokens ``starts[i] .. starts[i + 1] - 1``.
    paths, scores, counts : arrays
        Labels of n outputs a sequence, one after another; their scores; how many there are.
    temperature : float
        Scores are divided by it before they become probabilities.
    totals : float array, optional
        Log sums over all outputs; without them probabilities are shares of these.
    """
    n, ranked = scores.shape[1], []
    for i, (count, T) in enumerate(zip(counts.tolist(), np.diff(starts).tolist(), strict=True)):
        start, best = n * int(starts[i]), scores[i, :count]
        logs = best / temperature
        within = np.exp(logs - logs[:1])
        within = within / within.sum() if count else within
        whole = within if totals is None else np.exp(np.minimum(0.0, logs - totals[i]))
        outputs = paths[start : start + count * T].reshape(count, T)
        ranked.append(Ranked(outputs, best, whole, within))
    return ranked


def best_of(
    outputs: np.ndarray, scores: np.ndarray, probabilities: np.ndarray, order: np.ndarray
) -> Ranked:
    """The outputs named by ``order``, with their shares of the probability they have together."""
    some = probabilities[order]
    return Ranked(outputs[order], scores[order], some, some / max(some.sum(), 1e-300))

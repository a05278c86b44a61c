"""The estimator ``Reranker``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dataset import teaching
from hopefear.data.lists.files import read_lists
from hopefear.data.lists.objects import ListReader, listed
from hopefear.errors import HopefearError
from hopefear.metrics.lists import ListMetric, ListScores
from hopefear.tasks.answers import Question
from hopefear.tasks.base import Explanation, NBestList, begin
from hopefear.tasks.estimator import (
    ModelEstimator,
    as_value_errors,
    for_streams,
)
from hopefear.tasks.prepare import Options
from hopefear.tasks.rerank.answers import (
    ALONE,
    AnswersOfBlocks,
    answer,
    evaluate,
    reasons,
)
from hopefear.tasks.rerank.model import RerankModel
from hopefear.tasks.rerank.prepare import PreparedLists, prepare
from hopefear.tasks.rerank.task import DEFAULT_LEARNER, Reranking, named_metric
from hopefear.training.loop import Event


class Reranker(ModelEstimator[RerankModel]):
    """The best of a list of candidates, by any learner of lists.

    ``argmax_y w . f(x, y) + b(x, y)`` over the candidates y of x; the same for the same data and
    ``random_state``

    Parameters
    ----------
    learner : str
        Name of a recipe; ``hopefear learners`` lists them.
    features : str
        A comma list of ``named`` (those that candidates have), ``score``, ``ptb``, ``rich`` or
        families of tree features, and ``consensus``. ``"auto"`` is ``rich,consensus`` where
        candidates are trees, else ``named,score``.
    epochs : int, optional
        Passes over the data, at most. More fit the data better, and at last too well. None is 5;
        for batch learners, their own number of iterations.
    shuffle : bool
        A new random order for every pass; False keeps the order given.
    metric : str or ListMetric
        What makes costs of texts and references (``"bleu"``, ``"chrf"``, ``"wer"`` and so on) and
        scores choices. ``"auto"``: costs are given, or candidates are trees.
    baseline : {"feature", "offset", "none"}
        What the generator's score is: a feature, a fixed part of every score, or ignored.
    oracle : {"first", "score"}
        Which of equally cheap candidates is to be learned: the first, or that of highest score.
    tied : bool
        Treat all candidates as cheap as the oracle as right, not the oracle alone.
    dedup : {"first", "best", "none"}
        Which of the candidates of a list with equal texts to read: the first, the one of highest
        score, or all. Copies left out have the probability 0.
    min_count : int, optional
        Features that tell candidates apart in fewer lists are left out; None is 5 for trees and 1
        elsewhere. More makes smaller models.
    early_stopping : bool
        Hold out a part of the lists, as ``X_val`` of :meth:`fit` would.
    validation_fraction : float
        The part that is held out. Larger chooses better and learns from less.
    patience : int, optional
        Passes without a better score before training ends; None is a third of the passes, 3 at
        least, of batch learners 20, and 0 runs all of them. The best model is kept in any case.
    n_jobs : int
        Threads for batch learners; -1 for one a processor. Results do not depend on it.
    callbacks : sequence of callables, optional
        Each gets every event (a dict) as it happens.
    verbose : int
        Above 0, a line on the standard error stream after each pass.
    random_state : int, RandomState or None
        Fixes the order of the lists in every pass, and those held out. None takes another one each
        time.
    shards : int or Shards, optional
        Learn on so many shards of the data side by side, which are merged after every pass; see
        :class:`hopefear.training.shards.Shards`.
    **params
        Parts and parameters of the learner, by name, such as ``l1=1e-4``; None is its own value.
        Checked by :meth:`fit`.

    Attributes
    ----------
    n_iter_, history_, best_epoch_, converged_
        Passes made (of a batch learner, iterations), their events, the pass whose model was kept,
        and whether training ended because it got no better; see
        :class:`hopefear.tasks.estimator.ModelEstimator`.
    model_ : RerankModel
        What predicts; can be saved, inspected and used without scikit-learn.

    Notes
    -----
    Lists of one candidate, and those whose candidates all cost the same, teach nothing and are
    passed over. A list of weight w is met ``ceil(w)`` times in a pass, each time with an equal
    share of w.

    Examples
    --------
    >>> X = [[{"lm": -2.0, "long": 1}, {"lm": -3.0}], [{"lm": -1.0, "long": 1}, {"lm": -1.5}]]
    >>> y = [[0.5, 0.0], [1.0, 0.0]]
    >>> Reranker("perceptron", epochs=3).fit(X, y).predict(X)
    array([1, 1])
    """

    _task, _kind, _models = "rerank", Reranking, RerankModel
    _reader: ListReader
    _prepared: PreparedLists  # without its data: the features that the trainer's weights belong to

    def __init__(
        self,
        learner: str = DEFAULT_LEARNER,
        *,
        features: str = "auto",
        epochs: int | None = None,
        shuffle: bool = True,
        metric: str | ListMetric = "auto",
        baseline: str = "feature",
        oracle: str = "first",
        tied: bool = False,
        dedup: str = "first",
        min_count: int | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int | None = None,
        n_jobs: int | None = 1,
        callbacks: Sequence[Callable[[Event], None]] | None = None,
        verbose: int = 0,
        random_state: Any = 1,
        shards: Any = None,
        **params: Any,
    ) -> None:
        self._keep(locals())

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Self:
        """Learn from all lists, from the beginning.

        Parameters
        ----------
        X : list of lists of candidates
            A candidate is a dict of features; or a dict with ``features``, ``score``, ``cost``,
            ``text`` and ``tree``, all optional. A list may also be a sparse matrix or an array with
            a row for each candidate, or a dict with ``candidates`` and ``reference``. Blocks of
            lists will do too, as :meth:`read` gives them, or
            :func:`hopefear.data.lists.files.read_lists`, one at a time.
        y : list, optional
            For every list the costs of its candidates, or reference texts (one, or a list of them)
            for the ``metric``, or the gold tree. None: candidates or lists have their own.
        sample_weight : sequence of float, optional
            Weight of each list.
        X_val, y_val : like X and y, optional
            Held-out lists, scored after each pass: training ends after ``patience`` passes without
            a better score, and the best model is kept.
        """
        with as_value_errors():
            blocks, reader = self._read(X, y, sample_weight)
            dev = None if X_val is None else self._read(X_val, y_val, reader=reader)[0]
            self.train(blocks, dev)
            self._settle(reader)
        return self

    @for_streams
    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from some more lists, in the order given, once.

        The first call fixes the features; those that come up later are left out. Rates that depend
        on the number of lists take that of the first call. After :meth:`fit` it goes on from where
        that ended.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.

        Examples
        --------
        >>> X, y = [[{"fear": 1}, {"hope": 1}]], [[1, 0]]
        >>> Reranker("perceptron").partial_fit(X, y).partial_fit(X, y).predict(X)
        array([1])
        """
        with as_value_errors():
            if self._begun():
                blocks = self._read(X, y, sample_weight, reader=self._reader)[0]
                self._learn(teaching(self._prepared.held_out(blocks)), self._trainer)
                return self
            blocks, reader = self._read(X, y, sample_weight)
            prepared = self._prepare(blocks, self._options())
            params = self._learner_params()
            model, trainer = begin(prepared.task, prepared.data, self.learner, params)
            self._learn(prepared.data, trainer)
            self._model = replace(model, about={**model.about, "reading": prepared.reading})
            self._settle(reader)
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Position of the best candidate of each list; of equal ones the first.

        Parameters
        ----------
        X : list of lists of candidates
            As for :meth:`fit`; costs are not looked at.

        Examples
        --------
        >>> X, y = [[{"fear": 1}, {"hope": 1}]] * 2, [[1, 0]] * 2
        >>> Reranker("perceptron").fit(X, y).predict([[{"hope": 2}, {"fear": 2}, {}]])
        array([0])
        """
        return np.concatenate(
            [np.zeros(0, np.int64), *(ranking.best for ranking in self._answers(X).parts)]
        )

    def rank(self, X: Any) -> list[np.ndarray]:
        """Positions of the candidates of each list, best first."""
        return [order for ranking in self._answers(X).parts for order in ranking.ranks]

    def predict_nbest(self, X: Any, n: int = 10) -> list[NBestList]:
        """The n best candidates of each list, as dicts, best first.

        Examples
        --------
        >>> X, y = [[{"fear": 1}, {"hope": 1}]] * 2, [[1, 0]] * 2
        >>> [best] = Reranker("perceptron").fit(X, y).predict_nbest(X[:1], 2)
        >>> [candidate["position"] for candidate in best]
        [1, 0]
        """
        return [NBestList(record.candidates) for record in self._answers(X, n, True)]

    def explain(
        self, X: Any, i: int = 0, one: int | None = None, other: int | None = None
    ) -> Explanation:
        """What puts a candidate of list ``i`` before another, unless said the best before the next.

        Examples
        --------
        >>> X, y = [[{"fear": 1}, {"hope": 1}]] * 2, [[1, 0]] * 2
        >>> reason = Reranker("perceptron").fit(X, y).explain(X)
        >>> reason.label, reason.runner_up, sorted(name for name, gain in reason.contributions)
        (1, 0, ['fear', 'hope'])
        """
        with as_value_errors():
            blocks, k = self._blocks(X), i
            while len(blocks) > 1 and k >= len(blocks[0]):
                k -= len(blocks.pop(0))
            if not 0 <= k < len(blocks[0]):
                raise HopefearError(f"there is no list {i}; they are counted from 0")
            [reason] = reasons(self.model_, blocks[0], k, (one, other))
            if reason.reason is None:
                raise HopefearError(f"list {i} has {ALONE}")
            return reason.reason

    def decision_function(self, X: Any) -> list[np.ndarray]:
        """Scores of the candidates of each list; for a voted model, their shares of the votes.

        Copies that are left out have minus infinity.
        """
        return [
            row for part in self._answers(X).parts for row in part.by_list(part.scores, -np.inf)
        ]

    def predict_proba(self, X: Any) -> list[np.ndarray]:
        """Probabilities of the candidates of each list; they add up to 1."""
        parts = self._answers(X, proba=True).parts
        return [row for part in parts for row in part.by_list(part.probabilities, 0.0)]

    def score(self, X: Any, y: Any = None) -> float:
        """The metric's main score of the chosen candidates; more is better.

        Scores of which less is better, as the mean cost, are given a minus sign.

        Examples
        --------
        >>> X, y = [[{"fear": 1}, {"hope": 1}]] * 2, [[1, 0]] * 2
        >>> Reranker("perceptron").fit(X, y).score(X, [[5, 0.5], [0.5, 0.5]])
        -0.5
        """
        value, metric = self.metrics(X, y)[self.model_.metric.main], self.model_.metric
        return value if metric.higher else -value

    def metrics(self, X: Any, y: Any = None) -> dict[str, float]:
        """Scores of the chosen candidates by name, and how often they are the cheapest."""
        scores = self.evaluate(X, y, samples=1)
        return {**scores.model.scores, "oracle_rate": scores.oracle_rate}

    def evaluate(self, X: Any, y: Any = None, *, samples: int = 1000, seed: int = 1) -> ListScores:
        """The model beside the generator's 1-best, the oracle and the worst, with bounds."""
        with as_value_errors():
            model = self.model_
            lists = self._reader.read(X, y, metric=model.metric.name)
            return evaluate(model, lists, samples=samples, seed=seed)

    @staticmethod
    def read(path: str | os.PathLike[str], **reading: Any) -> list[CandidateLists]:
        """Lists of a file, as X; see :func:`hopefear.data.lists.files.read_lists` for options."""
        with as_value_errors():
            return list(read_lists(path, **reading))

    @classmethod
    def from_model(cls, model: RerankModel) -> Self:
        reranker = cls(str(model.about.get("learner", DEFAULT_LEARNER)))
        reading = model.about.get("reading", {})
        reranker.baseline, reranker.metric = model.baseline, model.metric
        reranker.dedup = reading.get("dedup", "first")
        reranker._restore(model)
        reranker._reader, reranker._model = ListReader(reading.get("records", True)), model
        return reranker

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.input_tags.two_d_array = False
        tags.input_tags.dict = True
        return tags

    def _prepare(self, examples: Any, options: Options) -> PreparedLists:
        self._prepared = prepare(examples, options)
        return self._prepared

    def _settle(self, reader: ListReader) -> None:
        """Keep how candidates are written, for :meth:`load` too, and the way to go on."""
        if not reader.records:
            about = self._model.about
            reading = {**about["reading"], "records": False}
            self._model = replace(self._model, about={**about, "reading": reading})
        self._reader, self._prepared = reader, self._prepared.without_data()

    def _renewed(self, model: RerankModel, trainer: Any, recent: Any) -> RerankModel:
        features = self._prepared.data.features
        return replace(super()._renewed(model, trainer, recent), features=features)

    def _read(
        self, X: Any, y: Any = None, weights: Any = None, reader: ListReader | None = None
    ) -> tuple[Iterable[CandidateLists], ListReader]:
        """Lists as training reads them, and how their candidates are written."""
        X = listed(X)
        reader = reader or ListReader.of(X)
        metric = getattr(named_metric(self.metric), "name", None)
        return reader.read(X, y, weights, metric=metric), reader

    def _blocks(self, X: Any) -> list[CandidateLists]:
        """Returns lists to ask the model about, without costs."""
        check_is_fitted(self)
        return list(self._reader.read(X, judged=False))

    def _answer(self, X: Any, question: Question) -> AnswersOfBlocks:
        blocks = self._blocks(X)
        return AnswersOfBlocks([answer(self.model_, block, question) for block in blocks])

    def _answers(self, X: Any, n: int | None = None, proba: bool = False) -> Any:
        with as_value_errors():
            return self._answer(X, Question(n, proba))

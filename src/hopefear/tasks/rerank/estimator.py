"""The estimator ``Reranker``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dataset import ListDataset, encoded
from hopefear.data.lists.files import read_lists
from hopefear.features.parts import list_features_from_parts
from hopefear.metrics.lists import ListMetric, ListScores
from hopefear.tasks.base import Explanation, begin, cut
from hopefear.tasks.estimator import ModelEstimator, as_value_errors, for_streams, held_out
from hopefear.tasks.rerank.input import ListReader, blocks_of, held_in, metric_meant
from hopefear.tasks.rerank.judging import metric_of, scores
from hopefear.tasks.rerank.model import RerankModel
from hopefear.tasks.rerank.task import (
    DEFAULT_LEARNER,
    Reranking,
    baseline_of,
    check,
    dataset,
    evaluate,
    teaching,
)
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
    _map: Any = None  # the features that the trainer's weights belong to

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
            a row for each candidate, or a dict with ``candidates`` and ``reference``. What
            :meth:`read` gives will do too.
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
            blocks, reader = self._blocks(X, y, sample_weight)
            dev = None if X_val is None else self._blocks(X_val, y_val, reader=reader)[0]
            self._fit(blocks, dev, reader)
        return self

    def fit_file(
        self,
        path: str | os.PathLike[str],
        dev: str | os.PathLike[str] | None = None,
        *,
        dev_gold: str | os.PathLike[str] | None = None,
        **reading: Any,
    ) -> Self:
        """Learn from a file of lists, block by block.

        Parameters
        ----------
        path, dev : str or path
            Training lists, and held-out ones as ``X_val`` of :meth:`fit`.
        dev_gold : str or path, optional
            Gold trees of ``dev``, where it is in the format bllip.
        **reading
            As in :func:`hopefear.data.lists.files.read_lists`, such as ``dedup="best"``, which the
            model keeps for the command line. A ``format`` is taken for ``dev`` where it fits.
        """
        with as_value_errors():
            metric = metric_meant(self.metric)
            dev_blocks = held_in(dev, dev_gold, metric, reading)
            self._fit(read_lists(path, metric=metric, **reading), dev_blocks, ListReader())
            how = {"reading": {"dedup": reading.get("dedup", "first")}}
            self._model = replace(self._model, about={**self._model.about, **how})
        return self

    def _fit(
        self,
        blocks: Iterable[CandidateLists],
        dev_blocks: Iterable[CandidateLists] | None,
        reader: ListReader,
    ) -> None:
        data, dev, seed = self._dataset(blocks), None, self._seed()
        if dev_blocks is not None:
            dev = self._encoded(dev_blocks, data.features, baseline_of(data))
        elif self.early_stopping:
            rest, part = held_out(len(data), self.validation_fraction, seed, "lists")
            data, dev = data.take(rest), data.take(part)
        task = self._asked()
        model = self._train(task, data, dev, metric_of(task.metric, data).main, seed=seed)
        self._settle(reader, model, data.features)

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
                blocks = self._blocks(X, y, sample_weight, reader=self._reader)[0]
                data = teaching(self._encoded(blocks, self._map, self._model.baseline))
                self._learn(data, self._trainer)
                return self
            blocks, reader = self._blocks(X, y, sample_weight)
            data = self._dataset(blocks)
            check(data)
            model, trainer = begin(self._asked(), data, self.learner, self._learner_params())
            self._learn(data, trainer)
        self._settle(reader, model, data.features)
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
        data = self._question(X)
        return self.model_.ranker().predict(data.rows)

    def rank(self, X: Any) -> list[np.ndarray]:
        """Positions of the candidates of each list, best first."""
        data = self._question(X)
        return cut(self.model_.ranker().ranked(data.rows), data.rows.starts)

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
            return self.model_.explain(self._question(X), i, one, other)

    def decision_function(self, X: Any) -> list[np.ndarray]:
        """Scores of the candidates of each list; for a voted model, their shares of the votes."""
        data = self._question(X)
        return cut(self.model_.ranker().scores(data.rows), data.rows.starts)

    def predict_proba(self, X: Any) -> list[np.ndarray]:
        """Probabilities of the candidates of each list; they add up to 1."""
        data = self._question(X)
        return cut(self.model_.ranker().probabilities(data.rows), data.rows.starts)

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
        with as_value_errors():
            data = self.model_.encode(self._judged(X, y), judged=True)
            return scores(data, self.model_.ranker().predict(data.rows), self.model_.metric)

    def evaluate(self, X: Any, y: Any = None, *, samples: int = 1000, seed: int = 1) -> ListScores:
        """The model beside the generator's 1-best, the oracle and the worst, with bounds."""
        with as_value_errors():
            return evaluate(self.model_, self._judged(X, y), samples=samples, seed=seed)

    @staticmethod
    def read(path: str | os.PathLike[str], **reading: Any) -> list[CandidateLists]:
        """Lists of a file, as X; see :func:`hopefear.data.lists.files.read_lists` for options."""
        with as_value_errors():
            return list(read_lists(path, **reading))

    @classmethod
    def from_model(cls, model: RerankModel) -> Self:
        reranker = cls(str(model.about.get("learner", DEFAULT_LEARNER)))
        reranker.baseline, reranker.metric = model.baseline, model.metric
        reranker._restore(model)
        records = model.about.get("estimator", {}).get("records")
        reranker._settle(ListReader(None if records is None else bool(records)), model)
        return reranker

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        if state.pop("_map", None) is not None and self._trainer is not None:
            state["_map"] = self._map.to_header(), self._map.arrays()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_map" in state:
            self._map = list_features_from_parts(*state["_map"])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.input_tags.two_d_array = False
        tags.input_tags.dict = True
        return tags

    def _settle(self, reader: ListReader, model: RerankModel, features: Any = None) -> None:
        """Take over a model, with what :meth:`load` needs to read as it does."""
        about = {**model.about, "estimator": {"records": reader.records}}
        self._reader, self._map, self._model = reader, features, replace(model, about=about)

    def _renewed(self, model: RerankModel, trainer: Any, recent: Any) -> RerankModel:
        return replace(super()._renewed(model, trainer, recent), features=self._map)

    def _asked(self) -> Reranking:
        return Reranking(self.tied, metric_meant(self.metric))

    def _dataset(self, blocks: Iterable[CandidateLists]) -> ListDataset:
        return dataset(
            blocks,
            self.features,
            min_count=self.min_count,
            baseline=self.baseline,
            oracle=self.oracle,
            metric=metric_meant(self.metric),
        )

    def _encoded(
        self, blocks: Iterable[CandidateLists], features: Any, baseline: str
    ) -> ListDataset:
        metric = metric_meant(self.metric)
        return encoded(blocks, features, baseline, oracle=self.oracle, metric=metric)

    def _blocks(
        self, X: Any, y: Any = None, weights: Any = None, **how: Any
    ) -> tuple[list[CandidateLists], ListReader]:
        """Lists as training reads them, and how their candidates are written."""
        name = getattr(metric_meant(self.metric), "name", None)
        return blocks_of(X, y, weights, metric=name, **how)

    def _judged(self, X: Any, y: Any, judged: bool = True) -> list[CandidateLists]:
        """Lists as the model reads them, with costs or references or, if not judged, without."""
        check_is_fitted(self)
        name = self._model.metric.name
        return blocks_of(X, y, reader=self._reader, metric=name, judged=judged)[0]

    def _question(self, X: Any) -> ListDataset:
        """Lists, whatever they cost."""
        with as_value_errors():
            return self.model_.encode(self._judged(X, None, judged=False))

"""The estimator ``Reranker``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

from hopefear.core.learner import Learner
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dataset import ListDataset, encoded
from hopefear.errors import HopefearError
from hopefear.features.parts import list_features_from_parts
from hopefear.metrics.lists import ListMetric
from hopefear.tasks.estimator import LearnerParameters, as_value_errors, held_out
from hopefear.tasks.rerank.judging import fitted_temperature
from hopefear.tasks.rerank.model import RerankModel
from hopefear.tasks.rerank.predicting import ListPredictor
from hopefear.tasks.rerank.preparing import (
    begun,
    blocks_in,
    blocks_of,
    held_in,
    metric_meant,
)
from hopefear.tasks.rerank.reading import ListReader
from hopefear.tasks.rerank.task import (
    DEFAULT_LEARNER,
    baseline_of,
    dataset,
    metric_of,
    needs_temperature,
    teaching,
    train,
)
from hopefear.training.loop import Event, counts
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes
from hopefear.training.ranking import Ranker
from hopefear.training.stopping import Stopping


class Reranker(LearnerParameters, ListPredictor):
    """The best of a list of candidates, by any learner of lists.

    ``argmax_y w . f(x, y) + b(x, y)`` over the candidates y of x; the same for the same data and
    ``seed``

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
    seed : int
        Fixes the order of the lists in every pass.
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
    patience : int
        Passes without a better score before training ends; 0 runs all of them. The best model is
        kept in any case.
    n_jobs : int
        Threads for batch learners; -1 for one a processor. Results do not depend on it.
    callbacks : sequence of callables, optional
        Each gets every event (a dict) as it happens.
    verbose : int
        Above 0, a line on the standard error stream after each pass.
    **params
        Parameters of the learner, by name, such as ``l1=1e-4``; checked by :meth:`fit`.

    Attributes
    ----------
    n_iter_ : int
        Passes made, or iterations of a batch learner.
    history_ : list of dict
        The event of every pass of :meth:`fit`: losses, mistakes, updates, non-zero weights, and
        ``dev``, the scores of the held-out data.
    best_epoch_ : int or None
        Pass whose model was kept; None when nothing was held out.
    converged_ : bool
        Whether training ended because it got no better.
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

    _trainer: Any = None  # what can go on learning
    _map: Any = None  # the features that its weights belong to
    _recent: ListDataset | None = None  # learned from since the model was made

    def __init__(
        self,
        learner: str = DEFAULT_LEARNER,
        *,
        features: str = "auto",
        epochs: int | None = None,
        seed: int = 1,
        shuffle: bool = True,
        metric: str | ListMetric = "auto",
        baseline: str = "feature",
        oracle: str = "first",
        tied: bool = False,
        min_count: int | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        patience: int = 3,
        n_jobs: int | None = 1,
        callbacks: Sequence[Callable[[Event], None]] | None = None,
        verbose: int = 0,
        **params: Any,
    ) -> None:
        self.learner = learner
        self.features = features
        self.epochs = epochs
        self.seed = seed
        self.shuffle = shuffle
        self.metric = metric
        self.baseline = baseline
        self.oracle = oracle
        self.tied = tied
        self.min_count = min_count
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.patience = patience
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.verbose = verbose
        self.params = params

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Reranker:
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
            metric = self._metric_name()
            blocks, reader = blocks_of(X, y, sample_weight, metric=metric)
            told = X_val is not None
            held = blocks_of(X_val, y_val, None, reader, metric=metric)[0] if told else None
            self._fit(blocks, held, reader)
        return self

    def fit_file(
        self,
        path: str | os.PathLike[str],
        dev: str | os.PathLike[str] | None = None,
        *,
        dev_gold: str | os.PathLike[str] | None = None,
        **reading: Any,
    ) -> Reranker:
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
            held = held_in(dev, dev_gold, metric, reading)
            self._fit(blocks_in(path, metric, **reading), held, ListReader())
            how = {"reading": {"dedup": reading.get("dedup", "first")}}
            self._model = replace(self._model, about={**self._model.about, **how})
        return self

    def _fit(
        self,
        blocks: Iterable[CandidateLists],
        held: Iterable[CandidateLists] | None,
        reader: ListReader,
    ) -> None:
        data, dev, stopping = self._dataset(blocks), None, None
        if held is not None:
            dev = self._encoded(held, data.features, baseline_of(data))
        elif self.early_stopping:
            rest, kept = held_out(len(data), self.validation_fraction, self.seed, "lists")
            data, dev = data.take(rest), data.take(kept)
        if dev is not None:
            judge = metric_of(metric_meant(self.metric), data)
            stopping = Stopping(judge.main, self.patience)
        trained = train(
            data,
            self.learner,
            self.params,
            epochs=self.epochs,
            seed=self.seed,
            shuffle=self.shuffle,
            tied=self.tied,
            metric=metric_meant(self.metric),
            dev=dev,
            stopping=stopping,
            on_event=self._listeners(),
            n_jobs=self._jobs(),
        )
        self._settle(reader, trained.model)
        result = trained.fit
        self._trainer = result.trainer if isinstance(trained.learner, Learner) else None
        self._map, self._recent = data.features, None
        self.history_ = result.history
        self.n_iter_ = len(self.history_)
        self.best_epoch_ = result.best_epoch
        over = result.best_epoch is not None and 0 < self.patience <= (
            self.n_iter_ - result.best_epoch
        )
        self.converged_ = bool(over or getattr(result, "converged", False))

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Reranker:
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
            first = not hasattr(self, "_model")
            if first:
                blocks, reader = blocks_of(X, y, sample_weight, metric=self._metric_name())
                data = self._dataset(blocks)
                judge = metric_of(metric_meant(self.metric), data)
                model, trainer = begun(data, self.learner, self.params, self.tied, judge)
            else:
                data, trainer = self._more(X, y, sample_weight), self._trainer
            for rows, order in Passes(data, shuffle=False).pieces(0):  # type: ignore[arg-type]
                trainer.learn(rows, order)
        if first:
            self._settle(reader, model)
            self._trainer, self._map, self.history_ = trainer, data.features, []
            self.n_iter_, self.best_epoch_, self.converged_ = 1, None, False
        self._recent = data
        for listener in self._listeners():
            listener(counts(trainer))
        return self

    @classmethod
    def from_model(cls, model: RerankModel) -> Self:
        made = super().from_model(model)
        made.learner = str(model.about.get("learner", DEFAULT_LEARNER))
        made.baseline, made.metric = model.baseline, model.metric
        return made

    @property
    def model_(self) -> RerankModel:
        """The model as it is now."""
        model = super().model_
        if self._recent is None:
            return model
        # Made when asked for, so that many small chunks cost nothing.
        trainer, data = self._trainer, self._recent
        predictor, temperature = trainer.predictor(), 1.0
        if needs_temperature(trainer.learner, predictor):
            temperature = fitted_temperature(Ranker(trainer.structure, predictor), data)
        about = {**model.about, "training": counts(trainer)}
        self._model = replace(
            model, predictor=predictor, features=self._map, temperature=temperature, about=about
        )
        self._recent = None
        return self._model

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        trainer = state.get("_trainer")
        if trainer is not None:  # without the data it learned from
            state["_trainer"] = trainer.structure, trainer.learner, trainer.arrays()
            state["_map"] = self._map.to_header(), self._map.arrays()
        else:
            state.pop("_map", None)
        state.pop("_recent", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if state.get("_trainer") is not None:
            structure, learner, arrays = state["_trainer"]
            self._trainer = OnlineTrainer(structure, learner)
            self._trainer.restore(arrays)
            self._map = list_features_from_parts(*state["_map"])

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

    def _more(self, X: Any, y: Any, weights: Any) -> ListDataset:
        """Further data for a trainer that has begun."""
        if self._trainer is None:
            raise HopefearError(
                f"this reranker cannot go on: {self.learner} learns from all data at once, or the "
                "reranker was loaded from a model file, which holds what predicts, not what "
                "learns; fit a new Reranker"
            )
        blocks = blocks_of(X, y, weights, self._reader, metric=self._metric_name())[0]
        return teaching(self._encoded(blocks, self._map, self._model.baseline))

    def _metric_name(self) -> str | None:
        return getattr(metric_meant(self.metric), "name", None)

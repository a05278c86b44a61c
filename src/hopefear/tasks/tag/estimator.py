"""The estimator ``Tagger``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from hopefear.core.learner import Learner, parameters_by_part
from hopefear.data.labels import class_name
from hopefear.data.sequences import SequenceDataset
from hopefear.errors import HopefearError
from hopefear.features.attributes import place
from hopefear.recipes import Scale
from hopefear.structures.chain.searches import search_named
from hopefear.tasks import recipe
from hopefear.tasks.estimator import LearnerParameters, as_value_errors, held_out
from hopefear.tasks.tag.label_costs import resolved
from hopefear.tasks.tag.model import SequenceModel, chain_of, scheme_limits
from hopefear.tasks.tag.predicting import SequencePredictor
from hopefear.tasks.tag.preparing import (
    Prepared,
    check_filled,
    check_known,
    distinct_labels,
    labelled,
    prepared,
    present,
    same_features,
)
from hopefear.tasks.tag.task import (
    DEFAULT_LEARNER,
    check_constraints,
    fitted_temperature,
    needs_temperature,
    train,
)
from hopefear.training.loop import Event, counts
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes
from hopefear.training.predictors import LinearPredictor
from hopefear.training.stopping import Stopping


class Tagger(LearnerParameters, SequencePredictor):
    """Labels for the tokens of sequences, by any learner of label chains.

    ``argmax_y w . f(x, y)`` over label sequences; the same for the same data and ``seed``

    Parameters
    ----------
    learner : str
        Name of a recipe; ``hopefear learners`` lists them.
    features : str or Templates
        ``"attributes"``: tokens are dicts or lists of attributes, as in CRFsuite. A built-in set
        (``"pos"``, ``"chunking"``, ``"ner"``, ``"bioner"``), a template file or templates: tokens
        are strings or rows of columns. ``"auto"``: attributes where tokens are dicts or lists and
        ``columns`` is None; else a built-in set that suits the labels.
    columns : str or sequence of str, optional
        Names of the columns of a token: then a token is a tuple or list of so many strings, or a
        dict with these keys. Without it a string is the column ``word``.
    epochs : int, optional
        Passes over the data, at most. More fit the data better, and at last too well. None is 10;
        for batch learners, their own number of iterations.
    seed : int
        Fixes the order of the sequences in every pass.
    shuffle : bool
        A new random order for every pass; False keeps the order given.
    order : int
        1: a label depends on the one before; 2: on the two before, which costs more.
    search, beam : str, int
        How the n best are found: ``"astar"`` and ``"list"`` exactly, ``"beam"`` by keeping so many.
    scheme : str, optional
        Tag scheme of the labels (``"bio"``, ``"iobes"`` ...); ``"auto"`` detects it, None is for
        labels that are no spans.
    constraints : {"predict", "always", "never"}
        When outputs must be legal in the scheme: when tagging, in training too, or never.
    class_weight : dict or "balanced", optional
        What it costs to miss a label, 1 where a dict does not name it; more keeps a wider margin
        where the label is right. ``"balanced"``: in inverse proportion to their numbers. For
        ``mira``, ``nbest-mira``, ``ssvm`` and ``arow``, whose losses know costs.
    warm_start : bool
        A further :meth:`fit` of a batch learner starts from the weights of the last one where
        labels and features are the same as then, and from zero where not; the result is the same,
        sooner. Online learners go on by :meth:`partial_fit`.
    min_count : int
        Attributes seen fewer times are left out; more makes smaller models.
    hash_bits : int, optional
        Hash the attributes of templates to ``2**hash_bits`` numbers, so that streams may bring new
        ones. More bits mean fewer collisions and more memory.
    early_stopping : bool
        Hold out a part of the sequences, as ``X_val`` of :meth:`fit` would.
    validation_fraction : float
        The part that is held out. Larger chooses better and learns from less.
    metric : str
        Score of the held-out data that decides; ``"auto"`` is ``"f1"`` where labels have a scheme
        and ``"accuracy"`` elsewhere.
    patience : int
        Passes without a better score before training ends; 0 runs all of them. The best model is
        kept in any case.
    n_jobs : int
        Threads for tagging, evaluation and batch learners; -1 for one a processor. Results do not
        depend on it.
    callbacks : sequence of callables, optional
        Each gets every event (a dict) as it happens.
    verbose : int
        Above 0, a line on the standard error stream after each pass.
    **params
        Parameters of the learner, by name, such as ``n=5``; checked by :meth:`fit`.

    Attributes
    ----------
    classes_ : array
        The labels in order of first appearance.
    scheme_ : str or None
        Tag scheme of the labels.
    n_iter_ : int
        Passes made, or iterations of a batch learner.
    history_ : list of dict
        The event of every pass of :meth:`fit`: losses, mistakes, updates, non-zero weights, and
        ``dev``, the scores of the held-out data.
    best_epoch_ : int or None
        Pass whose model was kept; None when nothing was held out.
    converged_ : bool
        Whether training ended because it got no better.
    model_ : SequenceModel
        What predicts; can be saved, inspected and used without scikit-learn.

    Notes
    -----
    A sequence of weight w is met ``ceil(w)`` times in a pass, each time with an equal share of w;
    weight 0 is absence. Probabilities are those of the scores divided by a temperature: 1 for
    learners whose scores are log probabilities, else fitted, on held-out data if there is any.

    Examples
    --------
    >>> X = [["the", "cat", "sleeps"], ["a", "dog", "sleeps"]]
    >>> y = [["D", "N", "V"], ["D", "N", "V"]]
    >>> tagger = Tagger("sapo", n=3, epochs=5).fit(X, y)
    >>> tagger.predict([["the", "dog"]])
    [['D', 'N']]
    """

    _trainer: Any = None  # what can go on learning
    _recent: SequenceDataset | None = None  # learned from since the model was made

    def __init__(
        self,
        learner: str = DEFAULT_LEARNER,
        *,
        features: Any = "auto",
        columns: str | Sequence[str] | None = None,
        epochs: int | None = None,
        seed: int = 1,
        shuffle: bool = True,
        order: int = 1,
        search: str = "astar",
        beam: int = 50,
        scheme: str | None = "auto",
        constraints: str = "predict",
        class_weight: Mapping[Any, float] | str | None = None,
        warm_start: bool = False,
        min_count: int = 1,
        hash_bits: int | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        metric: str = "auto",
        patience: int = 3,
        n_jobs: int | None = 1,
        callbacks: Sequence[Callable[[Event], None]] | None = None,
        verbose: int = 0,
        **params: Any,
    ) -> None:
        self.learner = learner
        self.features = features
        self.columns = columns
        self.epochs = epochs
        self.seed = seed
        self.shuffle = shuffle
        self.order = order
        self.search = search
        self.beam = beam
        self.scheme = scheme
        self.constraints = constraints
        self.class_weight = class_weight
        self.warm_start = warm_start
        self.min_count = min_count
        self.hash_bits = hash_bits
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.metric = metric
        self.patience = patience
        self.n_jobs = n_jobs
        self.callbacks = callbacks
        self.verbose = verbose
        self.params = params

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, X_val: Any = None, y_val: Any = None
    ) -> Tagger:
        """Learn from all sequences, from the beginning.

        Parameters
        ----------
        X : list of lists of tokens
            Sequences. A token is a string, a row of columns, or a dict or list of attributes.
        y : list of lists of labels
            A label for each token: all strings, or all whole numbers.
        sample_weight : sequence of float, optional
            Weight of each sequence.
        X_val, y_val : like X and y, optional
            Held-out sequences, scored after each pass: training ends after ``patience`` passes
            without a better score, and the best model is kept.
        """
        with as_value_errors():
            if (X_val is None) != (y_val is None):
                raise HopefearError("X_val and y_val belong together; give both")
            X, y, weights = present(X, y, sample_weight)
            if X_val is None and self.early_stopping:
                parts = held_out(len(X), self.validation_fraction, self.seed, "sequences")
                rest, held = (part.tolist() for part in parts)
                X_val, y_val = [X[i] for i in held], [y[i] for i in held]
                X, y = [X[i] for i in rest], [y[i] for i in rest]
                weights = None if weights is None else weights[rest]
            ready = self._prepared(X, y, weights)
            dev, stopping = None, None
            if X_val is not None:
                tokens = ready.reader.read(X_val)
                dev = labelled(tokens, y_val, ready.data.features, ready.data.labels)
                stopping = Stopping(self._metric(ready.scheme), self.patience)
            trained = train(
                ready.data,
                self.learner,
                self.params,
                epochs=self._epochs(),
                seed=self.seed,
                shuffle=self.shuffle,
                order=self.order,
                search=self.search,
                beam=self.beam,
                scheme=ready.scheme,
                constraints=self.constraints,
                class_weight=self.class_weight,
                start=self._start(ready) if self.warm_start else None,
                dev=dev,
                stopping=stopping,
                on_event=self._listeners(),
                n_jobs=self._jobs(),
            )
        self._settle(ready.reader, ready.labels, ready.scheme, trained.model)
        result = trained.fit
        self._trainer = result.trainer if isinstance(trained.learner, Learner) else None
        self._recent = None
        self.history_ = result.history
        self.n_iter_ = len(self.history_)
        self.best_epoch_ = result.best_epoch
        over = stopping is not None and self.n_iter_ > 0 and stopping.is_over(self.n_iter_)
        self.converged_ = bool(over or getattr(result, "converged", False))
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Tagger:
        """Learn from some more sequences, in the order given, once.

        The first call fixes the labels, the scheme and the features. Attributes that come up later
        are left out, unless templates are hashed (``hash_bits``); new labels are refused. Rates
        that depend on the number of sequences take that of the first call. After :meth:`fit` it
        goes on from where that ended.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.
        classes : sequence of labels, optional
            All labels there will ever be; without it, those of the first call.

        Examples
        --------
        >>> tagger = Tagger("perceptron").partial_fit([["a", "b"]], [[1, 2]], classes=[1, 2, 3])
        >>> tagger.partial_fit([["b", "a"]], [[2, 1]]).predict([["b"]])
        [[2]]
        """
        with as_value_errors():
            if self.class_weight is not None:
                raise HopefearError(
                    "class_weight needs all data, which partial_fit never sees; give the prices "
                    "themselves: cost={('B-X', '*'): 2.0}"
                )
            X, y, weights = present(X, y, sample_weight)
            first = None
            if not hasattr(self, "classes_"):
                first = self._prepared(X, y, weights, classes)
                data, model, trainer = first.data, *self._begun(first)
            else:
                data, model, trainer = (
                    self._more(X, y, weights, classes),
                    self._model,
                    self._trainer,
                )
            check_known(data, len(model.labels))
            for rows, order in Passes(data, shuffle=False).pieces(0):  # type: ignore[arg-type]
                trainer.learn(rows, order)
        if first is not None:
            self._settle(first.reader, first.labels, first.scheme, model)
            self._trainer, self.history_, self.n_iter_ = trainer, [], 1
            self.best_epoch_, self.converged_ = None, False
        self._recent = data
        for listener in self._listeners():
            listener(counts(trainer))
        return self

    @classmethod
    def from_model(cls, model: SequenceModel) -> Self:
        made = super().from_model(model)
        made.learner = str(model.about.get("learner", DEFAULT_LEARNER))
        made.order, made.search, made.beam = model.order, model.search, model.beam
        return made

    @property
    def model_(self) -> SequenceModel:
        """The model as it is now."""
        model = super().model_
        if self._recent is None:
            return model
        # Made when asked for, so that many small chunks cost nothing.
        trainer, learner = self._trainer, self._trainer.learner
        predictor, temperature = trainer.predictor(), 1.0
        if needs_temperature(learner, predictor):
            data = self._recent
            temperature = fitted_temperature(model.structure(), predictor, data, self._jobs())
        about = {**model.about, "training": counts(trainer)}
        model = replace(model, predictor=predictor, temperature=temperature, about=about)
        self._model, self._recent = model, None
        return model

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        trainer = state.get("_trainer")
        if trainer is not None:  # without the data it learned from
            state["_trainer"] = trainer.structure, trainer.learner, trainer.arrays()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if state.get("_trainer") is not None:
            structure, learner, arrays = state["_trainer"]
            self._trainer = OnlineTrainer(structure, learner)
            self._trainer.restore(arrays)

    def _prepared(self, X: Any, y: Any, weights: Any, classes: Any = None) -> Prepared:
        return prepared(
            X,
            y,
            weights,
            features=self.features,
            columns=self.columns,
            classes=classes,
            scheme=self.scheme,
            min_count=self.min_count,
            hash_bits=self.hash_bits,
        )

    def _begun(self, ready: Prepared) -> tuple[SequenceModel, OnlineTrainer]:
        """A model that knows nothing yet, and what will teach it."""
        data, names = ready.data, tuple(map(class_name, ready.labels))
        made = recipe(self.learner, "tag").build(Scale(n=len(data)), **resolved(self.params, names))
        if not isinstance(made, Learner):
            raise HopefearError(
                f"{self.learner} learns from all data at once, so it has no partial_fit; use fit, "
                "or an online learner such as 'crf' or 'sapo'"
            )
        self._check_legal(data, ready.scheme)
        search = search_named(self.search, self.beam)
        limits = scheme_limits(names, ready.scheme if self.constraints == "always" else None)
        trainer = OnlineTrainer(chain_of(data.features, names, self.order, search, limits), made)
        about = {
            "learner": self.learner,
            "on": made.on,
            "parameters": parameters_by_part(made),
            "data": {
                "source": "stream",
                "features": data.features.size,
                "edge_features": data.features.edge_size,
            },
        }
        model = SequenceModel(
            trainer.predictor(),
            names,
            data.features,
            self.order,
            ready.scheme,
            self.search,
            self.beam,
            1.0,
            made.signature(order=self.order, search=self.search),
            about,
            constrained=self.constraints != "never",
        )
        return model, trainer

    def _more(self, X: Any, y: Any, weights: Any, classes: Any) -> SequenceDataset:
        """Further data for a trainer that has begun."""
        if self._trainer is None:
            raise HopefearError(
                f"this tagger cannot go on: {self.learner} learns from all data at once, or the "
                "tagger was loaded from a model file, which holds what predicts, not what "
                "learns; fit a new Tagger"
            )
        if classes is not None and set(distinct_labels(classes)) != set(self.classes_.tolist()):
            raise HopefearError(
                f"classes={list(classes)} are not those of the first call, "
                f"{self.classes_.tolist()}; fit a new Tagger"
            )
        tokens = self._reader.read(X)
        check_filled(tokens)
        data = labelled(tokens, y, self.features_, self._model.labels)
        self._check_legal(data, self.scheme_)
        return data if weights is None else data.weighted(weights)

    def _check_legal(self, data: SequenceDataset, scheme: str | None) -> None:
        check_constraints(data, scheme, self.constraints, lambda k: (place(data.rows.starts, k), 0))

    def _start(self, ready: Prepared) -> np.ndarray | None:
        """The weights of the last fit, where they mean the same."""
        if "max_iter" not in recipe(self.learner, "tag").parameters():
            raise HopefearError(
                f"warm_start is for batch learners such as crf-lbfgs, and {self.learner} learns "
                "online: partial_fit goes on from where fit ended"
            )
        if not hasattr(self, "classes_"):
            return None
        model, features = self.model_, ready.data.features
        same = model.order == self.order and model.labels == ready.data.labels
        same = same and isinstance(model.predictor, LinearPredictor)
        return model.weights if same and same_features(model.features, features) else None

    def _epochs(self) -> int:
        if self.epochs is not None:
            return self.epochs
        return {**recipe(self.learner, "tag").parameters(), **self.params}.get("max_iter", 10)

    def _metric(self, scheme: str | None) -> str:
        if self.metric != "auto":
            return self.metric
        return "accuracy" if scheme is None else "f1"

"""The estimator ``Classifier``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d, validate_data

from hopefear.core.checks import check_fraction
from hopefear.data.frames import from_table
from hopefear.data.labels import class_name, distinct, sort_classes
from hopefear.data.sparse import SparseDataset, as_dicts
from hopefear.data.text import as_strings
from hopefear.errors import HopefearError
from hopefear.features import HashedFeatures, NGramFeatures
from hopefear.features.ngrams import PLAIN
from hopefear.tasks.answers import Question
from hopefear.tasks.base import Explanation, NBestList, Trained, begin
from hopefear.tasks.classify.answers import Answers, Output, answer, explain
from hopefear.tasks.classify.model import Model
from hopefear.tasks.classify.prepare import Examples, check_part, matrix, prepare
from hopefear.tasks.classify.task import DEFAULT_LEARNER, Classification
from hopefear.tasks.estimator import (
    ModelEstimator,
    as_value_errors,
    for_streams,
    given_together,
)
from hopefear.training.loop import Event
from hopefear.training.predictors import VotedPredictor


class NoWeightsError(HopefearError, AttributeError):
    """Weights were asked for where there is no single weight of a feature."""


class Classifier(ClassifierMixin, ModelEstimator[Model]):
    """Linear classifier by any learner: two classes or more; sparse or dense rows, or texts.

    ``argmax_c w_c . x``; silent, the same for the same data and ``random_state``

    Parameters
    ----------
    learner : str
        Name of a recipe; ``hopefear learners`` lists them.
    epochs : int, optional
        Passes over the data, at most. More fit the data better, and at last too well. None is 5,
        and 10 for texts.
    shuffle : bool
        A new random order for every pass; then the order of the rows given makes no difference.
        False keeps their order.
    intercept : float or "auto"
        Value of a constant feature; 0 for none, ``"auto"`` for the typical value of a feature.
    values : {"auto", "counts", "presence", "log", "tfidf", "nb"}
        What each value becomes: itself, 1, ``sign(v) log(1 + |v|)``, itself times the inverse
        document frequency of the feature, or 1 times how much it tells of a class; see
        :meth:`hopefear.data.sparse.SparseDataset.column_scale`. ``"auto"`` is ``"tfidf"`` for
        texts and ``"counts"`` for numbers, and for texts that come in a stream.
    nb_share : float
        With ``values="nb"``, the share of naive Bayes in the weights when they are learned, from 0
        to below 1, such as 0.6: ``(1 - nb_share) w + nb_share mean(|w|) r``, for r of
        :meth:`hopefear.data.sparse.SparseDataset.naive_bayes`. More trusts single features more
        and what was learned of their company less.
    norm : {"auto", "l2", "none"}
        ``"l2"`` makes every row of length one afterwards, so that one set of rates suits all data.
        ``"auto"`` is ``"none"`` for at most 50 columns that most rows fill, whose lengths tell of
        the classes, and ``"l2"`` for texts and all other rows; ``model_.transform`` says which.
    ngrams : int or "auto"
        Texts: longest n-gram of words, 1 to 3, or 0 for none beside those of characters. ``"auto"``
        is 2, and 1 for a stream.
    chars : tuple of two int, "auto" or None
        Texts: shortest and longest n-gram of characters, within words whose edges are marked; None
        for none. ``"auto"`` is ``(2, 5)``, and None for a stream.
    lowercase : bool
        Texts: fold letters to lower case.
    marks : bool or "auto"
        Texts: count every punctuation mark of ASCII as a word, not only ``! ? $``. ``"auto"`` does,
        but for a stream.
    min_count : int
        Texts: keep n-grams that are in at least so many of them.
    max_share : float
        Texts: leave out n-grams that are in more than this share of them.
    hash_bits : int, optional
        Texts: hash n-grams to ``2**hash_bits`` columns; needed where a stream begins with texts.
    many_classes : bool
        Take labels for classes also where there is one for every second row, which are targets of
        regression as a rule, or texts in the place of labels.
    class_weight : dict or "balanced", optional
        Factor of the weights of the examples of each class.
    early_stopping : bool
        Hold out a part of the data, as ``X_val`` of :meth:`fit` would.
    validation_fraction : float
        The part of each class that is held out. Larger chooses better and learns from less.
    metric : str
        Score of the held-out data that decides: ``"accuracy"``, ``"f1"``, ``"log_loss"``, ….
    patience : int, optional
        Passes without a better score before training ends; None is a third of the passes, 3 at
        least, and 0 runs all of them. The best model is kept in any case.
    callbacks : sequence of callables, optional
        Each gets every event (a dict) as it happens.
    verbose : int
        Above 0, a line on the standard error stream after each pass.
    random_state : int, RandomState or None
        Fixes the orders. None takes another one each time.
    n_jobs : int, optional
        Threads of batch learners; the model does not depend on it. -1 takes all cores.
    by_block : bool
        Visit rows block by block, as those of a cache, so that both give the same model.
    temperature : bool
        Fit the temperature that makes probabilities of scores, which takes up to as long again as
        training where nothing is held out; False takes 1.
    shards : int or Shards, optional
        Learn on so many shards of the data side by side, which are merged after every pass; see
        :class:`hopefear.training.shards.Shards`.
    **params
        Parts and parameters of the learner, by name, such as ``loss="logistic"``,
        ``averaging="voted"`` or ``l1=1e-5``; None is its own value. Checked by :meth:`fit`.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    coef_, intercept_ : array
        Weights of the (transformed) features, a row a class; one row for two classes.
    n_iter_, history_, best_epoch_, converged_
        Passes made, their events, the pass whose model was kept, and whether training ended because
        the score got no better; see :class:`hopefear.tasks.estimator.ModelEstimator`.
    model_ : Model
        What predicts; can be saved, inspected and used without scikit-learn.

    Notes
    -----
    An example of weight w is met ``ceil(w)`` times in a pass, each time with an equal share of w:
    whole weights are repetitions, weight 0 is absence (while the average weight is at most 10).
    Feature values and weights are float32. Probabilities are the softmax of the scores by a
    temperature, which is fitted on ``X_val``, or on either half of the rows with a model of the
    other, and 1 where a half has fewer than ten, and in streams; for the averaging ``"voted"`` they
    are shares of the votes.

    Texts are learned with ``rate=0.3, l1=3e-7`` by ``adagrad-rda``, the default, unless said.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[2.0, 0.0], [1.0, 0.5], [0.0, 1.0], [0.5, 2.0]])
    >>> y = ["hope", "hope", "fear", "fear"]
    >>> model = Classifier(learner="vrda", l1=1e-5).fit(X, y)
    >>> model.predict([[3.0, 0.0]]).tolist(), model.score(X, y)
    (['hope'], 1.0)
    >>> texts = ["good fun", "so good", "no fun", "so bad"]
    >>> model = Classifier("perceptron", ngrams=2).fit(texts, y)
    >>> model.predict(["all good"]).tolist(), model.explain(["all good"]).contributions[0][0]
    (['hope'], 'good')
    """

    _task, _kind, _models = "classify", Classification, Model
    classes_: np.ndarray

    def __init__(
        self,
        learner: str = DEFAULT_LEARNER,
        *,
        epochs: int | None = None,
        shuffle: bool = True,
        intercept: float | str = "auto",
        values: str = "auto",
        norm: str = "auto",
        nb_share: float = 0.0,
        ngrams: int | str = "auto",
        chars: tuple[int, int] | str | None = "auto",
        lowercase: bool = True,
        marks: bool | str = "auto",
        min_count: int = 1,
        max_share: float = 1.0,
        hash_bits: int | None = None,
        many_classes: bool = False,
        class_weight: Mapping[Any, float] | str | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        metric: str = "accuracy",
        patience: int | None = None,
        callbacks: Sequence[Callable[[Event], None]] | None = None,
        verbose: int = 0,
        random_state: Any = 1,
        n_jobs: int | None = 1,
        by_block: bool = False,
        temperature: bool = True,
        shards: Any = None,
        **params: Any,
    ) -> None:
        self._keep(locals())

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, X_val: Any = None, y_val: Any = None
    ) -> Self:
        """Learn from all rows, from the beginning.

        Parameters
        ----------
        X : sparse or dense matrix, iterable of str, list of dict, or table
            One row or text an example; NaN and infinity are refused with their place. Dicts hold
            numbers and strings by name, as scikit-learn's ``DictVectorizer`` takes them; names that
            ``fit`` has not seen are left out later. Of a table (pandas, polars, Hugging Face
            ``datasets``) with a column ``text``, its texts.
        y : sequence or str, optional
            Labels: numbers or strings, at least two different ones; or the name of the column of a
            table that has them, ``label`` unless said.
        sample_weight : sequence of float, optional
            Weight of each row.
        X_val, y_val : like X and y, optional
            Held-out rows, scored after each pass: training ends after ``patience`` passes without
            a better score, and the best model is kept.
        """
        with as_value_errors():
            X_val, y_val = from_table(X_val, y_val, "text", "label")
        X, y = self._pair(X, y, reset=True)
        with as_value_errors():
            (labels, names), dev = _labels_of(y), None
            if given_together(X_val=X_val, y_val=y_val):
                dev = Examples.of_objects(*self._pair(X_val, y_val, reset=False), names)
            self.train(Examples.of_objects(X, y, names, sample_weight), dev)
        self._settle(labels)
        return self

    def train(self, examples: Any, dev: Any = None, run: Any = None) -> Trained:
        trained = super().train(examples, dev, run)
        self.classes_ = np.array(trained.model.classes)
        self.n_features_in_ = trained.model.features.size
        return trained

    @for_streams
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from some more rows, in the order given, once.

        The chunks of one pass give the same weights as ``fit`` with ``epochs=1, shuffle=False``,
        bit for bit, when ``rate`` and ``intercept`` are numbers and ``norm`` is not ``"auto"``;
        what is ``"auto"`` is measured on the first chunk here and on all rows there. After ``fit``
        it goes on from where that ended.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.
        classes : sequence
            All labels there will ever be; needed in the first call.

        Examples
        --------
        >>> model = Classifier("perceptron").partial_fit([[1.0], [-1.0]], [1, 0], classes=[0, 1])
        >>> model.partial_fit([[2.0]], [1]).predict([[3.0]]).tolist()
        [1]
        """
        X, y = self._pair(X, y, reset=not hasattr(self, "_model"))
        with as_value_errors():
            goes_on, (labels, names) = self._begun(), self._labels(classes)
            examples = Examples.of_objects(X, y, names, sample_weight, not goes_on)
            if goes_on:
                check_part(self._options())
                how, model = self._model.transform, self._model
                task = Classification(self.intercept, how["values"], how["norm"])
                task = replace(task, class_weight=self._by_name(), scaled_by=model.scale)
                data, trainer = examples.like(model.features, model.classes), self._trainer
            else:
                prepared = prepare(examples, self._options())
                task, data = prepared.task, prepared.data
                self._model, trainer = begin(task, data, self.learner, self._learner_params())
                self.n_features_in_ = data.n_features
            self._learn(task.prepared(data), trainer)
        if not goes_on:
            self._settle(labels)
        return self

    def predict(
        self, X: Any, unknown: float | None = None, unknown_label: Any = "unknown"
    ) -> np.ndarray:
        """The best label of every row.

        Parameters
        ----------
        X : sparse or dense matrix, or iterable of str
            Rows or texts.
        unknown : float, optional
            Answer ``unknown_label`` where no class is as probable as this. Higher answers fewer
            rows, and more of those right.
        unknown_label
            Any label, one of the classes or not.

        Examples
        --------
        >>> model = Classifier("perceptron").fit(["good fun", "so bad"], ["hope", "fear"])
        >>> model.predict(["good fun", "neither"], unknown=0.6).tolist()
        ['hope', 'unknown']
        """
        if unknown is not None:
            with as_value_errors():
                check_fraction("unknown", unknown)
        answers = self._answer(X, Question(unknown=unknown))
        labels = self.classes_[answers.labels]
        if unknown is None:
            return labels
        named = np.array([unknown_label])
        kind = np.result_type(labels, named) if labels.dtype.kind == named.dtype.kind else object
        return np.where(answers.is_known, labels.astype(kind), named.astype(kind))

    def predict_nbest(self, X: Any, n: int = 5) -> list[list[Output]]:
        """The n best classes of every row, best first, with probabilities and scores.

        Examples
        --------
        >>> model = Classifier("perceptron").fit(["good fun", "so bad"], ["hope", "fear"])
        >>> [output.label for output in model.predict_nbest(["good fun"], n=2)[0]]
        ['hope', 'fear']
        """
        return [*map(NBestList, self._answer(X, Question(n)).outputs(self.classes_.tolist()))]

    def _answer(self, X: Any, question: Question) -> Answers:
        return answer(self.model_, self._rows(X), question)

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: of the second of two classes (above 0 it is predicted), else a column a class."""
        scores = self._answer(X, Question()).scores
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """A probability for every row and class; see the notes on what it is worth."""
        return self._answer(X, Question()).shares

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """The logarithm of :meth:`predict_proba`; minus infinity where that is 0."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def explain(self, X: Any, row: int = 0) -> Explanation:
        """What each feature of a row adds to the score of its class over the runner-up.

        Parameters
        ----------
        X : sparse or dense matrix, or iterable of str
            Rows as for :meth:`predict`.
        row : int
            The row to explain.

        Examples
        --------
        >>> model = Classifier("perceptron", intercept=0).fit([[2.0, 0.0], [0.0, 1.0]], [1, 0])
        >>> reason = model.explain([[1.0, 3.0]])
        >>> reason.label, reason.runner_up, [name for name, gain in reason.contributions]
        (0, 1, ['1', '0'])
        """
        with as_value_errors():
            reason = explain(self.model_, self._rows(X), row)
        own = dict(zip(self.model_.classes, self.classes_.tolist(), strict=True))
        return reason._replace(label=own[reason.label], runner_up=own[reason.runner_up])

    @classmethod
    def from_model(cls, model: Model) -> Self:
        learner, how = str(model.about.get("learner", DEFAULT_LEARNER)), model.transform
        share = model.about.get("nb_share", 0.0)
        norm = model.about.get("config", {}).get("norm", "auto")
        values = how["values"]
        if model.features.kind not in ("ngrams", "hashed") and values == PLAIN["values"]:
            values = "auto"  # which of rows it is
        classifier = cls(learner, values=values, norm=norm, nb_share=share)
        if isinstance(model.features, NGramFeatures | HashedFeatures):
            grams = model.features.grams
            bits = getattr(model.features, "bits", None)
            classifier.set_params(**grams.as_parameters(), hash_bits=bits)
        classifier.classes_ = _from_names(model.classes, model.about.get("label_kind"))
        classifier.n_features_in_ = model.features.size
        names = model.about.get("feature_names")
        if names is not None:
            classifier.feature_names_in_ = np.array(names, dtype=object)
        classifier._restore(model)
        classifier._model = model
        return classifier

    @property
    def coef_(self) -> np.ndarray:
        """Weights, a row a class; one row for two classes."""
        return self._weights()[: self.n_features_in_].T

    @property
    def intercept_(self) -> np.ndarray:
        """What is added to the scores, one number a row of ``coef_``."""
        weights, bias = self._weights(), self.model_.structure.bias
        if not bias:
            return np.zeros(weights.shape[1], weights.dtype)
        return weights[-1] * weights.dtype.type(bias)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The share of rows whose class is right; ``X`` and ``y`` as for :meth:`fit`."""
        with as_value_errors():
            X, y = from_table(X, y, "text", "label")
        return super().score(X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _pair(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, np.ndarray]:
        """``(X, y)`` as lists of texts or of dicts, or as arrays, and an array."""
        with as_value_errors():
            given = X
            X, y = from_table(X, y, "text", "label")
            if y is None and X is not given:
                raise HopefearError("texts need labels: give y, or a table with a column label")
            rows: Any = as_strings(X)
            rows = as_dicts(X) if rows is None else rows
            if rows is None:
                return self._arrays(X, y, reset=reset)
            y = column_or_1d(y, warn=True)
            check_consistent_length(rows, y)
            check_classification_targets(y)
            if reset:
                for name in ("feature_names_in_", "n_features_in_"):
                    self.__dict__.pop(name, None)
            return rows, y

    def _arrays(self, *Xy: Any, reset: bool) -> Any:
        """``X`` or ``(X, y)`` as arrays; finite or not is left to the dataset, which says where."""
        rules = {"accept_sparse": "csr", "dtype": np.float32, "ensure_all_finite": False}
        with np.errstate(over="ignore"):
            arrays = validate_data(self, *Xy, reset=reset, **rules)
        if len(Xy) > 1:
            check_classification_targets(arrays[1])
        return arrays

    def _rows(self, X: Any) -> SparseDataset:
        with as_value_errors():
            read = self.model_.read(X)
            return matrix(self._arrays(X, reset=False)) if read is None else read

    def _labels(self, classes: Any) -> tuple[np.ndarray, list[str]]:
        """All labels of a stream and their names, from what its calls say."""
        first = not hasattr(self, "_model")
        if classes is None and first:
            raise HopefearError(
                "the first call of partial_fit needs classes: all the labels there will ever be"
            )
        labels, names = _labels_of(self.classes_ if classes is None else np.asarray(classes))
        if first and labels.size < 2:
            raise HopefearError(f"expected at least two classes, found one class only ({labels})")
        if not first and not np.array_equal(labels, self.classes_):
            raise HopefearError(
                f"classes={labels.tolist()} is not the same as in the first call, "
                f"{self.classes_.tolist()}; fit a new Classifier"
            )
        return labels, names

    def _weights(self) -> np.ndarray:
        model = self.model_
        if isinstance(model.predictor, VotedPredictor):
            raise NoWeightsError(
                "a voted model has no single weight for a feature; use averaging='averaged'"
            )
        return model.predictor.weights.reshape(-1, model.structure.n_parts())

    def _by_name(self) -> Any:
        weights = self.class_weight
        if isinstance(weights, Mapping):
            return {class_name(label): weight for label, weight in weights.items()}
        return weights

    def _settle(self, labels: np.ndarray) -> None:
        """Keep the labels as they were given, with what :meth:`load` needs to give them back."""
        about: dict[str, Any] = {}
        if labels.dtype.kind not in "UO":
            about["label_kind"] = labels.dtype.kind
        if hasattr(self, "feature_names_in_"):
            about["feature_names"] = [str(name) for name in self.feature_names_in_]
        self.classes_ = labels
        self._model = replace(self._model, about={**self._model.about, **about})

    def _renewed(self, model: Model, trainer: Any, recent: Any) -> Model:
        model = super()._renewed(model, trainer, recent)
        data = {"source": "stream", "examples": trainer.examples, "features": model.features.size}
        return replace(
            model, signature=trainer.learner.signature(), about={**model.about, "data": data}
        )


def _labels_of(y: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """The different labels and their names, as the command line orders them: numbers by size."""
    values = distinct(y)
    labels = {class_name(label): label for label in values}
    if len(labels) < len(values):
        given = [class_name(label) for label in values]
        raise HopefearError(f"two of the classes {given} read the same; rename one")
    names = list(sort_classes(list(labels)))
    return np.array([labels[name] for name in names], y.dtype), names


def _from_names(names: Sequence[str], kind: Any) -> np.ndarray:
    """Class names as the labels they were made from."""
    if kind == "b":
        return np.array([name == "1" for name in names])
    numbers = {"i": int, "u": int, "f": float}
    return np.array([numbers[kind](name) if kind in numbers else name for name in names])

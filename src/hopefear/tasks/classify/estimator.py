"""The scikit-learn face of the library."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from hopefear.data.labels import class_name, distinct
from hopefear.data.sparse import SparseDataset
from hopefear.errors import HopefearError, InputError
from hopefear.tasks.classify.model import Model
from hopefear.tasks.classify.task import DEFAULT_LEARNER, composed, model_of, train, weighted
from hopefear.tasks.estimator import ArgumentError
from hopefear.training.checkpoints import InterruptedTrainingError
from hopefear.training.holdout import split_classes
from hopefear.training.loop import Event, counts
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes
from hopefear.training.predictors import VotedPredictor
from hopefear.training.stopping import Stopping


class NoWeightsError(HopefearError, AttributeError):
    """Weights were asked for where there is no single weight of a feature."""


class Classifier(ClassifierMixin, BaseEstimator):
    """Linear classifier by any learner: two classes or more, sparse or dense rows.

    ``argmax_c w_c . x``; silent, the same for the same data and ``random_state``

    Parameters
    ----------
    learner : str
        Name of a recipe; ``hopefear learners`` lists them.
    loss, readout, on : str, optional
        Parts to put in the place of the learner's own: ``"logistic"``, ``"voted"``,
        ``"mistakes"``, and so on.
    rate : float or "auto", optional
        Length of the steps. Larger learns faster and less evenly.
    l1, l2 : float, optional
        Strength of the penalties. More l1 gives fewer non-zero weights, more l2 smaller ones.
    params : dict, optional
        Any other parameter of the learner, by name.
    epochs : int
        Passes over the data, at most. More fit the data better, and at last too well.
    shuffle : bool
        A new random order for every pass; then the order of the rows given makes no difference.
        False keeps their order.
    intercept : float or "auto"
        Value of a constant feature; 0 for none, ``"auto"`` for the typical value of a feature.
    values : {"counts", "presence", "log"}
        What each value becomes: itself, 1, or ``sign(v) log(1 + |v|)``.
    norm : {"none", "l2"}
        ``"l2"`` makes every row of length one afterwards.
    class_weight : dict or "balanced", optional
        Factor of the weights of the examples of each class.
    early_stopping : bool
        Hold out a part of the data, as ``X_val`` of :meth:`fit` would.
    validation_fraction : float
        The part of each class that is held out. Larger chooses better and learns from less.
    metric : str
        Score of the held-out data that decides: ``"accuracy"``, ``"f1"``, ``"log_loss"``, ….
    patience : int
        Passes without a better score before training ends; 0 runs all of them. The best model is
        kept in any case.
    callbacks : sequence of callables, optional
        Each gets every event (a dict) as it happens.
    verbose : int
        Above 0, a line on the standard error stream after each pass.
    random_state : int, RandomState or None
        Fixes the orders. None takes another one each time.

    Attributes
    ----------
    classes_ : array
        The labels, sorted.
    coef_, intercept_ : array
        Weights of the (transformed) features, a row a class; one row for two classes.
    n_iter_ : int
        Passes made.
    history_ : list of dict
        The event of every pass of :meth:`fit`: losses, mistakes, updates, non-zero weights, and
        ``dev``, the scores of the held-out data.
    best_epoch_ : int or None
        Pass whose model was kept; None when nothing was held out.
    converged_ : bool
        Whether training ended because the score got no better.
    model_ : Model
        What predicts; can be saved, inspected and used without scikit-learn.

    Notes
    -----
    An example of weight w is met ``ceil(w)`` times in a pass, each time with an equal share of w:
    whole weights are repetitions, weight 0 is absence (while the average weight is at most 10).
    Feature values and weights are float32. Probabilities are the logistic or softmax function of
    the scores, and shares of the votes for the readout ``"voted"``; neither is calibrated.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[2.0, 0.0], [1.0, 0.5], [0.0, 1.0], [0.5, 2.0]])
    >>> y = ["hope", "hope", "fear", "fear"]
    >>> model = Classifier(learner="vrda", l1=1e-5).fit(X, y)
    >>> model.predict([[3.0, 0.0]]).tolist(), model.score(X, y)
    (['hope'], 1.0)
    """

    def __init__(
        self,
        learner: str = DEFAULT_LEARNER,
        *,
        loss: str | None = None,
        readout: str | None = None,
        on: str | None = None,
        rate: float | str | None = None,
        l1: float | None = None,
        l2: float | None = None,
        params: Mapping[str, Any] | None = None,
        epochs: int = 5,
        shuffle: bool = True,
        intercept: float | str = "auto",
        values: str = "counts",
        norm: str = "none",
        class_weight: Mapping[Any, float] | str | None = None,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        metric: str = "accuracy",
        patience: int = 3,
        callbacks: Sequence[Callable[[Event], None]] | None = None,
        verbose: int = 0,
        random_state: Any = 1,
    ) -> None:
        self.learner = learner
        self.loss = loss
        self.readout = readout
        self.on = on
        self.rate = rate
        self.l1 = l1
        self.l2 = l2
        self.params = params
        self.epochs = epochs
        self.shuffle = shuffle
        self.intercept = intercept
        self.values = values
        self.norm = norm
        self.class_weight = class_weight
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.metric = metric
        self.patience = patience
        self.callbacks = callbacks
        self.verbose = verbose
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, X_val: Any = None, y_val: Any = None
    ) -> Classifier:
        """Learn from all rows, from the beginning.

        Parameters
        ----------
        X : sparse or dense matrix
            One row an example; NaN and infinity are refused with their place.
        y : sequence
            Labels: numbers or strings, at least two different ones.
        sample_weight : sequence of float, optional
            Weight of each row.
        X_val, y_val : like X and y, optional
            Held-out rows, scored after each pass: training ends after ``patience`` passes without
            a better score, and the best model is kept.
        """
        X, y = self._checked(X, y, reset=True)
        classes = distinct(y)
        with _as_value_errors():
            seed = self._seed()
            data = _dataset(X, y, classes, sample_weight)
            if not data.rows.weights.any():
                raise HopefearError("every sample weight is zero; there is nothing to learn from")
            dev = self._validation(X_val, y_val, classes)
            if dev is None and self.early_stopping:
                data, dev = split_classes(data, self.validation_fraction, seed)
            trained = train(
                data,
                self.learner,
                self._params(),
                epochs=self.epochs,
                seed=seed,
                shuffle=self.shuffle,
                intercept=self.intercept,
                values=self.values,
                norm=self.norm,
                class_weight=_by_name(self.class_weight),
                dev=dev,
                stopping=None if dev is None else Stopping(self.metric, self.patience),
                on_event=self._listeners(),
                by_content=True,
            )
        self.classes_ = classes
        self._trainer: Any = trained.fit.trainer
        self._model: Model | None = self._signed(trained.model)
        self._transform = dict(trained.model.transform)
        self.history_ = trained.fit.history
        self.n_iter_ = len(self.history_)
        self.best_epoch_ = trained.fit.best_epoch
        self.converged_ = (
            dev is not None
            and self.patience > 0
            and self.n_iter_ - (self.best_epoch_ or 0) >= self.patience
        )
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Classifier:
        """Learn from some more rows, in the order given, once.

        The chunks of one pass give the same weights as ``fit`` with ``epochs=1, shuffle=False``,
        bit for bit, when ``rate`` and ``intercept`` are numbers; what is ``"auto"`` is measured on
        the first chunk here and on all rows there. After ``fit`` it goes on from where that ended.

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
        first = not hasattr(self, "classes_")
        X, y = self._checked(X, y, reset=first)
        with _as_value_errors():
            if not first and self._trainer is None:
                raise HopefearError(
                    "a model file holds what predicts, not what learns; fit a new Classifier"
                )
            known = self._classes(classes, first)
            if self.class_weight == "balanced":
                raise HopefearError("class_weight='balanced' needs all the data; give a dict")
            transform = {"values": self.values, "norm": self.norm} if first else self._transform
            data = _dataset(X, y, known, sample_weight)
            data = weighted(data, _by_name(self.class_weight)).transformed(**transform)
            passes = Passes(data, shuffle=False)
            if first:
                made = composed(passes, self.learner, self._params(), self.intercept)
                self._trainer, self._transform = OnlineTrainer(*made), transform
                self.classes_, self.history_, self.n_iter_ = known, [], 1
                self.best_epoch_, self.converged_ = None, False
            self._model = None
            for rows, order in passes.pieces(0):
                self._trainer.learn(rows, order)
        for listener in self._listeners():
            listener(counts(self._trainer))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """The best label of every row."""
        codes, _ = self.model_.decide(self._rows(X))
        return self.classes_[codes]

    def decision_function(self, X: Any) -> np.ndarray:
        """Scores: of the second of two classes (above 0 it is predicted), else a column a class."""
        _, scores = self.model_.decide(self._rows(X))
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def predict_proba(self, X: Any) -> np.ndarray:
        """A probability for every row and class; see the notes on what it is worth."""
        return self.model_.probabilities(self._rows(X))

    def explain(self, X: Any, row: int = 0) -> list[tuple[str, float]]:
        """What each feature of a row adds to the score of its class over the runner-up.

        Parameters
        ----------
        X : sparse or dense matrix
            Rows as for :meth:`predict`.
        row : int
            The row to explain.

        Examples
        --------
        >>> model = Classifier("perceptron", intercept=0).fit([[2.0, 0.0], [0.0, 1.0]], [1, 0])
        >>> [name for name, gain in model.explain([[1.0, 3.0]])]
        ['1', '0']
        """
        with _as_value_errors():
            found = self.model_.contributions(self._rows(X), row)
        if not hasattr(self, "feature_names_in_"):
            return found
        # The model knows columns by number; a name that is no number is the intercept.
        return [
            (str(self.feature_names_in_[int(name)]) if name.isdigit() else name, gain)
            for name, gain in found
        ]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, which :func:`hopefear.load` and :meth:`load` read."""
        self.model_.save(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Classifier:
        """A classifier that predicts as the saved one; it cannot go on learning.

        Examples
        --------
        >>> import os, tempfile
        >>> model = Classifier("perceptron").fit([[1.0], [-1.0]], [7, 3])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "model")
        ...     model.save(path)
        ...     Classifier.load(path).predict([[2.0], [-2.0]]).tolist()
        [7, 3]
        """
        model = Model.load(path)
        learner, how = str(model.about.get("learner", DEFAULT_LEARNER)), model.transform
        made = cls(learner, values=how["values"], norm=how["norm"])
        made.classes_ = _labels(model.classes, model.about.get("label_kind"))
        made.n_features_in_ = model.features.size
        names = model.about.get("feature_names")
        if names is not None:
            made.feature_names_in_ = np.array(names, dtype=object)
        made._model, made._trainer, made._transform = model, None, dict(model.transform)
        return made

    @property
    def model_(self) -> Model:
        """The model as it is now."""
        check_is_fitted(self, "classes_")
        if self._model is None:  # made when asked for, so that many small chunks cost nothing
            names = tuple(class_name(label) for label in self.classes_)
            made = model_of(self._trainer, self.learner, names, self._transform)
            self._model = self._signed(made)
        return self._model

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _checked(self, *Xy: Any, reset: bool) -> Any:
        """``X`` or ``(X, y)`` as arrays; finite or not is left to the dataset, which says where."""
        rules = {"accept_sparse": "csr", "dtype": np.float32, "ensure_all_finite": False}
        with np.errstate(over="ignore"):
            checked = validate_data(self, *Xy, reset=reset, **rules)
        if len(Xy) > 1:
            check_classification_targets(checked[1])
        return checked

    def _rows(self, X: Any) -> SparseDataset:
        with _as_value_errors():
            return SparseDataset.from_csr(self._checked(X, reset=False))

    def _validation(self, X_val: Any, y_val: Any, classes: np.ndarray) -> SparseDataset | None:
        if (X_val is None) != (y_val is None):
            raise HopefearError("X_val and y_val belong together; give both")
        if X_val is None:
            return None
        X_val, y_val = self._checked(X_val, y_val, reset=False)
        return _dataset(X_val, y_val, classes)

    def _classes(self, classes: Any, first: bool) -> np.ndarray:
        if classes is None:
            if first:
                raise HopefearError(
                    "the first call of partial_fit needs classes: all the labels there will ever be"
                )
            return self.classes_
        known = distinct(np.asarray(classes))
        if first and known.size < 2:
            raise HopefearError(f"expected at least two classes, found one class only ({known})")
        if not first and not np.array_equal(known, self.classes_):
            raise HopefearError(
                f"classes={known.tolist()} is not the same as in the first call, "
                f"{self.classes_.tolist()}; fit a new Classifier"
            )
        return known

    def _params(self) -> dict[str, Any]:
        own = {key: getattr(self, key) for key in ("loss", "readout", "on", "rate", "l1", "l2")}
        own = {key: value for key, value in own.items() if value is not None}
        more = dict(self.params or {})
        both = own.keys() & more.keys()
        if both:
            raise HopefearError(f"{sorted(both)} stand in params and as arguments; give them once")
        return own | more

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _listeners(self) -> list[Callable[[Event], None]]:
        return [*(self.callbacks or ()), *([_say] if self.verbose else [])]

    def _weights(self) -> np.ndarray:
        model = self.model_
        if isinstance(model.predictor, VotedPredictor):
            raise NoWeightsError(
                "a voted model has no single weight for a feature; use readout='averaged'"
            )
        return model.predictor.weights.reshape(-1, model.structure.n_parts())

    def _signed(self, model: Model) -> Model:
        """With what :meth:`load` needs to give back the same labels and names."""
        more: dict[str, Any] = {"label_kind": self.classes_.dtype.kind}
        if hasattr(self, "feature_names_in_"):
            more["feature_names"] = [str(name) for name in self.feature_names_in_]
        return replace(model, about={**model.about, **more})


def _dataset(
    X: Any, y: np.ndarray, classes: np.ndarray, sample_weight: Any = None
) -> SparseDataset:
    """Rows and labels for the learners; a label outside the classes is refused."""
    names = [class_name(label) for label in classes]
    if len(set(names)) < len(names):
        raise HopefearError(f"two of the classes {names} read the same; rename one")
    if sample_weight is not None:
        sample_weight = np.asarray(sample_weight, np.float64)
    data = SparseDataset.from_csr(X, y, sample_weight, names)
    if data.rows.labels.min(initial=0) < 0:
        label = class_name(y[int(np.argmin(data.rows.labels))])
        raise HopefearError(
            f"the label {label!r} is not one of the classes {names[:20]}: a model cannot take on "
            "new labels; give all of them at the beginning, or fit again"
        )
    return data


def _by_name(class_weight: Any) -> Any:
    if isinstance(class_weight, Mapping):
        return {class_name(label): weight for label, weight in class_weight.items()}
    return class_weight


def _labels(names: Sequence[str], kind: Any) -> np.ndarray:
    """Class names as the labels they were made from."""
    if kind == "b":
        return np.array([name == "1" for name in names])
    numbers = {"i": int, "u": int, "f": float}
    return np.array([numbers[kind](name) if kind in numbers else name for name in names])


def _say(event: Event) -> None:
    if "pass_mistakes" in event:
        said = {key: event[key] for key in ("epoch", "loss", "pass_mistakes", "nnz")}
        said |= {f"dev {key}": event["dev"][key] for key in ("accuracy",) if "dev" in event}
        print(*(f"{key} {value:.6g}" for key, value in said.items()), sep=", ", file=sys.stderr)


@contextmanager
def _as_value_errors() -> Iterator[None]:
    """Errors as scikit-learn's users expect them; a stop by signal goes on as that signal."""
    try:
        yield
    except InterruptedTrainingError as error:
        signal.raise_signal(error.signum)
        raise
    except InputError as error:
        raise ArgumentError(f"{error}; NaN and infinity are refused") from None
    except HopefearError as error:
        if type(error) is HopefearError:
            raise ArgumentError(str(error)) from None
        raise

"""What all estimators share: parameters, training, streams, progress, errors, files."""

from __future__ import annotations

import difflib
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from hopefear.core.learner import Learner
from hopefear.data.labels import class_name
from hopefear.errors import HopefearError
from hopefear.recipes import NetworkRecipe
from hopefear.storage import untrusted
from hopefear.tasks import TASKS, named_object, recipe
from hopefear.tasks.answers import Answers, Question
from hopefear.tasks.base import Task, Trained, needs_temperature
from hopefear.tasks.prepare import Options, Prepared, Run, learn
from hopefear.training.checkpoints import InterruptedTrainingError
from hopefear.training.loop import Event, counts, epoch_line
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes

# Parameters that change no model, and those that models tell of themselves anyway.
_UNTOLD = {"learner", "epochs", "random_state", "n_jobs", "callbacks", "verbose"}
M = TypeVar("M", bound=Any)
F = TypeVar("F", bound=Callable[..., Any])


class ArgumentError(HopefearError, ValueError):
    """Data or a parameter that an estimator cannot work with."""


class Estimator(BaseEstimator):
    """Parameters of the estimator's own, and behind them those of its learner.

    A subclass names its task, and its constructor does nothing but :meth:`_keep`. What its
    ``**params`` hold, if it has them, are parameters too, for ``clone`` and searches.

    Examples
    --------
    >>> from hopefear import Tagger
    >>> Tagger(n=3).set_params(epochs=2, C=0.1)
    Tagger(C=0.1, epochs=2, n=3)
    """

    _task: ClassVar[str]
    _params: Mapping[str, Any] | None = None  # None: the constructor takes none for a learner
    learner: str
    random_state: Any
    callbacks: Sequence[Callable[[Event], None]] | None
    verbose: int | bool
    n_jobs: int | None = 1

    def _keep(self, arguments: dict[str, Any]) -> None:
        """Keep the constructor's ``locals()``, as scikit-learn wants it: each under its name."""
        values = {name: value for name, value in arguments.items() if name != "self"}
        self._params = values.pop("params", None)
        self.__dict__.update(values)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """All parameters, those of the learner that were given among them."""
        return {**super().get_params(deep), **(self._params or {})}

    def set_params(self, **params: Any) -> Self:
        """Replace parameters; a name that is not the estimator's own is one of the learner's."""
        if self._params is None:
            return super().set_params(**params)
        own = super().get_params(deep=False)
        super().set_params(**{key: value for key, value in params.items() if key in own})
        rest = {key: value for key, value in params.items() if key not in own}
        self._params = {**self._params, **rest}
        return self

    def _learner_params(self) -> dict[str, Any]:
        """What the learner is given; None stands for its own value."""
        own, params = super().get_params(deep=False), self._params or {}
        usual = recipe(self.learner, self._task).parameters()
        for name in params.keys() - usual.keys():
            near = difflib.get_close_matches(name, [*own, *usual], 1, 0.75)
            if near and near[0] in own:
                raise HopefearError(
                    f"{type(self).__name__} has no parameter {name!r}; did you mean {near[0]!r}?"
                )
        return {key: value for key, value in params.items() if value is not None}

    def _is_batch(self) -> bool:
        """Whether the learner looks at all data before it moves."""
        return "max_iter" in recipe(self.learner, self._task).parameters()

    def _options(self) -> dict[str, Any]:
        """The parameters as :mod:`hopefear.tasks.prepare` takes them."""
        return {
            **super().get_params(deep=False),
            "params": self._learner_params(),
            "random_state": self._seed(),
            "n_jobs": self._jobs(),
        }

    def _seed(self) -> int:
        if isinstance(self.random_state, int | np.integer):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _jobs(self) -> int:
        if self.n_jobs is None:
            return 1
        return self.n_jobs if self.n_jobs > 0 else os.cpu_count() or 1

    def _listeners(self, score: str | None = None) -> list[Callable[[Event], None]]:
        """What gets every event; ``score`` is the one that lines of epochs show."""
        line = [partial(say, score=score)] if self.verbose else []
        return [*(self.callbacks or ()), *line]


class ModelEstimator(Estimator, Generic[M]):
    """An estimator that learns a model, from all data or from a stream.

    A subclass names the class of its models and the ``prepare`` of its task, reads Python objects
    into the task's examples, and answers (:meth:`_answer`). Its ``fit`` gives all examples to
    :meth:`train`, its ``partial_fit`` some of them to :meth:`_learn`; both then keep the model as
    ``_model``.

    Attributes
    ----------
    n_iter_ : int
        Passes made, or iterations of a batch learner.
    history_ : list of dict
        The event of every pass of ``fit``: losses, mistakes, updates, non-zero weights, and
        ``dev``, the scores of the held-out data.
    best_epoch_ : int or None
        Pass whose model was kept; None when nothing was held out.
    converged_ : bool
        Whether training ended because it got no better.
    """

    _models: ClassVar[Any]  # the class of the models
    _kind: ClassVar[type[Task]]  # the class of the task
    _model: M
    _trainer: Any = None  # what can go on learning
    _recent: Any = None  # learned from since the model was made
    epochs: int | None
    shuffle: bool
    patience: int | None
    shards: Any = None

    @property
    def model_(self) -> M:
        """The model as it is now; can be saved, inspected and used without scikit-learn."""
        check_is_fitted(self)
        if self._recent is not None:  # made when asked for: many small chunks cost nothing
            self._model = self._renewed(self._model, self._trainer, self._recent)
            self._recent = None
        return self._model

    @property
    def features_(self) -> Any:
        """What the model looks at: its feature map."""
        check_is_fitted(self)
        return self._model.features

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, which :func:`hopefear.load` and :meth:`load` read."""
        self.model_.save(path)

    def to_bytes(self) -> bytes:
        """The model file, in memory."""
        return self.model_.to_bytes()

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """An estimator that predicts as the saved one; it cannot go on learning.

        Examples
        --------
        >>> import tempfile
        >>> from hopefear import Tagger
        >>> tagger = Tagger("perceptron").fit([["a", "b"]], [[1, 2]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tagger.save(f"{folder}/model")
        ...     Tagger.load(f"{folder}/model").predict([["b"]])
        [[2]]
        """
        model = cls._models.load(path)
        with untrusted(os.fspath(path)):
            return cls.from_model(model)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """The estimator whose :meth:`to_bytes` gave these."""
        model = cls._models.from_bytes(data)
        with untrusted("the model"):
            return cls.from_model(model)

    @classmethod
    def from_model(cls, model: M) -> Self:
        """An estimator around a model, of the command line too."""
        raise NotImplementedError

    def _restore(self, model: Any) -> None:
        """Take over the parameters that the model's learner was given, as far as it has them."""
        given = model.about.get("given")
        if given and self._params is not None:
            usual = recipe(self.learner, self._task).parameters()
            own = {key: value for key, value in given.items() if key in usual}
            self._params = {**self._params, **own}

    def train(self, examples: Any, dev: Any = None, run: Run | None = None) -> Trained:
        """Learns from examples as the task prepares them, which ``fit`` makes of Python objects.

        Parameters
        ----------
        examples : examples or dataset
            What to learn from: columnar, as readers of files give it.
        dev : examples or dataset, optional
            Held-out examples; without them ``early_stopping`` holds out some.
        run : Run, optional
            What the run has beside the parameters; see :class:`hopefear.tasks.prepare.Run`.
        """
        options, run = self._options(), Run() if run is None else run
        prepared: Prepared = self._prepare(examples, options)
        if dev is not None:
            dev = prepared.held_out(dev)
        elif options.get("early_stopping"):
            fraction, seed = options["validation_fraction"], options["random_state"]
            prepared, dev = prepared.split(fraction, seed)
        run = replace(run, on_event=[*run.on_event, *self._listeners(prepared.stop_on)])
        if run.start is None:
            run = replace(run, start=self._start(prepared))
        trained = learn(prepared, options, dev, run)
        if config := self._config():
            about = {**trained.model.about, "config": config}
            trained = replace(trained, model=replace(trained.model, about=about))
        self._take(trained)
        self._model = trained.model
        return trained

    def _start(self, prepared: Prepared) -> np.ndarray | None:
        """Returns the weights that a batch learner starts from; zeros unless there are some."""
        return None

    def _config(self) -> dict[str, Any]:
        """What the model says of parameters that are not the usual ones, as options spell them."""
        usual, told = signature(type(self)).parameters, dict[str, Any]()
        for name, value in super(Estimator, self).get_params(deep=False).items():
            if name in _UNTOLD or value is None or value == usual[name].default:
                continue
            if name in ("shuffle", "temperature", "names"):
                name, value = f"no_{name}", not value
            if name == "class_weight" and isinstance(value, Mapping):
                value = {class_name(key): float(number) for key, number in value.items()}
            plain = isinstance(value, str | int | float) or name == "class_weight"
            told[name.replace("_", "-")] = value if plain else str(value)
        return told

    def _prepare(self, examples: Any, options: Options) -> Prepared:
        """What the task makes of examples to learn from."""
        return named_object(TASKS[self._task].prepare or "")(examples, options)

    def _take(self, trained: Trained) -> None:
        """Keep how training went, and what can go on learning."""
        result, stopping = trained.fit, trained.stopping
        self._trainer = result.trainer.detach() if isinstance(trained.learner, Learner) else None
        self._recent = None
        self.history_: list[Event] = result.history
        self.n_iter_ = len(self.history_)
        self.best_epoch_: int | None = result.best_epoch
        over = stopping is not None and self.n_iter_ > 0 and stopping.is_over(self.n_iter_)
        self.converged_ = bool(over or getattr(result, "converged", False))

    def predict_records(
        self, X: Any, *, n: int | None = None, proba: bool = False, **question: Any
    ) -> list[dict[str, Any]]:
        """Answers as plain dicts, with the keys of ``predict --output-format json`` and of HTTP.

        Parameters
        ----------
        X : sequence
            Inputs as for ``predict``.
        n : int, optional
            The n best outputs of every input; the best alone unless said.
        proba : bool
            All probabilities, not only those of what is answered.
        **question
            What else the task can be asked; see :class:`hopefear.tasks.answers.Question`.

        Examples
        --------
        >>> from hopefear import Classifier
        >>> model = Classifier("perceptron").fit(["good fun", "so bad"], ["hope", "fear"])
        >>> [record["label"] for record in model.predict_records(["all good"])]
        ['hope']
        """
        with as_value_errors():
            return self._answer(X, Question(n, proba, **question)).as_dicts()

    def _answer(self, X: Any, question: Question) -> Answers:
        """Answers to Python objects."""
        raise NotImplementedError

    def _learn(self, data: Any, trainer: Any) -> None:
        """Learn from some examples, in the order given, once."""
        trainer.learn_pass(Passes(data, shuffle=False))
        if trainer is not self._trainer:  # a stream has begun
            self._trainer, self.history_, self.n_iter_ = trainer, [], 1
            self.best_epoch_, self.converged_ = None, False
        self._recent = data
        for listener in self._listeners():
            listener(counts(trainer))

    def _begun(self) -> bool:
        """Whether there is something that further data can teach."""
        if not hasattr(self, "_model"):
            return False
        if self._trainer is None:
            name = type(self).__name__
            raise HopefearError(
                f"this {name.lower()} cannot go on: it was loaded from a model file, which holds "
                f"what predicts, not what learns; fit a new {name}"
            )
        return True

    def _renewed(self, model: M, trainer: Any, recent: Any) -> M:
        """The model after more was learned."""
        predictor, changes = trainer.predictor(), dict[str, Any]()
        if hasattr(model, "temperature"):
            plain = not needs_temperature(trainer.learner, predictor)
            changes["temperature"] = (
                1.0
                if plain
                else self._kind().temperature(trainer.structure, predictor, recent, self._jobs())
            )
        about = {**model.about, "training": counts(trainer)}
        return replace(model, predictor=predictor, about=about, **changes)

    def _repr_html_(self) -> str:
        from hopefear.report.notebook import estimator_html

        return estimator_html(self)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_model")

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_model" in state:  # as its file, so that one way of storing models is enough
            state["_model"] = self.model_.to_bytes()
        if state.get("_trainer") is not None:  # without the data it learned from
            trainer = state["_trainer"]
            state["_trainer"] = trainer.structure, trainer.learner, trainer.arrays()
        state.pop("_recent", None)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_model" in state:
            self._model = self._models.from_bytes(state["_model"])
        if state.get("_trainer") is not None:
            structure, learner, arrays = state["_trainer"]
            self._trainer = OnlineTrainer(structure, learner)
            self._trainer.restore(arrays)


def for_streams(partial_fit: F) -> F:
    """Returns a ``partial_fit`` that is no attribute where the learner needs all data at once.

    >>> from hopefear import Tagger
    >>> hasattr(Tagger("crf"), "partial_fit"), hasattr(Tagger("crf-lbfgs"), "partial_fit")
    (True, False)
    """
    return available_if(_learns_online)(partial_fit)


def _learns_online(estimator: Estimator) -> bool:
    try:
        entry = recipe(estimator.learner, estimator._task)
    except HopefearError:  # partial_fit says which learners there are
        return True
    if "max_iter" in entry.parameters() or isinstance(entry, NetworkRecipe):
        raise HopefearError(
            f"{estimator.learner} learns from all data at once; use fit, or an online learner such "
            "as 'perceptron'"
        )
    return True


def given_together(**pair: Any) -> bool:
    """Whether both are there and not None; one alone is refused.

    >>> given_together(X_val=[[1]], y_val=[0]), given_together(X_val=None, y_val=None)
    (True, False)
    """
    missing = [value is None for value in pair.values()]
    if any(missing) and not all(missing):
        raise HopefearError(f"{' and '.join(pair)} belong together; give both")
    return not any(missing)


def say(event: Event, score: str | None = None) -> None:
    """Prints a line on an epoch to standard error, with one score or all of them."""
    if "pass_mistakes" in event:
        print(epoch_line(event, score), file=sys.stderr)


@contextmanager
def as_value_errors() -> Iterator[None]:
    """Errors as scikit-learn's users expect them; a stop by signal goes on as that signal."""
    try:
        yield
    except InterruptedTrainingError as error:
        signal.raise_signal(error.signum)
        raise
    except HopefearError as error:
        if isinstance(error, ValueError):
            raise
        raise ArgumentError(str(error)) from None

"""What all tasks share: how a model is trained, what its file holds, how it is read back."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hopefear import storage
from hopefear.core.learner import parameters_by_part, part_name
from hopefear.core.memory import trim
from hopefear.errors import HopefearError, ModelError
from hopefear.metrics import best_temperature
from hopefear.recipes import Scale
from hopefear.storage import field_of, untrusted
from hopefear.tasks import TASKS, recipe, recipes_of
from hopefear.training.checkpoints import Checkpoints
from hopefear.training.loop import Event, Fit, fit
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes
from hopefear.training.predictors import Predictor
from hopefear.training.shards import Shards
from hopefear.training.stopping import Stopping
from hopefear.training.trainer import Trainer

# From structure, learner and data to a trainer that learns the same and measures meanwhile.
Instrument = Callable[[Any, Any, Passes], Trainer]


@dataclass(frozen=True)
class Trained:
    """A model and how it came about."""

    model: Any
    learner: Any
    fit: Fit
    stopping: Stopping | None = None


class Explanation(NamedTuple):
    """What made an answer beat the runner-up: of a token, an example or a list.

    Of a token the runner-up is the best output with another label there; where it differs at
    other tokens too, their features count as well. Of a list the two are positions.
    """

    label: Any
    runner_up: Any
    gap: float  # score of the answer minus that of the runner-up
    contributions: list[tuple[str, float]]  # (what fired, its share of the gap), largest first

    def _repr_html_(self) -> str:
        from hopefear.report.notebook import explanation_html

        return explanation_html(self)

    def facts(self, top: int) -> dict[str, Any]:
        """The same for JSON: the strongest features, and how many more there are.

        >>> explanation("spam", "ham", [("free", 2.0), ("Bo", -0.5)]).facts(1)["features"]
        [{'name': 'free', 'amount': 2.0}]
        """
        some = self.contributions[:top]
        return {
            "label": self.label,
            "runner_up": self.runner_up,
            "gap": self.gap,
            "features": [{"name": name, "amount": amount} for name, amount in some],
            "more": len(self.contributions) - len(some),
        }


class NBestList(list[Any]):
    """The n best outputs of one example, best first; notebooks show them as bars."""

    def _repr_html_(self) -> str:
        from hopefear.report.notebook import nbest_list_html

        return nbest_list_html(self)


class Predictions(list[Any]):
    """Outputs of examples; to NumPy an array of objects, one an example, of whatever lengths.

    So the outputs of several folds can be joined, as ``cross_val_predict`` does.

    >>> np.concatenate([Predictions([["N"]]), Predictions([["D", "N"], ["V", "N"]])]).tolist()
    [['N'], ['D', 'N'], ['V', 'N']]
    """

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = objects(self)
        return array if dtype is None else array.astype(dtype)


def objects(items: Sequence[Any]) -> np.ndarray:
    """Returns an array of objects with one entry an item, lists among them too.

    >>> objects([["a"], ["b"]]).shape
    (2,)
    """
    array = np.empty(len(items), object)
    for i, item in enumerate(items):
        array[i] = item
    return array


def explanation(label: Any, runner_up: Any, gains: Iterable[tuple[str, float]]) -> Explanation:
    """Gains in order of size, without those of nothing, and their sum.

    >>> explanation("spam", "ham", [("free", 2.0), ("tea", 0.0), ("Bo", -0.5)]).gap
    1.5
    """
    ordered = sorted((gain for gain in gains if gain[1]), key=lambda gain: -abs(gain[1]))
    return Explanation(label, runner_up, float(np.sum([gain for _, gain in ordered])), ordered)


class Task:
    """What differs between tasks, and nothing else; fields of a subclass are its options.

    :func:`train` asks in this order. Methods with a body may be left as they are.
    """

    name: ClassVar[str]
    epochs: ClassVar[int] = 5  # passes of online learners, unless said
    by_content: ClassVar[bool] = False  # orders of visits do not depend on that of the data

    def usual_epochs(self, data: Any) -> int:
        """Returns the passes of online learners over this data, unless said."""
        return self.epochs

    def check(self, data: Any, dev: Any) -> None:
        """Refuse data that cannot be learned from, or held-out data that means something else."""

    def prepared(self, data: Any) -> Any:
        """The data as it is learned from."""
        return data

    def parameters(self, params: Mapping[str, Any], learner: str, data: Any) -> Mapping[str, Any]:
        """Parameters of a learner, where some can only be made of the data."""
        return params

    def composed(
        self, passes: Passes, build: Callable[[Scale], Any], params: Mapping[str, Any]
    ) -> tuple[Any, Any]:
        """Structure and learner for this data; what is ``"auto"`` is measured on it."""
        return self.structure(passes.dataset), build(self.scale(passes))

    def structure(self, data: Any) -> Any:
        """What outputs look like."""
        raise NotImplementedError

    def scale(self, passes: Passes) -> Scale:
        """What ``"auto"`` parameters depend on."""
        return Scale(n=passes.n)

    def check_together(self, structure: Any, learner: Any, data: Any) -> None:
        """Refuse a learner that cannot learn this structure from this data."""

    def score_names(self, data: Any) -> Iterable[str]:
        """Names of the scores that the evaluator gives."""
        raise NotImplementedError

    def evaluator(
        self, structure: Any, data: Any, dev: Any, n_jobs: int
    ) -> Callable[[Predictor], dict[str, float]]:
        """Scores of a predictor on held-out data."""
        raise NotImplementedError

    def words(self, data: Any) -> dict[str, Any]:
        """What changes weights beside learner, passes, seed and data, for the signature."""
        return {}

    def identity(self, data: Any, structure: Any) -> dict[str, Any]:
        """What else makes a run this run: a checkpoint of another one is refused."""
        return {}

    def temperature(self, structure: Any, predictor: Any, data: Any, n_jobs: int) -> float:
        """What scores are divided by before they become probabilities, fitted on some data.

        On training data, for lack of held-out data, probabilities come out too sure.
        """
        return 1.0

    def needs_temperature(self, learner: Any, predictor: Predictor) -> bool:
        """Whether a temperature is fitted when training is over."""
        return needs_temperature(learner, predictor)

    def fitted_temperature(
        self, structure: Any, predictor: Any, data: Any, dev: Any, n_jobs: int, again: Any
    ) -> float:
        """The temperature when training is over; ``again`` trains on other data."""
        return self.temperature(structure, predictor, data if dev is None else dev, n_jobs)

    def facts(self, data: Any) -> dict[str, Any]:
        """What a model file says of its data, beside source and digest."""
        raise NotImplementedError

    def review(self, data: Any, result: Fit) -> None:
        """Warns of a result that is probably not what the user wants."""

    def summary(self, result: Fit) -> dict[str, Any]:
        """What a model file says of its training."""
        return {"best_epoch": result.best_epoch, "history": result.history}

    def model(
        self,
        data: Any,
        structure: Any,
        predictor: Predictor,
        temperature: float,
        signature: str,
        about: dict[str, Any],
    ) -> Any:
        """What is left when training is over."""
        raise NotImplementedError


def train(
    task: Task,
    data: Any,
    learner: Any = None,
    params: Mapping[str, Any] | None = None,
    *,
    epochs: int | None = None,
    seed: int = 1,
    shuffle: bool = True,
    start: np.ndarray | None = None,
    dev: Any = None,
    stopping: Stopping | None = None,
    on_event: Sequence[Callable[[Event], None]] = (),
    trace: bool = False,
    checkpoints: Checkpoints | None = None,
    resume: bool = False,
    pieces: int = 1,
    by_content: bool | None = None,
    by_block: bool | None = None,
    n_jobs: int = 1,
    dtype: Any = np.float32,
    shards: int | Shards | None = None,
    calibrate: bool = True,
    on_calibration: Callable[[], None] | None = None,
    final: bool = False,
    instrument: Instrument | None = None,
) -> Trained:
    """Train a model, whatever the task, online or in batch.

    Parameters
    ----------
    task : Task
        What is learned, with its options.
    data : dataset
        What it is learned from.
    learner : str or Learner, optional
        Name of a recipe of the task, or a learner that has been built.
    params : mapping, optional
        Parameters of the recipe to replace.
    epochs : int, optional
        Passes over the data, as many as the task says unless said. For a batch learner the most
        iterations; by default it goes on until it has settled.
    seed, shuffle, pieces, by_content, by_block
        The order of the data; see :class:`hopefear.training.passes.Passes`.
    dev : dataset, optional
        Held-out data in the same features, scored after each pass.
    stopping : Stopping, optional
        When to stop on those scores; the best model is kept.
    start : float array, optional
        Weights of all coordinates that a batch learner starts from.
    n_jobs : int
        Threads for evaluation and batch learners; the model does not depend on it.
    on_event, trace, checkpoints, resume, dtype
        As in :func:`hopefear.training.loop.fit`.
    shards : int or Shards, optional
        Learn on so many shards of the data side by side, merged after every epoch unless told; see
        :class:`hopefear.training.shards.Shards`.
    calibrate : bool
        False: no temperature is fitted, and scores count as log probabilities as they are.
    on_calibration : callable, optional
        Called when the temperature is about to be fitted.
    final : bool
        Nobody will go on with the trainer, so that its books may go before the model is made.
    instrument : callable, optional
        Makes the trainer of structure, learner and passes: one that learns the same weights, and
        measures while it does.
    """
    same: dict[str, Any] = {"learner": learner, "params": params, "epochs": epochs, "seed": seed}
    same |= {"shuffle": shuffle, "start": start, "by_content": by_content, "by_block": by_block}
    same |= {"n_jobs": n_jobs, "dtype": dtype, "shards": shards}
    again = partial(train, task, **same, calibrate=False, final=True)
    task.check(data, dev)
    by_content = task.by_content if by_content is None else by_content
    passes = Passes(task.prepared(data), seed, shuffle, pieces, by_content, by_block)
    name, build, parameters = builder(task, learner, params or {}, data)
    structure, learner = task.composed(passes, build, parameters)
    task.check_together(structure, learner, data)
    if start is not None and not learner.batch:
        raise HopefearError(
            f"{name} learns online, and only batch learners start from given weights; "
            f"{batch_learners(task.name)}"
        )
    if learner.batch and epochs is not None:
        learner = replace(learner, max_iter=epochs)
    if epochs is None and not learner.batch:
        epochs = getattr(learner, "epochs", None) or task.usual_epochs(data)
    if stopping is not None:
        stopping.suit(learner, epochs or learner.max_iter)
        stopping.check(task.score_names(data))
    length = {} if epochs is None else {"epochs": epochs}
    shards = None if shards is None else Shards.of(shards)
    split = {} if shards is None else shards.words(learner)
    if shards is not None:
        passes.cut(shards.n)  # which blocks there are is part of what is learned
    origin = None if start is None else fingerprint(np.asarray(start, np.float64).tobytes())
    more = {
        "start": origin,
        "dtype": None if np.dtype(dtype) == np.float32 else np.dtype(dtype).name,
        "shuffle": None if shuffle else "false",
        "by_content": None if by_content == task.by_content else str(by_content).lower(),
        # One block is shuffled as the whole is.
        "by_block": "true" if passes.by_block and passes.n_pieces > 1 and shuffle else None,
        "data": data.digest[:8],
        "dev": None if dev is None else dev.digest[:8],
        "stopping": None if stopping is None else f"{stopping.metric},{stopping.patience}",
        "temperature": None if calibrate else "none",
    }
    signature = learner.signature(
        **task.words(data),
        **length,
        seed=seed,
        **split,
        **{k: v for k, v in more.items() if v is not None},
    )
    identity = {
        "data": data.digest,
        **task.identity(data, structure),
        "instrument": instrument is not None,
        "shuffle": shuffle,
        "pieces": passes.n_pieces,
        "by_content": by_content,
        "by_block": passes.by_block,
        "dev": None if dev is None else dev.digest,
        "stopping": None if stopping is None else [stopping.metric, stopping.patience],
        "start": origin,
        "signature": signature,  # last: what it says at length is said better above
    }
    trim()
    trainer = None if instrument is None else instrument(structure, learner, passes)
    if trainer is not None and checkpoints is not None:
        trainer.arrays()  # what cannot be saved is refused now, not after the first pass
    if shards is not None:
        if trainer is not None:
            raise HopefearError(
                "shards are learners of their own, and an instrument such as --bounds measures "
                "one that sees all examples in a row; leave out one of the two"
            )
        order = {"by_content": by_content, "dtype": dtype}
        trainer = shards.trainer(structure, learner, passes, **order)
    result = fit(
        structure,
        learner,
        passes,
        epochs=epochs,
        dtype=dtype,
        evaluate=None if dev is None else task.evaluator(structure, data, dev, n_jobs),
        stopping=stopping,
        on_event=on_event,
        trace=trace,
        checkpoints=checkpoints,
        resume=resume,
        identity=identity,
        start=start,
        n_jobs=n_jobs,
        trainer=trainer,
        final=final,
    )
    task.review(data, result)
    if final:
        result.trainer.forget()
        trim()
    temperature = 1.0
    if calibrate and task.needs_temperature(learner, result.predictor):
        if on_calibration is not None:
            on_calibration()
        temperature = task.fitted_temperature(structure, result.predictor, data, dev, n_jobs, again)
    about = {
        "learner": name,
        "update_on": learner.update_on,
        "parameters": parameters_by_part(learner),
        "epochs": epochs,
        "seed": seed,
        "data": {
            "source": os.path.basename(data.source),
            "digest": data.digest,
            **task.facts(data),
        },
        "training": task.summary(result),
    }
    # Parts and tables are no text; what is, a loaded estimator has again.
    if given := {k: v for k, v in (params or {}).items() if isinstance(v, str | int | float)}:
        about["given"] = given
    if split:
        about["shards"] = split
    model = task.model(data, structure, result.predictor, temperature, signature, about)
    return Trained(model, learner, result, stopping)


def begin(
    task: Task, data: Any, learner: str, params: Mapping[str, Any]
) -> tuple[Any, OnlineTrainer]:
    """A model that knows nothing yet, and what will teach it, for a stream that begins with data.

    What is ``"auto"`` is measured on that data, and its features are those of the model.
    """
    name, build, parameters = builder(task, learner, params, data)
    passes = Passes(task.prepared(data), shuffle=False)
    structure, parts = task.composed(passes, build, parameters)
    if parts.batch or hasattr(parts, "trainer"):
        raise HopefearError(
            f"{name} learns from all data at once, so it has no partial_fit; use fit, or "
            "an online learner such as 'perceptron'"
        )
    task.check_together(structure, parts, data)
    trainer = OnlineTrainer(structure, parts)
    about = {
        "learner": name,
        "update_on": parts.update_on,
        "parameters": parameters_by_part(parts),
        # How much of it there will be, nobody knows.
        "data": {"source": "stream"}
        | {key: n for key, n in task.facts(data).items() if key.endswith("features")},
    }
    signature = parts.signature(**task.words(data))
    return task.model(data, structure, trainer.predictor(), 1.0, signature, about), trainer


def builder(
    task: Task, learner: Any, params: Mapping[str, Any], data: Any
) -> tuple[str, Callable[[Scale], Any], Mapping[str, Any]]:
    """Name of a learner, how it is built for data of some scale, and its parameters."""
    if learner is None or isinstance(learner, str):
        name = learner or TASKS[task.name].learner
        parameters, table = task.parameters(params, name, data), recipe(name, task.name)
        return name, lambda scale: table.build(scale, **parameters), parameters
    if params:
        raise HopefearError(
            f"parameters {', '.join(params)} are for a recipe, and the learner is built already; "
            "give the name of a recipe, or no parameters"
        )
    return part_name(type(learner.loss)), lambda scale: learner, {}


def batch_learners(task: str) -> str:
    """Which learners of a task work in batch, as a remedy."""
    names = [name for name, one in recipes_of(task).items() if one.build().batch]
    return f"use {' or '.join(names)}" if names else f"the task {task} has none"


def fingerprint(content: bytes) -> str:
    """What signatures say of what is too long for them.

    >>> fingerprint(b"")
    'e3b0c442'
    """
    return hashlib.sha256(content).hexdigest()[:8]


def cut(items: Any, starts: np.ndarray) -> list[Any]:
    """One stretch for each list or sequence.

    >>> cut("abc", np.array([0, 1, 3]))
    ['a', 'bc']
    """
    return [items[a:b] for a, b in pairwise(starts.tolist())]


def best_of(log_likelihood: Callable[[float], float], tolerance: float = 1e-6) -> float:
    """The temperature of highest likelihood, its logarithm within ``tolerance``.

    It is 1 where the data has no best one, as when everything is right at any temperature.
    """
    if log_likelihood(1.0) == 0.0:  # everything is certain, or nothing is known
        return 1.0
    best = best_temperature(log_likelihood, tolerance=tolerance)
    return 1.0 if best.at_bound else float(best.value)


def needs_temperature(learner: Any, predictor: Predictor) -> bool:
    """Whether scores must be scaled before they can pass for log probabilities."""
    return predictor.keeps_scale and not learner.loss.probabilistic()


_NONE = type(None)
# What a header may say of the making of a model, where it says it at all.
_ABOUT: Mapping[str, Mapping[str, tuple[type, ...]]] = {
    "": {
        **dict.fromkeys(("data", "training", "reading", "estimator", "parameters"), (dict,)),
        **dict.fromkeys(("given", "config"), (dict,)),
        **{
            "learner": (str,),
            "nb_share": (float,),
            "norm": (str,),
            "label_kind": (str,),
            "feature_names": (list, _NONE),
        },
    },
    "data": dict.fromkeys(("features", "examples", "lists", "tokens", "candidates"), (int,)),
    "training": {**dict.fromkeys(("last_nnz", "best_epoch"), (int, _NONE)), "history": (list,)},
    "reading": {
        **dict.fromkeys(("column", "scheme", "trained_scheme", "tagger"), (str, _NONE)),
        **{"format": (str,), "dedup": (str,), "records": (bool,), "columns": (list, _NONE)},
    },
    "estimator": {
        **{"columns": (list, _NONE), "labels": (str, _NONE), "scheme": (str, _NONE)},
        "records": (str, bool, _NONE),
    },
}


def _check_about(about: Mapping[str, Any]) -> None:
    """ModelError where what is said of the making of a model is not of the usual types."""
    for section, types in _ABOUT.items():
        part = about.get(section, {}) if section else about
        for name in part.keys() & types.keys():
            value = field_of(part, name, *types[name])
            listed = value if name in ("columns", "feature_names") else None
            if not all(type(each) is str for each in listed or ()):
                raise ModelError(f"{name} is {value!r:.60}, not a list of names")
    for event in about.get("training", {}).get("history", ()):
        field_of(event, "epoch", int)
        field_of({"dev": {}, **event}, "dev", dict)


class Model:
    """A model of a task: predictor, feature map, signature and what its file says of its making.

    Subclasses are dataclasses with at least these fields. They write what their header has beside
    the common part, and how to get a model from it.
    """

    task: ClassVar[str]
    predictor: Any
    features: Any
    signature: Any
    about: Any

    def __repr__(self) -> str:
        learner = self.about.get("learner", "")
        return (
            f"<{type(self).__name__} {learner}: {self.features.size:,} features, "
            f"{self.nnz:,} weights other than 0>"
        )

    def _repr_html_(self) -> str:
        from hopefear.report.notebook import model_html

        return model_html(self)

    @property
    def nnz(self) -> int:
        """Number of non-zero weights."""
        return self.predictor.nnz

    @property
    def weights(self) -> np.ndarray:
        """All weights, in the coordinates of the structure."""
        self.check_linear()
        return self.predictor.weights

    def check_linear(self) -> None:
        """Refuse to speak of the weights of votes, or of networks."""
        if not self.predictor.linear:
            raise HopefearError(self.predictor.no_weights)

    def heaviest(
        self, start: int, shape: tuple[int, ...]
    ) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        """Places and values of the weights of a table, heaviest first, either sign.

        The table has this shape and begins at coordinate ``start``; zeros are left out.
        """
        self.check_linear()
        places, weights = self.predictor.block(start, shape)
        order = np.argsort(-np.abs(weights), kind="stable")
        return tuple(place[order] for place in places), weights[order]

    def heaviest_rows(
        self, shape: tuple[int, int], n: int, sign: float
    ) -> list[list[tuple[int, float]]]:
        """The n heaviest weights of this sign in each column of a table at coordinate 0, by row."""
        (rows, columns), weights = self.heaviest(0, shape)
        kept = np.flatnonzero(sign * weights > 0.0)
        kept = kept[np.argsort(columns[kept], kind="stable")]
        cuts = np.searchsorted(columns[kept], np.arange(shape[1] + 1))
        return [
            list(zip(rows[some].tolist(), weights[some].tolist(), strict=True))
            for some in (kept[a:b][:n] for a, b in pairwise(cuts))
        ]

    @property
    def compact(self) -> Any:
        """The same model without what its file need not hold."""
        return self

    def own_header(self) -> dict[str, Any]:
        """What only this task's header has."""
        raise NotImplementedError

    @classmethod
    def from_header(
        cls,
        header: Mapping[str, Any],
        features: Mapping[str, np.ndarray],
        arrays: Mapping[str, np.ndarray],
        **common: Any,
    ) -> Any:
        """A model from what is not trusted; ``common`` has the signature and ``about``."""
        raise NotImplementedError

    def check(self) -> None:
        """Refuse parts that do not fit together."""
        raise NotImplementedError

    def check_size(self, n: int, fits: bool = True) -> None:
        """The predictor must be one of ``n`` coordinates."""
        if not fits or not self.predictor.fits(n):
            raise ModelError(f"the model's parts do not fit together: {n} coordinates expected")

    def check_network(self, kind: str, head: str, labels: int) -> None:
        """A network and a map of the ids it reads, which is of this kind, come together or not."""
        network = hasattr(self.predictor, "misfit")
        if network != (self.features.kind == kind):
            raise ModelError("the model's parts do not fit together: networks read ids of tokens")
        if network and (reason := self.predictor.misfit(head, labels, self.features)):
            raise ModelError(f"the model's parts do not fit together: {reason}")

    def to_bytes(self) -> bytes:
        """The model file, in memory."""
        return storage.pack(self._header(), self._arrays(), kind="model", finite=self._finite())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one file, atomically; the same model gives the same bytes."""
        storage.save(path, "model", self._header(), self._arrays(), finite=self._finite())

    @classmethod
    def from_bytes(cls, data: bytes | memoryview) -> Any:
        """The model that :meth:`to_bytes` gave."""
        return cls.from_file_parts(*storage.unpack(data, kind="model"))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Any:
        """Read a model file; any changed byte is refused."""
        return cls.from_file_parts(*storage.load(path, "model"))

    def _finite(self) -> list[str]:
        return [name for name, array in self._arrays().items() if array.dtype.kind == "f"]

    def _header(self) -> dict[str, Any]:
        return {
            "task": self.task,
            **self.own_header(),
            "features": self.compact.features.to_header(),
            "signature": self.signature,
            "about": dict(self.about),
        }

    def _arrays(self) -> dict[str, np.ndarray]:
        model = self.compact
        named = {f"features.{name}": array for name, array in model.features.arrays().items()}
        return {**model.predictor.arrays(), **named}

    @classmethod
    def from_file_parts(cls, header: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
        """A model from what its file holds; nothing in it is trusted."""
        if header.get("task") != cls.task:
            raise ModelError(
                f"expected a model for the task {cls.task!r}, found {header.get('task')!r:.60}"
            )
        features = {
            name.removeprefix("features."): array
            for name, array in arrays.items()
            if name.startswith("features.")
        }
        with untrusted("the model's header"):
            signature, about = field_of(header, "signature", str), field_of(header, "about", dict)
            _check_about(about)
            common = {"signature": signature, "about": about}
            model = cls.from_header(header, features, arrays, **common)
            model.check()
        return model

"""What is learned from, as every task prepares it, and how a run learns from it.

There is one way in. A task brings ``tasks/TASK/prepare.py`` with

    def prepare(examples, options) -> Prepared

*Examples* are columnar, whatever they came from: readers of files make them, and the task's
estimator reads Python objects into the same thing. *Options* are the parameters of the estimator by
name (`Options`), so that the command line, ``fit``, streams, caches, comparisons and searches
prepare alike. What is probably not as it was meant (mended labels, labels that training lacked) is
a :class:`~hopefear.errors.DataWarning`; other things worth knowing are `Prepared.messages`.
Nothing is printed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from hopefear.core.checks import check_fraction
from hopefear.errors import HopefearError
from hopefear.tasks.base import Instrument, Task, Trained, train
from hopefear.training.checkpoints import Checkpoints
from hopefear.training.loop import Event
from hopefear.training.stopping import Stopping

# Parameters of an estimator by name. Those of its learner stand under ``params``, ``random_state``
# is a whole number, and what is missing has its usual value.
Options = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """Examples in the features and labels of a task; a task inherits from it.

    Parameters
    ----------
    task : Task
        What is learned, with its options.
    data : dataset
        What it is learned from.
    stop_on : str
        The score on held-out data that chooses the epoch.
    reading : mapping, optional
        What a model must know to read more of this; it goes into its file.
    messages : sequence of str
        What was decided, or is of no use; lines on the console and a field of ``--json``.
    """

    unit: ClassVar[str] = "examples"  # in messages
    task: Task
    data: Any
    stop_on: str = ""
    reading: Mapping[str, Any] | None = None
    messages: Sequence[str] = ()

    def sizes(self) -> dict[str, Any]:
        """How much there is, by name."""
        return {"examples": len(self.data), "features": self.data.features.size}

    def held_out(self, examples: Any) -> Any:
        """Returns a dataset of other examples, in the same features and labels."""
        raise NotImplementedError

    def split(self, fraction: float, seed: int) -> tuple[Self, Any]:
        """Returns the same without a part of the examples, and the dataset of that part."""
        rest, part = held_out(len(self.data), fraction, seed, self.unit)
        return replace(self, data=self.data.take(rest)), self.data.take(part)

    def folds(self, k: int, seed: int) -> Iterator[tuple[Self, Any]]:
        """Yields the same without each of k parts, and the dataset of that part."""
        for rest, part in folds(len(self.data), k, seed):
            yield replace(self, data=self.data.take(rest)), self.data.take(part)

    def for_learner(self, name: str, params: Mapping[str, Any]) -> Prepared:
        """Returns the same in the features that a learner reads."""
        return self

    def rival(self) -> Prepared | None:
        """Returns the same in fewer columns, where held-out data is to choose between the two."""
        return None

    def alone(self) -> Self:
        """Returns the same for a process elsewhere, which reads no more examples."""
        return self

    def judge(self, model: Any, test: Any, n_jobs: int = 1) -> tuple[dict[str, float], Any]:
        """Returns scores of a model, and the statistics of every example, for significance."""
        raise NotImplementedError

    def tester(self) -> Any:
        """Returns the metric that makes the score that matters of summed statistics."""
        raise NotImplementedError


@dataclass(frozen=True)
class Run:
    """What a run has beside its parameters: who watches, where it is saved, what comes after it.

    Parameters
    ----------
    on_event, trace, checkpoints, resume, pieces, on_calibration, final, instrument, start
        As in :func:`hopefear.tasks.base.train`.
    watched : dataset, optional
        Data that is scored after every epoch where nothing is held out; it chooses nothing.
    """

    on_event: Sequence[Callable[[Event], None]] = ()
    trace: bool = False
    checkpoints: Checkpoints | None = None
    resume: bool = False
    pieces: int = 1
    on_calibration: Callable[[], None] | None = None
    final: bool = False
    instrument: Instrument | None = None
    start: np.ndarray | None = None
    watched: Any = None


def learn(prepared: Prepared, options: Options, dev: Any = None, run: Run | None = None) -> Trained:
    """Returns what a learner makes of prepared data: the one way that all callers learn.

    Parameters
    ----------
    prepared : Prepared
        The data, and what is learned.
    options : mapping
        Learner, epochs and all else that the estimator has parameters for.
    dev : dataset, optional
        Held-out data, which chooses the epoch.
    run : Run, optional
        What else there is to the run.
    """
    run = Run() if run is None else run
    watching = {field.name: getattr(run, field.name) for field in fields(run)}
    watched, stopping = watching.pop("watched"), None
    if dev is not None:
        stopping = Stopping(prepared.stop_on, options.get("patience"))
    trained = train(
        prepared.task,
        prepared.data,
        options.get("learner"),
        options.get("params"),
        epochs=options.get("epochs"),
        seed=options.get("random_state", 1),
        shuffle=options.get("shuffle", True),
        dev=watched if dev is None else dev,
        stopping=stopping,
        by_block=options.get("by_block") or None,
        n_jobs=options.get("n_jobs") or 1,
        shards=options.get("shards"),
        calibrate=options.get("temperature", True),
        **watching,
    )
    if prepared.reading is None:
        return trained
    about = {**trained.model.about, "reading": prepared.reading}
    return replace(trained, model=replace(trained.model, about=about))


def held_out(n: int, fraction: float, seed: int, what: str) -> tuple[np.ndarray, np.ndarray]:
    """``(rest, held out)``: numbers of examples, drawn at random, in rising order.

    >>> [part.tolist() for part in held_out(5, 0.4, 1, "lists")]
    [[1, 2, 3], [0, 4]]
    """
    check_fraction("validation_fraction", fraction)
    size = round(n * fraction)
    if not 0 < size < n:
        raise HopefearError(
            f"validation_fraction={fraction} of {n} {what} leaves none on one side; give X_val and "
            "y_val, or another fraction"
        )
    order = np.random.default_rng(seed).permutation(n)
    return np.sort(order[size:]), np.sort(order[:size])


def folds(n: int, k: int, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Returns ``(rest, part)`` for each of k parts: numbers of examples, in rising order.

    >>> [part.tolist() for _, part in folds(5, 2, 1)]
    [[1, 3, 4], [0, 2]]
    """
    if not 2 <= k <= n:
        raise HopefearError(f"{n} examples cannot be dealt to {k} folds; give 2 or more")
    order = np.random.default_rng(seed).permutation(n)
    parts = [np.sort(order[i::k]) for i in range(k)]
    return [(np.setdiff1d(np.arange(n), part), part) for part in parts]

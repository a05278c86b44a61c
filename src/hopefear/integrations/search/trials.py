"""One trial: a learner with some parameters, trained and scored epoch by epoch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hopefear.recipes.spaces import Dimension
from hopefear.tasks.base import train
from hopefear.tasks.prepare import folds as parts
from hopefear.training.stopping import Stopping, sign_of

_PIECES = 20  # of an epoch, between which interrupts are checked


class Split(NamedTuple):
    """Training data, and the data that a trial is scored on."""

    data: Any
    dev: Any


@dataclass(frozen=True)
class Candidate:
    """A learner and the space of its parameters.

    Parameters
    ----------
    label, learner : str
        What it is called here, and the name of its recipe.
    task : Task
        What is learned.
    splits : sequence of Split
        Data in the features that this learner reads; one split, or one for each fold.
    space : mapping of str to Dimension
        What is tried.
    defaults : mapping of str to value
        The defaults of what is tried, which are tried first.
    fixed : mapping
        Parameters that stay as they are.
    """

    label: str
    learner: str
    task: Any
    splits: Sequence[Split]
    space: Mapping[str, Dimension]
    defaults: Mapping[str, Any]
    fixed: Mapping[str, Any]


@dataclass(frozen=True)
class Plan:
    """Settings of training and scoring that all trials share, so that they are comparable."""

    metric: str
    epochs: int | None = None
    patience: int | None = None
    seed: int = 1
    shuffle: bool = True
    n_jobs: int = 1


class Measure(NamedTuple):
    """Result of a trial at its best epoch."""

    quality: float
    nonzeros: int
    seconds: float  # of learning, up to that epoch
    epochs: int
    curve: list[float]  # quality after each epoch


def measure(
    candidate: Candidate,
    params: Mapping[str, Any],
    plan: Plan,
    see: Callable[[int, int, float], None],
) -> Measure:
    """Trains and scores; of folds the mean.

    Parameters
    ----------
    candidate, params, plan
        The learner, what is tried of its parameters, and how it is trained.
    see : callable
        Gets fold, epoch and score after every epoch; it may raise to end the trial.
    """
    runs = []
    for k, split in enumerate(candidate.splits):
        events: list[dict[str, Any]] = []

        def follow(event: dict[str, Any], k: int = k, events: list[Any] = events) -> None:
            if "dev" in event:
                events.append(event)
                see(k, int(event["epoch"]), event["dev"][plan.metric])

        train(
            candidate.task,
            split.data,
            candidate.learner,
            {**candidate.fixed, **params},
            epochs=plan.epochs,
            seed=plan.seed,
            shuffle=plan.shuffle,
            dev=split.dev,
            stopping=Stopping(plan.metric, plan.patience),
            on_event=[follow],
            pieces=_PIECES,
            n_jobs=plan.n_jobs,
            calibrate=False,
            final=True,
        )
        runs.append(events)
    return _summed(runs, plan.metric)


def _summed(runs: Sequence[Sequence[Mapping[str, Any]]], metric: str) -> Measure:
    """Returns the best epoch of those that all runs have made, by the mean of their scores."""
    epochs = list(zip(*runs, strict=False))
    curve = [sum(e["dev"][metric] for e in events) / len(runs) for events in epochs]
    best = int(np.argmax([sign_of(metric) * score for score in curve]))
    seconds = [_learning_time([e["seconds"] for e in run], best + 1) for run in runs]
    nonzeros = sum(event["kept_nnz"] for event in epochs[best]) / len(runs)
    return Measure(curve[best], round(nonzeros), sum(seconds) / len(runs), best + 1, curve)


def _learning_time(times: list[float], epochs: int) -> float:
    """Seconds of the first epochs; the first may have waited for the compiler, no later one does.

    >>> _learning_time([9.0, 1.0, 2.0], 2)
    3.0
    """
    first = min(times[0], max(times[1:], default=times[0]))
    return first + sum(times[1:epochs])


def folds(data: Any, k: int, seed: int) -> list[Split]:
    """Deals the examples to k parts; each is held out once.

    Examples
    --------
    >>> from hopefear.data.generators import sparse_linear
    >>> data = sparse_linear(10, 40, per_row=(5, 10), true_weights=10, seed=1).dataset()
    >>> [(len(split.data), len(split.dev)) for split in folds(data, 3, seed=1)]
    [(6, 4), (7, 3), (7, 3)]
    """
    splits = parts(len(data), k, seed)
    return [Split(data.take(learned), data.take(part)) for learned, part in splits]

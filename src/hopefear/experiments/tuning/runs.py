"""One run: a tuner with one seed, what it was worth after each round, and what it chose."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hopefear.errors import HopefearError
from hopefear.experiments.common.translations import METRIC
from hopefear.experiments.tuning.plan import TIMES, Entry
from hopefear.experiments.tuning.problems import Watched
from hopefear.recipes.scales import scale_of
from hopefear.translation.recipes import TUNE_RECIPES

_FEW = 8


@dataclass(frozen=True)
class Run:
    """What one seed came to.

    Parameters
    ----------
    rounds : dict of str to list of float
        BLEU of the tuning lists (``train``), of held-out ones (``dev``) and of each test set after
        each round.
    kept : int
        The round the weights are from, from 1; 0 for the weights at the start.
    scores : dict of str to float
        BLEU of the weights that were kept, by set.
    seconds, each : float
        CPU seconds of tuning, looks at the tests taken off; least seconds of a round.
    nnz : int
        Weights that are not 0.
    choices : dict of str to list of int
        Numbers of the candidates chosen from each test set.
    refused : str
        Why the tuner would not do it, where it would not.
    """

    signature: str = ""
    rounds: dict[str, list[float]] = field(default_factory=dict)
    kept: int = 0
    scores: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    each: float = 0.0
    nnz: int = 0
    choices: dict[str, list[int]] = field(default_factory=dict)
    refused: str = ""


def signature(entry: Entry, params: Mapping[str, Any], problem: Watched, seed: int) -> str:
    """Exactly what a run would be."""
    return str(built(entry, params, problem).signature(seed=seed))


def built(entry: Entry, params: Mapping[str, Any], problem: Watched) -> Any:
    """The tuner; a parameter such as ``3×`` is so many times what the data's scale suggests."""
    recipe, scale = TUNE_RECIPES[entry.recipe], scale_of(problem.data)
    values = {
        key: float(value[:-1]) * recipe.auto(scale)
        if isinstance(value, str) and value.endswith(TIMES)
        else value
        for key, value in params.items()
    }
    return recipe.build(scale, **values)


def warm(entry: Entry, params: Mapping[str, Any], problem: Watched) -> None:
    """Compile what a run needs, on a few lists, so that no run pays for it."""
    few = problem.data.take(np.arange(min(_FEW, len(problem.data))))
    dev = None if problem.dev is None else problem.dev.take(np.arange(min(_FEW, len(problem.dev))))
    with contextlib.suppress(HopefearError):
        built(entry, params, problem).tune(replace(problem, data=few, dev=dev, tests={}, spent=[]))


def run(
    entry: Entry, params: Mapping[str, Any], problem: Watched, seed: int, tested: bool = True
) -> Run:
    """Tune; without ``tested`` nobody looks at test lists."""
    watched = replace(problem, tests=problem.tests if tested else {}, spent=[])
    tuner = built(entry, params, problem)
    warm(entry, params, problem)
    name = str(tuner.signature(seed=seed))
    began = time.process_time()
    try:
        tuned = tuner.tune(watched, seed=seed)
    except HopefearError as error:
        return Run(name, refused=str(error))
    seconds = time.process_time() - began - sum(watched.spent)
    main, history = METRIC.main, tuned.history
    rounds: dict[str, list[float]] = {
        where: [float(event[where][main]) for event in history]
        for where in ("train", "dev")
        if history and where in history[0]
    }
    rounds |= {test: [event["tests"][test] for event in history] for test in watched.tests}
    last = watched.report(tuned.weights)
    scores: dict[str, float] = {
        where: float(last[where][main]) for where in ("train", "dev") if where in last
    }
    kept = tuned.best_epoch if tuned.best_epoch is not None else len(history)
    return Run(
        name,
        rounds,
        int(kept),
        {**scores, **last["tests"]},
        seconds,
        min((float(event["seconds"]) for event in history), default=0.0),
        int(np.count_nonzero(tuned.weights)),
        {
            test: watched.choice(tuned.weights, lists).tolist()
            for test, lists in watched.tests.items()
        },
    )


def val_score(found: Run) -> float:
    """BLEU on val, whether tuning was on it or beside it."""
    return found.scores.get("dev", found.scores["train"])


def best_so_far(found: Run) -> dict[str, list[float]]:
    """Rounds as a user who stops there would have them: of the best on val until then.

    >>> best_so_far(Run(rounds={"train": [2.0, 1.0, 3.0], "test_2016": [5.0, 6.0, 4.0]}))
    {'train': [2.0, 2.0, 3.0], 'test_2016': [5.0, 5.0, 4.0]}
    """
    judged = found.rounds.get("dev", found.rounds["train"])
    best = [int(np.argmax(judged[: k + 1])) for k in range(len(judged))]
    return {where: [values[k] for k in best] for where, values in found.rounds.items()}

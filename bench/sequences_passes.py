"""Our side of sequences.py: CPU seconds of passes and of batch gradients, kernels compiled before.

A pass is what CRFsuite's own clock holds: shuffling, searching and moving. What it also does at the
end of every pass, reading the average out, we do once a run; ``average`` is timed on its own.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from hopefear.data.sequences import SequenceDataset
from hopefear.recipes import Scale
from hopefear.structures.chain.likelihood import CRFObjective
from hopefear.structures.chain.searches import search_named
from hopefear.tasks import recipe
from hopefear.tasks.tag.model import chain_of
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes

LEARNERS: dict[str, dict[str, Any]] = {
    "perceptron": {},
    "mira": {},
    "sapo": {"n": 5},
    "nbest-mira": {"n": 5},
    "crf": {},
    "swvp": {},
    "vrda": {},
    "arow": {},
}
EVALUATIONS = 5  # of a gradient or of tagging, in a row: the first finds colder caches


def structure(data: SequenceDataset) -> Any:
    """The chain as training uses it: no limits, A* where there are lists."""
    return chain_of(data.features, data.labels, 1, search_named("astar", 50))


def trainer(data: SequenceDataset, name: str, params: Mapping[str, Any]) -> OnlineTrainer:
    learner = recipe(name, "tag").build(Scale(n=len(data)), **params)
    return OnlineTrainer(structure(data), learner)


def passes(data: SequenceDataset, name: str, n: int) -> np.ndarray:
    """CPU seconds of every pass of a run from zero, and behind them of reading it out."""
    tagger_trainer, order = trainer(data, name, LEARNERS[name]), Passes(data, seed=1)  # type: ignore[arg-type]
    seconds = []
    for epoch in range(n):
        start = time.process_time()
        for rows, piece in order.pieces(epoch):
            tagger_trainer.learn(rows, piece)
        seconds.append(time.process_time() - start)
    start = time.process_time()
    tagger_trainer.predictor()
    return np.array([*seconds, time.process_time() - start])


def warm(data: SequenceDataset, name: str) -> None:
    """Compile what a learner needs, or load it from disk."""
    passes(data.take(np.arange(min(2, len(data)))), name, 1)


def pass_tasks(data: SequenceDataset, names: list[str], n: int) -> dict[str, Any]:
    for name in names:
        warm(data, name)
    return {f"pass {name}": lambda name=name: passes(data, name, n) for name in names}


def gradient_tasks(data: SequenceDataset) -> dict[str, Any]:
    """Rows (CPU, wall-clock) seconds of single evaluations, with one thread and with two."""
    return {f"gradient {jobs}": gradient_task(data, jobs) for jobs in (1, 2)}


def gradient_task(data: SequenceDataset, jobs: int) -> Any:
    objective = CRFObjective(structure(data), data.rows, n_jobs=jobs)
    w = np.random.default_rng(1).normal(scale=0.1, size=objective.n)
    objective(w)

    def task() -> np.ndarray:
        times = []
        for _ in range(EVALUATIONS):
            cpu, wall = time.process_time(), time.perf_counter()
            objective(w)
            times.append([time.process_time() - cpu, time.perf_counter() - wall])
        return np.array(times)

    return task

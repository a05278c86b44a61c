"""Passes of reranking.py: CPU seconds of learners, and of what no learner can do without.

The yardstick is the score of every candidate by SciPy, ``X @ w`` in 32 bits: it reads each value
once, as a pass does, and runs on the machine of the moment, which the peer's program does not.
"""

from __future__ import annotations

import time
from typing import Any

import common
import numpy as np
from scipy.sparse import csr_matrix

from hopefear.data.lists.dataset import ListDataset
from hopefear.recipes.scales import scale_of
from hopefear.structures.nbest import NBest
from hopefear.tasks import recipe
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes

NAMES = "perceptron vrda tg maxent mira nbest-mira risk adagrad-rda arow"
LEARNERS = tuple(NAMES.split())


def tasks(where: str, data: ListDataset, passes: int) -> dict[str, Any]:
    """Passes of all learners and the yardstick, by name; the names end in ``where``."""
    few, scale = data.take(np.arange(min(4, len(data)))), scale_of(data)
    for name in LEARNERS:
        run(few, name, scale, 1)  # compiles what is not on disk yet
    X = matrix(data)
    w = np.random.default_rng(1).normal(size=X.shape[1]).astype(np.float32)

    def yardstick() -> np.ndarray:
        return np.array([common.cpu_seconds(lambda: X @ w) for _ in range(passes)])

    tasks_by_name: dict[str, Any] = {f"yardstick {where}": yardstick}
    for name in LEARNERS:
        tasks_by_name[f"{name} {where}"] = lambda name=name: run(data, name, scale, passes)
    return tasks_by_name


def run(data: ListDataset, name: str, scale: Any, n: int) -> np.ndarray:
    """CPU seconds of every pass of a run from zero; shuffling, scoring and moving."""
    learner = recipe(name, "rerank").build(scale)
    trainer = OnlineTrainer(NBest(data.features.size), learner)
    order = Passes(data, seed=1)  # type: ignore[arg-type]
    seconds = []
    for epoch in range(n):
        start = time.process_time()
        for rows, piece in order.pieces(epoch):
            trainer.learn(rows, piece)
        seconds.append(time.process_time() - start)
    return np.array(seconds)


def matrix(data: ListDataset) -> csr_matrix:
    """All candidates as rows, 32 bits throughout."""
    rows = data.rows
    ends = rows.indptr[rows.starts]
    indices = rows.columns + np.repeat(rows.scopes[:-1], np.diff(ends)).astype(np.int32)
    parts = rows.values, rows.features[indices], rows.indptr.astype(np.int32)
    return csr_matrix(parts, (data.n_candidates, data.features.size), copy=False)

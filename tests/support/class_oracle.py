"""Classes by enumeration: every class has its feature vector, written out in full."""

from __future__ import annotations

from typing import Any

import numpy as np
from chain_oracle import Force, force, replayed
from reference import Problem, Trace

from hopefear import testing
from hopefear.core.learner import Learner


class ClassWorld(testing.World):
    """One example under given weights; of classes that tie, gold is ranked last."""

    def __init__(self, structure: Any, problem: Problem, i: int, w: np.ndarray) -> None:
        rows = problem.rows
        super().__init__(testing.outputs_of(structure, rows, i), w, float(rows.weights[i]))


def replay_classes(structure: Any, learner: Learner, problem: Problem, order) -> Trace:
    """Train the oracle and keep a copy of its weights after every example."""

    def force_at(i: int, w: np.ndarray) -> Force:
        return force(learner.loss, ClassWorld(structure, problem, i, w))

    return replayed(learner, structure.n_coordinates(), order, force_at)

"""Classes by enumeration: every class has its feature vector, written out in full."""

from __future__ import annotations

from typing import Any

import numpy as np
from chain_oracle import Force, force, replayed
from reference import Problem, Trace, features

from hopefear.core.learner import Learner


class ClassWorld:
    """One example under given weights; of classes that tie, gold is ranked last."""

    def __init__(self, structure: Any, problem: Problem, i: int, w: np.ndarray) -> None:
        full = features(structure, problem.X[i])
        sides = np.eye(structure.n_labels())
        if type(structure).__name__ == "Binary":
            sides = np.array([[-0.5], [0.5]])
        self.F = np.array([np.outer(full, side).ravel() for side in sides])
        self.scores = self.F @ w
        self.gold = int(problem.rows.labels[i])
        self.rivals = np.arange(len(self.F)) != self.gold
        self.importance = float(problem.rows.weights[i])

    def ranked(self, by=None) -> list[int]:
        by = self.scores if by is None else by
        return sorted(range(len(by)), key=lambda c: (-by[c], c == self.gold, c))

    def costs(self, cost: Any) -> np.ndarray:
        return np.array([cost.price(self.gold, c) for c in range(len(self.F))])

    def top(self, n: int, ratio: float = 0.0) -> list[int]:
        best = self.ranked()[:n]
        least = self.scores[best[0]] - np.log(ratio) if ratio > 0 else -np.inf
        return [c for c in best if self.scores[c] >= least]

    def delta(self, c: int) -> np.ndarray:
        return self.F[self.gold] - self.F[c]

    def lead(self, c: int) -> float:
        return float(self.scores[self.gold] - self.scores[c])

    def best_rival(self) -> int:
        return next(c for c in self.ranked() if self.rivals[c])


def replay_classes(structure: Any, learner: Learner, problem: Problem, order) -> Trace:
    """Train the oracle and keep a copy of its weights after every example."""

    def force_at(i: int, w: np.ndarray) -> Force:
        return force(learner.loss, ClassWorld(structure, problem, i, w))

    return replayed(learner, structure.n_coordinates(), order, force_at)

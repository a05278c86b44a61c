"""Learners of classes, dense and never lazy, with a copy of the weights after every example.

Losses and rules as their papers write them are those of ``hopefear.testing``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.core.interfaces import n_weights
from hopefear.core.learner import Learner
from hopefear.data.sparse import SparseRows
from hopefear.testing.rules import dense_rule
from hopefear.testing.worlds import MARGIN_LOSSES
from hopefear.training.online import OnlineTrainer, read_last


class Problem(NamedTuple):
    """The same examples, sparse for the library and dense for the oracle."""

    rows: SparseRows
    X: np.ndarray


def frozen(rows: SparseRows) -> SparseRows:
    for array in rows:
        array.flags.writeable = False
    return rows


def sparse_problem(X, labels, weights=None, dtype=np.float64) -> Problem:
    """Rows of a dense matrix; zeros are left out."""
    X = np.asarray(X, dtype)
    weights = np.ones(len(X)) if weights is None else weights
    rows, columns = np.nonzero(X)
    indptr = np.zeros(len(X) + 1, np.int64)
    indptr[1:] = np.cumsum(np.bincount(rows, minlength=len(X)))
    sparse = SparseRows(
        indptr,
        columns.astype(np.int32),
        X[rows, columns],
        np.array(labels, np.int32),
        np.array(weights, dtype),
    )
    return Problem(frozen(sparse), X.astype(np.float64))


def random_problem(seed, n=60, d=12, classes=2, weighted=False, dtype=np.float64) -> Problem:
    """Noisy linear labels on sparse rows no longer than one, a few rows empty."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.35)
    X *= rng.uniform(0.6, 1, (n, 1)) / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-9)
    labels = (X @ rng.normal(size=(d, classes)) + 0.2 * rng.normal(size=(n, classes))).argmax(1)
    # Powers of two and zero: float32 holds them exactly.
    weights = rng.choice([0.0, 0.5, 1.0, 2.0], n) if weighted else None
    return sparse_problem(X, labels, weights, dtype)


def dense_loss(loss: Any):
    """(value, minus the derivative) at margin z."""
    return lambda z: MARGIN_LOSSES[type(loss).__name__](loss, z)


# --- the loop ------------------------------------------------------------------------------------


class Trace(NamedTuple):
    """What a dense run went through."""

    snapshots: np.ndarray  # weights after every example
    ended: np.ndarray  # weights that each tick ended, in order
    longest: float  # largest |g|
    mistakes: int
    updates: int
    ticks: int
    loss: float

    @property
    def average(self) -> np.ndarray:
        return self.snapshots.mean(axis=0)


def features(structure: Any, x: np.ndarray) -> np.ndarray:
    return np.append(x, structure.bias) if structure.bias else x


def scores(structure: Any, w: np.ndarray, x: np.ndarray) -> np.ndarray:
    """One score a class; two classes share one score with opposite signs."""
    full = features(structure, x)
    if type(structure).__name__ == "Binary":
        return np.array([-0.5, 0.5]) * (w @ full)
    return full @ w.reshape(full.size, structure.n_classes)


def pull(structure: Any, w: np.ndarray, x: np.ndarray, gold: int) -> tuple[float, np.ndarray]:
    """(margin over the best rival, features of gold minus features of that rival)."""
    theta, full = scores(structure, w, x), features(structure, x)
    others = [c for c in range(theta.size) if c != gold]
    rival = max(others, key=lambda c: (theta[c], -c))
    if type(structure).__name__ == "Binary":
        return theta[gold] - theta[rival], full * (1 if gold == 1 else -1)
    sides = np.zeros(theta.size)
    sides[gold], sides[rival] = 1, -1
    return theta[gold] - theta[rival], np.outer(full, sides).ravel()


def replay(structure: Any, learner: Learner, problem: Problem, order: np.ndarray) -> Trace:
    """Train the oracle and keep a copy of its weights after every example."""
    rule = dense_rule(learner.rule, n_weights(structure))
    loss = dense_loss(learner.loss)
    snapshots, ended, longest, mistakes, updates, total = [], [], 0.0, 0, 0, 0.0
    for i in order:
        importance = float(problem.rows.weights[i])
        z, direction = pull(structure, rule.w, problem.X[i], problem.rows.labels[i])
        value, force = (importance * part for part in loss(z))
        mistaken = z <= 0 and importance > 0
        mistakes, total = mistakes + mistaken, total + value
        if learner.update_on == "all" or (mistaken and force != 0):
            ended.append(rule.w.copy())
            rule.tick(force * direction, value, z)
            longest = max(longest, float(np.linalg.norm(force * direction)))
            updates += force != 0
        snapshots.append(rule.w.copy())
    return Trace(np.array(snapshots), np.array(ended), longest, mistakes, updates, rule.t, total)


def brute_votes(structure: Any, snapshots: np.ndarray, x: np.ndarray) -> np.ndarray:
    """How many of the stored weights predict each class; no score, no vote; ties go down."""
    counts = np.zeros(structure.n_labels)
    for w in snapshots:
        theta = scores(structure, w, x)
        if theta.any():
            counts[int(theta.argmax())] += 1
    return counts


def exact_weights(trainer: OnlineTrainer) -> np.ndarray:
    """The present weights in float64 (``weights()`` rounds to float32)."""
    out = np.empty(trainer.n)
    read_last(trainer.learner.rule, trainer.state, out)
    return out


def stepwise(trainer: OnlineTrainer, rows: SparseRows, order: np.ndarray) -> np.ndarray:
    """Learn one example at a time and keep a copy of the weights after each."""
    copies = np.empty((order.size, trainer.n))
    for n in range(order.size):
        trainer.learn(rows, order[n : n + 1])
        copies[n] = exact_weights(trainer)
    return copies


def close(found: np.ndarray, wanted: np.ndarray, tolerance: float) -> None:
    """Equal up to ``tolerance`` of the largest entry, with the same exact zeros."""
    size = max(1.0, float(np.abs(wanted).max(initial=0.0)))
    np.testing.assert_allclose(found, wanted, rtol=0, atol=tolerance * size)
    np.testing.assert_array_equal(found == 0, wanted == 0)

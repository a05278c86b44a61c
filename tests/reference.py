"""Plain NumPy oracles: every loss and rule as its paper writes it, dense and never lazy.

Nothing here knows lines, clocks or accounts. A rule keeps all its weights, moves all of them on
every tick, and ``replay`` stores a copy of the weights after every example.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.learner import Learner
from hopefear.data.sparse import SparseRows
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


# --- losses: (value, minus the derivative) at margin z ------------------------------------------


def perceptron(z, force):
    return force * max(0.0, -z), force * (z <= 0)


def hinge(z, asked):
    return max(0.0, asked - z), float(asked - z > 0)


def squared_hinge(z, asked):
    return max(0.0, asked - z) ** 2, 2 * max(0.0, asked - z)


def logistic(z, base):
    return np.logaddexp(0.0, -z) / np.log(base), 1 / (1 + np.exp(z)) / np.log(base)


def exponential(z, limit):
    if z >= -limit:
        return np.exp(-z), np.exp(-z)
    return np.exp(limit) - np.exp(limit) * (z + limit), np.exp(limit)


def linear(z, force):
    return -force * z, force


LOSSES = {
    "Perceptron": perceptron,
    "Hinge": hinge,
    "SquaredHinge": squared_hinge,
    "Logistic": logistic,
    "Exponential": exponential,
    "Linear": linear,
}


def dense_loss(loss: Any):
    return lambda z: LOSSES[type(loss).__name__](z, *loss)


# --- rules: one tick along the direction g (minus the gradient; zero when there is no force) -----


def soft(v, threshold):
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)


class Dense:
    """Weights at zero, ticks counted from one."""

    def __init__(self, n: int, **settings: float) -> None:
        self.w, self.t, self.n = np.zeros(n), 0, n
        self.__dict__.update(settings)
        self.begin()

    def begin(self) -> None: ...

    def tick(self, g, value, margin) -> None:
        self.t += 1
        self.step(g, value, margin)

    def step(self, g, value, margin) -> None:
        raise NotImplementedError


class DenseSGD(Dense):
    """Tsuruoka et al. (2009), figure 2, with the penalty applied to all weights at every step.

    Weight decay multiplies whatever has accumulated: weights, total and received penalties alike.
    """

    def begin(self):
        self.u, self.q = 0.0, np.zeros(self.n)

    def step(self, g, value, margin):
        eta = self.rate / self.t**self.power * self.decay ** ((self.t - 1) / self.period)
        keep = 1 - eta * self.l2
        self.u, self.q = keep * self.u + eta * self.l1, keep * self.q
        self.w = keep * self.w + eta * g
        for i in range(self.n):
            self.apply_penalty(i)

    def apply_penalty(self, i):
        z = self.w[i]
        if self.w[i] > 0:
            self.w[i] = max(0.0, self.w[i] - (self.u + self.q[i]))
        elif self.w[i] < 0:
            self.w[i] = min(0.0, self.w[i] + (self.u - self.q[i]))
        self.q[i] += self.w[i] - z


class DensePassiveAggressive(Dense):
    """Crammer et al. (2006), figure 1."""

    def step(self, g, value, margin):
        norm = g @ g
        if norm == 0:
            return
        tau = {
            0: lambda: value / norm,
            1: lambda: min(self.C, value / norm),
            2: lambda: value / (norm + 1 / (2 * self.C)),
        }[self.variant]()
        self.w = self.w + tau * g


class DenseAdaGrad(Dense):
    """Duchi, Hazan and Singer (2011), composite mirror descent with l1 (their equation 24)."""

    def begin(self):
        self.squares = np.zeros(self.n)

    def step(self, g, value, margin):
        self.squares += g**2
        H = self.eps + np.sqrt(self.squares)
        self.w = soft(self.w + self.rate / H * g, self.rate / H * self.l1)


class DenseAdaGradRDA(Dense):
    """Duchi, Hazan and Singer (2011), primal-dual subgradient with l1 (their equation 22)."""

    def begin(self):
        self.squares, self.total = np.zeros(self.n), np.zeros(self.n)

    def step(self, g, value, margin):
        self.squares += g**2
        self.total -= g
        H = self.eps + np.sqrt(self.squares)
        mean = self.total / self.t
        self.w = np.sign(-mean) * self.rate * self.t / H * np.maximum(np.abs(mean) - self.l1, 0)


class DenseRDA(Dense):
    """Voted RDA paper, equations 1, 2 and 4: the minimiser for l1 |w| + l2/2 |w|**2."""

    def begin(self):
        self.s = np.zeros(self.n)

    def step(self, g, value, margin):
        k, eta = self.t, 1 / self.rate
        self.s -= g
        self.w = -soft(self.s / k, self.l1) / (self.l2 + eta * math.sqrt(k) / k)


class DenseTruncatedGradient(Dense):
    """Langford, Li and Zhang (2009): T1 with gravity g_i = K g when K divides i, else 0."""

    def step(self, g, value, margin):
        eta = self.rate / self.t**self.power
        gravity = self.every * self.gravity if self.t % self.every == 0 else 0.0
        v, alpha, theta = self.w + eta * g, eta * gravity, self.threshold
        low, high = (v >= 0) & (v <= theta), (v >= -theta) & (v <= 0)
        self.w = np.where(
            low, np.maximum(0, v - alpha), np.where(high, np.minimum(0, v + alpha), v)
        )


class DenseFOBOS(Dense):
    """Duchi and Singer (2009): gradient step, then the proximal step of l1 |w| + l2/2 |w|**2."""

    def step(self, g, value, margin):
        eta = self.rate / self.t**self.power
        half = self.w + eta * g
        self.w = soft(half, eta * self.l1) / (1 + eta * self.l2)


class DenseFTRL(Dense):
    """McMahan et al. (2013), algorithm 1."""

    def begin(self):
        self.z, self.squares = np.zeros(self.n), np.zeros(self.n)

    def step(self, g, value, margin):
        gradient = -g
        sigma = (np.sqrt(self.squares + gradient**2) - np.sqrt(self.squares)) / self.rate
        self.z += gradient - sigma * self.w
        self.squares += gradient**2
        shape = (self.beta + np.sqrt(self.squares)) / self.rate + self.l2
        self.w = np.where(
            np.abs(self.z) <= self.l1, 0.0, -(self.z - np.sign(self.z) * self.l1) / shape
        )


class DenseConfidenceWeighted(Dense):
    """Dredze, Crammer and Pereira (2008), variance form, diagonal, by the inverse of Sigma."""

    def begin(self):
        self.sigma = np.eye(self.n)

    def step(self, g, value, margin):
        V, M, phi = g @ self.sigma @ g, margin, self.phi
        if V == 0:
            return
        root = np.sqrt((1 + 2 * phi * M) ** 2 - 8 * phi * (M - phi * V))
        alpha = max(0.0, (-(1 + 2 * phi * M) + root) / (4 * phi * V))
        self.w = self.w + alpha * self.sigma @ g
        self.sigma = np.linalg.inv(np.linalg.inv(self.sigma) + 2 * alpha * phi * np.diag(g**2))


class DenseAROW(Dense):
    """Crammer, Kulesza and Dredze (2009), figure 1, keeping the diagonal of Sigma."""

    def begin(self):
        self.sigma = np.eye(self.n)

    def step(self, g, value, margin):
        if not g.any():
            return
        beta = 1 / (g @ self.sigma @ g + self.r)
        self.w = self.w + value * beta * self.sigma @ g
        self.sigma = np.diag(np.diag(self.sigma - beta * self.sigma @ np.outer(g, g) @ self.sigma))


def dense_rule(rule: Any, n: int) -> Dense:
    return globals()[f"Dense{type(rule).__name__}"](n, **rule._asdict())


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
    rule = dense_rule(learner.rule, structure.n_coordinates())
    loss = dense_loss(learner.loss)
    snapshots, ended, longest, mistakes, updates, total = [], [], 0.0, 0, 0, 0.0
    for i in order:
        importance = float(problem.rows.weights[i])
        z, direction = pull(structure, rule.w, problem.X[i], problem.rows.labels[i])
        value, force = (importance * part for part in loss(z))
        mistaken = z <= 0 and importance > 0
        mistakes, total = mistakes + mistaken, total + value
        if learner.on == "every" or (mistaken and force != 0):
            ended.append(rule.w.copy())
            rule.tick(force * direction, value, z)
            longest = max(longest, float(np.linalg.norm(force * direction)))
            updates += force != 0
        snapshots.append(rule.w.copy())
    return Trace(np.array(snapshots), np.array(ended), longest, mistakes, updates, rule.t, total)


def brute_votes(structure: Any, snapshots: np.ndarray, x: np.ndarray) -> np.ndarray:
    """How many of the stored weights predict each class; no score, no vote; ties go down."""
    counts = np.zeros(structure.n_labels())
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

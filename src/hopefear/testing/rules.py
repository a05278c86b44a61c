"""Every rule as its paper writes it, dense and never lazy, and the loop that replays a learner.

Nothing here knows lines, clocks or accounts: a rule keeps all its weights and moves all of them on
every tick, and :func:`replay` keeps a copy of the weights after every example.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from hopefear.testing.worlds import Force


def soft(v: np.ndarray, threshold: Any) -> np.ndarray:
    """Soft threshold ``sign(v) max(0, |v| - threshold)``."""
    return np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)


class DenseRule:
    """Weights at zero, ticks counted from one; fields of the rule become attributes.

    Examples
    --------
    >>> from hopefear.rules.rda import RDA
    >>> dense = dense_rule(RDA(rate=2.0, l1=0.1), 2)
    >>> dense.tick(np.array([-0.5, 0.0]), 1.0, 0.0)
    >>> dense.w.tolist()
    [-0.8, 0.0]
    """

    solves_for_margin = False

    def __init__(self, n: int, **settings: Any) -> None:
        self.w, self.t, self.n = np.zeros(n), 0, n
        self.squares, self.total = np.zeros(n), np.zeros(n)
        self.__dict__.update(settings)
        self.begin()

    def __getattr__(self, name: str) -> Any:  # settings of the rule
        raise AttributeError(f"{type(self).__name__} has no setting {name!r}")

    def begin(self) -> None:
        """Set up what it remembers beside the weights."""

    def tick(self, g: np.ndarray, value: float, margin: float) -> None:
        """One tick along the direction ``g``, which is zero where there is no force."""
        self.t += 1
        self.step(g, value, margin)

    def step(self, g: np.ndarray, value: float, margin: float) -> None:
        """Move all weights."""
        raise NotImplementedError


class DenseSGD(DenseRule):
    """Tsuruoka et al. (2009), figure 2, with the penalty applied to all weights at every step.

    Weight decay multiplies whatever has accumulated: weights, total and received penalties alike.
    """

    def begin(self) -> None:
        self.u, self.q = 0.0, np.zeros(self.n)

    def step(self, g: np.ndarray, value: float, margin: float) -> None:
        eta = self.rate / self.t**self.power * self.decay ** ((self.t - 1) / self.period)
        keep = 1 - eta * self.l2
        self.u, self.q = keep * self.u + eta * self.l1, keep * self.q
        before = keep * self.w + eta * g
        down, up = (
            np.maximum(0, before - (self.u + self.q)),
            np.minimum(0, before + (self.u - self.q)),
        )
        self.w = np.where(before > 0, down, np.where(before < 0, up, 0.0))
        self.q = self.q + self.w - before


class DensePassiveAggressive(DenseRule):
    """Crammer et al. (2006), figure 1."""

    def step(self, g: np.ndarray, value: float, margin: float) -> None:
        norm = g @ g
        if norm == 0:
            return
        if self.variant == 2:
            tau = value / (norm + 1 / (2 * self.C))
        else:
            tau = min(self.C if self.variant == 1 else math.inf, value / norm)
        self.w = self.w + tau * g


class DenseAdaGrad(DenseRule):
    """Duchi, Hazan and Singer (2011), composite mirror descent with l1 (their equation 24)."""

    def step(self, g: np.ndarray, value: float, margin: float) -> None:
        self.squares += g**2
        H = self.eps + np.sqrt(self.squares)
        self.w = soft(self.w + self.rate / H * g, self.rate / H * self.l1)


class DenseAdaGradRDA(DenseRule):
    """Duchi, Hazan and Singer (2011), primal-dual subgradient with l1 (their equation 22)."""

    def step(self, g: np.ndarray, value: float, margin: float) -> None:
        self.squares += g**2
        self.total += g
        H = self.eps + np.sqrt(self.squares)
        self.w = self.rate * self.t / H * soft(self.total / self.t, self.l1)


class DenseRDA(DenseRule):
    """Voted RDA paper, equations 1, 2 and 4: the minimiser for l1 |w| + l2/2 |w|**2."""

    def step(self, g: np.ndarray, value: float, margin: float) -> None:
        k, eta = self.t, 1 / self.rate
        self.total += g
        self.w = soft(self.total / k, self.l1) / (self.l2 + eta * math.sqrt(k) / k)


class DenseTruncatedGradient(DenseRule):
    """Langford, Li and Zhang (2009): T1 with gravity g_i = K g when K divides i, else 0."""

    def step(self, g: np.ndarray, value: float, margin: float) -> None:
        eta = self.rate / self.t**self.power
        gravity = self.every * self.gravity if self.t % self.every == 0 else 0.0
        v = self.w + eta * g
        self.w = np.where(np.abs(v) <= self.threshold, soft(v, eta * gravity), v)


class DenseFOBOS(DenseRule):
    """Duchi and Singer (2009): gradient step, then the proximal step of l1 |w| + l2/2 |w|**2."""

    def step(self, g: np.ndarray, value: float, margin: float) -> None:
        eta = self.rate / self.t**self.power
        self.w = soft(self.w + eta * g, eta * self.l1) / (1 + eta * self.l2)


class DenseFTRL(DenseRule):
    """McMahan et al. (2013), algorithm 1."""

    def step(self, g: np.ndarray, value: float, margin: float) -> None:
        squares = self.squares + g**2
        self.total += -g - (np.sqrt(squares) - np.sqrt(self.squares)) / self.rate * self.w
        self.squares = squares
        shape = (self.beta + np.sqrt(squares)) / self.rate + self.l2
        self.w = -soft(self.total, self.l1) / shape


class DenseConfidenceWeighted(DenseRule):
    """Dredze, Crammer and Pereira (2008), variance form, diagonal, by the inverse of Sigma."""

    solves_for_margin = True

    def begin(self) -> None:
        self.sigma = np.eye(self.n)

    def step(self, g: np.ndarray, value: float, margin: float) -> None:
        V, M, phi = g @ self.sigma @ g, margin, self.phi
        if V == 0:
            return
        root = np.sqrt((1 + 2 * phi * M) ** 2 - 8 * phi * (M - phi * V))
        alpha = max(0.0, (-(1 + 2 * phi * M) + root) / (4 * phi * V))
        self.w = self.w + alpha * self.sigma @ g
        self.sigma = np.linalg.inv(np.linalg.inv(self.sigma) + 2 * alpha * phi * np.diag(g**2))


class DenseAROW(DenseRule):
    """Crammer, Kulesza and Dredze (2009), figure 1, keeping the diagonal of Sigma."""

    def begin(self) -> None:
        self.sigma = np.eye(self.n)

    def step(self, g: np.ndarray, value: float, margin: float) -> None:
        if not g.any():
            return
        beta = 1 / (g @ self.sigma @ g + self.r)
        self.w = self.w + value * beta * self.sigma @ g
        self.sigma = np.diag(np.diag(self.sigma - beta * self.sigma @ np.outer(g, g) @ self.sigma))


DENSE: dict[str, type[DenseRule]] = {
    cls.__name__.removeprefix("Dense"): cls for cls in DenseRule.__subclasses__()
}


def dense_rule(rule: Any, n: int) -> DenseRule | None:
    """The dense form of a rule by the name of its class; None where there is none."""
    dense = DENSE.get(type(rule).__name__)
    return None if dense is None else dense(n, **rule._asdict())


class Trace(NamedTuple):
    """What a dense run went through."""

    snapshots: np.ndarray  # weights after every example
    mistakes: int
    updates: int
    ticks: int
    loss: float
    exact: bool  # false where the rule solved for a margin that no formula gives


def replay(
    rule: DenseRule, on: str, order: Iterable[int], force: Callable[[int, np.ndarray], Force]
) -> Trace:
    """Train a dense rule by the force of each example under the weights there are."""
    snapshots, mistakes, updates, total, exact = [], 0, 0, 0.0, True
    for i in order:
        pull = force(i, rule.w)
        mistakes, total = mistakes + pull.mistaken, total + pull.value
        if on == "all" or (pull.mistaken and pull.forced):
            exact = exact and not (rule.solves_for_margin and math.isnan(pull.margin))
            rule.tick(pull.g if pull.forced else 0 * pull.g, pull.value, pull.margin)
            updates += pull.forced
        snapshots.append(rule.w.copy())
    return Trace(np.array(snapshots), mistakes, updates, rule.t, total, exact)

"""Subsets: the output is which k of n items are chosen."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hopefear.core.component import component, helper
from hopefear.core.interfaces import Structure
from hopefear.core.workspace import new_workspace

# Margin of a choice that has no rival: large enough to exert no force, and a number.
UNRIVALLED = 1e30


class SubsetRows(NamedTuple):
    """Items of all examples, one after the other, as sparse rows of features."""

    starts: np.ndarray  # int64[n + 1]: where the items of an example start
    indptr: np.ndarray  # int64[items + 1]: where the features of an item start
    indices: np.ndarray  # int32[features]
    values: np.ndarray  # float32[features]
    labels: np.ndarray  # int32[items]: 1 for items to be chosen, else 0
    weights: np.ndarray  # float32[n]


class SubsetTheta(NamedTuple):
    """Scores of items, and scores with costs."""

    points: np.ndarray
    charged: np.ndarray


class SubsetMu(NamedTuple):
    """Signed weights on items, and the direction they add up to."""

    parts: np.ndarray
    direction: np.ndarray  # float64[features]; all zero between two uses


@component(Structure, n_labels=2)
class Subset(NamedTuple):
    """As many items as gold has, by the sum of their scores.

    Parts are the items, coordinates their features; an output ``y`` has 1 for every chosen item
    and 0 for every other. Of items with equal scores the first are chosen.

    Parameters
    ----------
    features : int
        Number of features.
    """

    features: int

    def weight_blocks(self):
        return ((0, self.features, 1),)

    def why_unsupported(self, inference):
        if inference in ("cost", "labels", "worst"):
            return ""
        if inference == "regret":
            return "items have labels and no costs of their own; use the cost hamming"
        return "subsets are searched for the best one only; use the loss structured-hinge"

    def workspace(self, data, loss, dtype):
        longest = int(np.diff(data.starts).max(initial=1))
        theta = SubsetTheta(np.zeros(longest), np.zeros(longest))
        mu = SubsetMu(np.zeros(longest), np.zeros(self.features))
        max_nnz = np.diff(data.indptr[data.starts]).max(initial=0)
        return new_workspace(theta, mu, np.zeros(longest, np.int32), loss, max_nnz)

    def score(self, x, weights, theta):
        start = x.data.starts[x.i]
        for t in range(size(x)):
            total = 0.0
            for p in range(x.data.indptr[start + t], x.data.indptr[start + t + 1]):
                total += x.data.values[p] * weights.at(np.uint64(x.data.indices[p]))
            theta.points[t] = total

    def argmax(self, x, theta, y):
        choose(x, theta.points, y)

    def margin(self, x, theta, y, exact):
        """Where the best choice is gold, its rival has one item less and one more."""
        choose(x, theta.points, y)
        if not self.is_gold(x, y):
            return min(0.0, self.margin_over(x, theta, y))
        if not exact:
            return 1.0
        worst, best = -1, -1
        for t in range(size(x)):
            if y[t] == 1 and (worst < 0 or theta.points[t] <= theta.points[worst]):
                worst = t
            if y[t] == 0 and (best < 0 or theta.points[t] > theta.points[best]):
                best = t
        if worst < 0 or best < 0:
            return UNRIVALLED
        y[worst], y[best] = 0, 1
        return self.margin_over(x, theta, y)

    def is_gold(self, x, y):
        for t in range(size(x)):  # noqa: SIM110 - kernels have no generators
            if y[t] != gold(x, t):
                return False
        return True

    def margin_over(self, x, theta, y):
        total = 0.0
        for t in range(size(x)):
            total += (gold(x, t) - y[t]) * theta.points[t]
        return total

    def output_cost(self, x, cost, y):
        total = 0.0
        for t in range(size(x)):
            total += cost.label_cost(gold(x, t), y[t])
        return total

    def cost_augmented_argmax(self, x, theta, cost, sign, y):
        for t in range(size(x)):  # what choosing an item adds to the cost
            price = cost.label_cost(gold(x, t), 1) - cost.label_cost(gold(x, t), 0)
            theta.charged[t] = price if sign == math.inf else theta.points[t] + sign * price
        choose(x, theta.charged, y)
        return self.margin_over(x, theta, y), self.output_cost(x, cost, y)

    def add_difference(self, x, y, coef, mu, clear):
        if clear:
            mu.parts[: size(x)] = 0.0
        for t in range(size(x)):
            mu.parts[t] += coef * (gold(x, t) - y[t])

    def scatter(self, x, mu, row):
        add_up(x, mu)
        start = x.data.starts[x.i]
        for p in range(x.data.indptr[start], x.data.indptr[start + size(x)]):
            j = x.data.indices[p]
            if mu.direction[j] != 0.0:  # a coordinate that several items have comes once
                row.add_entry(np.uint64(j), mu.direction[j])
                mu.direction[j] = 0.0


@helper
def size(x):
    """Number of items."""
    return x.data.starts[x.i + 1] - x.data.starts[x.i]


@helper
def gold(x, t):
    """1 if item ``t`` is to be chosen, else 0."""
    return x.data.labels[x.data.starts[x.i] + t]


@helper
def choose(x, points, y):
    """Leave in ``y`` the items of the highest points, as many as gold has."""
    count = 0
    for t in range(size(x)):
        y[t] = 0
        count += gold(x, t)
    for _ in range(count):
        best = -1
        for t in range(size(x)):
            if y[t] == 0 and (best < 0 or points[t] > points[best]):
                best = t
        y[best] = 1


@helper
def add_up(x, mu):
    """Add the features of all items, by their weights, into the direction."""
    start = x.data.starts[x.i]
    for t in range(size(x)):
        for p in range(x.data.indptr[start + t], x.data.indptr[start + t + 1]):
            mu.direction[x.data.indices[p]] += mu.parts[t] * x.data.values[p]

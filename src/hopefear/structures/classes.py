"""Classes: the output is one label, out of two (one part) or of several (one part a class)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hopefear.core.component import component, helper, interface, python_only, required
from hopefear.core.interfaces import Structure
from hopefear.core.workspace import new_workspace, prefetch_row


@interface
class Classes:
    """Searches among classes, for structures that score and weigh each of them.

    An output ``y`` is the number of a class. Behind the scores of the parts, ``theta`` has room for
    one number a class: scores with costs, or probabilities. Of classes that tie, gold is the last
    that searches find: a tie is a mistake.
    """

    @required
    def how_many(self):
        """Number of classes."""

    @required
    def point(self, theta, c):
        """Score of a class."""

    @required
    def weigh(self, c, coef, mu):
        """Add ``coef`` times the parts of a class to ``mu``."""

    @required
    def overlap(self, a, b):
        """Inner product of the parts of two classes."""

    @python_only
    def why_unsupported(self, inference):
        if inference in ("cost", "labels", "nbest", "expectation", "risk", "worst"):
            return ""
        if inference in ("places", "heads"):
            return (
                "an output is one label, so that gold and a prediction mix to nothing new; use "
                "the loss perceptron"
            )
        return "labels have no costs of their own; use the cost hamming"

    @python_only
    def workspace(self, data, loss, dtype):
        parts = self.n_parts()
        theta = np.zeros(parts + self.n_labels)
        # Gold and one other class; of two classes they have the weights in common.
        max_nnz = min(2, parts) * (int(np.diff(data.indptr).max(initial=0)) + 1)
        return new_workspace(theta, np.zeros(parts), np.zeros(1, np.int64), loss, max_nnz)

    def prefetch_example(self, x, near):
        prefetch_row(x, near)

    def cost_augmented_argmax(self, x, theta, cost, sign, y):
        n, gold = self.how_many(), x.data.labels[x.i]
        charged = theta[theta.size - n :]
        for c in range(n):
            price = cost.label_cost(gold, c)
            charged[c] = price if sign == math.inf else self.point(theta, c) + sign * price
        y[0] = highest(charged, gold)
        return self.margin_over(x, theta, y), self.output_cost(x, cost, y)

    def output_cost(self, x, cost, y):
        return cost.label_cost(x.data.labels[x.i], np.int64(y[0]))

    def k_best(self, x, theta, cost, ratio, outputs):
        classes, gold = self.how_many(), x.data.labels[x.i]
        charged = theta[theta.size - classes :]
        for c in range(classes):
            charged[c] = self.point(theta, c)
            if cost is not None:
                charged[c] += cost.label_cost(gold, c)
        best, lowest = highest(charged, gold), -math.inf
        if ratio > 0.0:
            lowest = charged[best] - math.log(ratio)
        found = 0
        while found < min(outputs.shape[0], classes) and (found == 0 or not charged[best] < lowest):
            outputs[found, 0] = best
            charged[best] = -math.inf
            found += 1
            best = highest(charged, gold)
        return found

    def is_gold(self, x, y):
        return y[0] == x.data.labels[x.i]

    def margin_over(self, x, theta, y):
        return self.point(theta, x.data.labels[x.i]) - self.point(theta, np.int64(y[0]))

    def add_difference(self, x, y, coef, mu, clear):
        if clear:
            set_to_zero(mu)
        self.weigh(x.data.labels[x.i], coef, mu)
        self.weigh(np.int64(y[0]), -coef, mu)

    def gram_matrix(self, x, outputs, count, mu, products):
        gold, square = np.int64(x.data.labels[x.i]), self.bias * self.bias
        for p in range(x.data.indptr[x.i], x.data.indptr[x.i + 1]):
            square += float(x.data.values[p]) * float(x.data.values[p])
        for k in range(count):
            a = outputs[k, 0]
            for m in range(count):
                b = outputs[m, 0]
                product = self.overlap(gold, gold) + self.overlap(a, b)
                product -= self.overlap(gold, a) + self.overlap(gold, b)
                products[k, m] = square * product

    def kl_and_gradient(self, x, theta, cost, inverse_temperature, coef, mu):
        if cost is None:
            return surprise(self, x, theta, coef, mu), False  # to look costs little
        return divergence(self, x, theta, cost, inverse_temperature, coef, mu), False

    def risk_and_gradient(self, x, theta, cost, inverse_temperature, coef, mu):
        n, gold, risk = self.how_many(), x.data.labels[x.i], 0.0
        shares = theta[theta.size - n :]
        share_out(self, theta, inverse_temperature, shares)
        total = shares.sum()
        for c in range(n):
            risk += shares[c] / total * cost.label_cost(gold, c)
        set_to_zero(mu)
        for c in range(n):
            self.weigh(
                c,
                coef * inverse_temperature * shares[c] / total * (risk - cost.label_cost(gold, c)),
                mu,
            )
        return risk


@helper
def set_to_zero(mu):
    """Sets all parts to zero."""
    for k in range(mu.size):
        mu[k] = 0.0


@helper
def surprise(structure, x, theta, coef, mu):
    """Sets ``mu`` to ``coef`` times (gold minus expectation); returns -log P(gold)."""
    n, gold = structure.how_many(), x.data.labels[x.i]
    shares = theta[theta.size - n :]
    top, others = share_out(structure, theta, 1.0, shares), 0.0
    for c in range(n):
        if c != gold:
            others += shares[c]
    total = others + shares[gold]
    set_to_zero(mu)
    # Written so that certainty about gold keeps its digits.
    structure.weigh(gold, coef * (others / total), mu)
    for c in range(n):
        if c != gold:
            structure.weigh(c, -coef * (shares[c] / total), mu)
    rest = others if top == gold else total - 1.0
    return math.log1p(rest) + (structure.point(theta, top) - structure.point(theta, gold))


@helper
def divergence(structure, x, theta, cost, inverse_temperature, coef, mu):
    """Sets ``mu`` to ``coef`` times (Q - P), Q by costs; returns the divergence of Q from P."""
    n, gold, goods, value = structure.how_many(), x.data.labels[x.i], 0.0, 0.0
    shares = theta[theta.size - n :]
    top = share_out(structure, theta, 1.0, shares)
    total, best = shares.sum(), structure.point(theta, top)
    for c in range(n):
        goods += math.exp(-inverse_temperature * cost.label_cost(gold, c))
    set_to_zero(mu)
    for c in range(n):
        wanted = math.exp(-inverse_temperature * cost.label_cost(gold, c)) / goods
        if wanted > 0.0:
            logs = structure.point(theta, c) - best - math.log(total)
            value += wanted * (math.log(wanted) - logs)
        structure.weigh(c, coef * (wanted - shares[c] / total), mu)
    return max(0.0, value)


@helper
def highest(points, gold):
    """The class of the highest number; of equal ones the first, but gold last."""
    best = 1 if gold == 0 else 0
    for c in range(points.size):
        if c != gold and points[c] > points[best]:
            best = c
    return np.int64(gold) if points[gold] > points[best] else best


@helper
def share_out(structure, theta, inverse_temperature, shares):
    """Sets ``shares`` to ``exp(inverse_temperature * (score - best))``; returns the best class."""
    top = 0
    for c in range(1, shares.size):
        if structure.point(theta, c) > structure.point(theta, top):
            top = c
    for c in range(shares.size):
        shares[c] = math.exp(
            inverse_temperature * (structure.point(theta, c) - structure.point(theta, top))
        )
    return top


@component(Structure, Classes, n_labels=2)
class Binary(NamedTuple):
    """Labels 0 and 1, read as -1 and +1; one weight per feature.

    The one part scores ``theta[0] = w.x``; label +1 has half of it, label -1 minus half, so that
    the margin of gold over its rival is the textbook's ``y w.x``.

    Parameters
    ----------
    n_features : int
        Columns of the data; the intercept, if any, is coordinate ``n_features``.
    bias : float
        Value of the constant feature behind the intercept; 0 means no intercept. The intercept is
        regularised like any weight: a larger ``bias`` makes that matter less.
    """

    n_features: int
    bias: float = 0.0

    def weight_blocks(self):
        return ((0, self.n_features + (self.bias != 0.0), 1),)

    def n_parts(self):
        return 1

    def why_unsupported(self, inference):
        # Whatever the loss, an update touches the features of a row once.
        return "" if inference == "bounded" else Classes.why_unsupported(self, inference)

    def how_many(self):
        return 2

    def point(self, theta, c):
        return (c - 0.5) * theta[0]

    def weigh(self, c, coef, mu):
        mu[0] += (c - 0.5) * coef

    def overlap(self, a, b):
        return (a - 0.5) * (b - 0.5)

    def score(self, x, weights, theta):
        indices, values = x.data.indices, x.data.values
        p, stop = x.data.indptr[x.i], x.data.indptr[x.i + 1]
        # Four sums, because one would have to wait for every addition.
        sum0 = sum1 = sum2 = sum3 = np.float32(0.0)
        while p + 4 <= stop:
            sum0 += values[p] * weights.at(np.uint64(indices[p]))
            sum1 += values[p + 1] * weights.at(np.uint64(indices[p + 1]))
            sum2 += values[p + 2] * weights.at(np.uint64(indices[p + 2]))
            sum3 += values[p + 3] * weights.at(np.uint64(indices[p + 3]))
            p += 4
        while p < stop:
            sum0 += values[p] * weights.at(np.uint64(indices[p]))
            p += 1
        theta[0] = (sum0 + sum1) + (sum2 + sum3)
        if self.bias != 0.0:
            theta[0] += self.bias * float(weights.at(np.uint64(self.n_features)))

    def margin(self, x, theta, y, exact):
        gold = x.data.labels[x.i]
        y[0] = 1 - gold
        return theta[0] if gold == 1 else -theta[0]

    def scatter(self, x, mu, row):
        indices, values = x.data.indices, x.data.values
        coef = values.dtype.type(mu[0])
        for p in range(x.data.indptr[x.i], x.data.indptr[x.i + 1]):
            row.add_entry(np.uint64(indices[p]), coef * values[p])
        if self.bias != 0.0:
            row.add_entry(np.uint64(self.n_features), values.dtype.type(mu[0] * self.bias))

    def weighted_squared_norm(self, x, mu, weights):
        indices, values = x.data.indices, x.data.values
        total = 0.0
        for p in range(x.data.indptr[x.i], x.data.indptr[x.i + 1]):
            total += weights.at(np.uint64(indices[p])) * values[p] * values[p]
        if self.bias != 0.0:
            total += weights.at(np.uint64(self.n_features)) * self.bias * self.bias
        return mu[0] * mu[0] * total

    def argmax(self, x, theta, y):
        y[0] = 1 if theta[0] > 0.0 else 0


@component(Structure, Classes)
class Multiclass(NamedTuple):
    """Labels 0 .. n_classes-1; coordinate ``column * n_classes + label``.

    The weights of one feature lie side by side, so scoring reads each feature once for all classes.

    Parameters
    ----------
    n_features : int
        Columns of the data; the intercepts, if any, belong to column ``n_features``.
    n_classes : int
        Number of labels.
    bias : float
        Value of the constant feature behind the intercepts; 0 means none.
    """

    n_features: int
    n_classes: int
    bias: float = 0.0

    @property
    def n_labels(self):
        return self.n_classes

    def weight_blocks(self):
        return ((0, self.n_features + (self.bias != 0.0), self.n_classes),)

    def n_parts(self):
        return self.n_classes

    def how_many(self):
        return self.n_classes

    def point(self, theta, c):
        return theta[c]

    def weigh(self, c, coef, mu):
        mu[c] += coef

    def overlap(self, a, b):
        return 1.0 if a == b else 0.0

    def score(self, x, weights, theta):
        indices, values, n = x.data.indices, x.data.values, self.n_classes
        for c in range(n):
            theta[c] = 0.0
            if self.bias != 0.0:
                theta[c] = self.bias * float(weights.at(np.uint64(self.n_features * n + c)))
        for p in range(x.data.indptr[x.i], x.data.indptr[x.i + 1]):
            base, value = indices[p] * n, values[p]
            for c in range(n):
                theta[c] += value * weights.at(np.uint64(base + c))

    def margin(self, x, theta, y, exact):
        gold = x.data.labels[x.i]
        rival = 1 if gold == 0 else 0
        for c in range(self.n_classes):
            if c != gold and theta[c] > theta[rival]:
                rival = c
        y[0] = rival
        return theta[gold] - theta[rival]

    def scatter(self, x, mu, row):
        indices, values, n = x.data.indices, x.data.values, self.n_classes
        for c in range(n):
            if mu[c] == 0.0:
                continue
            coef = values.dtype.type(mu[c])
            for p in range(x.data.indptr[x.i], x.data.indptr[x.i + 1]):
                row.add_entry(np.uint64(indices[p] * n + c), coef * values[p])
            if self.bias != 0.0:
                row.add_entry(
                    np.uint64(self.n_features * n + c), values.dtype.type(mu[c] * self.bias)
                )

    def weighted_squared_norm(self, x, mu, weights):
        indices, values, n = x.data.indices, x.data.values, self.n_classes
        total = 0.0
        for c in range(n):
            if mu[c] == 0.0:
                continue
            inner = 0.0
            for p in range(x.data.indptr[x.i], x.data.indptr[x.i + 1]):
                inner += weights.at(np.uint64(indices[p] * n + c)) * values[p] * values[p]
            if self.bias != 0.0:
                inner += weights.at(np.uint64(self.n_features * n + c)) * self.bias * self.bias
            total += mu[c] * mu[c] * inner
        return total

    def argmax(self, x, theta, y):
        y[0] = 0
        for c in range(1, self.n_classes):
            if theta[c] > theta[y[0]]:
                y[0] = c

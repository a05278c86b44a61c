"""Several classes: one part a class, the rival is the best other class."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import Structure
from hopefear.core.workspace import announce_row, class_workspace, fetch_row


@component(Structure)
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

    def n_coordinates(self):
        return (self.n_features + (self.bias != 0.0)) * self.n_classes

    def n_parts(self):
        return self.n_classes

    def n_labels(self):
        return self.n_classes

    def workspace(self, data, loss, dtype):
        return class_workspace(self.n_classes, loss)

    def entries(self, data, order):
        sizes = data.indptr[order + 1] - data.indptr[order] + 1
        return 2 * int(sizes.sum())

    def announce(self, x):
        announce_row(x)

    def fetch(self, x):
        fetch_row(x)

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

    def margin(self, x, theta, y):
        gold = x.data.labels[x.i]
        rival = 1 if gold == 0 else 0
        for c in range(self.n_classes):
            if c != gold and theta[c] > theta[rival]:
                rival = c
        y[0] = rival
        return theta[gold] - theta[rival]

    def contrast(self, x, y, coef, mu):
        for c in range(self.n_classes):
            mu[c] = 0.0
        mu[x.data.labels[x.i]] += coef
        mu[y[0]] -= coef

    def scatter(self, x, mu, row):
        indices, values, n = x.data.indices, x.data.values, self.n_classes
        for c in range(n):
            if mu[c] == 0.0:
                continue
            coef = values.dtype.type(mu[c])
            for p in range(x.data.indptr[x.i], x.data.indptr[x.i + 1]):
                row.put(np.uint64(indices[p] * n + c), coef * values[p])
            if self.bias != 0.0:
                row.put(np.uint64(self.n_features * n + c), values.dtype.type(mu[c] * self.bias))

    def norm(self, x, mu, weights):
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

"""Two classes: one part, the score of the second class against the first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import Structure
from hopefear.core.workspace import announce_row, class_workspace, fetch_row


@component(Structure)
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

    def n_coordinates(self):
        return self.n_features + (self.bias != 0.0)

    def n_parts(self):
        return 1

    def n_labels(self):
        return 2

    def workspace(self, data, loss, dtype):
        return class_workspace(1, loss)

    def entries(self, data, order):
        sizes = data.indptr[order + 1] - data.indptr[order] + 1
        return int(sizes.sum())

    def announce(self, x):
        announce_row(x)

    def fetch(self, x):
        fetch_row(x)

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

    def margin(self, x, theta, y):
        gold = x.data.labels[x.i]
        y[0] = 1 - gold
        return theta[0] if gold == 1 else -theta[0]

    def contrast(self, x, y, coef, mu):
        mu[0] = 0.5 * coef * ((2 * x.data.labels[x.i] - 1) - (2 * y[0] - 1))

    def scatter(self, x, mu, row):
        indices, values = x.data.indices, x.data.values
        coef = values.dtype.type(mu[0])
        for p in range(x.data.indptr[x.i], x.data.indptr[x.i + 1]):
            row.put(np.uint64(indices[p]), coef * values[p])
        if self.bias != 0.0:
            row.put(np.uint64(self.n_features), values.dtype.type(mu[0] * self.bias))

    def norm(self, x, mu, weights):
        indices, values = x.data.indices, x.data.values
        total = 0.0
        for p in range(x.data.indptr[x.i], x.data.indptr[x.i + 1]):
            total += weights.at(np.uint64(indices[p])) * values[p] * values[p]
        if self.bias != 0.0:
            total += weights.at(np.uint64(self.n_features)) * self.bias * self.bias
        return mu[0] * mu[0] * total

    def argmax(self, x, theta, y):
        y[0] = 1 if theta[0] > 0.0 else 0

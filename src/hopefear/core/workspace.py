"""What kernels hand around: one example, readings of the weights, and a workspace."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, helper, prefetch
from hopefear.core.interfaces import DROP, SCALE, WeightView


class Example(NamedTuple):
    """Row ``i`` of a dataset."""

    data: Any
    i: int


class Workspace(NamedTuple):
    """Scratch space of a training kernel, allocated once."""

    theta: Any  # scores of parts, and what searching them needs
    mu: Any  # gradient with respect to the scores
    y: np.ndarray  # an output
    outputs: np.ndarray  # like y, in rows: as many outputs as the loss looks at
    loss: np.ndarray  # float64[1]: loss of the present example
    gold_margin: np.ndarray  # float64[1]: its margin
    scratch: Any  # scratch space of the loss
    max_nnz: int  # most weights that the gradient of one example has, k-best losses apart


def new_workspace(theta: Any, mu: Any, y: np.ndarray, loss: Any, max_nnz: int) -> Workspace:
    """Returns a workspace for ``loss``; ``y`` is an output of the largest size."""
    outputs = np.zeros((loss.n_outputs(), y.size), y.dtype)
    numbers = np.zeros(1), np.zeros(1)
    return Workspace(theta, mu, y, outputs, *numbers, loss.new_scratch(y.size), int(max_nnz))


@component(WeightView)
class DenseWeights(NamedTuple):
    """Weights that are stored as they are."""

    w: np.ndarray

    def at(self, j):
        return self.w[j]

    def prefetch(self, j):
        prefetch(self.w, j)


@component(WeightView)
class SoftThresholdedWeights(NamedTuple):
    """``scale * shrink(m, drop)``."""

    m: np.ndarray
    scale: np.floating
    drop: np.floating

    def at(self, j):
        # What is cut off is m itself, held within the drop: three instructions, no branch.
        m = self.m[j]
        return self.scale * (m - min(max(m, -self.drop), self.drop))

    def prefetch(self, j):
        prefetch(self.m, j)


@component(WeightView)
class AdaGradWeights(NamedTuple):
    """``rate / (eps + root) * shrink(m, drop)``: coordinates kept as (m, root) cells."""

    cells: np.ndarray
    drop: np.floating
    rate: np.floating
    eps: np.floating

    def at(self, j):
        m = self.cells[j, 0]
        rest = m - min(max(m, -self.drop), self.drop)
        return rest * self.rate / (self.eps + self.cells[j, 1])


@component(WeightView)
class Ones(NamedTuple):
    """All weights one: turns ``Structure.norm`` into the squared length."""

    one: float = 1.0

    def at(self, j):
        return self.one


@helper(inline=True)
def shrink(m, drop):
    """Soft threshold ``sign(m) max(0, |m| - drop)``."""
    return math.copysign(max(abs(m) - drop, 0.0), m)


def soft_threshold(m: np.ndarray, drop: float) -> np.ndarray:
    """Returns ``shrink`` of many numbers, in float64.

    >>> soft_threshold(np.array([-3.0, 0.5]), 1.0)
    array([-2.,  0.])
    """
    wide = m.astype(np.float64)
    return np.copysign(np.maximum(np.abs(wide) - drop, 0.0), wide)


def inverse_soft_threshold(w: np.ndarray, drop: float) -> np.ndarray:
    """Returns what ``soft_threshold`` makes these weights of; 0 stays 0.

    >>> inverse_soft_threshold(np.array([-2.0, 0.0]), 1.0)
    array([-3.,  0.])
    """
    return np.where(w == 0.0, 0.0, w + np.copysign(drop, w))


def average_clock(clocks: Any, shares: Any, rate: float) -> np.ndarray:
    """The clock under which mixed lines go on: untouched ones have the mean of their weights.

    ``scale = sum share scale_k``, ``drop = sum share scale_k drop_k / scale``
    """
    scale = math.fsum(s * c[SCALE] for s, c in zip(shares, clocks, strict=True))
    drop = math.fsum(s * c[SCALE] * c[DROP] for s, c in zip(shares, clocks, strict=True))
    return np.array([scale, drop / scale, rate])


@helper(inline=True)
def learning_rate_at(rate, power, decay, period, t):
    """Rate of step ``t`` (from 0): ``rate * decay**(t / period) / (t + 1)**power``."""
    if power != 0.0:
        rate /= (t + 1.0) ** power
    if decay != 1.0:
        rate *= decay ** (t / period)
    return rate


@helper(inline=True)
def prefetch_row(x, near):
    """Prefetches where a sparse row lies, its label and weight; if ``near``, its beginning.

    The processor sees the pattern of the rest.
    """
    if not near:
        prefetch(x.data.indptr, x.i)
        prefetch(x.data.labels, x.i)
        prefetch(x.data.weights, x.i)
        return
    start = x.data.indptr[x.i]
    stop = min(x.data.indptr[x.i + 1], start + 64)
    for p in range(start, stop, 16):
        prefetch(x.data.indices, p)
        prefetch(x.data.values, p)

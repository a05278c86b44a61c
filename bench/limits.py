"""Memory limits: reading and adding to a float32 vector along the same feature ids.

    python bench/limits.py --data imdb

A pass that updates on every example reads and writes each of its weights once. ``gather`` and
``scatter`` are two sweeps over all rows, and ``gather+scatter`` their sum. ``rows`` does both for
each row before it goes to the next, as a learner does, so that the second access finds ids,
values and weights near: the harder limit of the two.
"""

from __future__ import annotations

from typing import Any

import common
import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def dot(a, b, indices, values, w):
    """One row. Four sums keep the adder busy, and unsigned ids spare numba a test for id < 0.

    Left to fastmath the compiler uses gather instructions, which some processors run at half speed.
    """
    s0 = s1 = s2 = s3 = np.float32(0.0)
    k = a
    while k + 4 <= b:
        s0 += w[np.uint32(indices[k])] * values[k]
        s1 += w[np.uint32(indices[k + 1])] * values[k + 1]
        s2 += w[np.uint32(indices[k + 2])] * values[k + 2]
        s3 += w[np.uint32(indices[k + 3])] * values[k + 3]
        k += 4
    while k < b:
        s0 += w[np.uint32(indices[k])] * values[k]
        k += 1
    return (s0 + s1) + (s2 + s3)


@numba.njit(cache=True, nogil=True)
def gather(order, indptr, indices, values, w):
    total = np.float32(0.0)
    for i in order:
        total += dot(indptr[i], indptr[i + 1], indices, values, w)
    return total


@numba.njit(cache=True, nogil=True)
def scatter(order, indptr, indices, values, w, rate):
    for i in order:
        for k in range(indptr[i], indptr[i + 1]):
            w[np.uint32(indices[k])] += rate * values[k]


@numba.njit(cache=True, nogil=True)
def rows(order, indptr, indices, values, w, rate):
    for i in order:
        a, b = indptr[i], indptr[i + 1]
        # The step depends on the score, as a learner's does: writing must wait for the sum.
        step = rate if dot(a, b, indices, values, w) > 0 else -rate
        for k in range(a, b):
            w[np.uint32(indices[k])] += step * values[k]


def tasks(problem: common.Problem, order: np.ndarray | None = None) -> dict[str, common.Task]:
    """The three sweeps over the rows in this order (shuffled by default), compiled beforehand."""
    X = problem.X
    if order is None:
        order = np.random.default_rng(1).permutation(X.shape[0])
    w = np.zeros(X.shape[1], np.float32)
    rate = np.float32(1e-3)
    data = (X.indptr, X.indices, X.data, w)
    none = order[:0]
    gather(none, *data), scatter(none, *data, rate), rows(none, *data, rate)
    return {
        "limit gather": lambda: common.cpu_seconds(lambda: gather(order, *data)),
        "limit scatter": lambda: common.cpu_seconds(lambda: scatter(order, *data, rate)),
        "limit rows": lambda: common.cpu_seconds(lambda: rows(order, *data, rate)),
    }


def summary(problem: common.Problem, least: dict[str, float]) -> dict[str, Any]:
    """Seconds and millions of values a second from the best times."""
    seconds = {name.partition(" ")[2]: t for name, t in least.items() if name.startswith("limit ")}
    seconds["gather+scatter"] = seconds["gather"] + seconds["scatter"]
    return {
        name: {"seconds_pass": t, "million_values_per_second": problem.X.nnz / t / 1e6}
        for name, t in seconds.items()
    }


def main() -> None:
    orders = ["shuffled", "file"]
    chosen = common.arguments(__doc__, orders, ["shuffled"])
    problem = common.load(chosen.data)
    results: dict[str, Any] = {}
    for name in chosen.learner:
        order = np.arange(problem.X.shape[0]) if name == "file" else None
        times = common.interleave(tasks(problem, order), chosen.repeats)
        results[name] = summary(problem, common.best(times))
    common.report("gather and scatter limits", "numba", problem, results, repeats=chosen.repeats)


if __name__ == "__main__":
    main()

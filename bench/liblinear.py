"""LIBLINEAR's L1 logistic regression (by way of scikit-learn): error at a number of weights.

    python bench/liblinear.py --data imdb --C 1 10 --at-most 5000

A batch solver run to its tolerance: the reference for quality at a given sparsity, not for the
speed of one pass.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import common
import numpy as np
from sklearn.linear_model import LogisticRegression


class Fit(NamedTuple):
    C: float
    seconds: float
    error: float
    nnz: int


def fit(problem: common.Problem, C: float) -> Fit:
    """Train to the solver's own tolerance. A larger C keeps more weights."""
    model = LogisticRegression(solver="liblinear", l1_ratio=1.0, C=C, random_state=1)
    seconds = common.cpu_seconds(lambda: model.fit(problem.X, problem.y))
    error = problem.error(model.decision_function(problem.X_test))
    return Fit(C, seconds, error, int(np.count_nonzero(model.coef_)))


def at_most(problem: common.Problem, limit: int, *, steps: int = 8) -> Fit:
    """The fit with the most non-zero weights up to ``limit``, by bisection on log C.

    That is not the lowest error up to the limit: past some C more weights only fit the noise.
    """
    low, high = 1e-2, 1e3
    best = fit(problem, low)
    for _ in range(steps):
        middle = float(np.sqrt(low * high))
        tried = fit(problem, middle)
        if tried.nnz <= limit:
            best, low = max(best, tried, key=lambda f: f.nnz), middle
        else:
            high = middle
    return best


def tasks(problem: common.Problem, Cs: list[float]) -> dict[str, common.Task]:
    """Whole fits, for `common.interleave`."""
    return {f"liblinear C={C:g}": lambda C=C: fit(problem, C).seconds for C in Cs}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", nargs="+", default=["imdb"], metavar="FILE")
    parser.add_argument("--C", nargs="+", type=float, default=[1.0, 10.0])
    parser.add_argument("--at-most", type=int, default=0, metavar="NNZ")
    chosen = parser.parse_args()
    problem = common.load(chosen.data)
    results: dict[str, Any] = {f"C={C:g}": fit(problem, C)._asdict() for C in chosen.C}
    if chosen.at_most:
        results[f"nnz<={chosen.at_most}"] = at_most(problem, chosen.at_most)._asdict()
    common.report("LIBLINEAR L1 logistic", "scikit-learn", problem, results)


if __name__ == "__main__":
    main()

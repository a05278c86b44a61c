"""The accuracy goals: every learner tuned on a held-out fifth of train, tested once.

    python bench/quality.py --data imdb
    python bench/quality.py --data news20 --passes 1 5

For each learner and number of passes: the setting with the lowest held-out error, then trained on
all of train with three seeds; test error (mean), non-zero weights, seconds per pass. Rivals run
at their defaults (Vowpal Wabbit, scikit-learn) or over a grid of C (LIBLINEAR). ``--at-most``
chooses, by held-out error, among the settings that keep at most so many weights.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import common
import hopefear_online as ours
import liblinear
import numpy as np
import sklearn_sgd
import vowpal

from hopefear.data.sparse import SparseDataset
from hopefear.tasks.base import begin
from hopefear.tasks.classify.task import Classification
from hopefear.training.decoders.classes import ClassDecoder
from hopefear.training.loop import Fit, LearningWarning, fit
from hopefear.training.passes import Passes

GRIDS: dict[str, dict[str, list[Any]]] = {
    "perceptron": {"rate": [1.0]},
    "pa": {"C": [0.1, 0.3, 1.0]},
    "sgd": {"rate": [16.0, 50.0, 150.0], "l2": [1e-6, 1e-5]},
    "adagrad": {"rate": [0.3, 0.6, 1.0, 1.5]},
    "adagrad-rda": {
        "rate": [0.3, 0.6, 1.0, 1.5, 2.5],
        "l1": [0.0, 1e-7, 1e-6, 3e-6, 6e-6, 1e-5, 1.5e-5, 2e-5, 3e-5],
    },
    "rda": {"rate": [30.0, 100.0, 300.0], "l1": [1e-7, 1e-6, 1e-5, 3e-5]},
    "vrda": {"rate": [1.0], "l1": [0.0, 1e-6, 1e-5, 1e-4]},
    "tg": {"rate": [16.0, 50.0, 150.0], "gravity": [1e-7, 1e-6, 1e-5]},
    "fobos": {"rate": [16.0, 50.0, 150.0], "l1": [1e-7, 1e-6, 1e-5]},
    "ftrl": {"rate": [1.0, 3.0, 10.0], "l1": [0.0, 0.1, 0.5]},
    "cw": {"phi": [0.3, 0.7, 1.2816]},
    "arow": {"r": [0.03, 0.1, 0.3, 1.0]},
}


def train(data: SparseDataset, name: str, params: dict[str, Any], passes: int, seed: int) -> Fit:
    _, trainer = begin(Classification(), data, name, params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LearningWarning)
        return fit(trainer.structure, trainer.learner, Passes(data, seed), epochs=passes)


def error(result: Fit, data: SparseDataset) -> float:
    labels, _ = ClassDecoder(result.trainer.structure, result.predictor).decide(data.rows)
    return 100.0 * float(np.mean(labels != data.rows.labels))


def choose(train_part, held_out, name: str, passes: int, at_most: int) -> dict[str, Any] | None:
    """The grid point with the lowest held-out error among those sparse enough."""
    grid = GRIDS[name]
    points = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    scored = []
    for params in points:
        result = train(train_part, name, params, passes, seed=1)
        if result.predictor.nnz <= at_most:
            scored.append((error(result, held_out), result.predictor.nnz, params))
    return min(scored, key=lambda s: s[:2])[2] if scored else None


def row(data, test, name: str, passes: int, params: dict[str, Any]) -> dict[str, Any]:
    runs = [train(data, name, params, passes, seed) for seed in (1, 2, 3)]
    seconds = min(
        common.cpu_seconds(lambda: train(data, name, params, passes, 1)) for _ in range(5)
    )
    errors = [error(run, test) for run in runs]
    return {
        "learner": name,
        "passes": passes,
        "params": params,
        "error": float(np.mean(errors)),
        "spread": float(np.std(errors)),
        "nnz": int(np.mean([run.predictor.nnz for run in runs])),
        "last_nnz": int(np.mean([run.trainer.support()[0] for run in runs])),
        "seconds_pass": seconds / passes,
    }


def rivals(problem: common.Problem, passes: int) -> list[dict[str, Any]]:
    rows = [
        {
            "learner": f"sklearn {name}",
            "passes": passes,
            **sklearn_sgd.quality(problem, name, passes),
        }
        for name in ("log-l1", "log-l2", "hinge-average", "perceptron-average")
    ]
    with tempfile.TemporaryDirectory() as folder:
        files = vowpal.prepare(problem, Path(folder))
        rows += [
            {
                "learner": f"vw {name}",
                "passes": passes,
                **vowpal.quality(problem, files, name, passes),
            }
            for name in ("logistic", "hinge", "logistic-l1")
        ]
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    for r in rows:
        last = r.get("last_nnz", r["nnz"])
        milliseconds = 1e3 * r.get("seconds_pass", 0.0)
        print(
            f"{r['learner']:28s} passes {r.get('passes', '-')}  error {r['error']:6.2f} "
            f"± {r.get('spread', 0.0):.2f}  nnz {r['nnz']:>9,}  last {last:>9,}  "
            f"ms/pass {milliseconds:7.1f}  {r.get('params', '')}",
            file=sys.stderr,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", nargs="+", default=["imdb"])
    parser.add_argument("--passes", nargs="+", type=int, default=[1, 5])
    parser.add_argument("--at-most", type=int, default=5000, metavar="NNZ")
    parser.add_argument("--learner", nargs="+", default=list(GRIDS), choices=list(GRIDS))
    parser.add_argument("--no-rivals", action="store_true")
    chosen = parser.parse_args()
    problem = common.load(chosen.data)
    data = ours.dataset(problem)
    test = SparseDataset.from_csr(
        problem.X_test, problem.y_test.astype(np.int64), None, data.classes
    )
    train_part, held_out = data.split(0.2, seed=1)
    rows: list[dict[str, Any]] = []
    for passes in chosen.passes:
        for name in chosen.learner:
            params = choose(train_part, held_out, name, passes, sys.maxsize)
            assert params is not None
            rows.append(row(data, test, name, passes, params))
        if not chosen.no_rivals:
            rows += rivals(problem, passes)
    sparse: list[dict[str, Any]] = []
    if chosen.at_most:
        for name in ("adagrad-rda", "rda"):
            # Weights grow with the data: a fifth less of them are allowed on four fifths of it.
            params = choose(train_part, held_out, name, 5, int(0.9 * chosen.at_most))
            if params is not None:
                sparse.append(row(data, test, name, 5, params))
        if not chosen.no_rivals:
            sparse += [
                {"learner": f"liblinear C={C:g}", **liblinear.fit(problem, C)._asdict()}
                for C in (1.0, 3.0, 10.0, 20.0)
            ]
    show(rows)
    print(f"at most {chosen.at_most:,} weights:", file=sys.stderr)
    show(sparse)
    common.report("quality", "hopefear", problem, {"rows": rows, "sparse": sparse})


if __name__ == "__main__":
    main()

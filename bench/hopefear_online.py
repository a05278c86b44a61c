"""Our own learners: seconds per pass, test error, non-zero weights.

python bench/hopefear_online.py --data imdb --learner rda adagrad-rda perceptron vrda
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import common
import numpy as np

from hopefear.averaging.voted import Voted
from hopefear.core.learner import Learner
from hopefear.data.sparse import SparseDataset
from hopefear.recipes import RECIPES, Recipe, Scale
from hopefear.structures.classes import Binary
from hopefear.training.decoders.classes import ClassDecoder
from hopefear.training.loop import Fit, fit
from hopefear.training.passes import Passes

ONLINE = [name for name, recipe in RECIPES.items() if isinstance(recipe, Recipe)]
LEARNERS: dict[str, dict[str, Any]] = {name: {"learner": name} for name in ONLINE} | {
    "rda": {"learner": "rda", "l1": 1e-5},
    "vrda": {"learner": "vrda", "l1": 1e-6},
    "adagrad-rda": {"learner": "adagrad-rda", "l1": 1e-6, "rate": 1.0},
    "rda-average": {"learner": "rda", "l1": 1e-5, "averaging": "averaged"},
}


def dataset(problem: common.Problem) -> SparseDataset:
    """The problem as our kernels see it; the arrays are shared where types allow."""
    return SparseDataset.from_csr(problem.X, problem.y.astype(np.int64))


def make(name: str, n: int) -> Learner:
    """The learner of that name, for unit rows; l1 is weaker for a million examples."""
    params = dict(LEARNERS[name])
    recipe = RECIPES[params.pop("learner")]
    if n >= 500_000 and "l1" in params:
        params["l1"] *= 0.1
    return recipe.build(Scale(1.0, n), **params)


def run(data: SparseDataset, name: str, passes: int) -> Fit:
    learner = make(name, len(data))
    return fit(Binary(data.n_features), learner, Passes(data, seed=1), epochs=passes)


def tasks(data: SparseDataset, learners: list[str], passes: int = 6) -> dict[str, common.Task]:
    """Runs of one and of several passes, kernels compiled beforehand."""
    small = data.take(np.arange(8))
    for name in learners:
        run(small, name, 1)
    return {
        common.key(f"ours {name}", n): lambda name=name, n=n: common.cpu_seconds(
            lambda: run(data, name, n)
        )
        for name in learners
        for n in (1, passes)
    }


def votes(problem: common.Problem, data: SparseDataset, rows: int = 200) -> dict[str, common.Task]:
    """Votes on some test rows, and NumPy's sums of the lines that these votes are made of."""
    voted_learner = replace(make("vrda", len(data)), averaging=Voted())
    structure = Binary(data.n_features)
    voted = fit(structure, voted_learner, Passes(data, seed=1), epochs=5).predictor
    test = SparseDataset.from_csr(problem.X_test[:rows]).rows
    ClassDecoder(structure, voted).decide(test)
    indices = np.searchsorted(voted.coordinates, test.indices)
    indices = np.minimum(indices, voted.coordinates.size - 1)
    is_known = voted.coordinates[indices] == test.indices
    lines = [
        np.concatenate([np.arange(*voted.starts[p : p + 2]) for p in indices[a:b][is_known[a:b]]])
        for a, b in pairwise(test.indptr.tolist())
    ]

    def sums() -> None:
        for line_indices in lines:
            for ends in (voted.begin, voted.end):
                for values in (voted.level, voted.fall):
                    np.bincount(ends[line_indices], values[line_indices], voted.drops.size + 1)

    return {
        "votes ours": lambda: common.cpu_seconds(
            lambda: ClassDecoder(structure, voted).decide(test)
        ),
        "votes numpy": lambda: common.cpu_seconds(sums),
    }


def quality(problem: common.Problem, data: SparseDataset, name: str, passes: int) -> dict[str, Any]:
    """Test error in percent and non-zero weights: of what is kept, and of the last weights."""
    result = run(data, name, passes)
    test = SparseDataset.from_csr(problem.X_test).rows
    _, scores = ClassDecoder(Binary(data.n_features), result.predictor).decide(test)
    return {
        "error": problem.error(scores[:, 0]),
        "nnz": result.predictor.nnz,
        "last_nnz": result.trainer.support()[0],
        "updates": result.trainer.updates,
    }


def main() -> None:
    chosen = common.arguments(__doc__, list(LEARNERS), ["rda", "adagrad-rda", "perceptron", "vrda"])
    problem = common.load(chosen.data)
    data = dataset(problem)
    times = common.interleave(tasks(data, chosen.learner, chosen.passes), chosen.repeats)
    results = {
        name: common.per_pass(times, f"ours {name}", chosen.passes)
        | quality(problem, data, name, 1)
        for name in chosen.learner
    }
    extra = {"repeats": chosen.repeats, "passes": chosen.passes}
    common.report("hopefear", "hopefear", problem, results, **extra)


if __name__ == "__main__":
    main()

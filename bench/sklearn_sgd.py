"""scikit-learn's SGD classifiers: seconds per pass, test error, non-zero weights.

python bench/sklearn_sgd.py --data imdb --learner log-l1 log-l2
"""

from __future__ import annotations

from typing import Any

import common
import numpy as np
from sklearn.linear_model import SGDClassifier

PERCEPTRON = {"loss": "perceptron", "penalty": None, "learning_rate": "constant", "eta0": 1.0}
LEARNERS: dict[str, dict[str, Any]] = {
    "log-l1": {"loss": "log_loss", "penalty": "l1"},
    "log-l2": {"loss": "log_loss", "penalty": "l2"},
    "hinge-l1": {"loss": "hinge", "penalty": "l1"},
    "hinge-average": {"loss": "hinge", "penalty": "l2", "average": True},
    "perceptron": PERCEPTRON,
    "perceptron-average": {**PERCEPTRON, "average": True},
}


def alpha(problem: common.Problem) -> float:
    """The strength of the penalty used unless another is given."""
    return 1e-5 if problem.X.shape[0] < 500_000 else 1e-6


def fit(
    problem: common.Problem, learner: str, passes: int = 1, *, strength: float | None = None
) -> SGDClassifier:
    """So many passes in shuffled order, never stopping early."""
    strength = alpha(problem) if strength is None else strength
    model = SGDClassifier(
        **LEARNERS[learner], alpha=strength, max_iter=passes, tol=None, random_state=1
    )
    return model.fit(problem.X, problem.y)


def tasks(problem: common.Problem, learners: list[str], passes: int = 6) -> dict[str, common.Task]:
    """Runs of one and of several passes, for `common.interleave` and `common.per_pass`."""
    return {
        common.key(f"sklearn {name}", n): lambda name=name, n=n: common.cpu_seconds(
            lambda: fit(problem, name, n)
        )
        for name in learners
        for n in (1, passes)
    }


def quality(problem: common.Problem, learner: str, passes: int = 1) -> dict[str, Any]:
    """Returns test error (percent) and number of non-zero weights after ``passes`` epochs."""
    model = fit(problem, learner, passes)
    error = problem.error(model.decision_function(problem.X_test))
    return {"error": error, "nnz": int(np.count_nonzero(model.coef_))}


def main() -> None:
    chosen = common.arguments(__doc__, list(LEARNERS), ["log-l1", "log-l2", "perceptron-average"])
    problem = common.load(chosen.data)
    times = common.interleave(tasks(problem, chosen.learner, chosen.passes), chosen.repeats)
    results = {
        name: common.per_pass(times, f"sklearn {name}", chosen.passes) | quality(problem, name)
        for name in chosen.learner
    }
    extra = {"alpha": alpha(problem), "repeats": chosen.repeats, "passes": chosen.passes}
    common.report("scikit-learn SGDClassifier", "scikit-learn", problem, results, **extra)


if __name__ == "__main__":
    main()

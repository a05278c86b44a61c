"""One training: pass after pass, the last weights and the average scored after each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hopefear.core.learner import Learner
from hopefear.experiments.swvp_synthetic.plan import AVERAGED, LAST
from hopefear.experiments.swvp_synthetic.problems import Problem
from hopefear.training.decoding import Decoder
from hopefear.training.online import OnlineTrainer


@dataclass(frozen=True)
class Run:
    """A learner on a dataset, after all passes."""

    beta: float
    dev: np.ndarray  # float64[2, passes]: accuracy in percent; last weights, then their average
    test: np.ndarray
    right: np.ndarray  # int64[2, test items]: right tokens after the last pass
    mistakes: np.ndarray  # int64[passes]: in each pass
    counts: np.ndarray  # int64[4]: as in ``losses.swvp.Violations``

    @property
    def passes(self) -> int:
        """Passes that were made; fewer than allowed when one brought no mistake."""
        return len(self.mistakes)


def train(problem: Problem, learner: Learner, passes: int, beta: float = 0.0) -> Run:
    """Train in the order of the data, at most ``passes`` times, until a pass makes no mistake.

    >>> from hopefear.experiments.swvp_synthetic.plan import QUICK, perceptron
    >>> from hopefear.experiments.swvp_synthetic.problems import make_problem
    >>> run = train(make_problem(QUICK, 1, 0), perceptron(), passes=2)
    >>> run.test.shape, run.right.shape, int(run.counts[0]) == int(run.mistakes.sum())
    ((2, 2), (2, 50), True)
    """
    trainer = OnlineTrainer(problem.structure, learner)
    rows = problem.train.rows
    order = np.arange(len(problem.train))
    dev = np.empty((2, passes))
    test = np.empty((2, passes))
    right = np.empty((2, len(problem.rest) - problem.n_dev), np.int64)
    mistakes: list[int] = []
    for p in range(passes):
        before = trainer.mistakes
        trainer.learn(rows, order)
        mistakes.append(trainer.mistakes - before)
        for kept, weights in ((LAST, trainer.weights()), (AVERAGED, trainer.average())):
            hits = _hits(problem, weights.astype(np.float32))
            dev[kept, p:] = 100.0 * hits[: problem.n_dev].mean()
            test[kept, p:] = 100.0 * hits[problem.n_dev :].mean()
            right[kept] = hits[problem.n_dev :].sum(axis=1)
        if mistakes[-1] == 0:
            break
    return Run(beta, dev, test, right, np.array(mistakes), _counts(trainer))


def _hits(problem: Problem, weights: np.ndarray) -> np.ndarray:
    """Which tokens of the items that are not trained on are right: bool[items, length]."""
    rows = problem.rest.rows
    found = Decoder(problem.structure, weights).best(rows) == rows.labels
    return found.reshape(len(problem.rest), -1)


def _counts(trainer: OnlineTrainer) -> np.ndarray:
    """What the loss wrote down about its updates."""
    work = trainer._work
    assert work is not None
    counts: np.ndarray = work.pad.counts.copy()
    return counts

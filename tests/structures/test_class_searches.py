"""Searches among classes, and every loss on them, against the list of all classes."""

from __future__ import annotations

import numpy as np
import pytest
from chain_oracle import Sums
from reference import exact_weights, random_problem

from hopefear.averaging.last import Last
from hopefear.averaging.voted import Voted
from hopefear.core.interfaces import n_weights
from hopefear.core.learner import Learner
from hopefear.core.workspace import DenseWeights, Example
from hopefear.costs.hamming import Hamming
from hopefear.costs.regret import Regret
from hopefear.costs.weighted import Weighted
from hopefear.errors import CombinationError
from hopefear.losses.log import Log
from hopefear.losses.logistic import Logistic
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.risk import Risk
from hopefear.losses.sapo import SAPO
from hopefear.losses.swvp import SWVP
from hopefear.rules.sgd import SGD
from hopefear.structures.classes import Binary, Multiclass
from hopefear.testing import World
from hopefear.training.online import OnlineTrainer

pytestmark = pytest.mark.interpreted

STRUCTURES = [Binary(8, bias=0.7), Multiclass(8, 4), Multiclass(8, 3, bias=0.7)]
structures = pytest.mark.parametrize(
    "structure", STRUCTURES, ids=["binary", "four", "three-and-bias"]
)


class Asked:
    """A loss at work on every example; one workspace for all, as in training."""

    def __init__(self, structure, loss):
        self.structure, self.loss = structure, loss
        self.problem = random_problem(1, 14, 8, structure.n_labels, weighted=True)
        self.work = structure.workspace(self.problem.rows, loss, np.float64)

    def scored(self, scale, seed=2):
        rng = np.random.default_rng(seed)
        for i in range(14):
            w = scale * rng.normal(size=n_weights(self.structure))
            x = Example(self.problem.rows, i)
            self.structure.score(x, DenseWeights(w), self.work.theta)
            yield x, w, World.at(self.structure, self.problem.rows, i, w)

    def direction(self, x):
        row = Sums(np.zeros(n_weights(self.structure)), np.zeros(100, np.int64), False)
        self.structure.scatter(x, self.work.mu, row)
        assert row.times.max() <= 1
        return row.g

    def answer(self, x, w):
        self.structure.score(x, DenseWeights(w), self.work.theta)
        forced = self.loss.subgradient(self.structure, x, self.work) > 0
        g = self.direction(x) if forced else np.zeros(w.size)
        return forced, float(self.work.loss[0]), float(self.work.gold_margin[0]), g


def test_the_log_loss_of_two_classes_is_the_logistic_loss():
    log, logistic = (Asked(STRUCTURES[0], loss) for loss in (Log(), Logistic()))
    for scale in (1.0, 0.0, 60.0):
        for x, w, _ in log.scored(scale):
            a, b = log.answer(x, w), logistic.answer(x, w)
            assert a[:3] == pytest.approx(b[:3], rel=1e-12, abs=1e-300)
            np.testing.assert_allclose(a[3], b[3], rtol=1e-12, atol=1e-300)


def test_one_candidate_is_the_perceptron_ties_included():
    for structure in STRUCTURES:
        one, perceptron = Asked(structure, SAPO(n=1)), Asked(structure, Perceptron())
        for scale in (1.0, 0.0):
            for x, w, _ in one.scored(scale):
                a, b = one.answer(x, w), perceptron.answer(x, w)
                assert (a[0], a[2] <= 0) == (b[0], b[2] <= 0)
                np.testing.assert_array_equal(a[3], b[3])


@structures
def test_what_classes_cannot_do_says_why_and_names_what_can(structure):
    learner = Learner(SWVP(), SGD(), Last(), "mistakes")
    with pytest.raises(CombinationError, match=r"swvp.* needs places.*use the loss perceptron"):
        OnlineTrainer(structure, learner)
    learner = Learner(Risk(Regret()), SGD(), Last())
    with pytest.raises(CombinationError, match=r"risk.* needs regret.*use the cost hamming"):
        OnlineTrainer(structure, learner)
    table = Weighted(np.zeros((7, 7)))
    with pytest.raises(CombinationError, match="7 labels"):
        OnlineTrainer(structure, Learner(Risk(table), SGD(), Last()))


def test_votes_are_kept_where_updates_are_small():
    learner = Learner(Log(), SGD(), Voted())
    OnlineTrainer(STRUCTURES[0], learner)
    with pytest.raises(CombinationError, match="Log and Voted"):
        OnlineTrainer(STRUCTURES[1], learner)
    with pytest.raises(CombinationError, match="Risk and Voted"):
        OnlineTrainer(STRUCTURES[1], Learner(Risk(Hamming()), SGD(), Voted()))


def test_softmax_regression_finds_the_maximum_likelihood():
    """At the end of a long run with falling steps, against a batch solver on the dense problem."""
    from scipy.optimize import minimize

    structure = Multiclass(4, 3)
    problem = random_problem(5, 40, 4, 3)
    X, labels = problem.X, problem.rows.labels

    def objective(flat):
        scores = X @ flat.reshape(4, 3)
        logs = scores - np.logaddexp.reduce(scores, axis=1)[:, None]
        return -logs[np.arange(40), labels].sum() + 40 * 0.01 * flat @ flat / 2

    least = minimize(objective, np.zeros(12)).fun
    learner = Learner(Log(), SGD(rate=2.0, power=0.6, l2=0.01), Last())
    trainer = OnlineTrainer(structure, learner, np.float64)
    for _ in range(60):
        trainer.learn(problem.rows, np.arange(40))
    assert objective(exact_weights(trainer)) == pytest.approx(least, rel=1e-3)

"""Searches among classes, and every loss on them, against the list of all classes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from chain_oracle import Sums, force, softmax
from class_oracle import ClassWorld
from reference import exact_weights, random_problem

from hopefear.core.learner import Learner, describe
from hopefear.core.workspace import Example, Plain
from hopefear.costs.hamming import Hamming
from hopefear.costs.regret import Regret
from hopefear.costs.weighted import Weighted
from hopefear.errors import CombinationError
from hopefear.losses.hope_fear import HopeFear
from hopefear.losses.log import Log
from hopefear.losses.logistic import Logistic
from hopefear.losses.nbest_mira import NBestMIRA
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.prediction_hinge import PredictionHinge
from hopefear.losses.ramp import Ramp
from hopefear.losses.risk import Risk
from hopefear.losses.sapo import SAPO
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.losses.swvp import SWVP
from hopefear.losses.weighted_log import WeightedLog
from hopefear.readouts.last import Last
from hopefear.readouts.voted import Voted
from hopefear.rules.sgd import SGD
from hopefear.structures.classes import Binary, Multiclass
from hopefear.training.online import OnlineTrainer

pytestmark = pytest.mark.interpreted

STRUCTURES = [Binary(8, bias=0.7), Multiclass(8, 4), Multiclass(8, 3, bias=0.7)]
structures = pytest.mark.parametrize(
    "structure", STRUCTURES, ids=["binary", "four", "three-and-bias"]
)
scales = pytest.mark.parametrize("scale", [1.0, 0.05, 0.0, 800.0])
LOSSES = [
    Log(),
    Log(force=0.5),
    SAPO(n=1),
    SAPO(n=3),
    SAPO(n=3, ratio=2.0),
    StructuredHinge(Hamming(0.6)),
    PredictionHinge(root=True),
    NBestMIRA(n=1),
    NBestMIRA(n=3, C=0.1, rounds=5000),
    NBestMIRA(n=3, augmented=True, rounds=5000),
    NBestMIRA(n=3, sequential=True),
    Ramp(Hamming(0.6)),
    HopeFear(Hamming(0.6)),
    HopeFear(Hamming(), toward=1, away=1),
    HopeFear(Hamming(), away=2),
    Risk(Hamming(), sharp=2.0),
    WeightedLog(Hamming(), sharp=2.0),
]
SMOOTH = [Log(), SAPO(n=4), Risk(Hamming(2.0), sharp=0.7), WeightedLog(Hamming(), sharp=1.5)]


def prices(structure):
    table = np.random.default_rng(5).uniform(0, 2, (structure.n_labels(),) * 2)
    np.fill_diagonal(table, 0)
    return Weighted(table)


class Asked:
    """A loss at work on every example; one workspace for all, as in training."""

    def __init__(self, structure, loss):
        self.structure, self.loss = structure, loss
        self.problem = random_problem(1, 14, 8, structure.n_labels(), weighted=True)
        self.work = structure.workspace(self.problem.rows, loss, np.float64)

    def scored(self, scale, seed=2):
        rng = np.random.default_rng(seed)
        for i in range(14):
            w = scale * rng.normal(size=self.structure.n_coordinates())
            x = Example(self.problem.rows, i)
            self.structure.score(x, Plain(w), self.work.theta)
            yield x, w, ClassWorld(self.structure, self.problem, i, w)

    def direction(self, x):
        row = Sums(np.zeros(self.structure.n_coordinates()), np.zeros(100, np.int64), False)
        self.structure.scatter(x, self.work.mu, row)
        assert row.times.max() <= 1
        return row.g

    def answer(self, x, w):
        self.structure.score(x, Plain(w), self.work.theta)
        forced = self.loss.subgradient(self.structure, x, self.work) > 0
        g = self.direction(x) if forced else np.zeros(w.size)
        return forced, float(self.work.loss[0]), float(self.work.gap[0]), g


@structures
@scales
def test_searches_find_what_enumeration_finds(structure, scale):
    asked = Asked(structure, SAPO(n=3))
    work, n = asked.work, structure.n_labels()
    for x, _, world in asked.scored(scale):
        for cost in (Hamming(0.8), prices(structure)):
            costs = world.costs(cost)
            for sign, by in (
                (1.0, world.scores + costs),
                (-1.0, world.scores - costs),
                (math.inf, costs),
            ):
                z, price = structure.seek(x, work.theta, cost, sign, work.y)
                wanted = world.ranked(by)[0]
                assert (work.y[0], price) == (wanted, costs[wanted])
                assert z == pytest.approx(world.lead(wanted), abs=1e-9)
            count = structure.candidates(x, work.theta, cost, 3, 0.0)
            found = [structure.candidate(x, work.theta, k)[0] for k in range(count)]
            assert found == world.ranked(world.scores + costs)[:3]
        for most, ratio in ((1, 0.0), (n, 0.0), (n + 5, 0.0), (n, 1.5)):
            count = structure.candidates(x, work.theta, None, most, ratio)
            found = [structure.candidate(x, work.theta, k)[0] for k in range(count)]
            assert found == world.top(most, ratio)
            for k, c in enumerate(found):
                y = structure.candidate(x, work.theta, k)
                assert structure.right(x, y) == (c == world.gold)
                assert structure.lead(x, work.theta, y) == pytest.approx(world.lead(int(c)))
        products = np.zeros((n, n))
        count = structure.candidates(x, work.theta, None, n, 0.0)
        structure.gram(x, work.theta, count, work.mu, products)
        D = np.array([world.delta(c) for c in world.ranked()])
        np.testing.assert_allclose(products, D @ D.T, atol=1e-12)


@structures
@scales
def test_expectations(structure, scale):
    asked = Asked(structure, Risk(Hamming()))
    work = asked.work
    for x, _, world in asked.scored(scale):
        for cost, sharp in ((Hamming(), 1.0), (prices(structure), 0.4), (Hamming(), 3.0)):
            costs, P = world.costs(cost), softmax(sharp * world.scores)
            value = structure.expect_cost(x, work.theta, cost, sharp, 0.7, work.mu)
            assert value == pytest.approx(P @ costs, rel=1e-9, abs=1e-12)
            wanted = -0.7 * sharp * (P * (costs - P @ costs)) @ world.F
            np.testing.assert_allclose(asked.direction(x), wanted, atol=1e-12)
            P, Q = softmax(world.scores), softmax(-sharp * costs)
            value = structure.expect_good(x, work.theta, cost, sharp, 0.7, work.mu)
            logs = world.scores - np.logaddexp.reduce(world.scores)
            assert value == pytest.approx(Q @ (np.log(Q) - logs), rel=1e-9, abs=1e-12)
            np.testing.assert_allclose(asked.direction(x), 0.7 * (Q - P) @ world.F, atol=1e-12)
        value = structure.expect(x, work.theta, 0.7, work.mu)
        assert value == pytest.approx(-logs[world.gold], rel=1e-9, abs=1e-12)
        wanted = 0.7 * (world.F[world.gold] - P @ world.F)
        np.testing.assert_allclose(asked.direction(x), wanted, atol=1e-12)


@structures
@pytest.mark.parametrize("loss", LOSSES, ids=describe)
def test_directions_are_those_of_the_papers(structure, loss):
    asked = Asked(structure, loss)
    tolerance = 1e-6 if type(loss) is NBestMIRA else 1e-9
    for scale in (3.0, 0.3, 0.0):
        for x, w, world in asked.scored(scale):
            forced, value, gap, g = asked.answer(x, w)
            wanted = force(loss, world)
            assert value == pytest.approx(wanted.value, rel=1e-9, abs=1e-9)
            assert (gap <= 0 and world.importance > 0) == wanted.mistaken
            assert forced == wanted.forced
            np.testing.assert_allclose(g, wanted.g if forced else 0 * g, atol=tolerance)


@structures
@pytest.mark.parametrize("loss", SMOOTH, ids=describe)
def test_directions_are_minus_the_gradients(structure, loss):
    asked = Asked(structure, loss)
    for x, w, _ in asked.scored(2.0):
        g, numeric = asked.answer(x, w)[3], np.zeros(w.size)
        for j in range(w.size):
            step = np.zeros(w.size)
            step[j] = 1e-6
            ends = [asked.answer(x, w + sign * step)[1] for sign in (-1, 1)]
            numeric[j] = (ends[0] - ends[1]) / 2e-6
        np.testing.assert_allclose(g, numeric, rtol=1e-5, atol=1e-7)


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

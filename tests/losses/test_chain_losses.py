"""Losses on chains: directions are those of the papers, on the list of all outputs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from chain_oracle import Sums, World, softmax, tiny_rows

from hopefear.averaging.last import Last
from hopefear.core.interfaces import n_weights
from hopefear.core.learner import Learner
from hopefear.core.workspace import DenseWeights, Example
from hopefear.costs.hamming import Hamming
from hopefear.costs.weighted import Weighted
from hopefear.errors import CombinationError
from hopefear.losses.log import Log
from hopefear.losses.nbest_mira import NBestMIRA, solve
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.ramp import Ramp
from hopefear.losses.risk import Risk
from hopefear.losses.sapo import SAPO
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.rules.sgd import SGD
from hopefear.structures.chain.chain import Chain

pytestmark = pytest.mark.interpreted

PRICES = Weighted(np.array([[0, 1, 0.5, 2], [1, 0, 1, 1], [3, 0.25, 0, 1], [1, 1, 1, 0.0]]))
SHAPES = [
    {"attributes": 5, "labels": labels, "order": order, "edge_attributes": edges}
    for labels, order, edges in [(3, 1, 0), (4, 1, 2), (2, 2, 0), (3, 2, 2)]
]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=["first", "rich", "second", "second-rich"])


class Asked:
    """A loss at work on every sequence of a tiny dataset."""

    def __init__(self, shape, loss, seed=1, weights=None, lengths=(3, 1, 2, 3, 4)):
        self.chain = Chain.new(**shape)
        self.rows = tiny_rows(seed, lengths, self.chain, weights=weights)
        self.loss = loss
        self.work = self.chain.workspace(self.rows, loss, np.float64)

    def answer(self, i, w):
        """(forced, loss, gap, direction)."""
        x, work = Example(self.rows, i), self.work
        self.chain.score(x, DenseWeights(w), work.theta)
        forced = self.loss.subgradient(self.chain, x, work) > 0
        row = Sums(np.zeros(w.size), np.zeros(w.size, np.int64), False)
        if forced:
            self.chain.scatter(x, work.mu, row)
        return forced, float(work.loss[0]), float(work.gold_margin[0]), row.g

    def weights(self, seed=2, scale=1.0):
        rng = np.random.default_rng(seed)
        for i in range(self.rows.weights.size):
            yield i, scale * rng.normal(size=n_weights(self.chain))

    def world(self, i, w):
        return World(self.chain, self.rows, i, w)


@shapes
def test_sapo_with_one_output_is_the_perceptron(shape):
    one, perceptron = Asked(shape, SAPO(n=1)), Asked(shape, Perceptron())
    moves = 0
    for i, w in one.weights():
        a, b = one.answer(i, w), perceptron.answer(i, w)
        assert a[0] == b[0]
        assert a[1] == pytest.approx(b[1], abs=1e-12)
        np.testing.assert_array_equal(a[3], b[3])
        moves += a[0]
    assert moves > 0


@shapes
def test_sapo_with_all_outputs_is_the_crf(shape):
    every = Asked(shape, SAPO(n=4**4))
    crf = Asked(shape, Log())
    for i, w in every.weights():
        (_, a, _, g), (_, b, _, h) = every.answer(i, w), crf.answer(i, w)
        assert a == pytest.approx(b, rel=1e-9)
        np.testing.assert_allclose(g, h, atol=1e-9)


@shapes
def test_sapo_comes_closer_to_the_crf_with_n(shape):
    """Eqs. 13 and 14 of the paper: the update term can be made arbitrarily close."""
    distances = []
    for n in (1, 8, 256):
        asked, crf = Asked(shape, SAPO(n=n)), Asked(shape, Log())
        pairs = [(asked.answer(i, w)[3], crf.answer(i, w)[3]) for i, w in asked.weights()]
        distances.append(sum(np.linalg.norm(a - b) for a, b in pairs))
    assert distances[0] > distances[1] > distances[2]
    assert distances[2] < 1e-9


@shapes
def test_sequential_mira_moves_the_weights_after_every_output(shape):
    loss = NBestMIRA(n=4, root=True, sequential=True)
    asked = Asked(shape, loss)
    for i, w in asked.weights():
        world = asked.world(i, w)
        moved, gold = w.copy(), world.gold
        for k in world.top(4):
            d = world.F[gold] - world.F[k]
            if d @ d == 0:
                continue
            price = math.sqrt(sum(a != b for a, b in zip(world.ys[gold], world.ys[k], strict=True)))
            moved = moved + (price - moved @ d) / (d @ d) * d
        np.testing.assert_allclose(w + asked.answer(i, w)[3], moved, atol=1e-9)


@shapes
def test_mira_with_one_output_is_a_passive_aggressive_step(shape):
    asked = Asked(shape, NBestMIRA(n=1, C=0.4))
    steps = []
    for i, w in asked.weights():
        world = asked.world(i, w)
        best = world.ranked()[0]
        if best == world.gold:
            assert not asked.answer(i, w)[0]
            continue
        d = world.delta(best)
        cost = sum(a != b for a, b in zip(world.ys[world.gold], world.ys[best], strict=True))
        steps.append(min(0.4, (cost - w @ d) / (d @ d)))
        np.testing.assert_allclose(asked.answer(i, w)[3], steps[-1] * d, atol=1e-9)
    assert 0.4 in steps and min(steps) < 0.4


def test_hildreth_on_dependent_directions():
    """Three directions in a plane, two of them the same: many multipliers, one change."""
    D = np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    short, alpha = np.array([1.0, 2.0, 0.5, 0.0]), np.full(4, 9.0)
    solve(D @ D.T, short, alpha, 4, 10.0, 0.0, 500)
    np.testing.assert_allclose(alpha @ D, [2.0, 0.0], atol=1e-8)
    assert alpha[3] == 0


def test_without_weights_costs_alone_are_feared():
    asked = Asked({"attributes": 2, "labels": 2}, StructuredHinge(), lengths=(3,))
    w = np.zeros(n_weights(asked.chain))
    assert asked.answer(0, w)[:3] == (True, 3.0, 0.0)
    assert asked.work.y.tolist() == (1 - asked.rows.labels).tolist()
    free = Asked({"attributes": 2, "labels": 2}, StructuredHinge(Hamming(0.0)), lengths=(3,))
    assert free.answer(0, w)[1] == 0.0


def test_scores_of_thousands_stay_finite():
    for loss in (Log(), SAPO(n=4), NBestMIRA(n=3), StructuredHinge(), Ramp(), Risk(Hamming())):
        asked = Asked(SHAPES[0], loss)
        for i, w in asked.weights(scale=3000.0):
            _, value, gap, g = asked.answer(i, w)
            assert math.isfinite(value) and math.isfinite(gap)
            assert np.isfinite(g).all()
            assert value >= 0


def test_the_loss_of_sapo_bounds_its_share_of_gold():
    """Where gold is among the n, the loss is minus the log of its probability among them."""
    asked = Asked(SHAPES[0], SAPO(n=9))
    for i, w in asked.weights():
        world = asked.world(i, w)
        top = world.top(9)
        if world.gold in top:
            P = softmax(world.scores[top])[top.index(world.gold)]
            assert asked.answer(i, w)[1] == pytest.approx(-math.log(P))


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (SAPO(n=0), "n must be at least 1"),
        (SAPO(ratio=-1.0), "ratio must not be negative"),
        (NBestMIRA(n=0), "at least 1"),
        (NBestMIRA(rounds=0), "at least 1"),
        (NBestMIRA(C=0.0), "C must be above zero"),
        (Log(force=0.0), "force must be above zero"),
        (StructuredHinge(Weighted(np.ones((2, 2)))), "Weighted: prices"),
        (Ramp(Hamming(-1.0)), "Hamming: each must not be negative"),
    ],
)
def test_parameters_without_sense_are_refused(loss, message):
    with pytest.raises(CombinationError, match=message):
        Learner(loss, SGD(), Last())

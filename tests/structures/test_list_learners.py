"""Learners of lists, compiled: equal to the same code run as plain Python, and to the paper.

Every combination costs many seconds to compile, so these are few; the matrix is interpreted. Run
as a program, this file writes what they learn to the .npz file it is given.
"""

from __future__ import annotations

import numpy as np
import pytest
from chain_oracle import replay_on
from compiled_spread import same, write
from list_oracle import ListWorld, rows_of, tiny_lists
from reference import exact_weights, stepwise

from hopefear.averaging.averaged import Averaged
from hopefear.averaging.last import Last
from hopefear.averaging.voted import Voted
from hopefear.core.learner import Learner
from hopefear.costs.regret import Regret
from hopefear.losses.hinge import Hinge
from hopefear.losses.hope_fear import HopeFear
from hopefear.losses.log import Log
from hopefear.losses.nbest_mira import NBestMIRA
from hopefear.rules.arow import AROW
from hopefear.rules.rda import RDA
from hopefear.rules.sgd import SGD
from hopefear.structures.nbest import NBest
from hopefear.training.online import DivergedError, OnlineTrainer

# Every kind of search: best rival, probabilities, hope and fear, the n best.
SPREAD = {
    "vrda": (False, Learner(Hinge(), RDA(rate=0.5, l1=0.02), Voted(), "mistakes")),
    "log": (True, Learner(Log(), SGD(0.3, l2=0.02), Averaged())),
    "hope-fear-arow": (False, Learner(HopeFear(Regret(2.0)), AROW(r=0.5), Last())),
    "nbest-mira": (False, Learner(NBestMIRA(Regret(), n=3, C=0.5, augmented=True), SGD(), Last())),
}
ROWS = tiny_lists(8, sizes=(3, 1, 4, 2, 5, 3, 4, 2, 6, 3), offsets=False)
ORDER = np.concatenate([np.arange(10), np.arange(10)[::-1]])
WINDOW = 8  # small, so that the books are settled several times
pytestmark = pytest.mark.usefixtures("small_window")


def learnt(name):
    """Everything a learner leaves behind after two passes."""
    tied, learner = SPREAD[name]
    trainer = OnlineTrainer(NBest(6, tied), learner, np.float64)
    trainer.learn(ROWS, ORDER)
    found = {"weights": exact_weights(trainer)} | trainer.arrays()
    if isinstance(learner.averaging, Averaged):
        found["average"] = trainer.average()
    return found


@pytest.mark.parametrize("name", SPREAD)
def test_compiled_equals_interpreted(name, interpreted):
    same(name, learnt(name), interpreted)


@pytest.mark.parametrize("name", SPREAD)
def test_compiled_equals_the_dense_oracle(name):
    tied, learner = SPREAD[name]
    structure = NBest(6, tied)
    trace = replay_on(structure, learner, ROWS, ORDER)
    trainer = OnlineTrainer(structure, learner, np.float64)
    copies = stepwise(trainer, ROWS, ORDER)
    tolerance = 1e-4 if name == "nbest-mira" else 1e-9  # solved in 200 rounds at most
    np.testing.assert_allclose(copies, trace.snapshots, rtol=0, atol=tolerance)
    assert trainer.updates == trace.updates
    if isinstance(learner.averaging, Averaged):
        np.testing.assert_allclose(
            trainer.average(), trace.snapshots.mean(axis=0), rtol=0, atol=tolerance
        )


def figure_one(rows, order, eta, lam, features=6):
    """Figure 1 with eq. 10: (predictors, their counts, mistakes).

    Its line ``c_k = 1`` stands for the predictor that is new, k + 1; the other paper on voted dual
    averaging has it right. A tie is a mistake, else w_1 = 0 could only be left by the order of a
    list.
    """
    w, gbar, k = np.zeros(features), np.zeros(features), 1
    predictors, counts = [w], [0]
    for i in order:
        world = ListWorld(NBest(features), rows, i, w)
        rival = world.best_rival()
        if rival is None or world.lead(rival) > 0:
            counts[-1] += 1
            continue
        g = -world.delta(rival)  # of max(0, 1 - w.z) where w.z <= 0
        gbar = ((k - 1) * gbar + g) / k
        shrunk = np.where(np.abs(gbar) > lam, gbar - np.sign(gbar) * lam, 0.0)
        w = -np.sqrt(k) / eta * shrunk
        k += 1
        predictors.append(w)
        counts.append(1)
    return np.array(predictors), np.array(counts), k - 1


@pytest.mark.parametrize("lam", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("eta", [0.5, 2.0])
def test_voted_dual_averaging_is_figure_one(eta, lam):
    order = np.tile(np.arange(10), 4)
    learner = Learner(Hinge(), RDA(rate=1 / eta, l1=lam), Voted(), "mistakes")
    trainer = OnlineTrainer(NBest(6), learner, np.float64)
    copies = stepwise(trainer, ROWS, order)
    predictors, counts, mistakes = figure_one(ROWS, order, eta, lam)
    assert trainer.mistakes == trainer.updates == mistakes > 5
    np.testing.assert_allclose(copies, np.repeat(predictors, counts, axis=0), atol=1e-9)
    kept = trainer.predictor()
    np.testing.assert_array_equal(np.diff(kept.survived), counts)
    assert np.count_nonzero(copies[-1]) == np.count_nonzero(predictors[-1])


def test_the_average_weighs_predictors_by_their_survival():
    order = np.tile(np.arange(10), 3)
    learner = Learner(Hinge(), RDA(rate=0.5, l1=0.02), Voted(), "mistakes")
    trainer = OnlineTrainer(NBest(6), learner, np.float64)
    copies = stepwise(trainer, ROWS, order)
    predictors, counts, _ = figure_one(ROWS, order, 2.0, 0.02)
    np.testing.assert_allclose(counts @ predictors / counts.sum(), copies.mean(axis=0), atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_mistakes_on_separable_lists_are_bounded(seed):
    """Theorem 1 with lambda = 0 and L(u) = 0: M <= 2 (R |u|)**2, u of margin one."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=6)
    u /= np.linalg.norm(u)
    matrices, costs = [], []
    while len(matrices) < 30:
        m = rng.normal(size=(int(rng.integers(2, 6)), 6)).astype(np.float32)
        ranked = np.sort(m @ u)
        if ranked[-1] - ranked[-2] > 0.5:
            matrices.append(m)
            costs.append(np.arange(len(m)) != np.argmax(m @ u))
    rows = rows_of(matrices, costs)
    worlds = [ListWorld(NBest(6), rows, i, u) for i in range(30)]
    gamma = min(world.lead(world.best_rival()) for world in worlds)
    R = max(np.linalg.norm(w.delta(k)) for w in worlds for k in np.flatnonzero(w.rivals))
    learner = Learner(Hinge(), RDA(rate=0.5, l1=0.0), Voted(), "mistakes")
    trainer = OnlineTrainer(NBest(6), learner, np.float64)
    trainer.learn(rows, rng.permutation(30))
    first = trainer.mistakes
    assert 0 < first <= 2 * (R / gamma) ** 2
    before = -1
    while trainer.mistakes > before:  # no more than the bound in any number of passes
        before = trainer.mistakes
        trainer.learn(rows, rng.permutation(30))
    assert trainer.mistakes <= 2 * (R / gamma) ** 2


def test_steps_that_are_too_long_are_an_error_and_not_a_model():
    tied, learner = SPREAD["log"]
    learner = Learner(learner.loss, SGD(rate=1e308, l2=0.0), learner.averaging)
    trainer = OnlineTrainer(NBest(6, tied), learner, np.float64)
    with np.errstate(all="ignore"), pytest.raises(DivergedError, match="overflowed after"):
        trainer.learn(ROWS, np.tile(ORDER, 5))


if __name__ == "__main__":
    write(SPREAD, learnt, WINDOW)

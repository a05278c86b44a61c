"""Compiled learners: equal to dense oracles and to the same code run as plain Python.

Every combination costs seconds to compile, so this is a spread; the full matrix is interpreted.
Run as a program, this file writes what the spread learns to the .npz file it is given.
"""

from __future__ import annotations

import numpy as np
import pytest
from compiled_spread import same, write
from learner_catalogue import RULES
from reference import brute_votes, close, exact_weights, random_problem, replay, stepwise

from hopefear.averaging.averaged import Averaged
from hopefear.averaging.last import Last
from hopefear.averaging.voted import Voted
from hopefear.core.learner import Learner
from hopefear.costs.hamming import Hamming
from hopefear.errors import HopefearError
from hopefear.losses.exponential import Exponential
from hopefear.losses.hinge import Hinge
from hopefear.losses.linear import Linear
from hopefear.losses.log import Log
from hopefear.losses.logistic import Logistic
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.risk import Risk
from hopefear.losses.sapo import SAPO
from hopefear.losses.squared_hinge import SquaredHinge
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.rules.sgd import SGD
from hopefear.structures.classes import Binary, Multiclass
from hopefear.training.decoders.classes import ClassDecoder
from hopefear.training.online import DivergedError, OnlineTrainer
from hopefear_papers.theorems.observed import Observed

TWO, FOUR = Binary(12, bias=0.6180339887), Multiclass(12, 4)
# Every rule, loss, averaging and structure at least once.
SPREAD = {
    "sgd": (TWO, Perceptron(), Averaged(), "mistakes"),
    "sgd-l1-l2": (FOUR, Logistic(), Observed(Averaged()), "all"),
    "pa-1": (FOUR, Hinge(), Averaged(), "all"),
    "adagrad-l1": (TWO, Logistic(base=2), Averaged(), "all"),
    "adagrad-rda-l1": (FOUR, SquaredHinge(), Voted(), "all"),
    "rda-l1": (TWO, Hinge(), Voted(), "mistakes"),
    "rda-elastic": (TWO, Logistic(), Averaged(), "all"),
    "tg-threshold": (TWO, Exponential(limit=2), Averaged(), "all"),
    "fobos-elastic": (FOUR, Logistic(), Averaged(), "mistakes"),
    "ftrl-elastic": (TWO, Logistic(), Last(), "all"),
    "cw": (TWO, Linear(), Averaged(), "all"),
    "arow": (FOUR, Hinge(), Last(), "all"),
    "rda-l2": (FOUR, Log(), Averaged(), "all"),
    "sgd-l2": (FOUR, SAPO(n=3), Averaged(), "all"),
    "fobos-l1": (TWO, Risk(cost=Hamming()), Last(), "all"),
    "adagrad": (FOUR, StructuredHinge(), Last(), "all"),
}
ORDER = np.tile(np.arange(60), 2)
WINDOW = 32  # small, so that the books are settled several times
pytestmark = pytest.mark.usefixtures("small_window")


def setting(name):
    structure, loss, averaging, on = SPREAD[name]
    return structure, Learner(loss, RULES[name], averaging, on)


def problem(structure, **more):
    return random_problem(21, classes=structure.n_labels, **more)


def learnt(name):
    """Everything a learner leaves behind after two passes."""
    structure, learner = setting(name)
    trainer = OnlineTrainer(structure, learner, np.float64)
    rows = problem(structure).rows
    trainer.learn(rows, ORDER)
    labels, shown = ClassDecoder(structure, trainer.predictor()).decide(rows)
    found = {"weights": exact_weights(trainer), "labels": labels, "scores": shown}
    if isinstance(learner.averaging, Averaged | Observed):
        found["average"] = trainer.average()
    return found | trainer.arrays()


@pytest.mark.parametrize("name", SPREAD)
def test_compiled_equals_interpreted(name, interpreted):
    # Predictors hold float32 weights; plain Python multiplies them by a bias in float32.
    same(name, learnt(name), interpreted, scores=1e-6)


@pytest.mark.parametrize("name", [name for name in SPREAD if not SPREAD[name][1].requires()])
def test_compiled_equals_the_dense_oracle(name):
    structure, learner = setting(name)
    data = problem(structure)
    trace = replay(structure, learner, data, ORDER)
    trainer = OnlineTrainer(structure, learner, np.float64)
    copies = stepwise(trainer, data.rows, ORDER)
    close(copies, trace.snapshots, 1e-9)
    assert (trainer.mistakes, trainer.updates, trainer.ticks) == trace[3:6]
    if isinstance(learner.averaging, Averaged | Observed):
        close(trainer.average(), trace.average, 1e-9)
    if isinstance(learner.averaging, Voted):
        labels, shares = ClassDecoder(structure, trainer.predictor()).decide(data.rows)
        wanted = np.array([brute_votes(structure, copies, x) for x in data.X])
        shown = wanted[:, 1:] - wanted[:, :1] if structure.n_parts() == 1 else wanted
        np.testing.assert_array_equal(np.rint(shares * ORDER.size), shown)
        np.testing.assert_array_equal(labels, wanted.argmax(axis=1))


@pytest.mark.parametrize("name", ["sgd-l1-l2", "adagrad-rda-l1"])
def test_float32_stays_near_float64(name):
    structure, learner = setting(name)
    learner = Learner(learner.loss, learner.rule, Averaged())
    data = problem(structure, dtype=np.float32)
    trainer = OnlineTrainer(structure, learner)
    trainer.learn(data.rows, ORDER)
    trace = replay(structure, learner, data, ORDER)
    assert trainer.weights().dtype == np.float32
    np.testing.assert_allclose(trainer.weights(), trace.snapshots[-1], rtol=1e-4, atol=2e-5)
    np.testing.assert_allclose(trainer.average(), trace.average, rtol=1e-4, atol=2e-5)


def test_steps_that_are_too_long_are_an_error_and_not_a_model():
    data = problem(TWO, dtype=np.float32)
    trainer = OnlineTrainer(TWO, Learner(SquaredHinge(), SGD(rate=500), Last()))
    with pytest.raises(DivergedError, match=r"overflowed after \d+ examples .*rate=500.*smaller"):
        trainer.learn(data.rows, np.tile(ORDER, 20))
    assert issubclass(DivergedError, HopefearError)
    assert trainer.examples < 1200


if __name__ == "__main__":
    write(SPREAD, learnt, WINDOW)

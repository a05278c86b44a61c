"""Compiled learners of chains: equal to dense oracles and to the same code run as plain Python.

Every combination costs many seconds to compile, so these are few; the matrix is interpreted. Run
as a program, this file writes what they learn to the .npz file it is given.
"""

from __future__ import annotations

import numpy as np
import pytest
from chain_oracle import replay_on, tiny_rows
from compiled_spread import same, write
from reference import exact_weights, stepwise

from hopefear.averaging.averaged import Averaged
from hopefear.averaging.last import Last
from hopefear.core.learner import Learner
from hopefear.costs.hamming import Hamming
from hopefear.errors import CombinationError
from hopefear.losses.log import Log
from hopefear.losses.nbest_mira import NBestMIRA
from hopefear.losses.sapo import SAPO
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.losses.swvp import SWVP
from hopefear.rules.adagrad_rda import AdaGradRDA
from hopefear.rules.arow import AROW
from hopefear.rules.sgd import SGD
from hopefear.structures.chain.chain import Chain
from hopefear.structures.classes import Binary
from hopefear.training.online import DivergedError, OnlineTrainer

LENGTHS = [3, 1, 2, 3, 4, 2, 3, 1, 2, 5]
# Every search that a loss can ask for; additive and other rules. Fields of the chain are numbers,
# so that all shapes share the compiled code.
SPREAD = {
    "sapo": (Chain.new(4, 3, order=2), Learner(SAPO(n=4), SGD(0.3, l2=0.02), Averaged())),
    "crf-adagrad-rda": (
        Chain.new(4, 3, edge_attributes=2),
        Learner(Log(), AdaGradRDA(rate=0.5, l1=0.01), Averaged()),
    ),
    "nbest-mira": (Chain.new(4, 3), Learner(NBestMIRA(n=3, C=0.5), SGD(), Last())),
    "ssvm-arow": (
        Chain.new(4, 3, edge_attributes=2, order=2),
        Learner(StructuredHinge(Hamming(0.7)), AROW(r=0.5), Last()),
    ),
}
ORDER = np.concatenate([np.arange(10), np.arange(10)[::-1]])
WINDOW = 8  # small, so that the books are settled several times
pytestmark = pytest.mark.usefixtures("small_window")


def rows_of(chain):
    return tiny_rows(8, LENGTHS, chain)


def learnt(name):
    """Everything a learner leaves behind after two passes."""
    chain, learner = SPREAD[name]
    trainer = OnlineTrainer(chain, learner, np.float64)
    trainer.learn(rows_of(chain), ORDER)
    found = {"weights": exact_weights(trainer)} | trainer.arrays()
    if isinstance(learner.averaging, Averaged):
        found["average"] = trainer.average()
    return found


@pytest.mark.parametrize("name", SPREAD)
def test_compiled_equals_interpreted(name, interpreted):
    same(name, learnt(name), interpreted)


@pytest.mark.parametrize("name", SPREAD)
def test_compiled_equals_the_dense_oracle(name):
    chain, learner = SPREAD[name]
    rows = rows_of(chain)
    trace = replay_on(chain, learner, rows, ORDER)
    trainer = OnlineTrainer(chain, learner, np.float64)
    copies = stepwise(trainer, rows, ORDER)
    tolerance = 1e-4 if name == "nbest-mira" else 1e-9  # solved in 200 rounds at most
    np.testing.assert_allclose(copies, trace.snapshots, rtol=0, atol=tolerance)
    assert (trainer.mistakes, trainer.updates, trainer.ticks) == trace[1:4]
    if isinstance(learner.averaging, Averaged):
        np.testing.assert_allclose(
            trainer.average(), trace.snapshots.mean(axis=0), rtol=0, atol=tolerance
        )


@pytest.mark.parametrize("shape", [{}, {"order": 2}, {"edge_attributes": 2}], ids=str)
@pytest.mark.parametrize("name", SPREAD)
def test_a_state_that_was_saved_goes_on_as_if_it_had_not_been(name, shape):
    chain, learner = Chain.new(4, 3, **shape), SPREAD[name][1]
    rows = rows_of(chain)
    whole = OnlineTrainer(chain, learner, np.float64)
    whole.learn(rows, ORDER)
    first, second = (OnlineTrainer(chain, learner, np.float64) for _ in range(2))
    first.learn(rows, ORDER[:7])
    second.restore({key: array.copy() for key, array in first.arrays().items()})
    second.learn(rows, ORDER[7:])
    for key, array in whole.arrays().items():
        np.testing.assert_array_equal(array, second.arrays()[key], err_msg=key)


def test_mixtures_of_sequences_are_refused_on_classes_with_a_way_out():
    wanted = "needs places, which Binary does not offer: .* use the loss perceptron"
    with pytest.raises(CombinationError, match=wanted):
        OnlineTrainer(Binary(4), Learner(SWVP(), SGD(), Last()))


def test_steps_that_are_too_long_are_an_error_and_not_a_model():
    chain, learner = SPREAD["sapo"]
    learner = Learner(learner.loss, SGD(rate=1e308), learner.averaging)
    trainer = OnlineTrainer(chain, learner, np.float64)
    with np.errstate(all="ignore"), pytest.raises(DivergedError, match="overflowed after"):
        trainer.learn(rows_of(chain), np.tile(ORDER, 5))


if __name__ == "__main__":
    write(SPREAD, learnt, WINDOW)

"""Rules against their oracles where examples have weights, and against each other."""

from __future__ import annotations

import numpy as np
import pytest
from learner_catalogue import RULES, STRUCTURES, natural_loss
from reference import close, exact_weights, random_problem, replay, scores, sparse_problem, stepwise

from hopefear.averaging.averaged import Averaged
from hopefear.averaging.last import Last
from hopefear.core.learner import Learner
from hopefear.errors import CombinationError
from hopefear.losses.hinge import Hinge
from hopefear.losses.linear import Linear
from hopefear.losses.logistic import Logistic
from hopefear.losses.perceptron import Perceptron
from hopefear.rules.adagrad import AdaGrad
from hopefear.rules.arow import AROW
from hopefear.rules.confidence import ConfidenceWeighted
from hopefear.rules.fobos import FOBOS
from hopefear.rules.ftrl import FTRL
from hopefear.rules.passive_aggressive import PassiveAggressive
from hopefear.rules.rda import RDA
from hopefear.rules.sgd import SGD
from hopefear.rules.truncated import TruncatedGradient
from hopefear.structures.classes import Binary, Multiclass
from hopefear.training.online import OnlineTrainer

# Rules whose step is linear in the direction, or which bound it: a weight scales the loss.
WEIGHTED = [name for name in RULES if name not in ("cw", "arow", "pa-2")]
ORDER = np.arange(60)


def weights_after(rule, loss, structure, problem, update_on="all", order=ORDER):
    trainer = OnlineTrainer(structure, Learner(loss, rule, Last(), update_on), np.float64)
    return stepwise(trainer, problem.rows, order)


@pytest.mark.parametrize("on", ["all", "mistakes"])
@pytest.mark.parametrize("structure", STRUCTURES, ids=["binary", "multiclass"])
@pytest.mark.parametrize("name", WEIGHTED)
def test_sample_weights_scale_the_loss(name, structure, on):
    problem = random_problem(5, classes=structure.n_labels, weighted=True)
    learner = Learner(natural_loss(RULES[name]), RULES[name], Averaged(), on)
    trainer = OnlineTrainer(structure, learner, np.float64)
    trace = replay(structure, learner, problem, ORDER)
    close(stepwise(trainer, problem.rows, ORDER), trace.snapshots, 1e-9)
    close(trainer.average(), trace.average, 1e-9)
    assert (trainer.mistakes, trainer.updates, trainer.ticks) == trace[3:6]


@pytest.mark.parametrize("name", RULES)
def test_an_example_of_weight_zero_moves_no_weight_towards_it(name):
    problem = random_problem(6, n=20)
    rows = problem.rows._replace(weights=np.zeros(20))
    learner = Learner(natural_loss(RULES[name]), RULES[name], Last())
    trainer = OnlineTrainer(STRUCTURES[0], learner, np.float64)
    trainer.learn(rows, np.arange(20))
    assert not exact_weights(trainer).any()
    assert (trainer.mistakes, trainer.updates, trainer.ticks) == (0, 0, 20)


def test_a_weight_multiplies_the_aggressiveness_of_pa_1():
    problem = random_problem(7)
    heavy = problem._replace(rows=problem.rows._replace(weights=np.full(60, 4.0)))
    wanted = weights_after(PassiveAggressive(C=0.4), Hinge(), Binary(12), problem)
    found = weights_after(PassiveAggressive(C=0.1), Hinge(), Binary(12), heavy)
    close(found, wanted, 1e-12)


def test_a_weight_multiplies_the_aggressiveness_of_pa_2_and_divides_r_of_arow():
    problem = random_problem(6)
    heavy = problem._replace(rows=problem.rows._replace(weights=np.full(60, 4.0)))
    pairs = [
        (PassiveAggressive(C=0.4, variant=2), PassiveAggressive(C=0.1, variant=2)),
        (AROW(r=0.5), AROW(r=2.0)),
    ]
    for plain, weighted in pairs:
        wanted = weights_after(plain, Hinge(), Binary(12), problem)
        close(weights_after(weighted, Hinge(), Binary(12), heavy), wanted, 1e-9)


@pytest.mark.parametrize("power", [0.0, 0.5])
def test_truncation_at_every_step_without_threshold_is_forward_backward(power):
    problem = random_problem(8)
    truncated = TruncatedGradient(rate=0.3, gravity=0.0217, every=1, power=power)
    found = weights_after(truncated, Logistic(), Binary(12), problem)
    close(found, weights_after(FOBOS(0.3, power, 0.0217), Logistic(), Binary(12), problem), 1e-12)


def test_the_threshold_itself_is_still_truncated():
    """Powers of two, so that nothing is rounded: T1 holds on |v| <= theta, its ends included."""
    problem = sparse_problem([[0.25, -0.25, 0.5, 0.03125]], [1])
    rule = TruncatedGradient(rate=1, gravity=0.0625, every=1, threshold=0.25)
    found = weights_after(rule, Hinge(), Binary(4), problem, order=np.zeros(1, np.int64))
    np.testing.assert_array_equal(found, [[0.1875, -0.1875, 0.5, 0.0]])


def test_unregularised_ftrl_is_adagrad():
    problem = random_problem(9)
    found = weights_after(FTRL(rate=0.3, beta=0.7), Logistic(), Binary(12), problem)
    close(found, weights_after(AdaGrad(rate=0.3, eps=0.7), Logistic(), Binary(12), problem), 1e-12)


@pytest.mark.parametrize(
    "rule",
    [
        lambda rate: SGD(rate=rate, power=0.5, l1=0.0217),
        lambda rate: RDA(rate=rate, l1=0.0217),
        lambda rate: FOBOS(rate=rate, l1=0.0217),
        lambda rate: TruncatedGradient(rate=rate, gravity=0.0217, every=3, power=0.5),
    ],
)
def test_the_rate_of_a_perceptron_only_scales_its_weights(rule):
    problem = random_problem(10, classes=3)
    small, large = (
        weights_after(rule(rate), Perceptron(), Multiclass(12, 3), problem, "mistakes")
        for rate in (0.25, 4.0)
    )
    assert small.any()
    np.testing.assert_array_equal(large, 16 * small)


@pytest.mark.parametrize("structure", [Binary(12), Multiclass(12, 4)], ids=["two", "four"])
def test_one_step_of_pa_reaches_the_margin_and_arow_goes_part_of_the_way(structure):
    problem = random_problem(11, n=1, classes=structure.n_labels)
    squares = (1 if structure.n_parts() == 1 else 2) * np.sum(problem.X[0] ** 2)
    for rule, wanted in ((PassiveAggressive(variant=0), 1.0), (AROW(), squares / (squares + 1))):
        w = weights_after(rule, Hinge(), structure, problem, order=np.zeros(1, np.int64))[0]
        theta = scores(structure, w, problem.X[0])
        assert np.ptp(theta) == pytest.approx(wanted)  # gold stands highest, its rival lowest
        assert theta.argmax() == problem.rows.labels[0]


def test_confidence_weighting_just_meets_its_constraint():
    """One feature, so that the diagonal loses nothing: afterwards margin = phi * variance."""
    problem = sparse_problem([[0.8], [0.8], [-0.3]], [1, 0, 0])
    rule = ConfidenceWeighted(phi=0.9)
    trainer = OnlineTrainer(Binary(1), Learner(Linear(), rule, Last()), np.float64)
    for i, (x, y) in enumerate([(0.8, 1), (0.8, -1), (-0.3, -1)]):
        trainer.learn(problem.rows, np.array([i]))
        margin, variance = y * x * trainer.state.w[0], x * x * trainer.state.variance[0]
        assert margin == pytest.approx(rule.phi * variance)


def test_an_empty_row_changes_nothing_but_the_clock():
    problem = sparse_problem(np.zeros((3, 4)), [0, 1, 1])
    for name, rule in RULES.items():
        trainer = OnlineTrainer(Binary(4), Learner(natural_loss(rule), rule, Last()), np.float64)
        trainer.learn(problem.rows, np.arange(3))
        assert not exact_weights(trainer).any(), name
        assert trainer.ticks == 3


@pytest.mark.parametrize("loss", [Perceptron(), Linear()])
@pytest.mark.parametrize("rule", [PassiveAggressive(), AROW()])
def test_a_combination_that_can_never_move_is_refused(loss, rule):
    with pytest.raises(CombinationError):
        Learner(loss, rule, Last(), "mistakes")

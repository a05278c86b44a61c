"""Losses on lists: values and directions are the papers' formulas, on dense features."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from chain_oracle import force, programme, softmax
from hypothesis import given, settings
from hypothesis import strategies as st
from list_oracle import Asked, rows_of, tiny_lists
from scipy.optimize import minimize

from hopefear.averaging.last import Last
from hopefear.core.learner import Learner
from hopefear.costs.hamming import Hamming
from hopefear.costs.regret import Regret
from hopefear.errors import CombinationError
from hopefear.losses.exponential import Exponential
from hopefear.losses.hinge import Hinge
from hopefear.losses.hope_fear import HopeFear
from hopefear.losses.log import Log
from hopefear.losses.logistic import Logistic
from hopefear.losses.nbest_mira import NBestMIRA
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.prediction_hinge import PredictionHinge
from hopefear.losses.ramp import Ramp
from hopefear.losses.risk import Risk
from hopefear.losses.sapo import SAPO
from hopefear.losses.smoothed_hinge import SmoothedHinge
from hopefear.losses.squared_hinge import SquaredHinge
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.losses.weighted_log import WeightedLog
from hopefear.rules.arow import AROW
from hopefear.rules.confidence import ConfidenceWeighted
from hopefear.rules.passive_aggressive import PassiveAggressive
from hopefear.rules.sgd import SGD
from hopefear.structures.nbest import NBest
from hopefear.training.online import OnlineTrainer

pytestmark = pytest.mark.interpreted

SIX = [HopeFear(Regret(2.0), toward, away) for toward in (0, 1) for away in (0, 1, 2)]
LOSSES = [
    Perceptron(),
    Perceptron(force=0.5),
    Hinge(),
    SquaredHinge(),
    SmoothedHinge(),
    Logistic(),
    Exponential(limit=1),
    Log(),
    Log(force=0.5),
    WeightedLog(),
    WeightedLog(Regret(0.5), inverse_temperature=1.0),
    Risk(),
    Risk(Hamming(), inverse_temperature=3.0),
    SAPO(n=1),
    SAPO(n=3),
    SAPO(n=5, ratio=4.0),
    StructuredHinge(Regret()),
    StructuredHinge(Hamming(0.7)),
    PredictionHinge(Regret()),
    PredictionHinge(Regret(), root=True),
    Ramp(Regret()),
    *SIX,
    NBestMIRA(Regret(), n=1),
    NBestMIRA(Regret(), n=4, C=0.1),
    NBestMIRA(Regret(), n=4, C=10.0, root=True),
    NBestMIRA(Regret(), n=4, augmented=True),
    NBestMIRA(Regret(), n=3, sequential=True),
]
tied_or_not = pytest.mark.parametrize("tied", [False, True], ids=["oracle", "tied"])
WEIGHTS = [1.0, 2.0, 0.5, 0.0, 1.0, 1.0, 2.0, 1.0]


def name(loss):
    return Learner(loss, SGD(), Last(), "mistakes").signature().split("|")[0]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.sampled_from([0, 1, 3]))
def test_values_and_directions_where_much_ties(seed, tied, span):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    rows = rows_of([rng.integers(-span, span + 1, (n, 6))], [rng.integers(0, 3, n)])
    w = rng.integers(-1, 2, 6).astype(float)
    for loss in LOSSES:
        if type(loss) is NBestMIRA:
            continue  # many multipliers may be best; see the test of its programme
        asked = Asked(loss, rows, tied)
        forced, value, _, g = asked.answer(0, w)
        wanted = force(loss, asked.world(0, w))
        assert value == pytest.approx(wanted.value, rel=1e-9, abs=1e-9), loss
        assert forced == wanted.forced, loss
        np.testing.assert_allclose(g, wanted.g if forced else 0 * g, atol=1e-9, err_msg=str(loss))


def test_the_log_loss_of_one_oracle_and_of_all_cheapest():
    asked = Asked(Log(), tiny_lists(3)), Asked(Log(), tiny_lists(3), tied=True)
    several = 0
    for i, w in asked[0].weights():
        one, cheapest = (a.world(i, w) for a in asked)
        P = softmax(one.scores)
        assert asked[0].answer(i, w)[1] == pytest.approx(-math.log(P[one.gold]), abs=1e-12)
        good = cheapest.paid == cheapest.paid.min()
        assert asked[1].answer(i, w)[1] == pytest.approx(-math.log(P[good].sum()), abs=1e-12)
        several += good.sum() > 1
    assert several >= 2


def test_cheapest_candidates_that_share_their_probability_do_not_win_together():
    asked = Asked(Log(), rows_of([np.diag([0.5, 0, 0, 0, 0, 0])[:4]], [[1, 0, 0, 0]]), tied=True)
    _, value, gap, _ = asked.answer(0, np.ones(6))
    assert value < 0.6  # three of them have more than half, none of them has most
    assert gap <= 0


def test_weighted_log_with_sharp_costs_is_the_log_loss():
    rows = rows_of([np.random.default_rng(2).normal(size=(5, 6))], [[0.5, 0.1, 0.4, 0.3, 0.2]])
    inverse_temperature, log = (
        Asked(WeightedLog(inverse_temperature=1000.0), rows),
        Asked(Log(), rows),
    )
    for i, w in log.weights():
        (_, a, _, g), (_, b, _, h) = inverse_temperature.answer(i, w), log.answer(i, w)
        assert a == pytest.approx(b, abs=1e-9)
        np.testing.assert_allclose(g, h, atol=1e-9)


def test_an_oracle_that_is_not_the_cheapest_leaves_wanted_probabilities_finite():
    rows = rows_of([np.eye(6)[:3]], [[90.0, 0.0, 0.5]], oracles=[0])
    asked, w = Asked(WeightedLog(), rows), np.arange(6.0)
    _, value, _, g = asked.answer(0, w)
    Q, P = softmax(np.array([-900.0, 0.0, -5.0])), softmax(w[:3])
    np.testing.assert_allclose(g[:3], Q - P, atol=1e-12)
    assert value == pytest.approx(Q[1:] @ np.log(Q[1:] / P[1:]))


def test_the_printed_direction_of_the_bayes_risk_has_a_slip_of_sign():
    """Below eq. 21: U(w, y) = loss(w) - sBleu(y). The gradient has -loss(w) - sBleu(y)."""
    rng = np.random.default_rng(6)
    bleu = rng.uniform(0.1, 0.9, 6)
    rows = rows_of([rng.normal(size=(6, 6))], [-bleu], [0.5 * rng.normal(size=6)])
    asked = Asked(Risk(), rows)
    w = rng.normal(size=6)
    world = asked.world(0, w)

    def eq21(v):
        return float(-softmax(asked.world(0, v).scores) @ bleu)

    steps = 1e-6 * np.eye(6)
    gradient = np.array([(eq21(w + s) - eq21(w - s)) / 2e-6 for s in steps])
    P, value = softmax(world.scores), eq21(w)
    ours = asked.answer(0, w)
    np.testing.assert_allclose(ours[3], -gradient, atol=1e-8)
    np.testing.assert_allclose(((-value - bleu) * P) @ world.F, gradient, atol=1e-8)
    printed = ((value - bleu) * P) @ world.F
    assert np.abs(printed - gradient).max() > 0.1
    assert np.abs(printed + gradient).max() > 0.1  # nor is it only the direction that is turned
    assert ours[1] == pytest.approx(value + bleu.max())  # prices are relative to the oracle's


@pytest.mark.parametrize("inverse_temperature", [0.5, 1.0, 4.0])
def test_what_rules_are_told_of_two_outputs(inverse_temperature):
    """``value`` and ``slope`` at a margin are loss and force on a list of two."""
    rows = rows_of([[[1.0], [0.0]]], [[0.0, 1.0]])
    for loss in (
        Risk(inverse_temperature=inverse_temperature),
        WeightedLog(inverse_temperature=inverse_temperature),
        Log(),
        SAPO(n=2),
    ):
        for z in (-3.0, -0.2, 0.0, 0.7, 2.0):
            _, value, _, g = Asked(loss, rows, features=1).answer(0, np.array([z]))
            assert loss.value(z) == pytest.approx(value, abs=1e-12)
            assert loss.negative_derivative(z) == pytest.approx(g[0], abs=1e-12)


@pytest.mark.parametrize("augmented", [False, True], ids=["best", "feared"])
@pytest.mark.parametrize("C", [0.02, 0.3, 50.0])
def test_n_best_mira_solves_its_quadratic_programme(C, augmented):
    """Against a general solver on the dual, and by the conditions of optimality."""
    loss = NBestMIRA(Regret(), n=4, C=C, rounds=5000, augmented=augmented)
    asked = Asked(loss, tiny_lists(9, sizes=(5, 4, 3, 1, 5, 2, 4, 5)))
    moved = 0
    for i, w in asked.weights(scale=0.3):
        forced, _, _, g = asked.answer(i, w)
        top, D, short = programme(loss, asked.world(i, w))
        if not forced:
            assert short.max() <= 1e-9
            continue
        moved += 1
        G, alpha = D @ D.T, asked.work.scratch.alpha[: len(top)]
        np.testing.assert_allclose(alpha @ D, g, atol=1e-9)
        assert (alpha >= 0).all() and (alpha <= C).all()
        lacks = short - G @ alpha
        for a, lack, d in zip(alpha, lacks, D, strict=True):
            if d @ d == 0:
                assert a == 0
            else:  # satisfied, or as strong as it may be
                assert lack <= 1e-7 or a == C
                assert lack >= -1e-7 or a == 0
        found = minimize(
            lambda a, G=G, short=short: (a @ G @ a / 2 - a @ short, G @ a - short),
            np.zeros(len(top)),
            jac=True,
            bounds=[(0, C)] * len(top),
            options={"ftol": 1e-15, "gtol": 1e-10},
        )
        assert alpha @ short - alpha @ G @ alpha / 2 == pytest.approx(-found.fun, abs=1e-8)
        np.testing.assert_allclose(g, found.x @ D, atol=1e-3)
    assert moved >= 3


def test_the_worst_is_no_better_than_the_prediction():
    """Away from the costliest candidate, whatever it scores."""
    rows = rows_of([np.eye(6)[:3]], [[0.0, 0.5, 2.0]])
    w = np.array([0.0, 1.0, -5.0, 0, 0, 0])
    pairs = {(0, 0): (0, 1), (1, 1): (0, 1), (1, 2): (0, 2), (1, 0): (0, 1)}
    for (toward, away), (up, down) in pairs.items():
        asked = Asked(HopeFear(Regret(4.0), toward, away), rows)
        forced, _, _, g = asked.answer(0, w)
        wanted = np.zeros(6)
        wanted[up], wanted[down] = 1.0, -1.0
        assert forced
        np.testing.assert_array_equal(g, wanted)


@tied_or_not
def test_scores_of_thousands_stay_finite(tied):
    for loss in LOSSES:
        asked = Asked(loss, tiny_lists(10), tied)
        if type(loss) in (Exponential, SquaredHinge):
            continue
        for i, w in asked.weights(scale=3000.0):
            _, value, gap, g = asked.answer(i, w)
            assert math.isfinite(value) and math.isfinite(gap), loss
            assert np.isfinite(g).all()
            assert value >= 0


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (Risk(inverse_temperature=0.0), "inverse_temperature must be above zero"),
        (Risk(Regret(-1.0)), "Regret: each must not be negative"),
        (WeightedLog(inverse_temperature=-1.0), "inverse_temperature must not be negative"),
        (HopeFear(toward=2), "toward is hope or oracle"),
        (HopeFear(away=3), "away is fear, prediction or worst"),
    ],
)
def test_parameters_without_sense_are_refused(loss, message):
    with pytest.raises(CombinationError, match=message):
        Learner(loss, SGD(), Last())


def test_rules_that_need_a_force_of_one_refuse_probabilities():
    for loss in (Risk(), WeightedLog(), Log(), SAPO()):
        with pytest.raises(CombinationError, match="needs a loss of force one"):
            Learner(loss, ConfidenceWeighted(), Last())
    for loss, rule in itertools.product((Risk(), WeightedLog()), (PassiveAggressive(), AROW())):
        Learner(loss, rule, Last())


@tied_or_not
@pytest.mark.parametrize("loss", LOSSES, ids=name)
def test_a_tie_is_a_mistake_whatever_the_loss(loss, tied):
    """Gold comes first in each list: by the order of candidates all would be right from zero."""
    lists = rows_of([np.eye(3)] * 2, [[0.0, 1.0, 1.0]] * 2)
    forced, _, gap, g = Asked(loss, lists, tied, 3).answer(0, np.zeros(3))
    assert forced and gap == 0.0 and g[0] > 0.0
    trainer = OnlineTrainer(NBest(3, tied), Learner(loss, SGD(), Last(), "mistakes"))
    trainer.learn(lists, np.arange(2))
    assert trainer.mistakes >= 1 and trainer.weights()[0] > 0.0


def test_ramp_does_not_move_where_one_candidate_is_hoped_for_and_feared():
    lists = rows_of([[[5.0], [0.0]]], [[1.0, 0.0]])
    forced, value, gap, _ = Asked(Ramp(Regret()), lists, features=1).answer(0, np.ones(1))
    assert (forced, value, gap) == (False, 2.0, -5.0)
    trainer = OnlineTrainer(NBest(1), Learner(Ramp(Regret()), SGD(), Last(), "mistakes"))
    trainer.state.m[:] = 1.0
    trainer.learn(lists, np.zeros(1, np.int64))
    assert (trainer.mistakes, trainer.updates, trainer.ticks) == (1, 0, 0)

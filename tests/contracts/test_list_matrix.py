"""Every loss x rule x readout x occasion on lists against dense oracles; each hole says why."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from learner_catalogue import CURVED, LOOSE, RULES
from list_oracle import ListWorld, replay_lists, rows_of, tiny_lists
from reference import exact_weights, stepwise

from hopefear.core.learner import Learner, describe
from hopefear.costs.regret import Regret
from hopefear.errors import CombinationError
from hopefear.losses.exponential import Exponential
from hopefear.losses.hinge import Hinge
from hopefear.losses.hope_fear import HopeFear
from hopefear.losses.linear import Linear
from hopefear.losses.log import Log
from hopefear.losses.logistic import Logistic
from hopefear.losses.nbest_mira import NBestMIRA
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.prediction_hinge import PredictionHinge
from hopefear.losses.ramp import Ramp
from hopefear.losses.risk import Risk
from hopefear.losses.sapo import SAPO
from hopefear.losses.squared_hinge import SquaredHinge
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.losses.swvp import SWVP
from hopefear.losses.weighted_log import WeightedLog
from hopefear.readouts.averaged import Averaged
from hopefear.readouts.last import Last
from hopefear.readouts.voted import Voted
from hopefear.recipes import LIST_RECIPES
from hopefear.recipes.base import Scale
from hopefear.rules.rda import RDA
from hopefear.rules.sgd import SGD
from hopefear.structures.nbest import NBest
from hopefear.training.online import OnlineTrainer

LOSSES = [
    Perceptron(),
    Hinge(),
    SquaredHinge(),
    Logistic(),
    Exponential(limit=2),
    Linear(),
    Log(),
    WeightedLog(sharp=2.0),
    Risk(sharp=2.0),
    SAPO(n=3),
    StructuredHinge(Regret(0.7)),
    PredictionHinge(Regret(), root=True),
    NBestMIRA(Regret(), n=3, C=0.3, rounds=5000),
    Ramp(Regret(0.7)),
    HopeFear(Regret(2.0)),
    HopeFear(Regret(2.0), toward=1, away=2),
]
GRID = list(itertools.product(LOSSES, RULES, ("every", "mistakes")))
ONLINE = [name for name, recipe in LIST_RECIPES.items() if hasattr(recipe, "rule")]
FEATURES = 6
SIZES = (3, 2, 4, 2, 5, 3, 4, 2)
ORDER = np.array([0, 1, 2, 3, 4, 5, 6, 7, 3, 2, 0, 5, 4, 4])


def hole(loss, name, on):
    """Why these cannot work together, as a pattern of the message; None when they can."""
    rule, force = type(RULES[name]).__name__, type(loss).__name__
    if rule == "ConfidenceWeighted" and force in CURVED:
        return f"ConfidenceWeighted and {force}: .* needs a loss of force one"
    if rule in ("PassiveAggressive", "AROW") and force in ("Perceptron", "Linear"):
        return f"{rule} and {force}: steps are in proportion to the loss"
    if force == "Linear" and on == "every" and rule != "ConfidenceWeighted":
        return f"{rule} and Linear: the loss has no minimum"
    return None


def votes_of(trainer):
    """(weights of every predictor up to a positive factor, how often it survived)."""
    kept = trainer.predictor()
    W = np.zeros((kept.drops.size, trainer.n))
    for place, j in enumerate(kept.coordinates):
        for e in range(kept.starts[place], kept.starts[place + 1]):
            lives = slice(kept.begin[e], kept.end[e])
            W[lives, j] += kept.level[e] - kept.fall[e] * kept.drops[lives]
    return W, np.diff(kept.survived)


def ballots(structure, rows, W, counts):
    """Figure 2 of the paper: votes of all predictors for the candidates of every list."""
    found = []
    for i in range(len(rows.weights)):
        world = ListWorld(structure, rows, i, W[0])
        votes = np.zeros(len(world.F))
        for w, c in zip(W, counts, strict=True):
            # Rounding must not decide between candidates with the same features that count.
            votes[int(np.round(world.F @ w, 9).argmax())] += c
        found.append(votes)
    return np.concatenate(found)


def compare(structure, rows, learner, order, tolerance=1e-9):
    trace = replay_lists(structure, learner, rows, order)
    trainer = OnlineTrainer(structure, learner, np.float64)
    copies = stepwise(trainer, rows, order)
    np.testing.assert_allclose(copies, trace.snapshots, rtol=tolerance, atol=tolerance)
    assert (trainer.mistakes, trainer.updates, trainer.ticks) == trace[3:6]
    assert trainer.loss == pytest.approx(trace.loss, rel=1e-6, abs=tolerance)
    if isinstance(learner.readout, Averaged):
        np.testing.assert_allclose(trainer.average(), trace.average, tolerance, tolerance)
    return trainer, trace


def check_votes(structure, rows, learner, order, trace):
    """Directions of all predictors, and what each lived through, against the copies."""
    voted = OnlineTrainer(
        structure, Learner(learner.loss, learner.rule, Voted(), learner.on), np.float64
    )
    voted.learn(rows, order)
    W, counts = votes_of(voted)
    assert counts.sum() == len(order)
    assert len(counts) == voted.ticks + 1
    lived = np.repeat(W, counts.astype(int), axis=0)
    for w, snapshot in zip(lived, trace.snapshots, strict=True):
        sizes = np.linalg.norm(w), np.linalg.norm(snapshot)
        assert (sizes[0] > 1e-9) == (sizes[1] > 1e-9)
        if sizes[1] > 1e-9:
            np.testing.assert_allclose(w / sizes[0], snapshot / sizes[1], atol=1e-6)


@pytest.mark.parametrize(
    ("loss", "name", "on"), GRID, ids=[f"{describe(a)}-{b}-{c}" for a, b, c in GRID]
)
def test_a_combination_equals_its_oracle_or_says_why_not(loss, name, on):
    reason = hole(loss, name, on)
    if reason is not None:
        with pytest.raises(CombinationError, match=reason):
            Learner(loss, RULES[name], Averaged(), on)
        return
    rows = tiny_lists(12, SIZES)
    tied = (len(name) + LOSSES.index(loss)) % 2 == 1 and type(loss) not in (Log, Linear)
    structure = NBest(FEATURES, tied)
    learner = Learner(loss, RULES[name], Averaged(), on)
    if name == "cw" and type(loss).__name__ in LOOSE:
        trainer = OnlineTrainer(structure, learner, np.float64)
        trainer.learn(rows, ORDER)
        assert np.isfinite(exact_weights(trainer)).all()
        return
    tolerance = 1e-5 if type(loss) is NBestMIRA else 1e-9
    trainer, trace = compare(structure, rows, learner, ORDER, tolerance)
    last = OnlineTrainer(structure, Learner(loss, RULES[name], Last(), on), np.float64)
    last.learn(rows, ORDER)
    np.testing.assert_array_equal(exact_weights(last), exact_weights(trainer))
    if tolerance < 1e-6:
        check_votes(structure, rows, learner, ORDER, trace)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("tied", [False, True], ids=["oracle", "tied"])
def test_lists_of_one_and_weights_of_lists(tied, name):
    rule = type(RULES[name]).__name__
    plain = rule in ("PassiveAggressive", "AROW", "ConfidenceWeighted")
    weights = None if plain else [1, 2, 0, 0.5, 1, 0, 2, 1]
    rows = tiny_lists(15, (3, 1, 4, 2, 1, 3, 4, 2), weights=weights)
    loss = Hinge() if plain else Logistic()
    compare(NBest(FEATURES, tied), rows, Learner(loss, RULES[name], Averaged()), ORDER)


@pytest.mark.parametrize("name", ONLINE)
@pytest.mark.parametrize("readout", ["averaged", "last"])
def test_published_learners_equal_their_formulas(name, readout):
    rows = tiny_lists(17, SIZES)
    more = {"rounds": 5000} if name == "nbest-mira" else {}
    learner = LIST_RECIPES[name].build(Scale(40.0, len(SIZES), 12.0), readout=readout, **more)
    order = np.concatenate([np.arange(8), np.arange(8)[::-1]])
    compare(NBest(FEATURES), rows, learner, order, 1e-5 if name == "nbest-mira" else 1e-9)


def language(seed=3, lists=24, candidates=5):
    """Lists whose cheapest candidate has the most of two good features and the least of a bad."""
    rng = np.random.default_rng(seed)
    matrices = [rng.integers(0, 3, (candidates, FEATURES)) for _ in range(lists)]
    quality = np.array([2.0, 1.0, -2.0, 0.0, 0.0, 0.0])
    return rows_of(matrices, [(-m @ quality + 0.1 * rng.random(candidates)) / 8 for m in matrices])


@pytest.mark.parametrize("name", ONLINE)
def test_every_learner_learns_to_rank(name):
    rows, structure = language(), NBest(FEATURES)
    trainer = OnlineTrainer(structure, LIST_RECIPES[name].build(Scale(20.0, 24, 8.0)), np.float64)
    for _ in range(4):
        trainer.learn(rows, np.arange(24))
    w = trainer.predictor().weights.astype(np.float64)
    worlds = [ListWorld(structure, rows, i, w) for i in range(24)]
    regrets = [world.paid[world.ranked()[0]] - world.paid.min() for world in worlds]
    chance = np.mean([world.paid.mean() - world.paid.min() for world in worlds])
    assert np.mean(regrets) < 0.3 * chance


@pytest.mark.parametrize("loss", [Hinge(), Logistic(), Log(), Risk()], ids=describe)
def test_the_majority_of_all_predictors_decides(loss):
    """Figures 1 and 2: the stored updates vote as copies of the weights would."""
    rows, structure = tiny_lists(21, SIZES, offsets=False), NBest(FEATURES)
    learner = Learner(loss, RDA(rate=0.5, l1=0.0217), Voted(), "mistakes")
    order = np.tile(np.arange(8), 3)
    trainer = OnlineTrainer(structure, learner, np.float64)
    copies = stepwise(trainer, rows, order)
    wanted = ballots(structure, rows, copies, np.ones(len(copies)))
    np.testing.assert_array_equal(ballots(structure, rows, *votes_of(trainer)), wanted)
    assert trainer.updates > 3


def test_what_lists_cannot_do_is_refused():
    with pytest.raises(CombinationError, match=r"needs .*places, which NBest does not offer"):
        OnlineTrainer(NBest(FEATURES), Learner(SWVP(), SGD(), Last()))


def test_float32_stays_near_float64():
    rows = tiny_lists(23, SIZES)
    learner = Learner(Log(), SGD(rate=0.3, l2=0.05), Averaged())
    narrow, wide = (OnlineTrainer(NBest(FEATURES), learner, t) for t in (np.float32, np.float64))
    for trainer in (narrow, wide):
        trainer.learn(rows, np.tile(ORDER, 2))
    assert narrow.weights().dtype == np.float32
    np.testing.assert_allclose(narrow.average(), wide.average(), atol=2e-5)


def test_a_state_that_was_saved_goes_on_as_if_it_had_not_been():
    rows, structure = tiny_lists(24, SIZES), NBest(FEATURES)
    for readout in (Averaged(), Voted()):
        learner = Learner(Hinge(), RDA(rate=0.5, l1=0.02), readout, "mistakes")
        whole, first, second = (OnlineTrainer(structure, learner, np.float64) for _ in range(3))
        whole.learn(rows, ORDER)
        first.learn(rows, ORDER[:5])
        second.restore({key: array.copy() for key, array in first.arrays().items()})
        second.learn(rows, ORDER[5:])
        for key, array in whole.arrays().items():
            np.testing.assert_array_equal(array, second.arrays()[key], err_msg=key)

"""Every loss x rule x occasion on label chains against dense oracles; each hole says why."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from chain_oracle import corpus, replay_chain, tiny_rows
from learner_catalogue import CURVED, FEW_RULES, LOOSE, RULES, SEARCHING
from reference import exact_weights, stepwise

from hopefear.core.learner import Learner, describe
from hopefear.errors import CombinationError
from hopefear.losses.exponential import Exponential
from hopefear.losses.hinge import Hinge
from hopefear.losses.linear import Linear
from hopefear.losses.log import Log
from hopefear.losses.logistic import Logistic
from hopefear.losses.nbest_mira import NBestMIRA
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.squared_hinge import SquaredHinge
from hopefear.readouts.averaged import Averaged
from hopefear.readouts.last import Last
from hopefear.recipes import CHAIN_RECIPES
from hopefear.recipes.base import Scale
from hopefear.rules.sgd import SGD
from hopefear.structures.chain.chain import Chain
from hopefear.training.online import OnlineTrainer

LOSSES = [
    Perceptron(),
    Hinge(),
    SquaredHinge(),
    Logistic(),
    Exponential(limit=2),
    Linear(),
    *SEARCHING,
]
GRID = list(itertools.product(LOSSES, FEW_RULES, ("every", "mistakes")))
SHAPES = {
    "first": Chain.new(attributes=4, labels=3),
    "rich": Chain.new(attributes=4, labels=2, edge_attributes=2),
    "second": Chain.new(attributes=4, labels=2, order=2),
}
LENGTHS = [3, 1, 2, 3, 2, 3, 1, 2]
ORDER = np.array([0, 1, 2, 3, 4, 5, 6, 7, 3, 2, 0, 5])


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


def compare(chain, rows, learner, order, tolerance=1e-9):
    trace = replay_chain(chain, learner, rows, order)
    trainer = OnlineTrainer(chain, learner, np.float64)
    copies = stepwise(trainer, rows, order)
    np.testing.assert_allclose(copies, trace.snapshots, rtol=0, atol=tolerance)
    assert (trainer.mistakes, trainer.updates, trainer.ticks) == trace[3:6]
    assert trainer.loss == pytest.approx(trace.loss, rel=1e-6, abs=tolerance)
    if isinstance(learner.readout, Averaged):
        np.testing.assert_allclose(trainer.average(), trace.average, atol=tolerance)
    return trainer


@pytest.mark.parametrize(
    ("loss", "name", "on"), GRID, ids=[f"{describe(a)}-{b}-{c}" for a, b, c in GRID]
)
def test_a_combination_equals_its_oracle_or_says_why_not(loss, name, on):
    reason = hole(loss, name, on)
    if reason is not None:
        with pytest.raises(CombinationError, match=reason):
            Learner(loss, RULES[name], Averaged(), on)
        return
    if name == "cw" and type(loss).__name__ in LOOSE:
        return
    which = list(SHAPES)[(len(name) + LOSSES.index(loss) + 1) % 3]
    chain = SHAPES[which]
    rows = tiny_rows(12, LENGTHS, chain)
    tolerance = 1e-5 if type(loss) is NBestMIRA else 1e-9
    compare(chain, rows, Learner(loss, RULES[name], Averaged(), on), ORDER, tolerance)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_rule_sees_repeated_attributes_as_one_coordinate(shape, name):
    chain = SHAPES[shape]
    rule = type(RULES[name]).__name__
    loss = Hinge() if rule in ("PassiveAggressive", "AROW", "ConfidenceWeighted") else Log()
    # Without values rivals tie, and rounding decides which of them is first.
    rows = tiny_rows(15, LENGTHS, chain, values=isinstance(loss, Hinge))
    compare(chain, rows, Learner(loss, RULES[name], Averaged()), ORDER[:9])


PUBLISHED = {
    "perceptron": [{}, {"readout": "last"}],
    "mira": [{}, {"root": "false", "readout": "last"}],
    "nbest-mira": [{"n": 3, "rounds": 5000}, {"n": 4, "sequential": "true"}],
    "sapo": [{}, {"penalty": "l1"}, {"n": 1, "lam": 0.5}, {"ratio": 20.0, "readout": "last"}],
    "crf": [{}, {"penalty": "l1", "lam": 0.3}],
    "sgd": [{}],
    "pa": [{}],
    "ssvm": [{}],
    "rda": [{}, {"l1": 0.02, "rate": 1.0}],
    "vrda": [{}, {"l1": 0.02, "loss": "log"}],
    "tg": [{}, {"gravity": 0.02, "every": 3}],
    "fobos": [{}, {"l1": 0.02}],
    "adagrad": [{}, {"loss": "sapo", "n": 3}],
    "adagrad-rda": [{}, {"l1": 0.02}],
    "arow": [{}, {"loss": "hinge"}],
    "ftrl": [{}, {"l1": 0.1}],
    "cw": [{}],
}
CASES = [(name, params) for name, several in PUBLISHED.items() for params in several]


@pytest.mark.parametrize(("name", "params"), CASES, ids=[f"{n}-{p}" for n, p in CASES])
def test_published_learners_equal_their_formulas(name, params):
    chain = SHAPES["first"]
    rows = tiny_rows(17, LENGTHS, chain, repeat=False)
    learner = CHAIN_RECIPES[name].build(Scale(n=len(LENGTHS)), **params)
    if "readout" not in params and name not in ("rda", "ftrl"):
        assert isinstance(learner.readout, Averaged | Last)
    tolerance = 1e-5 if name == "nbest-mira" else 1e-9
    compare(chain, rows, learner, np.concatenate([ORDER[:8], ORDER[:8][::-1]]), tolerance)


def test_the_published_are_all_there():
    assert set(PUBLISHED) | {"swvp"} <= set(CHAIN_RECIPES)


@pytest.mark.parametrize("name", [n for n, r in CHAIN_RECIPES.items() if hasattr(r, "rule")])
def test_every_learner_learns_a_small_language(name):
    data = corpus(3, n=16)
    chain = Chain.new(data.features.size, len(data.labels))
    learner = CHAIN_RECIPES[name].build(Scale(n=len(data)))
    trainer = OnlineTrainer(chain, learner, np.float64)
    before = 0
    for epoch in range(3):
        trainer.learn(data.rows, np.arange(len(data)))
        mistakes, before = trainer.mistakes - before, trainer.mistakes
        if epoch == 0:
            first = mistakes
    assert mistakes < first
    assert np.isfinite(exact_weights(trainer)).all()


@pytest.mark.parametrize("name", ["perceptron", "mira", "nbest-mira", "sapo", "crf", "ssvm"])
def test_sequence_weights_scale_the_loss(name):
    chain = SHAPES["first"]
    rows = tiny_rows(19, LENGTHS, chain, weights=[1, 2, 0, 0.5, 1, 0, 2, 1])
    learner = CHAIN_RECIPES[name].build(Scale(n=len(LENGTHS)))
    if name == "nbest-mira":
        learner = CHAIN_RECIPES[name].build(n=3, rounds=5000)
    compare(chain, rows, learner, ORDER, 1e-5 if name == "nbest-mira" else 1e-9)


def test_float32_stays_near_float64():
    chain = SHAPES["second"]
    rows = tiny_rows(23, LENGTHS, chain)
    learner = Learner(Log(), SGD(rate=0.3, l2=0.05), Averaged())
    narrow, wide = (OnlineTrainer(chain, learner, dtype) for dtype in (np.float32, np.float64))
    for trainer in (narrow, wide):
        trainer.learn(rows, np.tile(ORDER, 2))
    assert narrow.weights().dtype == np.float32
    np.testing.assert_allclose(narrow.average(), wide.average(), atol=2e-5)

"""Recipes: parts by name, swapped parts, rates that fit loss and rule, and what loads what."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest
from chain_oracle import corpus
from classes import train
from list_oracle import tiny_lists
from reference import random_problem

from hopefear.core.learner import Learner, part_name
from hopefear.data.generators import sparse_linear
from hopefear.errors import CombinationError, HopefearError
from hopefear.recipes import AVERAGINGS, CHAIN_RECIPES, COSTS, LIST_RECIPES, LOSSES, RECIPES, RULES
from hopefear.recipes.base import Auto, Recipe, Scale, steepness
from hopefear.structures.chain import Chain
from hopefear.structures.classes import Binary, Multiclass
from hopefear.structures.nbest import NBest
from hopefear.training.online import OnlineTrainer
from hopefear.translation.recipes import TUNE_RECIPES

pytestmark = pytest.mark.interpreted

TABLES = {"classify": RECIPES, "tag": CHAIN_RECIPES, "rerank": LIST_RECIPES, "tune": TUNE_RECIPES}
ONLINE = [
    (task, name)
    for task, table in TABLES.items()
    for name, recipe in table.items()
    if isinstance(recipe, Recipe)
]
online = pytest.mark.parametrize(("task", "name"), ONLINE)


def built(task, name, **params):
    recipe = TABLES[task][name]
    made = recipe.build(Scale(2.0, 8, 3.0), **params)
    return made if isinstance(made, Learner) else made.learner


@pytest.mark.parametrize("table", [LOSSES, RULES, AVERAGINGS, COSTS], ids=lambda table: table.kind)
def test_parts_bear_their_names(table):
    assert {name: part_name(part) for name, part in table.items()} == {n: n for n in table}
    assert len(table) == len(list(table))
    assert "nothing" not in table
    assert table.get("nothing") is None
    with pytest.raises(HopefearError, match=f"hopefear has no {table.kind} 'nothing'"):
        table.named("nothing")


def test_a_table_loads_no_part_and_a_learner_only_its_own():
    code = (
        "import sys, hopefear.recipes as r; "
        "before = [m for m in sys.modules if m.startswith(('hopefear.losses.', 'hopefear.rules.'))]"
        "; r.RECIPES['vrda'].build(); after = [m for m in sys.modules if "
        "m.startswith(('hopefear.losses.', 'hopefear.rules.', 'hopefear.training.'))]; "
        "print(before, sorted(after))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] ['hopefear.losses.hinge', 'hopefear.rules.rda']"


@online
def test_another_rule_brings_its_own_parameters(task, name):
    recipe = TABLES[task][name]
    old, refusals = set(recipe.rule._fields) - set(recipe.loss._fields), []
    for rule in RULES:
        try:
            learner = built(task, name, rule=rule)
        except CombinationError as error:
            refusals.append(str(error))
            continue
        assert part_name(type(learner.rule)) == rule
        assert f"|rule:{rule}(" in learner.signature()
        for key in old - set(learner.rule._fields):
            with pytest.raises(HopefearError, match=f"{name} has no parameter '{key}'"):
                built(task, name, rule=rule, **{key: 0.5})
        if "r" in learner.rule._fields:
            assert built(task, name, rule=rule, r="0.25").rule.r == 0.25
    assert all("use" in refusal for refusal in refusals)  # says what can be done instead
    assert recipe.parameters()["rule"] == part_name(recipe.rule)
    same = built(task, name, rule=part_name(recipe.rule))
    assert same.signature() == built(task, name).signature()


def test_the_penalty_of_a_pass_leaves_with_its_rule():
    assert built("tag", "sapo").rule.l2 > 0.0
    assert built("tag", "sapo", rule="adagrad").rule.l1 == 0.0
    with pytest.raises(HopefearError, match="has no parameter 'lam'"):
        built("tag", "sapo", rule="adagrad", lam=0.1)
    assert built("tag", "adagrad", rule="sgd", l2=0.5).rule.l2 == 0.5


def test_unknown_parts_get_a_hint():
    with pytest.raises(HopefearError, match="no rule 'adagrat'; did you mean 'adagrad'"):
        built("classify", "sgd", rule="adagrat")
    with pytest.raises(HopefearError, match="no loss 'hing'; did you mean 'hinge'"):
        built("rerank", "maxent-lbfgs", loss="hing")


def test_costs_of_labels_are_hamming_and_those_of_lists_as_the_loss_has_them():
    for task, wanted in (("classify", "hamming"), ("tag", "hamming"), ("rerank", "regret")):
        for loss in ("risk", "weighted-log", "hope-fear"):
            cost = built(task, "adagrad", loss=loss, price="2").loss.cost
            assert (part_name(type(cost)), cost.each) == (wanted, 2.0)
    with pytest.raises(HopefearError, match="the loss log has no cost"):
        built("classify", "softmax", price=2)


def test_rates_fall_where_forces_grow_without_end():
    steep = {name for name in LOSSES if steepness(LOSSES[name]()) > 0.0}
    assert steep == {"squared-hinge", "exponential"}
    scale = Scale(square=10.0)
    assert Auto(50.0).rate(scale, LOSSES["hinge"]()) == 5.0
    assert Auto(50.0).rate(scale, LOSSES["squared-hinge"]()) == pytest.approx(0.05)
    assert Auto(50.0).rate(scale, LOSSES["exponential"]()) < 0.05
    assert Auto(0.01).rate(scale, LOSSES["squared-hinge"]()) == 0.001  # small ones stay


@pytest.mark.parametrize("length", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("loss", ["squared-hinge", "exponential", "logistic", "log"])
@pytest.mark.parametrize("name", ["sgd", "rda", "vrda", "tg", "fobos"])
def test_automatic_rates_do_not_overflow(name, loss, length):
    problem = random_problem(7, 30, 6, 2)
    rows = problem.rows._replace(values=(length * problem.rows.values).astype(np.float32))
    square = float(np.mean(np.sum((length * problem.X) ** 2, axis=1)))
    learner = RECIPES[name].build(Scale(square, 30), loss=loss)
    trainer = OnlineTrainer(Binary(6), learner)
    for _ in range(6):
        trainer.learn(rows, np.arange(30))
    w = trainer.weights().astype(np.float64)
    scores = length * problem.X @ w
    signs = 2 * problem.rows.labels - 1
    assert np.abs(scores).max() < 1e4
    assert np.mean(signs * scores > 0) > 0.8


@pytest.mark.parametrize("seed", range(3))
def test_the_squared_hinge_is_trained_by_name(seed):
    data = sparse_linear(40, 12, per_row=(2, 6), true_weights=6, seed=seed).dataset()
    model = train(data, "sgd", {"loss": "squared-hinge"}, epochs=4).model
    assert np.isfinite(model.predictor.weights).all()
    gold = np.array(data.classes)[data.rows.labels]
    assert np.mean(np.array(model.predict(data)) == gold) > 0.7


STRUCTURES = {
    "classify": (Binary(6), Multiclass(6, 3)),
    "tag": (Chain.new(4, 3),),
    "rerank": (NBest(6),),
}


@pytest.mark.parametrize("task", STRUCTURES)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_learns_with_every_rule_or_says_why_not(task, loss):
    """The whole grid by names, as the command line has it."""
    holes = {}
    for rule, structure in itertools.product(RULES, STRUCTURES[task]):
        if task == "classify":
            rows = random_problem(3, 8, 6, structure.n_labels).rows
        elif task == "tag":
            data = corpus(3, n=4, longest=3)
            rows, structure = data.rows, Chain.new(data.features.size, len(data.labels))
        else:
            rows = tiny_lists(3, (3, 2, 4))
        try:
            learner = TABLES[task]["adagrad"].build(Scale(1.0, 8), loss=loss, rule=rule)
            trainer = OnlineTrainer(structure, learner, np.float64)
        except CombinationError as error:
            holes[rule] = str(error)
            continue
        trainer.learn(rows, np.arange(rows.weights.size))
        assert np.isfinite(trainer.weights()).all()
    assert all("use" in hole for hole in holes.values())
    if loss == "swvp" and task != "tag":
        assert set(holes) == set(RULES)
    else:
        assert len(holes) < len(RULES)

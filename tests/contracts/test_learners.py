"""Every loss x rule x occasion on every kind of outputs against dense oracles; holes say why."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from chain_oracle import corpus, tiny_rows
from learner_catalogue import FEW_RULES, LOOSE, LOSSES, RULES, SEARCHING, hole
from list_oracle import rows_of, tiny_lists
from reference import exact_weights
from started_structures import new_started

from hopefear import testing
from hopefear.averaging.averaged import Averaged
from hopefear.core.interfaces import inferences_of
from hopefear.core.learner import Learner, describe
from hopefear.costs.regret import Regret
from hopefear.errors import CombinationError
from hopefear.losses.hope_fear import HopeFear
from hopefear.losses.log import Log
from hopefear.losses.logistic import Logistic
from hopefear.recipes import CHAIN_RECIPES, LIST_RECIPES, RECIPES, TREE_RECIPES
from hopefear.recipes.base import Scale
from hopefear.rules.sgd import SGD
from hopefear.structures.chain.chain import Chain
from hopefear.structures.classes import Binary, Multiclass
from hopefear.structures.nbest import NBest
from hopefear.training.online import OnlineTrainer

TINY = testing.tiny_structures()
KINDS = {
    "classes": [Binary(6, bias=0.6180339887), Multiclass(5, 3)],
    "chains": [Chain.new(4, 3), Chain.new(4, 2, 2), Chain.new(4, 2, order=2)],
    "lists": [NBest(6), NBest(6, tied=True)],
    "trees": [new_started(tree) for name, tree in TINY.items() if name.endswith("trees")],
    "segments": [new_started(TINY["segments"])],
}
# Those of classes are in test_matrix.py.
MARGINS = [loss for loss in LOSSES if describe(loss) != describe(Logistic(base=2))]
LENGTHS = [3, 1, 2, 3, 2, 3, 1, 2]


def losses_of(kind):
    if kind == "classes":
        return SEARCHING
    if kind == "lists":
        costly = [loss for loss in SEARCHING if hasattr(loss, "cost")]
        more = [HopeFear(Regret(2.0), toward=1, away=2)]
        return [
            *MARGINS,
            *SEARCHING[:2],
            *(loss._replace(cost=Regret(0.7)) for loss in costly),
            *more,
        ]
    return [*MARGINS, *SEARCHING]


def place_of(kind, loss, name):
    """The structures of a kind take turns; sums over trees are asked of those that have them."""
    places = KINDS[kind]
    first = (len(name) + len(describe(loss))) % len(places)
    turns = [*places[first:], *places[:first]]
    return next(place for place in turns if set(loss.requires()) <= inferences_of(place))


GRID = [
    (kind, loss, name, on)
    for kind in KINDS
    for loss, name, on in itertools.product(losses_of(kind), FEW_RULES, ("all", "mistakes"))
]


# With most other seeds a score or a step ends where rounding decides for some of them.
def data_of(structure, seed=7, weights=None, lengths=LENGTHS):
    if isinstance(structure, Chain):
        return tiny_rows(seed, lengths, structure, weights=weights)
    rows = tiny_lists(seed) if isinstance(structure, NBest) else testing.tiny_rows(structure, seed)
    n = rows.weights.size
    return rows if weights is None else rows._replace(weights=np.resize(weights, n).astype(float))


@pytest.mark.parametrize(
    ("kind", "loss", "name", "on"), GRID, ids=[f"{k}-{describe(a)}-{b}-{c}" for k, a, b, c in GRID]
)
def test_a_combination_equals_its_oracle_or_says_why_not(kind, loss, name, on):
    rule = RULES[name]
    reason = hole(loss, rule, on)
    if reason is not None:
        with pytest.raises(CombinationError, match=reason):
            Learner(loss, rule, Averaged(), on)
        return
    structure = place_of(kind, loss, name)
    answer = testing.check_learner(loss, rule, Averaged(), structure, data_of(structure), on)
    assert ("which margin" in answer) == (name == "cw" and type(loss).__name__ in LOOSE)
    assert answer == "" or "which margin" in answer


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("kind", ["chains", "lists"])
def test_every_setting_of_a_rule_and_weights_of_examples(kind, name):
    rule = type(RULES[name]).__name__
    plain = rule in ("PassiveAggressive", "AROW", "ConfidenceWeighted")
    weights = None if plain else [1, 2, 0, 0.5, 1, 0, 2, 1]
    loss = SEARCHING[0] if not plain and kind == "chains" else LOSSES[1 if plain else 3]
    for structure in KINDS[kind]:
        rows = data_of(structure, 15, weights)
        assert testing.check_learner(loss, RULES[name], Averaged(), structure, rows) == ""


TABLES = dict(
    zip(KINDS, (RECIPES, CHAIN_RECIPES, LIST_RECIPES, TREE_RECIPES, CHAIN_RECIPES), strict=True)
)
ONLINE = [
    (kind, name)
    for kind, recipes in TABLES.items()
    for name, recipe in recipes.items()
    if hasattr(recipe, "rule") and not (kind == "segments" and name == "swvp")
]
# What else is worth a look: (name, parameters).
MORE = [
    ("mira", {"root": "false", "averaging": "last"}),
    ("nbest-mira", {"n": 4, "sequential": "true"}),
    *(("sapo", more) for more in ({"penalty": "l1"}, {"n": 1, "lam": 0.5}, {"ratio": 20.0})),
    *(("crf", {"penalty": "l1", "lam": 0.3}), ("rda", {"l1": 0.02, "rate": 1.0})),
    *(("vrda", {"l1": 0.02, "loss": "log"}), ("tg", {"gravity": 0.02, "every": 3})),
    *(("fobos", {"l1": 0.02}), ("adagrad", {"loss": "sapo", "n": 3})),
    *(("adagrad-rda", {"l1": 0.02}), ("arow", {"loss": "hinge"}), ("ftrl", {"l1": 0.1})),
]
CASES = [(*one, {}) for one in ONLINE] + [("chains", *one) for one in MORE]


@pytest.mark.parametrize(
    ("kind", "name", "params"), CASES, ids=[f"{k}-{n}-{p}" for k, n, p in CASES]
)
def test_published_learners_equal_their_formulas(kind, name, params):
    structure = KINDS[kind][-1 if kind == "classes" else 0]
    rows = data_of(structure, 17)
    if kind == "chains":
        rows = tiny_rows(17, LENGTHS, structure, repeat=False)
    exact = {"rounds": 5000} if name == "nbest-mira" and "sequential" not in params else {}
    scale = Scale(4.0, rows.weights.size, 3.0)
    learner = TABLES[kind][name].build(scale, **exact, **params)
    parts = (learner.loss, learner.rule, learner.averaging)
    assert testing.check_learner(*parts, structure, rows, learner.update_on) == ""


@pytest.mark.parametrize("name", [n for kind, n in ONLINE if kind == "chains"])
def test_every_learner_learns_a_small_language(name):
    data = corpus(3, n=16)
    chain = Chain.new(data.features.size, len(data.labels))
    trainer = OnlineTrainer(chain, CHAIN_RECIPES[name].build(Scale(n=len(data))), np.float64)
    counted = [0]
    for _ in range(3):
        trainer.learn(data.rows, np.arange(len(data)))
        counted.append(trainer.mistakes)
    assert counted[3] - counted[2] < counted[1]
    assert np.isfinite(exact_weights(trainer)).all()


@pytest.mark.parametrize("name", [n for kind, n in ONLINE if kind == "lists"])
def test_every_learner_learns_to_rank(name):
    """The cheapest candidates have the most of two good features and the least of a bad one."""
    rng, quality = np.random.default_rng(3), np.array([2.0, 1.0, -2.0, 0.0, 0.0, 0.0])
    matrices = [rng.integers(0, 3, (5, 6)) for _ in range(24)]
    costs = [(-m @ quality + 0.1 * rng.random(5)) / 8 for m in matrices]
    rows, structure = rows_of(matrices, costs), NBest(6)
    trainer = OnlineTrainer(structure, LIST_RECIPES[name].build(Scale(20.0, 24, 8.0)), np.float64)
    for _ in range(4):
        trainer.learn(rows, np.arange(24))
    w = trainer.predictor().weights.astype(np.float64)
    paid = [c[testing.World.at(structure, rows, i, w).ranked()[0]] for i, c in enumerate(costs)]
    least, chance = ([f(c) for c in costs] for f in (np.min, np.mean))
    assert np.mean(paid) - np.mean(least) < 0.3 * (np.mean(chance) - np.mean(least))


@pytest.mark.parametrize("structure", [KINDS["chains"][2], NBest(6)], ids=["chain", "lists"])
def test_float32_stays_near_float64(structure):
    rows, order = data_of(structure, 23), np.tile(np.arange(8), 2)
    learner = Learner(Log(), SGD(rate=0.3, l2=0.05), Averaged())
    narrow, wide = (OnlineTrainer(structure, learner, dtype) for dtype in (np.float32, np.float64))
    for trainer in (narrow, wide):
        trainer.learn(rows, order)
    assert narrow.weights().dtype == np.float32
    np.testing.assert_allclose(narrow.average(), wide.average(), atol=2e-5)

"""Parameters no formula makes sense for are refused by name."""

from __future__ import annotations

import json
import math

import pytest

from hopefear.averaging.averaged import Averaged
from hopefear.core.learner import Learner, check_part, parameters_by_part
from hopefear.costs.regret import Regret
from hopefear.errors import HopefearError
from hopefear.losses.exponential import Exponential
from hopefear.losses.hope_fear import HopeFear
from hopefear.recipes import CHAIN_RECIPES, LIST_RECIPES, RECIPES
from hopefear.rules.passive_aggressive import PassiveAggressive
from hopefear.rules.rda import RDA
from hopefear.rules.truncated import TruncatedGradient
from hopefear.translation.tuners.batch_tuner import BatchTuner

pytestmark = pytest.mark.interpreted


@pytest.mark.parametrize("name", RECIPES)
def test_infinite_parameters_are_refused_where_they_mean_nothing(name):
    recipe = RECIPES[name]
    own = recipe.own_parameters() if hasattr(recipe, "own_parameters") else recipe.rule._fields
    for key in ("l1", "l2", "gravity", "power", "eps", "r", "phi"):
        if key in own:
            with pytest.raises(HopefearError, match=f"{key} must be finite"):
                recipe.build(**{key: "inf"})


def test_infinity_stays_where_it_means_something():
    for part in (
        RDA(rate=math.inf, l2=1.0),
        TruncatedGradient(threshold=math.inf),
        PassiveAggressive(C=math.inf),
        Exponential(limit=math.inf),
    ):
        check_part(part)


@pytest.mark.parametrize("averaging", ["last", "voted"])
def test_a_field_without_effect_is_no_parameter(averaging):
    with pytest.raises(HopefearError, match="vrda has no parameter 'unused'"):
        RECIPES["vrda"].build(averaging=averaging, unused=1)
    assert "unused" not in RECIPES["vrda"].parameters()


def test_a_whole_number_that_kernels_cannot_hold_is_refused():
    with pytest.raises(HopefearError, match="every must lie within 32 bits"):
        RECIPES["tg"].build(every=10**20)


def test_parameters_are_numbers_where_they_are_numbers():
    learner = Learner(HopeFear(cost=Regret(20.0)), RDA(rate=math.inf, l1=1e-4, l2=0.5), Averaged())
    found = parameters_by_part(learner)
    assert found["loss"]["cost"] == {"name": "regret", "each": 20.0}
    assert found["loss"]["toward"] == "hope"
    assert found["rule"] == {"rate": "inf", "l1": 1e-4, "l2": 0.5}
    assert found["averaging"]["sparse_average"] is False
    assert json.loads(json.dumps(found, allow_nan=False)) == found


@pytest.mark.parametrize("name", ["ssvm-cp", "ssvm-bcfw", "rampion-cccp"])
def test_parameters_of_batch_learners_include_their_costs(name):
    found = parameters_by_part(LIST_RECIPES[name].build(price=20.0, l2=0.5))
    assert found["loss"]["cost"] == {"name": "regret", "each": 20.0}
    assert found["batch"]["l2"] == 0.5
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    tuner = BatchTuner(LIST_RECIPES[name].build(price=20.0, l2=0.5), corpus=0.5)
    assert tuner.parameters() == {**found, "corpus": 0.5, "keep": "auto", "patience": 0}
    assert list(parameters_by_part(CHAIN_RECIPES["crf-lbfgs"].build())) == ["batch"]

"""Every tuner by name, on lists that are small enough for uncompiled code."""

from __future__ import annotations

import numpy as np
import pytest
from tuning_plain import small_lists

from hopefear.metrics.lists import metric_named
from hopefear.recipes.scales import scale_of
from hopefear.tasks import recipe
from hopefear.translation.features import learned
from hopefear.translation.recipes import TUNE_RECIPES
from hopefear.translation.task import start_weights
from hopefear.translation.tuners.problem import TuningProblem

pytestmark = pytest.mark.interpreted

# As little as each tuner can do.
FEW = {"epochs": 5, "restarts": 1, "rounds": 2, "iterations": 3}


@pytest.fixture(scope="module")
def lists():
    return {metric: small_lists(24, 6, seed=3, metric=metric) for metric in ("bleu", "ter")}


@pytest.mark.parametrize("metric", ["bleu", "ter"])
@pytest.mark.parametrize("name", TUNE_RECIPES)
def test_every_tuner_loses_next_to_nothing_on_its_lists(name, metric, lists):
    judge = metric_named(metric, **({"tokenize": "none"} if metric == "bleu" else {}))
    data = learned(lists[metric], judge, ("dense",))
    problem = TuningProblem(data, judge, start_weights(lists[metric]).dense)
    known, events = TUNE_RECIPES[name].parameters(), []
    params = {key: value for key, value in FEW.items() if key in known}
    if known.get("classifier") == "logistic":
        del params["epochs"]  # of other classifiers, and refused here
    if "background" in known and metric != "bleu":
        params["background"] = "none"
    if name in ("ssvm-cp", "ssvm-bcfw", "rampion-cccp"):
        params["l2"] = 0.1  # the usual one is for a thousand lists
    tuner = recipe(name, "tune").build(scale_of(data), **params)
    found = tuner.tune(problem, seed=1, on_event=[events.append])
    assert np.isfinite(found.weights).all() and found.weights.any()
    scores = [problem.score(weights) for weights in (problem.start, found.weights)]
    gain = (scores[1] - scores[0]) * (1 if judge.higher else -1)
    # Without held-out lists the last pass is kept, which need not be the best on these.
    assert gain > -1.0, f"{name} went from {scores[0]:.2f} to {scores[1]:.2f}"
    assert found.history == events and events[-1]["train"].keys() == {judge.main}
    assert "seed:1" in tuner.signature(seed=1)
    assert set(tuner.parameters()) and found.weights.shape == problem.start.shape

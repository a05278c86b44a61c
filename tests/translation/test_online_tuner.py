"""Online tuners against the slides' update in NumPy: choices, backgrounds, starts, what is kept."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from tuning_plain import mira, small_lists

from hopefear.averaging.averaged import Averaged
from hopefear.averaging.last import Last
from hopefear.averaging.voted import Voted
from hopefear.core.learner import Learner
from hopefear.costs.regret import Regret
from hopefear.data.lists.dataset import cheapest
from hopefear.errors import CombinationError, HopefearError
from hopefear.losses.hope_fear import HopeFear
from hopefear.losses.perceptron import Perceptron
from hopefear.metrics.lists import metric_named
from hopefear.rules.passive_aggressive import PassiveAggressive
from hopefear.rules.sgd import SGD
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes
from hopefear.translation.features import learned
from hopefear.translation.tuners.online_tuner import BACKGROUNDS, OnlineTuner
from hopefear.translation.tuners.problem import TuningProblem

pytestmark = pytest.mark.interpreted

BLEU = metric_named("bleu", tokenize="none")
LISTS = small_lists()
START = np.array([0.3, 0.1, 0.2, 0.25, 0.15])
TOWARD, AWAY = HopeFear.choices["toward"], HopeFear.choices["away"]


def problem(lists=LISTS, start=START, dev=None):
    data = learned(lists, BLEU, ("dense",))
    held = None if dev is None else data.features.encode(dev, BLEU)
    return TuningProblem(data, BLEU, start, held)


def learner(toward="hope", away="fear", averaging=Last, C=0.01, price=10.0):
    loss = HopeFear(Regret(price), TOWARD.index(toward), AWAY.index(away))
    return Learner(loss, PassiveAggressive(C=C), averaging())


def orders(epochs, seed):
    passes = Passes(problem().data, seed)
    return [np.concatenate([o for _, o in passes.pieces(epoch)]) for epoch in range(epochs)]


@pytest.mark.parametrize("background", BACKGROUNDS)
@pytest.mark.parametrize(("toward", "away"), list(itertools.product(TOWARD, AWAY)))
def test_all_choices_are_the_update_of_the_slides(toward, away, background):
    tuner = OnlineTuner(learner(toward, away), 3, background, 0.9, keep="last")
    found = tuner.tune(problem(), seed=4).weights
    wanted = mira(
        *(LISTS, START, orders(3, 4)),
        **{"C": 0.01, "price": 10.0, "toward": toward, "away": away},
        **{"background": background, "memory": 0.9},
    )[-1]
    assert not np.allclose(wanted, START, atol=1e-3)
    np.testing.assert_allclose(found, wanted, atol=2e-5)


def test_weights_that_are_returned_are_the_average_of_all_there_were():
    tuner = OnlineTuner(learner(averaging=Averaged), 2, "hope", 0.99, keep="last")
    found = tuner.tune(problem()).weights
    ticks = mira(
        *(LISTS, START, orders(2, 1)),
        **{"C": 0.01, "price": 10.0, "toward": "hope", "away": "fear"},
        **{"background": "hope", "memory": 0.99},
    )
    np.testing.assert_allclose(found, ticks.mean(axis=0), atol=2e-5)


def test_a_start_is_part_of_scores_and_not_of_what_shrinks():
    # Steps of length 0 would be no test: here the penalty pulls the change, and only it, to 0.
    shrinking = Learner(Perceptron(), SGD(rate=1e-9, l2=0.5), Last())
    found = OnlineTuner(shrinking, 3, keep="last").tune(problem()).weights
    np.testing.assert_allclose(found, START, atol=1e-6)


def test_small_changes_of_large_weights_are_not_lost():
    far = START * 1e4
    tuner = OnlineTuner(learner("oracle", "prediction", C=1e-3), 1, keep="last")
    found = tuner.tune(problem(start=far)).weights
    wanted = mira(
        *(LISTS, far, orders(1, 1)),
        **{"C": 1e-3, "price": 10.0, "toward": "oracle", "away": "prediction"},
    )[-1]
    assert abs(wanted - far).max() > 1e-3
    np.testing.assert_allclose(found - far, wanted - far, atol=1e-6)


def test_data_of_the_problem_is_never_written_to():
    asked = problem()
    before = [array.copy() for array in asked.data.rows]
    OnlineTuner(learner(), 2, "oracle").tune(asked)
    for old, new in zip(before, asked.data.rows, strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("held", [False, True])
def test_the_best_pass_is_kept_and_patience_ends_tuning(held):
    asked = problem(dev=small_lists(seed=9) if held else None)
    part = "dev" if held else "train"
    events = []
    tuner = OnlineTuner(learner(C=0.3), 12, keep="best", patience=3)
    found = tuner.tune(asked, on_event=[events.append])
    assert found.history == events
    scores = [asked.report(START)[part]["bleu"], *(event[part]["bleu"] for event in events)]
    assert found.best_epoch == int(np.argmax(scores)) > 0
    assert len(events) == min(12, found.best_epoch + 3)
    assert asked.report(found.weights)[part]["bleu"] == max(scores)
    last = OnlineTuner(learner(C=0.3), 2, keep="last").tune(asked)
    assert last.best_epoch == 2
    assert asked.report(last.weights)["train"] == last.history[-1]["train"]


def misled(asked):
    """Costs that say the opposite of the metric."""
    costs, starts = 1.0 - asked.data.rows.costs, asked.data.rows.starts
    wrong = asked.data.replaced(costs=costs, oracles=cheapest(costs, starts))
    return replace(asked, data=wrong)


@pytest.mark.parametrize("held", [False, True])
def test_a_start_that_no_pass_betters_is_kept(held):
    asked = misled(problem(dev=small_lists(seed=9) if held else None))
    away = Learner(Perceptron(), SGD(), Last())
    found = OnlineTuner(away, 9, keep="best", patience=2).tune(asked)
    np.testing.assert_array_equal(found.weights, START)
    assert found.best_epoch == 0 and len(found.history) < 9
    part = "dev" if held else "train"
    assert all(e[part]["bleu"] < asked.report(START)[part]["bleu"] for e in found.history)
    assert OnlineTuner(away, 2, keep="last").tune(asked).best_epoch == 2


@pytest.mark.parametrize("held", [False, True])
def test_scores_of_the_tuning_lists_choose_no_pass_unless_asked(held):
    asked = problem(dev=small_lists(seed=9) if held else None)
    rule = "best" if held else "last"
    usual, said = (OnlineTuner(learner(C=0.3), 6, keep=k).tune(asked) for k in ("auto", rule))
    np.testing.assert_array_equal(usual.weights, said.weights)
    assert usual.best_epoch == said.best_epoch


def test_a_start_that_scores_nothing_is_no_candidate():
    # All candidates are tied: what comes first in its list is not the choice of any weights.
    asked = misled(problem(start=np.zeros(5)))
    found = OnlineTuner(Learner(Perceptron(), SGD(), Last()), 2, keep="best").tune(asked)
    assert asked.score(found.weights) < asked.score(asked.start)
    assert found.best_epoch > 0 and found.weights.any()


def test_costs_are_copied_only_for_a_pseudo_corpus(monkeypatch):
    seen = []
    learn = OnlineTrainer.learn

    def watched(self, rows, order):
        seen.append(rows)
        return learn(self, rows, order)

    monkeypatch.setattr(OnlineTrainer, "learn", watched)
    asked = problem()
    OnlineTuner(learner(), 1).tune(asked)
    assert seen[-1].costs is asked.data.rows.costs and seen[-1].oracles is asked.data.rows.oracles
    OnlineTuner(learner(), 1, "hope").tune(asked)
    assert seen[-1].costs is not asked.data.rows.costs


def test_seeds_give_orders_and_the_same_seed_the_same_bits():
    tuner = OnlineTuner(learner(C=0.1), 2, keep="last")
    one, again, other = (tuner.tune(problem(), seed=s).weights for s in (1, 1, 2))
    assert one.tobytes() == again.tobytes() != other.tobytes()


def test_what_cannot_be_tuned_is_refused():
    with pytest.raises(CombinationError, match="votes"):
        OnlineTuner(learner(averaging=Voted))
    with pytest.raises(HopefearError, match="background"):
        OnlineTuner(learner(), background="gold")
    with pytest.raises(HopefearError, match="epochs"):
        OnlineTuner(learner(), epochs=0)
    with pytest.raises(HopefearError, match="memory"):
        OnlineTuner(learner(), memory=1.5)
    lists = small_lists(metric="chrf")
    chrf = metric_named("chrf")
    asked = TuningProblem(learned(lists, chrf, ("dense",)), chrf, START)
    with pytest.raises(CombinationError, match="background=none"):
        OnlineTuner(learner(), background="hope").tune(asked)
    OnlineTuner(learner(), 1).tune(asked)

"""Minimum risk annealing: the free energy and its gradient, levels, and the unit of weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from list_oracle import rows_of
from tuning_oracle import small_problem

from hopefear.costs.regret import Regret
from hopefear.data.lists.dataset import ListDataset
from hopefear.errors import HopefearError
from hopefear.losses.risk import Risk
from hopefear.metrics.lists import GivenCost
from hopefear.structures.nbest import NBest
from hopefear.training.batch import LossObjective
from hopefear.translation.tuners.annealed_risk import AnnealedRisk, FreeEnergy, priced
from hopefear.translation.tuners.corpus import spread_within
from hopefear.translation.tuners.problem import TuningProblem

pytestmark = pytest.mark.interpreted


def free_energy(matrix, rows, w, inverse_temperature, heat):
    total = 0.0
    for i in range(len(rows.weights)):
        span = slice(rows.starts[i], rows.starts[i + 1])
        scores = inverse_temperature * (matrix[span] @ w + rows.offsets[span])
        share = np.exp(scores - scores.max())
        share /= share.sum()
        costs = rows.costs[span] - rows.costs[span][rows.oracles[i]]
        total += rows.weights[i] * (share @ (costs + heat * np.log(share)))
    return total


@pytest.mark.parametrize(("inverse_temperature", "heat"), [(1.0, 0.0), (0.5, 0.3), (3.0, 0.1)])
def test_free_energy_and_its_gradient(inverse_temperature, heat):
    problem, matrix = small_problem(lists=10)
    rows, w = problem.data.rows, np.array([0.3, -0.2, 0.5, 0.1, -0.4])
    rng = np.random.default_rng(1)
    rows = problem.data.replaced(
        offsets=rng.normal(size=len(rows.costs)), weights=rng.uniform(0.5, 2.0, size=10)
    ).rows
    objective = LossObjective(NBest(5), FreeEnergy(Regret(), inverse_temperature, heat), rows, 0.0)
    value, gradient = objective(w)
    assert value == pytest.approx(free_energy(matrix, rows, w, inverse_temperature, heat))
    for j in range(5):
        e = 1e-5 * np.eye(5)[j]
        ends = [
            free_energy(matrix, rows, w + s * e, inverse_temperature, heat) for s in (1.0, -1.0)
        ]
        assert gradient[j] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-6)


def test_without_heat_it_is_the_risk():
    problem, _ = small_problem()
    w = np.array([0.3, -0.2, 0.5, 0.1, -0.4])
    one, two = (
        LossObjective(NBest(5), loss, problem.data.rows, 0.1)(w)
        for loss in (FreeEnergy(Regret(), 2.0), Risk(Regret(), 2.0))
    )
    assert one[0] == two[0]
    np.testing.assert_array_equal(one[1], two[1])


def test_sure_choices_have_no_entropy_and_no_gradient():
    rows = ListDataset(rows_of([np.array([[0.0], [1.0]])], [[1.0, 0.0]])).rows
    objective = LossObjective(NBest(1), FreeEnergy(Regret(), 1.0, 0.5), rows, 0.0)
    value, gradient = objective(np.array([1e5]))
    assert value == 0.0 and gradient[0] == 0.0


def test_weights_are_measured_by_the_spread_of_their_scores():
    problem, matrix = small_problem()
    data, unit = priced(problem, 0.0)
    scores = matrix @ problem.start / unit
    assert spread_within(scores, data.rows.starts) == pytest.approx(1.0, rel=1e-5)
    longer = replace(problem, start=10.0 * problem.start)
    one, two = AnnealedRisk().tune(problem), AnnealedRisk().tune(longer)
    np.testing.assert_allclose(two.weights, 10.0 * one.weights, rtol=1e-6)


def test_levels_sharpen_cool_and_end_when_both_costs_agree():
    problem, _ = small_problem(lists=60, features=8)
    events = []
    tuner = AnnealedRisk(levels=20, heat=0.2)
    found = tuner.tune(problem, on_event=[events.append])
    assert events == found.history and len(events) < 20
    assert [event["inverse_temperature"] for event in events] == [
        0.5 * 2.0**k for k in range(len(events))
    ]
    assert [event["heat"] for event in events[:3]] == [0.2, 0.1, 0.05]
    scores = [event["train"]["bleu"] for event in events]
    assert problem.score(found.weights) == max(scores) > problem.score(problem.start)
    assert found.best_epoch == 1 + int(np.argmax(scores))
    np.testing.assert_array_equal(found.weights, tuner.tune(problem, seed=5).weights)
    cold = AnnealedRisk(levels=20, heat=0.0).tune(problem).history
    last = cold[-1]
    assert len(cold) < 20 and abs(last["risk"] - last["cost"]) <= 0.01 * last["cost"]
    assert all(abs(e["risk"] - e["cost"]) > 0.01 * e["cost"] for e in cold[:-1])


def test_entropy_keeps_choices_open():
    problem, _ = small_problem(lists=40)
    hot, cold = (
        AnnealedRisk(heat=heat, levels=2, max_iter=30).tune(problem).history[0]
        for heat in (1.0, 0.0)
    )
    assert hot["risk"] > cold["risk"]


def test_the_best_level_on_held_out_lists_counts():
    problem, _ = small_problem(lists=40, dev=True)
    found = AnnealedRisk().tune(problem)
    scores = [event["dev"]["bleu"] for event in found.history]
    assert problem.score(found.weights, problem.dev) == max(scores)


def test_zero_weights_are_a_start_too():
    problem, _ = small_problem(lists=40)
    found = AnnealedRisk().tune(replace(problem, start=np.zeros(5)))
    assert problem.score(found.weights) > problem.score(np.zeros(5))


def test_lists_with_nothing_to_choose_leave_weights_alone():
    same = ListDataset(rows_of([np.eye(3)[:1], np.eye(3)[:1]], [[0.5], [0.5]]))
    start = np.array([1.0, 0.0, 2.0])
    found = AnnealedRisk(l2=0.0).tune(TuningProblem(same, GivenCost(), start))
    np.testing.assert_array_equal(found.weights, start)
    empty = same.replaced(weights=np.zeros(2))
    with pytest.raises(HopefearError, match="no lists of weight above 0"):
        AnnealedRisk().tune(TuningProblem(empty, GivenCost(), start))


def test_parameters_without_meaning_are_refused():
    for bad in (
        {"inverse_temperature": 0.0},
        {"factor": 1.0},
        {"levels": 0},
        {"heat": -1.0},
        {"l2": -1.0},
    ):
        with pytest.raises(HopefearError, match=f"AnnealedRisk: {next(iter(bad))}"):
            AnnealedRisk(**bad)
    assert AnnealedRisk(**AnnealedRisk(l2=0.5).parameters()) == AnnealedRisk(l2=0.5)

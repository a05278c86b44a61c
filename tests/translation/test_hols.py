"""Held-out line search: directions of one part, steps of the other, dense features in the end."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from list_oracle import rows_of
from tuning_oracle import small_problem
from tuning_plain import oracles_first

from hopefear.costs.regret import Regret
from hopefear.data.lists.dataset import ListDataset
from hopefear.errors import HopefearError
from hopefear.losses.risk import Risk
from hopefear.metrics.lists import GivenCost
from hopefear.structures.nbest import NBest
from hopefear.training.batch import LossObjective
from hopefear.translation.tuners.envelope import WeightSearch
from hopefear.translation.tuners.hols import Hols, descent
from hopefear.translation.tuners.problem import TuningProblem

pytestmark = pytest.mark.interpreted


def test_one_inner_step_is_along_the_gradient():
    problem, _ = small_problem(lists=40)
    objective = LossObjective(NBest(5), Risk(Regret(), 1.0), problem.data.rows, 0.0)
    w = np.zeros(5)
    towards, (before, slope) = descent(objective, w, 1), objective(w)
    cosine = -towards @ slope / np.linalg.norm(towards) / np.linalg.norm(slope)
    assert cosine == pytest.approx(1.0)
    assert objective(towards)[0] < before
    assert objective(descent(objective, w, 8))[0] < objective(towards)[0]


def test_a_step_is_the_best_of_a_grid_of_the_held_out_lists():
    problem, _ = small_problem(lists=40, dev=True)
    found = Hols(rounds=1, dense=0).tune(problem)
    moved = found.weights - problem.start
    grid = [problem.score(problem.start + t * moved, problem.dev) for t in np.linspace(0, 3, 301)]
    assert problem.score(found.weights, problem.dev) >= max(grid)
    assert found.history[0]["held_out"]["bleu"] == pytest.approx(
        problem.score(found.weights, problem.dev)
    )


def test_offsets_are_no_part_of_a_slope():
    matrices, costs = [np.array([[0.0], [1.0]])] * 2, [[1.0, 0.0]] * 2
    rows = rows_of(matrices, costs, offsets=[[2.0, 0.0], [0.5, 0.0]])
    problem = TuningProblem(ListDataset(rows), GivenCost(), np.zeros(1))
    step = WeightSearch(problem).best([0.0], [1.0], low=0.0, high=4.0)
    assert step.t == pytest.approx(3.0) and step.worth == 0.0 and step.before == -1.0


def test_candidates_that_differ_in_offsets_alone_never_change_places():
    # 0.01 + 4 - 4 is less than 0.01 + 1 - 1 in binary, which would be a corner far out.
    rows = rows_of([np.array([[0.1], [0.1]])], [[1.0, 0.0]], offsets=[[4.0, 1.0]])
    problem = TuningProblem(ListDataset(rows), GivenCost(), np.zeros(1))
    assert WeightSearch(problem).best([1.0], [0.1]).t == 0.0


def test_intervals_that_rounding_might_miss_are_passed_over():
    # At t = 1 three lines meet, but for less than a millionth.
    matrices, costs = [np.array([[0.0, 0.0], [-1.0, 1.0], [-2.0, 2.0 - 2**-22]])], [[1.0, 0.0, 1.0]]
    problem = TuningProblem(ListDataset(rows_of(matrices, costs)), GivenCost(), np.zeros(2))
    assert WeightSearch(problem).best([1.0, 0.0], [0.0, 1.0]).t == 0.0


def test_steps_gain_on_the_held_out_lists_until_none_does():
    problem, _ = small_problem(lists=60, dev=True)
    events = []
    found = Hols(rounds=50, dense=2).tune(problem, on_event=[events.append])
    scores = [problem.score(problem.start, problem.dev)]
    scores += [event["dev"]["bleu"] for event in events]
    assert (np.diff(scores) > 0.0).all() and len(events) < 100
    assert events == found.history
    assert problem.score(found.weights, problem.dev) == scores[-1]


def test_only_dense_features_are_tuned_one_by_one():
    problem, _ = small_problem(lists=40, features=8)
    one = Hols(rounds=20, dense=0).tune(problem)
    two = Hols(rounds=20, dense=3).tune(problem)
    assert any(event["phase"] == "dense" for event in two.history)
    np.testing.assert_array_equal(one.weights[3:], two.weights[3:])
    assert not np.array_equal(one.weights[:3], two.weights[:3])
    # -1 asks the lists: without a word of theirs all features are dense, and there is no more.
    np.testing.assert_array_equal(Hols(rounds=20).tune(problem).weights, one.weights)
    named = problem.data.replaced()
    named.features = SimpleNamespace(size=8, n_dense=3)
    asked = Hols(rounds=20).tune(replace(problem, data=named))
    np.testing.assert_array_equal(asked.weights, two.weights)


@pytest.mark.parametrize("swap", [False, True])
def test_tuning_learns_and_depends_on_nothing_but_the_seed(swap):
    problem, _ = small_problem(lists=60, features=8)
    tuner = Hols(swap=swap)
    found = tuner.tune(problem, seed=2)
    assert problem.score(found.weights) > problem.score(problem.start)
    np.testing.assert_array_equal(found.weights, tuner.tune(problem, seed=2).weights)
    assert not np.array_equal(found.weights, tuner.tune(problem, seed=3).weights)


def test_metrics_of_which_less_is_better():
    problem, _ = small_problem(lists=60, bleu=False)
    found = Hols().tune(problem)
    assert problem.score(found.weights) < problem.score(problem.start)
    assert found.history[0]["held_out"]["cost"] > 0.0


def test_lists_with_nothing_to_choose_leave_weights_alone():
    same = ListDataset(rows_of([np.eye(3), np.eye(3)[:1]], [[0.5] * 3, [0.5]]))
    start = np.array([1.0, 0.0, 2.0])
    found = Hols().tune(TuningProblem(same, GivenCost(), start))
    np.testing.assert_array_equal(found.weights, start)
    (event,) = found.history
    assert event["epoch"] == 1 and event["phase"] == "none"
    assert event["train"] == {"cost": 0.5} == event["held_out"]


def test_weights_of_zero_are_left_whatever_comes_first_in_lists():
    problem, matrix = small_problem(lists=40)
    for data in (problem.data, oracles_first(problem.data, matrix)):
        found = Hols().tune(replace(problem, data=data, start=np.zeros(5)))
        assert found.weights.any() and found.history[0]["phase"] == "direction"
        assert problem.score(found.weights) > problem.score(problem.start)


def test_what_cannot_be_split_or_meant_is_refused():
    one = ListDataset(rows_of([np.eye(3)], [[0.5, 0.0, 1.0]]))
    with pytest.raises(HopefearError, match=r"1 lists cannot be split.*give held-out lists"):
        Hols().tune(TuningProblem(one, GivenCost(), np.zeros(3)))
    for bad in (
        {"rounds": 0},
        {"held_out": 1.0},
        {"inverse_temperature": 0.0},
        {"inner": 0},
        {"dense": -2},
    ):
        with pytest.raises(HopefearError, match=f"Hols: {next(iter(bad))}"):
            Hols(**bad)
    assert Hols(**Hols(inner=2).parameters()) == Hols(inner=2)

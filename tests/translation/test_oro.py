"""Optimized online rank learning: its pairs, the dual of a step, passes and line searches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from list_oracle import rows_of
from scipy.optimize import minimize
from tuning_oracle import small_problem
from tuning_plain import oracles_first

from hopefear.data.lists.dataset import ListDataset
from hopefear.errors import HopefearError
from hopefear.metrics.lists import GivenCost
from hopefear.translation.tuners.oro import Oro, ascend, hinge, ranked
from hopefear.translation.tuners.pro import differences
from hopefear.translation.tuners.problem import TuningProblem

pytestmark = pytest.mark.interpreted

FAST = Oro(batch=8, epochs=3)


def batch_of(seed=1, lists=4):
    """(pairs, dense differences, margins, caps) of a small batch."""
    problem, matrix = small_problem(seed, lists=lists, bleu=False)
    rows = problem.data.rows
    chosen, gaps = ranked(rows.costs, rows.starts)
    pairs = differences(problem.data, chosen)
    dense = matrix[chosen[:, 0]].astype(np.float64) - matrix[chosen[:, 1]]
    caps = np.random.default_rng(seed).uniform(0.05, 0.2, size=len(gaps))
    return pairs, dense, gaps, caps


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_coefficients_reach_the_optimum_of_the_dual(seed):
    pairs, dense, margins, caps = batch_of(seed)
    before = np.random.default_rng(seed).normal(size=5)
    w, shares = before.copy(), np.zeros(len(margins))
    ascend(pairs, margins, caps, 5000, w, shares)
    np.testing.assert_allclose(w, before + shares @ dense, atol=1e-5)
    assert (shares >= 0.0).all() and (shares <= caps + 1e-12).all()

    def minus_dual(a):
        moved = a @ dense
        return 0.5 * moved @ moved - a @ (margins - dense @ before)

    best = minimize(minus_dual, caps / 2, bounds=[(0.0, c) for c in caps], tol=1e-12)
    assert minus_dual(shares) <= best.fun + 1e-6
    # No duality gap: the primal has the same value.
    change = w - before
    primal = 0.5 * change @ change + caps @ np.maximum(0.0, margins - dense @ w)
    assert primal == pytest.approx(-minus_dual(shares), abs=1e-4)


def test_every_sweep_raises_the_dual():
    pairs, dense, margins, caps = batch_of()
    values = []
    for sweeps in range(4):
        w, shares = np.zeros(5), np.zeros(len(margins))
        ascend(pairs, margins, caps, sweeps, w, shares)
        values.append(shares @ margins - 0.5 * (shares @ dense) @ (shares @ dense))
    assert (np.diff(values) > 0.0).all()


def test_the_plain_step_is_the_gradient_of_the_hinge_loss():
    pairs, dense, margins, caps = batch_of()
    w, move = np.full(5, 0.1), np.zeros(5)
    loss = hinge(pairs, margins, caps, 3.0, w, move)
    lacks = margins - dense @ w
    assert loss == pytest.approx(caps @ np.maximum(0.0, lacks))
    np.testing.assert_allclose(move, 3.0 * (caps * (lacks > 0.0)) @ dense, atol=1e-5)


def test_pairs_are_the_cheapest_and_all_that_cost_more():
    pairs, gaps = ranked(np.array([2.0, 1.0, 1.0, 4.0, 3.0, 7.0]), np.array([0, 4, 5, 6]))
    assert pairs.tolist() == [[1, 0], [1, 3]] and gaps.tolist() == [1.0, 3.0]


@pytest.mark.parametrize("sweeps", [0, 10])
def test_tuning_learns_and_depends_on_nothing_but_the_seed(sweeps):
    problem, _ = small_problem(lists=60, features=8)
    events = []
    tuner = replace(FAST, sweeps=sweeps)
    found = tuner.tune(problem, seed=2, on_event=[events.append])
    assert problem.score(found.weights) > problem.score(problem.start)
    np.testing.assert_array_equal(found.weights, tuner.tune(problem, seed=2).weights)
    assert not np.array_equal(found.weights, tuner.tune(problem, seed=3).weights)
    assert events == found.history and [event["epoch"] for event in events] == [1, 2, 3]
    # A line search from the old weights to the new loses nothing.
    scores = [problem.score(problem.start), *(event["train"]["bleu"] for event in events)]
    assert (np.diff(scores) >= 0.0).all()


def test_weights_stay_in_the_ball():
    problem, _ = small_problem(lists=40)
    found = replace(FAST, l2=100.0).tune(replace(problem, start=np.zeros(5)))
    assert np.linalg.norm(found.weights) <= 0.1 + 1e-12


def test_weights_of_zero_are_left_whatever_comes_first_in_lists():
    problem, matrix = small_problem(lists=40)
    for data in (problem.data, oracles_first(problem.data, matrix)):
        found = FAST.tune(replace(problem, data=data, start=np.zeros(5)))
        assert found.weights.any() and found.history[0]["step"] == 1.0
        assert problem.score(found.weights) > problem.score(problem.start)


def test_the_best_pass_on_held_out_lists_counts():
    problem, _ = small_problem(dev=True, lists=40)
    found = replace(FAST, epochs=5).tune(problem)
    scores = [event["dev"]["bleu"] for event in found.history]
    assert problem.score(found.weights, problem.dev) == max(scores)
    assert found.best_epoch == 1 + int(np.argmax(scores))


def test_lists_with_nothing_to_rank():
    alone = ListDataset(rows_of([np.eye(3)[:1]], [[0.5]]))
    with pytest.raises(HopefearError, match="no list has two candidates"):
        Oro().tune(TuningProblem(alone, GivenCost(), np.zeros(3)))
    same = ListDataset(rows_of([np.eye(3), np.eye(3)[:1]], [[0.5] * 3, [0.5]]))
    start = np.array([1.0, 0.0, 2.0])
    found = Oro(epochs=2).tune(TuningProblem(same, GivenCost(), start))
    np.testing.assert_array_equal(found.weights, start)


def test_parameters_without_meaning_are_refused():
    for bad in ({"batch": 0}, {"l2": 0.0}, {"margin": float("nan")}, {"sweeps": -1}):
        with pytest.raises(HopefearError, match=f"Oro: {next(iter(bad))}"):
            Oro(**bad)
    assert Oro(**Oro(l2=0.5).parameters()) == Oro(l2=0.5)

"""Pairwise ranking optimisation: which pairs are drawn, their differences, what is learned."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from list_oracle import rows_of
from tuning_oracle import small_problem

from hopefear.data.lists.dataset import ListDataset
from hopefear.errors import CombinationError, HopefearError
from hopefear.metrics.lists import GivenCost
from hopefear.recipes import RECIPES
from hopefear.recipes.base import Scale
from hopefear.translation.recipes import TUNE_RECIPES
from hopefear.translation.tuners.corpus import corpus_costs, spread_within
from hopefear.translation.tuners.pro import (
    LogLoss,
    PairLogistic,
    Pro,
    differences,
    draw_pairs,
    mirrored,
)
from hopefear.translation.tuners.problem import TuningProblem

pytestmark = pytest.mark.interpreted

FAST = Pro(samples=200, pairs=10, threshold=0.02)


def lists_of(matrices, costs, offsets=None, weights=None):
    return ListDataset(rows_of(matrices, costs, offsets, None, weights))


def test_pairs_are_the_most_different_above_the_threshold():
    problem, _ = small_problem(lists=30)
    data = problem.data
    pairs = draw_pairs(data, samples=300, keep=4, threshold=0.1, seed=1)
    costs, starts = data.rows.costs, data.rows.starts
    gaps = costs[pairs[:, 1]] - costs[pairs[:, 0]]
    owners = np.searchsorted(starts, pairs, side="right") - 1
    assert (gaps > 0.1).all() and (owners[:, 0] == owners[:, 1]).all()
    assert (np.diff(owners[:, 0]) >= 0).all()
    for i in range(len(data)):
        mine = gaps[owners[:, 0] == i]
        own = costs[starts[i] : starts[i + 1]]
        assert len(mine) <= 4 and (np.diff(mine) <= 0).all()
        # At most 8 candidates, so that 300 draws miss none of the 64 ordered pairs (p < 0.01).
        best = np.sort(np.abs(own[:, None] - own).ravel())[::-1]
        if best[0] > 0.1:
            assert mine[0] == pytest.approx(best[0])


def test_draws_are_even_and_fixed_by_seed_turn_and_list():
    data = lists_of([np.eye(5)], [np.arange(5.0)])
    pairs = draw_pairs(data, samples=1_000, keep=1_000, threshold=0.0, seed=3)
    counts = np.bincount(pairs[:, 0] * 5 + pairs[:, 1], minlength=25).reshape(5, 5)
    assert (counts[np.tril_indices(5)] == 0).all()  # the cheaper is the better
    expected = 1_000 * 2 / 25
    assert np.abs(counts[np.triu_indices(5, 1)] - expected).max() < 5 * np.sqrt(expected)
    again = draw_pairs(data, samples=1_000, keep=1_000, threshold=0.0, seed=3)
    np.testing.assert_array_equal(pairs, again)
    for other in ({"seed": 4}, {"seed": 3, "turn": 1}):
        found = draw_pairs(data, samples=1_000, keep=1_000, threshold=0.0, **other)
        assert not np.array_equal(found, pairs)


def test_lists_without_weight_or_rivals_give_no_pairs():
    data = lists_of(
        [np.eye(3)[:2], np.eye(3)[:1], np.eye(3)[:2], np.eye(3)[1:]],
        [[0.0, 1.0], [0.5], [0.0, 1.0], [0.5, 0.5]],
        weights=[1.0, 1.0, 0.0, 1.0],
    )
    assert draw_pairs(data, 50, 1, 0.1, seed=1).tolist() == [[0, 1]]


def test_differences_equal_those_of_dense_features():
    problem, matrix = small_problem(features=7)
    data = problem.data
    pairs = draw_pairs(data, 100, 5, 0.0, seed=1)
    found = differences(data, pairs)
    dense = np.zeros((len(pairs), 7))
    for p in range(len(pairs)):
        span = slice(found.indptr[p], found.indptr[p + 1])
        assert (np.diff(found.indices[span]) > 0).all()
        dense[p, found.indices[span]] = found.values[span]
    np.testing.assert_allclose(dense, matrix[pairs[:, 0]] - matrix[pairs[:, 1]], atol=1e-6)
    assert found.square() == pytest.approx((dense**2).sum(axis=1).mean(), rel=1e-5)
    both = mirrored(found, 7, scale=0.5).rows
    assert both.labels.tolist() == [1] * len(pairs) + [0] * len(pairs)
    half = len(found.values)
    np.testing.assert_array_equal(both.values[:half], -both.values[half:])
    np.testing.assert_array_equal(both.values[:half], np.float32(0.5) * found.values)


def test_log_loss_and_its_gradient():
    data = lists_of(
        [np.array([[1.0, 2.0], [0.0, -1.0]]), np.array([[0.0, 0.5], [3.0, 0.0]])],
        [[0.0, 1.0], [1.0, 0.0]],
        offsets=[[0.5, 0.25], [0.0, 0.0]],
        weights=[2.0, 1.0],
    )
    pairs = differences(data, np.array([[0, 1], [3, 2]]))
    rows, b, weights = np.array([[1.0, 3.0], [3.0, -0.5]]), np.array([0.25, 0.0]), [2.0, 1.0]
    loss, w = LogLoss(pairs, 2, 0.7), np.array([-0.3, 0.4])

    def plain(w):
        return 2 * np.dot(weights, np.log1p(np.exp(-rows @ w - b))) + 0.7 * w @ w

    value, gradient = loss(w)
    assert value == pytest.approx(plain(w))
    for j in range(2):
        e = 1e-6 * np.eye(2)[j]
        slope = (plain(w + e) - plain(w - e)) / 2e-6
        assert gradient[j] == pytest.approx(slope, abs=1e-5)


def test_corpus_costs_are_losses_of_the_corpus_of_oracles():
    problem, _ = small_problem(lists=6)
    rows, counts = problem.data.rows, problem.data.counts
    found = corpus_costs(problem)
    cheapest = np.array(
        [a + np.argmin(found[a:b]) for a, b in zip(rows.starts, rows.starts[1:], strict=False)]
    )
    whole = counts[cheapest].sum(axis=0)
    losses = np.concatenate(
        [
            -problem.worth(whole - counts[best] + counts[a:b])
            for a, b, best in zip(rows.starts, rows.starts[1:], cheapest, strict=False)
        ]
    )
    # No single exchange makes these oracles better, and costs are their losses but for a scale.
    assert losses.min() == pytest.approx(-problem.worth(whole))
    slope, _ = np.polyfit(losses, found, 1)
    np.testing.assert_allclose(found - found.min(), slope * (losses - losses.min()), atol=1e-9)
    assert spread_within(found, rows.starts) == pytest.approx(
        spread_within(rows.costs, rows.starts)
    )
    np.testing.assert_allclose(corpus_costs(problem, 0.25), 0.25 * found + 0.75 * rows.costs)
    assert corpus_costs(problem, 0.0) is rows.costs


def test_tuning_learns_and_depends_on_nothing_but_the_seed():
    problem, _ = small_problem(lists=60)
    events = []
    found = FAST.tune(problem, seed=2, on_event=[events.append])
    assert problem.score(found.weights) > problem.score(problem.start)
    np.testing.assert_array_equal(found.weights, FAST.tune(problem, seed=2).weights)
    assert not np.array_equal(found.weights, FAST.tune(problem, seed=3).weights)
    assert events == found.history and found.best_epoch == 1
    assert events[0]["train"]["bleu"] == problem.score(found.weights)
    assert events[0]["pairs"] > 0 and "dev" not in events[0]


@dataclass(frozen=True)
class Fixed:
    """A classifier that has its weights already."""

    found: tuple

    def weights(self, pairs, n_features):
        return np.array(self.found)


def test_interpolation_is_with_the_weights_before():
    problem, _ = small_problem()
    new = FAST.tune(problem).weights
    assert np.linalg.norm(new) == pytest.approx(np.linalg.norm(problem.start))
    part = replace(FAST, interpolate=0.25).tune(problem).weights
    np.testing.assert_allclose(part, 0.25 * new + 0.75 * problem.start)
    searched = replace(FAST, line_search=True).tune(problem).weights
    assert problem.score(searched) >= problem.score(new)


@pytest.mark.parametrize("more", [{"interpolate": 0.3}, {"line_search": True}])
def test_the_length_of_what_a_classifier_finds_does_not_matter(more):
    problem, _ = small_problem()
    found = np.arange(1.0, 6.0)
    one, other = (
        replace(FAST, classifier=Fixed(tuple(found * size)), **more).tune(problem).weights
        for size in (1e-3, 1e3)
    )
    np.testing.assert_allclose(one, other)
    alone = replace(FAST, classifier=Fixed(tuple(found)), **more)
    nothing = alone.tune(replace(problem, start=np.zeros(5)))
    np.testing.assert_array_equal(nothing.weights, found)
    none = replace(alone, classifier=Fixed((0.0,) * 5)).tune(problem).weights
    np.testing.assert_allclose(np.cross(none[:3], problem.start[:3]), 0.0, atol=1e-12)


def test_beside_fixed_scores_the_length_of_weights_counts():
    fixed = lists_of([np.eye(2)], [[0.0, 1.0]], offsets=[[0.0, 1.0]])
    tuner = replace(FAST, classifier=Fixed((8.0, 4.0)), interpolate=0.25)
    for old in ([2.0, 0.0], [0.0, 0.0]):
        found = tuner.tune(TuningProblem(fixed, GivenCost(), np.array(old))).weights
        np.testing.assert_allclose(found, np.array([2.0, 1.0]) + 0.75 * np.array(old))


def test_rounds_draw_anew_and_the_best_on_held_out_lists_counts():
    problem, _ = small_problem(dev=True, lists=40)
    found = replace(FAST, rounds=4, samples=6, pairs=1, interpolate=0.5).tune(problem)
    scores = [event["dev"]["bleu"] for event in found.history]
    assert found.best_epoch == 1 + int(np.argmax(scores)) and len(set(scores)) > 1
    assert problem.score(found.weights, problem.dev) == max(scores)


@pytest.mark.parametrize("name", ["perceptron", "pa", "arow", "adagrad", "ftrl", "vrda", "sgd"])
def test_any_binary_learner_will_do(name):
    problem, _ = small_problem(lists=60)
    learner = RECIPES[name].build(averaging="averaged") if name == "vrda" else RECIPES[name].build()
    tuner = replace(FAST, classifier=learner)
    found = tuner.tune(problem)
    assert problem.score(found.weights) > problem.score(problem.start)
    assert tuner.parameters()["classifier"]["rule"] and learner.signature()[:20] in (
        tuner.signature()
    )


def test_a_pass_of_a_classifier_goes_over_all_pairs_and_their_images():
    made = TUNE_RECIPES["pro"].build(Scale(n=10), classifier="sgd", pairs=20)
    assert made.classifier.rule.period == 2 * 20 * 10
    few = TUNE_RECIPES["pro"].build(Scale(n=10), classifier="sgd", samples=5)
    assert few.classifier.rule.period == 2 * 5 * 10


def test_l1_leaves_weights_out():
    problem, _ = small_problem(features=30)
    plain = FAST.tune(problem).weights
    sparse = replace(FAST, classifier=PairLogistic(l1=20.0)).tune(problem).weights
    assert 0 < np.count_nonzero(sparse) < np.count_nonzero(plain)


def test_what_cannot_be_tuned_is_refused():
    same = TuningProblem(lists_of([np.eye(3)], [[0.5, 0.5, 0.5]]), GivenCost(), np.zeros(3))
    with pytest.raises(HopefearError, match=r"differ by more than 0\.05; lower the threshold"):
        Pro().tune(same)
    alone = TuningProblem(lists_of([np.eye(3)[:1]], [[0.5]]), GivenCost(), np.zeros(3))
    with pytest.raises(HopefearError, match="no list has two candidates"):
        Pro().tune(alone)
    with pytest.raises(CombinationError, match="votes are many"):
        Pro(classifier=RECIPES["vrda"].build(averaging="voted"))
    fixed = lists_of([np.eye(2)], [[0.0, 1.0]], offsets=[[0.0, 1.0]])
    with pytest.raises(CombinationError, match="use PairLogistic"):
        Pro(classifier=RECIPES["pa"].build()).tune(TuningProblem(fixed, GivenCost(), np.zeros(2)))
    for bad in ({"pairs": 0}, {"threshold": -1.0}, {"interpolate": 1.5}, {"corpus": float("nan")}):
        with pytest.raises(HopefearError, match=f"Pro: {next(iter(bad))}"):
            Pro(**bad)


def test_fixed_scores_are_part_of_what_is_classified():
    # The better candidate has a fixed lead of 5, so its feature need not speak for it.
    lead = lists_of([np.eye(2)] * 2, [[0.0, 1.0]] * 2, offsets=[[5.0, 0.0]] * 2)
    even = lists_of([np.eye(2)] * 2, [[0.0, 1.0]] * 2)
    small, large = (
        FAST.tune(TuningProblem(d, GivenCost(), np.zeros(2))).weights for d in (lead, even)
    )
    assert 0.0 < small[0] < large[0]

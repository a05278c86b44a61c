"""The metric of expected counts: its gradient, and that it finds weights."""

import numpy as np
import pytest

from hopefear.data.lists.dataset import ListDataset, ListRows
from hopefear.errors import HopefearError
from hopefear.metrics.lists import Bleu, Ter
from hopefear.translation.tuners.expected_score import Expected, ExpectedScore, spreads
from hopefear.translation.tuners.problem import TuningProblem

pytestmark = pytest.mark.interpreted


class Numbers:
    """A feature map that knows its size only."""

    def __init__(self, size):
        self.size = size


def lists(metric, n=30, candidates=6, features=4, seed=1, offsets=False):
    rng = np.random.default_rng(seed)
    c = n * candidates
    values = rng.normal(size=(c, features)) * np.array([1.0, 10.0, 0.1, 3.0])[:features]
    if isinstance(metric, Bleu):
        length = rng.integers(8, 14, c)
        totals = np.stack([length - k for k in range(4)], axis=1)
        good = 1.0 / (1.0 + np.exp(-values[:, 0] + 0.1 * values[:, 1]))
        matched = np.floor(totals * good[:, None] * np.array([0.9, 0.7, 0.5, 0.4])).astype(int)
        counts = np.hstack([matched, totals, length[:, None], np.full((c, 1), 11)])
    else:
        counts = np.stack([rng.integers(0, 9, c), np.full(c, 10)], axis=1)
    costs = metric.costs(counts)
    starts = np.arange(n + 1) * candidates
    rows = ListRows(
        starts,
        np.arange(n + 1) * features,
        np.tile(np.arange(features), n),
        np.arange(c + 1) * features,
        np.tile(np.arange(features), c),
        values.ravel(),
        rng.normal(size=c) if offsets else np.zeros(c),
        costs,
        costs.reshape(n, -1).argmin(axis=1),
        np.ones(n),
    )
    return ListDataset(rows, Numbers(features), counts, metric.name)


@pytest.mark.parametrize("metric", [Bleu(tokenize="none"), Ter()], ids=["bleu", "ter"])
@pytest.mark.parametrize("l2", [0.0, 0.3])
def test_the_gradient_is_that_of_the_value(metric, l2):
    data = lists(metric, offsets=True)
    unit = spreads(data.rows, 4)
    start = np.array([0.3, -0.2, 0.1, 0.4])
    f = Expected(TuningProblem(data, metric, start / unit), unit, start, 3.0, 1.0, l2)
    at, h = np.array([0.1, 0.2, -0.3, 0.05]), 1e-5
    numeric = [(f(at + h * e)[0] - f(at - h * e)[0]) / (2 * h) for e in np.eye(4)]
    # What the metric makes of counts is found by a nudge of a thousandth.
    np.testing.assert_allclose(f(at)[1], numeric, rtol=2e-3, atol=1e-6)


def test_the_value_is_the_score_of_expected_counts():
    metric = Bleu(tokenize="none")
    data = lists(metric)
    w = np.array([0.2, -0.01, 1.0, 0.1])
    f = Expected(TuningProblem(data, metric, w), np.ones(4), np.zeros(4), 2.0, 1.0, 0.0)
    scores = 2.0 * np.asarray(data.rows.values).reshape(-1, 4) @ w
    shares = np.exp(scores.reshape(30, 6))
    shares /= shares.sum(axis=1, keepdims=True)
    expected = shares.reshape(1, -1) @ data.counts
    assert f(w)[0] == pytest.approx(-metric.scores(expected)["bleu"][0] / 100.0, rel=1e-6)


def test_features_are_measured_in_their_spread_within_lists():
    data = lists(Bleu(tokenize="none"), n=10)
    values = np.asarray(data.rows.values, np.float64).reshape(10, 6, 4)
    wanted = np.sqrt(values.var(axis=1).mean(axis=0))
    np.testing.assert_allclose(spreads(data.rows, 4), wanted, rtol=1e-6)


def test_weights_get_better_and_do_not_depend_on_the_seed():
    metric = Bleu(tokenize="none")
    problem = TuningProblem(lists(metric, n=80), metric, np.array([0.0, 0.1, 0.0, 0.1]))
    events = []
    found = ExpectedScore().tune(problem, seed=1, on_event=[events.append])
    assert problem.score(found.weights) > problem.score(problem.start) + 5.0
    assert [event["epoch"] for event in events] == [1, 2, 3]
    again = ExpectedScore().tune(problem, seed=2)
    np.testing.assert_array_equal(found.weights, again.weights)


def test_lists_without_matches_of_four_words_are_tuned():
    metric = Bleu(tokenize="none")
    data = lists(metric, n=4)
    counts = np.array(data.counts)
    counts[:, 3] = 0
    tiny = ListDataset(data.rows, data.features, counts, metric.name)
    problem = TuningProblem(tiny, metric, np.array([0.0, 0.1, 0.0, 0.1]))
    found = ExpectedScore().tune(problem)
    assert np.isfinite(found.weights).all()
    assert problem.score(found.weights) > problem.score(problem.start)


def test_no_matches_are_not_worth_more_than_few():
    metric = Bleu(tokenize="none")
    data = lists(metric, n=2)
    f = Expected(TuningProblem(data, metric, np.zeros(4)), np.ones(4), np.zeros(4), 1.0, 1.0, 0.0)
    for few in (1e-6, 1e-3, 0.5):
        slope = f.score(np.array([9.0, 5.0, 2.0, few, 20.0, 18.0, 16.0, 14.0, 20.0, 21.0]))[1]
        assert (slope[:4] > 0.0).all() and (slope[4:8] < 0.0).all()


def test_a_strong_penalty_keeps_the_start():
    metric = Bleu(tokenize="none")
    start = np.array([0.0, 0.1, 0.0, 0.1])
    problem = TuningProblem(lists(metric), metric, start)
    np.testing.assert_allclose(ExpectedScore(l1=100.0).tune(problem).weights, start, atol=1e-12)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(HopefearError, match="levels must be at least 1"):
        ExpectedScore(levels=0)
    with pytest.raises(HopefearError, match="l2 must be finite and not negative"):
        ExpectedScore(l2=-1.0)

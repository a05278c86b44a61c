"""Metrics against scikit-learn's; significance tests on cases whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given, settings
from hypothesis import strategies as st

from hopefear.errors import HopefearError
from hopefear.metrics import (
    Accuracy,
    Classification,
    Probabilities,
    approximate_randomisation,
    classification_scores,
    confidence_interval,
    paired_bootstrap,
)

pytestmark = pytest.mark.interpreted


@st.composite
def decisions(draw):
    k = draw(st.integers(2, 5))
    label = st.integers(0, k - 1)
    pairs = draw(st.lists(st.tuples(label, label), min_size=1, max_size=40))
    reference, output = np.array(pairs).T
    return k, reference, output


@settings(max_examples=60, deadline=None)
@given(decisions())
def test_equal_to_scikit_learn(case):
    k, reference, output = case
    metric = Classification(k)
    stats = metric.total(reference, output)
    scores = metric.scores(stats)
    labels = list(range(k))
    matrix = sk.confusion_matrix(reference, output, labels=labels)
    assert np.array_equal(metric.confusion(stats), matrix)
    assert scores["accuracy"] == pytest.approx(100 * sk.accuracy_score(reference, output))
    assert scores["error"] == pytest.approx(100 - scores["accuracy"])
    assert scores["count"] == len(reference)
    each = metric.per_class(stats)
    theirs = sk.precision_recall_fscore_support(reference, output, labels=labels, zero_division=0.0)
    for name, values in zip(("precision", "recall", "f1"), theirs[:3], strict=True):
        np.testing.assert_allclose(each[name], 100 * values, atol=1e-9)
    assert np.array_equal(each["support"], theirs[3])
    if k == 2:
        found = [scores[n] for n in ("precision", "recall", "f1")]
        np.testing.assert_allclose(found, [100 * v[1] for v in theirs[:3]], atol=1e-9)
        return
    for average in ("micro", "macro"):
        theirs = sk.precision_recall_fscore_support(
            reference, output, average=average, zero_division=0.0
        )
        found = [scores[f"{n}_{average}"] for n in ("precision", "recall", "f1")]
        np.testing.assert_allclose(found, [100 * v for v in theirs[:3]], atol=1e-9)
    assert scores["f1"] == scores["f1_macro"]


@settings(max_examples=30, deadline=None)
@given(decisions(), st.integers(0, 40))
def test_stats_of_parts_add_up_and_values_take_many_sums(case, cut):
    k, reference, output = case
    for metric in (Classification(k), Accuracy()):
        whole = metric.total(reference, output)
        parts = np.stack(
            [
                metric.total(reference[:cut], output[:cut]),
                metric.total(reference[cut:], output[cut:]),
            ]
        )
        assert whole.dtype == np.int64
        assert np.array_equal(parts.sum(axis=0), whole)
        assert np.array_equal(metric.statistics(reference, output).sum(axis=0), whole)
        many = metric.scores(np.stack((parts, parts)))
        for name, value in metric.scores(parts[1]).items():
            assert type(value) in (int, float)
            assert many[name].shape == (2, 2)
            assert many[name][1, 1] == value


def test_the_positive_class_can_be_the_first():
    reference, output = [0, 0, 0, 1, 1], [0, 1, 1, 1, 0]
    scores = classification_scores(reference, output, positive=0)
    assert scores["f1"] == pytest.approx(100 * sk.f1_score(reference, output, pos_label=0))
    assert "positive:0" in scores["signature"]


@pytest.mark.parametrize("k", [2, 4])
def test_probabilities_equal_to_scikit_learn(k):
    rng = np.random.default_rng(3)
    y = np.r_[np.arange(k), rng.integers(0, k, 50)]
    p = rng.dirichlet(np.full(k, 0.3), len(y))
    p[0] = np.eye(k)[1]
    scores = classification_scores(y, p.argmax(axis=1), n_classes=k, probabilities=p)
    assert scores["log_loss"] == pytest.approx(sk.log_loss(y, p, labels=list(range(k))))
    assert scores["brier"] == pytest.approx(sk.brier_score_loss(y, p, labels=list(range(k))))
    assert ("brier:half" in scores["signature"]) == (k == 2)
    if k == 2:
        metric = Probabilities()
        np.testing.assert_allclose(metric.total(y, p[:, 1]), metric.total(y, p))
    assert "metric:probabilities" in scores["signature"]


def test_nothing_to_score_gives_zeros_not_warnings():
    assert classification_scores([], [], probabilities=np.zeros((0, 2)))["accuracy"] == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: classification_scores([0, 1], [0]), "do not pair up"),
        (lambda: classification_scores([0, 2], [0, 1]), "reference 1 has class position 2"),
        (lambda: classification_scores([0, 1], [0, -1]), "output 1 has class position -1"),
        (lambda: classification_scores(["a"], ["b"]), "not class positions"),
        (lambda: Probabilities().statistics([0], [[0.5, 0.6]]), "example 0 are .* sum to 1"),
        (lambda: Probabilities().statistics([0], [np.nan]), "example 0"),
        (lambda: Probabilities(3).statistics([0], [[0.5, 0.5]]), "do not fit 3 classes"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(HopefearError, match=message):
        call()


def correct(*flags):
    """Statistics of a system that is right where a flag is 1."""
    return Accuracy().statistics(np.ones(len(flags), int), np.array(flags))


def test_interval_agrees_with_the_binomial():
    n, share = 2000, 0.8
    rows = correct(*(np.arange(n) < share * n).astype(int))
    found = confidence_interval(Accuracy(), rows, "accuracy", replicates=4000)
    half = 100 * 1.96 * math.sqrt(share * (1 - share) / n)
    assert found.value == 80.0
    assert found.low == pytest.approx(80 - half, abs=0.15)
    assert found.high == pytest.approx(80 + half, abs=0.15)
    narrow = confidence_interval(Accuracy(), rows, "accuracy", level=50.0, replicates=4000)
    assert narrow.high - narrow.low < 0.5 * (found.high - found.low)


def test_interval_of_a_corpus_score_agrees_with_resampling_one_by_one():
    rng = np.random.default_rng(0)
    reference = rng.integers(0, 2, 300)
    output = np.where(rng.random(300) < 0.8, reference, 1 - reference)
    found = confidence_interval(
        Classification(), Classification().statistics(reference, output), "f1", replicates=4000
    )
    picks = rng.integers(0, 300, (1000, 300))
    plain = [100 * sk.f1_score(reference[i], output[i]) for i in picks]
    assert found.value == pytest.approx(100 * sk.f1_score(reference, output))
    np.testing.assert_allclose((found.low, found.high), np.percentile(plain, (2.5, 97.5)), atol=0.8)


def test_randomisation_agrees_with_the_sign_test():
    # The systems differ on 12 examples, of which the first wins 10; swaps are fair coins.
    a = correct(*[1] * 10, *[0] * 2, *[1] * 50)
    b = correct(*[0] * 10, *[1] * 2, *[1] * 50)
    exact = 2 * sum(math.comb(12, i) for i in range(3)) / 2**12
    found = approximate_randomisation(Accuracy(), a, b, "accuracy", replicates=40_000)
    assert found.p_value == pytest.approx(exact, abs=0.004)
    assert found.difference == pytest.approx(100 * 8 / 62)
    assert math.isnan(found.low)


def test_paired_bootstrap_uses_the_pairing():
    # Right and wrong fall on the same examples but for ten: a small yet consistent gain.
    hard = [1, 0] * 500
    better = hard.copy()
    better[1:21:2] = [1] * 10
    found = paired_bootstrap(Accuracy(), correct(*better), correct(*hard), "accuracy")
    assert found.difference == pytest.approx(1.0)
    assert found.p_value < 0.01
    assert 0.2 < found.low < 1.0 < found.high < 2.0
    # The same scores by unrelated examples: the difference drowns.
    turned = correct(*better[::-1])
    assert paired_bootstrap(Accuracy(), turned, correct(*hard), "accuracy").p_value > 0.2


@pytest.mark.parametrize("test", [paired_bootstrap, approximate_randomisation])
def test_equal_systems_and_exchanged_systems(test):
    rng = np.random.default_rng(1)
    gold = rng.integers(0, 3, 200)
    a = Classification(3).statistics(gold, np.where(rng.random(200) < 0.9, gold, 0))
    b = Classification(3).statistics(gold, np.where(rng.random(200) < 0.7, gold, 1))
    assert test(Classification(3), a, a, "f1", replicates=99).p_value == 1.0
    one = test(Classification(3), a, b, "f1", replicates=500, seed=2)
    # Compared as text: nan bounds are not equal to themselves.
    assert repr(one) == repr(test(Classification(3), a, b, "f1", replicates=500, seed=2))
    two = test(Classification(3), b, a, "f1", replicates=500, seed=2)
    assert one.difference == -two.difference
    assert one.p_value == pytest.approx(two.p_value, abs=0.02)
    assert one.p_value < 0.01
    assert "score:f1|test:" in one.signature
    assert "seed=2" in one.signature


def test_randomisation_rejects_no_more_often_than_it_says():
    # Two systems of one quality: p below 0.1 in about a tenth of the trials.
    rng = np.random.default_rng(5)
    low = 0
    for trial in range(200):
        a, b = (correct(*(rng.random(150) < 0.7).astype(int)) for _ in range(2))
        found = approximate_randomisation(Accuracy(), a, b, "accuracy", replicates=200, seed=trial)
        low += found.p_value < 0.1
    assert low <= 36


def test_significance_errors_name_the_remedy():
    a = correct(1, 0, 1)
    with pytest.raises(HopefearError, match="has no score 'f2'; it has accuracy, count, error"):
        confidence_interval(Accuracy(), a, "f2")
    with pytest.raises(HopefearError, match="on the same examples"):
        paired_bootstrap(Accuracy(), a, a[:2], "accuracy")
    with pytest.raises(HopefearError, match="at least one example"):
        confidence_interval(Accuracy(), a[:0], "accuracy")
    with pytest.raises(HopefearError, match="at least 1 replicate"):
        approximate_randomisation(Accuracy(), a, a, "accuracy", replicates=0)

"""Synthetic data: its laws against its truth, and the same bytes for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from hopefear.data.generators import hmm, sparse_linear
from hopefear.errors import HopefearError

pytestmark = pytest.mark.interpreted


def matrix(problem):
    shape = (problem.n_examples, problem.n_features)
    return csr_matrix((problem.values, problem.indices, problem.indptr), shape)


def same(a, b):
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(0, 30),
    d=st.integers(1, 60),
    share=st.floats(0, 1),
    classes=st.integers(2, 4),
    norm=st.booleans(),
    seed=st.integers(0, 5),
)
def test_rows_are_distinct_sorted_in_range_and_read_only(n, d, share, classes, norm, seed):
    high = max(1, int(share * d))
    p = sparse_linear(
        n, d, per_row=(1, high), true_weights=7, classes=classes, norm=norm, seed=seed
    )
    dtypes = [a.dtype.name for a in p[:6]]
    assert dtypes == ["int64", "int32", "float32", "int32", "float32", "float64"]
    assert not any(a.flags.writeable for a in p[:6])
    for a, b in zip(p.indptr[:-1], p.indptr[1:], strict=True):
        row = p.indices[a:b]
        assert 1 <= len(row) <= high
        assert (np.diff(row) > 0).all()
        assert row[0] >= 0
        assert row[-1] < d
        length = np.linalg.norm(p.values[a:b].astype(float))
        assert length == pytest.approx(1.0 if norm else np.sqrt(len(row)), rel=1e-6)
    assert ((p.labels >= 0) & (p.labels < classes)).all()
    assert np.count_nonzero(p.truth) == min(7, d)


def test_same_seed_same_bytes_and_other_seed_other_problem():
    a, b, c = (sparse_linear(200, 3000, true_weights=100, seed=s) for s in (1, 1, 2))
    assert same(a[:6], b[:6])
    assert not np.array_equal(a.truth, c.truth)
    assert not np.array_equal(a.indices[:50], c.indices[:50])


@pytest.mark.compiled
def test_the_first_rows_of_a_larger_problem_are_the_same_rows():
    few = sparse_linear(500, 40_000, margin=0.01)
    # Enough rows for several blocks of random numbers.
    many = sparse_linear(30_000, 40_000, margin=0.01)
    head, tail = many.split(500)
    assert same(few[:6], head[:6])
    assert tail.n_examples == 29_500
    assert tail.indptr[0] == 0
    assert tail.indptr[-1] == len(tail.indices)
    assert np.array_equal(matrix(tail)[7].toarray(), matrix(many)[507].toarray())


@pytest.mark.compiled
def test_features_are_as_frequent_as_stated():
    d, n = 1000, 60_000
    p = sparse_linear(n, d, per_row=(1, 1), true_weights=10)
    edges = np.arange(d + 1) ** (1 / 3) / d ** (1 / 3)
    expected = n * np.diff(edges)
    found = np.bincount(p.indices, minlength=d)
    # Pearson's statistic has mean d - 1 and variance 2 (d - 1).
    assert abs(((found - expected) ** 2 / expected).sum() - (d - 1)) < 5 * np.sqrt(2 * (d - 1))


def test_half_of_the_true_weights_are_on_the_most_frequent_features():
    truth = sparse_linear(1, 100_000, true_weights=2000).truth
    assert np.count_nonzero(truth) == 2000
    assert np.count_nonzero(truth[:2000]) == 1000


@pytest.mark.compiled
@pytest.mark.parametrize("classes", [2, 5])
def test_noise_is_as_large_as_asked_and_classes_are_balanced(classes):
    p = sparse_linear(20_000, 20_000, true_weights=4000, label_noise=0.1, classes=classes)
    scores = matrix(p).astype(float) @ p.truth
    best = (scores > 0).astype(int) if classes == 2 else scores.argmax(axis=1)
    decided = scores != 0 if classes == 2 else np.ptp(scores, axis=1) > 0
    assert (best != p.labels)[decided].mean() == pytest.approx(0.1, abs=0.01)
    assert np.bincount(p.labels).min() > 0.3 * len(p.labels) / classes


@pytest.mark.compiled
def test_margin_makes_the_truth_a_separator():
    margin = 0.05
    p = sparse_linear(5000, 20_000, label_noise=0.0, margin=margin, seed=3)
    y = 2.0 * p.labels - 1.0
    reached = y * (matrix(p).astype(float) @ (p.truth / margin))
    assert reached.min() >= 1.0
    assert reached.min() < 1.1


@pytest.mark.compiled
def test_margin_separates_every_pair_of_classes():
    margin = 0.02
    p = sparse_linear(3000, 5000, true_weights=1000, label_noise=0, margin=margin, classes=4)
    scores = matrix(p).astype(float) @ (p.truth / margin)
    own = scores[np.arange(len(scores)), p.labels]
    scores[np.arange(len(scores)), p.labels] = -np.inf
    assert (own - scores.max(axis=1)).min() >= 1.0


@pytest.mark.compiled
def test_a_margin_out_of_reach_is_an_error_that_names_it():
    with pytest.raises(HopefearError, match=r"margin=1000 is more than.*lower the margin"):
        sparse_linear(10, 100, per_row=(2, 5), true_weights=5, margin=1000.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"n_examples": -1}, "n_examples >= 0, got -1"),
        ({"n_features": 0}, "n_features"),
        ({"per_row": (5, 101)}, r"per_row\[1\] <= n_features \(100\)"),
        ({"per_row": (0, 3)}, "per_row"),
        ({"true_weights": 0}, "true_weights >= 1"),
        ({"label_noise": 1.5}, "label_noise <= 1, got 1.5"),
        ({"label_noise": float("nan")}, "label_noise"),
        ({"margin": float("inf")}, "finite margin"),
        ({"classes": 1}, "classes >= 2"),
    ],
)
def test_wrong_sizes_are_refused(change, message):
    arguments = {"n_examples": 3, "n_features": 100, "per_row": (2, 5)} | change
    with pytest.raises(HopefearError, match=message):
        sparse_linear(**arguments)


def test_split_out_of_range_is_refused():
    with pytest.raises(HopefearError, match=r"split\(9\) of 3 examples"):
        sparse_linear(3, 100, per_row=(2, 5)).split(9)


@pytest.mark.parametrize("classes", [2, 3])
def test_dataset_holds_the_same_arrays(classes):
    p = sparse_linear(20, 100, per_row=(2, 5), true_weights=30, classes=classes)
    data = p.dataset()
    assert data.n_features == 100
    assert tuple(data.classes) == (("-1", "1") if classes == 2 else ("0", "1", "2"))
    assert same(data.rows, p[:5])


PAPER = {
    1: ((0.7, 0.2, 0.1), (0.75, 0.1, 0.05, 0.05, 0.05)),
    2: ((0.5, 0.3, 0.2), (0.6, 0.15, 0.1, 0.1, 0.05)),
    3: ((0.7, 0.2, 0.1, 0, 0, 0, 0), (0.4, 0.2, 0.1, 0.1, 0.1, *[0] * 15)),
}


@pytest.mark.parametrize("setting", [1, 2, 3])
def test_hmm_rows_are_permutations_of_the_papers_numbers(setting):
    s = hmm(setting, n_items=10, seed=4)
    moves, symbols = map(np.array, PAPER[setting])
    assert s.transition.shape == (len(moves), len(moves))
    assert s.emission.shape == (len(moves), len(symbols))
    for row in s.transition:
        np.testing.assert_allclose(np.sort(row), np.sort(moves))
    for row in s.emission:
        np.testing.assert_allclose(np.sort(row), np.sort(symbols / symbols.sum()))
    assert np.allclose(s.prior, 1 / len(moves))
    others = [hmm(setting, n_items=1, seed=k).emission.tobytes() for k in range(6)]
    assert len(set(others)) > 1


@pytest.mark.parametrize("setting", [1, 2, 3])
def test_hmm_frequencies_follow_the_truth(setting):
    s = hmm(setting, seed=5)
    n_states, n_symbols = s.emission.shape
    first = np.bincount(s.hidden[:, 0], minlength=n_states) / len(s.hidden)
    np.testing.assert_allclose(first, s.prior, atol=0.02)
    moved = np.zeros((n_states, n_states))
    np.add.at(moved, (s.hidden[:, :-1], s.hidden[:, 1:]), 1)
    shown = np.zeros((n_states, n_symbols))
    np.add.at(shown, (s.hidden, s.observed), 1)
    for counts, truth in ((moved, s.transition), (shown, s.emission)):
        assert (counts[truth == 0] == 0).all()
        n = counts.sum(axis=1, keepdims=True)
        spread = 5 * np.sqrt(truth * (1 - truth) * n) + 1e-9
        assert (np.abs(counts - truth * n) <= spread).all()


def test_hmm_is_deterministic_read_only_and_splits_as_in_the_paper():
    a, b = hmm(3, seed=7), hmm(3, seed=7)
    assert same(a, b)
    assert not any(x.flags.writeable for x in a)
    assert a.hidden.dtype == a.observed.dtype == np.int32
    parts = a.split()
    assert [len(p.hidden) for p in parts] == [7000, 2000, 1000]
    assert np.array_equal(np.concatenate([p.observed for p in parts]), a.observed)
    assert not np.array_equal(a.hidden, hmm(3, seed=8).hidden)


def test_hmm_refuses_what_it_does_not_have():
    with pytest.raises(HopefearError, match="no setting 4; the paper has 1, 2 and 3"):
        hmm(4)
    with pytest.raises(HopefearError, match="length >= 1"):
        hmm(1, length=0)
    with pytest.raises(HopefearError, match="not all 0"):
        hmm(1, n_items=5).split((0, 0))

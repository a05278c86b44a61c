"""Sums over trees, projective or not, against enumeration and numerical derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import KINDS, draw_scores, expected

from hopefear.structures.tree import inside_outside, matrix_tree
from hopefear.structures.tree.inside_outside import (
    new_projective_space,
    projective_covariances,
    projective_marginals,
)
from hopefear.structures.tree.matrix_tree import (
    new_matrix_space,
    nonprojective_covariances,
    nonprojective_marginals,
)

pytestmark = pytest.mark.interpreted

LONGEST = 24
SUMS = {
    True: (projective_marginals, projective_covariances, new_projective_space(LONGEST)),
    False: (nonprojective_marginals, nonprojective_covariances, new_matrix_space(LONGEST)),
}
FLAT = list(SUMS)
CASES = {
    "seed": st.integers(0, 2**32 - 1),
    "kind": st.sampled_from(KINDS),
    "flat": st.sampled_from(FLAT),
    "single": st.booleans(),
}
PATHS = [pytest.param(None, id="quick"), pytest.param(np.inf, id="careful")]


@pytest.fixture(params=PATHS, autouse=True, scope="module")
def path(request):
    """Every test runs with the sums it would choose, then with those for scores of any size."""
    with pytest.MonkeyPatch.context() as patch:
        if request.param:
            for module in (inside_outside, matrix_tree):
                patch.setattr(module, "_SMALLEST", request.param)
        yield


def sums(n, scores, flat, single):
    marginals, _, space = SUMS[flat]
    out = np.full((n + 1) ** 2, np.nan)
    return marginals(n, scores, single, space, out), out


def sums_and_slopes(n, scores, prices, flat, single):
    _, covariances, space = SUMS[flat]
    out, slopes = np.full((2, (n + 1) ** 2), np.nan)
    return covariances(n, scores, prices, single, space, out, slopes), out, slopes


@settings(max_examples=300, deadline=None)
@given(**CASES, n=st.integers(1, 5))
def test_equal_to_enumeration(seed, kind, flat, single, n):
    rng = np.random.default_rng(seed)
    scores = draw_scores(rng, n, kind)
    prices = rng.normal(size=scores.size)
    log_z, marginals, slopes = expected(n, scores, prices, flat, single)
    tolerance = {"rel": 1e-11, "abs": 1e-9 if kind == "large" else 1e-11}
    for answer in (sums(n, scores, flat, single), sums_and_slopes(n, scores, prices, flat, single)):
        assert answer[0] == pytest.approx(log_z, **tolerance)
        assert answer[1] == pytest.approx(marginals, **tolerance)
    assert answer[2] == pytest.approx(slopes, **tolerance)


@pytest.mark.parametrize("flat", FLAT)
@pytest.mark.parametrize("single", [False, True])
def test_six_words(flat, single):
    rng = np.random.default_rng(6)
    for kind in KINDS:
        scores, prices = draw_scores(rng, 6, kind), rng.normal(size=49)
        answer = sums_and_slopes(6, scores, prices, flat, single)
        for value, wanted in zip(answer, expected(6, scores, prices, flat, single), strict=True):
            assert value == pytest.approx(wanted, rel=1e-11, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(**CASES, n=st.integers(6, LONGEST))
def test_every_word_has_one_head(seed, kind, flat, single, n):
    rng = np.random.default_rng(seed)
    scores, prices = draw_scores(rng, n, kind), rng.normal(size=(n + 1) ** 2)
    log_z, marginals, slopes = sums_and_slopes(n, scores, prices, flat, single)
    totals = marginals.reshape(n + 1, n + 1).sum(axis=1)
    assert totals[1:] == pytest.approx(float(log_z > -np.inf), rel=1e-9)
    assert totals[0] == slopes.reshape(n + 1, n + 1)[0].sum() == 0.0
    assert np.all(marginals >= -1e-12)
    assert slopes.reshape(n + 1, n + 1).sum(axis=1) == pytest.approx(0.0, abs=1e-8)
    if single and log_z > -np.inf:
        assert marginals[:: n + 1].sum() == pytest.approx(1.0, rel=1e-9)


@settings(max_examples=10, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    flat=st.sampled_from(FLAT),
    single=st.booleans(),
    n=st.integers(6, 12),
)
def test_numerical_derivatives(seed, flat, single, n):
    rng = np.random.default_rng(seed)
    scores, prices = draw_scores(rng, n, "normal"), rng.normal(size=(n + 1) ** 2)
    _, marginals, slopes = sums_and_slopes(n, scores, prices, flat, single)
    step = 1e-5
    up = sums(n, scores + step * prices, flat, single)
    down = sums(n, scores - step * prices, flat, single)
    arcs = marginals > 0
    assert (up[0] - down[0]) / (2 * step) == pytest.approx(marginals[arcs] @ prices[arcs], abs=1e-7)
    assert (up[1] - down[1]) / (2 * step) == pytest.approx(slopes, abs=1e-7)


@pytest.mark.parametrize("flat", FLAT)
@pytest.mark.parametrize("single", [False, True])
def test_constants_of_a_word_change_nothing(flat, single):
    rng = np.random.default_rng(3)
    n = 8
    scores, prices = draw_scores(rng, n, "normal"), rng.normal(size=81)
    shift = np.repeat(rng.normal(size=n + 1) * 1e4, n + 1)
    plain = sums_and_slopes(n, scores, prices, flat, single)
    shifted = sums_and_slopes(n, scores + shift, prices + shift, flat, single)
    assert shifted[0] == pytest.approx(plain[0] + shift[n + 1 :: n + 1].sum(), rel=1e-11)
    assert shifted[1] == pytest.approx(plain[1], abs=1e-9)
    assert shifted[2] == pytest.approx(plain[2], abs=1e-7)


@pytest.mark.parametrize("flat", FLAT)
@pytest.mark.parametrize("single", [False, True])
def test_scores_far_apart(flat, single):
    n = 20
    scores = np.random.default_rng(5).normal(size=(n + 1) ** 2) * 1e4
    log_z, marginals = sums(n, scores, flat, single)
    assert np.isfinite(log_z)
    assert marginals.max() == pytest.approx(1.0, abs=1e-6)
    some = marginals > 0.0  # the entropy of the trees is next to nothing
    assert abs(log_z - marginals[some] @ scores[some]) < 1e-2


@pytest.mark.parametrize("flat", FLAT)
def test_no_tree(flat):
    scores = np.zeros((4, 4))
    scores[1, 1:] = scores[3, 1:] = -np.inf
    assert sums(3, scores.ravel(), flat, False)[0] > -np.inf
    log_z, marginals, slopes = sums_and_slopes(3, scores.ravel(), np.ones(16), flat, True)
    assert log_z == -np.inf and not marginals.any() and not slopes.any()
    scores[2] = -np.inf
    assert sums(3, scores.ravel(), flat, False)[0] == -np.inf


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    scale=st.sampled_from([0.0, 1.0, 10.0, 30.0]),
    flat=st.sampled_from(FLAT),
    single=st.booleans(),
    n=st.integers(6, 16),
)
def test_logarithms_change_nothing(seed, scale, flat, single, n):
    rng = np.random.default_rng(seed)
    scores, prices = scale * draw_scores(rng, n, "normal"), rng.normal(size=(n + 1) ** 2)
    answer = sums_and_slopes(n, scores, prices, flat, single)
    with pytest.MonkeyPatch.context() as patch:
        for module in (inside_outside, matrix_tree):
            patch.setattr(module, "_SMALLEST", np.inf)
        wanted = sums_and_slopes(n, scores, prices, flat, single)
    for value, other in zip(answer, wanted, strict=True):
        assert value == pytest.approx(other, rel=1e-11, abs=1e-10)

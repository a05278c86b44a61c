"""L-BFGS and OWL-QN against closed forms, scipy and proximal gradients."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize

from hopefear.errors import HopefearError
from hopefear.training import lbfgs
from hopefear.training.lbfgs import Minimiser, has_settled, minimise

pytestmark = pytest.mark.interpreted

RNG = np.random.default_rng(7)
X = RNG.normal(size=(200, 30))
Y = np.sign(X @ RNG.normal(size=30) + 3.0 * RNG.normal(size=200))


def logistic(w, l2=0.1):
    z = Y * (X @ w)
    value = np.logaddexp(0.0, -z).sum() + l2 * w @ w
    return float(value), -X.T @ (Y / (1.0 + np.exp(z))) + 2.0 * l2 * w


def flat(w):
    return logistic(w, 0.0)


def quadratic(scales):
    return lambda w: (float(0.5 * scales @ (w - 1.0) ** 2), scales * (w - 1.0))


@pytest.mark.parametrize("memory", [1, 3, 8])
def test_quadratics_are_solved_however_badly_scaled(memory):
    found = minimise(
        quadratic(np.logspace(0, 4, 20)), np.zeros(20), memory=memory, max_iter=3000, tolerance=1e-9
    )
    assert found.converged
    np.testing.assert_allclose(found.w, 1.0, atol=1e-6)


def test_logistic_regression_ends_where_scipy_does():
    found = minimise(logistic, np.zeros(30), tolerance=1e-9)
    peer = scipy.optimize.minimize(
        logistic, np.zeros(30), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9}
    )
    assert found.value == pytest.approx(peer.fun, rel=1e-12)
    np.testing.assert_allclose(found.w, peer.x, atol=1e-5)
    assert found.evaluations <= 1.5 * peer.nfev  # as good a method, not only the same answer


@pytest.mark.parametrize("l1", [1.0, 10.0, 40.0])
def test_owl_qn_ends_where_proximal_gradients_do(l1):
    found = minimise(flat, np.zeros(30), l1=l1, tolerance=1e-11)
    w, rate = np.zeros(30), 4.0 / np.linalg.norm(X, 2) ** 2
    for _ in range(5000):
        w -= rate * flat(w)[1]
        w = np.sign(w) * np.maximum(np.abs(w) - rate * l1, 0.0)
    np.testing.assert_allclose(found.w, w, atol=1e-7)
    assert np.count_nonzero(w == 0.0) > 0
    np.testing.assert_array_equal(found.w == 0.0, w == 0.0)


def test_l1_above_the_largest_slope_leaves_nothing():
    largest = np.abs(flat(np.zeros(30))[1]).max()
    assert not minimise(flat, np.zeros(30), l1=1.001 * largest).w.any()
    assert minimise(flat, np.zeros(30), l1=0.999 * largest).w.any()


def test_owl_qn_takes_weights_back_to_zero():
    start = RNG.normal(size=30)
    cold = minimise(flat, np.zeros(30), l1=10.0, tolerance=1e-11)
    warm = minimise(flat, start, l1=10.0, tolerance=1e-11)
    np.testing.assert_allclose(warm.w, cold.w, atol=1e-7)
    np.testing.assert_array_equal(warm.w == 0.0, cold.w == 0.0)


@pytest.mark.parametrize("l1", [0.0, 3.0])
@pytest.mark.parametrize("done", [0, 2, 9])
def test_a_resumed_search_takes_the_same_steps(l1, done):
    whole = Minimiser(logistic, np.zeros(30), l1=l1, memory=4)
    for _ in range(15):
        whole.step()
    before = Minimiser(logistic, np.zeros(30), l1=l1, memory=4)
    for _ in range(done):
        before.step()
    saved = {name: array.copy() for name, array in before.arrays().items()}
    after = Minimiser(logistic, RNG.normal(size=30), l1=l1, memory=4)
    after.restore(saved)
    for _ in range(15 - done):
        after.step()
    assert after.w.tobytes() == whole.w.tobytes()
    assert (after.value, after.evaluations) == (whole.value, whole.evaluations)


@pytest.mark.parametrize("l1", [0.0, 3.0])
def test_the_value_never_rises(l1):
    search = Minimiser(logistic, 5.0 * RNG.normal(size=30), l1=l1)
    values = [search.value]
    while len(values) < 30 and search.step():
        values.append(search.value)
    assert np.all(np.diff(values) <= 0.0)


def test_the_direction_is_that_of_the_two_loops():
    search = Minimiser(logistic, np.zeros(30), memory=3)
    pairs = []
    for _ in range(7):
        w, g = search.w, search.gradient
        search.step()
        pairs.append((search.w - w, search.gradient - g))
    q, alphas = search.gradient.copy(), []
    for s, y in reversed(pairs[-3:]):
        alphas.append(s @ q / (s @ y))
        q -= alphas[-1] * y
    s, y = pairs[-1]
    q *= s @ y / (y @ y)
    for (s, y), alpha in zip(pairs[-3:], reversed(alphas), strict=True):
        q += s * (alpha - y @ q / (s @ y))
    np.testing.assert_allclose(search._direction(search.gradient), -q, rtol=1e-9, atol=1e-12)


def test_a_large_problem_keeps_its_history_in_float32(monkeypatch):
    monkeypatch.setattr(lbfgs, "_LARGE", 10)
    search = Minimiser(logistic, np.zeros(30))
    assert search.history.dtype == np.float32
    found = minimise(logistic, np.zeros(30), tolerance=1e-9)
    assert found.value == pytest.approx(
        scipy.optimize.minimize(logistic, np.zeros(30), jac=True).fun, rel=1e-9
    )


def test_where_the_function_is_infinite_the_step_is_shortened():
    def barrier(w):
        if w[0] <= 0.0:
            return np.inf, np.full(1, np.nan)
        return float(w[0] - np.log(w[0])), 1.0 - 1.0 / w

    assert minimise(barrier, [1e-3], tolerance=1e-10).w[0] == pytest.approx(1.0, abs=1e-4)


def test_a_start_that_is_not_finite_is_refused():
    with pytest.raises(HopefearError, match="the function is nan where minimisation starts"):
        Minimiser(lambda w: (np.nan, w), np.zeros(2))


@pytest.mark.parametrize(("key", "value"), [("memory", 0), ("l1", -1.0), ("l1", np.inf)])
def test_senseless_settings_are_refused(key, value):
    with pytest.raises(HopefearError, match=key):
        Minimiser(logistic, np.zeros(30), **{key: value})


def test_settling_looks_a_period_back():
    assert not has_settled([9.0, 8.0], period=2, tolerance=1.0)
    assert not has_settled([9.0, 8.0, 7.9], period=2, tolerance=0.1)
    assert has_settled([9.0, 8.9, 8.8], period=2, tolerance=0.1)

"""Mistake bounds: terms against stored copies of w, and the theorems against runs they cover."""

from __future__ import annotations

import json
import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopefear.averaging.last import Last
from hopefear.core.learner import Learner
from hopefear.data.cache import open_cache
from hopefear.data.cached_examples import cache_examples
from hopefear.data.generators import sparse_linear
from hopefear.data.sparse import SparseDataset
from hopefear.errors import CombinationError, HopefearError
from hopefear.losses.exponential import Exponential
from hopefear.losses.hinge import Hinge
from hopefear.losses.logistic import Logistic
from hopefear.losses.perceptron import Perceptron
from hopefear.rules.rda import RDA
from hopefear.rules.sgd import SGD
from hopefear.structures.classes import Binary, Multiclass
from hopefear.tasks.base import train as learn
from hopefear.tasks.classify.task import Classification
from hopefear.training import online
from hopefear_papers.theorems import bounds
from hopefear_papers.theorems.formulas import (
    corollary_1,
    inequality,
    lemma_1,
    mistake_bound,
    regime,
    regret_bound,
)
from hopefear_papers.theorems.observed import Observed
from hopefear_papers.theorems.voted_rda import (
    Observation,
    best_scaled,
    bound_report,
    comparator_loss,
    mistaken,
    observe,
    radius,
    relative_strength,
)

pytestmark = pytest.mark.interpreted

MARGIN = 0.3
N_FEATURES = 60
KEYS = {
    "mistakes",
    "samples",
    "theorem1",
    "corollary1",
    "delta",
    "delta_bar",
    "lam",
    "R",
    "G",
    "comparator_norm",
    "comparator_loss",
    "regime",
    "separable",
    "holds",
    "eta_used",
    "eta_optimal",
}
positive = st.floats(1e-3, 1e3)


def problem(noise=0.0, n=800, classes=2, seed=3):
    return sparse_linear(
        n,
        N_FEATURES,
        per_row=(4, 12),
        true_weights=30,
        label_noise=noise,
        margin=MARGIN,
        classes=classes,
        seed=seed,
    )


def train(rows, loss, rule, structure=None, passes=1, dtype=np.float64):
    """The trainer and the rows it mistook."""
    structure = Binary(N_FEATURES) if structure is None else structure
    trainer = online.OnlineTrainer(
        structure, Learner(loss, rule, Observed(Last()), update_on="mistakes"), dtype
    )
    order = np.tile(np.arange(rows.labels.size), passes)
    outcome = np.empty(order.size, np.uint8)
    trainer.learn(rows, order, outcome)
    return trainer, mistaken(order, outcome)


class Plain(NamedTuple):
    """A run with every w_k stored."""

    w: np.ndarray  # w_1 .. w_M, the predictors that made the mistakes
    g: np.ndarray  # g_1 .. g_M
    z: np.ndarray  # margins y w_k.x
    mistakes: list[int]


def plain_vrda(x, y, slope, eta, l1=0.0, l2=0.0):
    """Algorithm 1 with eqs. 1, 2 and 4 as written, dense."""
    w, s, k = np.zeros(x.shape[1]), np.zeros(x.shape[1]), 0
    run: list[tuple] = []
    for i in range(len(y)):
        z = y[i] * (w @ x[i])
        if z > 0:
            continue
        g = -slope(z) * y[i] * x[i]
        run.append((w, g, z, i))
        s, k = s + g, k + 1
        mean = s / k
        w = -np.sign(mean) * np.maximum(np.abs(mean) - l1, 0) / (l2 + eta / math.sqrt(k))
    ws, gs, zs, mistakes = zip(*run, strict=True)
    return Plain(np.array(ws), np.array(gs), np.array(zs), list(mistakes))


def dense(data):
    x = np.zeros((data.n_examples, data.n_features))
    for i in range(data.n_examples):
        a, b = data.indptr[i], data.indptr[i + 1]
        x[i, data.indices[a:b]] = data.values[a:b]
    return x, 2.0 * data.labels - 1.0


@pytest.mark.parametrize("loss", [Hinge(), Logistic(base=2)], ids=["hinge", "log2"])
@pytest.mark.parametrize("window", [1 << 16, 5])
def test_what_is_observed_equals_sums_over_stored_predictors(loss, window, monkeypatch):
    monkeypatch.setattr(online, "_WINDOW", window)  # 5: books are settled in the middle, too
    data = problem(noise=0.1)
    rule = RDA(rate=3.0, l1=0.01)
    trainer, mistakes = train(data.dataset().rows, loss, rule)
    run = plain_vrda(*dense(data), loss.negative_derivative, eta=1 / rule.rate, l1=rule.l1)
    seen = observe(trainer)
    assert mistakes.tolist() == run.mistakes
    assert seen.mistakes == len(run.w) > 40
    np.testing.assert_allclose(seen.average, run.w.mean(axis=0), rtol=1e-5, atol=1e-7)
    assert seen.mean_l1 == pytest.approx(np.abs(run.w).sum(axis=1).mean(), rel=1e-5)
    assert math.isclose(seen.G, np.linalg.norm(run.g, axis=1).max(), rel_tol=1e-5)


def test_the_predictor_after_the_last_mistake_is_not_counted():
    rows = SparseDataset.from_csr([[2.0, 0.0], [0.0, 1.0]], ["a", "b"]).rows
    trainer, mistakes = train(rows, Hinge(), RDA(rate=1.0), Binary(2))
    # w_1 = 0 and w_2 = (-2, 0) err; w_3 has met no example yet
    assert mistakes.tolist() == [0, 1]
    assert observe(trainer).average.tolist() == [-1.0, 0.0]
    assert observe(trainer).mean_l1 == 1.0
    assert observe(trainer).G == 2.0


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("l1", [0.0, 1e-4, 1e-3, 5e-3])
def test_separable_data(l1, dtype):
    data = problem()
    rows, u = data.dataset().rows, data.truth / MARGIN
    eta = math.sqrt(2) * radius(Binary(N_FEATURES), rows) / np.linalg.norm(u)
    trainer, mistakes = train(rows, Hinge(), RDA(rate=1 / eta, l1=l1), dtype=dtype)
    report = bound_report(trainer, rows, mistakes, u)
    assert report.separable
    assert report.holds
    assert report.comparator_loss == 0.0
    assert math.isclose(report.R, 1.0, rel_tol=1e-6)
    assert math.isclose(report.G, 1.0, rel_tol=1e-6)
    assert report.eta_used == pytest.approx(report.eta_optimal, rel=1e-6)
    assert 0 < report.mistakes <= report.theorem1 < math.inf
    printed = 2 * (1 / (1 - l1 * report.delta)) ** 2 * (report.R * np.linalg.norm(u)) ** 2
    assert report.theorem1 == pytest.approx(printed, rel=1e-5)
    assert report.regime == ("over" if l1 else "perfect")
    assert report.delta <= report.delta_bar
    assert report.corollary1 == pytest.approx(2 * report.theorem1 / 801)


def test_a_bound_is_about_as_tight_as_the_perceptrons():
    data = problem()
    rows, u = data.dataset().rows, data.truth / MARGIN
    trainer, mistakes = train(rows, Hinge(), RDA(rate=1.0))
    best = best_scaled(trainer, rows, mistakes, u)[1]
    assert best.theorem1 < 2 * np.linalg.norm(u) ** 2 * 1.01


@pytest.mark.parametrize("rate", [0.3, 10.0])
@pytest.mark.parametrize("l1", [0.0, 1e-3, 1e-2])
@pytest.mark.parametrize(
    "loss",
    [Hinge(), Hinge(asked=0.5), Logistic(base=2), Logistic(), Exponential()],
    ids=["hinge", "half", "log2", "ln", "exp"],
)
def test_inseparable_data_and_any_comparator(loss, l1, rate):
    data = problem(noise=0.15)
    rows = data.dataset().rows
    trainer, mistakes = train(rows, loss, RDA(rate=rate, l1=l1))
    draw = np.random.default_rng(0)
    comparators = [
        data.truth / MARGIN,
        0.2 * data.truth,
        -data.truth,
        np.zeros(N_FEATURES),
        trainer.weights(),
        observe(trainer).average,
        draw.normal(size=N_FEATURES),
        draw.normal(size=N_FEATURES) * (draw.random(N_FEATURES) < 0.1),
    ]
    for u in comparators:
        report = bound_report(trainer, rows, mistakes, u)
        assert not report.separable
        assert report.left <= report.right
        assert report.holds
        assert report.mistakes <= report.theorem1
        assert report.delta <= report.delta_bar + 1e-12
        relaxed = mistake_bound(
            report.comparator_loss,
            report.comparator_norm,
            report.delta_bar,
            report.lam,
            report.G,
            report.eta_used,
            report.floor,
        )
        assert report.theorem1 <= relaxed * (1 + 1e-9)


def test_a_bound_is_not_always_above_the_number_of_samples():
    # else the tests above could pass with any large number
    data = problem(n=3000)
    rows = data.dataset().rows
    trainer, mistakes = train(rows, Hinge(), RDA(rate=10.0))
    report = best_scaled(trainer, rows, mistakes, data.truth)[1]
    assert report.mistakes <= report.theorem1 < 400
    assert report.corollary1 < 0.3


def test_without_a_penalty_the_best_eta_bounds_every_run():
    data = problem()
    rows, u = data.dataset().rows, data.truth / MARGIN
    runs = [train(rows, Hinge(), RDA(rate=rate))[1].tolist() for rate in (0.25, 16.0)]
    assert runs[0] == runs[1]
    assert len(runs[0]) <= mistake_bound(0.0, float(np.linalg.norm(u)), 0.0, 0.0, 1.0)


def test_the_floor_of_a_loss_is_its_least_value_on_mistakes():
    data = problem(noise=0.15)
    rows = data.dataset().rows
    reports = {}
    for base in (2.0, math.e):
        # ln is log2 scaled by ln 2; so is everything else when eta is scaled, too
        rate = 3.0 if base == 2.0 else 3.0 / math.log(2)
        trainer, mistakes = train(rows, Logistic(base=base), RDA(rate=rate))
        reports[base] = bound_report(trainer, rows, mistakes, data.truth)
    assert reports[2.0].floor == 1.0
    assert reports[math.e].floor == pytest.approx(math.log(2))
    assert reports[math.e].mistakes == reports[2.0].mistakes
    assert reports[math.e].theorem1 == pytest.approx(reports[2.0].theorem1, rel=1e-5)


def test_importance_weights_scale_floor_loss_and_directions():
    data = problem(noise=0.1)
    rows = data.dataset().rows
    weights = np.where(np.arange(800) % 2, 0.5, 2.0).astype(np.float32)
    weights[:4] = 0.0
    weights.flags.writeable = False
    trainer, mistakes = train(rows._replace(weights=weights), Hinge(), RDA(rate=3.0, l1=1e-3))
    rows = rows._replace(weights=weights)
    report = bound_report(trainer, rows, mistakes, data.truth)
    assert mistakes.min() >= 4
    assert report.floor == pytest.approx(weights[mistakes].mean())
    assert math.isclose(report.G, 2.0, rel_tol=1e-6)
    assert math.isclose(report.R, 1.0, rel_tol=1e-6)
    assert report.holds


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_several_classes(noise):
    data = problem(noise=noise, classes=4)
    rows, structure = data.dataset().rows, Multiclass(N_FEATURES, 4)
    trainer, mistakes = train(rows, Hinge(), RDA(rate=3.0, l1=1e-3), structure)
    u = data.truth / MARGIN
    report = bound_report(trainer, rows, mistakes, u)
    x, _ = dense(data)
    scores = x @ u
    gold = scores[np.arange(800), data.labels]
    scores[np.arange(800), data.labels] = -np.inf
    losses = np.maximum(0.0, 1.0 - (gold - scores.max(axis=1)))
    assert report.comparator_loss == pytest.approx(losses[mistakes].sum(), rel=1e-9)
    assert report.separable == (noise == 0.0)
    assert math.isclose(report.R, math.sqrt(2), rel_tol=1e-6)
    assert math.isclose(report.G, math.sqrt(2), rel_tol=1e-6)
    assert report.holds
    for other in (np.random.default_rng(1).normal(size=u.shape), observe(trainer).average):
        assert bound_report(trainer, rows, mistakes, other).holds


def test_intercepts_count():
    data = problem(noise=0.1)
    rows, structure = data.dataset().rows, Binary(N_FEATURES, bias=2.0)
    trainer, mistakes = train(rows, Hinge(), RDA(rate=3.0), structure)
    u = np.append(data.truth, 0.25)
    report = bound_report(trainer, rows, mistakes, u)
    x, y = dense(data)
    losses = np.maximum(0.0, 1.0 - y * (x @ data.truth + 0.5))
    assert report.comparator_loss == pytest.approx(losses[mistakes].sum())
    assert math.isclose(report.R, math.sqrt(5), rel_tol=1e-6)
    assert report.holds


def test_too_much_regularisation_is_vacuous_and_said_so():
    data = problem()
    rows = data.dataset().rows
    trainer, mistakes = train(rows, Hinge(), RDA(rate=3.0, l1=2.0))
    assert mistakes.size == 800  # the weights never leave zero
    report = bound_report(trainer, rows, mistakes, data.truth / MARGIN)
    assert report.regime == "vacuous"
    assert report.theorem1 == math.inf
    assert report.holds
    stored = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert stored["theorem1"] is None
    assert stored["corollary1"] is None
    assert set(stored) >= KEYS
    # no weights beat the zeros of the run in penalty, so shrinking u must leave the regime
    assert math.isfinite(best_scaled(trainer, rows, mistakes, data.truth)[1].theorem1)


def test_under_regularisation_lowers_the_bound():
    data = problem(noise=0.1)
    rows = data.dataset().rows
    trainer, mistakes = train(rows, Hinge(), RDA(rate=20.0, l1=1e-3))
    report = bound_report(trainer, rows, mistakes, 0.1 * data.truth)
    assert report.regime == "under"
    perfect = mistake_bound(
        report.comparator_loss, report.comparator_norm, 0.0, report.lam, report.G, report.eta_used
    )
    assert report.theorem1 < perfect


def test_best_scaled_finds_the_least_bound_of_a_ray():
    data = problem(noise=0.1)
    rows = data.dataset().rows
    trainer, mistakes = train(rows, Logistic(base=2), RDA(rate=5.0, l1=1e-3))
    scale, best = best_scaled(trainer, rows, mistakes, 1e-3 * data.truth)
    grid = [
        bound_report(trainer, rows, mistakes, a * data.truth).theorem1
        for a in np.geomspace(1e-3, 1e3, 100)
    ]
    assert best.theorem1 <= min(grid) * (1 + 1e-6)
    assert best.comparator_norm == pytest.approx(scale * 1e-3 * np.linalg.norm(data.truth))
    assert best.holds


def test_mistake_bounds_hold_over_passes_but_corollary_1_is_for_one():
    data = problem(noise=0.1)
    rows = data.dataset().rows
    trainer, mistakes = train(rows, Hinge(), RDA(rate=3.0, l1=1e-3), passes=3)
    report = bound_report(trainer, rows, mistakes, data.truth)
    assert report.samples == 2400
    assert report.corollary1 is None
    assert report.holds


def test_before_any_mistake():
    trainer, mistakes = train(problem(n=0).dataset().rows, Hinge(), RDA())
    report = bound_report(trainer, problem().dataset().rows, mistakes, np.ones(N_FEATURES))
    assert (report.mistakes, report.left, report.right) == (0, 0.0, 0.0)
    assert report.theorem1 == pytest.approx((60 / 2) ** 2)  # b = eta/2 |u|^2 alone: G is still 0
    assert report.holds


@given(positive, positive, st.floats(0.0, 1e3), st.floats(0.0, 1.0))
def test_lemma_1(a, b, c, part):
    root, middle, outer = lemma_1(a, b, c)
    assert a * root - b * math.sqrt(root) - c == pytest.approx(0.0, abs=1e-6 * (a * root + 1))
    assert root <= middle * (1 + 1e-9)
    assert middle <= outer * (1 + 1e-9)
    more = root * (1 + 1e-3 + part)
    assert a * more - b * math.sqrt(more) - c > 0


@given(positive, positive, positive)
def test_the_best_eta_is_the_direction_over_the_comparator(norm, G, eta):
    best = regret_bound(10, norm, G)
    assert regret_bound(10, norm, G, math.sqrt(2) * G / norm) == pytest.approx(best)
    assert regret_bound(10, norm, G, eta) >= best * (1 - 1e-9)


@given(
    positive,
    positive,
    st.floats(1e-2, 10.0),
    st.one_of(st.just(0.0), positive),
    st.floats(0.0, 100.0),
    st.floats(-5.0, 0.9),
)
def test_with_l2_the_bound_solves_the_inequality(norm, G, l2, eta, loss, delta):
    bound = mistake_bound(loss, norm, delta, 1.0, G, eta, l2=l2)

    def slack(M):
        left, right = inequality(M, loss, norm, delta, 1.0, G, eta, l2=l2)
        return right - left

    if bound >= 1.0:
        assert slack(bound) == pytest.approx(0.0, abs=1e-6 * bound * (1 - delta) + 1e-9)
    for factor in (1.001, 2.0, 100.0):
        assert slack(max(1.0, bound) * factor) < 1e-9


@pytest.mark.parametrize("l1", [0.0, 0.01])
@pytest.mark.parametrize(
    ("l2", "eta"),
    [(l2, eta) for l2 in (0.0, 0.003, 0.1, 2.0) for eta in (0.0, 0.1, 3.0) if l2 or eta],
)
def test_regret_bounds_are_those_of_dual_averaging(l2, l1, eta):
    data = problem(noise=0.15)
    x, y = dense(data)
    run = plain_vrda(x, y, Hinge().negative_derivative, eta, l1, l2)

    def cost(w, margins):
        penalty = l1 * np.abs(w).sum(axis=-1) + l2 / 2 * (w * w).sum(axis=-1)
        return np.maximum(0.0, 1.0 - margins) + penalty

    online_cost = cost(run.w, run.z)
    G = np.linalg.norm(run.g, axis=1).max()
    draw = np.random.default_rng(1)
    for u in (data.truth, data.truth / MARGIN, np.zeros(60), draw.normal(size=60), -run.w[-1]):
        regret = np.cumsum(online_cost - cost(u, y[run.mistakes] * (x[run.mistakes] @ u)))
        for M in (1, 2, 3, 10, len(regret)):
            assert regret[M - 1] <= regret_bound(M, np.linalg.norm(u), G, eta, l2) + 1e-9


def test_the_printed_strongly_convex_bound_fails_for_small_lam():
    """Section 4 prints G |u| log M for the regret; G^2 / (2 lam) (3 + log M) is what holds."""
    data = problem(noise=0.1)
    x, y = dense(data)
    u, lam = data.truth, 1e-3
    run = plain_vrda(x, y, Hinge().negative_derivative, 0.0, l2=lam)
    M, norm = len(run.w), float(np.linalg.norm(u))
    seen = Observation(
        M,
        float(np.abs(run.w).sum(axis=1).mean()),
        run.w.mean(axis=0),
        1.0,
        float((run.w**2).sum(axis=1).mean()),
    )
    strength = relative_strength(u, seen, l2=lam)
    assert strength.exact
    loss = np.maximum(0.0, 1.0 - y[run.mistakes] * (x[run.mistakes] @ u)).sum()
    assert M * (1 - lam * strength.delta) > norm * math.log(M) + loss
    left, right = inequality(M, loss, norm, strength.delta, lam, 1.0, l2=lam)
    assert left <= right


@pytest.mark.parametrize(("rate", "l1"), [(math.inf, 0.0), (5.0, 0.0), (5.0, 1e-3)])
def test_a_square_penalty_is_bounded_from_the_average(rate, l1):
    data = problem(noise=0.1)
    rows = data.dataset().rows
    trainer, mistakes = train(rows, Hinge(), RDA(rate=rate, l1=l1, l2=0.05))
    report = bound_report(trainer, rows, mistakes, data.truth)
    run = plain_vrda(*dense(data), Hinge().negative_derivative, 1 / rate, l1, 0.05)
    exact = observe(trainer)._replace(mean_square=float((run.w**2).sum(axis=1).mean()))
    strength = relative_strength(data.truth, exact, l1, 0.05)
    assert strength.delta <= report.delta <= report.delta_bar + 1e-12
    assert report.lam == (1.0 if l1 else 0.05)
    assert report.eta_optimal is None
    assert report.holds


def test_relative_strength_counts_lam_once():
    seen = Observation(2, 3.0, np.array([0.5, -0.5]), 1.0, 4.0)
    u = np.array([1.0, -3.0])
    assert relative_strength(u, seen, l1=0.2)[:3] == (0.2, 1.0, 3.0)
    assert relative_strength(u, seen, l2=0.2)[:3] == (0.2, 3.0, 4.75)
    both = relative_strength(u, seen, l1=0.2, l2=0.2)
    assert both[:3] == pytest.approx((1.0, 0.8, 1.55))
    assert relative_strength(u, seen)[:3] == (0.0, 1.0, 3.0)


def test_regimes_and_corollary():
    assert [regime(d, 0.5, floor=0.7) for d in (-1, 0, 1, 1.4, 2)] == [
        "under",
        "perfect",
        "over",
        "vacuous",
        "vacuous",
    ]
    assert corollary_1(math.inf, 10) == math.inf


def test_what_the_bounds_do_not_cover_is_refused():
    rows = problem().dataset().rows
    ones, none = np.ones(N_FEATURES), np.zeros(0, np.int64)

    def untrained(loss, rule, averaging, update_on="mistakes"):
        return online.OnlineTrainer(Binary(N_FEATURES), Learner(loss, rule, averaging, update_on))

    for trainer, words in (
        (untrained(Hinge(), RDA(), Last()), r"averaging Last.*Observed\(Last\(\)\)"),
        (untrained(Hinge(), SGD(), Observed(Last())), "not of sgd.*use the rule RDA"),
        (untrained(Hinge(), RDA(), Observed(Last()), "all"), "update_on='mistakes'"),
        (untrained(Perceptron(), RDA(), Observed(Last())), "Perceptron may be zero.*use Hinge"),
    ):
        with pytest.raises(CombinationError, match=words):
            bound_report(trainer, rows, none, ones)
    trainer, mistakes = train(rows, Hinge(), RDA())
    with pytest.raises(HopefearError, match="mistakes were listed and the trainer made"):
        bound_report(trainer, rows, mistakes[1:], ones)
    with pytest.raises(HopefearError, match="61 weights and the model 60"):
        bound_report(trainer, rows, mistakes, np.ones(61))
    with pytest.raises(HopefearError, match="not finite"):
        bound_report(trainer, rows, mistakes, ones * np.nan)
    with pytest.raises(HopefearError, match="rows 0 to 800 of 800"):
        comparator_loss(Binary(N_FEATURES), Hinge(), rows, np.array([0, 800]), ones)
    with pytest.raises(HopefearError, match="all zero"):
        best_scaled(trainer, rows, mistakes, 0.0 * ones)


def test_bounds_need_the_data_in_memory(tmp_path):
    path = tmp_path / "a.svm"
    path.write_text("1 1:1\n-1 2:1\n" * 5)
    cache_examples(path, tmp_path / "c")
    with pytest.raises(HopefearError, match="train without a cache, or without bounds"):
        learn(Classification(), open_cache(tmp_path / "c"), "vrda", instrument=bounds())

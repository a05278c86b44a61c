"""Every method of the N-best structure against dense matrices and sorted lists."""

from __future__ import annotations

import math

import numpy as np
import pytest
from chain_oracle import Sums, softmax
from hypothesis import given, settings
from hypothesis import strategies as st
from list_oracle import ListWorld, rows_of, tiny_lists

from hopefear.core.interfaces import UNRIVALLED
from hopefear.core.workspace import Example, Ones, Plain
from hopefear.costs.hamming import Hamming
from hopefear.costs.regret import Regret
from hopefear.losses.log import Log
from hopefear.losses.sapo import SAPO
from hopefear.structures.nbest import NBest

pytestmark = pytest.mark.interpreted

FEATURES, DEPTH = 4, 5
few = settings(max_examples=60, deadline=None)


class Case:
    """A list of small whole numbers, so that scores, costs and their sums often tie, exactly."""

    def __init__(self, rows, tied, w):
        self.structure, self.rows, self.w = NBest(FEATURES, tied), rows, w
        self.work = self.structure.workspace(rows, SAPO(n=DEPTH), np.float64)

    def __iter__(self):
        """(x, world) of every list, scored."""
        for i in range(len(self.rows.weights)):
            x = Example(self.rows, i)
            self.structure.score(x, Plain(self.w), self.work.theta)
            yield x, ListWorld(self.structure, self.rows, i, self.w)

    def check_direction(self, x, wanted):
        """Both uses of ``mu``, twice; nothing stays behind in ``local``."""
        mu, spread = self.work.mu, np.arange(1.0, FEATURES + 1)
        for _ in range(2):
            row = Sums(np.zeros(FEATURES), np.zeros(FEATURES, np.int64), True)
            self.structure.scatter(x, mu, row)
            assert not mu.local.any()
            assert row.times.max() <= 1
            np.testing.assert_allclose(row.g, wanted, atol=1e-12)
            norm = self.structure.norm(x, mu, Plain(spread))
            assert not mu.local.any()
            assert norm == pytest.approx(spread @ wanted**2, rel=1e-9, abs=1e-12)
        norm = self.structure.norm(x, mu, Ones())
        assert norm == pytest.approx(wanted @ wanted, rel=1e-9, abs=1e-12)


@st.composite
def cases(draw):
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    span = draw(st.sampled_from([1, 2, 40]))
    matrices = [
        rng.integers(-span, span + 1, (n, FEATURES)) * (rng.random((n, FEATURES)) < 0.7)
        for n in sizes
    ]
    costs = [rng.integers(0, draw(st.sampled_from([1, 2, 5])), n) for n in sizes]
    offsets = [rng.integers(-2, 3, n) for n in sizes] if draw(st.booleans()) else None
    rows = rows_of(matrices, costs, offsets)
    return Case(rows, draw(st.booleans()), rng.integers(-2, 3, FEATURES).astype(float))


@few
@given(cases())
def test_best_candidate_and_best_rival(case):
    structure, work = case.structure, case.work
    for x, world in case:
        np.testing.assert_array_equal(work.theta.points[: len(world.scores)], world.scores)
        best, rival = world.ranked()[0], world.best_rival()
        structure.argmax(x, work.theta, work.y)
        assert work.y.tolist() == [best, world.gold]
        assert structure.right(x, work.y) == (not world.rivals[best])
        z = structure.violation(x, work.theta, work.y)
        assert work.y.tolist() == [best, world.gold]
        if world.rivals[best]:
            assert z == world.lead(best) <= 0
        else:
            assert z > 0
        z = structure.margin(x, work.theta, work.y)
        if rival is None:
            assert z == UNRIVALLED
            assert work.y.tolist() == [world.gold, world.gold]
        else:
            assert z == world.lead(rival)
            assert work.y.tolist() == [rival, world.gold]


@few
@given(cases(), st.sampled_from([Regret(), Regret(2.0), Hamming(0.5)]))
def test_fear_hope_and_worst(case, cost):
    structure, work = case.structure, case.work
    for x, world in case:
        costs = world.costs(cost)
        searches = {
            1.0: world.scores + costs,
            -1.0: world.scores - costs,
            math.inf: costs,
        }
        for sign, by in searches.items():
            wanted = world.ranked(by)[0]
            z, price = structure.seek(x, work.theta, cost, sign, work.y)
            assert work.y.tolist() == [wanted, world.gold]
            assert (z, price) == (world.lead(wanted), costs[wanted])
        structure.argmax(x, work.theta, work.y)  # scores without costs are still there
        assert work.y[0] == world.ranked()[0]
        for k in range(len(costs)):
            y = np.array([k, world.gold])
            assert structure.lead(x, work.theta, y) == world.lead(k)
            assert structure.charge(x, cost, y) == costs[k]
            assert structure.right(x, y) == (not world.rivals[k])


@few
@given(cases(), st.integers(1, DEPTH), st.sampled_from([0.0, 0.5, 1.0, 3.0, 50.0]))
def test_the_best_and_the_most_feared(case, n, ratio):
    structure, work = case.structure, case.work
    for x, world in case:
        wanted = world.top(n, ratio) or world.ranked()[:1]  # the best one always stays
        count = structure.candidates(x, work.theta, None, n, ratio)
        found = [structure.candidate(x, work.theta, k).tolist() for k in range(count)]
        assert found == [[k, world.gold] for k in wanted]
        wanted = world.ranked(world.scores + world.costs(Regret()))[:n]
        count = structure.candidates(x, work.theta, Regret(), n, 0.0)
        found = [structure.candidate(x, work.theta, k).tolist() for k in range(count)]
        assert found == [[k, world.gold] for k in wanted]
        np.testing.assert_array_equal(work.theta.points[: len(world.scores)], world.scores)


@few
@given(cases())
def test_directions_add_up_and_nothing_is_left_over(case):
    structure, work = case.structure, case.work
    for x, world in case:
        wanted = np.zeros(FEATURES)
        structure.clear(x, work.mu)
        for step, k in enumerate(world.ranked()):
            structure.pull(x, np.array([k, world.gold]), 1.0 + step, work.mu)
            wanted += (1.0 + step) * world.delta(k)
            case.check_direction(x, wanted)
        last = world.ranked()[-1]
        structure.contrast(x, np.array([last, world.gold]), 0.5, work.mu)
        case.check_direction(x, 0.5 * world.delta(last))


@few
@given(cases())
def test_inner_products_of_candidates(case):
    structure, work = case.structure, case.work
    for x, world in case:
        count = structure.candidates(x, work.theta, None, DEPTH, 0.0)
        products = np.full((DEPTH, DEPTH), np.nan)
        structure.gram(x, work.theta, count, work.mu, products)
        assert not work.mu.local.any()
        D = np.array([world.delta(k) for k in world.top(DEPTH)])
        np.testing.assert_array_equal(products[:count, :count], D @ D.T)
        assert np.isnan(products[count:]).all()


@few
@given(cases(), st.sampled_from([0.5, 1.0, 3.0]))
def test_expectations(case, sharp):
    structure, work = case.structure, case.work
    for x, world in case:
        good = np.where(world.rivals, -np.inf, world.scores)
        P, R = softmax(world.scores), softmax(good)
        costs = world.costs(Regret())
        value = structure.expect(x, work.theta, 0.7, work.mu)
        wanted = np.logaddexp.reduce(world.scores) - np.logaddexp.reduce(good)
        assert value == pytest.approx(wanted, rel=1e-9, abs=1e-9)
        case.check_direction(x, 0.7 * (R - P) @ world.F)
        value = structure.expect_cost(x, work.theta, Regret(), sharp, 0.7, work.mu)
        S = softmax(sharp * world.scores)
        assert value == pytest.approx(S @ costs, rel=1e-9, abs=1e-12)
        case.check_direction(x, 0.7 * sharp * (S * (S @ costs - costs)) @ world.F)
        value = structure.expect_good(x, work.theta, Regret(), sharp, 0.7, work.mu)
        Q = softmax(world.outputs.fixed - sharp * costs)
        logs = world.scores - np.logaddexp.reduce(world.scores)
        assert value == pytest.approx(np.sum(Q * (np.log(Q) - logs)), rel=1e-9, abs=1e-9)
        case.check_direction(x, 0.7 * (Q - P) @ world.F)


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("behind", [30.0, 700.0, 720.0, 744.0, 746.0, 1e5])
def test_gold_that_is_far_behind_still_has_a_finite_loss(behind, tied):
    """Its probability is a denormal number, or none, and the loss is what it is behind."""
    rows = rows_of([[[behind], [0.0], [-1.0]]], [[1.0, 0.0, 0.0]])
    structure = NBest(1, tied)
    work = structure.workspace(rows, Log(), np.float64)
    x = Example(rows, 0)
    structure.score(x, Plain(np.ones(1)), work.theta)
    value = structure.expect(x, work.theta, 1.0, work.mu)
    alike = np.log1p(np.exp(-1.0)) if tied else 0.0
    assert value == pytest.approx(behind - alike, abs=0.4)
    assert np.isfinite(work.mu.parts).all()
    assert work.mu.parts.sum() == pytest.approx(0.0, abs=1e-12)
    assert work.mu.parts[0] == pytest.approx(-1.0)


@pytest.mark.parametrize("tied", [False, True])
def test_scores_that_are_no_numbers_are_seen(tied):
    """Wherever gold stands, so that training can say that its steps are too long."""
    rows = rows_of([[[1.0], [2.0]], [[2.0], [1.0]]], [[0.0, 1.0], [1.0, 0.0]])
    structure = NBest(1, tied)
    work = structure.workspace(rows, Log(), np.float64)
    with np.errstate(all="ignore"):
        for i in range(2):
            for w in (np.inf, np.nan):
                x = Example(rows, i)
                structure.score(x, Plain(np.array([w])), work.theta)
                assert not np.isfinite(structure.violation(x, work.theta, work.y))
                assert not np.isfinite(structure.expect(x, work.theta, 1.0, work.mu))


def test_a_longer_list_leaves_nothing_behind_for_a_shorter_one():
    rows = tiny_lists(1, sizes=(6, 2, 1, 5), features=FEATURES)
    case = Case(rows, False, np.array([1.0, -0.5, 0.25, 2.0]))
    for x, world in case:
        case.structure.expect(x, case.work.theta, 1.0, case.work.mu)
        P = softmax(world.scores)
        case.check_direction(x, world.F[world.gold] - P @ world.F)


def test_single_precision_stays_near():
    rows = tiny_lists(2, features=FEATURES)
    structure, w = NBest(FEATURES), np.random.default_rng(3).normal(size=FEATURES)
    work = structure.workspace(rows, SAPO(n=DEPTH), np.float32)
    assert work.theta.local.dtype == work.mu.local.dtype == np.float32
    for i in range(len(rows.weights)):
        x = Example(rows, i)
        structure.score(x, Plain(w.astype(np.float32)), work.theta)
        world = ListWorld(structure, rows, i, w)
        np.testing.assert_allclose(work.theta.points[: len(world.scores)], world.scores, atol=1e-5)
        structure.expect(x, work.theta, 1.0, work.mu)
        row = Sums(np.zeros(FEATURES), np.zeros(FEATURES, np.int64), True)
        structure.scatter(x, work.mu, row)
        wanted = world.F[world.gold] - softmax(world.scores) @ world.F
        np.testing.assert_allclose(row.g, wanted, atol=1e-5)


def test_sizes_and_offers():
    rows = tiny_lists(4, sizes=(3, 5, 1), features=FEATURES)
    structure = NBest(FEATURES)
    assert structure.n_coordinates() == FEATURES
    sizes = np.diff(rows.scopes)
    assert structure.entries(rows, np.array([2, 0, 0])) == sizes[2] + 2 * sizes[0]
    work = structure.workspace(rows, SAPO(n=9), np.float64)
    assert len(work.theta.points) == 5 and work.theta.picks.shape == (9, 2)
    assert set(structure.offers()) >= {"cost", "nbest", "expectation", "risk", "worst", "bounded"}

"""What docs/theory.md says about SAPO and SWVP, on chains whose outputs can all be listed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from chain_oracle import World, force, softmax, tiny_rows

from hopefear.core.interfaces import n_weights
from hopefear.data.schemes import legal
from hopefear.losses.sapo import SAPO
from hopefear.structures.chain.chain import Chain

pytestmark = pytest.mark.interpreted

CHAIN = Chain.new(attributes=5, labels=3)
ROWS = tiny_rows(3, (3, 2, 3), CHAIN)
ALL = 3**3
sizes = pytest.mark.parametrize("n", [1, 2, 5, ALL])


def weights(seed, size=1.0):
    return np.random.default_rng(seed).normal(size=n_weights(CHAIN)) * size


def sapo(n, i, w):
    return force(SAPO(n=n), World(CHAIN, ROWS, i, w))


def diameter(i):
    F = World(CHAIN, ROWS, i, weights(0)).F
    return max(np.linalg.norm(a - b) for a, b in itertools.combinations(F, 2))


@sizes
def test_sapo_moves_along_a_subgradient_of_a_convex_function(n):
    for seed, size in itertools.product(range(8), (0.1, 1.0, 3.0)):
        w, v = weights(seed, size), weights(seed + 100, size)
        for i in range(3):
            here, there = sapo(n, i, w), sapo(n, i, v)
            assert there.value >= here.value - here.g @ (v - w) - 1e-9


@sizes
def test_what_the_n_best_leave_out_is_the_distance_from_the_crf(n):
    for seed, i in itertools.product(range(6), range(3)):
        w = weights(seed)
        world = World(CHAIN, ROWS, i, w)
        rest = 1.0 - softmax(world.scores)[world.top(n)].sum()
        some, every = sapo(n, i, w), sapo(ALL, i, w)
        assert every.value - some.value == pytest.approx(-np.log(1.0 - rest), abs=1e-9)
        assert np.linalg.norm(every.g - some.g) <= rest * diameter(i) + 1e-9
        least = 0.0 if world.gold in world.top(n) else np.log(n)
        assert least - 1e-9 <= some.value <= every.value + 1e-9


def test_zero_weights_are_best_for_one_output_and_good_for_no_n():
    nothing = np.zeros(n_weights(CHAIN))
    assert sapo(1, 0, nothing).value == 0.0
    for n in (2, 5, ALL):
        assert sapo(n, 0, nothing).value == pytest.approx(np.log(n))


def test_two_outputs_are_a_logistic_loss_where_gold_is_among_them():
    seen = 0
    for seed, i in itertools.product(range(20), range(3)):
        world = World(CHAIN, ROWS, i, weights(seed))
        top = world.top(2)
        if world.gold in top:
            seen += 1
            rival = next(k for k in top if k != world.gold)
            value = np.log1p(np.exp(-world.lead(rival)))
            assert sapo(2, i, weights(seed)).value == pytest.approx(value)
    assert seen > 3


@pytest.mark.parametrize("shrink", [0.05, 0.5, 0.95])
def test_weights_and_update_terms_stay_within_their_bounds(shrink):
    """``shrink`` is rate * 2 * lam / |S|; the bounds are D |S| / (2 lam) and 2 D."""
    D = max(diameter(i) for i in range(3))
    w, rate = np.zeros(n_weights(CHAIN)), 0.7
    for t in range(60):
        term = sapo(5, t % 3, w).g - shrink / rate * w
        assert np.linalg.norm(term) <= 2.0 * D
        w = w + rate * term
        assert np.linalg.norm(w) <= D * rate / shrink


def test_an_early_end_of_the_search_leaves_out_at_most_a_sixth():
    for seed, i in itertools.product(range(20), range(3)):
        world = World(CHAIN, ROWS, i, weights(seed, 2.0))
        share = softmax(world.scores[world.top(5)])
        assert share[len(world.top(5, 20.0)) :].sum() <= 4.0 / 24.0


def test_mixtures_of_legal_outputs_may_be_illegal():
    labels = ("O", "B-X", "I-X")
    rules = legal(labels, "bio")
    gold, guess = (0, 0), (1, 2)
    assert rules.step[gold] and rules.step[guess]
    assert not rules.step[gold[0], guess[1]]


def test_ranks_as_printed_do_not_sum_to_one_but_bound_the_updates():
    """Sums between s and s' lose a factor (s' / s)**2 against Theorem 1."""
    rng = np.random.default_rng(1)
    u = np.array([1.0, 0.0, 0.0])
    steps = np.column_stack([rng.uniform(1.0, 2.0, 400), rng.normal(size=(400, 2))])
    R, delta = np.linalg.norm(steps, axis=1).max(), (steps @ u).min()
    w, sums = np.zeros(3), []
    for step in steps:
        N = int(rng.integers(1, 4))
        total = sum((N - r) / N for r in range(N))
        if w @ step <= 0.0:  # condition (2)
            w = w + total * step
            sums.append(total)
    assert max(sums) > 1.0
    assert len(sums) <= (R / delta) ** 2 * (max(sums) / min(sums)) ** 2

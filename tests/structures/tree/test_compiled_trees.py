"""Searches and sums over trees, compiled: vector instructions round as they should."""

from __future__ import annotations

import numpy as np
import pytest
from trees import KINDS, draw_scores, expected, tree_scores

from hopefear.structures.tree.eisner import eisner, new_eisner_space
from hopefear.structures.tree.inside_outside import new_projective_space, projective_covariances
from hopefear.structures.tree.matrix_tree import new_matrix_space, nonprojective_covariances
from hopefear.structures.tree.spanning import new_spanning_space, spanning_tree

LONGEST = 300
SEARCHES = {
    True: (eisner, new_eisner_space(LONGEST)),
    False: (spanning_tree, new_spanning_space(LONGEST)),
}
SUMS = {
    True: (projective_covariances, new_projective_space(LONGEST)),
    False: (nonprojective_covariances, new_matrix_space(LONGEST)),
}


def find(n, scores, flat, single):
    search, space = SEARCHES[flat]
    heads = np.zeros(LONGEST + 1, np.int32)
    return search(n, scores, single, space, heads), heads[: n + 1]


def sums(n, scores, prices, flat, single):
    covariances, space = SUMS[flat]
    marginals, slopes = np.zeros((2, (n + 1) ** 2))
    return covariances(n, scores, prices, single, space, marginals, slopes), marginals, slopes


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("single", [False, True])
def test_equal_to_enumeration(flat, single):
    rng = np.random.default_rng(7)
    for n in (1, 2, 3, 4, 5):
        for kind in KINDS:
            scores, prices = draw_scores(rng, n, kind), rng.normal(size=(n + 1) ** 2)
            best = tree_scores(n, scores, flat, single).max(initial=-np.inf)
            total, heads = find(n, scores, flat, single)
            assert total == pytest.approx(best, rel=1e-12, abs=1e-12)
            if best > -np.inf:
                arcs = np.arange(1, n + 1) * (n + 1) + heads[1:]
                assert scores[arcs].sum() == pytest.approx(best, rel=1e-12, abs=1e-12)
            answer = sums(n, scores, prices, flat, single)
            wanted = expected(n, scores, prices, flat, single)
            for value, other in zip(answer, wanted, strict=True):
                assert value == pytest.approx(other, rel=1e-11, abs=1e-9)


@pytest.mark.parametrize("n", [7, 8, 33, 100])
@pytest.mark.parametrize("flat", [False, True])
def test_longer_sentences(n, flat):
    rng = np.random.default_rng(n)
    scores = draw_scores(rng, n, "normal")
    _, gold = find(n, draw_scores(rng, n, "normal"), flat, True)
    arcs = np.arange(1, n + 1) * (n + 1) + gold[1:]
    bonus = np.zeros_like(scores)
    bonus[arcs] = 10.0 * n
    assert find(n, scores + bonus, flat, True)[1].tolist() == gold.tolist()
    prices = rng.normal(size=scores.size)
    _, marginals, slopes = sums(n, scores, prices, flat, False)
    assert marginals.reshape(n + 1, n + 1).sum(axis=1)[1:] == pytest.approx(1.0, rel=1e-9)
    step = 1e-5
    up = sums(n, scores + step * prices, prices, flat, False)[1]
    down = sums(n, scores - step * prices, prices, flat, False)[1]
    assert (up - down) / (2 * step) == pytest.approx(slopes, abs=1e-6)


def test_three_hundred_words():
    rng = np.random.default_rng(300)
    scores = draw_scores(rng, LONGEST, "normal")
    flat, heads = find(LONGEST, scores, True, True)
    assert (heads[1:] == 0).sum() == 1
    assert flat <= find(LONGEST, scores, False, True)[0] <= find(LONGEST, scores, False, False)[0]
    for kind in (True, False):
        log_z, marginals, _ = sums(LONGEST, scores, np.zeros_like(scores), kind, True)
        totals = marginals.reshape(LONGEST + 1, LONGEST + 1).sum(axis=1)
        assert np.isfinite(log_z) and totals[1:] == pytest.approx(1.0, rel=1e-9)

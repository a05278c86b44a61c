"""Dual decomposition against enumeration of all trees."""

from __future__ import annotations

import numpy as np
import pytest
from second_order_oracle import candidate_trees, draw_arcs, draw_scores, plain_score

from hopefear.structures.tree.decomposition import new_decomposition, nonprojective_second
from hopefear.structures.tree.parts import (
    Counts,
    fill_arcs,
    new_arcs,
    new_part_scores,
    part_counts,
)
from hopefear.testing.trees import is_tree

pytestmark = pytest.mark.interpreted

KINDS = ["normal", "integers", "large", "holes"]


def search(n, arcs, counts, scores, single, rounds=60):
    heads = np.zeros(n + 1, np.int32)
    space = new_decomposition(n, counts)
    score, certain = nonprojective_second(n, arcs, scores, single, rounds, space, heads)
    return score, certain, heads


def best_score(n, arcs, scores, single):
    return max(plain_score(arcs, n, scores, tree) for tree in candidate_trees(arcs, n, single))


def draw(seed, kind):
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n = int(rng.integers(1, 6))
    arcs, _, counts = draw_arcs(rng, n, density=rng.choice([0.3, 0.7]))
    scores = draw_scores(rng, counts, kind == "integers", 1e4 if kind == "large" else 1.0)
    if kind == "holes":
        for values in scores:
            values[rng.random(len(values)) < 0.15] = -np.inf
    return n, arcs, counts, scores


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(15))
def test_what_is_certain_is_best_and_what_is_not_is_a_tree(seed, kind, single):
    n, arcs, counts, scores = draw(seed, kind)
    score, certain, heads = search(n, arcs, counts, scores, single)
    expected = best_score(n, arcs, scores, single)
    if certain:
        assert score == pytest.approx(expected, rel=1e-8, abs=1e-8)
    if score > -np.inf:
        assert score <= expected + 1e-9 * max(1.0, abs(expected))
        assert is_tree(heads, True, single)
        assert plain_score(arcs, n, scores, heads) == pytest.approx(score, rel=1e-12, abs=1e-12)


def test_most_answers_are_certain_where_arcs_matter_more_than_pairs_of_them():
    certain_answers = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        arcs, _, counts = draw_arcs(rng, 5)
        scores = draw_scores(rng, counts)
        scores.siblings[:] *= 0.2
        scores.grands[:] *= 0.2
        score, certain, _ = search(5, arcs, counts, scores, False, rounds=150)
        certain_answers += certain
        assert score == pytest.approx(best_score(5, arcs, scores, False)) or not certain
    assert certain_answers >= 18


@pytest.mark.parametrize("single", [True, False])
def test_no_change_of_one_head_betters_a_tree_that_is_not_certain(single):
    uncertain_answers = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        n = 7
        arcs, n_arcs, counts = draw_arcs(rng, n)
        scores = draw_scores(rng, counts)
        score, certain, heads = search(n, arcs, counts, scores, single, rounds=2)
        uncertain_answers += not certain
        for a in range(n_arcs):
            other = heads.copy()
            other[arcs.mod[a]] = arcs.head[a]
            if is_tree(other, True, single):
                assert plain_score(arcs, n, scores, other) <= score + 1e-9
    assert uncertain_answers > 0


def test_one_word_has_one_tree():
    rng = np.random.default_rng(0)
    arcs, _, counts = draw_arcs(rng, 1)
    scores = draw_scores(rng, counts)
    score, certain, heads = search(1, arcs, counts, scores, True, rounds=1)
    assert certain and heads.tolist() == [0, 0]
    assert score == pytest.approx(scores.arcs[0] + scores.siblings[0] + scores.lasts[0])


def test_memory_that_was_used_before_gives_the_same_results():
    rng = np.random.default_rng(6)
    shared = new_decomposition(9, Counts(200, 600, 2000))
    for n in (9, 4, 1, 7):
        arcs, _, counts = draw_arcs(rng, n)
        scores = draw_scores(rng, counts)
        score, certain, heads = search(n, arcs, counts, scores, True, rounds=20)
        again = np.zeros(n + 1, np.int32)
        same = nonprojective_second(n, arcs, scores, True, 20, shared, again)
        assert same == (score, certain) and heads.tolist() == again.tolist()


def test_what_no_tree_can_have_is_minus_infinity_and_certain():
    starts, candidates = np.arange(4), np.array([2, 1, 0], np.int32)  # 1 and 2 are a cycle
    counts = part_counts(starts, candidates, 3)
    arcs = new_arcs(3, counts.arcs)
    fill_arcs(arcs, 3, starts, candidates)
    score, certain, _ = search(3, arcs, counts, new_part_scores(counts), False)
    assert score == -np.inf and certain


@pytest.mark.parametrize("unused", [np.nan, np.inf, -np.inf])
def test_scores_of_parts_that_are_in_no_tree_are_not_used(unused):
    rng = np.random.default_rng(2)
    n = 6
    arcs, n_arcs, counts = draw_arcs(rng, n, density=1.0)
    scores = draw_scores(rng, counts)
    score, certain, heads = search(n, arcs, counts, scores, False, rounds=20)
    for a in range(n_arcs):
        h, m = arcs.head[a], arcs.mod[a]
        if h > 0 and arcs.lookup[h * (n + 1) + m] >= 0:
            scores.grands[arcs.grands[a] + arcs.lookup[h * (n + 1) + m] - arcs.first[h]] = unused
    same_score, same_certain, same_heads = search(n, arcs, counts, scores, False, rounds=20)
    assert (same_score, same_certain) == (score, certain)
    assert same_heads.tolist() == heads.tolist()

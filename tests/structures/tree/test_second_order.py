"""Projective second-order search and sums against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from second_order_oracle import (
    candidate_trees,
    draw_arcs,
    draw_scores,
    plain_parts,
    plain_score,
)

from hopefear.structures.tree.parts import (
    Counts,
    Scores,
    fill_arcs,
    new_arcs,
    new_part_scores,
    part_counts,
    score_of,
)
from hopefear.structures.tree.second_order import (
    new_second_order,
    projective_second,
    projective_second_marginals,
)
from hopefear.testing.trees import is_tree

pytestmark = pytest.mark.interpreted

KINDS = ["normal", "integers", "large", "holes"]


def draw(seed, kind, longest=5):
    """(rng, n, arcs, counts, scores) of a random sentence."""
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    n = int(rng.integers(1, longest + 1))
    arcs, _, counts = draw_arcs(rng, n, density=rng.choice([0.3, 0.7, 1.0]))
    scores = draw_scores(rng, counts, kind == "integers", 1e4 if kind == "large" else 1.0)
    if kind == "holes":
        for values in scores:
            values[rng.random(len(values)) < 0.15] = -np.inf
    return n, arcs, counts, scores


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(25))
def test_the_best_tree_is_the_best_of_all_projective_trees(seed, kind, single):
    n, arcs, counts, scores = draw(seed, kind)
    heads = np.full(n + 1, -1, np.int32)
    best = projective_second(n, arcs, scores, single, new_second_order(n, counts), heads)
    trees = candidate_trees(arcs, n, single, projective=True)
    expected = max(plain_score(arcs, n, scores, tree) for tree in trees)
    if expected == -np.inf:
        assert best == -np.inf and (heads == -1).all()
        return
    heads[0] = 0
    assert best == pytest.approx(expected, rel=1e-12, abs=1e-12)
    assert plain_score(arcs, n, scores, heads) == pytest.approx(best, rel=1e-12, abs=1e-12)
    assert is_tree(heads, False, single)


@pytest.mark.parametrize("single", [True, False])
def test_no_change_of_one_head_betters_the_best_tree_of_a_longer_sentence(single):
    rng = np.random.default_rng(8)
    n = 12
    arcs, _, counts = draw_arcs(rng, n, density=0.4)
    scores = draw_scores(rng, counts)
    heads = np.zeros(n + 1, np.int32)
    best = projective_second(n, arcs, scores, single, new_second_order(n, counts), heads)
    assert best == pytest.approx(score_of(arcs, n, scores, heads))
    for a in range(counts.arcs):
        other = heads.copy()
        other[arcs.mod[a]] = arcs.head[a]
        if is_tree(other, False, single):
            assert score_of(arcs, n, scores, other) <= best + 1e-12


def test_candidates_without_a_projective_tree_give_minus_infinity():
    starts, candidates = np.arange(5), np.array([3, 4, 0, 3], np.int32)  # 3 -> 1 crosses 4 -> 2
    counts = part_counts(starts, candidates, 4)
    arcs = new_arcs(4, counts.arcs)
    fill_arcs(arcs, 4, starts, candidates)
    space, heads = new_second_order(4, counts), np.zeros(5, np.int32)
    for single in (True, False):
        score = projective_second(4, arcs, new_part_scores(counts), single, space, heads)
        assert score == -np.inf and not heads.any()


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(15))
def test_probabilities_of_parts_are_those_of_all_projective_trees(seed, kind, single):
    n, arcs, counts, scores = draw(seed, kind)
    out = Scores(*(np.full(len(values), np.nan) for values in scores))
    space = new_second_order(n, counts, sums=True)
    log_z = projective_second_marginals(n, arcs, scores, single, space, out)
    trees = list(candidate_trees(arcs, n, single, projective=True))
    totals = np.array([plain_score(arcs, n, scores, tree) for tree in trees])
    assert log_z == pytest.approx(np.logaddexp.reduce(totals), rel=1e-12, abs=1e-12)
    expected = new_part_scores(counts)
    for tree, total in zip(trees, totals, strict=True):
        chance = np.exp(total - log_z) if total > -np.inf else 0.0
        for m, (sibling, last, grand) in enumerate(plain_parts(arcs, n, tree), start=1):
            expected.arcs[arcs.lookup[m * (n + 1) + tree[m]]] += chance
            expected.siblings[sibling] += chance
            if last >= 0:
                expected.lasts[last] += chance
            if grand >= 0:
                expected.grands[grand] += chance
    for values, wanted in zip(out, expected, strict=True):
        np.testing.assert_allclose(
            values, wanted, rtol=1e-9, atol=1e-11 if kind != "large" else 1e-8
        )


@pytest.mark.parametrize("single", [True, False])
def test_probabilities_of_a_longer_sentence_add_up(single):
    rng = np.random.default_rng(4)
    n = 14
    arcs, n_arcs, counts = draw_arcs(rng, n, density=0.4)
    scores, out = draw_scores(rng, counts), new_part_scores(counts)
    heads, space = np.zeros(n + 1, np.int32), new_second_order(n, counts, sums=True)
    log_z = projective_second_marginals(n, arcs, scores, single, space, out)
    assert log_z > projective_second(n, arcs, scores, single, space, heads)
    for m in range(1, n + 1):
        assert out.arcs[arcs.first[m] : arcs.first[m + 1]].sum() == pytest.approx(1.0)
    for a in range(n_arcs):
        siblings = out.siblings[arcs.siblings[a] : arcs.siblings[a + 1]]
        assert siblings.sum() == pytest.approx(out.arcs[a])
        grands = out.grands[arcs.grands[a] : arcs.grands[a + 1]]
        assert arcs.head[a] == 0 or grands.sum() == pytest.approx(out.arcs[a])
        assert out.lasts[a] <= out.arcs[a] + 1e-12
    if single:
        roots = [a for a in range(n_arcs) if arcs.head[a] == 0]
        assert out.arcs[roots].sum() == pytest.approx(1.0)
        assert out.lasts[roots].sum() == pytest.approx(1.0)


def test_memory_that_was_used_before_gives_the_same_results():
    rng = np.random.default_rng(6)
    most = Counts(200, 600, 2000)
    shared, shared_out = new_second_order(9, most, sums=True), new_part_scores(most)
    for n in (9, 4, 1, 7, 9):
        arcs, _, counts = draw_arcs(rng, n)
        scores, out = draw_scores(rng, counts), new_part_scores(counts)
        own = new_second_order(n, counts, sums=True)
        log_z = projective_second_marginals(n, arcs, scores, False, own, out)
        assert projective_second_marginals(n, arcs, scores, False, shared, shared_out) == log_z
        for values, again in zip(out, shared_out, strict=True):
            assert values.tolist() == again[: len(values)].tolist()
        heads, again = np.zeros((2, n + 1), np.int32)
        best = projective_second(n, arcs, scores, True, own, heads)
        assert projective_second(n, arcs, scores, True, shared, again) == best
        assert heads.tolist() == again.tolist()


@pytest.mark.parametrize("unused", [np.nan, np.inf, -np.inf])
def test_scores_of_parts_that_are_in_no_tree_are_not_used(unused):
    rng = np.random.default_rng(2)
    n = 6
    arcs, n_arcs, counts = draw_arcs(rng, n, density=1.0)
    scores = draw_scores(rng, counts)
    space, heads, other_heads = (
        new_second_order(n, counts, sums=True),
        *np.zeros((2, n + 1), np.int32),
    )
    out, other_out = new_part_scores(counts), new_part_scores(counts)
    best = projective_second(n, arcs, scores, False, space, heads)
    log_z = projective_second_marginals(n, arcs, scores, False, space, out)
    for a in range(n_arcs):
        h, m = arcs.head[a], arcs.mod[a]
        if h > 0 and arcs.lookup[h * (n + 1) + m] >= 0:
            scores.grands[arcs.grands[a] + arcs.lookup[h * (n + 1) + m] - arcs.first[h]] = unused
    with np.errstate(invalid="ignore"):
        assert projective_second(n, arcs, scores, False, space, other_heads) == best
        assert projective_second_marginals(n, arcs, scores, False, space, other_out) == log_z
    assert heads.tolist() == other_heads.tolist()
    for values, others in zip(out, other_out, strict=True):
        np.testing.assert_array_equal(values, others)

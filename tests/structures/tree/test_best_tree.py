"""The best tree, projective or not, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from trees import KINDS, draw_scores, tree_scores

from hopefear.structures.tree.eisner import eisner, new_eisner_space
from hopefear.structures.tree.spanning import new_spanning_space, spanning_tree
from hopefear.testing.trees import is_tree

pytestmark = pytest.mark.interpreted

LONGEST = 30
SPACES = new_eisner_space(LONGEST), new_spanning_space(LONGEST)  # dirty from case to case


def find(n, scores, flat, single):
    heads = np.full(n + 1, -7, np.int32)
    search, space = (eisner, SPACES[0]) if flat else (spanning_tree, SPACES[1])
    return search(n, scores, single, space, heads), heads


def check_tree(n, scores, total, heads, flat, single):
    assert is_tree(np.where(np.arange(n + 1) == 0, 0, heads), not flat, single)
    assert heads[0] == -7
    arcs = np.arange(1, n + 1) * (n + 1) + heads[1:]
    assert scores[arcs].sum() == pytest.approx(total, rel=1e-12, abs=1e-12)


CASES = {
    "seed": st.integers(0, 2**32 - 1),
    "kind": st.sampled_from(KINDS),
    "flat": st.booleans(),
    "single": st.booleans(),
}


@settings(max_examples=400, deadline=None)
@given(**CASES, n=st.integers(1, 5))
def test_best_of_all_trees(seed, kind, flat, single, n):
    scores = draw_scores(np.random.default_rng(seed), n, kind)
    best = tree_scores(n, scores, flat, single).max(initial=-np.inf)
    total, heads = find(n, scores, flat, single)
    assert total == pytest.approx(best, rel=1e-12, abs=1e-12)
    if best > -np.inf:
        check_tree(n, scores, total, heads, flat, single)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("single", [False, True])
def test_best_of_six_words(kind, flat, single):
    rng = np.random.default_rng(6)
    for _ in range(10):
        scores = draw_scores(rng, 6, kind)
        best = tree_scores(6, scores, flat, single).max()
        assert find(6, scores, flat, single)[0] == pytest.approx(best, rel=1e-12, abs=1e-12)


@settings(max_examples=60, deadline=None)
@given(**CASES, n=st.integers(6, LONGEST))
def test_longer_sentences(seed, kind, flat, single, n):
    scores = draw_scores(np.random.default_rng(seed), n, kind)
    total, heads = find(n, scores, flat, single)
    if total > -np.inf:
        check_tree(n, scores, total, heads, flat, single)
    tolerance = 1e-9 * max(abs(total), 1.0) if total > -np.inf else 0.0
    assert total <= find(n, scores, False, single)[0] + tolerance
    assert total <= find(n, scores, flat, False)[0] + tolerance


def is_maximal(n, scores, heads):
    """Whether no word would rather have another head, those below it apart."""
    for m in range(1, n + 1):
        for h in range(n + 1):
            ancestor = h
            while ancestor not in (0, m):
                ancestor = heads[ancestor]
            if ancestor != m and scores[m * (n + 1) + h] > scores[m * (n + 1) + heads[m]] + 1e-9:
                return False
    return True


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), n=st.integers(6, LONGEST))
def test_no_single_arc_can_be_bettered(seed, n):
    scores = draw_scores(np.random.default_rng(seed), n, "cycles")
    assert is_maximal(n, scores, find(n, scores, False, False)[1])


@pytest.mark.parametrize("flat", [False, True])
def test_a_planted_tree_is_found(flat):
    rng = np.random.default_rng(1)
    n = LONGEST
    _, gold = find(n, draw_scores(rng, n, "normal"), flat, True)
    scores = draw_scores(rng, n, "normal")
    scores[np.arange(1, n + 1) * (n + 1) + gold[1:]] += 10.0 * n
    assert find(n, scores, flat, True)[1].tolist() == gold.tolist()


def test_one_root_is_found_among_scores_of_any_size():
    # A constant large enough to forbid a second root arc would swallow the small difference.
    scores = np.array([0, 0, 0, 1e17, 0, 1.0, 1e17, 1.5, 0])
    total, heads = find(2, scores, False, True)
    assert heads[1:].tolist() == [0, 1] and total == 1e17


@pytest.mark.parametrize("flat", [False, True])
@pytest.mark.parametrize("single", [False, True])
def test_no_tree(flat, single):
    scores = np.zeros((4, 4))
    scores[2] = -np.inf
    assert find(3, scores.ravel(), flat, single)[0] == -np.inf
    scores = np.zeros((4, 4))
    scores[1:, 0] = -np.inf
    assert find(3, scores.ravel(), flat, single)[0] == -np.inf


@pytest.mark.parametrize("flat", [False, True])
def test_two_words_that_must_hang_on_the_root(flat):
    scores = np.zeros((4, 4))
    scores[1, 1:] = scores[3, 1:] = -np.inf
    assert find(3, scores.ravel(), flat, False)[0] == 0.0
    assert find(3, scores.ravel(), flat, True)[0] == -np.inf

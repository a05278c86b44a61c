"""Second-order trees, compiled: a few cases against enumeration, with memory used again."""

from __future__ import annotations

import numpy as np
import pytest
from second_order_oracle import candidate_trees, draw_arcs, draw_scores, plain_parts, plain_score

from hopefear.core.component import kernel
from hopefear.structures.tree.decomposition import new_decomposition, nonprojective_second
from hopefear.structures.tree.parts import Counts, new_arcs, new_part_scores, parts_of, score_of
from hopefear.structures.tree.second_order import (
    new_second_order,
    projective_second,
    projective_second_marginals,
)

LONGEST, MOST = 12, Counts(156, 1000, 2000)


@kernel
def score_and_parts(n, arcs, scores, heads, siblings, lasts, grands):
    parts_of(arcs, n, heads, siblings, lasts, grands)
    return score_of(arcs, n, scores, heads)


@pytest.fixture(scope="module")
def memory():
    return (
        new_arcs(LONGEST, MOST.arcs),
        new_second_order(LONGEST, MOST, sums=True),
        new_decomposition(LONGEST, MOST),
        new_part_scores(MOST),
    )


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize("n", [5, 1, 4, 3])
def test_compiled_searches_and_sums_equal_enumeration(memory, n, single):
    arcs, space, decomposition, out = memory
    rng = np.random.default_rng([n, single])
    _, n_arcs, counts = draw_arcs(rng, n, arcs, density=0.8)
    scores, heads = draw_scores(rng, counts), np.zeros(n + 1, np.int32)
    trees = list(candidate_trees(arcs, n, single, projective=True))
    totals = np.array([plain_score(arcs, n, scores, tree) for tree in trees])
    best = projective_second(n, arcs, scores, single, space, heads)
    assert best == pytest.approx(totals.max()) == plain_score(arcs, n, scores, heads)
    siblings, lasts, grands = np.zeros((3, n + 1), np.int64)
    assert score_and_parts(n, arcs, scores, heads, siblings, lasts, grands) == pytest.approx(best)
    rows = zip(siblings[1:], lasts[1:], grands[1:], strict=True)
    assert [tuple(map(int, row)) for row in rows] == plain_parts(arcs, n, heads)
    log_z = projective_second_marginals(n, arcs, scores, single, space, out)
    assert log_z == pytest.approx(np.logaddexp.reduce(totals))
    expected = np.zeros(n_arcs)
    for tree, total in zip(trees, totals, strict=True):
        expected[arcs.lookup[np.arange(1, n + 1) * (n + 1) + tree[1:]]] += np.exp(total - log_z)
    np.testing.assert_allclose(out.arcs[:n_arcs], expected, atol=1e-12)
    score, certain = nonprojective_second(n, arcs, scores, single, 200, decomposition, heads)
    every_tree = candidate_trees(arcs, n, single)
    best = max(plain_score(arcs, n, scores, tree) for tree in every_tree)
    assert score == pytest.approx(plain_score(arcs, n, scores, heads))
    assert score == pytest.approx(best) if certain else score <= best + 1e-9


def test_compiled_sums_of_a_longer_sentence_are_consistent(memory):
    arcs, space, decomposition, out = memory
    rng = np.random.default_rng(12)
    _, n_arcs, counts = draw_arcs(rng, LONGEST, arcs, density=0.7)
    scores, heads = draw_scores(rng, counts), np.zeros(LONGEST + 1, np.int32)
    log_z = projective_second_marginals(LONGEST, arcs, scores, True, space, out)
    best = projective_second(LONGEST, arcs, scores, True, space, heads)
    score, certain = nonprojective_second(LONGEST, arcs, scores, True, 200, decomposition, heads)
    assert log_z > best
    assert not certain or score >= best - 1e-9
    for a in range(n_arcs):
        siblings = out.siblings[arcs.siblings[a] : arcs.siblings[a + 1]]
        assert siblings.sum() == pytest.approx(out.arcs[a])
    sums = np.add.reduceat(out.arcs[:n_arcs], arcs.first[1 : LONGEST + 1])
    np.testing.assert_allclose(sums, 1.0)

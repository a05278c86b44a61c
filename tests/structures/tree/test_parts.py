"""Numbers of arcs and of second-order parts, and the scores of head assignments."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from second_order_oracle import draw_arcs, draw_scores, plain_parts, plain_score

from hopefear.structures.tree.parts import (
    LEFT,
    RIGHT,
    fill_arcs,
    new_arcs,
    new_part_scores,
    part_counts,
    parts_of,
    score_of,
)

pytestmark = pytest.mark.interpreted


def assignments(arcs, n):
    choices = [arcs.head[arcs.first[m] : arcs.first[m + 1]] for m in range(1, n + 1)]
    for heads in itertools.product(*choices):
        yield np.array([0, *heads], np.int32)


@pytest.mark.parametrize("seed", range(20))
def test_arcs_of_a_head_come_nearest_first_and_every_part_has_one_number(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 7))
    arcs, n_arcs, counts = draw_arcs(rng, n)
    assert n_arcs == counts.arcs == arcs.first[n + 1]
    siblings, grands = set(), set()
    for a in range(n_arcs):
        h, m = int(arcs.head[a]), int(arcs.mod[a])
        side = RIGHT if m > h else LEFT
        assert arcs.lookup[m * (n + 1) + h] == a
        assert arcs.first[m] <= a < arcs.first[m + 1]
        kids = arcs.kids[arcs.kids_first[2 * h + side] : arcs.kids_first[2 * h + side + 1]]
        assert kids[arcs.rank[a]] == a
        assert sorted(kids, key=lambda b: abs(arcs.mod[b] - h)) == list(kids)
        siblings |= {arcs.siblings[a] + k for k in range(arcs.rank[a] + 1)}
        grands |= {arcs.grands[a] + k for k in range(arcs.first[h + 1] - arcs.first[h]) if h > 0}
    assert (
        sorted(siblings) == list(range(counts.siblings))
        and counts.siblings == arcs.siblings[n_arcs]
    )
    assert sorted(grands) == list(range(counts.grands)) and counts.grands == arcs.grands[n_arcs]
    assert sorted(arcs.kids[:n_arcs]) == list(range(n_arcs))


@pytest.mark.parametrize("seed", range(10))
def test_scores_and_parts_of_all_assignments_of_candidates_cyclic_ones_too(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 5))
    arcs, _, counts = draw_arcs(rng, n)
    scores = draw_scores(rng, counts)
    siblings, lasts, grands = np.zeros((3, n + 1), np.int64)
    for heads in assignments(arcs, n):
        assert score_of(arcs, n, scores, heads) == pytest.approx(
            plain_score(arcs, n, scores, heads)
        )
        parts_of(arcs, n, heads, siblings, lasts, grands)
        rows = zip(siblings[1:], lasts[1:], grands[1:], strict=True)
        assert [tuple(map(int, row)) for row in rows] == plain_parts(arcs, n, heads)


def test_a_head_that_is_no_candidate_has_no_score_and_no_parts():
    arcs = new_arcs(3, 9)
    starts, heads = np.array([0, 1, 2, 3]), np.array([0, 1, 2], np.int32)
    counts = part_counts(starts, heads, 3)
    fill_arcs(arcs, 3, starts, heads)
    scores = new_part_scores(counts)
    siblings, lasts, grands = np.zeros((3, 4), np.int64)
    tree = np.array([0, 0, 0, 2], np.int32)
    assert score_of(arcs, 3, scores, tree) == -np.inf
    parts_of(arcs, 3, tree, siblings, lasts, grands)
    assert siblings.tolist() == [-1, 0, -1, 2] and grands.tolist() == [-1, -1, -1, -1]


def test_the_same_memory_serves_sentences_of_all_lengths():
    rng = np.random.default_rng(3)
    memory = new_arcs(8, 80)
    for n in (8, 1, 5, 3, 7):
        state = rng.bit_generator.state
        own, n_arcs, counts = draw_arcs(rng, n)
        rng.bit_generator.state = state
        shared, *_ = draw_arcs(rng, n, memory)
        assert shared is memory
        for name, size in (("kids", n_arcs), ("rank", n_arcs), ("siblings", n_arcs + 1)):
            expected = getattr(own, name)[:size].tolist()
            assert getattr(shared, name)[:size].tolist() == expected
        assert shared.lookup[: (n + 1) ** 2].tolist() == own.lookup[: (n + 1) ** 2].tolist()
        assert counts.siblings == shared.siblings[n_arcs]

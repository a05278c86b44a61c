"""Every structure, in all its shapes, against the list of all its outputs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from chain_oracle import tiny_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from list_oracle import rows_of

from hopefear.structures.chain.chain import Chain
from hopefear.structures.chain.searches import AStar, Beam, ListViterbi
from hopefear.structures.chain.theta import Limits
from hopefear.structures.classes import Binary, Multiclass
from hopefear.structures.nbest import NBest
from hopefear.testing import check_structure, tiny_structures

pytestmark = pytest.mark.interpreted

STRUCTURES = tiny_structures() | {"four classes": Multiclass(5, 4, bias=0.7), "plain": Binary(5)}
CHAINS = {
    f"{labels} labels, order {order}, {edges} edges": Chain.new(4, labels, edges, order)
    for labels, order, edges in itertools.product((2, 3), (1, 2), (0, 2))
} | {"4 labels": Chain.new(3, 4)}
SEARCHES = [AStar(), ListViterbi(), Beam(81)]  # more than the beam ever needs


@pytest.mark.parametrize("name", STRUCTURES)
def test_structure(name):
    check_structure(STRUCTURES[name])


@pytest.mark.parametrize("values", [False, True], ids=["unit", "values"])
@pytest.mark.parametrize("name", CHAINS)
def test_chains(name, values):
    chain = CHAINS[name]
    check_structure(chain, tiny_rows(1, [3, 1, 2], chain, values), seed=3)


@pytest.mark.parametrize("search", SEARCHES, ids=["astar", "list", "beam"])
@pytest.mark.parametrize("order", [1, 2])
def test_searches_and_limits_of_chains(order, search):
    """Some labels and steps are forbidden, but nothing of the gold outputs."""
    chain = Chain.new(4, 3, 2 * (order - 1), order, search)
    check_structure(chain, tiny_rows(2, [2, 3], chain))
    rows, rng, W, L = tiny_rows(2, [3, 1, 2], chain), np.random.default_rng(7), chain.width, 3
    start, end, step = np.zeros(W), np.zeros(W), np.zeros((W, W))
    step[:L, :L][rng.random((L, L)) < 0.4] = -np.inf
    for first, last in itertools.pairwise(rows.starts.tolist()):
        gold = rows.labels[first:last]
        step[gold[1:], gold[:-1]] = 0
    spare = set(range(L)) - set(rows.labels[rows.starts[:-1]].tolist())
    start[sorted(spare)] = -np.inf
    spare = set(range(L)) - set(rows.labels[rows.starts[1:] - 1].tolist())
    end[sorted(spare)] = -np.inf
    tokens = np.zeros((rows.labels.size, W))
    others = (rows.labels + rng.integers(1, L, rows.labels.size)) % L
    tokens[np.arange(others.size), others] = -np.inf
    limits = Limits(*(a.ravel().astype(np.float32) for a in (start, end, step, tokens)))
    check_structure(chain._replace(limits=limits), rows)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=3),
    st.integers(0, 10**6),
    st.sampled_from([1, 2, 40]),
    st.booleans(),
    st.booleans(),
)
def test_lists_of_small_whole_numbers(sizes, seed, span, tied, fixed):
    """Scores, costs and their sums often tie, exactly."""
    rng = np.random.default_rng(seed)
    matrices = [rng.integers(-span, span + 1, (n, 4)) * (rng.random((n, 4)) < 0.7) for n in sizes]
    costs = [rng.integers(0, 3, n) for n in sizes]
    rows = rows_of(matrices, costs, [rng.integers(-2, 3, n) for n in sizes] if fixed else None)
    check_structure(NBest(4, tied), rows, seed)

"""Every method of the chain against the list of all outputs."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from chain_oracle import Sums, World, softmax, tiny_rows

from hopefear.core.interfaces import n_weights
from hopefear.core.workspace import DenseWeights, Example
from hopefear.costs.hamming import Hamming
from hopefear.costs.weighted import Weighted
from hopefear.data.sequences import SequenceDataset, TokenRows
from hopefear.errors import HopefearError
from hopefear.losses.nbest_mira import NBestMIRA
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.risk import Risk
from hopefear.losses.sapo import SAPO
from hopefear.structures.chain.chain import Chain
from hopefear.structures.chain.searches import Beam, search_named
from hopefear.structures.chain.theta import Limits, no_limits

pytestmark = pytest.mark.interpreted

ALL = 81  # more candidates than the beam and the lists below ever need
SHAPES = [
    {"attributes": 5, "labels": labels, "order": order, "edge_attributes": edges}
    for labels, order, edges in itertools.product((2, 3, 4), (1, 2), (0, 3))
]
NAMES = [f"{s['labels']}-labels-order-{s['order']}-edges-{s['edge_attributes']}" for s in SHAPES]
shapes = pytest.mark.parametrize("shape", SHAPES, ids=NAMES)
LENGTHS = [3, 1, 2, 3]


class Case(NamedTuple):
    chain: Chain
    x: Example
    work: object
    world: World
    w: np.ndarray


def cases(shape, whole=False, values=True, depth=5, lengths=LENGTHS, seed=1, loss=None, **more):
    """Every sequence of a tiny dataset, scored; one workspace for all, as in training."""
    chain = Chain.new(**shape, **more)
    rows = tiny_rows(seed, lengths, chain, values)
    rng = np.random.default_rng(seed + 1)
    n = n_weights(chain)
    work = chain.workspace(rows, SAPO(n=depth) if loss is None else loss, np.float64)
    for i in range(len(lengths)):
        w = rng.integers(-1, 2, n).astype(float) if whole else rng.normal(size=n)
        x = Example(rows, i)
        chain.score(x, DenseWeights(w), work.theta)
        yield Case(chain, x, work, World(chain, rows, i, w), w)


def labels_of(case, y):
    return tuple(int(c) for c in y[: len(case.world.ys[0])])


def direction(case, merge=False):
    """F' mu as the structure gives it; the same on both ways."""
    n = n_weights(case.chain)
    row = Sums(np.zeros(n), np.zeros(n, np.int64), merge)
    case.chain.scatter(case.x, case.work.mu, row)
    if merge:
        assert row.times.max(initial=0) <= 1
    return row.g


def test_a_narrow_beam_is_not_exact_and_never_better():
    missed = 0
    shape = {"attributes": 5, "labels": 4}
    for case in cases(shape, lengths=[4] * 12, search=Beam(1)):
        chain, x, work, world = case[:4]
        assert chain.k_best(x, work.theta, None, 0.0, work.outputs[:3]) >= 1
        y = labels_of(case, work.outputs[0])
        score = world.scores[world.ys.index(y)]
        assert score <= world.scores.max() + 1e-9
        missed += score < world.scores.max() - 1e-9
    assert missed > 0


@shapes
def test_expected_costs_of_scores_that_need_logarithms(shape):
    chain = Chain.new(**shape)
    rows = tiny_rows(1, [3, 1, 4], chain)
    work = chain.workspace(rows, Risk(Hamming()), np.float64)
    rng = np.random.default_rng(9)
    for i in range(3):
        w = 300.0 * rng.normal(size=n_weights(chain))
        x, world = Example(rows, i), World(chain, rows, i, w)
        chain.score(x, DenseWeights(w), work.theta)
        P, costs = softmax(world.scores), world.costs(Hamming())
        value = chain.risk_and_gradient(x, work.theta, Hamming(), 1.0, 1.0, work.mu)
        assert value == pytest.approx(P @ costs, rel=1e-9, abs=1e-12)
        wanted = -(P * (costs - P @ costs)) @ world.F
        np.testing.assert_allclose(direction(Case(chain, x, work, world, w)), wanted, atol=1e-9)


@pytest.mark.parametrize("order", [1, 2])
def test_every_mixture_of_a_long_sequence_has_room(order):
    """Gold and prediction differ everywhere, so that no two mixtures share an edge part."""
    T, labels = 60, 24
    chain = Chain.new(attributes=2, labels=labels, order=order)
    rows = tiny_rows(1, [T], chain)
    x, work = Example(rows, 0), chain.workspace(rows, SAPO(n=1), np.float64)
    rng = np.random.default_rng(4)
    y = ((rows.labels + rng.integers(1, labels, T)) % labels).astype(np.int32)
    mixture = np.zeros(T, np.int32)
    for first in range(T):
        for last in range(first, T):
            taken = np.zeros(T, np.uint8)
            taken[first : last + 1] = 1
            chain.mix_labels(x, y, taken, mixture)
            chain.add_difference(x, mixture, 1.0, work.mu, first == last == 0)
    assert work.mu.extent[2] <= work.mu.cells.size


def test_limits_that_allow_everything_change_nothing():
    shape = {"attributes": 5, "labels": 3}
    zeros = [np.zeros(n, np.float32) for n in (4, 4, 16)]
    free = Limits(*zeros, np.empty(0, np.float32))
    for a, b in zip(cases(shape, limits=no_limits()), cases(shape, limits=free), strict=True):
        np.testing.assert_array_equal(a.work.theta.scores.nodes, b.work.theta.scores.nodes)
        np.testing.assert_array_equal(a.work.theta.scores.edges, b.work.theta.scores.edges)


def test_coordinates_are_counted():
    plain = Chain.new(attributes=7, labels=5)
    assert (plain.width, plain.n_labels) == (8, 5)
    assert n_weights(plain) == (7 + 8) * 8
    rich = Chain.new(attributes=7, labels=5, edge_attributes=2, order=2)
    assert n_weights(rich) == (7 + 3 * 8 + 64) * 8


@pytest.mark.parametrize(("name", "keep", "message"), [("dfs", 5, "astar, list, beam"),
                                                       ("beam", 0, "at least 1")])  # fmt: skip
def test_unknown_searches_are_refused(name, keep, message):
    with pytest.raises(HopefearError, match=message):
        search_named(name, keep)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (np.zeros((2, 3)), "square"),
        (np.array([[0.0, -1.0], [1.0, 0.0]]), "not negative"),
        (np.array([[1.0, 1.0], [1.0, 0.0]]), "0 for the right label"),
        (np.array([[0.0, np.inf], [1.0, 0.0]]), "finite"),
    ],
)
def test_prices_that_make_no_sense_are_refused(table, message):
    assert message in Weighted(table).parameter_error()


@pytest.mark.parametrize("loss", [Perceptron(), SAPO(n=1), SAPO(n=3), NBestMIRA(n=2)], ids=str)
def test_a_prediction_that_wins_by_rounding_still_wins(loss):
    """In float32 the first token's advantage is lost in the sum, so gold is not predicted."""
    chain = Chain.new(attributes=2, labels=2)
    rows = TokenRows([0, 2], [0, 1, 2], [0, 1], [], [0], [], [], [1, 0], [1.0])
    rows = SequenceDataset(rows, ("a", "b"), None).rows
    w = np.zeros(n_weights(chain), np.float32)
    w[1], w[chain.width] = 1e-4, 1e4
    x, work = Example(rows, 0), chain.workspace(rows, loss, np.float32)
    chain.score(x, DenseWeights(w), work.theta)
    assert loss.subgradient(chain, x, work) == 1
    chain.argmax(x, work.theta, work.y)
    assert work.y.tolist() == [0, 0]
    assert work.gold_margin[0] == 0.0

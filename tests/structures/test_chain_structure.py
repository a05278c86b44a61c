"""Every method of the chain against the list of all outputs."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np
import pytest
from chain_oracle import Sums, World, softmax, tiny_rows

from hopefear.core.workspace import Example, Ones, Plain
from hopefear.costs.hamming import Hamming
from hopefear.costs.weighted import Weighted
from hopefear.data.sequences import SequenceDataset, TokenRows
from hopefear.errors import HopefearError
from hopefear.losses.nbest_mira import NBestMIRA
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.risk import Risk
from hopefear.losses.sapo import SAPO
from hopefear.structures.chain.chain import Chain
from hopefear.structures.chain.searches import AStar, Beam, ListViterbi, search_named
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
    n = chain.n_coordinates()
    work = chain.workspace(rows, SAPO(n=depth) if loss is None else loss, np.float64)
    for i in range(len(lengths)):
        w = rng.integers(-1, 2, n).astype(float) if whole else rng.normal(size=n)
        x = Example(rows, i)
        chain.score(x, Plain(w), work.theta)
        yield Case(chain, x, work, World(chain, rows, i, w), w)


def labels_of(case, y):
    return tuple(int(c) for c in y[: len(case.world.ys[0])])


def direction(case, merge=False):
    """F' mu as the structure gives it; the same on both ways."""
    n = case.chain.n_coordinates()
    row = Sums(np.zeros(n), np.zeros(n, np.int64), merge)
    case.chain.scatter(case.x, case.work.mu, row)
    if merge:
        assert row.times.max(initial=0) <= 1
    return row.g


def check_direction(case, wanted):
    """Both ways to scatter, twice, and the norms; in an order that would show stale sums."""
    np.testing.assert_allclose(direction(case), wanted, atol=1e-12)
    spread = np.arange(1.0, wanted.size + 1)
    norm = case.chain.norm(case.x, case.work.mu, Plain(spread))
    assert norm == pytest.approx(spread @ wanted**2, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(direction(case, merge=True), wanted, atol=1e-12)
    np.testing.assert_allclose(direction(case), wanted, atol=1e-12)
    norm = case.chain.norm(case.x, case.work.mu, Ones())
    assert norm == pytest.approx(wanted @ wanted, rel=1e-9, abs=1e-12)


@shapes
@pytest.mark.parametrize("whole", [False, True], ids=["odd", "ties"])
def test_best_output_and_best_rival(shape, whole):
    for case in cases(shape, whole, values=not whole):
        chain, x, work, world = case[:4]
        best = world.ranked()[0]
        chain.argmax(x, work.theta, work.y)
        assert labels_of(case, work.y) == world.ys[best]
        rival = next(k for k in world.ranked() if k != world.gold)
        z = chain.margin(x, work.theta, work.y)
        assert labels_of(case, work.y) == world.ys[rival]
        assert z == pytest.approx(world.lead(rival), abs=1e-9)
        z = chain.violation(x, work.theta, work.y)
        if best == world.gold:
            assert z > 0
            assert chain.right(x, work.y)
        else:
            assert z == pytest.approx(world.lead(best), abs=1e-9)
            assert labels_of(case, work.y) == world.ys[best]
            assert not chain.right(x, work.y)


@shapes
def test_leads_charges_and_contrasts_of_all_outputs(shape):
    rng = np.random.default_rng(5)
    table = rng.uniform(0, 2, (shape["labels"],) * 2)
    np.fill_diagonal(table, 0)
    for case in cases(shape, lengths=[2, 3, 1]):
        chain, x, work, world = case[:4]
        hamming, weighted = world.costs(Hamming(0.5)), world.costs(Weighted(table))
        assert chain.places(x) == len(world.ys[0])
        for k, y in enumerate(world.ys):
            path = np.array(y, np.int32)
            assert chain.lead(x, work.theta, path) == pytest.approx(world.lead(k), abs=1e-9)
            assert chain.charge(x, Hamming(0.5), path) == pytest.approx(hamming[k])
            assert chain.charge(x, Weighted(table), path) == pytest.approx(weighted[k])
            wrong = [bool(chain.wrong_at(x, path, t)) for t in range(len(y))]
            assert wrong == [a != b for a, b in zip(y, world.ys[world.gold], strict=True)]
            if k % 3 == 0:
                chain.contrast(x, path, 0.5, work.mu)
                check_direction(case, 0.5 * world.delta(k))


@shapes
@pytest.mark.parametrize("values", [False, True], ids=["unit", "values"])
def test_pulls_add_up_and_nothing_is_left_over(shape, values):
    for case in cases(shape, values=values):
        chain, x, work, world = case[:4]
        wanted = np.zeros(chain.n_coordinates())
        chain.clear(x, work.mu)
        for step, k in enumerate(world.ranked()[:5]):
            chain.pull(x, np.array(world.ys[k], np.int32), 1.0 + step, work.mu)
            wanted += (1.0 + step) * world.delta(k)
            check_direction(case, wanted)
        chain.clear(x, work.mu)
        check_direction(case, 0 * wanted)


@shapes
@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["fear", "hope"])
@pytest.mark.parametrize("whole", [False, True], ids=["odd", "ties"])
def test_fear_and_hope(shape, sign, whole):
    table = np.abs(np.subtract.outer(np.arange(shape["labels"]), np.arange(shape["labels"]))) * 1.0
    for cost in (Hamming(), Hamming(2), Weighted(table)):
        for case in cases(shape, whole, values=not whole, seed=3):
            chain, x, work, world = case[:4]
            costs = world.costs(cost)
            wanted = world.ranked(world.scores + sign * costs)[0]
            z, price = chain.seek(x, work.theta, cost, sign, work.y)
            assert labels_of(case, work.y) == world.ys[wanted]
            assert z == pytest.approx(world.lead(wanted), abs=1e-9)
            assert price == pytest.approx(costs[wanted])
            chain.argmax(x, work.theta, work.y)  # scores without costs are still there
            assert labels_of(case, work.y) == world.ys[world.ranked()[0]]


@shapes
@pytest.mark.parametrize(
    "search", [AStar(), ListViterbi(), Beam(ALL)], ids=["astar", "list", "beam"]
)
@pytest.mark.parametrize("whole", [False, True], ids=["odd", "ties"])
def test_candidates_of_every_search(shape, search, whole):
    for case in cases(shape, whole, values=not whole, depth=7, search=search):
        chain, x, work, world = case[:4]
        for n, ratio in ((1, 0.0), (4, 0.0), (7, 0.0), (7, 3.0)):
            wanted = world.top(n, ratio)
            count = chain.candidates(x, work.theta, None, n, ratio)
            found = [labels_of(case, chain.candidate(x, work.theta, k)) for k in range(count)]
            assert found == [world.ys[k] for k in wanted]


def test_a_narrow_beam_is_not_exact_and_never_better():
    missed = 0
    shape = {"attributes": 5, "labels": 4}
    for case in cases(shape, lengths=[4] * 12, search=Beam(1)):
        chain, x, work, world = case[:4]
        assert chain.candidates(x, work.theta, None, 3, 0.0) >= 1
        y = labels_of(case, chain.candidate(x, work.theta, 0))
        score = world.scores[world.ys.index(y)]
        assert score <= world.scores.max() + 1e-9
        missed += score < world.scores.max() - 1e-9
    assert missed > 0


@shapes
@pytest.mark.parametrize("values", [False, True], ids=["unit", "values"])
def test_expectations(shape, values):
    for case in cases(shape, values=values):
        chain, x, work, world = case[:4]
        P = softmax(world.scores)
        value = chain.expect(x, work.theta, 0.7, work.mu)
        assert value == pytest.approx(-np.log(P[world.gold]), rel=1e-9)
        check_direction(case, 0.7 * (world.F[world.gold] - P @ world.F))


def check_costs(case, cost, sharp, tolerance=1e-9):
    """Expected cost and the distance from what costs ask for, and their slopes."""
    chain, x, work, world = case[:4]
    costs, P = world.costs(cost), softmax(sharp * world.scores)
    value = chain.expect_cost(x, work.theta, cost, sharp, 0.7, work.mu)
    assert value == pytest.approx(P @ costs, rel=tolerance, abs=tolerance)
    slope = sharp * (P * (costs - P @ costs)) @ world.F
    check_direction(case, -0.7 * slope)
    P, Q = softmax(world.scores), softmax(-sharp * costs)
    value = chain.expect_good(x, work.theta, cost, sharp, 0.7, work.mu)
    apart = Q @ (np.log(Q) - (world.scores - np.logaddexp.reduce(world.scores)))
    assert value == pytest.approx(apart, rel=tolerance, abs=tolerance)
    check_direction(case, 0.7 * (Q - P) @ world.F)


@shapes
@pytest.mark.parametrize("sharp", [1.0, 0.3, 4.0])
def test_expected_costs(shape, sharp):
    table = np.random.default_rng(5).uniform(0, 2, (shape["labels"],) * 2)
    np.fill_diagonal(table, 0)
    for cost in (Hamming(), Weighted(table)):
        for case in cases(shape, loss=Risk(cost), lengths=[3, 1, 2, 4]):
            check_costs(case, cost, sharp)
            case.chain.argmax(case.x, case.work.theta, case.work.y)  # scores are still there
            assert labels_of(case, case.work.y) == case.world.ys[case.world.ranked()[0]]


@shapes
def test_expected_costs_of_scores_that_need_logarithms(shape):
    chain = Chain.new(**shape)
    rows = tiny_rows(1, [3, 1, 4], chain)
    work = chain.workspace(rows, Risk(Hamming()), np.float64)
    rng = np.random.default_rng(9)
    for i in range(3):
        w = 300.0 * rng.normal(size=chain.n_coordinates())
        x, world = Example(rows, i), World(chain, rows, i, w)
        chain.score(x, Plain(w), work.theta)
        P, costs = softmax(world.scores), world.costs(Hamming())
        value = chain.expect_cost(x, work.theta, Hamming(), 1.0, 1.0, work.mu)
        assert value == pytest.approx(P @ costs, rel=1e-9, abs=1e-12)
        wanted = -(P * (costs - P @ costs)) @ world.F
        np.testing.assert_allclose(direction(Case(chain, x, work, world, w)), wanted, atol=1e-9)


@shapes
def test_parts_of_an_expectation_do_not_outlive_it(shape):
    for case in cases(shape):
        chain, x, work, world = case[:4]
        chain.expect(x, work.theta, 1.0, work.mu)
        chain.contrast(x, np.array(world.ys[1], np.int32), 1.0, work.mu)
        check_direction(case, world.delta(1))
        chain.expect(x, work.theta, 1.0, work.mu)
        check_direction(case, world.F[world.gold] - softmax(world.scores) @ world.F)


@shapes
def test_parts_of_a_longer_sequence_do_not_outlive_a_shorter_one(shape):
    for number, case in enumerate(cases(shape, lengths=[4, 1, 2, 4])):
        chain, x, work, world = case[:4]
        if number < 3:
            chain.expect(x, work.theta, 1.0, work.mu)
            continue
        chain.contrast(x, np.array(world.ys[1], np.int32), 1.0, work.mu)
        check_direction(case, world.delta(1))


@shapes
def test_inner_products_of_candidates(shape):
    for case in cases(shape):
        chain, x, work, world = case[:4]
        count = chain.candidates(x, work.theta, None, 5, 0.0)
        products = np.full((5, 5), np.nan)
        chain.gram(x, work.theta, count, work.mu, products)
        D = np.array([world.delta(k) for k in world.top(5)])
        np.testing.assert_allclose(products[:count, :count], D @ D.T, atol=1e-9)


@shapes
def test_mixtures_of_gold_and_another_output(shape):
    for case in cases(shape):
        chain, x, work, world = case[:4]
        gold = world.ys[world.gold]
        other = world.ys[(world.gold + 1) % len(world.ys)]
        y, wanted = np.array(other, np.int32), np.zeros(chain.n_coordinates())
        chain.clear(x, work.mu)
        for taken in itertools.product((0, 1), repeat=len(gold)):
            mixture = tuple(b if s else a for a, b, s in zip(gold, other, taken, strict=True))
            k = world.ys.index(mixture)
            mixed = np.zeros(len(gold), np.int32)
            chain.mix(x, y, np.array(taken, np.uint8), mixed)
            assert tuple(mixed) == mixture
            assert chain.lead(x, work.theta, mixed) == pytest.approx(world.lead(k), abs=1e-9)
            chain.pull(x, mixed, 0.5, work.mu)
            wanted += 0.5 * world.delta(k)
        check_direction(case, wanted)


@pytest.mark.parametrize("order", [1, 2])
def test_every_mixture_of_a_long_sequence_has_room(order):
    """Gold and prediction differ everywhere, so that no two mixtures share an edge part."""
    T, labels = 60, 24
    chain = Chain.new(attributes=2, labels=labels, order=order)
    rows = tiny_rows(1, [T], chain)
    x, work = Example(rows, 0), chain.workspace(rows, SAPO(n=1), np.float64)
    rng = np.random.default_rng(4)
    y = ((rows.labels + rng.integers(1, labels, T)) % labels).astype(np.int32)
    chain.clear(x, work.mu)
    mixture = np.zeros(T, np.int32)
    for first in range(T):
        for last in range(first, T):
            taken = np.zeros(T, np.uint8)
            taken[first : last + 1] = 1
            chain.mix(x, y, taken, mixture)
            chain.pull(x, mixture, 1.0, work.mu)
    assert work.mu.extent[2] <= work.mu.cells.size


def limits(chain, rng, rows, i):
    """Some labels and steps forbidden, but nothing of the gold output of sequence ``i``."""
    W, L, tokens = chain.width, chain.labels, rows.labels.size
    gold = rows.labels[rows.starts[i] : rows.starts[i + 1]]
    start, end, step = np.zeros(W), np.zeros(W), np.zeros((W, W))
    start[(gold[0] + 1) % L] = -np.inf
    end[(gold[-1] + 1) % L] = -np.inf
    step[:L, :L][rng.random((L, L)) < 0.3] = -np.inf
    step[gold[1:], gold[:-1]] = 0
    table = np.zeros((tokens, W))
    table[np.arange(tokens), (rows.labels + rng.integers(1, L, tokens)) % L] = -np.inf
    return Limits(*(a.ravel().astype(np.float32) for a in (start, end, step, table)))


@shapes
def test_what_is_not_allowed_is_never_found(shape):
    chain = Chain.new(**shape)
    rng = np.random.default_rng(7)
    rows = tiny_rows(2, LENGTHS, chain)
    for search, i in itertools.product((AStar(), ListViterbi(), Beam(ALL)), range(len(LENGTHS))):
        limited = chain._replace(limits=limits(chain, rng, rows, i), search=search)
        w = rng.normal(size=chain.n_coordinates())
        world = World(limited, rows, i, w)
        x, work = Example(rows, i), limited.workspace(rows, SAPO(n=200), np.float64)
        limited.score(x, Plain(w), work.theta)
        count = limited.candidates(x, work.theta, None, 200, 0.0)
        case = Case(limited, x, work, world, w)
        found = [labels_of(case, limited.candidate(x, work.theta, k)) for k in range(count)]
        wanted = world.top(200) if type(search) is not Beam else world.top(count)
        assert found == [world.ys[k] for k in wanted]
        value = limited.expect(x, work.theta, 1.0, work.mu)
        P = softmax(world.scores)
        assert value == pytest.approx(-np.log(P[world.gold]), rel=1e-9)
        check_direction(case, world.F[world.gold] - P @ world.F)
        risky = case._replace(work=limited.workspace(rows, Risk(Hamming()), np.float64))
        limited.score(x, Plain(w), risky.work.theta)
        check_costs(risky, Hamming(), 0.8)
        limited.seek(x, work.theta, Hamming(), 1.0, work.y)
        fear = world.ranked(world.scores + world.costs(Hamming()))[0]
        assert labels_of(case, work.y) == world.ys[fear]


def test_limits_that_allow_everything_change_nothing():
    shape = {"attributes": 5, "labels": 3}
    zeros = [np.zeros(n, np.float32) for n in (4, 4, 16)]
    free = Limits(*zeros, np.empty(0, np.float32))
    for a, b in zip(cases(shape, limits=no_limits()), cases(shape, limits=free), strict=True):
        np.testing.assert_array_equal(a.work.theta.scores.nodes, b.work.theta.scores.nodes)
        np.testing.assert_array_equal(a.work.theta.scores.edges, b.work.theta.scores.edges)


def test_coordinates_are_counted():
    plain = Chain.new(attributes=7, labels=5)
    assert (plain.width, plain.n_labels()) == (8, 5)
    assert plain.n_coordinates() == (7 + 8) * 8
    rich = Chain.new(attributes=7, labels=5, edge_attributes=2, order=2)
    assert rich.n_coordinates() == (7 + 3 * 8 + 64) * 8


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
    assert message in Weighted(table).fault()


@pytest.mark.parametrize("loss", [Perceptron(), SAPO(n=1), SAPO(n=3), NBestMIRA(n=2)], ids=str)
def test_a_prediction_that_wins_by_rounding_still_wins(loss):
    """In float32 the first token's advantage is lost in the sum, so gold is not predicted."""
    chain = Chain.new(attributes=2, labels=2)
    rows = TokenRows([0, 2], [0, 1, 2], [0, 1], [], [0], [], [], [1, 0], [1.0])
    rows = SequenceDataset(rows, ("a", "b"), None).rows
    w = np.zeros(chain.n_coordinates(), np.float32)
    w[1], w[chain.width] = 1e-4, 1e4
    x, work = Example(rows, 0), chain.workspace(rows, loss, np.float32)
    chain.score(x, Plain(w), work.theta)
    assert loss.subgradient(chain, x, work) == 1
    chain.argmax(x, work.theta, work.y)
    assert work.y.tolist() == [0, 0]
    assert work.gap[0] == 0.0

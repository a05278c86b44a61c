"""Structured SVMs and Rampion in batch: optima against a QP solver, gaps against what is left."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from chain_oracle import tiny_rows as chain_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from hopefear.core.interfaces import n_weights
from hopefear.costs.regret import Regret
from hopefear.data.generators import sparse_linear
from hopefear.data.sparse import SparseDataset
from hopefear.errors import CombinationError, HopefearError, ModelError
from hopefear.losses.hinge import Hinge
from hopefear.losses.log import Log
from hopefear.losses.ramp import Ramp
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.recipes import CHAIN_RECIPES, LIST_RECIPES, RECIPES, TREE_RECIPES, Scale
from hopefear.structures.chain.chain import Chain
from hopefear.structures.classes import Binary
from hopefear.structures.nbest import NBest
from hopefear.tasks.classify.estimator import Classifier
from hopefear.testing.trees import tiny_structures
from hopefear.testing.worlds import World, outputs_of, tiny_rows
from hopefear.training import cccp, cutting_plane, frank_wolfe
from hopefear.training.batch import Batch
from hopefear.training.cccp import ConcaveConvex
from hopefear.training.checkpoints import Checkpoints
from hopefear.training.cutting_plane import CuttingPlane, on_simplex
from hopefear.training.frank_wolfe import Blocks, FrankWolfe
from hopefear.training.loop import fit
from hopefear.training.m3n import M3N
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes, Whole

pytestmark = pytest.mark.interpreted

KINDS = ("binary", "multiclass", "chain", "lists", "projective trees", "nonprojective trees")
STRUCTURES = {name: tiny_structures()[name] for name in KINDS}
STRUCTURES["first-order chain"] = Chain.new(attributes=4, labels=3)
STRUCTURES["short chain"] = Chain.new(attributes=2, labels=2)
CHAINS = [name for name, s in STRUCTURES.items() if isinstance(s, Chain)]
L2 = 2.0
# Frank-Wolfe is slow in the end, cutting planes are not.
LEARNERS = {
    "one": functools.partial(CuttingPlane, L2, 300, 1e-6, slack="one"),
    "n": functools.partial(CuttingPlane, L2, 300, 1e-6, slack="n"),
    "bcfw": functools.partial(FrankWolfe, L2, 60, 2e-3),
    "average": functools.partial(FrankWolfe, L2, 60, 2e-3, average=True),
    "m3n": functools.partial(M3N, L2, 60, 2e-3),
}


@pytest.fixture
def few_passes(monkeypatch):
    """Rampion waits less long for the gap, which many tests do not ask for."""
    monkeypatch.setattr(cccp, "_LONGER", 3)


def hinge_for(structure):
    return StructuredHinge(Regret()) if isinstance(structure, NBest) else StructuredHinge()


def ramp_for(structure):
    return Ramp(hinge_for(structure).cost)


def cases():
    return [
        (name, learner)
        for name in STRUCTURES
        for learner in LEARNERS
        if learner != "m3n" or name in CHAINS
    ]


def rows_of(name, seed=3):
    return tiny_rows(STRUCTURES[name], seed)


def enumerated(structure, rows, loss):
    """Directions and costs of all outputs of each example."""
    planes = []
    for i, weight in enumerate(rows.weights):
        outputs = outputs_of(structure, rows, i)
        gold, fixed = (
            int(np.argmax(outputs.good)),
            np.asarray(outputs.fixed) + np.zeros(len(outputs.F)),
        )
        lead = fixed[gold] - fixed
        planes.append(
            (weight * (outputs.F[gold] - outputs.F), weight * (outputs.price(loss.cost) - lead))
        )
    return planes


def primal(planes, w, l2=L2):
    return l2 * w @ w + sum(float((b - G @ w).max()) for G, b in planes)


@functools.cache
def solved(name, l2=L2, seed=3):
    """The minimum, by sequential quadratic programming with all constraints written out."""
    structure, rows = STRUCTURES[name], rows_of(name, seed)
    planes = enumerated(structure, rows, hinge_for(structure))
    # Weights beyond the span of the directions are 0.
    basis = np.linalg.svd(np.concatenate([G for G, _ in planes]), full_matrices=False)[2]
    d, n = len(basis), len(planes)
    A = np.concatenate([np.c_[G @ basis.T, np.tile(np.eye(n)[i], (len(b), 1))]
                        for i, (G, b) in enumerate(planes)])  # fmt: skip
    floor = np.concatenate([b for _, b in planes])
    start = np.r_[np.zeros(d), [b.max() for _, b in planes]]
    answer = minimize(
        lambda v: l2 * v[:d] @ v[:d] + v[d:].sum(),
        start,
        jac=lambda v: np.r_[2 * l2 * v[:d], np.ones(n)],
        constraints={"type": "ineq", "fun": lambda v: A @ v - floor, "jac": lambda v: A},
        method="SLSQP",
        options={"maxiter": 1000, "ftol": 1e-12},
    )
    assert answer.status in (0, 8), answer.message  # 8: no better in floating point
    return primal(planes, basis.T @ answer.x[:d], l2), planes


def at_work(name, learner, seed=3, **more):
    structure = STRUCTURES[name]
    built = LEARNERS[learner](loss=hinge_for(structure), **more)
    return built.trainer(structure, rows_of(name, seed))


def run(trainer, iterations=None, seed=0):
    rng = np.random.default_rng(seed)
    n = trainer.rows.weights.size
    for _ in range(trainer.learner.max_iter if iterations is None else iterations):
        if trainer.settled():
            break
        trainer.learn(trainer.rows, rng.permutation(n))
    return trainer


@pytest.mark.parametrize(("name", "learner"), cases())
def test_the_optimum_is_that_of_a_qp_solver(name, learner):
    minimum, planes = solved(name)
    trainer = run(at_work(name, learner))
    value = primal(planes, trainer.w)
    assert value == pytest.approx(trainer.values[-1], rel=1e-9)
    assert trainer.dual <= minimum * (1 + 1e-6)
    assert minimum <= value * (1 + 1e-6)
    assert value == pytest.approx(minimum, rel=1e-6 if learner in ("one", "n") else 5e-3)


def test_all_come_to_the_same_objective():
    name, l2 = "short chain", 1.0
    minimum, _ = solved(name, l2)
    structure, rows = STRUCTURES[name], rows_of(name)
    for build in (
        functools.partial(CuttingPlane, slack="one"),
        functools.partial(CuttingPlane, slack="n"),
        FrankWolfe,
        M3N,
    ):
        trainer = run(build(l2, 300, 1e-3, hinge_for(structure)).trainer(structure, rows))
        assert trainer.gap <= 1e-3
        assert trainer.values[-1] == pytest.approx(minimum, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "learner"), [case for case in cases() if case[0] in ("lists", "short chain")]
)
def test_the_gap_is_never_less_than_what_is_left(name, learner):
    minimum, planes = solved(name)
    trainer = at_work(name, learner)
    for _ in range(10):
        trainer.learn()
        value = primal(planes, trainer.w)
        assert value - minimum <= trainer.gap * value + 1e-6 * minimum
        assert trainer.details()["gap"] == trainer.gap
    assert trainer.gap < 0.1
    assert trainer.settled() == (trainer.gap <= trainer.learner.gap)


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 2**31),
    l2=st.floats(0.01, 10.0),
    kind=st.sampled_from([("lists", "one"), ("lists", "n"), ("multiclass", "bcfw"),
                          ("lists", "average"), ("first-order chain", "m3n")]),
)  # fmt: skip
def test_no_weights_do_better_than_the_dual_says(seed, l2, kind):
    name, learner = kind
    structure, rows = STRUCTURES[name], rows_of(name, seed)
    built = LEARNERS[learner](loss=hinge_for(structure)).__class__
    more = {"slack": learner} if built is CuttingPlane else {"average": learner == "average"}
    trainer = built(l2, 50, 0.0, hinge_for(structure), **more).trainer(structure, rows)
    planes, rng = enumerated(structure, rows, hinge_for(structure)), np.random.default_rng(seed)
    for _ in range(4):
        trainer.learn(rows, rng.permutation(rows.weights.size))
    for w in (trainer.w, *(s * rng.normal(size=trainer.w.size) for s in (0.0, 0.1, 0.5))):
        value = primal(planes, w, l2)
        assert trainer.dual <= value + 1e-9 * (1.0 + value)
    assert trainer.values == sorted(trainer.values, reverse=True)


@pytest.mark.parametrize("name", CHAINS)
def test_m3n_takes_the_steps_of_frank_wolfe_and_keeps_probabilities(name):
    one, other = at_work(name, "bcfw"), at_work(name, "m3n")
    for k in range(5):
        order = np.random.default_rng(k).permutation(one.rows.weights.size)
        for trainer in (one, other):
            trainer.learn(one.rows, order)
        np.testing.assert_allclose(other.blocks.w, one.blocks.w, atol=1e-9)
        np.testing.assert_allclose(other.blocks.b, one.blocks.b, atol=1e-9)
    chain, starts = one.structure, one.rows.starts
    for i in range(one.rows.weights.size):
        shares = other.marginals(i)
        assert shares.shape == (starts[i + 1] - starts[i], chain.labels)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0)
        assert shares.min() >= -1e-12
        if chain.order == 1 and not chain.edge_attributes:
            pairs = other.pair_counts(i)
            assert pairs.min() >= -1e-12
            np.testing.assert_allclose(pairs.sum(axis=1), shares[1:].sum(axis=0), atol=1e-9)
            np.testing.assert_allclose(pairs.sum(axis=0), shares[:-1].sum(axis=0), atol=1e-9)
        else:
            with pytest.raises(CombinationError, match="use marginals"):
                other.pair_counts(i)


def test_the_average_weighs_the_k_th_step_by_k():
    trainer = at_work("lists", "average")
    blocks, snapshots, costs = trainer.blocks, [], []
    books = np.zeros(3)
    for i in np.tile(np.arange(trainer.rows.weights.size), 3):
        blocks.step(np.array([i]), trainer.averaging, books)
        snapshots.append(blocks.w.copy())
        costs.append(blocks.b.sum())
    k = np.arange(1, len(costs) + 1)
    wanted = k @ np.array(snapshots) / k.sum()
    np.testing.assert_allclose(blocks.w - trainer.averaging / k.sum(), wanted, atol=1e-12)
    assert books[1] == pytest.approx(k @ np.array(costs) / k.sum())


@pytest.mark.parametrize("learner", ["one", "n", "bcfw"])
def test_a_whole_weight_is_so_many_copies_and_none_is_absence(learner):
    structure, rows = STRUCTURES["lists"], rows_of("lists")
    weights = np.ones(8)
    weights[:3] = 2.0, 0.0, 0.5
    rows = rows._replace(weights=weights)
    planes = enumerated(structure, rows, hinge_for(structure))
    trainer = run(LEARNERS[learner](loss=hinge_for(structure)).trainer(structure, rows))
    assert primal(planes, trainer.w) == pytest.approx(trainer.values[-1], rel=1e-9)
    assert trainer.gap <= trainer.learner.gap
    assert trainer.present == 7


@pytest.mark.parametrize("learner", ["one", "n", "bcfw", "m3n"])
def test_where_it_starts_does_not_matter(learner):
    name = "first-order chain"
    structure, rows = STRUCTURES[name], rows_of(name)
    start = np.random.default_rng(0).normal(size=n_weights(structure))
    built = LEARNERS[learner](loss=hinge_for(structure))
    trainer = built.trainer(structure, rows, start)
    minimum, planes = solved(name)
    if learner in ("one", "n"):
        assert trainer.values[0] == pytest.approx(primal(planes, start))
    assert trainer.dual <= minimum
    assert run(trainer).values[-1] == pytest.approx(minimum, rel=5e-3)


def test_margins_need_no_costs():
    structure, rows = STRUCTURES["multiclass"], rows_of("multiclass")
    values = [
        run(LEARNERS[learner](loss=Hinge()).trainer(structure, rows)).values[-1]
        for learner in ("one", "n", "bcfw")
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-6)
    assert values[0] == pytest.approx(values[2], rel=5e-3)
    # With one price for all classes both hinges are the same.
    assert values[0] == pytest.approx(solved("multiclass")[0], rel=1e-6)


def test_candidates_that_look_alike_leave_a_loss_that_no_weights_mend():
    structure, rows = STRUCTURES["lists"], rows_of("lists")
    rows = rows._replace(values=np.zeros_like(rows.values))
    for learner in ("one", "n", "bcfw"):
        trainer = run(LEARNERS[learner](loss=hinge_for(structure)).trainer(structure, rows))
        assert not trainer.w.any()
        assert trainer.gap <= 1e-9
        assert trainer.values[-1] > 0.0


def test_planes_without_a_share_are_forgotten(monkeypatch):
    monkeypatch.setattr(cutting_plane, "_IDLE", 2)
    for slack in ("one", "n"):
        trainer = run(at_work("first-order chain", slack))
        assert trainer.values[-1] == pytest.approx(solved("first-order chain")[0], rel=1e-5)
        assert len(trainer.b) == len(trainer.alpha) == len(trainer.ptr) - 1
        assert trainer.idle.max() < 2


def test_blocks_make_room(monkeypatch):
    wide = run(at_work("first-order chain", "bcfw"), 8)
    monkeypatch.setattr(frank_wolfe, "_ROOM", 4)
    for learner in ("bcfw", "m3n"):
        narrow = run(at_work("first-order chain", learner), 8)
        np.testing.assert_allclose(narrow.w, wide.w, atol=1e-9)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**31), st.integers(1, 7), st.integers(1, 6))
def test_shares_on_a_simplex_leave_nothing_to_gain(seed, n, rank):
    rng = np.random.default_rng(seed)
    factor = rng.normal(size=(n, rank))
    b, matrix = rng.normal(size=n), factor @ factor.T
    shares = on_simplex(b, matrix, np.ones(n), 1e-8)
    assert shares.min() >= 0.0
    assert shares.sum() == pytest.approx(1.0)
    slope = b - matrix @ shares
    assert slope.max() - shares @ slope <= 1e-7


# --- Rampion -----------------------------------------------------------------------------------


def ramp_objective(structure, rows, loss, w, l2):
    value = l2 * w @ w
    for i in range(rows.weights.size):
        world = World.at(structure, rows, i, w)
        costs = world.costs(loss.cost)
        value += world.importance * ((world.scores + costs).max() - (world.scores - costs).max())
    return value


@pytest.mark.usefixtures("few_passes")
@pytest.mark.parametrize("inner", ["bcfw", "sgd"])
@pytest.mark.parametrize("name", STRUCTURES)
def test_the_objective_of_rampion_never_rises(name, inner):
    structure, rows, l2 = STRUCTURES[name], rows_of(name), 0.1
    loss = ramp_for(structure)
    learner = ConcaveConvex(l2, 12, 1e-3, loss, passes=4, inner=inner, rate=0.2, tolerance=0.0)
    trainer = learner.trainer(structure, rows)
    values, rng = [], np.random.default_rng(1)
    for _ in range(6):
        values.append(ramp_objective(structure, rows, loss, trainer.w, l2))
        assert values[-1] == pytest.approx(trainer.values[-1], rel=1e-9)
        trainer.learn(rows, rng.permutation(rows.weights.size))
    assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(values))
    assert values[-1] < values[0]
    assert trainer.details()["changed_hopes"] == trainer.changed


def test_hopes_are_found_under_the_weights_of_the_start():
    structure, rows = STRUCTURES["lists"], rows_of("lists")
    loss, start = ramp_for(structure), 3.0 * np.random.default_rng(5).normal(size=6)
    trainer = ConcaveConvex(0.1, loss=loss).trainer(structure, rows, start)
    for i in range(rows.weights.size):
        world = World.at(structure, rows, i, start)
        assert trainer.hopes[i, 0] == np.argmax(world.scores - world.costs(loss.cost))
    assert trainer.values[0] == pytest.approx(ramp_objective(structure, rows, loss, start, 0.1))
    before = trainer.values[0]
    trainer.learn()
    assert trainer.values[-1] < before


def test_with_hopes_that_stay_rampion_ends_at_a_minimum():
    structure, rows = STRUCTURES["binary"], rows_of("binary")
    learner = ConcaveConvex(1.0, 60, 1e-4, ramp_for(structure), passes=20, tolerance=0.0)
    trainer = run(learner.trainer(structure, rows))
    assert trainer.changed == 0
    assert trainer.settled()
    rng = np.random.default_rng(0)
    for _ in range(50):
        w = trainer.w + 1e-2 * rng.normal(size=trainer.w.size)
        near = ramp_objective(structure, rows, learner.loss, w, 1.0)
        assert near >= trainer.values[-1] * (1 - 1e-3)


@pytest.mark.parametrize("name", ["binary", "multiclass", "lists"])
def test_the_inner_gap_is_what_was_asked_for(name):
    """Frank-Wolfe wavers where penalties are weak; iterations without progress were the end."""
    structure = STRUCTURES[name]
    for seed, l2 in itertools.product(range(4), (0.003, 0.3)):
        learner = ConcaveConvex(l2, gap=0.05, loss=ramp_for(structure))
        trainer = run(learner.trainer(structure, rows_of(name, seed)), seed=seed)
        assert trainer.settled(), (seed, l2)
        assert trainer.inner_gap <= 0.05, (seed, l2, trainer.inner_gap)


def test_steps_that_lower_nothing_are_halved():
    structure, rows = STRUCTURES["lists"], rows_of("lists")
    learner = ConcaveConvex(0.1, 5, 0.0, ramp_for(structure), inner="sgd", rate=30.0)
    trainer = run(learner.trainer(structure, rows), 5)
    assert trainer.rate < 30.0


# --- runs --------------------------------------------------------------------------------------

RUNS = {
    "one": CuttingPlane(0.5, 6, 0.0, slack="one"),
    "n": CuttingPlane(0.5, 6, 0.0, slack="n"),
    "bcfw": FrankWolfe(0.5, 6, 0.0),
    "average": FrankWolfe(0.5, 6, 0.0, average=True),
    "m3n": M3N(0.5, 6, 0.0),
    "cccp": ConcaveConvex(0.5, 6, 0.0, passes=2, tolerance=0.0),
    "cccp-sgd": ConcaveConvex(0.5, 6, 0.0, passes=2, inner="sgd", tolerance=0.0),
}


@pytest.mark.usefixtures("few_passes")
@pytest.mark.parametrize("name", RUNS)
def test_an_interrupted_run_ends_where_an_uninterrupted_one_does(name, tmp_path):
    structure, rows = STRUCTURES["first-order chain"], rows_of("first-order chain")
    passes = Whole(rows, seed=4)
    events = []
    through = fit(structure, RUNS[name], passes, on_event=[events.append])
    checkpoints = Checkpoints(tmp_path)

    class StopError(Exception):
        pass

    def stop(event):
        if event["epoch"] == 3:
            raise StopError

    with pytest.raises(StopError):
        fit(structure, RUNS[name], passes, checkpoints=Checkpoints(tmp_path, every=0.0),
            on_event=[stop])  # fmt: skip
    resumed = fit(structure, RUNS[name], passes, checkpoints=checkpoints, resume=True)
    np.testing.assert_array_equal(resumed.predictor.weights, through.predictor.weights)
    assert [e["objective"] for e in resumed.history] == [e["objective"] for e in through.history]
    for key, array in through.trainer.arrays().items():
        np.testing.assert_array_equal(resumed.trainer.arrays()[key], array, err_msg=key)
    assert len(events) == 6
    again = fit(structure, RUNS[name], passes)
    np.testing.assert_array_equal(again.predictor.weights, through.predictor.weights)


@pytest.mark.parametrize("name", RUNS)
def test_a_spoilt_checkpoint_is_refused(name):
    structure, rows = STRUCTURES["first-order chain"], rows_of("first-order chain")
    trainer = RUNS[name].trainer(structure, rows)
    trainer.learn()
    arrays = trainer.arrays()
    for key, array in arrays.items():
        if array.size == 0 or key == "tally.counts":
            continue
        for value in (np.nan, np.inf) if array.dtype.kind == "f" else (-(10**9), 10**9):
            spoilt = array.copy()
            spoilt.flat[-1] = value
            with pytest.raises(ModelError):
                RUNS[name].trainer(structure, rows).restore({**arrays, key: spoilt})
        with pytest.raises(ModelError):
            RUNS[name].trainer(structure, rows).restore(
                {k: a for k, a in arrays.items() if k != key}
            )


def test_parts_of_marginals_are_bounded_by_the_sentence_they_are_of():
    # Sentences of 1 and 9 tokens: more parts than the chain has coordinates.
    chain, learner = Chain.new(attributes=1, labels=3), M3N(0.1, 6, 0.0)
    rows = chain_rows(1, [1, 9], chain)
    trainer = learner.trainer(chain, rows)
    for _ in range(3):
        trainer.learn()
    arrays = trainer.arrays()
    assert arrays["blocks.columns"].max() >= trainer.objective.n
    again = learner.trainer(chain, rows)
    again.restore(arrays)
    for each in (trainer, again):
        each.learn()
    np.testing.assert_array_equal(again.w, trainer.w)

    assert arrays["blocks.size"].all()
    for i, beyond in ((0, chain.width), (1, trainer.blocks._row.sums.size)):
        columns = arrays["blocks.columns"].copy()
        columns[arrays["blocks.first"][i]] = beyond
        with pytest.raises(ModelError):
            learner.trainer(chain, rows).restore({**arrays, "blocks.columns": columns})


@pytest.mark.usefixtures("few_passes")
@pytest.mark.parametrize("name", ["bcfw", "m3n", "cccp"])
def test_a_seed_draws_the_order(name):
    structure, rows = STRUCTURES["first-order chain"], rows_of("first-order chain")
    weights = [
        fit(structure, RUNS[name], Whole(rows, seed)).predictor.weights for seed in (1, 1, 2)
    ]
    np.testing.assert_array_equal(weights[0], weights[1])
    assert (weights[0] != weights[2]).any()


MOVING = ["bcfw", "average", "cccp", "cccp-sgd"]


@pytest.mark.usefixtures("few_passes")
@pytest.mark.parametrize("name", MOVING)
def test_examples_sorted_by_content_may_come_in_any_order(name):
    rng = np.random.default_rng(0)
    shares = rng.choice([0.0, 0.5, 1.0, 3.0], 60)
    data = SparseDataset.from_csr(rng.normal(size=(60, 12)), rng.integers(0, 2, 60), shares)
    mixed = data.take(rng.permutation(60))
    weights = [
        fit(Binary(12), RUNS[name], Passes(each, 5, by_content=by_content)).predictor.weights
        for by_content in (True, False)
        for each in (data, mixed)
    ]
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-5, atol=1e-7)
    assert not np.allclose(weights[2], weights[3], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["ssvm-bcfw", "rampion-cccp"])
def test_a_classifier_does_not_depend_on_the_order_of_the_data(name):
    rng = np.random.default_rng(0)
    X, order = rng.normal(size=(40, 5)), rng.permutation(40)
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0, "a", "b")
    one, other = (
        Classifier(name, max_iter=3).fit(*each).coef_ for each in ((X, y), (X[order], y[order]))
    )
    np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.mark.parametrize("name", MOVING)
def test_without_shuffling_every_pass_has_the_order_of_the_data(name, monkeypatch):
    data = sparse_linear(20, 12, per_row=(2, 5), true_weights=6, seed=1).dataset()
    orders = []
    for owner, method, at in ((Blocks, "step", 1), (OnlineTrainer, "learn", 2)):
        work = getattr(owner, method)
        monkeypatch.setattr(
            owner,
            method,
            lambda *given, work=work, at=at: (orders.append(given[at].tolist()), work(*given)),
        )
    fit(Binary(12), RUNS[name], Passes(data, 5, shuffle=False))
    assert len(orders) >= 6
    assert all(order == list(range(20)) for order in orders)
    # Shuffled, no two passes have the same order, and a seed fixes them all.
    runs = []
    for seed in (5, 5, 6):
        orders.clear()
        fit(Binary(12), RUNS[name], Passes(data, seed))
        runs.append(list(map(tuple, orders)))
    assert len(set(runs[0])) == len(runs[0])
    assert runs[0] == runs[1]
    assert not set(runs[0]) & set(runs[2])


@pytest.mark.parametrize("name", ["one", "bcfw"])
def test_threads_change_nothing(name):
    structure, rows = STRUCTURES["first-order chain"], rows_of("first-order chain")
    one, many = (fit(structure, RUNS[name], Whole(rows, 1), n_jobs=jobs) for jobs in (1, 3))
    np.testing.assert_array_equal(one.predictor.weights, many.predictor.weights)


REFUSED = [
    (lambda: FrankWolfe(l2=0.0), "FrankWolfe: l2 must be finite and above 0, but is 0.0"),
    (lambda: FrankWolfe(gap=-1.0), "FrankWolfe: gap must be finite and not negative"),
    (lambda: FrankWolfe(max_iter=0), "FrankWolfe: max_iter must be at least 1"),
    (lambda: FrankWolfe(max_iter=2.5), "FrankWolfe: max_iter must be a whole number, not 2.5"),
    (lambda: FrankWolfe(l2="x"), "FrankWolfe: l2 must be a number, not 'x'"),
    (lambda: M3N(gap=None), "M3N: gap must be a number, not None"),
    (lambda: ConcaveConvex(passes=1.5), "ConcaveConvex: passes must be a whole number, not 1.5"),
    (lambda: ConcaveConvex(rate="x"), "ConcaveConvex: rate must be a number, not 'x'"),
    (lambda: Batch(l2="x"), "Batch: l2 must be a number, not 'x'"),
    (lambda: Batch(period=2.5), "Batch: period must be a whole number, not 2.5"),
    (lambda: CuttingPlane(slack="two"), "CuttingPlane: slack must be one of one, n, not 'two'"),
    (lambda: CuttingPlane(loss=Log()), "CuttingPlane and Log: .* use structured-hinge or hinge"),
    (lambda: M3N(loss=Ramp()), "M3N and Ramp: "),
    (lambda: ConcaveConvex(loss=StructuredHinge()), "ConcaveConvex and StructuredHinge: "),
    (lambda: ConcaveConvex(inner="lbfgs"), "ConcaveConvex: inner must be one of bcfw, sgd"),
    (lambda: ConcaveConvex(passes=0), "ConcaveConvex: passes must be at least 1"),
    (lambda: ConcaveConvex(rate=0.0), "ConcaveConvex: rate must be finite and above 0"),
    (lambda: RECIPES["ssvm-cp"].build(slak="n"), "ssvm-cp has no parameter 'slak'; did you mean"),
    (lambda: RECIPES["ssvm-cp"].build(l2="x"), "l2 must be a number, not 'x'"),
    (lambda: LIST_RECIPES["rampion-cccp"].build(rate="x"), "rate must be a number, not 'x'"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED)
def test_what_makes_no_sense_is_refused(build, message):
    with pytest.raises(HopefearError, match=message) as refusal:
        build()
    assert "\n" not in str(refusal.value)


def test_structures_that_do_not_serve_are_refused():
    lists, rows = NBest(6, tied=True), tiny_rows(NBest(6, tied=True))
    for learner in (FrankWolfe(loss=StructuredHinge(Regret())), ConcaveConvex(loss=Ramp(Regret()))):
        with pytest.raises(CombinationError, match="tied=True: gold would change"):
            learner.trainer(lists, rows)
    with pytest.raises(CombinationError, match=r"M3N and NBest: .* use ssvm-bcfw"):
        M3N().trainer(NBest(6), rows)
    with pytest.raises(CombinationError, match="needs regret, which Chain does not offer"):
        CuttingPlane(loss=StructuredHinge(Regret())).trainer(STRUCTURES["chain"], rows_of("chain"))


def test_recipes_carry_costs_and_rates_of_the_data():
    scale = Scale(square=4.0, n=10, cost=0.3)
    assert LIST_RECIPES["ssvm-bcfw"].build(scale).loss.cost == Regret(0.5)
    assert LIST_RECIPES["ssvm-bcfw"].build(scale, price=2).loss.cost == Regret(2.0)
    assert LIST_RECIPES["rampion-cccp"].build(scale).rate == 0.5
    assert LIST_RECIPES["rampion-cccp"].build(scale, rate="3").rate == 3.0
    assert LIST_RECIPES["rampion-cccp"].parameters()["rate"] == "auto"
    assert RECIPES["ssvm-cp"].build(loss="hinge").loss == Hinge()
    assert TREE_RECIPES["ssvm-cp"].build(slack="n").slack == "n"
    for table in (RECIPES, CHAIN_RECIPES, LIST_RECIPES, TREE_RECIPES):
        assert {"ssvm-cp", "ssvm-bcfw", "rampion-cccp"} <= set(table)

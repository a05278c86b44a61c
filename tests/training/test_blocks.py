"""Blocks: directions of old weights, added in order; the same bits for any number of threads."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from block_learners import ORDER, STRUCTURED, learned, same
from learner_catalogue import FEW_RULES, READOUTS, RULES, STRUCTURES, natural_loss
from reference import close, exact_weights, random_problem, replay

from hopefear.core import crew
from hopefear.core.component import component
from hopefear.core.crew import desert, half_of, new_crew, owner, stretch_of, wait
from hopefear.core.interfaces import Row
from hopefear.core.learner import Learner, parameters_by_part
from hopefear.core.workspace import Example, Plain
from hopefear.costs.pseudo_corpus import PseudoCorpus
from hopefear.data.generators import sparse_linear
from hopefear.errors import CombinationError, HopefearError
from hopefear.losses.hinge import Hinge
from hopefear.losses.log import Log
from hopefear.losses.perceptron import Perceptron
from hopefear.readouts.averaged import Averaged
from hopefear.readouts.last import Last
from hopefear.readouts.voted import Voted
from hopefear.recipes import RECIPES
from hopefear.rules.arow import AROW
from hopefear.rules.rda import RDA
from hopefear.rules.sgd import SGD
from hopefear.structures.chain.chain import Chain
from hopefear.structures.classes import Binary, Multiclass
from hopefear.structures.nbest import NBest
from hopefear.tasks.classify.task import train
from hopefear.testing import tiny_rows
from hopefear.training import blocks
from hopefear.training.blocks import Blocks
from hopefear.training.checkpoints import Checkpoints
from hopefear.training.online import DivergedError, OnlineTrainer
from hopefear.training.passes import Passes
from hopefear_papers.theorems.steps import instrument

pytestmark = pytest.mark.interpreted

# Rules whose strides depend on nothing that moves within a block.
STEADY = [
    name for name in RULES if not name.startswith(("sgd-sq", "sgd-exp", "sgd-l2", "cw", "arow"))
]
DATA = sparse_linear(60, 12, per_row=(3, 6), true_weights=6, seed=2).dataset()


@pytest.mark.parametrize("on", ["every", "mistakes"])
@pytest.mark.parametrize("block", [4, 100])
@pytest.mark.parametrize("name", STEADY)
def test_blocks_do_what_dense_rules_do(name, block, on):
    for structure in STRUCTURES:
        weighted = not name.startswith("pa")  # the dense one knows no weights
        problem = random_problem(12, n=30, classes=structure.n_labels(), weighted=weighted)
        learner = Learner(natural_loss(RULES[name]), RULES[name], Averaged(), on, block)
        if name.startswith("sgd-l1-l2"):
            learner = replace(learner, rule=SGD(rate=0.3, l1=0.0217))
        trainer = learned(structure, learner, problem.rows, jobs=2)
        wanted = replay(structure, learner, problem, ORDER)
        close(exact_weights(trainer), wanted.snapshots[-1], 1e-9)
        close(trainer.average(), wanted.average, 1e-9)
        counts = (trainer.mistakes, trainer.updates, trainer.ticks)
        assert counts == (wanted.mistakes, wanted.updates, wanted.ticks)
        assert trainer.loss == pytest.approx(wanted.loss)


def test_second_order_strides_are_those_of_the_beginning():
    problem, r, block = random_problem(3, n=30), 0.5, 7
    learner = Learner(Hinge(), AROW(r=r), Last(), "every", block)
    trainer = learned(Binary(12), learner, problem.rows)
    w, variance = np.zeros(12), np.ones(12)
    for n, i in enumerate(ORDER):
        if n % block == 0:
            old_w, old_variance = w.copy(), variance.copy()
        x = problem.X[i] * (1.0 if problem.rows.labels[i] else -1.0)
        value = max(0.0, 1.0 - old_w @ x)
        if value > 0.0:
            b = 1.0 / (old_variance @ x**2 + r)
            w = w + value * b * variance * x
            variance = variance - b * (variance * x) ** 2
    close(exact_weights(trainer), w, 1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("on", ["every", "mistakes"])
@pytest.mark.parametrize("name", RULES)
def test_a_block_of_one_is_the_online_learner(name, on, dtype):
    for structure, readout in zip(STRUCTURES * 3, READOUTS, strict=False):
        real = np.float32 if isinstance(structure, Multiclass) else dtype
        rows = random_problem(5, n=30, classes=structure.n_labels(), dtype=real).rows
        learner = Learner(natural_loss(RULES[name]), RULES[name], readout, on)
        one = OnlineTrainer(structure, learner, real)
        one._blocks = Blocks(structure, learner, real)
        one.learn(rows, ORDER)
        same(one, learned(structure, learner, rows, dtype=real))


@pytest.mark.parametrize("readout", READOUTS, ids=lambda readout: type(readout).__name__)
@pytest.mark.parametrize("name", FEW_RULES)
def test_threads_change_no_bit_on_classes(name, readout, monkeypatch):
    monkeypatch.setattr(crew, "_TOGETHER", 1)  # all threads have some of the few features
    structure = STRUCTURES[1]
    rows = random_problem(9, n=30, classes=3, weighted=True).rows
    for on, block in (("every", 5), ("mistakes", 64)):
        learner = Learner(natural_loss(RULES[name]), RULES[name], readout, on, block)
        one = learned(structure, learner, rows)
        for jobs in (2, 3):
            same(learned(structure, learner, rows, jobs), one)


@pytest.mark.parametrize("together", [1, 1024])
@pytest.mark.parametrize("name", STRUCTURED)
def test_threads_change_no_bit_on_structures(name, together, monkeypatch):
    """``together`` of 1: features of these small structures fall into both halves."""
    monkeypatch.setattr(crew, "_TOGETHER", together)
    structure, losses = STRUCTURED[name]
    rows = tiny_rows(structure)
    order = np.tile(np.arange(rows.weights.size), 3)
    for loss in losses:
        for rule in (SGD(rate=0.3, l1=0.01, l2=0.1), RULES["adagrad-l1"], RULES["rda-elastic"]):
            learner = Learner(loss, rule, Averaged(), "every", 4)
            one = learned(structure, learner, rows, 1, order)
            for jobs in (2, 3, 4):
                same(learned(structure, learner, rows, jobs, order), one)
            online = replace(learner, block=1)
            single = OnlineTrainer(structure, online, np.float64)
            single._blocks = Blocks(structure, online, np.float64)
            single.learn(rows, order)
            wanted = learned(structure, online, rows, 1, order)
            if together == 1 and structure.halves():  # scores are added up in another order
                close(exact_weights(single), exact_weights(wanted), 1e-9)
                close(single.average(), wanted.average(), 1e-9)
            else:
                same(single, wanted)


def test_threads_own_whole_features_and_halves_are_those_of_two_threads():
    width, shift = 24, stretch_of(24)
    for j in range(0, 200_000, 7):
        half = half_of(np.uint64(j // width), np.uint64(shift))
        owners = [owner(np.uint64(j), n, 1.0 / width, shift) for n in (1, 2, 3, 4, 6)]
        assert owners[0] == 0 and owners[1] == half and owners[2] < 3
        assert owners[3] // 2 == half and owners[4] // 3 == half
        base = np.uint64(j // width * width)
        assert owners == [owner(base, n, 1.0 / width, shift) for n in (1, 2, 3, 4, 6)]


@pytest.mark.parametrize("unit", [True, False])
def test_halves_of_a_chain_add_up_to_its_scores_and_directions(unit, monkeypatch):
    """Against score and scatter of whole sequences, for weights of some and of all labels."""
    monkeypatch.setattr(crew, "_TOGETHER", 1)
    chain, rng = Chain.new(5, 3), np.random.default_rng(0)
    rows = tiny_rows(chain)
    if unit:
        rows = rows._replace(values=rows.values[:0])
    w = Plain(rng.normal(size=chain.n_coordinates()))
    order = rng.permutation(rows.weights.size)
    desk = chain.lay(chain.desk(rows, np.float64), rows, order, 4)
    assert all(desk.begins[half, -1] > 0 for half in range(2))
    for loss in (Log(), Perceptron()):
        work = chain.workspace(rows, loss, np.float64)
        for n, i in enumerate(order):
            x = Example(rows, i)
            for half in range(2):
                chain.score_half(x, n, half, w, desk, work.theta)
            chain.join(x, n, w, desk, work.theta)
            used = np.diff(rows.starts)[i] * chain.width
            joined = work.theta.scores.nodes[:used].copy()
            chain.score(x, w, work.theta)
            close(joined, work.theta.scores.nodes[:used], 1e-12)
            loss.subgradient(chain, x, work)
            wanted, whole = Sum(np.zeros(chain.n_coordinates())), Sum(np.zeros(w.w.size))
            chain.scatter(x, work.mu, wanted)
            assert chain.leave(x, n, work.mu, whole, desk)
            for half in range(2):
                part = Sum(np.zeros(w.w.size))
                chain.scatter_half(x, n, half, part, desk)
                features = np.flatnonzero(part.sums[: 5 * chain.width]) // chain.width
                assert all(half_of(np.uint64(f), np.uint64(0)) == half for f in features)
                whole.sums[:] += part.sums
            close(whole.sums, wanted.sums, 1e-12)


@component(Row)
class Sum(NamedTuple):
    """A row that adds entries up."""

    sums: np.ndarray

    def put(self, j, g):
        self.sums[j] += g


@pytest.mark.parametrize("readout", READOUTS, ids=lambda readout: type(readout).__name__)
def test_threads_change_no_bit_of_what_is_kept_of_chains(readout, monkeypatch):
    monkeypatch.setattr(crew, "_TOGETHER", 1)
    chain = Chain.new(5, 3)
    rows = tiny_rows(chain)
    order = np.tile(np.arange(rows.weights.size), 3)
    learner = Learner(Perceptron(), SGD(rate=0.3), readout, "mistakes", 4)
    one = learned(chain, learner, rows, 1, order)
    assert one.updates > 3
    for jobs in (2, 3):
        same(learned(chain, learner, rows, jobs, order), one)


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("spread", [1, 40_000])
@pytest.mark.parametrize("valued", [False, True])
def test_attributes_are_dealt_to_their_halves_in_order(threads, spread, valued):
    """With a spread of 1 all belong to one half, which has no room to spare."""
    dice, chain = np.random.default_rng(3), Chain.new(40_000, 2)
    indptr = np.append(0, np.cumsum(dice.integers(0, 5, 30)))
    indices = dice.integers(0, spread, indptr[-1]).astype(np.int32)
    values = dice.random(indices.size if valued else 0).astype(np.float32)
    data = SimpleNamespace(indptr=indptr, indices=indices, values=values)
    desk, shift = chain.desk(data, np.float32, threads), np.uint64(stretch_of(chain.width))
    halves = np.array([half_of(feature, shift) for feature in indices])
    assert set(halves) == ({0, 1} if spread > 1 else {0})
    for half in range(2):
        begins = desk.begins[half]
        for k in range(30):
            own = indptr[k] + np.flatnonzero(halves[indptr[k] : indptr[k + 1]] == half)
            place = slice(begins[k], begins[k + 1])
            np.testing.assert_array_equal(desk.attributes[half][place], indices[own])
            np.testing.assert_array_equal(desk.values[half][place], values[own] if valued else [])


def test_desks_have_one_type_whatever_the_order():
    chain = Chain.new(5, 3)
    rows = tiny_rows(chain)
    desk = chain.desk(rows, np.float32)
    for order in (np.arange(0), np.arange(1), np.arange(6)):
        laid = chain.lay(desk, rows, order, 4)
        assert all(array.flags.c_contiguous for array in laid)


def test_records_grow_to_what_a_block_needs(monkeypatch):
    learner = Learner(Hinge(), RDA(l1=0.01), Averaged(), "every", 8)
    wanted = learned(STRUCTURES[0], learner, random_problem(1, n=30).rows, 2)
    monkeypatch.setattr(blocks, "ROOM", 1)
    same(learned(STRUCTURES[0], learner, random_problem(1, n=30).rows, 2), wanted)


def test_directions_beyond_memory_are_said(monkeypatch):
    learner = Learner(Hinge(), RDA(), Last(), "every", 8)
    monkeypatch.setattr(blocks, "ROOM", 1)
    trainer = OnlineTrainer(STRUCTURES[0], learner)

    def too_much(*sizes):
        raise MemoryError

    monkeypatch.setattr(blocks, "new_record", too_much)
    with pytest.raises(HopefearError, match=r"directions of 8 examples .* use a smaller block"):
        trainer.learn(random_problem(1, n=30, dtype=np.float32).rows, ORDER)


@pytest.mark.parametrize("rule", [RDA(l1=0.01), SGD(rate=0.5, l2=1.5)])
def test_books_that_fill_up_end_a_block_for_any_number_of_threads(rule, monkeypatch):
    from hopefear.training import online

    monkeypatch.setattr(online, "_WINDOW", 7)
    rows = random_problem(4, n=30).rows
    learner = Learner(Hinge(), rule, Averaged(), "every", 5)
    one = learned(STRUCTURES[0], learner, rows)
    assert one.examples == ORDER.size
    for jobs in (2, 3):
        same(learned(STRUCTURES[0], learner, rows, jobs), one)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_overflow_is_said_where_it_comes():
    rows = random_problem(4, n=30).rows
    learner = Learner(Hinge(), SGD(rate=1e300), Last(), "every", 4)
    counts = set()
    for jobs in (1, 2):
        trainer = OnlineTrainer(STRUCTURES[0], learner, n_jobs=jobs)
        with pytest.raises(DivergedError, match=r"block:4"):
            trainer.learn(rows, ORDER)
        counts.add((trainer.examples, trainer.updates))
        trainer.close()
    assert len(counts) == 1 and 4 <= counts.pop()[0] < ORDER.size


def test_a_thread_that_fails_ends_the_others():
    crew = new_crew(2)
    desert(crew)
    assert not wait(crew, 0)

    class FailingError(Exception):
        pass

    learner = Learner(Hinge(), RDA(), Last(), "every", 4)
    runner = Blocks(STRUCTURES[0], learner, np.float64, 3)
    trainer = OnlineTrainer(STRUCTURES[0], learner, np.float64)
    rows = random_problem(4, n=30).rows
    runner.prepare(rows)
    runner.learn(trainer.state, trainer.memory, rows, ORDER[:0], trainer.tally, np.empty(0, "u1"))

    class Broken:
        def __getitem__(self, thread):
            if thread == 1:
                raise FailingError
            return works[thread]

    works, runner._works = runner._works, Broken()
    outcome = np.empty(ORDER.size, np.uint8)
    with pytest.raises(FailingError):
        runner.learn(trainer.state, trainer.memory, rows, ORDER, trainer.tally, outcome)
    runner._works = works
    runner.close()


def test_learners_say_their_block_where_it_is_not_one():
    plain = RECIPES["perceptron"].build()
    assert plain.block == 1 and "block" not in plain.signature()
    assert RECIPES["perceptron"].parameters()["block"] == 1
    learner = RECIPES["perceptron"].build(block="32")
    assert "|block:32|" in learner.signature()
    assert parameters_by_part(learner)["block"] == {"examples": 32}
    assert "block" not in parameters_by_part(plain)
    model = train(DATA, "perceptron", {"block": 8}, epochs=1).model
    assert "|block:8|" in model.signature and model.about["given"] == {"block": 8}
    for wrong in (0, -1, 1 << 20):
        with pytest.raises(CombinationError, match="block is a whole number from 1 to 65,536"):
            RECIPES["perceptron"].build(block=wrong)
    with pytest.raises(HopefearError, match="block must be a whole number"):
        RECIPES["perceptron"].build(block="many")


def test_what_cannot_take_blocks_says_so():
    learner = RECIPES["pa"].build(block=4)
    with pytest.raises(CombinationError, match=r"block=4 and bounds: .* use block=1"):
        instrument(Binary(3), learner, None)
    corpus = PseudoCorpus(np.zeros((4, 10)), np.ones(10))
    with pytest.raises(CombinationError, match=r"block=4 and NBest: .*pseudo-corpus.* use block=1"):
        OnlineTrainer(NBest(3, False, corpus), replace(learner, loss=Hinge()))
    from hopefear.recipes import CHAIN_RECIPES

    with pytest.raises(HopefearError, match="block"):
        CHAIN_RECIPES["crf-lbfgs"].build(block=4)


def test_pieces_hold_whole_blocks():
    passes = Passes(DATA, at_least=7)
    passes.align(8)
    sizes = [order.size for _, order in passes.pieces(0)]
    assert sizes == [16, 16, 16, 12] and passes.n_pieces == 4
    one, many = (
        train(DATA, "vrda", {"block": 8}, epochs=2, pieces=n).model.to_bytes() for n in (1, 7)
    )
    assert one == many


class StopError(Exception):
    """A run that ends in its middle."""


def test_a_run_goes_on_in_the_middle_of_a_pass(tmp_path):
    def stop(event):
        if event["epoch"] > 1.4:
            raise StopError

    def go(places=None, jobs=1, **more):
        return train(
            DATA,
            "vrda",
            {"block": 5, "readout": "averaged"},
            epochs=3,
            pieces=4,
            n_jobs=jobs,
            checkpoints=places,
            **more,
        ).model.to_bytes()

    places = Checkpoints(tmp_path, every=0.0)
    with pytest.raises(StopError):
        go(places, 2, on_event=[stop])
    assert go(places, 3, resume=True) == go()


def test_votes_of_blocks_replay_every_update():
    rows = random_problem(4, n=30, dtype=np.float32).rows
    learner = Learner(Hinge(), RDA(l1=0.01), Voted(), "mistakes", 6)
    trainer = learned(STRUCTURES[0], learner, rows, 2, dtype=np.float32)
    assert trainer.memory.counts[0] == trainer.updates
    predictor = trainer.predictor()
    assert predictor.arrays()

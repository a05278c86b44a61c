"""Blocks whose examples lie on shards: the bits of the block learner, whatever their number."""

from __future__ import annotations

import numpy as np
import pytest
from block_learners import ORDER, STRUCTURED, learned, same
from learner_catalogue import FEW_RULES, READOUTS, RULES, STRUCTURES, natural_loss
from reference import random_problem

from hopefear.core import crew
from hopefear.core.learner import Learner
from hopefear.data.generators import sparse_linear
from hopefear.data.sparse import SparseDataset
from hopefear.errors import HopefearError
from hopefear.losses.hinge import Hinge
from hopefear.losses.log import Log
from hopefear.readouts.averaged import Averaged
from hopefear.readouts.last import Last
from hopefear.readouts.voted import Voted
from hopefear.rules.rda import RDA
from hopefear.rules.sgd import SGD
from hopefear.structures.chain.chain import Chain
from hopefear.tasks.classify.task import train
from hopefear.testing import tiny_rows
from hopefear.training import online, synchronous
from hopefear.training.checkpoints import Checkpoints
from hopefear.training.online import DivergedError
from hopefear.training.passes import Passes
from hopefear.training.shards import Shards
from hopefear.training.synchronous import (
    DealtRows,
    Part,
    SharedBlocks,
    SynchronousTrainer,
    Wanted,
)
from hopefear.training.workers import Threads

pytestmark = pytest.mark.interpreted

DATA = sparse_linear(60, 12, per_row=(3, 6), true_weights=6, seed=2).dataset()


class StopError(Exception):
    pass


class Here:
    """Workers in this process, one after the other; some forget what they knew."""

    sent = 0

    def __init__(self, forgetful=False):
        self.forgetful, self.calls = forgetful, 0

    def start(self, structure, learner, parts, dtype):
        self.workers = [part.worker(structure, learner, dtype) for part in parts]

    def begin(self, state, number):
        for worker in self.workers:
            worker.begin(state, number)

    def step(self, state, number, move, examples):
        self.calls += 1
        if self.forgetful:
            self.workers[self.calls % len(self.workers)].begin(state, number)
        pairs = zip(self.workers, examples, strict=True)
        return [worker.step(move, some) for worker, some in pairs]

    def close(self):
        self.workers = []


def apart(structure, learner, rows, n, order=ORDER, pool=None, dtype=np.float64):
    """What is learned where each of ``n`` workers searches some of the examples."""
    shards = np.random.default_rng(n).integers(0, n, rows.weights.size)
    places = np.arange(rows.weights.size)
    deal = DealtRows(rows, [Part(rows)] * n, shards, places)
    pool = pool or Here()
    blocks = SharedBlocks(structure, learner, dtype, pool, deal)
    trainer = SynchronousTrainer(blocks)
    trainer.learn(rows, order)
    trainer.close()
    return trainer


@pytest.mark.parametrize("readout", READOUTS, ids=lambda readout: type(readout).__name__)
@pytest.mark.parametrize("name", FEW_RULES)
def test_shards_change_no_bit_on_classes(name, readout):
    rows = random_problem(9, n=30, classes=3, weighted=True).rows
    for on, block in (("every", 5), ("mistakes", 64)):
        learner = Learner(natural_loss(RULES[name]), RULES[name], readout, on, block)
        one = learned(STRUCTURES[1], learner, rows)
        same(apart(STRUCTURES[1], learner, rows, 3), one)


@pytest.mark.parametrize("together", [1, 1024])
@pytest.mark.parametrize("name", STRUCTURED)
def test_shards_change_no_bit_on_structures(name, together, monkeypatch):
    monkeypatch.setattr(crew, "_TOGETHER", together)
    monkeypatch.setattr(synchronous, "ROOM", 3)  # records grow
    structure, losses = STRUCTURED[name]
    rows = tiny_rows(structure)
    order = np.tile(np.arange(rows.weights.size), 3)
    for loss in losses:
        learner = Learner(loss, SGD(rate=0.3, l1=0.01, l2=0.1), Averaged(), "every", 4)
        one = learned(structure, learner, rows, 1, order)
        same(apart(structure, learner, rows, 2, order), one)


@pytest.mark.parametrize("forgetful", [False, True])
@pytest.mark.parametrize(
    ("rule", "readout"),
    [(RDA(l1=0.01), Averaged()), (RDA(l1=0.01), Voted()), (SGD(rate=0.5, l2=1.0), Averaged())],
)
def test_books_that_fill_up_and_clocks_that_start_again(rule, readout, forgetful, monkeypatch):
    """``forgetful``: workers that were lost begin anew, in the middle of everything."""
    monkeypatch.setattr(online, "_WINDOW", 7)
    rows = random_problem(4, n=30).rows
    learner = Learner(Hinge(), rule, readout, "every", 5)
    one = learned(STRUCTURES[0], learner, rows)
    other = apart(STRUCTURES[0], learner, rows, 3, pool=Here(forgetful))
    same(other, one)
    assert isinstance(rule, RDA) or one.restarts > 0


def test_what_is_restored_is_told_to_all_workers():
    rows = random_problem(4, n=30).rows
    learner = Learner(Hinge(), RDA(l1=0.01), Averaged(), "every", 4)
    one = learned(STRUCTURES[0], learner, rows)
    other = apart(STRUCTURES[0], learner, rows, 2, ORDER[:32])
    begun = other.arrays()
    again = apart(STRUCTURES[0], learner, rows, 2, ORDER[:12], pool := Here())
    again._blocks.workers = pool
    pool.start(STRUCTURES[0], learner, [Part(rows)] * 2, np.float64)
    again.restore(begun)
    again.learn(rows, ORDER[32:])
    same(again, one)


def test_workers_begin_anew_where_learning_broke_off(monkeypatch):
    rows = random_problem(4, n=30).rows
    learner = Learner(Hinge(), RDA(l1=0.01), Averaged(), "every", 5)

    class Breaking(Here):
        copies = ()

        def begin(self, state, number):
            super().begin(state, number)
            self.copies = (*self.copies, number)

        def close(self):
            pass  # it goes on

    pool = Breaking()
    trainer = apart(STRUCTURES[0], learner, rows, 2, ORDER[:10], pool)
    with monkeypatch.context() as patch:
        patch.setattr(synchronous, "Move", None)  # as an interrupt would
        with pytest.raises(TypeError):
            trainer.learn(rows, ORDER[10:20])
    trainer.learn(rows, ORDER[20:])
    assert len(pool.copies) == 2
    for worker in pool.workers:
        worker.step(trainer._blocks._move, Wanted(0, ORDER[:0]))
        for one, other in zip(worker._state, trainer.state, strict=True):
            np.testing.assert_array_equal(one, other)


def test_examples_of_weight_0_are_no_pieces():
    table = np.eye(8, STRUCTURES[1].n_features)
    data = SparseDataset.from_csr(table, np.arange(8) % 3, sample_weight=np.zeros(8))
    learner = Learner(natural_loss(RULES["sgd"]), RULES["sgd"], READOUTS[0], "every", 2)
    deal = DealtRows(data.rows, [Part(data.rows)], np.zeros(8, int), np.arange(8))
    trainer = SynchronousTrainer(SharedBlocks(STRUCTURES[1], learner, np.float64, Here(), deal))
    assert list(trainer.learn_pieces(Passes(data))) == [] and trainer.examples == 0
    trainer.close()


def test_other_data_than_was_dealt_is_refused():
    learner = Learner(Hinge(), RDA(), Last(), "every", 5)
    trainer = apart(STRUCTURES[0], learner, random_problem(4, n=30).rows, 2)
    with pytest.raises(HopefearError, match="a new trainer for other data"):
        trainer.learn(random_problem(5, n=30).rows, ORDER)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_overflow_is_said_where_it_comes():
    rows = random_problem(4, n=30).rows
    learner = Learner(Hinge(), SGD(rate=1e300), Last(), "every", 4)
    with pytest.raises(DivergedError) as alone:
        learned(STRUCTURES[0], learner, rows, dtype=np.float32)
    with pytest.raises(DivergedError) as together:
        apart(STRUCTURES[0], learner, rows, 2, dtype=np.float32)
    assert str(together.value) == str(alone.value)


def model(learner="vrda", data=DATA, **how):
    return train(data, learner, {"block": 8}, epochs=3, pieces=4, **how).model.to_bytes()


@pytest.mark.parametrize("learner", ["perceptron", "vrda"])
def test_models_are_those_of_blocks_wherever_shards_run(learner):
    blocks = model(learner)
    assert blocks == model(learner, shards=Shards(3, "blocks"))
    assert blocks == model(learner, shards=Shards(3, "blocks", workers="processes"))
    assert blocks == model(learner, shards=Shards(2, "blocks", workers=Here()))
    assert blocks == model(learner, shards=Shards(2, "blocks", workers=Threads()))


def test_weights_of_examples_are_visits_on_shards_too():
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.5], len(DATA))
    weighted = SparseDataset.from_csr(DATA.to_csr(), DATA.rows.labels, sample_weight=weights)
    for by_content in (False, True):
        how = {"data": weighted, "by_content": by_content}
        assert model(**how) == model(**how, shards=Shards(3, "blocks", workers=Here()))


def test_events_say_what_blocks_cost():
    events = []
    shards = Shards(2, "blocks", workers="processes")
    model(shards=shards, on_event=[events.append])
    assert events[-1]["rounds"] >= 3 * -(-len(DATA) // 8)
    assert events[-1]["sent"] > 1000 and events[-1]["waited"] >= 0.0


def test_a_run_that_was_broken_off_ends_in_the_same_model(tmp_path):
    checkpoints = Checkpoints(tmp_path, every=0.0)

    def broken(event, countdown=[3]):  # noqa: B006 - one for the run
        countdown[0] -= 1
        if countdown[0] < 0:
            raise StopError

    shards = Shards(2, "blocks", workers="processes")
    with pytest.raises(StopError):
        model(shards=shards, checkpoints=checkpoints, on_event=[broken])
    # It may go on elsewhere: the model is the same.
    assert model(checkpoints=checkpoints, resume=True) == model()


def test_an_estimator_goes_on_alone():
    rows, order = next(Passes(DATA).pieces(5))
    trainers = []
    for shards in (None, Shards(2, "blocks", workers=Here())):
        how = {"epochs": 2, "shards": shards, "final": False}
        trainer = train(DATA, "perceptron", {"block": 8}, **how).fit.trainer.alone()
        trainer.learn(rows, order)
        trainers.append(trainer)
    assert trainers[0].examples == 3 * len(DATA)
    same(*trainers)


@pytest.mark.parametrize(
    ("options", "params", "words"),
    [
        ({"rounds": 2}, {"block": 8}, "neither rounds nor features to select"),
        ({"select": 5}, {"block": 8}, "neither rounds nor features to select"),
        ({}, {}, r"2 shards have no use for a block of 1; use -p block=128"),
    ],
)
def test_what_cannot_be_meant_is_refused(options, params, words):
    with pytest.raises(HopefearError, match=words):
        train(DATA, "perceptron", params, shards=Shards(2, "blocks", **options))


def test_dense_directions_travel_by_features():
    structure = Chain.new(5, 3)
    rows = tiny_rows(structure)
    pool, seen = Here(), []
    step = pool.step
    pool.step = lambda *args: seen.append(step(*args)) or seen[-1]
    learner = Learner(Log(), SGD(rate=0.3), Last(), "every", 4)
    apart(structure, learner, rows, 2, np.arange(rows.weights.size), pool)
    assert any(directions.bases.size for answers in seen for directions, _ in answers)

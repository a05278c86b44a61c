"""One loop, one train() and one protocol of answers, for whatever is learned."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from classes import train

from hopefear.averaging.averaged import Averaged
from hopefear.averaging.last import Last, Nothing
from hopefear.core.component import component
from hopefear.core.interfaces import Averaging
from hopefear.core.learner import Learner
from hopefear.data.generators import candidate_lists, sparse_linear
from hopefear.errors import HopefearError
from hopefear.losses.hinge import Hinge
from hopefear.rules.sgd import SGD
from hopefear.structures.classes import Binary
from hopefear.structures.nbest import NBest
from hopefear.tasks.base import train as train_task
from hopefear.tasks.rerank.prepare import dataset as lists_dataset
from hopefear.tasks.rerank.task import Reranking
from hopefear.training.batch import Batch
from hopefear.training.decoders.classes import ClassDecoder
from hopefear.training.decoders.lists import ListDecoder
from hopefear.training.loop import Loop, fit
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes, Pieces
from hopefear.training.stopping import Stopping

pytestmark = pytest.mark.interpreted

DATA = sparse_linear(60, 20, per_row=(3, 6), true_weights=8, seed=2).dataset()
LEARNER = Learner(Hinge(), SGD(rate=0.5), Last())


@component(Averaging)
class Halved(NamedTuple):
    """An averaging that no other file knows."""

    share: float = 0.5

    def init_memory(self, n, window):
        return Nothing(np.zeros(0))

    def predictor(self, memory, trainer):
        return trainer.linear(self.share * trainer.weights())


def trainer(averaging=LEARNER.averaging):
    return OnlineTrainer(Binary(20), Learner(Hinge(), SGD(rate=0.5), averaging))


def test_a_run_is_a_stream_of_events():
    loop = Loop(trainer(), Passes(DATA, at_least=3), epochs=2, trace=True)
    events = list(loop.events())
    assert [event["epoch"] for event in events] == pytest.approx([1 / 3, 2 / 3, 1, 4 / 3, 5 / 3, 2])
    assert all(event["nnz"] > 0 for event in events)
    whole = fit(Binary(20), LEARNER, Passes(DATA), epochs=2)
    np.testing.assert_array_equal(loop.result().predictor.weights, whole.predictor.weights)
    assert loop.result().history == whole.history


def test_a_pass_by_hand_is_a_pass_of_the_loop():
    one, two = trainer(), trainer()
    one.learn_pass(Passes(DATA))
    list(Loop(two, Passes(DATA, at_least=4)).events())
    np.testing.assert_array_equal(one.weights(), two.weights())


def test_passes_cut_by_hand_are_those_of_the_loop():
    one, two, passes = trainer(), trainer(), Passes(DATA)
    whole = fit(Binary(20), LEARNER, Passes(DATA), epochs=3)
    assert list(one.learn_passes(passes, 3)) == [1, 2, 3]
    for epoch in range(3):
        parts = np.split(passes.order(epoch), [1, 7, 40])
        assert len(list(two.learn_pieces(Pieces(passes.rows, parts)))) == 4
    for each in (one, two):
        np.testing.assert_array_equal(each.weights(), whole.predictor.weights)


def test_passes_end_when_a_batch_learner_has_settled():
    passes = Passes(DATA).whole()
    learner = Batch(max_iter=200)
    batch = learner.trainer(Binary(20), passes.rows)
    passes_made = len(list(batch.learn_passes(passes, 200)))
    assert batch.settled() and passes_made < 200


def test_a_new_readout_is_one_class():
    half, whole = trainer(Halved()), trainer()
    for each in (half, whole):
        each.learn_pass(Passes(DATA))
    np.testing.assert_array_equal(half.predictor().weights, 0.5 * whole.predictor().weights)
    with pytest.raises(HopefearError, match=r"halved.* keeps no average; use averaging=averaged"):
        half.average()


def test_patience_is_a_third_of_the_epochs_or_that_of_the_learner_unless_said():
    for learner, epochs, wanted in ((LEARNER, 5, 3), (LEARNER, 30, 10), (Batch(), 300, 20)):
        stopping, own = Stopping("accuracy"), Stopping("accuracy", 7)
        stopping.suit(learner, epochs)
        own.suit(learner, epochs)
        assert (stopping.patience, own.patience) == (wanted, 7)


def test_long_runs_are_more_patient():
    """Scores that rise again after four epochs are not given up, where there are thirty."""
    values = [1.0, 0.9, 0.8, 0.7, 0.6, *([2.0] * 25)]
    scores = iter(values)
    passes, stopping = Passes(DATA), Stopping("accuracy")
    result = fit(Binary(20), LEARNER, passes, epochs=30, stopping=stopping,
                 evaluate=lambda predictor: {"accuracy": next(scores)})  # fmt: skip
    assert result.best_epoch == 6 and len(result.history) == 16


def test_a_learner_may_be_built_before():
    learner = Learner(Hinge(), SGD(rate=0.5), Averaged())
    trained = train(DATA, learner, epochs=2)
    assert trained.learner == learner and trained.model.signature.startswith("loss:hinge")
    assert trained.model.nnz > 0
    with pytest.raises(HopefearError, match="learns online, and only batch learners start"):
        train(DATA, learner, start=np.zeros(20))


@pytest.mark.parametrize("voted", [False, True])
def test_the_best_of_the_n_best_is_the_best(voted):
    averaging = {"averaging": "voted"} if voted else {}
    model = train(DATA, "perceptron", averaging, epochs=1).model
    lists = lists_dataset(candidate_lists(12, doubt=3.0))
    ranker = train_task(Reranking(), lists, "perceptron", averaging, epochs=1).model.ranker()
    assert isinstance(ranker, ListDecoder) and isinstance(ranker.structure, NBest)
    for answers, rows in ((ClassDecoder(model.structure, model.predictor), model.prepared(DATA)),
                          (ranker, lists.rows)):  # fmt: skip
        ranked = answers.k_best(rows, 2)
        assert [int(one.labels[0, 0]) for one in ranked] == answers.predict(rows).tolist()
        assert all(np.all(np.diff(one.scores) <= 0.0) for one in ranked)
        assert all(one.shares.sum() == pytest.approx(1.0) for one in ranked)
        logs = answers.log_likelihoods(rows)
        assert logs.shape == (len(ranked),) and np.all(logs <= 1e-12)


def test_learners_of_one_order_refuse_data_in_blocks():
    passes = Passes(sparse_linear(20, 5, per_row=(2, 3), true_weights=2).dataset(), by_block=True)
    with pytest.raises(HopefearError, match="takes all of them in one order"):
        passes.order(0)


def test_only_examples_and_sentences_are_visited_by_blocks():
    with pytest.raises(HopefearError, match="leave out by_block"):
        Passes(lists_dataset(candidate_lists(5)), by_block=True)

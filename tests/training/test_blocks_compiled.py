"""Compiled blocks on real threads: the same bits for any number, and for one example at a time."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hopefear.core.learner import Learner
from hopefear.data.generators import sparse_linear
from hopefear.data.sequences import Column, Sentences
from hopefear.losses.hinge import Hinge
from hopefear.losses.sapo import SAPO
from hopefear.readouts.averaged import Averaged
from hopefear.rules.rda import RDA
from hopefear.rules.sgd import SGD
from hopefear.structures.classes import Binary
from hopefear.tasks.tag.task import Tagging, dataset
from hopefear.training.blocks import Blocks
from hopefear.training.online import OnlineTrainer


def classes():
    data = sparse_linear(500, 300, per_row=(5, 30), true_weights=40, seed=1).dataset()
    return Binary(300), data.rows, Learner(Hinge(), RDA(l1=1e-3), Averaged(), "every")


def chains():
    rng = np.random.default_rng(0)
    starts = np.concatenate([[0], np.cumsum(rng.integers(1, 12, 60))])
    words = [f"w{k}" for k in rng.integers(0, 40, starts[-1])]
    labels = [f"L{(int(word[1:]) + rng.integers(0, 2)) % 5}" for word in words]
    text = Sentences(starts, {"word": Column.of(words), "label": Column.of(labels)})
    data = dataset(text, "pos")
    learner = Learner(SAPO(n=5), SGD(rate=0.1, l2=1e-3), Averaged(), "every")
    return Tagging().structure(data), data.rows, learner


@pytest.mark.parametrize("problem", [classes, chains])
def test_threads_change_no_bit(problem):
    structure, rows, learner = problem()
    order = np.random.default_rng(1).permutation(np.tile(np.arange(rows.weights.size), 3))

    def learned(block, jobs=1):
        trainer = OnlineTrainer(structure, replace(learner, block=max(1, block)), n_jobs=jobs)
        if block == 0:  # one at a time, as blocks do it
            trainer._blocks = Blocks(structure, learner, np.float32)
        for part in np.array_split(order, 3):
            trainer.learn(rows, part)
        trainer.close()
        return trainer.arrays()

    def same_bits(one, other):
        return all(one[key].tobytes() == other[key].tobytes() for key in one)

    single, online = learned(0), learned(1)
    if structure.halves():  # which add scores up in another order
        assert not same_bits(single, online)
        for key in online:
            np.testing.assert_allclose(single[key], online[key], rtol=1e-4, atol=1e-3)
    else:
        assert same_bits(single, online)
    one = learned(7)
    for _ in range(5):
        for jobs in (2, 3, 4):
            assert same_bits(learned(7, jobs), one)

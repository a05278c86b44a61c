"""Memory that goes back early: what is still used stays as it is."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from hopefear.core.memory import use_up
from hopefear.data.generators import sparse_linear
from hopefear.recipes import RECIPES
from hopefear.structures.classes import Binary
from hopefear.training import online
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="reads what Linux says")


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])


@linux_only
def test_what_is_used_up_goes_back_and_its_neighbours_stay():
    books = np.ones(4_000_000)
    full = resident()
    use_up(books[1_000_001:2_999_999])
    assert full - resident() > 3_000
    assert books[:1_000_001].all() and books[2_999_999:].all()
    use_up(books[5:9])  # less than a page
    assert books[5:9].all()


@pytest.mark.parametrize("name", ["perceptron", "vrda", "adagrad-rda", "mira", "arow"])
@pytest.mark.parametrize("step", [1, 7, 1 << 18])
def test_the_last_predictor_is_the_same_whether_books_are_used_up(monkeypatch, name, step):
    monkeypatch.setattr(online, "_USED_UP_AT_ONCE", step)
    data = sparse_linear(120, 50, per_row=(5, 10), true_weights=10, seed=1).dataset()
    weights = []
    for spent in (False, True):
        trainer = OnlineTrainer(Binary(50), RECIPES[name].build())
        trainer.learn_pass(Passes(data))
        trainer.spent = spent
        weights.append(trainer.predictor().weights)
    assert weights[0].tobytes() == weights[1].tobytes() and weights[0].any()

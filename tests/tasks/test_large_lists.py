"""What training asks of all lists at once, asked stretch by stretch where there are many."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hopefear.data.generators import candidate_lists
from hopefear.data.lists import files
from hopefear.recipes import scales
from hopefear.recipes.scales import mean_regret
from hopefear.tasks.base import train
from hopefear.tasks.rerank import task
from hopefear.tasks.rerank.prepare import dataset
from hopefear.tasks.rerank.task import Reranking

pytestmark = pytest.mark.interpreted

DATA = dataset(candidate_lists(30, candidates=7, features=12))


@pytest.mark.parametrize("at_once", [1, 5, 50, 209, 210])
def test_regrets_of_stretches_have_the_mean_of_all(monkeypatch, at_once):
    rows, whole = DATA.rows, mean_regret(DATA.rows)
    regrets = [
        costs - costs.min() for costs in np.split(rows.costs.astype(np.float64), rows.starts[1:-1])
    ]
    assert whole == pytest.approx(np.concatenate(regrets).mean(), rel=1e-6)
    monkeypatch.setattr(scales, "_COSTS", at_once)
    assert mean_regret(rows) == pytest.approx(whole, rel=1e-6)


def test_a_temperature_needs_some_lists_only(monkeypatch):
    every = train(Reranking(), DATA, "perceptron", epochs=2).model.temperature
    seen = []
    monkeypatch.setattr(task, "_FITTED_ON", 10)
    monkeypatch.setattr(task, "_PARTS", 4)
    taken = type(DATA).take
    monkeypatch.setattr(
        type(DATA), "take", lambda self, which: seen.append(which) or taken(self, which)
    )
    some = train(Reranking(), DATA, "perceptron", epochs=2).model.temperature
    assert sum(len(which) for which in seen) == 10 and len(seen) == 4
    assert some > 0.0 and some != every


def test_lists_of_many_features_are_read_in_small_blocks(tmp_path, monkeypatch):
    line = json.dumps({"candidates": [{"cost": c, "features": {"a": c, "b": 1}} for c in (0, 1)]})
    path = tmp_path / "lists.jsonl"
    path.write_text(5 * f"{line}\n")
    monkeypatch.setattr(files, "BLOCK_FEATURES", 7)
    assert [len(block) for block in files.read_lists(path)] == [2, 2, 1]


def test_no_candidates_have_no_regret():
    assert mean_regret(DATA.take([]).rows) == 0.0

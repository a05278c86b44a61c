"""Shards, compiled: one sweep merges as changes do, and blocks of a shard are blocks."""

from __future__ import annotations

import numpy as np
import pytest
from learner_catalogue import RULES, natural_loss
from shards_apart import WIDE, merged_both_ways

from hopefear.core.learner import Learner
from hopefear.readouts.averaged import Averaged
from hopefear.readouts.last import Last
from hopefear.structures.classes import Binary
from hopefear.training.marks import cover, mark, new_marks, octets_of


@pytest.mark.parametrize("shards", [2, 3])
@pytest.mark.parametrize(
    ("name", "readout", "block"),
    [("sgd-l2", Averaged(), 1), ("sgd-l2", Last(), 1), ("rda-elastic", Averaged(), 1),
     ("arow", Averaged(), 5)],
)  # fmt: skip
def test_one_sweep_merges_as_changes_do(name, readout, block, shards):
    learner = Learner(natural_loss(RULES[name]), RULES[name], readout, block=block)
    one, _ = merged_both_ways(WIDE, Binary(150), learner, shards, "moved")
    assert np.count_nonzero(one._whole.state[0][64:128]) > 24  # neighbours are merged together


def test_marks_cover_what_moves():
    dice = np.random.default_rng(4)
    for width in (1, 2, 7, 8, 9, 24, 100):
        n = width * 60
        moved, begun, touched = new_marks(n), new_marks(n), np.zeros(n, bool)
        for base in width * dice.choice(60, 5, replace=False):
            mark(begun, base)
            touched[base : base + width] = True
        for j in dice.choice(n, 5):
            mark(moved, j)
            touched[j] = True
        cover(moved, begun, width)
        octets = octets_of(moved)
        assert not begun.any() and octets.tolist() == np.flatnonzero(moved).tolist()
        assert np.isin(np.flatnonzero(touched) // 8, octets).all()
        assert octets.size <= 5 + 5 * (width // 8 + 2)

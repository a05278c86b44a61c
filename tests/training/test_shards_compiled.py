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
from hopefear.training.marks import ids_of, mark_stretch, new_bits, ones


@pytest.mark.parametrize("shards", [2, 3])
@pytest.mark.parametrize(
    ("name", "readout", "block"),
    [("sgd-l2", Averaged(), 1), ("sgd-l2", Last(), 1), ("rda-elastic", Averaged(), 1),
     ("arow", Averaged(), 5)],
)  # fmt: skip
def test_one_sweep_merges_as_changes_do(name, readout, block, shards):
    learner = Learner(natural_loss(RULES[name]), RULES[name], readout, block=block)
    one, _ = merged_both_ways(WIDE, Binary(150), learner, shards, "moved")
    assert np.count_nonzero(one._whole.state[0][64:128]) > 24  # vectors


def test_marks():
    bits = new_bits(300)
    mark_stretch(bits, 60, 140)
    assert ids_of(bits).tolist() == list(range(60, 200)) and ones(bits[0]) == 4

"""Learners with blocks on all structures, and what they learned, byte for byte."""

from __future__ import annotations

import numpy as np

from hopefear.costs.regret import Regret
from hopefear.losses.hinge import Hinge
from hopefear.losses.hope_fear import HopeFear
from hopefear.losses.log import Log
from hopefear.losses.nbest_mira import NBestMIRA
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.sapo import SAPO
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.structures.chain.chain import Chain
from hopefear.structures.nbest import NBest
from hopefear.testing.trees import tiny_structures
from hopefear.training.online import OnlineTrainer

ORDER = np.random.default_rng(0).permutation(np.tile(np.arange(30), 2))
STRUCTURED = {
    "chain": (Chain.new(5, 3), (SAPO(n=3), Log(), StructuredHinge())),
    "second-order": (Chain.new(5, 2, 4, order=2), (SAPO(n=3), NBestMIRA(n=3))),
    "list": (NBest(6), (Perceptron(), Log(), HopeFear(Regret()))),
    "ties": (NBest(6, tied=True), (Hinge(),)),
    "projective": (tiny_structures()["projective trees"], (Hinge(), Log())),
    "second-order tree": (tiny_structures()["second-order trees"], (StructuredHinge(),)),
}


def learned(structure, learner, rows, jobs=1, order=ORDER, dtype=np.float64):
    trainer = OnlineTrainer(structure, learner, dtype, jobs)
    trainer.learn(rows, order)
    trainer.close()
    return trainer


def same(one, other):
    one, other = one.arrays(), other.arrays()
    assert one.keys() == other.keys()
    for key in one:
        assert one[key].tobytes() == other[key].tobytes(), key

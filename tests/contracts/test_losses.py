"""Losses on every kind of outputs: values, margins and directions are those of the papers.

Enumerated worlds, formulas and numerical gradients are those of ``hopefear.testing``.
"""

from __future__ import annotations

import numpy as np
import pytest

from hopefear.core.interfaces import inferences_of
from hopefear.core.learner import describe
from hopefear.costs.hamming import Hamming
from hopefear.costs.regret import Regret
from hopefear.costs.weighted import Weighted
from hopefear.losses.exponential import Exponential
from hopefear.losses.hinge import Hinge
from hopefear.losses.hope_fear import HopeFear
from hopefear.losses.linear import Linear
from hopefear.losses.log import Log
from hopefear.losses.logistic import Logistic
from hopefear.losses.nbest_mira import NBestMIRA
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.prediction_hinge import PredictionHinge
from hopefear.losses.ramp import Ramp
from hopefear.losses.risk import Risk
from hopefear.losses.sapo import SAPO
from hopefear.losses.smoothed_hinge import SmoothedHinge
from hopefear.losses.squared_hinge import SquaredHinge
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.losses.weighted_log import WeightedLog
from hopefear.structures.chain.chain import Chain
from hopefear.structures.classes import Multiclass
from hopefear.testing import check_loss, tiny_rows, tiny_structures

pytestmark = pytest.mark.interpreted

STRUCTURES = tiny_structures() | {
    "three classes": Multiclass(5, 3, bias=0.7),
    "first order": Chain.new(4, 3),
    "rich edges": Chain.new(4, 2, 2),
}
del STRUCTURES["nonprojective second-order trees"]  # of its one loss more: test_testing
LISTS, TREES = ("lists", "tied lists"), [name for name in STRUCTURES if "trees" in name]
# Without costs.
PLAIN = [
    *(Perceptron(), Perceptron(force=0.5), Hinge(), Hinge(asked=0.3), SquaredHinge(), Logistic()),
    SmoothedHinge(width=0.5),
    *(Logistic(base=2), Exponential(limit=1.5), Linear(), Log(), Log(force=0.5)),
    *(SAPO(n=1), SAPO(n=3), SAPO(n=4, ratio=3.0)),
]


def costly(cost):
    """Losses with a cost."""
    return [
        *(StructuredHinge(cost), PredictionHinge(cost), PredictionHinge(cost, root=True)),
        *(Ramp(cost), NBestMIRA(cost, n=1), NBestMIRA(cost, n=3, C=0.1, rounds=5000)),
        *(NBestMIRA(cost, n=3, C=10.0, root=True, rounds=5000),),
        *(NBestMIRA(cost, n=3, sequential=True), HopeFear(cost), HopeFear(cost, toward=1, away=1)),
        *(
            Risk(cost),
            Risk(cost, inverse_temperature=0.6),
            WeightedLog(cost, inverse_temperature=2.0),
        ),
    ]


def losses_of(name):
    if name in LISTS:
        more = [HopeFear(Regret(2.0), *way) for way in ((0, 1), (0, 2), (1, 0), (1, 2))]
        feared = NBestMIRA(Regret(), n=3, augmented=True, rounds=5000)
        return [*costly(Regret()), *more, feared, StructuredHinge(Hamming(0.7))]
    if name in TREES:
        return costly(Hamming(0.6))
    n = STRUCTURES[name].n_labels
    prices = np.random.default_rng(5).uniform(0.2, 2.0, (n, n))
    np.fill_diagonal(prices, 0.0)
    return [*costly(Hamming(0.6)), *costly(Weighted(prices))[:9]]


def offered(name, loss):
    return set(loss.requires()) <= inferences_of(STRUCTURES[name])


GRID = [
    (name, loss)
    for name in STRUCTURES
    for loss in [*PLAIN, *losses_of(name)]
    if offered(name, loss)
]


@pytest.mark.parametrize(("name", "loss"), GRID, ids=[f"{n}-{describe(loss)}" for n, loss in GRID])
def test_values_and_directions_are_those_of_the_papers(name, loss):
    structure = STRUCTURES[name]
    rows = tiny_rows(structure, seed=1)
    weights = np.resize([1.0, 2.0, 0.0, 0.5, 1.0], rows.weights.size)
    assert check_loss(loss, structure, rows._replace(weights=weights)) == []

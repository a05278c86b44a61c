"""Kernels of margins in batch, compiled: they come to what plain Python comes to."""

from __future__ import annotations

import numpy as np
import pytest
from chain_oracle import corpus

from hopefear.costs.hamming import Hamming
from hopefear.costs.regret import Regret
from hopefear.data.generators import sparse_linear
from hopefear.losses.ramp import Ramp
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.structures.chain.chain import Chain
from hopefear.structures.classes import Binary
from hopefear.structures.nbest import NBest
from hopefear.testing.worlds import tiny_rows
from hopefear.training.cccp import ConcaveConvex
from hopefear.training.cutting_plane import CuttingPlane
from hopefear.training.frank_wolfe import FrankWolfe
from hopefear.training.loop import fit
from hopefear.training.m3n import M3N
from hopefear.training.passes import Passes, Whole


def test_classes():
    data = sparse_linear(200, 40, per_row=(5, 10), true_weights=10, seed=1).dataset()
    values = [
        fit(Binary(40), learner, Passes(data)).history[-1]["objective"]
        for learner in (
            CuttingPlane(1.0, 100, 1e-3, slack="one"),
            CuttingPlane(1.0, 100, 1e-3, slack="n"),
            FrankWolfe(1.0, 300, 1e-3),
        )
    ]
    assert values == pytest.approx([values[0]] * 3, rel=1e-3)
    for inner in ("bcfw", "sgd"):
        learner = ConcaveConvex(1.0, 4, inner=inner, rate=0.01)
        objectives = [e["objective"] for e in fit(Binary(40), learner, Passes(data)).history]
        assert objectives == sorted(objectives, reverse=True)


def test_m3n():
    data = corpus(3, n=16)
    chain = Chain.new(data.features.size, len(data.labels))
    result = fit(chain, M3N(1.0, 40, 0.05), Passes(data))
    assert result.converged
    np.testing.assert_allclose(result.trainer.marginals(0).sum(axis=1), 1.0)


@pytest.mark.parametrize(
    ("structure", "cost"),
    [(NBest(6), Regret()), (Chain.new(attributes=4, labels=3), Hamming())],
    ids=["lists", "chain"],
)
def test_structures(structure, cost):
    passes = Whole(tiny_rows(structure, 3), 1)
    planes = fit(structure, CuttingPlane(2.0, 40, 1e-3, StructuredHinge(cost), slack="n"), passes)
    assert planes.converged
    hopes = fit(structure, ConcaveConvex(0.5, 3, loss=Ramp(cost)), passes)
    objectives = [e["objective"] for e in hopes.history]
    assert objectives == sorted(objectives, reverse=True)
    assert objectives[-1] < hopes.trainer.values[0]

"""Every method of the N-best structure against dense matrices and sorted lists."""

from __future__ import annotations

import numpy as np
import pytest
from chain_oracle import Sums, softmax
from list_oracle import ListWorld, rows_of, tiny_lists

from hopefear.core.interfaces import inferences_of, n_weights
from hopefear.core.workspace import DenseWeights, Example
from hopefear.losses.log import Log
from hopefear.losses.sapo import SAPO
from hopefear.structures.nbest import NBest

pytestmark = pytest.mark.interpreted

FEATURES, DEPTH = 4, 5


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("behind", [30.0, 700.0, 720.0, 744.0, 746.0, 1e5])
def test_gold_that_is_far_behind_still_has_a_finite_loss(behind, tied):
    """Its probability is a denormal number, or none, and the loss is what it is behind."""
    rows = rows_of([[[behind], [0.0], [-1.0]]], [[1.0, 0.0, 0.0]])
    structure = NBest(1, tied)
    work = structure.workspace(rows, Log(), np.float64)
    x = Example(rows, 0)
    structure.score(x, DenseWeights(np.ones(1)), work.theta)
    value, _ = structure.kl_and_gradient(x, work.theta, None, 1.0, 1.0, work.mu)
    alike = np.log1p(np.exp(-1.0)) if tied else 0.0
    assert value == pytest.approx(behind - alike, abs=0.4)
    assert np.isfinite(work.mu.parts).all()
    assert work.mu.parts.sum() == pytest.approx(0.0, abs=1e-12)
    assert work.mu.parts[0] == pytest.approx(-1.0)


@pytest.mark.parametrize("tied", [False, True])
def test_scores_that_are_no_numbers_are_seen(tied):
    """Wherever gold stands, so that training can say that its steps are too long."""
    rows = rows_of([[[1.0], [2.0]], [[2.0], [1.0]]], [[0.0, 1.0], [1.0, 0.0]])
    structure = NBest(1, tied)
    work = structure.workspace(rows, Log(), np.float64)
    with np.errstate(all="ignore"):
        for i in range(2):
            for w in (np.inf, np.nan):
                x = Example(rows, i)
                structure.score(x, DenseWeights(np.array([w])), work.theta)
                assert not np.isfinite(structure.margin(x, work.theta, work.y, False))
                value, _ = structure.kl_and_gradient(x, work.theta, None, 1.0, 1.0, work.mu)
                assert not np.isfinite(value)


def test_single_precision_stays_near():
    rows = tiny_lists(2, features=FEATURES)
    structure, w = NBest(FEATURES), np.random.default_rng(3).normal(size=FEATURES)
    work = structure.workspace(rows, SAPO(n=DEPTH), np.float32)
    assert work.theta.local.dtype == work.mu.local.dtype == np.float32
    for i in range(len(rows.weights)):
        x = Example(rows, i)
        structure.score(x, DenseWeights(w.astype(np.float32)), work.theta)
        world = ListWorld(structure, rows, i, w)
        np.testing.assert_allclose(work.theta.points[: len(world.scores)], world.scores, atol=1e-5)
        structure.kl_and_gradient(x, work.theta, None, 1.0, 1.0, work.mu)
        row = Sums(np.zeros(FEATURES), np.zeros(FEATURES, np.int64), True)
        structure.scatter(x, work.mu, row)
        wanted = world.F[world.gold] - softmax(world.scores) @ world.F
        np.testing.assert_allclose(row.g, wanted, atol=1e-5)


def test_sizes_and_offers():
    rows = tiny_lists(4, sizes=(3, 5, 1), features=FEATURES)
    structure = NBest(FEATURES)
    assert n_weights(structure) == FEATURES
    work = structure.workspace(rows, SAPO(n=9), np.float64)
    assert work.max_nnz == np.diff(rows.scopes).max()
    assert len(work.theta.points) == 5 and work.outputs.shape == (9, 2)
    assert set(inferences_of(structure)) >= {
        "cost",
        "nbest",
        "expectation",
        "risk",
        "worst",
        "bounded",
    }

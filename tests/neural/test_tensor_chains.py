"""Sums and searches over chains as tensor code: the same as the kernels."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from score_batches import no_step_back

from hopefear.errors import HopefearError
from hopefear.losses.log import Log
from hopefear.neural import ChainLoss
from hopefear.neural.tensor_chains import log_losses

pytestmark = [pytest.mark.needs("neural"), pytest.mark.interpreted]

LENGTHS = [11, 1, 10, 2, 9]


def scores_of(scale=1.0, labels=4, seed=1):
    rng = np.random.default_rng(seed)
    shapes = ((5, 11, labels), (labels, labels), (labels,), (labels,))
    scores = [torch.tensor(scale * rng.normal(size=shape)) for shape in shapes]
    for i, length in enumerate(LENGTHS):
        scores[0][i, length:] = np.nan  # padding may hold anything
    gold = np.sort(rng.integers(0, labels - 1, (5, 11)), axis=1)
    return scores, gold


def both_ways(limits, scale, loss=None):
    found = []
    for tensors in (False, True):
        scores, gold = scores_of(scale)
        for part in scores:
            part.requires_grad_()
        loss = Log(0.5) if loss is None else loss
        module = ChainLoss(loss, limits=limits, tensors=tensors, reduction="none")
        values = module(*scores[:2], gold, LENGTHS, *scores[2:])
        values.backward(torch.linspace(-1.0, 2.0, 5, dtype=torch.float64))
        found.append([values.detach(), *(part.grad for part in scores)])
    return found


@pytest.mark.parametrize("limits", [None, no_step_back(4)], ids=["free", "limited"])
@pytest.mark.parametrize("scale", [1.0, 30.0, 400.0])  # beyond what products can hold, too
def test_losses_and_gradients(limits, scale):
    for ours, theirs in zip(*both_ways(limits, scale), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("limits", [None, no_step_back(4)], ids=["free", "limited"])
def test_searches(limits):
    (nodes, transitions, start, end), _ = scores_of()
    kernels, tensors = (ChainLoss(Log(), limits=limits, tensors=on) for on in (False, True))
    given = (nodes, transitions, LENGTHS, start, end)
    assert np.array_equal(kernels.best(*given), tensors.best(*given))
    ours, theirs = kernels.nbest(*given, n=5), tensors.nbest(*given, n=5)
    for one, other in zip(ours, theirs, strict=True):
        assert one.labels.tolist() == other.labels.tolist()
        for field in ("scores", "probabilities", "shares"):
            np.testing.assert_allclose(getattr(one, field), getattr(other, field), rtol=1e-9)


def test_of_equal_paths_the_lower_label_comes_first():
    nodes = torch.zeros(2, 4, 3)
    assert not ChainLoss(Log(), tensors=True).best(nodes).any()


def test_what_cannot_be_right_and_what_is_not_finite():
    module = ChainLoss(Log(), limits=no_step_back(3), tensors=True)
    with pytest.raises(HopefearError, match="example 2 of the batch: what is right there is"):
        module(torch.zeros(2, 2, 3), None, [[0, 1], [1, 0]])
    with pytest.raises(HopefearError, match="scores of the network are not finite"):
        module(torch.full((1, 2, 3), np.nan), None, [[0, 1]])


def test_scores_that_products_cannot_hold_are_noticed():
    nodes, gold = torch.zeros(1, 3, 2), torch.zeros(1, 3, dtype=torch.long)
    _, exact = log_losses(nodes, torch.tensor([[0.0, -90.0], [0.0, 0.0]]), gold, torch.tensor([3]))
    assert not exact

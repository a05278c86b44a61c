"""The kernels behind a network's loss, compiled, on chains."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from score_batches import CASES

from hopefear.losses.log import Log
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.sapo import SAPO
from hopefear.neural import ChainLoss
from hopefear.testing import World, formula_of

pytestmark = pytest.mark.needs("neural")


@pytest.mark.parametrize("loss", [Log(), SAPO(3), Perceptron()], ids=lambda loss: loss.__doc__[:8])
def test_chains_in_threads_equal_their_enumeration(loss):
    case, rng = CASES["chain"], np.random.default_rng(2)
    module = case.module(loss, reduction="none", n_jobs=2)
    for _ in range(3):
        scores = {key: rng.normal(size=a.shape) for key, a in case.scores.items()}
        tensors = {key: torch.tensor(a, dtype=torch.float32) for key, a in scores.items()}
        for tensor in tensors.values():
            tensor.requires_grad_()
        batch = case.batch(scores)
        worlds = [World.at(batch.structure, batch.rows, i, batch.weights) for i in range(3)]
        forces = [formula_of(loss)(loss, world) for world in worlds]
        values = case.call(module, tensors)
        np.testing.assert_allclose(values.detach(), [f.value for f in forces], atol=1e-5)
        values.sum().backward()
        g = -np.array([f.g for f in forces])
        wanted = batch.views(g[:, : batch.shared].sum(axis=0), g[:, batch.shared :])
        for tensor, part in zip(tensors.values(), wanted, strict=True):
            part = part if part.shape == tensor.shape else part.sum(axis=0)
            np.testing.assert_allclose(tensor.grad, part, atol=1e-5)


def test_results_repeat_bit_for_bit_whatever_the_threads():
    torch.manual_seed(1)
    nodes, transitions = torch.randn(9, 7, 22), torch.randn(22, 22)
    gold, lengths = torch.randint(22, (9, 7)), torch.tensor([7, 1, 3, 7, 2, 5, 6, 7, 4])
    runs = []
    for jobs in (1, 2, 4, 2):
        scores = [nodes.clone().requires_grad_(), transitions.clone().requires_grad_()]
        loss = ChainLoss(Log(), n_jobs=jobs)(*scores, gold, lengths)
        loss.backward()
        runs.append([loss.detach().numpy(), *(s.grad.numpy() for s in scores)])
    for run in runs[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(run, runs[0], strict=True))

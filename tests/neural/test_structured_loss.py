"""Every loss on the scores of every structure, against enumeration and differences."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from score_batches import CASES, chain_case, no_step_back

import hopefear.neural
from hopefear.core.learner import check_served, describe
from hopefear.costs.hamming import Hamming
from hopefear.data.tree_rows import TreeKind
from hopefear.errors import CombinationError, HopefearError
from hopefear.losses.log import Log
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.sapo import SAPO
from hopefear.losses.weighted_log import WeightedLog
from hopefear.neural import ChainLoss, ClassLoss, ListLoss, TreeLoss
from hopefear.testing import World, formula_of, registered_parts
from hopefear.testing.contracts import NOT_GRADIENTS

pytestmark = [pytest.mark.needs("neural"), pytest.mark.interpreted]

LOSSES = [part.part for part in registered_parts("loss")]


def tensors_of(case):
    return {name: torch.tensor(a, requires_grad=True) for name, a in case.scores.items()}


def served(case, loss):
    """Whether the structure has what the loss needs; else the module must refuse it too."""
    try:
        check_served(case.batch(case.scores).structure, loss)
        return True
    except CombinationError as error:
        reason = re.escape(str(error))
    with pytest.raises(CombinationError, match=reason):
        case.call(case.module(loss), tensors_of(case))
    return False


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("loss", LOSSES, ids=describe)
def test_losses_and_gradients_are_those_of_the_linear_learner(name, loss):
    case = CASES[name]
    if not served(case, loss):
        return
    if type(loss).__name__ == "SWVP" and "limits" in name:
        return  # mixtures of gold and an output may be forbidden, and have no formula then
    batch, formula = case.batch(case.scores), formula_of(loss)
    n, shared = batch.rows.weights.size, batch.shared
    worlds = [World.at(batch.structure, batch.rows, i, batch.weights) for i in range(n)]
    forces = [formula(loss, world) for world in worlds]
    factors = np.array([1.0, 0.5, -2.0])
    values = case.call(case.module(loss, reduction="none"), tensors := tensors_of(case))
    tolerance = {"rtol": 1e-9, "atol": 1e-5 if type(loss).__name__ == "NBestMIRA" else 1e-9}
    np.testing.assert_allclose(values.detach(), [f.value for f in forces], **tolerance)
    values.backward(torch.tensor(factors))
    g = -factors[:, None] * np.array([f.g for f in forces])
    wanted = batch.views(g[:, :shared].sum(axis=0), g[:, shared:])
    for tensor, part in zip(tensors.values(), wanted, strict=True):
        part = part if part.shape == tensor.shape else part.sum(axis=0)
        np.testing.assert_allclose(tensor.grad, part, **tolerance)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("loss", LOSSES, ids=describe)
def test_gradients_are_finite_differences(name, loss):
    case = CASES[name]
    if type(loss).__name__ in NOT_GRADIENTS or not served(case, loss):
        return
    module, step, rng = case.module(loss, reduction="none"), 1e-5, np.random.default_rng(1)
    values = case.call(module, tensors := tensors_of(case))
    rivalled = values.detach().abs() < 1e6  # margins of what has no rival are beyond differences
    values.backward(rivalled.double())
    along = {name: rng.normal(size=a.shape) for name, a in case.scores.items()}

    def at(distance):
        moved = {key: torch.tensor(a + distance * along[key]) for key, a in case.scores.items()}
        return case.call(module, moved)[rivalled].sum().item()

    slope = sum(float((tensors[key].grad.numpy() * along[key]).sum()) for key in tensors)
    assert slope == pytest.approx((at(step) - at(-step)) / (2 * step), rel=1e-6, abs=1e-7)


def test_reductions_and_threads_change_no_bit():
    case = CASES["chain"]
    each = case.call(case.module(Log(), reduction="none", n_jobs=3), tensors_of(case))
    one = case.call(case.module(Log(), reduction="none", n_jobs=1), tensors_of(case))
    assert each.tolist() == one.tolist()
    assert case.call(case.module(Log()), tensors_of(case)).item() == each.mean().item()
    assert case.call(case.module(Log(), reduction="sum"), tensors_of(case)) == each.sum()


def test_a_batch_of_one_and_no_transitions():
    nodes = torch.randn(1, 1, 3, dtype=torch.float64, requires_grad=True)
    gold = torch.tensor([[2]])
    ours = ChainLoss(Log())(nodes, None, gold)
    theirs = torch.nn.functional.cross_entropy(nodes[0], gold[0])
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-12)
    assert torch.autograd.gradcheck(lambda n: ChainLoss(Log())(n, None, gold), nodes)


def test_narrow_scores_are_widened():
    nodes = torch.randn(2, 3, 4).bfloat16().requires_grad_()
    loss = ChainLoss(Log())(nodes, None, torch.zeros(2, 3, dtype=torch.long))
    loss.backward()
    assert loss.dtype == nodes.grad.dtype == torch.bfloat16


def test_what_is_forbidden_cannot_be_right():
    case = chain_case(limits=no_step_back(3))
    nodes, transitions = torch.zeros(1, 2, 3), torch.zeros(3, 3)
    for loss in (Log(), Perceptron(), SAPO(3)):
        with (
            np.errstate(invalid="ignore"),
            pytest.raises(HopefearError, match="example 1 of the batch: what is right there is"),
        ):
            case.module(loss)(nodes, transitions, [[1, 0]])
    nodes[0, 1, 1] = -np.inf
    with pytest.raises(HopefearError, match="loosen the limits"):
        ChainLoss(Log())(nodes, transitions, [[0, 1]])
    with pytest.raises(HopefearError, match="scores of the network are not finite; lower the"):
        ChainLoss(Log())(nodes * np.nan, transitions, [[0, 1]])
    round_and_round = [[0, 2, 1, 1]]
    with pytest.raises(HopefearError, match="sentence 1: the heads of word 1 go round"):
        TreeLoss(Log())(torch.zeros(1, 4, 4), None, round_and_round)
    with pytest.raises(HopefearError, match="sentence 1: 2 words hang on the root"):
        TreeLoss(Log(), kind=TreeKind(1, True, True))(torch.zeros(1, 3, 3), None, [[0, 0, 0]])
    with pytest.raises(HopefearError, match="what is right there is forbidden"):
        TreeLoss(Log())(torch.full((1, 2, 2), -np.inf), None, [[0, 0]])


def test_scores_that_are_no_numbers_are_refused_by_losses_that_only_search_too():
    nodes = torch.zeros(2, 3, 3)
    nodes[1, 2, 0] = np.nan
    refused = pytest.raises(HopefearError, match="scores of the network are not finite")
    with refused:
        ChainLoss(Perceptron())(nodes, None, [[0, 1, 2]] * 2)
    assert ChainLoss(Perceptron())(nodes, None, [[0, 1, 2]] * 2, [3, 2]).isfinite()  # padding
    pairs = torch.zeros(2, 2, 3, 3)
    pairs[1, 1] = np.nan
    with refused:
        ChainLoss(Perceptron())(nodes[:1].expand(2, 3, 3), pairs, [[0, 1, 2]] * 2)
    assert ChainLoss(Perceptron())(nodes, pairs, [[0, 1, 2]] * 2, [3, 2]).isfinite()
    arcs, relations = torch.zeros(1, 3, 3), torch.zeros(1, 3, 3, 2)
    relations[0, 1, 0, 1] = np.nan
    with refused:
        TreeLoss(Perceptron())(arcs, relations, [[0, 0, 1]], [[0, 0, 1]])
    arcs[0, torch.arange(3), torch.arange(3)] = np.nan
    assert TreeLoss(Perceptron())(arcs, None, [[0, 0, 1]]).isfinite()  # no word heads itself
    arcs[0, 2, 1] = np.nan
    with refused:
        TreeLoss(Perceptron())(arcs, None, [[0, 0, 1]])


def test_an_old_pytorch_is_named(monkeypatch):
    monkeypatch.setattr(hopefear.neural.importlib.metadata, "version", lambda name: "2.5.1+cpu")
    with pytest.raises(HopefearError, match=r"need PyTorch 2\.6 or newer, and 2\.5\.1\+cpu"):
        hopefear.neural.check_torch()


def test_bad_shapes_and_numbers_are_refused():
    nodes, gold = torch.zeros(2, 3, 4), torch.zeros(2, 3, dtype=torch.long)
    chain = ChainLoss(Log(), labels=4)
    for refused, words in (
        (
            lambda: chain(nodes[0], None, gold),
            r"expected the shape \(any, any, 4\), found \(3, 4\)",
        ),
        (
            lambda: chain(nodes, torch.zeros(4, 3), gold),
            "scores of transitions: expected the shape",
        ),
        (lambda: chain(nodes, None, gold + 4), "gold labels are numbers from 0 to 3 here"),
        (lambda: chain(nodes, None, gold.float()), "gold labels: expected whole numbers"),
        (lambda: chain(nodes, None, gold, [0, 3]), "each of 1 to 3 tokens here; lengths are 0 to"),
        (lambda: chain(nodes[:0], None, gold[:0]), "a batch has at least one example"),
        (lambda: chain(nodes, None, gold, end=torch.zeros(3)), "scores of last labels"),
        (lambda: ChainLoss(Log(), reduction="max"), "reduction is one of mean, sum, none"),
        (lambda: ClassLoss(Log())(nodes[0, :, :1], gold[0]), "3 examples of 1 classes"),
        (lambda: ListLoss(Log())(nodes[0], nodes[0] * np.nan), "costs: expected finite numbers"),
        (lambda: ListLoss(Log())(nodes[0], nodes[0], [0, 0, 4]), "below the length of their list"),
        (lambda: TreeLoss(Log())(nodes, None, gold), "expected words by heads"),
        (
            lambda: TreeLoss(Log())(nodes[:, :, :3], None, gold + 3),
            "heads are numbers from 0, the root, to the length",
        ),
        (
            lambda: TreeLoss(Log())(nodes[..., :3], torch.zeros(2, 3, 3, 4), gold),
            "the right ones were not given",
        ),
        (
            lambda: TreeLoss(Log())(nodes[..., :3], None, gold, lasts=nodes[..., :3]),
            "need trees of the second order",
        ),
    ):
        with pytest.raises(HopefearError, match=words):
            refused()


def test_answers_of_chains_are_those_of_all_outputs():
    case = CASES["chain"]
    batch, module = case.batch(case.scores), case.module(Log())
    scores = [torch.tensor(a) for a in case.scores.values()]
    given = (scores[0], scores[1], [3, 1, 2], *scores[2:])
    best, ranked, shares = (
        module.best(*given),
        module.nbest(*given, n=2),
        module.marginals(*given),
    )
    for i, length in enumerate((3, 1, 2)):
        world = World.at(batch.structure, batch.rows, i, batch.weights)
        order = world.ranked()
        ys = np.array(world.outputs.ys)
        assert best[i].tolist() == [*ys[order[0]], *[-1] * (3 - length)]
        assert ranked[i].labels.tolist() == ys[order[:2]].tolist()
        p = np.exp(world.scores - np.logaddexp.reduce(world.scores))
        wanted = np.array([[p[ys[:, t] == c].sum() for c in range(3)] for t in range(length)])
        np.testing.assert_allclose(shares[i, :length], wanted, rtol=1e-9)
        assert not shares[i, length:].any()


def test_answers_of_trees_are_those_of_all_outputs():
    case = CASES["trees"]
    batch, module = case.batch(case.scores), case.module(Log())
    given = (*(torch.tensor(a) for a in case.scores.values()), [3, 1, 2])
    heads, names = module.best(*given)
    ranked, shares = module.nbest(*given, n=2), module.marginals(*given)
    for i, length in enumerate((3, 1, 2)):
        world = World.at(batch.structure, batch.rows, i, batch.weights)
        order, ys = world.ranked(), np.array(world.outputs.ys)
        assert heads[i].tolist() == [-1, *ys[order[0]] // 2, *[-1] * (3 - length)]
        assert names[i].tolist() == [-1, *ys[order[0]] % 2, *[-1] * (3 - length)]
        assert ranked[i].labels.tolist() == ys[order[:2]].tolist()
        p = np.exp(world.scores - np.logaddexp.reduce(world.scores))
        for m in range(1, length + 1):
            wanted = [p[ys[:, m - 1] // 2 == h].sum() for h in range(4)]
            np.testing.assert_allclose(shares[i, m], wanted, atol=1e-9)
        assert not shares[i, length + 1 :].any()


def test_one_relation_is_added_to_the_arcs():
    arcs, relations = torch.randn(1, 3, 3), torch.randn(1, 3, 3, 1)
    module, heads = TreeLoss(Log(), kind=TreeKind(1)), [[0, 0, 1]]
    both, added = module(arcs, relations, heads), module(arcs + relations[..., 0], None, heads)
    assert both.item() == added.item()


def test_weighted_log_wants_nothing_that_masks_forbid():
    loss = WeightedLog(Hamming(), inverse_temperature=2.0)
    nodes = torch.randn(1, 2, 3, dtype=torch.double)
    nodes[0, 1, 2] = -np.inf
    nodes.requires_grad_()
    value = ChainLoss(loss)(nodes, None, [[0, 1]])
    value.backward()
    P = torch.log_softmax(nodes.detach(), -1)[0]
    Q = torch.log_softmax(torch.tensor([[0.0, -2, -2], [-2, 0, -np.inf]]), -1)
    wanted = (Q.exp() * (Q - P)).nan_to_num().sum()
    assert value.item() == pytest.approx(wanted.item(), rel=1e-6)
    np.testing.assert_allclose(nodes.grad[0], P.exp() - Q.exp(), atol=1e-6)
    arcs = torch.randn(1, 3, 3, dtype=torch.double)
    arcs[0, 1, 2] = -np.inf
    assert torch.isfinite(TreeLoss(loss)(arcs, None, [[0, 0, 1]]))

"""Small padded batches of scores for every structure, and what loss they go to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import torch

from hopefear.data.tree_rows import TreeKind
from hopefear.neural.batches import (
    Batch,
    ChainScores,
    TreeScores,
    chain_batch,
    class_batch,
    list_batch,
    tree_batch,
)
from hopefear.neural.structured_loss import ChainLoss, ClassLoss, ListLoss
from hopefear.neural.tree_loss import TreeLoss
from hopefear.structures.chain.theta import Limits
from hopefear.structures.lattice import padded_width
from hopefear.structures.tree.searches import tree_search


class Case(NamedTuple):
    """Scores, the module that takes them, and the batch it must make of them."""

    scores: dict[str, np.ndarray]
    module: Callable[[Any], Any]
    call: Callable[[Any, dict], torch.Tensor]
    batch: Callable[[dict], Batch]


def chain_case(rich: bool = False, ends: bool = False, limits: Limits | None = None) -> Case:
    """Sequences of 3, 1 and 2 tokens and 3 labels."""
    rng, lengths = np.random.default_rng(3), np.array([3, 1, 2])
    scores = {"nodes": rng.normal(size=(3, 3, 3))}
    scores["transitions"] = rng.normal(size=(3, 2, 3, 3) if rich else (3, 3))
    if ends:
        scores |= {"start": rng.normal(size=3), "end": rng.normal(size=3)}
    gold = np.array([[0, 1, 2], [1, 9, 9], [1, 2, -5]])  # what is behind the end does not matter

    def call(module, tensors):
        more = {name: tensors[name] for name in tensors if name in ("start", "end")}
        return module(tensors["nodes"], tensors["transitions"], gold, lengths, **more)

    return Case(
        scores,
        lambda loss, **more: ChainLoss(loss, 3, limits, **more),
        call,
        lambda arrays: chain_batch(ChainScores(**arrays), gold, lengths, limits),
    )


def no_step_back(labels: int) -> Limits:
    """Labels that never become lower; the first is not the last one."""
    width = padded_width(labels)
    step = np.zeros((width, width), np.float32)
    step[np.arange(width)[:, None] < np.arange(width)] = -np.inf
    start, end = np.zeros((2, width), np.float32)
    start[labels - 1] = -np.inf
    return Limits(start, end, step.ravel(), np.empty(0, np.float32))


def tree_case(kind: TreeKind, relations: int) -> Case:
    """Sentences of 3, 1 and 2 words; one arc is not looked at."""
    rng, lengths, side = np.random.default_rng(5), np.array([3, 1, 2]), 4
    scores = {"arcs": rng.normal(size=(3, side, side))}
    scores["arcs"][0, 3, 1] = -np.inf
    if relations > 1:
        scores["relations"] = rng.normal(size=(3, side, side, relations))
    if kind.order == 2:
        scores["siblings"] = rng.normal(size=(3, side, side, side))
        scores["lasts"] = rng.normal(size=(3, side, side))
        scores["grandparents"] = rng.normal(size=(3, side, side, side))
    heads = np.array([[7, 2, 0, 2], [7, 0, 9, 9], [7, 0, 1, 9]])
    names = rng.integers(0, relations, (3, side))

    def call(module, tensors):
        more = {name: tensors[name] for name in ("siblings", "lasts", "grandparents")}
        more = {name: value for name, value in more.items() if value is not None}
        return module(tensors["arcs"], tensors["relations"], heads, names, lengths, **more)

    return Case(
        scores,
        lambda loss, **more: TreeLoss(loss, relations, kind, **more),
        lambda module, tensors: call(module, {**dict.fromkeys(TreeScores._fields), **tensors}),
        lambda arrays: tree_batch(TreeScores(**arrays), heads, names, lengths, tree_search(*kind)),
    )


def list_case(tied: bool) -> Case:
    """Lists of 3, 1 and 2 candidates, some as cheap as the cheapest."""
    rng, lengths = np.random.default_rng(7), np.array([3, 1, 2])
    costs = np.array([[0.5, 0.0, 0.0], [0.25, 0.0, 0.0], [0.75, 0.25, 0.0]])
    gold = np.array([1, 0, 1])
    return Case(
        {"scores": rng.normal(size=(3, 3))},
        lambda loss, **more: ListLoss(loss, tied, **more),
        lambda module, tensors: module(tensors["scores"], costs, None, lengths),
        lambda arrays: list_batch(arrays["scores"], costs, gold, lengths, tied),
    )


def class_case() -> Case:
    """Four classes."""
    rng, gold = np.random.default_rng(9), np.array([2, 0, 3])
    return Case(
        {"scores": rng.normal(size=(3, 4))},
        lambda loss, **more: ClassLoss(loss, **more),
        lambda module, tensors: module(tensors["scores"], gold),
        lambda arrays: class_batch(arrays["scores"], gold),
    )


CASES = {
    "chain": chain_case(ends=True),
    "chain with limits": chain_case(limits=no_step_back(3)),
    "chain with its own transitions": chain_case(rich=True),
    "lists": list_case(tied=False),
    "tied lists": list_case(tied=True),
    "classes": class_case(),
    "projective trees": tree_case(TreeKind(1, projective=True, single=True), 2),
    "trees": tree_case(TreeKind(1), 2),
    "second-order trees": tree_case(TreeKind(2, projective=True), 1),
    "crossing second-order trees": tree_case(TreeKind(2), 2),
}

"""What lists should have held: costs, references or gold trees, and what each list counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.trees import TreeTextError, gold_text, parse_trees
from hopefear.errors import HopefearError
from hopefear.features.brackets import Trees, bracket_costs, bracket_counts


def weighted(block: CandidateLists, weights: Any) -> CandidateLists:
    """The lists with these weights, one each."""
    if weights is None:
        return block
    found = np.asarray(weights, np.float64)
    if found.shape != (len(block),):
        raise HopefearError(
            f"{len(block)} lists need as many weights, not an array of {found.shape}"
        )
    good = (found >= 0.0) & np.isfinite(found)
    if not good.all():
        i = int(np.argmin(good))
        raise HopefearError(f"sample_weight[{i}] is {found[i]}, not a finite number from 0 on")
    return replace(block, weights=frozen(found))


def judged_by(block: CandidateLists, y: Any, metric: str | None = None) -> CandidateLists:
    """The lists with costs, or references, from ``y``.

    Brackets of trees are counted where there are gold trees, unless ``metric`` is ``cost`` and the
    candidates have costs.
    """
    if y is None:
        return block if metric == "cost" and block.costs is not None else _counted(block)
    y = list(y)
    if len(y) != len(block):
        raise HopefearError(f"X has {len(block)} lists, y has {len(y)} entries; give one for each")
    spoken = [isinstance(one, str) or _texts(one) for one in y]
    if any(spoken):
        if not all(spoken):
            i = spoken.index(False)
            raise HopefearError(f"y[{i}] is no text, but others are; give texts or costs for all")
        references = [[one] if isinstance(one, str) else list(one) for one in y]
        return _counted(replace(block, references=references, costs=None, counts=None))
    lengths = np.diff(block.starts)
    costs = []
    for i, one in enumerate(y):
        try:
            row = np.asarray(one, np.float64)
        except (TypeError, ValueError) as error:
            raise HopefearError(
                f"y[{i}]: expected the costs of {lengths[i]} candidates, or a text, found "
                f"{one!r:.60}"
            ) from error
        if row.shape != (lengths[i],):
            raise HopefearError(
                f"y[{i}]: list {i} has {lengths[i]} candidates, but these are costs of shape "
                f"{row.shape}; give one for each"
            )
        if not np.isfinite(row).all():
            c = int(np.argmin(np.isfinite(row)))
            raise HopefearError(f"y[{i}][{c}] is {row[c]}, not a finite cost")
        costs.append(row)
    whole = np.concatenate([np.empty(0), *costs])
    return replace(block, costs=frozen(whole), counts=None, metric="cost")


def _texts(one: Any) -> bool:
    return isinstance(one, list | tuple) and bool(one) and all(isinstance(t, str) for t in one)


def _counted(block: CandidateLists) -> CandidateLists:
    """Trees against gold trees, where both are there."""
    if block.trees is None or block.references is None:
        return block
    firsts = [block.texts[c] for c in block.starts[:-1].tolist()]
    texts = [gold_text(told[0], one) for told, one in zip(block.references, firsts, strict=True)]
    golds = parsed(texts, lambda t: f"the gold tree of list {t}")
    of = np.repeat(np.arange(len(block)), np.diff(block.starts))
    counts = bracket_counts(golds, block.trees, of)
    return replace(block, counts=counts, costs=bracket_costs(counts), metric="parseval")


def parsed(texts: Sequence[str], where: Callable[[int], str]) -> Trees:
    """Trees of bracketed texts; ``where`` says where each of them stands."""
    try:
        return parse_trees(texts)
    except TreeTextError as error:
        raise HopefearError(
            f"{where(error.tree)}: expected {error.expected} (character {error.character}: "
            f"{error.found[:30]!r})"
        ) from None

"""Prices of wrong labels, from what people write."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hopefear.core import checks
from hopefear.costs.weighted import Weighted
from hopefear.data.blocks import elements
from hopefear.data.labels import class_name
from hopefear.data.sequences import SequenceDataset
from hopefear.data.sources import open_bytes
from hopefear.errors import CombinationError, HopefearError, InputError
from hopefear.recipes import CHAIN_RECIPES, LOSSES
from hopefear.storage import read_small
from hopefear.tasks import recipe

Prices = Mapping[tuple[str, str], float]
ClassWeight = str | Mapping[Any, float] | None


def resolved(params: Mapping[str, Any], labels: Sequence[str]) -> dict[str, Any]:
    """Learner parameters with a table of prices made of what was given for them.

    ``cost`` may be a mapping or the name of a file (see :func:`weighted_cost`).

    Examples
    --------
    >>> resolved({"cost": {("A", "B"): 2.0}, "C": 1}, ["A", "B"])["cost"].table.tolist()
    [[0.0, 2.0], [1.0, 0.0]]
    """
    values = dict(params)
    cost = values.get("cost")
    if isinstance(cost, Mapping):
        values["cost"] = weighted_cost(cost, labels)
    elif isinstance(cost, str | os.PathLike) and cost != "hamming":
        values["cost"] = weighted_cost(read_prices(cost), labels)
    return values


def resolved_early(params: Mapping[str, Any]) -> dict[str, Any]:
    """As :func:`resolved` before labels are known: faults are found, prices are left open."""
    values = resolved({key: value for key, value in params.items() if key != "cost"}, ())
    cost = params.get("cost", "hamming")
    if isinstance(cost, str | os.PathLike) and cost != "hamming":
        read_prices(cost)
    if "cost" in params:
        values["cost"] = "hamming"
    return values


def priced(
    params: Mapping[str, Any], learner: str, class_weight: ClassWeight, data: SequenceDataset
) -> dict[str, Any]:
    """Learner parameters with the price of missing a label: ``cost[gold, label] = factor[gold]``.

    Parameters
    ----------
    params, learner
        What was given for a recipe, and its name.
    class_weight : "balanced" or dict, optional
        Factor of each label; labels it does not name have 1. A larger one asks for a wider margin
        where the label is right, so that it is missed less often. ``"balanced"``: ``tokens /
        (labels * tokens of the label)``.
    data : SequenceDataset
        Sequences to learn from.

    Notes
    -----
    A margin is no vote: where the same evidence comes with several labels, many short steps still
    follow the commonest, whatever the margins. Longer steps (``C`` of MIRA) let costs count.

    Examples
    --------
    >>> from hopefear.data.sequences import TokenRows
    >>> from hopefear.features.attributes import AttributeFeatures
    >>> from hopefear.features.attributes import AttributeRows
    >>> rows = AttributeRows.of([[["a"], ["b"], ["a"], ["a"]]])
    >>> features = AttributeFeatures.fit(rows)
    >>> tokens = TokenRows(rows.starts, *features.encode(rows), [0, 1, 0, 0], [1.0])
    >>> data = SequenceDataset(tokens, ("A", "B"), features)
    >>> priced({}, "mira", "balanced", data)["cost"].table.round(2).tolist()
    [[0.0, 0.67], [2.0, 0.0]]
    """
    check_class_weight(params, learner, class_weight)
    if class_weight is None:
        return dict(params)
    labels = data.labels
    if isinstance(class_weight, Mapping):
        by_name = {class_name(label): float(factor) for label, factor in class_weight.items()}
        checks.check_class_weight(by_name, labels)
        factors = np.array([by_name.get(name, 1.0) for name in labels])
    else:
        weights = np.repeat(elements(data, "weights"), np.diff(elements(data, "starts")))
        counts = np.bincount(elements(data, "labels"), weights, len(labels))
        seen = counts > 0.0  # others are never right, so what they cost does not matter
        factors = np.where(seen, counts.sum() / (seen.sum() * np.where(seen, counts, 1.0)), 1.0)
    table = np.repeat(factors[:, None], len(labels), axis=1)
    np.fill_diagonal(table, 0.0)
    return {**params, "cost": Weighted(table)}


def check_class_weight(params: Mapping[str, Any], learner: str, class_weight: ClassWeight) -> None:
    """Refuse factors of labels that cannot be, or that the learner has no use for."""
    if class_weight is None:
        return
    checks.check_class_weight(class_weight)
    loss = LOSSES.get(params.get("loss", ""), getattr(recipe(learner, "tag"), "loss", None))
    if not hasattr(loss, "cost"):
        able = [
            name
            for name, one in CHAIN_RECIPES.items()
            if hasattr(getattr(one, "loss", None), "cost")
        ]
        raise CombinationError(
            f"class_weight is what it costs to miss a label, and {learner} learns without costs; "
            f"use {', '.join(able)}"
        )
    if params.get("cost", "hamming") != "hamming":
        raise CombinationError("class_weight and cost both say what mistakes cost; give one")


def weighted_cost(prices: Prices, labels: Sequence[str]) -> Weighted:
    """A table of prices; what is not named costs 1.

    Parameters
    ----------
    prices : mapping of (right label, predicted label) to float
        ``"*"`` stands for any label; what names both labels wins, then what names the right one.
    labels : sequence of str
        All labels.

    Examples
    --------
    >>> weighted_cost({("B", "*"): 3.0, ("B", "A"): 0.5}, ["A", "B", "O"]).table.tolist()
    [[0.0, 1.0, 1.0], [0.5, 0.0, 3.0], [1.0, 1.0, 0.0]]
    """
    table = np.ones((len(labels), len(labels)))
    number = {name: c for c, name in enumerate(labels)}
    every = slice(None)
    # Later ones replace earlier ones: those with most stars come first.
    for (gold, label), price in sorted(
        prices.items(), key=lambda item: (-item[0].count("*"), item[0][0] != "*")
    ):
        unknown = [name for name in (gold, label) if name != "*" and name not in number]
        if unknown:
            raise HopefearError(f"a price names the label {unknown[0]!r}, which no token has")
        rows = every if gold == "*" else number[gold]
        table[rows, every if label == "*" else number[label]] = float(price)
    np.fill_diagonal(table, 0.0)
    return Weighted(table)


def read_prices(path: str | os.PathLike[str]) -> dict[tuple[str, str], float]:
    """Prices from a file of lines ``right predicted price``."""
    prices: dict[tuple[str, str], float] = {}
    with open_bytes(path) as file:
        text = read_small(file, path).decode("utf-8-sig", errors="replace")
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        fields = line.split()
        try:
            gold, label, price = fields[0], fields[1], float(fields[2])
            if len(fields) != 3 or not 0.0 <= price < np.inf:
                raise ValueError
        except (IndexError, ValueError):
            raise InputError(
                os.fspath(path), number, "right label, predicted label, price", line.strip()
            ) from None
        prices[gold, label] = price
    return prices

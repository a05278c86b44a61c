"""Prices of wrong labels and sets of positions, from what people write."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from hopefear.costs.weighted import Weighted
from hopefear.data.files import open_bytes
from hopefear.errors import HopefearError, InputError
from hopefear.losses.swvp import substructures

Prices = Mapping[tuple[str, str], float]


def resolved(params: Mapping[str, Any], labels: Sequence[str]) -> dict[str, Any]:
    """Learner parameters with prices and sets of positions made of what was given for them.

    ``cost`` may be a mapping or the name of a file (see :func:`weighted_cost`), ``own`` a list of
    lists of positions or text such as ``"0-2; 3,5; -1"``.

    Examples
    --------
    >>> made = resolved({"own": "0-2; -1", "beta": 2}, ["A", "B"])
    >>> made["own"].members.tolist(), made["own"].ends.tolist(), made["beta"]
    ([0, 1, 2, -1], [3, 4], 2)
    """
    made = dict(params)
    cost, own = made.get("cost"), made.get("own")
    if isinstance(cost, Mapping):
        made["cost"] = weighted_cost(cost, labels)
    elif isinstance(cost, str | os.PathLike) and cost != "hamming":
        made["cost"] = weighted_cost(read_prices(cost), labels)
    if isinstance(own, str):
        own = [_positions(one) for one in own.split(";")]
    if isinstance(own, list):
        made["own"] = substructures(own)
    return made


def resolved_early(params: Mapping[str, Any]) -> dict[str, Any]:
    """As :func:`resolved` before labels are known: faults are found, prices are left open."""
    made = resolved({key: value for key, value in params.items() if key != "cost"}, ())
    cost = params.get("cost", "hamming")
    if isinstance(cost, str | os.PathLike) and cost != "hamming":
        read_prices(cost)
    if "cost" in params:
        made["cost"] = "hamming"
    return made


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
        text = file.read().decode("utf-8-sig", errors="replace")
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


def _positions(text: str) -> list[int]:
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().rpartition("-")
        try:
            if dash and first:
                found += range(int(first), int(last) + 1)
            else:
                found.append(int(part))
        except ValueError:
            raise HopefearError(
                f"a set of positions is written like 0-2,5 or -1, not {part.strip()!r}"
            ) from None
    return found

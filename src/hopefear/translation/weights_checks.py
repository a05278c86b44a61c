"""Checks of weights that did not come from a file."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from itertools import chain
from typing import Any

from hopefear.data.moses.lists import dense_names
from hopefear.errors import HopefearError
from hopefear.translation.weights_names import BARS, Parts


def check_parts(parts: Parts) -> None:
    """HopefearError where names are empty or double, or a weight is missing or not finite."""
    names = [name for name, _ in parts.layout]
    twice = next((name for name in names if names.count(name) > 1 or name in parts.sparse), None)
    if twice is not None:
        raise HopefearError(f"weights: the dense feature {twice!r} is there twice; rename one")
    if "" in names or "" in parts.sparse or any(width < 1 for _, width in parts.layout):
        raise HopefearError("weights: a feature has a name and at least one number")
    expanded = dense_names(parts.layout)
    if len(expanded) != len(parts.dense):
        raise HopefearError(
            f"weights: the layout has {len(expanded)} dense numbers, dense has {len(parts.dense)}"
        )
    for pair in parts.phrases:
        if BARS not in pair:
            raise HopefearError(
                f"weights: a phrase pair is 'source words{BARS}target words', not {pair!r}"
            )
    dense = zip(expanded, parts.dense, strict=True)
    for name, value in chain(dense, parts.sparse.items(), parts.phrases.items()):
        if not math.isfinite(value):
            raise HopefearError(f"weights: the weight of {name!r} is {value}, not finite")


def plain(about: Mapping[str, Any]) -> dict[str, Any]:
    """What JSON makes of it, so that a file gives the same back."""
    try:
        return json.loads(json.dumps(dict(about), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise HopefearError(f"weights: about holds what JSON cannot: {error}") from error

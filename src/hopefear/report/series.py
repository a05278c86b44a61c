"""What a plot holds before it is drawn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Series(NamedTuple):
    """Points of one curve, as given: nothing dropped, nothing thinned."""

    kind: str
    x: np.ndarray
    y: np.ndarray
    low: np.ndarray | None
    high: np.ndarray | None
    label: str
    look: int
    dashed: bool


class Bars(NamedTuple):
    """One bar per category, all of one group."""

    labels: list[str]
    values: np.ndarray
    error: np.ndarray | None
    group: str
    look: int


class Level(NamedTuple):
    """A horizontal line across the plot."""

    y: float
    label: str

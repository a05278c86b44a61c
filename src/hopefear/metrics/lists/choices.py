"""Choices of one candidate from each list: the generator's, the best, the worst; ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear.errors import HopefearError


def first_lowest(values: NDArray[np.float64], starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of the candidate with the lowest value of each list; the first of equals.

    Examples
    --------
    >>> first_lowest(np.array([2.0, 1.0, 1.0, 5.0]), np.array([0, 3, 4])).tolist()
    [1, 3]
    """
    if len(starts) == 1:
        return np.zeros(0, np.int64)
    lowest = np.minimum.reduceat(values, starts[:-1])
    hits = np.flatnonzero(values == np.repeat(lowest, np.diff(starts)))
    return hits[np.searchsorted(hits, starts[:-1])]


def ranks(
    scores: NDArray[np.float64], starts: NDArray[np.int64], chosen: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Rank, from 1, of a candidate of each list by falling score; of equals the first is ahead.

    Examples
    --------
    >>> starts = np.array([0, 3, 5])
    >>> ranks(np.array([1.0, 3.0, 3.0, 0.0, 0.0]), starts, np.array([2, 3])).tolist()
    [2, 1]
    """
    if len(starts) == 1:
        return np.zeros(0, np.int64)
    sizes = np.diff(starts)
    own = np.repeat(scores[chosen], sizes)
    earlier = np.arange(len(scores)) < np.repeat(chosen, sizes)
    ahead = (scores > own) | ((scores == own) & earlier)
    return 1 + np.add.reduceat(ahead.astype(np.int64), starts[:-1])


def numbered(
    positions: ArrayLike, starts: NDArray[np.int64], who: str = "chosen"
) -> NDArray[np.int64]:
    """Numbers of candidates, from their positions in their lists."""
    found = np.asarray(positions)
    sizes = np.diff(starts)
    if found.shape != sizes.shape or found.dtype.kind not in "iu":
        raise HopefearError(
            f"{who} has shape {found.shape} and type {found.dtype}; give one whole number for each "
            f"of the {len(sizes)} lists, the position of a candidate"
        )
    wrong = np.flatnonzero((found < 0) | (found >= sizes))
    if len(wrong):
        i = wrong[0]
        raise HopefearError(
            f"{who}[{i}] is {found[i]}, but list {i} has the candidates 0 .. {sizes[i] - 1}"
        )
    return starts[:-1] + found.astype(np.int64)


def values_of(values: ArrayLike, candidates: int, who: str) -> NDArray[np.float64]:
    """One number for each candidate, if that is what ``values`` are."""
    found: NDArray[Any] = np.asarray(values, np.float64)
    if found.shape != (candidates,):
        raise HopefearError(
            f"{who} has shape {found.shape}; give one number for each of {candidates} candidates"
        )
    wrong = np.flatnonzero(np.isnan(found))
    if len(wrong):
        raise HopefearError(f"{who}[{wrong[0]}] is not a number; give every candidate a value")
    return found

"""Arrays that datasets are made of: read-only, checked, and cut into stretches."""

from __future__ import annotations

from typing import Any

import numpy as np

from hopefear.errors import HopefearError


def frozen_as(array: Any, dtype: np.dtype) -> np.ndarray:
    """The array in this type, contiguous and read-only."""
    array = np.ascontiguousarray(array, dtype)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def check_rising(ptr: np.ndarray, name: str, n: int, end: int, source: str) -> None:
    """Refuse offsets that would lead out of their array."""
    if ptr.size != n + 1 or ptr[0] != 0 or ptr[-1] != end or (ptr[1:] < ptr[:-1]).any():
        raise HopefearError(f"{source}: {name} must be {n + 1} numbers that rise from 0 to {end}")


def check_range(array: np.ndarray, name: str, low: int, after: int | None, source: str) -> None:
    """Refuse numbers below ``low``, or at ``after`` or above."""
    if not array.size:
        return
    least, most = int(array.min()), int(array.max())
    if least < low or (after is not None and most >= after):
        limit = "on" if after is None else f"to {after - 1}"
        raise HopefearError(
            f"{source}: {name} go from {least} to {most}, which is outside of {low} {limit}"
        )


def stretches(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Positions of stretches of these lengths, one after the other."""
    total = int(lengths.sum())
    shift = np.repeat(starts - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return np.arange(total) + shift


def gathered(indptr: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Offsets of these rows on their own, and where their entries are."""
    sizes = np.diff(indptr)[rows]
    return np.concatenate([[0], np.cumsum(sizes)]), stretches(indptr[rows], sizes)

"""Checks of the parts of a feature map that were read from an untrusted file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from hopefear.errors import HopefearError, ModelError


def whole_number(header: Mapping[str, Any], key: str, low: int, high: int) -> int:
    """Integer ``header[key]`` in ``[low, high]``, or ModelError."""
    value = header.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ModelError(
            f"feature map: expected {key} to be a whole number from {low} to {high}, "
            f"found {value!r:.60}"
        )
    return value


def vector(arrays: Mapping[str, np.ndarray], name: str, dtype: type) -> np.ndarray:
    """Read-only one-dimensional array of this type, or ModelError."""
    array = arrays.get(name)
    if array is None:
        raise ModelError(f"feature map: the array {name!r} is missing")
    if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype != np.dtype(dtype):
        raise ModelError(
            f"feature map: expected {name!r} to be a vector of {np.dtype(dtype)}, "
            f"found {getattr(array, 'dtype', type(array).__name__)} "
            f"of shape {getattr(array, 'shape', ())}"
        )
    return frozen(array)


def only_these(arrays: Mapping[str, np.ndarray], allowed: tuple[str, ...]) -> None:
    """ModelError for an array the map does not know."""
    extra = sorted(set(arrays) - set(allowed))
    if extra:
        raise ModelError(f"feature map: unexpected array {extra[0]!r}")


def in_range(array: np.ndarray, name: str, low: int, high: int) -> None:
    """ModelError unless every element is in ``[low, high]``."""
    if array.size and (int(array.min()) < low or int(array.max()) > high):
        raise ModelError(f"feature map: {name!r} has values outside {low} to {high}")


def frozen(array: np.ndarray) -> np.ndarray:
    """The array, contiguous and read-only; shared with the argument where that is possible."""
    view = np.ascontiguousarray(array).view()
    view.flags.writeable = False
    return view


def column_in_range(column: int, size: int) -> int:
    """The column as an int, or an error that names both sides."""
    if not 0 <= column < size:
        raise HopefearError(f"column {column} does not exist: the feature map has {size} columns")
    return int(column)

"""Checks of parameters: one wording for one kind of mistake.

``error`` is what is raised: `CombinationError` for parts of learners, `HopefearError` elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from hopefear.errors import HopefearError


def check_at_least(
    name: str, value: float, least: float, error: type[HopefearError] = HopefearError
) -> None:
    """Refuse a number below ``least``, and NaN.

    Examples
    --------
    >>> check_at_least("min_count", 0, 1)
    Traceback (most recent call last):
    hopefear.errors.HopefearError: min_count must be at least 1, not 0
    """
    if not value >= least:
        raise error(f"{name} must be at least {least}, not {value}")


def check_fraction(name: str, value: float, error: type[HopefearError] = HopefearError) -> None:
    """Refuse a number that is not between 0 and 1, both left out."""
    if not 0 < value < 1:
        raise error(f"{name} must be between 0 and 1, not {value}")


def check_not_negative(name: str, values: Any, error: type[HopefearError] = HopefearError) -> None:
    """Refuse a number, or an array with one, that is negative, infinite or NaN.

    Examples
    --------
    >>> check_not_negative("l1", -1.0)
    Traceback (most recent call last):
    hopefear.errors.HopefearError: l1 must be finite and not negative, but is -1.0
    """
    numbers = np.asarray(values)
    if numbers.size and not (numbers.min() >= 0.0 and np.isfinite(numbers.max())):
        found = f", but is {values!r}" if numbers.ndim == 0 else ""
        raise error(f"{name} must be finite and not negative{found}")


def check_one_of(
    name: str, value: Any, choices: Iterable[str], error: type[HopefearError] = HopefearError
) -> None:
    """Refuse what is none of some words.

    Examples
    --------
    >>> check_one_of("on", "all", ("every", "mistakes"))
    Traceback (most recent call last):
    hopefear.errors.HopefearError: on is one of every, mistakes, not 'all'
    """
    if value not in choices:
        raise error(f"{name} is one of {', '.join(choices)}, not {value!r}")


def check_class_weight(value: Any, names: Iterable[str] = ()) -> None:
    """Refuse all but None, ``"balanced"`` and finite numbers from 0 on, by names of classes.

    Examples
    --------
    >>> check_class_weight({"spam": 2.0}, ("ham", "eggs"))
    Traceback (most recent call last):
    hopefear.errors.HopefearError: class_weight names ['spam'], which is not among ham, eggs
    """
    if value is None or value == "balanced":
        return
    if not isinstance(value, Mapping):
        raise HopefearError(f"class_weight must be 'balanced' or a mapping, not {value!r}")
    if not all(0.0 <= float(factor) < np.inf for factor in value.values()):
        raise HopefearError(f"class_weight must be finite and not negative, not {dict(value)}")
    unknown = sorted(set(map(str, value)) - set(names)) if names else []
    if unknown:
        raise HopefearError(f"class_weight names {unknown}, which is not among {', '.join(names)}")

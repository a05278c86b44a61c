"""Checks of parameters: one wording for one kind of mistake.

``error`` is what is raised: `CombinationError` for parts of learners, `HopefearError` elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np

from hopefear.errors import CombinationError, HopefearError


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


def check_parameters(
    owner: Any,
    *,
    at_least: Mapping[str, float] = {},
    above: Mapping[str, float] = {},
    shares: Sequence[str] = (),
    whole: Sequence[str] = (),
    choices: Mapping[str, Sequence[str]] = {},
    error: type[HopefearError] = CombinationError,
) -> None:
    """Refuse an object one of whose fields is none of the numbers or words it may be.

    Parameters
    ----------
    owner : object
        Whose fields are looked at, and whose class the message names.
    at_least, above : mapping of str to float
        The least that a field may be, or what it must be more than; infinity is refused.
    shares : sequence of str
        Fields from 0 to 1, both included.
    whole : sequence of str
        Fields that are whole numbers.
    choices : mapping of str to sequence of str
        The words a field may be.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> check_parameters(SimpleNamespace(rate=0.0), above={"rate": 0})
    Traceback (most recent call last):
    hopefear.errors.CombinationError: SimpleNamespace: rate must be finite and above 0, but is 0.0
    """

    def refuse(name: str, demand: str) -> None:
        raise error(f"{type(owner).__name__}: {name} {demand}")

    for name in (*at_least, *above, *shares, *whole):
        if not isinstance(value := getattr(owner, name), Real):
            refuse(name, f"must be a number, not {value!r}")
    for name in whole:
        if not isinstance(value := getattr(owner, name), Integral):
            refuse(name, f"must be a whole number, not {value!r}")
    for name, least in at_least.items():
        if not least <= (value := getattr(owner, name)) < math.inf:
            demand = f"at least {least}" if least else "finite and not negative"
            refuse(name, f"must be {demand}, but is {value!r}")
    for name, bound in above.items():
        if not bound < (value := getattr(owner, name)) < math.inf:
            refuse(name, f"must be finite and above {bound:g}, but is {value!r}")
    for name in shares:
        if not 0.0 <= (value := getattr(owner, name)) <= 1.0:
            refuse(name, f"is a share from 0 to 1, not {value!r}")
    for name, words in choices.items():
        if (value := getattr(owner, name)) not in words:
            refuse(name, f"must be one of {', '.join(words)}, not {value!r}")


def sample_weights(sample_weight: Any, n: int, what: str) -> np.ndarray:
    """A finite weight from 0 on for each of n examples.

    >>> sample_weights([1, 2], 2, "lists").tolist()
    [1.0, 2.0]
    """
    weights = np.asarray(sample_weight, np.float64)
    if weights.shape != (n,):
        raise HopefearError(f"{n} {what} need as many weights, not an array of {weights.shape}")
    sound = (weights >= 0.0) & np.isfinite(weights)
    if not sound.all():
        i = int(np.argmin(sound))
        raise HopefearError(f"sample_weight[{i}] is {weights[i]}, not a finite number from 0 on")
    return weights

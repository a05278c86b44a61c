"""Matched n-grams, clipped: the counting that BLEU and chrF share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Mapping
from typing import TypeVar

Gram = TypeVar("Gram", bound=Hashable)


def matched(grams: Collection[Gram], wanted: Mapping[Gram, int]) -> int:
    """How many of ``grams`` the reference has, each at most as often as it has it.

    Examples
    --------
    >>> matched(["the", "the", "cat"], {"the": 1, "cat": 2, "sat": 1})
    2
    """
    found = [gram for gram in grams if gram in wanted]
    if len(found) == len(set(found)):
        return len(found)
    return sum(min(n, wanted[gram]) for gram, n in Counter(found).items())

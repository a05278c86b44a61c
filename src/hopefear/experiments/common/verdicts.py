"""Words that say whether what was measured agrees with a claim."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, Protocol

from hopefear.experiments.common.differences import Difference

AGREES, DISAGREES, OPEN = "agrees", "disagrees", "not shown"


class Bounded(Protocol):
    """A difference with its bounds."""

    @property
    def low(self) -> float: ...

    @property
    def high(self) -> float: ...


class Verdict(NamedTuple):
    """What one set of lists says about one claim."""

    claim: str
    where: str
    verdict: str
    evidence: str


def better(found: Difference) -> str:
    """Is the first one better, by both tests?

    >>> better(Difference(94.0, 93.0, 0.5, 1.5, 0.001, 0.001))
    'agrees'
    >>> better(Difference(94.0, 93.9, -0.1, 0.3, 0.3, 0.2))
    'not shown'
    """
    if not found.significant:
        return OPEN
    return AGREES if found.points > 0.0 else DISAGREES


def not_worse(found: Bounded, margin: float) -> str:
    """Is the first one better, or no more than the margin worse?

    >>> not_worse(Difference(93.9, 94.0, -0.15, 0.05, 0.3, 0.2), 0.2)
    'agrees'
    >>> not_worse(Difference(93.9, 94.0, -0.15, 0.05, 0.3, 0.2), 0.1)
    'not shown'
    >>> not_worse(Difference(93.0, 94.0, -1.5, -0.5, 0.001, 0.001), 0.2)
    'disagrees'
    """
    if found.low > -margin:
        return AGREES
    return DISAGREES if found.high < 0.0 else OPEN


def clearly_more(first: float, second: float, ratio: float) -> str:
    """Is the first number larger, so many times?

    >>> [clearly_more(first, 1.0, 1.5) for first in (3.0, 1.2, 0.3)]
    ['agrees', 'not shown', 'disagrees']
    """
    if first >= ratio * second:
        return AGREES
    return DISAGREES if second >= ratio * first else OPEN


def all_of(words: Iterable[str]) -> str:
    """Agreement of all; disagreement of any.

    >>> all_of(["agrees", "not shown"]), all_of(["agrees", "disagrees"])
    ('not shown', 'disagrees')
    """
    found = set(words)
    if DISAGREES in found:
        return DISAGREES
    return AGREES if found == {AGREES} else OPEN

"""Claims of papers, and the verdicts on them by tests of differences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from hopefear.metrics.lists.base import ListMetric
from hopefear.metrics.lists.comparing import paired_tests
from hopefear.report import Page

ALPHA = 0.05


@dataclass(frozen=True)
class Difference:
    """Two scores on the same data; counts are summed over seeds first."""

    first: float
    second: float
    low: float  # 95 % of the difference
    high: float
    p_bootstrap: float
    p_randomisation: float

    @property
    def points(self) -> float:
        return self.first - self.second

    @property
    def significant(self) -> bool:
        """By both tests."""
        return max(self.p_bootstrap, self.p_randomisation) < ALPHA

    def text(self) -> str:
        """In a line.

        >>> Difference(94.0, 93.5, 0.2, 0.8, 0.001, 0.0004).text()
        '94.00 against 93.50 (+0.50 [+0.20, +0.80], p = 0.001, < 0.001)'
        """
        ps = ", ".join(p_text(p) for p in (self.p_bootstrap, self.p_randomisation))
        return f"{self.first:.2f} against {self.second:.2f} ({gap_text(self)}, p {ps})"


def compare_choices(
    metric: ListMetric,
    score: str,
    first: Sequence[np.ndarray],
    second: Sequence[np.ndarray],
    samples: int,
) -> Difference:
    """Paired bootstrap and approximate randomisation over lists.

    Parameters
    ----------
    metric : ListMetric
        Turns summed counts into scores.
    score : str
        Which of them.
    first, second : sequences of int arrays [lists, S]
        Counts of the chosen candidates, an array for each seed; they are added up, so often that
        both sides have as many, for otherwise they could not trade places.
    samples : int
        Draws of either test.

    Examples
    --------
    >>> from hopefear.metrics.lists.fmeasure import Brackets
    >>> good, bad = np.array([[4, 4, 4]] * 50), np.array([[2, 4, 4]] * 50)
    >>> compare_choices(Brackets(), "f1", [good], [bad, bad], 100).points
    50.0
    """
    times = math.lcm(len(first), len(second))
    a, b = (
        sum(np.asarray(one, np.int64) for one in side) * (times // len(side))
        for side in (first, second)
    )
    found = paired_tests(metric, a, b, score, samples, 1)
    return Difference(
        found["first"],
        found["second"],
        found["low"],
        found["high"],
        found["p_bootstrap"],
        found["p_randomisation"],
    )


def p_text(p: float) -> str:
    """A p-value in few letters."""
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def gap_text(found: Difference) -> str:
    """A difference and its bounds."""
    return f"{found.points:+.2f} [{found.low:+.2f}, {found.high:+.2f}]"


def p_values(found: Difference) -> str:
    """By paired bootstrap and by approximate randomisation.

    >>> p_values(Difference(94.0, 93.5, 0.2, 0.8, 0.001, 0.0004))
    '0.001 / < 0.001'
    """
    both = (found.p_bootstrap, found.p_randomisation)
    return " / ".join(p_text(p).removeprefix("= ") for p in both)


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


class HasWord(Protocol):
    """A verdict of any experiment."""

    @property
    def verdict(self) -> str: ...


# A claim, the place it is judged on, the word, and the evidence.
Judged = tuple[str, Any, str, str]


def tally(verdicts: Iterable[HasWord], whom: str = " with the paper") -> str:
    """How many of them say what.

    >>> from hopefear.experiments.claims import Verdict
    >>> tally([Verdict("a < b", "dev", "agrees", ""), Verdict("a < b", "test", "not shown", "")])
    '**1 agree** with the paper, **0 disagree**, and 1 show neither'
    """
    found = Counter(one.verdict for one in verdicts)
    return (
        f"**{found[AGREES]} agree**{whom}, **{found[DISAGREES]} disagree**, and {found[OPEN]} show "
        "neither"
    )


def verdict_table(
    page: Page,
    verdicts: Sequence[Judged],
    places: Mapping[Any, str],
    place: str,
    claim: str = "claim of the paper",
) -> None:
    """A row a claim, a column a place; the numbers behind them are there to be opened.

    Parameters
    ----------
    page : Page
        Where to.
    verdicts : sequence of (claim, place, word, evidence)
        A claim that is judged on none of the places is among the numbers only.
    places : mapping of place to str
        Columns and their heads.
    place, claim : str
        What a place is, and a claim.
    """
    by = {(said, where): word for said, where, word, _ in verdicts}
    claims = dict.fromkeys(said for said, where, _, _ in verdicts if where in places)
    page.table(
        [claim, *places.values()],
        [[said, *(by.get((said, where)) for where in places)] for said in claims],
        "Verdicts.",
    )
    with page.details("The numbers behind each verdict"):
        page.table(
            ["claim", place, "verdict", "evidence"], [list(v) for v in verdicts], align="llll"
        )

"""What Dror and Reichart report on parsing, and each claim judged on our treebanks.

Scores of single treebanks and of all together are compared over sentences, by paired bootstrap and
approximate randomisation. Over the treebanks themselves there is an exact randomisation test, which
with four of them cannot go below p = 0.125, and a t test, which can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hopefear_papers.claims import (
    OPEN,
    Claim,
    Difference,
    Finding,
    Verdict,
    better,
    between,
    not_worse,
    says,
    sign_flips,
    within,
)
from hopefear_papers.swvp_parsing.plan import ORDERS
from hopefear_papers.swvp_parsing.runs import Results, over_sentences


class Reported(NamedTuple):
    """A language of Table 2 with trees of one order: UAS."""

    csp: float
    bwm: float
    top: float
    test: float


# By order, then by language.
TABLE_2: dict[int, dict[str, Reported]] = {
    1: {
        "English": Reported(86.34, 86.4, 86.7, 86.7),
        "Chinese": Reported(84.60, 84.5, 85.04, 85.05),
        "Arabic": Reported(79.09, 79.17, 79.21, 79.21),
        "Greek": Reported(80.41, 80.20, 80.28, 80.28),
        "Italian": Reported(84.63, 84.64, 84.74, 84.70),
        "Turkish": Reported(83.05, 82.89, 82.89, 82.89),
        "Basque": Reported(79.47, 79.54, 79.54, 79.54),
        "Catalan": Reported(88.51, 88.46, 88.50, 88.5),
        "Hungarian": Reported(80.17, 80.07, 80.07, 80.21),
        "Average": Reported(83.69, 83.65, 83.77, 83.79),
    },
    2: {
        "English": Reported(88.02, 87.82, 87.82, 87.92),
        "Chinese": Reported(86.82, 86.69, 86.83, 87.02),
        "Arabic": Reported(76.07, 75.94, 76.09, 76.09),
        "Greek": Reported(80.31, 80.40, 80.40, 80.61),
        "Italian": Reported(84.03, 84.08, 84.15, 84.28),
        "Turkish": Reported(83.02, 83.04, 83.04, 83.31),
        "Basque": Reported(80.52, 80.57, 80.63, 80.64),
        "Catalan": Reported(88.71, 88.81, 88.81, 88.82),
        "Hungarian": Reported(80.61, 80.45, 80.45, 80.55),
        "Average": Reported(83.12, 83.08, 83.13, 83.35),
    },
}
SYSTEMS = {"B-WM": "bwm", "Top B-WM": "top", "Test B-WM": "test"}
MARGIN = 0.3  # points: the paper's differences of B-WM and CSP are of -0.21 to +0.1
MISSED = 0.1, 0.05  # points that a choice on test adds: from here on, and less than that


def languages(order: int) -> list[Reported]:
    """The rows of the table without that of averages."""
    return [cell for name, cell in TABLE_2[order].items() if name != "Average"]


def their_mean(order: int) -> Reported:
    """Of the nine languages; the averages printed are not always these.

    Of first order they are all 0.77 higher, and of second order that of Test B-WM is 0.10 higher.

    >>> [round(score, 2) for score in their_mean(2)]
    [83.12, 83.09, 83.14, 83.25]
    """
    return Reported(*(float(score) for score in np.mean(languages(order), axis=0)))


def their_wins(order: int, system: str) -> str:
    """On how many languages the paper's system is ahead of CSP.

    >>> [their_wins(order, system) for order in ORDERS for system in SYSTEMS]
    ['4 of 9', '5 of 9', '6 of 9', '5 of 9', '7 of 9', '7 of 9']
    """
    cells = languages(order)
    wins = sum(getattr(cell, SYSTEMS[system]) > cell.csp for cell in cells)
    return f"{wins} of {len(cells)}"


def their_gain(order: int, system: str, over: str = "csp") -> float:
    """Points on average over the paper's languages.

    >>> round(their_gain(2, "Test B-WM"), 2), round(their_gain(1, "Test B-WM", over="bwm"), 2)
    (0.13, 0.13)
    """
    mean = their_mean(order)
    gain: float = getattr(mean, SYSTEMS[system]) - getattr(mean, over)
    return gain


@dataclass(frozen=True)
class Gain:
    """Two systems on several treebanks: a difference of UAS for each, and tests over them."""

    points: np.ndarray  # float64[treebanks]

    @property
    def mean(self) -> float:
        return float(self.points.mean())

    @property
    def wins(self) -> int:
        return int((self.points > 0.0).sum())

    @property
    def p_exact(self) -> float:
        """Every choice of signs is tried."""
        return sign_flips(self.points)

    @property
    def p_t(self) -> float | None:
        """Student's test; None where all differences are the same, or there is one only.

        >>> Gain(np.array([1.0, 2.0])).p_t is None, round(Gain(np.array([1.0, 2.0, 3.0])).p_t, 3)
        (False, 0.074)
        """
        from scipy.stats import ttest_1samp

        if len(self.points) < 2 or np.ptp(self.points) == 0.0:
            return None
        return float(ttest_1samp(self.points, 0.0).pvalue)

    @property
    def text(self) -> str:
        """In words.

        >>> Gain(np.array([0.5, -0.1])).text
        '+0.20 on average, ahead on 1 of 2'
        """
        return f"{self.mean:+.2f} on average, ahead on {self.wins} of {len(self.points)}"


def gain(several: Sequence[Results], first: str, second: str) -> Gain:
    """Of one system over another, on these treebanks."""
    pairs = [(one.picks[first].test, one.picks[second].test) for one in several]
    return Gain(np.array([a - b for a, b in pairs]))


def having(several: Sequence[Results], *titles: str) -> list[Results]:
    """The treebanks on which all of these were run."""
    return [one for one in several if all(title in one.picks for title in titles)]


def pooled(several: Sequence[Results], first: str, second: str) -> Difference:
    """Over the test sentences of all treebanks."""
    return over_sentences(several, first, second, several[0].replicates)


def by_order(results: Sequence[Results]) -> dict[int, list[Results]]:
    """What was run with trees of each order."""
    return {
        order: several
        for order in ORDERS
        if (several := [one for one in results if one.work.order == order])
    }


def judge(results: Sequence[Results]) -> list[Verdict]:
    """All claims, for trees of either order."""
    return [
        claim.judged(order, several)
        for order, several in by_order(results).items()
        for claim in CLAIMS
    ]


def _is_no_better(several: Sequence[Results]) -> Finding:
    difference, order = pooled(several, "B-WM", "CSP"), several[0].work.order
    word = within(difference, MARGIN)
    return word, (
        f"{gain(several, 'B-WM', 'CSP').text} (paper {their_gain(order, 'B-WM'):+.2f}, "
        f"{their_wins(order, 'B-WM')}); all sentences: {difference.text()}"
    )


def _wins(several: Sequence[Results], system: str) -> Finding:
    ours, order = gain(several, system, "CSP"), several[0].work.order
    half = len(several) / 2
    word = says(ours.wins > half, ours.wins < half)
    theirs = f"{their_wins(order, system)}, {their_gain(order, system):+.2f}"
    return word, f"{ours.text} (paper: {theirs})"


def _misses(several: Sequence[Results]) -> Finding:
    missed = gain(several, "Test B-WM", "B-WM").mean
    theirs = their_gain(several[0].work.order, "Test B-WM", over="bwm")
    return between(missed, *MISSED), f"{missed:.2f} points on average (paper {theirs:.2f})"


def _compared(
    several: Sequence[Results], first: str, second: str, word: Callable[[Difference], str]
) -> Finding:
    """A word on two systems, over the sentences of the treebanks that have both."""
    some = having(several, first, second)
    if not some:
        return OPEN, "not run"
    difference = pooled(some, first, second)
    names = ", ".join(one.bank.name for one in some)
    evidence = f"{gain(some, first, second).text}; all sentences of {names}: {difference.text()}"
    return word(difference), evidence


def _hardly_worse(difference: Difference) -> str:
    return not_worse(difference, MARGIN)


CLAIMS = [
    Claim(f"B-WM with β tuned on dev is within {MARGIN:g} points of CSP", _is_no_better),
    Claim("Top B-WM is ahead of CSP on most treebanks", _wins, "Top B-WM"),
    Claim("Test B-WM is ahead of CSP on most treebanks", _wins, "Test B-WM"),
    Claim("SWVP does not generalise well: β chosen on test gives more than on dev", _misses),
    Claim(
        "there is a gain, and it is the learner's: it stays when CSP may choose its pass on dev",
        *(_compared, "B-WM, pass chosen", "CSP, pass chosen", better),
    ),
    Claim(
        "condition (2) need not be imposed on balanced learners",
        *(_compared, "B-WM, β 1", "B-WM, checked", _hardly_worse),
    ),
    Claim(
        "a richer JJ (runs of errors) promises more than single heads",
        *(_compared, "B-WM, runs", "B-WM, β 1", better),
    ),
    Claim(
        "a richer JJ (all stretches of words) promises more than single heads",
        *(_compared, "B-WM, segments", "B-WM, β 1", better),
    ),
]

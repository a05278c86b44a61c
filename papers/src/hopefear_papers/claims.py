"""Claims of papers, and the verdicts on them by tests of differences."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from hopefear.metrics import approximate_randomisation, paired_bootstrap
from hopefear.metrics.base import ListMetric

ALPHA = 0.05
AGREES, DISAGREES, OPEN = "agrees", "disagrees", "not shown"
Finding = tuple[str, str]  # a word and its evidence


@dataclass(frozen=True)
class Difference:
    """Two scores on the same data; a test that was not made has no p."""

    first: float
    second: float
    low: float  # 95 % of the difference
    high: float
    p_bootstrap: float | None
    p_randomisation: float | None = None

    @property
    def points(self) -> float:
        return self.first - self.second

    @property
    def p(self) -> float:
        """The largest of the tests that were made."""
        return max(p for p in (self.p_bootstrap, self.p_randomisation) if p is not None)

    @property
    def significant(self) -> bool:
        """By all tests that were made."""
        return self.p < ALPHA

    @property
    def gap(self) -> str:
        """The difference and its bounds."""
        return f"{self.points:+.2f} [{self.low:+.2f}, {self.high:+.2f}]"

    @property
    def cells(self) -> list[str]:
        """Two cells of a table: the gap, and p by bootstrap and by randomisation.

        >>> Difference(94.0, 93.5, 0.2, 0.8, 0.001, 0.0004).cells
        ['+0.50 [+0.20, +0.80]', '0.001 / < 0.001']
        """
        ps = map(p_cell, (self.p_bootstrap, self.p_randomisation))
        return [self.gap, " / ".join(ps)]

    @property
    def row(self) -> list[str]:
        """Both scores, and the cells."""
        return [f"{self.first:.2f}", f"{self.second:.2f}", *self.cells]

    def text(self) -> str:
        """In a line.

        >>> Difference(94.0, 93.5, 0.2, 0.8, 0.001, 0.0004).text()
        '94.00 against 93.50 (+0.50 [+0.20, +0.80], p = 0.001, < 0.001)'
        """
        ps = ", ".join(p_text(p) for p in (self.p_bootstrap, self.p_randomisation))
        return f"{self.first:.2f} against {self.second:.2f} ({self.gap}, p {ps})"


def p_text(p: float | None) -> str:
    """A p-value in few letters."""
    if p is None:
        return "not tested"
    return "< 0.001" if p < 0.001 else f"= {p:.3f}"


def p_cell(p: float | None) -> str:
    """A p-value in a column of them.

    >>> p_cell(0.25), p_cell(0.0)
    ('0.250', '< 0.001')
    """
    return p_text(p).removeprefix("= ")


def compare(
    metric: Any, score: str, first: Any, second: Any, samples: int, randomise: bool = True
) -> Difference:
    """Paired bootstrap over examples and, unless told not to, approximate randomisation.

    Parameters
    ----------
    metric : Metric
        Turns summed counts into scores.
    score : str
        Which of them.
    first, second : int arrays [examples, S]
        What was counted on either side.
    samples : int
        Draws of either test.
    """
    sides = (metric, first, second, score)
    b = paired_bootstrap(*sides, replicates=samples, seed=1)
    r = approximate_randomisation(*sides, replicates=samples, seed=1) if randomise else None
    return Difference(b.first, b.second, b.low, b.high, b.p_value, r.p_value if r else None)


def compare_choices(
    metric: ListMetric,
    score: str,
    first: Sequence[np.ndarray],
    second: Sequence[np.ndarray],
    samples: int,
) -> Difference:
    """Both tests over lists, seeds pooled.

    Parameters
    ----------
    metric, score, samples
        As in :func:`compare`.
    first, second : sequences of int arrays [lists, S]
        Counts of the chosen candidates, an array for each seed; they are added up, so often that
        both sides have as many, for otherwise they could not trade places.

    Examples
    --------
    >>> from hopefear.metrics.lists import Parseval
    >>> good, bad = np.array([[4, 4, 4]] * 50), np.array([[2, 4, 4]] * 50)
    >>> compare_choices(Parseval(), "f1", [good], [bad, bad], 100).points
    50.0
    """
    times = math.lcm(len(first), len(second))
    a, b = (
        sum(np.asarray(one, np.int64) for one in side) * (times // len(side))
        for side in (first, second)
    )
    return compare(metric, score, a, b, samples)


class Tests:
    """Comparisons of one measurement; each is made once, and all of them can be written down.

    Parameters
    ----------
    make : callable
        From what is compared to the difference.
    names : sequence of str
        What its arguments are, for :meth:`plain`.

    Examples
    --------
    >>> tests = Tests(lambda first, second: Difference(first, second, 0.0, 0.0, 1.0, 1.0), "ab")
    >>> tests(2.0, 1.0).points, tests.plain()[0]["b"]
    (1.0, 1.0)
    """

    def __init__(self, make: Callable[..., Difference], names: Sequence[str]) -> None:
        self.make, self.names = make, names
        self.differences: dict[tuple[Any, ...], Difference] = {}

    def __call__(self, *key: Any) -> Difference:
        if key not in self.differences:
            self.differences[key] = self.make(*key)
        return self.differences[key]

    def plain(self) -> list[dict[str, Any]]:
        return [
            {**dict(zip(self.names, key, strict=True)), **asdict(difference)}
            for key, difference in self.differences.items()
        ]


class Verdict(NamedTuple):
    """What one place (a task, a setting, a set of lists) says about one claim.

    The evidence has the numbers, with interval and p where two scores were compared.
    """

    claim: str
    where: Any
    verdict: str
    evidence: str

    def plain(self, place: str) -> dict[str, Any]:
        """By name; ``place`` is what the place is called, or empty where there is only one."""
        fields = {"claim": self.claim, place: self.where}
        fields |= {"verdict": self.verdict, "evidence": self.evidence}
        return {name: value for name, value in fields.items() if name}


class Claim:
    """What a paper says, and how to see whether it is so.

    Parameters
    ----------
    text : str
        In words.
    check : callable
        From what was measured, and ``about``, to a word and its evidence; or to several of them,
        all of which must agree.
    about : objects
        What the claim is about, for the check.

    Examples
    --------
    >>> claim = Claim("a is better", lambda difference: (better(difference), difference.text()))
    >>> claim.judged("test", Difference(94.0, 93.5, 0.2, 0.8, 0.001, 0.001)).verdict
    'agrees'
    """

    def __init__(
        self, text: str, check: Callable[..., Finding | Iterable[Finding]], *about: Any
    ) -> None:
        self.text, self.check, self.about = text, check, about

    def judged(self, where: Any, *measured: Any) -> Verdict:
        finding = self.check(*measured, *self.about)
        findings = [finding] if isinstance(finding, tuple) else finding
        words, evidence = zip(*findings, strict=True)
        return Verdict(self.text, where, all_of(words), "; ".join(evidence))


def says(agrees: bool, disagrees: bool | None = None) -> str:
    """A word from what speaks for a claim, and what against it: by default, that nothing does.

    >>> says(True), says(False), says(False, False)
    ('agrees', 'disagrees', 'not shown')
    """
    if agrees:
        return AGREES
    return DISAGREES if disagrees or disagrees is None else OPEN


def better(difference: Difference) -> str:
    """Is the first one better, by all tests?

    >>> better(Difference(94.0, 93.0, 0.5, 1.5, 0.001, 0.001))
    'agrees'
    >>> better(Difference(94.0, 93.9, -0.1, 0.3, 0.3, 0.2))
    'not shown'
    """
    up = difference.points > 0.0
    return says(difference.significant and up, difference.significant and not up)


def not_worse(difference: Difference, margin: float) -> str:
    """Is the first one better, or no more than the margin worse?

    >>> not_worse(Difference(93.9, 94.0, -0.15, 0.05, 0.3, 0.2), 0.2)
    'agrees'
    >>> not_worse(Difference(93.9, 94.0, -0.15, 0.05, 0.3, 0.2), 0.1)
    'not shown'
    >>> not_worse(Difference(93.0, 94.0, -1.5, -0.5, 0.001, 0.001), 0.2)
    'disagrees'
    """
    return says(difference.low > -margin, difference.high < 0.0)


def within(difference: Difference, margin: float) -> str:
    """Does the interval of the difference stay within the margin on both sides?

    >>> within(Difference(38.0, 38.1, -0.3, 0.1, 0.7, 0.7), 0.5)
    'agrees'
    """
    inside = difference.low > -margin and difference.high < margin
    return says(inside, difference.significant)


def between(value: float, agrees_from: float, disagrees_below: float) -> str:
    """Three answers from one number.

    >>> between(3.0, 2.0, 1.0), between(1.5, 2.0, 1.0), between(0.5, 2.0, 1.0)
    ('agrees', 'not shown', 'disagrees')
    """
    return says(value >= agrees_from, value < disagrees_below)


def clearly_more(first: float, second: float, ratio: float) -> str:
    """Is the first number larger, so many times?

    >>> [clearly_more(first, 1.0, 1.5) for first in (3.0, 1.2, 0.3)]
    ['agrees', 'not shown', 'disagrees']
    """
    return says(first >= ratio * second, second >= ratio * first)


def all_of(words: Iterable[str]) -> str:
    """Agreement of all; disagreement of any.

    >>> all_of(["agrees", "not shown"]), all_of(["agrees", "disagrees"])
    ('not shown', 'disagrees')
    """
    different = set(words)
    return says(different == {AGREES}, DISAGREES in different)


def some_of(words: Iterable[str]) -> str:
    """Agreement of any where none disagrees, and the other way round.

    >>> some_of(["agrees", "not shown"]), some_of(["agrees", "disagrees"])
    ('agrees', 'not shown')
    """
    clear = set(words) - {OPEN}
    return clear.pop() if len(clear) == 1 else OPEN


def pairwise(
    differences: Mapping[str, Difference],
    word: Callable[[Difference], str] = better,
    together: Callable[[Iterable[str]], str] = all_of,
) -> Finding:
    """One word on several differences, by name; the evidence has all of them.

    >>> pairwise({"a": Difference(94.0, 93.5, 0.2, 0.8, 0.001)})
    ('agrees', 'a: 94.00 against 93.50 (+0.50 [+0.20, +0.80], p = 0.001, not tested)')
    """
    evidence = "; ".join(f"{name}: {one.text()}" for name, one in differences.items())
    return together(map(word, differences.values())), evidence


def sign_flips(differences: np.ndarray) -> float:
    """Exact two-sided randomisation test of a mean difference: every choice of signs is tried.

    >>> sign_flips(np.array([1.0, 2.0, 3.0])), sign_flips(np.array([1.0, -1.0]))
    (0.25, 1.0)
    """
    signs = np.array(list(itertools.product((1.0, -1.0), repeat=len(differences))))
    sums = np.abs(signs @ differences)
    return float((sums >= abs(differences.sum()) - 1e-9).mean())


def exact(ours: np.ndarray, theirs: np.ndarray) -> Difference:
    """Two learners over the datasets, by an exact randomisation test.

    >>> better(exact(np.arange(1.0, 11.0), np.zeros(10))), better(exact(-np.ones(10), np.zeros(10)))
    ('agrees', 'disagrees')
    """
    p = sign_flips(ours - theirs)
    return Difference(float(ours.mean()), float(theirs.mean()), np.nan, np.nan, None, p)


def opposite(word: str) -> str:
    """The verdict on the contrary claim."""
    return {AGREES: DISAGREES, DISAGREES: AGREES, OPEN: OPEN}[word]


def order_of(first: Iterable[float], second: Iterable[float]) -> float:
    """Spearman's rank correlation; 0 where one side is all alike.

    >>> order_of([1, 2, 3], [30, 20, 10]), order_of([1, 2, 3], [5, 5, 5])
    (-1.0, 0.0)
    """
    a, b = (_ranks(np.asarray(list(v), float)) for v in (first, second))
    if a.std() == 0.0 or b.std() == 0.0:
        return 0.0
    return round(float(np.corrcoef(a, b)[0, 1]), 12)


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks, the mean of their places for equal ones."""
    below = (values[:, None] > values).sum(axis=1)
    return below + ((values[:, None] == values).sum(axis=1) - 1) / 2.0


def tally(verdicts: Iterable[Verdict], whom: str = " with the paper") -> str:
    """How many of them say what.

    >>> tally([Verdict("a < b", "dev", "agrees", ""), Verdict("a < b", "test", "not shown", "")])
    '**1 agree** with the paper, **0 disagree**, and 1 show neither'
    """
    counts = Counter(one.verdict for one in verdicts)
    return (
        f"**{counts[AGREES]} agree**{whom}, **{counts[DISAGREES]} disagree**, and {counts[OPEN]} "
        "show neither"
    )

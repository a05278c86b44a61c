"""Whether two scores differ by more than chance, and how that is told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hopefear.metrics.lists.base import ListMetric
from hopefear.metrics.significance import paired_tests

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

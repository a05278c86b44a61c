"""Exact line search: equal to looking everywhere, for all ties, ends, metrics and variants."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopefear.errors import HopefearError
from hopefear.metrics.lists import Bleu, Chrf, GivenCost, Ter
from hopefear.translation.tuners.corpus import quick_worth
from hopefear.translation.tuners.envelope import LineSearch, best_step, smoothed

pytestmark = pytest.mark.interpreted

SEEDS = st.integers(0, 2**32 - 1)


class Lists:
    """Random lists of lines; with small whole numbers, so that ties abound."""

    def __init__(self, seed: int, lists: int = 4, longest: int = 7, whole: bool = True) -> None:
        rng = np.random.default_rng(seed)
        self.starts = np.concatenate(([0], np.cumsum(rng.integers(1, longest + 1, lists))))
        n = int(self.starts[-1])
        draw = rng.integers if whole else rng.uniform
        self.a, self.b = (draw(-3, 4, n).astype(float) for _ in range(2))
        self.counts = rng.integers(0, 9, (n, 2))

    def choice(self, t: float) -> np.ndarray:
        scores = self.a + t * self.b
        spans = zip(self.starts, self.starts[1:], strict=False)
        return np.array([i + scores[i:j].argmax() for i, j in spans])

    def worth_at(self, t: float) -> float:
        return float(value(self.counts[self.choice(t)].sum(axis=0, keepdims=True))[0])

    def corners(self) -> np.ndarray:
        """Where any two lines of a list cross, on the envelope or not."""
        found = {0.0}
        for i, j in zip(self.starts, self.starts[1:], strict=False):
            for c, e in combinations(range(i, j), 2):
                if self.b[c] != self.b[e]:
                    found.add(float((self.a[c] - self.a[e]) / (self.b[e] - self.b[c])))
        return np.array(sorted(found))

    def places(self, low: float = -math.inf, high: float = math.inf) -> np.ndarray:
        """A place between any two crossings, and beyond the last ones."""
        ends = self.corners()
        first = ends[0] - 5.0 if low == -math.inf else low
        last = ends[-1] + 5.0 if high == math.inf else high
        ends = np.array(sorted({first, last, *ends[(ends > low) & (ends < high)]}))
        ends = ends[np.diff(ends, prepend=-math.inf) > 1e-9]
        return 0.5 * (ends[1:] + ends[:-1])

    def best(self, **more: Any) -> Any:
        return best_step(self.starts, self.a, self.b, self.counts, value, **more)


def value(sums: np.ndarray) -> np.ndarray:
    """No metric, but as little additive as one."""
    return np.sqrt(sums[:, 0]) - 0.01 * sums[:, 1] ** 1.5


@settings(deadline=None, max_examples=200)
@given(SEEDS, st.booleans())
def test_finds_what_looking_everywhere_finds(seed, whole):
    lists = Lists(seed, whole=whole)
    step = lists.best()
    worths = [lists.worth_at(t) for t in (0.0, *lists.places())]
    assert step.worth == pytest.approx(max(worths))
    assert lists.worth_at(step.t) == pytest.approx(step.worth)
    assert step.worth >= step.before == pytest.approx(lists.worth_at(0.0))


@settings(deadline=None, max_examples=100)
@given(SEEDS, st.integers(-30, 20).map(lambda n: n / 11), st.floats(0.1, 3))
def test_looks_only_between_its_limits(seed, low, length):
    lists = Lists(seed)
    high = low + length
    step = lists.best(low=low, high=high)
    assert low <= step.t <= high
    here = min(max(0.0, low), high)
    wanted = max(lists.worth_at(t) for t in (here, *lists.places(low, high)))
    assert step.worth == pytest.approx(wanted)


@settings(deadline=None, max_examples=100)
@given(SEEDS)
def test_intervals_cover_the_line_and_hold_one_choice_each(seed):
    lists = Lists(seed, whole=False)
    search = LineSearch(lists.starts, lists.counts, value)
    found = search.intervals(lists.a, lists.b)
    assert found.low[0] == -math.inf and found.high[-1] == math.inf
    assert (found.low[1:] == found.high[:-1]).all() and (found.low < found.high).all()
    ends = lists.corners()
    low, high = np.maximum(found.low, ends[0] - 2), np.minimum(found.high, ends[-1] + 2)
    for k in np.flatnonzero(high - low > 1e-9):
        for share in (0.01, 0.5, 0.99):
            t = low[k] + share * (high[k] - low[k])
            assert (lists.counts[lists.choice(t)].sum(axis=0) == found.sums[k]).all()


def test_lists_as_long_as_real_ones():
    lists = Lists(3, lists=30, longest=150, whole=False)
    found = LineSearch(lists.starts, lists.counts, value).intervals(lists.a, lists.b)
    for k in np.flatnonzero(found.high[1:-1] - found.low[1:-1] > 1e-9) + 1:
        t = 0.5 * (found.low[k] + found.high[k])
        assert (lists.counts[lists.choice(t)].sum(axis=0) == found.sums[k]).all()
    assert len(found.low) > 60


@pytest.mark.parametrize(
    ("a", "b", "chosen"),
    [
        ([1, 1], [2, 2], [0]),  # one line twice: the first
        ([1, 2, 2], [2, 2, 2], [1]),  # parallel: the higher, the first of two
        ([0, 5, 0], [-1, 0, 1], [0, 1, 2]),
        ([0, 0, 0], [-1, 0, 1], [0, 2]),  # all meet in a point, where one alone has no room
        ([0, -1, 0], [-1, 0, 1], [0, 2]),  # below the envelope
        ([3, 3, 3, 3], [1, 0, 1, 0], [1, 0]),
        ([7], [2], [0]),
    ],
)
def test_ties(a, b, chosen):
    search = LineSearch([0, len(a)], np.arange(len(a))[:, None], lambda s: s[:, 0])
    assert search.intervals(a, b).sums[:, 0].tolist() == chosen


def test_without_corners_there_is_no_step():
    assert best_step([0, 1], [3.0], [1.0], [[5]], lambda s: s[:, 0]) == (0.0, 5.0, 5.0)
    empty = best_step([0], [], [], np.zeros((0, 1), int), lambda s: s[:, 0])
    assert empty == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(("b", "side"), [([0.0, 1.0], 1), ([1.0, 0.0], -1)])
def test_goes_a_little_beyond_the_last_corner(b, side):
    step = best_step([0, 2], [4.0, 0.0], b, [[0], [1]], lambda s: s[:, 0])
    assert step == (side * 8.0, 1.0, 0.0)
    flat = best_step([0, 2], [0.0, 0.0], b, [[1], [0]], lambda s: s[:, 0])
    assert flat.t in (0.0, -side)  # the corner is at 0, so nothing else says how far to go


@pytest.mark.parametrize("smooth", ["none", "minimum"])
def test_a_step_out_of_a_tie_is_a_gain(smooth):
    # Where all lines cross, the first candidate is chosen, and it is the worst.
    lines = [0.0, 0.0, 0.0], [0.0, -1.0, 1.0]
    for more, right in (({}, 2), ({"low": 0.0}, 2), ({"high": 0.0}, 1)):
        counts = np.array([[0], [1], [1]])
        counts[right] = 2
        step = best_step([0, 3], *lines, counts, first, smooth=smooth, window=0, **more)
        assert step.before == 0.0 and step.worth == 2.0 and step.t == (1.0 if right == 2 else -1.0)
    assert best_step([0, 3], *lines, [[3], [1], [2]], first) == (0.0, 3.0, 3.0)
    near = best_step([0, 3], *lines, [[0], [2], [4]], first, smooth="average", window=1)
    assert (near.before, near.worth) == (2.0, 3.0)


def test_a_corner_far_out_does_not_carry_the_step_along():
    step = best_step([0, 3], [1.0, 0.0, -1.0], [0.0, 1.0, 1.0 + 1e-12], [[0], [1], [0]], first)
    assert step.worth == 1.0 and 1.0 < step.t < 10.0


def first(sums: np.ndarray) -> np.ndarray:
    return sums[:, 0]


def test_large_counts_are_not_cut():
    counts = np.array([[0], [3 << 40]])
    assert best_step([0, 2], [1.0, 0.0], [0.0, 1.0], counts, first).worth == 3 << 40


def test_narrow_intervals_can_be_left_out():
    lines = [0.0, -1e-7, -1.1], [0.0, 1.0, 1e7]
    assert best_step([0, 3], *lines, [[0], [1], [0]], first).worth == 1.0
    assert best_step([0, 3], *lines, [[0], [1], [0]], first, width=1e-3).worth == 0.0


@settings(deadline=None, max_examples=100)
@given(SEEDS, st.sampled_from(["average", "minimum"]), st.integers(0, 4))
def test_smoothing_is_that_of_plain_loops(seed, smooth, window):
    lists = Lists(seed, whole=False)
    search = LineSearch(lists.starts, lists.counts, value)
    worths = value(search.intervals(lists.a, lists.b).sums)
    wanted = []
    for k in range(len(worths)):
        near = [worths[p] for p in range(k - window, k + window + 1) if 0 <= p < len(worths)]
        wanted.append(min(near) if smooth == "minimum" else sum(near) / len(near))
    assert smoothed(worths, smooth, window) == pytest.approx(np.array(wanted))
    step = search.best(lists.a, lists.b, smooth=smooth, window=window)
    assert step.worth == pytest.approx(max(wanted))


@settings(deadline=None, max_examples=100)
@given(SEEDS, st.floats(-2, 2), st.floats(0.05, 5))
def test_a_pull_is_weighed_against_the_gain(seed, slope, curve):
    lists = Lists(seed, whole=False)
    step = lists.best(pull=(slope, curve))
    here = lists.worth_at(step.t) - slope * step.t - curve * step.t**2
    assert step.worth == pytest.approx(here)
    found = LineSearch(lists.starts, lists.counts, value).intervals(lists.a, lists.b)
    usual = max(1.0, *np.abs(found.low[1:])) if len(found.low) > 1 else 1.0
    for low, high in zip(found.low, found.high, strict=True):
        # A step keeps a little away from corners; what it gives up by that is not asked for.
        spare = 0.01 * min(high - low, 2.0 * usual)
        t = min(max(-0.5 * slope / curve, low + spare), high - spare)
        assert step.worth >= lists.worth_at(t) - slope * t - curve * t * t - 1e-9
    assert step.before == pytest.approx(lists.worth_at(0.0))


def test_a_pulled_step_keeps_off_corners_by_the_width_asked_for():
    for width in (0.001, 0.25):
        step = best_step(
            [0, 2], [0.0, -1.0], [0.0, 1.0], [[0], [1]], first, pull=(0, 0.1), width=width
        )
        assert step.t == pytest.approx(1.0 + width)
    assert (
        1.0
        < best_step([0, 2], [0.0, -1.0], [0.0, 1.0], [[0], [1]], first, pull=(0, 0.1)).t
        < 1.0001
    )


def test_pull_alone_is_followed_exactly():
    step = best_step([0, 1], [0.0], [1.0], [[0]], first, pull=(2.0, 0.5))
    assert step == (-2.0, 2.0, 0.0)
    at_limit = best_step([0, 1], [0.0], [1.0], [[0]], first, pull=(2.0, 0.5), low=-1.0)
    assert at_limit.t == pytest.approx(-1.0, abs=0.05)


TEXTS = ["the cat sat on the mat", "a cat sat on mat", "cat", "the mat sat on the cat", ""]


@pytest.mark.parametrize("metric", [Bleu(tokenize="none"), Chrf(), Ter(), GivenCost()])
def test_any_metric(metric):
    rng = np.random.default_rng(5)
    starts = np.array([0, 5, 10, 15])
    refs = [["the cat sat on the mat"]] * 15
    if isinstance(metric, GivenCost):
        counts = metric.statistics_of(rng.integers(0, 9, 15))
    else:
        counts = metric.statistics(refs, TEXTS * 3)
    a, b = rng.normal(size=(2, 15))
    worth = quick_worth(metric)
    step = best_step(starts, a, b, counts, worth)
    sign = 1.0 if metric.higher else -1.0
    grid = np.linspace(-50, 50, 4001)
    best = -math.inf
    for t in grid:
        chosen = [i + (a + t * b)[i : i + 5].argmax() for i in starts[:-1]]
        best = max(best, sign * float(metric.scores(counts[chosen].sum(axis=0))[metric.main]))
    assert step.worth == pytest.approx(best)


@settings(deadline=None, max_examples=200)
@given(st.lists(st.integers(0, 6), min_size=10, max_size=10))
def test_quick_bleu_is_bleu(numbers):
    row = np.array(numbers)
    row[:4] = np.minimum(row[:4], row[4:8])
    wanted = np.asarray(Bleu().scores(row[None])["bleu"])
    assert quick_worth(Bleu())(row[None].astype(np.int64)) == pytest.approx(wanted, abs=1e-9)


def test_says_what_does_not_fit():
    with pytest.raises(HopefearError, match="3 candidates need as many rows of counts"):
        LineSearch([0, 3], [[1], [2]], first)
    search = LineSearch([0, 2], [[1], [2]], first)
    with pytest.raises(HopefearError, match="2 candidates need as many intercepts and slopes"):
        search.best([1.0], [1.0, 2.0])
    with pytest.raises(HopefearError, match="nowhere to look"):
        search.best([1.0, 0.0], [1.0, 2.0], low=1.0, high=1.0)
    with pytest.raises(HopefearError, match=r"'median'.*none, average, minimum"):
        search.best([1.0, 0.0], [1.0, 2.0], smooth="median")
    with pytest.raises(HopefearError, match="finite"):
        search.best([1.0, math.nan], [1.0, 2.0])

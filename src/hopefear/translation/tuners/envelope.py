"""Exact line search on lists of candidates (Och, 2003; Macherey et al., 2008).

Along ``w + t d`` the score of a candidate is a line in t: its score under w, plus t times its score
under d. The best candidates of a list are the upper envelope of its lines, so a choice from all
lists changes only where the envelope of one of them has a corner. Between two corners the summed
counts, and with them any metric, stay the same: looking once into every interval finds the best t.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import helper, kernel
from hopefear.data.lists.dataset import ListDataset, ListRows, counts_of
from hopefear.errors import HopefearError
from hopefear.structures.nbest import NBest
from hopefear.training.decoders.lists import ListDecoder
from hopefear.training.predictors import LinearPredictor
from hopefear.translation.tuners.corpus import Worth, quick_worth
from hopefear.translation.tuners.problem import TuningProblem

SMOOTHINGS = ("none", "average", "minimum")
NARROW = 1e-6  # intervals below this share of the size of what moves are passed over
_SPARE = 1e-6  # least share of the way to its middle that a step stays off an interval's ends


class Step(NamedTuple):
    """Result of a line search: the distance along a direction."""

    t: float  # 0 where no other place is better
    worth: float  # score there; smoothed and less the regularisation, where requested
    before: float  # the same at t = 0, or at the limit next to it, for the choice just there


class Intervals(NamedTuple):
    """The pieces of a line on which no choice changes, from left to right; none is empty."""

    low: np.ndarray  # float64[m]; the first may be -inf
    high: np.ndarray  # float64[m]; the last may be inf
    sums: np.ndarray  # [m, S]: counts of the chosen candidates, summed


class LineSearch:
    """Exact search for the best place on a line, for one set of lists.

    Parameters
    ----------
    starts : int64 array
        List i has the candidates ``starts[i] .. starts[i + 1] - 1``.
    counts : array [candidates, S]
        Statistics of each candidate, of which sums have a worth.
    worth : callable
        Numbers ``[m]`` from sums ``[m, S]``; more is better.

    Notes
    -----
    Of candidates with equal lines the first is chosen, as elsewhere. In a corner it is the first
    that is tied there, which may be worth less than both sides, or more: from weights of 0, where
    all candidates are tied, every step leaves a corner. Arrays for the work are made
    once and used by every search, so an object serves one thread at a time.

    Examples
    --------
    Two candidates, of which the second is right; it wins where ``0 + 2 t > 1 + 0 t``:

    >>> search = LineSearch([0, 2], [[0], [1]], lambda sums: sums[:, 0])
    >>> search.best([1.0, 0.0], [0.0, 2.0], high=1.0)
    Step(t=0.75, worth=1.0, before=0.0)
    """

    def __init__(self, starts: Any, counts: Any, worth: Worth) -> None:
        self.starts = np.ascontiguousarray(starts, np.int64)
        table = np.asarray(counts)
        integer_type = "i8" if table.size and np.abs(table).max() > np.iinfo(np.int32).max else "i4"
        self.counts = np.ascontiguousarray(table, "f8" if table.dtype.kind == "f" else integer_type)
        size = int(self.starts[-1])
        if self.counts.ndim != 2 or len(self.counts) != size:
            raise HopefearError(
                f"{size} candidates need as many rows of counts, not {self.counts.shape}; give "
                "an array [candidates, statistics]"
            )
        self.worth = worth
        longest = int(np.diff(self.starts).max(initial=0))
        self._events = np.empty(size), np.empty(size, np.int32), np.empty(size, np.int32)
        self._first = np.zeros(len(self.starts) - 1, np.int64)
        self._room = Room(*(np.empty(longest + 1, t) for t in (np.int64, np.int64, np.float64)))

    def intervals(
        self, intercepts: Any, slopes: Any, low: float = -math.inf, high: float = math.inf
    ) -> Intervals:
        """All intervals of ``low < t < high``, and the sums of the counts on each."""
        a = np.ascontiguousarray(intercepts, np.float64)
        b = np.ascontiguousarray(slopes, np.float64)
        if not low < high:
            raise HopefearError(f"a line search from {low:g} to {high:g} has nowhere to look")
        if not a.shape == b.shape == (len(self.counts),):
            raise HopefearError(
                f"{len(self.counts)} candidates need as many intercepts and slopes, not "
                f"{a.shape} and {b.shape}"
            )
        if not math.isfinite(a.sum() + b.sum()):
            raise HopefearError("a line search needs intercepts and slopes that are finite numbers")
        times, old, new = self._events
        n = envelopes(self.starts, a, b, low, high, self._room, times, old, new, self._first)
        order = np.argsort(times[:n])
        corners = times[order]
        ends = np.concatenate(((low,), corners, (high,)))
        # Corners of several lists at one place leave nothing between them.
        real = ends[1:] > ends[:-1]
        shape = int(np.count_nonzero(real)), self.counts.shape[1]
        sums: np.ndarray = np.empty(shape, "f8" if self.counts.dtype.kind == "f" else "i8")
        running(self.counts, self._first, old, new, order, real, sums)
        return Intervals(ends[:-1][real], ends[1:][real], sums)

    def best(
        self,
        intercepts: Any,
        slopes: Any,
        *,
        low: float = -math.inf,
        high: float = math.inf,
        smooth: str = "none",
        window: int = 3,
        pull: tuple[float, float] = (0.0, 0.0),
        width: float = 0.0,
    ) -> Step:
        """The best place on the line ``intercepts + t * slopes``.

        Parameters
        ----------
        intercepts, slopes : float arrays
            Two numbers for each candidate.
        low, high : float
            Look only between these.
        smooth : {"none", "average", "minimum"}
            What an interval is worth: itself, or the mean or the least of ``window`` intervals on
            either side and itself (Cer, Jurafsky and Manning, 2008). Narrow peaks lose by it.
        window : int
            Larger looks further.
        pull : (float, float)
            ``pull[0] * t + pull[1] * t**2`` is taken off what t is worth.
        width : float
            Leave out intervals that are narrower, which another rounding might miss.
        """
        pieces = self.intervals(intercepts, slopes, low, high)
        plain = np.asarray(self.worth(pieces.sums), np.float64)
        worths = smoothed(plain, smooth, window)
        here = min(max(0.0, low), high)
        k = max(0, int(np.searchsorted(pieces.low, here, side="right")) - 1)
        before = float(worths[k])
        if here in (pieces.low[k], pieces.high[k]):
            index = k if here == pieces.low[k] else k + 1
            neighbours = np.insert(plain, index, self._at(intercepts, slopes, here))
            before = float(smoothed(neighbours, smooth, window)[index])
        before -= here * (pull[0] + pull[1] * here)
        inside = _inside(pieces, *pull, width) if pull[1] > 0.0 else _middle(pieces)
        worths -= inside * (pull[0] + pull[1] * inside)
        worths[pieces.high - pieces.low < width] = -math.inf
        best = int(worths.argmax())
        if not worths[best] > before:
            return Step(here, before, before)
        return Step(float(inside[best]), float(worths[best]), before)

    def _at(self, intercepts: Any, slopes: Any, t: float) -> float:
        """Returns the score of the best candidates at ``t``; the first of equals."""
        scores = np.asarray(intercepts, np.float64) + t * np.asarray(slopes, np.float64)
        sums = self.counts[first_best(self.starts, scores)].sum(axis=0, keepdims=True)
        return float(self.worth(sums)[0])


def best_step(
    starts: Any, intercepts: Any, slopes: Any, counts: Any, worth: Worth, **options: Any
) -> Step:
    """One exact line search; see `LineSearch`, which is faster for many on the same lists.

    >>> best_step([0, 2], [1.0, 0.0], [0.0, 2.0], [[0], [1]], lambda sums: sums[:, 0]).worth
    1.0
    """
    return LineSearch(starts, counts, worth).best(intercepts, slopes, **options)


def smoothed(worths: np.ndarray, smooth: str, window: int) -> np.ndarray:
    """Smooths the score of each interval by ``window`` neighbours on either side.

    >>> smoothed(np.array([1.0, 4.0, 1.0, 1.0]), "average", 1).tolist()
    [2.5, 2.0, 2.0, 1.0]
    >>> smoothed(np.array([1.0, 4.0, 5.0, 6.0]), "minimum", 1).tolist()
    [1.0, 1.0, 4.0, 5.0]
    """
    if smooth not in SMOOTHINGS or window < 0:
        raise HopefearError(
            f"line search cannot smooth by {smooth!r} over {window} neighbours; choose one of "
            f"{', '.join(SMOOTHINGS)} and a window of 0 or more"
        )
    if smooth == "none" or window == 0:
        return worths.copy()
    n = len(worths)
    if smooth == "average":
        total = np.concatenate(((0.0,), np.cumsum(worths)))
        k = np.arange(n)
        first, stop = np.maximum(k - window, 0), np.minimum(k + window + 1, n)
        return (total[stop] - total[first]) / (stop - first)
    padded = np.pad(worths, window, constant_values=math.inf)
    return np.lib.stride_tricks.sliding_window_view(padded, 2 * window + 1).min(axis=1)


def _middle(pieces: Intervals) -> np.ndarray:
    """A place inside each interval: its middle, if that is not too far out.

    Beyond the last corners, and in long intervals far from 0, where only the direction would count,
    the end next to 0 is passed by as much as it lies from 0, or as corners usually do.
    """
    low, high = pieces.low, pieces.high
    k = (len(low) - 2) // 2
    typical = float(np.partition(np.abs(low[1:]), k)[k]) if len(low) > 1 else 0.0
    typical = typical if typical > 0.0 else 1.0
    near = np.where(low >= 0.0, low, np.where(high <= 0.0, high, 0.0))
    max_distance = 2.0 * np.maximum(np.abs(near), typical)
    return near + 0.5 * (
        np.maximum(low - near, -max_distance) + np.minimum(high - near, max_distance)
    )


def _inside(pieces: Intervals, first: float, second: float, width: float) -> np.ndarray:
    """The place in each interval where ``first * t + second * t**2`` is least.

    It keeps ``width`` off the ends, where another rounding might end up on the other side.
    """
    middle, peak = _middle(pieces), -0.5 * first / second
    ends = []
    for end, sign in ((pieces.low, 1.0), (pieces.high, -1.0)):
        way = np.abs(middle - end)
        spare = np.minimum(np.maximum(width, _SPARE * way), way)
        ends.append(end + sign * np.where(np.isfinite(end), spare, 0.0))
    return np.clip(peak, *ends)


class WeightSearch:
    """Line search from weights along a direction, by the metric of a problem.

    Parameters
    ----------
    problem : TuningProblem
        Says what choices are worth.
    data : ListDataset, optional
        Lists to choose from; those of the problem by default.

    Examples
    --------
    >>> from hopefear.data.lists.dataset import ListRows
    >>> from hopefear.metrics.lists import GivenCost
    >>> rows = ListRows([0, 2], [0, 1], [0], [0, 0, 1], [0], [1.0], [0, 0], [0.5, 0], [1], [1])
    >>> problem = TuningProblem(ListDataset(rows), GivenCost(), np.zeros(1))
    >>> WeightSearch(problem).best([-1.0], [1.0], low=0.0, high=2.0).t
    1.5
    """

    def __init__(self, problem: TuningProblem, data: ListDataset | None = None) -> None:
        data = problem.data if data is None else data
        self.rows = data.rows
        self._free = data.replaced(offsets=np.zeros_like(data.rows.offsets)).rows
        counts = counts_of(data, problem.metric)
        self._search = LineSearch(data.rows.starts, counts, quick_worth(problem.metric))

    def best(self, weights: Any, direction: Any, **options: Any) -> Step:
        """The best ``t`` for ``weights + t * direction``; see ``LineSearch.best``."""
        intercepts, slopes = self._scores(weights, self.rows), self._scores(direction, self._free)
        # Weights are read in 32 bits later, which must not miss the interval.
        width = NARROW * self._spread(intercepts) / (self._spread(slopes) or 1.0)
        return self._search.best(intercepts, slopes, width=width, **options)

    def _scores(self, weights: Any, rows: ListRows) -> np.ndarray:
        w = np.asarray(weights, np.float64)
        return ListDecoder(NBest(len(w)), LinearPredictor(w)).scores(rows)

    def _spread(self, scores: np.ndarray) -> float:
        """Returns the sum of the ranges of scores within lists."""
        first = self.rows.starts[:-1]
        if not len(first):
            return 0.0
        highest, lowest = (extreme.reduceat(scores, first) for extreme in (np.maximum, np.minimum))
        return float((highest - lowest).sum())


class Room(NamedTuple):
    """Lines of one list on their way through the kernel."""

    lines: np.ndarray  # int64: candidates that may be on the envelope
    stack: np.ndarray  # int64: candidates on the envelope so far
    since: np.ndarray  # float64: where each begins to be the best


@kernel
def envelopes(starts, a, b, low, high, room, times, old, new, first):
    """Corners between ``low`` and ``high`` of all lists; returns how many there are.

    At ``times[k]`` candidate ``old[k]`` gives way to ``new[k]``; list i begins with ``first[i]``.
    """
    n = 0
    for i in range(starts.size - 1):
        m = _candidates(a, b, starts[i], starts[i + 1], room.lines)
        if m > 2:
            _sort(b, room.lines, m)
        m = _scan(a, b, room, m)
        k = 0
        while k + 1 < m and room.since[k + 1] <= low:
            k += 1
        first[i] = room.stack[k]
        while k + 1 < m and room.since[k + 1] < high:
            k += 1
            times[n], old[n], new[n] = room.since[k], room.stack[k - 1], room.stack[k]
            n += 1
    return n


@helper
def _candidates(a, b, begin, end, lines):
    """Keep the lines that may be on the envelope, the flattest first; returns how many.

    The lines with least and most slope are on it, and so is the one that is highest at 0. Others
    count only if they rise above these three, and a line that does so does it at a corner of them.
    """
    least = steepest = top = begin
    b_least = b_most = b[begin]
    a_least = a_most = a_top = a[begin]
    for c in range(begin + 1, end):
        a_c, b_c = a[c], b[c]
        if b_c <= b_least and (b_c < b_least or a_c > a_least):
            least, a_least, b_least = c, a_c, b_c
        if b_c >= b_most and (b_c > b_most or a_c > a_most):
            steepest, a_most, b_most = c, a_c, b_c
        if a_c > a_top:
            top, a_top = c, a_c
    lines[0] = least
    if b[least] == b[steepest]:
        return 1
    if b[top] == b[least]:
        top = least
    elif b[top] == b[steepest]:
        top = steepest
    if top in (least, steepest):
        t1 = t2 = (a[least] - a[steepest]) / (b[steepest] - b[least])
    else:
        t1 = (a[least] - a[top]) / (b[top] - b[least])
        t2 = (a[top] - a[steepest]) / (b[steepest] - b[top])
    v1, v2 = a[top] + b[top] * t1, a[top] + b[top] * t2
    m = 1
    for c in range(begin, end):
        # Written without a branch: which lines rise above is hard to predict.
        lines[m] = c
        above = (a[c] + b[c] * t1 > v1) | (a[c] + b[c] * t2 > v2) | (c == top)
        m += above & (c != least) & (c != steepest)
    lines[m] = steepest
    return m + 1


@helper
def _sort(b, lines, m):
    """Put lines in the order of their slopes (Shell's sort, which is quick for so few)."""
    gap = 1
    while 3 * gap + 1 < m:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(gap, m):
            c, p = lines[k], k
            while p >= gap and b[lines[p - gap]] > b[c]:
                lines[p] = lines[p - gap]
                p -= gap
            lines[p] = c
        gap //= 3


@helper
def _scan(a, b, room, m):
    """Envelope of lines that are sorted by slope; returns how many are on it."""
    lines, stack, since = room
    stack[0], since[0], n = lines[0], -np.inf, 1
    for k in range(1, m):
        c = lines[k]
        if b[c] == b[stack[n - 1]]:
            s = stack[n - 1]
            if a[c] < a[s] or (a[c] == a[s] and c > s):
                continue
            n -= 1
        t = -np.inf
        while n > 0:
            s = stack[n - 1]
            t = (a[s] - a[c]) / (b[c] - b[s])
            if t > since[n - 1]:
                break
            n -= 1
        stack[n], since[n] = c, t if n > 0 else -np.inf
        n += 1
    return n


@kernel
def running(counts, first, old, new, order, real, sums):
    """Sums of the counts of the chosen candidates on every interval that is not empty."""
    width = counts.shape[1]
    total = np.zeros(width, sums.dtype)
    for i in range(first.size):
        for s in range(width):
            total[s] += counts[first[i], s]
    m = 0
    if real[0]:
        sums[0] = total
        m = 1
    for k in range(order.size):
        leaver, come = old[order[k]], new[order[k]]
        for s in range(width):
            total[s] += counts[come, s] - counts[leaver, s]
        if real[k + 1]:
            for s in range(width):
                sums[m, s] = total[s]
            m += 1


@kernel
def first_best(starts, scores):
    """Number of the highest score of each list; of equal ones the first."""
    winners = np.empty(starts.size - 1, np.int64)
    for i in range(starts.size - 1):
        best = starts[i]
        for c in range(starts[i] + 1, starts[i + 1]):
            if scores[c] > scores[best]:
                best = c
        winners[i] = best
    return winners

"""Minimum error rate training (Och, 2003): maximise the metric itself, line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from hopefear.core.checks import check_parameters
from hopefear.core.component import kernel
from hopefear.data.lists.dataset import ListDataset, counts_of
from hopefear.errors import CombinationError, HopefearError
from hopefear.translation.tuners.corpus import quick_worth
from hopefear.translation.tuners.envelope import NARROW, SMOOTHINGS, LineSearch, Step, first_best
from hopefear.translation.tuners.problem import Listener, Round, RoundsTuner, Tuned, TuningProblem

STEPS = ("turns", "best")
KEEPS = ("auto", "train", "dev")


@dataclass(frozen=True)
class Mert(RoundsTuner):
    """Exact line searches along coordinates and other directions, from several starts.

    ``max_w metric(best candidates under w) - l2 * sum((w - start)**2)``

    Parameters
    ----------
    restarts : int
        Starts: the given weights, then weights drawn around them. More find better maxima of the
        tuning lists, which other lists need not share.
    steps : {"turns", "best"}
        Move along one direction after the other, or look along all of them and take the best step
        only (Koehn's search), which takes more searches for each step.
    random : int
        Random directions in each round, besides the coordinates (Cer et al., 2008). More find ways
        that no single weight opens.
    elite : int
        The best results of earlier starts, towards each of which a round looks too. More make
        starts end closer together and higher; with 0 they know nothing of each other.
    rounds : int
        Rounds for each start, at most.
    tolerance : float
        A start is done when a round gains less than this, in units of the metric. Larger stops
        sooner.
    spread : float
        Starts are drawn uniformly from the given weights plus and minus this many times their mean
        size. Larger covers more ground, most of it poor.
    smooth : {"none", "average", "minimum"}
        Judge an interval of a line by itself, or by the mean or the least of itself and its
        neighbours (Cer et al., 2008), which passes over narrow peaks. Rounds are judged without.
    window : int
        Neighbours on either side to look at. Larger smooths more.
    l2 : float
        Pull toward the given weights; larger stays closer. It knows their scale, so start from
        weights that are worth staying close to.
    normalize : bool, optional
        Return weights whose sizes add up to 1. By default so where that changes no choice: not with
        ``l2``, nor where candidates have fixed scores besides their features.
    keep : {"auto", "train", "dev"}
        Return the start that came out best on the tuning lists, or on the held-out ones; ``auto``
        takes these where there are any.

    Notes
    -----
    A feature in which no two candidates of a list differ keeps its weight, up to normalisation. A
    search looks at all candidates, so more than 1,000 features are refused.

    ``elite`` and ``random`` were chosen by the score on the tuning lists (val) this library was
    developed with.

    References
    ----------
    Cer, Jurafsky and Manning (2008), Regularization and search for minimum error rate training.

    Examples
    --------
    The second of two candidates is right, so the only feature needs a positive weight:

    >>> from hopefear.data.lists.dataset import ListDataset, ListRows
    >>> from hopefear.metrics.lists import GivenCost
    >>> rows = ListRows([0, 2], [0, 1], [0], [0, 0, 1], [0], [1.0], [0, 0], [0.5, 0], [1], [1])
    >>> problem = TuningProblem(ListDataset(rows), GivenCost(), np.array([-1.0]))
    >>> result = Mert(restarts=1).tune(problem)
    >>> result.weights.tolist(), result.runs
    ([1.0], (0.0,))
    """

    name: ClassVar[str] = "mert"
    rounds_parameter: ClassVar[str] = "restarts"

    restarts: int = 20
    steps: str = "turns"
    random: int = 14
    elite: int = 5
    rounds: int = 100
    tolerance: float = 0.01
    spread: float = 1.0
    smooth: str = "none"
    window: int = 3
    l2: float = 0.0
    normalize: bool | None = None
    keep: str = "auto"

    def __post_init__(self) -> None:
        check_parameters(
            self,
            at_least={"restarts": 1, "rounds": 1, "random": 0, "elite": 0}
            | dict.fromkeys(("tolerance", "spread", "l2", "window"), 0),
            choices={"steps": STEPS, "smooth": SMOOTHINGS, "keep": KEEPS},
        )
        if self.normalize and self.l2 > 0.0:
            raise CombinationError(
                "Mert: l2 holds weights to the scale of the given ones, which normalize gives up; "
                "set normalize=False, or l2=0"
            )

    def following(self) -> dict[str, Any]:
        return {**super().following(), "judge": self.keep, "nnz": False}

    def tune(
        self, problem: TuningProblem, *, seed: int = 1, on_event: Sequence[Listener] = ()
    ) -> Tuned:
        """Weights of the best start; events are of starts, with the number of line searches."""
        tuned = super().tune(problem, seed=seed, on_event=on_event)
        ends = tuple(event["train"][problem.metric.main] for event in tuned.history)
        return replace(tuned, runs=ends)

    def each_round(self, problem: TuningProblem, seed: int) -> Iterator[Round]:
        if self.keep == "dev" and problem.dev is None:
            raise HopefearError(
                "Mert(keep='dev') chooses a start by held-out lists, and there are none; give "
                "them, or use keep='train'"
            )
        run = _Run(self, problem)
        for k in range(self.restarts):
            weights, searches = run.climb(np.random.default_rng((seed, k)), first=k == 0)
            pull = self.l2 * float(((weights - run.start) ** 2).sum())
            yield Round(weights, {"searches": searches}, pull)


class _Run:
    """State shared by the starts: the table of values, and the best results."""

    def __init__(self, mert: Mert, problem: TuningProblem) -> None:
        self.mert, self.problem = mert, problem
        self.start = np.array(problem.start, np.float64)
        if not len(problem.data):
            raise HopefearError(f"{problem.data.source} has no lists to tune on")
        if not np.isfinite(self.start).all():
            raise HopefearError("mert starts from weights that are finite numbers")
        self.lists = DenseLists(problem)
        if mert.normalize and self.lists.fixed:
            raise HopefearError(
                f"candidates of {problem.data.source} have fixed scores, so the scale of weights "
                "matters; set normalize=False"
            )
        # Where only the proportions of weights count, directions are taken between proportions.
        self.free = mert.l2 == 0.0 and not self.lists.fixed
        self.ends: list[tuple[float, np.ndarray]] = []

    def climb(self, rng: np.random.Generator, first: bool) -> tuple[np.ndarray, int]:
        """From a start to where no round gains any more: weights, and how many searches."""
        mert, lists = self.mert, self.lists
        anchor = self.start[lists.active]
        size = float(np.abs(anchor).mean()) if anchor.any() else 1.0
        w = anchor if first else anchor + rng.uniform(-1.0, 1.0, len(anchor)) * mert.spread * size
        climber = Climber(lists, w, anchor, mert.l2, mert.smooth, mert.window)
        best, reached = w, climber.value()
        move = climber.best_of if mert.steps == "best" else climber.each_of
        for _ in range(mert.rounds):
            gain = move(self._directions(climber.w, rng))
            value = climber.value()
            # Smoothed gains are of one line each, and could go round in circles.
            gain = gain if mert.smooth == "none" else value - reached
            if value > reached:
                best, reached = climber.w, value
            if gain < max(mert.tolerance, np.finfo(float).tiny):
                break
        # Where candidates are tied, weights are not worth what those next to them are.
        if climber.value() < reached:
            climber.move(best)
        self.ends.append((climber.value(), climber.w))
        return self._all_weights(climber.w), climber.searches

    def _directions(self, w: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        """Random directions, and those to the best ends of other starts."""
        scale = self.lists.scale
        random = rng.normal(size=(self.mert.random, len(w))) / scale
        best = sorted(self.ends, key=lambda end: -end[0])[: self.mert.elite]
        share = _size(w, scale) if self.free else 1.0
        ways = [end / (_size(end, scale) if self.free else 1.0) - w / share for _, end in best]
        return [way for way in (*random, *ways) if way.any()]

    def _all_weights(self, w: np.ndarray) -> np.ndarray:
        """Returns the weights of all features from those that are tuned."""
        weights = self.start.copy()
        weights[self.lists.active] = w
        normalize = self.free if self.mert.normalize is None else self.mert.normalize
        total = float(np.abs(weights).sum())
        return weights / total if normalize and total > 0.0 else weights


def _size(w: np.ndarray, scale: np.ndarray) -> float:
    """Estimates the size of scores under these weights; 1 where they are all 0."""
    return float(np.abs(w) @ scale) or 1.0


FEATURES = 1_000  # more need too many line searches; a search looks at all candidates
BLOCK = 1_024


class DenseLists:
    """Lists as a table of all features by all candidates, ready for line searches.

    Parameters
    ----------
    problem : TuningProblem
        At most 1,000 of its features may differ between candidates of a list.

    Attributes
    ----------
    active : int64 array
        The features that do; no weight of another one can change a choice.
    table : float32 array [active features, candidates]
        Their values.
    scale : float64 array
        How far candidates of a list usually lie apart in each of them (root mean square).
    """

    def __init__(self, problem: TuningProblem) -> None:
        rows = problem.data.rows
        self.active, self.table = dense_table(problem.data, len(problem.start))
        lists = np.diff(rows.starts)
        self.scale = np.array([_spread(values, rows.starts, lists) for values in self.table])
        self.offsets = np.asarray(rows.offsets, np.float64)
        self.fixed = bool(differing(self.offsets, rows.starts))  # scores that no weight scales
        self.lines = LineSearch(
            rows.starts, counts_of(problem.data, problem.metric), quick_worth(problem.metric)
        )

    def scores(self, w: np.ndarray) -> np.ndarray:
        """Scores of all candidates under weights of the active features."""
        scores = self.offsets.copy()
        add_scores(self.table, np.asarray(w, np.float64), scores)
        return scores

    def slopes(self, direction: np.ndarray) -> np.ndarray:
        """Returns the derivatives of the scores along a direction."""
        slopes = np.zeros(len(self.offsets))
        add_scores(self.table, np.asarray(direction, np.float64), slopes)
        return slopes

    def worth(self, scores: np.ndarray) -> float:
        """Returns the score of the best candidates; the first of equals."""
        best = first_best(self.lines.starts, scores)
        sums = self.lines.counts[best].sum(axis=0, keepdims=True)
        return float(self.lines.worth(sums)[0])


class Climber:
    """A point on its way up, and what its line searches look for.

    Parameters
    ----------
    lists : DenseLists
        Where to search.
    w : float64 array
        Weights of the active features, to begin with.
    anchor, l2 : float64 array, float
        ``l2 * sum((w - anchor)**2)`` is taken off what weights are worth.
    smooth, window : str, int
        How `LineSearch.best` judges intervals.
    """

    def __init__(
        self,
        lists: DenseLists,
        w: np.ndarray,
        anchor: np.ndarray,
        l2: float = 0.0,
        smooth: str = "none",
        window: int = 3,
    ) -> None:
        self.lists, self.anchor, self.l2 = lists, anchor, l2
        self.smooth, self.window = smooth, window
        self.searches = 0
        self.move(w)

    def move(self, w: np.ndarray) -> None:
        """Be at these weights."""
        self.w = w
        self.scores = self.lists.scores(w)

    def value(self) -> float:
        """Returns the score of the weights, less the regularisation."""
        away = self.w - self.anchor
        return self.lists.worth(self.scores) - self.l2 * float(away @ away)

    def look(self, slopes: np.ndarray, direction: np.ndarray) -> Step:
        """The best step along a direction in which the scores have these slopes."""
        self.searches += 1
        away, scale = self.w - self.anchor, self.lists.scale
        pull = 2.0 * self.l2 * float(away @ direction), self.l2 * float(direction @ direction)
        # Weights are read in 32 bits later, which must not miss the interval.
        width = NARROW * float(np.abs(self.w) @ scale) / float(np.abs(direction) @ scale)
        return self.lists.lines.best(
            self.scores, slopes, smooth=self.smooth, window=self.window, pull=pull, width=width
        )

    def best_of(self, directions: Iterable[np.ndarray]) -> float:
        """Take the best step along any coordinate or one of ``directions``; returns its gain."""
        best, where = Step(0.0, 0.0, 0.0), None
        for direction, slopes in self._with_axes(directions):
            step = self.look(slopes, direction)
            if step.worth - step.before > best.worth - best.before:
                best, where = step, direction
        if where is None:
            return 0.0
        self.move(self.w + best.t * where)
        return best.worth - best.before

    def each_of(self, directions: Iterable[np.ndarray]) -> float:
        """Take the best step along every coordinate and of ``directions``; returns their gain."""
        gain = 0.0
        for direction, slopes in self._with_axes(directions):
            step = self.look(slopes, direction)
            if step.worth > step.before:
                self.w = self.w + step.t * direction
                self.scores += step.t * slopes
                gain += step.worth - step.before
        self.move(self.w)
        return gain

    def _with_axes(
        self, directions: Iterable[np.ndarray]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for j, values in enumerate(self.lists.table):
            direction = np.zeros(len(self.w))
            direction[j] = 1.0
            yield direction, np.asarray(values, np.float64)
        for direction in directions:
            yield direction, self.lists.slopes(direction)


def dense_table(data: ListDataset, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Features in which candidates of a list differ, and their values, one row for each."""
    rows = data.rows
    occurs = np.zeros(size, np.bool_)
    occurs[rows.features] = True
    features = np.flatnonzero(occurs)
    if len(features) > FEATURES:
        raise HopefearError(
            f"mert searches along one feature after the other, and {data.source} has "
            f"{len(features)} of them, over the limit of {FEATURES}; tune those with pro or mira"
        )
    number = np.zeros(size, np.int64)
    number[features] = np.arange(len(features))
    table = np.zeros((len(features), data.n_candidates), np.float32)
    fill_table(
        rows.starts,
        rows.scopes,
        rows.features,
        rows.indptr,
        rows.columns,
        rows.values,
        number,
        table,
    )
    active = np.array([differing(values, rows.starts) for values in table], np.bool_)
    return features[active], table if active.all() else table[active]


def _spread(values: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> float:
    total = np.add.reduceat(np.asarray(values, np.float64), starts[:-1])
    squares = np.add.reduceat(np.asarray(values, np.float64) ** 2, starts[:-1])
    return float(np.sqrt(max(0.0, (squares - total**2 / lengths).sum()) / len(values)))


@kernel
def fill_table(starts, scopes, features, indptr, columns, values, number, table):
    """Spread sparse values over a table of features by candidates."""
    for i in range(starts.size - 1):
        for c in range(starts[i], starts[i + 1]):
            for e in range(indptr[c], indptr[c + 1]):
                table[number[features[scopes[i] + columns[e]]], c] = values[e]


@kernel
def add_scores(table, w, out):
    """Add ``w @ table`` to ``out``, in blocks that stay in the processor's cache."""
    for begin in range(0, out.size, BLOCK):
        end = min(begin + BLOCK, out.size)
        block = out[begin:end]
        for j in range(w.size):
            if w[j] != 0.0:
                values, by = table[j, begin:end], w[j]
                for c in range(block.size):
                    block[c] += by * values[c]


@kernel
def differing(values, starts):
    """Whether a list has two different values."""
    for i in range(starts.size - 1):
        for c in range(starts[i] + 1, starts[i + 1]):
            if values[c] != values[starts[i]]:
                return True
    return False

"""Minimum error rate training (Och, 2003): maximise the metric itself, line by line."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hopefear.errors import CombinationError, HopefearError
from hopefear.translation.tuners.envelope import SMOOTHINGS
from hopefear.translation.tuners.mert_search import Climber, DenseLists
from hopefear.translation.tuners.problem import Event, Listener, Tuned, TuningProblem, tell
from hopefear.translation.tuners.whole_lists import WholeListsTuner

STEPS = ("turns", "best")
KEEPS = ("auto", "train", "dev")


@dataclass(frozen=True)
class Mert(WholeListsTuner):
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
    >>> found = Mert(restarts=1).tune(problem)
    >>> found.weights.tolist(), found.runs
    ([1.0], (0.0,))
    """

    name: ClassVar[str] = "mert"

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
        for name, least in (("restarts", 1), ("rounds", 1), ("random", 0), ("elite", 0)):
            if (value := getattr(self, name)) < least:
                raise CombinationError(f"Mert: {name} must be at least {least}, but is {value}")
        for name in ("tolerance", "spread", "l2", "window"):
            if not 0 <= (value := getattr(self, name)) < math.inf:
                raise CombinationError(
                    f"Mert: {name} must be finite and not negative, but is {value!r}"
                )
        for name, choices in (("steps", STEPS), ("smooth", SMOOTHINGS), ("keep", KEEPS)):
            if (value := getattr(self, name)) not in choices:
                raise CombinationError(
                    f"Mert: {name} must be one of {', '.join(choices)}, not {value!r}"
                )
        if self.normalize and self.l2 > 0.0:
            raise CombinationError(
                "Mert: l2 holds weights to the scale of the given ones, which normalize gives up; "
                "set normalize=False, or l2=0"
            )

    def tune(
        self, problem: TuningProblem, *, seed: int = 1, on_event: Sequence[Listener] = ()
    ) -> Tuned:
        """Weights of the best start.

        Parameters
        ----------
        problem : TuningProblem
            What to tune on.
        seed : int
            Draws starts and directions; the same seed gives the same weights.
        on_event : sequence of callables
            Each gets the event (a dict) of every start, with the number of line searches.
        """
        if self.keep == "dev" and problem.dev is None:
            raise HopefearError(
                "Mert(keep='dev') chooses a start by held-out lists, and there are none; give "
                "them, or use keep='train'"
            )
        run = _Run(self, problem)
        history: list[Event] = []
        found: list[np.ndarray] = []
        for k in range(self.restarts):
            began = time.perf_counter()
            weights, searches = run.climb(np.random.default_rng((seed, k)), first=k == 0)
            found.append(weights)
            event: Event = {"epoch": k + 1, "of": self.restarts, **problem.report(weights)}
            event["seconds"] = round(time.perf_counter() - began, 6)
            event["searches"] = searches
            history.append(event)
            tell(on_event, event)
        main, sign = problem.metric.main, 1.0 if problem.metric.higher else -1.0
        judges = self.keep
        if judges == "auto":
            judges = "train" if problem.dev is None else "dev"
        worths = np.array([sign * event[judges][main] for event in history])
        if judges == "train":
            worths -= self.l2 * ((np.array(found) - run.start) ** 2).sum(axis=1)
        best = int(np.argmax(worths))
        runs = tuple(event["train"][main] for event in history)
        return Tuned(found[best], history, runs, best + 1)


class _Run:
    """What the starts share: the table of values, and the best ends so far."""

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
        given = self.start[lists.active]
        size = float(np.abs(given).mean()) if given.any() else 1.0
        w = given if first else given + rng.uniform(-1.0, 1.0, len(given)) * mert.spread * size
        climber = Climber(lists, w, given, mert.l2, mert.smooth, mert.window)
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
        return self._all(climber.w), climber.searches

    def _directions(self, w: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
        """Random directions, and those to the best ends of other starts."""
        scale = self.lists.scale
        drawn = rng.normal(size=(self.mert.random, len(w))) / scale
        best = sorted(self.ends, key=lambda end: -end[0])[: self.mert.elite]
        share = _size(w, scale) if self.free else 1.0
        ways = [end / (_size(end, scale) if self.free else 1.0) - w / share for _, end in best]
        return [way for way in (*drawn, *ways) if way.any()]

    def _all(self, w: np.ndarray) -> np.ndarray:
        """Weights of all features from those that matter."""
        found = self.start.copy()
        found[self.lists.active] = w
        wanted = self.free if self.mert.normalize is None else self.mert.normalize
        total = float(np.abs(found).sum())
        return found / total if wanted and total > 0.0 else found


def _size(w: np.ndarray, scale: np.ndarray) -> float:
    """How large scores under these weights are, roughly; 1 where they are all 0."""
    return float(np.abs(w) @ scale) or 1.0

"""Held-out line search (Flanigan, Dyer and Carbonell, 2013)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from hopefear.core.checks import check_fraction, check_parameters
from hopefear.costs.regret import Regret
from hopefear.data.lists.dataset import ListDataset
from hopefear.errors import HopefearError
from hopefear.losses.risk import Risk
from hopefear.structures.nbest import NBest
from hopefear.training.batch import LossObjective
from hopefear.training.lbfgs import Minimiser
from hopefear.translation.tuners.annealed_risk import priced
from hopefear.translation.tuners.envelope import WeightSearch
from hopefear.translation.tuners.problem import Round, RoundsTuner, TuningProblem


@dataclass(frozen=True)
class Hols(RoundsTuner):
    """Directions from some lists, steps from others.

    ``w = w + t d``: ``d`` lowers the expected cost of the training lists, ``t`` is the exact
    optimum of the metric on held-out lists.

    Parameters
    ----------
    rounds : int
        Steps at most; there are fewer when none gains.
    held_out : float
        Share of the lists that steps are chosen on, where the problem has no held-out lists.
    inverse_temperature : float
        Scale of scores in the expected cost, for weights of which the scores of a list have a
        standard deviation of 1. Larger looks at the best candidates only.
    inner : int
        Iterations of L-BFGS that a direction leads along; 1 is the gradient itself. More lead
        further towards the optimum of the training lists.
    corpus : float
        Share of the corpus in costs: see ``corpus_costs``.
    swap : bool
        Where lists of the problem are held out: let both parts change roles after every step.
    dense : int
        Number of features, the first ones, that are tuned on the held-out lists one by one in the
        end. 0 is none; -1 those that the lists call dense, where there are others besides.

    Notes
    -----
    The paper's direction is that of an epoch of stochastic gradient descent, or the gradient.
    A few iterations of L-BFGS stand for both here: the gradient alone takes long where features
    are measured in different units. Held-out lists are what the steps overfit to, not what the
    directions do; those of the problem (``dev``) are taken where there are any, and their score
    is no longer that of unseen lists afterwards. Dense features get a search of their own because
    the weights of sparse ones were learned beside them; where all are dense, there is no need. From
    weights of 0 the first step is taken whatever it is worth: its length does not matter, and what
    comes first in a list was no choice of the weights.

    ``inverse_temperature`` and ``inner`` were chosen by the score on the tuning lists
    (val) this library was developed with.

    Examples
    --------
    >>> Hols(inner=1).signature()[:61]
    'tuner:hols(rounds=20,held_out=0.5,inverse_temperature=4,inner'
    """

    name: ClassVar[str] = "hols"

    rounds: int = 20
    held_out: float = 0.5
    inverse_temperature: float = 4.0
    inner: int = 5
    corpus: float = 0.25
    swap: bool = True
    dense: int = -1

    def __post_init__(self) -> None:
        check_parameters(
            self, at_least={"rounds": 1, "inner": 1, "dense": -1}, above={"inverse_temperature": 0}
        )
        check_fraction("Hols: held_out", self.held_out)

    def following(self) -> dict[str, Any]:
        return {"keep": None}

    def each_round(self, problem: TuningProblem, seed: int) -> Iterator[Round]:
        """Weights after every step that gained on the held-out lists."""
        roles = [_ListRoles(problem, self, *parts) for parts in self._split(problem, seed)]
        weights = np.array(problem.start, np.float64)

        def stand(phase: str) -> Round:
            score = worth if problem.metric.higher else -worth
            return Round(weights, {"phase": phase, "held_out": {problem.metric.main: score}})

        idle = steps = 0
        for turn in range(self.rounds):
            move, worth = roles[turn % len(roles)].step(weights, self.inner)
            idle = 0 if move.any() else idle + 1
            if idle == len(roles):
                break
            if move.any():
                weights, steps = weights + move, steps + 1
                yield stand("direction")
        for _ in range(self.rounds if (dense := self._dense(problem)) else 0):
            move, worth = roles[0].best_axis_step(weights, dense)
            if not move.any():
                break
            weights, steps = weights + move, steps + 1
            yield stand("dense")
        if not steps:
            yield stand("none")

    def _dense(self, problem: TuningProblem) -> int:
        n = len(problem.start)
        if self.dense >= 0:
            return min(self.dense, n)
        dense = int(getattr(problem.data.features, "n_dense", n))
        return dense if dense < n else 0

    def _split(self, problem: TuningProblem, seed: int) -> list[tuple[ListDataset, ListDataset]]:
        """Lists for directions and lists for steps, once or, with roles changed, twice."""
        data = problem.data
        if problem.dev is not None and len(problem.dev):
            return [(data, problem.dev)]
        if len(data) < 2:
            raise HopefearError(
                f"Hols and {data.source}: {len(data)} lists cannot be split into those that give "
                "directions and those held out; give held-out lists, or more lists"
            )
        order = np.random.default_rng(seed).permutation(len(data))
        cut = min(max(1, round(self.held_out * len(data))), len(data) - 1)
        train, held = data.take(np.sort(order[cut:])), data.take(np.sort(order[:cut]))
        return [(train, held), (held, train)] if self.swap else [(train, held)]


class _ListRoles:
    """Lists for the directions, and lists for the step sizes."""

    def __init__(
        self, problem: TuningProblem, hols: Hols, train: ListDataset, held: ListDataset
    ) -> None:
        data, self.unit = priced(replace(problem, data=train), hols.corpus)
        loss = Risk(Regret(), hols.inverse_temperature)
        self.undecided = problem.undecided
        self.objective = LossObjective(NBest(len(problem.start)), loss, data.rows, 0.0)
        self.search = WeightSearch(problem, held)

    def step(self, weights: np.ndarray, inner: int) -> tuple[np.ndarray, float]:
        """(the best move along a direction, what the held-out lists are worth there)."""
        towards = self.unit * descent(self.objective, weights / self.unit, inner)
        if self.undecided(weights):
            return towards, self.search.best(towards, np.zeros(len(towards))).worth
        step = self.search.best(weights, towards, low=0.0)
        return step.t * towards, step.worth

    def best_axis_step(self, weights: np.ndarray, n: int) -> tuple[np.ndarray, float]:
        """The same along each of the first ``n`` weights in turn."""
        move, worth = np.zeros(len(weights)), -math.inf
        for j in range(n):
            along = np.zeros(len(weights))
            along[j] = 1.0
            step = self.search.best(weights + move, along)
            move[j] += step.t
            worth = step.worth
        return move, worth


def descent(objective: Any, weights: np.ndarray, steps: int) -> np.ndarray:
    """Returns the weights after ``steps`` iterations of L-BFGS; the first follows the gradient."""
    search = Minimiser(objective, weights)
    for _ in range(steps):
        if not search.step():
            break
    return search.w - weights

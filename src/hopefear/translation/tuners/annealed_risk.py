"""Minimum risk annealing (Smith and Eisner, 2006)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from hopefear.core.checks import check_parameters
from hopefear.core.component import component, helper
from hopefear.core.interfaces import Loss
from hopefear.costs.regret import Regret
from hopefear.data.lists.dataset import ListDataset, cheapest
from hopefear.errors import HopefearError
from hopefear.structures.nbest import NBest, size
from hopefear.training.batch import LossObjective
from hopefear.training.decoders.lists import ListDecoder
from hopefear.training.lbfgs import minimise
from hopefear.training.predictors import LinearPredictor
from hopefear.translation.tuners.corpus import corpus_costs, spread_within
from hopefear.translation.tuners.problem import Round, RoundsTuner, TuningProblem


@component(Loss)
class FreeEnergy(NamedTuple):
    """Mean cost of the candidates, less some of their entropy.

    ``sum_j P_j (cost_j + heat * log P_j)`` with ``P = softmax(inverse_temperature * score)``

    Parameters
    ----------
    cost : Cost
        Price of a candidate.
    inverse_temperature : float
        Scale of the scores before they become probabilities.
    heat : float
        Worth of entropy. Larger keeps probabilities even.

    Examples
    --------
    >>> FreeEnergy(inverse_temperature=2.0).requires()
    ('risk',)
    """

    cost: Any = Regret()
    inverse_temperature: float = 1.0
    heat: float = 0.0

    def requires(self):
        return ("risk",)

    def subgradient(self, structure, x, work):
        importance = np.float64(x.data.weights[x.i])
        risk = structure.risk_and_gradient(
            x, work.theta, self.cost, self.inverse_temperature, importance, work.mu
        )
        if self.heat > 0.0:
            risk -= self.heat * warm(x, work, self.inverse_temperature * self.heat * importance)
        work.loss[0] = importance * risk
        work.gold_margin[0] = structure.margin(x, work.theta, work.y, False)
        return 1 if importance > 0.0 else 0


@helper
def warm(x, work, coef):
    """Add the direction in which the entropy rises; returns the entropy."""
    # The structure leaves shares of probability there, up to their sum.
    shares, total, entropy = work.theta.charged, 0.0, 0.0
    for c in range(size(x)):
        total += shares[c]
    for c in range(size(x)):
        if shares[c] > 0.0:
            entropy -= shares[c] / total * math.log(shares[c] / total)
    for c in range(size(x)):
        if shares[c] > 0.0:
            share = shares[c] / total
            work.mu.parts[c] -= coef * share * (math.log(share) + entropy)
    return entropy


@dataclass(frozen=True)
class AnnealedRisk(RoundsTuner):
    """Expected cost, minimised again and again while probabilities become sharper.

    ``min_w  mean_i sum_j P_ij cost_ij - heat * H(P_i)  +  l2 * |w|**2``,
    ``P = softmax(inverse_temperature * score)``

    Parameters
    ----------
    inverse_temperature : float
        The first scale of scores, for weights of which the scores of a list have a standard
        deviation of 1. Smaller begins with a smoother function, further from what is wanted.
    factor : float
        By which the scale rises from one level to the next.
    levels : int
        Levels at most; there are fewer when expected cost and cost of the best candidates agree.
    agreement : float
        The share of the latter by which they may differ then.
    heat : float
        Worth of entropy at the first level, divided by ``factor`` at each other, and 0 at the
        last. Larger holds the choice open longer (deterministic annealing).
    l2 : float
        Larger keeps weights small, so that it is the scale that sharpens probabilities.
    corpus : float
        Share of the corpus in costs: see ``corpus_costs``.
    max_iter : int
        Iterations of L-BFGS at a level, at most.

    Notes
    -----
    Weights and scale say the same thing twice; without ``l2`` weights would grow at the first
    level until they leave nothing to anneal. So weights are measured in a unit that the scores of
    those at the start give, the unit of ``inverse_temperature`` and ``l2``; they come back in
    their own. Where they are all zero the unit is 1. The weights that are given back are from the
    level with the best score of the best candidates, on held-out lists where there are any.

    Defaults were chosen by the score on the tuning lists this library was developed with. Without
    heat, an ``l2`` of 0.0001 beat 0.001 at each ``corpus`` of 0, 0.25, 0.5, 0.75 and 1; an ``l2``
    of 0 beat both at two of the five and lost at three. With 0.0001 a ``corpus`` of 0.25 was best,
    and then a ``heat`` of 0.1 among seven from 0 to 0.3.

    Examples
    --------
    >>> AnnealedRisk(levels=3).signature()[:67]
    'tuner:annealed-risk(inverse_temperature=0.5,factor=2,levels=3,agree'
    """

    name: ClassVar[str] = "annealed-risk"
    rounds_parameter: ClassVar[str] = "levels"

    inverse_temperature: float = 0.5
    factor: float = 2.0
    levels: int = 6
    agreement: float = 0.01
    heat: float = 0.1
    l2: float = 1e-4
    corpus: float = 0.25
    max_iter: int = 50

    def __post_init__(self) -> None:
        check_parameters(
            self,
            at_least={"levels": 1, "max_iter": 1, "heat": 0, "l2": 0, "agreement": 0},
            above={"inverse_temperature": 0, "factor": 1},
        )

    def each_round(self, problem: TuningProblem, seed: int) -> Iterator[Round]:
        """Weights of each level; nothing is drawn at random, so the seed does not matter."""
        data, unit = priced(problem, self.corpus)
        structure = NBest(len(problem.start))
        u = np.asarray(problem.start, np.float64) / unit
        mass = float(data.rows.weights.sum(dtype=np.float64))
        for level in range(self.levels):
            inverse_temperature = self.inverse_temperature * self.factor**level
            heat = self.heat / self.factor**level if level + 1 < self.levels else 0.0
            loss = FreeEnergy(Regret(), inverse_temperature, heat)
            minimum = minimise(
                LossObjective(structure, loss, data.rows, self.l2 * mass),
                u,
                max_iter=self.max_iter,
                tolerance=1e-4,
            )
            u = minimum.w
            risk = LossObjective(
                structure, FreeEnergy(Regret(), inverse_temperature), data.rows, 0.0
            )(u)[0]
            cost = float(data.rows.weights @ regrets(problem, data, u))
            values = {
                "inverse_temperature": inverse_temperature,
                "heat": heat,
                "risk": float(risk) / mass,
                "cost": cost / mass,
            }
            yield Round(u * unit, {**values, "iterations": minimum.iterations})
            if abs(risk - cost) <= self.agreement * cost:
                break


def priced(problem: TuningProblem, corpus: float) -> tuple[ListDataset, float]:
    """The lists with costs a corpus agrees with, and the unit of weights.

    Fixed scores are in that unit too. Under the weights of the start, divided by it, the scores of
    a list have a standard deviation of 1.
    """
    data, start = problem.data, np.asarray(problem.start, np.float64)
    costs = corpus_costs(problem, corpus)
    if not len(costs) or not data.rows.weights.any():
        raise HopefearError(f"{data.source}: there are no lists of weight above 0 to tune on")
    scores = ListDecoder(NBest(len(start)), LinearPredictor(start)).scores(data.rows)
    unit = spread_within(scores, data.rows.starts) or 1.0
    data = data.replaced(
        costs=costs,
        oracles=cheapest(costs, data.rows.starts),
        offsets=data.rows.offsets / np.float32(unit),
    )
    return data, unit


def regrets(problem: TuningProblem, data: ListDataset, weights: np.ndarray) -> np.ndarray:
    """Returns the additional cost of each list's best candidate over its oracle."""
    rows = data.rows
    return rows.costs[problem.choice(weights, data)] - rows.costs[rows.starts[:-1] + rows.oracles]

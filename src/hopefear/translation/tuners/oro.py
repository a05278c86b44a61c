"""Optimized online rank learning (Watanabe, 2012)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from hopefear.core.checks import check_parameters
from hopefear.core.component import helper, kernel
from hopefear.data.lists.dataset import ListDataset, cheapest
from hopefear.errors import HopefearError
from hopefear.training.lbfgs import norm
from hopefear.translation.tuners.corpus import corpus_costs
from hopefear.translation.tuners.envelope import WeightSearch
from hopefear.translation.tuners.pro import differences
from hopefear.translation.tuners.problem import Round, RoundsTuner, TuningProblem


@dataclass(frozen=True)
class Oro(RoundsTuner):
    """Oracles of small batches before their rivals, by steps whose every coefficient is optimised.

    ``min_w  l2 / 2 * |w|**2 + mean over pairs of max(0, margin - w.(f(oracle) - f(rival)))``

    Parameters
    ----------
    batch : int
        Lists that are looked at together. More make a steadier corpus, and fewer steps.
    l2 : float
        Larger means smaller weights and shorter steps.
    margin : float
        Lead of the oracle over a rival that costs 1 more; over others in proportion.
    corpus : float
        Share of the batch as a corpus in costs, by which oracles are chosen: see
        :func:`hopefear.translation.tuners.corpus.corpus_costs`. 0 looks at sentences alone.
    epochs : int
        Passes over the lists.
    sweeps : int
        Over the pairs of a batch, for the coefficients of its step; 0 takes the plain step.

    Notes
    -----
    Step k of Pegasos is ``w = (1 - 1/k) w + 1/(l2 k) * (mean of violated differences)``, kept
    within a ball of radius ``1/sqrt(l2)``. Here the coefficient of each difference, between 0 and
    its share of the step, is the one that passive-aggressive learning would choose: they maximise
    the dual of ``|w - (1 - 1/k) w_k|**2 / 2 + 1/(l2 k) * (mean hinge loss)``, one coefficient at a
    time.

    Oracles are those of the corpus that the batch is, by hill-climbing from the cheapest
    candidates. Margins follow costs, since many rivals are nearly as good as the oracle. The paper
    learns on many machines and searches for the best place between old and merged weights after
    each round; this does so between the weights before an epoch and the average over its batches.
    Steps count from a whole epoch on, so that the first does not forget the weights at the start.
    From weights of 0, of which no candidate is the choice, the first epoch counts whole.

    The defaults were chosen by the score on the tuning lists (val) this library was developed with.

    Examples
    --------
    >>> Oro(batch=32).signature()[:23]
    'tuner:oro(batch=32,l2=0'
    """

    name: ClassVar[str] = "oro"
    rounds_parameter: ClassVar[str] = "epochs"

    batch: int = 64
    l2: float = 0.1
    margin: float = 1.0
    corpus: float = 1.0
    epochs: int = 10
    sweeps: int = 10

    def __post_init__(self) -> None:
        check_parameters(
            self, at_least={"batch": 1, "epochs": 1, "sweeps": 0}, above={"l2": 0, "margin": 0}
        )

    def each_round(self, problem: TuningProblem, seed: int) -> Iterator[Round]:
        """Weights that put the oracles of batches before their rivals."""
        usable = np.flatnonzero(
            (np.diff(problem.data.rows.starts) > 1) & (problem.data.rows.weights > 0.0)
        )
        if not len(usable):
            raise HopefearError(
                f"Oro and {problem.data.source}: no list has two candidates to compare"
            )
        rng = np.random.default_rng(seed)
        weights = np.array(problem.start, np.float64)
        search, k = WeightSearch(problem), -(-len(usable) // self.batch)
        for _ in range(self.epochs):
            order, loss = rng.permutation(usable), 0.0
            w, total, batches = weights.copy(), np.zeros(len(weights)), 0
            for first in range(0, len(order), self.batch):
                lists = problem.data.take(np.sort(order[first : first + self.batch]))
                k, batches = k + 1, batches + 1
                loss += self._step(problem, lists, w, k)
                total += w
            towards = total / batches - weights
            undecided = problem.undecided(weights)
            t = 1.0 if undecided else search.best(weights, towards, low=0.0, high=1.0).t
            weights = weights + t * towards
            yield Round(weights, {"loss": loss / batches, "step": t})

    def _step(self, problem: TuningProblem, lists: ListDataset, w: np.ndarray, k: int) -> float:
        """Move the weights by one batch; returns its mean loss before."""
        rows = lists.rows
        costs = corpus_costs(TuningProblem(lists, problem.metric, w), self.corpus)
        rivals, gaps = ranked(costs, rows.starts)
        if not len(rivals):
            return 0.0
        pairs = differences(lists, rivals)
        margins = self.margin * gaps - pairs.offsets
        caps = pairs.weights / pairs.weights.sum(dtype=np.float64)
        move = np.zeros(len(w))
        loss = hinge(pairs, margins, caps, 1.0 / (self.l2 * k), w, move)
        w *= 1.0 - 1.0 / k
        if self.sweeps:
            ascend(pairs, margins, caps / (self.l2 * k), self.sweeps, w, np.zeros(len(gaps)))
        else:
            w += move
        w *= min(1.0, 1.0 / max(1e-300, math.sqrt(self.l2) * norm(w)))
        return loss


def ranked(costs: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``(cheapest, rival)`` for every rival that costs more, and how much more it costs.

    >>> pairs, gaps = ranked(np.array([0.5, 0.25, 0.25, 0.5]), np.array([0, 3, 4]))
    >>> pairs.tolist(), gaps.tolist()
    ([[1, 0]], [0.25])
    """
    oracles = starts[:-1] + cheapest(costs, starts)
    pairs = np.stack((np.repeat(oracles, np.diff(starts)), np.arange(len(costs))), axis=1)
    gaps = costs - costs[pairs[:, 0]]
    return pairs[gaps > 0.0], gaps[gaps > 0.0]


@kernel
def hinge(pairs, margins, caps, rate, w, move):
    """Add ``caps * rate`` of every violated difference to ``move``; returns the loss."""
    total = 0.0
    for p in range(margins.size):
        lack = margins[p] - along(pairs, p, w)
        if lack > 0.0:
            total += caps[p] * lack
            for e in range(pairs.indptr[p], pairs.indptr[p + 1]):
                move[pairs.indices[e]] += rate * caps[p] * pairs.values[e]
    return total


@kernel
def ascend(pairs, margins, caps, sweeps, w, shares):
    """Raise the dual of ``|w - w0|**2 / 2 + sum_p caps_p max(0, margin_p - w.d_p)``.

    ``w`` begins as w0 and ends as ``w0 + sum_p shares_p d_p`` with ``0 <= shares_p <= caps_p``.
    """
    squares = np.zeros(margins.size)
    for p in range(margins.size):
        for e in range(pairs.indptr[p], pairs.indptr[p + 1]):
            squares[p] += float(pairs.values[e]) ** 2
    for _ in range(sweeps):
        largest = 0.0
        for p in range(margins.size):
            if squares[p] == 0.0:
                continue
            optimum = shares[p] + (margins[p] - along(pairs, p, w)) / squares[p]
            change = min(max(optimum, 0.0), caps[p]) - shares[p]
            if change != 0.0:
                shares[p] += change
                largest = max(largest, abs(change) / caps[p])
                for e in range(pairs.indptr[p], pairs.indptr[p + 1]):
                    w[pairs.indices[e]] += change * pairs.values[e]
        if largest < 1e-6:
            break


@helper
def along(pairs, p, w):
    """Inner product of a difference with weights."""
    total = 0.0
    for e in range(pairs.indptr[p], pairs.indptr[p + 1]):
        total += pairs.values[e] * w[pairs.indices[e]]
    return total

"""Tuning by the metric of expected counts (Rosti et al., 2010 and 2011)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hopefear.core.checks import check_parameters
from hopefear.core.component import kernel
from hopefear.data.lists.dataset import counts_of
from hopefear.structures.nbest import NBest
from hopefear.training.decoders.lists import ListDecoder
from hopefear.training.lbfgs import minimise
from hopefear.training.predictors import LinearPredictor
from hopefear.translation.tuners.problem import Round, RoundsTuner, TuningProblem

# Counts are moved by this share to see what the metric makes of it. It also rounds off the corner
# that BLEU has where translations are as long as references.
_NUDGE = 1e-3


@dataclass(frozen=True)
class ExpectedScore(RoundsTuner):
    """The corpus score of counts as the model expects them, by L-BFGS or OWL-QN.

    ``max_w  metric(sum_i sum_j P_ij counts_ij) / 100 - l2 |w - start|**2 - l1 |w - start|``,
    ``P = softmax(inverse_temperature * score)``

    Parameters
    ----------
    inverse_temperature : float
        The first scale of scores, for weights at the start of size 1 on features of unit spread.
        Smaller begins with a smoother function, further from what is wanted.
    factor : float
        By which the scale rises from one level to the next.
    levels : int
        How often it rises, the first level included.
    l2 : float
        Pull toward the weights at the start. Larger stays closer.
    l1 : float
        Above 0, weights that do not pay stay exactly what they were.
    max_iter : int
        Iterations at a level, at most.

    Notes
    -----
    Unlike the expected cost of sentences, this is the metric of a corpus: lengths are weighed as
    BLEU weighs them. A feature is measured in its spread within the lists that have it, which is
    the unit of ``l1`` and ``l2`` too. What the metric makes of a change of counts is found by
    trying, so any metric will do. The weights that are given back are from the level with the best
    score of the best candidates, on held-out lists where there are any.

    Without ``l2`` nothing holds the size of the weights, so the first level may sharpen the softmax
    by itself: weights grow (only their proportions count), and further levels add little.

    The levels were chosen by the score on the tuning lists (val) this library was developed with.

    References
    ----------
    Rosti, Zhang, Matsoukas and Schwartz (2011), Expected BLEU training for graphs.

    Examples
    --------
    >>> ExpectedScore(levels=2).signature()[:63]
    'tuner:expected-score(inverse_temperature=20,factor=3,levels=2,l'
    """

    name: ClassVar[str] = "expected-score"
    rounds_parameter: ClassVar[str] = "levels"

    inverse_temperature: float = 20.0
    factor: float = 3.0
    levels: int = 3
    l2: float = 0.0
    l1: float = 0.0
    max_iter: int = 40

    def __post_init__(self) -> None:
        check_parameters(
            self,
            at_least={
                "levels": 1,
                "max_iter": 1,
                "inverse_temperature": 0,
                "factor": 0,
                "l1": 0,
                "l2": 0,
            },
        )

    def each_round(self, problem: TuningProblem, seed: int) -> Iterator[Round]:
        """Weights under which the expected counts score high; the seed changes nothing."""
        unit = spreads(problem.data.rows, len(problem.start))
        start = np.asarray(problem.start, np.float64) * unit
        size = float(np.abs(start).sum()) or 1.0
        start /= size
        move = np.zeros(len(start))
        for level in range(self.levels):
            inverse_temperature = self.inverse_temperature * self.factor**level
            objective = Expected(problem, unit, start, inverse_temperature, size, self.l2)
            minimum = minimise(objective, move, l1=self.l1, max_iter=self.max_iter, tolerance=1e-6)
            move = minimum.w
            values = {"loss": minimum.value, "iterations": minimum.iterations}
            yield Round((start + move) / unit * size, values)


class Expected:
    """Minus the score of expected counts, and its gradient, at a move from the start."""

    def __init__(
        self,
        problem: TuningProblem,
        unit: np.ndarray,
        start: np.ndarray,
        inverse_temperature: float,
        size: float,
        l2: float,
    ) -> None:
        self.problem, self.unit, self.start = problem, unit, start
        self.inverse_temperature, self.l2 = inverse_temperature, l2
        rows = problem.data.rows
        # Fixed scores of candidates stay in proportion to the weights, whose size is made 1.
        self.rows = rows._replace(offsets=(rows.offsets / size).astype(rows.offsets.dtype))
        self.counts = counts_of(problem.data, problem.metric)
        self.shares = np.zeros(len(self.counts))

    def __call__(self, change: np.ndarray) -> tuple[float, np.ndarray]:
        weights = (self.start + change) / self.unit
        points = ListDecoder(NBest(len(weights)), LinearPredictor(weights)).scores(self.rows)
        sums = np.zeros(self.counts.shape[1])
        expect_counts(
            self.rows.starts, points, self.inverse_temperature, self.counts, self.shares, sums
        )
        value, slope = self.score(sums)
        forces = np.zeros(len(points))
        pull_candidates(self.rows.starts, self.shares, self.counts, slope, forces)
        gradient = np.zeros(len(weights))
        add_candidates(self.rows, forces, gradient)
        gradient *= -self.inverse_temperature / self.unit
        if self.l2 > 0.0:
            gradient += 2.0 * self.l2 * change
            value -= self.l2 * float(change @ change)
        return -value, gradient

    def score(self, sums: np.ndarray) -> tuple[float, np.ndarray]:
        """Returns the score of counts, as a share, and its derivative by each of them."""
        steps = _NUDGE * np.maximum(np.abs(sums), 1.0)
        # Fewer matches than none would be no number, and none at all are smoothed.
        down = np.where(sums < 0.0, steps, np.minimum(steps, 0.5 * sums))
        above, below = sums + np.diag(steps), sums - np.diag(down)
        worth = self.problem.worth(np.vstack([sums[None], above, below])) / 100.0
        n = len(sums)
        slope = (worth[1 : n + 1] - worth[n + 1 :]) / (steps + down)
        return float(worth[0]), slope


def spreads(rows: Any, n: int) -> np.ndarray:
    """Standard deviation of each of ``n`` features within the lists that have it; else 1."""
    squares, candidates = np.zeros(n), np.zeros(n)
    max_features = int(np.diff(rows.scopes).max(initial=1))
    add_spreads(rows, np.zeros(max_features), np.zeros(max_features), squares, candidates)
    widths = np.sqrt(squares / np.maximum(candidates, 1.0))
    return np.where(widths > 0.0, widths, 1.0)


@kernel
def add_spreads(data, sums, products, squares, candidates):
    """Add up squared deviations of features within lists, and the candidates of these lists."""
    for i in range(data.weights.size):
        first, room = data.scopes[i], data.scopes[i + 1] - data.scopes[i]
        n = data.starts[i + 1] - data.starts[i]
        sums[:room] = 0.0
        products[:room] = 0.0
        for e in range(data.indptr[data.starts[i]], data.indptr[data.starts[i + 1]]):
            value = np.float64(data.values[e])
            sums[data.columns[e]] += value
            products[data.columns[e]] += value * value
        for k in range(room):
            j = data.features[first + k]
            squares[j] += max(0.0, products[k] - sums[k] * sums[k] / n)
            candidates[j] += n


@kernel
def expect_counts(starts, points, inverse_temperature, counts, shares, sums):
    """Probabilities of all candidates, and the sums of counts that they expect."""
    for i in range(starts.size - 1):
        first, last = starts[i], starts[i + 1]
        top, total = points[first:last].max(), 0.0
        for c in range(first, last):
            shares[c] = math.exp(inverse_temperature * (points[c] - top))
            total += shares[c]
        for c in range(first, last):
            shares[c] /= total
            if shares[c] > 1e-12:
                for k in range(sums.size):
                    sums[k] += shares[c] * counts[c, k]


@kernel
def pull_candidates(starts, shares, counts, slope, forces):
    """``P_c (u_c - mean u)`` where u is what the counts of a candidate are worth."""
    for i in range(starts.size - 1):
        mean = 0.0
        for c in range(starts[i], starts[i + 1]):
            forces[c] = 0.0
            if shares[c] > 1e-12:
                for k in range(slope.size):
                    forces[c] += slope[k] * counts[c, k]
            mean += shares[c] * forces[c]
        for c in range(starts[i], starts[i + 1]):
            forces[c] = shares[c] * (forces[c] - mean)


@kernel
def add_candidates(data, forces, out):
    """Add up the features of all candidates, by their forces."""
    for i in range(data.weights.size):
        first = data.scopes[i]
        for c in range(data.starts[i], data.starts[i + 1]):
            if forces[c] != 0.0:
                for e in range(data.indptr[c], data.indptr[c + 1]):
                    j = data.features[first + np.int64(data.columns[e])]
                    out[j] += forces[c] * data.values[e]

"""What learners of structured SVMs share: the problem, its dual, and the gap between the two.

Every output ``y`` of example i is a plane under its loss, ``b_iy - g_iy.w``, with the direction
``g_iy`` from ``y`` to gold and the cost ``b_iy``. The loss is the highest plane, so the problem

    min_w  P(w) = l2 |w|**2 + sum_i max_y (b_iy - g_iy.w)

has the dual, over one distribution ``alpha_i`` of outputs for each example,

    max_alpha  D(alpha) = sum_i b_i - l2 |w|**2,   w = sum_i g_i / (2 l2),
    b_i = sum_y alpha_iy b_iy,   g_i = sum_y alpha_iy g_iy

No weights do better than D says, so ``P - D`` is at least what is left to gain: it tells when to
stop, and how far from the optimum one is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.checks import check_parameters
from hopefear.core.component import component, helper
from hopefear.core.interfaces import GradientSink
from hopefear.core.learner import check_part, check_served, describe
from hopefear.errors import CombinationError, ModelError
from hopefear.losses.hinge import Hinge
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.storage import array_of
from hopefear.training.batch import BatchLearner, LossObjective, WholeTrainer
from hopefear.training.predictors import LinearPredictor
from hopefear.training.trainer import Event


@dataclass(frozen=True)
class MarginLearner(BatchLearner):
    """A structured SVM, whatever finds its optimum.

    Parameters
    ----------
    l2 : float
        Larger means smaller weights and wider margins; the papers' C is ``1 / (2 * l2)``.
    max_iter : int
        Iterations at most. Fewer is faster and further from the optimum.
    gap : float
        Stop when at most this share of the objective may be left to gain, ``(P - D) / P``.
        Smaller is more exact and slower.
    loss : Loss
        ``StructuredHinge``, or ``Hinge`` for margins that do not depend on costs.
    """

    l2: float = 1.0
    max_iter: int = 300
    gap: float = 0.05
    loss: Any = field(default_factory=StructuredHinge)

    def __post_init__(self) -> None:
        check_parameters(
            self, at_least={"gap": 0, "max_iter": 1}, above={"l2": 0}, whole=("max_iter",)
        )
        check_part(self.loss)
        self.check_loss()

    def check_loss(self) -> None:
        """Refuse losses that this learner cannot minimise."""
        if not isinstance(self.loss, StructuredHinge | Hinge):
            raise CombinationError(
                f"{type(self).__name__} and {type(self.loss).__name__}: the loss must be a maximum "
                "of planes; use structured-hinge or hinge, or an online learner"
            )


class MarginTrainer(WholeTrainer):
    """A structured SVM on its way to its optimum; knows how far it is at most.

    Attributes
    ----------
    w : float64 array
        The weights that are given away.
    dual : float
        No weights have an objective below this.
    """

    def __init__(self, structure: Any, learner: Any, rows: Any, loss: Any, n_jobs: int = 1) -> None:
        super().__init__(structure, learner, rows)
        check_served(structure, loss)
        if getattr(structure, "tied", False):
            raise CombinationError(
                f"{describe(learner.loss)} in batch and tied=True: gold would change with the "
                "weights, and the dual with it; use tied=False, or an online learner"
            )
        self.objective = LossObjective(structure, loss, rows, learner.l2, n_jobs)
        self.w = np.zeros(self.objective.n)
        self.dual, self.evaluations = 0.0, 0

    def evaluate(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient of the whole objective."""
        self.evaluations += 1
        return self.objective(w)

    @property
    def gap(self) -> float:
        """Share of the objective that may be left to gain."""
        return share_left(self.values[-1], self.dual)

    def predictor(self) -> LinearPredictor:
        """The weights as they are now."""
        return LinearPredictor(self.w.astype(np.float32))

    def support(self) -> tuple[int, float]:
        return int(np.count_nonzero(self.w)), float(np.abs(self.w).sum())

    def settled(self) -> bool:
        return self.updates > 0 and self.gap <= self.learner.gap

    def details(self) -> Event:
        return {
            "loss": self.last_loss / self.present,
            "objective": self.values[-1],
            "dual": self.dual,
            "gap": self.gap,
            "evaluations": self.evaluations,
        }

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "w": self.w,
            "dual": np.array([self.dual, float(self.evaluations)]),
            **super().arrays(),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        self.w = finite_array(arrays, "w", (self.objective.n,))
        self.dual, evaluations = finite_array(arrays, "dual", (2,)).tolist()
        self.evaluations = int(evaluations)


def share_left(value: float, dual: float) -> float:
    """What may be left to gain, as a share of the value.

    >>> share_left(10.0, 9.0), share_left(0.0, 0.0)
    (0.1, 0.0)
    """
    return max(0.0, value - dual) / value if value > 0.0 else 0.0


def finite_array(
    arrays: dict[str, np.ndarray], name: str, shape: tuple[int | None, ...]
) -> np.ndarray:
    """A copy of a float64 array from a checkpoint, or ModelError."""
    array = np.array(array_of(arrays, name, np.float64, shape))
    if not np.isfinite(array).all():
        raise ModelError(f"the array {name} holds numbers that are not finite")
    return array


def column_array(
    arrays: dict[str, np.ndarray], name: str, shape: tuple[int | None, ...], limit: int
) -> np.ndarray:
    """A copy of an int64 array of numbers from 0 to below a limit, or ModelError."""
    array = np.array(array_of(arrays, name, np.int64, shape))
    if array.min(initial=0) < 0 or array.max(initial=0) >= max(1, limit):
        raise ModelError(f"the array {name} holds numbers outside 0 … {limit - 1}")
    return array


@component(GradientSink)
class Gathered(NamedTuple):
    """A row whose entries are added up, and whose columns are known."""

    sums: np.ndarray  # float64[n]; all zero between two uses
    seen: np.ndarray  # uint8[n]: the column is among those touched
    touched: np.ndarray  # int64[n]
    filled: np.ndarray  # int64[1]: how many are

    def add_entry(self, j, g):
        if not self.seen[j]:
            self.seen[j] = 1
            self.touched[self.filled[0]] = j
            self.filled[0] += 1
        self.sums[j] += g


def new_gathered(n: int) -> Gathered:
    """An empty row of so many coordinates."""
    return Gathered(
        np.zeros(n), np.zeros(n, np.uint8), np.zeros(n, np.int64), np.zeros(1, np.int64)
    )


@helper
def empty(row):
    """Make a row zero again."""
    for k in range(row.filled[0]):
        j = row.touched[k]
        row.sums[j] = 0.0
        row.seen[j] = 0
    row.filled[0] = 0


def stretches(first: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Every place of stretches that begin here and are so long.

    >>> stretches(np.array([5, 0]), np.array([2, 3])).tolist()
    [5, 6, 0, 1, 2]
    """
    ends = np.cumsum(size)
    shifts = np.repeat(first - (ends - size), size)
    return np.arange(int(ends[-1]) if ends.size else 0) + shifts

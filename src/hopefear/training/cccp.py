"""Rampion as its authors train it: hopes in an outer loop (Gimpel and Smith, 2012)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np

from hopefear.averaging.last import Last
from hopefear.core.checks import check_parameters
from hopefear.core.component import kernel
from hopefear.core.learner import Learner
from hopefear.core.workspace import DenseWeights, Example
from hopefear.errors import CombinationError
from hopefear.losses.fixed_hope import FixedHope
from hopefear.losses.ramp import Ramp
from hopefear.rules.sgd import SGD
from hopefear.training.frank_wolfe import Blocks
from hopefear.training.lbfgs import has_settled
from hopefear.training.margins import MarginLearner, MarginTrainer, finite_array, share_left
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Pieces
from hopefear.training.trainer import Event

INNER = ("bcfw", "sgd")
# Frank-Wolfe wavers: while hopes stay it may take so many times the passes to come to its gap.
_LONGER = 100


@dataclass(frozen=True)
class ConcaveConvex(MarginLearner):
    """Ramp loss by the concave-convex procedure (Yuille and Rangarajan, 2002).

    ``min_w  sum_i max_y (score_iy + cost_iy) - max_y (score_iy - cost_iy) + l2 * sum_j w_j**2``

    Hopes are found under the present weights and held fixed: what is left is a structured SVM with
    hopes for gold, which lies above the ramp loss and touches it here. Some passes lower it, and
    hopes are found anew. So the objective never rises from one iteration to the next.

    Parameters
    ----------
    max_iter : int
        How often hopes are found anew, at most (the paper's T').
    gap : float
        Passes end early when at most this share of the structured SVM may be left to gain.
    passes : int
        Passes between two searches for hopes (the paper's T''). More follow a set of hopes further.
        Where the last search changed none, ``bcfw`` makes as many as its gap takes.
    inner : {"bcfw", "sgd"}
        How passes lower the structured SVM: ``sgd`` by subgradient steps of a constant rate, as
        the authors do; ``bcfw`` by block-coordinate Frank-Wolfe, which needs no rate.
    rate : float
        Of ``sgd``: longer steps learn faster and less evenly. It is halved after passes that lower
        nothing.
    tolerance : float
        Stop when three iterations lowered the objective by less than this share of it.
    loss : Ramp
        With its cost.

    Notes
    -----
    The ramp loss has many minima; which one is reached depends on the weights at the start, where
    the first hopes come from. From weights of zero hopes are gold, or the oracle of a list.

    References
    ----------
    Gimpel and Smith. Structured ramp loss minimization for machine translation. NAACL 2012.

    Examples
    --------
    >>> ConcaveConvex(passes=3).signature()[:62]
    'loss:ramp(cost=hamming)|rule:concave-convex(l2=1,max_iter=20,g'
    """

    max_iter: int = 20
    loss: Any = field(default_factory=Ramp)
    passes: int = 5
    inner: str = "bcfw"
    rate: float = 0.1
    tolerance: float = 1e-3

    def __post_init__(self) -> None:
        super().__post_init__()
        check_parameters(
            self,
            at_least={"passes": 1, "tolerance": 0},
            above={"rate": 0},
            whole=("passes",),
            choices={"inner": INNER},
        )

    def check_loss(self) -> None:
        if not isinstance(self.loss, Ramp):
            raise CombinationError(
                f"ConcaveConvex and {type(self.loss).__name__}: the ramp loss alone has hopes; "
                "use loss=ramp, or an online learner"
            )

    def method(self) -> str:
        return "concave-convex"

    def trainer(
        self, structure: Any, rows: Any, start: np.ndarray | None = None, n_jobs: int = 1
    ) -> HopeTrainer:
        """This learner at work on some examples."""
        return HopeTrainer(structure, self, rows, start, n_jobs)


class HopeTrainer(MarginTrainer):
    """The concave-convex procedure at work.

    Parameters
    ----------
    structure, learner, rows
        What is predicted, how it is learned, and from what.
    start : float array, optional
        Weights to start from.
    n_jobs : int
        Threads that look for the objective. The model does not depend on it.

    Attributes
    ----------
    hopes : int array
        The output that each example hopes for, one a row.
    changed : int
        How many hopes the last search changed.
    """

    def __init__(
        self,
        structure: Any,
        learner: ConcaveConvex,
        rows: Any,
        start: np.ndarray | None = None,
        n_jobs: int = 1,
    ) -> None:
        self._work = structure.workspace(rows, learner.loss, np.float64)
        self.hopes = np.zeros((rows.weights.size, self._work.y.size), self._work.y.dtype)
        self.bound = FixedHope(learner.loss.cost, self.hopes)
        super().__init__(structure, learner, rows, self.bound, n_jobs)
        self.blocks = Blocks(structure, self.bound, rows, learner.l2)
        self.rate, self.inner_gap = learner.rate, 1.0
        if start is not None:
            self.w = np.array(start, np.float64)
        self.changed = self._hope()
        self.values = [self.evaluate(self.w)[0]]

    def learn_pieces(self, passes: Any, epoch: int = 0, skip: int = 0) -> Iterator[float]:
        """As others do, but that every pass between two searches has an order of its own."""
        return super().learn_pieces(Pieces(passes.rows, [passes.orders(epoch)]), epoch, skip)

    def learn(
        self, data: Any = None, order: np.ndarray | Iterator[np.ndarray] | None = None
    ) -> None:
        """Lower the structured SVM of the present hopes, and find others.

        ``order`` is that of all passes, or gives one for each.
        """
        if order is None:
            order = np.arange(self.rows.weights.size)
        orders = repeat(order) if isinstance(order, np.ndarray) else order
        present = (each[self.rows.weights[each] > 0.0] for each in orders)
        best, dual, most = self.values[-1], 0.0, self.learner.passes
        if self.learner.inner == "bcfw" and not self.changed:
            most *= _LONGER
        for number, (w, lower) in enumerate(self._passes(present)):
            value, dual = self.evaluate(w)[0], max(dual, lower)
            if value < best:
                best, self.w = value, w.copy()
            self.inner_gap = share_left(best, dual)
            if self.inner_gap <= self.learner.gap or number + 1 == most:
                break
        if not best < self.values[-1]:
            self.rate *= 0.5
        self.changed = self._hope()
        value = self.evaluate(self.w)[0]
        self.count(self.objective.loss, self.objective.mistakes, value)

    def _passes(self, orders: Iterator[np.ndarray]) -> Iterator[tuple[np.ndarray, float]]:
        """Weights after each pass, and what no weights come below, as far as is known."""
        l2 = self.learner.l2
        if self.learner.inner == "bcfw":
            for order in orders:
                self.blocks.step(order, np.zeros(0), np.zeros(3))
                w = self.blocks.w
                yield w, float(self.blocks.b.sum()) - l2 * float(w @ w)
            return
        rule = SGD(rate=self.rate, l2=2.0 * l2 / self.present)
        online = OnlineTrainer(self.structure, Learner(self.bound, rule, Last()), np.float64)
        online.state.m[:] = self.w
        for _ in online.learn_pieces(Pieces(self.rows, orders)):
            yield online.weights().astype(np.float64), 0.0

    def _hope(self) -> int:
        """Find hopes under the present weights; returns how many are others than before."""
        hopes = self.hopes.copy()
        find_hopes(self.structure, self.learner.loss.cost, self.rows, self.w, self._work, hopes)
        changed = (hopes != self.hopes).any(axis=1)
        # The part of an example in the weights is that of its planes, which begin at its hope.
        self.blocks.forget(changed)
        self.hopes[:] = hopes
        return int(np.count_nonzero(changed))

    def settled(self) -> bool:
        near = self.updates > 0 and self.inner_gap <= self.learner.gap
        # Iterations that lower nothing are no end while the gap of Frank-Wolfe says otherwise.
        if self.learner.inner == "bcfw" and not near:
            return False
        return (near and not self.changed) or has_settled(self.values, 3, self.learner.tolerance)

    def details(self) -> Event:
        return {
            "loss": self.last_loss / self.present,
            "objective": self.values[-1],
            "inner_gap": self.inner_gap,
            "changed_hopes": self.changed,
            "evaluations": self.evaluations,
        }

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            **super().arrays(),
            **self.blocks.arrays(),
            "procedure": np.array([self.rate, self.inner_gap, float(self.changed)]),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        self.blocks.restore(arrays)
        self.rate, self.inner_gap, changed = finite_array(arrays, "procedure", (3,)).tolist()
        # The weights say what is hoped for; outputs from a file would not be trusted.
        find_hopes(
            self.structure, self.learner.loss.cost, self.rows, self.w, self._work, self.hopes
        )
        self.changed = int(changed)


@kernel
def find_hopes(structure, cost, data, w, work, hopes):
    """Leave the output of the highest score minus cost of each example in its row."""
    for i in range(hopes.shape[0]):
        x = Example(data, i)
        structure.score(x, DenseWeights(w), work.theta)
        structure.cost_augmented_argmax(x, work.theta, cost, -1.0, hopes[i])

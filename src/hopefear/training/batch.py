"""Learners that look at all examples before they move: L-BFGS, or OWL-QN for zeros by L1."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hopefear import __version__
from hopefear.core.checks import check_parameters
from hopefear.core.component import component, kernel
from hopefear.core.interfaces import GradientSink, n_weights
from hopefear.core.learner import describe
from hopefear.core.parallel import parallel
from hopefear.core.workspace import DenseWeights, Example
from hopefear.errors import CombinationError, ModelError
from hopefear.losses.log import Log
from hopefear.storage import array_of
from hopefear.structures.chain.chain import Chain
from hopefear.structures.chain.likelihood import CRFObjective
from hopefear.training.lbfgs import Minimiser, has_settled
from hopefear.training.predictors import LinearPredictor
from hopefear.training.trainer import Event, Trainer

# Work is cut into this many parts whatever the number of threads: sums must not depend on it.
_PARTS = 8


class BatchLearner:
    """What learners have in common that look at all examples before they move.

    Subclasses are dataclasses: their fields are the parameters, ``loss`` and ``max_iter`` among
    them.
    """

    loss: Any
    max_iter: int
    observed: bool | None = None

    batch = True
    update_on = "batch"
    # An iteration is a small step, and scores waver on the way.
    patience = 20

    def method(self) -> str:
        """How it learns, as signatures say it."""
        raise NotImplementedError

    def parameters(self) -> dict[str, Any]:
        """All parameters that the model depends on, but for the loss."""
        known = {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]
        return {k: value for k, value in known.items() if k != "loss" and value is not None}

    def signature(self, **more: Any) -> str:
        """One line that says exactly what this learner is; goes into models and reports."""
        shown = ",".join(f"{name}={_short(value)}" for name, value in self.parameters().items())
        parts = {
            "loss": describe(self.loss, defaults=self.observed is None),
            "rule": f"{self.method()}({shown})",
            "averaging": "last",
            **more,
            "v": __version__,
        }
        return "|".join(f"{key}:{value}" for key, value in parts.items())


@dataclass(frozen=True)
class Batch(BatchLearner):
    """A smooth loss minimised over all examples at once (Lafferty et al., 2001, and others).

    ``min_w  sum_i loss_i(w) + l2 * sum_j w_j**2 + l1 * sum_j |w_j|``

    Parameters
    ----------
    l1 : float
        Above 0, weights that do not pay become exactly 0 (OWL-QN); larger means fewer weights.
    l2 : float
        Larger means smaller weights; CRFsuite's ``c2``.
    max_iter : int
        Iterations at most. Fewer is faster and, like a larger ``l2``, keeps weights small.
    memory : int
        Steps that L-BFGS remembers.
    tolerance, period : float, int
        Stop when ``period`` iterations made the objective smaller by less than this share of it.
    observed : bool, optional
        Only pairs of attribute and label that occur together get a weight, as in CRFsuite; False
        gives one to all pairs, as in Wapiti: slower, larger, often better with L1.
    loss : Loss
        A smooth one: ``Log``, ``WeightedLog`` or ``Risk`` (which has many minima).

    Notes
    -----
    ``observed`` has a meaning on chains alone; elsewhere it is None and no part of the signature.

    Examples
    --------
    >>> Batch(l1=0.5, observed=True).signature()
    'loss:log|rule:owl-qn(l1=0.5,l2=1,max_iter=300,memory=6,tolerance=1e-05,period=10,\
observed=true)|averaging:last|v:0.1.0'
    """

    l1: float = 0.0
    l2: float = 1.0
    max_iter: int = 300
    memory: int = 6
    tolerance: float = 1e-5
    period: int = 10
    observed: bool | None = None
    loss: Any = field(default_factory=Log)

    def __post_init__(self) -> None:
        counts = ("max_iter", "memory", "period")
        sizes = dict.fromkeys(("l1", "l2", "tolerance"), 0)
        check_parameters(self, at_least=sizes | dict.fromkeys(counts, 1), whole=counts)
        if not {"expectation", "risk"} & set(self.loss.requires()):
            raise CombinationError(
                f"Batch and {type(self.loss).__name__}: L-BFGS needs a smooth loss; use Log, "
                "WeightedLog or Risk, or an online learner"
            )

    def trainer(
        self, structure: Any, rows: Any, start: np.ndarray | None = None, n_jobs: int = 1
    ) -> BatchTrainer:
        """This learner at work on some examples."""
        return BatchTrainer(structure, self, rows, start, n_jobs)

    def objective(self, structure: Any, rows: Any, n_jobs: int = 1) -> Any:
        """What is minimised, but for L1: the sum of the loss, of CRFs by their own kernels."""
        log = self.loss.requires() == ("expectation",) and getattr(self.loss, "force", 1.0) == 1.0
        if log and isinstance(structure, Chain):
            return CRFObjective(structure, rows, self.l2, self.observed is not False, n_jobs)
        return LossObjective(structure, self.loss, rows, self.l2, n_jobs)

    def method(self) -> str:
        return "owl-qn" if self.l1 > 0.0 else "l-bfgs"


class WholeTrainer(Trainer):
    """A learner at work on all examples at once; counts what online trainers count.

    An iteration is what a pass is to online learners.

    Attributes
    ----------
    values : list of float
        What is minimised, at the start and after each iteration.
    """

    brief = True

    def __init__(self, structure: Any, learner: Any, rows: Any) -> None:
        self.structure, self.learner, self.rows = structure, learner, rows
        self.present = int(np.count_nonzero(rows.weights))
        self.updates = self.examples = self.mistakes = 0
        self.loss = self.last_loss = 0.0
        self.values: list[float] = []

    def count(self, loss: float, mistakes: int, value: float) -> None:
        """Enter what an iteration came to."""
        self.examples += self.present
        self.updates += 1
        self.mistakes += mistakes
        self.last_loss = float(loss)
        self.loss += self.last_loss
        self.values.append(float(value))

    def arrays(self) -> dict[str, np.ndarray]:
        return {
            "tally.counts": np.array([self.examples, self.updates, self.mistakes], np.int64),
            "tally.loss": np.array([self.loss, self.last_loss]),
            "tally.values": np.array(self.values),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        counts = array_of(arrays, "tally.counts", np.int64, (3,)).tolist()
        losses = array_of(arrays, "tally.loss", np.float64, (2,)).tolist()
        values = array_of(arrays, "tally.values", np.float64, (None,)).tolist()
        self.examples, self.updates, self.mistakes = counts
        self.loss, self.last_loss = losses
        self.values = values
        finite = all(map(math.isfinite, (*losses, *values)))
        if min(counts) < 0 or len(values) != self.updates + 1 or not finite:
            raise ModelError(f"it counts {counts}, with losses {losses} and {len(values)} values")

    def whereabouts(self, epoch: int) -> str:
        return f"after iteration {self.updates}"


class BatchTrainer(WholeTrainer):
    """A smooth loss being minimised.

    Parameters
    ----------
    structure, learner, rows
        What is predicted, how it is learned, and from what.
    start : float array, optional
        Weights at all coordinates of the structure to start from.
    n_jobs : int
        Threads. The model does not depend on it.
    """

    def __init__(
        self,
        structure: Any,
        learner: Batch,
        rows: Any,
        start: np.ndarray | None = None,
        n_jobs: int = 1,
    ) -> None:
        super().__init__(structure, learner, rows)
        self.objective = learner.objective(structure, rows, n_jobs)
        w0 = np.zeros(self.objective.n) if start is None else self.objective.gather(start)
        self.search = Minimiser(self.objective, w0, l1=learner.l1, memory=learner.memory)
        self.values = [self.search.value]

    def learn(self, data: Any = None, order: np.ndarray | None = None) -> None:
        """One iteration over all rows there are; ``stuck`` where nothing is better any more."""
        if not self.search.step():
            if self.updates:
                self.stuck = True
                return
            self.objective(self.search.w)  # nothing is better than the start: an iteration too
        # A search ends with the evaluation it accepts, so these are of the new weights.
        self.count(self.objective.loss, self.objective.mistakes, self.search.value)

    def predictor(self) -> LinearPredictor:
        """The weights as they are now."""
        return LinearPredictor(self.objective.spread(self.search.w))

    def support(self) -> tuple[int, float]:
        return int(np.count_nonzero(self.search.w)), float(np.abs(self.search.w).sum())

    def why_all_zero(self) -> str:
        l1 = self.learner.l1
        return f"l1={l1:g} is too large for this data: make it smaller" if l1 > 0.0 else ""

    def arrays(self) -> dict[str, np.ndarray]:
        search = {f"search.{name}": array for name, array in self.search.arrays().items()}
        return {**search, **super().arrays()}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.search.restore(
            {k.removeprefix("search."): a for k, a in arrays.items() if k.startswith("search.")}
        )
        super().restore(arrays)

    def settled(self) -> bool:
        return has_settled(self.values, self.learner.period, self.learner.tolerance)

    def details(self) -> Event:
        return {
            "loss": self.last_loss / self.present,
            "objective": self.search.value,
            "evaluations": self.search.evaluations,
        }


class LossObjective:
    """The sum of a loss over all examples, plus ``l2`` times the squared length of the weights.

    Call it with a weight vector to get the value and the gradient, which do not depend on the
    number of threads.

    Attributes
    ----------
    loss, mistakes : float, int
        At the last call: the value without penalty; examples whose best output is wrong.
    """

    def __init__(self, structure: Any, loss: Any, rows: Any, l2: float, n_jobs: int = 1) -> None:
        self.structure, self.rows, self.l2 = structure, rows, float(l2)
        self.n = n_weights(structure)
        self.loss, self.mistakes = 0.0, 0
        self._loss = loss
        values = getattr(rows, "indptr", None)
        values = rows.ptr if values is None else values  # of trees arcs are counted
        ends = values[rows.starts] if hasattr(rows, "starts") else values
        cuts = np.searchsorted(ends, np.linspace(0, values[-1], _PARTS + 1))
        cuts[0], cuts[-1] = 0, rows.weights.size
        self._blocks = [(int(a), int(b)) for a, b in pairwise(cuts) if a < b]
        self._n_jobs = max(1, n_jobs)
        self._spare = [structure.workspace(rows, loss, np.float64) for _ in range(self._n_jobs)]

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        g, loss, mistakes = np.zeros(self.n), 0.0, 0.0

        def work(block: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
            space = self._spare.pop()  # no more jobs run at a time than there are threads
            row, totals = np.zeros(self.n), np.zeros(2)
            sum_losses(
                self.structure, self._loss, DenseWeights(w), self.rows, *block, space, row, totals
            )
            self._spare.append(space)
            return row, totals

        for row, totals in parallel(self._blocks, work, self._n_jobs):
            g -= row
            loss += totals[0]
            mistakes += totals[1]
        self.loss, self.mistakes = loss, int(mistakes)
        if self.l2 > 0.0:
            g += 2.0 * self.l2 * w
            loss += self.l2 * float(w @ w)
        return loss, g

    def spread(self, w: np.ndarray) -> np.ndarray:
        """The weights in float32."""
        return w.astype(np.float32)

    def gather(self, weights: np.ndarray) -> np.ndarray:
        """The weights in float64."""
        return np.asarray(weights, np.float64)


@component(GradientSink)
class Adder(NamedTuple):
    """A row that is added to a vector."""

    vector: np.ndarray

    def add_entry(self, j, g):
        self.vector[j] += g


@kernel
def sum_losses(structure, loss, weights, data, first, last, work, row, totals):
    """Add up losses and directions of some examples."""
    for i in range(first, last):
        x = Example(data, i)
        structure.score(x, weights, work.theta)
        if loss.subgradient(structure, x, work) > 0:
            structure.scatter(x, work.mu, Adder(row))
        totals[0] += work.loss[0]
        totals[1] += work.gold_margin[0] <= 0.0 and data.weights[i] > 0.0


def _short(value: Any) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value).lower()

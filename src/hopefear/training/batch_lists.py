"""Any loss over candidate lists in batch: L-BFGS, or OWL-QN where L1 asks for zeros."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from hopefear import __version__
from hopefear.core.component import component, kernel
from hopefear.core.interfaces import Row
from hopefear.core.learner import describe
from hopefear.core.workspace import Example, Plain
from hopefear.errors import CombinationError
from hopefear.losses.log import Log
from hopefear.training.batch import BatchCRF

# Work is cut into this many parts whatever the number of threads: sums must not depend on it.
_PARTS = 8


@dataclass(frozen=True)
class BatchLists(BatchCRF):
    """A reranker trained on all lists at once (Charniak and Johnson, 2005).

    ``min_w  sum_i loss_i(w) + l2 * sum_j w_j**2 + l1 * sum_j |w_j|``

    Parameters
    ----------
    loss : Loss
        A smooth one: ``Log``, ``WeightedLog`` or ``Risk`` (which has many minima).

    Notes
    -----
    Other parameters are those of :class:`hopefear.training.batch.BatchCRF`; ``observed`` has no
    meaning here.

    Examples
    --------
    >>> BatchLists(l2=10.0).signature()[:33]
    'loss:log(force=1)|rule:l-bfgs(l1='
    """

    loss: Any = field(default_factory=Log)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not {"expectation", "risk"} & set(self.loss.needs()):
            raise CombinationError(
                f"BatchLists and {type(self.loss).__name__}: L-BFGS needs a smooth loss; use Log, "
                "WeightedLog or Risk, or an online learner"
            )

    def objective(self, structure: Any, rows: Any) -> Any:
        return LossObjective(structure, self.loss, rows, self.l2, self.n_jobs)

    def parameters(self) -> dict[str, Any]:
        known = super().parameters()
        return {key: v for key, v in known.items() if key not in ("loss", "observed")}

    def signature(self, **more: Any) -> str:
        parts = super().signature(**more).split("|")
        parts[0] = f"loss:{describe(self.loss)}"
        assert parts[-1] == f"v:{__version__}"
        return "|".join(parts)


class LossObjective:
    """The sum of a loss over all lists, plus ``l2`` times the squared length of the weights.

    Call it with a weight vector to get the value and the gradient, which do not depend on the
    number of threads.

    Attributes
    ----------
    loss, mistakes : float, int
        At the last call: the value without penalty; lists whose best candidate is wrong.
    """

    def __init__(self, structure: Any, loss: Any, rows: Any, l2: float, n_jobs: int = 1) -> None:
        self.structure, self.rows, self.l2 = structure, rows, float(l2)
        self.n = structure.n_coordinates()
        self.loss, self.mistakes = 0.0, 0
        self._loss = loss
        cuts = np.searchsorted(
            rows.indptr[rows.starts], np.linspace(0, rows.indptr[-1], _PARTS + 1)
        )
        cuts[0], cuts[-1] = 0, rows.weights.size
        self._blocks = [(int(a), int(b)) for a, b in pairwise(cuts) if a < b]
        self._pool = ThreadPoolExecutor(n_jobs) if n_jobs > 1 else None
        self._spare = [structure.workspace(rows, loss, np.float64) for _ in range(max(1, n_jobs))]

    def __call__(self, w: np.ndarray) -> tuple[float, np.ndarray]:
        g, loss, mistakes = np.zeros(self.n), 0.0, 0.0

        def work(block: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
            space = self._spare.pop()  # no more jobs run at a time than there are threads
            row, totals = np.zeros(self.n), np.zeros(2)
            sum_losses(self.structure, self._loss, Plain(w), self.rows, *block, space, row, totals)
            self._spare.append(space)
            return row, totals

        found = (
            map(work, self._blocks) if self._pool is None else self._pool.map(work, self._blocks)
        )
        for row, totals in found:
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

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None


@component(Row)
class Adder(NamedTuple):
    """A row that is added to a vector."""

    vector: np.ndarray

    def put(self, j, g):
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
        totals[1] += work.gap[0] <= 0.0 and data.weights[i] > 0.0

"""A trainer that also keeps what the mistake bounds need."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from hopefear.core.learner import Learner
from hopefear.errors import ModelError
from hopefear.storage import array_of
from hopefear.training.online import OnlineTrainer
from hopefear_papers.theorems.observed import Observed
from hopefear_papers.theorems.voted_rda import (
    best_scaled,
    bound_report,
    check_bounded,
    mistaken,
    observe,
    radius,
)

# A bound looks at every mistake a hundred times; beyond this many it waits for the end of a pass.
_LIVE = 20_000


class Watched(OnlineTrainer):
    """Voted RDA beside its bounds; learns exactly what the plain trainer learns.

    Parameters
    ----------
    structure, learner, dtype
        As for :class:`OnlineTrainer`; other learners than RDA on mistakes are refused.
    rows : SparseRows
        All the data, in memory: mistakes are remembered as positions in it.
    comparator : array, optional
        The weights u of the bounds. By default the average so far, at its best scale.

    Examples
    --------
    >>> from hopefear.data.generators import sparse_linear
    >>> from hopefear.recipes import RECIPES
    >>> from hopefear.structures.classes import Binary
    >>> rows = sparse_linear(300, 60, per_row=(5, 9), true_weights=30, seed=1).dataset().rows
    >>> trainer = Watched(Binary(60), RECIPES["vrda"].build(), rows)
    >>> trainer.learn(rows, np.arange(300))
    >>> bound = trainer.bound()
    >>> bound["mistakes"] == trainer.mistakes <= bound["theorem1"]
    True
    """

    def __init__(
        self,
        structure: Any,
        learner: Learner,
        rows: Any,
        comparator: np.ndarray | None = None,
        dtype: Any = np.float32,
    ) -> None:
        check_bounded(structure, learner, rows)  # at once, rather than after a pass
        super().__init__(structure, replace(learner, averaging=Observed(learner.averaging)), dtype)
        self.rows, self.comparator = rows, comparator
        self.mistaken = np.zeros(0, np.int64)
        self.R = radius(structure, rows)
        if comparator is not None:  # its size is looked at
            bound_report(self, rows, self.mistaken, comparator, self.R)

    def learn(self, data: Any, order: np.ndarray, outcome: np.ndarray | None = None) -> None:
        outcome = np.empty(order.size, np.uint8) if outcome is None else outcome
        super().learn(data, order, outcome)
        self.mistaken = np.append(self.mistaken, mistaken(order, outcome))

    def bound(self) -> dict[str, Any] | None:
        """Mistakes and bounds so far, as events store them; None before the first mistake."""
        if not self.mistaken.size:
            return None
        if self.comparator is not None:
            return bound_report(self, self.rows, self.mistaken, self.comparator, self.R).to_dict()
        u = self.learner.averaging.average(self.memory, self)
        u = observe(self).average if u is None else u
        if not np.any(u):
            return bound_report(self, self.rows, self.mistaken, u, self.R).to_dict()
        return best_scaled(self, self.rows, self.mistaken, u, self.R)[1].to_dict()

    def theory(self) -> dict[str, Any] | None:
        """Returns what events say of the bounds; None before the first mistake."""
        if (bound := self.bound()) is None:
            return None
        limit = bound["theorem1"]
        most = "no bound (vacuous)" if limit is None else f"at most {limit:,.0f} by Theorem 1"
        return {"name": "vrda", "says": f"{bound['mistakes']:,} mistakes, {most}", **bound}

    def annotate(self, event: dict[str, Any]) -> None:
        """Add the bounds to an event, where they are cheap or a pass has ended."""
        if "pass_mistakes" in event or self.mistaken.size <= _LIVE:
            event["theory"] = self.theory()

    def arrays(self) -> dict[str, np.ndarray]:
        return {**super().arrays(), "watched.mistaken": self.mistaken}

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        mistaken = array_of(arrays, "watched.mistaken", np.int64, (None,))
        last = self.rows.weights.size - 1
        if mistaken.size and not 0 <= mistaken.min() <= mistaken.max() <= last:
            raise ModelError(f"it has mistakes on rows beyond 0 to {last}")
        self.mistaken = np.array(mistaken)

"""Theorems as instruments: what `hopefear train TASK --bounds` measures while a learner learns.

Theorems on voted RDA, MIRA, SWVP and SAPO; ``docs/theory.md`` states them. Every event gets
``theory``: the ``name`` of the learner, the terms of its theorem, and what they say in words
(``says``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hopefear.errors import HopefearError
from hopefear.training.online import OnlineTrainer
from hopefear_papers.theorems.steps import instrument

__all__ = ["bounds", "instrument"]


def bounds(comparator: np.ndarray | None = None) -> Callable[[Any, Any, Any], OnlineTrainer]:
    """Returns the ``instrument`` of :func:`hopefear.tasks.base.train` that measures theorems.

    Parameters
    ----------
    comparator : array, optional
        The weights u that theorems compare with; by default the average so far at its best scale.

    Examples
    --------
    >>> from hopefear.data.generators import sparse_linear
    >>> from hopefear.tasks.base import train
    >>> from hopefear.tasks.classify.task import Classification
    >>> data = sparse_linear(300, 60, per_row=(5, 9), true_weights=30, seed=1).dataset()
    >>> events = []
    >>> how = {"epochs": 2, "on_event": [events.append], "instrument": bounds()}
    >>> _ = train(Classification(), data, "vrda", **how)
    >>> events[-1]["theory"]["holds"]
    True
    """

    def measured(structure: Any, learner: Any, passes: Any) -> OnlineTrainer:
        if getattr(passes.dataset, "cache", None) is not None:
            raise HopefearError(
                f"{passes.dataset.source}: bounds look at old mistakes again and need "
                "the data in memory; train without a cache, or without bounds"
            )
        if learner.batch or hasattr(learner, "trainer"):
            raise HopefearError(
                "bounds are theorems on online learners of linear models; use vrda, mira, swvp or "
                "sapo, or leave out the bounds"
            )
        return instrument(structure, learner, passes.rows, comparator)

    return measured

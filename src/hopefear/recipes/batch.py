"""Learners of label chains that look at all sentences before they move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from hopefear.errors import HopefearError
from hopefear.recipes.base import Scale, number, unknown
from hopefear.training.batch import BatchCRF


@dataclass(frozen=True)
class BatchRecipe:
    """A CRF trained in batch, and defaults that work.

    Parameters
    ----------
    name, summary : str
        As for other recipes.
    defaults : mapping
        Parameters that differ from those of :class:`hopefear.training.batch.BatchCRF`.
    """

    name: str
    summary: str
    defaults: Mapping[str, Any] = field(default_factory=dict)

    def parameters(self) -> dict[str, Any]:
        """Every parameter with its default, as ``-p`` takes them."""
        # Threads are no parameter of a learner: every task has an option of its own for them.
        known = {f.name: f.default for f in fields(BatchCRF) if f.name != "n_jobs"}
        return known | dict(self.defaults)

    def build(self, scale: Scale = Scale(), **params: Any) -> BatchCRF:  # noqa: B008 - frozen
        """The learner, with some parameters replaced; no default depends on the data's scale.

        Examples
        --------
        >>> BATCH_RECIPES["crf-lbfgs"].build(l2="0.5").l2
        0.5
        """
        values = self.parameters()
        for key, value in params.items():
            key = key.replace("-", "_")
            if key not in values:
                raise HopefearError(unknown(self.name, key, list(values)))
            values[key] = number(key, value, values[key])
        return BatchCRF(**values)


# Strengths chosen on the last 936 training sentences of CoNLL-2000, learning from the others.
BATCH_RECIPES = {
    recipe.name: recipe
    for recipe in (
        BatchRecipe(
            "crf-lbfgs",
            "conditional random field by L-BFGS with L2 (Sha and Pereira, 2003)",
            {"l2": 0.1},
        ),
        BatchRecipe(
            "crf-owlqn",
            "conditional random field by OWL-QN with L1: sparse (Andrew and Gao, 2007)",
            {"l1": 0.3, "l2": 0.01, "observed": False},
        ),
    )
}

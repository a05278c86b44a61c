"""Learners that look at all examples before they move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from hopefear.core.learner import part_name
from hopefear.errors import HopefearError
from hopefear.losses.log import Log
from hopefear.recipes.base import LOSSES, Scale, loss_parameters, made_part, number, unknown
from hopefear.training.batch import Batch


@dataclass(frozen=True)
class BatchRecipe:
    """A learner in batch, and defaults that work.

    Parameters
    ----------
    name, summary : str
        As for other recipes.
    defaults : mapping
        Parameters that differ from those of the learner.
    loss : type, optional
        What it minimises, where that can be chosen.
    """

    name: str
    summary: str
    defaults: Mapping[str, Any] = field(default_factory=dict)
    loss: type | None = None

    def parameters(self) -> dict[str, Any]:
        """Every parameter with its default, as ``-p`` takes them."""
        known = {f.name: f.default for f in fields(Batch) if f.name not in ("loss", "observed")}
        if self.loss is None:
            known["observed"] = True
        else:
            known = {"loss": part_name(self.loss), **loss_parameters(self.loss), **known}
        return known | dict(self.defaults)

    def build(self, scale: Scale = Scale(), **params: Any) -> Batch:  # noqa: B008 - frozen
        """The learner, with some parameters replaced; no default depends on the data's scale.

        Examples
        --------
        >>> BATCH_RECIPES["crf-lbfgs"].build(l2="0.5").l2
        0.5
        """
        values = self.parameters()
        params = {key.replace("-", "_"): value for key, value in params.items()}
        if self.loss is None:
            return Batch(**self._replaced(values, params))
        name = params.pop("loss", values.pop("loss"))
        if name not in LOSSES:
            raise HopefearError(unknown("hopefear", str(name), list(LOSSES), "loss"))
        loss, fixed = LOSSES[name], loss_parameters(self.loss)
        told = loss_parameters(loss)
        rest = {key: value for key, value in values.items() if key not in fixed}
        values = self._replaced({**told, **rest}, params)
        made = made_part(loss, {key: values.pop(key) for key in told})
        return Batch(loss=made, **values)

    def _replaced(self, values: dict[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
        for key, value in params.items():
            if key not in values:
                raise HopefearError(unknown(self.name, key, list(values)))
            known = isinstance(values[key], str)
            values[key] = value if known else number(key, value, values[key])
        return values


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

LIST_BATCH_RECIPES = {
    recipe.name: recipe
    for recipe in (
        BatchRecipe(
            "maxent-lbfgs",
            "log loss over the list by L-BFGS with L2 (Charniak and Johnson, 2005)",
            {"l2": 10.0},
            Log,
        ),
        BatchRecipe(
            "maxent-owlqn",
            "log loss over the list by OWL-QN with L1: sparse (Andrew and Gao, 2007)",
            {"l1": 1.0, "l2": 0.0},
            Log,
        ),
    )
}

"""Published learners by name: compositions with defaults, no mathematics of their own."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from hopefear.errors import HopefearError
from hopefear.recipes.base import LOSSES, ON, READOUTS, RULES, USUAL_COST, Recipe, Scale, unknown
from hopefear.recipes.batch import BATCH_RECIPES, LIST_BATCH_RECIPES, BatchRecipe
from hopefear.recipes.chains import CHAIN_RECIPES as ONLINE_CHAIN_RECIPES
from hopefear.recipes.classes import RECIPES
from hopefear.recipes.lists import LIST_RECIPES as ONLINE_LIST_RECIPES

__all__ = [
    "CHAIN_RECIPES",
    "LIST_RECIPES",
    "LOSSES",
    "ON",
    "READOUTS",
    "RECIPES",
    "RULES",
    "USUAL_COST",
    "Recipe",
    "Scale",
    "recipe",
    "recipes_of",
]

CHAIN_RECIPES: dict[str, Recipe | BatchRecipe] = {**ONLINE_CHAIN_RECIPES, **BATCH_RECIPES}
LIST_RECIPES: dict[str, Recipe | BatchRecipe] = {**ONLINE_LIST_RECIPES, **LIST_BATCH_RECIPES}
# Where the learners of each task are; those of translations stand above this package and are
# imported when asked for.
_HOMES = {
    "classify": ("hopefear.recipes", "RECIPES"),
    "tag": ("hopefear.recipes", "CHAIN_RECIPES"),
    "rerank": ("hopefear.recipes", "LIST_RECIPES"),
    "tune": ("hopefear.translation.recipes", "TUNE_RECIPES"),
}


def recipes_of(task: str) -> Mapping[str, Any]:
    """All recipes of a task, by name.

    >>> "sapo" in recipes_of("tag"), "mert" in recipes_of("tune")
    (True, True)
    """
    module, name = _HOMES[task]
    return getattr(importlib.import_module(module), name)


def recipe(name: str, task: str = "classify") -> Any:
    """The recipe of that name for a task.

    >>> recipe("arow").rule.__name__, recipe("sapo", "tag").loss.__name__
    ('AROW', 'SAPO')
    """
    table = recipes_of(task)
    if name in table:
        return table[name]
    others = [other for other in _HOMES if name in recipes_of(other)]
    if others:
        raise HopefearError(
            f"{name} is a learner for the task {' and '.join(others)}, not for {task}; "
            f"there are {', '.join(table)}"
        )
    raise HopefearError(unknown("hopefear", name, list(table), "learner"))

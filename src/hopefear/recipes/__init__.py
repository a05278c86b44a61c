"""Published learners by name: compositions with defaults, no mathematics of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hopefear.errors import HopefearError
from hopefear.recipes.base import LOSSES, ON, READOUTS, RULES, USUAL_COST, Recipe, Scale, unknown
from hopefear.recipes.batch import BATCH_RECIPES, LIST_BATCH_RECIPES, BatchRecipe
from hopefear.recipes.chains import CHAIN_RECIPES as ONLINE_CHAIN_RECIPES
from hopefear.recipes.classes import RECIPES
from hopefear.recipes.lists import LIST_RECIPES as ONLINE_LIST_RECIPES
from hopefear.recipes.tuning import TUNE_RECIPES

__all__ = [
    "CHAIN_RECIPES",
    "LIST_RECIPES",
    "LOSSES",
    "ON",
    "READOUTS",
    "RECIPES",
    "RULES",
    "TASKS",
    "TUNE_RECIPES",
    "USUAL_COST",
    "Recipe",
    "Scale",
    "recipe",
]

CHAIN_RECIPES: dict[str, Recipe | BatchRecipe] = {**ONLINE_CHAIN_RECIPES, **BATCH_RECIPES}
LIST_RECIPES: dict[str, Recipe | BatchRecipe] = {**ONLINE_LIST_RECIPES, **LIST_BATCH_RECIPES}
TASKS: dict[str, Mapping[str, Any]] = {
    "classify": RECIPES,
    "tag": CHAIN_RECIPES,
    "rerank": LIST_RECIPES,
    "tune": TUNE_RECIPES,
}


def recipe(name: str, task: str = "classify") -> Any:
    """The recipe of that name for a task.

    >>> recipe("arow").rule.__name__, recipe("sapo", "tag").loss.__name__
    ('AROW', 'SAPO')
    """
    table = TASKS[task]
    if name in table:
        return table[name]
    others = [other for other, recipes in TASKS.items() if name in recipes]
    if others:
        raise HopefearError(
            f"{name} is a learner for the task {' and '.join(others)}, not for {task}; "
            f"there are {', '.join(table)}"
        )
    raise HopefearError(unknown("hopefear", name, list(table), "learner"))

"""Published learners by name: compositions with defaults, no mathematics of their own."""

from __future__ import annotations

from hopefear.recipes.base import LOSSES, ON, READOUTS, RULES, USUAL_COST, Recipe, Scale
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
]

CHAIN_RECIPES: dict[str, Recipe | BatchRecipe] = {**ONLINE_CHAIN_RECIPES, **BATCH_RECIPES}
LIST_RECIPES: dict[str, Recipe | BatchRecipe] = {**ONLINE_LIST_RECIPES, **LIST_BATCH_RECIPES}

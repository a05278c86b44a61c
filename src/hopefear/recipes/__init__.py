"""Published learners by name: compositions with defaults, no mathematics of their own."""

from __future__ import annotations

from hopefear.recipes.base import ON, USUAL_COST, BatchRecipe, NetworkRecipe, Recipe, Scale
from hopefear.recipes.chains import CHAIN_RECIPES
from hopefear.recipes.classes import RECIPES
from hopefear.recipes.lists import LIST_RECIPES
from hopefear.recipes.parts import AVERAGINGS, COSTS, LOSSES, RULES
from hopefear.recipes.trees import TREE_RECIPES

__all__ = [
    "AVERAGINGS",
    "CHAIN_RECIPES",
    "COSTS",
    "LIST_RECIPES",
    "LOSSES",
    "ON",
    "RECIPES",
    "RULES",
    "TREE_RECIPES",
    "USUAL_COST",
    "BatchRecipe",
    "NetworkRecipe",
    "Recipe",
    "Scale",
]

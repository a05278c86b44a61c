"""Features of constituent trees after Charniak and Johnson (2005), as keys."""

from hopefear.features.trees.extract import tree_keys
from hopefear.features.trees.families import FAMILIES, TreeFamilies, families
from hopefear.features.trees.kinds import KINDS
from hopefear.features.trees.naming import tree_names

__all__ = ["FAMILIES", "KINDS", "TreeFamilies", "families", "tree_keys", "tree_names"]

"""Features of constituent trees after Charniak and Johnson (2005), as keys."""

from hopefear.features.trees.extract import tree_keys, tree_names
from hopefear.features.trees.families import FAMILIES, KINDS, TreeFamilies, families

__all__ = ["FAMILIES", "KINDS", "TreeFamilies", "families", "tree_keys", "tree_names"]

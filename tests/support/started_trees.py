"""Trees that learn from a start where no two of them tie, as all would without weights."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import Weights, n_weights
from hopefear.structures.tree.tree import Tree
from hopefear.testing import outputs_of
from hopefear.testing.trees import TinyArcs, tree_outputs

GOLDEN = 0.6180339887


def start(j):
    """Returns the weight that coordinate ``j`` begins with; no two are alike."""
    return (j * GOLDEN) % 1.0 - 0.5


@component(Weights)
class FromStart(NamedTuple):
    """Weights that are added to those of the start."""

    learned: Any

    def at(self, j):
        return self.learned.at(j) + start(float(j))


class StartedTree(Tree):
    """A tree that is scored by the weights of the start and those that were learned."""

    def score(self, x, weights, theta):
        super().score(x, FromStart(weights), theta)


def new_started(tree: Tree) -> StartedTree:
    """Returns the same trees with so many features that no two trees of a sentence share all."""
    return StartedTree(*tree._replace(features=TinyArcs(plain=29, rows=13)))


@outputs_of.register(StartedTree)
def started_outputs(tree, rows, i):
    return dataclasses.replace(tree_outputs(tree, rows, i), start=start(np.arange(n_weights(tree))))

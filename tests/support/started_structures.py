"""Trees and segments that start where no two outputs tie, as all would without weights."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import WeightView, n_weights
from hopefear.structures.segments.segments import Segments
from hopefear.structures.tree.tree import Tree
from hopefear.testing import outputs_of
from hopefear.testing.segments import segment_outputs
from hopefear.testing.trees import TinyArcs, tree_outputs

GOLDEN = 0.6180339887


def start(j):
    """Returns the weight that coordinate ``j`` begins with; no two are alike."""
    return (j * GOLDEN) % 1.0 - 0.5


@component(WeightView)
class FromStart(NamedTuple):
    """Weights that are added to those of the start."""

    learned: Any

    def at(self, j):
        return self.learned.at(j) + start(float(j))


class StartedTree(Tree):
    """A tree that is scored by the weights of the start and those that were learned."""

    def score(self, x, weights, theta):
        super().score(x, FromStart(weights), theta)


class StartedSegments(Segments):
    """Segments that are scored by the weights of the start and those that were learned."""

    def score(self, x, weights, theta):
        super().score(x, FromStart(weights), theta)


def new_started(structure: Any) -> Any:
    """Returns the same structure, with so many features that no two outputs share all."""
    if isinstance(structure, Segments):
        return StartedSegments(*structure)
    return StartedTree(*structure._replace(features=TinyArcs(plain=29, rows=13)))


@outputs_of.register(StartedTree)
def started_trees(tree, rows, i):
    return started(tree, tree_outputs(tree, rows, i))


@outputs_of.register(StartedSegments)
def started_segments(segments, rows, i):
    return started(segments, segment_outputs(segments, rows, i))


def started(structure, outputs):
    return dataclasses.replace(outputs, start=start(np.arange(n_weights(structure))))

"""Ways to search the trees of a sentence: of first and second order, projective or not."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, helper, interface, python_only, required
from hopefear.structures.tree.decomposition import new_decomposition, nonprojective_second
from hopefear.structures.tree.eisner import eisner, new_eisner_space
from hopefear.structures.tree.inside_outside import (
    new_projective_space,
    projective_covariances,
    projective_marginals,
)
from hopefear.structures.tree.matrix_tree import (
    new_matrix_space,
    nonprojective_covariances,
    nonprojective_marginals,
)
from hopefear.structures.tree.second_order import (
    new_second_order,
    projective_second,
    projective_second_marginals,
)
from hopefear.structures.tree.spanning import new_spanning_space, spanning_tree


class Dense(NamedTuple):
    """Numbers of arcs in a square: arc h -> m is at ``m * (n + 1) + h``."""

    scores: np.ndarray
    prices: np.ndarray
    means: np.ndarray
    slopes: np.ndarray


def new_dense(longest: int) -> Dense:
    return Dense(*(np.zeros((longest + 1) ** 2) for _ in Dense._fields))


@interface
class TreeSearch:
    """Finds the best tree of scored parts, and what is expected of all trees."""

    @python_only
    @required
    def order(self):
        """1: arcs have scores; 2: siblings and grandparents as well."""

    @python_only
    @required
    def expects(self):
        """Names of the expectations it can compute, as ``Structure.offers`` has them."""

    @python_only
    @required
    def search_space(self, longest, counts, expecting):
        """Memory for sentences of so many words and parts; ``expecting``: for expectations too."""

    @required
    def find_tree(self, n, arcs, scores, space, heads):
        """Leave the best tree in ``heads``; returns its score, minus infinity without any tree."""

    def is_proved(self, space):
        """Whether the tree that was found last is proved best."""
        return True

    def part_means(self, n, arcs, scores, space, means):
        """Expected number of every part, under ``exp(score)``; returns the logarithm of the sum."""
        return 0.0

    def part_slopes(self, n, arcs, scores, prices, space, means, slopes):
        """Means of all arcs, and their covariances with the price of a tree; returns as above."""
        return 0.0


@component(TreeSearch)
class Projective(NamedTuple):
    """Trees without crossing arcs: Eisner's algorithm, inside-outside."""

    single: bool = False

    def order(self):
        return 1

    def expects(self):
        return ("expectation", "risk")

    def search_space(self, longest, counts, expecting):
        size = longest if expecting else 1
        return new_dense(longest), new_eisner_space(longest), new_projective_space(size)

    def find_tree(self, n, arcs, scores, space, heads):
        spread(n, arcs, scores.arcs, -np.inf, space[0].scores)
        return eisner(n, space[0].scores, self.single, space[1], heads)

    def part_means(self, n, arcs, scores, space, means):
        dense = space[0]
        spread(n, arcs, scores.arcs, -np.inf, dense.scores)
        total = projective_marginals(n, dense.scores, self.single, space[2], dense.means)
        collect(n, arcs, dense.means, means.arcs)
        return total

    def part_slopes(self, n, arcs, scores, prices, space, means, slopes):
        dense = space[0]
        spread(n, arcs, scores.arcs, -np.inf, dense.scores)
        spread(n, arcs, prices, 0.0, dense.prices)
        total = projective_covariances(
            n, dense.scores, dense.prices, self.single, space[2], dense.means, dense.slopes
        )
        collect(n, arcs, dense.means, means.arcs)
        collect(n, arcs, dense.slopes, slopes)
        return total


@component(TreeSearch)
class Nonprojective(NamedTuple):
    """All trees: the algorithm of Chu, Liu and Edmonds, the matrix-tree theorem."""

    single: bool = False

    def order(self):
        return 1

    def expects(self):
        return ("expectation", "risk")

    def search_space(self, longest, counts, expecting):
        size = longest if expecting else 1
        return new_dense(longest), new_spanning_space(longest), new_matrix_space(size)

    def find_tree(self, n, arcs, scores, space, heads):
        spread(n, arcs, scores.arcs, -np.inf, space[0].scores)
        return spanning_tree(n, space[0].scores, self.single, space[1], heads)

    def part_means(self, n, arcs, scores, space, means):
        dense = space[0]
        spread(n, arcs, scores.arcs, -np.inf, dense.scores)
        total = nonprojective_marginals(n, dense.scores, self.single, space[2], dense.means)
        collect(n, arcs, dense.means, means.arcs)
        return total

    def part_slopes(self, n, arcs, scores, prices, space, means, slopes):
        dense = space[0]
        spread(n, arcs, scores.arcs, -np.inf, dense.scores)
        spread(n, arcs, prices, 0.0, dense.prices)
        total = nonprojective_covariances(
            n, dense.scores, dense.prices, self.single, space[2], dense.means, dense.slopes
        )
        collect(n, arcs, dense.means, means.arcs)
        collect(n, arcs, dense.slopes, slopes)
        return total


@component(TreeSearch)
class ProjectiveSecond(NamedTuple):
    """Trees without crossing arcs, with siblings and grandparents, exactly."""

    single: bool = False

    def order(self):
        return 2

    def expects(self):
        return ("expectation",)

    def search_space(self, longest, counts, expecting):
        return new_second_order(longest, counts, expecting)

    def find_tree(self, n, arcs, scores, space, heads):
        return projective_second(n, arcs, scores, self.single, space, heads)

    def part_means(self, n, arcs, scores, space, means):
        return projective_second_marginals(n, arcs, scores, self.single, space, means)


@component(TreeSearch)
class NonprojectiveSecond(NamedTuple):
    """All trees with siblings and grandparents, by dual decomposition.

    Nearly always exact; after ``rounds`` steps the best tree seen so far is taken.
    """

    single: bool = False
    rounds: int = 100

    def order(self):
        return 2

    def expects(self):
        return ()

    def search_space(self, longest, counts, expecting):
        return new_decomposition(longest, counts)

    def find_tree(self, n, arcs, scores, space, heads):
        score, certain = nonprojective_second(
            n, arcs, scores, self.single, self.rounds, space, heads
        )
        space.certain[0] = certain
        return score

    def is_proved(self, space):
        return space.certain[0] != 0


def tree_search(order: int, projective: bool, single: bool, rounds: int = 100) -> Any:
    """The search for trees of this kind.

    >>> tree_search(1, projective=True, single=False)
    Projective(single=False)
    """
    if order == 1:
        return Projective(single) if projective else Nonprojective(single)
    return ProjectiveSecond(single) if projective else NonprojectiveSecond(single, rounds)


@helper
def spread(n, arcs, numbers, absent, dense):
    """Numbers of candidate arcs in a square."""
    for p in range((n + 1) * (n + 1)):
        dense[p] = absent
    for a in range(arcs.first[n + 1]):
        dense[arcs.mod[a] * (n + 1) + arcs.head[a]] = numbers[a]


@helper
def collect(n, arcs, dense, numbers):
    """Numbers of candidate arcs out of a square."""
    for a in range(arcs.first[n + 1]):
        numbers[a] = dense[arcs.mod[a] * (n + 1) + arcs.head[a]]

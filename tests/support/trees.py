"""All dependency trees of a few words, by enumeration: what the kernels must agree with.

A tree is a tuple ``heads`` of n + 1 numbers: ``heads[m]`` is the head of word m = 1..n, 0 is the
root of the sentence, and ``heads[0]`` is 0 and means nothing.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

from hopefear.testing.trees import is_tree

KINDS = ["normal", "whole", "sparse", "steep", "large", "cycles"]  # of scores


@functools.cache
def trees(n: int, flat: bool, single: bool) -> tuple[tuple[int, ...], ...]:
    """The trees of ``n`` words: only projective ones if ``flat``, only with one root arc."""
    choices = ((0, *heads) for heads in itertools.product(range(n + 1), repeat=n))
    return tuple(heads for heads in choices if is_tree(heads, not flat, single))


@functools.cache
def places(n: int, flat: bool, single: bool) -> np.ndarray:
    """Where the arcs of each tree lie in dense arrays: ``int64[tree, word]``."""
    heads = np.array(trees(n, flat, single), np.int64).reshape(-1, n + 1)
    return np.arange(1, n + 1) * (n + 1) + heads[:, 1:]


def tree_scores(n, scores, flat, single) -> np.ndarray:
    """The score of every tree, from dense arc scores ``scores[m * (n + 1) + h]``."""
    return scores[places(n, flat, single)].sum(axis=1)


def expected(n, scores, prices, flat, single):
    """log Z, marginals of arcs, and their covariances with the price of the tree."""
    totals = tree_scores(n, scores, flat, single)
    marginals, slopes = np.zeros((2, (n + 1) ** 2))
    top = totals.max(initial=-np.inf)
    if top == -np.inf:
        return -np.inf, marginals, slopes
    weights = np.exp(totals - top)
    log_z = top + np.log(weights.sum())
    weights /= weights.sum()
    arcs = places(n, flat, single)
    price = prices[arcs].sum(axis=1)
    price -= weights @ price
    for m in range(n):
        np.add.at(marginals, arcs[:, m], weights)
        np.add.at(slopes, arcs[:, m], weights * price)
    return log_z, marginals, slopes


def draw_scores(rng, n, kind):
    """Dense scores [m, h]; huge numbers where nothing may be read."""
    scores = rng.normal(size=(n + 1, n + 1))
    if kind == "whole":
        scores = rng.integers(-2, 3, scores.shape).astype(float)
    elif kind == "sparse":
        scores[rng.random(scores.shape) < rng.uniform(0.2, 0.8)] = -np.inf
    elif kind == "steep":
        scores *= 100.0
    elif kind == "large":
        scores *= 1e4
    elif kind == "cycles":  # within groups of words that no head outside is likely for
        groups = rng.integers(0, 3, n + 1)
        scores += 20.0 * (groups[:, None] == groups) + 5.0 * (groups[:, None] // 2 == groups // 2)
        scores[:, 0] -= 40.0
    scores[0] = 1e30
    np.fill_diagonal(scores, 1e30)
    return scores.ravel()

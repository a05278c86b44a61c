"""Scores of the parts of a sentence's trees: relations, arcs, siblings and grandparents."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import helper, shared_kernel
from hopefear.structures.tree.parts import Arcs, Scores

# Coordinates to a cache line of float32, and how many rows ahead are asked for.
LINE, AHEAD = 16, 8
# Rows of relations begin at every eighth coordinate, so that they fill vector registers.
STEP = 8


class TreeTheta(NamedTuple):
    """Scores of one sentence and the space its searches need."""

    arcs: Arcs
    relations: np.ndarray  # float[arcs * width]: scores of an arc with each of its relations
    scores: Scores  # of arcs with the best relation, and of second-order parts
    best: np.ndarray  # int32[arcs]: that relation
    trial: Scores  # the same with costs, limits or probabilities; shares all but the arcs
    trial_best: np.ndarray
    means: Scores  # expectations of parts
    prices: np.ndarray  # float64[arcs]
    slopes: np.ndarray  # float64[arcs]
    space: Any  # of the search
    heads: np.ndarray  # int32[longest + 1]
    parts: np.ndarray  # int64[3, longest + 1]: second-order parts of a tree
    pad: Any  # of the features
    ranking: Any  # the n best


@helper(inline=True)
def length(x):
    """Number of words."""
    return x.data.starts[x.i + 1] - x.data.starts[x.i]


@helper(inline=True)
def plain_sum(weights, pad, count):
    """Sum of the weights of features without relations."""
    total = 0.0
    for k in range(count):
        total += np.float64(weights.at(np.uint64(pad.keys[k])))
    return total


@helper
def score_relations(tree, x, weights, theta):
    """Score all relations of all arcs."""
    arcs, pad, width = theta.arcs, theta.pad, np.uint64(tree.width)
    relations, base = theta.relations, np.uint64(tree.features.plain)
    for a in range(arcs.first[length(x) + 1]):
        h, m = np.int64(arcs.head[a]), np.int64(arcs.mod[a])
        total = plain_sum(weights, pad, tree.features.arc_keys(x, h, m, pad))
        at = np.uint64(a) * width
        for c in range(width):
            relations[at + c] = total
        if tree.labels > 1:
            count = tree.features.label_keys(x, h, m, pad)
            for k in range(count):
                ahead = np.int64(base) + STEP * np.int64(pad.keys[min(k + AHEAD, count - 1)])
                for c in range(0, tree.width, LINE):
                    weights.prefetch(ahead + c)
                row = base + np.uint64(STEP) * np.uint64(pad.keys[k])
                for c in range(width):
                    relations[at + c] += weights.at(row + c)
    if tree.limits.size:
        limit_relations(tree, x, theta)


@shared_kernel
def limit_relations(tree, x, theta):
    """Forbid the relations that a token must not have."""
    start, width = x.data.starts[x.i], tree.width
    for a in range(theta.arcs.first[length(x) + 1]):
        row = (start + theta.arcs.mod[a] - 1) * tree.labels
        for c in range(tree.labels):
            theta.relations[a * width + c] += tree.limits[row + c]


@shared_kernel
def choose_relations(tree, x, theta):
    """The best relation of every arc; of equal ones the lower."""
    width = tree.width
    for a in range(theta.arcs.first[length(x) + 1]):
        best = a * width
        for c in range(a * width + 1, a * width + tree.labels):
            if theta.relations[c] > theta.relations[best]:
                best = c
        theta.best[a] = best - a * width
        theta.scores.arcs[a] = theta.relations[best]


@helper
def score_pairs(tree, x, weights, theta):
    """Score siblings, outermost children and grandparents."""
    arcs, pad, scores = theta.arcs, theta.pad, theta.scores
    for a in range(arcs.first[length(x) + 1]):
        h, m = np.int64(arcs.head[a]), np.int64(arcs.mod[a])
        scores.lasts[a] = plain_sum(weights, pad, tree.features.outermost_child_keys(x, h, m, pad))
        for p in range(arcs.siblings[a], arcs.siblings[a + 1]):
            s = sibling_word(arcs, a, p)
            count = tree.features.sibling_keys(x, h, s, m, pad)
            scores.siblings[p] = plain_sum(weights, pad, count)
        for p in range(arcs.grands[a], arcs.grands[a + 1]):
            g = grandparent_word(arcs, a, p)
            if g != m:
                count = tree.features.grandparent_keys(x, g, h, m, pad)
                scores.grands[p] = plain_sum(weights, pad, count)


@helper
def sibling_word(arcs, a, p):
    """The word of sibling part p of arc a: 0 for none."""
    rank = p - arcs.siblings[a] - 1
    if rank < 0:
        return np.int64(0)
    h = arcs.head[a]
    side = 2 * h + (1 if arcs.mod[a] > h else 0)
    return np.int64(arcs.mod[arcs.kids[arcs.kids_first[side] + rank]])


@helper
def grandparent_word(arcs, a, p):
    """The head's head of grandparent part p of arc a."""
    return np.int64(arcs.head[arcs.first[arcs.head[a]] + p - arcs.grands[a]])


@helper(inline=True)
def arc_of(arcs, n, m, code, labels):
    """The arc of word m in a label; -1 where it is none that is looked at."""
    return -1 if code < 0 else arcs.lookup[m * (n + 1) + code // labels]


@helper
def charge_relations(tree, x, theta, cost, sign):
    """The best relation of every arc when its price is added (or taken off)."""
    n, width, start = length(x), tree.width, x.data.starts[x.i]
    for a in range(theta.arcs.first[n + 1]):
        gold = x.data.labels[start + theta.arcs.mod[a] - 1]
        code, best, top = theta.arcs.head[a] * tree.labels, 0, -math.inf
        for c in range(tree.labels):
            score = theta.relations[a * width + c] + sign * cost.label_cost(gold, code + c)
            if score > top:
                best, top = c, score
        theta.trial_best[a], theta.trial.arcs[a] = best, top


@helper
def write_codes(tree, n, theta, best, y):
    """The labels of a tree."""
    for m in range(1, n + 1):
        h = theta.heads[m]
        a = theta.arcs.lookup[m * (n + 1) + h]
        y[m - 1] = h * tree.labels + (best[a] if a >= 0 else 0)


@helper
def read_heads(tree, n, codes, start, heads):
    """Heads of labels that begin at ``start``."""
    heads[0] = 0
    for m in range(1, n + 1):
        heads[m] = max(0, codes[start + m - 1]) // tree.labels


@helper
def relation_score(tree, theta, n, m, code):
    """Score of the arc and relation of word m; minus infinity where it is not looked at."""
    a = arc_of(theta.arcs, n, m, code, tree.labels)
    return -math.inf if a < 0 else np.float64(theta.relations[a * tree.width + code % tree.labels])


@helper
def pair_score(theta, n, siblings, lasts, grands):
    """Score of the second-order parts of a tree, as ``parts_of`` lists them."""
    total = 0.0
    for m in range(1, n + 1):
        if siblings[m] >= 0:
            total += theta.scores.siblings[siblings[m]]
        if lasts[m] >= 0:
            total += theta.scores.lasts[lasts[m]]
        if grands[m] >= 0:
            total += theta.scores.grands[grands[m]]
    return total


@shared_kernel
def soften(tree, n, theta, inverse_temperature, cost, x, priced):
    """Writes log sums over relations of ``exp(inverse_temperature * score)`` to the trial scores.

    ``priced``: the mean price of an arc's relations goes into ``theta.prices``.
    """
    width, start = tree.width, x.data.starts[x.i]
    for a in range(theta.arcs.first[n + 1]):
        top = inverse_temperature * np.float64(theta.scores.arcs[a])
        total, paid = 0.0, 0.0
        gold = x.data.labels[start + theta.arcs.mod[a] - 1]
        code = theta.arcs.head[a] * tree.labels
        for c in range(tree.labels):
            share = math.exp(inverse_temperature * np.float64(theta.relations[a * width + c]) - top)
            total += share
            if priced:
                paid += share * cost.label_cost(gold, code + c)
        theta.trial.arcs[a] = top + math.log(total) if total > 0.0 else -math.inf
        theta.prices[a] = paid / total if priced else 0.0

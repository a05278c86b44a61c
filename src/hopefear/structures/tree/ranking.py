"""The n best trees by partition (Murty, 1968; Lawler, 1972), whatever the search.

What is left of all outputs beside the best one falls into n sets: in set t the words before t are
as in the best output, and word t is not. Of each set the search finds the best, and so on with the
best of those. It is exact where the search is, for labelled trees, projective or not, of any order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hopefear.core.component import helper, shared_kernel
from hopefear.structures.tree.theta import length, write_codes


class Ranking(NamedTuple):
    """Outputs so far, and the sets they are the best of."""

    codes: np.ndarray  # int32[depth, longest]
    scores: np.ndarray  # float64[depth]
    free: np.ndarray  # int64[depth]: the first word that is not given in the set
    banned: np.ndarray  # int32[depth, depth]: labels that this word must not have
    n_banned: np.ndarray  # int64[depth]
    order: np.ndarray  # int64[depth]: places of the outputs, best first
    fresh: np.ndarray  # int32[longest]


def new_ranking(longest: int, depth: int) -> Ranking:
    """Room for so many outputs."""
    return Ranking(
        np.zeros((depth, longest), np.int32),
        np.zeros(depth),
        np.zeros(depth, np.int64),
        np.zeros((depth, depth), np.int32),
        np.zeros(depth, np.int64),
        np.zeros(depth, np.int64),
        np.zeros(longest, np.int32),
    )


@helper
def relation_price(tree, x, theta, cost, a, c):
    """Score of an arc with a relation, and its price where there is a cost."""
    score = np.float64(theta.relations[a * tree.width + c])
    if cost is not None:
        gold = x.data.labels[x.data.starts[x.i] + theta.arcs.mod[a] - 1]
        score += cost.label_cost(gold, theta.arcs.head[a] * tree.labels + c)
    return score


@helper
def open_word(tree, x, theta, cost, m, place):
    """Let word m have any label but those that the set at ``place`` bans (-1: none)."""
    arcs, ranking = theta.arcs, theta.ranking
    for a in range(arcs.first[m], arcs.first[m + 1]):
        theta.trial.arcs[a] = -math.inf
        for c in range(tree.labels):
            code, banned = arcs.head[a] * tree.labels + c, False
            if place >= 0:
                for k in range(ranking.n_banned[place]):
                    banned = banned or ranking.banned[place, k] == code
            if not banned:
                score = relation_price(tree, x, theta, cost, a, c)
                if score > theta.trial.arcs[a]:
                    theta.trial.arcs[a], theta.trial_best[a] = score, c


@helper
def fix_word(tree, x, theta, cost, m, code):
    """Let word m have one label only."""
    arcs = theta.arcs
    for a in range(arcs.first[m], arcs.first[m + 1]):
        theta.trial.arcs[a] = -math.inf
        if arcs.head[a] == code // tree.labels:
            c = code % tree.labels
            theta.trial.arcs[a], theta.trial_best[a] = relation_price(tree, x, theta, cost, a, c), c


@helper
def solve(tree, x, theta):
    """The best output of the trial scores, in ``ranking.fresh``; returns its score."""
    n = length(x)
    score = tree.search.find_tree(n, theta.arcs, theta.trial, theta.space, theta.heads)
    if score > -math.inf:
        write_codes(tree, n, theta, theta.trial_best, theta.ranking.fresh)
    return score


@helper
def enter(ranking, n, score, done, count, depth):
    """A place for a new output among those behind the first ``done``, or -1 where it is too bad."""
    if count == depth and score <= ranking.scores[ranking.order[depth - 1]]:
        return -1
    place = count if count < depth else ranking.order[depth - 1]
    k = min(count, depth - 1)
    while k > done and ranking.scores[ranking.order[k - 1]] < score:
        ranking.order[k] = ranking.order[k - 1]
        k -= 1
    ranking.order[k] = place
    ranking.scores[place] = score
    for m in range(n):
        ranking.codes[place, m] = ranking.fresh[m]
    return place


@shared_kernel
def rank_trees(tree, x, theta, cost, depth):
    """Leave the best ``depth`` outputs, by score plus cost, in the ranking; returns how many."""
    n, ranking = length(x), theta.ranking
    for m in range(1, n + 1):
        open_word(tree, x, theta, cost, m, -1)
    score = solve(tree, x, theta)
    if score == -math.inf or math.isnan(score):
        return 0
    ranking.free[enter(ranking, n, score, 0, 0, depth)] = 1
    ranking.n_banned[0] = 0
    count = 1
    for done in range(1, depth):
        if done > count:
            break
        best = ranking.order[done - 1]
        count = split(tree, x, theta, cost, best, done, count, depth)
    return count


@helper
def split(tree, x, theta, cost, best, done, count, depth):
    """Find the best of each set that is left when an output is taken out of its own."""
    n, ranking = length(x), theta.ranking
    first = ranking.free[best]
    for m in range(1, n + 1):
        if m < first:
            fix_word(tree, x, theta, cost, m, ranking.codes[best, m - 1])
        elif m > first:
            open_word(tree, x, theta, cost, m, -1)
    for m in range(first, n + 1):
        k = ranking.n_banned[best] if m == first else 0
        ranking.banned[best, k] = ranking.codes[best, m - 1]
        ranking.n_banned[best] = k + 1
        open_word(tree, x, theta, cost, m, best)
        score = solve(tree, x, theta)
        if score > -math.inf:
            place = enter(ranking, n, score, done, count, depth)
            if place >= 0:
                count = min(count + 1, depth)
                ranking.free[place] = m
                ranking.n_banned[place] = k + 1
                for b in range(k + 1):
                    ranking.banned[place, b] = ranking.banned[best, b]
        fix_word(tree, x, theta, cost, m, ranking.codes[best, m - 1])
    return count

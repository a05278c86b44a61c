"""Dependency trees: a head and a relation for every word."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, helper, shared_kernel
from hopefear.core.interfaces import UNRIVALLED, Structure
from hopefear.core.workspace import new_workspace
from hopefear.costs.hamming import Hamming
from hopefear.structures.lattice import padded_width
from hopefear.structures.tree.mu import (
    BLOCKS,
    WHOLE,
    forget_parts,
    forget_sums,
    n_units,
    new_mu,
    product,
    pull_trees,
    sum_up,
    write_unit,
)
from hopefear.structures.tree.parts import (
    Counts,
    fill_arcs,
    new_arcs,
    new_part_scores,
    part_counts,
    parts_of,
)
from hopefear.structures.tree.ranking import new_ranking, rank_trees
from hopefear.structures.tree.theta import (
    STEP,
    TreeTheta,
    arc_of,
    charge_relations,
    choose_relations,
    length,
    pair_score,
    read_heads,
    relation_score,
    score_pairs,
    score_relations,
    soften,
    write_codes,
)


@component(Structure)
class Tree(NamedTuple):
    """A tree over the words of a sentence and its root; parts are arcs with their relations.

    An output has one number a word: ``head * labels + relation``. Coordinates: ``features.plain``
    for features of arcs (and of siblings and grandparents), then rows of ``width`` for features
    of arcs with relations, one lane a relation. A row may begin at every eighth coordinate, so rows
    of different features overlap where there are more than eight relations: features share single
    weights then, seldom whole rows.

    Parameters
    ----------
    features : ArcFeatures
        What fires on parts.
    labels : int
        Number of relations; 1 for trees without.
    search : TreeSearch
        Which trees there are and how they are searched.
    order : int
        That of the search.
    limits : float32 array
        ``[token * labels + relation]``: 0, or minus infinity for what is not allowed; may be empty.
    width : int
        Set by ``new``.

    Notes
    -----
    Of outputs with equal scores always the same one is found, which one depends on the search.
    """

    features: Any
    labels: int
    search: Any
    order: int
    limits: np.ndarray
    width: int

    @classmethod
    def new(cls, features: Any, labels: int, search: Any, limits: np.ndarray | None = None) -> Tree:
        """A tree; see the class for the parameters."""
        limits = np.empty(0, np.float32) if limits is None else limits
        return cls(features, labels, search, search.order(), limits, padded_width(labels))

    @property
    def n_labels(self):
        return self.labels

    def weight_blocks(self):
        rows = self.features.rows + self.width // STEP if self.labels > 1 else 0
        return ((0, self.features.plain, 1), (self.features.plain, rows, STEP))

    def why_unsupported(self, inference):
        if inference in ("cost", "labels", "nbest", "places", "heads", *self.search.expects()):
            return ""
        if inference == "worst":
            return "no tree is worse than all; use away=fear or away=prediction"
        if inference == "expectation":
            return (
                "sums over all trees with crossing arcs have no algorithm when siblings or "
                "grandparents count; use projective trees, or order 1"
            )
        if inference == "risk":
            return (
                "sums over trees and their costs are those of arcs alone, without siblings and "
                "grandparents; use order 1"
            )
        return "trees have no costs of their own; use the cost hamming"

    def workspace(self, data, loss, dtype):
        longest = int(np.diff(data.starts).max(initial=1))
        expecting = bool({"expectation", "risk"} & set(loss.requires()))
        theta = self.search_space(data, loss.n_outputs(), dtype, expecting)
        mu = new_mu(
            self, theta, largest(data, self.order, np.arange(len(data.starts) - 1)), longest, dtype
        )
        max_nnz = 2 * self.features.max_keys(data) * longest
        return new_workspace(theta, mu, np.zeros(longest, np.int32), loss, max_nnz)

    def search_space(self, data, depth, dtype, expecting=False, which=None):
        """What scoring and searching the sentences of ``data``, or some of them, needs."""
        which = np.arange(len(data.starts) - 1) if which is None else which
        longest = int(np.diff(data.starts)[which].max(initial=1))
        counts = largest(data, self.order, which)
        scores = new_part_scores(counts)
        some = counts if expecting else Counts(1, 1, 1)
        return TreeTheta(
            new_arcs(longest, counts.arcs),
            np.zeros(counts.arcs * self.width, dtype),
            scores,
            np.zeros(counts.arcs, np.int32),
            scores._replace(arcs=np.zeros(counts.arcs)),
            np.zeros(counts.arcs, np.int32),
            new_part_scores(some),
            np.zeros(some.arcs),
            np.zeros(some.arcs),
            self.search.search_space(longest, counts, expecting),
            np.zeros(longest + 1, np.int32),
            np.zeros((3, longest + 1), np.int64),
            self.features.new_buffer(data),
            new_ranking(longest, max(2, depth)),
        )

    def score(self, x, weights, theta):
        score_tree(self, x, weights, theta)

    def argmax(self, x, theta, y):
        best_tree(self, x, theta, y)

    def margin(self, x, theta, y, exact):
        return margin_of(self, x, theta, y) if exact else violation_of(self, x, theta, y)

    def is_gold(self, x, y):
        return is_gold(x, y)

    def margin_over(self, x, theta, y):
        return lead_of_gold(self, x, theta, y)

    def output_cost(self, x, cost, y):
        start, total = x.data.starts[x.i], 0.0
        for m in range(length(x)):
            total += cost.label_cost(x.data.labels[start + m], y[m])
        return total

    def cost_augmented_argmax(self, x, theta, cost, sign, y):
        return seek_tree(self, x, theta, cost, sign, y)

    def k_best(self, x, theta, cost, ratio, outputs):
        count = rank_trees(self, x, theta, cost, outputs.shape[0])
        if ratio > 0.0 and count > 0:
            ranking = theta.ranking
            lowest = ranking.scores[ranking.order[0]] - math.log(ratio)
            while count > 1 and ranking.scores[ranking.order[count - 1]] < lowest:
                count -= 1
        for k in range(count):
            for m in range(length(x)):
                outputs[k, m] = theta.ranking.codes[theta.ranking.order[k], m]
        return count

    def add_difference(self, x, y, coef, mu, clear):
        if clear:
            clear_mu(self, x, mu)
        pull_trees(self, x, y, coef, mu)

    def kl_and_gradient(self, x, theta, cost, inverse_temperature, coef, mu):
        if cost is None:
            value = expect_trees(self, x, theta, coef, mu)
            return value, value < 0.6  # gold has over half of the probability
        return expect_good_trees(self, x, theta, cost, inverse_temperature, coef, mu), False

    def risk_and_gradient(self, x, theta, cost, inverse_temperature, coef, mu):
        return expect_cost_of_trees(self, x, theta, cost, inverse_temperature, coef, mu)

    def n_positions(self, x):
        return length(x)

    def wrong_at(self, x, y, t):
        return x.data.labels[x.data.starts[x.i] + t] != y[t]

    def gold_head(self, x, t):
        return x.data.labels[x.data.starts[x.i] + t] // self.labels - 1

    def mix_labels(self, x, y, taken, mixture):
        start = x.data.starts[x.i]
        for t in range(length(x)):
            mixture[t] = y[t] if taken[t] else x.data.labels[start + t]

    def scatter(self, x, mu, row):
        if row.additive():
            for k in range(n_units(self, x, mu)):
                for e in range(write_unit(self, x, mu, k)):
                    row.add_entry(mu.columns[e], mu.entries[e])
            return
        sum_up(self, x, mu)
        for k in range(mu.extent[BLOCKS]):
            first = np.uint64(mu.blocks[k] * STEP)
            for j in range(first, first + np.uint64(STEP)):
                if mu.sums[j] != 0.0:
                    row.add_entry(j, mu.sums[j])

    def weighted_squared_norm(self, x, mu, weights):
        sum_up(self, x, mu)
        total = 0.0
        for k in range(mu.extent[BLOCKS]):
            first = np.uint64(mu.blocks[k] * STEP)
            for j in range(first, first + np.uint64(STEP)):
                g = np.float64(mu.sums[j])
                if g != 0.0:
                    total += weights.at(j) * g * g
        return total

    def gram_matrix(self, x, outputs, count, mu, products):
        for k in range(count):
            self.add_difference(x, outputs[k], 1.0, mu, True)
            sum_up(self, x, mu)
            for m in range(k, count):
                forget_parts(self, x, mu)
                self.add_difference(x, outputs[m], 1.0, mu, False)
                products[k, m] = product(self, x, mu)
                products[m, k] = products[k, m]


@shared_kernel
def score_tree(tree, x, weights, theta):
    """Score all parts."""
    start, n = x.data.starts[x.i], length(x)
    fill_arcs(theta.arcs, n, x.data.ptr[start : start + n + 1], x.data.heads)
    score_relations(tree, x, weights, theta)
    choose_relations(tree, x, theta)
    if tree.order == 2:
        score_pairs(tree, x, weights, theta)


@shared_kernel
def best_tree(tree, x, theta, y):
    """Leave the best output in ``y``; returns its score, minus infinity where there is none."""
    n = length(x)
    score = tree.search.find_tree(n, theta.arcs, theta.scores, theta.space, theta.heads)
    if score > -math.inf:
        write_codes(tree, n, theta, theta.best, y)
    return score


@shared_kernel
def violation_of(tree, x, theta, y):
    """As ``margin_of``, but where gold wins any positive number will do."""
    best_tree(tree, x, theta, y)
    z = lead_of_gold(tree, x, theta, y)
    if is_gold(x, y):
        return 1.0 if z == 0.0 else z  # scores that are not finite must show
    return 0.0 if z > 0.0 else z  # found before gold, so not behind it but for rounding


@shared_kernel
def margin_of(tree, x, theta, y):
    """Score of gold minus that of the best other output, which is left in ``y``."""
    best_tree(tree, x, theta, y)
    if is_gold(x, y):
        if rank_trees(tree, x, theta, None, 2) < 2:
            return UNRIVALLED
        second = theta.ranking.order[1]
        for m in range(length(x)):
            y[m] = theta.ranking.codes[second, m]
    return lead_of_gold(tree, x, theta, y)


@shared_kernel
def seek_tree(tree, x, theta, cost, sign, y):
    """Leave in ``y`` the output of the highest score plus ``sign`` times cost."""
    n = length(x)
    charge_relations(tree, x, theta, cost, sign)
    tree.search.find_tree(n, theta.arcs, theta.trial, theta.space, theta.heads)
    write_codes(tree, n, theta, theta.trial_best, y)
    return lead_of_gold(tree, x, theta, y), tree.output_cost(x, cost, y)


@helper
def is_gold(x, y):
    """Whether an output is the gold one."""
    start = x.data.starts[x.i]
    for m in range(length(x)):  # noqa: SIM110 - compiled
        if x.data.labels[start + m] != y[m]:
            return False
    return True


@shared_kernel
def clear_mu(tree, x, mu):
    """Set the weights of all parts, and the direction in full, to zero."""
    forget_parts(tree, x, mu)
    forget_sums(mu)


@shared_kernel
def lead_of_gold(tree, x, theta, y):
    """Score of the gold tree minus that of another one."""
    n, start, z = length(x), x.data.starts[x.i], 0.0
    for m in range(1, n + 1):
        gold = x.data.labels[start + m - 1]
        if gold != y[m - 1]:
            z += relation_score(tree, theta, n, m, gold)
            z -= relation_score(tree, theta, n, m, y[m - 1])
    if tree.order == 2:
        parts = theta.parts
        read_heads(tree, n, x.data.labels, start, theta.heads)
        parts_of(theta.arcs, n, theta.heads, parts[0], parts[1], parts[2])
        z += pair_score(theta, n, parts[0], parts[1], parts[2])
        read_heads(tree, n, y, 0, theta.heads)
        parts_of(theta.arcs, n, theta.heads, parts[0], parts[1], parts[2])
        z -= pair_score(theta, n, parts[0], parts[1], parts[2])
    return z


@shared_kernel
def expect_trees(tree, x, theta, coef, mu):
    """Set ``mu`` to ``coef`` (gold minus expectation); returns -log P(gold)."""
    n, width = length(x), tree.width
    clear_mu(tree, x, mu)
    mu.extent[WHOLE] = 1
    soften(tree, n, theta, 1.0, Hamming(1.0), x, False)
    total = tree.search.part_means(n, theta.arcs, theta.trial, theta.space, theta.means)
    for a in range(theta.arcs.first[n + 1]):
        mean = theta.means.arcs[a]
        for c in range(a * width, a * width + tree.labels):
            share = math.exp(np.float64(theta.relations[c]) - theta.trial.arcs[a])
            mu.relations.values[c] = -coef * mean * share
    if tree.order == 2:
        expected_pairs(theta, n, -coef, mu)
    return total - add_gold(tree, x, theta, coef, mu)


@shared_kernel
def expect_cost_of_trees(tree, x, theta, cost, inverse_temperature, coef, mu):
    """Set ``mu`` to ``-coef`` times the slope of the expected cost, which is returned."""
    n, start, width, risk = length(x), x.data.starts[x.i], tree.width, 0.0
    clear_mu(tree, x, mu)
    mu.extent[WHOLE] = 1
    soften(tree, n, theta, inverse_temperature, cost, x, True)
    tree.search.part_slopes(
        *(n, theta.arcs, theta.trial, theta.prices, theta.space, theta.means, theta.slopes)
    )
    for a in range(theta.arcs.first[n + 1]):
        mean, slope, price = theta.means.arcs[a], theta.slopes[a], theta.prices[a]
        risk += mean * price
        gold = x.data.labels[start + theta.arcs.mod[a] - 1]
        code = theta.arcs.head[a] * tree.labels
        for c in range(tree.labels):
            score = inverse_temperature * np.float64(theta.relations[a * width + c])
            share = math.exp(score - theta.trial.arcs[a])
            rest = mean * (cost.label_cost(gold, code + c) - price)
            mu.relations.values[a * width + c] = (
                -coef * inverse_temperature * share * (slope + rest)
            )
    return risk


@shared_kernel
def expect_good_trees(tree, x, theta, cost, inverse_temperature, coef, mu):
    """Set ``mu`` to ``coef`` (Q - P); returns the divergence of Q from P."""
    n, start, width = length(x), x.data.starts[x.i], tree.width
    arcs, means, values = theta.arcs, theta.means.arcs, mu.relations.values
    clear_mu(tree, x, mu)
    mu.extent[WHOLE] = 1
    soften(tree, n, theta, 1.0, cost, x, False)
    divergence = tree.search.part_means(n, arcs, theta.trial, theta.space, theta.means)
    for a in range(arcs.first[n + 1]):
        for c in range(a * width, a * width + tree.labels):
            share = math.exp(np.float64(theta.relations[c]) - theta.trial.arcs[a])
            values[c] = -coef * means[a] * share
    for a in range(arcs.first[n + 1]):
        gold, code, total = x.data.labels[start + arcs.mod[a] - 1], arcs.head[a], 0.0
        for c in range(tree.labels):
            if theta.relations[a * width + c] > -math.inf:  # nothing is wanted that is forbidden
                total += math.exp(
                    -inverse_temperature * cost.label_cost(gold, code * tree.labels + c)
                )
        theta.trial.arcs[a] = math.log(total) if total > 0.0 else -math.inf
    divergence -= tree.search.part_means(n, arcs, theta.trial, theta.space, theta.means)
    for a in range(arcs.first[n + 1]):
        gold, code = x.data.labels[start + arcs.mod[a] - 1], arcs.head[a]
        for c in range(tree.labels):
            if theta.relations[a * width + c] == -math.inf:
                continue
            good = -inverse_temperature * cost.label_cost(gold, code * tree.labels + c)
            mean = means[a] * math.exp(good - theta.trial.arcs[a])
            values[a * width + c] += coef * mean
            divergence += mean * (good - np.float64(theta.relations[a * width + c]))
    return max(0.0, divergence)


@helper
def gold_score(tree, x, theta):
    """Score of gold, whose second-order parts are left in ``theta.parts``."""
    n, start, total = length(x), x.data.starts[x.i], 0.0
    for m in range(1, n + 1):
        total += relation_score(tree, theta, n, m, x.data.labels[start + m - 1])
    if tree.order == 2:
        parts = theta.parts
        read_heads(tree, n, x.data.labels, start, theta.heads)
        parts_of(theta.arcs, n, theta.heads, parts[0], parts[1], parts[2])
        total += pair_score(theta, n, parts[0], parts[1], parts[2])
    return total


@helper
def add_gold(tree, x, theta, coef, mu):
    """Add ``coef`` times the parts of gold to weights of all parts; returns the score of gold."""
    n, start = length(x), x.data.starts[x.i]
    total = gold_score(tree, x, theta)
    for m in range(1, n + 1):
        gold = x.data.labels[start + m - 1]
        a = arc_of(theta.arcs, n, m, gold, tree.labels)
        if a >= 0:
            mu.relations.values[a * tree.width + gold % tree.labels] += coef
    if tree.order == 2:
        parts = theta.parts
        for m in range(1, n + 1):
            if parts[0, m] >= 0:
                mu.siblings.values[parts[0, m]] += coef
            if parts[1, m] >= 0:
                mu.lasts.values[parts[1, m]] += coef
            if parts[2, m] >= 0:
                mu.grands.values[parts[2, m]] += coef
    return total


@helper
def expected_pairs(theta, n, coef, mu):
    """``coef`` times the expectations of second-order parts."""
    arcs, means = theta.arcs, theta.means
    count = arcs.first[n + 1]
    for a in range(count):
        mu.lasts.values[a] = coef * means.lasts[a]
    for p in range(arcs.siblings[count]):
        mu.siblings.values[p] = coef * means.siblings[p]
    for p in range(arcs.grands[count]):
        mu.grands.values[p] = coef * means.grands[p]


def largest(data: Any, order: int, which: np.ndarray) -> Counts:
    """Most parts that one of these sentences has; of second order only where they count."""
    most = Counts(1, 1, 1)
    for i in which.tolist():
        start, stop = int(data.starts[i]), int(data.starts[i + 1])
        if order == 1:
            arcs = int(data.ptr[stop] - data.ptr[start])
            most = most._replace(arcs=max(most.arcs, arcs))
        else:
            counts = part_counts(data.ptr[start : stop + 1], data.heads, stop - start)
            most = Counts(*map(max, most, counts))
    return most

"""Label chains: a label for every token, scored by itself and with the labels before it."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, helper
from hopefear.core.interfaces import UNRIVALLED, Structure
from hopefear.core.workspace import new_workspace
from hopefear.structures.chain.mu import (
    BagProduct,
    ChainMu,
    add_cell,
    clear_parts,
    fill_bag,
    forget_parts,
    new_bag,
    put_block,
    scale_parts,
    scatter_edges,
    scatter_nodes,
)
from hopefear.structures.chain.searches import AStar
from hopefear.structures.chain.theta import (
    ChainTheta,
    Limits,
    cell,
    chain_shape,
    charge_nodes,
    copy_scores,
    expected_score,
    gold_path,
    is_gold,
    length,
    mix_paths,
    no_limits,
    price_nodes,
    score_nodes,
    score_rest,
    table_size,
    tables_used,
)
from hopefear.structures.lattice import (
    Scores,
    cost_covariances,
    marginals,
    n_tables,
    new_cost_sums,
    new_forward,
    new_space,
    padded_width,
    rival,
    viterbi,
)


@component(Structure)
class Chain(NamedTuple):
    """One label a token; parts are labels at positions, and label pairs (or triples) in a row.

    Coordinates lie in rows of ``width`` (the number of labels, rounded up so that a row fills
    whole vector registers): row a for attribute a, with one lane a label; behind them ``width``
    rows for plain transitions and for each edge attribute, one row a label and one lane the label
    before; for second order then one row for each label pair, with the label before those.

    Parameters
    ----------
    attributes, edge_attributes : int
        Number of attributes that fire on labels, and of those that fire on label pairs.
    labels : int
        Number of labels.
    order : int
        1: pairs of labels; 2: triples as well.
    search : Search
        How the n best are found.
    limits : Limits
        Outputs that are not allowed are never found.
    transitions : bool
        False: label pairs have no weight by themselves, only with edge attributes.
    width : int
        Set by ``new``.

    Notes
    -----
    Of outputs with equal scores the one with the lower label at the first difference comes first.
    """

    attributes: int
    edge_attributes: int
    labels: int
    order: int
    search: Any
    limits: Limits
    transitions: bool
    width: int

    @classmethod
    def new(
        cls,
        attributes: int,
        labels: int,
        edge_attributes: int = 0,
        order: int = 1,
        search: Any = None,
        limits: Limits | None = None,
        transitions: bool = True,
    ) -> Chain:
        """A chain; see the class for the parameters.

        Examples
        --------
        >>> Chain.new(attributes=10, labels=3).weight_blocks()
        ((0, 14, 4),)
        """
        return cls(
            attributes,
            edge_attributes,
            labels,
            order,
            AStar() if search is None else search,
            no_limits() if limits is None else limits,
            transitions,
            padded_width(labels),
        )

    @property
    def n_labels(self):
        return self.labels

    def weight_blocks(self):
        pairs = (1 + self.edge_attributes) * self.width
        triples = self.width * self.width if self.order == 2 else 0
        return ((0, self.attributes + pairs + triples, self.width),)

    def why_unsupported(self, inference):
        if inference in ("cost", "labels", "nbest", "expectation", "risk", "places"):
            return ""
        if inference == "worst":
            return "no sequence of labels is worse than all; use away=fear or away=prediction"
        if inference == "heads":
            return "tokens have no heads; use jj=runs or jj=segments"
        return "labels have no costs of their own; use the cost hamming"

    def workspace(self, data, loss, dtype):
        longest = int(np.diff(data.starts).max(initial=1))
        theta = self.search_space(longest, loss.n_outputs(), dtype, "risk" in loss.requires())
        # Of mixtures of gold and one output, an edge has two choices for each of its labels.
        cells = longest * max(2 * (loss.n_outputs() + 1), 2 ** (self.order + 1))
        mu = ChainMu(
            np.zeros_like(theta.scores.nodes),
            np.zeros_like(theta.scores.edges),
            np.zeros(longest, np.uint8),
            np.zeros(theta.scores.edges.size, np.uint8),
            np.zeros(min(theta.scores.edges.size, cells), np.int64),
            np.zeros(3, np.int64),
            new_bag(self._most_rows(data), self.width, dtype),
            np.zeros(1),
        )
        max_nnz = self._most_entries(data)
        return new_workspace(theta, mu, np.zeros(longest, np.int32), loss, max_nnz)

    def search_space(self, longest, depth, dtype, costs=False):
        """What scoring and searching sequences of so many tokens needs, and expecting costs."""
        shape = chain_shape(self)
        edges = np.zeros(n_tables(shape, longest) * table_size(self), dtype)
        return ChainTheta(
            Scores(np.zeros(longest * self.width, dtype), edges),
            Scores(np.zeros(longest * self.width, dtype), edges),
            new_space(shape, longest, max(2, depth), dtype=dtype, **self.search.room()),
            new_forward(shape, longest),
            np.zeros(longest, np.int32),
            new_cost_sums(shape, longest if costs else 0, dtype),
        )

    def _most_rows(self, data):
        """Most different rows that one sequence can touch."""
        attributes = np.diff(data.indptr[data.starts])
        most = int(attributes.max(initial=0)) + self.width
        if self.edge_attributes:
            most += int(np.diff(data.edge_indptr[data.starts]).max(initial=0)) * self.width
        return most + (self.width * self.width if self.order == 2 else 0)

    def _most_entries(self, data):
        """Most weights that gold, another output and mixtures of the two have in a sequence."""
        edges = self.order * np.diff(data.starts)
        if self.edge_attributes:
            edges = edges + np.diff(data.edge_indptr[data.starts])
        attributes = np.diff(data.indptr[data.starts])
        return (2 * attributes + 2 ** (self.order + 1) * edges).max(initial=0)

    def score(self, x, weights, theta):
        score_nodes(self, x, weights, theta.scores.nodes)
        score_rest(self, x, weights, theta.scores)

    def argmax(self, x, theta, y):
        viterbi(chain_shape(self), length(x), theta.scores, theta.space.table, y)

    def margin(self, x, theta, y, exact):
        if not exact:
            self.argmax(x, theta, y)
            z = self.margin_over(x, theta, y)
            if z == 0.0 and is_gold(x, y):
                return 1.0
            return 0.0 if z > 0.0 else z  # found before gold, so not behind it but for rounding
        gold = gold_path(x, theta.path)
        best = rival(chain_shape(self), length(x), theta.scores, theta.space, gold, y)
        return UNRIVALLED if best == -math.inf and is_gold(x, y) else self.margin_over(x, theta, y)

    def is_gold(self, x, y):
        return is_gold(x, y)

    def margin_over(self, x, theta, y):
        shape, scores, start = chain_shape(self), theta.scores, x.data.starts[x.i]
        width, gold, z = self.width, x.data.labels, 0.0
        for t in range(length(x)):
            right = gold[start + t]
            if right != y[t]:
                z += np.float64(scores.nodes[t * width + right])
                z -= np.float64(scores.nodes[t * width + y[t]])
            if t > 0:
                a, b = cell(shape, t, gold, start), cell(shape, t, y, 0)
                if a != b:
                    z += np.float64(scores.edges[a]) - np.float64(scores.edges[b])
        return z

    def output_cost(self, x, cost, y):
        start, total = x.data.starts[x.i], 0.0
        for t in range(length(x)):
            total += cost.label_cost(x.data.labels[start + t], y[t])
        return total

    def cost_augmented_argmax(self, x, theta, cost, sign, y):
        charge_nodes(self, x, theta, cost, sign)
        viterbi(chain_shape(self), length(x), theta.charged, theta.space.table, y)
        return self.margin_over(x, theta, y), self.output_cost(x, cost, y)

    def k_best(self, x, theta, cost, ratio, outputs):
        scores, space, longest = theta.scores, theta.space, theta.path.size
        if cost is not None:
            charge_nodes(self, x, theta, cost, 1.0)
            scores = theta.charged
        n = outputs.shape[0]
        count = self.search.find(chain_shape(self), length(x), scores, space, n, ratio)
        for k in range(count):
            for t in range(length(x)):
                outputs[k, t] = space.paths[k * longest + t]
        return count

    def add_difference(self, x, y, coef, mu, clear):
        if clear:
            clear_parts(self, x, mu)
        shape, width = chain_shape(self), self.width
        gold, start = x.data.labels, x.data.starts[x.i]
        mu.bag.used[1] = 0
        for t in range(length(x)):
            right = gold[start + t]
            if right != y[t]:
                mu.live[t] = 1
                mu.nodes[t * width + right] += coef
                mu.nodes[t * width + y[t]] -= coef
            if t > 0:
                a, b = cell(shape, t, gold, start), cell(shape, t, y, 0)
                if a != b:
                    add_cell(mu, a, coef)
                    add_cell(mu, b, -coef)

    def kl_and_gradient(self, x, theta, cost, inverse_temperature, coef, mu):
        if cost is None:
            value = surprise(self, x, theta, coef, mu)
            return value, value < 0.6  # gold has over half of the probability
        return divergence(self, x, theta, cost, inverse_temperature, coef, mu), False

    def risk_and_gradient(self, x, theta, cost, inverse_temperature, coef, mu):
        T, sums = length(x), theta.sums
        copy_scores(self, T, theta.scores, inverse_temperature, sums.scores)
        price_nodes(self, x, cost, sums.prices)
        out = Scores(mu.nodes, mu.edges)
        risk = cost_covariances(chain_shape(self), T, sums.scores, sums, theta.forward, out)
        scale_parts(self, T, mu, -coef * inverse_temperature)
        return risk

    def n_positions(self, x):
        return length(x)

    def wrong_at(self, x, y, t):
        return x.data.labels[x.data.starts[x.i] + t] != y[t]

    def mix_labels(self, x, y, taken, mixture):
        mix_paths(x, y, taken, mixture)

    def scatter(self, x, mu, row):
        if row.additive():
            scatter_nodes(self, x, mu, row)
            scatter_edges(self, x, mu, row)
            return
        fill_bag(self, x, mu)
        width, bag = np.uint64(self.width), mu.bag
        for k in range(bag.used[0]):
            base, at = np.uint64(bag.rows[k]) * width, np.uint64(k) * width
            put_block(row, base, bag.sums, at, width)

    def weighted_squared_norm(self, x, mu, weights):
        fill_bag(self, x, mu)
        width, bag, total = self.width, mu.bag, 0.0
        for k in range(bag.used[0]):
            for c in range(width):
                g = np.float64(bag.sums[k * width + c])
                if g != 0.0:
                    total += weights.at(np.uint64(bag.rows[k] * width + c)) * g * g
        return total

    def gram_matrix(self, x, outputs, count, mu, products):
        row = BagProduct(mu.bag, self.width, mu.total)
        for k in range(count):
            self.add_difference(x, outputs[k], 1.0, mu, True)
            fill_bag(self, x, mu)
            for m in range(k, count):
                forget_parts(self, x, mu)
                self.add_difference(x, outputs[m], 1.0, mu, False)
                mu.total[0] = 0.0
                scatter_nodes(self, x, mu, row)
                scatter_edges(self, x, mu, row)
                products[k, m] = mu.total[0]
                products[m, k] = mu.total[0]


@helper
def surprise(chain, x, theta, coef, mu):
    """Sets ``mu`` to ``coef`` times (gold minus expectation); returns -log P(gold)."""
    shape, T, width = chain_shape(chain), length(x), chain.width
    gold, start = x.data.labels, x.data.starts[x.i]
    total = marginals(shape, T, theta.scores, theta.forward, Scores(mu.nodes, mu.edges))
    scale_parts(chain, T, mu, -coef)
    for t in range(T):
        right = t * width + gold[start + t]
        mu.nodes[right] += coef
        total -= np.float64(theta.scores.nodes[right])
        if t > 0:
            a = cell(shape, t, gold, start)
            mu.edges[a] += coef
            total -= np.float64(theta.scores.edges[a])
    return total


@helper
def divergence(chain, x, theta, cost, inverse_temperature, coef, mu):
    """Sets ``mu`` to ``coef`` times (Q - P), Q by costs; returns the divergence of Q from P."""
    shape, T, sums = chain_shape(chain), length(x), theta.sums
    price_nodes(chain, x, cost, sums.prices)
    # Nothing is wanted that is forbidden, by limits or by scores.
    copy_scores(chain, T, theta.scores, 0.0, sums.scores)
    for q in range(T * chain.width):
        if theta.scores.nodes[q] > -math.inf:
            sums.scores.nodes[q] = -inverse_temperature * sums.prices[q]
    out = Scores(mu.nodes, mu.edges)
    value = -marginals(shape, T, sums.scores, theta.forward, out)
    value += expected_score(chain, T, out, sums.scores)
    copy_scores(chain, T, out, 1.0, sums.scores)
    value -= expected_score(chain, T, out, theta.scores)
    value += marginals(shape, T, theta.scores, theta.forward, out)
    scale_parts(chain, T, mu, -coef)
    part = mu.nodes.dtype.type(coef)
    for q in range(T * chain.width):
        mu.nodes[q] += part * sums.scores.nodes[q]
    for q in range(tables_used(chain, T) * table_size(chain)):
        mu.edges[q] += part * sums.scores.edges[q]
    return max(0.0, value)


def bytes_needed(chain: Any, longest: int, depth: int) -> int:
    """Roughly what searching a sequence of so many tokens takes."""
    width, room = chain.width, chain.search.room()
    states = width * width if chain.order == 2 else width
    tables = longest if chain.edge_attributes else chain.order
    lists = states * depth if room.get("lists") else 0
    kept = room.get("width", 0)
    per_token = 4 * (2 * width + states + lists + kept) + 16 * depth + 24 * states
    return longest * per_token + 16 * tables * states * width + 8 * kept * width

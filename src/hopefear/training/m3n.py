"""Max-margin Markov networks on label chains (Taskar, Guestrin and Koller, 2003)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, helper, kernel
from hopefear.core.interfaces import GradientSink
from hopefear.core.workspace import DenseWeights, Example, Ones
from hopefear.errors import CombinationError, ModelError
from hopefear.structures.chain.chain import Chain
from hopefear.structures.chain.mu import add_cell, clear_parts
from hopefear.structures.chain.theta import length, table_size, tables_used
from hopefear.training.frank_wolfe import (
    Blocks,
    BlockTrainer,
    FrankWolfe,
    account,
    keep,
    step_length,
)
from hopefear.training.margins import empty, new_gathered, stretches


@dataclass(frozen=True)
class M3N(FrankWolfe):
    """Structured SVM of chains whose dual variables are marginals of labels and label pairs.

    ``min_w  sum_i max_y (cost_iy - (score_i,gold - score_iy)) + l2 * sum_j w_j**2``

    The dual has a distribution over all label sequences of a sentence, and needs no more of it
    than its marginals: of each label at each token, and of label pairs. Steps are those of
    block-coordinate Frank-Wolfe over these polytopes, so the optimum is that of ``FrankWolfe``.

    Notes
    -----
    What a sentence has in memory grows with labels that were ever feared at its tokens, not with
    their attributes; inner products with the weights are sums over parts. The marginals can be
    looked at (``MarginalTrainer.marginals``): a token whose gold label has less than 1 holds the
    margin, and the others hold nothing.

    References
    ----------
    Taskar, Guestrin and Koller. Max-margin Markov networks. NIPS 2003.
    Lacoste-Julien et al. Block-coordinate Frank-Wolfe optimization for structural SVMs. ICML 2013.

    Examples
    --------
    >>> M3N(l2=0.5).method()
    'marginal-frank-wolfe'
    """

    def method(self) -> str:
        return "marginal-frank-wolfe"

    def trainer(
        self, structure: Any, rows: Any, start: np.ndarray | None = None, n_jobs: int = 1
    ) -> MarginalTrainer:
        """This learner at work on some sentences."""
        if not isinstance(structure, Chain):
            raise CombinationError(
                f"M3N and {type(structure).__name__}: marginals are those of label chains; use "
                "ssvm-bcfw, which has the same optimum"
            )
        return MarginalTrainer(structure, self, rows, start, n_jobs)


class MarginalTrainer(BlockTrainer):
    """Block-coordinate Frank-Wolfe over marginals at work."""

    blocks: MarginalBlocks

    def new_blocks(self, loss: Any) -> MarginalBlocks:
        return MarginalBlocks(self.structure, loss, self.rows, self.learner.l2)

    def marginals(self, i: int) -> np.ndarray:
        """Dual probabilities ``[token, label]`` of a sentence of weight above 0.

        They are those of the distribution over label sequences that the weights are made of, not
        of a model of the data: at tokens that hold no margin gold has 1.
        """
        starts, labels, width = self.rows.starts, self.structure.labels, self.structure.width
        gold = self.rows.labels[starts[i] : starts[i + 1]]
        parts, values = self.blocks.block(i)
        nodes = np.zeros(gold.size * width)
        here = parts < nodes.size
        nodes[parts[here]] = -values[here] / float(self.rows.weights[i])
        shares = nodes.reshape(-1, width)[:, :labels]
        shares[np.arange(gold.size), gold] += 1.0
        return shares

    def pair_counts(self, i: int) -> np.ndarray:
        """Expected counts ``[label, label before]`` of a first-order chain without edge attributes.

        A row or column sums to the marginals of the labels at the tokens that it stands for.
        """
        chain, starts, width = self.structure, self.rows.starts, self.structure.width
        if chain.order != 1 or chain.edge_attributes:
            raise CombinationError(
                "pair_counts is for chains of order 1 without edge attributes; use marginals"
            )
        gold = self.rows.labels[starts[i] : starts[i + 1]]
        parts, values = self.blocks.block(i)
        here = parts >= gold.size * width
        counts = np.zeros(width * width)
        counts[parts[here] - gold.size * width] = -values[here] / float(self.rows.weights[i])
        counts = counts.reshape(width, width)
        np.add.at(counts, (gold[1:], gold[:-1]), 1.0)
        return counts[: chain.labels, : chain.labels]


class MarginalBlocks(Blocks):
    """Gold minus the marginals of every sentence, as sparse rows of parts.

    Part ``t * width + label`` is a label at a token; behind them come the entries of edge tables.
    """

    def __init__(self, structure: Any, loss: Any, rows: Any, l2: float) -> None:
        super().__init__(structure, loss, rows, l2)
        # Marginals may have any number of label pairs, one output has few.
        mu = self._work.mu
        parts = mu.nodes.size + mu.edges.size
        self._work = self._work._replace(mu=mu._replace(cells=np.zeros(mu.edges.size, np.int64)))
        self._row = new_gathered(parts)
        self.kernel = step_marginals

    def block(self, i: int) -> tuple[np.ndarray, np.ndarray]:
        """Parts of a sentence that differ from gold, and by how much."""
        stretch = slice(self.first[i], self.first[i] + self.size[i])
        return self.columns[stretch], self.entries[stretch]

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        chain = self.structure
        # There is room for the longest sentence; others have fewer parts.
        parts = [
            T * chain.width + tables_used(chain, T) * table_size(chain)
            for T in np.diff(self.rows.starts).tolist()
        ]
        columns = self.columns[stretches(self.first, self.size)]
        if (columns >= np.repeat(parts, self.size)).any():
            raise ModelError("a block holds parts that its sentence does not have")


@component(GradientSink)
class Moved(NamedTuple):
    """A row that moves weights, and the sums that their average is made of."""

    weights: np.ndarray
    averaging: np.ndarray
    step: float
    share: float

    def add_entry(self, j, g):
        self.weights[j] += self.step * g
        if self.averaging.size:
            self.averaging[j] += self.share * self.step * g


@kernel
def step_marginals(
    structure, loss, data, order, done, work, l2, w, moved, whole, b, first, size, columns, entries,
    used, row, averaging, books,
):  # fmt: skip
    """As ``step_blocks``, on parts; coordinates come up for a step's length and its taking."""
    for p in range(done, order.size):
        i = order[p]
        x = Example(data, i)
        theta, mu, nodes = work.theta.scores, work.mu, length(x) * structure.width
        structure.score(x, DenseWeights(w), work.theta)
        forced = loss.subgradient(structure, x, work) > 0
        value = work.loss[0] if forced else 0.0
        if not forced:
            clear_parts(structure, x, mu)
        before = 0.0
        for e in range(first[i], first[i] + size[i]):
            q = columns[e]
            before += score_of(theta, nodes, q) * entries[e]
            row.add_entry(np.uint64(q), -entries[e])
        gather(structure, mu, nodes, row)
        count = row.filled[0]
        if used[0] + count > columns.size:
            empty(row)
            return p
        along = 0.0
        for k in range(count):
            q = row.touched[k]
            along += score_of(theta, nodes, q) * row.sums[q]
        for e in range(first[i], first[i] + size[i]):
            take_off(structure, mu, nodes, columns[e], entries[e])
        mu.bag.used[1] = 0
        square = structure.weighted_squared_norm(x, mu, Ones(1.0))
        taken = 1.0 if whole else step_length(value - (b[i] - before), square, l2)
        share = account(averaging, books, b, i, taken * (value + along + before - b[i]))
        if taken > 0.0:
            structure.scatter(x, mu, Moved(moved, averaging, taken / (2.0 * l2), share))
            keep(row, taken, i, first, size, columns, entries, used)
        empty(row)
    return order.size


@helper
def score_of(theta, nodes, q):
    """Score of a part."""
    return np.float64(theta.nodes[q]) if q < nodes else np.float64(theta.edges[q - nodes])


@helper
def gather(chain, mu, nodes, row):
    """Put the weights of all parts into a row."""
    for q in range(nodes):
        if mu.live[q // chain.width] and mu.nodes[q] != 0.0:
            row.add_entry(np.uint64(q), mu.nodes[q])
    for k in range(mu.extent[2]):
        q = mu.cells[k]
        if mu.edges[q] != 0.0:
            row.add_entry(np.uint64(nodes + q), mu.edges[q])


@helper
def take_off(chain, mu, nodes, q, amount):
    """Take something off the weight of a part."""
    if q < nodes:
        mu.live[q // chain.width] = 1
        mu.nodes[q] -= amount
    else:
        add_cell(mu, q - nodes, -amount)

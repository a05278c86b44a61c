"""Which arcs are worth a look: a small first-order parser leaves each word its likeliest heads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopefear.averaging.averaged import Averaged
from hopefear.core.arrays import frozen_as
from hopefear.core.component import kernel
from hopefear.core.interfaces import n_weights
from hopefear.core.learner import Learner
from hopefear.core.progress import stage
from hopefear.core.workspace import DenseWeights, Example
from hopefear.costs.hamming import Hamming
from hopefear.data.tree_rows import TreeDataset, TreeRows
from hopefear.features.arcs.feature_hashing import hashed_arcs
from hopefear.features.arcs.templates import ArcTemplates
from hopefear.losses.log import Log
from hopefear.rules.sgd import SGD
from hopefear.structures.tree.searches import tree_search
from hopefear.structures.tree.theta import soften
from hopefear.structures.tree.tree import Tree, best_tree
from hopefear.training.decoders.trees import search_trees
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes
from hopefear.training.predictors import predictor_from_arrays

TEMPLATES = ArcTemplates.named("light")
BITS = 20
EPOCHS = 4
# Heads a word keeps, and how probable they are at least, compared with the best one.
HEADS = 10
LEAST = 1e-4


@dataclass(frozen=True)
class Pruner:
    """A first-order model of unlabelled trees, and what it leaves of each word's heads.

    A head stays if it is among the ``heads`` likeliest of its word and at least ``least`` times as
    likely as the likeliest. Those of the best tree and the word before always stay, so that there
    is a tree.

    Parameters
    ----------
    predictor : Predictor
        Weights of the features.
    projective, single : bool
        Which trees there are.
    heads : int
        Most heads of a word.
    least : float
        Least probability, compared with that of the best head.
    """

    predictor: Any
    projective: bool
    single: bool
    heads: int = HEADS
    least: float = LEAST

    @classmethod
    def fit(cls, data: TreeDataset, heads: int, seed: int = 1) -> Pruner:
        """Learn from trees without relations; their order is that of :class:`Passes`."""
        kind = data.kind
        structure = pruning_tree(kind.projective, kind.single)
        rule = SGD(rate=0.1, decay=0.8, period=float(len(data)))
        trainer = OnlineTrainer(structure, Learner(Log(), rule, Averaged(), "all"))
        passes = Passes(data, seed)
        with stage("which heads are likely", EPOCHS * passes.n, "sentences") as work:
            for epoch in range(EPOCHS):
                for rows, order in passes.pieces(epoch):
                    trainer.learn(rows, order)
                    work.advance(order.size)
        return cls(trainer.predictor(), kind.projective, kind.single, heads)

    def prune(
        self, rows: Any, gold: np.ndarray | None = None, n_jobs: int = 1
    ) -> tuple[np.ndarray, np.ndarray]:
        """The arcs that stay, as ``TreeRows`` has them; those of gold heads too, where given."""
        structure = pruning_tree(self.projective, self.single)
        weights = DenseWeights(self.predictor.weights)
        keep = np.zeros(rows.heads.size, bool)
        heads = np.zeros(rows.labels.size, np.int32)

        def work(theta, which):
            prune_all(structure, weights, rows, which, theta, heads, self.heads, self.least, keep)

        space = {"depth": 1, "dtype": np.float32, "expecting": True}
        search_trees(structure, rows, work, n_jobs, "heads worth a look", **space)
        owners = np.repeat(np.arange(rows.labels.size), np.diff(rows.ptr))
        if gold is not None:
            keep |= rows.heads == gold[owners]
        counts = np.bincount(owners[keep], minlength=rows.labels.size)
        return np.concatenate([[0], np.cumsum(counts)]), rows.heads[keep]

    def chosen(self, data: TreeDataset, heads: np.ndarray, n_jobs: int = 1) -> TreeDataset:
        """Training trees with the arcs that stay, those of their heads among them."""
        return data.with_arcs(*self.prune(plain_rows(data.rows, heads), heads, n_jobs), self)

    def to_header(self) -> dict[str, Any]:
        return {
            "projective": self.projective,
            "single": self.single,
            "heads": self.heads,
            "least": self.least,
        }

    def arrays(self) -> dict[str, np.ndarray]:
        return {f"pruner.{name}": array for name, array in self.predictor.arrays().items()}

    @classmethod
    def from_parts(cls, header: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Pruner:
        """From what a file holds; nothing in it is trusted."""
        from hopefear.storage import field_of

        own = {k.removeprefix("pruner."): v for k, v in arrays.items() if k.startswith("pruner.")}
        projective, single = (field_of(header, name, bool) for name in ("projective", "single"))
        size = n_weights(pruning_tree(projective, single))
        return cls(
            predictor_from_arrays(own, size),
            projective,
            single,
            field_of(header, "heads", int),
            float(field_of(header, "least", float, int)),
        )


def plain_rows(rows: TreeRows, heads: np.ndarray) -> TreeRows:
    """The rows of trees without relations: labels are heads."""
    return rows._replace(labels=frozen_as(heads, rows.labels.dtype))


def pruning_tree(projective: bool, single: bool) -> Tree:
    """First-order trees without relations."""
    features = hashed_arcs(TEMPLATES, BITS, 8)
    return Tree.new(features, 1, tree_search(1, projective, single))


@kernel
def prune_all(tree, weights, data, which, theta, y, most, least, keep):
    """Mark the arcs that stay, of the sentences ``which``."""
    for i in which:
        x = Example(data, i)
        start, n = data.starts[i], data.starts[i + 1] - data.starts[i]
        tree.score(x, weights, theta)
        best_tree(tree, x, theta, y[start : start + n])
        soften(tree, n, theta, 1.0, Hamming(1.0), x, False)
        tree.search.part_means(n, theta.arcs, theta.trial, theta.space, theta.means)
        means, place = theta.means.arcs, data.ptr[start]
        for m in range(1, n + 1):
            begin, end = theta.arcs.first[m], theta.arcs.first[m + 1]
            top = 0.0
            for a in range(begin, end):
                top = max(top, means[a])
            for a in range(begin, end):
                ahead = 0
                for b in range(begin, end):
                    ahead += means[b] > means[a] or (means[b] == means[a] and b < a)
                likely = ahead < most and means[a] >= least * top
                head = theta.arcs.head[a]
                keep[place + a] = likely or head == y[start + m - 1] or head == m - 1

"""Decodes trees: the best, the k best, probabilities of arcs and of whole trees."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hopefear.core.component import kernel, shared_kernel
from hopefear.core.interfaces import inferences_of
from hopefear.core.progress import stage
from hopefear.core.workspace import DenseWeights, Example
from hopefear.costs.hamming import Hamming
from hopefear.errors import HopefearError
from hopefear.structures.tree.ranking import rank_trees
from hopefear.structures.tree.theta import length, soften
from hopefear.structures.tree.tree import best_tree, gold_score
from hopefear.training.decoders.base import Decoder, KBest, check_k, in_blocks, k_best_paths

# Trees that stand for all where no sum over all can be had.
_SOME = 20
_TOGETHER = 64  # sentences between two words on how far the work is


class TreeDecoder(Decoder):
    """Weights on trees: see :class:`~hopefear.training.decoders.base.Decoder`.

    Attributes
    ----------
    proved : int or None
        How many of the trees that were asked for last are proved best; None where all are, by the
        search.
    """

    proved: int | None = None

    def __init__(
        self, structure: Any, predictor: Any, temperature: float = 1.0, n_jobs: int = 1
    ) -> None:
        if not predictor.linear:
            raise HopefearError("trees are not decided by vote; use averaging=averaged")
        super().__init__(structure, predictor, temperature, n_jobs)

    @property
    def sums(self) -> bool:
        """Whether probabilities are those of all trees; else they are shares of the 20 best."""
        return "expectation" in inferences_of(self.structure)

    def predict(self, rows: Any) -> np.ndarray:
        """The best label of every token: ``head * relations + relation`` (int32)."""
        return self._parsed(rows)[0]

    def scores(self, rows: Any) -> np.ndarray:
        """Score of the best tree of every sentence."""
        return self._parsed(rows)[1]

    def _parsed(self, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        out, scores = np.zeros(rows.labels.size, np.int32), np.zeros(rows.weights.size)
        proved = np.ones(rows.weights.size, np.uint8)

        def work(weights, theta, which):
            parse_all(self.structure, weights, rows, which, theta, out, scores, proved)

        self._search(rows, work)
        self.proved = None if self.sums else int(proved.sum())
        if not np.isfinite(scores).all():
            i = int(np.flatnonzero(~np.isfinite(scores))[0])
            raise HopefearError(
                f"sentence {i + 1} has no tree that is allowed, or weights are not finite; loosen "
                "the constraints"
            )
        return out, scores

    def k_best(self, rows: Any, k: int) -> list[KBest]:
        """The ``k`` best trees of every sentence, with probabilities."""
        check_k(k)
        size = rows.weights.size
        paths = np.zeros(k * rows.labels.size, np.int32)
        scores, counts = np.zeros((size, k)), np.zeros(size, np.int64)

        def work(weights, theta, which):
            rank_all(self.structure, weights, rows, which, theta, k, paths, scores, counts)

        self._search(rows, work, depth=k)
        totals = self.log_totals(rows) if self.sums else None
        return k_best_paths(rows.starts, paths, scores, counts, self.temperature, totals)

    def probabilities(self, rows: Any) -> np.ndarray:
        """Probability of every arc of the rows, relations summed."""
        out = np.zeros(rows.heads.size)
        if self.sums:
            self._sums(rows, out)
            return out
        owners = np.repeat(np.arange(rows.labels.size), np.diff(rows.ptr))
        for i, best in enumerate(self.k_best(rows, _SOME)):
            first, last = rows.ptr[rows.starts[i]], rows.ptr[rows.starts[i + 1]]
            words = owners[first:last] - rows.starts[i]
            for path, share in zip(best.labels, best.shares, strict=True):
                heads = path // self.structure.labels
                out[first:last] += share * (heads[words] == rows.heads[first:last])
        return out

    def log_likelihoods(self, rows: Any) -> np.ndarray:
        """Log probability of the trees that ``rows`` has, for every sentence."""
        return np.subtract(*self._sums(rows))

    def log_totals(self, rows: Any) -> np.ndarray:
        """Log of the summed ``exp(score / temperature)`` of all trees, for every sentence."""
        return self._sums(rows)[1]

    def _sums(self, rows: Any, arcs: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Scores of gold, and log sums; ``arcs`` takes the probabilities of arcs."""
        gold, totals = np.zeros((2, rows.weights.size))
        arcs, inverse = np.empty(0) if arcs is None else arcs, 1.0 / self.temperature

        def work(weights, theta, which):
            sum_all(self.structure, weights, rows, which, theta, inverse, gold, totals, arcs)

        self._search(rows, work, expecting=True)
        return gold, totals

    def _search(
        self, rows: Any, work: Callable[..., Any], depth: int = 1, expecting: bool = False
    ) -> None:
        limited = self.structure.limits.size // max(1, self.structure.labels)
        if limited not in (0, rows.labels.size):
            raise HopefearError(
                f"relations are allowed for {limited:,} tokens, but there are "
                f"{rows.labels.size:,}; give a set of relations, or None, for every token"
            )
        weights = DenseWeights(self.predictor.weights)
        space = {"depth": depth, "dtype": self.predictor.weights.dtype, "expecting": expecting}
        search_trees(
            self.structure,
            rows,
            lambda theta, which: work(weights, theta, which),
            self.n_jobs,
            "trees",
            **space,
        )


def search_trees(
    structure: Any, rows: Any, work: Callable[..., Any], n_jobs: int, name: str, **space: Any
) -> None:
    """Does ``work(theta, which)`` on all sentences that have words, some at a time.

    Every thread has a theta made with ``space``; progress is shown under ``name``.
    """

    def run(block: np.ndarray) -> None:
        theta = structure.search_space(rows, which=block, **space)
        for first in range(0, block.size, _TOGETHER):
            some = block[first : first + _TOGETHER]
            work(theta, some)
            stretch.advance(some.size)

    count = int(np.count_nonzero(np.diff(rows.starts)))
    with stage(name, count, "sentences") as stretch:
        in_blocks(rows, rows.ptr[rows.starts], run, n_jobs)


@kernel
def parse_all(structure, weights, data, which, theta, out, scores, proved):
    """Best trees of the sentences ``which``, their scores, and whether they are proved best."""
    for i in which:
        x = Example(data, i)
        structure.score(x, weights, theta)
        scores[i] = best_tree(structure, x, theta, out[data.starts[i] : data.starts[i + 1]])
        proved[i] = structure.search.is_proved(theta.space)


@kernel
def rank_all(structure, weights, data, which, theta, n, paths, scores, counts):
    """The n best trees of the sentences ``which``."""
    for i in which:
        x = Example(data, i)
        structure.score(x, weights, theta)
        counts[i] = rank_trees(structure, x, theta, None, n)
        T, start = length(x), n * data.starts[i]
        for k in range(counts[i]):
            place = theta.ranking.order[k]
            paths[start + k * T : start + (k + 1) * T] = theta.ranking.codes[place, :T]
            scores[i, k] = theta.ranking.scores[place]


@kernel
def sum_all(structure, weights, data, which, theta, inverse, gold, totals, arcs):
    """Scores of gold and sums over all trees, at a temperature; probabilities of arcs, if asked."""
    for i in which:
        x = Example(data, i)
        structure.score(x, weights, theta)
        n, first = length(x), data.ptr[data.starts[i]]
        gold[i] = inverse * gold_score(structure, x, theta)
        soften(structure, n, theta, inverse, Hamming(1.0), x, False)
        if structure.order == 2:
            cool(theta.scores, theta.arcs, n, inverse)
        totals[i] = structure.search.part_means(
            n, theta.arcs, theta.trial, theta.space, theta.means
        )
        if arcs.size:
            for a in range(theta.arcs.first[n + 1]):
                arcs[first + a] = theta.means.arcs[a]


@shared_kernel
def cool(scores, arcs, n, inverse):
    """Multiply the scores of second-order parts."""
    count = arcs.first[n + 1]
    for a in range(count):
        scores.lasts[a] *= inverse
    for p in range(arcs.siblings[count]):
        scores.siblings[p] *= inverse
    for p in range(arcs.grands[count]):
        scores.grands[p] *= inverse

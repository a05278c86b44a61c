"""Searching whole treebanks with fixed weights: trees, n best, probabilities of arcs."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from hopefear.core.component import apart, kernel
from hopefear.core.progress import stage
from hopefear.core.workspace import Example, Plain
from hopefear.costs.hamming import Hamming
from hopefear.errors import HopefearError
from hopefear.structures.tree.theta import length, soften
from hopefear.structures.tree.tree import best_tree, gold_score
from hopefear.training.answers import Ranked, ranked_outputs

# Trees that stand for all where no sum over all can be had.
_SOME = 20
_TOGETHER = 64  # sentences between two words on how far the work is


class TreeDecoder:
    """Weights on trees: the :class:`~hopefear.training.answers.Answers` of sentences.

    Parameters
    ----------
    structure : Tree
        Trees and how they are searched.
    weights : float32 array
        One for each coordinate.
    temperature : float
        Scores are divided by it before they become probabilities.
    n_jobs : int
        Threads. Results do not depend on it.

    Attributes
    ----------
    proved : int or None
        How many of the trees that were asked for last are proved best; None where all are, by the
        search.
    """

    proved: int | None = None

    def __init__(
        self, structure: Any, weights: np.ndarray, temperature: float = 1.0, n_jobs: int = 1
    ) -> None:
        self.structure, self.weights, self.temperature = structure, weights, float(temperature)
        self.n_jobs = max(1, int(n_jobs))

    @property
    def sums(self) -> bool:
        """Whether probabilities are those of all trees; else they are shares of the 20 best."""
        return "expectation" in self.structure.offers()

    def best(self, rows: Any) -> np.ndarray:
        """The best label of every token: ``head * relations + relation`` (int32)."""
        return self._parsed(rows)[0]

    def scores(self, rows: Any) -> np.ndarray:
        """Score of the best tree of every sentence."""
        return self._parsed(rows)[1]

    def _parsed(self, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        out, scores = np.zeros(rows.labels.size, np.int32), np.zeros(rows.weights.size)
        proved = np.ones(rows.weights.size, np.uint8)

        def work(theta, which):
            parse_all(self.structure, Plain(self.weights), rows, which, theta, out, scores, proved)

        self._everywhere(rows, work, 1, False)
        self.proved = None if self.sums else int(proved.sum())
        if not np.isfinite(scores).all():
            i = int(np.flatnonzero(~np.isfinite(scores))[0])
            raise HopefearError(
                f"sentence {i + 1} has no tree that is allowed, or weights are not finite; loosen "
                "the constraints"
            )
        return out, scores

    def nbest(self, rows: Any, n: int) -> list[Ranked]:
        """The ``n`` best trees of every sentence, with probabilities."""
        if n < 1:
            raise HopefearError(f"n must be at least 1, not {n}")
        size = rows.weights.size
        paths = np.zeros(n * rows.labels.size, np.int32)
        scores, counts = np.zeros((size, n)), np.zeros(size, np.int64)

        def work(theta, which):
            rank_all(
                self.structure, Plain(self.weights), rows, which, theta, n, paths, scores, counts
            )

        self._everywhere(rows, work, n, False)
        totals = self.log_totals(rows) if self.sums else None
        return ranked_outputs(rows.starts, paths, scores, counts, self.temperature, totals)

    def arc_probabilities(self, rows: Any) -> np.ndarray:
        """Probability of every arc of the rows, relations summed."""
        if not self.sums:
            return self._shares(rows)
        out, totals, gold = np.zeros(rows.heads.size), *np.zeros((2, rows.weights.size))

        def work(theta, which):
            weights, inverse = Plain(self.weights), 1.0 / self.temperature
            sum_all(self.structure, weights, rows, which, theta, inverse, gold, totals, out)

        self._everywhere(rows, work, 1, True)
        return out

    def _shares(self, rows: Any) -> np.ndarray:
        out = np.zeros(rows.heads.size)
        owners = np.repeat(np.arange(rows.labels.size), np.diff(rows.ptr))
        for i, ranked in enumerate(self.nbest(rows, _SOME)):
            first, last = rows.ptr[rows.starts[i]], rows.ptr[rows.starts[i + 1]]
            words = owners[first:last] - rows.starts[i]
            for path, share in zip(ranked.labels, ranked.shares, strict=True):
                heads = path // self.structure.labels
                out[first:last] += share * (heads[words] == rows.heads[first:last])
        return out

    def log_likelihoods(self, rows: Any) -> np.ndarray:
        """Log probability of the trees that ``rows`` has, for every sentence."""
        return np.subtract(*self._sums(rows))

    def log_totals(self, rows: Any) -> np.ndarray:
        """Log of the summed ``exp(score / temperature)`` of all trees, for every sentence."""
        return self._sums(rows)[1]

    def _sums(self, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        gold, totals = np.zeros(rows.weights.size), np.zeros(rows.weights.size)
        nothing = np.empty(0)

        def work(theta, which):
            weights, inverse = Plain(self.weights), 1.0 / self.temperature
            sum_all(self.structure, weights, rows, which, theta, inverse, gold, totals, nothing)

        self._everywhere(rows, work, 1, True)
        return gold, totals

    def _everywhere(self, rows: Any, work: Callable[..., Any], depth: int, expecting: bool) -> None:
        limited = self.structure.limits.size // max(1, self.structure.labels)
        if limited not in (0, rows.labels.size):
            raise HopefearError(
                f"relations are allowed for {limited:,} tokens, but there are "
                f"{rows.labels.size:,}; give a set of relations, or None, for every token"
            )
        space = {"depth": depth, "dtype": self.weights.dtype, "expecting": expecting}
        on_threads(self.structure, rows, work, self.n_jobs, "trees", **space)


def on_threads(
    structure: Any, rows: Any, work: Callable[..., Any], n_jobs: int, name: str, **space: Any
) -> None:
    """Do ``work(theta, which)`` on all sentences that have words, some at a time.

    Every thread has a stretch of them, and a theta made with ``space`` for its own.
    """
    which = np.flatnonzero(np.diff(rows.starts) > 0)
    arcs = np.cumsum(rows.ptr[rows.starts[which + 1]] - rows.ptr[rows.starts[which]])
    cuts = np.searchsorted(arcs, np.linspace(0, arcs[-1:].sum(), n_jobs + 1)[1:-1])
    blocks = [block for block in np.split(which, cuts) if block.size]

    def run(block):
        theta = structure.search_space(rows, which=block, **space)
        with np.errstate(over="ignore"):  # hashes go round; uncompiled, a thread would warn
            for first in range(0, block.size, _TOGETHER):
                some = block[first : first + _TOGETHER]
                work(theta, some)
                stretch.advance(some.size)

    with stage(name, which.size, "sentences") as stretch:
        if len(blocks) > 1:
            with ThreadPoolExecutor(len(blocks)) as pool:
                list(pool.map(run, blocks))
        else:
            for block in blocks:
                run(block)


def decoder_of(structure: Any, predictor: Any, temperature: float = 1.0, n_jobs: int = 1) -> Any:
    """A decoder for weights, or the one that a predictor brings; votes have none."""
    if hasattr(predictor, "decoder"):
        return predictor.decoder(structure, temperature, n_jobs)
    if not predictor.linear:
        raise HopefearError("trees are not decided by vote; use readout=averaged")
    return TreeDecoder(structure, predictor.weights, temperature, n_jobs)


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
        counts[i] = structure.candidates(x, theta, None, n, 0.0)
        T, start = length(x), n * data.starts[i]
        for k in range(counts[i]):
            paths[start + k * T : start + (k + 1) * T] = structure.candidate(x, theta, k)
            scores[i, k] = theta.ranking.scores[theta.ranking.order[k]]


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


@apart
def cool(scores, arcs, n, inverse):
    """Multiply the scores of second-order parts."""
    count = arcs.first[n + 1]
    for a in range(count):
        scores.lasts[a] *= inverse
    for p in range(arcs.siblings[count]):
        scores.siblings[p] *= inverse
    for p in range(arcs.grands[count]):
        scores.grands[p] *= inverse

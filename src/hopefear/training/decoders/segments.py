"""Decodes segments: codes of tokens, the k best, probabilities of codes and of segments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from hopefear.core.component import helper, kernel
from hopefear.core.workspace import DenseWeights, Example
from hopefear.errors import HopefearError
from hopefear.structures.chain.theta import length
from hopefear.structures.segments.part_scores import (
    best_segments,
    rank_segments,
    segments_score,
)
from hopefear.structures.segments.segments import bytes_needed
from hopefear.structures.segments.sums import segment_marginals, sum_segments
from hopefear.training.decoders.base import Decoder, KBest, check_k, in_blocks, k_best_paths
from hopefear.training.decoders.chains import MOST_BYTES


class SegmentDecoder(Decoder):
    """Weights on segments: see :class:`~hopefear.training.decoders.base.Decoder`.

    Every answer is legal BIO, so there is nothing to relax: ``unlimited`` stays 0.
    """

    unlimited = 0

    def predict(self, rows: Any) -> np.ndarray:
        """The best code of every token (int32)."""
        return self._tagged(rows)[0]

    def scores(self, rows: Any) -> np.ndarray:
        """Score of the best output of every sequence (float64)."""
        return self._tagged(rows)[1]

    def _tagged(self, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        out, scores = np.zeros(rows.labels.size, np.int32), np.zeros(rows.weights.size)

        def work(weights: Any, theta: Any, which: np.ndarray) -> None:
            tag_all(self.structure, weights, rows, which, theta, out, scores)

        self._search(rows, work, scores)
        return out, scores

    def k_best(self, rows: Any, k: int) -> list[KBest]:
        """The ``k`` best outputs of every sequence, with probabilities."""
        check_k(k)
        lengths, inverse = np.diff(rows.starts), 1.0 / self.temperature
        paths = np.zeros(k * rows.labels.size, np.int32)
        scores, totals = np.zeros((lengths.size, k)), np.zeros(lengths.size)
        counts = np.zeros(lengths.size, np.int64)

        def work(weights: Any, theta: Any, which: np.ndarray) -> None:
            arrays = (paths, scores, totals, counts)
            nbest_all(self.structure, weights, rows, which, theta, k, inverse, *arrays)

        self._search(rows, work, totals, k)
        counts[lengths == 0] = 1  # of no tokens there is one output, and it is certain
        return k_best_paths(rows.starts, paths, scores, counts, self.temperature, totals)

    def probabilities(self, rows: Any) -> np.ndarray:
        """Probability of every code at every token (float64[tokens, labels])."""
        out, totals = np.zeros((rows.labels.size, self.structure.labels)), self._zeros(rows)
        inverse = 1.0 / self.temperature

        def work(weights: Any, theta: Any, which: np.ndarray) -> None:
            means = np.zeros_like(theta.spans), np.zeros_like(theta.pairs)
            marginals_all(self.structure, weights, rows, which, theta, inverse, *means, out, totals)

        self._search(rows, work, totals)
        return out

    def segment_probabilities(
        self, rows: Any, start: np.ndarray, end: np.ndarray, codes: np.ndarray
    ) -> np.ndarray:
        """Probability (float64) of segments with exactly these tokens and these first codes.

        Parameters
        ----------
        rows : SegmentRows
            Sequences.
        start, end : int arrays
            First tokens of the segments, rising, and the tokens behind them.
        codes : int array
            Codes of their first tokens.
        """
        out, totals, inverse = np.zeros(len(start)), self._zeros(rows), 1.0 / self.temperature
        cuts = np.searchsorted(start, rows.starts)
        label = np.full(self.structure.labels, -1)
        label[self.structure.begin] = np.arange(self.structure.begin.size)
        queries = np.stack([start, end, label[codes]])

        def work(weights: Any, theta: Any, which: np.ndarray) -> None:
            means = np.zeros_like(theta.spans), np.zeros_like(theta.pairs)
            arrays = (*means, cuts, queries, out, totals)
            segments_all(self.structure, weights, rows, which, theta, inverse, *arrays)

        self._search(rows, work, totals)
        return out

    def log_likelihoods(self, rows: Any) -> np.ndarray:
        """Log probability of the labels that ``rows`` has, for every sequence."""
        gold, totals, inverse = self._zeros(rows), self._zeros(rows), 1.0 / self.temperature

        def work(weights: Any, theta: Any, which: np.ndarray) -> None:
            total_all(self.structure, weights, rows, which, theta, inverse, gold, totals)

        self._search(rows, work, totals)
        return gold - totals

    def _zeros(self, rows: Any) -> np.ndarray:
        return np.zeros(rows.weights.size)

    def _search(
        self, rows: Any, work: Callable[..., None], scores: np.ndarray, depth: int = 1
    ) -> None:
        """Does ``work``, which fills ``scores``, on all sequences in blocks."""
        structure, weights = self.structure, self.predictor.weights
        limited = structure.limits.size // structure.labels
        if limited not in (0, rows.labels.size):
            raise HopefearError(
                f"labels are allowed for {limited:,} tokens, but there are {rows.labels.size:,}; "
                "give a set of labels, or None, for every token"
            )
        lengths = np.diff(rows.starts)

        def run(which: np.ndarray) -> None:
            longest = int(lengths[which].max(initial=1))
            if (size := bytes_needed(structure, longest, depth)) > MOST_BYTES:
                raise HopefearError(
                    f"a sequence of {longest:,} tokens needs {size / 2**30:.1f} GiB to be "
                    f"searched, the limit is {MOST_BYTES >> 30} GiB; split it"
                )
            work(
                DenseWeights(weights), structure.search_space(longest, depth, weights.dtype), which
            )

        in_blocks(rows, rows.starts, run, self.n_jobs)
        if np.isnan(scores).any() or (scores == np.inf).any():
            raise HopefearError("scores are not finite; the model's weights are unusable")
        if (scores == -np.inf).any():
            raise HopefearError(
                f"sequence {int(np.argmin(scores)) + 1} has no segments of the labels allowed"
            )


@kernel(refcount=False)
def tag_all(structure, weights, data, which, theta, out, scores):
    """Best codes of the sequences ``which``."""
    for i in which:
        x = Example(data, i)
        structure.score(x, weights, theta)
        T, start = length(x), data.starts[i]
        scores[i] = best_segments(structure, T, theta.spans, theta.pairs, theta, theta.path)
        for t in range(T):
            out[start + t] = theta.path[t]


@kernel(refcount=False)
def nbest_all(structure, weights, data, which, theta, n, inverse, paths, scores, totals, counts):
    """The ``n`` best of the sequences ``which``, and their log partition sums."""
    for i in which:
        x = Example(data, i)
        structure.score(x, weights, theta)
        T, start, tokens = length(x), n * data.starts[i], theta.path.size
        counts[i] = rank_segments(structure, T, theta.spans, theta, n, 0.0)
        for k in range(counts[i]):
            scores[i, k] = theta.ranking.scores[k]
            for t in range(T):
                paths[start + k * T + t] = theta.ranking.paths[k * tokens + t]
        cool(theta, inverse)
        totals[i] = sum_segments(structure, T, theta.spans, theta.pairs, theta.logs)


@kernel(refcount=False)
def total_all(structure, weights, data, which, theta, inverse, gold, totals):
    """Log partition sums of the sequences ``which``, and scores of the labels in the data.

    Labels that are no segments get minus infinity.
    """
    for i in which:
        x = Example(data, i)
        structure.score(x, weights, theta)
        T, start = length(x), data.starts[i]
        cool(theta, inverse)
        totals[i] = sum_segments(structure, T, theta.spans, theta.pairs, theta.logs)
        gold[i] = segments_score(structure, T, theta, data.labels, start)


@kernel(refcount=False)
def marginals_all(
    structure, weights, data, which, theta, inverse, span_means, pair_means, out, totals
):
    """Probabilities of codes in the sequences ``which``."""
    longest, K = structure.longest, structure.begin.size
    for i in which:
        x = Example(data, i)
        structure.score(x, weights, theta)
        T, start, logs = length(x), data.starts[i], theta.logs
        cool(theta, inverse)
        totals[i] = segment_marginals(
            structure, T, theta.spans, theta.pairs, logs, span_means, pair_means
        )
        for t in range(T):
            for c in range(K):
                tail = 0.0
                for d in range(min(longest, T - t) - 1, -1, -1):
                    tail += span_means[(t * longest + d) * K + c]
                    code = structure.begin[c] if d == 0 else structure.inside[c]
                    if code >= 0:
                        out[start + t + d, code] += tail


@kernel(refcount=False)
def segments_all(
    structure,
    weights,
    data,
    which,
    theta,
    inverse,
    means,
    pairs,
    cuts,
    queries,
    out,
    totals,
):
    """Probabilities of the segments ``queries`` of the sequences ``which``."""
    longest, K = structure.longest, structure.begin.size
    for i in which:
        x = Example(data, i)
        structure.score(x, weights, theta)
        T, start, logs = length(x), data.starts[i], theta.logs
        cool(theta, inverse)
        totals[i] = segment_marginals(structure, T, theta.spans, theta.pairs, logs, means, pairs)
        for q in range(cuts[i], cuts[i + 1]):
            t, d, c = queries[0, q] - start, queries[1, q] - queries[0, q], queries[2, q]
            if c >= 0 and d <= longest:
                out[q] = means[(t * longest + d - 1) * K + c]


@helper
def cool(theta, inverse):
    """Divide scores by the temperature."""
    if inverse != 1.0:
        for q in range(theta.spans.size):
            theta.spans[q] *= inverse
        for q in range(theta.pairs.size):
            theta.pairs[q] *= inverse

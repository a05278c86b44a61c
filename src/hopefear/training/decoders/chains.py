"""Decodes label chains: tags, the k best, probabilities of labels and of whole outputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, helper, kernel
from hopefear.core.progress import stage
from hopefear.core.workspace import DenseWeights, Example
from hopefear.errors import HopefearError
from hopefear.losses.perceptron import Perceptron
from hopefear.structures.chain.chain import bytes_needed
from hopefear.structures.chain.mu import add_cell, clear_parts
from hopefear.structures.chain.searches import AStar
from hopefear.structures.chain.theta import (
    chain_shape,
    length,
    limit_scores,
    table_size,
    tables_used,
    tokens_only,
)
from hopefear.structures.lattice import Scores, log_z, marginals, path_score, viterbi
from hopefear.training.decoders.base import Decoder, KBest, check_k, in_blocks, k_best_paths
from hopefear.training.decoders.votes import VoteReplay, VotingView
from hopefear.training.predictors import VotedPredictor

# One sequence is searched at a time, so its space is all that grows with it.
MOST_BYTES = 2 << 30


class ChainDecoder(Decoder):
    """Weights, or votes, on a chain: see :class:`~hopefear.training.decoders.base.Decoder`.

    Outputs that the limits of the chain forbid are never given, unless a sequence has no other:
    then only the limits of its tokens hold, and it is counted in ``unlimited``.

    Under votes the best output is the one that most predictors give. That takes one search for
    every predictor that changed anything, so it is slow: use it to compare with averages. A vote
    has no scores, hence no probabilities but its shares.
    """

    def __init__(
        self, structure: Any, predictor: Any, temperature: float = 1.0, n_jobs: int = 1
    ) -> None:
        super().__init__(structure, predictor, temperature, n_jobs)
        self.unlimited = 0

    def predict(self, rows: Any) -> np.ndarray:
        """The best label of every token (int32); of equal votes the earlier output."""
        return self._tagged(rows)[0]

    def scores(self, rows: Any) -> np.ndarray:
        """Score of the best output of every sequence, or votes for it (float64)."""
        return self._tagged(rows)[1]

    def _tagged(self, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        if isinstance(self.predictor, VotedPredictor):
            best = self._voted(rows, 1)
            labels = np.concatenate([np.empty(0, np.int32), *(one.labels[0] for one in best)])
            return labels, np.array([one.scores[0] for one in best])
        out = np.zeros(rows.labels.size, np.int32)
        scores = np.zeros(rows.weights.size)

        def work(structure, weights, rows, theta, which):
            tag_all(structure, weights, rows, which, theta, out, scores)
            return which[~np.isfinite(scores[which])]

        self._search(rows, work)
        return out, scores

    def k_best(self, rows: Any, k: int) -> list[KBest]:
        """The ``k`` best outputs of every sequence, with probabilities, or shares of all votes."""
        check_k(k)
        if isinstance(self.predictor, VotedPredictor):
            return self._voted(rows, k)
        lengths, inverse = np.diff(rows.starts), 1.0 / self.temperature
        paths = np.zeros(k * rows.labels.size, np.int32)
        scores, totals = np.zeros((lengths.size, k)), np.zeros(lengths.size)
        counts = np.zeros(lengths.size, np.int64)

        def work(structure, weights, rows, theta, which):
            found = (paths, scores, totals, counts)
            nbest_all(structure, weights, rows, which, theta, k, inverse, *found)
            return which[counts[which] == 0]

        self._search(rows, work, k)
        counts[lengths == 0] = 1  # of no tokens there is one output, and it is certain
        return k_best_paths(rows.starts, paths, scores, counts, self.temperature, totals)

    def probabilities(self, rows: Any) -> np.ndarray:
        """Probability of every label at every token (float64[tokens, labels])."""
        out = np.zeros((rows.labels.size, self.structure.labels))
        totals, inverse = np.zeros(rows.weights.size), 1.0 / self.temperature

        def work(structure, weights, rows, theta, which):
            means = Scores(
                np.zeros_like(theta.scores.nodes, np.float64),
                np.zeros_like(theta.scores.edges, np.float64),
            )
            marginals_all(structure, weights, rows, which, theta, inverse, means, out, totals)
            return which[~np.isfinite(totals[which])]

        self._search(rows, work)
        return out

    def log_likelihoods(self, rows: Any) -> np.ndarray:
        """Log probability of the labels that ``rows`` has, for every sequence."""
        return np.subtract(*self._sums(rows))

    def log_totals(self, rows: Any) -> np.ndarray:
        """Log of the summed ``exp(score / temperature)`` of all allowed outputs, per sequence."""
        return self._sums(rows, impossible=True)[1]

    def _sums(self, rows: Any, impossible: bool = False) -> tuple[np.ndarray, np.ndarray]:
        """Scores of gold, and log sums; ``impossible``: sequences may have no allowed output."""
        gold, totals = np.zeros((2, rows.weights.size))
        inverse = np.float64(1.0 / self.temperature)  # interpreted, too, products are rounded once

        def work(structure, weights, rows, theta, which):
            total_all(structure, weights, rows, which, theta, inverse, gold, totals)
            return which[:0] if impossible else which[~np.isfinite(totals[which])]

        self._search(rows, work)
        return gold, totals

    def linear(self, rows: Any) -> tuple[Any, np.ndarray, Any]:
        """Returns (structure, weights, rows) as searches see them."""
        if isinstance(self.predictor, VotedPredictor):
            raise HopefearError("a vote has no label probabilities; train with averaging=averaged")
        return self.structure, self.predictor.weights, rows

    def _search(self, rows: Any, work: Callable[..., np.ndarray], depth: int = 1) -> None:
        """Does ``work`` on all sequences in blocks, and without limits where it must be."""
        chain, weights, rows = self.linear(rows)
        check_allowed(chain, rows)
        lengths, limits = np.diff(rows.starts), chain.limits

        def run(structure: Any, which: np.ndarray) -> np.ndarray:
            longest = int(lengths[which].max(initial=1))
            check_room(structure, longest, depth)
            theta = structure.search_space(longest, depth, weights.dtype)
            return work(structure, DenseWeights(weights), rows, theta, which)

        failed = in_blocks(rows, rows.starts, lambda which: run(chain, which), self.n_jobs)
        again = np.concatenate([np.empty(0, np.int64), *failed])
        if again.size and limits.step.size:  # a beam may have lost all that is allowed
            again = run(chain._replace(search=AStar()), again)
        if again.size and limits.step.size:
            self.unlimited += again.size
            again = run(chain._replace(search=AStar(), limits=tokens_only(limits)), again)
        if again.size:
            raise HopefearError("scores are not finite; the model's weights are unusable")

    def _voted(self, rows: Any, k: int) -> list[KBest]:
        """The outputs with most votes; probabilities are shares of all votes."""
        chain, lengths = self.structure, np.diff(rows.starts)
        longest = int(lengths.max(initial=1))
        check_allowed(chain, rows)
        check_room(chain, longest, 2)
        work = chain.workspace(rows, Perceptron(), np.float64)
        replay = VoteReplay(self.predictor, work.max_nnz + 1)
        paths = np.zeros((replay.drops.size, longest), np.int32)
        free = chain._replace(limits=tokens_only(chain.limits))
        best = []
        with stage("votes", len(lengths), "sequences") as voting:
            for i, T in enumerate(lengths.tolist()):
                parts = T * chain.width + tables_used(chain, T) * table_size(chain)
                for structure in (chain, free):
                    known, votes = np.zeros(1, np.int64), np.zeros(replay.drops.size)
                    view = ChainVotes(structure, rows, i, work, paths, known)
                    if replay.count(view, parts, votes):
                        break
                    self.unlimited += 1
                if known[0] == 0:  # nobody has an opinion
                    known[0], paths[0] = 1, 0
                votes = votes[: known[0]]
                order = np.argsort(-votes, kind="stable")[:k]
                shares = votes[order] / max(votes.sum(), 1e-300)
                best.append(KBest(paths[order][:, :T], votes[order], shares, shares))
                voting.advance()
        return best


def check_allowed(structure: Any, rows: Any) -> None:
    """Limits of single tokens must be those of these tokens."""
    limited = structure.limits.tokens.size // structure.width
    if limited not in (0, rows.labels.size):
        raise HopefearError(
            f"labels are allowed for {limited:,} tokens, but there are {rows.labels.size:,}; "
            "give a set of labels, or None, for every token"
        )


def check_room(structure: Any, longest: int, depth: int) -> None:
    """Refuse to search what would not fit into memory."""
    size = bytes_needed(structure, longest, depth)
    if size > MOST_BYTES:
        raise HopefearError(
            f"a sequence of {longest:,} tokens needs {size / 2**30:.1f} GiB to be searched, "
            f"the limit is {MOST_BYTES >> 30} GiB; split it"
        )


@kernel(refcount=False)
def tag_all(structure, weights, data, which, theta, out, scores):
    """Best labels of the sequences ``which``."""
    for i in which:
        x = Example(data, i)
        structure.score(x, weights, theta)
        T, start = length(x), data.starts[i]
        shape = chain_shape(structure)
        scores[i] = viterbi(shape, T, theta.scores, theta.space.table, theta.path)
        for t in range(T):
            out[start + t] = theta.path[t]


@kernel(refcount=False)
def nbest_all(structure, weights, data, which, theta, n, inverse, paths, scores, totals, counts):
    """The ``n`` best of the sequences ``which``, and their log partition sums."""
    for i in which:
        x = Example(data, i)
        structure.score(x, weights, theta)
        T, start = length(x), n * data.starts[i]
        shape, longest = chain_shape(structure), theta.path.size
        count = structure.search.find(shape, T, theta.scores, theta.space, n, 0.0)
        counts[i] = count
        for k in range(count):
            y = theta.space.paths[k * longest : k * longest + T]
            # Summed anew in double precision, as the partition sum is; the order is the search's.
            score = path_score(chain_shape(structure), T, theta.scores, y)
            scores[i, k] = score if k == 0 else min(score, scores[i, k - 1])
            for t in range(T):
                paths[start + k * T + t] = y[t]
        cool(structure, theta.scores, T, inverse)
        totals[i] = log_z(chain_shape(structure), T, theta.scores, theta.forward)


@kernel(refcount=False)
def total_all(structure, weights, data, which, theta, inverse, gold, totals):
    """Log partition sums of the sequences ``which``, and scores of the labels in the data.

    Labels that the structure does not have get minus infinity.
    """
    for i in which:
        x = Example(data, i)
        structure.score(x, weights, theta)
        T, start = length(x), data.starts[i]
        cool(structure, theta.scores, T, inverse)
        totals[i] = log_z(chain_shape(structure), T, theta.scores, theta.forward)
        known = True
        for t in range(start, start + T):
            known = known and 0 <= data.labels[t] < structure.labels
        gold[i] = -math.inf
        if known:
            gold[i] = path_score(chain_shape(structure), T, theta.scores, data.labels, start)


@kernel(refcount=False)
def marginals_all(structure, weights, data, which, theta, inverse, means, out, totals):
    """Label probabilities of the sequences ``which``."""
    width = structure.width
    for i in which:
        x = Example(data, i)
        structure.score(x, weights, theta)
        T, start = length(x), data.starts[i]
        cool(structure, theta.scores, T, inverse)
        totals[i] = marginals(chain_shape(structure), T, theta.scores, theta.forward, means)
        for t in range(T):
            for c in range(out.shape[1]):
                out[start + t, c] = means.nodes[t * width + c]


@helper
def cool(structure, scores, T, inverse):
    """Divide scores by the temperature."""
    if inverse != 1.0:
        for q in range(T * structure.width):
            scores.nodes[q] *= inverse
        for q in range(tables_used(structure, T) * table_size(structure)):
            scores.edges[q] *= inverse


@component(VotingView)
class ChainVotes(NamedTuple):
    """A sequence: its parts are labels at positions, then label pairs or triples."""

    structure: Any
    data: Any
    i: int
    work: Any
    paths: np.ndarray  # int32[predictors, longest]: outputs that some predictor gives
    known: np.ndarray  # int64[1]: how many

    def spell(self, part, row):
        chain, mu, x = self.structure, self.work.mu, Example(self.data, self.i)
        n_nodes = length(x) * chain.width
        if part >= n_nodes or part % chain.width < chain.labels:
            clear_parts(chain, x, mu)
            if part < n_nodes:
                mu.nodes[part] = 1.0
                mu.live[part // chain.width] = 1
            else:
                add_cell(mu, part - n_nodes, 1.0)
            chain.scatter(x, mu, row)
            clear_parts(chain, x, mu)

    def choose(self, scores):
        chain, y, x = self.structure, self.work.y, Example(self.data, self.i)
        T, n_nodes = length(x), length(x) * chain.width
        parts = self.work.theta.scores
        for part in range(scores.size):
            if part < n_nodes:
                parts.nodes[part] = scores[part]
            else:
                parts.edges[part - n_nodes] = scores[part]
        if chain.limits.step.size:
            limit_scores(chain, x, parts)
        best = viterbi(chain_shape(chain), T, parts, self.work.theta.space.table, y)
        if not math.isfinite(best):  # nothing is allowed
            return -1
        return number_of(self.paths, self.known, y, T)


@kernel
def number_of(paths, known, y, T):
    """Number of an output among those that came up so far; a new one is written down."""
    for q in range(known[0]):
        same = True
        for t in range(T):
            same = same and paths[q, t] == y[t]
        if same:
            return q
    known[0] += 1
    for t in range(T):
        paths[known[0] - 1, t] = y[t]
    return known[0] - 1

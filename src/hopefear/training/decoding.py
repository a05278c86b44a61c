"""Searching whole datasets of sequences with fixed weights: tags, n best, probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, kernel, lean, linked
from hopefear.core.progress import stage
from hopefear.core.workspace import Example, Plain
from hopefear.errors import HopefearError
from hopefear.losses.perceptron import Perceptron
from hopefear.structures.chain.chain import bytes_needed
from hopefear.structures.chain.mu import add_cell
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
from hopefear.training.answers import Ranked, ranked_outputs
from hopefear.training.predictors import VotedPredictor
from hopefear.training.votes import Ballot, Replay

# One sequence is searched at a time, so its space is all that grows with it.
MOST_BYTES = 2 << 30


class Decoder:
    """Weights on a chain: the :class:`~hopefear.training.answers.Answers` of sequences.

    Outputs that the limits of the chain forbid are never given, unless a sequence has no other:
    then only the limits of its tokens hold, and it is counted in ``unlimited``.

    Parameters
    ----------
    structure : Chain
        The chain, with its limits.
    weights : float32 array
        One for each coordinate.
    temperature : float
        Scores are divided by it before they become probabilities.
    n_jobs : int
        Threads. Results do not depend on it.
    """

    def __init__(
        self, structure: Any, weights: np.ndarray, temperature: float = 1.0, n_jobs: int = 1
    ) -> None:
        self.structure, self.weights, self.temperature = structure, weights, float(temperature)
        self.n_jobs = max(1, int(n_jobs))
        self.unlimited = 0

    def best(self, rows: Any) -> np.ndarray:
        """The best label of every token (int32)."""
        return self._tagged(rows)[0]

    def scores(self, rows: Any) -> np.ndarray:
        """Score of the best output of every sequence (float64)."""
        return self._tagged(rows)[1]

    def _tagged(self, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        out = np.zeros(rows.labels.size, np.int32)
        scores = np.zeros(rows.weights.size)

        def work(structure, theta, which):
            tag_all(structure, Plain(self.weights), rows, which, theta, out, scores)
            return which[~np.isfinite(scores[which])]

        self._everywhere(rows, work, 1)
        return out, scores

    def nbest(self, rows: Any, n: int) -> list[Ranked]:
        """The ``n`` best outputs of every sequence, with probabilities."""
        if n < 1:
            raise HopefearError(f"n must be at least 1, not {n}")
        lengths = np.diff(rows.starts)
        paths = np.zeros(n * rows.labels.size, np.int32)
        scores, totals = np.zeros((lengths.size, n)), np.zeros(lengths.size)
        counts = np.zeros(lengths.size, np.int64)

        def work(structure, theta, which):
            nbest_all(
                *(structure, Plain(self.weights), rows, which, theta, n, 1.0 / self.temperature),
                *(paths, scores, totals, counts),
            )
            return which[counts[which] == 0]

        self._everywhere(rows, work, n)
        counts[lengths == 0] = 1  # of no tokens there is one output, and it is certain
        return ranked_outputs(rows.starts, paths, scores, counts, self.temperature, totals)

    def probabilities(self, rows: Any) -> np.ndarray:
        """Probability of every label at every token (float64[tokens, labels])."""
        out = np.zeros((rows.labels.size, self.structure.labels))
        totals = np.zeros(rows.weights.size)

        def work(structure, theta, which):
            means = Scores(
                np.zeros_like(theta.scores.nodes, np.float64),
                np.zeros_like(theta.scores.edges, np.float64),
            )
            inverse = 1.0 / self.temperature
            marginals_all(
                structure, Plain(self.weights), rows, which, theta, inverse, means, out, totals
            )
            return which[~np.isfinite(totals[which])]

        self._everywhere(rows, work, 1)
        return out

    def log_likelihoods(self, rows: Any) -> np.ndarray:
        """Log probability of the labels that ``rows`` has, for every sequence."""
        gold, totals = np.zeros(rows.weights.size), np.zeros(rows.weights.size)

        def work(structure, theta, which):
            inverse = 1.0 / self.temperature
            total_all(structure, Plain(self.weights), rows, which, theta, inverse, gold, totals)
            return which[~np.isfinite(totals[which])]

        self._everywhere(rows, work, 1)
        return gold - totals

    def log_totals(self, rows: Any) -> np.ndarray:
        """Log of the summed ``exp(score / temperature)`` of all allowed outputs, per sequence."""
        totals = np.full(rows.weights.size, -np.inf)
        gold = np.zeros(rows.weights.size)

        def work(structure, theta, which):
            inverse = 1.0 / self.temperature
            total_all(structure, Plain(self.weights), rows, which, theta, inverse, gold, totals)
            return which[:0]

        self._everywhere(rows, work, 1)
        return totals

    def _everywhere(self, rows: Any, work: Callable[..., np.ndarray], depth: int) -> None:
        """Do ``work`` on all sequences in parallel, and without limits where it must be."""
        check_allowed(self.structure, rows)

        def run(structure, which):
            return work(structure, self._space(rows, structure, which, depth), which)

        blocks = list(_blocks(rows, self.n_jobs))
        if len(blocks) > 1:
            with ThreadPoolExecutor(len(blocks)) as pool:
                failed = list(pool.map(lambda which: run(self.structure, which), blocks))
        else:
            failed = [run(self.structure, which) for which in blocks]
        again = np.concatenate(failed) if failed else np.empty(0, np.int64)
        limits = self.structure.limits
        if again.size and limits.step.size:  # a beam may have lost all that is allowed
            again = run(self.structure._replace(search=AStar()), again)
        if again.size and limits.step.size:
            self.unlimited += again.size
            again = run(self.structure._replace(search=AStar(), limits=tokens_only(limits)), again)
        if again.size:
            raise HopefearError("scores are not finite; the model's weights are unusable")

    def _space(self, rows: Any, structure: Any, which: np.ndarray, depth: int) -> Any:
        longest = int(np.diff(rows.starts)[which].max(initial=1))
        check_room(structure, longest, depth)
        return structure.search_space(longest, depth, self.weights.dtype)


class VotedDecoder:
    """All predictors of a voted learner on a chain: the answers of sequences by vote.

    Tagging costs one search for every predictor that changed anything, so it is slow: use it to
    compare with averages. A vote has no scores, hence no probabilities but its shares.

    Parameters
    ----------
    structure : Chain
        The chain, with its limits.
    votes : VotedPredictor
        What a learner with the readout ``voted`` leaves behind.
    """

    def __init__(self, structure: Any, votes: VotedPredictor) -> None:
        self.structure, self.votes = structure, votes
        self.unlimited = 0

    def best(self, rows: Any) -> np.ndarray:
        """The labels that most predictors give (int32); ties go to the earlier output."""
        return np.concatenate(
            [np.empty(0, np.int32), *(ranked.labels[0] for ranked in self.nbest(rows, 1))]
        )

    def scores(self, rows: Any) -> np.ndarray:
        """Votes for the best output of every sequence (float64)."""
        return np.array([ranked.scores[0] for ranked in self.nbest(rows, 1)])

    def nbest(self, rows: Any, n: int) -> list[Ranked]:
        """The outputs with most votes; probabilities are shares of all votes."""
        chain, lengths = self.structure, np.diff(rows.starts)
        longest = int(lengths.max(initial=1))
        check_allowed(chain, rows)
        check_room(chain, longest, 2)
        replay = Replay(self.votes, chain.entries(rows, np.arange(rows.weights.size)) + 1)
        work = chain.workspace(rows, Perceptron(), np.float64)
        paths = np.zeros((replay.drops.size, longest), np.int32)
        free = chain._replace(limits=tokens_only(chain.limits))
        ranked = []
        with stage("votes", len(lengths), "sequences") as voting:
            for i, T in enumerate(lengths.tolist()):
                parts = T * chain.width + tables_used(chain, T) * table_size(chain)
                for structure in (chain, free):
                    known, votes = np.zeros(1, np.int64), np.zeros(replay.drops.size)
                    ballot = ChainBallot(structure, rows, i, work, paths, known)
                    if replay.count(ballot, parts, votes):
                        break
                    self.unlimited += 1
                if known[0] == 0:  # nobody has an opinion
                    known[0], paths[0] = 1, 0
                votes = votes[: known[0]]
                order = np.argsort(-votes, kind="stable")[:n]
                shares = votes[order] / max(votes.sum(), 1e-300)
                ranked.append(Ranked(paths[order][:, :T], votes[order], shares, shares))
                voting.advance()
        return ranked

    def probabilities(self, rows: Any) -> np.ndarray:
        """Refused."""
        raise HopefearError("a vote has no label probabilities; train with readout=averaged")

    log_likelihoods = log_totals = probabilities


def decoder_of(
    structure: Any, predictor: Any, temperature: float = 1.0, n_jobs: int = 1
) -> Decoder | VotedDecoder:
    """A decoder for weights, for votes, or the one that a predictor brings."""
    if predictor.linear:
        return Decoder(structure, predictor.weights, temperature, n_jobs)
    if hasattr(predictor, "decoder"):
        return predictor.decoder(structure, temperature, n_jobs)
    return VotedDecoder(structure, predictor)


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


def _blocks(rows: Any, n: int) -> Iterator[np.ndarray]:
    """Sequences that are not empty, in up to ``n`` blocks of about as many tokens."""
    which = np.flatnonzero(np.diff(rows.starts) > 0)
    if which.size == 0:
        return
    tokens = rows.starts[which]
    cuts = np.searchsorted(tokens, np.linspace(0, rows.starts[-1], n + 1)[1:-1])
    for block in np.split(which, cuts):
        if block.size:
            yield block


@lean
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


@lean
def nbest_all(structure, weights, data, which, theta, n, inverse, paths, scores, totals, counts):
    """The ``n`` best of the sequences ``which``, and their log partition sums."""
    for i in which:
        x = Example(data, i)
        structure.score(x, weights, theta)
        T, start = length(x), n * data.starts[i]
        count = structure.candidates(x, theta, None, n, 0.0)
        counts[i] = count
        for k in range(count):
            y = structure.candidate(x, theta, k)
            # Summed anew in double precision, as the partition sum is; the order is the search's.
            score = path_score(chain_shape(structure), T, theta.scores, y)
            scores[i, k] = score if k == 0 else min(score, scores[i, k - 1])
            for t in range(T):
                paths[start + k * T + t] = y[t]
        cool(structure, theta.scores, T, inverse)
        totals[i] = log_z(chain_shape(structure), T, theta.scores, theta.forward)


@lean
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


@lean
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


@linked
def cool(structure, scores, T, inverse):
    """Divide scores by the temperature."""
    if inverse != 1.0:
        for q in range(T * structure.width):
            scores.nodes[q] *= inverse
        for q in range(tables_used(structure, T) * table_size(structure)):
            scores.edges[q] *= inverse


@component(Ballot)
class ChainBallot(NamedTuple):
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
            chain.clear(x, mu)
            if part < n_nodes:
                mu.nodes[part] = 1.0
                mu.live[part // chain.width] = 1
            else:
                add_cell(mu, part - n_nodes, 1.0)
            chain.scatter(x, mu, row)
            chain.clear(x, mu)

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

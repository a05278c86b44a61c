"""Voting on sequences: every predictor there was tags, and the output with most votes wins."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import kernel
from hopefear.core.workspace import Example
from hopefear.errors import HopefearError
from hopefear.losses.perceptron import Perceptron
from hopefear.structures.chain.layout import chain_shape, length, table_size, tables_used
from hopefear.structures.chain.mu import add_cell
from hopefear.structures.chain.theta import limit_scores, tokens_only
from hopefear.structures.lattice import viterbi
from hopefear.training.decoding import Ranked, check_allowed, check_room
from hopefear.training.predictors import Collector, Found, Lines, VotedPredictor


class VotedDecoder:
    """All predictors of a voted learner on a chain.

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

    def tags(self, rows: Any) -> np.ndarray:
        """The labels that most predictors give (int32); ties go to the earlier output."""
        return np.concatenate(
            [np.empty(0, np.int32), *(found.labels[0] for found in self.nbest(rows, 1))]
        )

    def nbest(self, rows: Any, n: int) -> list[Ranked]:
        """The outputs with most votes; probabilities are shares of all votes."""
        votes, chain = self.votes, self.structure
        check_allowed(chain, rows)
        check_room(chain, int(np.diff(rows.starts).max(initial=1)), 2)
        lines = Lines(
            votes.coordinates, votes.starts, votes.begin, votes.end, votes.level, votes.fall
        )
        work = chain.workspace(rows, Perceptron(), np.float64)
        most = chain.entries(rows, np.arange(rows.weights.size)) + 1
        found = Found(np.zeros(most, np.int64), np.zeros(most), np.zeros(1, np.int64))
        ranked = []
        for i in range(rows.weights.size):
            T = int(rows.starts[i + 1] - rows.starts[i])
            told = (rows, i, work, lines, votes.drops, votes.survived, found)
            paths, weights = vote(chain, *told)
            if weights.size == 0:
                self.unlimited += 1
                paths, weights = vote(chain._replace(limits=tokens_only(chain.limits)), *told)
            order = np.argsort(-weights, kind="stable")[:n]
            shares = weights[order] / max(weights.sum(), 1e-300)
            ranked.append(Ranked(paths[order][:, :T], weights[order], shares, shares))
        return ranked

    def marginals(self, rows: Any) -> np.ndarray:
        """Refused."""
        raise HopefearError("a vote has no label probabilities; train with readout=averaged")

    log_likelihoods = log_totals = marginals


class Changes(NamedTuple):
    """How the scores of parts change from predictor to predictor."""

    head: np.ndarray  # int64[predictors + 1]: first change at each predictor, -1 = none
    link: np.ndarray  # int64[changes]: the next one
    part: np.ndarray  # int64[changes]: positions of nodes, then of edges
    raised: np.ndarray  # float64[changes]
    sunk: np.ndarray  # float64[changes]


@kernel
def vote(structure, data, i, work, lines, drops, survived, found):
    """(outputs that some predictor gives, their votes) of sequence ``i``."""
    x = Example(data, i)
    T, n_nodes = length(x), length(x) * structure.width
    n_parts = n_nodes + tables_used(structure, T) * table_size(structure)
    changes = Changes(
        np.full(drops.size + 1, -1, np.int64),
        np.empty(1024, np.int64),
        np.empty(1024, np.int64),
        np.empty(1024),
        np.empty(1024),
    )
    used = 0
    for part in range(n_parts):
        at = part % structure.width
        if part < n_nodes and at >= structure.labels:
            continue
        structure.clear(x, work.mu)
        if part < n_nodes:
            work.mu.nodes[part] = 1.0
            work.mu.live[part // structure.width] = 1
        else:
            add_cell(work.mu, part - n_nodes, 1.0)
        found.used[0] = 0
        structure.scatter(x, work.mu, Collector(found))
        for e in range(found.used[0]):
            place = np.searchsorted(lines.coordinates, found.ids[e])
            if place == lines.coordinates.size or lines.coordinates[place] != found.ids[e]:
                continue
            first, last = lines.starts[place], lines.starts[place + 1]
            if used + 2 * (last - first) > changes.link.size:
                changes = longer(changes, used + 2 * (last - first))
            for q in range(first, last):
                level = found.amounts[e] * lines.level[q]
                fall = found.amounts[e] * lines.fall[q]
                enter(changes, used, lines.begin[q], part, level, fall)
                enter(changes, used + 1, lines.end[q], part, -level, -fall)
                used += 2
    structure.clear(x, work.mu)
    return count(structure, x, work, changes, drops, survived, n_nodes, n_parts)


@kernel
def longer(changes, need):
    """The same changes with room for more."""
    size = max(need, 2 * changes.link.size)
    new = Changes(
        changes.head,
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size),
        np.empty(size),
    )
    for k in range(changes.link.size):
        new.link[k] = changes.link[k]
        new.part[k] = changes.part[k]
        new.raised[k] = changes.raised[k]
        new.sunk[k] = changes.sunk[k]
    return new


@kernel
def enter(changes, k, when, part, level, fall):
    """Write down a change."""
    changes.link[k] = changes.head[when]
    changes.head[when] = k
    changes.part[k] = part
    changes.raised[k] = level
    changes.sunk[k] = fall


@kernel
def count(structure, x, work, changes, drops, survived, n_nodes, n_parts):
    """Let every predictor tag, and add up the votes for each output."""
    T, scores = length(x), work.theta.scores
    level, fall = np.zeros(n_parts), np.zeros(n_parts)
    paths, weights, known = np.zeros((8, max(T, 1)), np.int32), np.zeros(8), 0
    present, silent = -1, True
    for k in range(drops.size):
        e = changes.head[k]
        moved = e >= 0
        while e >= 0:
            level[changes.part[e]] += changes.raised[e]
            fall[changes.part[e]] += changes.sunk[e]
            e = changes.link[e]
        if moved or (k > 0 and drops[k] != drops[k - 1]):
            silent = True
            for part in range(n_parts):
                score = level[part] - fall[part] * drops[k]
                silent = silent and abs(score) < 1e-12
                if part < n_nodes:
                    scores.nodes[part] = score
                else:
                    scores.edges[part - n_nodes] = score
            if not silent:
                if structure.limits.step.size:
                    limit_scores(structure, x, scores)
                table = work.theta.space.table
                best = viterbi(chain_shape(structure), T, scores, table, work.y)
                if not math.isfinite(best):  # nothing is allowed
                    return paths[:0], weights[:0]
                present = -1
                for q in range(known):
                    same = True
                    for t in range(T):
                        same = same and paths[q, t] == work.y[t]
                    if same:
                        present = q
                        break
                if present < 0:
                    if known == weights.size:
                        paths = np.concatenate((paths, np.zeros_like(paths)))
                        weights = np.concatenate((weights, np.zeros_like(weights)))
                    present = known
                    known += 1
                    for t in range(T):
                        paths[present, t] = work.y[t]
        if not silent:
            weights[present] += survived[k + 1] - survived[k]
    if known == 0:  # nobody has an opinion
        known = 1
    return paths[:known], weights[:known]

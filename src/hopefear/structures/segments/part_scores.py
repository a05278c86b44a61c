"""Scores of the parts of segmentations, and the best segmentations."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hopefear.core.component import helper, shared_kernel
from hopefear.structures.chain.theta import length


class SegmentRanking(NamedTuple):
    """The k best segmentations, and the best of those that are not among them yet.

    A segmentation is another one up to some token, an edge there (a segment with its label) that
    is not the best, and then the best completion. So each is reached in one way only.
    """

    paths: np.ndarray  # int32[depth * tokens]: codes
    scores: np.ndarray  # float64[depth]
    # What has been found, and what waits: where it leaves its parent, and by which segment.
    branches: np.ndarray  # int64[depth, 4]: parent, token, label, length
    prefixes: np.ndarray  # float64[depth]: score up to the end of that segment
    waiting: np.ndarray  # int64[depth, 4]
    waiting_prefixes: np.ndarray  # float64[depth]
    waiting_scores: np.ndarray  # float64[depth]


class SegmentSums(NamedTuple):
    """Logarithms of sums over prefixes and completions, and what they cost on average.

    Entry ``t * labels + c``; a boundary t has the segment before it labelled c, a start t the
    segment behind it.
    """

    prefixes: np.ndarray  # boundary: all that ends here
    entering: np.ndarray  # start: all that comes before the segment
    starting: np.ndarray  # start: the segment and all behind it
    completions: np.ndarray  # boundary: all that begins here


class SegmentTheta(NamedTuple):
    """Scores of one sequence and the space its searches need; all float64 but the first."""

    nodes: np.ndarray  # float[tokens * width]: codes at tokens
    spans: np.ndarray  # [(token * longest + length - 1) * labels + label]
    pairs: np.ndarray  # [label * labels + label before]
    charged: np.ndarray  # as spans: with costs, or scaled
    scaled: np.ndarray  # as pairs
    prices: np.ndarray  # as spans; empty where no costs are expected
    running: np.ndarray  # [labels]
    starting: np.ndarray  # [token * labels + label]: best score of a segment and all behind it
    completions: np.ndarray  # [token * labels + label before]: best score of all behind
    path: np.ndarray  # int32[tokens]
    ranking: SegmentRanking
    logs: SegmentSums
    costs: SegmentSums


@helper
def label_at(structure, code):
    """The segment label that a code belongs to."""
    for c in range(structure.begin.size):
        if structure.begin[c] == code or structure.inside[c] == code:
            return c
    return -1


@helper
def end_of(structure, codes, first, at, stop, c):
    """The end of the segment of label c that begins at ``at``; ``codes[first]`` is token 0."""
    end = at + 1
    while end < stop and codes[first + end] == structure.inside[c]:
        end += 1
    return end


@helper
def is_segment(structure, codes, first, at, end, c):
    """Whether tokens from ``at`` to ``end`` can be a segment of label c."""
    return c >= 0 and codes[first + at] == structure.begin[c] and end - at <= structure.longest


@helper
def write_segment(structure, at, end, c, y, first):
    """Write the codes of a segment; ``y[first]`` is that of token 0."""
    y[first + at] = structure.begin[c]
    for t in range(first + at + 1, first + end):
        y[t] = structure.inside[c]


@shared_kernel
def segments_score(structure, T, theta, codes, first):
    """Score of an output; minus infinity for codes that are no segments."""
    K, total, before, at = structure.begin.size, 0.0, -1, 0
    while at < T:
        c = label_at(structure, codes[first + at])
        end = end_of(structure, codes, first, at, T, c) if c >= 0 else at + 1
        if not is_segment(structure, codes, first, at, end, c):
            return -math.inf
        total += theta.spans[(at * structure.longest + end - at - 1) * K + c]
        if at > 0:
            total += theta.pairs[c * K + before]
        before, at = c, end
    return total


@helper(inline=True)
def stop_of(structure, T, t):
    """Behind the last segment that starts at token t, among spans."""
    return (t * structure.longest + min(structure.longest, T - t)) * structure.begin.size


@helper(inline=True)
def pair_row(structure, c):
    """The row of weights for segments of label c behind others."""
    return np.uint64(structure.attributes + structure.begin[c])


@helper
def blank_spans(structure, T, spans):
    """Set numbers of all segments to zero."""
    for q in range(stop_of(structure, T, T - 1)):
        spans[q] = 0.0


@shared_kernel
def score_spans(structure, x, weights, theta):
    """Scores of all segments, given those of codes at tokens, and of all label pairs."""
    data, longest, K = x.data, structure.longest, structure.begin.size
    begin, inside, width = structure.begin, structure.inside, np.uint64(structure.width)
    first, T, nodes, spans, running = (
        data.starts[x.i],
        length(x),
        theta.nodes,
        theta.spans,
        theta.running,
    )
    for c in range(K):
        row = pair_row(structure, c) * width
        for b in range(K):
            theta.pairs[c * K + b] = weights.at(row + np.uint64(begin[b]))
    if structure.limits.size:
        for t in range(T):
            for code in range(structure.labels):
                nodes[t * width + code] += structure.limits[(first + t) * structure.labels + code]
    indptr, indices = data.span_indptr, data.span_indices
    for t in range(T):
        for c in range(K):
            running[c] = 0.0
        for d in range(min(longest, T - t)):
            at, node = (t * longest + d) * K, (t + d) * np.int64(width)
            for c in range(K):
                code = begin[c] if d == 0 else inside[c]
                running[c] += nodes[node + code] if code >= 0 else -math.inf
                spans[at + c] = running[c]
            k = (first + t) * longest + d
            for p in range(indptr[k], indptr[k + 1]):
                row = np.uint64(indices[p]) * width
                for c in range(K):
                    spans[at + c] += weights.at(row + np.uint64(begin[c]))


@shared_kernel
def charge_spans(structure, x, cost, sign, spans, running, charged):
    """Leave ``spans`` plus ``sign`` times what their codes cost in ``charged``."""
    longest, K, T = structure.longest, structure.begin.size, length(x)
    first, gold = x.data.starts[x.i], x.data.labels
    for t in range(T):
        for c in range(K):
            running[c] = 0.0
        for d in range(min(longest, T - t)):
            at = (t * longest + d) * K
            for c in range(K):
                code = structure.begin[c] if d == 0 else structure.inside[c]
                if code >= 0:
                    running[c] += cost.label_cost(gold[first + t + d], code)
                charged[at + c] = spans[at + c] + sign * running[c]


@shared_kernel
def fill_completions(structure, T, spans, pairs, theta):
    """Best score of what begins at each token, for each label of it and each label before."""
    longest, K = structure.longest, structure.begin.size
    starting, completions = theta.starting, theta.completions
    for c in range(K):
        completions[T * K + c] = 0.0
    for t in range(T - 1, -1, -1):
        for c in range(K):
            starting[t * K + c] = -math.inf
        for d in range(min(longest, T - t)):
            at, behind = (t * longest + d) * K, (t + d + 1) * K
            for c in range(K):
                total = spans[at + c] + completions[behind + c]
                if not total <= starting[t * K + c]:  # what is no number must show
                    starting[t * K + c] = total
        for b in range(K):
            best = -math.inf
            for c in range(K):
                total = pairs[c * K + b] + starting[t * K + c]
                if not total <= best:
                    best = total
            completions[t * K + b] = best


@helper
def best_label(K, t, before, pairs, starting):
    """The label of the best segment that starts at t, given the label before (-1: no label)."""
    best, top = 0, -math.inf
    for c in range(K):
        total = starting[t * K + c] + (pairs[c * K + before] if before >= 0 else 0.0)
        if total > top:
            best, top = c, total
    return best


@helper
def best_length(structure, T, t, c, spans, completions):
    """The length of the best segment of label c that starts at t."""
    longest, K = structure.longest, structure.begin.size
    best, top = 1, -math.inf
    for d in range(1, min(longest, T - t) + 1):
        total = spans[(t * longest + d - 1) * K + c] + completions[(t + d) * K + c]
        if total > top:
            best, top = d, total
    return best


@shared_kernel
def best_segments(structure, T, spans, pairs, theta, y):
    """Leave the best output in ``y``; returns its score, or what is no number among scores."""
    fill_completions(structure, T, spans, pairs, theta)
    complete(structure, T, spans, pairs, theta, 0, -1, y, 0)
    top = -math.inf
    for c in range(structure.begin.size):
        if not theta.starting[c] <= top:
            top = theta.starting[c]
    return top


@helper
def complete(structure, T, spans, pairs, theta, t, before, y, first):
    """Write the best completion behind token t and a label, ``y[first]`` being token 0."""
    K = structure.begin.size
    while t < T:
        c = best_label(K, t, before, pairs, theta.starting)
        end = t + best_length(structure, T, t, c, spans, theta.completions)
        write_segment(structure, t, end, c, y, first)
        before, t = c, end


@shared_kernel
def rank_segments(structure, T, spans, theta, n, ratio):
    """Leave up to ``n`` best outputs and their scores in ``theta.ranking``; how many there are.

    Those over ``ratio`` times less probable than the best are left out (0: none are).
    """
    K, pairs, ranking, tokens = structure.begin.size, theta.pairs, theta.ranking, theta.path.size
    fill_completions(structure, T, spans, pairs, theta)
    best = best_label(K, 0, -1, pairs, theta.starting)
    top = theta.starting[best]
    if not top > -math.inf:
        return 0
    lowest = top - math.log(ratio) if ratio > 0.0 else -math.inf
    waiting, count, score = 0, 0, top
    set_branch(ranking.branches, 0, -1, 0, -1, 0)  # the best output leaves no other
    ranking.prefixes[0] = 0.0
    while True:
        base, t, c = count * tokens, ranking.branches[count, 1], ranking.branches[count, 2]
        end = t + ranking.branches[count, 3]
        if count > 0:
            parent = ranking.branches[count, 0] * tokens
            for s in range(t):
                ranking.paths[base + s] = ranking.paths[parent + s]
            write_segment(structure, t, end, c, ranking.paths, base)
        complete(structure, T, spans, pairs, theta, end, c, ranking.paths, base)
        ranking.scores[count] = score
        count += 1
        if count == n:
            return count
        waiting = branch(structure, T, spans, theta, count - 1, end, c, n - count, waiting)
        k = -1
        for m in range(waiting):
            if k < 0 or ranking.waiting_scores[m] > ranking.waiting_scores[k]:
                k = m
        if k < 0 or ranking.waiting_scores[k] < lowest:
            return count
        score = min(score, ranking.waiting_scores[k])  # sums in another order round otherwise
        copy_branch(ranking.waiting, k, ranking.branches, count)
        ranking.prefixes[count] = ranking.waiting_prefixes[k]
        waiting -= 1
        copy_branch(ranking.waiting, waiting, ranking.waiting, k)
        ranking.waiting_prefixes[k] = ranking.waiting_prefixes[waiting]
        ranking.waiting_scores[k] = ranking.waiting_scores[waiting]


@helper
def set_branch(branches, k, parent, t, c, size):
    """Say that an output leaves its parent at token t by a segment of label c."""
    branches[k, 0], branches[k, 1], branches[k, 2], branches[k, 3] = parent, t, c, size


@helper
def copy_branch(source, k, target, m):
    """Copy branch k of ``source`` to slot m of ``target``."""
    for q in range(4):
        target[m, q] = source[k, q]


@helper
def branch(structure, T, spans, theta, parent, t, before, room, waiting):
    """Let the outputs wait that leave an output behind token t; returns how many wait.

    ``room`` of them are enough: the worst are forgotten.
    """
    longest, K, pairs, ranking = structure.longest, structure.begin.size, theta.pairs, theta.ranking
    prefix = ranking.prefixes[parent]
    while t < T:
        best = best_label(K, t, before, pairs, theta.starting)
        size = best_length(structure, T, t, best, spans, theta.completions)
        for d in range(1, min(longest, T - t) + 1):
            for c in range(K):
                if c == best and d == size:
                    continue
                here = prefix + spans[(t * longest + d - 1) * K + c]
                if before >= 0:
                    here += pairs[c * K + before]
                score = here + theta.completions[(t + d) * K + c]
                if not score > -math.inf:
                    continue
                slot = waiting
                if waiting == room:
                    slot = 0
                    for m in range(1, room):
                        if ranking.waiting_scores[m] < ranking.waiting_scores[slot]:
                            slot = m
                    if not score > ranking.waiting_scores[slot]:
                        continue
                else:
                    waiting += 1
                set_branch(ranking.waiting, slot, parent, t, c, d)
                ranking.waiting_scores[slot] = score
                ranking.waiting_prefixes[slot] = here
        prefix += spans[(t * longest + size - 1) * K + best]
        if before >= 0:
            prefix += pairs[best * K + before]
        before, t = best, t + size
    return waiting

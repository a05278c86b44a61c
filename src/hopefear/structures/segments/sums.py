"""Sums over all segmentations: probabilities, expected costs, and the directions they give."""

from __future__ import annotations

import math

from hopefear.core.component import helper, shared_kernel
from hopefear.structures.chain.theta import length
from hopefear.structures.segments.part_gradient import add_segments, clear_segments, make_dense
from hopefear.structures.segments.part_scores import (
    blank_spans,
    charge_spans,
    segments_score,
    stop_of,
)


@helper(inline=True)
def log_add(a, b):
    """log(exp(a) + exp(b))."""
    if a < b:
        a, b = b, a
    return a if b == -math.inf else a + math.log1p(math.exp(b - a))


@shared_kernel
def sum_segments(structure, T, spans, pairs, logs):
    """Fill the logarithms of all sums; returns that of the sum over all outputs."""
    longest, K = structure.longest, structure.begin.size
    for c in range(K):
        logs.completions[T * K + c] = 0.0
    for t in range(T - 1, -1, -1):
        for c in range(K):
            total = -math.inf
            for d in range(min(longest, T - t)):
                score = spans[(t * longest + d) * K + c] + logs.completions[(t + d + 1) * K + c]
                total = log_add(total, score)
            logs.starting[t * K + c] = total
        for b in range(K):
            total = -math.inf
            for c in range(K):
                total = log_add(total, pairs[c * K + b] + logs.starting[t * K + c])
            logs.completions[t * K + b] = total
    total = -math.inf
    for c in range(K):
        total = log_add(total, logs.starting[c])
    return total


@shared_kernel
def sum_prefixes(structure, T, spans, pairs, logs):
    """Fill the logarithms of the sums over prefixes."""
    longest, K = structure.longest, structure.begin.size
    for c in range(K):
        logs.entering[c] = 0.0
    for t in range(1, T + 1):
        for c in range(K):
            total = -math.inf
            for d in range(min(longest, t)):
                first = t - d - 1
                score = spans[(first * longest + d) * K + c] + logs.entering[first * K + c]
                total = log_add(total, score)
            logs.prefixes[t * K + c] = total
        for c in range(K if t < T else 0):
            total = -math.inf
            for b in range(K):
                total = log_add(total, pairs[c * K + b] + logs.prefixes[t * K + b])
            logs.entering[t * K + c] = total


@shared_kernel
def segment_marginals(structure, T, spans, pairs, logs, span_means, pair_means):
    """Probability of every segment, expected number of every label pair; returns the log sum."""
    longest, K = structure.longest, structure.begin.size
    total = sum_segments(structure, T, spans, pairs, logs)
    sum_prefixes(structure, T, spans, pairs, logs)
    for q in range(K * K):
        pair_means[q] = 0.0
    for t in range(T):
        for d in range(min(longest, T - t)):
            at, behind = (t * longest + d) * K, (t + d + 1) * K
            for c in range(K):
                entering = logs.entering[t * K + c] - total
                span_means[at + c] = math.exp(
                    entering + spans[at + c] + logs.completions[behind + c]
                )
        for c in range(K if t else 0):
            for b in range(K):
                log = logs.prefixes[t * K + b] + pairs[c * K + b] + logs.starting[t * K + c]
                pair_means[c * K + b] += math.exp(log - total)
    return total


@shared_kernel
def segment_covariances(structure, T, spans, pairs, prices, logs, costs, span_means, pair_means):
    """Covariance of every segment and label pair with the cost; returns the expected cost."""
    longest, K = structure.longest, structure.begin.size
    total = sum_segments(structure, T, spans, pairs, logs)
    sum_prefixes(structure, T, spans, pairs, logs)
    mean_costs(structure, T, spans, pairs, prices, logs, costs)
    risk = 0.0
    for c in range(K):
        risk += math.exp(logs.starting[c] - total) * costs.starting[c]
    for q in range(K * K):
        pair_means[q] = 0.0
    for t in range(T):
        for d in range(min(longest, T - t)):
            at, behind = (t * longest + d) * K, (t + d + 1) * K
            for c in range(K):
                log = logs.entering[t * K + c] + spans[at + c] + logs.completions[behind + c]
                cost = costs.entering[t * K + c] + prices[at + c] + costs.completions[behind + c]
                span_means[at + c] = math.exp(log - total) * (cost - risk)
        for c in range(K if t else 0):
            for b in range(K):
                log = logs.prefixes[t * K + b] + pairs[c * K + b] + logs.starting[t * K + c]
                cost = costs.prefixes[t * K + b] + costs.starting[t * K + c]
                pair_means[c * K + b] += math.exp(log - total) * (cost - risk)
    return risk


@helper(inline=True)
def share(log, total):
    """Share of a term in a sum, both as logarithms; 0 of nothing."""
    return math.exp(log - total) if log > -math.inf else 0.0


@helper
def mean_costs(structure, T, spans, pairs, prices, logs, costs):
    """Expected cost of what each of the sums adds up, under the probabilities of its terms."""
    longest, K = structure.longest, structure.begin.size
    for c in range(K):
        costs.completions[T * K + c] = costs.entering[c] = 0.0
    for t in range(T - 1, -1, -1):
        for c in range(K):
            mean = 0.0
            for d in range(min(longest, T - t)):
                at, behind = (t * longest + d) * K + c, (t + d + 1) * K + c
                part = share(spans[at] + logs.completions[behind], logs.starting[t * K + c])
                mean += part * (prices[at] + costs.completions[behind])
            costs.starting[t * K + c] = mean
        for b in range(K):
            mean = 0.0
            for c in range(K):
                log = pairs[c * K + b] + logs.starting[t * K + c]
                mean += share(log, logs.completions[t * K + b]) * costs.starting[t * K + c]
            costs.completions[t * K + b] = mean
    for t in range(1, T + 1):
        for c in range(K):
            mean = 0.0
            for d in range(min(longest, t)):
                first = t - d - 1
                at = (first * longest + d) * K + c
                log = spans[at] + logs.entering[first * K + c]
                part = share(log, logs.prefixes[t * K + c])
                mean += part * (prices[at] + costs.entering[first * K + c])
            costs.prefixes[t * K + c] = mean
        for c in range(K if t < T else 0):
            mean = 0.0
            for b in range(K):
                log = pairs[c * K + b] + logs.prefixes[t * K + b]
                mean += share(log, logs.entering[t * K + c]) * costs.prefixes[t * K + b]
            costs.entering[t * K + c] = mean


@shared_kernel
def nll_of_segments(structure, x, theta, coef, mu):
    """Set ``mu`` to ``coef`` (parts of gold minus their expectation); returns -log P(gold)."""
    T, gold, first = length(x), x.data.labels, x.data.starts[x.i]
    clear_segments(structure, x, mu)
    spans, pairs = theta.spans, theta.pairs
    total = segment_marginals(structure, T, spans, pairs, theta.logs, mu.spans, mu.pairs)
    make_dense(structure, T, mu, -coef)
    for t in range(T):
        mu.nodes[t * structure.width + gold[first + t]] += mu.nodes.dtype.type(coef)
    add_segments(structure, x, gold, first, coef, mu)
    return total - segments_score(structure, T, theta, gold, first)


@shared_kernel
def risk_of_segments(structure, x, theta, cost, inverse_temperature, coef, mu):
    """Set ``mu`` to ``-coef`` times the slope of the expected cost, which is returned."""
    T, prices, charged, scaled = length(x), theta.prices, theta.charged, theta.scaled
    clear_segments(structure, x, mu)
    scale_scores(structure, T, theta, inverse_temperature)
    blank_spans(structure, T, prices)
    charge_spans(structure, x, cost, 1.0, prices, theta.running, prices)
    risk = segment_covariances(
        structure, T, charged, scaled, prices, theta.logs, theta.costs, mu.spans, mu.pairs
    )
    make_dense(structure, T, mu, -coef * inverse_temperature)
    return risk


@shared_kernel
def kl_of_segments(structure, x, theta, cost, inverse_temperature, coef, mu):
    """Set ``mu`` to ``coef`` (Q - P); returns the divergence of Q from P."""
    T, K, desired, scaled = length(x), structure.begin.size, theta.charged, theta.scaled
    clear_segments(structure, x, mu)
    scale_scores(structure, T, theta, 0.0)  # what is forbidden stays so
    charge_spans(structure, x, cost, -inverse_temperature, desired, theta.running, desired)
    value = -segment_marginals(structure, T, desired, scaled, theta.logs, mu.spans, mu.pairs)
    for t in range(T):
        for q in range(t * structure.longest * K, stop_of(structure, T, t)):
            mean = mu.spans[q]
            if mean > 0.0:
                value += mean * (desired[q] - theta.spans[q])
            desired[q] = mean
    for q in range(K * K):
        if mu.pairs[q] > 0.0:
            value -= mu.pairs[q] * theta.pairs[q]
        scaled[q] = mu.pairs[q]
    spans, pairs = theta.spans, theta.pairs
    value += segment_marginals(structure, T, spans, pairs, theta.logs, mu.spans, mu.pairs)
    for t in range(T):
        for q in range(t * structure.longest * K, stop_of(structure, T, t)):
            mu.spans[q] -= desired[q]
    for q in range(K * K):
        mu.pairs[q] -= scaled[q]
    make_dense(structure, T, mu, -coef)
    return max(0.0, value)


@helper
def scale_scores(structure, T, theta, factor):
    """Leave ``factor`` times all scores in ``charged`` and ``scaled``; what is forbidden stays."""
    K = structure.begin.size
    for t in range(T):
        for q in range(t * structure.longest * K, stop_of(structure, T, t)):
            score = theta.spans[q]
            theta.charged[q] = factor * score if score > -math.inf else score
    for q in range(K * K):
        theta.scaled[q] = factor * theta.pairs[q]

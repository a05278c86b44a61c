"""How a cost that adds up over positions varies with the parts of a label sequence.

By the Markov property, given a transition the costs before and after it are independent:

    E[cost | i, u at t] = a[t-1, i] + c[t, u] + b[t, u]
    a[t, u] = c[t, u] + sum_i P(i | u at t) a[t-1, i]        cost up to t, u's own included
    b[t-1, i] = sum_u P(u at t | i) (c[t, u] + b[t, u])      cost after t - 1

All of them are means, so that nothing under- or overflows where the probabilities do not.
"""

from __future__ import annotations

import math

import numpy as np

from hopefear.core.component import helper, shared_kernel
from hopefear.structures.lattice.log_space import log_marginals
from hopefear.structures.lattice.marginals import OFF_RANGE, backward, forward
from hopefear.structures.lattice.shape import contexts, offset, states


@shared_kernel
def cost_covariances(shape, T, scores, sums, fb, out):
    """Put the covariance of the cost with every part into ``out``; returns the expected cost.

    Parameters
    ----------
    shape, T, scores : Shape, int, Scores
        The chain, the number of tokens, the scores of its parts.
    sums : CostSums
        With the cost of every label at every position in ``prices``.
    fb : Forward
        Working memory for at least ``T`` tokens.
    out : Scores
        ``out.nodes[t * W + c]`` becomes Cov(cost, label c at t); ``out.edges``, laid out as the
        scores, the covariance with the number of uses of every entry. Zero in the padding, and
        everywhere if no sequence is allowed.
    """
    L, W, K, S = shape.labels, shape.width, contexts(shape), states(shape)
    prices, before, after = sums.prices, sums.before, sums.after
    nodes, edges = out.nodes, out.edges
    size = (T - 1 if shape.rich else shape.order) * S * W
    nodes[: T * W] = 0.0
    edges[:size] = 0.0
    total = forward(shape, T, scores, fb)
    logs = total == OFF_RANGE
    if logs:
        total = log_marginals(shape, T, scores, fb.alpha, fb.x, out)
        edges[:size] = 0.0
    elif total > -np.inf:
        backward(shape, T, fb, nodes)
    if total == -np.inf:
        return 0.0
    mean, last = 0.0, (T - 1) * S
    for c in range(L):
        before[c * K] = prices[c]
        if T == 1:
            after[c * K] = nodes[c]
            mean += after[c * K] * prices[c]
    for t in range(1, T):
        known = 1 if K > 1 and t == 1 else L
        for c in range(L):
            for m in range(L if K > 1 else 1):
                u = t * S + c * K + m
                s, e = (t - 1) * S + m * W, offset(shape, t) + (c * K + m) * W
                share, cost = 0.0, 0.0
                for i in range(known):
                    p = _share(fb, scores.edges, logs, total, s + i, e + i, u)
                    share += p
                    cost += p * before[s + i]
                before[u] = prices[t * W + c] + (cost / share if share > 0.0 else 0.0)
                if t == T - 1:
                    after[u] = share
                    mean += share * before[u]
    nodes[: T * W] = 0.0
    for c in range(L):
        for u in range(last + c * K, last + c * K + (L if K > 1 and T > 1 else 1)):
            nodes[(T - 1) * W + c] += after[u] * (before[u] - mean)
            after[u] = 0.0
    for t in range(T - 1, 0, -1):
        known = 1 if K > 1 and t == 1 else L
        for m in range(L if K > 1 else 1):
            for i in range(known):
                s, share, cost = (t - 1) * S + m * W + i, 0.0, 0.0
                for c in range(L):
                    u, e = t * S + c * K + m, offset(shape, t) + (c * K + m) * W + i
                    p = _share(fb, scores.edges, logs, total, s, e, u)
                    later = prices[t * W + c] + after[u]
                    share += p
                    cost += p * later
                    edges[e] += p * (before[s] + later - mean)
                after[s] = cost / share if share > 0.0 else 0.0
                newest = m if K > 1 else i
                nodes[(t - 1) * W + newest] += share * (before[s] + after[s] - mean)
    return mean


@helper(inline=True)
def _share(fb, edges, logs, total, s, e, u):
    """Probability of entering state ``u`` from state ``s`` by the entry ``e`` of a table."""
    if logs:
        return math.exp(fb.alpha[s] + np.float64(edges[e]) + fb.x[u] - total)
    return fb.alpha[s] * fb.edges[e] * fb.x[u]

"""Sums over all label sequences: log Z and expected counts by forward and backward recursions.

    alpha[t, u] = n[t, u] sum_i alpha[t-1, i] E[u, i] / z_t          alpha sums to 1 at every t
    beta[t-1, i] = sum_u E[u, i] x[t, u],   x[t, u] = n[t, u] beta[t, u] / z_t
    log Z = sum_t log z_t + what was taken off before the exponentials n and E were formed
    P(state u at t) = alpha[t, u] beta[t, u],   P(i, u at t) = alpha[t-1, i] E[u, i] x[t, u]

Only T * L node scores and each edge table once are exponentiated. That is exact to rounding unless
some alpha is too small for a float64, which is watched; the sums are then taken in logarithms.
"""

from __future__ import annotations

import math

import numpy as np

from hopefear.core.component import helper, shared_kernel
from hopefear.structures.lattice.exponential import exp_from
from hopefear.structures.lattice.lanes import sum_product
from hopefear.structures.lattice.log_space import log_forward, log_marginals
from hopefear.structures.lattice.shape import contexts, offset, states

# Products that stay above this lose nothing, and what is divided by them stays finite.
_SMALLEST = -575.0
OFF_RANGE = np.inf  # answer of forward where logarithms are needed


@shared_kernel
def log_z(shape, T, scores, fb):
    """Logarithm of the sum of ``exp(score)`` over all sequences; minus infinity if none is allowed.

    ``exp(path_score - log_z)`` is the probability of a sequence.
    """
    total = forward(shape, T, scores, fb)
    return log_forward(shape, T, scores, fb.alpha) if total == OFF_RANGE else total


@shared_kernel
def marginals(shape, T, scores, fb, out):
    """Put expected counts of all parts into ``out`` and return log Z.

    Parameters
    ----------
    shape, T, scores : Shape, int, Scores
        The chain, the number of tokens, the scores of its parts.
    fb : Forward
        Working memory for at least ``T`` tokens.
    out : Scores
        ``out.nodes[t * W + c]`` becomes P(label c at t); ``out.edges``, laid out as the scores,
        the expected number of uses of every entry. Zero in the padding, and everywhere if no
        sequence is allowed (log Z is then minus infinity).

    Examples
    --------
    >>> from hopefear.structures.lattice import new_forward, new_scores, new_shape
    >>> shape = new_shape(2)
    >>> scores, out = new_scores(shape, 3), new_scores(shape, 3)
    >>> scores.nodes[1] = np.log(3.0)
    >>> round(float(marginals(shape, 3, scores, new_forward(shape, 3), out)), 4)
    2.7726
    >>> out.nodes.reshape(3, 4)[:, :2].tolist()
    [[0.25, 0.75], [0.5, 0.5], [0.5, 0.5]]
    """
    size = states(shape) * shape.width
    used = (T - 1 if shape.rich else shape.order) * size
    nodes, edges = out.nodes, out.edges
    for k in range(used):
        edges[k] = 0.0
    for k in range(T * shape.width):
        nodes[k] = 0.0
    total = forward(shape, T, scores, fb)
    if total == OFF_RANGE:
        return log_marginals(shape, T, scores, fb.alpha, fb.x, out)
    if total > -np.inf:
        backward(shape, T, fb, nodes)
        _count_edges(shape, T, fb, edges)
    return total


@helper
def forward(shape, T, scores, fb):
    """log Z, with alpha, z and the exponentials filled in; ``OFF_RANGE``: use logarithms."""
    L, W, K, S = shape.labels, shape.width, contexts(shape), states(shape)
    alpha, nodes, turned, row, z = fb.alpha, fb.nodes, fb.turned, fb.row, fb.z
    node_scores = scores.nodes
    total, smallest, table = 0.0, 0.0, -1
    edge_top, edge_low = 0.0, 0.0
    for t in range(T):
        top, low = _extent(node_scores, t * W, L, -np.inf, np.inf)
        if top == -np.inf:
            return -np.inf
        exp_from(nodes, t * W, node_scores, t * W, top, W)
        if t > 0 and offset(shape, t) != table:
            table = offset(shape, t)
            edge_top, edge_low = _enter_table(shape, t, scores.edges, fb.edges, turned)
            if edge_top == -np.inf:
                return -np.inf
        if smallest + low - top + edge_low < _SMALLEST:
            return OFF_RANGE
        older = L if K > 1 and t > 0 else 1
        known = 1 if K > 1 and t == 1 else L
        z_t, least = 0.0, 1.0
        for m in range(older):
            if t > 0:
                sum_product(row, 0, turned, m * W * W, W, alpha, (t - 1) * S + m * W, 1, known, W)
            for c in range(L):
                a = nodes[t * W + c] * (row[c] if t > 0 else 1.0)
                alpha[t * S + c * K + m] = a
                z_t += a
                if 0.0 < a < least:
                    least = a
        if z_t == 0.0:
            return -np.inf
        z[t] = z_t
        scale = 1.0 / z_t
        for c in range(L):
            for m in range(older):
                alpha[t * S + c * K + m] *= scale
        smallest = math.log(least) - math.log(z_t)
        total += math.log(z_t) + top + (edge_top if t > 0 else 0.0)
    return total


@helper(inline=True)
def _extent(values, place, count, top, low):
    """The largest and the smallest finite of ``top``, ``low`` and these values."""
    for i in range(count):
        v = np.float64(values[place + i])
        if v > top:
            top = v
        if -np.inf < v < low:
            low = v
    return top, low


@helper
def _enter_table(shape, t, edges, exps, turned):
    """Exponentiate and turn the table of position ``t``; returns (largest, smallest - largest)."""
    L, W, K = shape.labels, shape.width, contexts(shape)
    table = offset(shape, t)
    older = L if K > 1 else 1
    known = 1 if K > 1 and t == 1 else L
    top, low = -np.inf, np.inf
    for m in range(older):
        for c in range(L):
            top, low = _extent(edges, table + (c * K + m) * W, known, top, low)
    if top == -np.inf:
        return top, 0.0
    for m in range(older):
        for c in range(L):
            u = c * K + m
            exp_from(exps, table + u * W, edges, table + u * W, top, W)
            for i in range(known):
                turned[(m * W + i) * W + c] = exps[table + u * W + i]
    return top, low - top


@helper
def backward(shape, T, fb, out):
    """Fill x, and the probabilities of labels."""
    L, W, K, S = shape.labels, shape.width, contexts(shape), states(shape)
    alpha, nodes, beta, x, exps, z = fb.alpha, fb.nodes, fb.beta, fb.x, fb.edges, fb.z
    for s in range(S):
        beta[s] = 1.0
    for t in range(T - 1, -1, -1):
        older = L if K > 1 and t > 0 else 1
        if t < T - 1:
            table = offset(shape, t + 1)
            for m in range(L if K > 1 else 1):
                sum_product(beta, m * W, exps, table + m * W, K * W, x, (t + 1) * S + m, K, L, W)
        scale = 1.0 / z[t]
        for c in range(L):
            p = 0.0
            node = nodes[t * W + c] * scale
            for s in range(c * K, c * K + older):
                a = alpha[t * S + s]
                # What cannot be reached may have any beta, even one that is not finite.
                b = beta[s] if a > 0.0 else 0.0
                p += a * b
                x[t * S + s] = node * b
            out[t * W + c] = p


@helper
def _count_edges(shape, T, fb, out):
    """Expected uses of every table entry, summed over the positions that share the table."""
    L, W, K, S = shape.labels, shape.width, contexts(shape), states(shape)
    alpha, x, exps, row = fb.alpha, fb.x, fb.edges, fb.row
    first = 1
    while first < T:
        table = offset(shape, first)
        last = first
        if offset(shape, T - 1) == table:
            last = T - 1
        known = 1 if K > 1 and first == 1 else L
        for c in range(L):
            for m in range(L if K > 1 else 1):
                u = c * K + m
                sum_product(
                    row,
                    0,
                    alpha,
                    (first - 1) * S + m * W,
                    S,
                    x,
                    first * S + u,
                    S,
                    last - first + 1,
                    W,
                )
                for i in range(known):
                    out[table + u * W + i] = row[i] * exps[table + u * W + i]
        first = last + 1

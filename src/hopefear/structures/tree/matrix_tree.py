"""Sums over all trees, arcs may cross: the matrix-tree theorem, by an elimination without minus.

The sum over all trees of products of weights is a determinant (Koo et al., 2007; McDonald and
Satta, 2007; Smith and Smith, 2007). Its elimination can be done on the weights themselves, after
Grassmann, Taksar and Heyman (1985): word k leaves the graph, and what came to i through k comes
straight,

    w(j -> i) += w(k -> i) f_k(j),     f_k(j) = w(j -> k) / p_k,     p_k = sum over j of w(j -> k)

for all i, j that remain, and Z is the product of the pivots p_k. Nothing is subtracted, so all
numbers keep their relative accuracy, however close to singular the matrix. With D = dlogZ/dw, and
backwards through the same steps, the first word to come back the last to have left,

    D(k -> i) = sum over j of D(j -> i) f_k(j),     d(j) = sum over i of w(k -> i) D(j -> i)
    D(j -> k) = (d(j) + 1 - V) / p_k,               V = sum over j of d(j) f_k(j)

and the marginal of an arc is w D. V is an expected number of arcs, so that this difference too
is harmless: marginals are as exact as numbers of size n. Covariances of arcs with the total price
of the tree are derivatives of the marginals as scores move along the prices, carried through both.

Exactly one root arc: let every root arc cost z, and take the leading term of Z as z -> 0, exactly.
Then p_k leaves out arcs that cost z as long as it has others, arcs from the root stay in a column
of their own, and the last pivot is what that column holds (this is the Markov chain tree theorem).
A word whose only head is the root is its child for certain: it pays z, and arcs from the root
through it are free.

As in :mod:`hopefear.structures.tree.inside_outside`, the weights of the heads of a word sum to 1,
and where products get too small for a float64 the same steps are done in logarithms.

References: Koo, Globerson, Carreras and Collins (2007), "Structured prediction models via the
matrix-tree theorem"; Smith and Smith (2007), "Probabilistic models of nonprojective dependency
trees"; McDonald and Satta (2007), "On the complexity of non-projective data-driven dependency
parsing"; Grassmann, Taksar and Heyman (1985), "Regenerative analysis and steady state
distributions for Markov chains".
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hopefear.core.component import helper, shared_kernel
from hopefear.structures.lattice.lanes import sum_product
from hopefear.structures.tree.inside_outside import normalised_weights, weight_width

_SMALLEST = 1e-100  # product of pivots from which on what underflows does not matter
_PAID, _FREE = 0, 1  # columns of root arcs that cost z, and of those that do not


class MatrixSpace(NamedTuple):
    """Working memory of the sums over all trees; matrices have ``width(longest)`` columns.

    Column h + 1 of row m belongs to the arc h -> m, but for the two columns of the root.
    """

    weights: np.ndarray  # float64[(longest + 1) * weight_width(longest)]: [m, h]
    changes: np.ndarray  # float64[(longest + 1) * weight_width(longest)]: as scores move
    row: np.ndarray  # float64[weight_width(longest)]
    factors: np.ndarray  # f_k in row k, w(k -> i) in column k + 1; logarithms where needed
    factor_slopes: np.ndarray
    D: np.ndarray  # dlogZ/dw
    D_slopes: np.ndarray
    turned: np.ndarray  # D by columns; where logarithms are needed, the scale of D
    turned_slopes: np.ndarray
    pivots: np.ndarray  # float64[longest + 1]
    pivot_slopes: np.ndarray
    forced: np.ndarray  # bool[longest + 1]: whether the only head of a word is the root
    sums: np.ndarray  # float64[3 * width(longest)]


def new_matrix_space(longest: int) -> MatrixSpace:
    """Memory for sentences of up to ``longest`` words: ``64 n**2`` bytes, 6 MB for 300 words."""
    size = (longest + 1) * weight_width(longest)
    Q = width(longest)
    return MatrixSpace(
        weights=np.zeros(size),
        changes=np.zeros(size),
        row=np.zeros(weight_width(longest)),
        factors=np.zeros(Q * Q),
        factor_slopes=np.zeros(Q * Q),
        D=np.zeros(Q * Q),
        D_slopes=np.zeros(Q * Q),
        turned=np.zeros(Q * Q),
        turned_slopes=np.zeros(Q * Q),
        pivots=np.zeros(longest + 1),
        pivot_slopes=np.zeros(longest + 1),
        forced=np.zeros(longest + 1, np.bool_),
        sums=np.zeros(3 * Q),
    )


@helper
def width(n):
    """Columns of a matrix: n + 2, rounded up to groups of eight."""
    return ((n + 1) // 8 + 1) * 8


@shared_kernel
def nonprojective_marginals(n, scores, single, space, marginals):
    """Put the probabilities of all arcs into ``marginals`` and return log Z.

    Parameters
    ----------
    n, scores, single
        As for :func:`~hopefear.structures.tree.spanning.spanning_tree`.
    space : MatrixSpace
        Working memory for at least ``n`` words.
    marginals : float64[(n + 1) ** 2]
        ``marginals[m * (n + 1) + h]`` becomes P(h -> m); 0 everywhere where no tree is allowed
        (log Z is then minus infinity).

    Examples
    --------
    >>> marginals = np.zeros(16)
    >>> log_z = nonprojective_marginals(3, np.zeros(16), False, new_matrix_space(3), marginals)
    >>> round(float(np.exp(log_z)), 6), marginals.reshape(4, 4)[1].round(6).tolist()
    (16.0, [0.5, 0.0, 0.25, 0.25])
    """
    return _sums(n, scores, scores, single, False, space, marginals, marginals)


@shared_kernel
def nonprojective_covariances(n, scores, prices, single, space, marginals, slopes):
    """As :func:`nonprojective_marginals`, and covariances with the price of the tree.

    ``slopes[m * (n + 1) + h]`` becomes Cov(h -> m is in the tree, sum of ``prices`` of its arcs).
    Prices are laid out as scores and finite wherever the score is.
    """
    return _sums(n, scores, prices, single, True, space, marginals, slopes)


@helper
def _sums(n, scores, prices, single, with_slopes, space, marginals, slopes):
    for p in range((n + 1) * (n + 1)):
        marginals[p] = 0.0
        slopes[p] = 0.0
    log_scale = normalised_weights(n, scores, prices, with_slopes, space)
    if log_scale == -np.inf:
        return log_scale
    E = weight_width(n)
    last = 1  # the word that leaves last: a likely child of the root
    if single:
        for m in range(2, n + 1):
            if space.weights[m * E] > space.weights[last * E]:
                last = m
    log_z = _eliminate(n, single, last, space)
    if log_z == -np.inf:
        return _log_sums(n, scores, prices, single, last, with_slopes, space, marginals, slopes)
    _return_words(n, space)
    if with_slopes:
        _eliminate_slopes(n, single, last, space)
        _return_slopes(n, space)
    Q = width(n)
    for k in range(1, n + 1):
        m = _word(k, last)
        for j in range(n + 1):
            if j == k:
                continue
            h = _word(j, last)
            p = k * Q + _column(j, single)
            marginals[m * (n + 1) + h] = max(space.weights[m * E + h] * space.D[p], 0.0)
            if with_slopes:
                slopes[m * (n + 1) + h] = (
                    space.changes[m * E + h] * space.D[p]
                    + space.weights[m * E + h] * space.D_slopes[p]
                )
    return log_scale + log_z


@helper(inline=True)
def _word(k, last):
    """The word that row ``k`` stands for: words 1 and ``last`` change places."""
    if k == 1:
        return last
    return 1 if k == last else k


@helper(inline=True)
def _column(j, single):
    """The column of head ``j``."""
    if j == 0:
        return _PAID if single else _FREE
    return j + 1


@helper
def _fill(n, single, last, weights, matrix):
    """Lay weights out as a matrix, words in the order in which they leave."""
    E, Q = weight_width(n), width(n)
    for k in range(1, n + 1):
        m = _word(k, last)
        matrix[k * Q + _PAID] = 0.0
        matrix[k * Q + _FREE] = 0.0
        for j in range(n + 1):
            matrix[k * Q + _column(j, single)] = weights[m * E + _word(j, last)]


@helper(inline=True)
def _add(matrix, o, factor, other, p, count):
    for j in range(count):
        matrix[o + j] += factor * other[p + j]


@helper
def _eliminate(n, single, last, space):
    """Let all words leave; returns log Z, or minus infinity where logarithms are needed."""
    Q = width(n)
    F, pivots, forced = space.factors, space.pivots, space.forced
    _fill(n, single, last, space.weights, F)
    smallest = math.log(_SMALLEST)
    log_z, log_free, paid = 0.0, 0.0, 0  # pivots that were not paid for are at most 1
    for k in range(n, 0, -1):
        row = k * Q
        pivot = 0.0
        for j in range(_FREE, k + 1):
            pivot += F[row + j]
        forced[k] = pivot == 0.0
        if forced[k]:
            pivot = F[row + _PAID]
            paid += 1
            if pivot == 0.0 or paid > 1:
                return -np.inf
            F[row + _PAID], F[row + _FREE] = 0.0, 1.0
        else:
            log_free += math.log(pivot)
            if log_free < smallest:
                return -np.inf
            scale = 1.0 / pivot
            for j in range(k + 1):
                F[row + j] *= scale
        pivots[k] = pivot
        log_z += math.log(pivot)
        for i in range(1, k):
            _add(F, i * Q, F[i * Q + k + 1], F, row, k + 1)
    return log_z if log_z >= smallest else -np.inf


@helper
def _return_words(n, space):
    """Fill D, row and column of one word after the other."""
    Q = width(n)
    F, D, turned, sums = space.factors, space.D, space.turned, space.sums
    for p in range(Q * Q):
        D[p] = 0.0
        turned[p] = 0.0
    for k in range(1, n + 1):
        row = k * Q
        groups = (k // 8 + 1) * 8
        sum_product(sums, Q, turned, 0, Q, F, row, 1, k + 1, groups)
        for i in range(1, k):
            D[i * Q + k + 1] = sums[Q + i]
            turned[(k + 1) * Q + i] = sums[Q + i]
        sum_product(sums, 0, D, Q, Q, F, Q + k + 1, Q, k - 1, groups)
        V = 0.0
        for j in range(k + 1):
            V += sums[j] * F[row + j]
        scale = 1.0 / space.pivots[k]
        if space.forced[k]:
            D[row + _PAID] = scale
            turned[_PAID * Q + k] = scale
            continue
        for j in range(k + 1):
            D[row + j] = (sums[j] + (1.0 - V if j >= _FREE else 0.0)) * scale
            turned[j * Q + k] = D[row + j]


@helper
def _eliminate_slopes(n, single, last, space):
    """How the factors change, behind :func:`_eliminate`."""
    Q = width(n)
    F, G, pivots = space.factors, space.factor_slopes, space.pivots
    _fill(n, single, last, space.changes, G)
    for k in range(n, 0, -1):
        row = k * Q
        slope = 0.0
        if space.forced[k]:
            slope = G[row + _PAID]
            for j in range(k + 1):
                G[row + j] = 0.0
        else:
            for j in range(_FREE, k + 1):
                slope += G[row + j]
            for j in range(k + 1):
                G[row + j] = (G[row + j] - F[row + j] * slope) / pivots[k]
        space.pivot_slopes[k] = slope
        for i in range(1, k):
            _add(G, i * Q, G[i * Q + k + 1], F, row, k + 1)
            _add(G, i * Q, F[i * Q + k + 1], G, row, k + 1)


@helper
def _return_slopes(n, space):
    """How D changes, behind :func:`_return_words`."""
    Q = width(n)
    F, G, D, turned, sums = space.factors, space.factor_slopes, space.D, space.turned, space.sums
    D_slopes, turned_slopes = space.D_slopes, space.turned_slopes
    for p in range(Q * Q):
        D_slopes[p] = 0.0
        turned_slopes[p] = 0.0
    for k in range(1, n + 1):
        row = k * Q
        groups = (k // 8 + 1) * 8
        sum_product(sums, 0, turned_slopes, 0, Q, F, row, 1, k + 1, groups)
        sum_product(sums, Q, turned, 0, Q, G, row, 1, k + 1, groups)
        for i in range(1, k):
            slope = sums[i] + sums[Q + i]
            D_slopes[i * Q + k + 1] = slope
            turned_slopes[(k + 1) * Q + i] = slope
        sum_product(sums, 0, D, Q, Q, F, Q + k + 1, Q, k - 1, groups)
        sum_product(sums, Q, D, Q, Q, G, Q + k + 1, Q, k - 1, groups)
        sum_product(sums, 2 * Q, D_slopes, Q, Q, F, Q + k + 1, Q, k - 1, groups)
        V_slope = 0.0
        for j in range(k + 1):
            sums[Q + j] += sums[2 * Q + j]
            V_slope += sums[Q + j] * F[row + j] + sums[j] * G[row + j]
        change = space.pivot_slopes[k]
        for j in range(k + 1):
            slope = 0.0 if space.forced[k] else sums[Q + j]
            if j >= _FREE and not space.forced[k]:
                slope -= V_slope
            D_slopes[row + j] = (slope - D[row + j] * change) / space.pivots[k]
            turned_slopes[j * Q + k] = D_slopes[row + j]


# The same in logarithms. A weight is exp(F), and changes by G exp(F). D is signed, since
# differences of rounded numbers are: D exp(S), changing by D_slopes exp(S).


@helper
def _log_sums(n, scores, prices, single, last, with_slopes, space, marginals, slopes):
    """log Z, marginals and covariances for scores of any size."""
    N, Q = n + 1, width(n)
    F, G = space.factors, space.factor_slopes
    D, D_slopes, S = space.D, space.D_slopes, space.turned
    for k in range(1, N):
        m = _word(k, last)
        for j in range(_FREE + 1):
            F[k * Q + j], G[k * Q + j] = -np.inf, 0.0
        for j in range(N):
            p = m * N + _word(j, last)
            score = scores[p] if j != k else -np.inf
            F[k * Q + _column(j, single)] = score
            change = prices[p] if with_slopes and score > -np.inf else 0.0
            G[k * Q + _column(j, single)] = change
    log_z, paid = 0.0, 0
    for k in range(n, 0, -1):
        paid += _log_leave(Q, k, space)
        log_z += space.pivots[k]
        if log_z == -np.inf or paid > 1:
            return -np.inf
    for k in range(1, N):
        _log_return(Q, k, space)
    for k in range(1, N):
        m = _word(k, last)
        for j in range(N):
            p = m * N + _word(j, last)
            if j == k or scores[p] == -np.inf:
                continue
            q = k * Q + _column(j, single)
            share = math.exp(S[q] + scores[p])
            marginals[p] = max(D[q] * share, 0.0)
            if with_slopes:
                slopes[p] = (D_slopes[q] + D[q] * prices[p]) * share
    return log_z


@helper
def _log_leave(Q, k, space):
    """Let word ``k`` leave; returns 1 if it paid for an arc from the root, else 0."""
    F, G = space.factors, space.factor_slopes
    row = k * Q
    top = -np.inf
    for j in range(_FREE, k + 1):
        top = max(top, F[row + j])
    space.forced[k] = top == -np.inf
    if space.forced[k]:
        space.pivots[k], space.pivot_slopes[k] = F[row + _PAID], G[row + _PAID]
        F[row + _PAID], F[row + _FREE] = -np.inf, 0.0
        G[row + _PAID], G[row + _FREE] = 0.0, 0.0
    else:
        total, slope = 0.0, 0.0
        for j in range(_FREE, k + 1):
            share = math.exp(F[row + j] - top)
            total += share
            slope += share * G[row + j]
        space.pivots[k], space.pivot_slopes[k] = top + math.log(total), slope / total
        for j in range(k + 1):
            F[row + j] -= space.pivots[k]
            G[row + j] -= space.pivot_slopes[k]
    for i in range(1, k):
        c, c_slope = F[i * Q + k + 1], G[i * Q + k + 1]
        if c == -np.inf:
            continue
        for j in range(k + 1):
            way = c + F[row + j]
            if j == i + 1 or way == -np.inf:
                continue
            p = i * Q + j
            top = max(F[p], way)
            old, new = math.exp(F[p] - top), math.exp(way - top)
            G[p] = (old * G[p] + new * (c_slope + G[row + j])) / (old + new)
            F[p] = top + math.log(old + new)
    return 1 if space.forced[k] else 0


@helper
def _log_return(Q, k, space):
    """Row and column of D for word ``k``."""
    F, G, sums = space.factors, space.factor_slopes, space.sums
    row = k * Q
    for i in range(1, k):
        total, slope, top = _signed_sum(space, i * Q, 1, row, 1, k + 1)
        _set(space, i * Q + k + 1, total, slope, top)
    _set(space, row + k + 1, 0.0, 0.0, 0.0)
    V, V_slope = 0.0, 0.0
    for j in range(k + 1):
        total, slope, top = _signed_sum(space, Q + j, Q, Q + k + 1, Q, k - 1)
        sums[j], sums[Q + j], sums[2 * Q + j] = total, slope, top
        if total != 0.0 and F[row + j] > -np.inf:
            count = math.exp(top + F[row + j])
            V += total * count
            V_slope += (slope + total * G[row + j]) * count
    pivot, change = space.pivots[k], space.pivot_slopes[k]
    for j in range(k + 1):
        if space.forced[k]:
            _set(space, row + j, 1.0 if j == _PAID else 0.0, -change, -pivot)
            continue
        total, slope, top = sums[j], sums[Q + j], sums[2 * Q + j]
        if j >= _FREE:
            scale = max(top, 0.0)
            inner, outer = math.exp(top - scale), math.exp(-scale)
            total = total * inner + (1.0 - V) * outer
            slope = slope * inner - V_slope * outer
            top = scale
        _set(space, row + j, total, slope - total * change, top - pivot)


@helper
def _signed_sum(space, d, d_step, f, f_step, count):
    """Sum of D times weights over ``count`` places: (value, slope, scale), value 0 if empty."""
    D, D_slopes, S = space.D, space.D_slopes, space.turned
    F, G = space.factors, space.factor_slopes
    top = -np.inf
    for k in range(count):
        if D[d + k * d_step] != 0.0:
            top = max(top, S[d + k * d_step] + F[f + k * f_step])
    total, slope = 0.0, 0.0
    if top == -np.inf:
        return total, slope, 0.0
    for k in range(count):
        p, q = d + k * d_step, f + k * f_step
        if D[p] != 0.0 and F[q] > -np.inf:
            share = math.exp(S[p] + F[q] - top)
            total += D[p] * share
            slope += (D_slopes[p] + D[p] * G[q]) * share
    return total, slope, top


@helper(inline=True)
def _set(space, p, value, slope, scale):
    """Store a number of D, its size in the scale."""
    size = abs(value)
    if size == 0.0:
        space.D[p], space.D_slopes[p], space.turned[p] = 0.0, 0.0, -np.inf
    else:
        space.D[p], space.D_slopes[p] = value / size, slope / size
        space.turned[p] = scale + math.log(size)

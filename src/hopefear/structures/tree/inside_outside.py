"""Sums over all projective trees: log Z, marginals of arcs, covariances with a price.

The spans are those of :mod:`hopefear.structures.tree.eisner`, with sums of products in place of
maxima of sums (Eisner's inside recursion; Paskin, 2001; McDonald and Satta, 2007):

    B(i, j) = sum over i <= k < j of R(i, k) L(k + 1, j)
    R(i, j) = sum over i < k <= j of B(i, k) w(i -> k) R(k, j)
    L(i, j) = sum over i <= k < j of L(i, k) U(k, j),     U(i, j) = B(i, j) w(j -> i)

The outside recursion is the derivative of log Z by the spans, taken backwards through the same
sums; the marginal of an arc is that of its incomplete span times the span. Covariances of arcs with
the total price of the tree are derivatives of marginals as scores move along the prices; they are
carried through both recursions beside the values (forward mode).

Weights are ``w(h -> m) = exp(score) / (sum over the heads of m)``. Each is a probability then, and
so is every span; Z is the chance that words which choose their heads independently make a tree.
Nothing overflows, and what is too small for a float64 is too small to matter unless Z is tiny: in
sentences of some 200 words without preferences, or where scores are so large that every tree costs
hundreds more than the heads that words would choose. Then the recursions run on logarithms.

References: Paskin (2001), "Cubic-time parsing and learning algorithms for grammatical bigram
models"; Smith and Smith (2007), "Probabilistic models of nonprojective dependency trees".
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import cgutils, helper, intrinsic, ir, overload, shared_kernel, types
from hopefear.structures.lattice.exponential import exp_from
from hopefear.structures.lattice.vectors import data, load, splat, store
from hopefear.structures.tree.eisner import LANES, PLANES, B, L, R, U, new_chart, row_width

_SMALLEST = 1e-200  # Z from which on what underflows does not matter


class ProjectiveSpace(NamedTuple):
    """Working memory of the sums over projective trees."""

    weights: np.ndarray  # float64[(longest + 1) * weight_width(longest)]: [m, h]
    changes: np.ndarray  # float64[(longest + 1) * weight_width(longest)]: as scores move
    row: np.ndarray  # float64[weight_width(longest)]
    inside: np.ndarray  # a chart as of Eisner's algorithm, and how it changes
    inside_slopes: np.ndarray
    outside: np.ndarray  # derivatives of log Z by the numbers of that chart; their changes
    outside_slopes: np.ndarray


def new_projective_space(longest: int) -> ProjectiveSpace:
    """Memory for sentences of up to ``longest`` words: ``144 n**2`` bytes, 13 MB for 300 words."""
    size = (longest + 1) * weight_width(longest)
    charts = [new_chart(longest) for _ in range(4)]
    return ProjectiveSpace(np.zeros(size), np.zeros(size), np.zeros(weight_width(longest)), *charts)


@helper
def weight_width(n):
    """Numbers in a row of weights: n + 1, rounded up to groups of eight."""
    return (n // 8 + 1) * 8


@shared_kernel
def projective_marginals(n, scores, single, space, marginals):
    """Put the probabilities of all arcs into ``marginals`` and return log Z.

    Parameters
    ----------
    n, scores, single
        As for :func:`~hopefear.structures.tree.eisner.eisner`.
    space : ProjectiveSpace
        Working memory for at least ``n`` words.
    marginals : float64[(n + 1) ** 2]
        ``marginals[m * (n + 1) + h]`` becomes P(h -> m); 0 everywhere where no tree is allowed
        (log Z is then minus infinity).

    Examples
    --------
    >>> marginals = np.zeros(9)
    >>> log_z = projective_marginals(2, np.zeros(9), False, new_projective_space(2), marginals)
    >>> round(float(np.exp(log_z)), 6), marginals.reshape(3, 3)[1:].round(3).tolist()
    (3.0, [[0.667, 0.0, 0.333], [0.667, 0.333, 0.0]])
    """
    return _sums(n, scores, scores, single, False, space, marginals, marginals)


@shared_kernel
def projective_covariances(n, scores, prices, single, space, marginals, slopes):
    """As :func:`projective_marginals`, and covariances with the price of the tree.

    ``slopes[m * (n + 1) + h]`` becomes Cov(h -> m is in the tree, sum of ``prices`` of its arcs).
    Prices are laid out as scores and finite wherever the score is.
    """
    return _sums(n, scores, prices, single, True, space, marginals, slopes)


@helper
def _sums(n, scores, prices, single, with_slopes, space, marginals, slopes):
    for p in range((n + 1) * (n + 1)):
        marginals[p] = 0.0
        slopes[p] = 0.0
    log_z = normalised_weights(n, scores, prices, with_slopes, space)
    if log_z == -np.inf:
        return log_z
    z = _inside(n, single, with_slopes, space)
    if not z >= _SMALLEST:
        return _log_sums(n, scores, prices, single, with_slopes, space, marginals, slopes)
    _outside(n, single, with_slopes, z, space, marginals, slopes)
    return log_z + math.log(z)


@helper
def normalised_weights(n, scores, prices, with_slopes, space):
    """Fill weights and changes of either space; returns the logarithm of what was divided by.

    The weights of the heads of a word sum to 1, and the changes to 0: what all heads of a word
    gain alike makes no difference to the trees.
    """
    E = weight_width(n)
    weights, changes, row = space.weights, space.changes, space.row
    log_scale = 0.0
    for h in range(n + 1, E):
        row[h] = -np.inf
    for m in range(1, n + 1):
        top = -np.inf
        for h in range(n + 1):
            row[h] = scores[m * (n + 1) + h] if h != m else -np.inf
            top = max(top, row[h])
        if top == -np.inf:
            return top
        exp_from(weights, m * E, row, 0, top, E)
        total = 0.0
        for h in range(n + 1):
            total += weights[m * E + h]
        scale = 1.0 / total
        for h in range(n + 1):
            weights[m * E + h] *= scale
        log_scale += top + math.log(total)
        if with_slopes:
            mean = 0.0
            for h in range(n + 1):
                if weights[m * E + h] > 0.0:
                    mean += weights[m * E + h] * prices[m * (n + 1) + h]
            for h in range(n + 1):
                w = weights[m * E + h]
                changes[m * E + h] = w * (prices[m * (n + 1) + h] - mean) if w > 0.0 else 0.0
    return log_scale


@helper
def _clear(chart, start, count):
    for p in range(start, start + count):
        chart[p] = 0.0


@helper
def _inside(n, single, with_slopes, space):
    """Fill the inside chart (and its slopes); returns Z."""
    W, E = row_width(n), weight_width(n)
    block = PLANES * W
    weights, changes = space.weights, space.changes
    chart, slopes = space.inside, space.inside_slopes
    part = (n + 1) * block
    for i in range(n, 0 if single else -1, -1):
        row = i * block
        _clear(chart, row, block)
        _clear(chart, part, block)
        chart[row + R * W + i] = 1.0
        chart[row + L * W + i] = 1.0
        left = 1.0  # R(i, k - 1)
        for k in range(i + 1, n + 1):
            base = chart[part + B * W + k] + left
            right = base * weights[k * E + i]
            up = base * weights[i * E + k] if i > 0 else 0.0
            whole = chart[part + L * W + k] + up
            shorter, left = left, chart[part + R * W + k] + right
            carry(chart, part, chart, k * block, W, k + 1, shorter, right, whole)
            chart[row + B * W + k] = base
            chart[row + R * W + k] = left
            chart[row + L * W + k] = whole
            chart[row + U * W + k] = up
        if not with_slopes:
            continue
        _clear(slopes, row, block)
        _clear(slopes, part, block)
        left, left_slope = 1.0, 0.0
        for k in range(i + 1, n + 1):
            base, slope = chart[row + B * W + k], slopes[part + B * W + k] + left_slope
            right = base * weights[k * E + i]
            right_slope = slope * weights[k * E + i] + base * changes[k * E + i]
            up_slope = slope * weights[i * E + k] + base * changes[i * E + k] if i > 0 else 0.0
            whole, whole_slope = chart[row + L * W + k], slopes[part + L * W + k] + up_slope
            shorter, shorter_slope = left, left_slope
            left, left_slope = chart[row + R * W + k], slopes[part + R * W + k] + right_slope
            table = k * block
            carry(slopes, part, chart, table, W, k + 1, shorter_slope, right_slope, whole_slope)
            carry(slopes, part, slopes, table, W, k + 1, shorter, right, whole)
            slopes[row + B * W + k] = slope
            slopes[row + R * W + k] = left_slope
            slopes[row + L * W + k] = whole_slope
            slopes[row + U * W + k] = up_slope
    if not single:
        return chart[R * W + n]
    z = 0.0
    for k in range(1, n + 1):
        z += chart[block + L * W + k] * weights[k * E] * chart[k * block + R * W + n]
    return z


@helper
def _outside(n, single, with_slopes, z, space, marginals, slopes):
    """Derivatives of log Z by the spans, from wide to narrow, and what they say about arcs."""
    W, E = row_width(n), weight_width(n)
    N, block = n + 1, PLANES * W
    weights, changes = space.weights, space.changes
    inside, inside_slopes = space.inside, space.inside_slopes
    chart, chart_slopes = space.outside, space.outside_slopes
    _clear(chart, 0, (n + 1) * block)
    if with_slopes:
        _clear(chart_slopes, 0, (n + 1) * block)
    part = (n + 1) * block
    if single:
        _start_single(n, with_slopes, z, space, marginals, slopes)
    else:
        chart[R * W + n] = 1.0 / z
        chart_slopes[R * W + n] = -inside_slopes[R * W + n] / z / z if with_slopes else 0.0
    for i in range(1 if single else 0, n):
        row = i * block
        _clear(chart, part, block)
        if with_slopes:
            _clear(chart_slopes, part, block)
        back, back_slope = 0.0, 0.0  # what span R(i, k) hears from longer ones of its row
        for k in range(n, i, -1):
            table = k * block
            w_right = weights[k * E + i]
            w_up = weights[i * E + k] if i > 0 else 0.0
            base, whole = inside[row + B * W + k], inside[row + L * W + k]
            left = inside[row + R * W + k - 1]
            right = base * w_right
            d_base, d_right, d_whole = carry_back(
                chart, part, inside, table, chart, W, k + 1, left, right, whole
            )
            d_left = chart[row + R * W + k] + back
            d_right += d_left
            d_whole += chart[row + L * W + k]
            d_up = chart[row + U * W + k] + d_whole
            here = d_right * w_right + d_up * w_up
            back = d_base + here
            marginals[k * N + i] = d_right * right
            if i > 0:
                marginals[i * N + k] = d_up * inside[row + U * W + k]
            if with_slopes:
                c_right = changes[k * E + i]
                c_up = changes[i * E + k] if i > 0 else 0.0
                slope = inside_slopes[row + B * W + k]
                right_slope = slope * w_right + base * c_right
                e_base, e_right, e_whole = carry_back(
                    chart_slopes, part, inside, table, chart_slopes, W, k + 1, left, right, whole
                )
                f_base, f_right, f_whole = carry_back(
                    chart,
                    part,
                    inside_slopes,
                    table,
                    chart_slopes,
                    W,
                    k + 1,
                    inside_slopes[row + R * W + k - 1],
                    right_slope,
                    inside_slopes[row + L * W + k],
                )
                e_left = chart_slopes[row + R * W + k] + back_slope
                e_right += f_right + e_left
                e_whole += f_whole + chart_slopes[row + L * W + k]
                e_up = chart_slopes[row + U * W + k] + e_whole
                e_here = e_right * w_right + d_right * c_right + e_up * w_up + d_up * c_up
                back_slope = e_base + f_base + e_here
                slopes[k * N + i] = e_right * right + d_right * right_slope
                if i > 0:
                    slopes[i * N + k] = (
                        e_up * inside[row + U * W + k] + d_up * inside_slopes[row + U * W + k]
                    )
                chart_slopes[part + B * W + k] = e_here
                chart_slopes[part + R * W + k] = e_left
                chart_slopes[part + L * W + k] = e_whole
            chart[part + B * W + k] = here
            chart[part + R * W + k] = d_left
            chart[part + L * W + k] = d_whole


@helper
def _start_single(n, with_slopes, z, space, marginals, slopes):
    """Z = sum over the only child k of the root of ``L(1, k) w(0 -> k) R(k, n)``, backwards."""
    W, E = row_width(n), weight_width(n)
    N, block = n + 1, PLANES * W
    weights, changes = space.weights, space.changes
    inside, inside_slopes = space.inside, space.inside_slopes
    z_slope = 0.0
    for k in range(1, n + 1):
        w = weights[k * E]
        before, behind = inside[block + L * W + k], inside[k * block + R * W + n]
        space.outside[block + L * W + k] = w * behind / z
        space.outside[k * block + R * W + n] = before * w / z
        marginals[k * N] = before * w * behind / z
        if with_slopes:
            before_slope = inside_slopes[block + L * W + k]
            behind_slope = inside_slopes[k * block + R * W + n]
            c = changes[k * E]
            space.outside_slopes[block + L * W + k] = (c * behind + w * behind_slope) / z
            space.outside_slopes[k * block + R * W + n] = (before_slope * w + before * c) / z
            slopes[k * N] = (
                before_slope * w * behind + before * c * behind + before * w * behind_slope
            ) / z
            z_slope += slopes[k * N]  # of log Z
    if with_slopes:
        for k in range(1, n + 1):
            before, behind = block + L * W + k, k * block + R * W + n
            space.outside_slopes[before] -= space.outside[before] * z_slope
            space.outside_slopes[behind] -= space.outside[behind] * z_slope
            slopes[k * N] -= marginals[k * N] * z_slope


def carry(chart, o, tables, t, W, start, left, right, whole):
    """Add three values times the row of ``tables`` at ``t`` to the row of ``chart`` at ``o``.

    B grows by left * L, R by right * R and L by whole * U, from ``start`` on. As for
    `carry_best`, places shortly before it change too: read them first.
    """
    for plane, other, x in ((B, L, left), (R, R, right), (L, U, whole)):
        chart[o + plane * W + start : o + (plane + 1) * W] += (
            x * tables[t + other * W + start : t + (other + 1) * W]
        )


def carry_back(chart, o, tables, t, out, W, start, left, right, whole):
    """Derivatives of :func:`carry`, where the row of ``chart`` at ``o`` holds those of its result.

    Returns the derivatives by left, right and whole; those by the row at ``t`` are added to that
    row of ``out``. The row at ``o`` holds 0 before ``start``.
    """
    sums = []
    for plane, other, x in ((B, L, left), (R, R, right), (L, U, whole)):
        row = chart[o + plane * W + start : o + (plane + 1) * W]
        sums.append(float(row @ tables[t + other * W + start : t + (other + 1) * W]))
        out[t + other * W + start : t + (other + 1) * W] += x * row
    return sums[0], sums[1], sums[2]


@overload(carry, optimize_first=True)
def _carry(chart, o, tables, t, W, start, left, right, whole):
    lanes = intrinsic(_carry_lanes)

    def body(chart, o, tables, t, W, start, left, right, whole):
        return lanes(chart, o, tables, t, W, start, left, right, whole)

    return body


@overload(carry_back, optimize_first=True)
def _carry_back(chart, o, tables, t, out, W, start, left, right, whole):
    lanes = intrinsic(_carry_back_lanes)

    def body(chart, o, tables, t, out, W, start, left, right, whole):
        return lanes(chart, o, tables, t, out, W, start, left, right, whole)

    return body


def _planes(builder: Any, o: Any, t: Any, W: Any, left: Any, right: Any, whole: Any) -> Any:
    """For each of the three sums: where its row is, where its table, and the value as lanes."""
    return [
        (
            builder.add(o, builder.mul(W, W.type(plane))),
            builder.add(t, builder.mul(W, W.type(other))),
            splat(builder, x, LANES),
        )
        for plane, other, x in ((B, L, left), (R, R, right), (L, U, whole))
    ]


def _carry_lanes(typing_context, chart, o, tables, t, W, start, left, right, whole):
    def generate(context, builder, signature, args):
        _, o, _, t, W, start, left, right, whole = args
        chart, tables = (data(context, builder, signature, args, k) for k in (0, 2))
        first = builder.and_(start, start.type(-LANES))
        planes = _planes(builder, o, t, W, left, right, whole)
        with cgutils.for_range_slice(builder, first, W, W.type(LANES), W.type) as (j, _):
            for row, table, x in planes:
                place = builder.add(row, j)
                value = builder.fmul(x, load(builder, tables, builder.add(table, j), LANES))
                total = builder.fadd(load(builder, chart, place, LANES), value)
                store(builder, total, chart, place)
        return context.get_dummy_value()

    place, number = types.intp, types.float64
    return types.void(chart, place, tables, place, place, place, number, number, number), generate


def _carry_back_lanes(typing_context, chart, o, tables, t, out, W, start, left, right, whole):
    def generate(context, builder, signature, args):
        _, o, _, t, _, W, start, left, right, whole = args
        chart, tables, out = (data(context, builder, signature, args, k) for k in (0, 2, 4))
        first = builder.and_(start, start.type(-LANES))
        planes = _planes(builder, o, t, W, left, right, whole)
        lanes = ir.VectorType(ir.DoubleType(), LANES)
        sums = [cgutils.alloca_once_value(builder, ir.Constant(lanes, None)) for _ in planes]
        for total in sums:
            builder.store(ir.Constant(lanes, None), total)
        with cgutils.for_range_slice(builder, first, W, W.type(LANES), W.type) as (j, _):
            for (row, table, x), total in zip(planes, sums, strict=True):
                values = load(builder, chart, builder.add(row, j), LANES)
                place = builder.add(table, j)
                product = builder.fmul(values, load(builder, tables, place, LANES))
                builder.store(builder.fadd(builder.load(total), product), total)
                derivative = builder.fadd(load(builder, out, place, LANES), builder.fmul(x, values))
                store(builder, derivative, out, place)
        totals = []
        for total in sums:
            parts = [
                builder.extract_element(builder.load(total), ir.IntType(32)(k))
                for k in range(LANES)
            ]
            while len(parts) > 1:
                parts = [builder.fadd(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
            totals.append(parts[0])
        return context.make_tuple(builder, signature.return_type, totals)

    place, number = types.intp, types.float64
    return types.UniTuple(number, 3)(
        chart, place, tables, place, out, place, place, number, number, number
    ), generate


# The same in logarithms. Plane B then holds B(i, j) + s(i -> j), so that all sums have one form.


@helper
def _log_sums(n, scores, prices, single, with_slopes, space, marginals, slopes):
    """log Z, marginals and covariances for scores of any size.

    Backwards the numbers are expected counts of spans, each at most 1.
    """
    W = row_width(n)
    N, block = n + 1, PLANES * W
    chart, chart_slopes = space.inside, space.inside_slopes
    counts, count_slopes = space.outside, space.outside_slopes
    _clear(counts, 0, N * block)
    _clear(count_slopes, 0, N * block)
    for i in range(n, 0 if single else -1, -1):
        row = i * block
        for plane in range(PLANES):
            chart[row + plane * W + i] = 0.0 if plane in (R, L) else -np.inf
            chart_slopes[row + plane * W + i] = 0.0
        for j in range(i + 1, N):
            base, slope = _log_sum(chart, chart_slopes, *_splits(i, j, B, W))
            right, up = j * N + i, i * N + j
            chart[row + B * W + j] = base + scores[right]
            chart[row + U * W + j] = base + scores[up] if i > 0 else -np.inf
            chart_slopes[row + B * W + j] = slope + prices[right] if with_slopes else 0.0
            chart_slopes[row + U * W + j] = slope + prices[up] if with_slopes and i > 0 else 0.0
            for plane in (R, L):
                place = row + plane * W + j
                chart[place], chart_slopes[place] = _log_sum(
                    chart, chart_slopes, *_splits(i, j, plane, W)
                )
    log_z = chart[R * W + n]
    if single:
        log_z = _log_single(n, scores, prices, with_slopes, space, marginals, slopes)
    else:
        counts[R * W + n] = 1.0
    if log_z == -np.inf:
        return log_z
    for i in range(1 if single else 0, n):
        row = i * block
        for j in range(n, i, -1):
            for plane in (R, L):
                place = row + plane * W + j
                _spread(
                    space,
                    chart[place],
                    chart_slopes[place],
                    counts[place],
                    count_slopes[place],
                    with_slopes,
                    *_splits(i, j, plane, W),
                )
            right, up = row + B * W + j, row + U * W + j
            marginals[j * N + i] = counts[right]
            if i > 0:
                marginals[i * N + j] = counts[up]
            if with_slopes:
                slopes[j * N + i] = count_slopes[right]
                if i > 0:
                    slopes[i * N + j] = count_slopes[up]
            base, slope = _log_sum(chart, chart_slopes, *_splits(i, j, B, W))
            _spread(
                space,
                base,
                slope,
                counts[right] + counts[up],
                count_slopes[right] + count_slopes[up],
                with_slopes,
                *_splits(i, j, B, W),
            )
    return log_z


@helper(inline=True)
def _splits(i, j, plane, W):
    """Where the two parts of the first split of a span lie, and how many splits there are.

    The first part moves by 1 from split to split, the second by a row, ``PLANES * W``.
    """
    block = PLANES * W
    if plane == B:
        return i * block + R * W + i, (i + 1) * block + L * W + j, block, j - i
    if plane == R:
        return i * block + B * W + i + 1, (i + 1) * block + R * W + j, block, j - i
    return i * block + L * W + i, i * block + U * W + j, block, j - i


@helper
def _log_sum(chart, slopes, first, second, block, count):
    """Logarithm of the sum over all splits of a span, and its slope."""
    top = -np.inf
    for k in range(count):
        top = max(top, chart[first + k] + chart[second + k * block])
    if top == -np.inf:
        return top, 0.0
    total, slope = 0.0, 0.0
    for k in range(count):
        share = math.exp(chart[first + k] + chart[second + k * block] - top)
        total += share
        if share > 0.0:
            slope += share * (slopes[first + k] + slopes[second + k * block])
    return top + math.log(total), slope / total


@helper
def _spread(space, value, slope, count, count_slope, with_slopes, first, second, block, splits):
    """Divide the expected count of a span among its splits."""
    if value == -np.inf:
        return
    chart, counts = space.inside, space.outside
    slopes, count_slopes = space.inside_slopes, space.outside_slopes
    for k in range(splits):
        a, b = first + k, second + k * block
        share = math.exp(chart[a] + chart[b] - value)
        counts[a] += count * share
        counts[b] += count * share
        if with_slopes and share > 0.0:
            change = share * (count_slope + count * (slopes[a] + slopes[b] - slope))
            count_slopes[a] += change
            count_slopes[b] += change


@helper
def _log_single(n, scores, prices, with_slopes, space, marginals, slopes):
    """log Z where the root has one child, and the expected counts of the spans beside it."""
    W = row_width(n)
    N, block = n + 1, PLANES * W
    chart, chart_slopes = space.inside, space.inside_slopes
    counts, count_slopes = space.outside, space.outside_slopes
    top = -np.inf
    for k in range(1, N):
        marginals[k * N] = chart[block + L * W + k] + scores[k * N] + chart[k * block + R * W + n]
        top = max(top, marginals[k * N])
    total, mean = 0.0, 0.0
    for k in range(1, N):
        share = math.exp(marginals[k * N] - top) if top > -np.inf else 0.0
        marginals[k * N] = share
        total += share
        if with_slopes and share > 0.0:
            before, behind = block + L * W + k, k * block + R * W + n
            slopes[k * N] = chart_slopes[before] + prices[k * N] + chart_slopes[behind]
            mean += share * slopes[k * N]
    if total == 0.0:
        return -np.inf
    for k in range(1, N):
        before, behind = block + L * W + k, k * block + R * W + n
        marginals[k * N] /= total
        counts[before] += marginals[k * N]
        counts[behind] += marginals[k * N]
        if with_slopes:
            slopes[k * N] = marginals[k * N] * (slopes[k * N] - mean / total)
            count_slopes[before] += slopes[k * N]
            count_slopes[behind] += slopes[k * N]
    return top + math.log(total)

"""The best projective tree: Eisner's algorithm (1996), on arcs alone.

Spans i..j of four kinds, each worth the best score of the arcs within it (i < j, h -> m an arc):

    B(i, j)  = max over i <= k < j of R(i, k) + L(k + 1, j)     two halves that an arc will join
    R(i, j)  = max over i < k <= j of B(i, k) + s(i -> k) + R(k, j)     complete, headed by i
    L(i, j)  = max over i <= k < j of L(i, k) + U(k, j)                 complete, headed by j
    U(i, j)  = B(i, j) + s(j -> i)                                      incomplete, headed by j

with R(i, i) = L(i, i) = 0; the answer is R(0, n). (Eisner's incomplete span headed by i is
B(i, j) + s(i -> j).) Rows i are filled from the last to the first, and in a row every k that is
complete is at once carried to all j behind it. All three maxima then read row k (or k + 1) of a
chart at neighbouring j, so they run together over contiguous memory, several j an instruction.
No choices are recorded: following the best tree down looks at O(n) splits for each of 2 n spans.

References: Eisner (1996), "Three new probabilistic models for dependency parsing".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import cgutils, helper, intrinsic, ir, overload, shared_kernel, types
from hopefear.structures.lattice.vectors import data, load, splat, store

LANES = 4
PLANES = 4  # of every row of a chart, in this order:
B, R, L, U = range(PLANES)


class EisnerSpace(NamedTuple):
    """Working memory of :func:`eisner`."""

    chart: np.ndarray  # float64[(longest + 2) * PLANES * row_width(longest)]
    stack: np.ndarray  # int32[3 * 2 * (longest + 1)]: spans that are still to be followed


def new_eisner_space(longest: int) -> EisnerSpace:
    """Memory for sentences of up to ``longest`` words: ``32 n**2`` bytes, 3 MB for 300 words."""
    return EisnerSpace(new_chart(longest), np.zeros(6 * (longest + 1), np.int32))


def new_chart(longest: int) -> np.ndarray:
    """Room for spans of all kinds, row by row, and one row more for what is not yet complete.

    That is kept apart because a number that was stored alone is slow to read in a group.
    """
    return np.zeros((longest + 2) * PLANES * row_width(longest))


@helper
def row_width(n):
    """Numbers in one plane of a row: n + 1, rounded up to whole groups of lanes."""
    return (n // LANES + 1) * LANES


@shared_kernel
def eisner(n, scores, single, space, heads):
    """Put the best projective tree into ``heads[1:n + 1]`` and return its score.

    Parameters
    ----------
    n : int
        Words of the sentence, at least 1.
    scores : float64[(n + 1) ** 2]
        ``scores[m * (n + 1) + h]`` of the arc h -> m; minus infinity forbids it. What stands
        at h = m and m = 0 is not read.
    single : bool
        Whether exactly one word hangs on the root (else at least one).
    space : EisnerSpace
        Working memory for at least ``n`` words.
    heads : int32[n + 1]
        Left as it is where no tree is allowed; the answer is then minus infinity.

    Examples
    --------
    >>> scores = np.zeros((3, 3))  # [m, h]
    >>> scores[1, 2], scores[2, 1], scores[2, 0] = 2.0, 3.0, 2.0
    >>> heads = np.zeros(3, np.int32)
    >>> float(eisner(2, scores.ravel(), True, new_eisner_space(2), heads)), heads.tolist()
    (4.0, [0, 2, 0])
    """
    chart = space.chart
    W = row_width(n)
    block = PLANES * W
    for i in range(n, 0, -1):
        _fill_row(n, i, scores, chart, W)
    if single:
        top, best = 0, -np.inf
        for k in range(1, n + 1):
            score = chart[block + L * W + k] + scores[k * (n + 1)] + chart[k * block + R * W + n]
            if score > best:
                top, best = k, score
        if best == -np.inf:
            return best
        heads[top] = 0
        spans = _push(space.stack, 0, 1, top, L)
        spans = _push(space.stack, spans, top, n, R)
    else:
        _fill_row(n, 0, scores, chart, W)
        best = chart[R * W + n]
        if best == -np.inf:
            return best
        spans = _push(space.stack, 0, 0, n, R)
    _follow(n, scores, chart, W, space.stack, spans, heads)
    return best


@helper
def _fill_row(n, i, scores, chart, W):
    """All spans that begin at ``i``; those that begin behind it are there already."""
    block = PLANES * W
    row, best = i * block, (n + 1) * block
    for p in range(best, best + (L + 1) * W):
        chart[p] = -np.inf
    chart[row + R * W + i] = 0.0
    chart[row + L * W + i] = 0.0
    left = 0.0  # R(i, k - 1)
    for k in range(i + 1, n + 1):
        base = max(chart[best + B * W + k], left)
        right = base + scores[k * (n + 1) + i]
        up = base + scores[i * (n + 1) + k] if i > 0 else -np.inf
        whole = max(chart[best + L * W + k], up)
        carry_best(chart, best, k * block, W, k + 1, left, right, whole)
        left = max(chart[best + R * W + k], right)
        chart[row + B * W + k] = base
        chart[row + R * W + k] = left
        chart[row + L * W + k] = whole
        chart[row + U * W + k] = up


@helper(inline=True)
def _push(stack, spans, i, j, kind):
    """Note a span of more than one position; returns how many there are."""
    if i == j:
        return spans
    stack[3 * spans] = i
    stack[3 * spans + 1] = j
    stack[3 * spans + 2] = kind
    return spans + 1


@helper
def _follow(n, scores, chart, W, stack, spans, heads):
    """Heads of all words in the best trees of the spans on the stack; the first of equals."""
    block = PLANES * W
    while spans > 0:
        spans -= 1
        i, j, kind = int(stack[3 * spans]), int(stack[3 * spans + 1]), stack[3 * spans + 2]
        split, best = -1, -np.inf
        if kind == R:
            for k in range(i + 1, j + 1):
                score = (
                    chart[i * block + B * W + k]
                    + scores[k * (n + 1) + i]
                    + chart[k * block + R * W + j]
                )
                if score > best:
                    split, best = k, score
            heads[split] = i
            first, last = i, split
            spans = _push(stack, spans, split, j, R)
        else:
            for k in range(i, j):
                score = chart[i * block + L * W + k] + chart[k * block + U * W + j]
                if score > best:
                    split, best = k, score
            heads[split] = j
            first, last = split, j
            spans = _push(stack, spans, i, split, L)
        split, best = -1, -np.inf
        for k in range(first, last):
            score = chart[first * block + R * W + k] + chart[(k + 1) * block + L * W + last]
            if score > best:
                split, best = k, score
        spans = _push(stack, spans, first, split, R)
        spans = _push(stack, spans, split + 1, last, L)


def carry_best(chart, o, t, W, start, left, right, whole):
    """Carry three values to the spans from ``start`` on, as the best so far.

    In the row at ``o``, B rises to left + L, R to right + R and L to whole + U of the row at
    ``t``. Groups of lanes begin at multiples of ``LANES``, so that what one call stored the next
    reads back by the same groups; what they change before ``start`` is not read any more.
    """
    for plane, other, x in ((B, L, left), (R, R, right), (L, U, whole)):
        best = chart[o + plane * W + start : o + (plane + 1) * W]
        np.maximum(best, x + chart[t + other * W + start : t + (other + 1) * W], out=best)


@overload(carry_best, optimize_first=True)
def _carry_best(chart, o, t, W, start, left, right, whole):
    lanes = intrinsic(_carry_best_lanes)

    def body(chart, o, t, W, start, left, right, whole):
        return lanes(chart, o, t, W, start, left, right, whole)

    return body


def _carry_best_lanes(typing_context, chart, o, t, W, start, left, right, whole):
    def generate(context, builder, signature, args):
        _, o, t, W, start, left, right, whole = args
        chart = data(context, builder, signature, args, 0)
        first = builder.and_(start, start.type(-LANES))
        lanes = ir.VectorType(ir.DoubleType(), LANES)
        # By name, because a comparison and a choice become a masked store, which is slow.
        larger = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(lanes, [lanes, lanes]), f"llvm.maxnum.v{LANES}f64"
        )
        planes = [
            (
                builder.add(o, builder.mul(W, W.type(plane))),
                builder.add(t, builder.mul(W, W.type(other))),
                splat(builder, x, LANES),
            )
            for plane, other, x in ((B, L, left), (R, R, right), (L, U, whole))
        ]
        with cgutils.for_range_slice(builder, first, W, W.type(LANES), W.type) as (j, _):
            for out, table, x in planes:
                place = builder.add(out, j)
                value = builder.fadd(x, load(builder, chart, builder.add(table, j), LANES))
                best = load(builder, chart, place, LANES)
                value = builder.call(larger, [best, value], fastmath=("nnan",))
                store(builder, value, chart, place)
        return context.get_dummy_value()

    whole_number, number = types.intp, types.float64
    return types.void(chart, *(whole_number,) * 4, number, number, number), generate

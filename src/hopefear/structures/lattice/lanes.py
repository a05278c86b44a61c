"""Products of vectors with edge tables, eight neighbouring numbers at a time.

Both searches and sums over label chains spend their time in one operation,

    out[o + i] = reduce over k < count of  table[e + k * stride + i] (+ or *) x[p + k * step]

for neighbouring i. Left to itself the compiler vectorises such short loops badly or not at all, so
the vector instructions are written out here, once. Interpreted, the functions below run as they
stand, with the same results.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hopefear.core.component import cgutils, intrinsic, ir, overload, types
from hopefear.structures.lattice.vectors import (
    data,
    in_groups,
    in_groups_together,
    load,
    splat,
    store,
)


def max_plus(out, o, table, e, stride, x, p, step, count, width):
    """``out[o + i] = max_k (table[e + k * stride + i] + x[p + k * step])`` for ``i < width``."""
    with np.errstate(over="ignore", invalid="ignore"):
        best = np.full(width, -np.inf, out.dtype)
        for k in range(count):
            v = table[e + k * stride : e + k * stride + width] + x[p + k * step]
            best = np.where(v > best, v, best)
    out[o : o + width] = best


def sum_product(out, o, table, e, stride, x, p, step, count, width):
    """``out[o + i] = sum_k table[e + k * stride + i] * x[p + k * step]`` for ``i < width``."""
    total = np.zeros(width, out.dtype)
    for k in range(count):
        total += table[e + k * stride : e + k * stride + width] * x[p + k * step]
    out[o : o + width] = total


def add_to(out, o, x, p, width):
    """``out[o + i] += x[p + i]`` for ``i < width``."""
    with np.errstate(over="ignore", invalid="ignore"):
        out[o : o + width] += x[p : p + width]


def add_one(out, o, x, p, width):
    """``out[o + i] += x[p]`` for ``i < width``."""
    with np.errstate(over="ignore", invalid="ignore"):
        out[o : o + width] += x[p]


@overload(max_plus)
def _max_plus(out, o, table, e, stride, x, p, step, count, width):
    lanes = intrinsic(_max_plus_lanes)

    def body(out, o, table, e, stride, x, p, step, count, width):
        return lanes(out, o, table, e, stride, x, p, step, count, width)

    return body


@overload(sum_product)
def _sum_product(out, o, table, e, stride, x, p, step, count, width):
    lanes = intrinsic(_sum_product_lanes)

    def body(out, o, table, e, stride, x, p, step, count, width):
        return lanes(out, o, table, e, stride, x, p, step, count, width)

    return body


@overload(add_to)
def _add_to(out, o, x, p, width):
    lanes = intrinsic(_add_to_lanes)
    return lambda out, o, x, p, width: lanes(out, o, x, p, width)


@overload(add_one)
def _add_one(out, o, x, p, width):
    lanes = intrinsic(_add_one_lanes)
    return lambda out, o, x, p, width: lanes(out, o, x, p, width)


def _reduction(start: Any, combine: Any) -> Any:
    """The operation above; ``combine(builder, so far, row, factor)``."""

    def intrinsic_of(typing_context, out, o, table, e, stride, x, p, step, count, width):
        if not out.dtype == table.dtype == x.dtype:
            raise TypeError(f"one type for all: {out.dtype}, {table.dtype}, {x.dtype}")

        def generate(context, builder, signature, args):
            _, o, _, e, stride, _, p, step, count, width = args
            out, table, x = (data(context, builder, signature, args, k) for k in (0, 2, 5))
            number = out.type.pointee

            def groups(i, lanes, together):
                places = [builder.add(i, i.type(k * lanes)) for k in range(together)]
                sums = [cgutils.alloca_once(builder, ir.VectorType(number, lanes)) for _ in places]
                for total in sums:
                    builder.store(splat(builder, number(start), lanes), total)
                with cgutils.for_range(builder, count) as loop:
                    row = builder.add(e, builder.mul(loop.index, stride))
                    at = builder.add(p, builder.mul(loop.index, step))
                    factor = splat(builder, builder.load(builder.gep(x, [at])), lanes)
                    for place, total in zip(places, sums, strict=True):
                        values = load(builder, table, builder.add(row, place), lanes)
                        builder.store(combine(builder, builder.load(total), values, factor), total)
                for place, total in zip(places, sums, strict=True):
                    store(builder, builder.load(total), out, builder.add(o, place))

            in_groups_together(builder, width, groups)
            return context.get_dummy_value()

        whole = types.intp
        return (
            types.void(out, whole, table, whole, whole, x, whole, whole, whole, whole),
            generate,
        )

    return intrinsic_of


def _larger_sum(builder: Any, best: Any, row: Any, factor: Any) -> Any:
    value = builder.fadd(row, factor)
    return builder.select(builder.fcmp_ordered(">", value, best), value, best)


def _more_product(builder: Any, total: Any, row: Any, factor: Any) -> Any:
    return builder.fadd(total, builder.fmul(row, factor))


_max_plus_lanes = _reduction(-np.inf, _larger_sum)
_sum_product_lanes = _reduction(0.0, _more_product)


def _addition(more: Any) -> Any:
    """``out += more(builder, x, p, i, lanes)``, group by group."""

    def intrinsic_of(typing_context, out, o, x, p, width):
        if out.dtype != x.dtype:
            raise TypeError(f"one type for both: {out.dtype}, {x.dtype}")

        def generate(context, builder, signature, args):
            _, o, _, p, width = args
            out, x = (data(context, builder, signature, args, k) for k in (0, 2))

            def group(i, lanes):
                place = builder.add(o, i)
                value = builder.fadd(
                    load(builder, out, place, lanes), more(builder, x, p, i, lanes)
                )
                store(builder, value, out, place)

            in_groups(builder, width, group)
            return context.get_dummy_value()

        whole = types.intp
        return types.void(out, whole, x, whole, whole), generate

    return intrinsic_of


def _row(builder: Any, x: Any, p: Any, i: Any, lanes: Any) -> Any:
    return load(builder, x, builder.add(p, i), lanes)


def _number(builder: Any, x: Any, p: Any, i: Any, lanes: Any) -> Any:
    return splat(builder, builder.load(builder.gep(x, [p])), lanes)


_add_to_lanes = _addition(_row)
_add_one_lanes = _addition(_number)

"""Exponentials, eight at a time: most of the time of forward and backward sums goes there."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from hopefear.core.component import intrinsic, ir, overload, types
from hopefear.structures.lattice.vectors import data, in_groups, load, splat, store

LOWEST = -708.0  # exp is below the normal numbers of float64 from here on, and taken as 0
# 1.5 * 2**52: adding it rounds to a whole number, which then stands in the lowest bits.
_ROUND = 6755399441055744.0
_LN2 = (0.693147180369123816490, 1.90821492927058770002e-10)  # the first part has 32 bits
_TERMS = 13  # of the power series, on |r| < log(2) / 2: its error is below 1e-17


def exp_from(out, o, x, p, top, width):
    """``out[o + i] = exp(x[p + i] - top)`` for ``i < width``; differences above 0 count as 0."""
    with np.errstate(over="ignore", under="ignore"):
        v = np.minimum(x[p : p + width].astype(np.float64) - top, 0.0)
        out[o : o + width] = np.where(v < LOWEST, 0.0, np.exp(v))


@overload(exp_from)
def _exp_from(out, o, x, p, top, width):
    exp_lanes = intrinsic(_exp_lanes)
    return lambda out, o, x, p, top, width: exp_lanes(out, o, x, p, np.float64(top), width)


def _exp_lanes(typing_context, out, o, x, p, top, width):
    def generate(context, builder, signature, args):
        _, o, _, p, top, width = args
        out, x = (data(context, builder, signature, args, k) for k in (0, 2))

        def group(i, lanes):
            v = load(builder, x, builder.add(p, i), lanes)
            if isinstance(x.type.pointee, ir.FloatType):
                v = builder.fpext(v, ir.VectorType(ir.DoubleType(), lanes))
            v = builder.fsub(v, splat(builder, top, lanes))
            store(builder, _exp(builder, v, lanes), out, builder.add(o, i))

        in_groups(builder, width, group)
        return context.get_dummy_value()

    whole = types.intp
    return types.void(out, whole, x, whole, types.float64, whole), generate


def _exp(builder: Any, v: Any, lanes: Any) -> Any:
    """exp(v) for v <= 0 as ``2**k exp(r)``, with k the whole number next to ``v / log(2)``."""

    def constant(number):
        return splat(builder, ir.DoubleType()(number), lanes)

    lowest, zero = constant(LOWEST), constant(0.0)
    flushed = builder.fcmp_ordered("<", v, lowest)
    v = builder.select(flushed, lowest, v)
    v = builder.select(builder.fcmp_ordered(">", v, zero), zero, v)
    rounded = builder.fadd(builder.fmul(v, constant(1.0 / math.log(2.0))), constant(_ROUND))
    k = builder.fsub(rounded, constant(_ROUND))
    r = builder.fsub(v, builder.fmul(k, constant(_LN2[0])))
    r = builder.fsub(r, builder.fmul(k, constant(_LN2[1])))
    series = constant(1.0 / math.factorial(_TERMS))
    for power in range(_TERMS - 1, -1, -1):
        series = builder.fadd(builder.fmul(series, r), constant(1.0 / math.factorial(power)))
    bits = ir.VectorType(ir.IntType(64), lanes)
    exponent = builder.shl(
        builder.bitcast(rounded, bits), splat(builder, ir.IntType(64)(52), lanes)
    )
    exponent = builder.add(exponent, builder.bitcast(constant(1.0), bits))
    value = builder.fmul(series, builder.bitcast(exponent, v.type))
    return builder.select(flushed, zero, value)

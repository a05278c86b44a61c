"""Vector instructions for intrinsics: groups of eight neighbouring numbers."""

from __future__ import annotations

from typing import Any

from hopefear.core.component import cgutils, ir

LANES = 8
# A sum waits for each addition: three groups of doubles are as many as registers hold.
TOGETHER = 3


def in_groups(builder: Any, width: Any, group: Any) -> None:
    """Emit ``group(i, lanes)`` for all of ``width``: eights, or a single four."""
    four = builder.icmp_signed("<", width, width.type(LANES))
    with builder.if_else(four) as (then, otherwise):
        with then:
            group(width.type(0), LANES // 2)
        with (
            otherwise,
            cgutils.for_range_slice(
                builder, width.type(0), width, width.type(LANES), width.type
            ) as (i, _),
        ):
            group(i, LANES)


def in_groups_together(builder: Any, width: Any, groups: Any) -> None:
    """As ``in_groups``, but several neighbours at once: ``groups(i, lanes, together)``."""
    kind = width.type
    four = builder.icmp_signed("<", width, kind(LANES))
    with builder.if_else(four) as (then, otherwise):
        with then:
            groups(kind(0), LANES // 2, 1)
        with otherwise:
            many = kind(TOGETHER * LANES)
            whole = builder.mul(builder.sdiv(width, many), many)
            with cgutils.for_range_slice(builder, kind(0), whole, many, kind) as (i, _):
                groups(i, LANES, TOGETHER)
            with cgutils.for_range_slice(builder, whole, width, kind(LANES), kind) as (i, _):
                groups(i, LANES, 1)


def data(context: Any, builder: Any, signature: Any, args: Any, k: Any) -> Any:
    """Address of the numbers of the array that is argument ``k``."""
    return context.make_array(signature.args[k])(context, builder, args[k]).data


def splat(builder: Any, value: Any, lanes: Any) -> Any:
    """A vector of equal numbers."""
    vector = ir.VectorType(value.type, lanes)
    first = builder.insert_element(ir.Constant(vector, ir.Undefined), value, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(first, ir.Constant(vector, ir.Undefined), zeros)


def load(builder: Any, array: Any, place: Any, lanes: Any) -> Any:
    """``array[place:place + lanes]``, wherever it lies."""
    return builder.load(_address(builder, array, place, lanes), align=_bytes(array))


def store(builder: Any, value: Any, array: Any, place: Any) -> None:
    """Put a vector at ``array[place]`` and behind."""
    builder.store(value, _address(builder, array, place, value.type.count), align=_bytes(array))


def _address(builder: Any, array: Any, place: Any, lanes: Any) -> Any:
    vector = ir.VectorType(array.type.pointee, lanes)
    return builder.bitcast(builder.gep(array, [place]), vector.as_pointer())


def _bytes(array: Any) -> int:
    return 8 if isinstance(array.type.pointee, ir.DoubleType) else 4

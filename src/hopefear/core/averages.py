"""Exact sums of weights over ticks, without touching a weight that does not move.

Between two touches a coordinate follows ``w(k) = r * scale_k * shrink(m, f * drop_k)`` (see
``interfaces.py``), so the sum of ``c_k w(k)`` over the first n closed ticks is

    partial_sum(m, r, f) = sign(m) * r * (|m| * A[e] - f * B[e])

with running sums A of ``c * scale`` and B of ``c * scale * drop``, and e the number of ticks
before the drop reached |m| / f. A touch at tick n adds what the old line has earned since the
books were opened and takes off what the new line would have earned: the difference is right from
then on, whatever n the books are read at. Only a line that died since its last touch needs a look
into the past.

The books hold a window of ticks; when it is full every coordinate is settled and they start afresh.
That bounds their memory and keeps the sums short, hence precise.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hopefear.core.component import helper
from hopefear.core.interfaces import DROP, SCALE, same_shapes
from hopefear.core.memory import zeros


class AverageAccumulator(NamedTuple):
    total: np.ndarray  # float64[n]: sum of c * w, less what open lines had earned when touched
    open: np.ndarray  # uint8[n]: the line was alive at its last touch (if it can die: f > 0)
    a: np.ndarray  # float64[window + 1]: running sum of c * scale
    b: np.ndarray  # float64[window + 1]: running sum of c * scale * drop
    drop: np.ndarray  # float64[window]
    closed: np.ndarray  # int64[1]: ticks in the books
    lived: np.ndarray  # float64[2]: c of the present predictor; sum of c over all closed ones


def new_accumulator(n: int, window: int) -> AverageAccumulator:
    """Empty books for ``n`` coordinates."""
    return AverageAccumulator(
        zeros((n,), np.float64),
        zeros((n,), np.uint8),
        np.zeros(window + 1),
        np.zeros(window + 1),
        np.zeros(window),
        np.zeros(1, np.int64),
        np.zeros(2),
    )


@helper(inline=True)
def end_tick(account, clock, lived):
    """Enter the predictor that is about to change, with weight ``lived``."""
    k = account.closed[0]
    share = lived * clock[SCALE]
    account.drop[k] = clock[DROP]
    account.a[k + 1] = account.a[k] + share
    account.b[k + 1] = account.b[k] + share * clock[DROP]
    account.closed[0] = k + 1
    account.lived[1] += lived


@helper(inline=True)
def running_totals(account):
    """(A, B, drop) of the last closed tick: all that lines which are still alive need."""
    k = account.closed[0]
    return account.a[k], account.b[k], account.drop[k - 1] if k > 0 else 0.0


@helper(inline=True)
def partial_sum(account, now, m, r, f):
    """What a line has earned over the closed ticks; ``now`` is ``running_totals(account)``."""
    size = abs(m)
    if size > f * now[2]:
        return math.copysign(r * (size * now[0] - f * now[1]), m)
    return partial_sum_until_zero(account, m, r, f)


@helper
def partial_sum_until_zero(account, m, r, f):
    """What a line earned until the drop reached it."""
    size = abs(float(m))
    low, high = 0, account.closed[0]
    while low < high:
        middle = (low + high) // 2
        if f * account.drop[middle] < size:
            low = middle + 1
        else:
            high = middle
    return math.copysign(r * (size * account.a[low] - f * account.b[low]), m)


@helper(inline=True)
def is_nonzero(now, m, f):
    """Whether a line is non-zero under the drop of the last closed tick."""
    return abs(m) > f * now[2]


@helper(inline=True)
def sum_of_old_line(account, now, j, m, r, f):
    """What coordinate ``j`` has earned on the line it leaves."""
    if f == 0.0:  # never dies: nothing to look up
        return r * m * now[0]
    return partial_sum(account, now, m, r, f) if account.open[j] else 0.0


@helper(inline=True)
def sum_of_new_line(account, now, j, m, r, f):
    """What coordinate ``j`` would have earned by now on the line it enters."""
    if f == 0.0:
        return r * m * now[0]
    account.open[j] = is_nonzero(now, m, f)
    return partial_sum(account, now, m, r, f) if account.open[j] else 0.0


@helper(inline=True)
def change_line(account, now, j, m0, r0, f0, m1, r1, f1):
    """Coordinate ``j`` leaves line 0 for line 1."""
    # In this order what was never alive stays at zero exactly.
    total = account.total[j] + sum_of_old_line(account, now, j, m0, r0, f0)
    account.total[j] = total - sum_of_new_line(account, now, j, m1, r1, f1)


@helper(inline=True)
def flush_line(account, now, j, m, r, f):
    """Credit coordinate ``j`` with everything the books hold; returns the amount."""
    amount = sum_of_old_line(account, now, j, m, r, f)
    account.total[j] += amount
    if f != 0.0 and account.open[j]:
        account.open[j] = is_nonzero(now, m, f)
    return amount


def is_valid_accumulator(account: AverageAccumulator, fresh: AverageAccumulator) -> bool:
    """Whether books from a file are those of as many coordinates as fresh ones, with room left."""
    return same_shapes(account, fresh) and 0 <= account.closed[0] < account.drop.size


def reset_window(account: AverageAccumulator) -> None:
    """Empty the window, once every coordinate has been settled."""
    account.closed[0] = 0

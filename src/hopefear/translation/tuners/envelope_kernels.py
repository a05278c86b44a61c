"""Upper envelopes of the lines of each list, and what is chosen between their corners."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba.extending import register_jitable

from hopefear.core.component import kernel


class Room(NamedTuple):
    """Lines of one list on their way through the kernel."""

    lines: np.ndarray  # int64: candidates that may be on the envelope
    stack: np.ndarray  # int64: candidates on the envelope so far
    since: np.ndarray  # float64: where each begins to be the best


@kernel
def envelopes(starts, a, b, low, high, room, times, old, new, first):
    """Corners between ``low`` and ``high`` of all lists; returns how many there are.

    At ``times[k]`` candidate ``old[k]`` gives way to ``new[k]``; list i begins with ``first[i]``.
    """
    n = 0
    for i in range(starts.size - 1):
        m = _candidates(a, b, starts[i], starts[i + 1], room.lines)
        if m > 2:
            _sort(b, room.lines, m)
        m = _scan(a, b, room, m)
        k = 0
        while k + 1 < m and room.since[k + 1] <= low:
            k += 1
        first[i] = room.stack[k]
        while k + 1 < m and room.since[k + 1] < high:
            k += 1
            times[n], old[n], new[n] = room.since[k], room.stack[k - 1], room.stack[k]
            n += 1
    return n


@register_jitable
def _candidates(a, b, begin, end, lines):
    """Keep the lines that may be on the envelope, the flattest first; returns how many.

    The lines with least and most slope are on it, and so is the one that is highest at 0. Others
    count only if they rise above these three, and a line that does so does it at a corner of them.
    """
    least = most = top = begin
    b_least = b_most = b[begin]
    a_least = a_most = a_top = a[begin]
    for c in range(begin + 1, end):
        a_c, b_c = a[c], b[c]
        if b_c <= b_least and (b_c < b_least or a_c > a_least):
            least, a_least, b_least = c, a_c, b_c
        if b_c >= b_most and (b_c > b_most or a_c > a_most):
            most, a_most, b_most = c, a_c, b_c
        if a_c > a_top:
            top, a_top = c, a_c
    lines[0] = least
    if b[least] == b[most]:
        return 1
    if b[top] == b[least]:
        top = least
    elif b[top] == b[most]:
        top = most
    if top in (least, most):
        t1 = t2 = (a[least] - a[most]) / (b[most] - b[least])
    else:
        t1 = (a[least] - a[top]) / (b[top] - b[least])
        t2 = (a[top] - a[most]) / (b[most] - b[top])
    v1, v2 = a[top] + b[top] * t1, a[top] + b[top] * t2
    m = 1
    for c in range(begin, end):
        # Written without a branch: which lines rise above is hard to predict.
        lines[m] = c
        above = (a[c] + b[c] * t1 > v1) | (a[c] + b[c] * t2 > v2) | (c == top)
        m += above & (c != least) & (c != most)
    lines[m] = most
    return m + 1


@register_jitable
def _sort(b, lines, m):
    """Put lines in the order of their slopes (Shell's sort, which is quick for so few)."""
    gap = 1
    while 3 * gap + 1 < m:
        gap = 3 * gap + 1
    while gap > 0:
        for k in range(gap, m):
            c, p = lines[k], k
            while p >= gap and b[lines[p - gap]] > b[c]:
                lines[p] = lines[p - gap]
                p -= gap
            lines[p] = c
        gap //= 3


@register_jitable
def _scan(a, b, room, m):
    """Envelope of lines that are sorted by slope; returns how many are on it."""
    lines, stack, since = room
    stack[0], since[0], n = lines[0], -np.inf, 1
    for k in range(1, m):
        c = lines[k]
        if b[c] == b[stack[n - 1]]:
            s = stack[n - 1]
            if a[c] < a[s] or (a[c] == a[s] and c > s):
                continue
            n -= 1
        t = -np.inf
        while n > 0:
            s = stack[n - 1]
            t = (a[s] - a[c]) / (b[c] - b[s])
            if t > since[n - 1]:
                break
            n -= 1
        stack[n], since[n] = c, t if n > 0 else -np.inf
        n += 1
    return n


@kernel
def running(counts, first, old, new, order, real, sums):
    """Sums of the counts of the chosen candidates on every interval that is not empty."""
    width = counts.shape[1]
    total = np.zeros(width, sums.dtype)
    for i in range(first.size):
        for s in range(width):
            total[s] += counts[first[i], s]
    m = 0
    if real[0]:
        sums[0] = total
        m = 1
    for k in range(order.size):
        gone, come = old[order[k]], new[order[k]]
        for s in range(width):
            total[s] += counts[come, s] - counts[gone, s]
        if real[k + 1]:
            for s in range(width):
                sums[m, s] = total[s]
            m += 1


@kernel
def first_best(starts, scores):
    """Number of the highest score of each list; of equal ones the first."""
    found = np.empty(starts.size - 1, np.int64)
    for i in range(starts.size - 1):
        best = starts[i]
        for c in range(starts[i] + 1, starts[i + 1]):
            if scores[c] > scores[best]:
                best = c
        found[i] = best
    return found

"""The average of all weights there were (Freund and Schapire, 1999; Collins, 2002)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.averages import (
    change_line,
    end_tick,
    flush_line,
    is_valid_accumulator,
    new_accumulator,
    reset_window,
    running_totals,
)
from hopefear.core.component import component, prefetch
from hopefear.core.interfaces import Averaging


@component(Averaging)
class Averaged(NamedTuple):
    """Mean of the weights after each example: every predictor weighted by its survival count.

    ``sum_k c_k w_k / sum_k c_k``, exact for every rule and true zeros for weights that were never
    used

    The support of an average is everything that was ever non-zero, often far more than the last
    weights have. ``sparse_average`` keeps the average only where the last weight is non-zero.

    Parameters
    ----------
    sparse_average : bool
        Drop averaged weights whose last weight is zero: nearly as good, far sparser.

    Examples
    --------
    >>> Averaged().init_memory(3, 8).total
    array([0., 0., 0.])
    """

    sparse_average: bool = False

    def init_memory(self, n, window):
        return new_accumulator(n, window)

    def is_valid(self, memory, fresh, n):
        return is_valid_accumulator(memory, fresh)

    def reset_window(self, memory):
        reset_window(memory)

    def accumulators(self, memory):
        return (memory,)

    def average(self, memory, trainer):
        return trainer.mean(memory, np.float64)

    def predictor(self, memory, trainer):
        weights = trainer.mean(memory, np.float32)
        if self.sparse_average:
            weights[trainer.weights() == 0.0] = 0.0
        return trainer.linear(weights)

    def end_tick(self, memory, clock):
        end_tick(memory, clock, memory.lived[0])
        memory.lived[0] = 0.0
        return running_totals(memory)

    def prefetch_memory(self, memory, j):
        prefetch(memory.total, j)
        prefetch(memory.total, j + 8)  # twice as wide as weights: two lines for one

    def on_update(self, memory, totals, j, g, m0, r0, f0, m1, r1, f1):
        change_line(memory, totals, j, m0, r0, f0, m1, r1, f1)

    def count_example(self, memory):
        memory.lived[0] += 1.0

    def window_full(self, memory):
        return memory.closed[0] == memory.drop.size

    def flush(self, memory, j, m, r, f):
        flush_line(memory, running_totals(memory), j, m, r, f)

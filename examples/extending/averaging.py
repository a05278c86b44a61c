"""The average of the later weights (suffix averaging, Rakhlin, Shamir and Sridharan, 2012)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.averages import (
    AverageAccumulator,
    change_line,
    end_tick,
    flush_line,
    new_accumulator,
    reset_window,
    running_totals,
)
from hopefear.core.component import component
from hopefear.core.interfaces import Averaging


class Tail(NamedTuple):
    account: AverageAccumulator
    seen: np.ndarray  # int64[1]: examples so far


@component(Averaging)
class TailAveraged(NamedTuple):
    """Mean of the weights after each example, but for the first ones.

    Parameters
    ----------
    skip : int
        Examples to leave out; the last weights are kept where there are no others.

    Examples
    --------
    >>> TailAveraged(skip=100).init_memory(3, 8).account.total
    array([0., 0., 0.])
    """

    skip: int = 0

    def parameter_error(self):
        return "" if self.skip >= 0 else "skip must not be negative"

    def init_memory(self, n, window):
        return Tail(new_accumulator(n, window), np.zeros(1, np.int64))

    def reset_window(self, memory):
        reset_window(memory.account)

    def predictor(self, memory, trainer):
        if memory.seen[0] <= self.skip:
            return trainer.linear(trainer.weights())
        return trainer.linear(trainer.mean(memory.account, np.float32))

    def end_tick(self, memory, clock):
        end_tick(memory.account, clock, memory.account.lived[0])
        memory.account.lived[0] = 0.0
        return running_totals(memory.account)

    def on_update(self, memory, totals, j, g, m0, r0, f0, m1, r1, f1):
        change_line(memory.account, totals, j, m0, r0, f0, m1, r1, f1)

    def count_example(self, memory):
        memory.seen[0] += 1
        if memory.seen[0] > self.skip:
            memory.account.lived[0] += 1.0

    def window_full(self, memory):
        return memory.account.closed[0] == memory.account.drop.size

    def flush(self, memory, j, m, r, f):
        flush_line(memory.account, running_totals(memory.account), j, m, r, f)

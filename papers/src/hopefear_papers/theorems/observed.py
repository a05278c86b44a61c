"""Watch a learner while it learns: what the mistake bounds of the voted RDA paper need."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.core.averages import (
    AverageAccumulator,
    end_tick,
    flush_line,
    is_valid_accumulator,
    new_accumulator,
    reset_window,
    running_totals,
    sum_of_new_line,
    sum_of_old_line,
)
from hopefear.core.component import component
from hopefear.core.interfaces import Averaging


class Observation(NamedTuple):
    kept: Any  # memory of the averaging that is watched
    account: AverageAccumulator  # plain (unweighted) sum of the predictors w_k
    absolute: np.ndarray  # float64[1]: sum over k of |w_k|_1, less what open lines had earned
    squares: np.ndarray  # float64[2]: |g|**2 of the present update; the largest so far


@component(Averaging)
class Observed(NamedTuple):
    """Any averaging, and beside it the sums behind Delta(u), its relaxed form and G.

    ``sum_k w_k``, ``sum_k |w_k|_1`` and ``max_k |g_k|``, over the predictors that updates ended

    Parameters
    ----------
    averaging : Averaging
        What is really kept.

    Examples
    --------
    >>> from hopefear.averaging.last import Last
    >>> Observed(Last()).init_memory(2, 4).absolute
    array([0.])
    """

    averaging: Any

    def incompatible_with(self, loss, structure):
        return self.averaging.incompatible_with(loss, structure)

    @property
    def keeps_scale(self):
        return self.averaging.keeps_scale

    @property
    def needs_history(self):
        return self.averaging.needs_history

    def init_memory(self, n, window):
        return Observation(
            self.averaging.init_memory(n, window),
            new_accumulator(n, window),
            np.zeros(1),
            np.zeros(2),
        )

    def reserve(self, memory, ticks, entries):
        return memory._replace(kept=self.averaging.reserve(memory.kept, ticks, entries))

    def shrink_to_fit(self, memory):
        return memory._replace(kept=self.averaging.shrink_to_fit(memory.kept))

    def is_valid(self, memory, fresh, n):
        own = memory.absolute.shape == (1,) and memory.squares.shape == (2,)
        account = is_valid_accumulator(memory.account, fresh.account)
        return own and account and self.averaging.is_valid(memory.kept, fresh.kept, n)

    def reset_window(self, memory):
        self.averaging.reset_window(memory.kept)
        reset_window(memory.account)

    def average(self, memory, trainer):
        return self.averaging.average(memory.kept, trainer)

    def predictor(self, memory, trainer):
        return self.averaging.predictor(memory.kept, trainer)

    def end_tick(self, memory, clock):
        kept = self.averaging.end_tick(memory.kept, clock)
        end_tick(memory.account, clock, 1.0)
        memory.squares[0] = 0.0
        return kept, running_totals(memory.account)

    def on_update(self, memory, totals, j, g, m0, r0, f0, m1, r1, f1):
        self.averaging.on_update(memory.kept, totals[0], j, g, m0, r0, f0, m1, r1, f1)
        memory.squares[0] += g * g
        memory.squares[1] = max(memory.squares[0], memory.squares[1])
        account = memory.account
        left = sum_of_old_line(account, totals[1], j, m0, r0, f0)
        entered = sum_of_new_line(account, totals[1], j, m1, r1, f1)
        account.total[j] = (account.total[j] + left) - entered
        memory.absolute[0] += abs(left) - abs(entered)

    def count_example(self, memory):
        self.averaging.count_example(memory.kept)

    def window_full(self, memory):
        return memory.account.closed[0] == memory.account.drop.size

    def flush(self, memory, j, m, r, f):
        self.averaging.flush(memory.kept, j, m, r, f)
        amount = flush_line(memory.account, running_totals(memory.account), j, m, r, f)
        memory.absolute[0] += abs(amount)

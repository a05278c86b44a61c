"""The vote of all predictors there were (Freund and Schapire, 1999; voted RDA, Algorithm 2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import component
from hopefear.core.interfaces import DROP, Averaging


class Votes(NamedTuple):
    """Every change of a line, from which any past predictor can be replayed."""

    survived: np.ndarray  # float64[ticks]: c_k
    drops: np.ndarray  # float64[ticks]: drop of predictor k
    ends: np.ndarray  # int64[ticks + 1]: where the entries of the update that ended k end
    coordinates: np.ndarray  # int64[entries]
    lines: np.ndarray  # float64[entries, 3]: (m, r, f) after the update
    counts: np.ndarray  # int64[2]: ticks, entries
    lived: np.ndarray  # float64[1]: c of the present predictor


@component(Averaging, keeps_scale=False, needs_history=True)
class Voted(NamedTuple):
    """Majority vote, each predictor counting as often as it survived an example.

    ``sign(sum_k c_k sign(w_k . x))``; a predictor that scores everything zero abstains

    What is kept is the sequence of updates, not copies of w: 32 bytes per non-zero of an update
    and 24 per update. A prediction replays the updates of the coordinates it touches and then
    walks over the predictors once: O(E log M + M) for E stored entries on those coordinates and M
    updates, in 24 M bytes per part, against one dot product for the average, which usually does
    as well (see ``docs/results.md``).

    Examples
    --------
    >>> Voted().init_memory(3, 8).counts
    array([0, 0])
    """

    unused: int = 0  # a compiled part needs a field

    def incompatible_with(self, loss, structure):
        # There is room for updates between gold and one other output, and mixtures of the two;
        # others would not fit, but where every update touches few coordinates.
        several = loss.n_outputs() > 1 and "places" not in loss.requires()
        bounded = not structure.why_unsupported("bounded")
        if bounded or not (several or "expectation" in loss.requires()):
            return ""
        return (
            "its updates are between more than two outputs, and votes keep every one; use "
            "averaging=averaged, or the loss perceptron or hinge"
        )

    def init_memory(self, n, window):
        return Votes(
            np.zeros(0),
            np.zeros(0),
            np.zeros(1, np.int64),
            np.zeros(0, np.int64),
            np.zeros((0, 3)),
            np.zeros(2, np.int64),
            np.zeros(1),
        )

    def reserve(self, memory, ticks, entries):
        need_ticks = int(memory.counts[0]) + ticks
        need_entries = int(memory.counts[1]) + entries
        return memory._replace(
            survived=_grown(memory.survived, need_ticks),
            drops=_grown(memory.drops, need_ticks),
            ends=_grown(memory.ends, need_ticks + 1),
            coordinates=_grown(memory.coordinates, need_entries),
            lines=_grown(memory.lines, need_entries),
        )

    def shrink_to_fit(self, memory):
        ticks, entries = memory.counts
        return memory._replace(
            survived=memory.survived[:ticks],
            drops=memory.drops[:ticks],
            ends=memory.ends[: ticks + 1],
            coordinates=memory.coordinates[:entries],
            lines=memory.lines[:entries],
        )

    def is_valid(self, memory, fresh, n):
        if memory.counts.shape != (2,) or memory.lived.shape != (1,):
            return False
        ticks, entries = memory.counts
        return (
            len(memory.survived) == len(memory.drops) == len(memory.ends) - 1 == ticks
            and len(memory.coordinates) == len(memory.lines) == entries
            and (memory.ends[0], memory.ends[-1]) == (0, entries)
            and bool((memory.ends[1:] >= memory.ends[:-1]).all())
            and 0 <= memory.coordinates.min(initial=0) <= memory.coordinates.max(initial=0) < n
        )

    def predictor(self, memory, trainer):
        return trainer.voted(self.shrink_to_fit(memory))

    def end_tick(self, memory, clock):
        k = memory.counts[0]
        memory.survived[k] = memory.lived[0]
        memory.drops[k] = clock[DROP]
        memory.ends[k + 1] = memory.counts[1]
        memory.counts[0] = k + 1
        memory.lived[0] = 0.0
        return 0.0, 0.0, 0.0

    def on_update(self, memory, totals, j, g, m0, r0, f0, m1, r1, f1):
        entry = memory.counts[1]
        memory.coordinates[entry] = j
        memory.lines[entry, 0] = m1
        memory.lines[entry, 1] = r1
        memory.lines[entry, 2] = f1
        memory.counts[1] = entry + 1
        memory.ends[memory.counts[0]] = entry + 1

    def count_example(self, memory):
        memory.lived[0] += 1.0


def _grown(array: np.ndarray, need: int) -> np.ndarray:
    """The array with space for so many, by doubling."""
    if len(array) >= need:
        return array
    bigger = np.zeros((max(need, 2 * len(array)), *array.shape[1:]), array.dtype)
    bigger[: len(array)] = array
    return bigger

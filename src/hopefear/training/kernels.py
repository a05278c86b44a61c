"""The epoch kernel, and the passes over all coordinates that frame it.

Generic in structure, loss, rule and readout: adding a learner never edits this file.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.averages import leave_line, totals_now
from hopefear.core.component import component, kernel
from hopefear.core.interfaces import Row
from hopefear.core.workspace import Example

# Entries of ``Tally.counts``.
EXAMPLES, TICKS, UPDATES, MISTAKES, BROKEN = 0, 1, 2, 3, 4
# Bits of an example's outcome.
MISTAKEN, UPDATED = 1, 2
# Examples come in random order, so their rows are never in the cache: ask for them ahead of time,
# in two stages, since a row cannot be asked for before its place is known. Distances measured
# (docs/design.md).
FAR, NEAR = 12, 6


class Tally(NamedTuple):
    """What has happened so far."""

    counts: np.ndarray  # int64[5]: examples, ticks, updates, mistakes, broken (score not finite)
    loss: np.ndarray  # float64[1]: summed loss


@component(Row)
class Mover(NamedTuple):
    """A row that moves the weights it is given."""

    rule: Any
    state: Any
    readout: Any
    memory: Any
    books: tuple  # readout.now
    a: float
    b: float

    def additive(self):
        return self.rule.additive()

    def ask(self, j):
        self.rule.reading(self.state).ask(j)
        self.readout.expect_touch(self.memory, j)

    def put(self, j, g):
        m0, r0, f0 = self.rule.line(self.state, j)
        self.rule.move(self.state, j, g, self.a, self.b)
        m1, r1, f1 = self.rule.line(self.state, j)
        self.readout.touch(self.memory, self.books, j, g, m0, r0, f0, m1, r1, f1)


@kernel
def learn(structure, loss, rule, readout, state, memory, data, order, work, tally, outcome, always):
    """Learn from ``order`` until it ends or the books must be settled; returns how far it came.

    ``always``: the clock ticks on every example, and every example with a force moves the weights;
    else both happen on mistakes only.
    """
    counts = tally.counts
    for n in range(order.size):
        x = Example(data, order[n])
        if n + FAR < order.size:
            structure.announce(Example(data, order[n + FAR]))
        if n + NEAR < order.size:
            structure.fetch(Example(data, order[n + NEAR]))
        structure.score(x, rule.reading(state), work.theta)
        forced = loss.subgradient(structure, x, work) > 0
        if not math.isfinite(work.gap[0]):
            counts[BROKEN] = 1
            return n
        mistaken = work.gap[0] <= 0.0 and data.weights[order[n]] > 0.0
        tally.loss[0] += work.loss[0]
        counts[EXAMPLES] += 1
        counts[MISTAKES] += mistaken
        outcome[n] = MISTAKEN if mistaken else 0
        if always or (mistaken and forced):
            readout.close(memory, state.clock)
            if forced:
                a, b = rule.stride(
                    structure,
                    x,
                    work.mu,
                    state,
                    work.loss[0],
                    work.gap[0],
                    float(data.weights[order[n]]),
                )
                books = readout.now(memory)
                structure.scatter(x, work.mu, Mover(rule, state, readout, memory, books, a, b))
                counts[UPDATES] += 1
                outcome[n] |= UPDATED
            counts[TICKS] += 1
            rule.tick(state, counts[TICKS])
        readout.survive(memory)
        if readout.full(memory) or rule.worn(state):
            return n + 1
    return order.size


@kernel
def settle(rule, readout, state, memory, n):
    """Credit every coordinate with the closed ticks; rebase lines when the clock is worn."""
    worn = rule.worn(state)
    now = readout.now(memory)
    for j in range(n):
        m, r, f = rule.line(state, j)
        readout.settle(memory, now, j, m, r, f)
        if worn:
            rule.rebase(state, j)
    if worn:
        rule.restart(state.clock)


@kernel
def read_last(rule, state, out):
    """The weights of the present tick."""
    weights = rule.reading(state)
    for j in range(out.size):
        out[j] = weights.at(j)


@kernel
def read_sum(rule, state, account, lived, factor, out):
    """``factor`` times the sum of weights over all closed ticks and ``lived`` times the present."""
    weights = rule.reading(state)
    now = totals_now(account)
    for j in range(out.size):
        m, r, f = rule.line(state, j)
        total = account.total[j] + leave_line(account, now, j, m, r, f)
        if lived != 0.0:
            total += lived * weights.at(j)
        out[j] = factor * total


@kernel
def support(rule, state, n):
    """(number of non-zero weights, sum of their sizes) of the present tick."""
    weights = rule.reading(state)
    nonzero, size = 0, 0.0
    for j in range(n):
        w = weights.at(j)
        nonzero += w != 0.0
        size += abs(w)
    return nonzero, size


@kernel
def score_all(structure, weights, data, scores, labels):
    """Scores of all parts and the best output of every row."""
    y = np.zeros(1, np.int64)
    for i in range(scores.shape[0]):
        x = Example(data, i)
        structure.score(x, weights, scores[i])
        structure.argmax(x, scores[i], y)
        labels[i] = y[0]

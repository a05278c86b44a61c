"""Structured SVMs by block-coordinate Frank-Wolfe (Lacoste-Julien et al., 2013)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from hopefear.core.component import helper, kernel
from hopefear.core.interfaces import n_weights
from hopefear.core.workspace import DenseWeights, Example
from hopefear.errors import ModelError
from hopefear.storage import array_of
from hopefear.training.margins import (
    MarginLearner,
    MarginTrainer,
    column_array,
    empty,
    finite_array,
    new_gathered,
    stretches,
)

_ROOM = 1 << 16  # entries of all blocks that there is room for at the beginning


@dataclass(frozen=True)
class FrankWolfe(MarginLearner):
    """Structured SVM by steps of one example each, every step as long as is best.

    ``min_w  sum_i max_y (cost_iy - (score_i,gold - score_iy)) + l2 * sum_j w_j**2``

    The part ``g_i`` that an example has in the weights moves towards its most feared output, by
    ``step = 2 * l2 * gap_i / |g_feared - g_i|**2``, at most 1. An iteration is a pass.

    Parameters
    ----------
    average : bool
        Give away the average of the weights after each step, the k-th with weight k: steadier in
        the first passes, no better in the end.

    Notes
    -----
    Weights waver on the way, so the best so far are given away, and the gap is theirs. To know it
    takes another search of all examples after each pass, half of all searches.

    References
    ----------
    Lacoste-Julien, Jaggi, Schmidt and Pletscher. Block-coordinate Frank-Wolfe optimization for
    structural SVMs. ICML 2013.

    Examples
    --------
    >>> FrankWolfe(l2=0.5).signature()
    'loss:structured-hinge(cost=hamming)|rule:block-frank-wolfe(l2=0.5,max_iter=300,gap=0.05,\
average=false)|averaging:last|v:0.1.0'
    """

    average: bool = False

    def method(self) -> str:
        return "block-frank-wolfe"

    def trainer(
        self, structure: Any, rows: Any, start: np.ndarray | None = None, n_jobs: int = 1
    ) -> BlockTrainer:
        """This learner at work on some examples."""
        return BlockTrainer(structure, self, rows, start, n_jobs)


class BlockTrainer(MarginTrainer):
    """Block-coordinate Frank-Wolfe at work.

    Parameters
    ----------
    structure, learner, rows
        What is predicted, how it is learned, and from what.
    start : float array, optional
        Weights whose most feared outputs the first step leads to, for all examples at once.
    n_jobs : int
        Threads that look for the gap; steps come one after the other. The model does not depend
        on it.
    """

    def __init__(
        self,
        structure: Any,
        learner: FrankWolfe,
        rows: Any,
        start: np.ndarray | None = None,
        n_jobs: int = 1,
    ) -> None:
        super().__init__(structure, learner, rows, learner.loss, n_jobs)
        self.blocks = self.new_blocks(learner.loss)
        self.averaging = np.zeros(self.objective.n if learner.average else 0)
        self.steps, self.mean_b = 0, 0.0
        if start is not None:
            self.blocks.start_from(np.asarray(start, np.float64))
        self.values = [self._take_stock()]

    def new_blocks(self, loss: Any) -> Blocks:
        """One block for each example."""
        return Blocks(self.structure, loss, self.rows, self.learner.l2)

    def learn(self, data: Any = None, order: np.ndarray | None = None) -> None:
        """One step for each example, in this order."""
        order = np.arange(self.rows.weights.size) if order is None else order
        order = order[self.rows.weights[order] > 0.0]
        books = np.array([self.steps, self.mean_b, self.blocks.b.sum()])
        self.blocks.step(order, self.averaging, books)
        self.steps, self.mean_b = int(books[0]), float(books[1])
        value = self._take_stock()
        self.count(self.objective.loss, self.objective.mistakes, value)

    def _take_stock(self) -> float:
        """The lowest objective so far, once the present weights have been looked at."""
        w, b = self.blocks.w, float(self.blocks.b.sum())
        if self.learner.average and self.steps:
            mass = 0.5 * self.steps * (self.steps + 1.0)
            w, b = self.blocks.w - self.averaging / mass, self.mean_b
        value = self.evaluate(w)[0]
        self.dual = max(self.dual, b - self.learner.l2 * float(w @ w))
        if self.values and value > self.values[-1]:
            return self.values[-1]
        self.w = w.copy()
        return value

    def arrays(self) -> dict[str, np.ndarray]:
        books = np.array([float(self.steps), self.mean_b])
        return {
            **super().arrays(),
            **self.blocks.arrays(),
            "averaging": self.averaging,
            "books": books,
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        super().restore(arrays)
        self.blocks.restore(arrays)
        self.averaging = finite_array(arrays, "averaging", self.averaging.shape)
        steps, self.mean_b = finite_array(arrays, "books", (2,)).tolist()
        self.steps = int(steps)


class Blocks:
    """The part of every example in the weights, as sparse rows; ``w`` is their sum over 2 l2.

    Attributes
    ----------
    w, b : float64 arrays
        The weights, and the cost of each example's outputs by their shares.
    """

    def __init__(self, structure: Any, loss: Any, rows: Any, l2: float) -> None:
        self.structure, self.loss, self.rows, self.l2 = structure, loss, rows, l2
        n, self.n = rows.weights.size, n_weights(structure)
        self.w, self.b = np.zeros(self.n), np.zeros(n)
        self.first, self.size = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.columns, self.entries = np.zeros(_ROOM, np.int64), np.zeros(_ROOM)
        self.used = np.zeros(1, np.int64)
        self.kernel: Any = step_blocks
        self._row = new_gathered(self.n)
        self._work = structure.workspace(rows, loss, np.float64)

    def step(self, order: np.ndarray, averaging: np.ndarray, books: np.ndarray) -> None:
        """A step of each example in this order; books of the average are kept where it has any."""
        self._go(order, self.w, False, averaging, books)

    def start_from(self, weights: np.ndarray) -> None:
        """One step of all examples at once, towards what is feared under these weights."""
        sums, self.w = np.zeros(self.n), weights
        self._go(np.flatnonzero(self.rows.weights), sums, True, np.zeros(0), np.zeros(3))
        curve = 2.0 * self.l2 * float(sums @ sums)
        length = min(1.0, max(0.0, float(self.b.sum())) / curve) if curve > 0.0 else 1.0
        self.w = length * sums
        self.b *= length
        self.entries *= length

    def _go(self, order: np.ndarray, moved: np.ndarray, whole: bool, *average: np.ndarray) -> None:
        done = 0
        while True:
            done = self.kernel(
                *(self.structure, self.loss, self.rows, order, done, self._work, self.l2, self.w),
                *(moved, whole, self.b, self.first, self.size, self.columns, self.entries),
                *(self.used, self._row, *average),
            )
            if done == order.size:
                return
            self._make_room()

    def forget(self, which: np.ndarray) -> None:
        """Take some examples out of the weights."""
        self.b[which], self.size[which] = 0.0, 0
        self.w = self.sums() / (2.0 * self.l2)

    def sums(self) -> np.ndarray:
        """All blocks added up."""
        places = stretches(self.first, self.size)
        return np.bincount(self.columns[places], self.entries[places], self.n)

    def _make_room(self) -> None:
        """Put rows one behind the other; where they fill half of the room, double it."""
        places = stretches(self.first, self.size)
        tight = 2 * places.size >= self.columns.size or places.size == self.used[0]
        room = self.columns.size * (2 if tight else 1)
        columns, entries = np.zeros(room, np.int64), np.zeros(room)
        columns[: places.size], entries[: places.size] = self.columns[places], self.entries[places]
        self.columns, self.entries = columns, entries
        self.first = np.cumsum(self.size) - self.size
        self.used[0] = places.size

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later."""
        used = int(self.used[0])
        return {
            "blocks.w": self.w,
            "blocks.b": self.b,
            "blocks.first": self.first,
            "blocks.size": self.size,
            "blocks.columns": self.columns[:used],
            "blocks.entries": self.entries[:used],
            "blocks.room": np.array([self.columns.size], np.int64),
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take up what ``arrays`` gave, or ModelError."""
        n = self.b.size
        self.w = finite_array(arrays, "blocks.w", (self.n,))
        self.b = finite_array(arrays, "blocks.b", (n,))
        entries = finite_array(arrays, "blocks.entries", (None,))
        used = entries.size
        columns = column_array(arrays, "blocks.columns", (used,), self._row.sums.size)
        first = column_array(arrays, "blocks.first", (n,), used + 1)
        size = column_array(arrays, "blocks.size", (n,), used + 1)
        room = int(array_of(arrays, "blocks.room", np.int64, (1,))[0])
        most = max(_ROOM, 4 * (used + self._row.sums.size))
        if (first + size).max(initial=0) > used or not used <= room <= most:
            raise ModelError("blocks lie outside of their room")
        self.first, self.size = first, size
        self.columns, self.entries = np.zeros(room, np.int64), np.zeros(room)
        self.columns[:used], self.entries[:used] = columns, entries
        self.used[0] = used


@kernel
def step_blocks(
    structure, loss, data, order, done, work, l2, w, moved, whole, b, first, size, columns, entries,
    used, row, averaging, books,
):  # fmt: skip
    """Steps of the examples from ``done`` on; returns the first that there is no room for.

    ``moved`` are the weights, or what they shall become when all steps are ``whole``.
    """
    for p in range(done, order.size):
        i = order[p]
        x = Example(data, i)
        structure.score(x, DenseWeights(w), work.theta)
        forced = loss.subgradient(structure, x, work) > 0
        value = work.loss[0] if forced else 0.0
        # The direction is what is feared minus what there is.
        before = 0.0
        for e in range(first[i], first[i] + size[i]):
            j = columns[e]
            before += w[j] * entries[e]
            row.add_entry(np.uint64(j), -entries[e])
        if forced:
            structure.scatter(x, work.mu, row)
        count = row.filled[0]
        if used[0] + count > columns.size:
            empty(row)
            return p
        along, square = 0.0, 0.0
        for k in range(count):
            j = row.touched[k]
            along += w[j] * row.sums[j]
            square += row.sums[j] * row.sums[j]
        length = 1.0 if whole else step_length(value - (b[i] - before), square, l2)
        share = account(averaging, books, b, i, length * (value + along + before - b[i]))
        if length > 0.0:
            step = length / (2.0 * l2)
            for k in range(count):
                j = row.touched[k]
                moved[j] += step * row.sums[j]
                if averaging.size:
                    averaging[j] += share * step * row.sums[j]
            keep(row, length, i, first, size, columns, entries, used)
        empty(row)
    return order.size


@helper
def step_length(left, square, l2):
    """The best step, given what is left to gain and the squared length of the direction."""
    if left <= 0.0:
        return 0.0
    return min(1.0, 2.0 * l2 * left / square) if square > 0.0 else 1.0


@helper
def account(averaging, books, b, i, change):
    """Enter a step in the books; returns the weight of all steps before it in the average."""
    b[i] += change
    if averaging.size == 0:
        return 0.0
    books[0] += 1.0
    books[2] += change
    books[1] += 2.0 / (books[0] + 1.0) * (books[2] - books[1])
    return 0.5 * (books[0] - 1.0) * books[0]


@helper
def keep(row, length, i, first, size, columns, entries, used):
    """Move the row of an example by the direction in ``row``, which begins with its columns."""
    old, count, start = size[i], row.filled[0], used[0]
    n = 0
    for k in range(count):
        entry = length * row.sums[row.touched[k]]
        if k < old:
            entry += entries[first[i] + k]
        if entry != 0.0:
            columns[start + n] = row.touched[k]
            entries[start + n] = entry
            n += 1
    if n <= old:  # it fits where it was
        for k in range(n):
            columns[first[i] + k] = columns[start + k]
            entries[first[i] + k] = entries[start + k]
    else:
        first[i] = start
        used[0] += n
    size[i] = n

"""Blocks: examples that are searched at the same time, and whose directions are added in order.

A block learner is the online learner in which the examples of a block are all scored and searched
under the weights of the block's beginning; their strides are chosen there too. Then everything
happens as it would one by one: the account of a tick is closed, the direction of the next example
moves the weights, the clock ticks. So a block of one example is the online learner, and averages
are exact for the sequence of predictors that a block goes through.

Threads of a crew search examples and write down their directions, entry by entry, sorted by the
thread that a coordinate belongs to. The last to finish goes through the ticks, which takes no time,
and notes the clock and the books at each. Then each thread moves its own coordinates, example after
example: a coordinate meets the same moves under the same clocks in the same order however many
threads there are, so no bit depends on their number.

Where a structure scores by halves of its features, each thread first adds up what those of its own
half say of all examples. Weights are then read by the threads that move them, and by no other.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import component, inlined, lean, linked, prefetch
from hopefear.core.crew import (
    HALVES,
    desert,
    dismiss,
    is_last,
    meet,
    new_crew,
    owner,
    stretch_of,
    take,
    wait,
)
from hopefear.core.interfaces import Row
from hopefear.core.learner import Learner
from hopefear.core.memory import in_lines
from hopefear.core.workspace import Example
from hopefear.errors import HopefearError
from hopefear.training.online import (
    BROKEN,
    EXAMPLES,
    FAR,
    MISTAKEN,
    MISTAKES,
    NEAR,
    TICKS,
    UPDATED,
    UPDATES,
    Mover,
)

# Entries of ``Record.news``.
REACHED, HALTED, NEED = 0, 1, 2
# Between what two threads count, so that it is not in one cache line.
_GAP = 16
# Entries of a direction that are asked for ahead of their moves, and features; coordinates in a
# cache line.
_AHEAD, _FEATURES_AHEAD, _LINE = 24, 6, 16
# Room for the entries of a block at first; it grows to what a block needs.
ROOM = 1 << 12


class Record(NamedTuple):
    """What threads write down of the examples of a block; B examples, N threads."""

    coordinates: np.ndarray  # uint[N, N, room]: by the thread that searched and that will move
    values: np.ndarray  # real[N, N, room]: entries of directions at these coordinates
    bases: np.ndarray  # uint[N, N, room]: where features begin that get what is held
    sources: np.ndarray  # int64[N, N, room]: and where that is
    held: np.ndarray  # real[N, room]: by the thread that searched
    fill: np.ndarray  # int64[N, 2 N + 1 + gap]: entries so far, also those without room; features
    # by the thread that will move; what is held
    begins: np.ndarray  # int64[B, 2 N]: where an example's entries and its features begin
    ends: np.ndarray  # int64[B, 2 N]
    searcher: np.ndarray  # int64[B]: thread that searched the example
    steps: np.ndarray  # float64[B, 2]: a and b of its stride
    facts: np.ndarray  # float64[B, 2]: its loss and margin
    forced: np.ndarray  # int64[B]: it has a direction; later, one that is to be moved along
    left: np.ndarray  # int64[B]: a part of it lies on the structure's desk
    clocks: np.ndarray  # float64[B, 3]: the clock it moves under
    books: np.ndarray  # float64[B, 3]: the books at that moment
    news: np.ndarray  # int64[3]: how far the block came, whether to return, room that it needs


@component(Row)
class Recorder(NamedTuple):
    """A row that is written down; arrays are those of the record for one thread that searches."""

    rule: Any
    coordinates: np.ndarray
    values: np.ndarray
    bases: np.ndarray
    sources: np.ndarray
    held: np.ndarray
    fill: np.ndarray
    threads: int
    share: float  # that a coordinate is of its feature
    shift: int  # features of a short stretch, as a power of two

    def additive(self):
        return self.rule.additive()

    def put(self, j, g):
        p = owner(j, self.threads, self.share, self.shift)
        k = self.fill[p]
        if k < self.values.shape[1]:
            self.coordinates[p, k] = j
            self.values[p, k] = g
        self.fill[p] = k + 1

    def hold(self, values, at, width):
        k = self.fill[2 * self.threads]
        if k + np.int64(width) <= self.held.size:
            for c in range(width):
                self.held[np.uint64(k) + c] = values[at + c]
        self.fill[2 * self.threads] = k + np.int64(width)

    def spread(self, base, values, at, width):
        p = owner(base, self.threads, self.share, self.shift)
        k = self.fill[self.threads + p]
        if k < self.bases.shape[1]:
            self.bases[p, k] = base
            self.sources[p, k] = self.fill[2 * self.threads] - np.int64(width)
        self.fill[self.threads + p] = k + 1


@component(Row)
class Own(NamedTuple):
    """A row that passes on features of one thread only."""

    row: Any
    thread: int
    threads: int
    share: float
    shift: int

    def ask(self, j):
        self.row.ask(j)

    def put(self, j, g):
        if is_own(self, j):
            self.row.put(j, g)

    def spread(self, base, values, at, width):
        if is_own(self, base):
            self.row.spread(base, values, at, width)


@inlined
def is_own(own, j):
    """Whether coordinate ``j`` is of the thread; it is asked in the halves that it looks after."""
    if own.threads <= HALVES:
        return True
    return owner(j, own.threads, own.share, own.shift) == own.thread


@lean
def learn_blocks(
    structure,
    loss,
    rule,
    readout,
    state,
    memory,
    data,
    order,
    turns,
    work,
    tally,
    outcome,
    always,
    size,
    record,
    crew,
    thread,
    own,
    desk,
    width,
    shift,
):
    """Learn from ``order``, ``size`` examples at a time, as thread number ``thread`` of a crew.

    Returns how far all of them came, as ``learn`` does. ``turns`` are places in ``order``, block by
    block, as they are taken up. ``own`` is the state with a clock of this thread's own, ``desk``
    that of the structure. ``width`` is how many coordinates a feature of its first table has.
    """
    start, meetings = 0, 0
    while start < order.size:
        stop = min(start + size, order.size)
        if structure.halves():
            score_own(
                structure, rule, state, data, order, work, start, stop, desk, thread, crew.size
            )
            if not meet(crew, meetings):
                return start
            meetings += 1
        for p in range(2 * crew.size + 1):
            record.fill[thread, p] = 0
        turn = start + take(crew)
        while turn < stop:
            if turn + FAR < order.size:
                structure.announce(Example(data, order[turns[turn + FAR]]))
            if turn + NEAR < order.size:
                structure.fetch(Example(data, order[turns[turn + NEAR]]))
            n = turns[turn]
            x, k = Example(data, order[n]), n - start
            if structure.halves():
                structure.join(x, n, rule.reading(state), desk, work.theta)
            else:
                structure.score(x, rule.reading(state), work.theta)
            if search_one(structure, loss, rule, state, x, work, always, record, k, thread):
                if readout.alone():  # all for one thread, in the order of the entries
                    row = recorder(rule, record, thread, crew.size, 0.0, shift)
                    structure.scatter(x, work.mu, row)
                else:
                    row = recorder(rule, record, thread, crew.size, 1.0 / width, shift)
                    record.left[k] = structure.leave(x, n, work.mu, row, desk)
            write_end(record, k, thread)
            turn = start + take(crew)
        if is_last(crew):
            go_through(
                rule,
                readout,
                state,
                memory,
                data,
                order,
                tally,
                outcome,
                always,
                start,
                stop,
                record,
                width,
            )
            dismiss(crew)
        elif not wait(crew, meetings):
            return start
        meetings += 1
        reached, halted = start + record.news[REACHED], record.news[HALTED]
        if not readout.alone():
            move_own(
                structure,
                rule,
                readout,
                own,
                memory,
                data,
                order[start:reached],
                start,
                record,
                desk,
                thread,
                crew.size,
                width,
                shift,
            )
        # Who reads weights next is who moved them, where there is one thread for each half.
        if crew.size > HALVES or not structure.halves():
            if not meet(crew, meetings):
                return start
            meetings += 1
        start = reached
        if halted:
            break
    return start


@inlined
def score_own(structure, rule, state, data, order, work, start, stop, desk, thread, threads):
    """Score the examples of a block by the features of the halves that a thread looks after.

    Threads that look after the same half share out its examples.
    """
    weights = rule.reading(state)
    for half in range(HALVES):
        first, last = half * threads // HALVES, -((half + 1) * threads // -HALVES)
        if first <= thread < last:
            begin = start + (thread - first) * (stop - start) // (last - first)
            end = start + (thread + 1 - first) * (stop - start) // (last - first)
            for n in range(begin, end):
                structure.score_half(Example(data, order[n]), n, half, weights, desk, work.theta)


@linked
def move_own(
    structure,
    rule,
    readout,
    own,
    memory,
    data,
    order,
    start,
    record,
    desk,
    thread,
    threads,
    width,
    shift,
):
    """Move the coordinates of a thread along the directions of the examples of a block.

    ``own`` is the state with a clock that is set to that of each example.
    """
    for k in range(order.size):
        if record.forced[k]:
            row = mover(rule, readout, at_clock(own, record, k), memory, record, k)
            move_along(row, record, k, thread, width)
            if record.left[k]:
                mine = Own(row, thread, threads, 1.0 / width, shift)
                x = Example(data, order[k])
                move_left(structure, x, start + k, mine, thread, threads, desk)


@inlined
def move_left(structure, x, n, row, thread, threads, desk):
    """Move the coordinates of a thread along what an example has left on the desk."""
    for half in range(HALVES):
        if half * threads < (thread + 1) * HALVES and thread * HALVES < (half + 1) * threads:
            structure.scatter_half(x, n, half, row, desk)


@inlined
def search_one(structure, loss, rule, state, x, work, always, record, k, thread):
    """Search an example that was scored, the k-th of a block; whether it has a direction."""
    forced = loss.subgradient(structure, x, work) > 0
    record.facts[k, 0] = work.loss[0]
    record.facts[k, 1] = work.gap[0]
    record.forced[k] = forced
    record.left[k] = 0
    record.searcher[k] = thread
    for p in range(record.begins.shape[1]):
        record.begins[k, p] = record.fill[thread, p]
    if forced and (always or is_mistaken(x.data, x.i, work.gap[0])):
        record.steps[k, 0], record.steps[k, 1] = rule.stride(
            structure, x, work.mu, state, work.loss[0], work.gap[0], float(x.data.weights[x.i])
        )
        return True
    return False


@inlined
def recorder(rule, record, thread, threads, share, shift):
    """What writes down directions that a thread has found; by a share of 0, all for the first."""
    return Recorder(
        rule,
        record.coordinates[thread],
        record.values[thread],
        record.bases[thread],
        record.sources[thread],
        record.held[thread],
        record.fill[thread],
        threads,
        share,
        shift,
    )


@inlined
def write_end(record, k, thread):
    """Note where the direction of the k-th example of a block ends."""
    for p in range(record.ends.shape[1]):
        record.ends[k, p] = record.fill[thread, p]


@inlined
def is_mistaken(data, i, gap):
    """Whether the margin of example ``i`` is a mistake."""
    return gap <= 0.0 and data.weights[i] > 0.0


@linked
def go_through(
    rule, readout, state, memory, data, order, tally, outcome, always, start, stop, record, width
):
    """Count the examples of a block and go through their ticks, until books must be settled.

    Readouts that stand alone have their moves made here, each at its tick.
    """
    counts, news = tally.counts, record.news
    news[REACHED], news[HALTED], news[NEED] = 0, 0, 0
    threads = record.begins.shape[1] // 2
    for searcher in range(threads):
        for p in range(2 * threads + 1):
            news[NEED] = max(news[NEED], record.fill[searcher, p])
    if news[NEED] > record.values.shape[2]:
        news[HALTED] = 1
        return
    for n in range(start, stop):
        k = n - start
        if not math.isfinite(record.facts[k, 1]):
            counts[BROKEN] = 1
            news[HALTED] = 1
            return
        mistaken, forced = is_mistaken(data, order[n], record.facts[k, 1]), record.forced[k] > 0
        tally.loss[0] += record.facts[k, 0]
        counts[EXAMPLES] += 1
        counts[MISTAKES] += mistaken
        outcome[n] = MISTAKEN if mistaken else 0
        record.forced[k] = 0
        if always or (mistaken and forced):
            readout.close(memory, state.clock)
            if forced:
                record.forced[k] = 1
                books = readout.now(memory)
                for e in range(3):
                    record.clocks[k, e] = state.clock[e]
                record.books[k, 0], record.books[k, 1], record.books[k, 2] = books
                if readout.alone():
                    row = mover(rule, readout, state, memory, record, k)
                    for p in range(threads):
                        move_along(row, record, k, p, width)
                counts[UPDATES] += 1
                outcome[n] |= UPDATED
            counts[TICKS] += 1
            rule.tick(state, counts[TICKS])
        readout.survive(memory)
        news[REACHED] = k + 1
        if readout.full(memory) or rule.worn(state):
            news[HALTED] = 1
            return


@inlined
def at_clock(own, record, k):
    """A thread's own reading of the state, under the clock of the k-th example of a block."""
    for e in range(own.clock.size):
        own.clock[e] = record.clocks[k, e]
    return own


@inlined
def mover(rule, readout, state, memory, record, k):
    """What moves weights along the direction of the k-th example of a block."""
    books = (record.books[k, 0], record.books[k, 1], record.books[k, 2])
    row = Mover(rule, state, readout, memory, books, record.steps[k, 0], record.steps[k, 1])
    return readout.watched(memory, row)


@linked
def move_along(row, record, k, p, width):
    """Move the coordinates of thread ``p`` along what was written of a block's k-th example."""
    searcher, step = record.searcher[k], np.uint64(width)
    # Fills are those of all examples, so that moves are asked for across their borders.
    threads, fill = record.begins.shape[1] // 2, record.fill[searcher]
    bases, sources, held = (
        record.bases[searcher, p],
        record.sources[searcher, p],
        record.held[searcher],
    )
    for e in range(record.begins[k, threads + p], record.ends[k, threads + p]):
        if e + _FEATURES_AHEAD < fill[threads + p]:
            ahead = np.uint64(bases[e + _FEATURES_AHEAD])
            source = sources[e + _FEATURES_AHEAD]
            for c in range(np.uint64(0), step, np.uint64(_LINE)):
                row.ask(ahead + c)
                prefetch(held, np.uint64(source) + c)
        row.spread(np.uint64(bases[e]), held, np.uint64(sources[e]), step)
    coordinates, values = record.coordinates[searcher, p], record.values[searcher, p]
    for e in range(record.begins[k, p], record.ends[k, p]):
        if e + _AHEAD < fill[p]:
            row.ask(np.uint64(coordinates[e + _AHEAD]))
        row.put(np.uint64(coordinates[e]), values[e])


class Blocks:
    """The threads of a block learner, and what they write on.

    Parameters
    ----------
    structure, learner, dtype
        As for :class:`~hopefear.training.online.OnlineTrainer`; the learner's ``block`` is how many
        examples are searched at a time.
    n_jobs : int
        Threads, at most one for each example of a block. Nothing depends on it but time.
    """

    def __init__(self, structure: Any, learner: Learner, dtype: Any, n_jobs: int = 1) -> None:
        self.structure, self.learner, self.dtype = structure, learner, dtype
        self.threads = max(1, min(n_jobs, learner.block))
        self._width = int(structure.tables()[0][2])
        self._pool = ThreadPoolExecutor(self.threads - 1) if self.threads > 1 else None
        self._record = self._new_record(ROOM)
        self._works: list[Any] = []
        self._desk: Any = ()
        self._compiled = False

    def prepare(self, data: Any) -> None:
        """Make space for the examples of ``data``, for every thread."""
        loss = self.learner.loss
        self.forget()
        self._works = [
            self.structure.workspace(data, loss, self.dtype) for _ in range(self.threads)
        ]
        self._desk = self.structure.desk(data, self.dtype, self.threads)

    def forget(self) -> None:
        """Let go what was made for the last data."""
        self._works, self._desk = [], ()

    def learn(
        self, state: Any, memory: Any, data: Any, order: np.ndarray, tally: Any, outcome: np.ndarray
    ) -> int:
        """Learn from ``order`` until it ends or the books must be settled; how far it came."""
        if not self._compiled:  # by one thread, before others wait for it
            self._run(state, memory, data, order[:0], tally, outcome)
            self._compiled = True
        done = 0
        while True:
            done += self._run(state, memory, data, order[done:], tally, outcome[done:])
            need, room = int(self._record.news[NEED]), self._record.values.shape[2]
            if need <= room:
                return done
            self._record = self._new_record(need + need // 2)

    def _run(
        self, state: Any, memory: Any, data: Any, order: np.ndarray, tally: Any, outcome: np.ndarray
    ) -> int:
        learner, crew = self.learner, new_crew(self.threads)
        turns = longest_first(data, order, learner.block if self.threads > 1 else 1)
        desk = self.structure.lay(self._desk, data, order, learner.block)
        self._record.news[:] = 0

        def work(thread: int) -> int:
            try:
                return learn_blocks(
                    self.structure,
                    learner.loss,
                    learner.rule,
                    learner.readout,
                    state,
                    memory,
                    data,
                    order,
                    turns,
                    self._works[thread],
                    tally,
                    outcome,
                    learner.on == "every",
                    learner.block,
                    self._record,
                    crew,
                    thread,
                    state._replace(clock=state.clock.copy()),
                    desk,
                    self._width,
                    stretch_of(self._width),
                )
            except BaseException:
                desert(crew)
                raise

        if self._pool is None or not order.size:
            return work(0)
        try:
            # What NumPy is told to say of overflow, it is told for one thread.
            others = [
                self._pool.submit(copy_context().run, work, thread)
                for thread in range(1, self.threads)
            ]
            done = work(0)
            for other in others:
                other.result()
        except BaseException:  # also an interrupt before this thread has joined the others
            desert(crew)
            raise
        return done

    def _new_record(self, room: int) -> Record:
        return record_for(self.structure, self.learner, self.dtype, room, self.threads)

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
            self.threads = 1
            self._record = self._new_record(ROOM)
            self._works = self._works[:1]


def longest_first(data: Any, order: np.ndarray, block: int) -> np.ndarray:
    """Places of examples in an order, in each block the longest first: then none ends it alone.

    >>> from hopefear.data.sparse import SparseDataset
    >>> rows = SparseDataset.from_csr([[1, 0], [1, 1], [1, 1], [0, 1]]).rows
    >>> longest_first(rows, np.array([0, 1, 3, 2]), 2)
    array([1, 0, 3, 2])
    """
    ends = getattr(data, "starts", getattr(data, "indptr", None))
    if ends is None or ends.size != data.weights.size + 1:  # of a structure that is not ours
        return np.arange(order.size)
    whole = -(-order.size // block) * block
    sizes = np.zeros(whole, np.int64)  # of a last block that is not full, none come behind
    sizes[: order.size] = ends[order + 1] - ends[order]
    turns = np.argsort(-sizes.reshape(-1, block), axis=1, kind="stable")
    turns += np.arange(0, whole, block)[:, None]
    return turns.ravel()[: order.size]


def record_for(structure: Any, learner: Learner, dtype: Any, room: int, threads: int = 1) -> Record:
    """Space for the blocks of a learner, with room for so many entries of each thread."""
    kind = np.uint32 if structure.n_coordinates() <= 1 << 32 else np.uint64
    try:
        return new_record(learner.block, threads, room, kind, dtype)
    except MemoryError:
        raise HopefearError(
            f"the directions of {learner.block:,} examples do not fit into memory; "
            "use a smaller block"
        ) from None


def new_record(block: int, threads: int, room: int, kind: Any, dtype: Any) -> Record:
    """Space for what so many threads write down of a block."""
    # Cache lines of an example hold what is written of it and of no other, by one thread.
    whole = in_lines(block, 3 + 4 * threads, np.int64)
    real = in_lines(block, 10, np.float64)
    begins = 3 + 2 * threads
    return Record(
        np.zeros((threads, threads, room), kind),
        np.zeros((threads, threads, room), dtype),
        np.zeros((threads, threads, room), kind),
        np.zeros((threads, threads, room), np.int64),
        np.zeros((threads, room), dtype),
        np.zeros((threads, 2 * threads + 1 + _GAP), np.int64),
        begins=whole[:, 3:begins],
        ends=whole[:, begins : begins + 2 * threads],
        searcher=whole[:, 0],
        steps=real[:, 0:2],
        facts=real[:, 2:4],
        forced=whole[:, 1],
        left=whole[:, 2],
        clocks=real[:, 4:7],
        books=real[:, 7:10],
        news=np.zeros(3, np.int64),
    )

"""Shards at work: one learner for each share of the examples, and where these learners run.

A shard begins a round with the state that all have in common, learns from its own examples and
says what that changed. What it says is a sum over coordinates, so shards need not know each other;
sums go up a tree whose order is fixed, so the merged state has the same bits wherever shards run.
"""

from __future__ import annotations

import contextlib
import contextvars
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from queue import SimpleQueue
from threading import Event, Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hopefear.core.averages import Account, start_afresh, totals_now
from hopefear.core.crew import new_crew
from hopefear.core.learner import Learner
from hopefear.errors import HopefearError
from hopefear.training.changes import (
    ROOM,
    ROW,
    Change,
    Sparse,
    Stack,
    Update,
    changed_by,
    clear_octets,
    enter_round,
    mark_used,
    merge_marked,
    new_stack,
    put,
    reopen_octets,
    settle_octets,
)
from hopefear.training.marks import Marked, Marks, cover, mark_all, new_marks, octets_of
from hopefear.training.online import TICKS, OnlineTrainer
from hopefear.training.passes import Passes

T = TypeVar("T")


class Report(NamedTuple):
    """What a shard did in the present round."""

    seconds: float  # of its last steps
    counts: np.ndarray  # int64: as in ``Tally``; of ticks, all there ever were
    loss: float
    clock: np.ndarray
    restarted: bool  # its clock, so that lines are in other units than those they began with


class Share(NamedTuple):
    """The examples of one shard, and the order in which it takes them, as ``Passes`` has it."""

    rows: Any
    seed: int
    shuffle: bool
    by_content: bool

    def open(self) -> Held:
        """The examples, to be learned from."""
        return Held(Passes(Rows(self.rows), self.seed, self.shuffle, by_content=self.by_content))

    def portable(self) -> Share:
        """The share as another process can be given it."""
        return self

    def worker(self, structure: Any, learner: Learner, dtype: Any) -> Shard:
        """What learns from these examples in a process of its own."""
        return Shard(structure, learner, self, dtype)


@dataclass(frozen=True)
class Rows:
    """Rows, as ``Passes`` takes a dataset."""

    rows: Any
    mapping: None = None

    def __len__(self) -> int:
        return len(self.rows.weights)


class Held:
    """Examples in memory, visit after visit."""

    def __init__(self, passes: Passes) -> None:
        self.n = passes.n
        self._passes, self._epoch, self._order = passes, -1, np.empty(0, np.int64)

    def stretch(self, epoch: int, begin: int, end: int) -> Iterator[tuple[Any, np.ndarray]]:
        """(rows, order) of the visits from ``begin`` to ``end - 1`` of a pass."""
        if epoch != self._epoch:
            self._epoch, self._order = epoch, self._passes.order(epoch)
        yield self._passes.rows, self._order[begin:end]


class Dealt(NamedTuple):
    """Every k-th block of data that is visited by blocks: none is copied, all are opened anew.

    Parameters
    ----------
    passes : Passes
        Passes over all data.
    shard, shards : int
        Which of the blocks of a pass: those whose number is ``shard`` modulo ``shards``.
    """

    passes: Passes
    shard: int
    shards: int

    @property
    def n(self) -> int:
        """Blocks of a pass."""
        return len(range(self.shard, self.passes.n_pieces, self.shards))

    def open(self) -> Dealt:
        """The examples, to be learned from."""
        return self._replace(passes=self.passes.opened())

    def portable(self) -> Dealt:
        """The share as another process can be given it: where the data lies."""
        return self._replace(passes=self.passes.portable())

    def worker(self, structure: Any, learner: Learner, dtype: Any) -> Shard:
        """What learns from these examples in a process of its own."""
        return Shard(structure, learner, self, dtype)

    def stretch(self, epoch: int, begin: int, end: int) -> Iterator[tuple[Any, np.ndarray]]:
        """(rows, order) of its blocks from ``begin`` to ``end - 1`` of a pass."""
        first, last = (self.shard + place * self.shards for place in (begin, end))
        return self.passes.at(epoch, slice(first, last, self.shards))


class Shard:
    """One learner on one share of the examples.

    Parameters
    ----------
    structure, learner, dtype
        As of a trainer.
    share : Share or Dealt
        The examples of this shard.

    Examples
    --------
    >>> from hopefear.data.generators import sparse_linear
    >>> from hopefear.recipes import RECIPES
    >>> from hopefear.structures.classes import Binary
    >>> data = sparse_linear(200, 50, per_row=(5, 10), true_weights=10, seed=1).dataset()
    >>> share = Share(data.rows, 1, True, False)
    >>> shard = Shard(Binary(50), RECIPES["perceptron"].build(), share)
    >>> shard.begin(shard.trainer.learner.rule.init(50, np.float32), 0)
    >>> int(shard.learn(0, 0, 1, 1).counts[0])
    200
    """

    def __init__(
        self,
        structure: Any,
        learner: Learner,
        share: Any,
        dtype: Any = np.float32,
        stack: Stack | None = None,
        k: int = 0,
    ) -> None:
        self.trainer = OnlineTrainer(
            structure, replace(learner, readout=Marked(learner.readout)), dtype
        )
        self._examples = share.open()
        self._stack = stack or stack_for(structure, learner, dtype, 1)
        self._k = k
        self.trainer.state = self._stack.state(k)
        self.account: Account | None = None
        kept = self.trainer.memory.kept
        for books in learner.readout.books(kept):
            self.account = books._replace(total=self._stack.total(k))
            kept = with_books(kept, books, self.account)
        self._begun = new_marks(self.trainer.n)
        self.trainer.memory = Marks(kept, self._stack.marks[k], self._begun)
        self._base: Any = None
        self._rest: tuple[np.ndarray, ...] | None = None  # once the round has ended

    def begin(self, state: Any, t: int) -> None:
        """Begin a round with this state, which stays as it is, ``t`` ticks old."""
        self._base = state
        for array, begun in zip(self.trainer.state, state, strict=True):
            array[...] = begun
        rule, used = self.trainer.learner.rule, self._stack.used[self._k]
        if used.size:
            used[:] = 0
            mark_used(rule, rule.init(1, state[0].dtype), state, used, self.trainer.n)
        self._stack.marks[self._k] = self._begun[:] = 0
        self._stack.total(self._k)[:] = 0.0
        self.go_on(t)

    def learn(self, epoch: int, first: int, last: int, steps: int) -> Report:
        """Learn from steps ``first`` to ``last - 1`` of the ``steps`` that a pass has."""
        started, trainer, examples = time.perf_counter(), self.trainer, self._examples
        # Blocks of examples are not cut, wherever steps end.
        block = trainer.learner.block if isinstance(examples, Held) else 1
        n = -(-examples.n // block)
        begin, end = (min(step * n // steps * block, examples.n) for step in (first, last))
        for rows, order in examples.stretch(epoch, begin, end):
            trainer.learn(rows, order)
        seconds = time.perf_counter() - started
        counts, clock = trainer.tally.counts.copy(), trainer.state.clock.copy()
        return Report(seconds, counts, trainer.loss, clock, trainer.restarts > 0)

    def norms(self) -> Sparse:
        """Sums of squares of the weights of each feature."""
        weights = self.trainer.weights().astype(np.float64)
        return Sparse.of(
            np.concatenate(
                [
                    np.square(weights[start : start + n * width]).reshape(n, width).sum(axis=1)
                    for start, n, width in self.trainer.structure.tables()
                ]
            )
        )

    def end(self) -> tuple[np.ndarray, ...]:
        """Close the books of a round; (examples, what a line of 1 has earned), where there are any.

        Where lines can die, what they earned is entered for each coordinate, and nothing for all.
        """
        if self._rest is None:  # else asked again, where what it said was lost
            trainer, self._rest, marks = self.trainer, (), self._stack.marks[self._k]
            cover(marks, self._begun, trainer.structure.tables()[0][2])
            trainer.learner.readout.close(trainer.memory, trainer.state.clock)
            if self.account is not None:
                earned, used = totals_now(self.account)[0], self._stack.used[self._k]
                if used.size:
                    marks |= used
                    octets, earned = octets_of(marks), 0.0
                    settle_octets(trainer.learner.rule, trainer.state, self.account, octets)
                self._rest = (np.array([self.account.lived[1], earned]),)
        return self._rest

    def change(self, share: float, clock: np.ndarray) -> Change:
        """What its round changed, where its state counts by this share."""
        stack, k, rest = self._stack, self._k, self.end()
        earned = rest[0][1] if rest else 0.0
        rule, state, marks = self.trainer.learner.rule, self.trainer.state, stack.marks[k]
        total = stack.total(k)
        changes, gains = changed_by(rule, self._base, state, marks, total, earned, share, clock)
        return Change(changes, (gains,) if rest else (), rest)

    def take_up(self, update: Update, shared: bool = False) -> None:
        """Begin the next round; ``shared``: the state it began with is the merged one already."""
        for state in (self.trainer.state,) if shared else (self.trainer.state, self._base):
            put(state, update)
        stack, k = self._stack, self._k
        if stack.used[k].size:
            stack.used[k] |= stack.marks[k]
            mark_all(stack.used[k], update.ids)
        if stack.totals.size:
            clear_octets(stack.total(k), octets_of(stack.marks[k]))
        stack.marks[k] = 0
        self.go_on(update.t)

    def go_on(self, t: int) -> None:
        """Begin a round whose state and marks are those of its beginning."""
        trainer = self.trainer
        trainer.tally.counts[:] = 0
        trainer.tally.counts[TICKS] = t
        trainer.tally.loss[:] = 0.0
        trainer.restarts = 0
        self._rest = None
        if self.account is not None:
            self.account.lived[:] = 0.0
            start_afresh(self.account)
            used = self._stack.used[self._k]
            if used.size:
                reopen_octets(trainer.learner.rule, trainer.state, self.account, octets_of(used))


def stack_for(structure: Any, learner: Learner, dtype: Any, shards: int) -> Stack:
    """The states of so many shards."""
    readout, n = learner.readout, structure.n_coordinates()
    books = bool(readout.books(readout.init_memory(0, 1)))
    return new_stack(learner.rule, n, dtype, shards, books)


def with_books(memory: Any, books: Account, others: Account) -> Any:
    """The memory of a readout with other books, which are itself or a field of it."""
    if memory is books:
        return others
    fields = {name: others for name, value in memory._asdict().items() if value is books}
    return memory._replace(**fields)


def in_context(function: Callable[..., T]) -> Callable[..., T]:
    """The function with what holds for this thread, such as NumPy's ways with overflow."""
    context = contextvars.copy_context()
    return lambda *args: context.copy().run(function, *args)


def folded(items: Sequence[T], plus: Callable[[T, T], T]) -> T:
    """The sum by twos, then by twos of these, so that the order is the same wherever it is made.

    >>> folded(["a", "b", "c"], lambda one, other: f"({one}{other})")
    '((ab)c)'
    """
    while len(items) > 1:
        pairs = [items[k : k + 2] for k in range(0, len(items), 2)]
        items = [pair[0] if len(pair) == 1 else plus(*pair) for pair in pairs]
    return items[0]


class Pool:
    """Where shards run, each asked by a thread of this process.

    ``sent`` counts bytes that went from process to process.
    """

    sent = 0

    def __init__(self) -> None:
        self._shards: list[Any] = []
        self._pool: Any = None

    def begin(self, state: Any, t: int) -> None:
        """Let all begin a round with this state, which is not changed before they take up it."""
        self._each("begin", [(state, t)] * len(self._shards))

    def learn(
        self, epoch: int, stretches: Sequence[tuple[int, int]], steps: int
    ) -> Iterator[list[Report]]:
        """Let all learn stretches of a pass; what they report after each.

        None waits for others between two stretches.
        """
        queues: list[Any] = [SimpleQueue() for _ in self._shards]
        broken = Event()

        def run(shard: Any, queue: Any) -> None:
            try:
                for first, last in stretches:
                    if broken.is_set():
                        return
                    queue.put((self._call(shard, "learn", (epoch, first, last, steps)), None))
            except BaseException as error:
                queue.put((None, error))

        run = in_context(run)
        runs = [self._pool.submit(run, *pair) for pair in zip(self._shards, queues, strict=True)]
        try:
            for _ in stretches:
                yield [_received(queue) for queue in queues]
        finally:
            broken.set()
            wait(runs)

    def norms(self) -> Sparse:
        """Sums of squares of the weights of each feature over all shards."""
        return folded(self._each("norms", [()] * len(self._shards)), Sparse.plus)

    def change(self, shares: Sequence[float], clock: np.ndarray) -> Change:
        """What all of them changed."""
        return folded(self._each("change", [(share, clock) for share in shares]), Change.plus)

    def take_up(self, update: Update) -> None:
        """Let all begin the next round."""
        self._each("take_up", [(update, True)] * len(self._shards))

    def step(self, state: Any, number: int, move: Any, examples: Sequence[Any]) -> list[Any]:
        """Let all move, and search these examples of theirs (see ``training.synchronous``).

        ``state`` is that of all after so many moves, for one that has to begin anew.
        """
        return self._each("step", [(move, some) for some in examples])

    def close(self) -> None:
        """End the threads."""
        if self._shards:
            self._pool.shutdown()
        self._shards = []

    def _each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        call = in_context(lambda shard, args: self._call(shard, method, args))
        return list(self._pool.map(call, self._shards, arguments))

    def _call(self, shard: Any, method: str, arguments: tuple[Any, ...]) -> Any:
        return getattr(shard, method)(*arguments)


def _received(queue: Any) -> Any:
    answer, error = queue.get()
    if error is not None:
        raise error
    return answer


class Threads(Pool):
    """Shards as threads of this process; kernels do not hold its lock."""

    def start(self, structure: Any, learner: Learner, shares: Sequence[Any], dtype: Any) -> None:
        """Make a shard of each of the shares."""
        self._pool = ThreadPoolExecutor(len(shares))
        self._rule = learner.rule
        self._stack = stack_for(structure, learner, dtype, len(shares))
        make = in_context(
            lambda k: Shard(structure, learner, shares[k], dtype, stack=self._stack, k=k)
        )
        self._shards = list(self._pool.map(make, range(len(shares))))

    def merge(
        self,
        state: Any,
        account: Account | None,
        shares: Sequence[float],
        clock: np.ndarray,
        by_moved: bool,
        t: int,
    ) -> None:
        """Merge all into the state in common and its books, and let all begin the next round.

        The same as `change`, what a trainer makes of it, and `take_up`, in one sweep.
        """
        rests = self._each("end", [()] * len(self._shards))
        rule, stack, threads = self._rule, self._stack, len(self._shards)
        earned, total, a = np.zeros(threads), np.empty(0), 0.0
        if account is not None:
            enter_round(account, folded([rest[0] for rest in rests], np.add))
            earned[:] = [rest[0][1] for rest in rests]
            total, a = account.total, totals_now(account)[0]

        crew = new_crew(threads)

        def merge(thread: int) -> None:
            merge_marked(
                rule,
                state,
                stack.states,
                stack.n,
                stack.marks.view(np.uint64),
                stack.totals,
                earned,
                np.array(shares),
                stack.clocks,
                clock,
                by_moved,
                total,
                a,
                stack.used.view(np.uint64),
                np.empty((threads, ROW)),
                np.empty(ROOM, np.uint64),
                crew,
            )

        list(self._pool.map(in_context(merge), range(threads)))
        for each in (state.clock, *stack.clocks):
            each[:] = clock
        self._each("go_on", [(t,)] * threads)


class Processes(Pool):
    """Shards as processes of this machine, which get their examples, or where they lie, once."""

    def __init__(self) -> None:
        super().__init__()
        self._counting = Lock()
        self._workers: list[subprocess.Popen[bytes]] = []

    def start(self, structure: Any, learner: Learner, shares: Sequence[Any], dtype: Any) -> None:
        command = [sys.executable, "-c", "from hopefear.training.workers import serve; serve()"]
        # The modules of this process, wherever it has them from.
        paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._pool = ThreadPoolExecutor(len(shares))
        for _ in shares:
            self._workers.append(
                # A session of its own: control-C is for the process that asks.
                subprocess.Popen(
                    command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    env=paths,
                    start_new_session=True,
                )
            )
        self._shards = self._workers
        movable = [share.portable() for share in shares]
        self._each("start", [(structure, learner, share, dtype) for share in movable])

    def take_up(self, update: Update) -> None:
        self._each("take_up", [(update,)] * len(self._workers))

    def close(self) -> None:
        """End the processes."""
        for worker in self._workers:
            worker.kill()  # nothing of its own is lost, and a round may last
            worker.wait()
            assert worker.stdin is not None and worker.stdout is not None
            with contextlib.suppress(OSError):  # what it was not told any more
                worker.stdin.close()
            worker.stdout.close()
        self._workers = []
        super().close()

    def _call(self, shard: Any, method: str, arguments: tuple[Any, ...]) -> Any:
        try:
            size = _send(shard.stdin, (method, arguments))
            data = _receive(shard.stdout)
        except (OSError, EOFError) as error:
            raise HopefearError(
                f"a process that had a shard has ended (exit {shard.poll()}); was it killed for "
                "want of memory? use threads, or fewer shards"
            ) from error
        failed, answer = pickle.loads(data)
        if failed:
            raise answer
        with self._counting:
            self.sent += size + len(data)
        return answer


def serve() -> None:
    """Be a shard: answer questions from standard input until it ends."""
    questions, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed must not mix with answers
    shard: Any = None
    while True:
        try:
            data = _receive(questions)
        except EOFError:
            return
        try:
            method, arguments = pickle.loads(data)
            if method == "start":
                structure, learner, share, dtype = arguments
                shard, answer = share.worker(structure, learner, dtype), None
            else:
                answer = getattr(shard, method)(*arguments)
            failed = False
        except Exception as error:
            failed, answer = True, _portable(error)
        try:
            _send(answers, (failed, answer))
        except BrokenPipeError:  # nobody waits for it any more
            os._exit(0)


def _portable(error: Exception) -> Exception:
    """An error that another process can read."""
    if isinstance(error, AttributeError | ImportError):  # a part of the user's own program
        return HopefearError(
            f"a process that has a shard cannot import what it was given ({error}); put it into a "
            "module, or use threads"
        )
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return HopefearError(f"{type(error).__name__}: {error}")
    return error


def _send(pipe: Any, message: Any) -> int:
    data = pickle.dumps(message, protocol=5)
    pipe.write(len(data).to_bytes(8, "little"))
    pipe.write(data)
    pipe.flush()
    return len(data)


def _receive(pipe: Any) -> bytes:
    size = int.from_bytes(pipe.read(8) or b"", "little")
    data = pipe.read(size)
    if not size or len(data) < size:
        raise EOFError
    return bytes(data)

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
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, TypeVar

import numpy as np

from hopefear.core.learner import Learner
from hopefear.errors import HopefearError
from hopefear.training.changes import (
    Change,
    Sparse,
    Update,
    noted,
    put,
    taken,
)
from hopefear.training.online import TICKS, OnlineTrainer, read_last, settle
from hopefear.training.passes import Passes

T = TypeVar("T")


class Report(NamedTuple):
    """What a shard did in the present round."""

    seconds: float  # of its last steps
    counts: np.ndarray  # int64: as in ``Tally``; of ticks, all there ever were
    loss: float
    clock: np.ndarray
    restarted: bool  # its clock, so that lines are in other units than those they began with


class Round(NamedTuple):
    """What a shard keeps of a round that has ended."""

    changed: np.ndarray  # coordinates whose state is another than at its beginning
    used: np.ndarray  # coordinates that are not as in a new learner
    totals: tuple[Sparse, ...]
    rest: tuple[np.ndarray, ...]


class Share(NamedTuple):
    """The examples of one shard, and the order in which it takes them, as ``Passes`` has it."""

    rows: Any
    seed: int
    shuffle: bool
    by_content: bool

    def open(self) -> Held:
        """The examples, to be learned from."""
        return Held(Passes(Rows(self.rows), self.seed, self.shuffle, by_content=self.by_content))


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
            orders = [order for _, order in self._passes.pieces(epoch)]
            self._epoch, self._order = epoch, np.concatenate(orders)
        yield self._passes.rows, self._order[begin:end]


class Dealt:
    """Every k-th block of data that is visited by blocks, which is not copied.

    Parameters
    ----------
    passes : Passes
        Passes over all data.
    shard, shards : int
        Which of the blocks of a pass: those whose number is ``shard`` modulo ``shards``.
    """

    def __init__(self, passes: Passes, shard: int, shards: int) -> None:
        self._passes, self._shard, self._shards = passes, shard, shards
        self.n = len(range(shard, passes.n_pieces, shards))

    def open(self) -> Dealt:
        """The examples, to be learned from."""
        return self

    def stretch(self, epoch: int, begin: int, end: int) -> Iterator[tuple[Any, np.ndarray]]:
        """(rows, order) of its blocks from ``begin`` to ``end - 1`` of a pass."""
        first = self._shard + begin * self._shards
        return islice(self._passes.every(epoch, first, self._shards), end - begin)


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
        self, structure: Any, learner: Learner, share: Any, dtype: Any = np.float32
    ) -> None:
        self.trainer = OnlineTrainer(structure, learner, dtype)
        self._examples = share.open()
        self._base: Any = None
        self._bits = np.empty(self.trainer.n, np.uint8)
        self._round: Round | None = None  # once it has ended

    def begin(self, state: Any, t: int) -> None:
        """Begin a round with this state, which stays as it is, ``t`` ticks old."""
        self._base = state
        for array, begun in zip(self.trainer.state, state, strict=True):
            array[...] = begun
        self._empty(t, slice(None))

    def learn(self, epoch: int, first: int, last: int, steps: int) -> Report:
        """Learn from steps ``first`` to ``last - 1`` of the ``steps`` that a pass has."""
        n = self._examples.n
        started, trainer = time.perf_counter(), self.trainer
        for rows, order in self._examples.stretch(epoch, first * n // steps, last * n // steps):
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

    def change(self, share: float, clock: np.ndarray) -> Change:
        """What its round changed, where its state counts by this share."""
        rule, state, base = self.trainer.learner.rule, self.trainer.state, self._base
        if self._round is None:  # else asked again, where what it said was lost
            self._round = self._ended()
        ids = self._round.changed
        values = rule.change(taken(base, ids), taken(state, ids), share, clock)
        values = np.concatenate([values, np.full((1, ids.size), share)])
        return Change(Sparse(ids, values), self._round.totals, self._round.rest)

    def _ended(self) -> Round:
        """Close the books of the round, for those coordinates that are in use."""
        trainer = self.trainer
        rule, readout, state = trainer.learner.rule, trainer.learner.readout, trainer.state
        readout.close(trainer.memory, state.clock)
        fresh = rule.init(1, state[0].dtype)
        totals = readout.totals(trainer.memory)[0]
        changed, used = noted(state, self._base, fresh, totals, self._bits)
        memory = readout.part(trainer.memory, used)
        settle(rule, readout, taken(state, used), memory, used.size)
        totals, rest = readout.totals(memory)
        return Round(
            changed,
            used,
            tuple(Sparse.of(total).at(used) for total in totals),
            tuple(each.copy() for each in rest),
        )

    def take_up(self, update: Update, shared: bool = False) -> None:
        """Begin the next round; ``shared``: the state it began with is the merged one already."""
        for state in (self.trainer.state,) if shared else (self.trainer.state, self._base):
            put(state, update)
        used = self._round.used if self._round is not None else slice(None)
        self._empty(update.t, used)
        reopen(self.trainer, update.ids)

    def _empty(self, t: int, used: Any) -> None:
        """Forget what was counted, of coordinates that were used."""
        trainer = self.trainer
        trainer.tally.counts[:] = 0
        trainer.tally.counts[TICKS] = t
        trainer.tally.loss[:] = 0.0
        trainer.restarts = 0
        trainer.learner.readout.emptied(trainer.memory, used)
        reopen(trainer, used)
        self._round = None


def reopen(trainer: OnlineTrainer, ids: Any = slice(None)) -> None:
    """Let a readout go on with lines that have been merged, at some coordinates."""
    readout, rule = trainer.learner.readout, trainer.learner.rule
    if readout.totals(trainer.memory)[0]:
        some = taken(trainer.state, ids)
        weights = np.empty(len(some[0]), np.float32)
        read_last(rule, some, weights)
        readout.reopened(trainer.memory, ids, weights)


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


class Threads:
    """Shards as threads of this process; kernels do not hold its lock.

    ``sent`` counts bytes that went from process to process.
    """

    sent = 0

    def __init__(self) -> None:
        self._shards: list[Shard] = []

    def start(self, structure: Any, learner: Learner, shares: Sequence[Any], dtype: Any) -> None:
        """Make a shard of each of the shares."""
        self._pool = ThreadPoolExecutor(len(shares))
        make = in_context(lambda share: Shard(structure, learner, share, dtype))
        self._shards = list(self._pool.map(make, shares))

    def begin(self, state: Any, t: int) -> None:
        """Let all begin a round with this state, which is not changed before they take up it."""
        self._each("begin", [(state, t)] * len(self._shards))

    def learn(self, epoch: int, first: int, last: int, steps: int) -> list[Report]:
        """Let all learn some steps of a pass."""
        return self._each("learn", [(epoch, first, last, steps)] * len(self._shards))

    def norms(self) -> Sparse:
        """Sums of squares of the weights of each feature over all shards."""
        return folded(self._each("norms", [()] * len(self._shards)), Sparse.plus)

    def change(self, shares: Sequence[float], clock: np.ndarray) -> Change:
        """What all of them changed."""
        return folded(self._each("change", [(share, clock) for share in shares]), Change.plus)

    def take_up(self, update: Update) -> None:
        """Let all begin the next round."""
        self._each("take_up", [(update, True)] * len(self._shards))

    def close(self) -> None:
        """End the threads."""
        if self._shards:
            self._pool.shutdown()
        self._shards = []

    def _each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        call = in_context(lambda shard, args: getattr(shard, method)(*args))
        return list(self._pool.map(call, self._shards, arguments))


class Processes(Threads):
    """Shards as processes of this machine, which get their examples once."""

    def __init__(self) -> None:
        super().__init__()
        self._workers: list[subprocess.Popen[bytes]] = []

    def start(self, structure: Any, learner: Learner, shares: Sequence[Any], dtype: Any) -> None:
        check_movable(shares)
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
        self._shards = self._workers  # type: ignore[assignment]
        self._each("start", [(structure, learner, share, dtype) for share in shares])

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

    def _each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        jobs = zip(self._workers, arguments, strict=True)
        answers = list(self._pool.map(lambda job: self._ask(job[0], (method, job[1])), jobs))
        self.sent += sum(size for _, size in answers)
        return [answer for answer, _ in answers]

    def _ask(self, worker: subprocess.Popen[bytes], question: Any) -> tuple[Any, int]:
        """The answer, and how many bytes went to and fro."""
        assert worker.stdin is not None and worker.stdout is not None
        try:
            size = _send(worker.stdin, question)
            data = _receive(worker.stdout)
        except (OSError, EOFError) as error:
            raise HopefearError(
                f"a process that had a shard has ended (exit {worker.poll()}); was it killed for "
                "want of memory? use threads, or fewer shards"
            ) from error
        failed, answer = pickle.loads(data)
        if failed:
            raise answer
        return answer, size + len(data)


def check_movable(shares: Sequence[Any]) -> None:
    """Refuse shares that no other process can be given."""
    if any(isinstance(share, Dealt) for share in shares):
        raise HopefearError(
            "mapped data is not copied to other processes; run the shards as threads, or train "
            "without a cache"
        )


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
                shard, answer = Shard(*arguments), None
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

"""Blocks whose examples lie on several shards: one learner, searched for by all of them at once.

A block learner searches the examples of a block under the same weights and then adds their
directions in order (``training.blocks``). Nothing of the search needs to happen in one place: each
shard has some of the examples and a copy of the weights. It searches those of its own that are in
the block and says what it found; the directions of all go back to all, and everyone moves its copy
along them, under the same clocks and in the same order. So copies never differ, no state is ever
merged, and the model is that of the block learner without shards, byte for byte, whatever their
number. What travels is two messages a shard and block, so blocks should be large: some
hundred examples for processes, more for machines.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import lean, linked
from hopefear.core.crew import stretch_of
from hopefear.core.learner import Learner
from hopefear.core.workspace import Example
from hopefear.errors import HopefearError
from hopefear.readouts.last import Last
from hopefear.training.blocks import (
    HALTED,
    REACHED,
    ROOM,
    at_clock,
    go_through,
    move_along,
    mover,
    record_for,
    recorder,
    score_own,
    search_one,
    write_end,
)
from hopefear.training.online import FAR, NEAR, OnlineTrainer, settle
from hopefear.training.passes import Passes
from hopefear.training.trainer import Event


class Directions(NamedTuple):
    """What was found in some examples of a block, as ``Record`` has it for one thread."""

    facts: np.ndarray
    forced: np.ndarray
    steps: np.ndarray
    begins: np.ndarray
    ends: np.ndarray
    coordinates: np.ndarray
    values: np.ndarray
    bases: np.ndarray
    sources: np.ndarray
    held: np.ndarray

    @classmethod
    def of(cls, record: Any, count: int) -> Directions:
        """Those of the first examples of a record, which is written over later."""
        entries, features, held = (int(record.fill[0, p]) for p in range(3))
        return cls(
            record.facts[:count].copy(),
            record.forced[:count].copy(),
            record.steps[:count].copy(),
            record.begins[:count].copy(),
            record.ends[:count].copy(),
            record.coordinates[0, 0, :entries].copy(),
            record.values[0, 0, :entries].copy(),
            record.bases[0, 0, :features].copy(),
            record.sources[0, 0, :features].copy(),
            record.held[0, :held].copy(),
        )

    def room(self) -> np.ndarray:
        """Entries, features and held numbers."""
        return np.array([self.values.size, self.bases.size, self.held.size])

    def write(self, record: Any, examples: np.ndarray) -> None:
        """Add them to a record of the whole block, in which these are the places of examples."""
        begun = record.fill[0, :3].copy()
        record.facts[examples] = self.facts
        record.forced[examples] = self.forced
        record.steps[examples] = self.steps
        record.begins[examples] = self.begins + begun[:2]
        record.ends[examples] = self.ends + begun[:2]
        entries, features, held = begun + self.room()
        record.coordinates[0, 0, begun[0] : entries] = self.coordinates
        record.values[0, 0, begun[0] : entries] = self.values
        record.bases[0, 0, begun[1] : features] = self.bases
        record.sources[0, 0, begun[1] : features] = self.sources + begun[2]
        record.held[0, begun[2] : held] = self.held
        record.fill[0, :3] = entries, features, held


class Move(NamedTuple):
    """How the weights that all have in common went on after a block."""

    number: int  # of moves so far, this one counted
    directions: Directions
    clocks: np.ndarray  # float64[examples, 3]: those the examples moved under
    clock: np.ndarray  # the one after the block
    restarts: bool  # lines are rebased after it, and the clock starts again


class Wanted(NamedTuple):
    """Examples that a shard is to search."""

    block: int  # of mapped data; 0 of rows in memory
    places: np.ndarray  # of the examples in it


class Part(NamedTuple):
    """The examples of one shard, each with the weight of a visit."""

    rows: Any

    def portable(self) -> Part:
        """The part as another process can be given it."""
        return self

    def worker(self, structure: Any, learner: Learner, dtype: Any) -> Searcher:
        """What searches these examples."""
        return Searcher(structure, learner, self, dtype)

    def open(self) -> Part:
        """The examples, to be searched."""
        return self

    def block(self, number: int) -> Any:
        """The rows of a block: there is one."""
        return self.rows


class MappedPart(NamedTuple):
    """Blocks of mapped data, of which one shard searches some examples."""

    passes: Passes

    def portable(self) -> MappedPart:
        """The part as another process can be given it: where the data lies."""
        return MappedPart(self.passes.portable())

    def worker(self, structure: Any, learner: Learner, dtype: Any) -> Searcher:
        """What searches these examples."""
        return Searcher(structure, learner, self, dtype)

    def open(self) -> OpenBlock:
        """The examples, to be searched."""
        return OpenBlock(self.passes.opened())


class OpenBlock:
    """A block of mapped data; pages of the one before it may go."""

    def __init__(self, passes: Passes) -> None:
        self._passes = passes
        self._number, self._rows = -1, None
        self._rest: Iterator[Any] = iter(())

    def block(self, number: int) -> Any:
        """The rows of a block."""
        if number != self._number:
            for _ in self._rest:
                pass
            self._rest = self._passes.blocks([number])
            self._rows, _ = next(self._rest)
            self._number = number
        return self._rows


class DealtRows(NamedTuple):
    """Rows in memory, dealt out before anything is learned.

    Parameters
    ----------
    rows
        All examples.
    parts : list of Part
        The examples of each shard.
    shards, places : int64 array
        Of every example: the shard that has it, and its place there.
    """

    rows: Any
    parts: list[Part]
    shards: np.ndarray
    places: np.ndarray

    def among(self, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        """Of each of these rows, its shard and its place there."""
        if rows is not self.rows:
            raise HopefearError(
                "shards learn from the examples that were dealt to them; make a new trainer for "
                "other data"
            )
        return self.shards, self.places


class DealtBlocks(NamedTuple):
    """Mapped data, which all shards open; each searches some examples of every block.

    Parameters
    ----------
    passes : Passes
        Passes over all data.
    n : int
        Number of shards.
    """

    passes: Passes
    n: int

    @property
    def parts(self) -> list[MappedPart]:
        """What each shard is given."""
        return [MappedPart(self.passes)] * self.n

    def among(self, rows: Any) -> tuple[np.ndarray, np.ndarray]:
        """Of each of the rows of a block, the shard that searches it and its place in the block.

        Where examples come at random, those of a shard lie together, so that it reads no others.
        """
        places = np.arange(rows.weights.size)
        shuffled = self.passes.shuffle
        return places * self.n // places.size if shuffled else places % self.n, places


class Searcher:
    """A copy of the weights, and the examples of one shard.

    Parameters
    ----------
    structure, learner, dtype
        As of a trainer.
    part : Part or MappedPart
        The examples.

    Examples
    --------
    >>> from hopefear.data.generators import sparse_linear
    >>> from hopefear.recipes import RECIPES
    >>> from hopefear.structures.classes import Binary
    >>> data = sparse_linear(20, 50, per_row=(5, 10), true_weights=10, seed=1).dataset()
    >>> learner = RECIPES["perceptron"].build(block=4)
    >>> searcher = Part(data.rows).worker(Binary(50), learner, np.float32)
    >>> searcher.begin(learner.rule.init(50, np.float32), 0)
    >>> directions, seconds = searcher.step(None, Wanted(0, np.array([3, 1])))
    >>> directions.forced.tolist()
    [1, 1]
    """

    def __init__(self, structure: Any, learner: Learner, part: Any, dtype: Any) -> None:
        self._structure, self._learner, self._dtype = structure, learner, dtype
        self._part = part.open()
        self._rows: Any = None
        self._work: Any = None
        self._desk: Any = None
        self._width = int(structure.tables()[0][2])
        self._new_record = partial(record_for, structure, learner, dtype)
        self._found = self._block = self._new_record(ROOM)
        self._number = 0
        self._state: Any = None
        self._readout = Last()  # what is kept of the weights is another's affair
        self._memory = self._readout.init_memory(0, 1)

    def begin(self, state: Any, number: int) -> None:
        """Take this state, in which so many moves have been made."""
        self._state, self._number = type(state)(*(array.copy() for array in state)), number

    def step(self, move: Move | None, examples: Wanted) -> tuple[Directions, float]:
        """Move, if it was not done yet; then search these examples. Seconds that it took, too."""
        started = time.perf_counter()
        if move is not None and move.number > self._number:
            self._follow(move)
        rows, places = self._part.block(examples.block), examples.places
        if rows is not self._rows:
            self._rows = rows
            self._work = self._structure.workspace(rows, self._learner.loss, self._dtype)
            self._desk = self._structure.desk(rows, self._dtype)
        desk = self._structure.lay(self._desk, rows, places, max(1, places.size))
        while True:
            search(
                self._structure,
                self._learner.loss,
                self._learner.rule,
                self._state,
                self._rows,
                examples.places,
                self._work,
                self._learner.on == "every",
                self._found,
                desk,
                stretch_of(self._width),
            )
            need = int(self._found.fill[0, :3].max())
            if need <= self._found.values.shape[2]:
                break
            self._found = self._new_record(need + need // 2)
        return Directions.of(self._found, examples.places.size), time.perf_counter() - started

    def _follow(self, move: Move) -> None:
        rule, count = self._learner.rule, len(move.clocks)
        found = [(move.directions, np.arange(count))]
        self._block = gathered(self._block, found, self._new_record)
        self._block.clocks[:count] = move.clocks
        follow(rule, self._readout, self._state, self._memory, self._block, count, self._width)
        self._state.clock[:] = move.clock
        if move.restarts:
            n = self._structure.n_coordinates()
            settle(rule, self._readout, self._state, self._memory, n)
        self._number = move.number


class SharedBlocks:
    """The blocks of a learner, searched by workers; stands where ``Blocks`` does.

    Parameters
    ----------
    structure, learner, dtype
        As of a trainer.
    workers : pool
        Where the examples are searched.
    deal : DealtRows or DealtBlocks
        Who searches what.

    Attributes
    ----------
    block : int
        Of mapped data, the block that is learned from.
    """

    def __init__(
        self,
        structure: Any,
        learner: Learner,
        dtype: Any,
        workers: Any,
        deal: Any,
    ) -> None:
        self.structure, self.learner, self.dtype = structure, learner, dtype
        self.workers, self._deal = workers, deal
        self._parts = deal.parts
        self._n = len(self._parts)
        self._shards = self._places = np.empty(0, np.int64)
        self.block = 0
        self._width = int(structure.tables()[0][2])
        self._new_record = partial(record_for, structure, learner, dtype)
        self._record = self._new_record(ROOM)
        self._state: Any = None
        self._number = 0
        self._move: Move | None = None  # that the workers have not heard of
        self.rounds, self.waited = 0, 0.0

    def prepare(self, data: Any) -> None:
        """Nothing is searched here; what is, was dealt out."""
        self._shards, self._places = self._deal.among(data)

    def learn(
        self, state: Any, memory: Any, data: Any, order: np.ndarray, tally: Any, outcome: np.ndarray
    ) -> int:
        """Learn from ``order`` until it ends or the books must be settled; how far it came."""
        if state is not self._state:
            if self._parts:
                self.workers.start(self.structure, self.learner, self._parts, self.dtype)
                self._parts = []
            self.workers.begin(state, self._number)
            self._move = None
        self._state = None  # where learning breaks off, copies may differ: then all begin anew
        done = self._learn(state, memory, data, order, tally, outcome)
        self._state = state
        return done

    def _learn(
        self, state: Any, memory: Any, data: Any, order: np.ndarray, tally: Any, outcome: np.ndarray
    ) -> int:
        done, rule = 0, self.learner.rule
        while done < order.size:
            part = order[done : done + self.learner.block]
            self._search(state, part)
            clock = state.clock.copy()
            learn_block(
                rule,
                self.learner.readout,
                state,
                memory,
                data,
                part,
                tally,
                outcome[done : done + part.size],
                self.learner.on == "every",
                self._record,
                state._replace(clock=clock),
                self._width,
            )
            reached = int(self._record.news[REACHED])
            self._number += 1
            self._move = Move(
                self._number,
                Directions.of(self._record, reached),
                self._record.clocks[:reached].copy(),
                state.clock.copy(),
                bool(rule.worn(state)),
            )
            done += reached
            if self._record.news[HALTED]:
                break
        return done

    def _search(self, state: Any, order: np.ndarray) -> None:
        """Let every worker search what it has of a block, and write down what all found."""
        shards = self._shards[order]
        examples = [np.flatnonzero(shards == k) for k in range(self._n)]
        wanted = [Wanted(self.block, self._places[order[some]]) for some in examples]
        answers = self.workers.step(state, self._number, self._move, wanted)
        found = [
            (directions, some)
            for (directions, _), some in zip(answers, examples, strict=True)
            if some.size
        ]
        self._record = gathered(self._record, found, self._new_record)
        seconds = [seconds for _, seconds in answers]
        self.waited += sum(max(seconds) - one for one in seconds)
        self.rounds += 1

    def forget(self) -> None:
        """Nothing is held here that workers do not need."""

    def close(self) -> None:
        """End the workers."""
        self.workers.close()


class SynchronousTrainer(OnlineTrainer):
    """A block learner whose examples lie on shards.

    Parameters
    ----------
    blocks : SharedBlocks
        What it learns by.
    """

    def __init__(self, blocks: SharedBlocks) -> None:
        super().__init__(blocks.structure, blocks.learner, blocks.dtype)
        self._blocks.close()
        self._blocks = blocks

    def learn_pieces(self, passes: Any, epoch: int = 0, skip: int = 0) -> Iterator[float]:
        pieces = super().learn_pieces(passes, epoch, skip)
        for number in passes.numbers(epoch)[skip:]:
            self._blocks.block = number
            yield from itertools.islice(pieces, 1)  # none where all examples have the weight 0
        yield from pieces  # none, but what follows the last one is done

    def alone(self) -> OnlineTrainer:
        """One learner that goes on with the same weights."""
        trainer = OnlineTrainer(self.structure, self.learner, self._dtype)
        trainer.state, trainer.memory, trainer.tally = self.state, self.memory, self.tally
        return trainer

    def annotate(self, event: Event) -> None:
        event["rounds"], event["waited"] = self._blocks.rounds, round(self._blocks.waited, 6)
        event["sent"] = self._blocks.workers.sent


def gathered(
    record: Any,
    found: Sequence[tuple[Directions, np.ndarray]],
    new_record: Callable[[int], Any],
) -> Any:
    """The record with what was found in examples at these places of a block, or a roomier one."""
    need = int(np.sum([directions.room() for directions, _ in found], axis=0).max())
    if need > record.values.shape[2]:
        record = new_record(need + need // 2)
    record.fill[:] = 0
    for directions, examples in found:
        directions.write(record, examples)
    return record


@lean
def search(structure, loss, rule, state, data, order, work, always, record, desk, shift):
    """Search the examples of ``order`` under one state, and write down what was found."""
    for p in range(3):
        record.fill[0, p] = 0
    if structure.halves():
        score_own(structure, rule, state, data, order, work, 0, order.size, desk, 0, 1)
    for k in range(order.size):
        if k + FAR < order.size:
            structure.announce(Example(data, order[k + FAR]))
        if k + NEAR < order.size:
            structure.fetch(Example(data, order[k + NEAR]))
        x = Example(data, order[k])
        if structure.halves():
            structure.join(x, k, rule.reading(state), desk, work.theta)
        else:
            structure.score(x, rule.reading(state), work.theta)
        if search_one(structure, loss, rule, state, x, work, always, record, k, 0):
            structure.scatter(x, work.mu, recorder(rule, record, 0, 1, 0.0, shift))
        write_end(record, k, 0)


@lean
def learn_block(
    rule, readout, state, memory, data, order, tally, outcome, always, record, own, width
):
    """Go through the ticks of a block that was searched, and move along its directions."""
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
        0,
        order.size,
        record,
        width,
    )
    if not readout.alone():
        move_all(rule, readout, own, memory, record, record.news[REACHED], width)


@lean
def follow(rule, readout, state, memory, record, count, width):
    """Move along the directions of a block that others have gone through."""
    move_all(rule, readout, state, memory, record, count, width)


@linked
def move_all(rule, readout, own, memory, record, count, width):
    """Move along the directions of the first examples of a block.

    ``own`` is the state with a clock that is set to that of each example.
    """
    for k in range(count):
        if record.forced[k]:
            row = mover(rule, readout, at_clock(own, record, k), memory, record, k)
            move_along(row, record, k, 0, width)

"""Online training: a learner and everything it remembers, fed with examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hopefear.core.averages import Account, start_afresh
from hopefear.core.learner import Learner, describe
from hopefear.core.workspace import Workspace
from hopefear.costs.weighted import Weighted
from hopefear.errors import CombinationError, HopefearError
from hopefear.readouts.averaged import Averaged
from hopefear.readouts.observed import Observed
from hopefear.readouts.voted import Voted, Votes
from hopefear.training.kernels import (
    BROKEN,
    EXAMPLES,
    MISTAKES,
    TICKS,
    UPDATES,
    Tally,
    learn,
    read_last,
    read_sum,
    settle,
    support,
)
from hopefear.training.predictors import LinearPredictor, VotedPredictor

# Ticks between two settlings: rare enough to cost nothing beside the examples, few enough to stay
# small.
_WINDOW = 1 << 16


class DivergedError(HopefearError):
    """Scores left the finite numbers: the steps were too long."""


class OnlineTrainer:
    """A learner at work on one structure.

    Parameters
    ----------
    structure : Structure
        What outputs look like.
    learner : Learner
        Loss, rule, readout.
    dtype : numpy dtype
        Of the weights that are read in dot products: float32 (fast) or float64 (for checking).

    Examples
    --------
    >>> from hopefear.data.generators import sparse_linear
    >>> from hopefear.losses.hinge import Hinge
    >>> from hopefear.readouts.averaged import Averaged
    >>> from hopefear.rules.rda import RDA
    >>> from hopefear.structures.classes import Binary
    >>> data = sparse_linear(200, 50, per_row=(5, 10), true_weights=10, seed=1).dataset()
    >>> learner = Learner(Hinge(), RDA(l1=1e-3), Averaged(), on="mistakes")
    >>> trainer = OnlineTrainer(Binary(50), learner)
    >>> trainer.learn(data.rows, np.arange(200))
    >>> trainer.examples, trainer.mistakes == trainer.updates
    (200, True)
    """

    def __init__(self, structure: Any, learner: Learner, dtype: Any = np.float32) -> None:
        _check_votes(structure, learner)
        _check_prices(structure, learner.loss)
        self.structure, self.learner = structure, learner
        self.n = structure.n_coordinates()
        self.state = learner.rule.init(self.n, dtype)
        self.memory = learner.readout.init_memory(self.n, max(_WINDOW, self.n // 64))
        self.tally = Tally(np.zeros(5, np.int64), np.zeros(1))
        self._dtype = dtype
        self._work: Workspace | None = None
        self._prepared_for: Any = None
        if missing := sorted(set(learner.loss.needs()) - set(structure.offers())):
            reason = structure.lacks(missing[0])
            raise CombinationError(
                f"the loss {describe(learner.loss)} needs {', '.join(missing)}, which "
                f"{type(structure).__name__} does not offer{reason and f': {reason}'}"
            )

    def learn(self, data: Any, order: np.ndarray, outcome: np.ndarray | None = None) -> None:
        """Learn from the rows named by ``order``; ``outcome`` takes a byte per example."""
        learner = self.learner
        if outcome is None:
            outcome = np.empty(order.size, np.uint8)
        if data is not self._prepared_for:
            self._work = self.structure.workspace(data, learner.loss, self._dtype)
            self._prepared_for = data
        done = 0
        while done < order.size:
            self.memory = _with_room(
                self.memory,
                order.size - done,
                lambda rest=order[done:]: self.structure.entries(data, rest),
            )
            done += learn(
                self.structure,
                learner.loss,
                learner.rule,
                learner.readout,
                self.state,
                self.memory,
                data,
                order[done:],
                self._work,
                self.tally,
                outcome[done:],
                learner.on == "every",
            )
            if self.tally.counts[BROKEN]:
                self.tally.counts[BROKEN] = 0  # said once; other examples may still be learnt
                raise DivergedError(
                    f"scores overflowed after {self.examples:,} examples with "
                    f"{learner.signature()}; use a smaller rate, or scale the feature values"
                )
            if learner.readout.full(self.memory) or learner.rule.worn(self.state):
                self.settle()

    def settle(self) -> None:
        """Bring the books up to date and empty them."""
        if isinstance(self._kept(), Votes) and self.learner.rule.worn(self.state):
            raise HopefearError(
                f"{describe(self.learner.rule)} forgets so fast that past predictors "
                f"cannot be replayed; use a smaller l2 or rate, or readout=averaged"
            )
        settle(self.learner.rule, self.learner.readout, self.state, self.memory, self.n)
        for account in _accounts(self.memory):
            start_afresh(account)

    def weights(self) -> np.ndarray:
        """The weights as they are now."""
        out = np.empty(self.n, np.float32)
        read_last(self.learner.rule, self.state, out)
        return out

    def average(self) -> np.ndarray:
        """Mean of the weights after each example (float64); needs the readout ``Averaged``."""
        out = np.empty(self.n)
        self._read_average(out)
        return out

    def _read_average(self, out: np.ndarray) -> None:
        account = self._kept()
        factor = 1.0 / max(1.0, account.lived.sum())
        read_sum(self.learner.rule, self.state, account, account.lived[0], factor, out)

    def predictor(self) -> LinearPredictor | VotedPredictor:
        """What the readout makes of all the weights there were."""
        readout = self.learner.readout
        readout = readout.readout if isinstance(readout, Observed) else readout
        if isinstance(readout, Voted):
            return VotedPredictor.from_votes(_trimmed(self._kept()), self.state.clock)
        if isinstance(readout, Averaged):
            weights = np.empty(self.n, np.float32)
            self._read_average(weights)
            if readout.on_last_support:
                weights[self.weights() == 0.0] = 0.0
            return LinearPredictor(weights)
        return LinearPredictor(self.weights())

    def support(self) -> tuple[int, float]:
        """Number of non-zero weights now, and the sum of their sizes."""
        nonzero, size = support(self.learner.rule, self.state, self.n)
        return int(nonzero), float(size)

    @property
    def examples(self) -> int:
        return int(self.tally.counts[EXAMPLES])

    @property
    def ticks(self) -> int:
        return int(self.tally.counts[TICKS])

    @property
    def updates(self) -> int:
        return int(self.tally.counts[UPDATES])

    @property
    def mistakes(self) -> int:
        return int(self.tally.counts[MISTAKES])

    @property
    def loss(self) -> float:
        return float(self.tally.loss[0])

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything needed to go on later, as named arrays."""
        return {
            f"{part}.{name}": array
            for part, value in (
                ("state", self.state),
                ("memory", _trimmed(self.memory)),
                ("tally", self.tally),
            )
            for name, array in _flatten(value)
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        """Take up what ``arrays`` gave."""
        self.state = _rebuild(self.state, arrays, "state")
        self.memory = _rebuild(self.memory, arrays, "memory")
        self.tally = _rebuild(self.tally, arrays, "tally")

    def _kept(self) -> Any:
        return self.memory.kept if isinstance(self.learner.readout, Observed) else self.memory


def _check_votes(structure: Any, learner: Learner) -> None:
    """Votes have room for updates between gold and one other output; others would not fit.

    But for structures whose every update touches few coordinates.
    """
    if "bounded" in structure.offers():
        return
    loss, readout = learner.loss, learner.readout
    readout = readout.readout if isinstance(readout, Observed) else readout
    several = loss.depth() > 1 and "places" not in loss.needs()  # mixtures of two have room
    if isinstance(readout, Voted) and (several or "expectation" in loss.needs()):
        raise CombinationError(
            f"{type(loss).__name__} and Voted: its updates are between more than two outputs, and "
            "votes keep every one; use readout=averaged, or the loss perceptron or hinge"
        )


def _check_prices(structure: Any, loss: Any) -> None:
    cost = getattr(loss, "cost", None)
    if isinstance(cost, Weighted) and len(cost.table) != structure.n_labels():
        raise CombinationError(
            f"{type(loss).__name__} has prices for {len(cost.table)} labels, the structure "
            f"{type(structure).__name__} has {structure.n_labels()}; give a price for every pair"
        )


def _accounts(memory: Any) -> Iterator[Account]:
    if isinstance(memory, Account):
        yield memory
    elif isinstance(memory, tuple):
        for field in memory:
            yield from _accounts(field)


def _flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, np.ndarray]]:
    for name, field in value._asdict().items():
        if isinstance(field, tuple):
            yield from _flatten(field, f"{prefix}{name}.")
        else:
            yield prefix + name, field


def _rebuild(like: Any, arrays: dict[str, np.ndarray], prefix: str) -> Any:
    return type(like)(
        *(
            _rebuild(field, arrays, f"{prefix}.{name}")
            if isinstance(field, tuple)
            else np.array(arrays[f"{prefix}.{name}"], dtype=field.dtype)
            for name, field in like._asdict().items()
        )
    )


def _trimmed(memory: Any) -> Any:
    """Votes without the room kept for later; other memories as they are."""
    if isinstance(memory, Votes):
        ticks, entries = memory.counts
        return memory._replace(
            survived=memory.survived[:ticks],
            drops=memory.drops[:ticks],
            ends=memory.ends[: ticks + 1],
            coordinates=memory.coordinates[:entries],
            lines=memory.lines[:entries],
        )
    if hasattr(memory, "kept"):
        return memory._replace(kept=_trimmed(memory.kept))
    return memory


def _with_room(memory: Any, ticks: int, entries: Any) -> Any:
    """Votes with space for so many more ticks and entries (grown by doubling)."""
    if hasattr(memory, "kept"):
        return memory._replace(kept=_with_room(memory.kept, ticks, entries))
    if not isinstance(memory, Votes):
        return memory
    need_ticks = int(memory.counts[0]) + ticks
    need_entries = int(memory.counts[1]) + entries()
    return memory._replace(
        survived=_grown(memory.survived, need_ticks),
        drops=_grown(memory.drops, need_ticks),
        ends=_grown(memory.ends, need_ticks + 1),
        coordinates=_grown(memory.coordinates, need_entries),
        lines=_grown(memory.lines, need_entries),
    )


def _grown(array: np.ndarray, need: int) -> np.ndarray:
    if len(array) >= need:
        return array
    bigger = np.zeros((max(need, 2 * len(array)), *array.shape[1:]), array.dtype)
    bigger[: len(array)] = array
    return bigger

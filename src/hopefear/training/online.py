"""Online training: the epoch kernel, and the trainer that keeps all a learner remembers.

The kernels are generic in structure, loss, rule and averaging: adding a learner never edits them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.averages import reset_window, running_totals, sum_of_old_line
from hopefear.core.component import component, helper, kernel
from hopefear.core.interfaces import DROP, SCALE, GradientSink, n_weights
from hopefear.core.learner import Learner, check_served, describe
from hopefear.core.memory import aligned, use_up, zeros
from hopefear.core.workspace import Example, Workspace
from hopefear.errors import CombinationError, HopefearError, ModelError
from hopefear.storage import array_of
from hopefear.training.predictors import LinearPredictor, Predictor, VotedPredictor
from hopefear.training.trainer import Trainer

# Entries of ``Tally.counts``.
EXAMPLES, TICKS, UPDATES, MISTAKES, BROKEN = 0, 1, 2, 3, 4
# Bits of an example's outcome.
MISTAKEN, UPDATED = 1, 2
# Examples come in random order, so their rows are never in the cache: ask for them ahead of time,
# in two stages, since a row cannot be asked for before its place is known. Distances measured
# (docs/design.md).
FAR, NEAR = 12, 6
# Ticks between two settlings: rare enough to cost nothing beside the examples, few enough to stay
# small.
_WINDOW = 1 << 16
# Examples that memory is made for at a time, where every update is kept.
_ROOM = 256
# Coordinates whose books go back to the system together, once they are read for the last time.
_USED_UP_AT_ONCE = 1 << 18


class Counters(NamedTuple):
    """What has happened so far."""

    counts: np.ndarray  # int64[5]: examples, ticks, updates, mistakes, broken (score not finite)
    loss: np.ndarray  # float64[1]: summed loss


@component(GradientSink)
class UpdateSink(NamedTuple):
    """A row that moves the weights it is given."""

    rule: Any
    state: Any
    averaging: Any
    memory: Any
    totals: tuple[Any, ...]  # of averaging.close
    a: float
    b: float

    def additive(self):
        return self.rule.additive()

    def prefetch(self, j):
        self.rule.weight_view(self.state).prefetch(j)
        self.averaging.prefetch_memory(self.memory, j)

    def add_entry(self, j, g):
        m0, r0, f0 = self.rule.lazy_weight(self.state, j)
        self.rule.update(self.state, j, g, self.a, self.b)
        m1, r1, f1 = self.rule.lazy_weight(self.state, j)
        self.averaging.on_update(self.memory, self.totals, j, g, m0, r0, f0, m1, r1, f1)


@kernel(refcount=False)
def learn(
    structure, loss, rule, averaging, state, memory, data, order, work, tally, outcome, always
):
    """Learn from ``order`` until it ends or the books must be settled; returns how far it came.

    ``always``: the clock ticks on every example, and every example with a force moves the weights;
    else both happen on mistakes only.
    """
    counts = tally.counts
    for n in range(order.size):
        x = Example(data, order[n])
        if n + FAR < order.size:
            structure.prefetch_example(Example(data, order[n + FAR]), False)
        if n + NEAR < order.size:
            structure.prefetch_example(Example(data, order[n + NEAR]), True)
        structure.score(x, rule.weight_view(state), work.theta)
        forced = loss.subgradient(structure, x, work) > 0
        if not math.isfinite(work.gold_margin[0]):
            counts[BROKEN] = 1
            return n
        mistaken = work.gold_margin[0] <= 0.0 and data.weights[order[n]] > 0.0
        tally.loss[0] += work.loss[0]
        counts[EXAMPLES] += 1
        counts[MISTAKES] += mistaken
        outcome[n] = MISTAKEN if mistaken else 0
        if always or (mistaken and forced):
            totals = averaging.end_tick(memory, state.clock)
            if forced:
                a, b = rule.step_size(
                    structure,
                    x,
                    work.mu,
                    state,
                    work.loss[0],
                    work.gold_margin[0],
                    float(data.weights[order[n]]),
                )
                row = UpdateSink(rule, state, averaging, memory, totals, a, b)
                structure.scatter(x, work.mu, row)
                counts[UPDATES] += 1
                outcome[n] |= UPDATED
            counts[TICKS] += 1
            rule.tick(state, counts[TICKS])
        averaging.count_example(memory)
        if averaging.window_full(memory) or rule.needs_rescaling(state):
            return n + 1
    return order.size


@kernel(refcount=False)
def settle(rule, averaging, state, memory, n):
    """Credit every coordinate with the closed ticks; rebase lines when the clock is worn."""
    worn = rule.needs_rescaling(state)
    for j in range(n):
        m, r, f = rule.lazy_weight(state, j)
        averaging.flush(memory, j, m, r, f)
        if worn:
            rule.rescale(state, j)
    if worn:
        restart_clock(state.clock)


@helper
def restart_clock(clock):
    """Starts a clock again at scale 1, once every coordinate has been rebased."""
    clock[DROP] *= clock[SCALE]
    clock[SCALE] = 1.0


@kernel(refcount=False)
def read_last(rule, state, out):
    """The weights of the present tick."""
    weights = rule.weight_view(state)
    for j in range(out.size):
        out[j] = weights.at(j)


@kernel(refcount=False)
def read_sum(rule, state, account, lived, factor, first, out):
    """``factor`` times the sum of weights over all closed ticks and ``lived`` times the present.

    Of the coordinates from ``first`` on.
    """
    weights = rule.weight_view(state)
    now = running_totals(account)
    for j in range(first, first + out.size):
        m, r, f = rule.lazy_weight(state, j)
        total = account.total[j] + sum_of_old_line(account, now, j, m, r, f)
        if lived != 0.0:
            total += lived * weights.at(j)
        out[j - first] = factor * total


@kernel(refcount=False)
def support(rule, state, n):
    """(number of non-zero weights, sum of their sizes) of the present tick."""
    weights = rule.weight_view(state)
    nonzero, size = 0, 0.0
    for j in range(n):
        w = weights.at(j)
        nonzero += w != 0.0
        size += abs(w)
    return nonzero, size


class DivergedError(HopefearError):
    """Scores left the finite numbers: the steps were too long."""


class OnlineTrainer(Trainer):
    """A learner at work on one structure.

    Parameters
    ----------
    structure : Structure
        What outputs look like.
    learner : Learner
        Loss, rule, averaging.
    dtype : numpy dtype
        Of the weights that are read in dot products: float32 (fast) or float64 (for checking).

    Examples
    --------
    >>> from hopefear.data.generators import sparse_linear
    >>> from hopefear.losses.hinge import Hinge
    >>> from hopefear.averaging.averaged import Averaged
    >>> from hopefear.rules.rda import RDA
    >>> from hopefear.structures.classes import Binary
    >>> data = sparse_linear(200, 50, per_row=(5, 10), true_weights=10, seed=1).dataset()
    >>> learner = Learner(Hinge(), RDA(l1=1e-3), Averaged(), update_on="mistakes")
    >>> trainer = OnlineTrainer(Binary(50), learner)
    >>> trainer.learn(data.rows, np.arange(200))
    >>> trainer.examples, trainer.mistakes == trainer.updates
    (200, True)
    """

    def __init__(self, structure: Any, learner: Learner, dtype: Any = np.float32) -> None:
        _check_together(structure, learner)
        self.structure, self.learner = structure, learner
        self.n = n_weights(structure)
        self.state = new_state(learner.rule, self.n, dtype)
        self.memory = learner.averaging.init_memory(self.n, max(_WINDOW, self.n // 64))
        self.restarts = 0  # of the rule's clock
        self.tally = Counters(np.zeros(5, np.int64), np.zeros(1))
        self._dtype = dtype
        self._work: Workspace | None = None
        self._prepared_for: Any = None

    def learn(self, data: Any, order: np.ndarray, outcome: np.ndarray | None = None) -> None:
        """Learn from the rows named by ``order``; ``outcome`` takes a byte per example."""
        learner = self.learner
        if outcome is None:
            outcome = np.empty(order.size, np.uint8)
        if data is not self._prepared_for:
            self._work = self.structure.workspace(data, learner.loss, self._dtype)
            self._prepared_for = data
        assert self._work is not None
        done, step = 0, _ROOM if learner.averaging.needs_history else order.size
        while done < order.size:
            part = order[done : done + step]
            self.memory = learner.averaging.reserve(
                self.memory, part.size, part.size * self._work.max_nnz
            )
            done += self.learn_some(data, part, outcome[done:])
            if self.tally.counts[BROKEN]:
                self.tally.counts[BROKEN] = 0  # said once; other examples may still be learnt
                raise DivergedError(
                    f"scores overflowed after {self.examples:,} examples with "
                    f"{learner.signature()}; use a smaller rate, or scale the feature values"
                )
            if learner.averaging.window_full(self.memory) or learner.rule.needs_rescaling(
                self.state
            ):
                self.settle()

    def learn_some(self, data: Any, order: np.ndarray, outcome: np.ndarray) -> int:
        """Learn until the order ends or the books must be settled; how far it came.

        :meth:`learn` asks until all is done, so that trainers which look at every step stop here.
        """
        learner = self.learner
        return learn(
            self.structure,
            learner.loss,
            learner.rule,
            learner.averaging,
            self.state,
            self.memory,
            data,
            order,
            self._work,
            self.tally,
            outcome,
            learner.update_on == "all",
        )

    def settle(self) -> None:
        """Bring the books up to date and empty them."""
        if self.learner.averaging.needs_history and self.learner.rule.needs_rescaling(self.state):
            raise HopefearError(
                f"{describe(self.learner.rule)} forgets so fast that past predictors "
                f"cannot be replayed; use a smaller l2 or rate, or averaging=averaged"
            )
        self.restarts += bool(self.learner.rule.needs_rescaling(self.state))
        settle(self.learner.rule, self.learner.averaging, self.state, self.memory, self.n)
        self.learner.averaging.reset_window(self.memory)

    def reopen(self) -> None:
        """Begins sums of weights with the weights there are, however these came about."""
        for account in self.learner.averaging.accumulators(self.memory) or ():
            reset_window(account)
            account.open[:] = self.weights() != 0.0

    def weights(self) -> np.ndarray:
        """The weights as they are now."""
        out = np.empty(self.n, np.float32)
        read_last(self.learner.rule, self.state, out)
        return out

    def mean(self, account: Any, dtype: Any) -> np.ndarray:
        """Mean of the weights over all ticks of an account, each as often as it lived."""
        out = np.empty(self.n, dtype)
        factor = 1.0 / max(1.0, account.lived.sum())
        step = _USED_UP_AT_ONCE if self.spent else max(1, self.n)
        for first in range(0, self.n, step):
            part = out[first : first + step]
            read_sum(self.learner.rule, self.state, account, account.lived[0], factor, first, part)
            if self.spent:
                use_up(account.total[first : first + step])
        return out

    def average(self) -> np.ndarray:
        """Mean of the weights after each example (float64), where the averaging keeps it."""
        mean = self.learner.averaging.average(self.memory, self)
        if mean is None:
            raise CombinationError(
                f"{describe(self.learner.averaging, defaults=False)} keeps no average; use "
                "averaging=averaged"
            )
        return mean

    def linear(self, weights: np.ndarray) -> LinearPredictor:
        """The predictor of one weight vector."""
        return LinearPredictor(weights)

    def voted(self, votes: Any) -> VotedPredictor:
        """The predictor that replays every update of ``votes``."""
        return VotedPredictor.from_votes(votes, self.state.clock)

    def predictor(self) -> Predictor:
        """What the averaging makes of all the weights there were."""
        return self.learner.averaging.predictor(self.memory, self)

    def forget(self) -> None:
        self.memory = self._work = self._prepared_for = None

    def why_all_zero(self) -> str:
        return self.learner.rule.why_all_zero(self.state, self.ticks)

    def support(self) -> tuple[int, float]:
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
        return {
            f"{part}.{name}": array
            for part, value in (
                ("state", self.state),
                ("memory", self.learner.averaging.shrink_to_fit(self.memory)),
                ("tally", self.tally),
            )
            for name, array in _flatten(value)
        }

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self.state = _rebuild(self.state, arrays, "state")
        fresh, self.memory = self.memory, _rebuild(self.memory, arrays, "memory", grown=True)
        self.tally = _rebuild(self.tally, arrays, "tally")
        counted = self.tally.counts.min() >= 0 and math.isfinite(self.loss)
        if not counted or not self.learner.averaging.is_valid(self.memory, fresh, self.n):
            raise ModelError(f"its numbers contradict {self.learner.signature()}")


def arrays_of(state: Any) -> dict[str, np.ndarray]:
    """What a state has of every coordinate."""
    return {name: array for name, array in state._asdict().items() if name != "clock"}


def new_state(rule: Any, n: int, dtype: Any) -> Any:
    """A new state of a rule whose arrays begin with a cache line: rows of weights then take fewer.

    >>> from hopefear.rules.arow import AROW
    >>> new_state(AROW(), 3, np.float32).variance
    array([1., 1., 1.], dtype=float32)
    """
    first = rule.init(1, dtype)
    arrays = {}
    for name, array in arrays_of(first).items():
        arrays[name] = zeros((n, *array.shape[1:]), array.dtype)
        if array.any():
            arrays[name][:] = array
    return first._replace(**arrays)


def _check_together(structure: Any, learner: Learner) -> None:
    """Refuse a learner that this structure cannot serve."""
    loss, averaging = learner.loss, learner.averaging
    if reason := averaging.incompatible_with(loss, structure):
        kept = type(getattr(averaging, "averaging", averaging)).__name__
        raise CombinationError(f"{type(loss).__name__} and {kept}: {reason}")
    check_served(structure, loss)


def _flatten(value: Any, prefix: str = "") -> Iterator[tuple[str, np.ndarray]]:
    for name, field in value._asdict().items():
        if isinstance(field, tuple):
            yield from _flatten(field, f"{prefix}{name}.")
        else:
            yield prefix + name, field


def _rebuild(like: Any, arrays: dict[str, np.ndarray], prefix: str, grown: bool = False) -> Any:
    """The same from arrays that are not trusted; ``grown``: they may have become longer."""
    fields = []
    for name, field in like._asdict().items():
        place = f"{prefix}.{name}"
        if isinstance(field, tuple):
            fields.append(_rebuild(field, arrays, place, grown))
            continue
        shape = (None, *field.shape[1:]) if grown else field.shape
        fields.append(aligned(array_of(arrays, place, field.dtype, shape)))
    return type(like)(*fields)

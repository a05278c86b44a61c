"""Learns on shards of the data side by side, and merges what they learned after every epoch.

Every example belongs to one of K shards. In a round each shard goes once over its examples,
beginning with the state that all have in common; then their states are merged, and all go on from
there (iterative parameter mixing). How a state merges is the rule's affair: it says how a state
becomes sums, in which

    merged = base + sum_k share_k (sums_k - base)

and how sums become a state again. Shares add up to 1. By default a weight takes the mean over the
shards that updated it: a feature that one shard alone has seen keeps all that was learned of it,
where a mean over all shards would keep a K-th. Rules whose state is a sum over examples can also
take shares of 1: nothing that was learned is lost then, but all shards mend the same mistakes, so
that sums need many merges, and may not settle.

Averages are exact: every shard sums up its weights over its examples, and sums of shards add up.

References
----------
Ryan McDonald, Keith Hall and Gideon Mann. Distributed training strategies for the structured
perceptron. NAACL 2010.
Patrick Simianer, Stefan Riezler and Chris Dyer. Joint feature selection in distributed stochastic
learning for large-scale discriminative training in SMT. ACL 2012.
"""

from __future__ import annotations

import contextvars
import math
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.learner import Learner, part_name
from hopefear.errors import CombinationError, HopefearError
from hopefear.training.online import (
    EXAMPLES,
    MISTAKES,
    TICKS,
    UPDATES,
    OnlineTrainer,
    arrays_of,
    read_last,
)
from hopefear.training.passes import Passes, content_order
from hopefear.training.trainer import Event, Trainer

MERGES = ("mean-of-updated", "mean", "sum")
# Weights that a thread merges at a time: their sums stay in the cache, and threads seldom meet.
_SLICE = 1 << 17


class TooFewExamplesError(HopefearError):
    """There are fewer examples than shards."""


@dataclass(frozen=True)
class Shards:
    """How examples are dealt to shards, and how these are merged.

    Parameters
    ----------
    n : int
        Number of shards. The model depends on it, not on where shards run.
    merge : {"mean-of-updated", "mean", "sum"}
        How states are merged. ``mean-of-updated``: the mean over the shards that updated a weight.
        ``mean``: over all shards. ``sum`` adds up what all have learned, for rules whose state is a
        sum over examples (dual averaging, AROW, confidence-weighted).
    merges : int
        How often shards are merged in an epoch. More come nearer to one learner that sees all
        examples, and cost more: sums need many.
    max_features : int, optional
        After each merge only so many features keep their weights, those of the largest l2 norm over
        labels and shards; all others start again from nothing.
    pool : pool, optional
        Where shards run, such as :class:`hopefear.distributed.Cluster`; by default on threads. The
        model does not depend on it.

    Examples
    --------
    >>> from hopefear.recipes import RECIPES
    >>> Shards(4, max_features=1000).words(RECIPES["perceptron"].build())
    {'shards': 4, 'merge': 'mean-of-updated', 'max_features': 1000}
    """

    n: int
    merge: str = MERGES[0]
    merges: int = 1
    max_features: int | None = None
    pool: Any = None

    def __post_init__(self) -> None:
        for name in ("n", "merges", "max_features"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise HopefearError(
                    f"shards: {name} must be a whole number of at least 1, not {value!r}"
                )
        if self.merge not in MERGES:
            raise HopefearError(f"shards: merge is {' or '.join(MERGES)}, not {self.merge!r}")

    @classmethod
    def of(cls, shards: Any) -> Shards | None:
        """Returns shards from a number or from themselves; None where there is one learner alone.

        >>> Shards.of(1), Shards.of(2).n
        (None, 2)
        """
        if shards is None:
            return None
        shards = shards if isinstance(shards, Shards) else cls(shards)
        return None if shards.n == 1 and shards.max_features is None else shards

    def words(self, learner: Learner) -> dict[str, Any]:
        """Returns what signatures say; refuses learners whose states do not merge."""
        if learner.batch or not isinstance(learner, Learner):
            raise HopefearError(
                f"{learner.signature()} looks at all examples before it moves, and shards are for "
                "online learners; leave the shards out, or use perceptron, mira or vrda"
            )
        rule, averaging = learner.rule, learner.averaging
        if averaging.accumulators(averaging.init_memory(1, 1)) is None:
            raise CombinationError(
                f"averaging={part_name(type(averaging))} keeps the weights of a single path, and "
                "shards take several at once; use averaging=averaged or averaging=last"
            )
        state = rule.init(1, np.float32)
        if rule.to_sums(state, state.clock) is None:
            raise CombinationError(
                f"{type(rule).__name__} does not say how its states merge; write its methods "
                "to_sums and from_sums, or learn without shards"
            )
        if self.merge == "sum" and not rule.is_sum_over_examples:
            raise CombinationError(
                f"merge=sum adds up states that are sums over examples, and those of "
                f"{type(rule).__name__} are not; use mean-of-updated or mean, or the rule rda, "
                "adagrad-rda, arow or confidence-weighted"
            )
        words: dict[str, Any] = {"shards": self.n, "merge": self.merge}
        if self.merges > 1:
            words["merges"] = self.merges
        if self.max_features is not None:
            words["max_features"] = self.max_features
        return words

    def trainer(
        self,
        structure: Any,
        learner: Learner,
        passes: Passes,
        *,
        by_content: bool = False,
        dtype: Any = np.float32,
    ) -> ShardedTrainer:
        """Returns the trainer that learns on shards of the data of ``passes``."""
        self.words(learner)
        return ShardedTrainer(self, structure, learner, self._deal(passes, by_content), dtype)

    def _deal(self, passes: Passes, by_content: bool) -> list[Examples]:
        """Returns the examples of every shard; of data visited by blocks every K-th block."""
        data = passes.dataset
        if passes.by_block:
            self._check_enough(passes.n_pieces)
            return [Examples(passes, k, self.n) for k in range(self.n)]
        rows = np.flatnonzero(data.rows.weights > 0.0)
        self._check_enough(rows.size)
        if by_content and passes.shuffle:
            order = content_order(data.rows)
            rows = order[data.rows.weights[order] > 0.0]
        if self.n > 1:
            rows = np.random.default_rng([passes.seed, self.n]).permutation(rows)
        parts = (data.take(np.sort(rows[k :: self.n])) for k in range(self.n))
        return [
            Examples(Passes(_Rows(part.rows), passes.seed, passes.shuffle, by_content=by_content))
            for part in parts
        ]

    def _check_enough(self, examples: int) -> None:
        if examples < self.n:
            raise TooFewExamplesError(
                f"{examples} examples are too few for {self.n} shards; use fewer shards"
            )


@dataclass(frozen=True)
class _Rows:
    """Rows, as :class:`Passes` takes a dataset."""

    rows: Any

    def __len__(self) -> int:
        return len(self.rows.weights)


class Examples:
    """The examples of one shard: all of some passes, or every ``step``-th block from ``first``."""

    def __init__(self, passes: Passes, first: int = 0, step: int = 1) -> None:
        self.passes, self._first, self._step = passes, first, step
        self._epoch, self._order = -1, np.empty(0, np.int64)
        blocks = range(first, passes.n_pieces, step)
        self.n = len(blocks) if passes.by_block else passes.n

    def visits(self, epoch: int, start: int, end: int) -> Iterator[tuple[Any, np.ndarray]]:
        """Yields (rows, order) from ``start`` to ``end - 1`` of the ``n`` of an epoch."""
        if self.passes.by_block:
            first, last = (self._first + place * self._step for place in (start, end))
            yield from self.passes.at(epoch, slice(first, last, self._step))
            return
        if epoch != self._epoch:
            self._epoch, self._order = epoch, self.passes.order(epoch)
        yield self.passes.rows, self._order[start:end]


class Report(NamedTuple):
    """What a shard has done in the round so far."""

    seconds: float  # of its last steps
    counts: np.ndarray  # int64: as in ``Tally``; ticks are all there ever were
    loss: float
    clock: np.ndarray
    restarted: bool  # the clock, so that weights are in other units than they began with


class ShardTrainer:
    """The learner of one shard.

    Parameters
    ----------
    structure, learner, dtype
        As of any online trainer.
    examples : Examples
        Those of the shard.
    """

    def __init__(self, structure: Any, learner: Learner, examples: Examples, dtype: Any) -> None:
        self.online = OnlineTrainer(structure, learner, dtype)
        self._examples, self._ended = examples, False

    def begin(self, state: Any, ticks: int) -> None:
        """Begins a round with a copy of this state, which is ``ticks`` old."""
        for mine, common in zip(self.online.state, state, strict=True):
            mine[...] = common
        online = self.online
        online.tally.counts[:] = 0
        online.tally.counts[TICKS] = ticks
        online.tally.loss[:] = 0.0
        online.restarts = 0
        for account in self._accumulators():
            account.total[:] = account.lived[:] = 0.0
        online.reopen()
        self._ended = False

    def learn(self, epoch: int, first: int, last: int, steps: int) -> Report:
        """Learns from steps ``first`` to ``last - 1`` of the ``steps`` of an epoch."""
        started, online, n = time.perf_counter(), self.online, self._examples.n
        for rows, order in self._examples.visits(epoch, first * n // steps, last * n // steps):
            online.learn(rows, order)
        seconds = time.perf_counter() - started
        counts, clock = online.tally.counts.copy(), online.state.clock.copy()
        return Report(seconds, counts, online.loss, clock, online.restarts > 0)

    def end_round(self) -> float:
        """Brings sums of weights up to date; returns the number of examples they are over."""
        online, accounts = self.online, self._accumulators()
        if accounts and not self._ended:  # else asked again, where what it said was lost
            online.learner.averaging.end_tick(online.memory, online.state.clock)
            online.settle()
        self._ended = True
        return sum(float(account.lived[1]) for account in accounts)

    def contribution(self, base: Any, share: float, part: slice, norms: bool) -> np.ndarray:
        """Returns what some weights contribute to the merged state, rows that add up over shards.

        ``share`` times the change of each of the rule's sums; ``share`` where there was a change;
        the sums of the average, if one is kept; with ``norms`` the squares of the weights.
        """
        online, rule = self.online, self.online.learner.rule
        mine, common, clock = cut(online.state, part), cut(base, part), online.state.clock
        changed = np.zeros(len(mine[0]), bool)
        for one, other in zip(arrays_of(mine).values(), arrays_of(common).values(), strict=True):
            different = one != other
            changed |= different if different.ndim == 1 else different.any(axis=1)
        some = np.flatnonzero(changed)
        new, old = (rule.to_sums(cut(state, some), clock) for state in (mine, common))
        totals = [account.total[part] for account in self._accumulators()]
        rows = np.zeros((len(new) + 1 + len(totals) + norms, changed.size))
        for row, after, before in zip(rows, new, old, strict=False):
            row[some] = share * (after - before)
        rows[len(new), some] = share
        for row, total in zip(rows[len(new) + 1 :], totals, strict=False):
            row[:] = total
        if norms:
            weights = np.empty(changed.size, np.float32)
            read_last(rule, mine, weights)
            rows[-1] = np.square(weights, dtype=np.float64)
        return rows

    def _accumulators(self) -> Sequence[Any]:
        return self.online.learner.averaging.accumulators(self.online.memory)


def n_sums(rule: Any, state: Any, clock: np.ndarray) -> int:
    """Returns how many sums the rule makes of a state."""
    return len(rule.to_sums(cut(state, slice(0)), clock))


def cut(state: Any, part: slice | np.ndarray) -> Any:
    """Returns some weights of a state, with the clock of all."""
    return state._replace(**{name: array[part] for name, array in arrays_of(state).items()})


def merge_into(
    base: Any, rule: Any, contributions: np.ndarray, clock: np.ndarray, by_updated: bool
) -> None:
    """Makes the state of a round's beginning the merged one, but for its clock.

    Parameters
    ----------
    base : state
        Some weights of the state that all shards began with.
    rule : UpdateRule
        Says how states become sums and come back.
    contributions : float array
        The sums of :meth:`ShardTrainer.contribution` over all shards.
    clock : float array
        Of the merged state.
    by_updated : bool
        Whether a weight takes the mean over those shards that changed it.
    """
    shares = contributions[n_sums(rule, base, clock)]
    changed = np.flatnonzero(shares > 0.0)
    weight = shares[changed] if by_updated else 1.0
    before = rule.to_sums(cut(base, changed), clock)
    sums = tuple(
        old + change[changed] / weight for old, change in zip(before, contributions, strict=False)
    )
    arrays = arrays_of(base).values()
    for array, values in zip(arrays, rule.from_sums(sums, clock), strict=True):
        array[changed] = values.astype(array.dtype, copy=False)


def tree_sum(terms: Sequence[np.ndarray]) -> np.ndarray:
    """Returns the sum by twos, then by twos of these: the order that a cluster adds in.

    >>> float(tree_sum([np.ones(1), np.ones(1), np.ones(1)])[0])
    3.0
    """
    while len(terms) > 1:
        pairs = [terms[k : k + 2] for k in range(0, len(terms), 2)]
        terms = [pair[0] if len(pair) == 1 else pair[0] + pair[1] for pair in pairs]
    return terms[0]


class Threads:
    """Runs shards in this process, a thread each."""

    def __init__(self) -> None:
        self._shards: list[ShardTrainer] = []
        self._threads: list[ThreadPoolExecutor] = []

    def start(
        self, structure: Any, learner: Learner, examples: Sequence[Examples], dtype: Any
    ) -> None:
        """Makes the learners of all shards."""
        self._threads = [ThreadPoolExecutor(1) for _ in examples]
        makes = [(structure, learner, one, dtype) for one in examples]
        self._shards = self._each(lambda k: ShardTrainer(*makes[k]))

    def begin(self, state: Any, ticks: int) -> None:
        """Begins a round: all shards learn from this state on."""
        self._each(lambda k: self._shards[k].begin(state, ticks))

    def learn(self, k: int, epoch: int, first: int, last: int, steps: int) -> Future[Report]:
        """Lets a shard learn steps of an epoch, behind what it was asked for before."""
        return self._submit(k, self._shards[k].learn, epoch, first, last, steps)

    def result(self, k: int, answer: Future[Report]) -> Report:
        """Waits for what a shard was asked."""
        return answer.result()

    def halt(self, answers: Sequence[Future[Report]]) -> None:
        """Lets no shard begin what it was asked for; waits for what it has begun."""
        for answer in answers:
            answer.cancel()
        self._each(lambda k: None)

    def merge(
        self,
        base: Any,
        totals: Sequence[np.ndarray],
        shares: Sequence[float],
        clock: np.ndarray,
        by_updated: bool,
        norms: bool,
    ) -> tuple[float, np.ndarray]:
        """Ends a round: merges all states into ``base``, and adds sums of averages to ``totals``.

        Returns the examples that averages are over, and with ``norms`` the squares of all weights.
        """
        lived = sum(self._each(lambda k: self._shards[k].end_round()))
        rule, n = self._shards[0].online.learner.rule, len(base[0])
        width = n_sums(rule, base, clock) + 1
        parts = [slice(start, min(start + _SLICE, n)) for start in range(0, n, _SLICE)]
        squares = np.empty(n if norms else 0)

        def merge_parts(k: int) -> None:
            for part in parts[k :: len(self._threads)]:
                sums = self._contributions(base, shares, part, norms)
                merge_into(cut(base, part), rule, sums, clock, by_updated)
                for total, own in zip(totals, sums[width:], strict=False):
                    total[part] += own
                if norms:
                    squares[part] = sums[-1]

        self._each(merge_parts)
        return lived, squares

    def close(self) -> None:
        """Ends the threads, once they have learned what they have begun."""
        for thread in self._threads:
            thread.shutdown(wait=False, cancel_futures=True)
        for thread in self._threads:
            thread.shutdown()
        self._shards, self._threads = [], []

    def _contributions(
        self, base: Any, shares: Sequence[float], part: slice, norms: bool
    ) -> np.ndarray:
        pairs = zip(self._shards, shares, strict=True)
        return tree_sum([shard.contribution(base, share, part, norms) for shard, share in pairs])

    def _submit(self, k: int, function: Any, *args: Any) -> Future[Any]:
        context = contextvars.copy_context()  # such as NumPy's ways with overflow
        return self._threads[k].submit(context.run, function, *args)

    def _each(self, function: Any) -> list[Any]:
        answers = [self._submit(k, function, k) for k in range(len(self._threads))]
        return [answer.result() for answer in answers]


class ShardedTrainer(Trainer):
    """A learner on several shards, whose states are merged in every epoch.

    Parameters
    ----------
    shards : Shards
        How many there are, and how they are merged.
    structure, learner, dtype
        As of any online trainer.
    examples : sequence of Examples
        Those of each shard.

    Examples
    --------
    >>> from hopefear.data.generators import sparse_linear
    >>> from hopefear.recipes import RECIPES
    >>> from hopefear.structures.classes import Binary
    >>> data = sparse_linear(200, 50, per_row=(5, 10), true_weights=10, seed=1).dataset()
    >>> passes = Passes(data)
    >>> trainer = Shards(2).trainer(Binary(50), RECIPES["perceptron"].build(), passes)
    >>> trainer.learn_pass(passes)
    >>> trainer.close()
    >>> trainer.examples, trainer.merges
    (200, 1)
    """

    def __init__(
        self,
        shards: Shards,
        structure: Any,
        learner: Learner,
        examples: Sequence[Examples],
        dtype: Any = np.float32,
    ) -> None:
        self.structure, self.learner = structure, learner
        self._shards, self._examples, self._dtype = shards, list(examples), dtype
        rule = learner.rule
        if "period" in rule._fields:  # an epoch of a shard is shorter
            rule = rule._replace(period=rule.period / len(examples))
        self._common = OnlineTrainer(structure, replace(learner, rule=rule), dtype)
        self._pool = Threads() if shards.pool is None else shards.pool
        self._started = False
        self._answers: list[list[Any]] = []  # of every shard, to the steps of the round
        self._reports: list[Report] = []  # of the round that is under way
        self._seconds = np.zeros(len(examples))  # that each shard has learned in it
        self.merges, self.waited = 0, 0.0

    def detach(self) -> OnlineTrainer:
        """Returns one learner that goes on with the merged state."""
        self._common.reopen()
        self._common.learner = self.learner
        return self._common

    def learn_pieces(self, passes: Any, epoch: int = 0, skip: int = 0) -> Iterator[float]:
        pieces, merges = passes.n_pieces, self._shards.merges
        if skip >= pieces:
            return
        if not self._started:
            learner, self._started = self._common.learner, True
            self._pool.start(self.structure, learner, self._examples, self._dtype)
        # Pieces and rounds end with a step each, wherever they do.
        steps = math.lcm(pieces, merges)
        share, length = steps // pieces, steps // merges
        if skip and not self._reports:  # a checkpoint has what was merged; the rest comes again
            merged = skip * share // length * length
            if merged < skip * share:
                self._ask(epoch, [(merged, skip * share)], steps)
                self._learn()
        for piece in range(skip, pieces):
            started = time.perf_counter()
            for step in range(piece * share, (piece + 1) * share):
                end = (step // length + 1) * length
                if not self._answers:
                    self._ask(epoch, [(s, s + 1) for s in range(step, end)], steps)
                self._learn()
                if step + 1 == end:
                    self._merge()
            yield time.perf_counter() - started

    def _ask(self, epoch: int, stretches: Sequence[tuple[int, int]], steps: int) -> None:
        """Lets shards learn; they do not wait for each other before the round ends."""
        if not self._reports:
            self._seconds[:] = 0.0
            self._pool.begin(self._common.state, self._common.ticks)
        self._answers = [
            [self._pool.learn(k, epoch, *stretch, steps) for stretch in stretches]
            for k in range(len(self._examples))
        ]

    def _learn(self) -> None:
        """Waits until all shards have learned a stretch."""
        self._reports = [
            self._pool.result(k, answers.pop(0)) for k, answers in enumerate(self._answers)
        ]
        self._seconds += [report.seconds for report in self._reports]
        if not self._answers[0]:
            self._answers = []

    def _halt(self) -> None:
        """Lets no shard learn what it has not begun."""
        if self._answers:
            self._pool.halt([answer for answers in self._answers for answer in answers])
            self._answers = []

    def _merge(self) -> None:
        """Ends a round: one state of all, with which the next one begins."""
        common, reports, how = self._common, self._reports, self._shards
        rule = common.learner.rule
        self.waited += float((self._seconds.max() - self._seconds).sum())
        shares = [1.0 if how.merge == "sum" else 1.0 / len(reports)] * len(reports)
        ticks = [int(report.counts[TICKS]) - common.ticks for report in reports]
        t = common.ticks + round(math.fsum(s * n for s, n in zip(shares, ticks, strict=True)))
        clocks = [report.clock for report in reports]
        clock = np.asarray(rule.merged_clock(common.state, clocks, shares, t), np.float64)
        # Where a clock started again, changes of units only cancel in the mean over all shards.
        by_updated = how.merge == MERGES[0] and not any(report.restarted for report in reports)
        norms = how.max_features is not None
        totals = [account.total for account in self._accumulators()]
        lived, squares = self._pool.merge(common.state, totals, shares, clock, by_updated, norms)
        common.state.clock[:] = clock
        for account in self._accumulators():
            account.lived[1] += lived
        if how.max_features is not None:
            self._drop_features(squares, how.max_features)
        for entry in (EXAMPLES, UPDATES, MISTAKES):
            common.tally.counts[entry] += sum(int(report.counts[entry]) for report in reports)
        common.tally.counts[TICKS] = t
        common.tally.loss[0] += math.fsum(report.loss for report in reports)
        self.merges += 1
        self._reports = []

    def _drop_features(self, squares: np.ndarray, n: int) -> None:
        """Keeps the ``n`` features of the largest norms; all others start from nothing."""
        blocks = self.structure.weight_blocks()
        norms = [
            squares[start : start + count * width].reshape(count, width).sum(axis=1)
            for start, count, width in blocks
        ]
        kept = largest(np.concatenate(norms), n)
        dropped = ~np.repeat(kept, np.repeat([w for *_, w in blocks], [c for _, c, _ in blocks]))
        fresh = arrays_of(self._common.learner.rule.init(1, self._dtype))
        for name, array in arrays_of(self._common.state).items():
            array[dropped] = fresh[name]
        for account in self._accumulators():
            account.total[dropped] = 0.0

    def _accumulators(self) -> Sequence[Any]:
        return self._common.learner.averaging.accumulators(self._common.memory)

    def predictor(self) -> Any:
        return self._common.predictor()

    def average(self) -> np.ndarray:
        """Returns the mean of the weights that all shards had, each after each of its examples."""
        return self._common.average()

    def weights(self) -> np.ndarray:
        """Returns the weights as they were merged last."""
        return self._common.weights()

    def support(self) -> tuple[int, float]:
        return self._common.support()

    def why_all_zero(self) -> str:
        if (n := self._shards.max_features) is not None:
            return f"max_features={n} may be too few features: raise it"
        return self._common.why_all_zero()

    @property
    def examples(self) -> int:
        return self._common.examples + self._so_far(EXAMPLES)

    @property
    def updates(self) -> int:
        return self._common.updates + self._so_far(UPDATES)

    @property
    def mistakes(self) -> int:
        return self._common.mistakes + self._so_far(MISTAKES)

    @property
    def loss(self) -> float:
        return self._common.loss + math.fsum(report.loss for report in self._reports)

    def _so_far(self, entry: int) -> int:
        return sum(int(report.counts[entry]) for report in self._reports)

    def annotate(self, event: Event) -> None:
        event["merges"], event["waited"] = self.merges, round(self.waited, 6)

    def arrays(self) -> dict[str, np.ndarray]:
        """Returns what was merged; shards that are on their way learn their round again."""
        return self._common.arrays()

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._halt()
        self._common.restore(arrays)
        self._reports = []

    def close(self) -> None:
        self._answers = []
        self._pool.close()


def largest(squares: np.ndarray, n: int) -> np.ndarray:
    """Returns which are the ``n`` largest; of equal ones the first.

    >>> largest(np.array([1.0, 3.0, 1.0, 0.0]), 2).tolist()
    [True, True, False, False]
    """
    if n >= squares.size:
        return np.ones(squares.size, bool)
    least = np.partition(squares, squares.size - n)[squares.size - n]
    selected = squares > least
    selected[np.flatnonzero(squares == least)[: n - np.count_nonzero(selected)]] = True
    return selected

"""Learn on shards of the data side by side, and merge what they learned after every pass.

Every example belongs to one of K shards. In a round each shard goes once over its examples,
beginning with the state that all have in common; then their states are merged, and all go on from
there (iterative parameter mixing). How a state merges is the rule's affair:

    merged = base + sum_k share_k (state_k - base)

in the coordinates in which the rule's states add up, with shares that sum to 1. By default a
coordinate takes the mean over those shards that moved it: a feature that one shard alone has seen
keeps all that was learned of it, where a mean over all shards would keep a K-th. Rules whose state
is a sum over examples can also take shares of 1: nothing that was learned is lost then, but all
shards mend the same mistakes, so that sums need many rounds, and may not settle.

References
----------
Ryan McDonald, Keith Hall and Gideon Mann. Distributed training strategies for the structured
perceptron. NAACL 2010.
Patrick Simianer, Stefan Riezler and Chris Dyer. Joint feature selection in distributed stochastic
learning for large-scale discriminative training in SMT. ACL 2012.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.core.averages import Account, totals_now
from hopefear.core.learner import Learner, part_name
from hopefear.errors import CombinationError, HopefearError
from hopefear.training.changes import (
    Update,
    add_at,
    enter_round,
    merge_entries,
)
from hopefear.training.online import (
    EXAMPLES,
    MISTAKES,
    TICKS,
    UPDATES,
    OnlineTrainer,
    arrays_of,
)
from hopefear.training.passes import Passes, content_order
from hopefear.training.trainer import Event, Trainer
from hopefear.training.workers import Dealt, Processes, Report, Share, Threads

MIXES = ("moved", "uniform", "examples", "mistakes", "sum")
BLOCKS = "blocks"  # nothing is mixed: shards search the same blocks
WORKERS = {"threads": Threads, "processes": Processes}


@dataclass(frozen=True)
class Shards:
    """How examples are dealt to shards, and how these are merged.

    Parameters
    ----------
    n : int
        Number of shards. The model depends on it (but for ``blocks``), not on where shards run.
    mix : {"moved", "uniform", "examples", "mistakes", "sum", "blocks"}, optional
        How states are merged. ``moved``: means over the shards that moved a coordinate (the
        default). ``uniform``, ``examples``, ``mistakes``: means over all shards, which count the
        same, or by how many examples or mistakes they had in the round. ``sum`` adds up what all
        have learned, for rules whose state is a sum (dual averaging, AROW, confidence-weighted).
        ``blocks``: nothing is merged. Shards search the examples of each block of the learner
        (``block=``) under the same weights, and all move along the directions of all: the model is
        that of one learner with these blocks, and does not depend on the number of shards.
    rounds : int
        How often shards are merged in a pass. More rounds come nearer to one learner that sees all
        examples, and cost more: sums need many, since every shard mends what all others mend too.
    select : int, optional
        After each round only so many features keep their weights, those of the largest l2 norm over
        labels and shards; all others start again from nothing. Larger keeps more of the model.
    workers : str or pool
        Where shards run: ``threads``, ``processes``, or a pool such as
        ``hopefear.distributed.Cluster``. The model does not depend on it.

    Examples
    --------
    >>> from hopefear.recipes import RECIPES
    >>> Shards(4, select=1000).words(RECIPES["perceptron"].build())
    {'shards': 4, 'mix': 'moved', 'select': 1000}
    """

    n: int
    mix: str | None = None
    rounds: int = 1
    select: int | None = None
    workers: Any = "threads"

    def __post_init__(self) -> None:
        for name in ("n", "rounds", "select"):
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or value < 1):
                raise HopefearError(
                    f"shards: {name} must be a whole number of at least 1, not {value!r}"
                )
        if self.mix not in (None, *MIXES, BLOCKS):
            raise HopefearError(f"shards: mix is {', '.join(MIXES)} or {BLOCKS}, not {self.mix!r}")
        if self.mix == BLOCKS and (self.rounds > 1 or self.select is not None):
            raise HopefearError(
                "shards: mix=blocks merges no states, so there are neither rounds nor features to "
                "select; leave them out, or use another mix"
            )
        if isinstance(self.workers, str) and self.workers not in WORKERS:
            raise HopefearError(
                f"shards: workers are {' or '.join(WORKERS)}, or a pool, not {self.workers!r}"
            )

    @classmethod
    def of(cls, shards: Any) -> Shards | None:
        """Shards from a number or from themselves; None where one learner is all there is.

        >>> Shards.of(1), Shards.of(2).n
        (None, 2)
        """
        if shards is None:
            return None
        shards = shards if isinstance(shards, Shards) else cls(shards)
        return None if shards.n == 1 and shards.select is None else shards

    def words(self, learner: Learner) -> dict[str, Any]:
        """What signatures say; refuses learners whose states do not merge."""
        if learner.batch or not isinstance(learner, Learner):
            raise HopefearError(
                f"{learner.signature()} looks at all examples before it moves, and shards are for "
                "online learners; leave the shards out, or use perceptron, mira or vrda"
            )
        if self.mix == BLOCKS:
            if learner.block < max(2, self.n):
                raise HopefearError(
                    f"mix=blocks shares out the examples of a block, and {self.n} shards have no "
                    f"use for a block of {learner.block}; use -p block={64 * self.n}, or another "
                    "mix"
                )
            return {}  # which shards there are makes no difference
        rule, readout = learner.rule, learner.readout
        if readout.books(readout.init_memory(0, 1)) is None:
            raise CombinationError(
                f"the readout {part_name(type(readout))} keeps the weights of a single path, and "
                "shards take several at once; use readout=averaged or readout=last"
            )
        if not rule.change_size():
            raise CombinationError(
                f"{type(rule).__name__} does not say how its states merge; write its methods "
                "change_size, change and merge, or learn without shards"
            )
        mix = self.mix or MIXES[0]
        if mix == "sum" and not rule.sums():
            raise CombinationError(
                f"mix=sum adds up states that are sums over examples, and those of "
                f"{type(rule).__name__} are not; use moved, uniform, examples or mistakes, or the "
                "rule rda, adagrad-rda, arow or confidence-weighted"
            )
        rounds = {} if self.rounds == 1 else {"rounds": self.rounds}
        selected = {} if self.select is None else {"select": self.select}
        return {"shards": self.n, "mix": mix, **rounds, **selected}

    def trainer(
        self,
        structure: Any,
        learner: Learner,
        passes: Passes,
        *,
        by_content: bool = False,
        dtype: Any = np.float32,
    ) -> Trainer:
        """What learns on shards of the data of ``passes``."""
        words = self.words(learner)
        if self.mix == BLOCKS and (self.workers == "threads" or isinstance(self.workers, Threads)):
            return OnlineTrainer(structure, learner, dtype, self.n)
        workers = WORKERS[self.workers]() if isinstance(self.workers, str) else self.workers
        if self.mix == BLOCKS:
            from hopefear.training.synchronous import SharedBlocks, SynchronousTrainer

            deal = self._deal_visits(passes, by_content)
            return SynchronousTrainer(SharedBlocks(structure, learner, dtype, workers, deal))
        shares = self._deal(passes, by_content)
        return ShardedTrainer(
            structure, learner, shares, words["mix"], self.rounds, self.select, workers, dtype
        )

    def cut(self, passes: Passes) -> None:
        """Make a block for every shard, of data that is visited by them; before anything is said.

        Which blocks there are is part of what is learned, and of its signature.
        """
        if self.mix != BLOCKS:  # there all search a part of every block
            passes.cut(self.n)

    def _deal(self, passes: Passes, by_content: bool) -> list[Any]:
        """The share of every shard; of data in blocks every K-th one."""
        data = passes.dataset
        if passes.by_block:
            if passes.n_pieces < self.n:
                raise _too_few(passes.n_pieces, self.n)
            return [Dealt(passes, k, self.n) for k in range(self.n)]
        way = passes.seed, passes.shuffle, by_content
        parts = self._parts(passes, by_content)
        return [Share(data.take(part).rows, *way) for part in parts]

    def _deal_visits(self, passes: Passes, by_content: bool) -> Any:
        """Which shard searches which examples of a block of the learner."""
        from hopefear.training.synchronous import DealtBlocks, DealtRows, Part

        if passes.by_block:
            return DealtBlocks(passes, self.n)
        shards, places = np.full((2, passes.rows.weights.size), -1)  # of those nobody visits
        parts = []
        for k, part in enumerate(self._parts(passes, by_content)):
            shards[part], places[part] = k, np.arange(part.size)
            rows, weights = passes.dataset.take(part).rows, frozen(passes.rows.weights[part])
            parts.append(Part(rows._replace(weights=weights)))
        return DealtRows(passes.rows, parts, shards, places)

    def _parts(self, passes: Passes, by_content: bool) -> list[np.ndarray]:
        """The rows of every shard, at random."""
        data = passes.dataset
        rows = np.flatnonzero(data.rows.weights > 0.0)
        if rows.size < self.n:
            raise _too_few(rows.size, self.n)
        if by_content and passes.shuffle:
            order = content_order(data.rows)
            rows = order[data.rows.weights[order] > 0.0]
        if self.n > 1:
            rows = np.random.default_rng([passes.seed, self.n]).permutation(rows)
        return [np.sort(rows[k :: self.n]) for k in range(self.n)]


def _too_few(examples: int, shards: int) -> HopefearError:
    return HopefearError(f"{examples} examples are too few for {shards} shards; use fewer shards")


class ShardedTrainer(Trainer):
    """A learner on several shards, whose states are merged after every pass.

    Parameters
    ----------
    structure, learner, dtype
        As of any online trainer.
    shares : sequence of Share
        The examples of each shard.
    mix, rounds, select
        As in :class:`Shards`.
    workers : pool
        Where shards run.

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
    >>> trainer.examples, trainer.rounds
    (200, 1)
    """

    def __init__(
        self,
        structure: Any,
        learner: Learner,
        shares: Sequence[Any],
        mix: str,
        rounds: int = 1,
        select: int | None = None,
        workers: Any = None,
        dtype: Any = np.float32,
    ) -> None:
        self.structure, self.learner = structure, learner
        rule = learner.rule.among(len(shares))
        self._own = replace(learner, rule=rule)
        self._whole = OnlineTrainer(structure, self._own, dtype)
        self._shares, self._mix, self._select = list(shares), mix, select
        self._per_pass = rounds
        self._dtype = dtype
        self._workers = Threads() if workers is None else workers
        self._started = False
        self._reports: list[Report] = []  # of the round that is under way
        self._seconds = np.zeros(len(self._shares))  # that each shard has learned in it
        self._running: Any = None  # reports to come
        self._left = 0
        self.rounds, self.waited = 0, 0.0

    def alone(self) -> OnlineTrainer:
        """One learner that goes on with the merged state."""
        whole = self._whole
        if self._account is not None:
            whole.settle()
            self._account.open[:] = whole.weights() != 0.0
        whole.learner = self.learner
        return whole

    @property
    def _account(self) -> Account | None:
        """The books of the whole."""
        books = self._own.readout.books(self._whole.memory)
        return books[0] if books else None

    def learn_pieces(self, passes: Any, epoch: int = 0, skip: int = 0) -> Iterator[float]:
        pieces = passes.n_pieces
        if skip >= pieces:
            return
        if not self._started:
            self._workers.start(self.structure, self._own, self._shares, self._dtype)
            self._shares, self._started = [], True
            self._workers.begin(self._whole.state, self._whole.ticks)
        # A piece is so many steps that rounds end with one, wherever pieces end.
        share = self._per_pass // math.gcd(pieces, self._per_pass)
        steps = share * pieces
        length = steps // self._per_pass
        if skip and not self._reports:  # a checkpoint has what was merged; the rest comes again
            merged = skip * share // length * length
            if merged < skip * share:
                self._begin(epoch, [(merged, skip * share)], steps)
                self._learn()
        for piece in range(skip, pieces):
            started = time.perf_counter()
            for step in range(piece * share, (piece + 1) * share):
                end = (step // length + 1) * length
                if self._running is None:
                    self._begin(epoch, [(s, s + 1) for s in range(step, end)], steps)
                self._learn()
                if step + 1 == end:
                    self._merge()
            yield time.perf_counter() - started

    def _begin(self, epoch: int, stretches: list[tuple[int, int]], steps: int) -> None:
        """Let shards learn; they do not wait for each other before the round ends."""
        self._running = self._workers.learn(epoch, stretches, steps)
        self._left = len(stretches)

    def _learn(self) -> None:
        """Wait until all shards have learned a stretch."""
        assert self._running is not None
        self._reports = next(self._running)
        self._seconds = self._seconds + [report.seconds for report in self._reports]
        self._left -= 1
        if not self._left:
            self._halt()

    def _halt(self) -> None:
        """Let no shard learn what it has not begun."""
        if self._running is not None:
            self._running.close()
            self._running = None

    def _merge(self) -> None:
        """End a round: one state of all, with which the next one begins."""
        whole, rule, reports, account = self._whole, self._own.rule, self._reports, self._account
        self.waited += float((self._seconds.max() - self._seconds).sum())
        shares = self._weighed(reports)
        before = whole.ticks
        t = before + round(
            math.fsum(s * (r.counts[TICKS] - before) for s, r in zip(shares, reports, strict=True))
        )
        clock = np.asarray(
            rule.merged_clock(whole.state, [r.clock for r in reports], shares, t), np.float64
        )
        # Where a clock started again, changes of units only cancel in the mean over all shards.
        by_moved = self._mix == "moved" and not any(report.restarted for report in reports)
        if account is not None and whole.learner.readout.full(whole.memory):
            whole.settle()
        if self._select is None and hasattr(self._workers, "merge"):
            self._workers.merge(whole.state, account, shares, clock, by_moved, t)
        else:
            self._merge_apart(account, shares, clock, by_moved, t)
        self._count(reports, t)
        self._reports = []
        self._seconds = np.zeros(len(shares))
        self.rounds += 1

    def _merge_apart(
        self,
        account: Account | None,
        shares: Sequence[float],
        clock: np.ndarray,
        by_moved: bool,
        t: int,
    ) -> None:
        """Merge shards that share no memory, by what they say of themselves."""
        whole, rule = self._whole, self._own.rule
        norms = None if self._select is None else self._workers.norms()
        change = self._workers.change(shares, clock)
        ids, values = change.state
        total, a = np.empty(0), 0.0
        if account is not None:
            enter_round(account, *change.rest)
            total, a = account.total, totals_now(account)[0]
            add_at(total, change.gains[0].ids, change.gains[0].values[0])
        merge_entries(rule, whole.state, ids, values, clock, by_moved, total, a)
        whole.state.clock[:] = clock
        fields = {name: array[ids] for name, array in arrays_of(whole.state).items()}
        update = Update(ids, fields, clock, t)
        if norms is not None:
            update = self._restricted(update, norms)
        self._workers.take_up(update)

    def _weighed(self, reports: Sequence[Report]) -> list[float]:
        """The share of every shard."""
        if self._mix == "sum":
            return [1.0] * len(reports)
        entry = {"examples": EXAMPLES, "mistakes": MISTAKES}.get(self._mix)
        masses = [1 if entry is None else int(report.counts[entry]) for report in reports]
        if not sum(masses):  # no mistakes, so nobody's state is better than another's
            masses = [1] * len(masses)
        return [mass / sum(masses) for mass in masses]

    def _count(self, reports: Sequence[Report], t: int) -> None:
        """Add up what shards have counted."""
        tally = self._whole.tally
        for entry in (EXAMPLES, UPDATES, MISTAKES):
            tally.counts[entry] += sum(int(report.counts[entry]) for report in reports)
        tally.counts[TICKS] = t
        tally.loss[0] += math.fsum(report.loss for report in reports)

    def _restricted(self, update: Update, norms: Any) -> Update:
        """Drop all features but those of the largest norms; the update that says so too."""
        whole, rule = self._whole, self._own.rule
        tables = self.structure.tables()
        squares = np.zeros(sum(n for _, n, _ in tables))
        squares[norms.ids] = norms.values[0]
        kept = largest(squares, self._select or squares.size)
        widths = np.repeat([width for _, _, width in tables], [n for _, n, _ in tables])
        dropped = ~np.repeat(kept, widths)
        fresh, changed = rule.init(1, self._dtype), np.zeros(whole.n, bool)
        changed[update.ids] = True
        for name, array in arrays_of(whole.state).items():
            different = array != getattr(fresh, name)
            changed |= dropped & (different if array.ndim == 1 else different.any(axis=1))
            array[dropped] = getattr(fresh, name)
        if self._account is not None:
            self._account.total[dropped] = 0.0
        ids = np.flatnonzero(changed)
        fields = {name: array[ids] for name, array in arrays_of(whole.state).items()}
        return Update(ids, fields, update.clock, update.t)

    def predictor(self) -> Any:
        return self._whole.predictor()

    def average(self) -> np.ndarray:
        """Mean of the weights that all shards had, each after each of its examples."""
        return self._whole.average()

    def weights(self) -> np.ndarray:
        """The weights as they were merged last."""
        return self._whole.weights()

    def support(self) -> tuple[int, float]:
        return self._whole.support()

    def why_all_zero(self) -> str:
        if self._select is not None:
            return f"select={self._select} may be too few features: raise it"
        return self._whole.why_all_zero()

    @property
    def examples(self) -> int:
        return self._whole.examples + self._so_far(EXAMPLES)

    @property
    def updates(self) -> int:
        return self._whole.updates + self._so_far(UPDATES)

    @property
    def mistakes(self) -> int:
        return self._whole.mistakes + self._so_far(MISTAKES)

    @property
    def loss(self) -> float:
        return self._whole.loss + math.fsum(report.loss for report in self._reports)

    def _so_far(self, entry: int) -> int:
        return sum(int(report.counts[entry]) for report in self._reports)

    def annotate(self, event: Event) -> None:
        event["rounds"], event["waited"] = self.rounds, round(self.waited, 6)
        event["sent"] = self._workers.sent

    def arrays(self) -> dict[str, np.ndarray]:
        """What was merged; shards that are on their way learn their round again."""
        return self._whole.arrays()

    def restore(self, arrays: dict[str, np.ndarray]) -> None:
        self._halt()
        self._whole.restore(arrays)
        self._reports = []
        self._seconds[:] = 0.0
        if self._started:
            self._workers.begin(self._whole.state, self._whole.ticks)

    def close(self) -> None:
        self._halt()
        self._workers.close()


def largest(squares: np.ndarray, n: int) -> np.ndarray:
    """Which are the ``n`` largest; of equal ones the first.

    >>> largest(np.array([1.0, 3.0, 1.0, 0.0]), 2).tolist()
    [True, True, False, False]
    """
    if n >= squares.size:
        return np.ones(squares.size, bool)
    least = np.partition(squares, squares.size - n)[squares.size - n]
    kept = squares > least
    kept[np.flatnonzero(squares == least)[: n - np.count_nonzero(kept)]] = True
    return kept

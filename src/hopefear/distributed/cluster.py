"""Shards as actors of a Ray cluster, replaced when they are lost.

Examples and states travel through Ray's object store. After a round the contributions of all
shards are added up by twos, each pair where Ray likes, in the order in which threads add: the sum
has the same bits, and no process ever holds the states of all. Learning is the same every time, so
an actor that was lost is replaced by one that begins the round again; nothing of it shows in the
model.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from hopefear.core.learner import Learner
from hopefear.distributed.connection import LOSSES, Connection, check_versions, versions
from hopefear.errors import HopefearError
from hopefear.training.shards import Examples, Report, ShardTrainer, merge_into, n_sums

# Seconds that a cluster has to start an actor.
_PATIENCE = 180.0


def _sum(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return left + right


class Worker:
    """An actor: the learner of one shard."""

    def __init__(self) -> None:
        self._shard: Any = None
        self._begun: Any = None

    def versions(self) -> dict[str, str]:
        """Returns what is installed where it runs."""
        return versions()

    def pid(self) -> int:
        """Returns its process."""
        return os.getpid()

    def open(self, learner: tuple[Any, ...], examples: Examples) -> None:
        """Makes the learner: its structure, its parts and the type of its weights."""
        structure, parts, dtype = learner
        self._shard = ShardTrainer(structure, parts, examples, dtype)

    def begin(self, state: Any, ticks: int) -> None:
        self._begun = state
        self._shard.begin(state, ticks)

    def learn(self, epoch: int, first: int, last: int, steps: int) -> Report:
        return self._shard.learn(epoch, first, last, steps)

    def end_round(self) -> float:
        return self._shard.end_round()

    def contribution(self, share: float, norms: bool) -> np.ndarray:
        return self._shard.contribution(self._begun, share, slice(None), norms)


class Cluster:
    """A Ray cluster that shards run on; give it to ``Shards`` as ``pool``.

    Parameters
    ----------
    address : str
        ``HOST:PORT`` of the cluster, or ``auto``: that of which this machine is a part, else one
        that is started here and ended with the run.

    Examples
    --------
    >>> from hopefear.training.shards import Shards
    >>> Shards(4, pool=Cluster("auto")).n  # doctest: +SKIP
    4
    """

    def __init__(self, address: str = "auto") -> None:
        self._connection = Connection(address)
        self.lost = 0
        self._rule: Any = None
        self._add: Any = None  # the task that adds two contributions
        self._actors: list[Any] = []
        self._openings: list[tuple[Any, Any]] = []
        self._begun: tuple[Any, int] | None = None
        self._calls: list[list[tuple[Any, ...]]] = []  # what each shard learned in the round
        self._answers: list[list[Any]] = []  # and what it answers

    def start(
        self, structure: Any, learner: Learner, examples: Sequence[Examples], dtype: Any
    ) -> None:
        if examples[0].passes.by_block:
            raise HopefearError(
                f"{examples[0].passes.dataset.source}: a cache is a file of this machine, and "
                "shards on a cluster hold their examples in memory; leave out the cache"
            )
        self.lost = 0
        self._rule = learner.rule
        self._connection.open(len(examples))
        put = self._connection.ray.put
        self._add = self._connection.ray.remote(num_cpus=0)(_sum)
        parts = put((structure, learner, dtype))
        self._openings = [(parts, put(part)) for part in examples]
        self._forget_round()
        self._actors = [self._new_actor() for _ in examples]
        for k in range(len(examples)):
            try:
                self._open(k)
            except self._connection.losses():
                self._replace(k)

    def begin(self, state: Any, ticks: int) -> None:
        self._begun = self._connection.ray.put(state), ticks
        self._forget_round()
        self._each("begin", *self._begun)

    def learn(self, k: int, epoch: int, first: int, last: int, steps: int) -> int:
        call = epoch, first, last, steps
        self._calls[k].append(call)
        self._answers[k].append(self._actors[k].learn.remote(*call))
        return len(self._calls[k]) - 1

    def result(self, k: int, answer: int) -> Report:
        while True:
            try:
                return self._connection.answer(self._answers[k][answer])
            except self._connection.losses():
                self._replace(k)

    def halt(self, answers: Sequence[int]) -> None:
        """Ends all actors: others begin the next round."""
        self._begun = None
        self._forget_round()
        for k, actor in enumerate(self._actors):
            self._connection.ray.kill(actor)
            self._actors[k] = self._new_actor()
            try:
                self._open(k)
            except self._connection.losses():
                self._replace(k)

    def merge(
        self,
        base: Any,
        totals: Sequence[np.ndarray],
        shares: Sequence[float],
        clock: np.ndarray,
        by_updated: bool,
        norms: bool,
    ) -> tuple[float, np.ndarray]:
        while True:
            n_epochs = sum(self._each("end_round"))
            terms = [
                actor.contribution.remote(share, norms)
                for actor, share in zip(self._actors, shares, strict=True)
            ]
            while len(terms) > 1:
                pairs = [terms[k : k + 2] for k in range(0, len(terms), 2)]
                terms = [pair[0] if len(pair) == 1 else self._add.remote(*pair) for pair in pairs]
            try:
                sums = self._connection.answer(terms[0])
                break
            except self._connection.losses():
                self._count_loss("a merge")  # lost actors are noticed; all actors repeat the call
        merge_into(base, self._rule, sums, clock, by_updated)
        for total, part in zip(totals, sums[n_sums(self._rule, base, clock) + 1 :], strict=False):
            total += part
        return n_epochs, sums[-1] if norms else np.empty(0)

    def close(self) -> None:
        """Gives actors back, and ends a cluster that was started here."""
        for actor in self._actors:
            self._connection.ray.kill(actor)
        self._actors, self._openings, self._begun = [], [], None
        self._connection.close()

    def _forget_round(self) -> None:
        self._calls = [[] for _ in self._openings]
        self._answers = [[] for _ in self._openings]

    def _new_actor(self) -> Any:
        return self._connection.ray.remote(num_cpus=1, max_restarts=0)(Worker).remote()

    def _open(self, k: int) -> None:
        """Lets an actor make its learner, once it is known to be as this machine is."""
        try:
            installed = self._connection.ray.get(
                self._actors[k].versions.remote(), timeout=_PATIENCE
            )
        except self._connection.ray.exceptions.GetTimeoutError as error:
            cores = int(self._connection.ray.cluster_resources().get("CPU", 0))
            raise HopefearError(
                f"no worker has started for shard {k} within {_PATIENCE:.0f} s; the cluster has "
                f"{cores} cores for {len(self._actors)} shards: use fewer, or wait until it is free"
            ) from error
        check_versions(installed, versions(), f"shard {k}")
        self._connection.answer(self._actors[k].open.remote(*self._openings[k]))

    def _replace(self, k: int) -> None:
        """Brings a new actor to where the lost one stood in its round."""
        while True:
            self._count_loss(f"shard {k}")
            self._actors[k] = self._new_actor()
            try:
                self._open(k)
                if self._begun is not None:
                    self._connection.answer(self._actors[k].begin.remote(*self._begun))
                learn = self._actors[k].learn
                self._answers[k] = [learn.remote(*call) for call in self._calls[k]]
                return
            except self._connection.losses():
                continue

    def _count_loss(self, host: str) -> None:
        self.lost += 1
        if self.lost > LOSSES:
            raise HopefearError(
                f"{LOSSES} workers were lost, the last one of {host}; see the logs of the Ray "
                "cluster: is memory short?"
            )

    def _each(self, method: str, *arguments: Any) -> list[Any]:
        """Returns what all actors answer; those that are lost on the way are replaced."""
        answers = [getattr(actor, method).remote(*arguments) for actor in self._actors]
        for k in range(len(answers)):
            while True:
                try:
                    answers[k] = self._connection.answer(answers[k])
                    for answer in self._answers[k]:  # of an actor that began again
                        self._connection.answer(answer)
                    break
                except self._connection.losses():
                    self._replace(k)
                    answers[k] = getattr(self._actors[k], method).remote(*arguments)
        return answers

"""Shards as actors of a Ray cluster: opened from a shared folder, replaced when they are lost.

The machine that asks writes the examples of every shard to a file and tells its hash; of mapped
data it tells where the cache lies. An actor opens its file and refuses another one. After a round,
changes are added up by twos on the actors in the order of the shards, so only one sum comes back,
and it has the bits that threads get. Learning is the same every time, so an actor that was lost is
replaced by one that begins the round again; nothing of it shows in the model.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hopefear import __version__, storage
from hopefear.core.learner import Learner
from hopefear.distributed.connection import LOSSES, Connection, check_versions, versions
from hopefear.distributed.parcels import (
    Parcel,
    packed,
    packed_update,
    size_of,
    unpacked,
    unpacked_update,
)
from hopefear.errors import HopefearError, ModelError
from hopefear.training.changes import Change, Sparse, Update
from hopefear.training.passes import Passes
from hopefear.training.workers import Report

# Seconds that a cluster has to start an actor.
_PATIENCE = 180.0


class Filed(NamedTuple):
    """The examples of a shard, in a file."""

    path: str
    digest: str
    kind: Any  # of the rows

    def read(self) -> Any:
        """The rows; a missing or another file is refused."""
        return self.kind(*read_share(self.path, self.digest, self.kind._fields))


class Worker:
    """An actor: one shard, and sums of what several changed."""

    def __init__(self) -> None:
        self._shard: Any = None
        self._n = 0

    def versions(self) -> dict[str, str]:
        """What is installed where it runs."""
        return versions()

    def pid(self) -> int:
        """Its process."""
        return os.getpid()

    def open(self, share: Any, data: Any, rest: tuple[Any, ...], learner: tuple[Any, ...]) -> None:
        """Open a shard: what kind it is, its examples in a file or passes over them, the rest."""
        structure, parts, dtype = learner
        examples = data.read() if isinstance(data, Filed) else data
        self._shard = share(examples, *rest).worker(structure, parts, dtype)
        self._n = structure.n_coordinates()

    def begin(self, state: Any, t: int) -> None:
        """As of a shard; what comes from afar cannot be written to, and is copied."""
        self._shard.begin(type(state)(*(array.copy() for array in state)), t)

    def learn(self, epoch: int, first: int, last: int, steps: int) -> Report:
        return self._shard.learn(epoch, first, last, steps)

    def step(self, move: Any, examples: Any) -> Any:
        return self._shard.step(move, examples._replace(places=examples.places.copy()))

    def norms(self) -> Parcel:
        change = Change(self._shard.norms(), (), ())
        return packed(change, sum(n for _, n, _ in self._shard.trainer.structure.tables()))

    def change(self, share: float, clock: np.ndarray) -> Parcel:
        return packed(self._shard.change(share, clock), self._n)

    def plus(self, one: Parcel, other: Parcel) -> Parcel:
        """The sum of two parcels."""
        n = one.load[0][0].n
        return packed(unpacked(one).plus(unpacked(other)), n, one.sent + other.sent)

    def take_up(self, parcel: Parcel) -> None:
        self._shard.take_up(unpacked_update(parcel))


class Cluster:
    """A Ray cluster that shards run on; give it to ``Shards`` as ``workers``.

    Parameters
    ----------
    address : str
        ``HOST:PORT`` of the cluster, or ``auto``: that of which this machine is a part, else one
        that is started here and ended with the run.
    folder : path, optional
        A folder that all machines see. The examples of each shard are written there, and removed
        when training ends. By default one for temporary files, which is enough for one machine.
        Of mapped data nothing is written: its cache must lie in a folder that all machines see.

    Examples
    --------
    >>> from hopefear.training.shards import Shards
    >>> Shards(4, workers=Cluster("auto")).n  # doctest: +SKIP
    4
    """

    def __init__(self, address: str = "auto", folder: str | os.PathLike[str] | None = None) -> None:
        self._connection = Connection(address)
        self.folder = folder
        self.sent, self.lost = 0, 0
        self._actors: list[Any] = []
        self._openings: list[tuple[Any, ...]] = []
        self._made: Path | None = None
        self._round: list[tuple[int, int, int, int]] = []  # what all learned since it began
        self._begun: tuple[Any, int] = (None, 0)
        self._n = 0

    def start(self, structure: Any, learner: Learner, shares: Sequence[Any], dtype: Any) -> None:
        """Tell where the examples of every shard lie, and let an actor open each."""
        self.lost = 0
        self._connection.open(len(shares))
        self._n = structure.n_coordinates()
        parts = self._connection.ray.put((structure, learner, dtype))
        for share, data in zip(shares, self._told([share[0] for share in shares]), strict=True):
            self._openings.append((type(share), data, tuple(share)[1:], parts))
        self._actors = [self._new_actor() for _ in shares]
        for k in range(len(shares)):
            try:
                self._open(k)
            except self._connection.losses():
                self._replace(k)

    def begin(self, state: Any, t: int) -> None:
        self._begun, self._round = (state, t), []
        self._each("begin", [(self._connection.ray.put(state), t)] * len(self._actors))
        self.sent += len(self._actors) * size_of(tuple(state))

    def learn(
        self, epoch: int, stretches: Sequence[tuple[int, int]], steps: int
    ) -> Iterator[list[Report]]:
        calls = [(epoch, *stretch, steps) for stretch in stretches]
        # Actors take up one call after the other, and wait for nobody.
        waiting = [[actor.learn.remote(*call) for call in calls] for actor in self._actors]
        for n, call in enumerate(calls):
            reports: list[Report] = []
            for k, answers in enumerate(waiting):
                while len(reports) == k:
                    try:
                        reports.append(self._connection.answer(answers[n]))
                    except self._connection.losses():
                        self._replace(k)
                        answers[n:] = [self._actors[k].learn.remote(*call) for call in calls[n:]]
            self._round.append(call)
            yield reports

    def norms(self) -> Sparse:
        return self._sum("norms", [()] * len(self._actors)).state

    def change(self, shares: Sequence[float], clock: np.ndarray) -> Change:
        return self._sum("change", [(share, clock) for share in shares])

    def take_up(self, update: Update) -> None:
        self._begun, self._round = (self._begun[0], update.t), []
        parcel = packed_update(update, self._n)
        self._each("take_up", [(self._connection.ray.put(parcel),)] * len(self._actors))
        self.sent += len(self._actors) * parcel.sent

    def step(self, state: Any, number: int, move: Any, examples: Sequence[Any]) -> list[Any]:
        self._begun = state, number  # an actor that is lost begins here, and need not move
        shared = self._connection.ray.put(move)
        answers = self._each("step", [(shared, some) for some in examples])
        self.sent += len(self._actors) * size_of(move) + size_of((answers, list(examples)))
        return answers

    def close(self) -> None:
        """Give actors and files back, and end a cluster that was started here."""
        for actor in self._actors:
            self._connection.ray.kill(actor)
        self._actors, self._openings = [], []
        self._begun, self._round = (None, 0), []  # another training has states of its own
        if self._made is not None:
            shutil.rmtree(self._made, ignore_errors=True)
            self._made = None
        self._connection.close()

    def _told(self, data: Sequence[Any]) -> list[Any]:
        """How actors get at the data of all shards: passes over a cache, or rows in files."""
        if isinstance(data[0], Passes):  # one for all, whose arrays may be long
            return [self._connection.ray.put(data[0].portable())] * len(data)
        self._made = _new_folder(self.folder)
        files = [self._made / f"shard-{k}.hopefear" for k in range(len(data))]
        return [
            Filed(str(path), write_share(path, rows), type(rows))
            for path, rows in zip(files, data, strict=True)
        ]

    def _new_actor(self) -> Any:
        return self._connection.ray.remote(num_cpus=1, max_restarts=0)(Worker).remote()

    def _open(self, k: int) -> None:
        """Let an actor open its shard, once it is known to be as this machine is."""
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
        """Bring a new actor to where the lost one stood in its round."""
        for _ in range(LOSSES):
            self.lost += 1
            if self.lost > LOSSES:
                raise HopefearError(
                    f"{LOSSES} workers were lost, the last one of shard {k}; see the logs of the "
                    "Ray cluster: is memory short?"
                )
            self._actors[k] = self._new_actor()
            try:
                self._open(k)
                if self._begun[0] is not None:
                    self._connection.answer(self._actors[k].begin.remote(*self._begun))
                for call in self._round:
                    self._connection.answer(self._actors[k].learn.remote(*call))
                return
            except self._connection.losses():
                continue

    def _each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """What all actors answer; those that are lost on the way are replaced."""

        def asked(k: int) -> Any:
            return getattr(self._actors[k], method).remote(*arguments[k])

        answers, waiting = [], [asked(k) for k in range(len(self._actors))]
        for k, answer in enumerate(waiting):
            while True:
                try:
                    answers.append(self._connection.answer(answer))
                    break
                except self._connection.losses():
                    self._replace(k)
                    answer = asked(k)
        return answers

    def _sum(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> Change:
        """The sum of what all actors answer, by twos, made where the first of two is."""
        while True:
            # An actor that was lost between two questions is noticed here.
            self._each("pid", [()] * len(self._actors))
            items = [
                (actor, getattr(actor, method).remote(*args))
                for actor, args in zip(self._actors, arguments, strict=True)
            ]
            while len(items) > 1:
                pairs = [items[k : k + 2] for k in range(0, len(items), 2)]
                items = [
                    pair[0]
                    if len(pair) == 1
                    else (pair[0][0], pair[0][0].plus.remote(pair[0][1], pair[1][1]))
                    for pair in pairs
                ]
            try:
                parcel = self._connection.answer(items[0][1])
            except self._connection.losses():
                continue  # asked again, of all: shards answer the same
            self.sent += parcel.sent
            return unpacked(parcel)


def write_share(path: Path, rows: Any) -> str:
    """Write the examples of a shard; SHA-256 of the file."""
    data = storage.pack({"version": __version__}, rows._asdict(), kind="shard")
    storage.write_atomically(path, data)
    return hashlib.sha256(data).hexdigest()


def read_share(path: str, digest: str, names: Sequence[str]) -> list[np.ndarray]:
    """The arrays of a shard, or an error that says why this is not the file that was meant."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise HopefearError(
            f"{path}: the examples of a shard are missing on this worker: {error.strerror}; give "
            "--cluster-folder a folder that all machines of the cluster see"
        ) from error
    if hashlib.sha256(data).hexdigest() != digest:
        raise HopefearError(
            f"{path}: the examples of a shard on this worker are not those that were written: "
            "their hash differs; give --cluster-folder a folder that all machines share"
        )
    try:
        _, arrays = storage.unpack(data, kind="shard", name=path)
        return [arrays[name] for name in names]
    except (ModelError, KeyError) as error:
        raise HopefearError(f"{path} holds no shard: {error}") from error


def _new_folder(folder: str | os.PathLike[str] | None) -> Path:
    """A folder of this run alone."""
    try:
        if folder is not None:
            Path(folder).mkdir(parents=True, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="hopefear-shards-", dir=folder))
    except OSError as error:
        raise HopefearError(f"{folder}: no folder can be made there: {error.strerror}") from error

"""Train on three Ray nodes of this machine, and say how models compare with those of threads.

``ray_program.py RUNS`` makes so many runs in which a worker is killed in every round.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import tempfile
from pathlib import Path

import ray
from ray.cluster_utils import Cluster as Nodes

from hopefear.data.cache import MAGIC, open_cache
from hopefear.data.cached_examples import cache_examples
from hopefear.data.generators import sparse_linear
from hopefear.distributed import Cluster
from hopefear.errors import HopefearError
from hopefear.tasks.classify.task import train, weighted
from hopefear.training import passes
from hopefear.training.shards import Shards

DATA = sparse_linear(60, 20, per_row=(3, 6), true_weights=8, seed=2).dataset()
AGENTS = ("metrics_agent_port", "dashboard_agent_listen_port", "runtime_env_agent_port")


def model(learner, workers="threads", listeners=(), mix=None, block=1, data=DATA):
    select = 12 if learner == "vrda" and mix is None else None
    shards = Shards(3, mix, select=select, workers=workers)
    how = {"epochs": 3, "pieces": 4, "on_event": listeners}
    return train(data, learner, {"block": block}, shards=shards, **how).model.to_bytes()


def node():
    """A node that nobody else reaches, and ports that are free."""
    sockets = [socket.socket() for _ in AGENTS]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return {
        "num_cpus": 2,
        "node_ip_address": "127.0.0.1",
        **dict(zip(AGENTS, ports, strict=True)),
    }


class Killer:
    """Kills a worker in the middle of every pass."""

    def __init__(self, pool):
        self.pool, self.events = pool, 0

    def __call__(self, event):
        self.events += 1
        if self.events % 4 == 2:
            actor = self.pool._actors[self.events % 3]
            os.kill(ray.get(actor.pid.remote()), signal.SIGKILL)


class Spoiler(Cluster):
    """Changes a file after it was written."""

    def _new_actor(self):
        with open(self._openings[0][1].path, "ab") as file:
            file.write(b"!")
        return super()._new_actor()


class Changer(Cluster):
    """Does something to a cache when workers are about to open it."""

    change = None

    def _new_actor(self):
        if self.change is not None:
            self.change()
            self.change = None
        return super()._new_actor()


class Mapped:
    """Data in a cache of several blocks."""

    def __init__(self, folder):
        self.file = Path(folder, "cache")
        rows, lines = DATA.to_csr(), []
        for i, label in enumerate(DATA.rows.labels):
            some = slice(*rows.indptr[i : i + 2])
            pairs = zip(rows.indices[some] + 1, rows.data[some], strict=True)
            lines.append(f"{label} " + " ".join(f"{j}:{v}" for j, v in pairs))
        Path(folder, "text").write_text("\n".join(lines) + "\n")
        self.make()
        passes._BLOCK = 400

    def make(self):
        cache_examples(self.file.with_name("text"), self.file)

    def data(self):
        return weighted(open_cache(self.file), "balanced")  # weights that are not in the cache

    def refused(self, nodes, change):
        pool = Changer(nodes.address)
        pool.change = change
        try:
            model("perceptron", pool, data=self.data())
        except HopefearError as error:
            return str(error).replace(str(self.file), "FILE")
        finally:
            self.make()

    def replaced(self):
        self.file.with_name("text").write_text("0 1:1\n1 2:1\n")
        self.make()

    def outdated(self):
        self.file.write_bytes(self.file.read_bytes().replace(MAGIC, b"hopefear-cache 1", 1))

    def lost_and_changed(self, nodes):
        """A worker is killed, and the one that follows finds another file."""
        pool = Cluster(nodes.address)

        def change(event):
            if not pool.lost and self.file.exists():
                self.file.unlink()
                os.kill(ray.get(pool._actors[1].pid.remote()), signal.SIGKILL)

        try:
            model("perceptron", pool, [change], data=self.data())
        except HopefearError as error:
            return str(error).replace(str(self.file), "FILE")
        finally:
            self.make()


def compared(nodes, learner, killing=False, **how):
    pool = Cluster(nodes.address)
    listeners = [Killer(pool)] if killing else []
    same = model(learner, **how) == model(learner, pool, listeners, **how)
    return f"{'equal' if same else 'different'}, {pool.lost} lost"


def refused(nodes):
    try:
        model("perceptron", Spoiler(nodes.address))
    except HopefearError as error:
        return str(error)


def main(runs="1"):
    nodes = Nodes(initialize_head=True, head_node_args={**node(), "include_dashboard": False})
    for _ in range(2):
        nodes.add_node(**node())
    answers = {
        "perceptron": compared(nodes, "perceptron"),
        "shards with blocks": compared(nodes, "perceptron", block=4),
        "blocks": compared(nodes, "vrda", killing=True, mix="blocks", block=6),
        "killed": [compared(nodes, "vrda", killing=True) for _ in range(int(runs))],
        "differs": refused(nodes),
    }
    with tempfile.TemporaryDirectory() as folder:
        mapped = Mapped(folder)
        cached = {"data": mapped.data()}
        answers["mapped"] = {
            "perceptron": compared(nodes, "perceptron", **cached),
            "killed": compared(nodes, "vrda", killing=True, **cached),
            "blocks": compared(nodes, "vrda", killing=True, mix="blocks", block=6, **cached),
            "written": sorted(path.name for path in Path(folder).iterdir()),
            "lost": mapped.lost_and_changed(nodes),
            "missing": mapped.refused(nodes, mapped.file.unlink),
            "version": mapped.refused(nodes, mapped.outdated),
            "other": mapped.refused(nodes, mapped.replaced),
        }
    print(json.dumps(answers), flush=True)
    nodes.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])

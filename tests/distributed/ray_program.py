"""Train on three Ray nodes of this machine, and say how models compare with those of threads.

``ray_program.py RUNS`` makes so many runs in which a worker is killed in every round.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys

import ray
from ray.cluster_utils import Cluster as Nodes

from hopefear.data.generators import sparse_linear
from hopefear.distributed import Cluster
from hopefear.errors import HopefearError
from hopefear.tasks.base import train
from hopefear.tasks.classify.task import Classification
from hopefear.training.shards import Shards

DATA = sparse_linear(60, 20, per_row=(3, 6), true_weights=8, seed=2).dataset()
AGENTS = ("metrics_agent_port", "dashboard_agent_listen_port", "runtime_env_agent_port")


def model(learner, pool=None, listeners=(), merges=1):
    most = 12 if learner == "vrda" else None
    shards = Shards(3, merges=merges, max_features=most, pool=pool)
    how = {"epochs": 3, "pieces": 4, "on_event": listeners, "calibrate": False}
    return train(Classification(), DATA, learner, shards=shards, **how).model.to_bytes()


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


def compared(nodes, learner, killing=False, **how):
    pool = Cluster(nodes.address)
    listeners = [Killer(pool)] if killing else []
    same = model(learner, **how) == model(learner, pool, listeners, **how)
    return f"{'equal' if same else 'different'}, {pool.lost} lost"


def refused(nodes):
    """What is said where examples lie in blocks, as those of a cache do."""
    shards = Shards(3, pool=Cluster(nodes.address))
    try:
        train(Classification(), DATA, "perceptron", shards=shards, by_block=True)
    except HopefearError as error:
        return str(error)


def main(runs="1"):
    nodes = Nodes(initialize_head=True, head_node_args={**node(), "include_dashboard": False})
    for _ in range(2):
        nodes.add_node(**node())
    answers = {
        "perceptron": compared(nodes, "perceptron"),
        "averaged": compared(nodes, "sgd", merges=2),
        "killed": [compared(nodes, "vrda", killing=True) for _ in range(int(runs))],
        "refused": refused(nodes),
    }
    print(json.dumps(answers), flush=True)
    nodes.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])

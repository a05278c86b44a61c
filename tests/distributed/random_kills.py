"""Commands on three Ray nodes whose workers are killed at random moments, by another process.

``RAY_TMPDIR=FOLDER random_kills.py RUNS SEED`` says of each run how many workers were killed,
whether the model is that of threads, and how long it took; a run that does not end within two
minutes is told.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from ray.cluster_utils import Cluster as Nodes
from ray_program import node

LIMIT = 120.0
WAYS = {
    "updated": "--learner vrda --merges 2",
    "mean": "--learner sgd --merge mean",
    "sum": "--learner vrda --merge sum --merges 3 --max-features 40",
}


def write_data(path, n=400):
    dice = random.Random(1)
    lines = (
        f"{dice.choice('+-')}1 " + " ".join(f"{j}:1" for j in sorted(dice.sample(range(1, 60), 8)))
        for _ in range(n)
    )
    path.write_text("\n".join(lines) + "\n")


def workers():
    """Processes that are actors of this cluster, by their titles and the folder of the cluster.

    Other clusters may be tested at the same time.
    """
    folder = f"RAY_TMPDIR={os.environ['RAY_TMPDIR']}".encode()
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                title = Path(entry.path, "cmdline").read_bytes()
                variables = Path(entry.path, "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if title.startswith(b"ray::Worker") and folder in variables:
                yield int(entry.name)


def command(way, model):
    words = f"train classify --train data --epochs 12 --shards 3 {way} --model {model} --quiet"
    return [sys.executable, "-m", "hopefear", *words.split()]


def run(folder, way, address, dice):
    """One command and its killer."""
    started = time.monotonic()
    program = [*command(way, "there"), "--cluster", address]
    child = subprocess.Popen(program, cwd=folder, stderr=subprocess.PIPE)
    kills, pause = 0, dice.uniform(0.2, 2.0)
    while child.poll() is None and time.monotonic() - started < LIMIT:
        try:
            child.wait(pause)
        except subprocess.TimeoutExpired:
            pids = list(workers())
            if pids and kills < 8:
                os.kill(dice.choice(pids), signal.SIGKILL)
                kills += 1
            pause = dice.uniform(0.1, 1.5)
    seconds = round(time.monotonic() - started, 1)
    if child.poll() is None:
        child.kill()
        child.wait()
        return {"outcome": "does not end", "killed": kills, "seconds": seconds}
    message = child.stderr.read().decode()
    if child.returncode:
        return {"outcome": message[:300], "killed": kills, "seconds": seconds}
    same = (folder / "there").read_bytes() == (folder / "here").read_bytes()
    return {"outcome": "equal" if same else "different", "killed": kills, "seconds": seconds}


def main(runs="3", seed="1"):
    nodes = Nodes(initialize_head=True, head_node_args={**node(), "include_dashboard": False})
    for _ in range(2):
        nodes.add_node(**node())
    dice, outcomes = random.Random(int(seed)), []
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_data(folder / "data")
        for k in range(int(runs)):
            name, way = list(WAYS.items())[k % len(WAYS)]
            words = f"train classify --train data --epochs 12 --shards 3 {way} --model here --quiet"
            subprocess.run(
                [sys.executable, "-m", "hopefear", *words.split()], cwd=folder, check=True
            )
            outcome = {"way": name, **run(folder, way, nodes.address, dice)}
            print(json.dumps(outcome), file=sys.stderr, flush=True)
            outcomes.append(outcome)
    print(json.dumps(outcomes), flush=True)
    nodes.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Independent runs on three Ray nodes of this machine, beside the same runs made here."""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from ray.cluster_utils import Cluster as Nodes
from ray_program import node

import hopefear.distributed
from hopefear.cli import main as command
from hopefear.distributed import Runs, runs
from hopefear.errors import HopefearError

COMPARE = (
    "compare classify --train data --test data --learners perceptron,vrda --epochs 2 --seeds 2"
)
TUNE = "tune --nbest nbest --refs refs --learner perceptron --epochs 3 --seeds 3 --held-out 0.3"
SEARCH = "search classify --train data --folds 2 --learner vrda --trials 7 --epochs 2"
DECODER = "tune --decoder DECODE --refs refs --learner perceptron --epochs 2 --seeds 2 --rounds 2"


def write_files():
    draw = random.Random(1)
    rows = [(draw.random() < 0.5, draw.sample(range(1, 12), 4)) for _ in range(60)]
    lines = [f"{int(y)} {' '.join(f'{j}:1' for j in sorted(js))}\n" for y, js in rows]
    Path("data").write_text("".join(lines))
    words, nbest, refs = ["sea", "rain", "sail", "night", "wind", "calm"], "", ""
    for i in range(12):
        sentence = [draw.choice(words) for _ in range(6)]
        refs += " ".join(sentence) + "\n"
        for k in range(5):
            guess = [w if draw.random() < 0.8 else draw.choice(words) for w in sentence]
            numbers = " ".join(f"{draw.random():.3f}" for _ in range(3))
            nbest += f"{i} ||| {' '.join(guess)} ||| LM0= {numbers} ||| {-k}\n"
    Path("nbest").write_text(nbest)
    Path("refs").write_text(refs)


def killed_once(folder, function, shared, item):
    """The first worker that makes a run is killed."""
    k, own = item
    mark = Path(folder, str(k))
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return function(shared, own)


class Killing(Runs):
    """Every run is lost once."""

    def map(self, function, shared, items, *more, **named):
        with tempfile.TemporaryDirectory() as folder:
            doomed = partial(killed_once, folder, function)
            yield from super().map(doomed, shared, enumerate(items), *more, **named)
            for _ in os.listdir(folder):
                print("one was killed", file=sys.stderr)


def timeless(value):
    """A value of JSON without times and names of files."""
    if isinstance(value, dict):
        return {
            k: timeless(v) for k, v in value.items() if "seconds" not in k and k not in ("weights",)
        }
    return [timeless(v) for v in value] if isinstance(value, list) else value


def output(line, *more):
    """What a command prints as JSON, and how many lines of progress."""
    words = ["cp nbest {nbest}" if word == "DECODE" else word for word in line.split()]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = command([*words, *more, "--json"])
    assert status == 0, err.getvalue()
    # Ray, imported before the command line was, may tell of lost workers above.
    return timeless(json.loads(out.getvalue().splitlines()[-1])), err.getvalue()


def compared(line, address, *files):
    """Whether a command says and writes the same here and there, and its progress there."""
    here, there = ([w for f in files for w in (f"--{f}", f"{f}-{x}")] for x in ("here", "there"))
    (one, _), (other, progress) = output(line, *here), output(line, *there, "--cluster", address)
    same = one == other
    for name in files:
        if name == "weights":
            same &= Path(f"{name}-here").read_bytes() == Path(f"{name}-there").read_bytes()
        else:
            same &= events(f"{name}-here") == events(f"{name}-there")
    return "equal" if same else f"{one} {other}", progress.splitlines()


def events(folder):
    path = Path(folder, "events.jsonl")
    return [timeless(json.loads(line)) for line in path.read_text().splitlines()] or folder


def searched(address):
    """How many trials a search made, the best score, and its progress."""
    result, progress = output(SEARCH, "--out", "best.toml", "--cluster", address)
    os.remove("best.toml")
    return result["trials"], result["best"]["quality"], progress.splitlines()


def slower_first(pause, k):
    time.sleep(pause * (3 - k))
    return k, os.getcwd()


def always_killed(_, k):
    os.kill(os.getpid(), signal.SIGKILL)


def refused(_, k):
    raise HopefearError(f"run {k} is refused")


def error_of(cluster, function):
    try:
        with cluster:
            list(cluster.map(function, None, [0, 1]))
    except HopefearError as error:
        return str(error)


def order(address):
    ended = []
    with Runs(address) as cluster:
        results = list(cluster.map(slower_first, 0.5, range(4), ended.append))
    assert {folder for _, folder in results} == {os.getcwd()}
    return [k for k, _ in results], sorted(ended) == results


def version(address):
    with_other = {**runs.versions(), "hopefear": "0.0.9"}
    usual, runs.versions = runs.versions, lambda: with_other
    try:
        return error_of(Runs(address), slower_first)
    finally:
        runs.versions = usual


def main():
    nodes = Nodes(initialize_head=True, head_node_args={**node(), "include_dashboard": False})
    for _ in range(2):
        nodes.add_node(**node())
    try:
        address = nodes.address
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            write_files()
            answers = {
                "order": order(address),
                "error": error_of(Runs(address), refused),
                "lost": error_of(Runs(address), always_killed),
                "version": version(address),
                "cores": error_of(Runs(address, cores=99), refused),
                "tune": compared(TUNE, address, "weights", "run"),
                "decoder": compared(DECODER, address, "weights", "run"),
            }
            hopefear.distributed.Runs = Killing
            answers["compare"] = compared(COMPARE, address)
            answers["search"] = searched(address)
            answers["left"] = sorted(os.listdir())
        print(json.dumps(answers), flush=True)
    finally:  # nodes that live on would hold the pipes of this process
        nodes.shutdown()


if __name__ == "__main__":
    main()

"""Growth of time and memory with examples, features, labels, candidates and words.

    python bench/growth.py                     # all curves, in processor time
    python bench/growth.py --only chain-labels sentence-words

Every point is a process of its own with random data, which is forked when kernels are compiled.
``seconds`` is the processor time of a pass, the least of three; ``mb`` the most that was resident
while there was data, state and pass, above what was there before. ``exponent`` is the slope of a
line through the logarithms of the upper half of a curve, where constants no longer matter, beside
that of the theory; ``time`` and ``memory`` have one each.

"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from hopefear.recipes import Scale
from hopefear.tasks import recipe
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes

PER_ROW = 20
LEAST = 3  # passes of a point


class Problem(NamedTuple):
    """Random data and what learns from it."""

    task: str
    structure: Any
    data: Any


class Curve(NamedTuple):
    """Sizes to try, the data of each, and the theoretical growth of time and memory."""

    sizes: Sequence[int]
    problem: Callable[[int], Problem]
    time: float
    memory: float | None = None  # None: constants dominate


def rows(n: int, features: int, classes: int = 2) -> Problem:
    """Examples with random features."""
    from hopefear.data.sparse import SparseDataset, SparseRows
    from hopefear.structures.classes import Binary, Multiclass

    rng = np.random.default_rng(1)
    indices = rng.integers(0, features, n * PER_ROW, np.int32)
    indptr = np.arange(0, n * PER_ROW + 1, PER_ROW)
    labels = rng.integers(0, classes, n, np.int32)
    arrays = indptr, indices, np.ones(indices.size, np.float32), labels, np.ones(n, np.float32)
    data = SparseDataset(SparseRows(*arrays), features, [str(c) for c in range(classes)])
    structure = Binary(features) if classes == 2 else Multiclass(features, classes)
    return Problem("classify", structure, data)


def sentences(n: int, words: int, labels: int) -> Problem:
    """Sentences with random attributes."""
    from hopefear.data.sequences import SequenceDataset, TokenRows
    from hopefear.tasks.tag.task import Tagging

    rng, tokens, size = np.random.default_rng(1), n * words, 1000
    empty = np.empty(0)
    arrays = TokenRows(
        np.arange(0, tokens + 1, words),
        np.arange(0, tokens * PER_ROW + 1, PER_ROW),
        rng.integers(0, size, tokens * PER_ROW),
        *(empty, np.zeros(1), empty, empty),
        rng.integers(0, labels, tokens),
        np.ones(n),
    )
    names = [str(c) for c in range(labels)]
    data = SequenceDataset(arrays, names, SimpleNamespace(size=size, edge_size=0))
    return Problem("tag", Tagging().structure(data), data)


def lists(n: int, candidates: int) -> Problem:
    """Lists of random candidates."""
    from hopefear.data.generators import candidate_lists
    from hopefear.structures.nbest import NBest
    from hopefear.tasks.rerank.prepare import dataset

    data = dataset(candidate_lists(n, candidates, 30, per_candidate=10))
    return Problem("rerank", NBest(data.features.size), data)


def trees(n: int, words: int) -> Problem:
    """Sentences of random words in which each word but the first hangs on one before it."""
    from hopefear.data.treebank import parse_treebank
    from hopefear.tasks.parse.prepare import prepare

    rng = np.random.default_rng(1)
    lines = []
    for _ in range(n):
        for k in range(1, words + 1):
            form, head = f"w{rng.integers(0, 500)}", k - 1
            lines.append(f"{k}\t{form}\t_\tX\t_\t_\t{head}\t{'dep' if head else 'root'}\t_\t_")
        lines.append("")
    prepared = prepare(parse_treebank("\n".join([*lines, ""]).encode()), {"order": 1})
    data = prepared.data
    return Problem("parse", prepared.task.structure(data), data)


CURVES = {
    "examples": Curve((10**4, 10**5, 10**6, 10**7), lambda n: rows(n, 1 << 20), 1, 1),
    "features": Curve((10**4, 10**5, 10**6, 10**7, 10**8), lambda n: rows(10**5, n), 0, 1),
    "class-labels": Curve((2, 10, 100, 1000, 10**4), lambda n: rows(2000, 1000, n), 1, 1),
    "chain-labels": Curve((2, 8, 32, 128, 500), lambda n: sentences(200, 20, n), 2),
    "candidates": Curve((10, 30, 100, 300, 1000), lambda n: lists(200, n), 1, 1),
    "sentence-words": Curve((10, 30, 100, 300, 1000), lambda n: sentences(200, n, 20), 1, 1),
    "tree-words": Curve((10, 20, 40, 80, 160), lambda n: trees(40, n), 3, 2),
}
LEARNER = "perceptron"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=CURVES, default=list(CURVES), metavar="CURVE")
    chosen = parser.parse_args()
    for name in chosen.only:
        print(json.dumps({"curve": name, **grown(CURVES[name])}), flush=True)


def grown(curve: Curve) -> dict[str, Any]:
    """Seconds and megabytes at every size, and their exponents."""
    passed(curve.problem(curve.sizes[0]), 1)  # compiled once, for all that are forked
    passed(curve.problem(curve.sizes[1]), 1)
    points = [apart(curve.problem, size) for size in curve.sizes]
    seconds, megabytes = ([point[k] for point in points] for k in range(2))
    return {
        "sizes": list(curve.sizes),
        "seconds": [round(value, 5) for value in seconds],
        "mb": [round(value, 1) for value in megabytes],
        "time": [exponent(curve.sizes, seconds), curve.time],
        "memory": [exponent(curve.sizes, megabytes), curve.memory],
    }


def apart(problem: Callable[[int], Problem], size: int) -> tuple[float, float]:
    """Measures in a child process: (processor seconds of an epoch, peak megabytes)."""
    fork = multiprocessing.get_context("fork")
    receiver, sender = fork.Pipe()

    def run() -> None:
        before = resident("VmRSS")
        seconds = passed(problem(size), LEAST)
        sender.send((seconds, resident("VmHWM") - before))

    process = fork.Process(target=run)
    process.start()
    sender.close()
    try:
        return receiver.recv()
    finally:
        process.join()


def passed(problem: Problem, repeats: int) -> float:
    """Processor seconds of a pass, the least of some."""
    learner = recipe(LEARNER, problem.task).build(Scale(n=len(problem.data)))
    trainer, passes = OnlineTrainer(problem.structure, learner), Passes(problem.data, seed=1)
    least = np.inf
    for epoch in range(repeats):
        started = time.process_time()
        trainer.learn_pass(passes, epoch)
        least = min(least, time.process_time() - started)
    return float(least)


def resident(entry: str) -> float:
    """Megabytes of this process that are, or at most were, in memory."""
    match = re.search(rf"{entry}:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(match[1]) / 1024 if match else 0.0


def exponent(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Slope of the logarithms in the upper half of the sizes, at least three points."""
    n = max(3, (len(sizes) + 1) // 2)
    x, y = np.log(sizes[-n:]), np.log(np.maximum(values[-n:], 1e-9))
    return round(float(np.polyfit(x, y, 1)[0]), 2)


if __name__ == "__main__":
    main()

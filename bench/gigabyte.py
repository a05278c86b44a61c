"""A gigabyte of svmlight text to a saved model, one adaptive pass: wall time of whole processes.

    python bench/gigabyte.py                      # the machine must be idle; about two minutes
    python bench/gigabyte.py --megabytes 100 --repeats 2

Generated rows (``synth:300000x1000000``) are repeated, shuffled anew each time, until the text has
so many megabytes (10**6 bytes); Vowpal Wabbit has the same lines in its own format, and neither has
a cache of them. Programs take turns: ``hopefear train classify --stream``, which like Vowpal Wabbit
holds no more than a few blocks, with one thread and with two; the same with the data in memory;
and ``python -m vowpalwabbit``, which reads on a thread of its own. ``start`` is our stream of the
first lines. Minima count, of wall time and of CPU time each; ``ratio`` is our wall time as a part
of Vowpal Wabbit's. Models must not depend on the number of threads: their bytes are compared.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import common
import numpy as np
import text_to_model
import vowpal

STREAM = ["--stream", "--hash-bits"]
MEMORY = ["--epochs", "1"]
COMMAND = [sys.executable, "-m", "hopefear", "train", "classify", "--learner", "adagrad-rda"]


def main() -> None:
    chosen = arguments()
    only = {*chosen.only, "vw"}
    problem = common.load(["synth:300000x1000000"])
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        text, files = text_to_model.write(problem, Path(folder))
        start = text_to_model.first_lines(text)
        n_lines = round(len(problem.y) * chosen.megabytes * 1e6 / text.stat().st_size)
        for path in (text, files.train):  # the same order in both
            repeat_lines(path, n_lines)
        stream = [*STREAM, str(files.bits)]
        programs: dict[str, Any] = {"start": lambda: train(start, [*stream, "--jobs", "2"])}
        for jobs in ("1", "2"):
            for name, options in (("stream", stream), ("memory", MEMORY)):
                key, more = f"{name}, jobs {jobs}", [*options, "--jobs", jobs]
                programs[key] = lambda key=key, more=more: train(text, more, key)
        programs["vw"] = lambda: vowpal.from_text(files, "logistic")
        programs = {key: run for key, run in programs.items() if key.partition(",")[0] in only}
        for key in programs:
            programs[key]()  # compiles what is not on disk yet, and has files in memory
        runs: dict[str, list[common.Run]] = {key: [] for key in programs}
        order = np.random.default_rng(0)
        for _ in range(chosen.repeats):
            for k in order.permutation(len(programs)):
                key = list(programs)[k]
                runs[key].append(programs[key]())
        for name in only & {"stream", "memory"}:
            check_same(model_of(text, f"{name}, jobs 1"), model_of(text, f"{name}, jobs 2"))
        size = text.stat().st_size / 1e6
    results = {key: figures(times, runs["vw"]) for key, times in runs.items()}
    common.report("a gigabyte of text", "vowpalwabbit", problem, results, text_mb=round(size, 1),
                  repeats=chosen.repeats)  # fmt: skip


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=5)
    names = ["start", "stream", "memory"]
    parser.add_argument("--only", nargs="+", choices=names, default=names, help="and vw")
    parser.add_argument("--folder", help="where the text lies while it is measured")
    return parser.parse_args()


def repeat_lines(path: Path, count: int) -> None:
    """Repeats the lines of a file in other orders, until there are ``count``."""
    lines, shuffled = path.read_bytes().splitlines(keepends=True), random.Random(1)
    with open(path, "wb") as out:
        for room in range(count, 0, -len(lines)):
            shuffled.shuffle(lines)
            out.writelines(lines[:room])


def train(text: Path, arguments: list[str], key: str = "start") -> common.Run:
    files = ["--train", str(text), "--model", str(model_of(text, key))]
    return common.run([*COMMAND, *text_to_model.QUIET, *arguments, *files])


def model_of(text: Path, key: str) -> Path:
    return text.with_name(f"{key.replace(', ', '-').replace(' ', '-')}.model")


def check_same(first: Path, second: Path) -> None:
    digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in (first, second)}
    if len(digests) > 1:
        raise SystemExit(f"{first.name} and {second.name} differ, and must not")


def figures(runs: list[common.Run], rival: list[common.Run]) -> dict[str, float]:
    """Least wall time, CPU time, peak memory and the part of the rival's wall time."""
    wall = min(run.wall for run in runs)
    return {
        "wall": wall,
        "cpu": min(run.seconds for run in runs),
        "peak_mb": max(run.peak_mb for run in runs),
        "ratio": wall / min(run.wall for run in rival),
    }


if __name__ == "__main__":
    main()

"""Sentences, lists and trees that memory cannot hold: what training takes, and how fast it is.

    python bench/out_of_core_tasks.py                      # about an hour
    python bench/out_of_core_tasks.py --only tag --copies 10 --limit 100

A text is repeated until it is large, and ``hopefear train TASK --cache DIR`` reads it, writes the
cache and makes a pass, in a control group of so many megabytes, pages of files among them; then a
second run trains from the cache that is there. ``times`` is the cache as a multiple of the limit.
``speed`` compares CPU seconds of passes over a part of the text, mapped and in memory, with warm
pages and in the same order, by turns, the least of three; the weights must be equal. Linux, and
root for the control group (version 1). Classes: out_of_core.py.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np
from out_of_core import limited


class Case(NamedTuple):
    """A task, what it is trained with, how often its text is repeated, and megabytes allowed."""

    options: list[str]
    copies: int
    limit: int


CASES = {
    "tag": Case(["--hash-bits", "16", "--no-names", "--no-temperature"], 130, 128),
    "rerank": Case([], 100, 96),
    "parse": Case(["--order", "1", "--features", "light", "--hash-bits", "16"], 112, 96),
}


def text_of(task: str, folder: Path) -> bytes:
    """Some megabytes of a task."""
    if task == "rerank":
        return lists()
    name = "conll2000/train.txt.gz" if task == "tag" else "ud_english_ewt/train.conllu.gz"
    with gzip.open(folder / name) as file:
        return file.read()


def lists(n: int = 800) -> bytes:
    """Random lists of twenty candidates with 200 of 5,000 named features each."""
    dice = random.Random(1)
    return b"".join(
        json.dumps(
            {
                "candidates": [
                    {
                        "cost": dice.randrange(5) / 4,
                        "features": {f"f{dice.randrange(5000)}": 1 for _ in range(200)},
                    }
                    for _ in range(20)
                ]
            }
        ).encode()
        + b"\n"
        for _ in range(n)
    )


def speed(task: str, cache: str) -> None:
    """Passes in memory and mapped by turns."""
    from hopefear.data.cache import cache_header, open_cache

    mapped: Any = open_cache(cache, verify=True)  # as training does
    if task == "parse":
        from hopefear.tasks.parse.cached import completed

        mapped = completed(mapped, cache_header(cache))
    memory = mapped.take(np.arange(len(mapped)))
    train = importlib.import_module(f"hopefear.tasks.{task}.task").train
    seconds: dict[str, list[float]] = {"memory": [], "mapped": []}
    for turn in range(4):  # the first one loads kernels
        weights = []
        for name, data in (("memory", memory), ("mapped", mapped)):
            clock = Clock()
            how = {"epochs": 2, "by_block": True, "calibrate": False, "on_event": [clock]}
            model = train(data, "perceptron", **how).model
            weights.append(model.predictor.arrays())
            if turn:
                seconds[name].append(clock.last)
        assert all(np.array_equal(weights[0][key], weights[1][key]) for key in weights[0])
    least = {name: min(values) for name, values in seconds.items()}
    print(json.dumps({**least, "speed": round(least["memory"] / least["mapped"], 3)}))


class Clock:
    """CPU seconds of the last pass."""

    last = 0.0

    def __init__(self) -> None:
        self._before = time.process_time()

    def __call__(self, event: dict[str, Any]) -> None:
        if "seconds" in event:  # a pass is over
            now = time.process_time()
            self.last, self._before = now - self._before, now


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--copies", type=int, help="of the text, instead of a task's own")
    parser.add_argument("--limit", type=int, help="megabytes allowed, instead of a task's own")
    parser.add_argument("--folder", help="where texts and caches lie")
    parser.add_argument("--data", type=Path, help="folder of the corpora")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        speed(*chosen.child)
        return
    for task in chosen.only:
        print(json.dumps({"task": task, **measured(task, chosen)}), flush=True)


def measured(task: str, chosen: argparse.Namespace) -> dict[str, Any]:
    case = CASES[task]
    text = text_of(task, chosen.data or common.data_folder())
    copies, limit = chosen.copies or case.copies, chosen.limit or case.limit
    with tempfile.TemporaryDirectory(dir=chosen.folder) as place:
        folder = Path(place)
        suffix = {"tag": "txt", "rerank": "jsonl", "parse": "conllu"}[task]
        sizes = {"small": 4, "large": copies}
        for name, n in sizes.items():
            with (folder / f"{name}.{suffix}").open("wb") as file:
                for _ in range(n):
                    file.write(text)

        def command(name: str) -> list[str]:
            words = ["--train", f"{folder}/{name}.{suffix}", "--cache", f"{folder}/{name}"]
            learner = ["--learner", "perceptron", "--epochs", "1", "--quiet"]
            program = [sys.executable, "-m", "hopefear", "train", task]
            return [*program, *words, *learner, *case.options, "--model", f"{folder}/m"]

        subprocess.run(command("small"), check=True)  # compiles, and makes the small cache
        results: dict[str, Any] = {"limit_mb": limit}
        results["text_mb"] = round((folder / f"large.{suffix}").stat().st_size / 2**20)
        results["first run"] = limited(command("large"), limit)
        caches = (folder / "large").glob("*")  # none where it could not be written
        results["cache_mb"] = round(sum(f.stat().st_blocks for f in caches) * 512 / 2**20)
        results["times"] = round(results["cache_mb"] / limit, 1)
        results["second run"] = limited(command("large"), limit)
        (cache,) = (folder / "small").iterdir()
        child = [sys.executable, __file__, "--child", task, str(cache)]
        results["warm"] = json.loads(subprocess.run(child, capture_output=True, check=True).stdout)
    return results


if __name__ == "__main__":
    main()

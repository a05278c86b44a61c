"""Sentences that memory cannot hold: what training takes, and how fast it is.

    python bench/out_of_core_tagging.py
    python bench/out_of_core_tagging.py --copies 10 --limit 100

A text is repeated until it is large, and ``hopefear train tag --cache DIR`` reads it, writes the
cache and makes an epoch, in a control group of ``--limit`` megabytes, cached parts of files among
them; then a second run trains from the cache that is there. ``times`` is the cache as a multiple of
the limit. ``speed`` compares CPU seconds of epochs over a part of the text, from the cache and in
memory, in the same order, by turns, the least of three; the weights must be equal. Linux, and root
for the control group (version 1). Classes: out_of_core.py.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import common
import numpy as np
from out_of_core import limited

OPTIONS = ["--hash-bits", "16", "--no-names", "--no-temperature"]


def speed(cache: str) -> None:
    """Epochs in memory and from the cache by turns."""
    from hopefear.data.cache import open_cache
    from hopefear.tasks.tag.task import train

    cached: Any = open_cache(cache, verify=True)  # as training does
    memory = cached.take(np.arange(len(cached)))
    seconds: dict[str, list[float]] = {"memory": [], "cache": []}
    for turn in range(4):  # the first one loads kernels
        weights = []
        for name, data in (("memory", memory), ("cache", cached)):
            clock = Clock()
            settings = {"epochs": 2, "by_block": True, "calibrate": False, "on_event": [clock]}
            model = train(data, "perceptron", **settings).model
            weights.append(model.predictor.arrays())
            if turn:
                seconds[name].append(clock.last)
        assert all(np.array_equal(weights[0][key], weights[1][key]) for key in weights[0])
    least = {name: min(values) for name, values in seconds.items()}
    print(json.dumps({**least, "speed": round(least["memory"] / least["cache"], 3)}))


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
    parser.add_argument("--copies", type=int, default=130, help="of the text")
    parser.add_argument("--limit", type=int, default=128, help="megabytes allowed")
    parser.add_argument("--folder", help="where text and caches lie")
    parser.add_argument("--data", type=Path, help="folder of the corpora")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        speed(chosen.child)
        return
    print(json.dumps(measured(chosen)))


def measured(chosen: argparse.Namespace) -> dict[str, Any]:
    corpus = (chosen.data or common.data_folder()) / "conll2000" / "train.txt.gz"
    with gzip.open(corpus) as file:
        text = file.read()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as scratch:
        folder = Path(scratch)
        for name, n in {"small": 4, "large": chosen.copies}.items():
            with (folder / f"{name}.txt").open("wb") as file:
                for _ in range(n):
                    file.write(text)

        def command(name: str) -> list[str]:
            words = ["--train", f"{folder}/{name}.txt", "--cache", f"{folder}/{name}"]
            learner = ["--learner", "perceptron", "--epochs", "1", "--quiet"]
            program = [sys.executable, "-m", "hopefear", "train", "tag"]
            return [*program, *words, *learner, *OPTIONS, "--model", f"{folder}/m"]

        subprocess.run(command("small"), check=True)  # compiles, and makes the small cache
        results: dict[str, Any] = {"limit_mb": chosen.limit}
        results["text_mb"] = round((folder / "large.txt").stat().st_size / 2**20)
        results["first run"] = limited(command("large"), chosen.limit)
        arrays = (folder / "large").glob("*/*")  # none where it could not be written
        results["cache_mb"] = round(sum(f.stat().st_size for f in arrays) / 2**20)
        results["times"] = round(results["cache_mb"] / chosen.limit, 1)
        results["second run"] = limited(command("large"), chosen.limit)
        (cache,) = (folder / "small").iterdir()
        child = [sys.executable, __file__, "--child", str(cache)]
        results["warm"] = json.loads(subprocess.run(child, capture_output=True, check=True).stdout)
    return results


if __name__ == "__main__":
    main()

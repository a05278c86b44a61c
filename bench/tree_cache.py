"""Trees from a cache against trees in memory: seconds to prepare them, seconds of a pass, bytes.

    python bench/tree_cache.py train.conllu

Both are visited in the same blocks, by turns, and must give the same model.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from hopefear.data.cache import cache_header, open_cache, source_of
from hopefear.data.mapped import stored_bytes
from hopefear.data.tree_rows import TreeDataset
from hopefear.data.treebank import read_treebank
from hopefear.data.treebank_parts import TreebankParts
from hopefear.tasks.parse.cached import TreeCache, completed
from hopefear.tasks.parse.task import dataset, train

PASSES = 2


def in_memory(path: str) -> TreeDataset:
    return dataset(read_treebank(path), 1)


def built(path: str, target: Path) -> TreeDataset:
    with TreeCache(target) as cache:
        for bank in TreebankParts(path):
            cache.add(bank)
        cache.write({"source": source_of(path), "options": {}}, 1)
    return completed(open_cache(target), cache_header(target))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("train")
    parser.add_argument("--learner", default="perceptron")
    parser.add_argument("--turns", type=int, default=3)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "cache")
        started = time.perf_counter()
        memory = in_memory(args.train)
        between = time.perf_counter()
        mapped = built(args.train, target)
        prepared = between - started, time.perf_counter() - between
        seconds: list[list[float]] = [[], []]
        for _ in range(args.turns):
            models = []
            for which, data in enumerate((memory, mapped)):
                begin = time.perf_counter()
                common = {"epochs": PASSES, "by_block": True, "calibrate": False}
                model = train(data, args.learner, **common).model
                seconds[which].append((time.perf_counter() - begin) / PASSES)
                models.append(model.predictor.arrays())
            same = all((models[0][k] == models[1][k]).all() for k in models[0])
            print("the weights are equal" if same else "THE WEIGHTS DIFFER")
        stat = os.stat(target)
        print(f"prepared, first run: memory {prepared[0]:.2f} s, cache {prepared[1]:.2f} s")
        print(f"a pass: memory {min(seconds[0]):.3f} s, cache {min(seconds[1]):.3f} s")
        print(f"arrays {stored_bytes(memory):,} bytes, {stat.st_blocks * 512:,} bytes on disk")


if __name__ == "__main__":
    main()

"""Work of reranking.py for a child process; prints one line of JSON.

    python bench/reranking_child.py extract FOLDER [--block-lists N]
    python bench/reranking_child.py large

``extract`` numbers the features of training lists and sees the others in them; ``large`` makes
36,000 lists of 50 candidates of 200 values, and one pass of the perceptron. Behind every step,
``steps`` has CPU seconds and peak memory (MB) since the process began, and ``anonymous_mb``, what
was held just then without pages of files. Linux only.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path
from typing import Any

import reranking_lists as lists

from hopefear.tasks.base import train
from hopefear.tasks.rerank.task import Reranking

SMALL = lists.Size(20, 200, 10, 50, 500)


class Steps:
    """CPU seconds and memory, step by step."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, float]] = {}

    def end(self, name: str) -> None:
        # Not ru_maxrss, which also counts the process that started this one.
        text = Path("/proc/self/status").read_text()
        kb = {key: int(n) for key, n in re.findall(r"(VmHWM|RssAnon):\s+(\d+)", text)}
        self.found[name] = {
            "cpu": time.process_time(),
            "peak_mb": kb["VmHWM"] / 1024,
            "anonymous_mb": kb["RssAnon"] / 1024,
        }


def extract(chosen: argparse.Namespace, steps: Steps) -> dict[str, Any]:
    """Number the features of the training lists, and see the others in them."""
    reading = chosen.block_lists, chosen.most
    data = lists.numbered(lists.read(chosen.folder, "train", *reading))
    steps.end("train")
    held_out = {}
    for part in ("dev", "test"):
        # As in prediction, a block is done with when the next one comes.
        held_out[part] = sum(
            lists.seen(block, data.features).n_candidates
            for block in lists.read(chosen.folder, part, *reading)
        )
        steps.end(part)
    return {
        "trees": data.n_candidates + sum(held_out.values()),
        "features": data.features.size,
        "values": len(data.rows.values),
    }


def large(chosen: argparse.Namespace, steps: Steps) -> dict[str, Any]:
    """One pass over lists that are as many as a whole treebank has."""
    train(
        Reranking(), lists.synthetic(SMALL), "perceptron", epochs=1
    )  # compiles what is not on disk yet
    steps.end("kernels")
    data = lists.synthetic(lists.LARGE)
    steps.end("data")
    model = train(Reranking(), data, "perceptron", epochs=1).model
    steps.end("pass")
    size = sum(array.nbytes for array in data.rows) / 2**20
    return {"values": len(data.rows.values), "arrays_mb": size, "nnz": model.nnz}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("what", choices=["extract", "large"])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--block-lists", type=int, default=lists.BLOCK_LISTS)
    parser.add_argument("--most", type=int, metavar="N", help="blocks of every file, at most")
    chosen = parser.parse_args()
    steps = Steps()
    steps.end("imports")
    if chosen.what == "extract" and chosen.folder is None:
        parser.error("extract needs the folder of the lists")
    results = (extract if chosen.what == "extract" else large)(chosen, steps)
    print(json.dumps({**results, "steps": steps.found}))


if __name__ == "__main__":
    main()

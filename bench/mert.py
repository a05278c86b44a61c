"""MERT on the validation lists: BLEU of each seed, CPU seconds, and those of one line search.

    python bench/mert.py FOLDER [--restarts 20] [--seeds 1,2,3] [--json FILE]

FOLDER is that of the Multi30k N-best lists. The peer, Moses' ``mert`` with 20 random starts and one
thread, reaches 41.47 to 41.51 on ``val`` in 57 to 63 CPU seconds.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from hopefear.data.lists.dataset import ListDataset
from hopefear.data.moses.reader import read_moses
from hopefear.metrics.lists import Bleu
from hopefear.translation.features import learned
from hopefear.translation.tuners.mert import Climber, DenseLists, Mert
from hopefear.translation.tuners.problem import TuningProblem

# The weights Moses begins with, for the features of these lists.
USUAL = np.array([-1.0, *[0.2] * 5, *[0.3] * 7, 0.5])
METRIC = Bleu(tokenize="none")


def read(folder: Path, name: str) -> ListDataset:
    """Lists of one set in their dense features."""
    lists = read_moses(
        folder / f"{name}.nbest.xz", folder / f"{name}.en", metric=Bleu(tokenize="none")
    )
    return learned(lists, METRIC, ("dense",))


def search_ms(problem: TuningProblem, turns: int = 20) -> dict[str, float]:
    """CPU milliseconds of one line search, the least of several: a coordinate, any direction."""
    lists = DenseLists(problem)
    climber = Climber(lists, problem.start, problem.start)
    drawn = np.random.default_rng(1).normal(size=len(problem.start)) / lists.scale
    ways = {"coordinate": np.eye(len(drawn))[-1], "random": drawn}
    return {
        name: 1e3
        * min(
            _cpu_seconds(lambda way=way: climber.look(lists.slopes(way), way)) for _ in range(turns)
        )
        for name, way in ways.items()
    }


def _cpu_seconds(task: Any) -> float:
    began = time.process_time()
    task()
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--json", type=Path)
    parser.add_argument("-p", action="append", default=[], metavar="KEY=VALUE", dest="more")
    args = parser.parse_args()
    parameters = {k: json.loads(v) for k, v in (pair.split("=", 1) for pair in args.more)}
    problem = TuningProblem(read(args.folder, "val"), METRIC, USUAL)
    tests = {name: read(args.folder, f"test_{name}_flickr") for name in ("2016", "2017")}
    mert = Mert(restarts=args.restarts, **parameters)
    Mert(restarts=1, rounds=1).tune(problem)  # compiles what is not on disk yet
    results: dict[str, Any] = {"signature": mert.signature(), "search_ms": search_ms(problem)}
    print(results["signature"], {k: round(v, 3) for k, v in results["search_ms"].items()})
    rows = []
    for seed in map(int, args.seeds.split(",")):
        began = time.process_time()
        tuned = mert.tune(problem, seed=seed)
        row = {"seed": seed, "cpu_s": round(time.process_time() - began, 2)}
        row["searches"] = sum(event["searches"] for event in tuned.history)
        row["val"] = problem.score(tuned.weights)
        row |= {name: problem.score(tuned.weights, data) for name, data in tests.items()}
        row["starts_mean"], row["starts_least"] = float(np.mean(tuned.runs)), min(tuned.runs)
        rows.append(row)
        print({k: round(v, 3) for k, v in row.items()}, flush=True)
    results["rows"] = rows
    results["mean"] = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
    print("mean", {k: round(v, 3) for k, v in results["mean"].items()})
    if args.json:
        args.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()

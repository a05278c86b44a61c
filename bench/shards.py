"""Shards against one learner on chunks or entities: F1 after as many passes, time of a pass.

    python bench/shards.py                                  # F1, 4 shards, seed 1
    python bench/shards.py --learners sapo --mix uniform mistakes --seeds 3
    python bench/shards.py --time                           # seconds of a pass, 1 and 2 shards
    python bench/shards.py --time --learners parse          # the same for second-order trees
    python bench/shards.py --time --corpus jnlpba --features bioner     # on twice as many words
    python bench/shards.py --apart                          # the most that two shards could gain

F1 of the test text is that after 10 passes, and after 15 for shards. Times are those of the
quickest of eleven passes: wall time, which means something on a quiet machine only, and processor
time along the longest path; shards run as threads. ``--apart``: two learners that have nothing in
common, each with half of a pass, on two threads, beside one learner with all of it; least of six.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import common
import numpy as np
import sequence_quality_rows as plan

from hopefear.data.treebank import read_treebank
from hopefear.recipes import Scale
from hopefear.tasks import recipe
from hopefear.tasks.parse import task as parse_task
from hopefear.tasks.tag.task import Tagging, train
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes
from hopefear.training.shards import MIXES, Shards
from hopefear.training.workers import Threads
from hopefear_papers.sapo.plan import Problem, Reader

LEARNERS = ("perceptron", "sapo", "vrda")
PASSES, MORE = 10, 15
PASSES_TIMED = 12
SENTENCES = 1000  # of trees


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--learners", nargs="+", default=LEARNERS, metavar="NAME")
    parser.add_argument("--shards", type=int, default=4, metavar="K")
    parser.add_argument("--mix", nargs="+", choices=("auto", *MIXES), default=("auto",))
    parser.add_argument("--rounds", nargs="+", type=int, default=(1,), metavar="R")
    parser.add_argument("--select", type=int, metavar="N", help="features to keep")
    parser.add_argument("--seeds", type=int, default=1, metavar="N")
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the corpora")
    parser.add_argument("--corpus", choices=plan.CORPORA, default="conll2000")
    parser.add_argument("--features", default="chunking")
    parser.add_argument("--no-serial", action="store_true", help="shards alone")
    parser.add_argument("--time", action="store_true", help="measure time, not F1")
    parser.add_argument("--apart", action="store_true", help="time of learners that never merge")
    return parser.parse_args()


def main() -> None:
    chosen = arguments()
    if chosen.time and list(chosen.learners) == ["parse"]:
        for row in timed(trees(chosen.data or common.data_folder()), "mira", parse_task.train):
            print(json.dumps({"learner": "parse", **row}), flush=True)
        return
    problem = read(chosen.data or common.data_folder(), chosen.corpus, chosen.features)
    for name in chosen.learners:
        if chosen.apart:
            rows = [apart(problem.train, name)]
        else:
            rows = timed(problem, name) if chosen.time else scored(problem, name, chosen)
        for row in rows:
            print(json.dumps({"learner": name, **row}), flush=True)


def read(folder: Path, corpus: str, features: str) -> Problem:
    return Reader(plan.task(corpus, features), folder).read()


def trees(folder: Path) -> Any:
    """The first sentences of English EWT, whose search is long and whose features are few."""
    bank = read_treebank(folder / "ud_english_ewt/train.conllu.gz").take(np.arange(SENTENCES))
    return SimpleNamespace(train=parse_task.dataset(bank, order=2))


def scored(problem: Problem, name: str, chosen: argparse.Namespace) -> Any:
    """F1 after the passes of one learner and of shards, for every seed and way to mix."""
    for seed in range(1, chosen.seeds + 1):
        how: dict[str, Any] = {"seed": seed, "dev": problem.test, "calibrate": False}
        if not chosen.no_serial:
            serial = train(problem.train, name, epochs=PASSES, **how)
            yield {"seed": seed, "shards": 1, **scores(serial)}
        for mix, rounds in itertools.product(chosen.mix, chosen.rounds):
            mixed = None if mix == "auto" else mix
            shards = Shards(chosen.shards, mixed, rounds, chosen.select)
            trained = train(problem.train, name, epochs=MORE, shards=shards, **how)
            yield {"seed": seed, **trained.model.about["shards"], **scores(trained)}


def scores(trained: Any) -> dict[str, Any]:
    curve = [round(event["dev"]["f1"], 3) for event in trained.fit.history]
    return {
        f"f1 {PASSES}": curve[PASSES - 1],
        **({f"f1 {MORE}": curve[MORE - 1]} if len(curve) >= MORE else {}),
        "by_pass": curve,
        "nnz": trained.model.nnz,
    }


def apart(data: Any, name: str) -> dict[str, float]:
    """Seconds of a pass of one learner, and of two that each make half of it."""
    learner = recipe(name, "tag").build(Scale(n=len(data)))
    passes, structure = Passes(data), Tagging().structure(data)
    trainers = [OnlineTrainer(structure, learner) for _ in range(2)]
    for trainer in trainers:
        trainer.learn_pass(passes)
    order, least = passes.order(1), {}
    with ThreadPoolExecutor(2) as pool:
        for _ in range(6):
            for key, orders in (("one", [order]), ("two", [order[::2], order[1::2]])):
                started = time.perf_counter()
                runs = zip(trainers, orders, strict=False)
                list(pool.map(lambda run: run[0].learn(passes.rows, run[1]), runs))
                now = time.perf_counter() - started
                least[key] = min(now, least.get(key, now))
    return {key: round(value, 3) for key, value in least.items()} | {
        "times": round(least["one"] / least["two"], 2)
    }


class Clocked(Threads):
    """Threads that add up the processor seconds of the slowest shard of each round and merge."""

    longest = 0.0

    def learn(self, epoch: int, stretches: Any, steps: int) -> Any:
        self._clocks: dict[int, float] = {}
        try:
            yield from super().learn(epoch, stretches, steps)
        finally:
            self.longest += max(self._clocks.values())

    def _each(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        self._clocks = {}
        answers = super()._each(method, arguments)
        self.longest += max(self._clocks.values())
        return answers

    def _call(self, shard: Any, method: str, arguments: tuple[Any, ...]) -> Any:
        started = time.thread_time()
        answer = super()._call(shard, method, arguments)
        seconds = time.thread_time() - started
        self._clocks[id(shard)] = self._clocks.get(id(shard), 0.0) + seconds
        return answer


def timed(problem: Any, name: str, train: Any = train, **params: Any) -> Any:
    """Seconds of the quickest of some passes, with one learner and with two shards.

    Beside them the processor seconds on the longest path: those of the thread that merges, and of
    the slowest shard of each step. Where other programs share the cores, only these mean something.
    """
    least: dict[str, list[float]] = {}
    for n in (1, 2):
        pool, marks, walls = Clocked(), [], []

        def seen(event: dict[str, Any], pool: Any = pool, marks: Any = marks, walls: Any = walls):
            if "seconds" in event:
                marks.append(time.thread_time() + pool.longest)
                walls.append(event["seconds"])

        shards = Shards(n, workers=pool) if n > 1 else None
        how: dict[str, Any] = {
            "epochs": PASSES_TIMED,
            "calibrate": False,
            "on_event": [seen],
            **params,
        }
        train(problem.train, name, shards=shards, **how)
        seconds = {"seconds": min(walls[1:]), "path": float(np.diff(marks).min())}
        for key, value in seconds.items():
            least.setdefault(key, []).append(value)
        ratios = {f"times {key}": round(all_[0] / all_[-1], 2) for key, all_ in least.items()}
        yield {"shards": n, **{k: round(v, 3) for k, v in seconds.items()}, **ratios}


if __name__ == "__main__":
    main()

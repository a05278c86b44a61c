"""Blocks of examples on two threads: seconds of passes beside one by one, and scores over seeds.

    python bench/blocks.py                        # wall time; the machine must be idle
    python bench/blocks.py --only crf --blocks 8 32 --repeats 5
    python bench/blocks.py --scores 1 2 3 4 5     # F1, or UAS of parsers, with these seeds

Passes start from the same weights, those of one pass one by one, and take turns: one example at a
time, then every block with one thread and with ``--jobs``. The minimum counts. ``ratio`` is how
many times as fast threads are as one example at a time, ``cost`` the same of one thread in
processor time, which other programs hardly disturb, and ``alone`` the share of the time of one
thread that threads could not share: going through ticks. Scores are those of the test part, which
chooses nothing. Chunking is learned from CoNLL-2000, parsing from English EWT, classes from IMDB.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hopefear.experiments.frame import find_data
from hopefear.recipes import Scale
from hopefear.tasks import recipe
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes


class Row(NamedTuple):
    """A learner on a corpus, the block it is tried with, and passes for scores."""

    corpus: str
    learner: str
    params: dict[str, Any]
    block: int
    epochs: int
    examples: int | None = None  # that passes are timed on


ROWS = {
    "sapo": Row("conll2000", "sapo", {}, 16, 10),
    "crf": Row("conll2000", "crf", {}, 16, 10),
    "crf-adagrad": Row("conll2000", "crf", {"rule": "adagrad"}, 16, 10),
    "nbest-mira": Row("conll2000", "nbest-mira", {}, 16, 10),
    "perceptron": Row("conll2000", "perceptron", {}, 16, 10),
    "parse": Row("ewt", "mira", {}, 16, 5, 2000),
    "classes": Row("random", "perceptron", {}, 64, 5),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the corpora")
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="ROW")
    parser.add_argument("--blocks", nargs="+", type=int, metavar="N", help="instead of a row's own")
    parser.add_argument("--jobs", type=int, default=2, metavar="N")
    parser.add_argument("--repeats", type=int, default=4, metavar="N")
    parser.add_argument("--scores", nargs="+", type=int, metavar="SEED")
    parser.add_argument("--epochs", type=int, metavar="N", help="passes for scores")
    chosen = parser.parse_args()
    folder = find_data(chosen.data)
    if folder is None:
        raise SystemExit("no data; set HOPEFEAR_DATA, or give --data the folder of the corpora")
    corpora: dict[str, Any] = {}
    for name in chosen.only:
        row = ROWS[name]
        if row.corpus not in corpora:
            corpora[row.corpus] = CORPORA[row.corpus](folder)
        corpus, sizes = corpora[row.corpus], chosen.blocks or [row.block]
        if chosen.scores:
            for seed in chosen.scores:
                for block in (1, *sizes):
                    value = corpus.score(row, block, seed, chosen.epochs or row.epochs)
                    result = {"row": name, "block": block, "seed": seed, corpus.metric: value}
                    print(json.dumps(result), flush=True)
        else:
            for figures in timed(corpus, row, sizes, chosen.jobs, chosen.repeats):
                print(json.dumps({"row": name, **figures}), flush=True)


def timed(corpus: Any, row: Row, sizes: list[int], jobs: int, repeats: int) -> list[dict[str, Any]]:
    """Seconds of a pass with each block, beside those of one example at a time."""
    data = corpus.data
    if row.examples is not None and row.examples < len(data):
        data = data.take(np.arange(row.examples))
    passes = Passes(data, seed=1)
    structure = corpus.structure(data)
    learner = recipe(row.learner, corpus.task).build(Scale(n=len(data)), **row.params)
    first = OnlineTrainer(structure, learner)
    first.learn_pass(passes, 0)
    state = first.arrays()
    ways = [(1, 1), *((block, n) for block in sizes for n in (1, jobs))]
    best: dict[tuple[int, int], tuple[float, float]] = {}
    trainers = {
        (block, n): OnlineTrainer(structure, replace(learner, block=block), n_jobs=n)
        for block, n in ways
    }
    for way in ways:  # compile
        rows, order = next(passes.pieces(1))
        trainers[way].learn(rows, order[:40])
    for _ in range(repeats):
        for way in ways:
            trainer = trainers[way]
            trainer.restore(state)
            wall, cpu = time.perf_counter(), time.process_time()
            trainer.learn_pass(passes, 1)
            now = time.perf_counter() - wall, time.process_time() - cpu
            before = best.get(way, now)
            best[way] = min(now[0], before[0]), min(now[1], before[1])
    for trainer in trainers.values():
        trainer.close()
    (serial, serial_cpu), results = best[1, 1], []
    for block in sizes:
        one, many = best[block, 1], best[block, jobs]
        results.append(
            {
                "block": block,
                "jobs": jobs,
                "seconds": [round(serial, 3), round(one[0], 3), round(many[0], 3)],
                "cpu": [round(serial_cpu, 3), round(one[1], 3), round(many[1], 3)],
                "ratio": round(serial / many[0], 2),
                "cost": round(one[1] / serial_cpu, 2),
            }
        )
    return results


class Chunking:
    """CoNLL-2000 with the templates for chunking."""

    task, metric = "tag", "f1"

    def __init__(self, folder: Path) -> None:
        from hopefear.data.token_files import read_sentences
        from hopefear.tasks.tag.task import dataset

        self.text, self.test = (
            read_sentences(
                folder / f"conll2000/{name}.txt.gz", columns=("word", "pos", "label")
            ).sentences
            for name in ("train", "test")
        )
        self.data = dataset(self.text, "chunking")

    def structure(self, data: Any) -> Any:
        from hopefear.tasks.tag.task import Tagging

        return Tagging().structure(data)

    def score(self, row: Row, block: int, seed: int, epochs: int) -> float:
        from hopefear.tasks.tag.task import scores, train

        params = {**row.params, "block": block}
        trained = train(self.data, row.learner, params, epochs=epochs, seed=seed, calibrate=False)
        held = trained.model.encode(self.test, "label")
        return round(scores(held, trained.model.decoder().best(held.rows), "bio")["f1"], 3)


class Parsing:
    """English EWT, trees of the second order."""

    task, metric = "parse", "uas"

    def __init__(self, folder: Path) -> None:
        from hopefear.data.treebank import read_treebank
        from hopefear.tasks.parse.task import dataset

        self.bank, self.test = (
            read_treebank(folder / f"ud_english_ewt/{name}.conllu.gz") for name in ("train", "test")
        )
        self.data = dataset(self.bank.take(np.arange(2000)), order=2)

    def structure(self, data: Any) -> Any:
        from hopefear.tasks.parse.task import Parsing as Task

        return Task(data.kind).structure(data)

    def score(self, row: Row, block: int, seed: int, epochs: int) -> float:
        from hopefear.metrics import Dependencies, Trees
        from hopefear.tasks.parse.task import train

        params = {**row.params, "block": block}
        model = train(
            self.data, row.learner, params, epochs=epochs, seed=seed, calibrate=False
        ).model
        heads, relations = model.parse(self.test)
        gold, metric = Trees.of(self.test), Dependencies(True)
        stats = metric.stats(gold, gold._replace(heads=heads, relations=relations))
        return round(float(metric.scores(stats)["uas"]), 3)


class Classes:
    """Two classes on random data of many sparse features."""

    task, metric = "classify", "accuracy"

    def __init__(self, folder: Path) -> None:
        from hopefear.data.generators import sparse_linear

        whole = sparse_linear(60_000, 200_000, per_row=(50, 150), true_weights=2_000, seed=1)
        self.data, self.test = whole.dataset().take(np.arange(50_000)), whole.dataset()

    def structure(self, data: Any) -> Any:
        from hopefear.structures.classes import Binary

        return Binary(data.n_features)


CORPORA = {"conll2000": Chunking, "ewt": Parsing, "random": Classes}


if __name__ == "__main__":
    main()

"""Blocks of examples on threads: seconds of passes beside one by one, and scores over seeds.

    python bench/blocks.py                        # wall time: the machine must be idle
    python bench/blocks.py --only crf --blocks 8 32 --repeats 5
    python bench/blocks.py --corpus jnlpba        # twice as many sentences, and twice as many words
    python bench/blocks.py --scores 1 2 3 4 5     # F1, or UAS of parsers, with these seeds

Passes start from the same weights, those of one pass one by one, and take turns: one example at a
time, then every block with one thread and with ``--jobs``. Each is made after another one, which
brings weights into the caches of the cores that move them. The minimum counts. ``ratio`` says how
many times as fast threads are as one example at a time, in wall time; ``cost`` what a block costs
on one thread, in processor time, which other programs hardly disturb. ``templates`` is reading, of
a packed file and of a plain one, and applying templates, with one thread and with ``--jobs``.
Scores are those of the test part, which chooses nothing. Chains are learned from ``--corpus``,
trees from English EWT, and classes from random rows, whose search is trivial: there threads are not
expected to pay. About 5 minutes, kernels compiled.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from hopefear.recipes import Scale
from hopefear.tasks import recipe
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes
from hopefear_papers.frame import find_data

SENTENCES = 1000  # of trees


class Row(NamedTuple):
    """A learner on a corpus, the block it is tried with, and passes for scores."""

    corpus: str
    learner: str
    params: dict[str, Any]
    block: int
    epochs: int


ROWS = {
    "sapo": Row("chains", "sapo", {}, 8, 10),
    "crf": Row("chains", "crf", {}, 8, 10),
    "crf-adagrad": Row("chains", "crf", {"rule": "adagrad"}, 8, 10),
    "nbest-mira": Row("chains", "nbest-mira", {}, 8, 10),
    "perceptron": Row("chains", "perceptron", {}, 8, 10),
    "parse": Row("trees", "mira", {}, 8, 5),
    "classes": Row("random", "perceptron", {}, 64, 5),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the corpora")
    names = ["templates", *ROWS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="ROW")
    parser.add_argument("--corpus", choices=tuple(TEXTS), default="conll2000", help="of chains")
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
        if name == "templates":
            if not chosen.scores:
                text = Text(folder, *TEXTS[chosen.corpus])
                print(json.dumps(reading(text, chosen.jobs, chosen.repeats)), flush=True)
            continue
        row = ROWS[name]
        if row.corpus not in corpora:
            corpora[row.corpus] = CORPORA[row.corpus](folder, chosen.corpus)
        corpus, sizes = corpora[row.corpus], chosen.blocks or [row.block]
        if chosen.scores and hasattr(corpus, "score"):
            for seed in chosen.scores:
                for block in (1, *sizes):
                    value = corpus.score(row, block, seed, chosen.epochs or row.epochs)
                    result = {"row": name, "block": block, "seed": seed, corpus.metric: value}
                    print(json.dumps(result), flush=True)
        elif not chosen.scores:
            for figures in timed(corpus, row, sizes, chosen.jobs, chosen.repeats):
                print(json.dumps({"row": name, **figures}), flush=True)


def timed(corpus: Any, row: Row, sizes: list[int], jobs: int, repeats: int) -> list[dict[str, Any]]:
    """Seconds of a pass with each block, beside those of one example at a time."""
    data = corpus.data
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
            trainer.learn_pass(
                passes, 1
            )  # weights come into the caches of the cores that move them
            wall, cpu = time.perf_counter(), time.process_time()
            trainer.learn_pass(passes, 2)
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


def reading(corpus: Text, jobs: int, repeats: int) -> dict[str, Any]:
    """Seconds from a text file to its attributes, packed or not, and of templates alone."""
    best: dict[tuple[str, int], float] = {}
    with tempfile.TemporaryDirectory() as folder:
        packed, plain = corpus.path("train"), Path(folder) / "train.txt"
        plain.write_bytes(gzip.decompress(packed.read_bytes()))
        for _ in range(repeats + 1):
            for key, path in (("packed", packed), ("plain", plain)):
                for n in (1, jobs):
                    start = time.perf_counter()
                    text = corpus.read(path, n)
                    middle = time.perf_counter()
                    data = corpus.encode(text)
                    end = time.perf_counter()
                    del text, data  # after the clock was looked at
                    for what, now in ((key, end - start), ("templates", end - middle)):
                        best[what, n] = min(now, best.get((what, n), now))
    figures: dict[str, Any] = {"row": "templates", "jobs": jobs}
    for what in ("packed", "plain", "templates"):
        one, many = best[what, 1], best[what, jobs]
        figures[what] = {"seconds": [round(one, 3), round(many, 3)], "ratio": round(one / many, 2)}
    return figures


class Text:
    """Labelled sentences, and the templates for them."""

    def __init__(self, folder: Path, file: str, columns: tuple[str, ...], features: str) -> None:
        self.folder, self.file, self.columns, self.features = folder, file, columns, features

    def path(self, name: str) -> Path:
        return self.folder / self.file.format(name)

    def read(self, path: Path, jobs: int = 1) -> Any:
        from hopefear.data.token_files import read_sentences

        return read_sentences(path, columns=self.columns, n_jobs=jobs).sentences

    def encode(self, text: Any) -> Any:
        from hopefear.tasks.tag.task import dataset

        return dataset(text, self.features)


TEXTS = {
    "conll2000": ("conll2000/{}.txt.gz", ("word", "pos", "label"), "chunking"),
    "jnlpba": ("jnlpba/{}.iob2.gz", ("word", "label"), "bioner"),
}


class Tagging(Text):
    """A corpus of phrases or entities, with the templates for it."""

    task, metric = "tag", "f1"

    def __init__(self, folder: Path, corpus: str) -> None:
        super().__init__(folder, *TEXTS[corpus])
        self.data, self.test = (
            self.encode(self.read(self.path("train"))),
            self.read(self.path("test")),
        )

    def structure(self, data: Any) -> Any:
        from hopefear.tasks.tag.task import Tagging as Task

        return Task().structure(data)

    def score(self, row: Row, block: int, seed: int, epochs: int) -> float:
        from hopefear.tasks.tag.task import scores, train

        params = {**row.params, "block": block}
        trained = train(self.data, row.learner, params, epochs=epochs, seed=seed, calibrate=False)
        held = trained.model.encode(self.test, "label")
        return round(scores(held, trained.model.decoder().best(held.rows), "bio")["f1"], 3)


class Parsing:
    """The first sentences of English EWT, trees of the second order."""

    task, metric = "parse", "uas"

    def __init__(self, folder: Path, corpus: str) -> None:
        from hopefear.data.treebank import read_treebank
        from hopefear.tasks.parse.task import dataset

        bank, self.test = (
            read_treebank(folder / f"ud_english_ewt/{name}.conllu.gz") for name in ("train", "test")
        )
        self.data = dataset(bank.take(np.arange(SENTENCES)), order=2)

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

    task = "classify"

    def __init__(self, folder: Path, corpus: str) -> None:
        from hopefear.data.generators import sparse_linear

        self.data = sparse_linear(
            50_000, 200_000, per_row=(50, 150), true_weights=2_000, seed=1
        ).dataset()

    def structure(self, data: Any) -> Any:
        from hopefear.structures.classes import Binary

        return Binary(data.features.size)


CORPORA = {"chains": Tagging, "trees": Parsing, "random": Classes}


if __name__ == "__main__":
    main()

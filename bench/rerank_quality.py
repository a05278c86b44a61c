"""Scores of rerankers on the parse lists at their defaults, passes chosen on dev.

    python bench/rerank_quality.py
    python bench/rerank_quality.py --only maxent vrda --seeds 5 --features ptb
    python bench/rerank_quality.py --only maxent perceptron vrda --folds 5

For each learner: F of dev and test after the pass whose mean F on dev is highest, mean and
deviation over seeds, non-zero weights, and CPU seconds of all passes of one seed. Test lists decide
nothing. With ``--folds`` also F over all lists of train, dev and test by cross-validation in
documents, with the same number of passes.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import common
import numpy as np

from hopefear.core.learner import Learner
from hopefear.data.lists.dataset import ListDataset, encoded
from hopefear.data.lists.files import read_lists
from hopefear.metrics.lists import metric_named
from hopefear.recipes import LIST_RECIPES
from hopefear.recipes.scales import scale_of
from hopefear.structures.nbest import NBest
from hopefear.tasks import recipe
from hopefear.tasks.rerank.prepare import TREE_FEATURES, dataset
from hopefear.tasks.rerank.task import scores
from hopefear.training.decoders.lists import ListDecoder
from hopefear.training.online import OnlineTrainer
from hopefear_papers.frame import find_data

METRIC = metric_named("parseval")
PARTS = ("train", "dev", "test")


def main() -> None:
    chosen = arguments()
    folder = find_data(chosen.data)
    if folder is None:
        raise SystemExit("no data; set HOPEFEAR_DATA, or give --data the folder of the corpora")
    data = corpus(folder / "ptb-nbest", chosen.features)
    print(f"{data['train']!r}", file=sys.stderr)
    results = []
    for name in chosen.only or online():
        result = measured(name, data, chosen.seeds, chosen.passes, chosen.sparse_average)
        if chosen.folds:
            result["folds"] = folds(name, data, chosen.folds, result["passes"], chosen)
        print(show(result), file=sys.stderr, flush=True)
        results.append(result)
    if chosen.json:
        report = {"rows": results, "features": chosen.features, "machine": common.machine()}
        Path(chosen.json).write_text(json.dumps(report) + "\n", "utf-8")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--data", type=Path, metavar="DIR", help="folder of the corpora")
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=online(), help="learners")
    parser.add_argument("--features", default=TREE_FEATURES, metavar="SET")
    parser.add_argument("--seeds", type=int, default=5, metavar="N")
    parser.add_argument("--passes", type=int, default=10, metavar="N", help="at most")
    parser.add_argument("--folds", type=int, default=0, metavar="N", help="cross-validate too")
    parser.add_argument("--on-last-support", action="store_true", help="sparse averages")
    parser.add_argument("--json", metavar="FILE", help="also write as JSON")
    return parser.parse_args()


def online() -> list[str]:
    return [name for name in LIST_RECIPES if isinstance(recipe(name, "rerank").build(), Learner)]


def corpus(folder: Path, features: str) -> dict[str, ListDataset]:
    paths = {part: folder / f"{part}.jsonl.xz" for part in PARTS}
    train = dataset(read_lists(paths["train"]), features)
    held_out = {part: encoded(read_lists(paths[part]), train.features) for part in PARTS[1:]}
    return {"train": train, **held_out}


def learner(name: str, data: ListDataset, sparse: bool) -> Learner:
    parameters = {"sparse_average": True} if sparse else {}
    built = recipe(name, "rerank").build(scale_of(data), **parameters)
    assert isinstance(built, Learner)
    return built


def measured(
    name: str, data: dict[str, ListDataset], seeds: int, passes: int, sparse: bool
) -> dict[str, Any]:
    """All seeds, pass by pass: (F on dev, F on test, non-zeros)."""
    train, curves, seconds = data["train"], [], []
    built = learner(name, train, sparse)
    for seed in range(1, seeds + 1):
        trainer = OnlineTrainer(NBest(train.features.size), built)
        rng, curve, seconds_spent = np.random.default_rng(seed), [], 0.0
        for _ in range(passes):
            order = rng.permutation(len(train))
            start = time.process_time()
            trainer.learn(train.rows, order)
            seconds_spent += time.process_time() - start
            predictor = trainer.predictor()
            curve.append([*(value(data[part], predictor) for part in PARTS[1:]), predictor.nnz])
        curves.append(curve)
        seconds.append(seconds_spent)
    table = np.array(curves)
    best = int(table[:, :, 0].mean(axis=0).argmax())
    dev, test, nnz = table[:, best].T
    return {
        "learner": name,
        "signature": built.signature(),
        "passes": best + 1,
        "dev": float(dev.mean()),
        "test": float(test.mean()),
        "deviation": float(test.std()),
        "nnz": float(nnz.mean()),
        "seconds": min(seconds),
        "by_pass": table.mean(axis=0).tolist(),
    }


def value(data: ListDataset, predictor: Any) -> float:
    best = ListDecoder(NBest(data.features.size), predictor).predict(data.rows)
    return scores(data, best, METRIC)["f1"]


def folds(
    name: str, data: dict[str, ListDataset], n: int, passes: int, chosen: argparse.Namespace
) -> float:
    """F over all lists, each by a reranker that saw no list of its document."""
    counts, parts = np.zeros(3), list(data.values())
    documents = [np.array([name.split(".")[0] for name in part.ids or ()]) for part in parts]
    named = sorted(set(np.concatenate(documents).tolist()))
    fold = {document: k % n for k, document in enumerate(named)}
    for k in range(n):
        held = [np.array([fold[d] == k for d in part]) for part in documents]
        built = learner(name, data["train"], chosen.sparse_average)
        trainer = OnlineTrainer(NBest(data["train"].features.size), built)
        rng = np.random.default_rng(k)
        for _ in range(passes):
            for p in rng.permutation(len(parts)):
                trainer.learn(parts[p].rows, rng.permutation(np.flatnonzero(~held[p])))
        predictor = trainer.predictor()
        for part, out in zip(parts, held, strict=True):
            best = ListDecoder(NBest(part.features.size), predictor).predict(part.rows)
            assert part.counts is not None
            counts += part.counts[(part.rows.starts[:-1] + best)[out]].sum(axis=0)
    return float(METRIC.scores(counts)["f1"])


def show(result: dict[str, Any]) -> str:
    folded = f"  folds {result['folds']:.2f}" if "folds" in result else ""
    return (
        f"{result['learner']:14s} dev {result['dev']:.2f}  test {result['test']:.2f} ± "
        f"{result['deviation']:.2f}  nnz {result['nnz']:9,.0f}  pass {result['passes']:2d}  "
        f"{result['seconds']:.2f} s{folded}"
    )


if __name__ == "__main__":
    main()

"""Whole tasks of reranking.py: training in all, extraction, prediction, lists of texts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np
import reranking_lists as lists

from hopefear.data.files import open_bytes
from hopefear.data.lists.dataset import ListDataset
from hopefear.data.lists.files import read_lists
from hopefear.metrics.lists import metric_named
from hopefear.tasks.base import train
from hopefear.tasks.rerank.model import RerankModel
from hopefear.tasks.rerank.prepare import dataset
from hopefear.tasks.rerank.task import Reranking, scores

CHILD = Path(__file__).with_name("reranking_child.py")
TEXTS = "multi30k-nbest"


class Parts(NamedTuple):
    train: ListDataset
    dev: ListDataset
    test: ListDataset


def parts(folder: Path, max_lists: int | None) -> Parts:
    """Lists of parses in memory; ``max_lists`` limits the blocks of each part."""
    first = lists.numbered(lists.read(folder, "train", max_lists=max_lists))
    held_out = (lists.read(folder, name, max_lists=max_lists) for name in ("dev", "test"))
    return Parts(first, *(lists.seen(blocks, first.features) for blocks in held_out))


def training(data_parts: Parts, learner: str, seeds: range) -> dict[str, list[float]]:
    """CPU seconds of training with the defaults, dev scored after every pass; F on dev and test."""
    few = np.arange(4)
    train(
        Reranking(), data_parts.train.take(few), learner, epochs=1, dev=data_parts.dev.take(few)
    )  # compiles
    results: dict[str, list[float]] = {"seconds": [], "dev": [], "test": [], "nnz": []}
    for seed in seeds:
        data, held = (
            data_parts.train.replaced(),
            data_parts.dev.replaced(),
        )  # with no digest known yet
        models: list[RerankModel] = []

        def work(data=data, held=held, seed=seed, models=models) -> None:
            models.append(train(Reranking(), data, learner, seed=seed, dev=held).model)

        results["seconds"].append(common.cpu_seconds(work))
        for part in ("dev", "test"):
            of = getattr(data_parts, part)
            results[part].append(scores(of, models[0].predict(of), models[0].metric)["f1"])
        results["nnz"].append(float(models[0].nnz))
    return results


def extraction(
    folder: Path, block_lists: int, repeats: int, max_lists: int | None = None
) -> dict[str, Any]:
    """CPU seconds and memory of the quickest of several processes that extract all features."""
    runs = []
    command = [sys.executable, str(CHILD), "extract", str(folder)]
    command += ["--block-lists", str(block_lists)]
    command += [] if max_lists is None else ["--most", str(max_lists)]
    for _ in range(repeats):
        process = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        runs.append(json.loads(process.stdout))
    return min(runs, key=lambda run: run["steps"]["test"]["cpu"])


def predict_tasks(kind: str, path: Path, model: RerankModel, folder: Path) -> dict[str, Any]:
    """Seconds to rank a file, in Python and by the command."""
    saved = folder / f"{kind}.model"
    model.save(saved)
    command = [sys.executable, "-m", "hopefear", "predict", "--model", str(saved)]
    command += ["--input", str(path), "--output", str(folder / f"{kind}.out")]

    def in_python() -> None:
        for block in read_lists(path):
            model.predict(block)

    in_python()  # compiles what is not on disk yet, as does the command
    common.run(command)
    return {
        kind: lambda: common.cpu_seconds(in_python),
        f"{kind} process": lambda: common.run(command).seconds,
    }


def write_texts(data: Path, target: Path, max_lines: int | None = None) -> int:
    """Translations of Multi30k as lists in JSON; the number of candidates."""
    references = (data / "val.en").read_text("utf-8").splitlines()[:max_lines]
    candidates: list[dict[str, Any]] = []
    total = now = 0
    with open(target, "w", encoding="utf-8") as out:

        def put() -> None:
            record = {"id": str(now), "reference": references[now], "candidates": candidates}
            out.write(json.dumps(record, ensure_ascii=False) + "\n")

        for i, candidate in moses(data / "val.nbest.xz"):
            if i != now:
                put()
                candidates, now = [], i
                if i >= len(references):
                    return total
            candidates.append(candidate)
            total += 1
        put()
    return total


def moses(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Number of the list and candidate of each line of an N-best list of Moses."""
    with open_bytes(path) as lines:
        for line in lines:
            number, text, given, score, *_ = line.decode("utf-8").split(" ||| ")
            features: dict[str, float] = {}
            name = ""
            for word in given.split():
                if word.endswith("="):
                    name, k = word[:-1], 0
                else:
                    features[f"{name}.{k}"] = float(word)
                    k += 1
            yield int(number), {"text": text, "score": float(score), "features": features}


def text_tasks(path: Path, folder: Path) -> dict[str, Any]:
    """Seconds from a file of texts and references to training lists, and to choices."""

    def data() -> ListDataset:
        return dataset(read_lists(path, metric=metric_named("bleu")), metric="bleu")

    model = train(Reranking(), data(), "perceptron").model
    tasks_by_name = predict_tasks("texts predict", path, model, folder)
    return {
        "texts data": lambda: common.cpu_seconds(data),
        "texts predict": tasks_by_name["texts predict"],
        "texts process": tasks_by_name["texts predict process"],
    }

"""Our side of sequences.py: from text or Python objects to data, to a model, to tags."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common
import numpy as np
import sequences_corpus as corpus
import sequences_passes as ours

from hopefear import Tagger
from hopefear.data.sequences import SequenceDataset
from hopefear.data.token_files import read_sentences
from hopefear.data.token_input import TokenInput, with_labels
from hopefear.tasks.tag.model import encoded
from hopefear.tasks.tag.prepare import prepare
from hopefear.tasks.tag.task import dataset, train

TARGET = 93.4  # chunk F1 on test
TRIED = 10  # passes, at most, to get there
COLUMNS = ("word", "pos")


def data_of(path: Path) -> SequenceDataset:
    return dataset(read_sentences(path).sentences, corpus.FEATURES)


def held_out(data: SequenceDataset, path: Path) -> SequenceDataset:
    """Text as seen by the features of the training data."""
    text = read_sentences(path).sentences
    gold = text.columns["label"]
    return encoded(text, data.features.encode(text), data.labels, gold, data.features)


def text_tasks(path: Path) -> dict[str, Any]:
    def in_process() -> float:
        def work() -> None:
            data = data_of(path)
            ours.trainer(data, "perceptron", {})

        return common.cpu_seconds(work)

    def process() -> np.ndarray:
        child = [sys.executable, str(Path(__file__).with_name("sequences_child.py")), str(path)]
        done = subprocess.run(child, check=True, capture_output=True, text=True)
        return np.array(json.loads(done.stdout))

    process()  # compiles what is not on disk yet
    return {"text": in_process, "text process": process}


def list_tasks(path: Path) -> dict[str, Any]:
    """Sentences are Python objects beforehand: of attribute strings, and of (word, pos)."""
    text = list(corpus.read(path))
    tags = [corpus.labels(sentence) for sentence in text]
    strings = [corpus.attributes(sentence) for sentence in text]
    pairs = [[token[:2] for token in sentence] for sentence in text]
    prepared(strings[:2], tags[:2])
    prepared(pairs[:2], tags[:2], columns=COLUMNS, features=corpus.FEATURES)

    def by_templates() -> Any:
        return prepared(pairs, tags, columns=COLUMNS, features=corpus.FEATURES)

    return {
        "lists": lambda: common.cpu_seconds(lambda: prepared(strings, tags)),
        "tuples": lambda: common.cpu_seconds(by_templates),
    }


def prepared(X: Any, y: Any, columns: Any = None, features: Any = "auto") -> Any:
    """The data of Python objects, as `Tagger.fit` makes it."""
    examples = with_labels(TokenInput.of(X, columns, features).read(X), y)
    return prepare(examples, {"features": features}).data


def f1_by_pass(files: corpus.Files, name: str, passes: int = TRIED) -> list[float]:
    """Chunk F1 on test after each pass of the defaults with seed 1."""
    data = data_of(files.train)
    history = train(data, name, epochs=passes, dev=held_out(data, files.test)).fit.history
    return [event["dev"]["f1"] for event in history]


def passes_needed(scores: list[float], target: float = TARGET) -> int | None:
    """Passes until the score is first reached.

    >>> passes_needed([92.9, 93.4, 93.3]), passes_needed([92.9])
    (2, None)
    """
    return next((k for k, score in enumerate(scores, 1) if score >= target), None)


def f1_tasks(files: corpus.Files, name: str, passes: int, folder: Path) -> dict[str, Any]:
    """Reading, templates, all passes and making the model; nothing is evaluated."""

    def train_and_score() -> Any:
        return train(data_of(files.train), name, epochs=passes)

    command = [sys.executable, "-m", "hopefear", "train", "tag", "--quiet", "--learner", name]
    command += ["--features", corpus.FEATURES, "--epochs", str(passes)]
    command += ["--train", str(files.train), "--model", str(folder / f"{name}.model")]
    common.run(command)  # compiles what is not on disk yet
    return {
        f"f1 {name}": lambda: common.cpu_seconds(train_and_score),
        f"f1 {name} process": lambda: common.run(command).seconds,
    }


def tagging_tasks(files: corpus.Files, passes: int) -> tuple[dict[str, Any], int]:
    """Seconds for the test text, from Python objects and from attribute numbers; its tokens."""
    text = list(corpus.read(files.train))
    tagger = Tagger("perceptron", features=corpus.FEATURES, columns=COLUMNS, epochs=passes)
    tagger.fit([[t[:2] for t in s] for s in text], [corpus.labels(s) for s in text])
    new = [[token[:2] for token in sentence] for sentence in corpus.read(files.test)]
    model = tagger.model_
    rows = model.encode(read_sentences(files.test).sentences).rows
    decoder = model.decoder()
    tagger.predict(new), decoder.predict(rows)
    several = {"tag": lambda: tagger.predict(new), "decode": lambda: decoder.predict(rows)}
    return {name: repeated(work) for name, work in several.items()}, rows.labels.size


def repeated(work: Callable[[], Any]) -> Callable[[], np.ndarray]:
    def task() -> np.ndarray:
        seconds = []
        for _ in range(ours.EVALUATIONS):
            start = time.process_time()
            work()
            seconds.append(time.process_time() - start)
        return np.array(seconds)

    return task

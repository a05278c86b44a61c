"""The data: four corpora, or generated sentences where there are none."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hopefear.data.generators import chunks
from hopefear.data.sequences import Sentences, SequenceDataset
from hopefear.data.token_files import read_sentences
from hopefear.errors import HopefearError
from hopefear.experiments.common.corpora import find_data
from hopefear.experiments.sapo.plan import GENERATED, HELD_OUT, Plan, Task
from hopefear.tasks.tag.model import encoded
from hopefear.tasks.tag.task import dataset

SIZES = {True: (300, 200), False: (4000, 2000)}  # sentences generated for training and test: quick?


@dataclass(frozen=True)
class Problem:
    """A task with its data, ready to learn from."""

    task: Task
    train: SequenceDataset
    test: SequenceDataset
    rest: SequenceDataset  # to choose the strength of regularisation: trained on this,
    held_out: SequenceDataset  # scored on this

    @property
    def weights(self) -> int:
        """Number of weights: attributes and labels before, with each label."""
        labels = len(self.train.labels)
        return (self.train.features.size + labels) * labels


@dataclass(frozen=True)
class Reader:
    """A task whose data was found; reads it when its turn comes."""

    task: Task
    folder: Path | None
    quick: bool = False

    def read(self) -> Problem:
        parts = _generated(*SIZES[self.quick]) if self.folder is None else self._files(self.folder)
        train = dataset(parts["train"], self.task.features, keep_names=False)
        test = _like(train, parts["test"])
        if "dev" in parts:
            return Problem(self.task, train, test, train, _like(train, parts["dev"]))
        # Sentences of one document stand together, so the end of the file is new text.
        cut = len(train) - max(1, round(HELD_OUT * len(train)))
        rest, held_out = train.take(np.arange(cut)), train.take(np.arange(cut, len(train)))
        return Problem(self.task, train, test, rest, held_out)

    def _files(self, folder: Path) -> dict[str, Sentences]:
        return {part: self._columns(folder / name) for part, name in self.task.files.items()}

    def _columns(self, path: Path) -> Sentences:
        found = read_sentences(path).sentences
        missing = [name for name in self.task.columns.values() if name not in found.columns]
        if missing:
            raise HopefearError(
                f"{path} has no column {missing[0]!r}, which {self.task.name} needs; there are "
                f"{', '.join(found.columns)}"
            )
        chosen = {ours: found.columns[theirs] for ours, theirs in self.task.columns.items()}
        return Sentences(found.starts, chosen, found.source, found.lines)


def find_problems(data: Path | None, plan: Plan, quick: bool) -> tuple[list[Reader], str]:
    """What to run on, and a sentence on what was not found."""
    if not any(task.files for task in plan.tasks):
        note = "This version uses generated sentences only: too few and too easy to conclude from."
        return [Reader(task, None, quick) for task in plan.tasks], note
    folder = find_data(data)
    if folder is None:
        return [Reader(GENERATED, None, quick)], (
            "No corpora were found, so only generated sentences are used; give `--data DIR`, or "
            "set HOPEFEAR_DATA."
        )
    found, missing = [], []
    for task in plan.tasks:
        lost = [name for name in task.files.values() if not (folder / name).is_file()]
        if lost:
            missing.append(f"{task.name} ({lost[0]})")
        else:
            found.append(Reader(task, folder, quick))
    if not found:
        raise HopefearError(
            f"{folder} holds none of the corpora ({', '.join(missing)}); give --data a folder that "
            "holds them, or use --quick, which needs none"
        )
    return found, f"Not found, and so left out: {', '.join(missing)}." if missing else ""


def _generated(n_train: int, n_test: int) -> dict[str, Sentences]:
    return {"train": chunks(n_train, seed=1), "test": chunks(n_test, seed=2)}


def _like(train: SequenceDataset, sentences: Sentences) -> SequenceDataset:
    gold = sentences.columns["label"]
    return encoded(sentences, train.features.encode(sentences), train.labels, gold, train.features)

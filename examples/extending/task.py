"""Choose some of several items, as a summary chooses sentences: a task with a file format.

One JSON object a line: ``{"items": [{"lead": 1, "words": 0.7}, …], "chosen": [0, 2]}``.

Run: python examples/extending/task.py
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from hopefear.core.component import kernel
from hopefear.core.workspace import DenseWeights, Example
from hopefear.errors import HopefearError, InputError
from hopefear.features import IdentityFeatures, from_parts
from hopefear.losses.perceptron import Perceptron
from hopefear.metrics import Accuracy
from hopefear.recipes.base import Kind
from hopefear.tasks import TASKS
from hopefear.tasks.base import Model, Task
from hopefear.tasks.prepare import Prepared, learn
from hopefear.training.predictors import predictor_from_arrays

sys.path.insert(0, str(Path(__file__).parent))
from structure import Subset, SubsetRows
from surface import ENTRY

SUBSETS = Kind({}, cost="hamming")
RECIPES = {
    recipe.name: recipe
    for recipe in (
        SUBSETS.recipe("perceptron", "averaged perceptron", "perceptron sgd averaged mistakes"),
        SUBSETS.recipe("ssvm", "structured SVM", "structured-hinge sgd averaged all", rate=0.1),
        SUBSETS.recipe("mira", "1-best MIRA", "prediction-hinge passive-aggressive averaged all"),
    )
}
TASKS["choose"] = ENTRY


@dataclass(frozen=True)
class Choices:
    """A dataset: what a task learns from."""

    rows: SubsetRows
    features: IdentityFeatures
    source: str = "memory"

    def __len__(self) -> int:
        return len(self.rows.weights)

    @property
    def digest(self) -> str:
        return hashlib.sha256(b"".join(array.tobytes() for array in self.rows)).hexdigest()

    def chosen(self, labels: np.ndarray | None = None) -> list[list[int]]:
        """Numbers of the chosen items of each example, as the file has them or as labels say."""
        labels, starts = self.rows.labels if labels is None else labels, self.rows.starts
        return [np.flatnonzero(labels[a:b]).tolist() for a, b in pairwise(starts)]


def read(path: str | Path, features: IdentityFeatures | None = None) -> Choices:
    """Read a file; with the features of a model, others are left out."""
    examples = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            try:
                example = json.loads(line)
                items = [{str(k): float(v) for k, v in item.items()} for item in example["items"]]
                chosen = {int(t) for t in example["chosen"]}
            except (ValueError, TypeError, KeyError, AttributeError) as error:
                raise InputError(str(path), number, "items and chosen", line.strip()) from error
            if not chosen <= set(range(len(items))):
                raise InputError(str(path), number, "numbers of items from 0", str(sorted(chosen)))
            examples.append((items, chosen))
    if features is None:
        names = sorted({name for items, _ in examples for item in items for name in item})
        features = IdentityFeatures(len(names) + 1, names)  # line i of the names is column i
    return Choices(encode(examples, features), features, str(path))


def encode(examples: Iterable[tuple[list[dict[str, float]], set[int]]], features) -> SubsetRows:
    """Arrays of all items."""
    columns = {features.name(c): c for c in range(1, features.size)}
    starts, indptr, indices, values, labels = [0], [0], [], [], []
    for items, chosen in examples:
        for t, item in enumerate(items):
            known = {columns[name]: v for name, v in item.items() if name in columns}
            indices += known.keys()
            values += known.values()
            indptr.append(len(indices))
            labels.append(t in chosen)
        starts.append(len(labels))
    return SubsetRows(
        np.array(starts, np.int64),
        np.array(indptr, np.int64),
        np.array(indices, np.int32),
        np.array(values, np.float32),
        np.array(labels, np.int32),
        np.ones(len(starts) - 1, np.float32),
    )


@dataclass(frozen=True)
class Choosing(Task):
    """The task; it has no options of its own."""

    name: ClassVar[str] = "choose"

    def check(self, data, dev):
        if len(data) == 0:
            raise HopefearError(f"{data.source}: there are no examples to learn from")
        if dev is not None and dev.features is not data.features:
            raise HopefearError(f"{dev.source}: read held-out data with features=data.features")

    def structure(self, data):
        return Subset(data.features.size)

    def score_names(self, data):
        return ("accuracy", "items")

    def evaluator(self, structure, data, dev, n_jobs):
        return lambda predictor: scores(structure, predictor.weights, dev.rows)

    def facts(self, data):
        return {"examples": len(data)}

    def model(self, data, structure, predictor, temperature, signature, about):
        return ChoiceModel(predictor, data.features, signature, about)


@dataclass(frozen=True, kw_only=True)
class PreparedChoices(Prepared):
    """What is learned from, and how models are judged."""

    def held_out(self, examples):
        return read(examples, self.data.features)

    def judge(self, model, test, n_jobs=1):
        chosen = model.predict(test)
        rows = [[a == b, 1] for a, b in zip(chosen, test.chosen(), strict=True)]
        return model.scores(test), rows

    def tester(self):
        return Accuracy()


def prepare(path, options):
    """Read a file to learn from; the task has no options."""
    return PreparedChoices(task=Choosing(), data=read(path), stop_on="accuracy")


@dataclass(frozen=True)
class ChoiceModel(Model):
    """What is left when training is over; saved, loaded and checked as all models are."""

    task: ClassVar[str] = "choose"
    predictor: Any
    features: Any
    signature: str
    about: dict[str, Any]

    def predict(self, data: Choices) -> list[list[int]]:
        """Numbers of the chosen items, as many as ``chosen`` names in each example."""
        return data.chosen(decided(Subset(self.features.size), self.weights, data.rows))

    def scores(self, data: Choices) -> dict[str, float]:
        """How good its choices are."""
        return scores(Subset(self.features.size), self.weights, data.rows)

    def own_header(self):
        return {}

    @classmethod
    def from_header(cls, header, features, arrays, **common):
        return cls(
            predictor_from_arrays(arrays), from_parts(header["features"], features), **common
        )

    def check(self):
        self.check_size(self.features.size)


def decided(structure: Subset, weights: np.ndarray, rows: SubsetRows) -> np.ndarray:
    """1 for every item that is chosen, else 0."""
    chosen = np.zeros(len(rows.labels), np.int32)
    choose_all(
        structure,
        DenseWeights(weights),
        rows,
        structure.workspace(rows, Perceptron(), "f8"),
        chosen,
    )
    return chosen


@kernel
def choose_all(structure, weights, rows, work, chosen):
    """The best choice of every example."""
    for i in range(rows.starts.size - 1):
        x = Example(rows, i)
        structure.score(x, weights, work.theta)
        structure.argmax(x, work.theta, work.y)
        for t in range(rows.starts[i + 1] - rows.starts[i]):
            chosen[rows.starts[i] + t] = work.y[t]


def scores(structure: Subset, weights: np.ndarray, rows: SubsetRows) -> dict[str, float]:
    """Percent of examples, and of items to be chosen, that come out right."""
    right = decided(structure, weights, rows) == rows.labels
    whole = [right[a:b].all() for a, b in pairwise(rows.starts)]
    chosen = rows.labels == 1
    return {
        "accuracy": 100.0 * float(np.mean(whole)),
        "items": 100.0 * float(np.mean(right[chosen])) if chosen.any() else 100.0,
    }


def write_example(path: Path, n: int, seed: int) -> None:
    """Texts whose best sentences come early and say much."""
    rng = np.random.default_rng(seed)
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(n):
            items = [
                {"early": round(1 / (t + 1), 3), "says": round(float(rng.random()), 3), "bias": 1.0}
                for t in range(int(rng.integers(3, 6)))
            ]
            best = sorted(
                range(len(items)), key=lambda t: -items[t]["early"] - 2 * items[t]["says"]
            )
            file.write(json.dumps({"items": items, "chosen": sorted(best[:2])}) + "\n")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name, n, seed in (("train", 200, 1), ("test", 50, 2)):
            write_example(Path(folder) / f"{name}.jsonl", n, seed)
        prepared = prepare(Path(folder) / "train.jsonl", {})
        test = prepared.held_out(Path(folder) / "test.jsonl")
        trained = learn(prepared, {"learner": "ssvm", "params": {"rate": 0.2}, "patience": 0}, test)
        trained.model.save(Path(folder) / "choice.model")
        model = ChoiceModel.load(Path(folder) / "choice.model")
        print(model.signature)
        print(model.predict(test)[:3], trained.fit.history[-1]["dev"])


if __name__ == "__main__":
    main()

"""Runs: train pass after pass, score what is kept and the last weights after each."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopefear.core.learner import Learner
from hopefear.data.sparse import SparseDataset
from hopefear.experiments.common.trails import Trail
from hopefear.experiments.vrda_classification.plan import SEED, Spec
from hopefear.metrics import Accuracy, Classification, Comparison, paired_bootstrap
from hopefear.recipes import Scale
from hopefear.tasks import recipe
from hopefear.tasks.classify.task import structure_for
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes
from hopefear.training.predictors import LinearPredictor, Predictor


@dataclass(frozen=True)
class Scores:
    """How a sequence of predictors, one a pass, did on the same examples."""

    n_classes: int
    confusion: np.ndarray  # int64[passes, classes ** 2]
    nnz: np.ndarray  # int64[passes]
    right: np.ndarray  # bool[passes, examples]

    def series(self, name: str) -> np.ndarray:
        """One score after every pass, in percent."""
        return np.asarray(Classification(self.n_classes).scores(self.confusion)[name], float)

    def summary(self, passes: slice = slice(None)) -> dict[str, float]:
        """Mean and standard deviation over passes of each score, and the mean of NNZ."""
        found: dict[str, float] = {"nnz": float(self.nnz[passes].mean())}
        for name in ("precision", "recall", "f1", "accuracy", "error"):
            values = self.series(name)[passes]
            found[name], found[f"{name}_std"] = float(values.mean()), float(values.std())
        return found


@dataclass(frozen=True)
class Run:
    """A learner after all its passes."""

    setting: Mapping[str, float]
    signature: str
    mistakes: np.ndarray  # int64[passes]: so far
    averaged: Scores
    last: Scores


def build(spec: Spec, setting: Mapping[str, float], data: SparseDataset, **more: Any) -> Learner:
    """The learner of a spec with these parameters."""
    # Rows have unit length, so rates mean the same on every problem.
    return recipe(spec.recipe).build(Scale(1.0, len(data)), **{**spec.fixed, **setting, **more})


def run(
    spec: Spec, setting: Mapping[str, float], train: SparseDataset, test: SparseDataset, passes: int
) -> Run:
    """Train, and score the average and the last weights after every pass.

    >>> from hopefear.experiments.vrda_classification.plan import QUICK
    >>> from hopefear.experiments.vrda_classification.problems import generated
    >>> problem, perceptron = generated(200, 100, 50), QUICK.specs[0]
    >>> done = run(perceptron, {}, problem.train, problem.test, passes=2)
    >>> done.averaged.right.shape, bool(done.mistakes[1] > done.mistakes[0])
    ((2, 100), True)
    """
    learner = build(spec, setting, train)
    trainer = OnlineTrainer(structure_for(train, 0.0), learner)
    averaged, last = _Recorder(trainer.structure, test), _Recorder(trainer.structure, test)
    mistakes = []
    for _ in _passes(trainer, train, passes):
        averaged.add(trainer.predictor())
        last.add(LinearPredictor(trainer.weights()))
        mistakes.append(trainer.mistakes)
    return Run(
        dict(setting),
        learner.signature(epochs=passes, seed=SEED),
        np.array(mistakes),
        averaged.scores(),
        last.scores(),
    )


def follow(spec: Spec, setting: Mapping[str, float], train: SparseDataset, passes: int) -> Trail:
    """Train, and note NNZ and mistakes ever more rarely in the first pass, then four times each."""
    trainer = OnlineTrainer(structure_for(train, 0.0), build(spec, setting, train))
    seen = [(0, 0, 0)]
    for _ in _passes(trainer, train, passes, marks=True):
        seen.append((trainer.examples, trainer.support()[0], trainer.mistakes))
    return Trail(setting.get(spec.strength, 0.0), *np.array(seen).T)


def seconds(learner: Learner, train: SparseDataset, passes: int) -> float:
    """CPU seconds to train, without scoring."""
    trainer = OnlineTrainer(structure_for(train, 0.0), learner)
    orders = [piece for epoch in range(passes) for piece in Passes(train, SEED).pieces(epoch)]
    start = time.process_time()
    for rows, order in orders:
        trainer.learn(rows, order)
    return time.process_time() - start


def compare(first: np.ndarray, second: np.ndarray) -> Comparison:
    """Paired bootstrap over examples of two accuracies, each a mean over passes."""
    return paired_bootstrap(
        Accuracy(), _counts(first), _counts(second), "accuracy", replicates=2000, seed=SEED
    )


def first_marks(n: int) -> np.ndarray:
    """Places in the first pass, about as far apart as they are far from the start."""
    wanted = np.rint(np.geomspace(min(20, n), n, 24)).astype(np.int64)
    return wanted[np.diff(wanted, prepend=0) > 0]


def _counts(right: np.ndarray) -> np.ndarray:
    right = np.atleast_2d(right)
    return np.stack((right.sum(axis=0), np.full(right.shape[1], len(right))), axis=1)


def _passes(
    trainer: OnlineTrainer, train: SparseDataset, passes: int, marks: bool = False
) -> Iterator[None]:
    """Learn; stop after every pass, or at every mark."""
    source = Passes(train, SEED)
    for epoch in range(passes):
        order = np.concatenate([order for _, order in source.pieces(epoch)])
        ends = _stops(epoch, len(train)) if marks else np.array([len(train)])
        for piece in np.split(order, ends[:-1]):
            trainer.learn(train.rows, piece)
            yield


def _stops(epoch: int, n: int) -> np.ndarray:
    return first_marks(n) if epoch == 0 else np.array([n * q // 4 for q in range(1, 5)])


class _Recorder:
    """Collects scores of one predictor after another."""

    def __init__(self, structure: Any, test: SparseDataset) -> None:
        self.structure, self.test = structure, test
        self.metric = Classification(len(test.classes))
        self.seen: list[tuple[np.ndarray, int, np.ndarray]] = []

    def add(self, predictor: Predictor) -> None:
        labels, _ = predictor.decide(self.structure, self.test.rows)
        gold = self.test.rows.labels
        self.seen.append((self.metric.stats(gold, labels), predictor.nnz, gold == labels))

    def scores(self) -> Scores:
        confusion, nnz, right = zip(*self.seen, strict=True)
        return Scores(self.metric.n_classes, np.array(confusion), np.array(nnz), np.array(right))

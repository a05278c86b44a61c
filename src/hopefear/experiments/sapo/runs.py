"""Runs: train pass after pass; score and measure the last weights and the average after each."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from hopefear.core.learner import Learner
from hopefear.data.sequences import SequenceDataset
from hopefear.experiments.sapo.plan import AVERAGED, BEAM, KEPT, LAST, Spec
from hopefear.metrics import Tagging
from hopefear.recipes import Scale
from hopefear.structures.chain.chain import Chain
from hopefear.structures.chain.searches import search_named
from hopefear.tasks import recipe
from hopefear.tasks.tag.model import chain_of
from hopefear.training.decoding import Decoder
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes


@dataclass(frozen=True)
class Run:
    """A learner pass after pass; the first axis is the last weights and the average."""

    signature: str
    scores: np.ndarray  # float64[2, passes], percent
    magnitude: np.ndarray  # float64[2, passes]: mean size of all weights
    seconds: np.ndarray  # float64[passes]: CPU, to learn, with the average
    mistakes: np.ndarray  # int64[passes]: so far
    counts: np.ndarray  # int64[2, sentences, 7]: of test sentences, after the last pass

    def plain(self) -> dict[str, Any]:
        """What JSON can hold."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in values.items()}

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> Run:
        """The run that `plain` was called on."""
        values: dict[str, Any] = {
            k: np.array(v) if isinstance(v, list) else v for k, v in content.items()
        }
        return cls(**values)


@dataclass(frozen=True)
class Setting:
    """A learner with all that a run of it depends on, but for data and seed."""

    spec: Spec
    params: Mapping[str, Any]
    passes: int
    search: str = "astar"

    def learner(self, n: int, readout: str = KEPT[AVERAGED]) -> Learner:
        """The learner for so many sentences a pass."""
        params = {**self.spec.fixed, **self.params, "readout": readout}
        made: Learner = recipe(self.spec.recipe, "tag").build(Scale(n=n), **params)
        return made

    def structure(self, data: SequenceDataset) -> Chain:
        """The chain; as in the paper, any label may follow any other."""
        return chain_of(data.features, data.labels, 1, search_named(self.search, BEAM))

    def signature(self, n: int, seed: int) -> str:
        search = f"beam({BEAM})" if self.search == "beam" else self.search
        return self.learner(n).signature(search=search, epochs=self.passes, seed=seed)


def run(
    setting: Setting,
    train: SequenceDataset,
    test: SequenceDataset,
    metric: str,
    seed: int,
    every: bool = True,
) -> Run:
    """Train, and score after every pass, or after the last one only.

    >>> from hopefear.experiments.sapo.plan import QUICK, SPECS
    >>> from hopefear.experiments.sapo.problems import Reader
    >>> made = Reader(QUICK.tasks[0], None, quick=True).read()
    >>> done = run(Setting(SPECS["perceptron"], {}, 2), made.rest, made.held_out, "f1", seed=1)
    >>> done.scores.shape, done.counts.shape, bool(done.scores[1, 1] > 80.0)
    ((2, 2), (2, 30, 7), True)
    """
    structure = setting.structure(train)
    trainer = OnlineTrainer(structure, setting.learner(len(train)))
    _compile(setting, train)
    passes, metrics = Passes(train, seed), Tagging()  # type: ignore[arg-type]
    weights = (train.features.size + len(train.labels)) * len(train.labels)
    scores, sizes, seconds, mistakes = [], [], [], []
    for epoch in range(setting.passes):
        seconds.append(_learn(trainer, passes, epoch))
        mistakes.append(trainer.mistakes)
        if not every and epoch < setting.passes - 1:
            continue
        both = {LAST: trainer.weights(), AVERAGED: trainer.average().astype(np.float32)}
        sizes.append([float(np.abs(both[k]).sum(dtype=np.float64)) / weights for k in both])
        counts = [_counts(metrics, structure, both[k], test) for k in both]
        scores.append([float(metrics.scores(c.sum(axis=0))[metric]) for c in counts])
    return Run(
        setting.signature(len(train), seed),
        np.array(scores).T,
        np.array(sizes).T,
        np.array(seconds),
        np.array(mistakes),
        np.stack(counts),
    )


def seconds_a_pass(
    setting: Setting, readout: str, train: SequenceDataset, repeats: int
) -> np.ndarray:
    """CPU seconds of every pass, without scoring; the least of several runs."""
    _compile(setting, train, readout)
    found = []
    for _ in range(repeats):
        trainer = OnlineTrainer(setting.structure(train), setting.learner(len(train), readout))
        passes = Passes(train, 1)  # type: ignore[arg-type]
        found.append([_learn(trainer, passes, epoch) for epoch in range(setting.passes)])
    return np.array(found).min(axis=0)


def _learn(trainer: OnlineTrainer, passes: Passes, epoch: int) -> float:
    pieces = list(passes.pieces(epoch))
    start = time.process_time()
    for rows, order in pieces:
        trainer.learn(rows, order)
    return time.process_time() - start


def _compile(setting: Setting, train: SequenceDataset, readout: str = KEPT[AVERAGED]) -> None:
    """Learn from a sentence or two, so that no pass is timed with its compilation."""
    few = train.take(np.arange(min(2, len(train))))
    trainer = OnlineTrainer(setting.structure(few), setting.learner(len(train), readout))
    _learn(trainer, Passes(few, 1), 0)  # type: ignore[arg-type]


def _counts(
    metric: Tagging, structure: Chain, weights: np.ndarray, test: SequenceDataset
) -> np.ndarray:
    rows = test.rows
    tags = Decoder(structure, weights).tags(rows)
    return metric.rows(rows.labels, tags, rows.starts, test.labels)

"""One run: a learner or a network pass after pass, what is kept scored after each."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopefear.core.learner import Learner
from hopefear.data.sequences import Sentences, SequenceDataset
from hopefear.metrics import Tagging
from hopefear.recipes import Scale
from hopefear.structures.chain.chain import Chain
from hopefear.structures.chain.searches import search_named
from hopefear.tasks import recipe
from hopefear.tasks.tag.model import chain_of
from hopefear.tasks.tag.task import dataset
from hopefear.training.decoders.chains import ChainDecoder
from hopefear.training.online import OnlineTrainer
from hopefear.training.passes import Passes
from hopefear.training.predictors import LinearPredictor
from hopefear_papers.frame import learn
from hopefear_papers.sapo.plan import AVERAGED, BEAM, KEPT, Networks, Spec, like

LINEAR, DEEP, WIDE = "linear", "BiLSTM", "wide and deep"
ENCODERS = (LINEAR, DEEP, WIDE)


@dataclass(frozen=True)
class Run:
    """A learner pass after pass; the first axis is the last weights and the average.

    Of networks only a running average is kept, and that axis has length 1.
    """

    signature: str
    scores: np.ndarray  # float64[kept, passes], percent
    magnitude: np.ndarray  # float64[kept, passes]: mean size of all weights
    seconds: np.ndarray  # float64[passes]: CPU, to learn, with the average
    mistakes: np.ndarray  # int64[passes]: so far
    counts: np.ndarray  # int64[kept, sentences, 7]: of test sentences, after the last pass


@dataclass(frozen=True)
class Setting:
    """A learner with all that a run of it depends on, but for data and seed."""

    spec: Spec
    params: Mapping[str, Any]
    passes: int
    search: str = "astar"

    def learner(self, n: int, averaging: str = KEPT[AVERAGED]) -> Learner:
        """The learner for so many sentences a pass."""
        params = {**self.spec.fixed, **self.params, "averaging": averaging}
        learner: Learner = recipe(self.spec.recipe, "tag").build(Scale(n=n), **params)
        return learner

    def structure(self, data: SequenceDataset) -> Chain:
        """The chain; as in the paper, any label may follow any other."""
        return chain_of(data.features, data.labels, 1, search_named(self.search, BEAM))

    def trainer(self, data: SequenceDataset, averaging: str = KEPT[AVERAGED]) -> OnlineTrainer:
        """At the start, and compiled on a sentence or two, so that no pass is timed with that."""
        few = data.take(np.arange(min(2, len(data))))
        learner = self.learner(len(data), averaging)
        for _ in learn(OnlineTrainer(self.structure(few), learner), few, 1):
            pass
        return OnlineTrainer(self.structure(data), learner)

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

    >>> from hopefear_papers.sapo.plan import QUICK, SPECS, Reader
    >>> problem = Reader(QUICK.tasks[0], None, quick=True).read()
    >>> perceptron = Setting(SPECS["perceptron"], {}, 2)
    >>> passes = run(perceptron, problem.rest, problem.held_out, "f1", seed=1)
    >>> passes.scores.shape, passes.counts.shape, bool(passes.scores[1, 1] > 80.0)
    ((2, 2), (2, 30, 7), True)
    """
    trainer, tagging, rows = setting.trainer(train), Tagging(), test.rows
    weights = (train.features.size + len(train.labels)) * len(train.labels)
    scores, sizes, seconds, mistakes = [], [], [], []
    for cost in learn(trainer, train, setting.passes, seed):
        seconds.append(cost)
        mistakes.append(trainer.mistakes)
        if not every and len(seconds) < setting.passes:
            continue
        both = (trainer.weights(), trainer.average().astype(np.float32))
        sizes.append([float(np.abs(w).sum(dtype=np.float64)) / weights for w in both])
        tags = (ChainDecoder(trainer.structure, LinearPredictor(w)).predict(rows) for w in both)
        counts = [tagging.statistics(rows.labels, t, rows.starts, test.labels) for t in tags]
        scores.append([float(tagging.scores(c.sum(axis=0))[metric]) for c in counts])
    return Run(
        setting.signature(len(train), seed),
        np.array(scores).T,
        np.array(sizes).T,
        np.array(seconds),
        np.array(mistakes),
        np.stack(counts),
    )


@dataclass(frozen=True)
class NetworkSetting:
    """A network with all that a run of it depends on, but for data and seed.

    Examples
    --------
    >>> NetworkSetting("bilstm-crf", {"hidden": 50}, 3).signature(1)[-24:]
    '|epochs:3|seed:1|v:0.1.0'
    """

    recipe: str
    params: Mapping[str, Any]
    passes: int
    templates: str = "chunking"  # of a wide one

    def learner(self) -> Any:
        return recipe(self.recipe, "tag").build(**self.params)

    def signature(self, seed: int) -> str:
        return str(self.learner().signature(epochs=self.passes, seed=seed))

    def run(
        self, train: Sentences, test: Sentences, metric: str, seed: int, every: bool = True
    ) -> Run:
        """Train, and score the average that is kept after every pass, or after the last only."""
        known: Any = recipe(self.recipe, "tag")
        data: Any = dataset(train, known.inputs(self.params, self.templates))
        rows, labels = (unseen := like(data, test)).rows, unseen.labels
        # As for other learners, any label may follow any other.
        chain = chain_of(data.features, data.labels, 1, search_named("astar", BEAM))
        passes, tagging = Passes(data, seed), Tagging()
        trainer = self.learner().trainer(chain, passes)
        scores, sizes, seconds, mistakes = [], [], [], []
        for epoch in range(self.passes):
            start = time.process_time()
            for _ in trainer.learn_pieces(passes, epoch):
                pass
            seconds.append(time.process_time() - start)
            mistakes.append(trainer.mistakes)
            if not every and epoch + 1 < self.passes:
                continue
            nonzero, size = trainer.support()
            sizes.append(size / max(nonzero, 1))
            tags = ChainDecoder.of(chain, trainer.predictor()).predict(rows)
            counts = tagging.statistics(rows.labels, tags, rows.starts, labels)
            scores.append(float(tagging.scores(counts.sum(axis=0))[metric]))
        trainer.close()
        return Run(
            self.signature(seed),
            np.array([scores]),
            np.array([sizes]),
            np.array(seconds),
            np.array(mistakes),
            counts[None],
        )


def grid_setting(
    plan: Networks, params: Mapping[str, Any], loss: str, encoder: str, templates: str
) -> Setting | NetworkSetting:
    """What is run for a loss on an encoder; all losses of one have the same rule."""
    if encoder == LINEAR:
        spec = Spec(f"linear {loss}", plan.linear, {"loss": loss})
        return Setting(spec, {}, plan.passes)
    own = {**params, "wide": encoder == WIDE, "loss": loss}
    return NetworkSetting("bilstm-crf", own, plan.passes, templates)

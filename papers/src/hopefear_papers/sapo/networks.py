"""Networks: the paper's BiLSTM and BiLSTM-CRF by pass, and every loss on every encoder."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hopefear.data.sequences import Sentences
from hopefear.metrics import Tagging
from hopefear.structures.chain.searches import search_named
from hopefear.tasks import recipe
from hopefear.tasks.tag.model import chain_of
from hopefear.tasks.tag.task import dataset
from hopefear.training.decoders.chains import ChainDecoder
from hopefear.training.passes import Passes
from hopefear_papers.sapo.plan import BEAM, Networks, Spec, like
from hopefear_papers.sapo.settings import Run, Setting

LINEAR, DEEP, WIDE = "linear", "BiLSTM", "wide and deep"
ENCODERS = (LINEAR, DEEP, WIDE)


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
            tags = ChainDecoder.of(chain, trainer.predictor(), n_jobs=1).predict(rows)
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

"""The task ``parse``: structure, scores and model of dependency trees."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from hopefear.data.labels import check_blanks
from hopefear.data.sequences import Column
from hopefear.data.tree_rows import TreeDataset, TreeKind
from hopefear.data.treebank import Treebank
from hopefear.errors import HopefearError
from hopefear.features.arcs.token_arcs import TokenArcs
from hopefear.metrics import Dependencies, Trees
from hopefear.structures.tree.tree import Tree
from hopefear.tasks.base import Task, best_of
from hopefear.tasks.parse.model import ParseModel, structure_of
from hopefear.tasks.parse.taggers import Taggers
from hopefear.training.decoders.trees import TreeDecoder
from hopefear.training.predictors import Predictor

EPOCHS = 10
# Sentences that a temperature is fitted on, at most.
_FITTED_ON = 100


@dataclass(frozen=True)
class Parsing(Task):
    """Dependency trees of the kind that the data has been prepared for."""

    name: ClassVar[str] = "parse"
    epochs: ClassVar[int] = EPOCHS
    kind: TreeKind = TreeKind()  # noqa: RUF009 - frozen
    taggers: Taggers | None = None  # what the model gets its tags from

    def check(self, data: TreeDataset, dev: TreeDataset | None) -> None:
        if data.n_tokens == 0:
            raise HopefearError(f"{data.source}: there are no words to learn from")
        if data.rows.labels.min() < 0:
            raise HopefearError(
                f"{data.source}: word {int(np.argmin(data.rows.labels)) + 1} has no head; every "
                "word of the training data needs one"
            )
        check_blanks(data.source, data.labels)
        if dev is not None and dev.features is not data.features:
            raise HopefearError(f"{dev.source}: encode held-out trees with those of training")
        if data.kind != self.kind:
            raise HopefearError(f"{data.source} is prepared for {data.kind}, not for {self.kind}")

    def structure(self, data: TreeDataset) -> Tree:
        return structure_of(data.features, data.labels, self.kind)

    def check_together(self, structure: Tree, learner: Any, data: TreeDataset) -> None:
        network = hasattr(learner, "settings")
        if network != (data.features.kind == TokenArcs.kind):
            raise HopefearError(
                f"{data.source} was encoded as {data.features.kind}, which this learner does not "
                "read; encode it with features=recipe(learner, 'parse').inputs(params, templates)"
            )
        if not network and not learner.batch and learner.averaging.needs_history:
            raise HopefearError("trees are not decided by vote; use averaging=averaged or last")

    def score_names(self, data: TreeDataset) -> tuple[str, ...]:
        return ("uas", "las") if data.labels else ("uas",)

    def evaluator(
        self, structure: Tree, data: TreeDataset, dev: TreeDataset, n_jobs: int
    ) -> Callable[[Predictor], dict[str, float]]:
        def evaluate(predictor: Predictor) -> dict[str, float]:
            codes = TreeDecoder.of(structure, predictor, n_jobs=n_jobs).predict(dev.rows)
            scores = scores_of(dev.bank, codes, data.labels)
            return {name: scores[name] for name in self.score_names(data)}

        return evaluate

    def identity(self, data: TreeDataset, structure: Tree) -> dict[str, Any]:
        return _vectors(data)

    def words(self, data: TreeDataset) -> dict[str, Any]:
        return {
            "order": self.kind.order,
            "tree": self.kind.name,
            **data.features.description,
            "heads": 0 if data.pruner is None else data.pruner.heads,
            "labelled": int(bool(data.labels)),
            **{name: digest[:8] for name, digest in _vectors(data).items()},
        }

    def temperature(self, structure: Tree, predictor: Any, data: TreeDataset, n_jobs: int) -> float:
        decoder: Any = TreeDecoder.of(structure, predictor, n_jobs=n_jobs)
        if not decoder.sums:
            return 1.0
        step = max(1, len(data) // _FITTED_ON)
        rows = data.take(np.arange(0, len(data), step)).rows

        def log_likelihood(temperature: float) -> float:
            decoder.temperature = temperature
            logs = decoder.log_likelihoods(rows)
            return float(logs[np.isfinite(logs)].sum())

        return best_of(log_likelihood)

    def facts(self, data: TreeDataset) -> dict[str, Any]:
        return {
            "examples": len(data),
            "tokens": data.n_tokens,
            "features": data.features.size,
            "arcs": int(data.rows.heads.size),
            "lifted": data.lifted,
        }

    def model(
        self,
        data: Any,
        structure: Any,
        predictor: Any,
        temperature: float,
        signature: str,
        about: dict[str, Any],
    ) -> ParseModel:
        return ParseModel(
            predictor,
            data.labels,
            data.features,
            self.kind,
            data.pruner,
            temperature,
            signature,
            about,
            self.taggers,
        )


def _vectors(data: TreeDataset) -> dict[str, str]:
    """What tells feature maps apart whose numbers are the same."""
    vectors = getattr(data.features, "vectors", None)
    return {} if vectors is None else {"vectors": vectors.digest}


def judged(
    bank: Treebank, codes: np.ndarray, labels: Sequence[str], tagged: Treebank | None = None
) -> tuple[Trees, Trees]:
    """Returns the trees of a treebank, and those that labels stand for, for scores.

    ``tagged`` has the tags that were given to the words, where they are not those of the treebank.
    """
    gold, n = Trees.of(bank), max(1, len(labels))
    relations = Column(labels, (codes % n).astype(np.int32)) if labels else None
    if not labels:
        gold = gold._replace(relations=None)
    output = gold if tagged is None else Trees.of(tagged)
    return gold, output._replace(heads=codes // n, relations=relations)


def scores_of(
    bank: Treebank, codes: np.ndarray, labels: Sequence[str], tagged: Treebank | None = None
) -> dict[str, float]:
    """Returns attachment scores of parsed trees, in percent; parameters as of :func:`judged`."""
    metric = Dependencies(bool(labels))
    return metric.scores(metric.total(*judged(bank, codes, labels, tagged)))

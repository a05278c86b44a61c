"""Prepares lists of candidates for learning, whatever they came from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from hopefear.core.checks import check_at_least
from hopefear.data.lists.candidates import CandidateLists, deduplicated
from hopefear.data.lists.dataset import (
    Blocks,
    DatasetBuilder,
    ListDataset,
    counts_of,
    each,
    encoded,
    idle_lists,
    teaching,
)
from hopefear.errors import HopefearError
from hopefear.features.lists.extraction import Extraction
from hopefear.features.lists.list_features import ListNumbering
from hopefear.metrics.lists import ListMetric
from hopefear.tasks import prepare as base
from hopefear.tasks.prepare import Options
from hopefear.tasks.rerank.model import RerankModel
from hopefear.tasks.rerank.task import (
    Reranking,
    baseline_of,
    check,
    metric_of,
    named_metric,
    scores,
)

# What "auto" features are, and the fewest lists a feature must tell apart: of trees, of others.
TREE_FEATURES, TREE_COUNT = "rich,consensus", 5
OTHER_FEATURES, OTHER_COUNT = "named,score", 1


@dataclass(frozen=True, kw_only=True)
class PreparedLists(base.Prepared):
    """Lists in the features and with the costs that they are learned with.

    Parameters
    ----------
    task, data, stop_on, reading, messages
        As in `Prepared`; the task has the features, their least count and the metric that were
        chosen where it was left to the data.
    baseline : {"feature", "offset", "none"}
        What the generator's score is in this data.
    """

    unit: ClassVar[str] = "lists"
    task: Reranking
    data: ListDataset
    baseline: str = "feature"

    @property
    def metric(self) -> ListMetric:
        """What makes costs, and scores choices."""
        return metric_of(self.task.metric, self.data)

    def sizes(self) -> dict[str, Any]:
        return {
            "lists": len(self.data),
            "idle_lists": int(idle_lists(self.data).sum()),
            "candidates": self.data.n_candidates,
            "features": self.data.features.size,
            "features_seen": self.data.features.seen,
            "metric": self.metric.name,
        }

    def held_out(self, examples: Blocks) -> ListDataset:
        return encoded(
            _distinct(examples, self.task.dedup),
            self.data.features,
            self.baseline,
            oracle=self.task.oracle,
            metric=self.task.judge,
        )

    def without_data(self) -> Self:
        """Returns what brings other lists into the same features, and nothing else."""
        return replace(self, data=self.data.take([]))

    def judge(
        self, model: RerankModel, test: ListDataset, n_jobs: int = 1
    ) -> tuple[dict[str, float], np.ndarray]:
        best = model.predict(test)
        counts = counts_of(test, self.metric)[test.rows.starts[:-1] + best]
        return scores(test, best, self.metric), counts

    def tester(self) -> ListMetric:
        return self.metric


def prepare(examples: Blocks, options: Options) -> PreparedLists:
    """Returns lists as they are learned from.

    Parameters
    ----------
    examples : CandidateLists, or several
        The lists, as readers of files and of Python objects give them.
    options : mapping
        Parameters of :class:`hopefear.Reranker` by name.
    """
    names = [field.name for field in fields(Reranking)]
    task = Reranking(**{name: options[name] for name in names if name in options})
    data = dataset(
        _distinct(examples, task.dedup),
        task.features,
        min_count=task.min_count,
        baseline=task.baseline,
        oracle=task.oracle,
        metric=task.judge,
    )
    check(data)
    idle, judge = int(idle_lists(data).sum()), metric_of(task.metric, data)
    trees = data.features.extraction.trees is not None
    auto = TREE_FEATURES if trees else OTHER_FEATURES
    features = auto if task.features == "auto" else task.features
    least = task.min_count or (TREE_COUNT if trees else OTHER_COUNT)
    message = f"lists that teach nothing, of one candidate or of equal costs: {idle:,}"
    return PreparedLists(
        task=replace(task, metric=judge, features=features, min_count=least),
        data=data,
        stop_on=judge.main,
        reading={"dedup": task.dedup},
        messages=(message,) if idle else (),
        baseline=baseline_of(data),
    )


def _distinct(blocks: Blocks, policy: str) -> Iterator[CandidateLists]:
    return (deduplicated(block, policy) for block in each(blocks))


def dataset(
    blocks: Blocks,
    features: str | Extraction = "auto",
    *,
    min_count: int | None = None,
    baseline: str = "feature",
    oracle: str = "first",
    metric: str | ListMetric | None = None,
) -> ListDataset:
    """Returns lists for training, with numbers for the features that tell candidates apart.

    Lists that teach nothing, of one candidate or of candidates that all cost the same, stay in
    their place with the weight 0; :func:`idle_lists` finds them.

    Parameters
    ----------
    blocks : CandidateLists, or several
        The lists, as readers give them.
    features, min_count, baseline, oracle, metric
        As of :class:`hopefear.Reranker`.

    Examples
    --------
    >>> from hopefear.data.generators import candidate_lists
    >>> dataset(candidate_lists(20, features=12)).features.size
    13
    """
    builder = DatasetBuilder(baseline, oracle, named_metric(metric))
    numbering: ListNumbering | None = None
    for block in each(blocks):
        judged = builder.add(block)
        if numbering is None:
            extraction, count = chosen(features, block, min_count)
            score = extraction.score and baseline == "feature"
            numbering = ListNumbering(replace(extraction, score=score), count)
        numbering.add(judged)
    if numbering is None:
        raise HopefearError("there are no lists to learn from")
    feature_map, numbered = numbering.finish()
    return teaching(builder.dataset(numbered, feature_map))


def chosen(
    features: str | Extraction, block: CandidateLists, min_count: int | None = None
) -> tuple[Extraction, int]:
    """Returns the features to extract, and in how many lists one must tell candidates apart."""
    trees = block.trees is not None
    if isinstance(features, str):
        auto = TREE_FEATURES if trees else OTHER_FEATURES
        features = Extraction.of(auto if features == "auto" else features)
    count = (TREE_COUNT if trees else OTHER_COUNT) if min_count is None else min_count
    check_at_least("min_count", count, 1)
    return features, count

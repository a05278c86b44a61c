"""From lists of candidates to what is learned from, whoever asks for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hopefear.core.checks import check_at_least
from hopefear.data.lists.candidates import CandidateLists, deduplicated
from hopefear.data.lists.dataset import Blocks, DatasetBuilder, ListDataset, each, encoded
from hopefear.errors import HopefearError
from hopefear.features.lists.extraction import Extraction
from hopefear.features.lists.list_features import ListNumbering
from hopefear.metrics.lists import ListMetric
from hopefear.tasks.rerank.task import (
    Reranking,
    baseline_of,
    check,
    idle_lists,
    metric_of,
    named_metric,
    teaching,
)

# What "auto" features are, and the fewest lists a feature must tell apart: of trees, of others.
TREE_FEATURES, TREE_COUNT = "rich,consensus", 5
OTHER_FEATURES, OTHER_COUNT = "named,score", 1


@dataclass(frozen=True)
class Prepared:
    """Lists in the features and with the costs that they are learned with.

    Parameters
    ----------
    data : ListDataset
        What is learned from.
    task : Reranking
        The options; its metric is the one that judges.
    baseline : {"feature", "offset", "none"}
        What the generator's score is in this data.
    reading : mapping
        What a model must know to read more lists.
    """

    data: ListDataset
    task: Reranking
    baseline: str
    reading: Mapping[str, Any]

    @property
    def metric(self) -> ListMetric:
        """What makes costs, and scores choices."""
        return metric_of(self.task.metric, self.data)

    @property
    def messages(self) -> tuple[str, ...]:
        """What users should know of the data."""
        idle = int(idle_lists(self.data).sum())
        text = f"lists that teach nothing, of one candidate or of equal costs: {idle:,}"
        return (text,) if idle else ()

    @property
    def feature_set(self) -> str:
        """Name of the features that were asked for."""
        features, trees = self.task.features, self.data.features.extraction.trees is not None
        if features == "auto":
            return TREE_FEATURES if trees else OTHER_FEATURES
        return features if isinstance(features, str) else "given"

    @property
    def min_count(self) -> int:
        """Lists that a feature must tell candidates apart in."""
        trees = self.data.features.extraction.trees is not None
        return self.task.min_count or (TREE_COUNT if trees else OTHER_COUNT)

    def held_out(self, blocks: Blocks) -> ListDataset:
        """Returns other lists in the same features, with costs by the same metric."""
        return encoded(
            _distinct(blocks, self.task.dedup),
            self.data.features,
            self.baseline,
            oracle=self.task.oracle,
            metric=self.task.judge,
        )

    def without_data(self) -> Prepared:
        """Returns what brings other lists into the same features, and nothing else."""
        return replace(self, data=self.data.take([]))

    def for_learner(self, name: str, params: Mapping[str, Any]) -> Prepared:
        """Returns the same: all learners of lists read the same features."""
        return self


def prepare(blocks: Blocks, task: Reranking | None = None) -> Prepared:
    """Returns lists as they are learned from.

    Parameters
    ----------
    blocks : CandidateLists, or several
        The lists, as readers of files and of Python objects give them.
    task : Reranking, optional
        The options.
    """
    task = task or Reranking()
    data = dataset(
        _distinct(blocks, task.dedup),
        task.features,
        min_count=task.min_count,
        baseline=task.baseline,
        oracle=task.oracle,
        metric=task.judge,
    )
    check(data)
    judged = replace(task, metric=metric_of(task.metric, data))
    return Prepared(data, judged, baseline_of(data), {"dedup": task.dedup})


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
    """Look at candidates for training, and number what tells them apart.

    Lists that teach nothing, of one candidate or of candidates that all cost the same, stay in
    their place with the weight 0; :func:`idle_lists` finds them.

    Parameters
    ----------
    blocks : CandidateLists, or several
        The lists, as readers give them.
    features : str or Extraction
        A comma list of ``named`` (those that files name), ``score`` (of the generator), ``ptb``,
        ``rich`` or single families of tree features, and ``consensus``. ``"auto"`` is
        ``rich,consensus`` where candidates are trees, else ``named,score``.
    min_count : int, optional
        Features that tell candidates apart in fewer lists are left out; 5 for trees and 1
        elsewhere, unless said. More makes smaller models.
    baseline : {"feature", "offset", "none"}
        What the generator's score is: one of the features, if it is among them; a fixed part of
        every score; or ignored.
    oracle : {"first", "score"}
        Which of equally cheap candidates is to be learned: the first, or that of highest score.
    metric : str or ListMetric, optional
        Makes the costs of candidates against references; without it costs must be given.

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
    """What to look at in lists such as these, and in how many of them."""
    trees = block.trees is not None
    if isinstance(features, str):
        auto = TREE_FEATURES if trees else OTHER_FEATURES
        features = Extraction.of(auto if features == "auto" else features)
    count = (TREE_COUNT if trees else OTHER_COUNT) if min_count is None else min_count
    check_at_least("min_count", count, 1)
    return features, count

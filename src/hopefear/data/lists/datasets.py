"""From candidate lists as files give them to lists that are trained on and ranked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Protocol

import numpy as np

from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dataset import ListDataset, ListRows, cheapest
from hopefear.data.lists.kinds import GIVEN, UnjudgedError, check_metric
from hopefear.errors import HopefearError
from hopefear.features.lists.extraction import used_ids
from hopefear.features.lists.named import SCORE
from hopefear.features.lists.numbering import Numbered, joined

BASELINES = ("feature", "offset", "none")
ORACLES = ("first", "score")

Blocks = CandidateLists | Iterable[CandidateLists]


class Metric(Protocol):
    """What is needed of a metric here: statistics of candidates, and costs from them."""

    @property
    def name(self) -> str: ...

    def counts_by_list(
        self, texts: Sequence[str], starts: Any, references: Sequence[Sequence[str]]
    ) -> np.ndarray: ...

    def costs(self, counts: Any) -> np.ndarray: ...


def each(blocks: Blocks) -> Iterator[CandidateLists]:
    """Blocks one after the other; one by itself will do."""
    if isinstance(blocks, CandidateLists):
        yield blocks
    else:
        yield from blocks


def encoded(
    blocks: Blocks,
    features: Any,
    baseline: str = "feature",
    *,
    oracle: str = "first",
    metric: Metric | None = None,
    judged: bool = True,
) -> ListDataset:
    """Lists in the features of a map; unknown ones are left out.

    Parameters
    ----------
    blocks : CandidateLists, or several
        The lists.
    features : ListFeatures
        Meaning of the features.
    baseline, oracle, metric
        As in :func:`hopefear.tasks.rerank.task.dataset`.
    judged : bool
        Whether every candidate must have a cost; else costs are not looked at and all are 0.
    """
    gathered = Gathered(baseline, oracle, metric, judged)
    numbered = [features.encode(gathered.add(block)) for block in each(blocks)]
    return gathered.dataset(joined(numbered), features)


class Gathered:
    """All about lists but their features, block after block."""

    def __init__(
        self, baseline: str, oracle: str, metric: Metric | None, judged: bool = True
    ) -> None:
        check_choice("baseline", baseline, BASELINES)
        check_choice("oracle", oracle, ORACLES)
        self.baseline, self.oracle = baseline, oracle
        self.metric, self.judged = metric, judged
        self.source = "memory"
        self.names: set[str] = set()  # of metrics
        self._lengths: list[np.ndarray] = []
        self._scores: list[np.ndarray] = []
        self._costs: list[np.ndarray] = []
        self._counts: list[np.ndarray | None] = []
        self._weights: list[np.ndarray] = []
        self._ids: list[str] = []

    def add(self, block: CandidateLists) -> CandidateLists:
        """Note a block; returns it with costs."""
        check_score_name(block)
        if self.judged:
            block = judged(block, self.metric)
            self.names.add(block.metric)
        self.source = block.source
        self._lengths.append(np.diff(block.starts))
        self._scores.append(block.scores)
        costs = block.costs if self.judged else None
        self._costs.append(np.zeros(block.n_candidates) if costs is None else costs)
        self._counts.append(block.counts if self.judged else None)
        weights = np.ones(len(block)) if block.weights is None else block.weights
        self._weights.append(weights)
        self._ids.extend(block.ids)
        return block

    def dataset(self, numbered: Numbered, features: Any) -> ListDataset:
        """Everything put together."""
        if len(self.names) > 1:
            raise HopefearError(
                f"{self.source}: some lists are judged by {', '.join(sorted(self.names))}, and "
                "scores of different metrics do not add up; name one metric for all"
            )
        starts = np.concatenate([[0], np.cumsum(_joined(self._lengths, np.int64))])
        scores, costs = _joined(self._scores), _joined(self._costs)
        rows = ListRows(
            starts.astype(np.int64),
            numbered.scopes,
            numbered.features,
            numbered.indptr,
            numbered.columns,
            numbered.values,
            fixed_scores(scores, starts) if self.baseline == "offset" else np.zeros(len(scores)),
            costs,
            oracles(costs, scores, starts, self.oracle),
            _joined(self._weights),
        )
        counts = [rows_of for rows_of in self._counts if rows_of is not None]
        table = None
        if counts and len(counts) == len(self._counts):
            table = np.concatenate(counts)
        name = next(iter(self.names), "cost")
        return ListDataset(rows, features, table, name, self._ids, self.source)


class Noting:
    """Blocks on their way to a dataset, and what an evaluation will ask of them."""

    def __init__(self) -> None:
        self._scores: list[np.ndarray] = []
        self._references: set[int] = set()

    def __call__(self, blocks: Blocks) -> Iterator[CandidateLists]:
        for block in each(blocks):
            self._scores.append(block.scores)
            self._references |= {1} if block.references is None else set(map(len, block.references))
            yield block

    @property
    def scores(self) -> np.ndarray:
        """What the generator thought of all candidates."""
        return _joined(self._scores)

    @property
    def n_references(self) -> int:
        """References of a list; -1 where lists have different numbers."""
        return next(iter(self._references), 1) if len(self._references) < 2 else -1


def _joined(parts: list[np.ndarray], dtype: Any = np.float64) -> np.ndarray:
    return np.concatenate([np.empty(0, dtype), *parts])


def judged(block: CandidateLists, metric: Metric | None = None) -> CandidateLists:
    """The block with a cost for every candidate.

    Parameters
    ----------
    block : CandidateLists
        With costs, counts of the metric, or texts and references.
    metric : Metric, optional
        Makes the costs; without it they must be there.
    """
    if metric is None or metric.name == GIVEN:
        if block.costs is None:
            trees = block.trees is not None
            others = "gold trees" if trees else "references and a metric"
            raise _unjudged(block, f"a cost for every candidate, or {others}")
        if metric is None:
            return block
        return replace(block, counts=None, metric=GIVEN)
    counts = block.counts if block.metric == metric.name else None
    if counts is None:
        check_metric(metric.name, block.trees is not None, block.source)
        if block.trees is not None:
            raise _unjudged(block, "a gold tree for every list, to count brackets against")
    if counts is None and block.references is not None:
        counts = metric.counts_by_list(block.texts, block.starts, block.references)
    if counts is None:
        raise _unjudged(block, f"references, to count {metric.name} against, for every list")
    return replace(block, counts=counts, costs=metric.costs(counts), metric=metric.name)


def _unjudged(block: CandidateLists, expected: str) -> UnjudgedError:
    shown = f" (such as list {block.ids[0]!r:.60})" if len(block) else ""
    return UnjudgedError(
        block.source, block.place(0) if len(block) else 0, f"{expected}{shown}; there are none"
    )


def check_score_name(block: CandidateLists) -> None:
    """Refuse a feature of the name that the generator's score has."""
    if block.named is None or not block.scores.any():
        return
    if any(block.named.names[i] == SCORE for i in used_ids(block.named.ids).tolist()):
        raise HopefearError(
            f"{block.source}: candidates have a score and a feature of the name {SCORE!r} too; "
            "call the feature something else"
        )


def check_choice(what: str, found: str, known: tuple[str, ...]) -> None:
    """Refuse a word that is none of the known ones."""
    if found not in known:
        raise HopefearError(f"{what} is one of {', '.join(known)}, not {found!r}")


def fixed_scores(scores: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Scores relative to the best of each list, so that single precision is enough for them.

    >>> fixed_scores(np.array([-1e9, -1e9 - 1, 3.0]), np.array([0, 2, 3])).tolist()
    [0.0, -1.0, 0.0]
    """
    if len(starts) == 1:
        return scores
    return scores - np.repeat(np.maximum.reduceat(scores, starts[:-1]), np.diff(starts))


def oracles(
    costs: np.ndarray, scores: np.ndarray, starts: np.ndarray, rule: str = "first"
) -> np.ndarray:
    """Position in each list of the candidate to learn: the cheapest.

    Parameters
    ----------
    costs, scores, starts : arrays
        Of all candidates; where lists begin.
    rule : {"first", "score"}
        Of equally cheap candidates the first, or that of the highest score (the first of those).

    Examples
    --------
    >>> oracles(np.array([1.0, 0.0, 0.0]), np.array([5.0, 1.0, 2.0]), np.array([0, 3]), "score")
    array([2], dtype=int32)
    """
    if rule == "first":
        return cheapest(costs, starts)
    lengths = np.diff(starts)
    least = np.repeat(np.minimum.reduceat(costs, starts[:-1]), lengths) if len(lengths) else costs
    return cheapest(np.where(costs == least, -scores, np.inf), starts)

"""Lists of candidates ready for training and ranking: what the N-best structure reads."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import check_range, check_rising, frozen_as, gathered
from hopefear.core.checks import check_not_negative
from hopefear.core.component import kernel
from hopefear.data.blocks import rows_digest
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.input import GIVEN, UnjudgedError, check_metric, counted
from hopefear.errors import HopefearError
from hopefear.features.lists.extraction import used_ids
from hopefear.features.lists.numbering import SCORE, NumberedLists, joined
from hopefear.metrics.base import GivenCost, ListMetric


class ListRows(NamedTuple):
    """The arrays a kernel sees; all read-only and contiguous.

    List i has the candidates ``starts[i] .. starts[i + 1] - 1`` and speaks of the features
    ``features[scopes[i]:scopes[i + 1]]``, each once; candidate c has those at the positions
    ``columns[indptr[c]:indptr[c + 1]]`` among them. So a weight is read, and moved, once for a list
    and not once for each candidate. Values are relative: what most candidates of a list share is
    taken off all of them, which changes no difference between two.
    """

    starts: np.ndarray  # int64[n + 1]
    scopes: np.ndarray  # int64[n + 1]
    features: np.ndarray  # int32, each once in a list
    indptr: np.ndarray  # int64[candidates + 1]
    columns: np.ndarray  # uint16[nnz]; int32 where a list has over 65,536 features
    values: np.ndarray  # float32[nnz]
    offsets: np.ndarray  # float32[candidates]: fixed score b(x, y), no weight learns it
    costs: np.ndarray  # float64[candidates]
    oracles: np.ndarray  # int32[n]: position in the list of the candidate to learn
    weights: np.ndarray  # float32[n]


DTYPES = dict(
    zip(
        ListRows._fields,
        map(np.dtype, ("i8", "i8", "i4", "i8", "i4", "f4", "f4", "f8", "i4", "f4")),
        strict=True,
    )
)


class ListDataset:
    """Lists of candidates ready for training: arrays, and what the features mean.

    Parameters
    ----------
    rows : ListRows
        The arrays; other types are converted, and all become read-only. Those that kernels would
        follow out of bounds are refused.
    features : feature map
        Meaning of the features; has ``size``. None: they may have any number.
    counts : array, optional
        Statistics of each candidate that ``metric`` adds up, one row each.
    metric : str
        The metric behind costs and counts.
    ids : sequence of str, optional
        Name of each list.
    source : str
        Where the data came from, for messages and model files.
    scores : float64 array, optional
        The generator's score of each candidate; zeros by default.
    n_references : int
        References of a list; -1 where lists have different numbers.

    Examples
    --------
    >>> rows = ListRows([0, 2], [0, 1], [7], [0, 0, 1], [0], [1.0], [0, 0], [0.5, 0], [1], [1])
    >>> data = ListDataset(rows)
    >>> len(data), data.n_candidates
    (1, 2)
    """

    def __init__(
        self,
        rows: ListRows,
        features: Any = None,
        counts: np.ndarray | None = None,
        metric: str = "cost",
        ids: Sequence[str] | None = None,
        source: str = "memory",
        scores: np.ndarray | None = None,
        n_references: int = 1,
    ) -> None:
        self.rows = ListRows(*map(frozen_as, rows, _dtypes(rows)))
        self.scores = np.zeros(self.n_candidates) if scores is None else scores
        self.n_references = n_references
        self.features = features
        self.counts, self.metric, self.ids = counts, metric, ids
        self.source = source
        self._check()
        self._check_entries()

    def __len__(self) -> int:
        return len(self.rows.weights)

    @property
    def n_candidates(self) -> int:
        return len(self.rows.costs)

    @property
    def first_choices(self) -> np.ndarray:
        """Position in each list of the generator's best candidate (int64)."""
        return cheapest(-self.scores, self.rows.starts).astype(np.int64)

    def __repr__(self) -> str:
        return (
            f"<ListDataset {self.source}: {len(self)} lists, {self.n_candidates} candidates, "
            f"{len(self.rows.values)} values>"
        )

    def _check(self) -> None:
        """Checks that numbers are within their arrays: kernels index without checks."""
        rows, source = self.rows, self.source
        if flat := [name for name, a in rows._asdict().items() if a.ndim != 1]:
            raise HopefearError(f"{source}: {flat[0]} must have one dimension")
        n, candidates = len(rows.weights), len(rows.costs)
        check_rising(rows.starts, "starts", n, candidates, source)
        check_rising(rows.scopes, "scopes", n, len(rows.features), source)
        check_rising(rows.indptr, "indptr", candidates, len(rows.columns), source)
        for name, size in (("values", len(rows.columns)), ("offsets", candidates), ("oracles", n)):
            if len(getattr(rows, name)) != size:
                raise HopefearError(
                    f"{source}: {name} must be {size} numbers, not {len(getattr(rows, name))}"
                )
        lengths = np.diff(rows.starts)
        if n and lengths.min() < 1:
            i = int(np.argmin(lengths))
            raise HopefearError(f"{source}: list {self.name(i)} has no candidates; leave it out")
        if n and not ((rows.oracles >= 0) & (rows.oracles < lengths)).all():
            raise HopefearError(f"{source}: an oracle lies outside of its list")
        check_finite(rows, ("offsets", "costs"), source)
        check_not_negative(f"{source}: weights of lists", rows.weights)
        if self.counts is not None and len(self.counts) != candidates:
            raise HopefearError(f"{source}: {candidates} candidates need as many rows of counts")

    def _check_entries(self) -> None:
        """Refuses numbers that are outside of the array they index."""
        rows, source = self.rows, self.source
        after = None if self.features is None else self.features.size
        check_range(rows.features, "features", 0, after, source)
        if not columns_fit(rows.starts, rows.scopes, rows.indptr, rows.columns):
            raise HopefearError(f"{source}: a column lies outside of the features of its list")
        check_finite(rows, ("values",), source)

    def name(self, i: int) -> str:
        """Name of list ``i``; its number, from 1, where it has none."""
        return self.ids[i] if self.ids is not None else str(i + 1)

    @functools.cached_property
    def digest(self) -> str:
        """SHA-256 of the content."""
        return rows_digest([self.metric], self.rows)

    def take(self, indices: Sequence[int] | np.ndarray) -> ListDataset:
        """Returns the lists of these numbers, in this order."""
        indices = np.asarray(indices, np.int64)
        rows = self.rows
        starts, candidates = gathered(rows.starts, indices)
        scopes, features = gathered(rows.scopes, indices)
        indptr, entries = gathered(rows.indptr, candidates)
        return ListDataset(
            ListRows(
                starts,
                scopes,
                rows.features[features],
                indptr,
                rows.columns[entries],
                rows.values[entries],
                rows.offsets[candidates],
                rows.costs[candidates],
                rows.oracles[indices],
                rows.weights[indices],
            ),
            self.features,
            None if self.counts is None else self.counts[candidates],
            self.metric,
            None if self.ids is None else [self.ids[i] for i in indices.tolist()],
            self.source,
            scores=self.scores[candidates],
            n_references=self.n_references,
        )

    def replaced(self, **arrays: Any) -> ListDataset:
        """Returns the same lists with other weights, costs, oracles or offsets."""
        changed = copy.copy(self)
        changed.__dict__.pop("digest", None)
        types = dict(zip(ListRows._fields, _dtypes(self.rows), strict=True))
        changed.rows = self.rows._replace(
            **{name: frozen_as(array, types[name]) for name, array in arrays.items()}
        )
        changed._check()
        if arrays.keys() - {"weights", "costs", "oracles", "offsets"}:
            changed._check_entries()
        return changed


def _dtypes(rows: ListRows) -> tuple[np.dtype, ...]:
    """Types of the arrays; columns are short where that is enough."""
    columns = np.asarray(rows.columns)
    short = columns.dtype == np.uint16 or (
        not columns.size or 0 <= columns.min() <= columns.max() < 1 << 16
    )
    return tuple(np.dtype("u2") if short and name == "columns" else t for name, t in DTYPES.items())


def check_finite(rows: ListRows, names: Sequence[str], source: str) -> None:
    """Refuse numbers that are none."""
    for name in names:
        array = getattr(rows, name)
        if array.size and not (np.isfinite(array.min()) and np.isfinite(array.max())):
            raise HopefearError(f"{source}: {name} must be finite numbers")


@kernel
def columns_fit(starts, scopes, indptr, columns):
    """Returns whether every column is a feature of its list."""
    for i in range(starts.size - 1):
        room = scopes[i + 1] - scopes[i]
        for e in range(indptr[starts[i]], indptr[starts[i + 1]]):
            if not 0 <= columns[e] < room:
                return False
    return True


def cheapest(costs: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Returns the position in each list of the lowest cost; of equal ones the first (int32).

    >>> cheapest(np.array([2.0, 1.0, 1.0, 5.0]), np.array([0, 3, 4])).tolist()
    [1, 0]
    """
    lengths = np.diff(starts)
    least = np.minimum.reduceat(costs, starts[:-1]) if len(lengths) else costs[:0]
    hits = np.flatnonzero(costs == np.repeat(least, lengths))
    first = np.searchsorted(hits, starts[:-1])
    return (hits[first] - starts[:-1]).astype(np.int32)


BASELINES = ("feature", "offset", "none")
ORACLES = ("first", "score")

Blocks = CandidateLists | Iterable[CandidateLists]


def each(blocks: Blocks) -> Iterator[CandidateLists]:
    """Yields the blocks, or the only one."""
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
    metric: ListMetric | None = None,
    judged: bool = True,
) -> ListDataset:
    """Encodes lists in the features of a map; unknown ones are left out.

    Parameters
    ----------
    blocks : CandidateLists, or several
        The lists.
    features : ListFeatures
        Meaning of the features.
    baseline, oracle, metric
        As in :func:`hopefear.tasks.rerank.prepare.dataset`.
    judged : bool
        Whether every candidate must have a cost; else costs are not looked at and all are 0.
    """
    builder = DatasetBuilder(baseline, oracle, metric, judged)
    numbered = [features.encode(builder.add(block)) for block in each(blocks)]
    return builder.dataset(joined(numbered), features)


class DatasetBuilder:
    """Everything about lists but their features, gathered block by block."""

    def __init__(
        self, baseline: str, oracle: str, metric: ListMetric | None, judged: bool = True
    ) -> None:
        check_choice("baseline", baseline, BASELINES)
        check_choice("oracle", oracle, ORACLES)
        self.baseline, self.oracle = baseline, oracle
        self.metric, self.judged = metric, judged
        self.source = "memory"
        self.names: set[str] = set()  # of metrics
        self._references: set[int] = set()
        self._lengths: list[np.ndarray] = []
        self._scores: list[np.ndarray] = []
        self._costs: list[np.ndarray] = []
        self._counts: list[np.ndarray | None] = []
        self._weights: list[np.ndarray] = []
        self._ids: list[str] = []

    def add(self, block: CandidateLists) -> CandidateLists:
        """Takes a block; returns it with costs."""
        if self.baseline != "none":
            check_score_name(block)
        self._references.add(block.n_references)
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

    def dataset(self, numbered: NumberedLists, features: Any) -> ListDataset:
        """Returns the dataset of all blocks."""
        check_one_metric(self.names, self.source)
        starts = np.concatenate([[0], np.cumsum(_joined(self._lengths, np.int64))])
        scores, costs = _joined(self._scores), _joined(self._costs)
        rows = ListRows(
            starts.astype(np.int64),
            numbered.scopes,
            numbered.features,
            numbered.indptr,
            numbered.columns,
            numbered.values,
            fixed_scores(scores, starts)
            if self.baseline == "offset"
            else np.zeros(len(scores), np.float32),
            costs,
            oracles(costs, scores, starts, self.oracle),
            _joined(self._weights),
        )
        counts = [rows_of for rows_of in self._counts if rows_of is not None]
        table = None
        if counts and len(counts) == len(self._counts):
            table = np.concatenate(counts)
        name = next(iter(self.names), "cost")
        several = -1 if len(self._references) > 1 else next(iter(self._references), 1)
        provenance = table, name, self._ids, self.source
        return ListDataset(rows, features, *provenance, scores=scores, n_references=several)


def _joined(parts: list[np.ndarray], dtype: Any = np.float64) -> np.ndarray:
    """All parts as one, which takes their place: two copies of all candidates are one too many."""
    joined = np.concatenate([np.empty(0, dtype), *parts])
    parts[:] = [joined]
    return joined


def judged(block: CandidateLists, metric: ListMetric | None = None) -> CandidateLists:
    """Returns the block with a cost for every candidate.

    Parameters
    ----------
    block : CandidateLists
        With costs, counts of the metric, or texts and references.
    metric : ListMetric, optional
        Makes the costs; without it they must be there.
    """
    if metric is None or metric.name == GIVEN:
        if block.costs is None:
            trees = block.trees is not None
            alternatives = "gold trees" if trees else "references and a metric"
            raise _unjudged(block, f"a cost for every candidate, or {alternatives}")
        if metric is None:
            return block
        return replace(block, counts=None, metric=GIVEN)
    if block.counts is None or block.metric != metric.name:
        check_metric(metric.name, block.trees is not None, block.source)
        if block.trees is not None:
            raise _unjudged(block, "a gold tree for every list, to count brackets against")
        if block.references is None:
            raise _unjudged(block, f"references, to count {metric.name} against, for every list")
    return counted(block, metric)


def _unjudged(block: CandidateLists, expected: str) -> UnjudgedError:
    example = f" (such as list {block.ids[0]!r:.60})" if len(block) else ""
    return UnjudgedError(
        block.source, block.line_of(0) if len(block) else 0, f"{expected}{example}; there are none"
    )


def idle_lists(data: ListDataset) -> np.ndarray:
    """Returns which lists teach nothing (bool): all of their candidates cost the same.

    >>> rows = ListRows([0, 2], [0, 1], [7], [0, 0, 1], [0], [1.0], [0, 0], [0.5, 0], [1], [1])
    >>> idle_lists(ListDataset(rows)).tolist()
    [False]
    """
    costs, starts = data.rows.costs, data.rows.starts[:-1]
    if not len(starts):
        return np.zeros(0, bool)
    return np.minimum.reduceat(costs, starts) == np.maximum.reduceat(costs, starts)


def teaching(data: ListDataset) -> ListDataset:
    """Returns the data with the weight 0 for lists that teach nothing."""
    idle = idle_lists(data)
    return data.replaced(weights=np.where(idle, 0.0, data.rows.weights)) if idle.any() else data


def counts_of(data: ListDataset, metric: ListMetric) -> np.ndarray:
    """Returns what a metric counts in every candidate."""
    if metric.name == GIVEN:
        return GivenCost().statistics_of(data.rows.costs)
    if data.counts is None:
        raise HopefearError(
            f"{data.source}: its candidates have no counts of {metric.name}; make the dataset with "
            f"metric={metric.name!r}"
        )
    return data.counts


def check_score_name(block: CandidateLists) -> None:
    """Refuse a feature of the name that the generator's score has."""
    names = list(block.names)
    if block.sparse is not None:
        names += [block.sparse.names[i] for i in used_ids(block.sparse.ids).tolist()]
    if SCORE in names and block.scores.any():
        raise HopefearError(
            f"{block.source}: candidates have a score and a feature of the name {SCORE!r} too; "
            "call the feature something else"
        )


def check_one_metric(names: set[str], source: str) -> None:
    """Refuse lists that are judged by several metrics."""
    if len(names) > 1:
        raise HopefearError(
            f"{source}: some lists are judged by {', '.join(sorted(names))}, and scores of "
            "different metrics do not add up; name one metric for all"
        )


def check_choice(option: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse a word that is none of the known ones."""
    if value not in choices:
        raise HopefearError(f"{option} is one of {', '.join(choices)}, not {value!r}")


def fixed_scores(scores: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Returns scores relative to the best of each list, for which single precision is enough.

    >>> fixed_scores(np.array([-1e9, -1e9 - 1, 3.0]), np.array([0, 2, 3])).tolist()
    [0.0, -1.0, 0.0]
    """
    if len(starts) == 1:
        return scores
    return scores - np.repeat(np.maximum.reduceat(scores, starts[:-1]), np.diff(starts))


def oracles(
    costs: np.ndarray, scores: np.ndarray, starts: np.ndarray, rule: str = "first"
) -> np.ndarray:
    """Returns the position in each list of the candidate to learn: the cheapest.

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

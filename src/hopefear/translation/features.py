"""Features that tuning gives weights: their selection, fixed ones among them, and their numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hopefear.core.arrays import Strings, frozen
from hopefear.core.checks import check_at_least
from hopefear.core.hashing import StringTable
from hopefear.data.lists.candidates import (
    CandidateLists,
    Layout,
    NamedEntries,
    dense_names,
    interleaved,
    packed,
)
from hopefear.data.lists.dataset import DatasetBuilder, ListDataset, fixed_scores
from hopefear.errors import HopefearError
from hopefear.features.lists.numbering import (
    Keyed,
    NumberedLists,
    joined,
    numbered,
    pruned,
    relative,
)
from hopefear.metrics.lists import ListMetric
from hopefear.translation.names import check_same
from hopefear.translation.scoring import scores
from hopefear.translation.text_features import DERIVED, derived, needed
from hopefear.translation.weights import Weights

GROUPS = ("dense", "sparse", "phrases")
# Lists that are looked at together: enough to be fast, few enough to be small.
_BLOCK = 500
_NO_NAMES = Strings.pack([])


@dataclass(frozen=True)
class TuningFeatures:
    """Features by number: the dense ones first, then named sparse ones, then phrase pairs.

    Parameters
    ----------
    layout : tuple of (str, int)
        Dense features and how many numbers each has.
    sparse, phrases : Strings
        Names of the others.

    Examples
    --------
    >>> features = TuningFeatures((("LM0", 1), ("TM0", 2)), Strings.pack(["pp_a~b"]))
    >>> features.size, [features.name(j) for j in range(4)]
    (4, ['LM0', 'TM0.0', 'TM0.1', 'pp_a~b'])
    """

    layout: Layout
    sparse: Strings = field(default_factory=lambda: _NO_NAMES)
    phrases: Strings = field(default_factory=lambda: _NO_NAMES)

    @property
    def n_dense(self) -> int:
        return sum(width for _, width in self.layout)

    @property
    def size(self) -> int:
        return self.n_dense + self.sparse.size + self.phrases.size

    def name(self, j: int) -> str:
        """Name of feature ``j``."""
        if j < self.n_dense:
            return dense_names(self.layout)[j]
        j -= self.n_dense
        return (
            self.sparse.get(j) if j < self.sparse.size else self.phrases.get(j - self.sparse.size)
        )

    def encode(
        self, lists: CandidateLists, metric: ListMetric, offsets: np.ndarray | None = None
    ) -> ListDataset:
        """Encodes lists in these features; what has no number here is left out.

        Parameters
        ----------
        lists : CandidateLists
            With counts of the metric.
        metric : ListMetric
            Makes costs of candidates from their counts.
        offsets : float array, optional
            Fixed scores of candidates, which no weight changes.
        """
        if self.layout:
            check_same(self.layout, lists.layout, source=lists.source)
        names = [
            _lookup(self.sparse, lists.sparse, self.n_dense),
            _lookup(self.phrases, lists.phrases, self.n_dense + self.sparse.size),
        ]
        table = _numbers(lists, self.n_dense, names, np.arange(self.size, dtype=np.int32))
        return _dataset(lists, metric, table, self, offsets)


def learned(
    lists: CandidateLists,
    metric: ListMetric,
    groups: tuple[str, ...] = ("dense", "sparse"),
    min_count: int = 1,
    offsets: np.ndarray | None = None,
) -> ListDataset:
    """Encodes lists in the features that they have themselves.

    Parameters
    ----------
    lists : CandidateLists
        With counts of the metric.
    metric : ListMetric
        Makes costs of candidates from their counts.
    groups : tuple of {"dense", "sparse", "phrases"}
        Which features get weights.
    min_count : int
        Sparse features and phrase pairs that distinguish candidates in fewer lists are left out.
    offsets : float array, optional
        Fixed scores of candidates, which no weight changes.
    """
    for group in groups:
        if group not in GROUPS:
            raise HopefearError(f"features are {', '.join(GROUPS)}, not {group!r}")
    check_at_least("min_count", min_count, 1)
    dense = lists.dense.shape[1] if "dense" in groups else 0
    sparse = lists.sparse if "sparse" in groups else None
    phrases = lists.phrases if "phrases" in groups else None
    if "phrases" in groups and phrases is None:
        raise HopefearError(
            f"{lists.source}: phrase pairs were not read; give the sentences that were translated "
            "(--source), or leave phrases out of the features"
        )
    first = dense + (0 if sparse is None else len(sparse.names))
    table = _numbers(
        lists,
        dense,
        [_all_entries(sparse, dense), _all_entries(phrases, first)],
        None,
    )
    size = first + (0 if phrases is None else len(phrases.names))
    often = np.bincount(table.features, minlength=size)
    frequent = often >= min_count
    frequent[:dense] = True
    new = np.where(frequent, np.cumsum(frequent) - 1, -1).astype(np.int32)
    table = pruned(table, lists.starts, new)
    features = TuningFeatures(
        lists.layout if dense else (),
        _frequent(sparse, frequent[dense:first]),
        _frequent(phrases, frequent[first:]),
    )
    return _dataset(lists, metric, table, features, offsets)


def _dataset(
    lists: CandidateLists, metric: ListMetric, table: NumberedLists, features: Any, offsets: Any
) -> ListDataset:
    if lists.counts is None:
        raise HopefearError(
            f"{lists.source}: candidates were not compared with references; give references"
        )
    builder = DatasetBuilder("none", "first", metric)
    builder.add(lists)
    data = builder.dataset(table, features)
    return data if offsets is None else data.replaced(offsets=offsets)


def _numbers(
    lists: CandidateLists,
    dense: int,
    named: list[tuple[NamedEntries, np.ndarray] | None],
    new: np.ndarray | None,
) -> NumberedLists:
    """Numbered features of all lists, some at a time."""
    blocks = []
    for begin in range(0, len(lists), _BLOCK):
        end = min(begin + _BLOCK, len(lists))
        a, b = int(lists.starts[begin]), int(lists.starts[end])
        starts = lists.starts[begin : end + 1] - a
        present = [entry for entry in named if entry is not None]
        parts = [_dense_part(lists.dense[a:b, :dense], starts)] if dense or not present else []
        parts += [_named_part(entries.take(np.arange(a, b)), keys) for entries, keys in present]
        keyed = relative(starts, Keyed(*interleaved(parts)))
        block = numbered(keyed, (keyed.keys - np.uint64(1)).astype(np.int32))
        blocks.append(block if new is None else pruned(block, starts, new))
    return joined(blocks)


# Keys are numbers of features plus 1, for 0 is no key.
def _dense_part(values: np.ndarray, starts: np.ndarray) -> Keyed:
    """Dense features less those of the first candidate: only differences count."""
    n, width = values.shape
    values = values - np.repeat(values[starts[:-1]], np.diff(starts), axis=0)
    keys = np.tile(np.arange(1, width + 1, dtype=np.uint64), n)
    return Keyed(np.arange(n + 1) * width, keys, values.ravel())


def _named_part(entries: NamedEntries, numbers: np.ndarray) -> Keyed:
    keys = numbers[entries.ids]
    values = np.ones(len(keys), np.float32) if entries.values is None else entries.values
    mask = keys >= 0
    indptr = np.concatenate([[0], np.cumsum(mask)])[entries.indptr]
    return Keyed(indptr, (keys[mask] + 1).astype(np.uint64), values[mask])


def _all_entries(
    entries: NamedEntries | None, first: int
) -> tuple[NamedEntries, np.ndarray] | None:
    if entries is None:
        return None
    return entries, np.arange(first, first + len(entries.names), dtype=np.int64)


def _lookup(
    names: Strings, entries: NamedEntries | None, first: int
) -> tuple[NamedEntries, np.ndarray] | None:
    """Entries and the numbers that their names have among ``names``; -1 where they have none."""
    if entries is None or not names.size:
        return None
    indices = StringTable.of(names).find(packed(entries.names)).astype(np.int64)
    return entries, np.where(indices >= 0, indices + first, -1)


def _frequent(entries: NamedEntries | None, frequent: np.ndarray) -> Strings:
    if entries is None:
        return _NO_NAMES
    text, offsets = packed(entries.names)
    sizes = np.diff(offsets)
    return Strings(
        frozen(text[np.repeat(frequent, sizes)]),
        frozen(np.concatenate([[0], np.cumsum(sizes[frequent])])),
    )


def chosen_features(
    lists: CandidateLists, features: Sequence[str] | None, fixed: Weights | None
) -> tuple[str, ...]:
    """Returns the groups of features that get weights, with those computed from the text."""
    has_dense = fixed is not None and bool(fixed.layout)
    if features is None:
        groups = {"dense": not has_dense, "sparse": lists.sparse, "phrases": lists.phrases}
        return tuple(name for name, entries in groups.items() if entries)
    names = ", ".join((*GROUPS, *DERIVED))
    if not features:
        raise HopefearError(f"there are no features to tune; name some of {names}")
    for group in features:
        if group not in (*GROUPS, *DERIVED):
            raise HopefearError(f"features are {names}, not {group!r}")
    if not has_dense and lists.layout and "dense" not in kinds(features):
        raise HopefearError(
            f"{lists.source} has dense features, which would count nothing beside tuned "
            f"{', '.join(features)}: name dense too, or give weights for them that are fixed "
            "(fixed, --fixed)"
        )
    if fixed is not None and has_dense:
        computed = dict(fixed.layout).keys() & set(told_names(features))
        if "dense" in features or computed:
            raise HopefearError(
                "fixed weights of dense features and tuned ones of the same: name features "
                f"without {'dense' if 'dense' in features else min(computed)}, or start from those "
                "weights instead"
            )
    return tuple(features)


def kinds(groups: Sequence[str]) -> tuple[str, ...]:
    """Returns the groups, with those that computed features require.

    >>> kinds(["phrases", "consensus", "ngrams"])
    ('phrases', 'dense', 'sparse')
    """
    return tuple(dict.fromkeys(DERIVED[g].kind if g in DERIVED else g for g in groups))


def signed_groups(groups: Sequence[str], fixed: Weights | None) -> str:
    """Describes the groups that get weights, for signatures.

    >>> signed_groups(["dense", "ngrams"], None)
    'dense+sparse+ngrams'
    """
    groups_once = dict.fromkeys((*kinds(groups), *groups))
    if fixed is not None and fixed.layout:  # dense features are then those computed from the text
        groups_once.pop("dense", None)
    return "+".join(groups_once)


def told_names(groups: Sequence[str]) -> list[str]:
    """Returns names of dense features of ``groups`` that are computed from the text."""
    return [name for group in groups if group in DERIVED for name in DERIVED[group].dense]


def tuned_lists(
    lists: CandidateLists, groups: Sequence[str], fixed: Weights | None
) -> tuple[CandidateLists, np.ndarray | None]:
    """(The lists with all that gets weights, fixed scores of candidates if there are any).

    Where dense weights are fixed, of the dense features only those that words tell stay. Scores
    are relative to the best of each list.
    """
    with_features = derived(lists, [group for group in groups if group in DERIVED])
    if fixed is None:
        return with_features, None
    if not fixed.layout:
        return with_features, fixed_scores(scores(lists, fixed), lists.starts)
    names = told_names(groups)
    plain = _columns(lists, [name for name, _ in lists.layout if name not in names])
    return _columns(with_features, names), fixed_scores(scores(plain, fixed), lists.starts)


def summed_weights(fixed: Weights, tuned: Weights) -> Weights:
    """Fixed weights and those tuned beside them; of a name in both, the sum.

    Examples
    --------
    >>> fixed = Weights((("LM0", 1),), [0.5], {"a_b": 1.0})
    >>> both = summed_weights(fixed, Weights((), [], {"a_b": 0.25}))
    >>> both.dense.tolist(), both.sparse
    ([0.5], {'a_b': 1.25})
    """
    return Weights(
        (*fixed.layout, *tuned.layout),
        np.concatenate([fixed.dense, tuned.dense]),
        _sums(fixed.sparse, tuned.sparse),
        _sums(fixed.phrases, tuned.phrases),
        tuned.about,
    )


def check_start(start: Weights, groups: Sequence[str], lists: CandidateLists) -> None:
    """HopefearError where weights to start from count for candidates and would get lost."""
    groups_of_words = [name for name in needed(start) if not DERIVED[name].there(lists)]
    losses = [name for name in groups_of_words if name not in groups]
    if start.sparse and lists.sparse is not None and "sparse" not in kinds(groups):
        losses.append("sparse")
    if start.phrases and "phrases" not in groups:  # the lists may or may not have any
        losses.append("phrases")
    if losses:
        raise HopefearError(
            f"the weights to start from have some of {' and '.join(losses)}, which are not tuned "
            "here: tune those too (phrases with the sentences that were translated), or start from "
            "weights without them"
        )


def with_earlier(
    tuned: Weights, start: Weights, features: TuningFeatures, lists: CandidateLists, min_count: int
) -> Weights:
    """Adds to tuned weights those of the start whose features these lists lack.

    What ``min_count`` has left out, on purpose, is left out here too.
    """

    def earlier(group: str) -> dict[str, float]:
        entries: NamedEntries | None = getattr(lists, group)
        left_out = [] if entries is None or min_count == 1 else [packed(entries.names)]
        return _without(getattr(start, group), [getattr(features, group), *left_out])

    return replace(
        tuned,
        sparse={**earlier("sparse"), **tuned.sparse},
        phrases={**earlier("phrases"), **tuned.phrases},
    )


def fingerprint(weights: Weights) -> str:
    """Returns a short hash that identifies weights, without their metadata.

    >>> fingerprint(Weights((("LM0", 1),), [0.5])) == fingerprint(Weights((("LM0", 1),), [0.25]))
    False
    """
    parts = [weights.layout, weights.dense.tolist(), weights.sparse, weights.phrases]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]


def _columns(lists: CandidateLists, names: Collection[str]) -> CandidateLists:
    """The lists with these dense features only."""
    layout = tuple(entry for entry in lists.layout if entry[0] in names)
    mask = np.repeat(
        [name in names for name, _ in lists.layout], [width for _, width in lists.layout]
    ).astype(bool)
    if mask.all():
        return lists
    return replace(lists, layout=layout, dense=frozen(np.ascontiguousarray(lists.dense[:, mask])))


def _sums(first: Mapping[str, float], second: Mapping[str, float]) -> dict[str, float]:
    return {**first, **{name: first.get(name, 0.0) + value for name, value in second.items()}}


def _without(weights: Mapping[str, float], tables: Sequence[Strings]) -> dict[str, float]:
    """Those of the weights whose names are in none of these tables."""
    if not weights:
        return {}
    table, matches = StringTable.of(Strings.pack(weights)), np.zeros(len(weights) + 1, bool)
    for names in tables:
        matches[table.find(names)] = True  # -1, the last, for those that have no weight
    pairs = zip(weights.items(), matches[:-1].tolist(), strict=True)
    return {name: value for (name, value), there in pairs if not there}

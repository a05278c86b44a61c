"""What tuning puts weights on: dense features, named sparse ones, phrase pairs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hopefear.core.arrays import Strings, frozen
from hopefear.core.hashing import StringTable
from hopefear.data.lists.dataset import ListDataset, ListRows, cheapest
from hopefear.data.moses.lists import NamedEntries, TuningLists, dense_names
from hopefear.errors import HopefearError
from hopefear.features.lists.keyed import Keyed, Numbered, joined, numbered, pruned, relative
from hopefear.metrics.lists import ListMetric
from hopefear.translation.layouts import Layout, check_same

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
        self, lists: TuningLists, metric: ListMetric, offsets: np.ndarray | None = None
    ) -> ListDataset:
        """Lists in these features; what has no number here is left out.

        Parameters
        ----------
        lists : TuningLists
            With counts of the metric.
        metric : ListMetric
            Makes costs of candidates from their counts.
        offsets : float array, optional
            Fixed scores of candidates, which no weight changes.
        """
        if self.layout:
            check_same(self.layout, lists.layout, source=lists.source)
        names = [
            _found(self.sparse, lists.sparse, self.n_dense),
            _found(self.phrases, lists.phrases, self.n_dense + self.sparse.size),
        ]
        table = _numbers(lists, self.n_dense, names, np.arange(self.size, dtype=np.int32))
        return _dataset(lists, metric, table, self, offsets)


def learned(
    lists: TuningLists,
    metric: ListMetric,
    groups: tuple[str, ...] = ("dense", "sparse"),
    min_count: int = 1,
    offsets: np.ndarray | None = None,
) -> ListDataset:
    """Lists in the features that they have themselves.

    Parameters
    ----------
    lists : TuningLists
        With counts of the metric.
    metric : ListMetric
        Makes costs of candidates from their counts.
    groups : tuple of {"dense", "sparse", "phrases"}
        Which features get weights.
    min_count : int
        Sparse features and phrase pairs that tell candidates apart in fewer lists are left out.
    offsets : float array, optional
        Fixed scores of candidates, which no weight changes.
    """
    for group in groups:
        if group not in GROUPS:
            raise HopefearError(f"features are {', '.join(GROUPS)}, not {group!r}")
    if min_count < 1:
        raise HopefearError(f"min_count must be 1 or more, not {min_count}")
    dense = lists.dense.shape[1] if "dense" in groups else 0
    sparse = lists.sparse if "sparse" in groups else None
    phrases = lists.phrases if "phrases" in groups else None
    if "phrases" in groups and phrases is None:
        raise HopefearError(
            f"{lists.source}: phrase pairs were not read; give the sentences that were translated "
            "(--source), or leave phrases out of the features"
        )
    first = dense + (0 if sparse is None else sparse.names.size)
    table = _numbers(
        lists,
        dense,
        [_all(sparse, dense), _all(phrases, first)],
        None,
    )
    size = first + (0 if phrases is None else phrases.names.size)
    often = np.bincount(table.features, minlength=size)
    kept = often >= min_count
    kept[:dense] = True
    new = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    table = pruned(table, lists.starts, new)
    features = TuningFeatures(
        lists.layout if dense else (),
        _taken(sparse, kept[dense:first]),
        _taken(phrases, kept[first:]),
    )
    return _dataset(lists, metric, table, features, offsets)


def _dataset(
    lists: TuningLists, metric: ListMetric, table: Numbered, features: Any, offsets: Any
) -> ListDataset:
    if lists.counts is None:
        raise HopefearError(
            f"{lists.source}: candidates were not compared with references; give references"
        )
    costs = metric.costs(lists.counts)
    rows = ListRows(
        lists.starts,
        table.scopes,
        table.features,
        table.indptr,
        table.columns,
        table.values,
        np.zeros(len(costs)) if offsets is None else offsets,
        costs,
        cheapest(costs, lists.starts),
        np.ones(len(lists)),
    )
    ids = [str(i) for i in lists.ids.tolist()]
    return ListDataset(rows, features, lists.counts, metric.name, ids, lists.source)


def _numbers(
    lists: TuningLists,
    dense: int,
    named: list[tuple[NamedEntries, np.ndarray] | None],
    new: np.ndarray | None,
) -> Numbered:
    """Numbered features of all lists, some at a time."""
    blocks = []
    for begin in range(0, len(lists), _BLOCK):
        end = min(begin + _BLOCK, len(lists))
        a, b = int(lists.starts[begin]), int(lists.starts[end])
        starts = lists.starts[begin : end + 1] - a
        parts = [_dense_part(lists.dense[a:b, :dense], starts)] if dense else []
        for entry in named:
            if entry is not None:
                parts.append(_named_part(entry[0].slice(a, b), entry[1]))
        found = relative(starts, _merged(parts, b - a))
        block = numbered(found, (found.keys - np.uint64(1)).astype(np.int32))
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
    known = keys >= 0
    indptr = np.concatenate([[0], np.cumsum(known)])[entries.indptr]
    return Keyed(indptr, (keys[known] + 1).astype(np.uint64), values[known])


def _merged(parts: list[Keyed], n: int) -> Keyed:
    """Entries of several parts, candidate by candidate."""
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Keyed(np.zeros(n + 1, np.int64), np.zeros(0, np.uint64), np.zeros(0, np.float32))
    owners = np.concatenate([np.repeat(np.arange(n), np.diff(part.indptr)) for part in parts])
    order = np.argsort(owners, kind="stable")
    indptr: Any = sum(part.indptr for part in parts)
    return Keyed(
        indptr,
        np.concatenate([part.keys for part in parts])[order],
        np.concatenate([part.values for part in parts])[order],
    )


def _all(entries: NamedEntries | None, first: int) -> tuple[NamedEntries, np.ndarray] | None:
    if entries is None:
        return None
    return entries, np.arange(first, first + entries.names.size, dtype=np.int64)


def _found(
    names: Strings, entries: NamedEntries | None, first: int
) -> tuple[NamedEntries, np.ndarray] | None:
    """Entries and the numbers that their names have among ``names``; -1 where they have none."""
    if entries is None or not names.size:
        return None
    places = StringTable.of(names).find(entries.names).astype(np.int64)
    return entries, np.where(places >= 0, places + first, -1)


def _taken(entries: NamedEntries | None, kept: np.ndarray) -> Strings:
    if entries is None:
        return _NO_NAMES
    text, offsets = entries.names.text, entries.names.offsets
    sizes = np.diff(offsets)
    return Strings(
        frozen(text[np.repeat(kept, sizes)]),
        frozen(np.concatenate([[0], np.cumsum(sizes[kept])])),
    )

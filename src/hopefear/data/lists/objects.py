"""Lists of candidates from Python objects, with errors that name the list and the candidate."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

from hopefear.core.arrays import Strings, Texts, frozen
from hopefear.core.checks import sample_weights
from hopefear.data.lists.candidates import CandidateLists, Layout, NamedEntries
from hopefear.data.lists.input import FeatureNames, finite, number_wanted
from hopefear.data.lists.trees import TreeTextError, gold_text, parse_trees
from hopefear.data.parse_numbers import LARGEST
from hopefear.errors import HopefearError
from hopefear.features.brackets import BracketTrees, bracket_counts
from hopefear.metrics.lists import Parseval

# What a candidate may hold where it is more than its features: for rerankers, and for tuners.
COUNTS = ("matched", "gold_brackets", "test_brackets")
RECORD = ("features", "score", "logprob", "cost", "text", "tree", "derivation", *COUNTS)
TRANSLATION = ("text", "features", "score", "phrases")


class ListBuilder:
    """Lists in the making.

    Parameters
    ----------
    keys : sequence of str
        What a candidate may hold; a candidate is a dict of features where there are none.
    judged : bool
        Whether costs and references are looked at.
    tuples : bool
        Whether a candidate may be a tuple too, of the first of ``keys`` in their order, and a
        feature several numbers.
    source : str
        What messages call the lists.
    """

    def __init__(
        self,
        keys: Sequence[str] = (),
        judged: bool = True,
        tuples: bool = False,
        source: str = "memory",
    ) -> None:
        self.keys, self.judged, self.tuples, self.source = tuple(keys), judged, tuples, source
        self.names, self.pair_names = FeatureNames(), FeatureNames()
        self.ends: list[int] = []
        self.indptr: list[int] = [0]
        self.ids: list[int] = []
        self.values: list[float] = []
        self.scores: list[float] = []
        self.costs: list[float] = []
        self.texts: list[str] = []
        self.derivations: list[str | None] = []
        self.pairs: list[list[int]] = []
        self.trees, self.has_pairs = 0, False
        self.labels: list[str] = []
        self.references: list[list[str]] = []
        self.weights: list[float] = []
        self.counts: list[list[int]] = []

    def add_all(self, lists: Any) -> None:
        """Takes in lists; HopefearError where they are none."""
        for i, items in enumerate(outer(lists)):
            self.add(i, items)

    def add(self, i: int, items: Any) -> None:
        """Takes in list ``i``."""
        self.labels.append(str(i))
        weight = 1.0
        if isinstance(items, Mapping) and not self.tuples:
            self.labels[-1] = str(items.get("id", i))
            texts = items.get("references", items.get("reference", items.get("gold")))
            if texts is not None and self.judged:
                self.references.append([texts] if isinstance(texts, str) else list(texts))
            weight = _number(f"list {i}", "weight", items.get("weight", 1.0))
            if weight < 0.0:
                raise HopefearError(f"list {i}: its weight is {weight}, not a number from 0 on")
            items = items.get("candidates")
        self.weights.append(weight)
        before = len(self.scores)
        if not self.tuples and (
            sparse.issparse(items) or (isinstance(items, np.ndarray) and items.ndim == 2)
        ):
            self._rows(i, items)
        elif isinstance(items, list | tuple):
            for c, item in enumerate(items):
                self._candidate(f"list {i}, candidate {c}", item)
        else:
            matrix = "" if self.tuples else " or a matrix with a row for each"
            raise HopefearError(
                f"list {i}: expected a list of candidates{matrix}, found {items!r:.60}"
            )
        if len(self.scores) == before:
            raise HopefearError(f"list {i} has no candidates; leave it out")
        self.ends.append(len(self.scores))

    def lists(self) -> CandidateLists:
        """Returns the lists; HopefearError where some have what others lack."""
        n = len(self.scores)
        if self.costs and len(self.costs) != n:
            raise HopefearError(
                f"{len(self.costs)} of {n} candidates have a cost; give it to all or to none"
            )
        if self.references and len(self.references) != len(self.ends):
            raise HopefearError("some lists have a reference and some have none; give all or none")
        if self.trees not in (0, n):
            raise HopefearError(
                f"{self.trees} of {n} candidates are trees; give trees to all or to none"
            )
        phrases = None
        if self.has_pairs:
            ends = np.cumsum([0, *map(len, self.pairs)])
            flat = [pair for pairs in self.pairs for pair in pairs]
            phrases = NamedEntries(
                Texts(Strings.pack(self.pair_names.order)),
                frozen(ends),
                frozen(np.array(flat, np.int32)),
            )
        if self.counts and len(self.counts) != n:
            raise HopefearError(
                f"{len(self.counts)} of {n} candidates have counts of brackets; give them to all "
                "or to none"
            )
        counts = np.array(self.counts, np.int64) if self.counts else None
        costs = np.array(self.costs, np.float64) if self.costs else None
        several = {len(references) for references in self.references or [[""]]}
        weights = np.array(self.weights, np.float64)
        return CandidateLists(
            self.labels,
            frozen(np.array([0, *self.ends], np.int64)),
            self.texts,
            frozen(np.array(self.scores, np.float64)),
            None if costs is None else frozen(costs),
            None if counts is None else frozen(counts),
            references=self.references or None,
            n_references=several.pop() if len(several) == 1 else -1,
            sparse=NamedEntries(
                self.names.order,
                frozen(np.array(self.indptr, np.int64)),
                frozen(np.array(self.ids, np.int32)),
                frozen(np.array(self.values, np.float64)),
            ),
            phrases=phrases,
            trees=trees_of(self.texts, self._location) if self.trees else None,
            derivations=self.derivations if any(self.derivations) else None,
            weights=None if (weights == 1.0).all() else frozen(weights),
            source=self.source,
        )

    def _location(self, k: int) -> str:
        """Describes the place of candidate ``k`` of all, for messages."""
        i = bisect_right(self.ends, k)
        return f"list {i}, candidate {k - ([0, *self.ends][i])}"

    def _candidate(self, where: str, item: Any) -> None:
        if self.tuples and isinstance(item, list | tuple) and len(item) <= len(self.keys):
            item = dict(zip(self.keys, item, strict=False))
        if not isinstance(item, Mapping):
            shape = f" with some of {', '.join(self.keys)}, or a tuple of them" * self.tuples
            raise HopefearError(f"{where}: expected a dict{shape}, found {item!r:.60}")
        if self.keys:
            self._record(where, item)
        else:
            self._features(where, item)
            self._close(0.0, "")

    def _record(self, where: str, item: Mapping[str, Any]) -> None:
        if strange := sorted(map(str, set(item) - set(self.keys))):
            raise HopefearError(
                f"{where}: no key {strange[0]!r}; a candidate has {', '.join(self.keys)}, and "
                "what tells it from others is among its features"
            )
        features = item.get("features") or {}
        if not isinstance(features, Mapping):
            raise HopefearError(f"{where}: expected features in a dict, found {features!r:.60}")
        self._features(where, features)
        score = item.get("score", item.get("logprob", 0.0))
        score = _number(where, "score", 0.0 if score is None and self.tuples else score)
        text = item.get("tree", item.get("text", ""))
        if not isinstance(text, str):
            raise HopefearError(f"{where}: expected a text, found {text!r:.60}")
        self.trees += "tree" in item
        derivation = item.get("derivation")
        if derivation is not None and not isinstance(derivation, str):
            raise HopefearError(
                f"{where}: expected a string as derivation, found {derivation!r:.60}"
            )
        if self.judged and item.get("cost") is not None:
            self.costs.append(_number(where, "cost", item["cost"]))
        if self.judged and "tree" in item and COUNTS[0] in item:
            counts: list[Any] = [item.get(name) for name in COUNTS]
            if not all(isinstance(count, Integral) for count in counts) or not (
                0 <= counts[0] <= min(counts)
            ):
                raise HopefearError(
                    f"{where}: expected {', '.join(COUNTS)} as counts that fit together, found "
                    f"{counts}"
                )
            self.counts.append(counts)
        pairs = item.get("phrases")
        self.has_pairs |= pairs is not None
        self._close(score, text, derivation, [_pair(where, pair) for pair in pairs or ()])

    def _features(self, where: str, features: Mapping[str, Any]) -> None:
        for name, value in features.items():
            if not isinstance(name, str):
                raise HopefearError(f"{where}: names of features are strings, not {name!r:.60}")
            if self.tuples and isinstance(value, list | tuple | np.ndarray):
                numbers = [_number(where, f"feature {name!r}", number) for number in value]
                if not numbers:
                    raise HopefearError(f"{where}: feature {name!r} has no number; leave it out")
                self.ids += [self.names[name]] * len(numbers)
                self.values += numbers
                continue
            if isinstance(value, str) and not self.tuples:
                name, value = f"{name}={value}", 1.0
            self.ids.append(self.names[name])
            self.values.append(_number(where, f"feature {name!r}", value))

    def _rows(self, i: int, rows: Any) -> None:
        """A matrix: a row for each candidate, features are named by their columns."""
        try:
            table = sparse.csr_matrix(rows, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise HopefearError(f"list {i}: expected numbers in its matrix: {error}") from error
        table.sum_duplicates()
        good = np.abs(table.data) <= LARGEST  # no infinity, and no comparison with NaN, is
        if not good.all():
            c = int(np.searchsorted(table.indptr, np.argmin(good), "right")) - 1
            raise HopefearError(
                f"list {i}, candidate {c}: a feature is not a finite number of at most 1e15 in size"
            )
        names = [self.names[str(j)] for j in table.indices.tolist()]
        data = table.data.tolist()
        for c in range(table.shape[0]):
            self.ids += names[table.indptr[c] : table.indptr[c + 1]]
            self.values += data[table.indptr[c] : table.indptr[c + 1]]
            self._close(0.0, "")

    def _close(
        self, score: float, text: str, derivation: str | None = None, pairs: Sequence[str] = ()
    ) -> None:
        self.indptr.append(len(self.ids))
        self.scores.append(score)
        self.texts.append(text)
        self.derivations.append(derivation)
        self.pairs.append(sorted({self.pair_names[pair] for pair in pairs}))


@dataclass(frozen=True)
class ListReader:
    """Reader of lists of Python objects.

    Parameters
    ----------
    records : bool
        True: a candidate is a dict with some of the keys of `RECORD`, or, where no candidate has
        one of them, of its features. False: it is a dict of features.

    Examples
    --------
    >>> lists = [[{"lm": -1.5, "long": True}, {"lm": -2.0}]]
    >>> reader = ListReader.of(lists)
    >>> [block] = reader.read(lists, [[0.0, 1.0]])
    >>> reader.records, block.sparse.names, block.sparse.values.tolist()
    (False, ['lm', 'long'], [-1.5, 1.0, -2.0])
    """

    records: bool = True

    @classmethod
    def of(cls, X: Any) -> ListReader:
        """Returns the reader for lists that are written as those of ``X``."""
        if are_blocks(X):
            return cls()
        keys = [set(item) for item in _dicts(X)]
        return cls(bool(keys) and all(names <= set(RECORD) for names in keys))

    def read(
        self,
        X: Any,
        y: Any = None,
        weights: Any = None,
        *,
        metric: str | None = None,
        judged: bool = True,
    ) -> Iterable[CandidateLists]:
        """Returns lists as readers of files give them.

        Parameters
        ----------
        X : list of lists of candidates, CandidateLists or several of them
            The lists; see `listed`.
        y, weights
            Costs or references, and a weight, of each list; not for several blocks, which hold
            theirs.
        metric : str, optional
            Name of what makes the costs.
        judged : bool
            Whether costs and references are looked at.
        """
        X = listed(X)
        if are_blocks(X):
            if isinstance(X, CandidateLists):
                block = X
            elif y is None and weights is None:
                return X
            else:
                raise HopefearError(
                    "X holds blocks as files give them, with their own costs and weights; leave "
                    "out y and sample_weight"
                )
        else:
            keys = set(RECORD)
            named = self.records and any(not keys.isdisjoint(item) for item in _dicts(X))
            builder = ListBuilder(RECORD if named else (), judged)
            builder.add_all(X)
            block = builder.lists()
        block = judged_by(block, y, metric) if judged else block
        if weights is not None:
            block = replace(block, weights=frozen(sample_weights(weights, len(block), "lists")))
        return [block]


class BlockStream(Iterator[CandidateLists]):
    """BlockStream of lists, one at a time, so that none is kept."""

    def __init__(self, blocks: Iterable[CandidateLists]) -> None:
        self.blocks = iter(blocks)

    def __next__(self) -> CandidateLists:
        return next(self.blocks)


def listed(X: Any) -> Any:
    """Returns a list, or the `BlockStream` of what readers give one block at a time."""
    if isinstance(X, CandidateLists | BlockStream | list | tuple):
        return X
    items = iter(outer(X))
    first = next(items, None)
    remaining = chain([] if first is None else [first], items)
    return BlockStream(remaining) if isinstance(first, CandidateLists) else list(remaining)


def are_blocks(X: Any) -> bool:
    """Returns whether these are lists as readers of files give them."""
    several = isinstance(X, list | tuple) and len(X) > 0
    return isinstance(X, CandidateLists | BlockStream) or (
        several and all(isinstance(block, CandidateLists) for block in X)
    )


def _dicts(X: Any) -> Iterator[Mapping[str, Any]]:
    """Yields the candidates that are dicts and hold something."""
    for items in outer(X):
        candidates = items.get("candidates", ()) if isinstance(items, Mapping) else items
        if isinstance(candidates, list | tuple):
            yield from (item for item in candidates if isinstance(item, Mapping) and item)


def judged_by(block: CandidateLists, y: Any, metric: str | None = None) -> CandidateLists:
    """Returns the lists with costs, or references, from ``y``.

    Brackets of trees are counted where there are gold trees, unless the lists have their counts, or
    ``metric`` is ``cost`` and the candidates have costs.
    """
    if y is None:
        return block if metric == "cost" and block.costs is not None else _counted(block)
    y = list(y)
    if len(y) != len(block):
        raise HopefearError(f"X has {len(block)} lists, y has {len(y)} entries; give one for each")
    texts = [isinstance(entry, str) or _are_texts(entry) for entry in y]
    if any(texts):
        if not all(texts):
            i = texts.index(False)
            raise HopefearError(f"y[{i}] is no text, but others are; give texts or costs for all")
        references = [[entry] if isinstance(entry, str) else list(entry) for entry in y]
        several = set(map(len, references))
        n = several.pop() if len(several) == 1 else -1
        is_known = references == block.references
        counts = block.counts if is_known else None
        return _counted(
            replace(block, references=references, n_references=n, costs=None, counts=counts)
        )
    costs = [
        _costs(i, row, size)
        for i, (row, size) in enumerate(zip(y, np.diff(block.starts).tolist(), strict=True))
    ]
    joined = np.concatenate([np.empty(0), *costs])
    return replace(block, costs=frozen(joined), counts=None, metric="cost")


def _costs(i: int, values: Any, size: int) -> np.ndarray:
    """Returns the costs of the candidates of list ``i``."""
    try:
        row = np.asarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise HopefearError(
            f"y[{i}]: expected the costs of {size} candidates, or a text, found {values!r:.60}"
        ) from error
    if row.shape != (size,):
        raise HopefearError(
            f"y[{i}]: list {i} has {size} candidates, but these are costs of shape {row.shape}; "
            "give one for each"
        )
    if not np.isfinite(row).all():
        c = int(np.argmin(np.isfinite(row)))
        raise HopefearError(f"y[{i}][{c}] is {row[c]}, not a finite cost")
    return row


def _are_texts(entry: Any) -> bool:
    several = isinstance(entry, list | tuple) and bool(entry)
    return several and all(isinstance(text, str) for text in entry)


def _counted(block: CandidateLists) -> CandidateLists:
    """Returns the lists with brackets counted, where they are trees and gold trees are there."""
    if block.trees is None or (block.references is None and block.counts is None):
        return block
    counts = block.counts
    if counts is None:
        firsts = [block.texts[c] for c in block.starts[:-1].tolist()]
        gold = zip(block.references or (), firsts, strict=True)
        texts = [gold_text(trees[0], first) for trees, first in gold]
        golds = trees_of(texts, lambda t: f"the gold tree of list {t}")
        of = np.repeat(np.arange(len(block)), np.diff(block.starts))
        counts = frozen(bracket_counts(golds, block.trees, of))
    return replace(block, counts=counts, costs=frozen(Parseval().costs(counts)), metric="parseval")


def outer(lists: Any) -> Iterable[Any]:
    """Returns lists that can be gone through; HopefearError where they are something else."""
    if isinstance(lists, str | bytes | Mapping) or not isinstance(lists, Iterable):
        raise HopefearError(f"expected lists of candidates, found {lists!r:.60}")
    return lists


def trees_of(texts: Sequence[str], where: Callable[[int], str]) -> BracketTrees:
    """Returns the trees of bracketed texts; ``where`` describes the place of each for messages."""
    try:
        return parse_trees(texts)
    except TreeTextError as error:
        raise HopefearError(
            f"{where(error.tree)}: expected {error.expected} (character {error.character}: "
            f"{error.found[:30]!r})"
        ) from None


def _number(where: str, field: str, value: Any) -> float:
    if isinstance(value, Real | np.bool_) and finite([value]):
        return float(value)
    raise HopefearError(f"{where}: {field} must be {number_wanted(value)}, not {value!r:.60}")


def _pair(where: str, pair: Any) -> str:
    sides = pair.split(" ||| ") if isinstance(pair, str) else list(pair)
    if len(sides) != 2 or not all(isinstance(side, str) and side.split() for side in sides):
        raise HopefearError(
            f"{where}: a phrase pair is its source words and its target words, not {pair!r:.60}"
        )
    return " ||| ".join(" ".join(side.split()) for side in sides)


def densified(lists: CandidateLists, layout: Layout | None = None) -> CandidateLists:
    """Returns the lists with features that all candidates have in a dense table.

    Parameters
    ----------
    lists : CandidateLists
        With sparse features only; entries of one name that follow each other are its numbers.
    layout : tuple of (str, int), optional
        The dense features and how many numbers each has, as weights know them. Without it a
        feature is dense if all candidates have it, in the order of the first.

    Examples
    --------
    >>> builder = ListBuilder(TRANSLATION, tuples=True)
    >>> builder.add_all([[("a", {"LM0": -1, "TM0": [1, 2]}), ("b", {"LM0": 0, "TM0": [3, 4]})]])
    >>> lists = densified(builder.lists())
    >>> lists.layout, lists.dense.tolist()
    ((('LM0', 1), ('TM0', 2)), [[-1.0, 1.0, 2.0], [0.0, 3.0, 4.0]])
    """
    n, names = lists.n_candidates, [] if lists.sparse is None else list(lists.sparse.names)
    if layout is None and not n:
        raise HopefearError(f"{lists.source}: expected at least one list, found none")
    entries = lists.sparse or NamedEntries([], np.zeros(n + 1, np.int64), np.zeros(0, np.int32))
    ids = entries.ids
    values = np.zeros(0) if entries.values is None else entries.values
    owners = np.repeat(np.arange(n), np.diff(entries.indptr))
    new = np.ones(len(ids), bool)
    new[1:] = (np.diff(ids) != 0) | (np.diff(owners) != 0)
    if layout is None:
        often = np.bincount(ids[new], minlength=len(names))
        first = ids[: entries.indptr[1]].tolist()
        layout = tuple((names[j], first.count(j)) for j in dict.fromkeys(first) if often[j] == n)
    dense = np.empty((n, sum(width for _, width in layout)), np.float32)
    is_dense = np.zeros(len(ids), bool)
    numbers, column = {name: j for j, name in enumerate(names)}, 0
    for name, width in layout:
        mask = ids == numbers.get(name, -1)
        sizes = np.bincount(owners[mask], minlength=n)
        if (sizes != width).any():
            c = int(np.argmax(sizes != width))
            raise HopefearError(
                f"{_location(lists, c)}: expected {width} numbers under {name!r}, which is dense "
                f"in others, found {sizes[c]}"
            )
        dense[:, column : column + width] = values[mask].reshape(n, width)
        is_dense |= mask
        column += width
    if (again := ~new & ~is_dense).any():
        e = int(np.argmax(again))
        c, name = int(owners[e]), names[ids[e]]
        several = int(np.count_nonzero(ids[owners == c] == ids[e]))
        raise HopefearError(
            f"{_location(lists, c)}: {several} numbers under {name!r}, which not all candidates "
            "have; a sparse feature has one"
        )
    return replace(
        lists,
        scores=frozen(lists.scores.astype(np.float32)),
        layout=layout,
        dense=frozen(dense),
        sparse=_other_entries(entries, names, owners, ~is_dense),
    )


def _other_entries(
    entries: NamedEntries, names: Sequence[str], owners: np.ndarray, mask: np.ndarray
) -> NamedEntries | None:
    """Returns the entries that a mask selects, names in the order of their first use."""
    if not mask.any() or entries.values is None:
        return None
    used, first, ids = np.unique(entries.ids[mask], return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    new = np.empty(len(order), np.int32)
    new[order] = np.arange(len(order))
    sizes = np.bincount(owners[mask], minlength=len(entries.indptr) - 1)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    return NamedEntries(
        Texts(Strings.pack(names[j] for j in used[order].tolist())),
        frozen(indptr),
        frozen(new[ids]),
        frozen(entries.values[mask].astype(np.float32)),
    )


def _location(lists: CandidateLists, c: int) -> str:
    i = int(np.searchsorted(lists.starts, c, "right")) - 1
    return f"list {i}, candidate {c - int(lists.starts[i])}"

"""Lists of candidates from Python objects, with errors that say which list and candidate."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from hopefear.core.arrays import Strings, Texts, frozen
from hopefear.data.lists.candidates import CandidateLists, Layout, NamedEntries
from hopefear.data.lists.input import Names, finite, number_wanted
from hopefear.data.lists.trees import TreeTextError, parse_trees
from hopefear.data.parse_numbers import LARGEST
from hopefear.errors import HopefearError
from hopefear.features.brackets import Trees

# What a candidate may hold where it is more than its features: for rerankers, and for tuners.
RECORD = ("features", "score", "logprob", "cost", "text", "tree", "derivation")
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
        self.names, self.pair_names = Names(), Names()
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

    def add_all(self, lists: Any) -> None:
        """Takes in lists; HopefearError where they are none."""
        for i, items in enumerate(outer(lists)):
            self.add(i, items)

    def add(self, i: int, items: Any) -> None:
        """Takes in list ``i``."""
        self.labels.append(str(i))
        if isinstance(items, Mapping) and not self.tuples:
            self.labels[-1] = str(items.get("id", i))
            texts = items.get("references", items.get("reference", items.get("gold")))
            if texts is not None and self.judged:
                self.references.append([texts] if isinstance(texts, str) else list(texts))
            items = items.get("candidates")
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
        several = {len(one) for one in self.references or [[""]]}
        return CandidateLists(
            self.labels,
            frozen(np.array([0, *self.ends], np.int64)),
            self.texts,
            frozen(np.array(self.scores, np.float64)),
            frozen(np.array(self.costs, np.float64)) if self.costs else None,
            references=self.references or None,
            n_references=several.pop() if len(several) == 1 else -1,
            sparse=NamedEntries(
                self.names.order,
                frozen(np.array(self.indptr, np.int64)),
                frozen(np.array(self.ids, np.int32)),
                frozen(np.array(self.values, np.float64)),
            ),
            phrases=phrases,
            trees=trees_of(self.texts, self._place) if self.trees else None,
            derivations=self.derivations if any(self.derivations) else None,
            source=self.source,
        )

    def _place(self, k: int) -> str:
        """Where candidate ``k`` of all stands."""
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


def outer(lists: Any) -> Iterable[Any]:
    """Returns lists that can be gone through; HopefearError where they are something else."""
    if isinstance(lists, str | bytes | Mapping) or not isinstance(lists, Iterable):
        raise HopefearError(f"expected lists of candidates, found {lists!r:.60}")
    return lists


def trees_of(texts: Sequence[str], where: Callable[[int], str]) -> Trees:
    """Returns the trees of bracketed texts; ``where`` says where each of them stands."""
    try:
        return parse_trees(texts)
    except TreeTextError as error:
        raise HopefearError(
            f"{where(error.tree)}: expected {error.expected} (character {error.character}: "
            f"{error.found[:30]!r})"
        ) from None


def _number(where: str, what: str, value: Any) -> float:
    if isinstance(value, Real | np.bool_) and finite([value]):
        return float(value)
    raise HopefearError(f"{where}: {what} must be {number_wanted(value)}, not {value!r:.60}")


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
                f"{_place(lists, c)}: expected {width} numbers under {name!r}, which is dense in "
                f"others, found {sizes[c]}"
            )
        dense[:, column : column + width] = values[mask].reshape(n, width)
        is_dense |= mask
        column += width
    if (again := ~new & ~is_dense).any():
        e = int(np.argmax(again))
        c, name = int(owners[e]), names[ids[e]]
        several = int(np.count_nonzero(ids[owners == c] == ids[e]))
        raise HopefearError(
            f"{_place(lists, c)}: {several} numbers under {name!r}, which not all candidates have; "
            "a sparse feature has one"
        )
    return replace(
        lists,
        scores=frozen(lists.scores.astype(np.float32)),
        layout=layout,
        dense=frozen(dense),
        sparse=_rest(entries, names, owners, ~is_dense),
    )


def _rest(
    entries: NamedEntries, names: Sequence[str], owners: np.ndarray, mask: np.ndarray
) -> NamedEntries | None:
    """The entries that a mask marks, names in the order in which they come."""
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


def _place(lists: CandidateLists, c: int) -> str:
    i = int(np.searchsorted(lists.starts, c, "right")) - 1
    return f"list {i}, candidate {c - int(lists.starts[i])}"

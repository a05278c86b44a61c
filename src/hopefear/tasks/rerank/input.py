"""Lists of candidates from Python objects, with errors that say which list and candidate."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
from scipy import sparse

from hopefear.core.arrays import frozen
from hopefear.data.lists.candidates import CandidateLists, NamedValues
from hopefear.data.lists.files import read_lists
from hopefear.data.lists.input import Names, finite, number_wanted
from hopefear.data.lists.trees import TreeTextError, gold_text, parse_trees
from hopefear.data.numbers import LARGEST
from hopefear.errors import HopefearError
from hopefear.features.brackets import Trees, bracket_counts
from hopefear.metrics.lists import ListMetric, Parseval, metric_named
from hopefear.tasks.estimator import sample_weights

# What a candidate may hold where it is more than its features.
RECORD = ("features", "score", "logprob", "cost", "text", "tree", "derivation")


@dataclass(frozen=True)
class ListReader:
    """How the candidates of some lists are written.

    Parameters
    ----------
    records : bool, optional
        True: a candidate is a dict with some of the keys ``features``, ``score``, ``cost``,
        ``text`` and ``tree``. False: it is a dict of features. None: found out at each reading.

    Examples
    --------
    >>> lists = [[{"lm": -1.5, "long": True}, {"lm": -2.0}]]
    >>> reader = ListReader.of(lists)
    >>> block = reader.read(lists, [[0.0, 1.0]])
    >>> reader.records, block.named.names, block.named.values.tolist()
    (False, ['lm', 'long'], [-1.5, 1.0, -2.0])
    """

    records: bool | None = None

    @classmethod
    def of(cls, X: Any) -> ListReader:
        """The reader for lists such as these."""
        items = (item for items in _outer(X) for item in _plain_items(items))
        dicts = [set(item) for item in items if isinstance(item, Mapping) and item]
        return cls(bool(dicts) and all(keys <= set(RECORD) for keys in dicts))

    def read(
        self,
        X: Any,
        y: Any = None,
        weights: Any = None,
        *,
        metric: str | None = None,
        judged: bool = True,
    ) -> CandidateLists:
        """The lists, with costs or references where ``y`` or the candidates have them.

        ``metric`` names what makes the costs; without ``judged`` they are not looked at.
        """
        records = (ListReader.of(X) if self.records is None else self).records
        lists = _Lists(bool(records), judged)
        for i, items in enumerate(_outer(X)):
            lists.add(i, items)
        block = lists.block()
        return weighted(judged_by(block, y, metric) if judged else block, weights)


def _outer(X: Any) -> Iterable[Any]:
    if isinstance(X, str | bytes | Mapping) or not isinstance(X, Iterable):
        raise HopefearError(f"expected lists of candidates, found {X!r:.60}")
    return X


def _plain_items(items: Any) -> Sequence[Any]:
    """Candidates of a list that are objects of their own; none where they are rows."""
    if isinstance(items, Mapping):
        items = items.get("candidates", ())
    return items if isinstance(items, list | tuple) else ()


class _Lists:
    """Arrays of lists in the making."""

    def __init__(self, records: bool, judged: bool) -> None:
        self.records, self.judged = records, judged
        self.names = Names()
        self.ends: list[int] = []
        self.indptr: list[int] = [0]
        self.ids: list[int] = []
        self.values: list[float] = []
        self.scores: list[float] = []
        self.costs: list[float] = []
        self.texts: list[str] = []
        self.derivations: list[str | None] = []
        self.trees = 0
        self.labels: list[str] = []
        self.references: list[list[str]] = []

    def add(self, i: int, items: Any) -> None:
        """Take in list ``i``."""
        self.labels.append(str(i))
        if isinstance(items, Mapping):
            self.labels[-1] = str(items.get("id", i))
            texts = items.get("references", items.get("reference", items.get("gold")))
            if texts is not None and self.judged:
                self.references.append([texts] if isinstance(texts, str) else list(texts))
            items = items.get("candidates")
        before = len(self.scores)
        if sparse.issparse(items) or (isinstance(items, np.ndarray) and items.ndim == 2):
            self._rows(i, items)
        elif isinstance(items, list | tuple):
            for c, item in enumerate(items):
                self._candidate(f"list {i}, candidate {c}", item)
        else:
            raise HopefearError(
                f"list {i}: expected a list of candidates or a matrix with a row for each, found "
                f"{items!r:.60}"
            )
        if len(self.scores) == before:
            raise HopefearError(f"list {i} has no candidates; leave it out")
        self.ends.append(len(self.scores))

    def block(self) -> CandidateLists:
        """The lists."""
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
        named = NamedValues(
            self.names.order,
            frozen(np.array(self.indptr, np.int64)),
            frozen(np.array(self.ids, np.int32)),
            frozen(np.array(self.values, np.float64)),
        )
        return CandidateLists(
            self.labels,
            frozen(np.array([0, *self.ends], np.int64)),
            self.texts,
            frozen(np.array(self.scores, np.float64)),
            frozen(np.array(self.costs, np.float64)) if self.costs else None,
            references=self.references or None,
            named=named,
            trees=_parsed(self.texts, self._place) if self.trees else None,
            derivations=self.derivations if any(self.derivations) else None,
        )

    def _place(self, k: int) -> str:
        """Where candidate ``k`` of all stands."""
        i = bisect_right(self.ends, k)
        return f"list {i}, candidate {k - ([0, *self.ends][i])}"

    def _candidate(self, where: str, item: Any) -> None:
        if not isinstance(item, Mapping):
            raise HopefearError(f"{where}: expected a dict, found {item!r:.60}")
        features, score, text, derivation = item, 0.0, "", None
        if self.records:
            if strange := sorted(map(str, set(item) - set(RECORD))):
                raise HopefearError(
                    f"{where}: no key {strange[0]!r}; a candidate has {', '.join(RECORD)}, and "
                    "what tells it from others is among its features"
                )
            features = item.get("features") or {}
            if not isinstance(features, Mapping):
                raise HopefearError(f"{where}: expected features in a dict, found {features!r:.60}")
            score = _number(where, "score", item.get("score", item.get("logprob", 0.0)))
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
        for name, value in features.items():
            if not isinstance(name, str):
                raise HopefearError(f"{where}: names of features are strings, not {name!r:.60}")
            if isinstance(value, str):
                name, value = f"{name}={value}", 1.0
            self.ids.append(self.names[name])
            self.values.append(_number(where, f"feature {name!r}", value))
        self._close(score, text, derivation)

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

    def _close(self, score: float, text: str, derivation: str | None = None) -> None:
        self.indptr.append(len(self.ids))
        self.scores.append(score)
        self.texts.append(text)
        self.derivations.append(derivation)


def _number(where: str, what: str, value: Any) -> float:
    if isinstance(value, Real | np.bool_) and finite([value]):
        return float(value)
    raise HopefearError(f"{where}: {what} must be {number_wanted(value)}, not {value!r:.60}")


def weighted(block: CandidateLists, weights: Any) -> CandidateLists:
    """The lists with these weights, one each."""
    if weights is None:
        return block
    return replace(block, weights=frozen(sample_weights(weights, len(block), "lists")))


def judged_by(block: CandidateLists, y: Any, metric: str | None = None) -> CandidateLists:
    """The lists with costs, or references, from ``y``.

    Brackets of trees are counted where there are gold trees, unless ``metric`` is ``cost`` and the
    candidates have costs.
    """
    if y is None:
        return block if metric == "cost" and block.costs is not None else _counted(block)
    y = list(y)
    if len(y) != len(block):
        raise HopefearError(f"X has {len(block)} lists, y has {len(y)} entries; give one for each")
    texts = [isinstance(one, str) or _are_texts(one) for one in y]
    if any(texts):
        if not all(texts):
            i = texts.index(False)
            raise HopefearError(f"y[{i}] is no text, but others are; give texts or costs for all")
        references = [[one] if isinstance(one, str) else list(one) for one in y]
        return _counted(replace(block, references=references, costs=None, counts=None))
    lengths = np.diff(block.starts)
    costs = []
    for i, one in enumerate(y):
        try:
            row = np.asarray(one, np.float64)
        except (TypeError, ValueError) as error:
            raise HopefearError(
                f"y[{i}]: expected the costs of {lengths[i]} candidates, or a text, found "
                f"{one!r:.60}"
            ) from error
        if row.shape != (lengths[i],):
            raise HopefearError(
                f"y[{i}]: list {i} has {lengths[i]} candidates, but these are costs of shape "
                f"{row.shape}; give one for each"
            )
        if not np.isfinite(row).all():
            c = int(np.argmin(np.isfinite(row)))
            raise HopefearError(f"y[{i}][{c}] is {row[c]}, not a finite cost")
        costs.append(row)
    whole = np.concatenate([np.empty(0), *costs])
    return replace(block, costs=frozen(whole), counts=None, metric="cost")


def _are_texts(one: Any) -> bool:
    return isinstance(one, list | tuple) and bool(one) and all(isinstance(t, str) for t in one)


def _counted(block: CandidateLists) -> CandidateLists:
    """Trees against gold trees, where both are there."""
    if block.trees is None or block.references is None:
        return block
    firsts = [block.texts[c] for c in block.starts[:-1].tolist()]
    texts = [gold_text(gold[0], one) for gold, one in zip(block.references, firsts, strict=True)]
    golds = _parsed(texts, lambda t: f"the gold tree of list {t}")
    of = np.repeat(np.arange(len(block)), np.diff(block.starts))
    counts = bracket_counts(golds, block.trees, of)
    return replace(block, counts=counts, costs=Parseval().costs(counts), metric="parseval")


def _parsed(texts: Sequence[str], where: Callable[[int], str]) -> Trees:
    """Trees of bracketed texts; ``where`` says where each of them stands."""
    try:
        return parse_trees(texts)
    except TreeTextError as error:
        raise HopefearError(
            f"{where(error.tree)}: expected {error.expected} (character {error.character}: "
            f"{error.found[:30]!r})"
        ) from None


def blocks_of(
    X: Any,
    y: Any = None,
    weights: Any = None,
    reader: ListReader | None = None,
    *,
    metric: str | None = None,
    judged: bool = True,
) -> tuple[list[CandidateLists], ListReader]:
    """Lists as readers give them, and how their candidates are written.

    Parameters
    ----------
    X : list of lists of candidates, CandidateLists or several of them
        The lists.
    y, weights
        Costs or references, and a weight, of each list; not for several blocks, which hold theirs.
    reader : ListReader, optional
        How candidates are written, if known.
    metric : str, optional
        Name of what makes the costs.
    judged : bool
        Whether costs and references are looked at.

    Examples
    --------
    >>> blocks, reader = blocks_of([[{"a": 1}, {"b": 1}]])
    >>> blocks[0].n_candidates
    2
    """
    if isinstance(X, CandidateLists):
        block = judged_by(X, y, metric) if judged else X
        return [weighted(block, weights)], reader or ListReader()
    if isinstance(X, list | tuple) and X and all(isinstance(one, CandidateLists) for one in X):
        if y is not None or weights is not None:
            raise HopefearError(
                "X holds blocks as files give them, with their own costs and weights; leave out y "
                "and sample_weight"
            )
        return list(X), reader or ListReader()
    if not isinstance(X, list | tuple | np.ndarray):
        X = list(X) if hasattr(X, "__iter__") and not isinstance(X, str | bytes | dict) else X
    reader = reader or ListReader.of(X)
    return [reader.read(X, y, weights, metric=metric, judged=judged)], reader


def held_in(
    path: str | os.PathLike[str] | None,
    gold: str | os.PathLike[str] | None,
    metric: ListMetric | None,
    reading: dict[str, Any],
) -> Iterator[CandidateLists] | None:
    """Held-out lists of a file, with gold trees and perhaps a format of their own."""
    if path is None:
        if gold is not None:
            raise HopefearError("dev_gold belongs to held-out lists: give dev too")
        return None
    own = {"format": "auto", "prefer": reading.get("format", "auto"), "gold": gold}
    return read_lists(path, metric=metric, **{**reading, **own})


def metric_meant(metric: str | ListMetric | None) -> ListMetric | None:
    """The metric by its name; None where the lists are judged already."""
    if metric is None or metric == "auto":
        return None
    return metric_named(metric) if isinstance(metric, str) else metric

"""Lists of candidates from Python objects, with errors that say which list and candidate."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.files import read_lists
from hopefear.data.lists.objects import RECORD, ListBuilder, outer, trees_of
from hopefear.data.lists.trees import gold_text
from hopefear.errors import HopefearError
from hopefear.features.brackets import bracket_counts
from hopefear.metrics.lists import ListMetric, Parseval, metric_named
from hopefear.tasks.estimator import sample_weights


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
    >>> reader.records, block.sparse.names, block.sparse.values.tolist()
    (False, ['lm', 'long'], [-1.5, 1.0, -2.0])
    """

    records: bool | None = None

    @classmethod
    def of(cls, X: Any) -> ListReader:
        """The reader for lists such as these."""
        items = (item for items in outer(X) for item in _plain_items(items))
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
        builder = ListBuilder(RECORD if records else (), judged)
        builder.add_all(X)
        block = builder.lists()
        return weighted(judged_by(block, y, metric) if judged else block, weights)


def _plain_items(items: Any) -> Sequence[Any]:
    """Candidates of a list that are objects of their own; none where they are rows."""
    if isinstance(items, Mapping):
        items = items.get("candidates", ())
    return items if isinstance(items, list | tuple) else ()


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
        several = set(map(len, references))
        n = several.pop() if len(several) == 1 else -1
        block = replace(block, references=references, n_references=n, costs=None, counts=None)
        return _counted(block)
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
    golds = trees_of(texts, lambda t: f"the gold tree of list {t}")
    of = np.repeat(np.arange(len(block)), np.diff(block.starts))
    counts = bracket_counts(golds, block.trees, of)
    return replace(block, counts=counts, costs=Parseval().costs(counts), metric="parseval")


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

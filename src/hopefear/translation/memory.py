"""Lists of translations from Python objects, without a file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from hopefear.core.arrays import Strings, frozen
from hopefear.data.lists.input import Names, finite, number_wanted
from hopefear.data.moses.lists import NamedEntries, TuningLists
from hopefear.errors import HopefearError
from hopefear.metrics.lists import ListMetric
from hopefear.translation.counting import Reference, counted
from hopefear.translation.layouts import Layout

KEYS = ("text", "features", "score", "phrases")


def lists_in_memory(
    lists: Iterable[Sequence[Any]],
    references: Iterable[Reference] | None = None,
    *,
    metric: str | ListMetric = "bleu",
    layout: Layout | None = None,
    source: str = "memory",
) -> TuningLists:
    """Lists as tuning wants them, from what programs hold.

    Parameters
    ----------
    lists : iterable of sequences of candidates
        A candidate is a dict with ``text``, ``features`` (a number or several by name), ``score``
        (what the decoder thought of it) and ``phrases`` (pairs of source and target words,
        each counted once), all optional; or a tuple of the first of these in this order. All
        candidates stay, in their order.
    references : iterable of str or of sequences of str, optional
        One reference or several for each list.
    metric : str or ListMetric
        Counts candidates against references.
    layout : tuple of (str, int), optional
        The dense features and how many numbers each has, as weights know them. Without it a
        feature is dense if all candidates have it, and sparse if some lack it.
    source : str
        What messages call the lists.

    Examples
    --------
    >>> lists = lists_in_memory(
    ...     [[{"text": "hope and fear", "features": {"LM0": -3, "TM0": [-1, -2]}, "score": -1.5},
    ...       {"text": "hope", "features": {"LM0": -1, "TM0": [-1, -4], "short": 1}}]],
    ...     ["hope and fear"],
    ... )
    >>> lists.names, lists.dense.tolist(), lists.scores.tolist()
    (('LM0', 'TM0.0', 'TM0.1'), [[-3.0, -1.0, -2.0], [-1.0, -1.0, -4.0]], [-1.5, 0.0])
    >>> lists.sparse.names.get(0), lists.sparse.indptr.tolist()
    ('short', [0, 0, 1])
    """
    made = _Made(source)
    for i, candidates in enumerate(_outer(lists, source)):
        made.add(i, candidates)
    found = made.lists(made.dense_layout() if layout is None else layout)
    return found if references is None else counted(found, references, metric)


def _outer(lists: Any, source: str) -> Iterable[Any]:
    if isinstance(lists, str | bytes | Mapping) or not isinstance(lists, Iterable):
        raise HopefearError(f"{source}: expected lists of candidates, found {lists!r:.60}")
    return lists


class _Made:
    """Candidates so far, checked one by one."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.ends: list[int] = []
        self.texts: list[str] = []
        self.scores: list[float] = []
        self.features: list[dict[str, list[float]]] = []
        self.pairs: list[list[str]] = []
        self.has_pairs = False

    def add(self, i: int, candidates: Any) -> None:
        """Take in list ``i``."""
        if not isinstance(candidates, list | tuple):
            found = f"{candidates!r:.60}"
            raise HopefearError(f"list {i}: expected a list of candidates, found {found}")
        if not candidates:
            raise HopefearError(f"list {i} has no candidates; leave it out, and its reference")
        for c, one in enumerate(candidates):
            self._candidate(f"list {i}, candidate {c}", one)
        self.ends.append(len(self.texts))

    def dense_layout(self) -> Layout:
        """Features that all candidates have, in the order of the first."""
        if not self.features:
            raise HopefearError(f"{self.source}: expected at least one list, found none")
        often: dict[str, int] = {}
        for features in self.features:
            for name in features:
                often[name] = often.get(name, 0) + 1
        first, n = self.features[0], len(self.features)
        return tuple((name, len(first[name])) for name in first if often[name] == n)

    def lists(self, layout: Layout) -> TuningLists:
        """All of them; HopefearError where a candidate lacks a dense feature."""
        n, width = len(self.texts), sum(size for _, size in layout)
        dense = np.empty((n, width), np.float32)
        names, wanted = Names(), dict(layout)
        indptr, ids, values = [0], [], []
        for c, features in enumerate(self.features):
            row: list[float] = []
            for name, size in layout:
                numbers = features.get(name, [])
                if len(numbers) != size:
                    raise HopefearError(
                        f"{self._place(c)}: expected {size} numbers under {name!r}, which is dense "
                        f"in others, found {len(numbers)}"
                    )
                row += numbers
            dense[c] = row
            for name, numbers in features.items():
                if name in wanted:
                    continue
                if len(numbers) != 1:
                    raise HopefearError(
                        f"{self._place(c)}: {len(numbers)} numbers under {name!r}, which not all "
                        "candidates have; a sparse feature has one"
                    )
                ids.append(names[name])
                values.append(numbers[0])
            indptr.append(len(ids))
        sparse = _entries(names, indptr, ids)._replace(values=frozen(np.array(values, np.float32)))
        return TuningLists(
            ids=frozen(np.arange(len(self.ends))),
            starts=frozen(np.array([0, *self.ends], np.int64)),
            layout=layout,
            dense=frozen(dense),
            scores=frozen(np.array(self.scores, np.float32)),
            sparse=sparse if ids else None,
            phrases=self._phrases() if self.has_pairs else None,
            texts=Strings.pack(self.texts),
            source=self.source,
        )

    def _phrases(self) -> NamedEntries:
        names, indptr, ids = Names(), [0], []
        for pairs in self.pairs:
            ids += sorted({names[pair] for pair in pairs})
            indptr.append(len(ids))
        return _entries(names, indptr, ids)

    def _candidate(self, where: str, one: Any) -> None:
        if isinstance(one, list | tuple) and len(one) <= len(KEYS):
            one = dict(zip(KEYS, one, strict=False))
        if not isinstance(one, Mapping):
            raise HopefearError(
                f"{where}: expected a dict with some of {', '.join(KEYS)}, or a tuple of them, "
                f"found {one!r:.60}"
            )
        if strange := sorted(map(str, set(one) - set(KEYS))):
            raise HopefearError(f"{where}: no key {strange[0]!r}; there are {', '.join(KEYS)}")
        text, features = one.get("text", ""), one.get("features") or {}
        if not isinstance(text, str):
            raise HopefearError(f"{where}: expected a text, found {text!r:.60}")
        if not isinstance(features, Mapping):
            raise HopefearError(f"{where}: expected features in a dict, found {features!r:.60}")
        score = one.get("score")
        self.texts.append(text)
        self.scores.append(0.0 if score is None else _number(where, "score", score))
        self.features.append(
            {_name(where, name): _numbers(where, name, value) for name, value in features.items()}
        )
        pairs = one.get("phrases")
        self.has_pairs |= pairs is not None
        self.pairs.append([_pair(where, pair) for pair in pairs or ()])

    def _place(self, c: int) -> str:
        i = int(np.searchsorted(self.ends, c, "right"))
        return f"list {i}, candidate {c - ([0, *self.ends][i])}"


def _entries(names: Names, indptr: list[int], ids: list[int]) -> NamedEntries:
    return NamedEntries(
        Strings.pack(names.order),
        frozen(np.array(indptr, np.int64)),
        frozen(np.array(ids, np.int32)),
    )


def _name(where: str, name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise HopefearError(f"{where}: names of features are strings, not {name!r:.60}")
    return name


def _numbers(where: str, name: str, value: Any) -> list[float]:
    several = value if isinstance(value, list | tuple | np.ndarray) else [value]
    found = [_number(where, f"feature {name!r}", one) for one in several]
    if not found:
        raise HopefearError(f"{where}: feature {name!r} has no number; leave it out")
    return found


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

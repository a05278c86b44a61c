"""Caches of lists: candidates of any number, read once, block by block, as arrays on disk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from hopefear.data.cache import Spool, write_cache
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dataset import DTYPES, Gathered, check_one_metric
from hopefear.errors import HopefearError
from hopefear.features.lists.extraction import Extraction
from hopefear.features.lists.keyed import Numbered, pruned
from hopefear.features.lists.list_features import SHORT, ListNumbering
from hopefear.metrics.lists import ListMetric
from hopefear.tasks.rerank.task import NO_LISTS, numbering_for, teaching


class ListCache:
    """Looks at lists block by block, and writes a cache when all have come.

    Memory is that of a block and of the feature map. The arrays are those that
    :func:`hopefear.tasks.rerank.task.dataset` makes of all lists, byte for byte; names of lists,
    which messages about blocks have, are not kept.

    Parameters
    ----------
    cache_path : str or path
        The cache.
    features, min_count, baseline, oracle, metric
        As of :func:`hopefear.tasks.rerank.task.dataset`.
    """

    def __init__(
        self,
        cache_path: str | os.PathLike[str],
        features: str | Extraction = "auto",
        *,
        min_count: int | None = None,
        baseline: str = "feature",
        oracle: str = "first",
        metric: ListMetric | None = None,
    ) -> None:
        self._path = os.fspath(cache_path)
        self._meaning, self._judging = (features, min_count, baseline), (baseline, oracle, metric)
        self._spool = Spool(os.path.dirname(os.path.abspath(self._path)))
        self._numbering: ListNumbering | None = None
        self._metrics: set[str] = set()
        self._counts: set[np.dtype | None] = set()

    def __enter__(self) -> ListCache:
        return self

    def __exit__(self, *error: object) -> None:
        self._spool.__exit__(*error)

    @property
    def seen(self) -> int:
        """Different features so far."""
        return 0 if self._numbering is None else self._numbering.seen

    def add(self, block: CandidateLists) -> None:
        """Some more lists."""
        gathered = Gathered(*self._judging)
        judged = gathered.add(block)
        if self._numbering is None:
            self._numbering = numbering_for(block, *self._meaning)
        data = teaching(gathered.dataset(self._numbering.add(judged), None))
        check_one_metric(self._metrics | {data.metric}, data.source)
        self._metrics.add(data.metric)
        arrays = data.rows._asdict()
        self._counts.add(None if data.counts is None else data.counts.dtype)
        if data.counts is not None:
            arrays["counts"] = np.ascontiguousarray(data.counts).reshape(-1)
        self._spool.add(**arrays)

    def write(self, header: Mapping[str, Any]) -> None:
        """Write the cache.

        Parameters
        ----------
        header : mapping
            Its ``source``, ``options`` and ``facts``.
        """
        if self._numbering is None:
            raise HopefearError(NO_LISTS)
        widest = self._numbering.widest
        features, new = self._numbering.finish()
        if widest > SHORT:  # of features that are kept it may be fewer
            widest = max(
                int(np.diff(piece["scopes"]).max(initial=0)) for piece in self._pieces(new)
            )
        totals = self._spool.totals
        room = {name: (dtype, totals[name]) for name, dtype in DTYPES.items()}
        if widest <= SHORT:
            room["columns"] = np.dtype("u2"), totals["columns"]
        if None not in self._counts:
            room["counts"] = np.result_type(*self._counts), totals["counts"]
        pieces = ({name: piece[name] for name in room} for piece in self._pieces(new))
        whole = {**header, "metric": next(iter(self._metrics))}
        write_cache(self._path, "lists", pieces, room, features, whole)

    def _pieces(self, new: np.ndarray) -> Iterator[dict[str, np.ndarray]]:
        """What waits, in final numbers."""
        for piece in self._spool.pieces():
            fields = {name: piece[name] for name in Numbered._fields}
            fields["columns"] = fields["columns"].astype(np.int32)
            yield {**piece, **pruned(Numbered(**fields), piece["starts"], new)._asdict()}

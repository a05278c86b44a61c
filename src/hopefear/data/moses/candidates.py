"""N-best lists of Moses as the lists of candidates that every reader of lists gives."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.data.files import ReadReport
from hopefear.data.lists.candidates import CandidateLists, NamedValues
from hopefear.data.moses.lists import TuningLists
from hopefear.data.moses.reading import moses_blocks
from hopefear.data.moses.words import parallel_sentences
from hopefear.metrics.base import ListMetric

Path = str | os.PathLike[str]


def moses_candidates(
    path: Path,
    refs: Path | Sequence[Path] | None = None,
    *,
    metric: ListMetric | None = None,
    on_error: str = "raise",
    report: ReadReport | None = None,
    block_candidates: int = 20_000,
) -> Iterator[CandidateLists]:
    """Lists of one file, block by block, dense and sparse features by name.

    Parameters
    ----------
    path : str or path
        As for :func:`hopefear.data.moses.reading.moses_blocks`.
    refs : path or sequence of paths, optional
        References, one file for each: line i, from 0, belongs to the list with id i.
    metric : ListMetric, optional
        Counts candidates and gives each a cost.
    on_error, report, block_candidates
        As for :func:`hopefear.data.moses.reading.moses_blocks`.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as f:
    ...     _ = f.write("0 ||| hope ||| LM0= -3 TM0= -1 -2 ||| -1.5\\n"
    ...                 "0 ||| fear ||| LM0= -1 TM0= -1 -4 wt_fear= 1 ||| -2\\n")
    ...     f.flush()
    ...     lists = next(moses_candidates(f.name))
    >>> lists.ids, lists.texts, lists.named.names
    (['0'], ['hope', 'fear'], ['LM0', 'TM0.0', 'TM0.1', 'wt_fear'])
    >>> lists.named.values.tolist()
    [-3.0, -1.0, -2.0, -1.0, -1.0, -4.0, 1.0]
    """
    files = None if refs is None else parallel_sentences(refs)
    texts = None if files is None else list(zip(*(f.lines() for f in files), strict=True))
    names: list[str] = []
    for block in moses_blocks(
        path,
        files,
        metric=None if files is None else metric or cast("ListMetric", _Uncounted()),
        texts=True,
        dedup="none",
        absent="skip" if files is None else "raise",
        on_error=on_error,
        report=report,
        block_candidates=block_candidates,
    ):
        yield _judged(as_candidates(block, names, texts), block.counts, metric)


def as_candidates(
    lists: TuningLists, names: list[str], references: Sequence[Sequence[str]] | None = None
) -> CandidateLists:
    """The same lists with features by name.

    Parameters
    ----------
    lists : TuningLists
        With texts.
    names : list of str
        Names of features so far; those that are new are added. Empty for the first block, and the
        same list for all blocks of a file.
    references : sequence of sequences of str, optional
        Of the list with id i in place i.
    """
    assert lists.texts is not None
    names += lists.names[len(names) :]
    n, width = lists.dense.shape
    ids = np.tile(np.arange(width, dtype=np.int32), n)
    values, indptr = lists.dense.ravel(), np.arange(n + 1) * width
    if (more := lists.sparse) is not None:
        names += [more.names.get(j) for j in range(len(names) - width, more.names.size)]
        owners = np.repeat(np.arange(n), np.diff(more.indptr))
        places = np.arange(len(more.ids)) + width * (owners + 1)
        dense = np.ones(len(ids) + len(places), bool)
        dense[places] = False
        ids, numbers = np.empty(len(dense), np.int32), values
        values = np.empty(len(dense))
        ids[dense], values[dense] = np.tile(np.arange(width), n), numbers
        ids[places], values[places] = more.ids + width, 1.0 if more.values is None else more.values
        indptr = indptr + more.indptr
    which = lists.ids.tolist()
    return CandidateLists(
        [str(i) for i in which],
        lists.starts,
        [lists.texts.get(c) for c in range(n)],
        frozen(lists.scores.astype(np.float64)),
        references=None if references is None else [list(references[i]) for i in which],
        named=NamedValues(names, frozen(indptr), frozen(ids), frozen(values.astype(np.float64))),
        source=lists.source,
        lines=lists.lines,
    )


class _Uncounted:
    """Counts nothing: for references that only go with their lists."""

    name, columns, counts_words = "none", (), False

    def statistics(self, references: Any, outputs: Sequence[str]) -> np.ndarray:
        return np.zeros((len(outputs), 0), np.int32)


def _judged(
    block: CandidateLists, counts: np.ndarray | None, metric: ListMetric | None
) -> CandidateLists:
    """The block with costs, where there are references to count against."""
    if metric is None or counts is None:
        return block
    counts = frozen(np.ascontiguousarray(counts))
    costs = frozen(np.asarray(metric.costs(counts), np.float64))
    return replace(block, counts=counts, costs=costs, metric=metric.name)

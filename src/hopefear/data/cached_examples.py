"""Caches of labelled examples: from svmlight lines or texts of any size to sparse rows on disk."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from hopefear.data.cache import Spool, sound_header, source_of, use_cache, write_cache
from hopefear.data.files import BLOCK_BYTES, ReadReport, require_rows
from hopefear.data.labels import distinct, number_codes
from hopefear.data.sparse import (
    MEASURED,
    NO_SCALE,
    NORMS,
    VALUES,
    SparseRows,
    check_transform,
    content_digest,
    drop_unknown,
    norm_for,
    transform_values,
)
from hopefear.data.svmlight import (
    distinct_numbers,
    keeps_ids,
    number_classes,
    raw_blocks,
)
from hopefear.data.text import check_shares, text_codes
from hopefear.data.text_counter import TextCounter
from hopefear.errors import HopefearError
from hopefear.features import FeatureMap, IdentityFeatures, TableFeatures
from hopefear.features.maps import MAX_COLUMNS
from hopefear.features.ngrams import Grams
from hopefear.storage import field_of


class _RowPlan(NamedTuple):
    """Functions that turn raw blocks into final rows."""

    features: FeatureMap
    classes: tuple[str, ...]
    columns: Callable[[np.ndarray], np.ndarray]  # -1 drops a value
    codes: Callable[[np.ndarray], np.ndarray]


def cached_examples(
    path: str | os.PathLike[str],
    folder: str,
    *,
    report: ReadReport,
    on_error: str,
    encoding: str | None,
    n_jobs: int,
    say: Callable[[str], None],
    **settings: Any,
) -> Any:
    """Returns the rows of a cache in a folder, which is built where it is missing or stale.

    Parameters
    ----------
    path, report, on_error, n_jobs
        As for :func:`cache_examples`.
    folder : str
        Where the cache is.
    encoding : str, optional
        Encoding of the file.
    say : callable
        Called with what is built, and why.
    **settings
        Further arguments of :func:`cache_examples`.
    """
    options = {"on_error": on_error, "encoding": encoding}

    def build(target: Any) -> None:
        arguments: dict[str, Any] = {"report": report, "options": options, "n_jobs": n_jobs}
        cache_examples(path, target, on_error=on_error, **arguments, **settings)

    before = report.skipped
    data = use_cache(folder, path, "examples", {**settings, **options}, build, say)
    if report.skipped == before:  # of a cache that was there already
        with sound_header(data.cache.path):
            report.skipped += field_of(field_of(data.cache.header, "facts", dict), "skipped", int)
    return data


def cache_examples(
    path: str | os.PathLike[str],
    cache_path: str | os.PathLike[str],
    *,
    format: str = "svmlight",
    values: str = "counts",
    norm: str = "none",
    ngrams: int = 1,
    chars: tuple[int, int] | None = None,
    lowercase: bool = True,
    marks: bool = False,
    min_count: int = 1,
    max_share: float = 1.0,
    hash_bits: int | None = None,
    on_error: str = "raise",
    report: ReadReport | None = None,
    block_bytes: int = BLOCK_BYTES,
    options: Mapping[str, Any] | None = None,
    n_jobs: int = 1,
) -> None:
    """Turn a text file of any size into a cache of examples; the result is that of the reader.

    Memory is bounded by a few blocks plus the feature map. Values and norm are those of training;
    the digest is that of the data before.

    Parameters
    ----------
    path, cache_path : str or path
        Text in, cache out.
    format : {"svmlight", "text"}
        What the lines are.
    values, norm : str
        Row transforms as in :meth:`hopefear.data.sparse.SparseDataset.transformed`; a norm of
        ``auto`` is chosen by :func:`hopefear.data.sparse.norm_for`.
    ngrams, chars, lowercase, marks, min_count, max_share, hash_bits
        For text, as in :func:`hopefear.data.text.read_text`.
    on_error, report, block_bytes
        As for the readers.
    options : mapping, optional
        Further header fields on how the file was read.
    n_jobs : int
        Threads that parse svmlight; the cache does not depend on it.
    """
    check_transform(values, "none" if norm == "auto" else norm)
    if values in MEASURED:
        raise HopefearError(
            f"a cache is written row by row, and values={values!r} is measured on all of them; "
            "take counts, presence or log, or train without a cache"
        )
    check_shares(min_count, max_share, hash_bits)
    if format not in ("svmlight", "text"):
        raise HopefearError(f"a cache is built from svmlight or text, not from {format!r}")
    report = ReadReport() if report is None else report
    common: dict[str, Any] = {
        "block_bytes": block_bytes,
        "require_labels": True,
        "on_error": on_error,
        "report": report,
    }
    before = source_of(path)  # a file that changes while it is read has another hash
    with Spool(os.path.dirname(os.path.abspath(os.fspath(cache_path)))) as spool:
        if format == "svmlight":
            plan = _spool_svmlight(spool, raw_blocks(path, n_jobs=n_jobs, **common))
        else:
            counter = TextCounter(Grams(ngrams, chars, lowercase, marks), hash_bits)
            for raw in counter.blocks(path, **common):
                _keep(spool, raw.indptr, raw.columns, raw.values, raw.labels)
            plan = _text_plan(counter, min_count, max_share)
        n_rows, n_values = spool.totals.get("labels", 0), spool.totals.get("values", 0)
        require_rows(path, n_rows, report)
        report.rows += n_rows
        header: dict[str, Any] = {
            "source": before,
            "options": {
                "format": format,
                "values": values,
                "norm": norm,
                "ngrams": ngrams,
                "chars": chars and list(chars),
                "lowercase": lowercase,
                "marks": marks,
                "min_count": min_count,
                "max_share": max_share,
                "hash_bits": hash_bits,
                **(options or {}),
            },
            "facts": {"skipped": report.skipped},
            "n_features": plan.features.size,
            "classes": list(plan.classes),
        }
        chosen = NORMS.index(norm_for(norm, plan.features, n_rows, n_values))
        chunks = _Final(spool, plan, VALUES.index(values), chosen, report)
        write_cache(cache_path, "examples", chunks, plan.features, header, chunks.digest)


class _Final:
    """Pieces of a spool as they will be trained on, and the digest that they had before."""

    def __init__(
        self, spool: Spool, plan: _RowPlan, values: int, norm: int, report: ReadReport
    ) -> None:
        self._spool, self._plan, self._report = spool, plan, report
        self._weighting, self._norm = values, norm
        self._raw = hashlib.sha256()

    def __iter__(self) -> Iterator[dict[str, np.ndarray]]:
        plan = self._plan
        split = getattr(plan.features, "split", plan.features.size)
        for piece in self._spool.chunks():
            indptr, values = piece["indptr"], piece["values"]
            columns = plan.columns(piece["ids"])
            if len(columns) and columns.min() < 0:
                indptr, columns, values = drop_unknown(indptr, columns, values)
            self._raw.update(np.ascontiguousarray(values, np.float32).view(np.uint8).data)
            if self._weighting or self._norm:
                transformation = self._weighting, self._norm, NO_SCALE, split
                values = transform_values(indptr, columns, values, *transformation)
            codes = plan.codes(piece["labels"])
            self._report.unknown_labels += int(np.count_nonzero(codes < 0))
            weights = np.ones(len(codes), np.float32)
            arrays = indptr, columns, values, codes, weights
            yield dict(zip(SparseRows._fields, arrays, strict=True))

    def digest(self, entries: Mapping[str, Any]) -> str:
        """That of the data in memory, whose values are changed when it is learned from."""
        hashes = {key: entries[key]["sha256"] for key in SparseRows._fields}
        hashes["values"] = self._raw.hexdigest()
        return content_digest(hashes, self._plan.features.size, self._plan.classes)


def _largest(ids: np.ndarray) -> int:
    return int(ids.max()) if len(ids) else -1


def _keep(
    spool: Spool, indptr: np.ndarray, ids: np.ndarray, values: np.ndarray, labels: np.ndarray
) -> None:
    short = _largest(ids) <= MAX_COLUMNS
    ids = ids.astype(np.int32 if short else np.int64, copy=False)
    spool.add(indptr=indptr, ids=ids, values=values, labels=labels)


def _distinct_ids(spool: Spool) -> np.ndarray:
    """Returns sorted distinct ids; merges when the new ids are as many as the merged ones."""
    table, waiting, count = np.zeros(0, np.int64), [], 0
    for piece in spool.chunks():
        waiting.append(distinct(piece["ids"]).astype(np.int64))
        count += len(waiting[-1])
        if count > max(len(table), 1 << 20):
            table, waiting, count = distinct(np.concatenate([table, *waiting])), [], 0
    return distinct(np.concatenate([table, *waiting]))


def _spool_svmlight(spool: Spool, raws: Any) -> _RowPlan:
    numbers, largest = np.zeros(0), -1
    for raw in raws:
        numbers = distinct(np.concatenate([numbers, distinct_numbers(raw.labels)]))
        largest = max(largest, _largest(raw.ids))
        _keep(spool, raw.indptr, raw.ids, raw.values, raw.labels)
    n_values = spool.totals.get("values", 0)
    names = number_classes(numbers)

    def codes(labels: np.ndarray) -> np.ndarray:
        return number_codes(labels, names)

    if keeps_ids(largest, n_values):
        return _RowPlan(IdentityFeatures(largest + 1), names, np.asarray, codes)
    table = TableFeatures(_distinct_ids(spool))
    return _RowPlan(table, names, table.columns, codes)


def _text_plan(counter: TextCounter, min_count: int, max_share: float) -> _RowPlan:
    final, moved = counter.finish(min_count, max_share)
    names, labels = counter.classes(), counter.label_names()
    return _RowPlan(
        final,
        names,
        np.asarray if moved is None else moved,
        lambda numbers: text_codes(numbers, labels, names),
    )

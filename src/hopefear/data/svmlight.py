"""Read svmlight / LIBSVM text: ``label id:value id:value … # comment``."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hopefear.core.arrays import Growing
from hopefear.data.files import BLOCK_BYTES
from hopefear.data.labels import class_name, distinct, number_codes
from hopefear.data.report import ReadReport
from hopefear.data.row_kernels import drop_unknown, gather_rows
from hopefear.data.sparse import SparseDataset, SparseRows
from hopefear.data.svmlight_blocks import RawRows, raw_blocks
from hopefear.errors import HopefearError, InputError
from hopefear.features import FeatureMap, IdentityFeatures, TableFeatures
from hopefear.features.interface import MAX_COLUMNS

SMALL_ID = 2**26  # columns up to here are always cheap enough to keep as they are


def read_svmlight(
    path: str | os.PathLike[str],
    *,
    features: FeatureMap | None = None,
    classes: Sequence[str] | None = None,
    require_labels: bool = True,
    on_error: str = "raise",
    report: ReadReport | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> SparseDataset:
    """Read a whole file of ``label id:value …`` lines.

    Columns are the ids of the file while the largest is modest (2**26, or 8 times the number of
    values); scattered ids, up to 2**63 - 1, get columns of their own by way of a sorted table.
    Classes are the numbers found, in rising order. ``qid:`` and comments are ignored.

    Parameters
    ----------
    path : str or path
        Plain or compressed file; ``-`` is standard input.
    features : FeatureMap, optional
        Columns to use, as those of a model; other ids are dropped and counted in the report.
    classes : sequence of str, optional
        Classes to use. A label outside them is an error, or -1 where none is required.
    require_labels : bool
        Without it a line may begin with ``id:value``, and its label is -1.
    on_error : {"raise", "skip"}
        Stop at the first bad line, or leave bad lines out and count them.
    report : ReadReport, optional
        Filled in with counts and the messages of skipped lines.
    block_bytes : int
        Text to hold at a time.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as f:
    ...     _ = f.write("+1 1:2 3:0.5\\n-1 2:1 # a comment\\n")
    ...     f.flush()
    ...     data = read_svmlight(f.name)
    >>> data.classes, data.n_features, data.rows.indices.tolist()
    (('-1', '1'), 4, [1, 3, 2])
    """
    report = ReadReport() if report is None else report
    lengths, values, labels = Growing(np.int64), Growing(np.float32), Growing(np.float64)
    ids = Growing(np.int32)
    largest = -1
    for raw in raw_blocks(
        path,
        block_bytes=block_bytes,
        require_labels=require_labels,
        on_error=on_error,
        report=report,
    ):
        if classes is not None:
            raw = known_labels(raw, classes, os.fspath(path), require_labels, on_error, report)
        if features is not None:
            raw = known_columns(raw, features, report)
        top = int(raw.ids.max()) if len(raw.ids) else -1
        if top > MAX_COLUMNS and ids.dtype == np.int32:
            ids = ids.widened(np.int64)
        largest = max(largest, top)
        ids.append(raw.ids, raw.share)
        values.append(raw.values, raw.share)
        labels.append(raw.labels, raw.share)
        lengths.append(np.diff(raw.indptr), raw.share)
    require_rows(path, labels.size, report)
    report.rows += labels.size
    numbers = labels.take()
    names = tuple(classes) if classes is not None else number_classes(distinct_numbers(numbers))
    codes = number_codes(numbers, names)
    report.unknown_labels += int(np.count_nonzero(codes < 0))
    indptr = np.zeros(len(codes) + 1, np.int64)
    np.cumsum(lengths.take(), out=indptr[1:])
    columns = ids.take()
    if features is None:
        if keeps_ids(largest, len(columns)):
            features = IdentityFeatures(largest + 1)
        else:
            features = TableFeatures(distinct(columns))
            columns = features.columns(columns)
    rows = SparseRows(indptr, columns, values.take(), codes, np.ones(len(codes), np.float32))
    return SparseDataset(rows, features.size, names, features, os.fspath(path))


def iter_svmlight(
    path: str | os.PathLike[str],
    *,
    block_bytes: int = BLOCK_BYTES,
    features: FeatureMap | None = None,
    classes: Sequence[str] | None = None,
    require_labels: bool = True,
    on_error: str = "raise",
    report: ReadReport | None = None,
) -> Iterator[SparseDataset]:
    """Yield the rows of a file block by block, for streams; memory stays bounded.

    Without ``features`` columns are ids, and ``n_features`` grows from block to block. Without
    ``classes`` a class gets its code when first seen, so ``classes`` grows at its end. Other
    parameters as for :func:`read_svmlight`.

    Parameters
    ----------
    block_bytes : int
        Text in a block; larger blocks need more memory and fewer steps.
    """
    report = ReadReport() if report is None else report
    name = os.fspath(path)
    seen: list[str] = [] if classes is None else list(classes)
    size, count = 0, 0
    for raw in raw_blocks(
        path,
        block_bytes=block_bytes,
        require_labels=require_labels,
        on_error=on_error,
        report=report,
    ):
        if classes is None:
            new = number_classes(distinct_numbers(raw.labels))
            seen.extend(c for c in new if c not in seen)
        else:
            raw = known_labels(raw, classes, name, require_labels, on_error, report)
        if features is None:
            size = max(size, int(raw.ids.max()) + 1 if len(raw.ids) else 0)
            if size > MAX_COLUMNS:
                raise HopefearError(
                    f"{name}: feature id {size - 1} is too large for a stream whose ids are "
                    f"columns (at most {MAX_COLUMNS - 1}); build a cache first, or give a "
                    "feature map"
                )
            block_features: FeatureMap = IdentityFeatures(size)
        else:
            raw = known_columns(raw, features, report)
            block_features = features
        codes = number_codes(raw.labels, seen)
        report.unknown_labels += int(np.count_nonzero(codes < 0))
        report.rows += len(codes)
        count += len(codes)
        rows = SparseRows(
            raw.indptr.copy(),
            raw.ids.astype(np.int32),
            raw.values.copy(),
            codes,
            np.ones(len(codes), np.float32),
        )
        yield SparseDataset(rows, block_features.size, seen, block_features, name)
    require_rows(path, count, report)


def known_labels(
    raw: RawRows,
    classes: Sequence[str],
    name: str,
    require_labels: bool,
    on_error: str,
    report: ReadReport,
) -> RawRows:
    """The rows whose label is among the classes; others are errors where labels are required."""
    if not require_labels:
        return raw
    codes = number_codes(raw.labels, classes)
    bad = np.flatnonzero(codes < 0)
    if not len(bad):
        return raw
    shown = ", ".join(classes[:10]) + (", …" if len(classes) > 10 else "")
    for row in bad.tolist():
        error = InputError(name, raw.line(row), f"a label out of {shown}", _label(raw, row))
        if on_error == "raise":
            raise error
        report.skip(str(error))
    good = np.flatnonzero(codes >= 0)
    indptr, ids, values = gather_rows(raw.indptr, raw.ids, raw.values, good)
    return raw._replace(indptr=indptr, ids=ids, values=values, labels=raw.labels[good])


def known_columns(raw: RawRows, features: FeatureMap, report: ReadReport) -> RawRows:
    """The rows with columns for ids, without the ids that the map lacks."""
    columns = features.columns(raw.ids)
    unknown = int(np.count_nonzero(columns < 0))
    report.unknown_features += unknown
    if not unknown:
        return raw._replace(ids=columns)
    indptr, columns, values = drop_unknown(raw.indptr, columns, raw.values)
    return raw._replace(indptr=indptr, ids=columns, values=values)


def keeps_ids(largest: int, count: int) -> bool:
    """Whether the ids of a file serve as columns: the largest is small or values are many."""
    return largest < MAX_COLUMNS and (largest <= SMALL_ID or largest <= 8 * count)


def distinct_numbers(labels: np.ndarray) -> np.ndarray:
    """Sorted distinct labels, without nan."""
    return distinct(labels[~np.isnan(labels)])


def number_classes(numbers: Any) -> tuple[str, ...]:
    """Class names of sorted numeric labels."""
    return tuple(class_name(v) for v in numbers)


def require_rows(path: str | os.PathLike[str], count: int, report: ReadReport) -> None:
    """InputError for a file that gave no row."""
    if count == 0:
        what = f"{report.skipped} bad lines, all skipped" if report.skipped else "an empty file"
        raise InputError(os.fspath(path), 0, "at least one row", what)


def _label(raw: RawRows, row: int) -> str:
    return "no label" if np.isnan(raw.labels[row]) else class_name(raw.labels[row])

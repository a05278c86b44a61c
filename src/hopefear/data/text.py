"""Read ``label<TAB>text`` lines as word n-gram counts."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

import numpy as np

from hopefear.core.arrays import Growing
from hopefear.data.files import BLOCK_BYTES
from hopefear.data.report import ReadReport
from hopefear.data.row_kernels import drop_unknown, gather_rows
from hopefear.data.sparse import SparseDataset, SparseRows
from hopefear.data.svmlight import require_rows
from hopefear.data.text_blocks import TextCounter, TextRows
from hopefear.errors import HopefearError, InputError
from hopefear.features import FeatureMap


def read_text(
    path: str | os.PathLike[str],
    *,
    ngrams: int = 1,
    min_count: int = 1,
    hash_bits: int | None = None,
    features: FeatureMap | None = None,
    classes: Sequence[str] | None = None,
    require_labels: bool = True,
    on_error: str = "raise",
    report: ReadReport | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> SparseDataset:
    """Read lines of ``label<TAB>text`` as counts of word n-grams.

    Tokens are runs of letters, digits and non-ASCII characters in lower case, with single
    apostrophes or underscores inside (``don't``), and each of ``! ? $``. Everything else
    separates. Labels are any text; classes are in numeric order where all are numbers.

    Parameters
    ----------
    path : str or path
        Plain or compressed UTF-8 file; ``-`` is standard input.
    ngrams : int
        Longest n-gram, 1 to 3; all shorter ones are counted too.
    min_count : int
        Keep n-grams seen in at least so many lines; larger gives fewer columns.
    hash_bits : int, optional
        Hash to ``2**hash_bits`` columns instead: bounded memory, but only the first 65,536
        columns have names, and n-grams collide; ``dataset.features.collisions`` is the rate.
    features : FeatureMap, optional
        Columns to use, as those of a model; other n-grams are dropped, unknown tokens counted.
    classes, require_labels, on_error, report, block_bytes
        As for :func:`hopefear.data.svmlight.read_svmlight`. Without required labels a line
        without a tab is all text.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as f:
    ...     _ = f.write("pos\\tGood, good fun!\\nneg\\tNot good.\\n")
    ...     f.flush()
    ...     data = read_text(f.name, ngrams=2)
    >>> data.features.names(data.rows.indices[-3:])
    ['good', 'not', 'not good']
    >>> data.classes
    ('neg', 'pos')
    """
    if min_count < 1:
        raise HopefearError(f"min_count must be at least 1, not {min_count}")
    report = ReadReport() if report is None else report
    counter = TextCounter(ngrams, hash_bits, features)
    lengths, columns, values = Growing(np.int64), Growing(np.int32), Growing(np.float32)
    labels = Growing(np.int32)
    for raw in counter.blocks(
        path,
        block_bytes=block_bytes,
        require_labels=require_labels,
        on_error=on_error,
        report=report,
    ):
        if classes is not None:
            raw = known_text_labels(
                raw, counter, classes, os.fspath(path), require_labels, on_error, report
            )
        lengths.append(np.diff(raw.indptr), raw.share)
        columns.append(raw.columns, raw.share)
        values.append(raw.values, raw.share)
        labels.append(raw.labels, raw.share)
    require_rows(path, labels.size, report)
    report.rows += labels.size
    names = counter.classes() if classes is None else tuple(classes)
    codes = text_codes(labels.take(), counter.label_names(), names)
    report.unknown_labels += int(np.count_nonzero(codes < 0))
    indptr = np.zeros(len(codes) + 1, np.int64)
    np.cumsum(lengths.take(), out=indptr[1:])
    final, moved = counter.finish(min_count)
    kept, counts = columns.take(), values.take()
    if moved is not None:
        kept = moved[kept]
        if min_count > 1:
            indptr, kept, counts = drop_unknown(indptr, kept, counts)
    rows = SparseRows(indptr, kept, counts, codes, np.ones(len(codes), np.float32))
    return SparseDataset(rows, final.size, names, final, os.fspath(path))


def iter_text(
    path: str | os.PathLike[str],
    *,
    features: FeatureMap,
    classes: Sequence[str] | None = None,
    require_labels: bool = True,
    on_error: str = "raise",
    report: ReadReport | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> Iterator[SparseDataset]:
    """Yield the rows of a file block by block, in given columns; memory stays bounded.

    Without ``classes`` a label gets its code when first seen, so ``classes`` grows at its end.

    Parameters
    ----------
    features : FeatureMap
        Columns to use, as those of a model.
    path, classes, require_labels, on_error, report, block_bytes
        As for :func:`read_text`; larger blocks need more memory and fewer steps.

    Examples
    --------
    >>> import tempfile
    >>> from hopefear.features import HashedFeatures
    >>> with tempfile.NamedTemporaryFile("w") as f:
    ...     _ = f.write("pos\\tGood, good fun!\\nneg\\tNot good.\\n")
    ...     f.flush()
    ...     parts = list(iter_text(f.name, features=HashedFeatures(2, 20), block_bytes=20))
    >>> [part.rows.labels.tolist() for part in parts], parts[-1].classes
    ([[0], [1]], ('pos', 'neg'))
    """
    report = ReadReport() if report is None else report
    counter, name, count = TextCounter(features=features), os.fspath(path), 0
    for raw in counter.blocks(
        path,
        block_bytes=block_bytes,
        require_labels=require_labels,
        on_error=on_error,
        report=report,
    ):
        seen = counter.label_names()
        if classes is not None:
            raw = known_text_labels(raw, counter, classes, name, require_labels, on_error, report)
        names = seen if classes is None else list(classes)
        codes = text_codes(raw.labels, seen, names)
        report.unknown_labels += int(np.count_nonzero(codes < 0))
        report.rows += len(codes)
        count += len(codes)
        ones = np.ones(len(codes), np.float32)
        rows = SparseRows(raw.indptr, raw.columns, raw.values, codes, ones)
        yield SparseDataset(rows, features.size, names, features, name)
    require_rows(path, count, report)


def known_text_labels(
    raw: TextRows,
    counter: TextCounter,
    classes: Sequence[str],
    name: str,
    require_labels: bool,
    on_error: str,
    report: ReadReport,
) -> TextRows:
    """The rows whose label is among the classes; others are errors where labels are required."""
    if not require_labels:
        return raw
    names = counter.label_names()
    codes = text_codes(raw.labels, names, classes)
    bad = np.flatnonzero(codes < 0)
    if not len(bad):
        return raw
    shown = ", ".join(classes[:10]) + (", …" if len(classes) > 10 else "")
    for row in bad.tolist():
        label = names[raw.labels[row]]
        error = InputError(name, raw.line(row), f"a label out of {shown}", label)
        if on_error == "raise":
            raise error
        report.skip(str(error))
    good = np.flatnonzero(codes >= 0)
    indptr, columns, values = gather_rows(raw.indptr, raw.columns, raw.values, good)
    return raw._replace(indptr=indptr, columns=columns, values=values, labels=raw.labels[good])


def text_codes(labels: np.ndarray, names: Sequence[str], classes: Sequence[str]) -> np.ndarray:
    """From label numbers of a counter to positions in classes, -1 where there is none."""
    known = {name: code for code, name in enumerate(classes)}
    table = np.array([*(known.get(name, -1) for name in names), -1], np.int32)
    return table[labels]

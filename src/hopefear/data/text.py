"""Texts as counts of n-grams of words and characters: lines of ``label<TAB>text``, or strings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from hopefear.core.arrays import Growing
from hopefear.core.checks import check_at_least
from hopefear.data.files import (
    BLOCK_BYTES,
    ReadReport,
    require_rows,
)
from hopefear.data.frames import from_table
from hopefear.data.sparse import (
    SparseDataset,
    SparseRows,
    drop_unknown,
    gather_rows,
)
from hopefear.data.text_counter import TextCounter, TextRows
from hopefear.errors import HopefearError, InputError
from hopefear.features import FeatureMap
from hopefear.features.ngrams import Grams


def read_text(
    path: str | os.PathLike[str],
    *,
    ngrams: int = 1,
    chars: tuple[int, int] | None = None,
    lowercase: bool = True,
    marks: bool = False,
    min_count: int = 1,
    max_share: float = 1.0,
    hash_bits: int | None = None,
    features: FeatureMap | None = None,
    classes: Sequence[str] | None = None,
    require_labels: bool = True,
    on_error: str = "raise",
    report: ReadReport | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> SparseDataset:
    """Read lines of ``label<TAB>text`` as counts of n-grams of words and characters.

    Tokens are runs of letters, digits and non-ASCII characters in lower case, with single
    apostrophes or underscores inside (``don't``), and each of ``! ? $``. Everything else
    separates. Labels are any text; classes are in numeric order where all are numbers.

    Parameters
    ----------
    path : str or path
        Plain or compressed UTF-8 file; ``-`` is standard input.
    ngrams : int
        Longest n-gram of words, 1 to 3; all shorter ones are counted too. 0 with chars for none.
    chars : tuple of two int, optional
        Shortest and longest n-gram of characters, at most 8, within words whose edges are marked.
        Longer n-grams are more specific, and far more numerous.
    lowercase : bool
        Convert letters to lower case; False distinguishes ``US`` from ``us``.
    marks : bool
        Count every punctuation mark of ASCII as a word, not only ``! ? $``.
    min_count : int
        Keep n-grams of at least ``min_count`` lines; larger gives fewer columns.
    max_share : float
        Leave out n-grams that more than this share of the lines have; smaller leaves out more.
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
    check_shares(min_count, max_share, hash_bits)
    report = ReadReport() if report is None else report
    counter = TextCounter(Grams(ngrams, chars, lowercase, marks), hash_bits, features)
    lengths, columns, values = Growing(np.int64), Growing(np.int32), Growing(np.float32)
    labels = Growing(np.int32)
    for raw in counter.blocks(
        path,
        block_bytes=block_bytes,
        require_labels=require_labels,
        on_error=on_error,
        report=report,
        classes=classes,
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
    final, moved = counter.finish(min_count, max_share)
    ids, counts = columns.take(), values.take()
    if moved is not None:
        ids = moved(ids)
        if min_count > 1 or max_share < 1.0:
            indptr, ids, counts = drop_unknown(indptr, ids, counts)
    rows = SparseRows(indptr, ids, counts, codes, np.ones(len(codes), np.float32))
    return SparseDataset(rows, final.size, names, final, os.fspath(path))


def check_shares(min_count: int, max_share: float, hash_bits: int | None) -> None:
    """HopefearError for limits that make no sense, or that hashed n-grams cannot have."""
    check_at_least("min_count", min_count, 1)
    if not 0.0 < max_share <= 1.0:
        raise HopefearError(f"max_share must be above 0 and at most 1, not {max_share}")
    if hash_bits is not None and (max_share < 1.0 or min_count > 1):
        raise HopefearError(
            "min_count and max_share need the n-grams, and hash_bits keeps none; leave one out"
        )


def read_strings(
    texts: Sequence[str],
    *,
    ngrams: int = 1,
    chars: tuple[int, int] | None = None,
    lowercase: bool = True,
    marks: bool = False,
    min_count: int = 1,
    max_share: float = 1.0,
    hash_bits: int | None = None,
    features: FeatureMap | None = None,
) -> SparseDataset:
    """Texts as counts of n-grams, one row each and without labels; parameters as in `read_text`.

    Examples
    --------
    >>> data = read_strings(["Good fun!", "no"], chars=(2, 3), ngrams=0)
    >>> data.features.names(data.rows.indices[-3:])
    ['c=no', 'c=no·', 'c=o·']
    """
    check_shares(min_count, max_share, hash_bits)
    counter = TextCounter(Grams(ngrams, chars, lowercase, marks), hash_bits, features)
    blocks = list(counter.strings(texts))
    indptr = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([n for rows in blocks for n in np.diff(rows.indptr)], out=indptr[1:])
    columns = np.concatenate([np.zeros(0, np.int32), *(rows.columns for rows in blocks)])
    counts = np.concatenate([np.zeros(0, np.float32), *(rows.values for rows in blocks)])
    final, moved = counter.finish(min_count, max_share)
    if moved is not None:
        indptr, columns, counts = drop_unknown(indptr, moved(columns), counts)
    labels = np.full(len(texts), -1, np.int32)
    rows = SparseRows(indptr, columns, counts, labels, np.ones(len(texts), np.float32))
    return SparseDataset(rows, final.size, (), final, "texts")


def as_strings(X: Any) -> list[str] | None:
    """Returns ``X`` as a list of texts; None where it is anything else.

    Of a table it is the column ``text``.

    >>> as_strings(iter(["hope", "fear"])), as_strings([[1.0, 2.0]])
    (['hope', 'fear'], None)
    """
    X, _ = from_table(X, None, "text", "label")
    if isinstance(X, str):
        raise HopefearError("X is one text; give a list of texts")
    if isinstance(X, bytes):
        raise HopefearError("X is bytes; give a list of texts: [X.decode()]")
    if isinstance(X, Sequence):
        texts: Any = X
    elif getattr(X, "ndim", 1) != 1 or not isinstance(X, Iterable) or isinstance(X, Mapping):
        return None
    else:
        texts = X.tolist() if hasattr(X, "tolist") else list(X)
    if not any(isinstance(text, str | bytes) for text in texts[:1]):
        return None
    for i, text in enumerate(texts):
        if isinstance(text, bytes):
            raise HopefearError(f"X[{i}] is bytes, {text!r:.60}; decode it: text.decode()")
        if not isinstance(text, str):
            raise HopefearError(
                f"X has texts, but X[{i}] is {text!r:.60}; give a text for every row"
            )
    return list(texts)


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
        classes=classes,
    ):
        found_names = counter.label_names()
        if classes is not None:
            raw = known_text_labels(raw, counter, classes, name, require_labels, on_error, report)
        names = found_names if classes is None else list(classes)
        codes = text_codes(raw.labels, found_names, names)
        report.unknown_labels += int(np.count_nonzero(codes < 0))
        report.rows += len(codes)
        count += len(codes)
        weights = np.ones(len(codes), np.float32)
        rows = SparseRows(raw.indptr, raw.columns, raw.values, codes, weights)
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
    listed = ", ".join(classes[:10]) + (", …" if len(classes) > 10 else "")
    for row in bad.tolist():
        label = names[raw.labels[row]]
        error = InputError(name, raw.line(row), f"a label out of {listed}", label)
        if on_error == "raise":
            raise error
        report.skip(str(error))
    good = np.flatnonzero(codes >= 0)
    indptr, columns, values = gather_rows(raw.indptr, raw.columns, raw.values, good)
    return raw._replace(indptr=indptr, columns=columns, values=values, labels=raw.labels[good])


def text_codes(labels: np.ndarray, names: Sequence[str], classes: Sequence[str]) -> np.ndarray:
    """From label numbers of a counter to positions in classes, -1 where there is none."""
    code_of = {name: code for code, name in enumerate(classes)}
    table = np.array([*(code_of.get(name, -1) for name in names), -1], np.int32)
    return table[labels]

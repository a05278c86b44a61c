"""svmlight / LIBSVM text, read: ``label id:value id:value … # comment``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.arrays import Growing
from hopefear.core.component import kernel
from hopefear.core.hashing import load8
from hopefear.core.parallel import n_ahead, parallel
from hopefear.data.files import (
    BLOCK_BYTES,
    ReadReport,
    check_on_error,
    count_lines,
    file_size,
    fill_blocks,
    line_of,
    require_rows,
)
from hopefear.data.labels import class_name, distinct, number_codes
from hopefear.data.parse_numbers import (
    LARGEST,
    WHOLE_POWERS,
    behind_line,
    count_digits,
    is_blank,
    names_non_finite,
    parse_number,
    parse_plain,
    token_end,
    whole_number,
)
from hopefear.data.sparse import SparseDataset, SparseRows, drop_unknown, gather_rows
from hopefear.errors import HopefearError, InputError
from hopefear.features import FeatureMap, IdentityFeatures, TableFeatures
from hopefear.features.maps import MAX_COLUMNS

DONE, BAD_LABEL, BAD_PAIR, BAD_ID, BAD_VALUE, NOT_FINITE, BAD_QID = range(7)

EXPECTED = {
    BAD_LABEL: "a number as the label",
    BAD_PAIR: "id:value",
    BAD_ID: "a feature id from 0 to 2**63 - 1 before ':'",
    BAD_VALUE: "a number after ':'",
    NOT_FINITE: "a finite number of at most 1e15 in size",
    BAD_QID: "a whole number after 'qid:'",
}

_COLON, _NEWLINE, _HASH, _SPACE = 58, 10, 35, 32
_LARGEST_TENTH = (2**63 - 1) // 10


@kernel
def parse_rows(text, i, end, bare, ids, values, indptr, labels, starts, falls, rows):
    """Parse ``text[i:end]`` from a line start; ``(code, position, rows)``.

    Rows are added behind the ``rows`` that are there. A bad line stops the kernel: the row is
    not added and the position is that of the bad text. ``bare`` lets a line begin with
    ``id:value``; its label is nan. ``falls`` counts ids that do not rise, and
    what ``qid:`` was left out.
    """
    nnz = indptr[rows]
    while i < end:
        while is_blank(text[i]):
            i += 1
        start = i
        if text[i] == _NEWLINE or text[i] == _HASH:
            i = behind_line(text, i)
            continue
        label, j, ok = parse_number(text, i)
        if bare and ok and text[j] == _COLON:
            label, j = np.nan, i
        elif not ok or not ends_token(text[j]):
            return BAD_LABEL, start, rows
        elif not np.isfinite(label):
            return NOT_FINITE, start, rows
        code, i, nnz = parse_pairs(text, j, ids, values, falls, nnz)
        if code != DONE:
            return code, i, rows
        labels[rows] = label
        starts[rows] = start
        rows += 1
        indptr[rows] = nnz
    return DONE, i, rows


@kernel
def parse_pairs(text, i, ids, values, falls, k):
    """The pairs of one line, written from place k on; ``(code, position, next place)``."""
    last = np.int64(-1)
    while True:
        while is_blank(text[i]):
            i += 1
        i, k, last, ended = parse_plain_pairs(text, i, ids, values, k, last)
        if ended:
            return DONE, i, k
        if is_blank(text[i]):
            continue
        c = text[i]
        if c == _NEWLINE:
            return DONE, i + 1, k
        if c == _HASH:
            return DONE, behind_line(text, i), k
        token = i
        number = np.int64(0)
        while 48 <= text[i] <= 57:
            digit = np.int64(text[i] - 48)
            if number >= _LARGEST_TENTH and (number > _LARGEST_TENTH or digit > 7):
                return BAD_ID, token, k
            number = number * 10 + digit
            i += 1
        if text[i] != _COLON or i == token:
            if is_qid(text, token):
                i = token + 4
                while 48 <= text[i] <= 57:
                    i += 1
                if i == token + 4 or not ends_token(text[i]):
                    return BAD_QID, token, k
                falls[1] += 1
                continue
            return (BAD_ID if has_colon(text, token) else BAD_PAIR), token, k
        if number <= last:
            falls[0] += 1
        last = number
        i += 1
        value, after, ok = parse_number(text, i)
        if not ok or not ends_token(text[after]):
            return (NOT_FINITE if names_non_finite(text, i) else BAD_VALUE), token, k
        values[k] = value
        if not abs(values[k]) <= LARGEST:
            return NOT_FINITE, token, k
        i = after
        ids[k] = number
        k += 1


@kernel
def parse_plain_pairs(text, i, ids, values, k, last):
    """Pairs of ids below 10**15 and plain values with one space between: nearly all there are.

    ``(position, next place, last id, whether the line ended)``. Stops before whatever needs a
    closer look; nothing is refused here.
    """
    while True:
        # Where the next pair begins is known before this one is read: processors work on both.
        end = token_end(text, i)
        word = load8(text, i)
        count = count_digits(word)
        if count == 0:
            return i, k, last, False
        number = np.int64(whole_number(word, count))
        colon = i + np.int64(count)
        if count == 8:
            word = load8(text, colon)
            count = count_digits(word)
            if count == 8:
                return i, k, last, False
            if count > 0:
                next_digits = np.int64(whole_number(word, count))
                number = number * np.int64(WHOLE_POWERS[count]) + next_digits
            colon += np.int64(count)
        behind = (word >> (count << np.uint64(3))) & np.uint64(255)
        if behind != np.uint64(_COLON) or number <= last:
            return i, k, last, False
        value, after = parse_plain(text, colon + 1)
        if after != end:
            return i, k, last, False
        ids[np.uint64(k)] = last = number
        values[np.uint64(k)] = value
        k += 1
        i = end + 1
        if text[np.uint64(end)] == _NEWLINE:
            return i, k, last, True


@kernel
def ends_token(c):
    """Whether the byte ``c`` may follow a token."""
    return is_blank(c) or c in (_NEWLINE, _HASH)


@kernel
def is_qid(text, i):
    """Whether ``qid:`` begins at ``i``."""
    return text[i] == 113 and text[i + 1] == 105 and text[i + 2] == 100 and text[i + 3] == _COLON


@kernel
def has_colon(text, i):
    """Whether the token at i has a colon in it."""
    while not ends_token(text[i]):
        if text[i] == _COLON:
            return True
        i += 1
    return False


class RawRows(NamedTuple):
    """Rows of one block; the arrays are used again for the next."""

    indptr: np.ndarray  # int64[n + 1]
    ids: np.ndarray  # int64[nnz]
    values: np.ndarray  # float32[nnz]
    labels: np.ndarray  # float64[n], nan where a line has none
    line: Callable[[int], int]  # line number of a row
    share: float  # of the file, read by the end of this block; 0 where it is not known


def raw_blocks(
    path: str | os.PathLike[str],
    *,
    block_bytes: int = BLOCK_BYTES,
    require_labels: bool = True,
    on_error: str = "raise",
    report: ReadReport,
    features: FeatureMap | None = None,
    classes: Sequence[str] | None = None,
    n_jobs: int = 1,
) -> Iterator[RawRows]:
    """Parses a file block by block; rows before a bad line are yielded before its error.

    Parameters
    ----------
    path : str or path
        The file; ``-`` is standard input.
    block_bytes : int
        Text to hold at a time, for each thread and for one more.
    require_labels : bool
        Whether a line must begin with a label.
    on_error : {"raise", "skip"}
        What to do with a bad line.
    report : ReadReport
        Where skipped lines and dropped ids are counted.
    features, classes : optional
        Columns and labels to use, as for :func:`read_svmlight`; ids are then columns.
    n_jobs : int
        Threads: one reads and has the rows, and parses where it would wait; the others parse ahead
        of it. Pipes, whose lines must not wait, and files of a block have one. Results do not
        depend on it.
    """
    check_on_error(on_error)
    name, size = os.fspath(path), file_size(path)
    n_jobs = n_jobs if size > block_bytes else 1

    def texts() -> Iterator[_Block]:
        n_buffers, n_read = n_ahead(n_jobs) + 1, 0
        blocks = cycle([_Block(name) for _ in range(n_buffers)])
        for buffer, length, first_line in fill_blocks(path, block_bytes, n_buffers=n_buffers):
            n_read += length
            share = n_read / size if size else 0.0
            yield next(blocks).holding(buffer, length, first_line, share)

    def known_rows(raw: RawRows, counts: ReadReport) -> tuple[RawRows, InputError | None]:
        error = None
        if classes is not None:
            raw, error = known_labels(raw, classes, name, require_labels, on_error, counts)
        return raw if features is None else known_columns(raw, features, counts), error

    def parse(block: _Block) -> _ParsedBlock:
        return block.parsed(require_labels, on_error, known_rows)

    for rows, counts, error in parallel(texts(), parse, n_jobs):
        report.add(counts)
        if rows is not None:
            yield rows
        if error is not None:
            raise error


class _ParsedBlock(NamedTuple):
    """Result of parsing a block: rows up to a bad line, counts, and the error of that line."""

    rows: RawRows | None
    report: ReadReport
    error: InputError | None


class _Block:
    """Text, and arrays large enough for its rows: a pair takes 4 bytes, a row 2."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._text = np.zeros(0, np.uint8)
        self._length, self._first_line, self._share = 0, 1, 0.0
        self._room = -1

    def holding(self, text: np.ndarray, length: int, first_line: int, share: float) -> _Block:
        """The same with another text."""
        self._text, self._length = text, length
        self._first_line, self._share = first_line, share
        return self

    def parsed(
        self,
        require_labels: bool,
        on_error: str,
        check: Callable[[RawRows, ReadReport], tuple[RawRows, InputError | None]],
    ) -> _ParsedBlock:
        """The rows, as ``check`` leaves them; arrays are used again for the next text."""
        text, length = self._text, self._length
        if self._room < length:
            self._make_room(length)
        report, failure = ReadReport(), None
        rows, i, line, counted = 0, 0, self._first_line, 0
        while True:
            with np.errstate(over="ignore"):  # uncompiled kernels warn where compiled ones do not
                code, i, rows = parse_rows(text, i, length, not require_labels, *self._arrays, rows)
            if code == DONE:
                break
            line += count_lines(text[counted:i])
            counted = i
            error = InputError(self._name, line, EXPECTED[code], _token(text, i, length))
            if on_error == "raise":
                failure = error
                break
            report.skip(str(error))
            i = behind_line(text, i)
        raw, falls = self._rows(rows) if rows else None, self._arrays[-1]
        if raw is not None:
            try:
                tidy = _tidied(raw, self._name, report) if falls[0] else raw
                raw, wrong = check(tidy, report)
                failure = wrong or failure  # of a line before the one that stopped the kernel
            except InputError as error:
                raw, failure = None, error
        report.qids = int(falls[1])
        falls[:] = 0
        return _ParsedBlock(raw, report, failure)

    def _make_room(self, length: int) -> None:
        self._room = length
        self._arrays = (
            np.empty(length // 4 + 2, np.int64),
            np.empty(length // 4 + 2, np.float32),
            np.zeros(length // 2 + 2, np.int64),
            np.empty(length // 2 + 2, np.float64),
            np.empty(length // 2 + 2, np.int64),
            np.zeros(2, np.int64),
        )

    def _rows(self, count: int) -> RawRows:
        ids, values, indptr, labels, starts, _ = self._arrays
        text, first_line, nnz = self._text, self._first_line, int(indptr[count])
        return RawRows(
            indptr[: count + 1],
            ids[:nnz],
            values[:nnz],
            labels[:count],
            lambda row: line_of(text, int(starts[row]), first_line),
            self._share,
        )


def _tidied(raw: RawRows, name: str, report: ReadReport) -> RawRows:
    """The rows with ids in rising order, values of equal ones summed."""
    owner = np.repeat(np.arange(len(raw.labels)), np.diff(raw.indptr))
    same_row = owner[1:] == owner[:-1]
    falls = same_row & (raw.ids[1:] < raw.ids[:-1])
    report.unsorted += len(distinct(owner[1:][falls]))
    order = np.lexsort((raw.ids, owner))
    ids = raw.ids[order]
    first = np.ones(len(ids), bool)
    first[1:] = ~(same_row & (ids[1:] == ids[:-1]))
    report.repeated += int((~first).sum())
    owner, ids = owner[first], ids[first]
    sums = np.add.reduceat(raw.values[order].astype(np.float64), np.flatnonzero(first))
    if (np.abs(sums) > LARGEST).any():
        k = int(np.argmax(np.abs(sums) > LARGEST))
        actual = f"{sums[k]:.6g} as sum of feature {ids[k]}"
        raise InputError(name, raw.line(int(owner[k])), EXPECTED[NOT_FINITE], actual)
    indptr = np.zeros(len(raw.labels) + 1, np.int64)
    np.cumsum(np.bincount(owner, minlength=len(raw.labels)), out=indptr[1:])
    return raw._replace(indptr=indptr, ids=ids, values=sums.astype(np.float32))


def _token(buffer: np.ndarray, i: int, end: int) -> str:
    text = buffer[i : min(i + 100, end)].tobytes()
    if b"\0" in text:
        return "binary data"
    words = text.split(None, 1)
    return words[0].decode("utf-8", "backslashreplace") if words else ""


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
    n_jobs: int = 1,
) -> SparseDataset:
    """Read a whole file of ``label id:value …`` lines.

    Columns are the ids of the file while the largest is modest (2**26, or 8 times the number of
    values); scattered ids, up to 2**63 - 1, get columns of their own by way of a sorted table.
    Ids that do not rise in a line are sorted, values of equal ones summed, ``qid:`` is left out;
    all three are counted in the report. Classes are the numbers found, in rising order. Comments
    are ignored.

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
        Text to hold at a time, for each thread and for one more.
    n_jobs : int
        Threads that read a file; the result does not depend on it.

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
        features=features,
        classes=classes,
        n_jobs=n_jobs,
    ):
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
    if classes is None:
        classes = number_classes(distinct_numbers(numbers))
    names = tuple(classes)
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
    n_jobs: int = 1,
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
    names: list[str] = [] if classes is None else list(classes)
    size, count = 0, 0
    for raw in raw_blocks(
        path,
        block_bytes=block_bytes,
        require_labels=require_labels,
        on_error=on_error,
        report=report,
        features=features,
        classes=classes,
        n_jobs=n_jobs,
    ):
        if classes is None:
            new, known_names = number_classes(distinct_numbers(raw.labels)), set(names)
            names.extend(c for c in new if c not in known_names)
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
            block_features = features
        codes = number_codes(raw.labels, names)
        report.unknown_labels += int(np.count_nonzero(codes < 0))
        report.rows += len(codes)
        count += len(codes)
        rows = SparseRows(
            raw.indptr.copy(),
            raw.ids.astype(np.int32, copy=False),  # wider ones are used again by the reader
            raw.values.copy(),
            codes,
            np.ones(len(codes), np.float32),
        )
        yield SparseDataset(rows, block_features.size, names, block_features, name)
    require_rows(path, count, report)


def known_labels(
    raw: RawRows,
    classes: Sequence[str],
    name: str,
    require_labels: bool,
    on_error: str,
    report: ReadReport,
) -> tuple[RawRows, InputError | None]:
    """The rows whose label is among the classes; others are errors where labels are required.

    An error that is not skipped is returned with the rows before it.
    """
    if not require_labels:
        return raw, None
    codes = number_codes(raw.labels, classes)
    bad = np.flatnonzero(codes < 0)
    if not len(bad):
        return raw, None
    listed = ", ".join(classes[:10]) + (", …" if len(classes) > 10 else "")
    for row in bad.tolist():
        error = InputError(name, raw.line(row), f"a label out of {listed}", _label(raw, row))
        if on_error == "raise":
            end = int(raw.indptr[row])
            before = raw.indptr[: row + 1], raw.ids[:end], raw.values[:end], raw.labels[:row]
            return RawRows(*before, raw.line, raw.share), error
        report.skip(str(error))
    good = np.flatnonzero(codes >= 0)
    indptr, ids, values = gather_rows(raw.indptr, raw.ids, raw.values, good)
    return raw._replace(indptr=indptr, ids=ids, values=values, labels=raw.labels[good]), None


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


def _label(raw: RawRows, row: int) -> str:
    return "no label" if np.isnan(raw.labels[row]) else class_name(raw.labels[row])

"""Data larger than memory: a binary cache on disk, read by mapping it.

A cache is built in one pass over text, in bounded memory. The file is a first page, sections on
page borders in their final form, and a JSON header at the end.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple

import numpy as np

from hopefear.data.files import BLOCK_BYTES, ReadReport, require_rows
from hopefear.data.labels import distinct, number_codes
from hopefear.data.sparse import (
    DTYPES,
    MEASURED,
    NO_SCALE,
    NORMS,
    VALUES,
    SparseDataset,
    SparseRows,
    blocks,
    check_transform,
    content_digest,
    drop_unknown,
    let_go,
    rows_sound,
    transform_values,
)
from hopefear.data.svmlight import (
    checked_classes,
    distinct_numbers,
    keeps_ids,
    known_columns,
    known_labels,
    raw_blocks,
)
from hopefear.data.text import check_shares, known_text_labels, text_codes
from hopefear.data.text_counter import TextCounter
from hopefear.errors import HopefearError, ModelError
from hopefear.features import FeatureMap, IdentityFeatures, TableFeatures, from_parts
from hopefear.features.maps import MAX_COLUMNS
from hopefear.features.ngrams import Grams
from hopefear.storage import atomic_file


class _Plan(NamedTuple):
    """How raw blocks become final rows."""

    features: FeatureMap
    classes: tuple[str, ...]
    columns: Callable[[np.ndarray], np.ndarray]  # -1 drops a value
    codes: Callable[[np.ndarray], np.ndarray]


def build_cache(
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
    features: FeatureMap | None = None,
    classes: Sequence[str] | None = None,
    require_labels: bool = True,
    on_error: str = "raise",
    report: ReadReport | None = None,
    block_bytes: int = BLOCK_BYTES,
) -> None:
    """Turn a text file of any size into a cache file; the result is that of the reader.

    Memory is bounded by a few blocks plus the feature map. Rows wait in a temporary file next to
    the cache, which takes its name only when it is complete and synced.

    Parameters
    ----------
    path, cache_path : str or path
        Text in, cache out.
    format : {"svmlight", "text"}
        What the lines are.
    values, norm : str
        Row transforms as in :meth:`hopefear.data.sparse.SparseDataset.transformed`.
    ngrams, chars, lowercase, marks, min_count, max_share, hash_bits
        For text, as in :func:`hopefear.data.text.read_text`.
    features, classes, require_labels, on_error, report, block_bytes
        As for the readers.
    """
    check_transform(values, norm)
    if values in MEASURED:
        raise HopefearError(
            f"a cache is written row by row, and values={values!r} is measured on all of them; "
            "take counts, presence or log, or train without a cache"
        )
    check_shares(min_count, max_share, hash_bits)
    if format not in ("svmlight", "text"):
        raise HopefearError(f"a cache is built from svmlight or text, not from {format!r}")
    report = ReadReport() if report is None else report
    text_hash = hashlib.sha256()
    common: dict[str, Any] = {
        "block_bytes": block_bytes,
        "require_labels": require_labels,
        "on_error": on_error,
        "report": report,
    }
    folder = os.path.dirname(os.path.abspath(os.fspath(cache_path)))
    try:
        spool_file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - closed below
    except OSError as error:
        raise HopefearError(f"cannot write {os.fspath(cache_path)}: {error.strerror}") from error
    with spool_file:
        spool = _Spool(spool_file)
        if format == "svmlight":
            watched = raw_blocks(path, watch=text_hash.update, **common)
            plan = _spool_svmlight(spool, watched, os.fspath(path), features, classes, common)
        else:
            grams = Grams(ngrams, chars, lowercase, marks)
            counter = TextCounter(grams, hash_bits, features)
            watched_text = counter.blocks(path, watch=text_hash.update, **common)
            for raw in watched_text:
                if classes is not None:
                    raw = known_text_labels(
                        raw, counter, classes, os.fspath(path), require_labels, on_error, report
                    )
                spool.add(raw.indptr, raw.columns, raw.values, raw.labels)
            plan = _text_plan(counter, min_count, max_share, classes)
        require_rows(path, spool.n_rows, report)
        report.rows += spool.n_rows
        header: dict[str, Any] = {
            "source": _source(path, text_hash.hexdigest()),
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
            },
        }
        with atomic_file(cache_path) as out:
            _write(out, spool, plan, VALUES.index(values), NORMS.index(norm), header, report)


class _Spool:
    """Rows as they were read, in a temporary file."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._shapes: list[tuple[int, int, np.dtype, np.dtype]] = []
        self.n_rows = self.nnz = 0
        self.largest = -1

    def add(
        self, indptr: np.ndarray, ids: np.ndarray, values: np.ndarray, labels: np.ndarray
    ) -> None:
        top = int(ids.max()) if len(ids) else -1
        ids = ids.astype(np.int32 if top <= MAX_COLUMNS else np.int64, copy=False)
        self._shapes.append((len(labels), len(ids), ids.dtype, labels.dtype))
        try:
            for array in (np.diff(indptr), ids, values, labels):
                self._file.write(np.ascontiguousarray(array).view(np.uint8).data)
        except OSError as error:
            raise HopefearError(
                f"rows cannot be kept next to the cache: {error.strerror}; free some space there"
            ) from error
        self.n_rows += len(labels)
        self.nnz += len(ids)
        self.largest = max(self.largest, top)

    def blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        self._file.seek(0)
        for n, nnz, id_type, label_type in self._shapes:
            indptr = np.zeros(n + 1, np.int64)
            np.cumsum(self._read(n, np.dtype(np.int64)), out=indptr[1:])
            ids = self._read(nnz, id_type)
            values = self._read(nnz, np.dtype(np.float32))
            yield indptr, ids, values, self._read(n, label_type)

    def distinct_ids(self) -> np.ndarray:
        """Sorted distinct ids, merged when as many wait as are known."""
        table, waiting, count = np.zeros(0, np.int64), [], 0
        for _, ids, _, _ in self.blocks():
            waiting.append(distinct(ids).astype(np.int64))
            count += len(waiting[-1])
            if count > max(len(table), 1 << 20):
                table, waiting, count = distinct(np.concatenate([table, *waiting])), [], 0
        return distinct(np.concatenate([table, *waiting]))

    def _read(self, count: int, dtype: np.dtype) -> np.ndarray:
        return np.frombuffer(self._file.read(count * dtype.itemsize), dtype)


def _spool_svmlight(
    spool: _Spool,
    raws: Any,
    name: str,
    features: FeatureMap | None,
    classes: Sequence[str] | None,
    common: dict[str, Any],
) -> _Plan:
    numbers = np.zeros(0)
    for raw in raws:
        if classes is not None:
            raw = known_labels(
                raw, classes, name, common["require_labels"], common["on_error"], common["report"]
            )
        if features is not None:
            raw = known_columns(raw, features, common["report"])
        if classes is None:
            numbers = distinct(np.concatenate([numbers, distinct_numbers(raw.labels)]))
        spool.add(raw.indptr, raw.ids, raw.values, raw.labels)
    if classes is None:
        classes = checked_classes(name, numbers, spool.n_rows)
    names = tuple(classes)

    def codes(labels: np.ndarray) -> np.ndarray:
        return number_codes(labels, names)

    if features is not None:
        return _Plan(features, names, np.asarray, codes)
    if keeps_ids(spool.largest, spool.nnz):
        return _Plan(IdentityFeatures(spool.largest + 1), names, np.asarray, codes)
    table = TableFeatures(spool.distinct_ids())
    return _Plan(table, names, table.columns, codes)


def _text_plan(
    counter: TextCounter, min_count: int, max_share: float, classes: Sequence[str] | None
) -> _Plan:
    final, moved = counter.finish(min_count, max_share)
    names = counter.classes() if classes is None else tuple(classes)
    labels = counter.label_names()
    return _Plan(
        final,
        names,
        np.asarray if moved is None else moved,
        lambda numbers: text_codes(numbers, labels, names),
    )


def _write(
    out: IO[bytes],
    spool: _Spool,
    plan: _Plan,
    how: int,
    norm: int,
    header: dict[str, Any],
    report: ReadReport,
) -> None:
    # Room for every value read; what a plan drops stays a hole, which takes no disk.
    most = (spool.n_rows + 1, spool.nnz, spool.nnz, spool.n_rows, spool.n_rows)
    offset = PAGE
    writers: dict[str, SectionWriter] = {}
    for key, dtype, count in zip(SparseRows._fields, DTYPES, most, strict=True):
        writers[key] = SectionWriter(out, offset, dtype)
        offset = page_up(offset + count * dtype.itemsize)
    writers["indptr"].write(np.zeros(1, np.int64))
    for indptr, ids, values, labels in spool.blocks():
        columns = plan.columns(ids)
        if len(columns) and columns.min() < 0:
            indptr, columns, values = drop_unknown(indptr, columns, values)
        if how or norm:
            split = getattr(plan.features, "split", plan.features.size)
            values = transform_values(indptr, columns, values, how, norm, NO_SCALE, split)
        codes = plan.codes(labels)
        report.unknown_labels += int(np.count_nonzero(codes < 0))
        writers["indptr"].write(indptr[1:] + writers["indices"].count)
        writers["indices"].write(columns)
        writers["values"].write(values)
        writers["labels"].write(codes)
        writers["weights"].write(np.ones(len(codes), np.float32))
    for key, array in plan.features.arrays().items():
        writer = writers[f"features.{key}"] = SectionWriter(out, offset, array.dtype)
        writer.write(array)
        offset = page_up(offset + array.nbytes)
    arrays = {key: writer.entry() for key, writer in writers.items()}
    hashes = {key: arrays[key]["sha256"] for key in SparseRows._fields}
    header |= {
        "n_rows": spool.n_rows,
        "n_features": plan.features.size,
        "classes": list(plan.classes),
        "features": plan.features.to_header(),
        "arrays": arrays,
        "digest": content_digest(hashes, plan.features.size, plan.classes),
    }
    write_header(out, offset, header)


def _source(path: str | os.PathLike[str], digest: str) -> dict[str, Any]:
    name = os.fspath(path)
    if name == "-":
        return {"path": "-", "size": 0, "mtime_ns": 0, "sha256": digest}
    stat = os.stat(name)
    return {
        "path": os.path.abspath(name),
        "size": stat.st_size,
        "mtime_ns": stat.st_mtime_ns,
        "sha256": digest,
    }


MAGIC = b"hopefear-cache 1"
PAGE = 4096
_FIRST = struct.Struct("<16sQQ64s")


class SectionWriter:
    """One array written piece by piece to its place in a file, with a running hash."""

    def __init__(self, out: IO[bytes], offset: int, dtype: Any) -> None:
        self._out, self._next = out, offset
        self.offset, self.dtype, self.count = offset, np.dtype(dtype), 0
        self._hash = hashlib.sha256()

    def write(self, piece: np.ndarray) -> None:
        piece = np.ascontiguousarray(piece, self.dtype)
        data = piece.view(np.uint8).data
        self._out.seek(self._next)
        self._out.write(data)
        self._hash.update(data)
        self._next += data.nbytes
        self.count += len(piece)

    def entry(self) -> dict[str, Any]:
        """What the header says of the section."""
        return {
            "dtype": self.dtype.str,
            "offset": self.offset,
            "count": self.count,
            "sha256": self._hash.hexdigest(),
        }


def page_up(offset: int) -> int:
    """The next page border."""
    return -(-offset // PAGE) * PAGE


def write_header(out: IO[bytes], offset: int, header: Mapping[str, Any]) -> None:
    """Write the header at a position, and the first page that points to it."""
    data = json.dumps(header).encode()
    out.seek(offset)
    out.write(data)
    out.seek(0)
    digest = hashlib.sha256(data).hexdigest().encode()
    out.write(_FIRST.pack(MAGIC, offset, len(data), digest))


def read_header(data: Any, name: str) -> dict[str, Any]:
    """The header of a mapped cache file, checked; HopefearError when it is not sound."""
    if len(data) < PAGE or data[:14] != MAGIC[:14]:
        raise HopefearError(f"{name}: not a hopefear cache")
    magic, offset, length, digest = _FIRST.unpack(data[: _FIRST.size])
    if magic != MAGIC:
        raise HopefearError(f"{name}: a cache of another format version; build it again")
    if offset + length != len(data):
        raise damaged(name, "its length is not what it was")
    text = data[offset : offset + length]
    if hashlib.sha256(text).hexdigest().encode() != digest:
        raise damaged(name, "its header has changed")
    try:
        header = json.loads(text)
    except ValueError:
        header = None
    if not isinstance(header, dict):
        raise damaged(name, "its header is not JSON")
    return header


def section(data: Any, entry: Any, name: str) -> np.ndarray:
    """Read-only view of a section of a mapped file."""
    try:
        dtype, offset, count = np.dtype(entry["dtype"]), entry["offset"], entry["count"]
        sound = (
            dtype.kind in "iuf"
            and isinstance(offset, int)
            and isinstance(count, int)
            and offset >= PAGE
            and count >= 0
            and offset + count * dtype.itemsize <= len(data)
        )
    except (TypeError, KeyError, ValueError):
        sound = False
    if not sound:
        raise damaged(name, "a section does not fit the file")
    return np.frombuffer(data, dtype, count, offset)


def damaged(name: str, what: str) -> HopefearError:
    """The error for a file that cannot be trusted."""
    return HopefearError(f"{name}: the cache is damaged: {what}; build it again")


# Numbers to hold at a time while everything is checked.
_SLICE = 1 << 20


def open_cache(
    cache_path: str | os.PathLike[str], *, check_source: bool = True, verify: bool = False
) -> SparseDataset:
    """Map a cache that :func:`hopefear.data.cache.build_cache` wrote.

    The arrays are read-only views of the file; pages come in as they are read and can go again,
    see :func:`blocks`. The sizes and the header are always checked.

    Parameters
    ----------
    cache_path : str or path
        The cache file.
    check_source : bool
        Refuse a cache whose source file is there but has another size or time.
    verify : bool
        Check the hash of every section too, which reads the whole file.
    """
    name = os.fspath(cache_path)
    mapping = map_file(name)
    header = read_header(mapping, name)
    try:
        arrays = {key: section(mapping, e, name) for key, e in header["arrays"].items()}
        rows = SparseRows(*(arrays[key] for key in SparseRows._fields))
        _check_shapes(rows, header["n_rows"], name)
        own = {k[len("features.") :]: a for k, a in arrays.items() if k.startswith("features.")}
        features = from_parts(header["features"], own)
        source, digest = header["source"], header["digest"]
        dataset = SparseDataset(
            rows, header["n_features"], header["classes"], features, source["path"], digest
        )
        if check_source:
            _check_source(source, name)
        dataset.mapping = mapping
        if verify:
            _check_content(header["arrays"], arrays, dataset, name)
    except (KeyError, TypeError, AttributeError, ModelError) as error:
        raise damaged(name, f"its header is not sound ({error})") from error
    return dataset


def cache_options(cache_path: str | os.PathLike[str]) -> dict[str, Any]:
    """How a cache was built: format, transforms, n-grams."""
    with map_file(cache_path) as data:
        return read_header(data, os.fspath(cache_path)).get("options", {})


def map_file(path: str | os.PathLike[str]) -> mmap.mmap:
    """A read-only map of a whole file."""
    try:
        with open(path, "rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "an empty file"
        raise HopefearError(f"{os.fspath(path)}: cannot be read: {reason}") from error


def _check_shapes(rows: SparseRows, n_rows: Any, name: str) -> None:
    sound = (
        isinstance(n_rows, int)
        and all(a.dtype == t for a, t in zip(rows, DTYPES, strict=True))
        and len(rows.indptr) == n_rows + 1
        and len(rows.labels) == len(rows.weights) == n_rows
        and len(rows.indices) == len(rows.values) == rows.indptr[-1]
        and rows.indptr[0] == 0
    )
    if not sound:
        raise damaged(name, "its arrays do not fit each other")


def _check_source(source: dict[str, Any], name: str) -> None:
    try:
        now = os.stat(source["path"])
    except OSError:
        return  # the cache stands for itself
    if (now.st_size, now.st_mtime_ns) != (source["size"], source["mtime_ns"]):
        raise HopefearError(
            f"{name}: the cache is older than {source['path']}, which has changed since; "
            "build it again"
        )


def _check_content(
    entries: dict[str, Any], arrays: dict[str, np.ndarray], dataset: SparseDataset, name: str
) -> None:
    """Read everything once, some pages at a time."""
    for key, array in arrays.items():
        digest = hashlib.sha256()
        flat = array.reshape(-1)
        for first in range(0, flat.size, _SLICE):
            last = min(first + _SLICE, flat.size)
            digest.update(flat[first:last].view(np.uint8).data)
            if dataset.mapping is not None:
                let_go(dataset.mapping, flat, first, last)
        if digest.hexdigest() != entries[key]["sha256"]:
            raise damaged(name, f"the section {key} has changed")
    for r in blocks(dataset, _SLICE // 64):
        if not rows_sound(r.indptr, r.indices, r.labels, dataset.n_features, len(dataset.classes)):
            raise damaged(name, "a row points outside the arrays")

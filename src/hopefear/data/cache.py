"""Data larger than memory: a binary copy on disk, read by mapping it; one format for all tasks.

A cache is a file: a first page, the arrays of a dataset on page borders in their final form, and a
JSON header at the end. It is built in bounded memory: pieces of rows wait in a temporary file until
all is known of their numbers, and the cache takes its name when it is complete and synced.
"""

from __future__ import annotations

import bisect
import contextlib
import ctypes
import functools
import hashlib
import importlib
import json
import mmap
import os
import signal
import struct
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any

import numpy as np

from hopefear import __version__
from hopefear.core.kernel_cache import cache_folder
from hopefear.data.mapped import at_random, blocks, in_order, rows_of, update_hash
from hopefear.errors import HopefearError, ModelError
from hopefear.features import parts
from hopefear.storage import atomic_file, field_of

MAGIC = b"hopefear-cache 2"
PAGE = 4096
_FIRST = struct.Struct("<16sQQ64s")
_FEATURES = "features."
# Bytes of an array that are written at once. Linux keeps them in memory in one piece where they
# begin at a multiple of their number, and maps them as a whole.
_STRETCH = 1 << 21
# What blocks take while everything is checked.
_CHECKED_BYTES = 1 << 23
_REMEDY = "; build it again"

Pieces = Mapping[str, np.ndarray]
# Number of a file on its disk, its size and the time of the last change.
Stamp = tuple[int, int, int, int]


class CacheMap(mmap.mmap):
    """A mapped cache, and what tells whether its file is still the one that was opened.

    ``path`` is absolute, ``digest`` the SHA-256 of the header, which has those of all arrays. The
    system ``tells`` which pages are in memory where this process may write to the file.
    """

    path = ""
    tells = False
    stamp: Stamp = (0, 0, 0, 0)
    digest = ""

    def check(self) -> None:
        """Refuse a file that was written to after it was opened.

        Nothing is read while size and time are what they were; else all of it, to compare hashes.
        A file that took the name of this one changes nothing: what was opened stays mapped.
        """
        try:
            stamp = _stamp(os.stat(self.path))
        except OSError:
            return
        if stamp != self.stamp and stamp[0] == self.stamp[0]:
            if stamp[1] < len(self):
                raise _damaged(self.path, "it has become shorter")
            header = _read_header(self, self.path)
            if _digest_of(self) != self.digest:
                raise _damaged(self.path, "its header has changed")
            _check_hashes(self, header)
            self.stamp = stamp


# Caches that are open, and what would else be called for a fault, by number of the signal.
_OPEN: weakref.WeakSet[CacheMap] = weakref.WeakSet()
_HANDLERS: dict[int, int | None] = {}


def _on_fault(signum: int) -> None:
    """Ends the process in words where a cache was written to while a kernel read it.

    A page that the file has no more is a fault, and so is where wrong numbers lead. Kernels cannot
    return from either.
    """
    for mapping in list(_OPEN):
        with contextlib.suppress(OSError):
            stamp = _stamp(os.stat(mapping.path))
            if stamp != mapping.stamp and stamp[0] == mapping.stamp[0]:
                error = _damaged(mapping.path, "it was written to while it was read")
                os.write(2, f"hopefear: {error}\n".encode())
                os._exit(1)
    _system().signal(signum, _HANDLERS.pop(signum))  # not ours, and it comes again at once


_ON_FAULT = ctypes.CFUNCTYPE(None, ctypes.c_int)(_on_fault)


def _handle_faults() -> None:
    """Has :func:`_on_fault` called, unless the program handles such signals in Python."""
    for name in ("SIGBUS", "SIGSEGV"):  # Windows keeps mapped files from being cut
        number = getattr(signal, name, None) if os.name == "posix" else None
        if number and number not in _HANDLERS and signal.getsignal(number) == signal.SIG_DFL:
            _HANDLERS[number] = _system().signal(number, _ON_FAULT)


@functools.cache
def _system() -> Any:
    library = ctypes.CDLL(None)
    library.signal.argtypes, library.signal.restype = (
        (ctypes.c_int, ctypes.c_void_p),
        ctypes.c_void_p,
    )
    return library


class Spool:
    """Pieces of arrays in the order they come, in a temporary file that has no name.

    Parameters
    ----------
    folder : str or path
        Where the file lies: next to the cache.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = os.fspath(folder)
        try:
            self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        except OSError as error:
            raise HopefearError(f"cannot write {os.fspath(folder)}: {error.strerror}") from error
        # Names and types that pieces have; which ones a piece has, and how long, it says itself.
        self._kinds: dict[tuple[tuple[str, np.dtype], ...], int] = {}
        self._pieces = 0
        self.totals: dict[str, int] = {}

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *error: object) -> None:
        # Closing flushes once more, and fails once more where the disk is full.
        with contextlib.suppress(OSError):
            self._file.close()

    def add(self, **arrays: np.ndarray) -> None:
        """Keep a piece."""
        kind = tuple((name, array.dtype) for name, array in arrays.items())
        number = self._kinds.setdefault(kind, len(self._kinds))
        head = np.array([number, *map(len, arrays.values())], np.int64)
        self._pieces += 1
        try:
            self._file.write(head.data)
            for name, array in arrays.items():
                self._file.write(np.ascontiguousarray(array).view(np.uint8).data)
                self.totals[name] = self.totals.get(name, 0) + len(array)
        except OSError as error:
            raise HopefearError(
                f"{self._folder}: rows cannot be kept there until the cache is written: "
                f"{error.strerror}; free some space, or name another folder with --cache"
            ) from error

    def pieces(self) -> Iterator[dict[str, np.ndarray]]:
        """All pieces, in order."""
        self._file.seek(0)
        kinds = list(self._kinds)
        for _ in range(self._pieces):
            kind = kinds[int(self._read(1, np.dtype(np.int64))[0])]
            sizes = self._read(len(kind), np.dtype(np.int64)).tolist()
            yield {name: self._read(n, dtype) for (name, dtype), n in zip(kind, sizes, strict=True)}

    def _read(self, count: int, dtype: np.dtype) -> np.ndarray:
        return np.frombuffer(self._file.read(count * dtype.itemsize), dtype)


class SectionWriter:
    """One array written piece by piece to its place in a file, with a running hash."""

    def __init__(self, out: IO[bytes], offset: int, dtype: Any) -> None:
        self._out, self._next = out, offset
        self.offset, self.dtype, self.count = offset, np.dtype(dtype), 0
        self._hash = hashlib.sha256()
        self._waiting = bytearray()

    def write(self, piece: np.ndarray) -> None:
        """Append a piece; it is in the file when a stretch is full or :meth:`entry` was asked."""
        data = np.ascontiguousarray(piece, self.dtype).view(np.uint8).data
        self._hash.update(data)
        self.count += len(piece)
        while data.nbytes:
            room = _STRETCH - (self._next + len(self._waiting)) % _STRETCH
            self._waiting += data[:room]
            if data.nbytes >= room:
                self._flush()
            data = data[room:]

    def _flush(self) -> None:
        self._out.seek(self._next)
        self._out.write(self._waiting)
        self._next += len(self._waiting)
        self._waiting.clear()

    def entry(self) -> dict[str, Any]:
        """What the header says of the section, all of which is then in the file."""
        self._flush()
        return {
            "dtype": self.dtype.str,
            "offset": self.offset,
            "count": self.count,
            "sha256": self._hash.hexdigest(),
        }


def write_cache(
    path: str | os.PathLike[str],
    kind: str,
    pieces: Iterable[Pieces],
    room: Mapping[str, tuple[Any, int]],
    features: Any,
    header: Mapping[str, Any],
    digest: Callable[[Mapping[str, Any]], str] | None = None,
    further: Mapping[str, np.ndarray] = MappingProxyType({}),
) -> None:
    """Write the arrays of a dataset whose pieces come one after the other.

    Parameters
    ----------
    path : str or path
        The cache; a file of that name is replaced when the new one is complete.
    kind : str
        ``examples``, ``sentences``, ``lists`` or ``trees``.
    pieces : iterable of mappings
        Arrays of some examples by name; in each piece pointers begin with 0.
    room : mapping
        By name of an array, its type and how long it will be at most. What is not used stays a
        hole, which takes no disk.
    features : feature map
        What columns mean.
    header : mapping
        ``source`` and ``options`` of the data, and what its kind needs.
    digest : callable, optional
        The digest of the dataset, given what the header says of the arrays; else it is asked
        itself.
    further : mapping of str to array
        Arrays that go with the dataset, for :func:`further_arrays`.
    """
    pointers = _classes(kind)[0].pointers
    with atomic_file(path) as out:
        offset = PAGE
        writers: dict[str, SectionWriter] = {}
        for name, (dtype, count) in room.items():
            writers[name] = SectionWriter(out, offset, dtype)
            offset = _page_up(offset + (count + 1) * np.dtype(dtype).itemsize)
        ends = dict.fromkeys(pointers, 0)
        for name in pointers & writers.keys():
            writers[name].write(np.zeros(1, np.int64))
        for piece in pieces:
            for name, array in piece.items():
                if name in pointers:
                    writers[name].write(array[1:] + ends[name])
                    ends[name] += int(array[-1])
                else:
                    writers[name].write(array)
        others = {f"{_FEATURES}{key}": array for key, array in features.arrays().items()}
        for key, array in {**others, **further}.items():
            writer = writers[key] = SectionWriter(out, offset, array.dtype)
            writer.write(array)
            offset = _page_up(offset + array.nbytes)
        entries = {name: writer.entry() for name, writer in writers.items()}
        whole = {
            "kind": kind,
            "library": __version__,
            **header,
            "features": features.to_header(),
            "arrays": entries,
        }
        if digest is not None:
            whole["digest"] = digest(entries)
        else:
            out.truncate(offset)
            out.flush()
            mapping = mmap.mmap(out.fileno(), 0, access=mmap.ACCESS_READ)
            whole["digest"] = _dataset(mapping, whole, os.fspath(path), features).digest
        _write_header(out, offset, whole)


def _page_up(offset: int) -> int:
    return -(-offset // PAGE) * PAGE


def _write_header(out: IO[bytes], offset: int, header: Mapping[str, Any]) -> None:
    """Write the header at a position, and the first page that points to it."""
    data = json.dumps(header).encode()
    out.seek(offset)
    out.write(data)
    out.seek(0)
    digest = hashlib.sha256(data).hexdigest().encode()
    out.write(_FIRST.pack(MAGIC, offset, len(data), digest))


def source_of(path: str | os.PathLike[str], digest: str | None = None) -> dict[str, Any]:
    """What a cache says of the file it was built from."""
    name = os.fspath(path)
    if not os.path.isfile(name):
        return {"path": name, "size": 0, "mtime_ns": 0, "sha256": digest}
    stat = os.stat(name)
    size, time = stat.st_size, stat.st_mtime_ns
    return {"path": os.path.abspath(name), "size": size, "mtime_ns": time, "sha256": digest}


# Modules of the datasets, which training one task need not import all.
_MODULES = {
    "examples": "hopefear.data.sparse",
    "sentences": "hopefear.data.sequences",
    "lists": "hopefear.data.lists.dataset",
    "trees": "hopefear.data.tree_rows",
}


def _classes(kind: str) -> tuple[Any, Any, Mapping[str, tuple[np.dtype, ...]]]:
    """Dataset and rows of a kind, and the types that arrays may have."""
    module = importlib.import_module(_MODULES[kind])
    if kind == "examples":
        dataset, rows = module.SparseDataset, module.SparseRows
    elif kind == "sentences":
        dataset, rows = module.SequenceDataset, module.TokenRows
    elif kind == "trees":
        dataset, rows = module.TreeDataset, module.TreeRows
    else:
        dataset, rows = module.ListDataset, module.ListRows
        own = {name: (dtype,) for name, dtype in module.DTYPES.items()}
        return dataset, rows, {**own, "columns": (np.dtype("u2"), np.dtype("i4"))}
    types = zip(rows._fields, module.DTYPES, strict=True)
    return dataset, rows, {name: (dtype,) for name, dtype in types}


def open_cache(
    cache_path: str | os.PathLike[str], *, check_source: bool = True, verify: bool = False
) -> Any:
    """Map a cache: the dataset that was written, of whatever task.

    The arrays are read-only views of the file; pages come in as they are read and can go again, see
    :func:`hopefear.data.mapped.blocks`. The sizes and the header are always checked.

    Parameters
    ----------
    cache_path : str or path
        The cache file.
    check_source : bool
        Refuse a cache whose source file is there but has another size or time.
    verify : bool
        Check the hash of every array and the numbers in it too, which reads the whole file.
    """
    name = os.fspath(cache_path)
    mapping = _map_file(name)
    header = _read_header(mapping, name)
    mapping.digest = _digest_of(mapping)
    with sound_header(name):
        dataset = _dataset(mapping, header, name)
        dataset.__dict__["digest"] = header["digest"]
        if check_source and (reason := _changed(header["source"])):
            raise HopefearError(f"{name}: {reason}{_REMEDY}")
        if verify:
            _check_content(mapping, header, dataset, name)
    return dataset


def cache_header(cache_path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a cache says of itself: kind, source, options, and what its kind needs."""
    with _map_file(cache_path) as data:
        return _read_header(data, os.fspath(cache_path))


def further_arrays(dataset: Any, header: Mapping[str, Any], prefix: str) -> dict[str, np.ndarray]:
    """Arrays of a cache that go with its dataset, those whose names begin so."""
    entries = {key: e for key, e in header["arrays"].items() if key.startswith(prefix)}
    return {key: section(dataset.mapping, e, dataset.source) for key, e in entries.items()}


def use_cache(
    folder: str | os.PathLike[str],
    path: str | os.PathLike[str],
    kind: str,
    options: Mapping[str, Any],
    build: Callable[[Path], None],
    say: Callable[[str], None] = lambda line: None,
) -> tuple[Any, dict[str, Any]]:
    """(dataset, header) of the cache of a file, which is built where it is missing or stale.

    Parameters
    ----------
    folder : str or path
        Where caches lie; made where it is missing. Each file and kind has one there.
    path : str or path
        The file that is cached.
    kind : str
        As in :func:`write_cache`.
    options : mapping
        How the file is read, as JSON has it; a cache of other options is built again.
    build : callable
        Writes the cache under the name it is given.
    say : callable
        Gets a line on what is done and why.
    """
    target = cache_file(folder, path, kind)
    same = json.loads(json.dumps(options))
    if reason := _why_stale(target, os.fspath(path), kind, same):
        say(f"{target}: {reason}; building it again" if target.exists() else _building(target))
    else:
        try:
            dataset = open_cache(target, verify=True)
            say(f"{target}: the cache is fresh and used again")
            return dataset, cache_header(target)
        except HopefearError as error:
            say(f"{error}; building it again" if "build it" not in str(error) else str(error))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HopefearError(
            f"the folder {target.parent} of caches cannot be made: {error.strerror}; name another "
            "with --cache"
        ) from error
    build(target)
    return open_cache(target), cache_header(target)


def _building(target: Path) -> str:
    return f"{target}: building the cache"


def cache_file(folder: str | os.PathLike[str], path: str | os.PathLike[str], kind: str) -> Path:
    """Where in a folder the cache of a file lies.

    >>> cache_file("caches", "-", "examples").name
    'stdin-3973e022.examples.cache'
    """
    name = os.fspath(path)
    whole = os.path.abspath(name) if name != "-" else name
    known = hashlib.sha256(whole.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    shown = "stdin" if name == "-" else os.path.basename(whole)
    return Path(folder) / f"{shown}-{known}.{kind}.cache"


def usual_folder() -> Path:
    """Where caches lie that nobody asked for (``HOPEFEAR_CACHE`` moves it)."""
    return cache_folder().parent / "data"


def _why_stale(target: Path, path: str, kind: str, options: Mapping[str, Any]) -> str:
    """Why a cache cannot stand for a file; empty where it can."""
    if not target.exists():
        return "there is none"
    try:
        header = cache_header(target)
    except HopefearError as error:
        return str(error).removeprefix(f"{target}: ").removesuffix(_REMEDY)
    if header.get("library") != __version__:
        return f"written by hopefear {header.get('library')}, and this is {__version__}"
    source, known = header.get("source"), header.get("options")
    if not isinstance(source, dict) or not isinstance(known, dict) or header.get("kind") != kind:
        return "its header is not sound"
    if not os.path.isfile(path):
        return f"{path} cannot be read twice"
    if other := [name for name in options if known.get(name, _MISSING) != options[name]]:
        return f"built with other options ({', '.join(other)})"
    if source.get("path") != os.path.abspath(path):
        return f"the cache of another file, {source.get('path')}"
    return _changed(source)


_MISSING: Any = object()


def _changed(source: Mapping[str, Any]) -> str:
    try:
        now = os.stat(source["path"])
    except (OSError, ValueError):
        return ""  # the cache stands for itself
    if source["size"] and (now.st_size, now.st_mtime_ns) != (source["size"], source["mtime_ns"]):
        return f"the cache is older than {source['path']}, which has changed since"
    return ""


def _map_file(path: str | os.PathLike[str]) -> CacheMap:
    try:
        with open(path, "rb") as file:
            mapping = CacheMap(file.fileno(), 0, access=mmap.ACCESS_READ)
            mapping.path, mapping.stamp = os.path.abspath(path), _stamp(os.fstat(file.fileno()))
            mapping.tells = os.access(path, os.W_OK)
            at_random(mapping)
            _OPEN.add(mapping)
            _handle_faults()
            return mapping
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "an empty file"
        raise HopefearError(f"{os.fspath(path)}: cannot be read: {reason}") from error


def _stamp(stat: os.stat_result) -> Stamp:
    # The last one no program can set; numbers of files come again.
    return stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


def _digest_of(data: Any) -> str:
    """What the first page of a sound cache says of its header."""
    return _FIRST.unpack(data[: _FIRST.size])[3].decode()


def _read_header(data: Any, name: str) -> dict[str, Any]:
    """The header of a mapped cache file, checked; HopefearError when it is not sound."""
    if len(data) < PAGE or data[:14] != MAGIC[:14]:
        raise HopefearError(f"{name}: not a hopefear cache")
    magic, offset, length, digest = _FIRST.unpack(data[: _FIRST.size])
    if magic != MAGIC:
        raise HopefearError(f"{name}: a cache of another format version{_REMEDY}")
    if offset + length != len(data):
        raise _damaged(name, "its length is not what it was")
    text = data[offset : offset + length]
    if hashlib.sha256(text).hexdigest().encode() != digest:
        raise _damaged(name, "its header has changed")
    try:
        header = json.loads(text)
    except ValueError:
        header = None
    if not isinstance(header, dict):
        raise _damaged(name, "its header is not JSON")
    with sound_header(name):
        for key, kind in (("digest", str), ("source", dict), ("options", dict)):
            field_of(header, key, kind)
        field_of(header["source"], "path", str)
        for key in ("size", "mtime_ns"):
            field_of(header["source"], key, int)
        for label in (*header.get("classes", ()), *header.get("labels", ())):
            if type(label) is not str:
                raise ModelError(f"a label is {label!r:.60}")
    return header


@contextlib.contextmanager
def sound_header(name: str) -> Iterator[None]:
    """Whatever goes wrong with what a header says is a HopefearError that names the cache."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, ModelError) as error:
        raise _damaged(name, f"its header is not sound ({error})") from error


def _damaged(name: str, what: str) -> HopefearError:
    return HopefearError(f"{name}: the cache is damaged: {what}{_REMEDY}")


def section(data: Any, entry: Any, name: str) -> np.ndarray:
    """Read-only view of a section of a mapped file; whoever told its place is not trusted."""
    dtype, offset, count = np.dtype(entry["dtype"]), entry["offset"], entry["count"]
    sound = (
        dtype.kind in "iuf"
        and isinstance(offset, int)
        and isinstance(count, int)
        and offset >= PAGE
        and count >= 0
        and offset + count * dtype.itemsize <= len(data)
    )
    if not sound:
        raise _damaged(name, "a section does not fit the file")
    return np.frombuffer(data, dtype, count, offset)


def _dataset(mapping: mmap.mmap, header: Mapping[str, Any], name: str, features: Any = None) -> Any:
    """The dataset of a mapped file; its numbers are trusted, its shapes are not."""
    kind = header["kind"]
    dataset_type, rows_type, types = _classes(kind)
    arrays = {key: section(mapping, e, name) for key, e in header["arrays"].items()}
    for key, allowed in types.items():
        if arrays[key].dtype not in allowed:
            raise _damaged(name, f"{key} is of another type")
    rows = rows_type(*(arrays[key] for key in rows_type._fields))
    if features is None:
        own = {k[len(_FEATURES) :]: a for k, a in arrays.items() if k.startswith(_FEATURES)}
        features = _FEATURE_MAPS[kind](header["features"], own)
    source = str(header["source"]["path"])
    dataset: Any
    if kind == "examples":
        meaning = header["n_features"], header["classes"], features, source
        dataset = dataset_type(rows, *meaning)
        dataset.mapping = mapping
    elif kind == "sentences":
        dataset = dataset_type(rows, header["labels"], features, source, mapping)
    elif kind == "trees":
        dataset = dataset_type.mapped(rows, features, source, mapping, **header["trees"])
    else:
        counts = arrays.get("counts")
        if counts is not None:
            counts = counts.reshape(len(rows.costs), -1)
        judged = counts, header["metric"], None, source
        dataset = dataset_type(rows, features, *judged, mapping)
    for key, (first, last) in dataset.spans(0, len(dataset)).items():
        array = arrays[key]
        if first != 0 or len(array) != last + (key in dataset.pointers):
            raise _damaged(name, "its arrays do not fit each other")
        if key in dataset.pointers and array[0] != 0:
            raise _damaged(name, "its arrays do not fit each other")
    return dataset


_FEATURE_MAPS: dict[str, Callable[[Any, Any], Any]] = {
    "examples": parts.from_parts,
    "sentences": parts.token_features_from_parts,
    "lists": parts.list_features_from_parts,
    "trees": parts.arc_features_from_parts,
}


def _check_content(mapping: CacheMap, header: Mapping[str, Any], dataset: Any, name: str) -> None:
    """Read everything once, some pages at a time."""
    _check_hashes(mapping, header)
    size = rows_of(dataset, _CHECKED_BYTES)
    for k, rows in enumerate(blocks(dataset, size)):
        try:
            _check_rows(dataset, rows)
            _check_numbers(dataset, rows, k * size, min((k + 1) * size, len(dataset)))
        except HopefearError as error:
            raise _damaged(name, str(error)) from None


def _check_hashes(mapping: CacheMap, header: Mapping[str, Any]) -> None:
    with in_order(mapping):
        for key, entry in header["arrays"].items():
            digest = hashlib.sha256()
            update_hash(digest, section(mapping, entry, mapping.path), mapping)
            if digest.hexdigest() != entry["sha256"]:
                raise _damaged(mapping.path, f"the section {key} has changed")


def _check_numbers(dataset: Any, rows: Any, begin: int, end: int) -> None:
    """HopefearError for the first example of a block with NaN or infinity."""
    for name, array in rows._asdict().items():
        if array.dtype.kind != "f" or np.isfinite(array).all():
            continue
        place = int(np.argmin(np.isfinite(array)))
        first, _ = dataset.spans(begin, end)[name]
        ends = [dataset.spans(begin, i + 1)[name][1] for i in range(begin, end)]
        example = bisect.bisect_right(ends, first + place)
        raise HopefearError(
            f"example {begin + example + 1} has {array[place]} among its {name}, which must be "
            "finite numbers"
        )


def _check_rows(dataset: Any, rows: Any) -> None:
    """HopefearError where kernels would follow the numbers of a block out of its arrays."""
    if hasattr(dataset, "classes"):
        sound = importlib.import_module(_MODULES["examples"]).rows_sound
        sizes = dataset.n_features, len(dataset.classes)
        if not sound(rows.indptr, rows.indices, rows.labels, *sizes):
            raise HopefearError("a row points outside the arrays")
    elif hasattr(dataset, "labels"):
        type(dataset)(rows, dataset.labels, dataset.features)
    else:
        type(dataset)(rows, dataset.features)

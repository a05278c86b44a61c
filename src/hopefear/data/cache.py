"""Data larger than memory: a binary copy on disk, of examples or of sentences.

A cache is a folder: an ``.npy`` file for each array of a dataset, in its final form, and
``header.json``, which is written last and has a hash of every array. It is built in bounded memory:
pieces of rows stay in a temporary file until their final numbers are known. The folder takes its
name when it is complete.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import json
import os
import secrets
import shutil
import tempfile
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from hopefear import __version__
from hopefear.data.blocks import blocks, rows_of
from hopefear.errors import HopefearError, ModelError
from hopefear.features import parts
from hopefear.storage import field_of

FORMAT = 3
HEADER = "header.json"
_FEATURES = "features."
# Bytes that are hashed, and bytes of rows that are checked, at a time.
_CHUNK, _CHECKED_BYTES = 1 << 22, 1 << 23
_REMEDY = "; build it again"
_ROOM = "free some space, or name another folder with --cache"

Pieces = Mapping[str, np.ndarray]


class CachedArrays:
    """Arrays of a cache: mapped, to look at a few elements, and read, for blocks of examples.

    Elements that were read are in memory, so that kernels cannot fault where a file is cut short.

    Parameters
    ----------
    path : path
        The folder.
    header : mapping
        Its header.
    """

    def __init__(self, path: str | os.PathLike[str], header: Mapping[str, Any]) -> None:
        self.path, self.header = os.fspath(path), header
        self._lock = threading.Lock()
        self._files: dict[str, io.FileIO] = {}
        weakref.finalize(self, _close, self._files)
        self._starts: dict[str, int] = {}  # bytes
        self.arrays: dict[str, np.ndarray] = {}
        for name, entry in header["arrays"].items():
            self._open(name, entry)
        self._stamps = {name: _stamp(file) for name, file in self._files.items()}

    def _open(self, name: str, entry: Mapping[str, Any]) -> None:
        dtype, count = np.dtype(entry["dtype"]), entry["count"]
        if dtype.kind not in "iuf" or type(count) is not int or count < 0:
            raise _damaged(self.path, f"{name} is of another type")
        start = _npy_header(dtype, count)
        try:
            file = self._files[name] = io.FileIO(os.path.join(self.path, f"{name}.npy"))
            size = os.fstat(file.fileno()).st_size
            if file.read(len(start)) != start or size != len(start) + count * dtype.itemsize:
                raise _damaged(self.path, f"{name}.npy is not of the size or type it had")
            self.arrays[name] = np.memmap(file, dtype, "r", len(start), (count,))
            self._starts[name] = len(start)
        except OSError as error:
            raise _damaged(self.path, f"{name}.npy: {error.strerror}") from error

    def holds(self, name: str, array: np.ndarray) -> bool:
        """Whether an array is the one of this name, and none that took its place."""
        stored = self.arrays.get(name)
        return stored is not None and stored.ctypes.data == array.ctypes.data

    def check(self) -> None:
        """Refuses files that were written to after they were opened.

        Files of these names that another run has built since change nothing.
        """
        for name, file in self._files.items():
            if _stamp(file) != self._stamps[name]:
                raise _damaged(self.path, f"{name}.npy was written to while it was read")

    def read(self, name: str, start: int, end: int) -> np.ndarray:
        """Returns elements of an array, in memory."""
        array = np.empty(end - start, self.arrays[name].dtype)
        remainder, file = array.view(np.uint8).data, self._files[name]
        with self._lock:
            file.seek(self._starts[name] + start * array.itemsize)
            while remainder and (count := file.readinto(remainder)):
                remainder = remainder[count:]
        if remainder:
            raise _damaged(self.path, f"{name}.npy has become shorter")
        array.flags.writeable = False
        return array

    def check_hashes(self) -> None:
        """Reads everything, and refuses arrays that do not match the header."""
        for name, entry in self.header["arrays"].items():
            digest, array = hashlib.sha256(), self.arrays[name]
            step = _CHUNK // array.itemsize
            for start in range(0, array.size, step):
                digest.update(self.read(name, start, min(start + step, array.size)).data)
            if digest.hexdigest() != entry["sha256"]:
                raise _damaged(self.path, f"{name}.npy has changed")


def _close(files: dict[str, io.FileIO]) -> None:
    for file in files.values():
        file.close()


def _stamp(file: io.FileIO) -> tuple[int, int]:
    stat = os.fstat(file.fileno())
    return stat.st_size, stat.st_mtime_ns


class Spool:
    """Chunks of arrays in the order they are added, in a temporary file without a name.

    Parameters
    ----------
    folder : str or path
        Folder of the file: that of the cache.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        try:
            self._file: IO[bytes] = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        except OSError as error:
            raise HopefearError(f"cannot write {os.fspath(folder)}: {error.strerror}") from error
        self._folder = os.fspath(folder)
        self._names: list[tuple[str, ...]] = []  # of the arrays of every piece
        self.totals: dict[str, int] = {}

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *error: object) -> None:
        # Closing flushes once more, and fails once more where the disk is full.
        with contextlib.suppress(OSError):
            self._file.close()

    def add(self, **arrays: np.ndarray) -> None:
        """Adds a piece."""
        self._names.append(tuple(arrays))
        try:
            for name, array in arrays.items():
                self._file.write(_npy_header(array.dtype, len(array)))
                self._file.write(np.ascontiguousarray(array).view(np.uint8).data)
                self.totals[name] = self.totals.get(name, 0) + len(array)
        except OSError as error:
            raise HopefearError(
                f"{self._folder}: rows cannot be kept there until the cache is written: "
                f"{error.strerror}; {_ROOM}"
            ) from error

    def chunks(self) -> Iterator[dict[str, np.ndarray]]:
        """Yields all pieces, in order."""
        self._file.seek(0)
        for names in self._names:
            yield {name: np.lib.format.read_array(self._file) for name in names}


def _npy_header(dtype: np.dtype, count: int) -> bytes:
    """Returns what an ``.npy`` file begins with; it leaves room for a count that grows."""
    description = {"descr": dtype.str, "fortran_order": False, "shape": (count,)}
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, description)
    return header.getvalue()


class _ArrayWriter:
    """Writes one array piece by piece to an ``.npy`` file, with a running hash."""

    def __init__(self, path: Path, dtype: Any) -> None:
        self._file, self._dtype = open(path, "wb"), np.dtype(dtype)  # noqa: SIM115
        self._count, self._hash = 0, hashlib.sha256()
        self._file.write(_npy_header(self._dtype, 0))

    def write(self, piece: np.ndarray) -> None:
        data = np.ascontiguousarray(piece, self._dtype).view(np.uint8).data
        self._hash.update(data)
        self._count += len(piece)
        self._file.write(data)

    def entry(self) -> dict[str, Any]:
        """Returns the header's entry for the array, which is complete."""
        self._file.seek(0)
        self._file.write(_npy_header(self._dtype, self._count))
        self._file.close()
        entry = {"dtype": self._dtype.str, "count": self._count}
        return {**entry, "sha256": self._hash.hexdigest()}

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._file.close()


def write_cache(
    path: str | os.PathLike[str],
    kind: str,
    chunks: Iterable[Pieces],
    features: Any,
    header: Mapping[str, Any],
    digest: Callable[[Mapping[str, Any]], str] | None = None,
) -> None:
    """Writes the arrays of a dataset, chunk after chunk.

    Parameters
    ----------
    path : str or path
        The cache; what has that name is replaced when the new one is complete.
    kind : {"examples", "sentences"}
        What the rows are.
    pieces : iterable of mappings
        Arrays of some examples by name; in each piece offsets begin with 0.
    features : feature map
        What columns mean.
    header : mapping
        ``source`` and ``options`` of the data, and what its kind needs.
    digest : callable, optional
        The digest of the dataset, given what the header says of the arrays; else it is asked
        itself.
    """
    (dataset, _, types), path = _types(kind), Path(path)
    with _new_folder(path) as folder, contextlib.ExitStack() as scope:

        def writer(name: str, dtype: Any) -> _ArrayWriter:
            array = _ArrayWriter(folder / f"{name}.npy", dtype)
            scope.callback(array.close)
            return array

        writers = {name: writer(name, dtype) for name, dtype in types.items()}
        ends = dict.fromkeys(dataset.offsets, 0)
        for name in dataset.offsets:
            writers[name].write(np.zeros(1, np.int64))
        for piece in chunks:
            for name, array in piece.items():
                if name in ends:
                    writers[name].write(array[1:] + ends[name])
                    ends[name] += int(array[-1])
                else:
                    writers[name].write(array)
        for name, array in features.arrays().items():
            name = f"{_FEATURES}{name}"
            writers[name] = writer(name, array.dtype)
            writers[name].write(array)
        entries = {name: writer.entry() for name, writer in writers.items()}
        complete = {
            "format": FORMAT,
            "kind": kind,
            "library": __version__,
            **header,
            "features": features.to_header(),
            "arrays": entries,
        }
        complete["digest"] = (
            _dataset(CachedArrays(folder, complete), features).digest
            if digest is None
            else digest(entries)
        )
        text = json.dumps({**complete, "sha256": _header_hash(complete)})
        (folder / HEADER).write_text(text, "ascii")


def _header_hash(header: Mapping[str, Any]) -> str:
    hashed = {key: value for key, value in header.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(hashed, sort_keys=True).encode()).hexdigest()


@contextlib.contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """Yields an empty folder, which gets the name ``path`` when all went well."""
    folder = path.with_name(f".hopefear-{secrets.token_hex(8)}.tmp")
    try:
        folder.mkdir()
        yield folder
        _remove(path)
        folder.rename(path)
    except OSError as error:
        raise HopefearError(f"cannot write {path}: {error.strerror or error}; {_ROOM}") from error
    finally:
        _remove(folder)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def source_of(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the fields of a cache's header that identify the file it was built from."""
    name = os.fspath(path)
    if not os.path.isfile(name):
        return {"path": name, "size": 0, "mtime_ns": 0}
    stat = os.stat(name)
    size, time = stat.st_size, stat.st_mtime_ns
    return {"path": os.path.abspath(name), "size": size, "mtime_ns": time}


def _types(kind: str) -> tuple[Any, Any, dict[str, np.dtype]]:
    """Returns the dataset and the rows of a kind, and the types of their arrays."""
    if kind == "examples":
        module = importlib.import_module("hopefear.data.sparse")
        dataset, rows = module.SparseDataset, module.SparseRows
    else:
        module = importlib.import_module("hopefear.data.sequences")
        dataset, rows = module.SequenceDataset, module.TokenRows
    return dataset, rows, dict(zip(rows._fields, module.DTYPES, strict=True))


def open_cache(
    cache_path: str | os.PathLike[str], *, check_source: bool = True, verify: bool = False
) -> Any:
    """Opens a cache: the examples or sentences that were written.

    The arrays are read-only and stay on disk; blocks of them are read, see
    :func:`hopefear.data.blocks.blocks`. The sizes and the header are always checked.

    Parameters
    ----------
    cache_path : str or path
        The folder.
    check_source : bool
        Refuse a cache whose source file is there but has another size or time.
    verify : bool
        Check the hash of every array and the numbers in it too, which reads everything.
    """
    header = cache_header(cache_path)
    if check_source and (reason := _changed(header["source"])):
        raise HopefearError(f"{os.fspath(cache_path)}: {reason}{_REMEDY}")
    with sound_header(os.fspath(cache_path)):
        cache = CachedArrays(cache_path, header)
        if verify:
            cache.check_hashes()
        dataset = _dataset(cache)
        if verify:
            _check_content(dataset, header["kind"])
    dataset.__dict__["digest"] = header["digest"]
    return dataset


def cache_header(cache_path: str | os.PathLike[str]) -> dict[str, Any]:
    """Returns the header of a cache: kind, source, options, and what its kind needs."""
    path = Path(cache_path)
    try:
        header = json.loads((path / HEADER).read_text("ascii"))
    except OSError as error:
        raise HopefearError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError:
        raise _damaged(path, "its header is not JSON") from None
    if not isinstance(header, dict):
        raise _damaged(path, "its header is not JSON")
    if header.get("format") != FORMAT:
        raise HopefearError(f"{path}: a cache of another format version{_REMEDY}")
    if header.get("sha256") != _header_hash(header):
        raise _damaged(path, "its header has changed")
    with sound_header(str(path)):
        for key, kind in (("digest", str), ("source", dict), ("options", dict), ("arrays", dict)):
            field_of(header, key, kind)
        field_of(header["source"], "path", str)
        for key in ("size", "mtime_ns"):
            field_of(header["source"], key, int)
        for label in (*header.get("classes", ()), *header.get("labels", ())):
            if type(label) is not str:
                raise ModelError(f"a label is {label!r:.60}")
    return header


def use_cache(
    folder: str | os.PathLike[str],
    path: str | os.PathLike[str],
    kind: str,
    options: Mapping[str, Any],
    build: Callable[[Path], None],
    say: Callable[[str], None] = lambda line: None,
) -> Any:
    """Returns the dataset of the cache of a file, which is built where it is missing or stale.

    Parameters
    ----------
    folder : str or path
        Folder of caches; made where it is missing. Each file and kind has one there.
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
    target = cache_path(folder, path, kind)
    if not os.path.lexists(target):
        say(f"{target}: building the cache")
    else:
        try:
            if reason := _why_stale(cache_header(target), os.fspath(path), kind, options):
                raise HopefearError(f"{target}: {reason}")
            dataset = open_cache(target, verify=True)
            say(f"{target}: the cache is fresh and used again")
            return dataset
        except HopefearError as error:
            say(f"{str(error).removesuffix(_REMEDY)}; building it again")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HopefearError(
            f"the folder {target.parent} of caches cannot be made: {error.strerror}; name another "
            "with --cache"
        ) from error
    build(target)
    return open_cache(target)


def cache_path(folder: str | os.PathLike[str], path: str | os.PathLike[str], kind: str) -> Path:
    """Returns the name that the cache of a file has in a folder.

    >>> cache_path("caches", "-", "examples").name
    'stdin-3973e022.examples.cache'
    """
    name = os.fspath(path)
    absolute = os.path.abspath(name) if name != "-" else name
    digest = hashlib.sha256(absolute.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    label = "stdin" if name == "-" else os.path.basename(absolute)
    return Path(folder) / f"{label}-{digest}.{kind}.cache"


def _why_stale(header: Mapping[str, Any], path: str, kind: str, options: Mapping[str, Any]) -> str:
    """Returns the reason why a cache does not match a file; empty where it does."""
    if header.get("library") != __version__:
        return f"written by hopefear {header.get('library')}, and this is {__version__}"
    if header.get("kind") != kind:
        return "its header is not sound"
    if not os.path.isfile(path):
        return f"{path} cannot be read twice"
    options_now, options_then = json.loads(json.dumps(options)), header["options"]
    if changed := [
        name
        for name in options_now
        if name not in options_then or options_then[name] != options_now[name]
    ]:
        return f"built with other options ({', '.join(changed)})"
    if header["source"]["path"] != os.path.abspath(path):
        return f"the cache of another file, {header['source']['path']}"
    return _changed(header["source"])


def _changed(source: Mapping[str, Any]) -> str:
    try:
        now = os.stat(source["path"])
    except (OSError, ValueError):
        return ""  # the cache stands for itself
    if source["size"] and (now.st_size, now.st_mtime_ns) != (source["size"], source["mtime_ns"]):
        return f"the cache is older than {source['path']}, which has changed since"
    return ""


@contextlib.contextmanager
def sound_header(name: str) -> Iterator[None]:
    """Turns any error in reading a header into a HopefearError that names the cache."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError, ModelError) as error:
        raise _damaged(name, f"its header is not sound ({error})") from error


def _damaged(name: str | os.PathLike[str], problem: str) -> HopefearError:
    return HopefearError(f"{os.fspath(name)}: the cache is damaged: {problem}{_REMEDY}")


def _dataset(cache: CachedArrays, features: Any = None) -> Any:
    """Returns the dataset of a cache; its numbers are trusted, its shapes are not."""
    header, arrays = cache.header, cache.arrays
    dataset_type, rows_type, types = _types(header["kind"])
    for name, dtype in types.items():
        if arrays[name].dtype != dtype:
            raise _damaged(cache.path, f"{name} is of another type")
    rows = rows_type(**{name: arrays[name] for name in types})
    if features is None:
        feature_arrays = {
            name[len(_FEATURES) :]: np.array(array)
            for name, array in arrays.items()
            if name.startswith(_FEATURES)
        }
        features = _FEATURE_MAPS[header["kind"]](header["features"], feature_arrays)
    source = str(header["source"]["path"])
    dataset: Any
    if header["kind"] == "examples":
        dataset = dataset_type(rows, header["n_features"], header["classes"], features, source)
        dataset.cache = cache
    else:
        dataset = dataset_type(rows, header["labels"], features, source, cache)
    for name, (start, end) in dataset.spans(0, len(dataset)).items():
        if start != 0 or arrays[name].size != end + (name in dataset.offsets):
            raise _damaged(cache.path, "its arrays do not fit each other")
        if name in dataset.offsets and arrays[name][0] != 0:
            raise _damaged(cache.path, "its arrays do not fit each other")
    return dataset


_FEATURE_MAPS: dict[str, Callable[[Any, Any], Any]] = {
    "examples": parts.from_parts,
    "sentences": parts.token_features_from_parts,
}


def _check_content(dataset: Any, kind: str) -> None:
    """HopefearError where kernels would follow the numbers of a cache out of its arrays."""
    for rows in blocks(dataset, rows_of(dataset, _CHECKED_BYTES)):
        try:
            if kind == "examples":
                module = importlib.import_module("hopefear.data.sparse")
                module.check_rows(rows, dataset.n_features, len(dataset.classes))
            else:
                type(dataset)(rows, dataset.labels, dataset.features)
        except HopefearError as error:
            raise _damaged(dataset.cache.path, str(error)) from None

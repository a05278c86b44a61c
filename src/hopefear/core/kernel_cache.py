"""Compiled kernels on disk: one file for each function and kind of arguments.

Numba's own cache keeps an index for each function. Two processes that compile at once may give one
number to two kernels, a damaged entry is an exception, and an edit of a part that a kernel calls
goes unnoticed. Here the name of a file says all that its contents depend on: the function, its
argument types, the processor, Python and numba, and the sources of the function's module, of the
classes among its arguments and of whatever these import. So entries are never out of date, nobody
waits for a lock, and an edit of one loss compiles only what uses it. A file that is not whole is
compiled again.

Kernels are looked for in the user's folder first, then among those that came with the package,
which are compiled for a level of processors (``level.json``) that most have.

Numba is not imported here: `core.numba_private` puts these files in the place of its cache.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import marshal
import os
import re
import stat
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from importlib import metadata
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

SUFFIX = ".kernel"
LEVEL_FILE = "level.json"
SHIPPED = Path(__file__).parents[1] / "kernels"
_MARK = b"hopefear kernel 6\n"
_DIGEST = 16
_KEPT_DAYS = 30
_ROOT = 0
_IMPORT = re.compile(rb"^(?:from ([\w.]+) import (\([^)]*\)|[^\n]*)|import ([\w.]+))", re.MULTILINE)
_PACKAGE = Path(__file__).parents[1]


def cache_folder() -> Path:
    """Folder of compiled kernels (``HOPEFEAR_CACHE`` moves it); it need not exist yet."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(os.environ.get("HOPEFEAR_CACHE") or os.path.join(home, "hopefear")) / "kernels"


def trusted_folder() -> Path | None:
    """The folder of compiled kernels, unless others may write there: what lies in it is run."""
    folder = cache_folder()
    with contextlib.suppress(OSError, AttributeError):  # it need not exist, and Windows has no uids
        state, owners = folder.stat(), {os.geteuid(), _ROOT}
        if state.st_uid not in owners or state.st_mode & stat.S_IWOTH:
            others = "others may write there" if state.st_uid in owners else "it is somebody else's"
            _complain(str(folder), f"{others}, and what lies there is run (chmod go-w it)")
            return None
    return folder


class TypeKey(NamedTuple):
    """Types of arguments in words, and the modules of the classes among them."""

    words: tuple[str, ...]
    modules: tuple[str, ...]


class KernelCache:
    """Files of one compiled function; ``kind`` tells ways to compile it apart."""

    def __init__(self, function: Callable[..., Any], kind: str = "") -> None:
        self._function, self._kind = function, kind

    def payloads(
        self, types: TypeKey, processor: Sequence[str], shipped: Sequence[str] | None
    ) -> Iterator[bytes]:
        """Yields what was kept: the user's own, then what came with the package.

        ``processor`` is the one here, ``shipped`` that of the package's kernels if they run here.
        """
        for folder, target in ((trusted_folder(), processor), (SHIPPED, shipped)):
            if folder is not None and target is not None:
                payload = _payload(folder / self.file_name(types, target))
                if payload:
                    yield payload

    def save(self, types: TypeKey, processor: Sequence[str], payload: bytes) -> None:
        """Keeps compiled code; warns once where that fails."""
        folder = trusted_folder()
        if folder is None:
            return
        try:
            _write(folder / self.file_name(types, processor), _file(payload))
            _forget_old(str(folder))
        except OSError as error:
            _complain(str(folder), error.strerror or str(error))

    def symbol(self, types: TypeKey) -> str:
        """Returns a name for callers, whatever processor a kernel was compiled for."""
        return self.file_name(types, ()).removesuffix(SUFFIX)

    def file_name(self, types: TypeKey, processor: Sequence[str]) -> str:
        """Returns words for people, and a digest of all that the contents depend on."""
        function = self._function
        digest = hashlib.blake2b(digest_size=_DIGEST)
        key = (function.__qualname__, self._kind, types.words, tuple(processor), _versions())
        digest.update(repr(key).encode())
        digest.update(function.__code__.co_code)
        for module in sorted(_with_imports(frozenset({function.__module__, *types.modules}))):
            digest.update(module.encode() + _source(module)[0])
        place = function.__module__.removeprefix("hopefear.")
        plain = re.sub(r"[^\w.]", "_", f"{place}.{function.__qualname__}")
        return f"{plain}-{digest.hexdigest()}{SUFFIX}"


def type_key_of(types: Iterable[Any]) -> TypeKey:
    """Returns numba's types in words."""
    modules: set[str] = set()
    words = tuple(_type_text(kind, modules) for kind in types)
    return TypeKey(words, tuple(sorted(modules)))


def _type_text(kind: Any, modules: set[str]) -> str:
    cls = getattr(kind, "instance_class", None)
    if cls is not None:
        modules.add(cls.__module__)
        return f"{_class(cls)}({','.join(_type_text(part, modules) for part in kind)})"
    if hasattr(kind, "types") and hasattr(kind, "count"):
        return f"({','.join(_type_text(part, modules) for part in kind)})"
    if hasattr(kind, "mutable") and hasattr(kind, "layout"):
        access = ("" if kind.mutable else "readonly ") + ("" if kind.aligned else "unaligned ")
        return f"{access}array({kind.dtype}, {kind.ndim}d, {kind.layout})"
    return str(kind)


def _class(cls: type) -> str:
    """Name of a class; where no file has its source, as in notebooks, with a digest of its code."""
    name = f"{cls.__module__}.{cls.__qualname__}"
    if _path(cls.__module__) is not None:
        return name
    methods = [value for value in vars(cls).values() if isinstance(value, FunctionType)]
    return f"{name} {_digest(b''.join(marshal.dumps(m.__code__) for m in methods)).hex()}"


def shipped_processor(triple: str, features: Collection[str]) -> tuple[str, str, str] | None:
    """Returns what the package's kernels were compiled for, if this machine has all of it."""
    try:
        level = json.loads((SHIPPED / LEVEL_FILE).read_text(encoding="utf-8"))
        level_triple, name, flags = level["processor"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    needed = {flag[1:] for flag in flags.split(",") if flag.startswith("+")}
    fits = level_triple == triple and needed.issubset(features)
    return (level_triple, name, flags) if fits else None


@functools.cache
def _versions() -> tuple[str | None, ...]:
    return sys.implementation.cache_tag, *map(metadata.version, ("numba", "llvmlite"))


@functools.cache
def _with_imports(modules: frozenset[str]) -> frozenset[str]:
    """The modules and all that they import, as far as it is source of ours or lies beside it."""
    seen: set[str] = set()
    ahead = list(modules)
    while ahead:
        module = ahead.pop()
        if module not in seen:
            seen.add(module)
            ahead.extend(_source(module)[1])
    return frozenset(seen)


@functools.cache
def _source(module: str) -> tuple[bytes, tuple[str, ...]]:
    """Digest of a module's source, and the modules it imports."""
    path = _path(module)
    if path is None:
        return b"", ()
    text = path.read_bytes()
    imports = set()
    for match in _IMPORT.finditer(text):
        origin = (match[1] or match[3]).decode()
        imports.add(origin)
        imports |= {f"{origin}.{name.decode()}" for name in re.findall(rb"\w+", match[2] or b"")}
    ours = module.startswith("hopefear.")
    near = {
        name
        for name in imports
        if (name.startswith("hopefear.") or not ours)
        and (found := _path(name)) is not None
        and (name.startswith("hopefear.") or found.parent == path.parent)
    }
    return _digest(text), tuple(sorted(near))


def _path(module: str) -> Path | None:
    if module.startswith("hopefear."):
        path = _PACKAGE.joinpath(*module.split(".")[1:])
        choices = [path.with_suffix(".py"), path / "__init__.py"]
    else:
        file = getattr(sys.modules.get(module), "__file__", None)
        choices = [Path(file)] if file and file.endswith(".py") else []
    return next((path for path in choices if path.is_file()), None)


def _file(payload: bytes) -> bytes:
    """Returns a whole file: the payload behind its digest."""
    return _MARK + _digest(payload) + payload


def _payload(path: Path) -> bytes:
    """Returns what a file holds; nothing where it is not whole. The file counts as used today."""
    try:
        contents = path.read_bytes()
        if time.time() - path.stat().st_mtime > 86_400:
            os.utime(path)
    except OSError:
        return b""
    payload = contents[len(_MARK) + _DIGEST :]
    return payload if contents == _file(payload) else b""


def _write(path: Path, contents: bytes) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f".{uuid.uuid4().hex}")
    try:
        temporary.write_bytes(contents)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@functools.cache
def _forget_old(folder: str) -> None:
    """Delete, once in a process, kernels that nobody has used for a while."""
    limit = time.time() - _KEPT_DAYS * 86_400
    for entry in _entries(folder):
        with contextlib.suppress(OSError):
            if entry.stat().st_mtime < limit:
                os.unlink(entry)


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        yield from entries


@functools.cache
def _complain(folder: str, why: str) -> None:
    warnings.warn(
        f"compiled kernels cannot be kept in {folder}: {why}; every run compiles them again until "
        "HOPEFEAR_CACHE names a folder of yours with room",
        stacklevel=2,
    )


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()

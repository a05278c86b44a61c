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
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import pickle
import re
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numba
from numba.core import caching, compiler, serialize
from numba.core.runtime import rtsys

from hopefear.core.symbols import callees, provide

SUFFIX = ".kernel"
LEVEL_FILE = "level.json"
SHIPPED = Path(__file__).parents[1] / "kernels"
_MARK = b"hopefear kernel 3\n"
_DIGEST = 16
_KEPT_DAYS = 30
_IMPORT = re.compile(rb"^(?:from ([\w.]+) import (\([^)]*\)|[^\n]*)|import ([\w.]+))", re.MULTILINE)
_PACKAGE = Path(__file__).parents[1]
# Typed loosely, because numba's own annotations leave these out.
_Base: Any = caching._Cache


def cache_folder() -> Path:
    """Folder of compiled kernels (``HOPEFEAR_CACHE`` moves it); it need not exist yet."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(os.environ.get("HOPEFEAR_CACHE") or os.path.join(home, "hopefear")) / "kernels"


class KernelCache(_Base):
    """What a compiled function asks before it compiles, and tells afterwards.

    ``kind`` tells ways to compile one function apart.
    """

    def __init__(self, function: Callable[..., Any], kind: str = "") -> None:
        self._function, self._kind = function, kind
        self._enabled = True

    @property
    def cache_path(self) -> str:
        return str(cache_folder())

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        """Numba's way to forget a function; entries here are never out of date."""

    def load_overload(self, signature: Any, context: Any) -> Any:
        if not self._enabled:
            return None
        processor = context.codegen().magic_tuple()
        for folder, target in ((cache_folder(), processor), (SHIPPED, shipped_processor())):
            if target is not None:
                payload = _contents(folder / self._name(signature, target))
                # Whatever is wrong with an entry, compiling mends it.
                with contextlib.suppress(Exception):
                    if payload is not None:
                        needed, symbols, parts = pickle.loads(payload)
                        if _known(symbols, context) and provide(needed):
                            return compiler.CompileResult._rebuild(context, *parts)
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        if not self._enabled or result.library.has_dynamic_globals:
            return
        folder = cache_folder()
        needed = callees(result.library)
        symbols = set(_externals(result.library)).difference(callee.symbol for callee in needed)
        payload = serialize.dumps((needed, sorted(symbols), result._reduce()))
        name = self._name(signature, result.codegen.magic_tuple())
        try:
            _write(folder / name, _MARK + _digest(payload) + payload)
            _forget_old(str(folder))
        except OSError as error:
            _complain(str(folder), error.strerror or str(error))

    def symbol(self, signature: Any) -> str:
        """Name for callers, who need not know for which processor a kernel was compiled."""
        return self._name(signature, ()).removesuffix(SUFFIX)

    def _name(self, signature: Any, processor: tuple[Any, ...]) -> str:
        """Name of the file: words for people, and a digest of all that its contents depend on."""
        function, modules = self._function, {self._function.__module__}
        words = [_text(kind, modules) for kind in signature]
        versions = (sys.implementation.cache_tag, numba.__version__, llvmlite.__version__)
        digest = hashlib.blake2b(digest_size=_DIGEST)
        key = (function.__qualname__, self._kind, words, processor, versions)
        digest.update(repr(key).encode())
        digest.update(function.__code__.co_code)
        for module in sorted(_with_imports(frozenset(modules))):
            digest.update(module.encode() + _source(module)[0])
        place = function.__module__.removeprefix("hopefear.")
        plain = re.sub(r"[^\w.]", "_", f"{place}.{function.__qualname__}")
        return f"{plain}-{digest.hexdigest()}{SUFFIX}"


def _known(symbols: Iterable[str], context: Any) -> bool:
    """Whether the process has what a kernel calls, after numba has brought in its helpers.

    LLVM ends the process where something is missing. Only compiling needs all that numba knows, and
    that takes longer to load than most kernels run.
    """
    for bring in (lambda: rtsys.initialize(context), context.refresh):
        if all(map(llvm.address_of_symbol, symbols)):
            return True
        bring()
    return all(map(llvm.address_of_symbol, symbols))


def _externals(library: Any) -> Iterator[str]:
    """What compiled code expects the process to have, numba's helpers and mathematics."""
    module = library._final_module
    for part in (*module.functions, *module.global_variables):
        if part.is_declaration and not part.name.startswith("llvm."):
            yield part.name


@functools.cache
def shipped_processor() -> tuple[Any, ...] | None:
    """What the package's own kernels were compiled for, if this processor has all of it."""
    try:
        level = json.loads((SHIPPED / LEVEL_FILE).read_text(encoding="utf-8"))
        triple, name, features = level["processor"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if triple != llvm.get_process_triple():
        return None
    here = llvm.get_host_cpu_features()
    needed = [flag[1:] for flag in features.split(",") if flag.startswith("+")]
    return (triple, name, features) if all(here.get(flag) for flag in needed) else None


def _text(kind: Any, modules: set[str]) -> str:
    """A type in words; the modules of the classes in it are added to ``modules``."""
    if not hasattr(kind, "instance_class"):
        return str(kind)
    parts = ",".join(_text(part, modules) for part in kind)
    cls = kind.instance_class
    modules.add(cls.__module__)
    return f"{cls.__module__}.{cls.__qualname__}({parts})"


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


def _contents(path: Path) -> bytes | None:
    """What a file holds, if it is whole; it counts as used today."""
    try:
        stored = path.read_bytes()
    except OSError:
        return None
    head = len(_MARK) + _DIGEST
    if not stored.startswith(_MARK) or _digest(stored[head:]) != stored[len(_MARK) : head]:
        return None
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > 86_400:
            os.utime(path)
    return stored[head:]


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
        "HOPEFEAR_CACHE names a folder with room",
        stacklevel=2,
    )


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()

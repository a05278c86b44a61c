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

A file has two parts: machine code that runs without numba (`core.machine_code`), and what numba
wants to know of it when it compiles a caller. Numba itself is not imported here before it compiles,
and the processor, which only LLVM knows by its name, is noted once in a file beside the folder.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib.util
import json
import marshal
import os
import pickle
import re
import stat
import sys
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from hopefear.core import machine_code

SUFFIX = ".kernel"
LEVEL_FILE = "level.json"
SHIPPED = Path(__file__).parents[1] / "kernels"
_MARK = b"hopefear kernel 4\n"
_DIGEST = 16
_KEPT_DAYS = 30
_ROOT = 0
_IMPORT = re.compile(rb"^(?:from ([\w.]+) import (\([^)]*\)|[^\n]*)|import ([\w.]+))", re.MULTILINE)
_VERSION = re.compile(rb"version\w*['\"]?\s*[:=]\s*['\"](\d[^'\"]*)")
_PACKAGE = Path(__file__).parents[1]
_SHARED = "hopefear."  # symbols of kernels that others call begin so
_SCALARS = {int: "int64", float: "float64", bool: "bool", type(None): "none"} | {
    kind: kind.__name__
    for kind in (np.int64, np.int32, np.uint64, np.uint32, np.uint8, np.float64, np.float32)
}
_ARRAYS = frozenset("?bBhHiIlLqQfd")
# Addresses of what code calls that is neither numba's nor the system's, by symbol.
_ADDRESSES: dict[str, int] = {}


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


class Words(NamedTuple):
    """Types of arguments in words, and the modules of the classes among them."""

    words: tuple[str, ...]
    modules: tuple[str, ...]


class KernelCache:
    """What a compiled function asks before it compiles, and tells afterwards.

    ``kind`` tells ways to compile one function apart. Numba asks by the methods of its own cache.
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
        from numba.core import compiler

        from hopefear.core.symbols import provide

        processor = context.codegen().magic_tuple()
        note_host(tuple(processor))
        for folder, target in ((trusted_folder(), processor), (SHIPPED, shipped_processor())):
            if folder is not None and target is not None:
                _, payload = _parts(folder / self._name(signature, target))
                # Whatever is wrong with an entry, compiling mends it.
                with contextlib.suppress(Exception):
                    if payload:
                        needed, symbols, parts = pickle.loads(payload)
                        if _known(symbols, context) and provide(needed):
                            return compiler.CompileResult._rebuild(context, *parts)
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        if not self._enabled or result.library.has_dynamic_globals:
            return
        from numba.core import serialize

        from hopefear.core.symbols import callees

        folder = trusted_folder()
        if folder is None:
            return
        needed = callees(result.library)
        symbols = set(_externals(result.library)).difference(callee.symbol for callee in needed)
        payload = serialize.dumps((needed, sorted(symbols), result._reduce()))
        name = self._name(signature, result.codegen.magic_tuple())
        try:
            _write(folder / name, _file(_code_of(result, needed, symbols), payload))
            _forget_old(str(folder))
        except OSError as error:
            _complain(str(folder), error.strerror or str(error))

    def load_code(self, values: Sequence[Any]) -> Callable[..., Any] | None:
        """The kernel for such arguments, if its machine code is on disk and runs without numba."""
        kinds = words_of(values) if self._enabled else None
        if kinds is None:
            return None
        for header, addresses in self._placed(kinds):
            module = sys.modules[self._function.__module__]
            environment = addresses[header["environment"]]
            constants = [np.dtype(name) for name in header["constants"]]
            name = self._function.__name__
            entry = addresses.get(header["entry"])
            if entry is not None:
                return machine_code.callable_from(entry, environment, name, module, constants)
        return None

    def address(self, kinds: Words) -> int | None:
        """Address of the kernel itself, for kernels that call it."""
        for header, addresses in self._placed(kinds):
            return addresses[header["function"]]
        return None

    def _placed(self, kinds: Words) -> Iterator[tuple[dict[str, Any], dict[str, int]]]:
        """Machine code for such arguments, in memory: what is said of it, and its symbols."""
        host = known_host()
        if host is None:
            return
        targets = (trusted_folder(), host.processor), (SHIPPED, shipped_processor())
        for folder, target in targets:
            if folder is not None and target is not None:
                code, _ = _parts(folder / self.file_name(kinds, target), code_only=True)
                # Whatever is wrong with it, numba's way is open.
                with contextlib.suppress(machine_code.Unknown, ValueError, KeyError, OSError):
                    if code:
                        head, _, machine = code.partition(b"\n")
                        header = json.loads(head)
                        for callee in header["needed"]:
                            _provide_code(*callee)
                        yield header, machine_code.placed(machine, _address_of)

    def symbol(self, signature: Any) -> str:
        """Name for callers, who need not know for which processor a kernel was compiled."""
        return self._name(signature, ()).removesuffix(SUFFIX)

    def _name(self, signature: Any, processor: tuple[Any, ...]) -> str:
        return self.file_name(words_of_types(signature), processor)

    def file_name(self, kinds: Words, processor: tuple[Any, ...]) -> str:
        """Name of the file: words for people, and a digest of all that its contents depend on."""
        function = self._function
        digest = hashlib.blake2b(digest_size=_DIGEST)
        versions = sys.implementation.cache_tag, version("numba"), version("llvmlite")
        key = (function.__qualname__, self._kind, kinds.words, tuple(processor), versions)
        digest.update(repr(key).encode())
        digest.update(function.__code__.co_code)
        for module in sorted(_with_imports(frozenset({function.__module__, *kinds.modules}))):
            digest.update(module.encode() + _source(module)[0])
        place = function.__module__.removeprefix("hopefear.")
        plain = re.sub(r"[^\w.]", "_", f"{place}.{function.__qualname__}")
        return f"{plain}-{digest.hexdigest()}{SUFFIX}"


def words_of_types(kinds: Iterable[Any]) -> Words:
    """Numba's types in words."""
    modules: set[str] = set()
    return Words(tuple(_type_text(kind, modules) for kind in kinds), tuple(sorted(modules)))


def words_of(values: Iterable[Any]) -> Words | None:
    """The same of values that have these types; None where only numba knows."""
    modules: set[str] = set()
    try:
        return Words(tuple(_text(value, modules) for value in values), tuple(sorted(modules)))
    except machine_code.Unknown:
        return None


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


def _text(value: Any, modules: set[str]) -> str:
    cls = type(value)
    if cls is np.ndarray:
        dtype, flags = value.dtype, value.flags
        if dtype.char not in _ARRAYS or not dtype.isnative:
            raise machine_code.Unknown(f"arrays of {dtype}")
        access = ("" if flags.writeable else "readonly ") + ("" if flags.aligned else "unaligned ")
        layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "A"
        return f"{access}array({dtype.name}, {value.ndim}d, {layout})"
    if hasattr(cls, "_fields"):
        modules.add(cls.__module__)
        return f"{_class(cls)}({','.join(_text(part, modules) for part in value)})"
    if cls is tuple:
        return f"({','.join(_text(part, modules) for part in value)})"
    if cls is int and not -(2**63) <= value < 2**63:
        raise machine_code.Unknown("a number of more than 64 bits")
    if cls not in _SCALARS:
        raise machine_code.Unknown(f"arguments of type {cls}")
    return _SCALARS[cls]


def _class(cls: type) -> str:
    """Name of a class; where no file has its source, as in notebooks, with a digest of its code."""
    name = f"{cls.__module__}.{cls.__qualname__}"
    if _path(cls.__module__) is not None:
        return name
    methods = [value for value in vars(cls).values() if isinstance(value, FunctionType)]
    return f"{name} {_digest(b''.join(marshal.dumps(m.__code__) for m in methods)).hex()}"


def _code_of(result: Any, needed: Sequence[Any], symbols: Iterable[str]) -> bytes:
    """Machine code that runs without numba, and what must be known of it; nothing where it cannot.

    Whatever it calls must have the same address as for LLVM.
    """
    import llvmlite.binding as llvm

    constants = result.environment.consts
    try:
        for symbol in set(symbols).difference(_ADDRESSES):
            if machine_code.address_of(symbol) != llvm.address_of_symbol(symbol):
                raise machine_code.Unknown(f"another {symbol}")
    except machine_code.Unknown:
        return b""
    if result.reload_init or not all(isinstance(value, np.dtype) for value in constants):
        return b""
    header = {
        "entry": result.fndesc.llvm_cpython_wrapper_name,
        "function": result.fndesc.llvm_func_name,
        "environment": result.fndesc.env_name,
        "constants": [dtype.str for dtype in constants],
        "needed": [[c.symbol, c.module, c.name, *words_of_types(c.types)] for c in needed],
    }
    return json.dumps(header).encode() + b"\n" + result.library._get_compiled_object()


def _provide_code(
    symbol: str, module: str, name: str, words: list[Any], modules: list[Any]
) -> None:
    """Put a kernel that others call into memory, unless it has become another."""
    if symbol in _ADDRESSES:
        return
    cache = getattr(importlib.import_module(module), name).shared._cache
    kinds = Words(tuple(words), tuple(modules))
    same = symbol == _SHARED + cache.file_name(kinds, ()).removesuffix(SUFFIX)
    address = cache.address(kinds) if same else None
    if address is None:
        raise machine_code.Unknown(f"no {symbol}")
    _ADDRESSES[symbol] = address


def _address_of(symbol: str) -> int:
    return _ADDRESSES.get(symbol) or machine_code.address_of(symbol)


@ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)
def _unpickle(data: int, size: int, _: int) -> Any:
    """For code that asks for a class, as it does to return an array; numba's own imports numba."""
    return _unpickled(data, size)


@functools.cache
def _unpickled(data: int, size: int) -> Any:
    return pickle.loads(ctypes.string_at(data, size))


_ADDRESSES["numba_unpickle"] = ctypes.cast(_unpickle, ctypes.c_void_p).value or 0


def _known(symbols: Iterable[str], context: Any) -> bool:
    """Whether the process has what a kernel calls, after numba has brought in its helpers.

    LLVM ends the process where something is missing. Only compiling needs all that numba knows, and
    that takes longer to load than most kernels run.
    """
    import llvmlite.binding as llvm
    from numba.core.runtime import rtsys

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


class Host(NamedTuple):
    """The processor here: LLVM's name for its kind, what numba compiles for, and what it has."""

    triple: str
    processor: tuple[str, ...]
    features: tuple[str, ...]


# Of this process, once it is known.
_HOST: list[Host] = []


def known_host() -> Host | None:
    """The processor here, if a process before this one has noted it."""
    if not _HOST and machine_code.RUNS_HERE:
        with contextlib.suppress(OSError, ValueError, TypeError):
            triple, processor, features = json.loads(_host_file().read_bytes())
            _HOST.append(Host(triple, tuple(processor), tuple(features)))
    return _HOST[0] if _HOST else None


@functools.cache
def note_host(processor: tuple[str, ...]) -> None:
    """Ask LLVM for the processor here and note it for processes to come, where none has rightly."""
    import llvmlite.binding as llvm

    features = sorted(name for name, here in llvm.get_host_cpu_features().items() if here)
    host = Host(llvm.get_process_triple(), processor, tuple(features))
    if known_host() != host:
        _HOST[:] = [host]
        shipped_processor.cache_clear()
        with contextlib.suppress(OSError):
            if machine_code.RUNS_HERE:
                _write(_host_file(), json.dumps(host).encode())


def _host_file() -> Path:
    """Its name tells processors, versions and settings of numba's apart."""
    with open("/proc/cpuinfo", "rb") as file:
        lines = file.read(4096).partition(b"\n\n")[0].splitlines()
    same = (b"vendor", b"cpu family", b"model", b"stepping", b"flags")
    settings = sorted(f"{k}={v}" for k, v in os.environ.items() if k.startswith("NUMBA_"))
    key = [line for line in lines if line.startswith(same)], settings, version("llvmlite")
    return cache_folder().parent / f"processor-{_digest(repr(key).encode()).hex()}.json"


@functools.cache
def shipped_processor() -> tuple[Any, ...] | None:
    """What the package's own kernels were compiled for, if this processor has all of it."""
    try:
        level = json.loads((SHIPPED / LEVEL_FILE).read_text(encoding="utf-8"))
        triple, name, features = level["processor"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    host = known_host()
    if host is None or triple != host.triple:
        return None
    needed = [flag[1:] for flag in features.split(",") if flag.startswith("+")]
    return (triple, name, features) if set(needed) <= set(host.features) else None


@functools.cache
def version(package: str) -> str:
    """Version of a package that need not be imported for it."""
    spec = importlib.util.find_spec(package)
    path = Path(spec.origin or "").with_name("_version.py") if spec else None
    match = _VERSION.search(path.read_bytes()) if path is not None and path.is_file() else None
    if match:
        return match[1].decode()
    from importlib import metadata

    return metadata.version(package)


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


def _file(code: bytes, payload: bytes) -> bytes:
    """A whole file: both parts behind their digests, the first behind its length."""
    head = _MARK + len(code).to_bytes(8, "little") + _digest(code)
    return head + code + _digest(payload) + payload


def _parts(path: Path, code_only: bool = False) -> tuple[bytes, bytes]:
    """Both parts of a file; one that is not whole is empty. The file counts as used today."""
    start = len(_MARK) + 8 + _DIGEST
    try:
        with open(path, "rb") as file:
            head = file.read(start)
            size = int.from_bytes(head[len(_MARK) : -_DIGEST], "little")
            if not head.startswith(_MARK) or size > os.path.getsize(path):
                return b"", b""
            code = file.read(size)
            rest = b"" if code_only else file.read()
    except OSError:
        return b"", b""
    if _digest(code) != head[-_DIGEST:]:
        return b"", b""
    payload = rest[_DIGEST:]
    if _digest(payload) != rest[:_DIGEST]:
        payload = b""
    with contextlib.suppress(OSError):
        if time.time() - path.stat().st_mtime > 86_400:
            os.utime(path)
    return code, payload


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

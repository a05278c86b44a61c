"""Machine code of kernels: an object file is put into memory and called, without the compiler.

Numba's compiler and LLVM take longer to import than most predictions take, and more memory than
most models. Code that was compiled once needs neither: it is an object file, made for a large
address space, so that few kinds of addresses are to be filled in; and what it calls is written in
C: Python, the mathematics of the system, and helpers of numba that stand by themselves.

What is not known here (other systems and processors, other kinds of addresses) is left to numba.
"""

from __future__ import annotations

import builtins
import ctypes
import functools
import importlib.util
import mmap
import os
import platform
import struct
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader
from typing import Any, NamedTuple

# HOPEFEAR_NUMBA=1 leaves all to numba, to find out whether this is at fault.
RUNS_HERE = (
    sys.platform == "linux"
    and platform.machine() == "x86_64"
    and not os.environ.get("HOPEFEAR_NUMBA")
)
# The format: an object file of x86-64, its tables, and the numbers that are used here.
_OBJECT_FILE, _X86_64 = b"\x7fELF\x02\x01", b"\x01\x00\x3e\x00"
_SECTION, _SYMBOL, _RELOCATION = (struct.Struct(f) for f in ("<IIQQQQIIQQ", "<IBBHQQ", "<QIIq"))
_SYMBOLS, _RELOCATIONS, _EMPTY, _UNWINDING = 2, 4, 8, 0x70000001
_WRITABLE, _LOADED = 1, 2
_UNDEFINED, _ABSOLUTE, _COMMON = 0, 0xFFF1, 0xFFF2
_ADDRESS, _DISTANCE = 1, 24
_READ_AND_RUN = mmap.PROT_READ | mmap.PROT_EXEC if RUNS_HERE else 0
# Memory with code stays as long as the process does: nobody knows who still calls it.
_MEMORY: list[mmap.mmap] = []


class Unknown(Exception):  # noqa: N818 - no error: numba goes on
    """Something that is not understood here, or that the process lacks."""


class _Section(NamedTuple):
    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


def placed(code: bytes, address_of: Callable[[str], int]) -> dict[str, int]:
    """Put an object file into memory; returns the addresses of its symbols.

    Parameters
    ----------
    code : bytes
        The object file.
    address_of : callable
        Gives the address of a symbol that the file uses and has not; may raise :class:`Unknown`.
    """
    if not RUNS_HERE or code[:6] != _OBJECT_FILE or code[16:20] != _X86_64:
        raise Unknown("no object file for this machine")
    start, n_sections = _number(code, 40, 8), _number(code, 60, 2)
    table = code[start : start + n_sections * _SECTION.size]
    sections = [_Section(*entry) for entry in _SECTION.iter_unpack(table)]
    (listing,) = (s for s in sections if s.kind == _SYMBOLS)
    symbols = list(_SYMBOL.iter_unpack(code[listing.offset : listing.offset + listing.size]))
    names = sections[listing.link].offset
    # What runs and what is only read first, on pages that are then closed to writing.
    places, commons, fixed, size = _layout(sections, symbols)
    memory = mmap.mmap(-1, size)
    base = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for number, place in places.items():
        section = sections[number]
        if section.kind != _EMPTY:
            memory[place : place + section.size] = code[
                section.offset : section.offset + section.size
            ]
    addresses: list[int] = []
    by_name: dict[str, int] = {}
    for number, (name, _, _, where, value, _) in enumerate(symbols):
        text = code[names + name : code.index(b"\0", names + name)].decode()
        if where == _UNDEFINED:
            address = address_of(text) if text else 0
        elif where == _ABSOLUTE:
            address = value
        elif where == _COMMON:
            address = base + commons[number]
        else:
            address = base + places.get(where, 0) + value
        addresses.append(address)
        by_name[text] = address
    for section in sections:
        if section.kind == _RELOCATIONS and section.info in places:
            entries = code[section.offset : section.offset + section.size]
            for offset, kind, symbol, addend in _RELOCATION.iter_unpack(entries):
                place = places[section.info] + offset
                value = addresses[symbol] + addend
                if kind == _DISTANCE:
                    value -= base + place
                elif kind != _ADDRESS:
                    raise Unknown(f"a relocation of kind {kind}")
                memory[place : place + 8] = (value % 2**64).to_bytes(8, "little")
    if fixed and _system().mprotect(ctypes.c_void_p(base), ctypes.c_size_t(fixed), _READ_AND_RUN):
        raise Unknown("memory that may run")
    _MEMORY.append(memory)
    return by_name


def _layout(
    sections: Sequence[_Section], symbols: Sequence[tuple[Any, ...]]
) -> tuple[dict[int, int], dict[int, int], int, int]:
    """Places of sections and of common symbols, bytes that stay as they are, and bytes in all."""
    places: dict[int, int] = {}
    commons: dict[int, int] = {}
    size = fixed = 0
    for writable in (0, _WRITABLE):
        for number, section in enumerate(sections):
            used = section.flags & _LOADED and section.kind != _UNWINDING and section.size
            if used and section.flags & _WRITABLE == writable:
                places[number] = size = _aligned(size, section.alignment)
                size += section.size
        if not writable:
            fixed = size = _aligned(size, mmap.PAGESIZE)
    for number, (_, _, _, where, value, length) in enumerate(symbols):
        if where == _COMMON:  # the value is what its place must be a multiple of
            commons[number] = size = _aligned(size, value)
            size += length
    return places, commons, fixed, max(size, 1)


def _aligned(size: int, alignment: int) -> int:
    return -(-size // max(alignment, 1)) * max(alignment, 1)


def _number(code: bytes, place: int, size: int) -> int:
    return int.from_bytes(code[place : place + size], "little")


def callable_from(
    address: int, pointer: int, name: str, module: Any, constants: list[Any]
) -> Callable[..., Any]:
    """What Python calls, from the address of numba's wrapper.

    ``pointer`` is the place where the wrapper looks for its constants.
    """
    dynfunc = _extension("_dynfunc")
    environment = dynfunc.Environment(module.__dict__)
    environment.consts[:] = constants
    ctypes.c_void_p.from_address(pointer).value = id(environment)
    return dynfunc.make_function(module, name, "", address, environment, (environment,))


@functools.cache
def address_of(symbol: str) -> int:
    """Address of what compiled code calls: numba's helpers, Python's functions, the system's."""
    helpers = _helpers() | (_allocator() if symbol.startswith("NRT_") else {})
    address = helpers.get(symbol)
    if address is None:
        try:
            address = ctypes.addressof(ctypes.c_char.in_dll(_system(), symbol))
        except ValueError:
            raise Unknown(f"no symbol {symbol}") from None
    return address


@functools.cache
def _helpers() -> dict[str, int]:
    plain = _extension("_helperlib").c_helpers
    ours = {**plain, **_extension("_dynfunc").c_helpers}
    named = {f"numba_{name}": address for name, address in ours.items()}
    # Numba means the exception where Python means the variable that holds it.
    raised = {f"PyExc_{name}": id(value) for name, value in vars(builtins).items()
              if isinstance(value, type) and issubclass(value, BaseException)}  # fmt: skip
    return {**plain, **named, **raised}


@functools.cache
def _allocator() -> dict[str, int]:
    helpers = _extension("core.runtime._nrt_python").c_helpers
    return {f"NRT_{name}": address for name, address in helpers.items() if name[0] != "_"}


@functools.cache
def _extension(name: str) -> Any:
    """An extension module of numba, without the package around it."""
    full = f"numba.{name}"
    if full in sys.modules:
        return sys.modules[full]
    package = importlib.util.find_spec("numba")
    folder = os.path.dirname(package.origin or "") if package else ""
    for suffix in EXTENSION_SUFFIXES:
        path = os.path.join(folder, *name.split(".")) + suffix
        if os.path.exists(path):
            loader = ExtensionFileLoader(full, path)
            spec = importlib.util.spec_from_file_location(full, path, loader=loader)
            assert spec is not None
            module = importlib.util.module_from_spec(spec)
            loader.exec_module(module)
            # Numba, if it is imported after all, sets it up as a part of the package.
            sys.modules.pop(full, None)
            return module
    raise Unknown(f"no module {full}")


@functools.cache
def _system() -> Any:
    return ctypes.CDLL(None)

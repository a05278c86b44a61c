"""Kernels that other kernels call by a symbol, in place of having them linked in.

Numba links the code of every callee into each caller and optimises it there again; of a big kernel
with many callers that is most of compilation. A kernel that is :func:`shared <share>` gets a name
for the linker which does not change from process to process, and its callers hold a declaration
only. LLVM ends the process where such a name is missing, so code that calls one may be loaded only
after :func:`provide`.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite.binding as llvm
from numba.core.types import unliteral

_PREFIX = "hopefear."
# What was compiled, by symbol. Numba holds neither its code nor its constants as long as callers.
_RESULTS: dict[str, Any] = {}
_CALLEES: dict[str, Callee] = {}


class Callee(NamedTuple):
    """A shared kernel for one kind of arguments, as another process can find it."""

    symbol: str
    module: str
    name: str
    types: tuple[Any, ...]


def share(dispatcher: Any, symbol_for: Callable[[tuple[Any, ...]], str]) -> None:
    """Have callers of a kernel call it by a symbol; ``symbol_for``: that of argument types."""
    function, add, linked = dispatcher.py_func, dispatcher.add_overload, dispatcher.get_overload
    template = dispatcher.get_call_template
    symbols: dict[tuple[Any, ...], str] = {}

    def add_overload(result: Any) -> None:
        types, given = tuple(result.signature.args), result.signature.return_type
        if result.target_context.data_model_manager[given].contains_nrt_meminfo():
            raise TypeError(f"{function.__qualname__} returns {given}; use @kernel for it")
        symbol = _PREFIX + symbol_for(types)
        if symbol not in _RESULTS:
            address = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
            if not address:
                return add(result)
            llvm.add_symbol(symbol, address)
            _RESULTS[symbol] = result
            _CALLEES[symbol] = Callee(symbol, function.__module__, function.__qualname__, types)
            described = copy.copy(result.fndesc)
            described.mangled_name = symbol
            result.target_context.insert_user_function(symbol, described, ())
        symbols[types] = symbol
        return add(result)

    def get_overload(types: Any) -> Any:
        return symbols.get(tuple(types)) or linked(types)

    def get_call_template(args: Any, kws: dict[str, Any]) -> tuple[Any, ...]:
        # Else a kernel would be compiled for every constant that it is called with.
        plain = {name: unliteral(kind) for name, kind in kws.items()}
        return template([unliteral(kind) for kind in args], plain)

    # Numba asks the instance: the first for all that it compiled or loaded, the second for the
    # implementation that a caller gets, the third for its types.
    dispatcher.add_overload, dispatcher.get_overload = add_overload, get_overload
    dispatcher.get_call_template = get_call_template


def callees(library: Any) -> tuple[Callee, ...]:
    """The shared kernels that compiled code calls."""
    names = [f.name for f in library._final_module.functions if f.is_declaration]
    return tuple(_CALLEES[name] for name in names if name.startswith(_PREFIX))


def provide(wanted: tuple[Callee, ...]) -> bool:
    """Load or compile these kernels; False where one cannot be had, or has become another."""
    for callee in wanted:
        if callee.symbol not in _RESULTS:
            kernel = getattr(importlib.import_module(callee.module), callee.name)
            kernel.shared.dispatcher.compile(callee.types)
    return all(callee.symbol in _RESULTS for callee in wanted)

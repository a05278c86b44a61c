"""Every name of numba that is not public, and every name of llvmlite, that hopefear touches.

``HOPEFEAR_NUMBA=public`` turns this off, and so does a version of numba that is not `TESTED`: then
kernels are compiled by numba's public interface alone. They give the same results, but references
are counted everywhere, each kernel takes in and optimises all that it calls, and nothing is kept
on disk. Numba's own cache would not do: a component is known there by its name, and an edit of it
goes unnoticed.

What this module does, and what it saves of the first command of a learner (docs/design.md):

- *Helpers end as code for the linker.* Numba optimises every function, links it into its callers,
  optimises it there again, and makes machine code of it besides; of a kernel made of a hundred
  small methods that is most of compilation.
- *Shared kernels are called by a symbol*, which is the same in every process, in place of having
  them linked in and optimised in each caller.
- *References are not counted* where a kernel says so.
- *Compiled code is kept on disk* (`core.kernel_cache`).
- *The garbage collector rests* while numba compiles, and compilations are announced as a stage.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import gc
import importlib
import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import llvmlite.binding as llvm
import numba
from llvmlite import ir as ir  # for overloads that write their own instructions, switched off too
from numba import types as types
from numba.core import cgutils as cgutils

from hopefear.core.kernel_cache import KernelCache, cache_folder, shipped_processor, type_key_of
from hopefear.core.progress import COMPILING, stage

TESTED = ("0.64", "0.65", "0.66", "0.67", "0.68")
_PREFIX = "hopefear."  # of the symbols of shared kernels


def is_tested(version: str) -> bool:
    """Whether what stands here was tested with this version of numba."""
    return ".".join(version.split(".")[:2]) in TESTED


ENABLED = os.environ.get("HOPEFEAR_NUMBA") != "public" and is_tested(numba.__version__)


def new_dispatcher(function: Callable[..., Any], refcount: bool, options: dict[str, Any]) -> Any:
    """Returns numba's dispatcher of a kernel, which finds compiled code on disk.

    Without ``refcount`` references are counted only for arguments whose components make arrays.
    """
    # Whether references are counted is said for each, else a kernel takes after its first caller.
    options = {**options, "_nrt": refcount, "no_cfunc_wrapper": True}
    dispatcher = numba.njit(**options)(function)
    dispatcher._cache = _DiskCache(function, "" if refcount else "uncounted")
    if not refcount:
        _count_where_needed(dispatcher._compiler)
    return dispatcher


def _count_where_needed(compiler: Any) -> None:
    """Compiles again with reference counts where it fails without them."""
    from numba.core.errors import NumbaError

    compile_core = compiler._compile_core

    def compile_twice(args: Any, return_type: Any) -> Any:
        try:
            return compile_core(args, return_type)
        except NumbaError:  # where it is another error, the second attempt raises it again
            options = compiler.targetoptions
            compiler.targetoptions = {**options, "_nrt": True}
            try:
                return compile_core(args, return_type)
            finally:
                compiler.targetoptions = options

    compiler._compile_core = compile_twice


# Helpers


def helper_options() -> dict[str, Any]:
    """Returns the options of `numba.njit` for functions that only kernels call."""
    return {"pipeline_class": _helper_compiler(), "no_cfunc_wrapper": True}


@functools.cache
def _helper_compiler() -> Any:
    """Returns a compiler whose functions end as code for the linker.

    Where references are not counted only loops are optimised before the whole kernel is, since they
    are turned into vector code better by themselves; where references are counted, numba must prune
    them function by function, or too many stay.
    """
    from numba import _dynfunc  # type: ignore[attr-defined]
    from numba.core.analysis import compute_cfg_from_blocks
    from numba.core.codegen import JITCodeLibrary
    from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
    from numba.core.compiler_machinery import register_pass
    from numba.core.typed_passes import NativeLowering, NopythonTypeInference

    class Library(JITCodeLibrary):
        """Code that callers take in."""

        counts_references = True
        has_loops = True

        def _finalize_final_module(self) -> None:
            self._finalize_dynamic_globals()
            self._verify_declare_only_symbols()
            self._finalized = True

        def _optimize_functions(self, ll_module: Any) -> None:
            ll_module.data_layout = self._codegen._data_layout
            if self.counts_references or self.has_loops:
                super()._optimize_functions(ll_module)

        def _optimize_final_module(self) -> None:
            if self.counts_references:
                super()._optimize_final_module()
            elif self.has_loops:
                passes, builder = self._codegen._module_pass_manager()
                passes.run(self._final_module, builder)

    @register_pass(mutates_CFG=True, analysis_only=False)
    class HelperTyping(NopythonTypeInference):
        """Allows parts of arrays as results also where references are not counted.

        These are the workspace's, which outlives all calls.
        """

        _name = "hopefear_helper_typing"

        def run_pass(self, state: Any) -> bool:
            context, counts = state.targetctx, state.targetctx.enable_nrt
            context.enable_nrt = True
            try:
                return bool(super().run_pass(state))
            finally:
                context.enable_nrt = counts

    @register_pass(mutates_CFG=True, analysis_only=False)
    class HelperLowering(NativeLowering):
        """Ends with code for the linker."""

        _name = "hopefear_helper_lowering"

        def run_pass(self, state: Any) -> bool:
            context, flags = state.targetctx, state.flags
            library = state.library = Library(context.codegen(), state.func_id.func_qualname)
            library.counts_references = context.enable_nrt
            library.has_loops = bool(compute_cfg_from_blocks(state.func_ir.blocks).loops())
            state.flags = flags.copy()
            state.flags.no_compile = True
            super().run_pass(state)
            state.flags = flags
            result = state["cr"]
            name = result.fndesc.qualname.split(".")[-1]
            # Callers find the code by this object; the null pointer says it cannot be called.
            entry = _dynfunc.make_function(
                result.fndesc.lookup_module(), name, name, 0, result.env, (library,)
            )
            context.insert_user_function(entry, result.fndesc, [library])
            state.reload_init.extend(library._reload_init)
            state["cr"] = _LowerResult(
                result.fndesc, result.call_helper, cfunc=entry, env=result.env
            )
            return True

    replaced = {NativeLowering: HelperLowering, NopythonTypeInference: HelperTyping}

    class HelperCompiler(CompilerBase):
        def define_pipelines(self) -> list[Any]:
            manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
            manager.passes = [(replaced.get(kind, kind), text) for kind, text in manager.passes]
            manager._finalized = False
            manager.finalize()
            return [manager]

    return HelperCompiler


# Shared kernels


class Callee(NamedTuple):
    """A shared kernel for one kind of arguments, as another process can find it."""

    symbol: str
    module: str
    name: str
    types: tuple[Any, ...]


# By symbol. Numba holds neither the code nor its constants as long as callers.
_RESULTS: dict[str, Any] = {}
_CALLEES: dict[str, Callee] = {}


def new_shared_dispatcher(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """Returns the dispatcher of a kernel that other kernels call by a symbol, and Python never.

    LLVM ends the process where such a symbol is missing, so code that calls one is loaded only
    behind its callees.
    """
    from numba.core.types import unliteral

    # Its own helpers are not inlined by force because a method calls it.
    options = {**options, "_nrt": False, "forceinline": False}
    options |= {"no_cfunc_wrapper": True, "no_cpython_wrapper": True}
    dispatcher = numba.njit(**options)(function)
    cache = dispatcher._cache = _DiskCache(function, "shared")
    add, get_overload = dispatcher.add_overload, dispatcher.get_overload
    get_call_template = dispatcher.get_call_template
    symbols: dict[tuple[Any, ...], str] = {}

    def add_shared(result: Any) -> None:
        kinds, returned = tuple(result.signature.args), result.signature.return_type
        if result.target_context.data_model_manager[returned].contains_nrt_meminfo():
            raise TypeError(f"{function.__qualname__} returns {returned}; use @kernel for it")
        symbol = _PREFIX + cache.symbol(type_key_of(kinds))
        if symbol not in _RESULTS:
            address = result.library.get_pointer_to_function(result.fndesc.llvm_func_name)
            if not address:
                return add(result)
            llvm.add_symbol(symbol, address)
            _RESULTS[symbol] = result
            _CALLEES[symbol] = Callee(symbol, function.__module__, function.__qualname__, kinds)
            described = copy.copy(result.fndesc)
            described.mangled_name = symbol
            result.target_context.insert_user_function(symbol, described, ())
        symbols[kinds] = symbol
        return add(result)

    def get_symbol(kinds: Any) -> Any:
        return symbols.get(tuple(kinds)) or get_overload(kinds)

    def get_plain_template(args: Any, kws: dict[str, Any]) -> tuple[Any, ...]:
        # Else a kernel would be compiled for every constant that it is called with.
        plain = {name: unliteral(kind) for name, kind in kws.items()}
        return get_call_template([unliteral(kind) for kind in args], plain)

    # Numba asks the instance: the first for all that it compiled or loaded, the second for the
    # implementation that a caller gets, the third for its types.
    dispatcher.add_overload, dispatcher.get_overload = add_shared, get_symbol
    dispatcher.get_call_template = get_plain_template
    return dispatcher


def callees(library: Any) -> tuple[Callee, ...]:
    """Returns the shared kernels that compiled code calls."""
    names = [f.name for f in library._final_module.functions if f.is_declaration]
    return tuple(_CALLEES[name] for name in names if name.startswith(_PREFIX))


def provide(wanted: tuple[Callee, ...]) -> bool:
    """Loads or compiles these kernels; False where one cannot be had, or has become another."""
    for callee in wanted:
        if callee.symbol not in _RESULTS:
            kernel = getattr(importlib.import_module(callee.module), callee.name)
            kernel.callee.compile(callee.types)
    return all(callee.symbol in _RESULTS for callee in wanted)


# Disk


class _DiskCache(KernelCache):
    """Compiled code on disk, behind the methods by which numba asks its own cache."""

    cache_path = property(lambda self: str(cache_folder()))

    def flush(self) -> None:
        """Does nothing: entries are never out of date."""

    def load_overload(self, signature: Any, context: Any) -> Any:
        from numba.core.compiler import CompileResult

        processors = context.codegen().magic_tuple(), _shipped_processor()
        for payload in self.payloads(type_key_of(signature), *processors):
            with contextlib.suppress(Exception):  # whatever is wrong with it, compiling mends it
                needed, symbols, parts = pickle.loads(payload)
                if _has_symbols(symbols, context) and provide(needed):
                    return CompileResult._rebuild(context, *parts)
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        from numba.core import serialize

        if result.library.has_dynamic_globals:
            return
        needed = callees(result.library)
        symbols = set(_externals(result.library)).difference(callee.symbol for callee in needed)
        processor = result.codegen.magic_tuple()
        payload = serialize.dumps((needed, sorted(symbols), result._reduce()))
        self.save(type_key_of(signature), processor, payload)


def _has_symbols(symbols: Iterable[str], context: Any) -> bool:
    """Whether the process has what a kernel calls, after numba has brought in its helpers.

    LLVM ends the process where something is missing. Only compiling needs all that numba knows, and
    that takes longer to load than most kernels run.
    """
    from numba.core.runtime import rtsys

    for bring in (lambda: rtsys.initialize(context), context.refresh):
        if all(map(llvm.address_of_symbol, symbols)):
            return True
        bring()
    return all(map(llvm.address_of_symbol, symbols))


def _externals(library: Any) -> Iterator[str]:
    """Yields what compiled code expects the process to have, numba's helpers and mathematics."""
    module = library._final_module
    for part in (*module.functions, *module.global_variables):
        if part.is_declaration and not part.name.startswith("llvm."):
            yield part.name


@functools.cache
def _shipped_processor() -> tuple[str, ...] | None:
    features = {name for name, has in llvm.get_host_cpu_features().items() if has}
    return shipped_processor(process_triple(), features)


def process_triple() -> str:
    """Returns LLVM's name of the machine and system that code is compiled for."""
    return str(llvm.get_process_triple())


# Compilations


def announce_compilations() -> None:
    """Makes a stage of every compilation (`core.progress`), and stops the garbage collector in it.

    Compiling allocates millions of objects that stay, and the collector would look at all of them
    again and again: a tenth of the time of a first kernel, a third of that of a tenth one. Loading
    is not compiling.
    """
    from numba.core import event

    class Listener(event.Listener):
        depth = 0
        open = contextlib.ExitStack()

        def on_start(self, _: Any) -> None:
            self.depth += 1
            if self.depth == 1:
                if gc.isenabled():
                    gc.disable()
                    self.open.callback(gc.enable)
                self.open.enter_context(stage(COMPILING))

        def on_end(self, _: Any) -> None:
            self.depth -= 1
            if self.depth == 0:
                self.open.close()

    event.register("numba:compile", Listener())

"""How functions that only kernels call are compiled: as far as their callers need it.

Numba optimises every function, links it into its callers, optimises it there again, and makes
machine code of it besides. Of a kernel made of a hundred small methods, each inlined into the next,
that is most of compilation. Functions compiled here end as code for the linker. Where references
are not counted only loops are optimised before the whole kernel is, since they are turned into
vector code better by themselves (docs/design.md); where references are counted, numba must prune
them function by function, or too many stay.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc  # type: ignore[attr-defined]
from numba.core.analysis import compute_cfg_from_blocks
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, _LowerResult
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering, NopythonTypeInference

# Typed loosely, because numba's own annotations leave these out.
_Library: Any = JITCodeLibrary
_Lowering: Any = NativeLowering
_Typing: Any = NopythonTypeInference


class _Linked(_Library):
    """Code that callers take in."""

    counts = True  # references
    loops = True  # has some of its own

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def _optimize_functions(self, ll_module: Any) -> None:
        ll_module.data_layout = self._codegen._data_layout
        if self.counts or self.loops:
            super()._optimize_functions(ll_module)

    def _optimize_final_module(self) -> None:
        if self.counts:
            super()._optimize_final_module()
        elif self.loops:
            passes, builder = self._codegen._module_pass_manager()
            passes.run(self._final_module, builder)


@register_pass(mutates_CFG=True, analysis_only=False)
class _LinkedTyping(_Typing):
    """Numba's, but that methods may return parts of arrays also where references are not counted.

    These are the workspace's, which outlives all calls.
    """

    _name = "linked_typing"

    def run_pass(self, state: Any) -> bool:
        context, counts = state.targetctx, state.targetctx.enable_nrt
        context.enable_nrt = True
        try:
            return super().run_pass(state)
        finally:
            context.enable_nrt = counts


@register_pass(mutates_CFG=True, analysis_only=False)
class _LinkedLowering(_Lowering):
    """Numba's, but that it ends with code for the linker."""

    _name = "linked_lowering"

    def run_pass(self, state: Any) -> bool:
        context, flags = state.targetctx, state.flags
        library = state.library = _Linked(context.codegen(), state.func_id.func_qualname)
        library.counts = context.enable_nrt
        library.loops = bool(compute_cfg_from_blocks(state.func_ir.blocks).loops())
        state.flags = flags.copy()
        state.flags.no_compile = True
        super().run_pass(state)
        state.flags = flags
        result = state["cr"]
        name = result.fndesc.qualname.split(".")[-1]
        # Callers find the code by this object; the null pointer says that it cannot be called.
        entry = _dynfunc.make_function(
            result.fndesc.lookup_module(), name, name, 0, result.env, (library,)
        )
        context.insert_user_function(entry, result.fndesc, [library])
        state.reload_init.extend(library._reload_init)
        state["cr"] = _LowerResult(result.fndesc, result.call_helper, cfunc=entry, env=result.env)
        return True


_REPLACED = {NativeLowering: _LinkedLowering, NopythonTypeInference: _LinkedTyping}


class LinkedCompiler(CompilerBase):
    """Numba's compiler but for the passes above."""

    def define_pipelines(self) -> list[Any]:
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.passes = [(_REPLACED.get(kind, kind), text) for kind, text in manager.passes]
        manager._finalized = False
        manager.finalize()
        return [manager]

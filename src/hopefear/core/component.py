"""Parts that compile: named tuples whose methods work inside and outside kernels.

Numba recompiles closures, function arguments and jitclasses in every process; named tuples it
caches on disk. So a loss, a rule or a structure here is a ``typing.NamedTuple`` with ordinary
methods. Each method *name* is registered once, by its interface, on numba's two named-tuple
types; numba then finds the method body through the class of the value it is called on. With
``NUMBA_DISABLE_JIT=1`` the very same methods run as plain Python.

Numba is imported when the first kernel is called, and told then what is registered here.
"""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from hopefear.core.kernel_cache import KernelCache, version

# Versions of numba with which what reaches into it was tested; others compile their own way.
TESTED = version("numba").startswith("0.68.")
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
if INTERPRETED:  # hashes go round; compiled, they do so without a warning
    np.seterr(over="ignore")

T = TypeVar("T", bound=type)

_SIGNATURES: dict[str, tuple[str, ...]] = {}
_NUMBERS = {"float": float, "int": int, "bool": bool}
# No fastmath: reordered sums become gather instructions, which measured slower (docs/design.md),
# and strict arithmetic makes compiled and interpreted runs agree. Methods are inlined by force: a
# call with named tuples of arrays costs more than the work most methods do. No wrappers for
# callers in C, of which there are none.
_JIT_OPTIONS: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}
# What numba is to be told before it compiles; None once it has been told.
_WAITING: list[Callable[[], Any]] | None = []
_LOCK = threading.RLock()


def _renew_lock() -> None:
    """A child of fork has no thread that would give the lock back."""
    global _LOCK
    _LOCK = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


class _Later:
    """A module that is imported when something of it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


# For intrinsics, which run when they are compiled.
ir: Any = _Later("llvmlite.ir")
types: Any = _Later("numba.types")
cgutils: Any = _Later("numba.core.cgutils")


def when_compiling(action: Callable[[], Any]) -> None:
    """Do something before the first compilation; at once, where that has been."""
    with _LOCK:
        if _WAITING is not None:
            _WAITING.append(action)
            return
    action()


def not_when_compiling(action: Callable[[], Any]) -> None:
    """Forget :func:`when_compiling` where it has not come to that."""
    with _LOCK:
        if _WAITING is not None and action in _WAITING:
            _WAITING.remove(action)


def _start_compiler() -> Any:
    """Numba, which knows all that is registered here."""
    global _WAITING
    import numba

    with _LOCK:
        if _WAITING is not None:
            _pause_collections()
        actions, _WAITING = _WAITING or [], None
        for action in actions:
            action()
    return numba


def _pause_collections() -> None:
    """Stops the garbage collector while numba compiles.

    Compiling allocates millions of objects that stay, and the collector looks at all of them again
    and again: a tenth of the time of a first kernel, a third of the time of a tenth one.
    """
    from numba.core import event

    class Pause(event.Listener):
        depth, was_enabled = 0, False

        def on_start(self, _: Any) -> None:
            self.depth += 1
            if self.depth == 1:
                self.was_enabled = gc.isenabled()
                gc.disable()

        def on_end(self, _: Any) -> None:
            self.depth -= 1
            if self.depth == 0 and self.was_enabled:
                gc.enable()

    event.register("numba:compile", Pause())


def _linked_options(**options: Any) -> dict[str, Any]:
    if not TESTED:
        return options
    from hopefear.core.compiler import LinkedCompiler

    return {"pipeline_class": LinkedCompiler, **options}


def overload(
    function: Callable[..., Any], linked: bool = True
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Numba's ``overload``, inlined by force; ``linked``: compiled as :func:`linked` is."""

    def decorate(choose: Callable[..., Any]) -> Callable[..., Any]:
        def register() -> None:
            from numba import extending

            options: Any = {"forceinline": True}
            options = _linked_options(**options) if linked else options
            extending.overload(function, jit_options=options)(choose)

        when_compiling(register)
        return choose

    return decorate


class intrinsic:  # noqa: N801
    """Numba's ``intrinsic``; uses :data:`ir`, :data:`types` and :data:`cgutils` of this module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    @functools.cached_property
    def _numba_type_(self) -> Any:
        from numba.core import typing
        from numba.extending import intrinsic as numbas

        own = numbas(self.function)
        template = typing.templates.make_intrinsic_template(own, own._defn, own._name)
        return importlib.import_module("numba.types").Function(template)


def required(method: Callable[..., Any]) -> Callable[..., Any]:
    """Mark an interface method that every component must write itself."""
    method.__required__ = True  # type: ignore[attr-defined]
    return method


def interface(cls: T) -> T:
    """Make every public method of ``cls`` callable on its components inside kernels.

    Method bodies in the interface are defaults. One method name has one signature, library-wide.
    """
    for name, method in _methods(cls).items():
        if getattr(method, "__python_only__", False):
            continue
        parameters = _parameters(method)
        if _SIGNATURES.setdefault(name, parameters) != parameters:
            raise TypeError(f"{cls.__name__}.{name}{parameters} differs from {_SIGNATURES[name]}")
        _register(name, parameters)
    return cls


def component(*interfaces: type) -> Callable[[T], T]:
    """Check a NamedTuple class against its interfaces, add their defaults and coerce its fields.

    ``SGD(1)`` and ``SGD(1.0)`` would be two types and compile twice, so numbers become what their
    annotation says.
    """

    def decorate(cls: T) -> T:
        wanted_methods: dict[str, Callable[..., Any]] = {}
        for part in interfaces:
            wanted_methods |= _methods(part)
        for name, method in wanted_methods.items():
            own = cls.__dict__.get(name)
            if own is None and getattr(method, "__required__", False):
                raise TypeError(f"{cls.__name__} lacks {name}")
            if own is None:
                setattr(cls, name, method)
            elif _parameters(own) != (wanted := _parameters(method)):
                raise TypeError(f"{cls.__name__}.{name} must take {wanted}")
        clash = set(cls._fields) & set(_SIGNATURES)  # type: ignore[attr-defined]
        if clash:  # numba finds methods by name on every named tuple, fields included
            raise TypeError(f"{cls.__name__}: fields {sorted(clash)} bear the names of methods")
        _coerce_fields(cls)
        return cls

    return decorate


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile ``function`` with the house options; kept on disk (`core.kernel_cache`)."""
    return _compiled(function)


def lean(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that makes no arrays, so that references to those it is given are not counted.

    Counting takes half of the code that is compiled, most of it in vain. Where a component makes an
    array after all, they are counted.
    """
    return _compiled(function) if INTERPRETED else _Lean(function)


class _Kernel:
    """A compiled function; numba is imported when it is first needed."""

    def __init__(self, function: Callable[..., Any], kind: str, options: dict[str, Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._cache, self._options = KernelCache(function, kind), options
        self._dispatcher: Any = None

    @property
    def dispatcher(self) -> Any:
        """Numba's, which loads kernels from disk or compiles them."""
        if self._dispatcher is None:
            with _LOCK:
                self._dispatcher = self._dispatcher or self._new_dispatcher()
        return self._dispatcher

    def _new_dispatcher(self) -> Any:
        # Whether references are counted is said for each, else a kernel takes after its first
        # caller.
        options = {"_nrt": True, **self._options, **_JIT_OPTIONS}
        compiled = _start_compiler().njit(nogil=True, **options)(self.py_func)
        compiled._cache = self._cache
        return compiled

    @property
    def _numba_type_(self) -> Any:
        return self.dispatcher._numba_type_

    @property
    def overloads(self) -> Any:
        """What numba has compiled or loaded."""
        return self.dispatcher.overloads

    @property
    def stats(self) -> Any:
        """What was loaded from the cache, and what was not."""
        return self.dispatcher.stats

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return (self._dispatcher or self.dispatcher)(*args, **kwargs)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__


class _Lean:
    """A kernel compiled without counting references, or with it where it must be."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._lean = _compiled(function, "lean", _nrt=False)
        self._counting = _compiled(function)
        self._must_count: set[tuple[type, ...]] = set()

    def __reduce__(self) -> str:
        return self.py_func.__qualname__

    @property
    def stats(self) -> Any:
        """What was loaded from the cache, and what was not."""
        return self._lean.stats

    def __call__(self, *args: Any) -> Any:
        from numba.core.errors import NumbaError

        kinds = tuple(map(type, args))
        if kinds not in self._must_count:
            try:
                return self._lean(*args)
            except NumbaError:  # the counting kernel says it again where it is another error
                self._must_count.add(kinds)
        return self._counting(*args)


def linked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that kernels call, and whose code becomes theirs; Python runs it as it is."""
    when_compiling(functools.partial(_register_linked, function))
    return function


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, inlined by force."""
    when_compiling(functools.partial(_register_linked, function, forceinline=True))
    return function


def _register_linked(function: Callable[..., Any], **options: Any) -> None:
    from numba.extending import register_jitable

    register_jitable(**_linked_options(**options), **_JIT_OPTIONS)(function)


def apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that stays out of the kernels which call it, and is compiled once for all of them.

    For work that costs far more than a call: nothing of it is optimised together with a caller.
    It neither makes nor returns arrays, so references to those that it is given are not counted;
    what goes from slice to slice is copied by a loop, since numba would make a third for it.
    """
    return kernel(function) if INTERPRETED or not TESTED else _Apart(function)


class _Apart:
    """A function that kernels call by a symbol.

    Taking hundreds of arrays out of Python's tuples is much code, and Python calls few such
    functions; so what it calls is another kernel, which is compiled when it does.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        if "." in function.__qualname__:
            raise TypeError(
                f"{function.__qualname__} is no function of a module; use @kernel for it"
            )
        # Its own helpers are not inlined by force because a method calls it.
        options = {"_nrt": False, "forceinline": False, "no_cpython_wrapper": True}
        self.py_func = function
        self.shared = _Shared(function, "apart", options)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__

    @property
    def _numba_type_(self) -> Any:
        return self.shared._numba_type_

    @functools.cached_property
    def _python_kernel(self) -> Callable[..., Any]:
        return kernel(self.py_func)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._python_kernel(*args, **kwargs)


class _Shared(_Kernel):
    """A kernel that others call by a symbol; Python does not call it."""

    def _new_dispatcher(self) -> Any:
        from hopefear.core.symbols import share

        compiled = super()._new_dispatcher()
        share(compiled, self._cache.symbol)
        return compiled


def _compiled(function: Callable[..., Any], kind: str = "", **options: Any) -> Any:
    return function if INTERPRETED else _Kernel(function, kind, options)


def prefetch(array, p):
    """Ask the processor for the cache line of ``array[p]``; changes nothing but time."""


@overload(prefetch)
def _prefetch(array, p):
    return lambda array, p: _prefetch_line(array, p)


@intrinsic
def _prefetch_line(typing_context, array, p):
    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        address = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
        number = ir.IntType(32)
        hint = builder.module.declare_intrinsic(
            "llvm.prefetch",
            [address.type],
            ir.FunctionType(ir.VoidType(), [address.type, number, number, number]),
        )
        builder.call(hint, [address, number(0), number(3), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


def _parameters(method: Any) -> tuple[str, ...]:
    """Names of a method's parameters; `inspect.signature` is too slow for hundreds at start-up."""
    code = method.__code__
    return code.co_varnames[: code.co_argcount]


def _methods(cls: type) -> dict[str, Callable[..., Any]]:
    return {
        name: value
        for name, value in vars(cls).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }


def python_only(method: Callable[..., Any]) -> Callable[..., Any]:
    """Mark an interface method that no kernel calls (``init`` and its like)."""
    method.__python_only__ = True  # type: ignore[attr-defined]
    return method


@functools.cache
def _register(name: str, parameters: tuple[str, ...]) -> None:
    def choose(*args: Any) -> Callable[..., Any]:
        return args[0].instance_class.__dict__[name]

    choose.__name__ = f"choose_{name}"
    choose.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [inspect.Parameter(p, inspect.Parameter.POSITIONAL_OR_KEYWORD) for p in parameters]
    )

    def register() -> None:
        from numba.extending import overload_method

        options = {**_JIT_OPTIONS, **_linked_options(forceinline=True)}
        method: Any = overload_method
        for named_tuple in (types.NamedTuple, types.NamedUniTuple):
            method(named_tuple, name, jit_options=options)(choose)

    when_compiling(register)


def _coerce_fields(cls: type) -> None:
    kinds = {name: _NUMBERS[kind] for name, kind in _annotations(cls).items() if kind in _NUMBERS}
    if not kinds:
        return
    plain_new = cls.__new__

    @functools.wraps(plain_new)
    def coercing_new(klass, *args, **kwargs):
        values = plain_new(klass, *args, **kwargs)
        return plain_new(
            klass,
            *(kinds[f](v) if f in kinds else v for f, v in zip(klass._fields, values, strict=True)),
        )

    cls.__new__ = coercing_new  # type: ignore[method-assign,assignment]
    cls._make = classmethod(lambda klass, values: klass(*values))  # type: ignore[attr-defined]


def _annotations(cls: type) -> dict[str, str]:
    return {
        name: kind
        if isinstance(kind, str)
        else getattr(kind, "__forward_arg__", getattr(kind, "__name__", ""))
        for name, kind in cls.__annotations__.items()
    }

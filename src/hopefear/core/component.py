"""Parts that compile: named tuples whose methods work inside and outside kernels.

Numba recompiles closures, function arguments and jitclasses in every process; named tuples it
caches on disk. So a loss, a rule or a structure here is a ``typing.NamedTuple`` with ordinary
methods. Each method *name* is registered once, by its interface, on numba's two named-tuple
types; numba then finds the method body through the class of the value it is called on. With
``NUMBA_DISABLE_JIT=1`` the very same methods run as plain Python.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core.errors import NumbaError
from numba.extending import intrinsic, overload, overload_method, register_jitable

from hopefear.core.compiler import TESTED, LinkedCompiler
from hopefear.core.kernel_cache import KernelCache
from hopefear.core.symbols import share

# Typed loosely, because numba's own annotations leave these uses out.
_overload_method: Any = overload_method
_settings: Any = numba.config
if _settings.DISABLE_JIT:  # hashes go round; compiled, they do so without a warning
    np.seterr(over="ignore")

T = TypeVar("T", bound=type)

_SIGNATURES: dict[str, tuple[str, ...]] = {}
_NUMBERS = {"float": float, "int": int, "bool": bool}
# No fastmath: reordered sums become gather instructions, which measured slower (docs/design.md),
# and strict arithmetic makes compiled and interpreted runs agree. Methods are inlined by force: a
# call with named tuples of arrays costs more than the work most methods do. No wrappers for
# callers in C, of which there are none.
_JIT_OPTIONS: dict[str, Any] = {"error_model": "numpy", "no_cfunc_wrapper": True}
_LINKED_OPTIONS: dict[str, Any] = {"pipeline_class": LinkedCompiler} if TESTED else {}
INLINED_OPTIONS: Any = {**_LINKED_OPTIONS, "forceinline": True}


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
    return _compiled(function) if _settings.DISABLE_JIT else _Lean(function)


class _Lean:
    """A kernel compiled without counting references, or with it where it must be."""

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._lean = _compiled(function, "lean", _nrt=False)
        self._counting = _compiled(function)
        self._must_count: set[tuple[type, ...]] = set()

    @property
    def stats(self) -> Any:
        """What was loaded from the cache, and what was not."""
        return self._lean.stats

    def __call__(self, *args: Any) -> Any:
        kinds = tuple(map(type, args))
        if kinds not in self._must_count:
            try:
                return self._lean(*args)
            except NumbaError:  # the counting kernel says it again where it is another error
                self._must_count.add(kinds)
        return self._counting(*args)


def linked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that kernels call, and whose code becomes theirs; Python runs it as it is."""
    return register_jitable(**_LINKED_OPTIONS, **_JIT_OPTIONS)(function)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same, inlined by force."""
    return register_jitable(**INLINED_OPTIONS, **_JIT_OPTIONS)(function)


def apart(function: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that stays out of the kernels which call it, and is compiled once for all of them.

    For work that costs far more than a call: nothing of it is optimised together with a caller.
    It neither makes nor returns arrays, so references to those that it is given are not counted;
    what goes from slice to slice is copied by a loop, since numba would make a third for it.
    """
    return kernel(function) if _settings.DISABLE_JIT or not TESTED else _Apart(function)


class _Apart:
    """A function that kernels call by a symbol.

    Taking hundreds of arrays out of Python's tuples is much code, and Python calls few such
    functions; so what it calls is another kernel, which is compiled when it does.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        functools.update_wrapper(self, function)
        # Its own helpers are not inlined by force because a method calls it.
        options = {"_nrt": False, "forceinline": False, "no_cpython_wrapper": True}
        self.py_func = function
        self.shared = _compiled(function, "apart", **options)
        share(self.shared, self.shared._cache.symbol)
        self._numba_type_ = self.shared._numba_type_

    @functools.cached_property
    def _python_kernel(self) -> Callable[..., Any]:
        return kernel(self.py_func)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._python_kernel(*args, **kwargs)


def _compiled(function: Callable[..., Any], kind: str = "", **options: Any) -> Any:
    # Whether references are counted is said for each, else a kernel takes after its first caller.
    compiled: Any = numba.njit(nogil=True, **{"_nrt": True, **options, **_JIT_OPTIONS})(function)
    if not _settings.DISABLE_JIT:
        compiled._cache = KernelCache(function, kind)
    return compiled


def prefetch(array, p):
    """Ask the processor for the cache line of ``array[p]``; changes nothing but time."""


@overload(prefetch, jit_options=INLINED_OPTIONS)
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
    for named_tuple in (types.NamedTuple, types.NamedUniTuple):
        options = {**_JIT_OPTIONS, **INLINED_OPTIONS}
        _overload_method(named_tuple, name, jit_options=options)(choose)


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

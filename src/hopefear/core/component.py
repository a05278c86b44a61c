"""Components, and the decorators of what is compiled.

Numba recompiles closures, function arguments and jitclasses in every process; named tuples can be
cached on disk. So a loss, a rule or a structure here is a ``typing.NamedTuple`` with ordinary
methods. Each method *name* is registered once, by its interface, on numba's two named-tuple
types; numba then finds the method body through the class of the value it is called on. With
``NUMBA_DISABLE_JIT=1`` the very same methods run as plain Python.

Numba is imported when the first kernel is called, and told then what is registered here.
"""

from __future__ import annotations

import functools
import inspect
import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")
if INTERPRETED:  # hashes go round; compiled, they do so without a warning
    np.seterr(over="ignore")

T = TypeVar("T", bound=type)

_SIGNATURES: dict[str, tuple[str, ...]] = {}
_NUMBERS = {kind.__name__: kind for kind in (float, int, bool)}
# No fastmath: reordered sums become gather instructions, which measured slower (docs/design.md),
# and strict arithmetic makes compiled and interpreted runs agree. Methods are inlined by force: a
# call with named tuples of arrays costs more than the work most methods do.
_OPTIONS: dict[str, Any] = {"error_model": "numpy"}
# What is registered with numba before it compiles; None once it has been.
_REGISTRATIONS: list[Callable[[], Any]] | None = []
_LOCK = threading.RLock()


class _Later:
    """A module for functions that write their own instructions; imported when they do."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        from hopefear.core import numba_private

        return getattr(getattr(numba_private, self._name), name)


ir, types, cgutils = _Later("ir"), _Later("types"), _Later("cgutils")


def _when_compiling(registration: Callable[[], Any]) -> None:
    """Calls ``registration`` before numba compiles; at once, where it has been started."""
    with _LOCK:
        if _REGISTRATIONS is not None:
            _REGISTRATIONS.append(registration)
            return
    registration()


def _started() -> Any:
    """Returns `core.numba_private`, once numba knows all that is registered."""
    global _REGISTRATIONS
    from numba.extending import typeof_impl

    from hopefear.core import numba_private

    with _LOCK:
        if _REGISTRATIONS is not None:
            typeof_impl.register(Kernel)(lambda kernel, use: typeof_impl(kernel.callee, use))
            if numba_private.ENABLED:
                numba_private.announce_compilations()
            registrations, _REGISTRATIONS = _REGISTRATIONS, None
            for register in registrations:
                register()
    return numba_private


def _helper_options() -> dict[str, Any]:
    private = _started()
    return {**_OPTIONS, **(private.helper_options() if private.ENABLED else {})}


def required(method: Callable[..., Any]) -> Callable[..., Any]:
    """Marks an interface method that every component must write itself."""
    method.__required__ = True  # type: ignore[attr-defined]
    return method


def interface(cls: T) -> T:
    """Makes every public method of ``cls`` callable on its components inside kernels.

    Method bodies in the interface are defaults, and so are its constants, which only Python reads.
    One method name has one signature, library-wide.
    """
    for name, method in _methods(cls).items():
        if getattr(method, "__python_only__", False):
            continue
        parameters = _parameters(method)
        if _SIGNATURES.setdefault(name, parameters) != parameters:
            raise TypeError(f"{cls.__name__}.{name}{parameters} differs from {_SIGNATURES[name]}")
        _register(name, parameters)
    return cls


def component(*interfaces: type, **constants: Any) -> Callable[[T], T]:
    """Checks a NamedTuple class against its interfaces, adds their defaults, coerces its fields.

    ``constants`` are those of the interfaces that have other values here.

    ``SGD(1)`` and ``SGD(1.0)`` would be two types and compile twice, so numbers become what their
    annotation says.
    """

    def decorate(cls: T) -> T:
        wanted_methods: dict[str, Callable[..., Any]] = {}
        defaults: dict[str, Any] = {}
        for part in interfaces:
            wanted_methods |= _methods(part)
            defaults |= _constants(part)
        if unknown := constants.keys() - defaults:
            raise TypeError(f"{cls.__name__}: no interface has the constants {sorted(unknown)}")
        for name, value in (defaults | constants).items():
            if name not in cls.__dict__:  # a property says it otherwise
                setattr(cls, name, value)
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


def kernel(function: Callable[..., Any] | None = None, *, refcount: bool = True) -> Any:
    """Compiles a function that Python calls, or other kernels.

    Parameters
    ----------
    function : callable
        A function of a module.
    refcount : bool
        Whether references to arrays are counted. A kernel that makes none can do without, which
        halves its code; where a component makes arrays after all, they are counted.
    """
    if function is None:
        return functools.partial(kernel, refcount=refcount)
    return function if INTERPRETED else Kernel(function, refcount=refcount)


def shared_kernel(function: Callable[..., Any]) -> Any:
    """Compiles a function once for all kernels that call it, in place of once in each of them.

    For work that costs far more than a call: nothing of it is optimised together with a caller. It
    neither makes nor returns arrays, and copies slices by a loop, since numba would make a third
    for it. Python can call it too.
    """
    if "." in function.__qualname__:
        name = function.__qualname__
        raise TypeError(f"{name} is no function of a module; use @kernel for it")
    return function if INTERPRETED else Kernel(function, shared=True)


class Kernel:
    """A compiled function; numba is imported when it is first needed.

    A shared one has two dispatchers. Taking hundreds of arrays out of Python's tuples is much code,
    and Python calls few of these; so what it calls is compiled when it does.
    """

    def __init__(
        self, function: Callable[..., Any], refcount: bool = True, shared: bool = False
    ) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self._refcount, self._shared = refcount, shared
        self._dispatcher: Any = None
        self._callee: Any = None

    @property
    def dispatcher(self) -> Any:
        """Numba's dispatcher, which loads code from disk or compiles it."""
        if self._dispatcher is None:
            with _LOCK:
                self._dispatcher = self._dispatcher or self._new_dispatcher(False)
        return self._dispatcher

    @property
    def callee(self) -> Any:
        """The dispatcher that kernels call."""
        if not self._shared:
            return self.dispatcher
        if self._callee is None:
            with _LOCK:
                self._callee = self._callee or self._new_dispatcher(True)
        return self._callee

    def _new_dispatcher(self, shared: bool) -> Any:
        private, options = _started(), {**_OPTIONS, "nogil": True}
        if not private.ENABLED:
            return private.numba.njit(**options)(self.py_func)
        if shared:
            return private.new_shared_dispatcher(self.py_func, options)
        return private.new_dispatcher(self.py_func, self._refcount, options)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return (self._dispatcher or self.dispatcher)(*args, **kwargs)

    def __reduce__(self) -> str:
        return self.py_func.__qualname__


def helper(function: Callable[..., Any] | None = None, *, inline: bool = False) -> Any:
    """Registers a function that kernels call, and whose code becomes theirs.

    Python runs it as it is. With ``inline`` it is inlined by force.
    """
    if function is None:
        return functools.partial(helper, inline=inline)

    def register() -> None:
        from numba.extending import register_jitable

        forced = {"forceinline": True} if inline else {}
        register_jitable(**forced, **_helper_options())(function)

    _when_compiling(register)
    return function


def overload(
    function: Callable[..., Any], optimize_first: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers what kernels call in place of ``function``: numba's ``overload``, inlined by force.

    With ``optimize_first`` the code is optimised by itself before its caller is.
    """

    def decorate(choose: Callable[..., Any]) -> Callable[..., Any]:
        def register() -> None:
            from numba import extending

            options: Any = {} if optimize_first else _helper_options()
            options = {**options, "forceinline": True}
            extending.overload(function, jit_options=options)(choose)

        _when_compiling(register)
        return choose

    return decorate


@functools.cache
def intrinsic(function: Callable[..., Any]) -> Any:
    """Returns numba's ``intrinsic``, for what is returned to :func:`overload`.

    ``function`` may use :data:`ir`, :data:`types` and :data:`cgutils` of this module.
    """
    from numba import extending

    return extending.intrinsic(function)


def prefetch(array, p):
    """Asks the processor for the cache line of ``array[p]``; changes nothing but time."""


@overload(prefetch)
def _prefetch(array, p):
    prefetch_line = intrinsic(_prefetch_line)
    return lambda array, p: prefetch_line(array, p)


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
    """Returns the parameters of a method; `inspect.signature` is too slow for hundreds."""
    code = method.__code__
    return code.co_varnames[: code.co_argcount]


def _methods(cls: type) -> dict[str, Callable[..., Any]]:
    return {
        name: value
        for name, value in vars(cls).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }


def _constants(cls: type) -> dict[str, Any]:
    """Returns what an interface says of its components by a value in place of a method."""
    return {
        name: value
        for name, value in vars(cls).items()
        if isinstance(value, bool | int | tuple | property) and not name.startswith("_")
    }


def python_only(method: Callable[..., Any]) -> Callable[..., Any]:
    """Marks an interface method that no kernel calls (``init`` and its like)."""
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

        options = {**_helper_options(), "forceinline": True}
        method: Any = overload_method
        for named_tuple in (types.NamedTuple, types.NamedUniTuple):
            method(named_tuple, name, jit_options=options)(choose)

    _when_compiling(register)


def _coerce_fields(cls: type) -> None:
    kinds = {}
    for name, annotation in cls.__annotations__.items():  # a type, or a text in a ForwardRef
        text = getattr(annotation, "__forward_arg__", getattr(annotation, "__name__", ""))
        if text in _NUMBERS:
            kinds[name] = _NUMBERS[text]
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

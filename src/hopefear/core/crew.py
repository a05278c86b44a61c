"""Threads that run one kernel together: who takes the next piece of work, and when all are done.

Handing work over through Python costs more than searching a sentence does, so threads stay in their
kernel and meet there. One that waits looks for a while, then lets others have its core between two
looks, and then sleeps: where cores are free it goes on within a microsecond, and where they are not
it leaves them to those it waits for.

What threads write is dealt to them by coordinate: a stretch of memory belongs to one thread, so
that its cache lines need not go to and fro.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import inlined, intrinsic, ir, linked, overload, types
from hopefear.core.memory import in_lines

# Words of a crew: those that change with every meeting in one cache line, so that it takes one trip
# to the other cores, and those that do not in another.
_NEXT, _ARRIVED, _MEETINGS = range(3)
_LOST, _YIELD, _SLEEP = range(8, 11)
# Looks before a thread yields its core, some microseconds; looks before it sleeps, about a
# millisecond, since the system makes a sleep 50 microseconds longer than it was meant to be; and
# how long it then sleeps.
_LOOKS, _YIELDS, _MICROSECONDS = 2_000, 4_000, 20
_PYTHON_LOCK = threading.Lock()
# Coordinates that belong to one thread together, at most, or all of a feature that has more: a core
# that asks for a line gets some beside it too, and takes them away from the one that moves them.
# Behind the first stretches, where a few features may be most of the work, so many make one.
_TOGETHER = 1024
_SHORT, _LONGER = np.uint64(16), np.uint64(5)
_SPREAD, _LOW = np.uint64(0x9E3779B1), np.uint64(0xFFFFFFFF)
_PARITIES = np.uint64(0x6996)  # of the bits of 0 to 15
# Features fall into so many parts that are scored apart, however many threads there are.
HALVES = 2


class Crew(NamedTuple):
    """What the threads of one run share; see :func:`new_crew`."""

    size: int
    words: np.ndarray


def new_crew(size: int) -> Crew:
    """A crew of so many threads that have taken nothing yet.

    Examples
    --------
    >>> crew = new_crew(1)
    >>> take(crew), take(crew), is_last(crew)
    (0, 1, True)
    """
    words = in_lines(1, 16, np.int64)[0]
    words[_YIELD], words[_SLEEP] = _addresses()
    return Crew(size, words)


def desert(crew: Crew) -> None:
    """Let nobody wait any more: a thread of the crew has failed."""
    crew.words[_LOST] = 1


@linked
def take(crew):
    """Number of the next piece of work, from 0; no two threads get the same."""
    return add_to(crew.words, _NEXT, 1)


@linked
def is_last(crew):
    """Whether all others of the crew have arrived; the last may work alone, then `dismiss` them."""
    return add_to(crew.words, _ARRIVED, 1) == crew.size - 1


@linked
def meet(crew, meetings):
    """Wait for all others, who have met so often before; False where one of them is lost."""
    if is_last(crew):
        dismiss(crew)
        return True
    return wait(crew, meetings)


@linked
def dismiss(crew):
    """Let those go on that wait; work is counted from 0 again."""
    crew.words[_NEXT] = 0
    crew.words[_ARRIVED] = 0
    add_to(crew.words, _MEETINGS, 1)


@linked
def wait(crew, meetings):
    """Wait until the crew was dismissed more than so often; False where one of it is lost."""
    looks = 0
    while look_at(crew.words, _MEETINGS) <= meetings:
        if look_at(crew.words, _LOST) != 0:
            return False
        looks += 1
        if looks > _YIELDS:
            sleep(crew.words, _SLEEP, _MICROSECONDS)
        elif looks > _LOOKS:
            sleep(crew.words, _YIELD, 0)
    return True


def stretch_of(width: int) -> int:
    """How many features of so many coordinates make a short stretch, as a power of two.

    >>> stretch_of(24), stretch_of(5000)
    (5, 0)
    """
    return max(1, _TOGETHER // width).bit_length() - 1


@inlined
def half_of(feature, shift):
    """The half that a feature belongs to, where a short stretch is two to the power of ``shift``.

    Of two threads, this one moves its coordinates. Features that were met first are the frequent
    ones, so halves take turns as in the sequence of Thue and Morse, by which what becomes ever less
    is shared out evenly: 0 1 1 0 1 0 0 1 ... That depends on nothing else, neither on data nor on
    how many features there are, since blocks of a cache must be dealt as the whole.

    >>> [int(half_of(stretch << 5, 5)) for stretch in range(8)]
    [0, 1, 1, 0, 1, 0, 0, 1]
    >>> [{int(half_of(feature, 5)) for feature in range(k, k + 1024)} for k in (1024, 2048, 3072)]
    [{1}, {1}, {0}]
    """
    bits = np.uint64(feature) >> np.uint64(shift)
    if bits >= _SHORT:
        bits >>= _LONGER
    for fold in (np.uint64(32), np.uint64(16), np.uint64(8), np.uint64(4)):
        bits ^= bits >> fold
    return (_PARITIES >> (bits & np.uint64(15))) & np.uint64(1)


@inlined
def owner(j, threads, share, shift):
    """The thread that moves coordinate ``j``, which is such a share of its feature."""
    if threads == 1:
        return 0
    feature = np.int64((np.float64(np.int64(j)) + 0.5) * share)
    half = half_of(feature, shift)
    if threads == HALVES:
        return np.int64(half)
    spread = ((np.uint64(feature) >> np.uint64(shift)) * _SPREAD) & _LOW
    part = (half << np.uint64(32)) + spread
    return np.int64((part * np.uint64(threads)) >> np.uint64(33))


def add_to(array, p, amount):
    """Add to ``array[p]``; returns what it was. No other thread comes in between."""
    with _PYTHON_LOCK:
        before = array[p]
        array[p] = before + amount
        return int(before)


def look_at(array, p):
    """What other threads have left at ``array[p]``."""
    time.sleep(0.0)  # they need Python too
    return int(array[p])


def sleep(array, p, microseconds):
    """Leave the core to others, by the function of the system whose address is ``array[p]``."""
    time.sleep(microseconds * 1e-6)


@overload(add_to)
def _add_to(array, p, amount):
    return lambda array, p, amount: _atomic_add(array, p, amount)


@overload(look_at)
def _look_at(array, p):
    return lambda array, p: _atomic_load(array, p)


@overload(sleep)
def _sleep(array, p, microseconds):
    return lambda array, p, microseconds: _call_address(array, p, microseconds)


def _place(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    data = context.make_array(signature.args[0])(context, builder, args[0]).data
    return builder.gep(data, [args[1]])


@intrinsic
def _atomic_add(typing_context, array, p, amount):
    def generate(context, builder, signature, args):
        return builder.atomic_rmw(
            "add", _place(context, builder, signature, args), args[2], "seq_cst"
        )

    return types.int64(array, types.intp, types.int64), generate


@intrinsic
def _atomic_load(typing_context, array, p):
    def generate(context, builder, signature, args):
        place = _place(context, builder, signature, args)
        return builder.load_atomic(place, "seq_cst", 8)

    return types.int64(array, types.intp), generate


@intrinsic
def _call_address(typing_context, array, p, microseconds):
    # By address and not by name, so that compiled kernels can be kept on disk.
    def generate(context, builder, signature, args):
        number = ir.IntType(32)
        address = builder.load(_place(context, builder, signature, args))
        function = builder.inttoptr(address, ir.FunctionType(number, [number]).as_pointer())
        builder.call(function, [builder.trunc(args[2], number)])
        return context.get_dummy_value()

    return types.void(array, types.intp, types.int64), generate


def _addresses() -> list[int]:
    """Of the functions that let others run: at once, and for microseconds (Windows: milliseconds).

    The first takes no argument and does not look at the one it is given.
    """
    system: Any = ctypes
    if os.name == "nt":
        kernel = system.windll.kernel32
        functions = kernel.SwitchToThread, kernel.Sleep
    else:
        library = system.CDLL(None)
        functions = library.sched_yield, library.usleep
    return [ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions]

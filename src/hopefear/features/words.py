"""Text eight bytes at a time, in kernels.

Reading byte by byte waits for a branch at every byte, and the lengths of numbers and words are what
a processor guesses worst. A word of eight bytes says in a few operations how many of them belong.
The first byte is the lowest of the word, on every machine.
"""

from __future__ import annotations

import sys

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic, overload

from hopefear.core.component import inlined


def load8(text, p):
    """Bytes ``text[p:p + 8]`` as one number; the caller knows that all eight are there."""
    return np.uint64(int.from_bytes(text[p : p + 8].tobytes(), "little"))


def lowest_bit(word):
    """Position of the lowest set bit, 64 where there is none."""
    word = int(word)
    return np.uint64((word & -word).bit_length() - 1 if word else 64)


@inlined
def first_byte(marks):
    """Which byte has the first mark, the top bit of a byte; 8 where none has."""
    return lowest_bit(marks) >> np.uint64(3)


@overload(load8, jit_options={"forceinline": True})
def _load8(text, p):
    return lambda text, p: _load_word(text, np.intp(p))


@overload(lowest_bit, jit_options={"forceinline": True})
def _lowest_bit(word):
    return lambda word: _count_zeros(np.uint64(word))


@intrinsic
def _load_word(typing_context, text, p):
    def generate(context, builder, signature, args):
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        number = ir.IntType(64)
        place = builder.bitcast(builder.gep(data, [args[1]]), number.as_pointer())
        word = builder.load(place)
        word.align = 1
        return word if sys.byteorder == "little" else builder.bswap(word)

    return types.uint64(text, types.intp), generate


@intrinsic
def _count_zeros(typing_context, word):
    def generate(context, builder, signature, args):
        return builder.cttz(args[0], ir.IntType(1)(0))

    return types.uint64(types.uint64), generate


_LOW_BITS = np.uint64(0x7F7F7F7F7F7F7F7F)
_TOP_BITS = np.uint64(0x8080808080808080)
# Added to a byte below 128, these reach its top bit from "0", behind "9", from "a", behind "z" on.
_FROM_0, _BEHIND_9 = np.uint64(0x5050505050505050), np.uint64(0x4646464646464646)
_FROM_A, _BEHIND_Z = np.uint64(0x1F1F1F1F1F1F1F1F), np.uint64(0x0505050505050505)


@inlined
def plain_run(word):
    """How many bytes of a word are ``a-z0-9`` before the first that is none."""
    low = word & _LOW_BITS
    digits = (low + _FROM_0) & ~(low + _BEHIND_9)
    letters = (low + _FROM_A) & ~(low + _BEHIND_Z)
    return first_byte((~(digits | letters) | word) & _TOP_BITS)


@inlined
def load_part(text, p, size):
    """Bytes ``text[p:p + size]`` as one number, at most 8 of them; nothing else is looked at."""
    if p + 8 <= len(text):
        word = load8(text, p)
        if size < 8:
            word &= (np.uint64(1) << np.uint64(8 * size)) - np.uint64(1)
        return word
    word = np.uint64(0)
    for k in range(min(size, 8)):
        word |= np.uint64(text[p + k]) << np.uint64(8 * k)
    return word


@inlined
def same_bytes(a, p, b, q, size):
    """Whether ``a[p:p + size]`` equals ``b[q:q + size]``."""
    different = 0
    for k in range(size):
        different += a[p + k] != b[q + k]
    return different == 0

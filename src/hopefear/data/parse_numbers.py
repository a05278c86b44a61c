"""Numbers and the ends of tokens and lines, read from text in kernels."""

from __future__ import annotations

import numpy as np

from hopefear.core.component import helper, kernel
from hopefear.core.hashing import first_byte, load8

# Values beyond this are refused: sums of their squares must fit float32.
LARGEST = 1e15

# Powers up to 10**22 are exact in float64: there one operation rounds once, as float() does.
_POWERS = np.array([float(f"1e{k}") for k in range(309)])
_POWERS.flags.writeable = False
WHOLE_POWERS = np.array([10**k for k in range(18)], np.uint64)
WHOLE_POWERS.flags.writeable = False

_ZEROS = np.uint64(0x3030303030303030)  # eight times the digit 0
_ABOVE_NINE = np.uint64(0x7676767676767676)  # added to a byte above 9 this reaches the top bit
_TOP_BITS = np.uint64(0x8080808080808080)
_ABOVE_BLANK = np.uint64(0x2121212121212121)  # less this, a blank or control character borrows
_EIGHT = np.uint64(8)
_MINUS, _POINT, _SPACE, _NEWLINE = np.uint64(45), np.uint64(46), np.uint64(32), np.uint64(10)
_BYTE = np.uint64(255)


@helper(inline=True)
def count_digits(word):
    """Counts the digits among the eight bytes of a word before the first other byte."""
    word ^= _ZEROS
    return first_byte(((word + _ABOVE_NINE) | word) & _TOP_BITS)


@helper(inline=True)
def token_end(text, i):
    """Position of the first byte from i on that is a space, a newline or below them.

    ``text`` must have 15 bytes behind it.
    """
    while True:
        first, second = _blanks(load8(text, i)), _blanks(load8(text, i + 8))
        if first | second:
            position = first_byte(first) if first else _EIGHT + first_byte(second)
            return i + np.int64(position)
        i += 16


@helper(inline=True)
def _blanks(word):
    """Marks of the bytes up to the space; behind the first there may be others."""
    return (word - _ABOVE_BLANK) & ~word & _TOP_BITS


@helper(inline=True)
def whole_number(word, count):
    """The number that the first ``count`` bytes of a word spell, 1 to 8 digits."""
    # Digits move to the end of the word, behind zeros; then pairs, fours and eights are joined.
    word = (word ^ _ZEROS) << (np.uint64(64) - (count << np.uint64(3)))
    word = word * np.uint64(10) + (word >> _EIGHT)
    low = (word & np.uint64(0x000000FF000000FF)) * np.uint64(0x000F424000000064)
    high = ((word >> np.uint64(16)) & np.uint64(0x000000FF000000FF)) * np.uint64(0x0000271000000001)
    return (low + high) >> np.uint64(32)


@helper(inline=True)
def parse_plain(text, i):
    """``(value, position behind it)`` of a number like ``3``, ``120``, ``-0.5772`` before a space.

    The position is -1 where the text is anything else, which :func:`parse_number` then judges; the
    values are the same. ``text`` must have 8 bytes behind the number.
    """
    word = load8(text, i)
    minus = np.uint64((word & _BYTE) == _MINUS)
    word >>= minus << np.uint64(3)
    i += np.int64(minus)
    digits = (word & _BYTE) - np.uint64(48)
    if digits > np.uint64(9):
        return 0.0, np.int64(-1)
    after = (word >> _EIGHT) & _BYTE
    n_decimals = np.uint64(0)
    if after == _POINT:
        i += 2
        word = load8(text, i)
        n_decimals = count_digits(word)
        if n_decimals == 0:
            return 0.0, np.int64(-1)
        fraction = whole_number(word, n_decimals)
        if n_decimals == _EIGHT:
            word = load8(text, i + 8)
            n_more = count_digits(word)
            if n_more == _EIGHT:
                return 0.0, np.int64(-1)
            if n_more > 0:
                fraction = fraction * WHOLE_POWERS[n_more] + whole_number(word, n_more)
            n_decimals += n_more
        digits = digits * WHOLE_POWERS[n_decimals] + fraction
        i += np.int64(n_decimals)
        after = np.uint64(text[np.uint64(i)])
    elif after in (_SPACE, _NEWLINE):
        i += 1
    else:
        word = load8(text, i)
        count = count_digits(word)
        if count == _EIGHT:
            return 0.0, np.int64(-1)
        digits = whole_number(word, count)
        i += np.int64(count)
        after = np.uint64(text[np.uint64(i)])
    if after != _SPACE and after != _NEWLINE:
        return 0.0, np.int64(-1)
    value = np.float64(digits) / _POWERS[n_decimals]
    return (-value if minus else value), i


@kernel
def parse_number(text, i):
    """``(value, position behind it, ok)`` of the decimal number at ``text[i]``.

    Sign, digits, fraction and exponent as in ``float()``; no nan, inf, hexadecimal or
    underscores. The text must end in something that is not part of a number.
    """
    negative = text[i] == 45
    if negative or text[i] == 43:
        i += 1
    digits = np.uint64(0)
    exponent = 0
    start = i
    significant = 0
    while 48 <= text[i] <= 57:
        if significant < 19:
            digits = digits * np.uint64(10) + np.uint64(text[i] - 48)
            if digits > 0:
                significant += 1
        else:
            exponent += 1
        i += 1
    n_digits = i - start
    if text[i] == 46:
        i += 1
        start = i
        while 48 <= text[i] <= 57:
            if significant < 19:
                digits = digits * np.uint64(10) + np.uint64(text[i] - 48)
                exponent -= 1
                if digits > 0:
                    significant += 1
            i += 1
        n_digits += i - start
    if n_digits == 0:
        return 0.0, i, False
    if text[i] == 101 or text[i] == 69:
        i += 1
        down = text[i] == 45
        if down or text[i] == 43:
            i += 1
        start = i
        power = 0
        while 48 <= text[i] <= 57:
            power = min(power * 10 + np.int64(text[i] - 48), 100_000)
            i += 1
        if i == start:
            return 0.0, i, False
        exponent += -power if down else power
    value = scaled(digits, exponent)
    return (-value if negative else value), i, True


@kernel
def scaled(digits, exponent):
    """``digits * 10**exponent`` in float64."""
    value = np.float64(digits)
    if exponent == 0 or digits == 0:
        return value
    if exponent > 0:
        return value * _POWERS[exponent] if exponent <= 308 else np.inf
    if exponent >= -308:
        return value / _POWERS[-exponent]
    if exponent >= -616:
        return value / _POWERS[308] / _POWERS[-exponent - 308]
    return 0.0


@kernel
def is_blank(c):
    """Space, tab, carriage return, vertical tab or form feed."""
    return c == 32 or c == 9 or c == 13 or c == 11 or c == 12


@kernel(refcount=False)
def find_words(text, newlines, before, starts, ends):
    """Note where lines end, how many words begin before that, and where words begin and end.

    Words are what stands between bytes of white space. Returns their number; ``starts`` and
    ``ends`` need room for one more.
    """
    line = word = end = 0
    blank = np.uint64(1)
    # Written down whether it is one or not, and kept where it is: there is nothing to guess.
    for i in range(len(text)):
        c = np.uint64(text[i])
        white = np.uint64(c == _SPACE) | np.uint64(c - np.uint64(9) < np.uint64(5))
        starts[np.uint64(word)] = i
        ends[np.uint64(end)] = i
        word += np.int64(blank & ~white)
        end += np.int64(white & ~blank)
        blank = white
        newlines[np.uint64(line)] = i
        before[np.uint64(line)] = word
        line += np.int64(c == _NEWLINE)
    ends[end] = len(text)
    before[line] = word
    return word


@kernel
def behind_line(text, i):
    """Position behind the next newline."""
    while text[i] != 10:
        i += 1
    return i + 1


@kernel
def names_non_finite(text, i):
    """Whether the value at i is a spelling of nan or infinity."""
    if text[i] == 43 or text[i] == 45:
        i += 1
    c = text[i] | 32
    return c == 110 or c == 105

"""Numbers from text, in kernels."""

from __future__ import annotations

import numpy as np
from numba import njit

# Powers up to 10**22 are exact in float64: there one operation rounds once, as float() does.
_POWERS = np.array([float(f"1e{k}") for k in range(309)])
_POWERS.flags.writeable = False


@njit(cache=True, nogil=True)
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
    seen = i - start
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
        seen += i - start
    if seen == 0:
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


@njit(cache=True, nogil=True)
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

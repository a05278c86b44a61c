"""Axes: positions of ticks, their labels, and pixels of values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

SCALES = ("linear", "log")
_SUPERSCRIPT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SUFFIXES = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


def linear_ticks(lo: float, hi: float, count: int = 5) -> list[float]:
    """Multiples of 1, 2 or 5 times a power of ten inside ``[lo, hi]``.

    Parameters
    ----------
    lo, hi : float
        Ends of the axis, ``lo < hi``.
    count : int
        Requested number of ticks; the result has about as many.

    Examples
    --------
    >>> linear_ticks(0, 93)
    [0.0, 20.0, 40.0, 60.0, 80.0]
    """
    step = _step(lo, hi, count)
    first, last = math.ceil(lo / step - 1e-9), math.floor(hi / step + 1e-9)
    # A coarse step may miss a range that lies between its multiples; one tick gives no scale.
    if last <= first and count < 64:
        return linear_ticks(lo, hi, 2 * count)
    return [i * step for i in range(first, last + 1)]


def log_ticks(lo: float, hi: float, count: int = 5) -> list[float]:
    """Powers of ten inside ``[lo, hi]``, with 2 and 5 between them where there is room.

    Parameters
    ----------
    lo, hi : float
        Ends of the axis, ``0 < lo < hi``. Under about one decade the ticks are linear ones.
    count : int
        Ticks wished for; with many decades only every second, third, ... is kept.

    Examples
    --------
    >>> log_ticks(1, 1000)
    [1.0, 10.0, 100.0, 1000.0]
    >>> log_ticks(1, 30)
    [1.0, 2.0, 5.0, 10.0, 20.0]
    """
    first, last = math.ceil(math.log10(lo) - 1e-9), math.floor(math.log10(hi) + 1e-9)
    if last - first >= 2:
        step = max(1, math.ceil((last - first + 1) / (count + 1)))
        return [float(f"1e{e}") for e in range(first, last + 1) if e % step == 0]
    fine = [float(f"{m}e{e}") for e in range(first - 1, last + 1) for m in (1, 2, 5)]
    inside = [v for v in fine if lo * (1 - 1e-9) <= v <= hi * (1 + 1e-9)]
    return inside if len(inside) >= 3 else linear_ticks(lo, hi, count)


def tick_labels(values: Sequence[float]) -> list[str]:
    """Short texts for ticks: ``k``, ``M``, ``G`` for thousands, powers of ten when tiny.

    Examples
    --------
    >>> tick_labels([0, 500_000, 1_000_000, 1_500_000])
    ['0', '0.5M', '1M', '1.5M']
    >>> tick_labels([1e-6, 1e-5])
    ['10⁻⁶', '10⁻⁵']
    """
    if _logarithmic(values):
        return [_power_label(v) for v in values]
    top = max((abs(v) for v in values), default=0.0)
    if top == 0.0:
        return ["0" for _ in values]
    if not 1e-3 <= top < 1e15:
        texts = [[_trim(f"{v:.{digits}g}") for v in values] for digits in (3, 6, 15)]
        return next((t for t in texts if len(set(t)) == len(t)), texts[-1])
    unit, suffix = next(pair for pair in _SUFFIXES if top >= pair[0] or pair[0] == 1.0)
    gap = min((b - a for a, b in pairwise(values)), default=top) / unit
    digits = max(0, math.ceil(-math.log10(gap) + 1 - 1e-9)) if gap > 0 else 2
    return [_trim(f"{v / unit:.{min(digits, 9)}f}") + (suffix if v else "") for v in values]


def number(value: float) -> str:
    """A number as a person writes it, for hover texts and summaries.

    Examples
    --------
    >>> number(12345.0), number(0.000123456), number(3.14159)
    ('12,345', '0.0001235', '3.142')
    """
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else ("∞" if value > 0 else "−∞")
    if value == round(value) and abs(value) < 1e15:
        return f"{int(value):,}".replace("-", "−")
    text = f"{value:,.0f}" if 1e4 <= abs(value) < 1e15 else f"{value:.4g}"
    return text.replace("-", "−", 1) if value < 0 else text


class Axis(NamedTuple):
    """One axis: a scale, the values at its ends and the pixels they fall on."""

    scale: str
    lo: float
    hi: float
    start: float
    end: float

    def ticks(self, count: int) -> list[float]:
        """Values to label, about ``count`` of them."""
        chosen = log_ticks if self.scale == "log" else linear_ticks
        return chosen(self.lo, self.hi, count)

    def place(self, values: np.ndarray | Sequence[float]) -> np.ndarray:
        """Returns pixels of values; values outside the axis are outside its pixels."""
        lo, hi = transform(np.array([self.lo, self.hi]), self.scale)
        at = transform(np.asarray(values, dtype=np.float64), self.scale)
        with np.errstate(over="ignore"):
            pixels = self.start + (at - lo) / (hi - lo) * (self.end - self.start)
        return np.clip(pixels, -1e6, 1e6)

    def put(self, value: float) -> float:
        """Pixel of one value, held within the axis."""
        low, high = sorted((self.start, self.end))
        return float(np.clip(self.place([value])[0], low, high))


def transform(values: np.ndarray, scale: str) -> np.ndarray:
    """Values as they are spaced on paper: themselves, or their logarithms."""
    return np.log10(values) if scale == "log" else values


def span(values: np.ndarray, scale: str, zero: bool = False) -> tuple[float, float]:
    """Ends for an axis that shows all ``values`` with a little air.

    Parameters
    ----------
    values : array
        Finite values (positive ones on a log axis); may be empty.
    scale : {"linear", "log"}
        Air is added in this scale.
    zero : bool
        Always include zero on a linear axis, as bars need. Otherwise zero is included only when
        the smallest value lies near it.

    Examples
    --------
    >>> span(np.array([3.0, 100.0]), "linear")
    (0.0, 104.0)
    """
    if not len(values):
        return (1.0, 10.0) if scale == "log" else (0.0, 1.0)
    lo, hi = float(values.min()), float(values.max())
    if scale == "log":
        low, high = math.log10(lo), math.log10(hi)
        air = 0.04 * (high - low) if high - low > 0.1 else 0.15
        return 10 ** max(low - air, -307.0), 10 ** min(high + air, 307.0)
    if lo == hi and not zero:
        air = abs(lo) * 0.1 or 1.0
        return lo - air, hi + air
    if zero:
        lo, hi = min(lo, 0.0), max(hi, 0.0)
    elif 0.0 <= lo < 0.35 * hi:
        lo = 0.0
    elif 0.35 * lo < hi <= 0.0:
        hi = 0.0
    # Halved, so that ends near the largest float do not overflow.
    air = 0.08 * (hi / 2 - lo / 2) or 1.0
    return lo - (air if lo else 0.0), hi + (air if hi else 0.0) or 1.0


def _step(lo: float, hi: float, count: int) -> float:
    raw = max((hi / count - lo / count), 1e-300)
    power = 10.0 ** math.floor(math.log10(raw))
    for factor in (1.0, 2.0, 5.0):
        if raw <= factor * power * (1 + 1e-9):
            return _exact(factor * power)
    return _exact(10.0 * power)


def _exact(step: float) -> float:
    # 10.0 ** -3 * 2 is not the float nearest 0.002; its decimal text is.
    return float(f"{step:.0e}")


def _logarithmic(values: Sequence[float]) -> bool:
    # Linear ticks over such a range would include 0 or 3 times a power of ten.
    if len(values) < 2 or min(values) <= 0 or max(values) < 5 * min(values):
        return False
    return all(f"{v:.9e}"[:11] in ("1.000000000", "2.000000000", "5.000000000") for v in values)


def _power_label(value: float) -> str:
    if 1e-3 <= value < 1e15:
        unit, suffix = next(pair for pair in _SUFFIXES if value >= pair[0] or pair[0] == 1.0)
        return f"{value / unit:g}{suffix}"
    mantissa, exponent = f"{value:.0e}".split("e")
    power = "10" + str(int(exponent)).translate(_SUPERSCRIPT)
    return power if mantissa == "1" else f"{mantissa}·{power}"


def _trim(text: str) -> str:
    if "." in text and "e" not in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text.replace("-", "−", 1) if text[0] == "-" else text

"""Fewer points for the same picture: of every narrow strip of a curve, keep its extremes."""

from __future__ import annotations

import numpy as np


def thin(x: np.ndarray, y: np.ndarray, keep: int = 400) -> np.ndarray:
    """Indices of at most ``keep`` points whose curve looks like the whole one.

    The x range is cut into ``keep / 4`` strips; each keeps its first, lowest, highest and last
    point, so no peak is lost.

    Parameters
    ----------
    x, y : array
        Finite coordinates as drawn (logarithms on a log axis).
    keep : int
        Points kept at most, at least 4. More keeps finer detail and makes a larger file.

    Examples
    --------
    >>> y = np.zeros(10_000); y[1234] = 5.0
    >>> kept = thin(np.arange(10_000.0), y, keep=40)
    >>> len(kept) <= 40, 1234 in kept
    (True, True)
    """
    n = len(x)
    if n <= keep:
        return np.arange(n)
    strips = keep // 4
    order = bool(np.all(np.diff(x) >= 0)) and x[-1] > x[0]
    # A curve that turns back is cut by position in the sequence, where strips stay contiguous.
    along = (x - x[0]) / (x[-1] - x[0]) if order else np.arange(n) / (n - 1)
    starts = np.searchsorted(along, np.arange(strips) / strips)
    starts = starts[np.diff(starts, append=n) > 0]
    ends = np.append(starts[1:], n)
    kept = [starts, ends - 1]
    for sign in (1.0, -1.0):
        kept.append(
            np.array([a + int(np.argmax(sign * y[a:b])) for a, b in zip(starts, ends, strict=True)])
        )
    merged = np.sort(np.concatenate(kept))
    return merged[np.append(True, np.diff(merged) > 0)]


def even(n: int, keep: int) -> np.ndarray:
    """At most ``keep`` evenly spaced indices of ``n``, the last one always among them.

    Examples
    --------
    >>> even(10, 4).tolist()
    [0, 3, 6, 9]
    """
    if n <= keep:
        return np.arange(n)
    return np.round(np.linspace(0, n - 1, keep)).astype(np.int64)

"""Arrays that grow without ever being in memory twice."""

from __future__ import annotations

import numpy as np

from hopefear.core.arrays import Growing


class Pile(Growing):
    """A vector one appends arrays to; it grows by little, in its place where the system can.

    Growing by doubling holds the old array beside the new one, which is where a large file needs
    most. Here the system moves pages instead of bytes.

    Examples
    --------
    >>> ids = Pile(np.int32)
    >>> ids.append(np.array([1, 2])); ids.append(np.array([3])); ids.take()
    array([1, 2, 3], dtype=int32)
    """

    def append(self, more: np.ndarray, share: float = 0.0) -> None:
        """Add an array; ``share`` is not needed here."""
        end = self.size + len(more)
        if end > len(self._array):
            room = max(end, len(self._array) + len(self._array) // 16)
            try:
                self._array.resize(room)
            except ValueError:  # somebody looks at it
                larger = np.empty(room, self.dtype)
                larger[: self.size] = self.take()
                self._array = larger
        self._array[self.size : end] = more
        self.size = end

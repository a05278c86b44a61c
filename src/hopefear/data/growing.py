"""Arrays that grow in place."""

from __future__ import annotations

import numpy as np


class Growing:
    """A vector one appends arrays to; it grows to the size it will need, or doubles.

    Examples
    --------
    >>> import numpy as np
    >>> ids = Growing(np.int32)
    >>> ids.append(np.array([1, 2])); ids.append(np.array([3])); ids.take()
    array([1, 2, 3], dtype=int32)
    """

    def __init__(self, dtype: type, room: int = 1 << 10) -> None:
        self._array: np.ndarray = np.empty(room, dtype)
        self.size = 0

    @property
    def dtype(self) -> np.dtype:
        return self._array.dtype

    def append(self, more: np.ndarray, share: float = 0.0) -> None:
        """Add an array; ``share`` says how much of everything has then come, if known."""
        end = self.size + len(more)
        if end > len(self._array):
            # The unused end of an empty array takes addresses, not memory.
            room = int(1.05 * end / share) if 0.0 < share <= 1.0 else 2 * len(self._array)
            larger = np.empty(max(end, room), self.dtype)
            larger[: self.size] = self._array[: self.size]
            self._array = larger
        self._array[self.size : end] = more
        self.size = end

    def take(self) -> np.ndarray:
        """The content so far, not copied."""
        return self._array[: self.size]

    def widened(self, dtype: type) -> Growing:
        """The same content in a wider type."""
        wide = Growing(dtype, max(1, len(self._array)))
        wide.append(self.take())
        return wide

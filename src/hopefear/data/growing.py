"""Arrays that grow in place."""

from __future__ import annotations

import numpy as np


class Growing:
    """A vector one appends arrays to, doubled when full.

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

    def append(self, more: np.ndarray) -> None:
        end = self.size + len(more)
        if end > len(self._array):
            # The unused half of an empty array takes addresses, not memory.
            larger = np.empty(max(end, 2 * len(self._array)), self.dtype)
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

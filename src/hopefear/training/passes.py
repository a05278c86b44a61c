"""The order in which examples come: one pass after another, in pieces that can be interrupted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from hopefear.data.cache import blocks
from hopefear.data.sparse import SparseDataset

# Values per piece: some tens of milliseconds, so that progress, interrupts and checkpoints are prompt.
_PIECE = 4_000_000
# Values per block of a mapped dataset: what is in memory at a time.
_BLOCK = 2_000_000


class Passes:
    """Passes over a dataset, the same for the same seed however often they are broken off.

    A dataset in memory is shuffled as a whole. A memory-mapped one is read block after block, shuffled
    inside each block, and pages that were read are given back.

    Parameters
    ----------
    dataset : SparseDataset
        In memory or mapped from a cache.
    seed : int
        Fixes every order.
    shuffle : bool
        False keeps the order of the data in every pass.
    at_least : int
        Fewest pieces of a pass over data in memory; more give finer curves and prompter interrupts.
        The model does not depend on it.

    Examples
    --------
    >>> data = SparseDataset.from_csr([[1.0], [2.0], [3.0]], [0, 1, 0])
    >>> [order.tolist() for _, order in Passes(data, shuffle=False).pieces(0)]
    [[0, 1, 2]]
    """

    def __init__(self, dataset: SparseDataset, seed: int = 1, shuffle: bool = True,
                 at_least: int = 1) -> None:
        self.dataset, self.seed, self.shuffle = dataset, seed, shuffle
        self.n = len(dataset)
        values_per_row = max(1, dataset.rows.indices.size // max(1, self.n))
        self._streamed = dataset.mapping is not None
        self._rows = max(1, (_BLOCK if self._streamed else _PIECE) // values_per_row)
        if not self._streamed:  # blocks of a mapped dataset are shuffled each on its own
            self._rows = min(self._rows, max(1, -(-self.n // at_least)))

    @property
    def n_pieces(self) -> int:
        """Pieces in one pass."""
        return max(1, -(-self.n // self._rows))

    def pieces(self, epoch: int, skip: int = 0) -> Iterator[tuple[Any, np.ndarray]]:
        """(rows, order) of every piece of a pass but the first ``skip``."""
        if self._streamed:
            for number, rows in enumerate(blocks(self.dataset, self._rows)):
                if number >= skip:
                    yield rows, self._order(rows.labels.size, epoch, number)
        else:
            order = self._order(self.n, epoch, 0)
            for start in range(skip * self._rows, self.n, self._rows):
                yield self.dataset.rows, order[start:start + self._rows]

    def _order(self, n: int, epoch: int, block: int) -> np.ndarray:
        if not self.shuffle:
            return np.arange(n)
        return np.random.default_rng([self.seed, epoch, block]).permutation(n)

"""The order in which examples come: one pass after another, in pieces that can be interrupted."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from hopefear.core.component import kernel
from hopefear.data.sparse import SparseDataset, SparseRows, blocks

# Values per piece: some tens of milliseconds, so that progress and interrupts are prompt.
_PIECE = 4_000_000
# Values per block of a mapped dataset: what is in memory at a time.
_BLOCK = 1_000_000
# Visits an example gets on average, at most: weights of any size must not make a pass endless.
_VISITS = 10.0


class Passes:
    """Passes over a dataset, the same for the same seed however often they are broken off.

    A dataset in memory is shuffled as a whole. A memory-mapped one is read block after block,
    shuffled inside each block, and pages that were read are given back.

    An example of weight w comes ``ceil(w)`` times in a pass, each time with an equal share of w.
    So a whole weight is the same as so many copies, and weight 0 the same as absence, for every
    learner, also those whose steps do not grow with the weight. Where the average weight is above
    10, examples come ``ceil(10 w / average)`` times.

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
    by_content : bool
        Sort the examples by a hash of what they hold before they are shuffled, so that the same
        examples in another order give the same passes. Not for memory-mapped data.

    Examples
    --------
    >>> data = SparseDataset.from_csr([[1.0], [2.0], [3.0]], [0, 1, 0], sample_weight=[1, 0, 2])
    >>> [order.tolist() for _, order in Passes(data, shuffle=False).pieces(0)]
    [[0, 2, 2]]
    """

    def __init__(
        self,
        dataset: SparseDataset,
        seed: int = 1,
        shuffle: bool = True,
        at_least: int = 1,
        by_content: bool = False,
    ) -> None:
        self.dataset, self.seed, self.shuffle = dataset, seed, shuffle
        self._sorted = by_content and shuffle and dataset.mapping is None
        values_per_row = max(1, stored_values(dataset.rows) // max(1, len(dataset)))
        self._streamed = dataset.mapping is not None
        self._rows = max(1, (_BLOCK if self._streamed else _PIECE) // values_per_row)
        self._unit = max(
            1.0,
            float(np.mean(dataset.rows.weights, dtype=np.float64)) / _VISITS
            if len(dataset)
            else 1.0,
        )
        self._visits: np.ndarray | None = None
        if self._streamed:
            self.rows = dataset.rows
            self.n = sum(visits.size for _, visits in self._blocks())
            return
        self.rows, times = share_out(dataset.rows, self._unit)
        order = content_order(self.rows) if self._sorted else np.arange(len(dataset))
        self._visits = order if times is None else np.repeat(order, times[order])
        self.n = self._visits.size
        # Blocks of a mapped dataset are shuffled each on its own, so only these may be cut anew.
        self._rows = min(self._rows, max(1, -(-self.n // at_least)))

    @property
    def n_pieces(self) -> int:
        """Pieces in one pass."""
        return max(1, -(-(len(self.dataset) if self._streamed else self.n) // self._rows))

    def align(self, block: int) -> None:
        """Make pieces of whole blocks of a learner, so that how many there are changes nothing.

        Blocks of a mapped dataset stay as they are, and end those of the learner.
        """
        if not self._streamed:
            self._rows = -(-self._rows // block) * block

    def pieces(self, epoch: int, skip: int = 0) -> Iterator[tuple[Any, np.ndarray]]:
        """(rows, order) of every piece of a pass but the first ``skip``."""
        for number, (rows, visits) in enumerate(self._blocks()):
            if self._streamed:
                if number >= skip:
                    yield rows, self._shuffled(visits, epoch, number)
            else:
                order = self._shuffled(visits, epoch, 0)
                for start in range(skip * self._rows, self.n, self._rows):
                    yield rows, order[start : start + self._rows]

    def whole(self) -> Whole:
        """The same data for batch learners, which take it all at once and weights as they are."""
        rows = self.dataset.rows
        order = content_order(rows) if self._sorted else None
        return Whole(rows, self.seed if self.shuffle else None, order)

    def means(self, measure: Callable[[SparseRows], np.ndarray]) -> np.ndarray:
        """Means over the examples, by weight, of the columns ``measure`` gives for each row.

        Added up in the order of the visits, so that the same passes give the same bits.
        """
        total, mass = np.zeros(1), 0.0
        for rows, visits in self._blocks():
            weights = rows.weights[visits].astype(np.float64)
            total = total + (weights[:, None] * measure(rows)[visits]).sum(axis=0)
            mass += weights.sum()
        return total / mass if mass > 0.0 else total

    def _blocks(self) -> Iterator[tuple[SparseRows, np.ndarray]]:
        """Rows that are in memory together, and their visits before they are shuffled."""
        if self._visits is not None:
            yield self.rows, self._visits
            return
        for block in blocks(self.dataset, self._rows):
            rows, times = share_out(block, self._unit)
            visits = np.arange(rows.labels.size)
            yield rows, visits if times is None else np.repeat(visits, times)

    def _shuffled(self, visits: np.ndarray, epoch: int, block: int) -> np.ndarray:
        if not self.shuffle:
            return visits
        return np.random.default_rng([self.seed, epoch, block]).permutation(visits)


def stored_values(rows: Any) -> int:
    """About how many values all visits of a pass look at."""
    for name in ("indices", "values"):  # lists have no indices
        if hasattr(rows, name):
            return getattr(rows, name).size
    return rows.n_values


class Whole:
    """All examples at once, again and again: what a batch learner takes for a pass.

    Parameters
    ----------
    rows
        The examples.
    seed : int, optional
        With one, every pass has an order drawn anew, for learners that move on the way.
    order : int array, optional
        The order before that; without it, the order of the rows.

    Examples
    --------
    >>> passes = Whole(SparseDataset.from_csr([[1.0], [2.0], [3.0]]).rows)
    >>> [order.tolist() for _, order in passes.pieces(0)]
    [[0, 1, 2]]
    """

    n_pieces = 1

    def __init__(self, rows: Any, seed: int | None = None, order: np.ndarray | None = None) -> None:
        self.rows, self.n, self.seed = rows, int(np.count_nonzero(rows.weights)), seed
        self._order = np.arange(rows.weights.size) if order is None else order

    def whole(self) -> Whole:
        return self

    def pieces(self, epoch: int, skip: int = 0) -> Iterator[tuple[Any, np.ndarray]]:
        """(rows, order) of the one piece, unless it is to be skipped."""
        if not skip:
            yield self.rows, next(self.orders(epoch))

    def orders(self, epoch: int) -> Iterator[np.ndarray]:
        """Order after order, for learners that go over the examples more than once in a pass."""
        for k in itertools.count():
            if self.seed is None:
                yield self._order
            else:
                yield np.random.default_rng([self.seed, epoch, k]).permutation(self._order)


def share_out(rows: SparseRows, unit: float = 1.0) -> tuple[SparseRows, np.ndarray | None]:
    """(rows with the weight of one visit, number of visits of each row), None for one visit each.

    Examples
    --------
    >>> data = SparseDataset.from_csr([[1.0], [1.0], [1.0]], sample_weight=[0.5, 2.5, 4.0])
    >>> rows, times = share_out(data.rows)
    >>> rows.weights.round(3).tolist(), times.tolist()
    ([0.5, 0.8330000042915344, 1.0], [1, 3, 4])
    """
    weights = rows.weights
    if np.all(weights == 1.0):
        return rows, None
    # A weight a rounding error above a whole number is that number.
    times = np.ceil(weights.astype(np.float64) / unit * (1.0 - 1e-6)).astype(np.int64)
    shares = np.divide(weights, times, out=np.zeros(weights.size), where=times > 0)
    shares = shares.astype(np.float32)
    shares.flags.writeable = False
    return rows._replace(weights=shares), times


def content_order(rows: SparseRows) -> np.ndarray:
    """Rows sorted by a hash of their features, label and weight.

    Examples
    --------
    >>> one = SparseDataset.from_csr([[1.0, 0.0], [2.0, 3.0], [0.0, 5.0]], [0, 1, 1])
    >>> two = one.take([2, 0, 1])
    >>> [two.take(content_order(two.rows)).digest == one.take(content_order(one.rows)).digest]
    [True]
    """
    hashes = row_hashes(
        rows.indptr,
        rows.indices,
        rows.values.view(np.uint32),
        rows.labels,
        rows.weights.view(np.uint32),
    )
    return np.argsort(hashes)


@kernel
def row_hashes(indptr, indices, values, labels, weights):
    """A 64-bit hash of every row; the order of its columns and stored zeros do not matter."""
    out = np.empty(labels.size, np.uint64)
    for i in range(labels.size):
        total = np.uint64(0)
        for p in range(indptr[i], indptr[i + 1]):
            bits = np.uint64(values[p])
            if bits & np.uint64(0x7FFFFFFF):
                total += mixed(np.uint64(indices[p]) << np.uint64(32) | bits)
        out[i] = mixed(total ^ mixed(np.uint64(labels[i]) << np.uint64(32) | np.uint64(weights[i])))
    return out


@kernel
def mixed(z):
    """Spread every bit over the word (multiply and fold, twice)."""
    z = (z ^ (z >> np.uint64(32))) * np.uint64(0xD6E8FEB86659FD93)
    z = (z ^ (z >> np.uint64(29))) * np.uint64(0xA0761D6478BD642F)
    return z ^ (z >> np.uint64(32))

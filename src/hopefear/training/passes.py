"""The order in which examples come: one pass after another, in pieces that can be interrupted."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from hopefear.core.component import kernel
from hopefear.core.memory import available_memory
from hopefear.data.blocks import blocks, chunks_of, n_blocks, rows_of, stored_bytes
from hopefear.data.sparse import SparseRows
from hopefear.errors import HopefearError

# Values per piece: some tens of milliseconds, so that progress and interrupts are prompt.
_PIECE = 4_000_000
# Bytes of a block of a cache: about what is in memory at a time.
_BLOCK = 1 << 24
# Visits an example gets on average, at most: weights of any size must not make a pass endless.
_VISITS = 10.0


class Passes:
    """Passes over a dataset, the same for the same seed however often they are broken off.

    A dataset in memory is shuffled as a whole. That of a cache is read block after block, the
    blocks in an order drawn anew for each pass and their examples shuffled.

    An example of weight w comes ``ceil(w)`` times in a pass, each time with an equal share of w.
    So a whole weight is the same as so many copies, and weight 0 the same as absence, for every
    learner, also those whose steps do not grow with the weight. Where the average weight is above
    10, examples come ``ceil(10 w / average)`` times.

    Parameters
    ----------
    dataset
        Of any task, in memory or of a cache.
    seed : int
        Fixes every order.
    shuffle : bool
        False keeps the order of the data in every pass.
    at_least : int
        Fewest pieces of a pass over data in memory; more give finer curves and prompter interrupts.
        The model does not depend on it.
    by_content : bool
        Sort the examples by a hash of what they hold before they are shuffled, so that the same
        examples in another order give the same passes. Not where there are several blocks.
    by_block : bool, optional
        Visit examples or sentences block by block, as those of a cache, so that both give the same
        model; by default those of a cache only.

    Examples
    --------
    >>> from hopefear.data.sparse import SparseDataset
    >>> data = SparseDataset.from_csr([[1.0], [2.0], [3.0]], [0, 1, 0], sample_weight=[1, 0, 2])
    >>> [order.tolist() for _, order in Passes(data, shuffle=False).pieces(0)]
    [[0, 2, 2]]
    """

    def __init__(
        self,
        dataset: Any,
        seed: int = 1,
        shuffle: bool = True,
        at_least: int = 1,
        by_content: bool = False,
        by_block: bool | None = None,
    ) -> None:
        self.dataset, self.seed, self.shuffle = dataset, seed, shuffle
        self._cache = getattr(dataset, "cache", None)
        self.by_block = self._cache is not None if by_block is None else by_block
        self._by_content = by_content and shuffle
        if self.by_block:
            if not hasattr(dataset, "spans"):
                raise HopefearError(
                    f"{dataset.source}: only examples and sentences are visited block by block; "
                    "leave out by_block"
                )
            self._rows = rows_of(dataset, _BLOCK)
            if self._cache is not None:
                _check_blocks(dataset, self._rows)
        else:
            values_per_row = max(1, stored_values(dataset.rows) // max(1, len(dataset)))
            self._rows = max(1, _PIECE // values_per_row)
        self._unit = max(1.0, self._mean_weight() / _VISITS)
        self._visits: np.ndarray | None = None
        if self.by_block:
            self.rows = dataset.rows
            self.n = self._count()
            return
        self.rows, times = share_out(dataset.rows, self._unit)
        self._visits = self._in_order(self.rows, times)
        self.n = self._visits.size
        # Blocks of a cache are shuffled each on its own, so only these may be cut anew.
        self._rows = min(self._rows, max(1, -(-self.n // at_least)))

    @property
    def n_pieces(self) -> int:
        """Pieces in one pass."""
        return max(1, -(-(len(self.dataset) if self.by_block else self.n) // self._rows))

    @property
    def _sorts(self) -> bool:
        return self._by_content and not (self.by_block and self.n_pieces > 1)

    def cut(self, n: int) -> None:
        """Make blocks of data visited by them small enough that there are ``n``, if it can be."""
        if self.by_block and self.n_pieces < n:
            self._rows = max(1, len(self.dataset) // n)

    def pieces(self, epoch: int, skip: int = 0) -> Iterator[tuple[Any, np.ndarray]]:
        """(rows, order) of every piece of a pass but the first ``skip``."""
        if self.by_block:
            yield from self.at(epoch, slice(skip, None))
            return
        order = self.order(epoch)
        for start in range(skip * self._rows, self.n, self._rows):
            yield self.rows, order[start : start + self._rows]

    def order(self, epoch: int) -> np.ndarray:
        """The whole order of a pass over data that is not visited by blocks."""
        if self._visits is None:
            raise HopefearError(
                f"{self.dataset.source}: its examples are visited block by block, and this learner "
                "takes all of them in one order; train without a cache, and without by_block"
            )
        return self._shuffled(self._visits, epoch, 0)

    def numbers(self, epoch: int) -> list[int]:
        """Numbers of the blocks that the pieces of a pass are; 0 for all of data in memory."""
        if not self.by_block:
            return [0] * self.n_pieces
        count = n_blocks(self.dataset, self._rows)
        return self._shuffled(np.arange(count), epoch, count).tolist()

    def at(self, epoch: int, places: slice) -> Iterator[tuple[Any, np.ndarray]]:
        """(rows, order) of the blocks at these places of a pass, of data visited by blocks."""
        numbers = self.numbers(epoch)[places]
        for number, (rows, visits) in zip(numbers, self.blocks(numbers), strict=True):
            yield rows, self._shuffled(visits, epoch, number)

    def whole(self) -> Whole:
        """The same data for batch learners, which take it all at once and weights as they are."""
        rows = self.dataset.rows
        order = content_order(rows) if self._sorts else None
        return Whole(rows, self.seed if self.shuffle else None, order)

    def means(self, measure: Callable[[SparseRows], np.ndarray]) -> np.ndarray:
        """Means over the examples, by weight, of the columns ``measure`` gives for each row.

        Added up in the order of the visits, so that the same passes give the same bits.
        """
        total, mass = np.zeros(1), 0.0
        for rows, visits in self.blocks():
            weights = rows.weights[visits].astype(np.float64)
            total = total + (weights[:, None] * measure(rows)[visits]).sum(axis=0)
            mass += weights.sum()
        return total / mass if mass > 0.0 else total

    def _mean_weight(self) -> float:
        if not len(self.dataset):
            return 1.0
        if not self.by_block:
            return float(np.mean(self.dataset.rows.weights, dtype=np.float64))
        parts = chunks_of(self.dataset, "weights")
        return sum(float(part.sum(dtype=np.float64)) for (part,) in parts) / len(self.dataset)

    def _count(self) -> int:
        """Visits in a pass by block."""
        n = 0
        for (weights,) in chunks_of(self.dataset, "weights"):
            times = visits_of(weights, self._unit)
            n += weights.size if times is None else int(times.sum())
        return n

    def blocks(self, order: Iterable[int] | None = None) -> Iterator[tuple[Any, np.ndarray]]:
        """Rows that are in memory together, and their visits before they are shuffled."""
        if self._visits is not None:
            yield self.rows, self._visits
            return
        for block in blocks(self.dataset, self._rows, order):
            rows, times = share_out(block, self._unit)
            yield rows, self._in_order(rows, times)

    def _in_order(self, rows: Any, times: np.ndarray | None) -> np.ndarray:
        """The visits of a block, or of all data, before they are shuffled."""
        order = content_order(rows) if self._sorts else np.arange(rows.weights.size)
        return order if times is None else np.repeat(order, times[order])

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
    >>> from hopefear.data.sparse import SparseDataset
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


class Pieces:
    """A pass that somebody cuts: rows, and the orders in which a trainer takes them, one a piece.

    Parameters
    ----------
    rows
        The examples.
    orders : iterable of int arrays
        Asked for the next one when the last has been learned.

    Examples
    --------
    >>> from hopefear.data.sparse import SparseDataset
    >>> rows = SparseDataset.from_csr([[1.0], [2.0], [3.0]]).rows
    >>> [order.tolist() for _, order in Pieces(rows, np.split(np.array([2, 0, 1]), [1])).pieces()]
    [[2], [0, 1]]
    """

    def __init__(self, rows: Any, orders: Iterable[np.ndarray]) -> None:
        self.rows, self._orders = rows, orders

    def pieces(self, epoch: int = 0, skip: int = 0) -> Iterator[tuple[Any, np.ndarray]]:
        """(rows, order) of every piece but the first ``skip``."""
        return ((self.rows, order) for order in itertools.islice(self._orders, skip, None))


def share_out(rows: SparseRows, unit: float = 1.0) -> tuple[SparseRows, np.ndarray | None]:
    """(rows with the weight of one visit, number of visits of each row), None for one visit each.

    Examples
    --------
    >>> from hopefear.data.sparse import SparseDataset
    >>> data = SparseDataset.from_csr([[1.0], [1.0], [1.0]], sample_weight=[0.5, 2.5, 4.0])
    >>> rows, times = share_out(data.rows)
    >>> rows.weights.round(3).tolist(), times.tolist()
    ([0.5, 0.8330000042915344, 1.0], [1, 3, 4])
    """
    weights = rows.weights
    times = visits_of(weights, unit)
    if times is None:
        return rows, None
    shares = np.divide(weights, times, out=np.zeros(weights.size), where=times > 0)
    shares = shares.astype(np.float32)
    shares.flags.writeable = False
    return rows._replace(weights=shares), times


def visits_of(weights: np.ndarray, unit: float = 1.0) -> np.ndarray | None:
    """How often each example comes in a pass; None for once each."""
    if np.all(weights == 1.0):
        return None
    # A weight a rounding error above a whole number is that number.
    return np.ceil(weights.astype(np.float64) / unit * (1.0 - 1e-6)).astype(np.int64)


def _check_blocks(dataset: Any, rows: int) -> None:
    """Refuse a block that memory cannot hold: a few very long examples, most often."""
    room = available_memory()
    if room is None:
        return
    for begin in range(0, len(dataset), rows):
        end = min(begin + rows, len(dataset))
        size = stored_bytes(dataset, begin, end)
        if size > room:
            raise HopefearError(
                f"{dataset.source}: the examples {begin + 1:,} to {end:,} are one block and take "
                f"{size >> 20:,} MiB, and {room >> 20:,} MiB of memory are left; split the long "
                "examples, or allow more memory"
            )


def content_order(rows: SparseRows) -> np.ndarray:
    """Rows sorted by a hash of their features, label and weight.

    Examples
    --------
    >>> from hopefear.data.sparse import SparseDataset
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

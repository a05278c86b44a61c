"""What travels between machines, as small as it can be without losing a bit.

Numbers of coordinates go as 32-bit integers, or as one bit a coordinate where that is less; values
go in single precision where that is all they have.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.training.changes import Change, Sparse, Update


class Parcel(NamedTuple):
    """Something packed, and the bytes that went into it: its own and those of earlier parcels."""

    load: Any
    sent: int


class Places(NamedTuple):
    """Rising numbers below ``n``, packed."""

    n: int
    form: str  # "ids" or "bits"
    data: np.ndarray

    @classmethod
    def of(cls, ids: np.ndarray, n: int) -> Places:
        """Pack numbers.

        >>> Places.of(np.array([1, 900]), 1000).form, Places.of(np.arange(900), 1000).form
        ('ids', 'bits')
        """
        short = np.uint32 if n < 1 << 32 else np.int64
        if ids.size * np.dtype(short).itemsize <= n // 8:
            return cls(n, "ids", ids.astype(short))
        bits = np.zeros(n, bool)
        bits[ids] = True
        return cls(n, "bits", np.packbits(bits))

    def ids(self) -> np.ndarray:
        """The numbers again.

        >>> Places.of(np.arange(900), 1000).ids()[-1]
        np.int64(899)
        """
        if self.form == "ids":
            return self.data.astype(np.int64)
        return np.flatnonzero(np.unpackbits(self.data, count=self.n))


def packed_sparse(sparse: Sparse, n: int) -> tuple[Places, np.ndarray]:
    """Entries of vectors of length ``n``, packed.

    >>> packed_sparse(Sparse.of(np.array([0.0, 0.5])), 2)[1].dtype
    dtype('float32')
    """
    with np.errstate(over="ignore"):
        short = sparse.values.astype(np.float32)
    exact = np.array_equal(short, sparse.values)
    return Places.of(sparse.ids, n), short if exact else sparse.values


def unpacked_sparse(places: Places, values: np.ndarray) -> Sparse:
    """The entries again."""
    return Sparse(places.ids(), values.astype(np.float64))


def packed(change: Change, n: int, before: int = 0) -> Parcel:
    """A change, and how many bytes were sent to make it."""
    content = (
        packed_sparse(change.state, n),
        tuple(packed_sparse(gain, n) for gain in change.gains),
        change.rest,
    )
    return Parcel(content, before + size_of(content))


def unpacked(parcel: Parcel) -> Change:
    """The change again.

    >>> change = Change(Sparse.of(np.array([0.0, 0.1])), (), ())
    >>> unpacked(packed(change, 2)).state.values
    array([[0.1]])
    """
    state, gains, rest = parcel.load
    return Change(unpacked_sparse(*state), tuple(unpacked_sparse(*g) for g in gains), tuple(rest))


def packed_update(update: Update, n: int) -> Parcel:
    """An update; its values are those of the state as they are."""
    content = Places.of(update.ids, n), update.fields, update.clock, update.t
    return Parcel(content, size_of(content))


def unpacked_update(parcel: Parcel) -> Update:
    """The update again."""
    places, *rest = parcel.load
    return Update(places.ids(), *rest)


def size_of(content: Any) -> int:
    """Bytes of all arrays in it.

    >>> size_of((np.zeros(2), {"a": [np.zeros(1)]}, 3))
    24
    """
    if isinstance(content, np.ndarray):
        return content.nbytes
    if isinstance(content, dict):
        content = content.values()
    elif not isinstance(content, tuple | list):
        return 0
    return sum(map(size_of, content))

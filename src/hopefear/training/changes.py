"""What shards changed in a round, and the merged state that comes of it.

A state has millions of coordinates, and a round moves few of them. One sweep over memory finds
those; all else is done with them alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.core.component import lean, linked

# Bit of a coordinate whose state is not the one it began with; another one says that it is in use.
CHANGED = 1


class Sparse(NamedTuple):
    """Some entries of long vectors; all others are zero."""

    ids: np.ndarray  # int64, rising
    values: np.ndarray  # float64[vectors, ids]

    @classmethod
    def of(cls, vector: np.ndarray) -> Sparse:
        """What is not zero in a vector.

        >>> Sparse.of(np.array([0.0, 2.0])).ids
        array([1])
        """
        ids = np.flatnonzero(vector)
        return cls(ids, vector[ids].astype(np.float64)[None])

    def at(self, places: np.ndarray) -> Sparse:
        """The same entries of a longer vector, which has these places for those of this one.

        >>> Sparse.of(np.array([0.0, 2.0])).at(np.array([3, 7])).ids
        array([7])
        """
        return Sparse(places[self.ids], self.values)

    def plus(self, other: Sparse) -> Sparse:
        """The sum, at all entries of either.

        >>> Sparse.of(np.array([1.0, 0.0])).plus(Sparse.of(np.array([1.0, 3.0]))).values
        array([[2., 3.]])
        """
        ids = np.empty(count_union(self.ids, other.ids), np.int64)
        values = np.empty((len(self.values), ids.size))
        join(self.ids, self.values, other.ids, other.values, ids, values)
        return Sparse(ids, values)


class Change(NamedTuple):
    """What one shard, or several, changed in a round."""

    state: Sparse  # as the rule has it, and in the last row the shares of those that changed it
    totals: tuple[Sparse, ...]  # of the readout, by coordinate
    rest: tuple[np.ndarray, ...]  # of the readout, else

    def plus(self, other: Change) -> Change:
        """What both changed."""
        sums = zip((self.state, *self.totals), (other.state, *other.totals), strict=True)
        state, *totals = (one.plus(more) for one, more in sums)
        rest = tuple(one + more for one, more in zip(self.rest, other.rest, strict=True))
        return Change(state, tuple(totals), rest)


class Update(NamedTuple):
    """How the state in common becomes the merged one."""

    ids: np.ndarray
    fields: dict[str, np.ndarray]  # values at the ids, by the name of an array of the state
    clock: np.ndarray
    t: int


def arrays_of(state: Any) -> dict[str, np.ndarray]:
    """What a state has for each coordinate."""
    return {name: array for name, array in state._asdict().items() if name != "clock"}


def taken(state: Any, ids: np.ndarray) -> Any:
    """The state of some coordinates."""
    return state._replace(**{name: array[ids] for name, array in arrays_of(state).items()})


def put(state: Any, update: Update) -> None:
    """Make the merged state of one that has not been touched since."""
    for name, values in update.fields.items():
        getattr(state, name)[update.ids] = values
    state.clock[:] = update.clock


def noted(
    state: Any, base: Any, fresh: Any, totals: tuple[np.ndarray, ...], bits: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(coordinates changed since ``base``, those in use: changed, not fresh or with a total).

    ``bits`` is space for a byte a coordinate.

    >>> class State(NamedTuple):
    ...     w: np.ndarray
    >>> one, other, fresh = (State(np.array(w)) for w in ([0.0, 2.0, 3.0], [0.0, 2.0, 2.0], [0.0]))
    >>> noted(one, other, fresh, (), np.empty(3, np.uint8))
    (array([2]), array([1, 2]))
    """
    bits[:] = 0
    for name, array in arrays_of(state).items():
        first, new = getattr(base, name), getattr(fresh, name)[0]
        if array.ndim == 1:
            note_numbers(array, first, new, bits)
        else:
            note_cells(array, first, new, bits)
    for total in totals:
        note_totals(total, bits)
    words = bits[: bits.size - bits.size % 8].view(np.uint64)
    changed, used = (np.empty(n, np.int64) for n in count_bits(words, bits))
    collect(words, bits, changed, used)
    return changed, used


@lean
def note_numbers(array, base, fresh, bits):
    """Note where one number a coordinate has changed, or is in use."""
    for j in range(np.uint64(array.size)):
        bits[j] |= np.uint8(array[j] != base[j]) | np.uint8(2) * np.uint8(array[j] != fresh)


@lean
def note_cells(array, base, fresh, bits):
    """The same for several numbers a coordinate."""
    for j in range(np.uint64(array.shape[0])):
        changed = used = False
        for c in range(np.uint64(array.shape[1])):
            changed |= array[j, c] != base[j, c]
            used |= array[j, c] != fresh[c]
        bits[j] |= np.uint8(changed) | np.uint8(2) * np.uint8(used)


@lean
def note_totals(total, bits):
    """Note which coordinates have a total."""
    for j in range(np.uint64(total.size)):
        bits[j] |= np.uint8(2) * np.uint8(total[j] != 0.0)


@lean
def count_bits(words, bits):
    """(how many have changed, how many have any bit); ``words`` are the bits by eights."""
    changed = used = 0
    for k in range(np.uint64(words.size)):
        if words[k] != 0:  # which is rare
            for j in range(np.uint64(8) * k, np.uint64(8) * k + np.uint64(8)):
                changed += np.int64(bits[j] & CHANGED)
                used += np.int64(bits[j] != 0)
    for j in range(8 * words.size, bits.size):
        changed += np.int64(bits[j] & CHANGED)
        used += np.int64(bits[j] != 0)
    return changed, used


@lean
def collect(words, bits, changed, used):
    """Write down which these are."""
    p = q = np.uint64(0)
    for k in range(np.uint64(words.size)):
        if words[k] != 0:
            for j in range(np.uint64(8) * k, np.uint64(8) * k + np.uint64(8)):
                p, q = enter(bits[j], j, changed, p, used, q)
    for j in range(np.uint64(8) * np.uint64(words.size), np.uint64(bits.size)):
        p, q = enter(bits[j], j, changed, p, used, q)


@linked
def enter(bits, j, changed, p, used, q):
    """Write down one coordinate; where the next ones go."""
    if bits & CHANGED:
        changed[p] = j
        p += np.uint64(1)
    if bits:
        used[q] = j
        q += np.uint64(1)
    return p, q


@lean
def add_at(total, ids, values):
    """Add values to some entries of a vector."""
    for k in range(np.uint64(ids.size)):
        total[np.uint64(ids[k])] += values[k]


@lean
def count_union(one, other):
    """Size of the union of two rising runs."""
    p = q = n = 0
    while p < one.size and q < other.size:
        i, j = one[p], other[q]
        p += i <= j
        q += j <= i
        n += 1
    return n + (one.size - p) + (other.size - q)


@lean
def join(ids, values, other_ids, other_values, out_ids, out):
    """Write the sum of two sets of entries."""
    p = q = 0
    for n in range(out_ids.size):
        left = p < ids.size and (q == other_ids.size or ids[p] <= other_ids[q])
        right = q < other_ids.size and (p == ids.size or other_ids[q] <= ids[p])
        out_ids[n] = ids[p] if left else other_ids[q]
        for v in range(out.shape[0]):
            total = 0.0  # sums begin here, so that no zero has a sign
            if left:
                total += values[v, p]
            if right:
                total += other_values[v, q]
            out[v, n] = total
        p += left
        q += right

"""What shards changed in a round, and the merged state that comes of it.

A state has millions of coordinates, and a round moves few of them, which are marked. Where shards
share memory, one kernel goes over the marks of all and merges in place. Where they do not, changes
travel as sparse vectors. Both do the same to each coordinate, so bits do not depend on the way.

Books are merged by what a line would have earned. A coordinate that nobody moved stays on the line
that the state in common has for it, and earns what the clocks of all shards say, which is one
number for all such coordinates: the round is one tick in the books of the whole. Where a
coordinate was moved, its *gain* is what a shard has really earned less that. Rules whose lines can
die have no such number; their shards settle all coordinates that were ever moved, and gains are
all they earned.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hopefear.core.averages import Account, settle_line, totals_now
from hopefear.core.component import inlined, lean, prefetch
from hopefear.core.crew import take
from hopefear.core.memory import zeros
from hopefear.training.marks import OCTET, list_octets, mark, new_marks, octets_of, united
from hopefear.training.online import arrays_of, new_state

# Words of marks that a thread takes at a time, so many that few octets are at a beginning, where
# nothing was asked for; octets that are asked for ahead.
_CHUNK, _AHEAD = 1024, 8
ROOM = 8 * _CHUNK + 1  # for the octets of so many words
ROW = 6  # numbers that say what changed at a coordinate, and how it counts


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
    gains: tuple[Sparse, ...]  # of the books, if there are any
    rest: tuple[np.ndarray, ...]  # examples lived through, and what a line of 1 has earned

    def plus(self, other: Change) -> Change:
        """What both changed."""
        sums = zip((self.state, *self.gains), (other.state, *other.gains), strict=True)
        state, *gains = (one.plus(more) for one, more in sums)
        rest = tuple(one + more for one, more in zip(self.rest, other.rest, strict=True))
        return Change(state, tuple(gains), rest)


class Update(NamedTuple):
    """How the state in common becomes the merged one."""

    ids: np.ndarray
    fields: dict[str, np.ndarray]  # values at the ids, by the name of an array of the state
    clock: np.ndarray
    t: int


class Stack(NamedTuple):
    """The states of shards one behind the other, so that one kernel reaches all of them."""

    n: int
    states: Any  # of shards times n coordinates; the clock is nobody's
    clocks: np.ndarray  # float64[shards, 3]
    totals: np.ndarray  # float64[shards times n], or empty where there are no books
    marks: np.ndarray  # uint8[shards, octets]: of what moved in the round
    used: np.ndarray  # uint8[shards, octets]: of what ever moved; none where all lines last

    def state(self, k: int) -> Any:
        """The state of one shard, which is not copied."""
        own = slice(k * self.n, (k + 1) * self.n)
        arrays = {name: array[own] for name, array in arrays_of(self.states).items()}
        return self.states._replace(**arrays, clock=self.clocks[k])

    def total(self, k: int) -> np.ndarray:
        """What its books have for each coordinate."""
        return self.totals[k * self.n : (k + 1) * self.n]


def new_stack(rule: Any, n: int, dtype: Any, shards: int, books: bool) -> Stack:
    """States of so many shards of ``n`` coordinates, all of them new.

    >>> from hopefear.rules.rda import RDA
    >>> new_stack(RDA(), 100, np.float32, 2, books=False).state(1).m.shape
    (100,)
    """
    states, octets = new_state(rule, shards * n, dtype), new_marks(n).size
    return Stack(
        n,
        states,
        np.tile(states.clock, (shards, 1)),
        zeros((shards * n if books else 0,), np.float64),
        np.zeros((shards, octets), np.uint8),
        np.zeros((shards, 0 if lines_last(rule) else octets), np.uint8),
    )


def lines_last(rule: Any) -> bool:
    """Whether no line of a rule ever dies, so that all earn in proportion to their height.

    >>> from hopefear.rules.rda import RDA
    >>> lines_last(RDA()), lines_last(RDA(l1=0.1))
    (True, False)
    """
    return rule.line(rule.init(1, np.float64), 0)[2] == 0.0


def put(state: Any, update: Update) -> None:
    """Make the merged state of one that has not been touched since."""
    for name, values in update.fields.items():
        getattr(state, name)[update.ids] = values
    state.clock[:] = update.clock


def enter_round(account: Account, rest: np.ndarray) -> None:
    """Close a round in the books of the whole, as one tick."""
    account.lived[1] += rest[0]
    if rest[1]:
        k = account.closed[0]
        account.a[k + 1] = account.a[k] + rest[1]
        account.b[k + 1] = account.drop[k] = 0.0  # of lines that die, which there are not
        account.closed[0] = k + 1


def changed_by(
    rule: Any, base: Any, state: Any, marks: np.ndarray, total: np.ndarray, earned: float, *how: Any
) -> tuple[Sparse, Sparse]:
    """What a shard changed at the coordinates that are marked, and its gains there.

    ``how`` is (share, clock) of :meth:`Rule.change`.
    """
    octets, rows, n = octets_of(marks), rule.change_size(), len(base[0])
    room = 8 * octets.size
    ids, values = np.empty((2, room), np.int64), np.empty((rows + 2, room))
    p, q = collect(rule, base, state, octets, n, total, earned, *how, ids, values)
    gains = Sparse(ids[1, :q].copy(), values[rows + 1 :, :q].copy())
    return Sparse(ids[0, :p].copy(), values[: rows + 1, :p].copy()), gains


@inlined
def as_numbers(clock):
    """A clock as three numbers, which kernels need not look up again."""
    return clock[0], clock[1], clock[2]


@inlined
def gained(rule, base, i, state, j, total, earned):
    """What coordinate ``j`` has earned, less what it would have earned on the line of ``base``."""
    m0, r0, _ = rule.line(base, i)
    m1, r1, _ = rule.line(state, j)
    return (total + r1 * m1 * earned) - r0 * m0 * earned


@inlined
def merge_one(rule, base, i, x, y, z, clock, books, total, a):
    """Write the merged state of a coordinate to ``base``, and change its line in the books."""
    m0, r0, _ = rule.line(base, i)
    rule.merge(base, i, x, y, z, clock, base, i)
    if books:
        m1, r1, _ = rule.line(base, i)
        total[i] = (total[i] + r0 * m0 * a) - r1 * m1 * a


@lean
def collect(rule, base, state, octets, n, total, earned, share, clock, ids, values):
    """Write down what changed, and gains; how many there are of both."""
    p = q = 0
    ended, merged = as_numbers(state.clock), as_numbers(clock)
    last = values.shape[0] - 1
    for e in range(octets.size):
        for j in octet(octets[e], n):
            if rule.differs(base, j, state, j):
                ids[0, p] = j
                change = rule.change(base, j, state, j, share, ended, merged)
                for v in range(last - 1):
                    values[v, p] = change[v]
                values[last - 1, p] = share
                p += 1
            if total.size:
                gain = gained(rule, base, j, state, j, total[j], earned)
                if gain != 0.0:
                    ids[1, q] = j
                    values[last, q] = gain
                    q += 1
    return p, q


@lean
def merge_entries(rule, base, ids, values, clock, by_moved, total, a):
    """Merge sums of changes into the state in common; their last row is who moved."""
    last = values.shape[0] - 1
    merged = as_numbers(clock)
    for e in range(ids.size):
        moved = values[last, e] if by_moved else 1.0
        x = values[0, e] / moved
        y = values[1, e] / moved if last > 1 else 0.0
        z = values[2, e] / moved if last > 2 else 0.0
        merge_one(rule, base, ids[e], x, y, z, merged, total.size > 0, total, a)


@lean
def merge_marked(
    rule,
    base,
    states,
    n,
    marks,
    totals,
    earned,
    shares,
    clocks,
    clock,
    by_moved,
    total,
    a,
    used,
    space,
    octets,
    crew,
):
    """Merge the states of all shards in place, as one thread of a crew.

    ``marks`` and ``used``, which gets the marks where there is room, come as words of eight;
    ``space`` and ``octets`` are this thread's own.
    """
    shards, words, n, books = marks.shape[0], marks.shape[1], np.uint64(n), total.size > 0
    merged = as_numbers(clock)
    # Of two shards, which is the usual number, nothing is looked up and nothing written down.
    k = min(1, shards - 1)
    one = shares[0], as_numbers(clocks[0]), earned[0]
    two = shares[k], as_numbers(clocks[k]), earned[k]
    begin = take(crew) * _CHUNK
    while begin < words:
        end = min(begin + _CHUNK, words)
        size = list_octets(marks, begin, end, octets)
        for w in range(begin, end):
            if used.size:
                word = united(marks, w)
                for k in range(shards):
                    used[k, w] |= word
            for k in range(shards):
                marks[k, w] = 0
        e = 0
        while e < size:
            run = e  # of octets that are neighbours
            while e < size and octets[e] - octets[run] == np.uint64(e - run):
                if e + _AHEAD < size:
                    i = OCTET * octets[e + _AHEAD]
                    ask(rule, base, i, states, n, shards, books, totals, total)
                e += 1
            first = OCTET * octets[run]
            last = min(first + OCTET * np.uint64(e - run), n)
            # Vectors, of what has not moved too, which is as it was. Whether there are books is
            # asked outside of the loop, else no vectors are made of it.
            if shards == 2 and books:
                for i in range(first, last):
                    change = changed_by_two(
                        rule, base, i, states, n, one, two, merged, True, totals
                    )
                    merge_into(
                        rule, base, i, states, n, 2, change, merged, by_moved, True, total, a
                    )
            elif shards == 2:
                for i in range(first, last):
                    change = changed_by_two(
                        rule, base, i, states, n, one, two, merged, False, totals
                    )
                    merge_into(
                        rule, base, i, states, n, 2, change, merged, by_moved, False, total, a
                    )
            else:
                for i in range(first, last):
                    if untouched(rule, base, i, states, n, shards, books, totals):
                        continue
                    for k in range(shards):
                        j, how = np.uint64(k) * n + i, (shares[k], as_numbers(clocks[k]), earned[k])
                        row = changed_by_one(rule, base, i, states, j, how, merged, books, totals)
                        for v in range(ROW):
                            space[k, v] = row[v]
                    fold(space, shards)
                    row = space[0]
                    change = row[0], row[1], row[2], row[3], row[4], row[5]
                    merge_into(
                        rule, base, i, states, n, shards, change, merged, by_moved, books, total, a
                    )
        begin = take(crew) * _CHUNK


@inlined
def octet(number, n):
    """The coordinates of an octet."""
    first = OCTET * number
    return range(first, min(first + OCTET, np.uint64(n)))


@inlined
def untouched(rule, base, i, states, n, shards, books, totals):
    """Whether no shard has moved coordinate ``i``, so that there is nothing to merge."""
    for k in range(shards):
        j = np.uint64(k) * n + i
        if rule.differs(base, i, states, j) or (books and totals[j] != 0.0):
            return False
    return True


@inlined
def ask(rule, base, i, states, n, shards, books, totals, total):
    """Coordinate ``i`` comes up soon; changes nothing but time."""
    rule.reading(base).ask(i)
    for k in range(shards):
        j = np.uint64(k) * n + i
        rule.reading(states).ask(j)
        if books:
            prefetch(totals, j)
    if books:
        prefetch(total, i)


@inlined
def changed_by_one(rule, base, i, states, j, how, clock, books, totals):
    """(x, y, z, share that moved, 1 where it did, gain) of a shard, whose total is left empty."""
    share, ended, earned = how
    changed = 1.0 if rule.differs(base, i, states, j) else 0.0
    x, y, z = rule.change(base, i, states, j, share, ended, clock)
    gain = 0.0
    if books:
        gain = gained(rule, base, i, states, j, totals[j], earned)
        totals[j] = 0.0
    return x, y, z, share * changed, changed, gain


@inlined
def changed_by_two(rule, base, i, states, n, one, two, clock, books, totals):
    """The same of two shards together; sums begin with 0, so that no zero has a sign."""
    x, y, z, moved, changed, gain = changed_by_one(
        rule, base, i, states, i, one, clock, books, totals
    )
    p, q, r, other, also, more = changed_by_one(
        rule, base, i, states, n + i, two, clock, books, totals
    )
    x, y, z = 0.0 + x + p, 0.0 + y + q, 0.0 + z + r
    return x, y, z, moved + other, changed + also, 0.0 + gain + more


@inlined
def merge_into(rule, base, i, states, n, shards, change, clock, by_moved, books, total, a):
    """Write the merged state of a coordinate for all, where any shard has changed it; its gain."""
    x, y, z, moved, changed, gain = change
    if books:
        total[i] += gain
    if changed != 0.0:
        if by_moved:
            x, y, z = x / moved, y / moved, z / moved
        rule.merge(base, i, x, y, z, clock, states, i)
        if shards > 1:
            rule.merge(base, i, x, y, z, clock, states, n + i)
        for k in range(2, shards):
            rule.merge(base, i, x, y, z, clock, states, np.uint64(k) * n + i)
        merge_one(rule, base, i, x, y, z, clock, books, total, a)


@inlined
def fold(space, shards):
    """Add up rows by twos, then by twos of these, as ``workers.folded`` does; into the first."""
    while shards > 1:
        for k in range(0, shards, 2):
            for v in range(space.shape[1]):
                total = space[k, v]
                if k + 1 < shards:
                    total = 0.0 + total + space[k + 1, v]
                space[k // 2, v] = total
        shards = (shards + 1) // 2


@lean
def mark_used(rule, fresh, state, used, n):
    """Mark the coordinates that are not as in a new learner."""
    for j in range(n):
        if rule.differs(fresh, 0, state, j):
            mark(used, j)


@lean
def settle_octets(rule, state, account, octets):
    """Credit the coordinates of these octets with all closed ticks."""
    now = totals_now(account)
    for e in range(octets.size):
        for j in octet(octets[e], account.total.size):
            m, r, f = rule.line(state, j)
            settle_line(account, now, j, m, r, f)


@lean
def reopen_octets(rule, state, account, octets):
    """Let books go on with the lines that the coordinates of these octets have now."""
    weights = rule.reading(state)
    for e in range(octets.size):
        for j in octet(octets[e], account.total.size):
            account.open[j] = weights.at(j) != 0.0


@lean
def clear_octets(total, octets):
    """Forget the totals of these octets."""
    for e in range(octets.size):
        for j in octet(octets[e], total.size):
            total[j] = 0.0


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

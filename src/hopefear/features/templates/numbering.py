"""Numbers of attributes: counted, cut off or hashed while they are made."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from hopefear.features.templates import kernels
from hopefear.features.templates.kernels import USED, Born, Plan, new_work
from hopefear.features.templates.program import Bound, Program

_FIRST_ROOM = 1 << 12


class Rows(NamedTuple):
    """Attributes of every token, as in ``Attributes``."""

    indptr: np.ndarray
    indices: np.ndarray
    values: np.ndarray


class Numbered(NamedTuple):
    """What one pass over the tokens finds."""

    keys: np.ndarray  # uint64, by number
    counts: np.ndarray  # int64, occurrences
    born: Born
    fired: np.ndarray  # int64[templates], occurrences
    rows: Rows


class Table:
    """Numbers by key: the place of the key in ``keys``, or its top ``bits`` bits.

    Parameters
    ----------
    keys : array of uint64
        Distinct, none 0; unused where attributes are hashed.
    bits : int
        0, or attributes are hashed to ``2**bits`` numbers.
    """

    def __init__(self, keys: np.ndarray, bits: int = 0) -> None:
        self.keys, self.bits = keys, bits

    @property
    def size(self) -> int:
        return 1 << self.bits if self.bits else len(self.keys)

    def encode(self, bound: Bound, program: Program) -> Rows:
        """Known attributes of every token."""
        plan = bound.plan(program)
        rows = _room_for(bound, program)
        with np.errstate(over="ignore"):
            used = kernels.look_up(
                plan, new_work(plan.most), self._slots, 64 - self.bits if self.bits else 0, *rows
            )
        return _cut(rows, used)

    def distinct(self) -> bool:
        """Whether no key is 0 or there twice."""
        return self._filled[0]

    @property
    def _slots(self) -> np.ndarray:
        return self._filled[1]

    @functools.cached_property
    def _filled(self) -> tuple[bool, np.ndarray]:
        if self.bits:
            return True, np.zeros(0, np.uint64)
        slots = _slots_for(len(self.keys))
        return kernels.fill_slots(slots, np.array(self.keys)) == len(self.keys), slots


def number(bound: Bound, program: Program, keep_names: bool) -> Numbered:
    """Number the attributes of a program in the order they come."""
    plan: Plan = bound.plan(program)
    rows, work = _room_for(bound, program), new_work(plan.most)
    slots = _slots_for(_FIRST_ROOM + 4 * plan.most)
    born = _born(len(slots) // 2 if keep_names else 0)
    fired = np.zeros(len(program.seeds), np.int64)
    with np.errstate(over="ignore"):  # hashes wrap; only uncompiled kernels warn
        while not kernels.number_keys(plan, work, slots, born, fired, *rows):
            larger = np.zeros(2 * len(slots), np.uint64)
            kernels.move_slots(slots, larger)
            slots = larger
            if keep_names:
                born = Born(*(_longer(a, len(slots) // 2) for a in born))
        used = int(work.state[USED])
        keys, counts = np.zeros(used, np.uint64), np.zeros(used, np.int64)
        kernels.read_slots(slots, keys, counts)
    born = Born(*(a[: used if keep_names else 0].copy() for a in born))
    return Numbered(keys, counts, born, fired, _cut(rows, int(work.state[kernels.ENTRIES])))


def cut_off(found: Numbered, min_count: int) -> Numbered:
    """Leave out the attributes that were seen fewer times."""
    keep = found.counts >= min_count
    if keep.all():
        return found
    new = np.where(keep, np.cumsum(keep) - 1, -1).astype(np.int32)
    used = kernels.renumber(new, *found.rows)
    born = Born(*(a[keep] for a in found.born)) if len(found.born.token) else found.born
    return found._replace(
        keys=found.keys[keep], counts=found.counts[keep], born=born, rows=_cut(found.rows, used)
    )


def hash_to(found: Numbered, bits: int) -> tuple[Rows, np.ndarray, float]:
    """Rows with hashed numbers, the number of each key, and the share of keys that share one."""
    columns = (found.keys >> np.uint64(64 - bits)).astype(np.int32)
    rows = found.rows._replace(indices=columns[found.rows.indices])
    ordered = np.sort(columns)
    same = ordered[1:] == ordered[:-1]
    shared = np.zeros(len(ordered), bool)
    shared[1:] |= same
    shared[:-1] |= same
    return rows, columns, float(shared.mean()) if len(shared) else 0.0


def no_rows() -> Rows:
    """Rows where no template could fire."""
    return Rows(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))


def _room_for(bound: Bound, program: Program) -> Rows:
    room = bound.room(program)
    return Rows(
        np.zeros(bound.ids.shape[1] + 1, np.int64),
        np.empty(room, np.int32),
        np.empty(room if (program.number >= 0).any() else 0, np.float32),
    )


def _cut(rows: Rows, used: int) -> Rows:
    return Rows(rows.indptr, rows.indices[:used], rows.values[:used])


def _slots_for(entries: int) -> np.ndarray:
    return np.zeros(2 << max(4, (4 * entries // 3).bit_length()), np.uint64)


def _born(room: int) -> Born:
    return Born(np.zeros(room, np.int64), np.zeros(room, np.uint16), np.zeros(room, np.int32))


def _longer(array: np.ndarray, room: int) -> np.ndarray:
    longer = np.zeros(room, array.dtype)
    longer[: len(array)] = array
    return longer

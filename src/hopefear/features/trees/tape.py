"""The tape features are spelt on: symbols one after another, and where each feature ends."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hopefear.core.component import inlined
from hopefear.features.trees.kinds import N_SPECIALS

# A longer feature is left out: it spells a sentence, and no other sentence has it.
LONGEST = 48
AT, COUNT, FULL = 0, 1, 2  # positions in Tape.used


class Tape(NamedTuple):
    """Features of one tree: feature f is ``symbols[ends[f]:ends[f + 1]]``, its kind first."""

    on: np.ndarray  # bool[specials]: kinds to write
    symbols: np.ndarray  # int32
    ends: np.ndarray  # int32
    amounts: np.ndarray  # float32
    used: np.ndarray  # int64[3]: symbols; whole features; 1 where one did not fit


def new_tape(on: np.ndarray, features: int) -> Tape:
    """Room for so many features of common length."""
    return Tape(
        on,
        np.zeros(8 * features, np.int32),
        np.zeros(features + 1, np.int32),
        np.zeros(features, np.float32),
        np.zeros(3, np.int64),
    )


def kinds_on(numbers: list[int]) -> np.ndarray:
    """``Tape.on`` for these kinds."""
    on = np.zeros(N_SPECIALS, bool)
    on[numbers] = True
    return on


@inlined
def put(tape, symbol):
    """Write a symbol of the feature that is being spelt."""
    at = tape.used[AT]
    if at < len(tape.symbols):
        tape.symbols[at] = symbol
    tape.used[AT] = at + 1


@inlined
def start(tape, kind):
    """Begin a feature; False where nobody wants this kind."""
    if not tape.on[kind]:
        return False
    put(tape, kind)
    return True


@inlined
def close(tape, amount):
    """End a feature."""
    f, at = tape.used[COUNT], tape.used[AT]
    first = tape.ends[f]
    fits = at <= len(tape.symbols) and f + 1 < len(tape.ends)
    if at - first <= LONGEST and fits:
        tape.ends[f + 1] = at
        tape.amounts[f] = amount
        tape.used[COUNT] = f + 1
        return
    if at - first <= LONGEST:
        tape.used[FULL] = 1
    tape.used[AT] = first

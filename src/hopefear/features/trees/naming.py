"""Names of the features of trees, for the keys that somebody wants to read."""

from __future__ import annotations

import numpy as np

from hopefear.core.component import kernel
from hopefear.core.hashing import slot_of
from hopefear.features.brackets.rows import Trees
from hopefear.features.trees.extract import Extractor, key_at, spell
from hopefear.features.trees.families import TreeFamilies
from hopefear.features.trees.tape import COUNT, FULL, LONGEST

TREE, FOUND = 0, 1  # positions in the state of `write_names`


def tree_names(trees: Trees, families: TreeFamilies, wanted: np.ndarray) -> dict[int, str]:
    """Names such as ``Rule.up|NP -> DT NN ^ VP`` of the keys that occur in these trees.

    Parameters
    ----------
    trees, families
        As in `tree_keys`; trees are read until every name is known.
    wanted : uint64 array
        Keys, each once.

    Examples
    --------
    >>> from hopefear.data.lists.trees import parse_trees
    >>> from hopefear.features.trees import families, tree_keys
    >>> trees, chosen = parse_trees(["(NP (DT the) (NN dog))"]), families("Rule.plain")
    >>> list(tree_names(trees, chosen, tree_keys(trees, chosen).keys).values())
    ['Rule.plain|NP -> DT NN']
    """
    extractor = Extractor(trees, families)
    slots = np.zeros(2 << max(4, (2 * len(wanted)).bit_length()), np.uint64)
    count = _want(slots, np.ascontiguousarray(wanted, np.uint64))
    symbols = np.empty(LONGEST * count, np.int32)
    ends, keys = np.zeros(count + 1, np.int64), np.empty(count, np.uint64)
    state = np.zeros(2, np.int64)
    with np.errstate(over="ignore"):  # uncompiled kernels warn where compiled ones do not
        while not write_names(
            extractor.rows,
            extractor.facts,
            extractor.scratch,
            extractor.tape,
            state,
            slots,
            keys,
            symbols,
            ends,
        ):
            extractor.lengthened()
    found, strings = int(state[FOUND]), extractor.strings
    shown, bounds = symbols[: ends[found]].tolist(), ends.tolist()
    names: dict[int, str] = {}
    for f, key in enumerate(keys[:found].tolist()):
        kind, *rest = (strings[s] for s in shown[bounds[f] : bounds[f + 1]])
        names[key] = f"{kind}|{' '.join(rest)}"
    return names


@kernel
def _want(slots, wanted):
    """Put keys into slots, a key and then 1 while nobody has found it; how many there are."""
    count = 0
    for key in wanted:
        slot = slot_of(slots, key)
        while slots[slot] != 0 and slots[slot] != key:
            slot = (slot + 2) & (len(slots) - 1)
        count += slots[slot] != key and key != 0
        slots[slot] = key
        slots[slot + 1] = 1
    return count


@kernel
def write_names(rows, facts, scratch, tape, state, slots, keys, symbols, ends):
    """Copy the first feature of each wanted key from the tape; False where the tape is too short.

    Called again with a longer tape, it goes on where it stopped.
    """
    while state[TREE] < len(rows.starts) - 1 and state[FOUND] < len(keys):
        spell(rows, state[TREE], facts, scratch, tape)
        if tape.used[FULL]:
            return False
        for f in range(tape.used[COUNT]):
            key = key_at(tape, facts.hashes, f)
            slot = slot_of(slots, key)
            while slots[slot] != 0 and slots[slot] != key:
                slot = (slot + 2) & (len(slots) - 1)
            if slots[slot] == 0 or slots[slot + 1] == 0:
                continue
            slots[slot + 1] = 0
            found = state[FOUND]
            end = ends[found]
            for p in range(tape.ends[f], tape.ends[f + 1]):
                symbols[end] = tape.symbols[p]
                end += 1
            ends[found + 1] = end
            keys[found] = key
            state[FOUND] = found + 1
        state[TREE] += 1
    return True

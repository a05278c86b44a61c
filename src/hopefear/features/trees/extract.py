"""Keys and names of the features of trees.

Families spell the features of one tree on a tape; a key is the hash of what stands there, mixed
from hashes of strings. So keys mean the same for every file, however its symbols are numbered.
"""

from __future__ import annotations

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.core.component import helper, kernel
from hopefear.core.hashing import mix, pair_slot
from hopefear.features.brackets import BracketRows, BracketTrees
from hopefear.features.lists.numbering import Keyed
from hopefear.features.trees.families import KINDS, TreeFamilies
from hopefear.features.trees.kernels import (
    child_ngrams,
    conjuncts,
    double_heads,
    frames,
    head_trees,
    heads,
    leaf_ngrams,
    rules,
    spans,
    weights,
    words,
)
from hopefear.features.trees.tree import (
    COUNT,
    FULL,
    LONGEST,
    SymbolFacts,
    Tape,
    TreeScratch,
    find_heads,
    kinds_on,
    new_scratch,
    new_tape,
    prepare,
    symbol_facts,
    view,
)

_FEATURES = 1 << 12  # of one tree, to begin with
_A_NODE = 32  # features, to begin with
TREE, WRITTEN = 0, 1  # positions in the state of `write_keys`


class Extractor:
    """Everything that the trees of one block share."""

    def __init__(self, trees: BracketTrees, families: TreeFamilies) -> None:
        trees = trees.compact()  # facts of symbols are worked out for this block only
        self.rows = BracketRows(*map(frozen, trees.rows))
        self.properties: SymbolFacts
        self.properties, self.strings = symbol_facts(trees.symbols, families.lower)
        nodes = np.diff(self.rows.starts)
        self.scratch: TreeScratch = new_scratch(int(nodes.max(initial=1)))
        numbers = {kind: i for i, kind in enumerate(KINDS)}
        self.on = kinds_on([numbers[kind] for kind in families.kinds])
        self.tape: Tape = new_tape(self.on, _FEATURES)

    def keys(self, first: int, last: int) -> Keyed:
        """Features of the trees from first on, before last."""
        starts = self.rows.starts
        indptr = np.zeros(last - first + 1, np.int64)
        room = _FEATURES + _A_NODE * int(starts[last] - starts[first])
        keys, values = np.empty(room, np.uint64), np.empty(room, np.float32)
        state = np.array([first, 0], np.int64)
        with np.errstate(over="ignore"):  # uncompiled kernels warn where compiled ones do not
            while not write_keys(
                self.rows,
                first,
                last,
                self.properties,
                self.scratch,
                self.tape,
                state,
                indptr,
                keys,
                values,
            ):
                if not self.lengthened():
                    n_new = len(keys) // 2 + len(self.tape.amounts)
                    keys = np.concatenate([keys, np.empty(n_new, np.uint64)])
                    values = np.concatenate([values, np.empty(n_new, np.float32)])
        used = int(state[WRITTEN])
        return Keyed(indptr, keys[:used], values[:used])

    def lengthened(self) -> bool:
        """Whether the tape was too short; then it is longer now."""
        full = bool(self.tape.used[FULL])
        if full:
            self.tape = new_tape(self.on, 2 * len(self.tape.amounts))
        return full


def tree_keys(trees: BracketTrees, families: TreeFamilies) -> Keyed:
    """Keys and values of the features of every tree.

    A feature of count n comes n times with the value 1; RightBranch comes with its counts. Features
    of more than 48 symbols (`LONGEST`) are left out: they spell one sentence, no other has them.

    Parameters
    ----------
    trees : Trees
        Candidates, in their order.
    families : TreeFamilies
        Which features to take.

    Examples
    --------
    >>> from hopefear.data.lists.trees import parse_trees
    >>> from hopefear.features.trees import families
    >>> trees = parse_trees(["(NP (DT the) (NN dog))", "(NP (NN dog))"])
    >>> tree_keys(trees, families("Word.2")).indptr.tolist()
    [0, 2, 3]
    """
    return Extractor(trees, families).keys(0, len(trees))


@kernel
def spell(rows, t, properties, scratch, tape):
    """Write the features of tree t on the tape."""
    tape.used[:] = 0
    prepare(rows, t, properties.bits, properties.lower, scratch)
    tree = view(rows, t, scratch)
    find_heads(tree, properties.heads)
    rules(tree, tape)
    child_ngrams(tree, tape)
    frames(tree, tape, properties.hashes)
    words(tree, tape)
    head_trees(tree, tape)
    leaf_ngrams(tree, tape)
    heads(tree, tape)
    double_heads(tree, tape)
    spans(tree, tape)
    weights(tree, tape)
    conjuncts(tree, tape, properties.heads.joins)


@helper(inline=True)
def key_at(tape, hashes, f):
    """Key of the feature f on the tape."""
    h = hashes[tape.symbols[tape.ends[f]]]
    for p in range(tape.ends[f] + 1, tape.ends[f + 1]):
        h = mix(h, hashes[tape.symbols[p]])
    return h if h != np.uint64(0) else np.uint64(1)  # 0 marks an empty slot


@kernel
def write_keys(rows, first, last, properties, scratch, tape, state, indptr, keys, values):
    """Keys of the trees from ``state`` on, before last; False where tape or keys are too short.

    Called again with more room, it resumes where it stopped.
    """
    hashes = properties.hashes
    while state[TREE] < last:
        t, n_written = state[TREE], state[WRITTEN]
        spell(rows, t, properties, scratch, tape)
        count = tape.used[COUNT]
        if tape.used[FULL] or n_written + count > len(keys):
            return False
        for f in range(count):
            keys[n_written + f] = key_at(tape, hashes, f)
            values[n_written + f] = tape.amounts[f]
        state[TREE] = t + 1
        state[WRITTEN] = n_written + count
        indptr[t + 1 - first] = n_written + count
    return True


TREE, N_FOUND = 0, 1  # positions in the state of `write_names`


def tree_names(trees: BracketTrees, families: TreeFamilies, selected: np.ndarray) -> dict[int, str]:
    """Names such as ``Rule.up|NP -> DT NN ^ VP`` of the keys that occur in these trees.

    Parameters
    ----------
    trees, families
        As in `tree_keys`; trees are read until every name is known.
    selected : uint64 array
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
    slots = np.zeros(2 << max(4, (2 * len(selected)).bit_length()), np.uint64)
    count = _want(slots, np.ascontiguousarray(selected, np.uint64))
    symbols = np.empty(LONGEST * count, np.int32)
    ends, keys = np.zeros(count + 1, np.int64), np.empty(count, np.uint64)
    state = np.zeros(2, np.int64)
    with np.errstate(over="ignore"):  # uncompiled kernels warn where compiled ones do not
        while not write_names(
            extractor.rows,
            extractor.properties,
            extractor.scratch,
            extractor.tape,
            state,
            slots,
            keys,
            symbols,
            ends,
        ):
            extractor.lengthened()
    size, strings = int(state[N_FOUND]), extractor.strings
    symbol_ids, bounds = symbols[: ends[size]].tolist(), ends.tolist()
    names: dict[int, str] = {}
    for f, key in enumerate(keys[:size].tolist()):
        kind, *arguments = (strings[s] for s in symbol_ids[bounds[f] : bounds[f + 1]])
        names[key] = f"{kind}|{' '.join(arguments)}"
    return names


@kernel
def _want(slots, keys):
    """Puts keys into slots, each with 1 until it is found; returns how many there are."""
    count = 0
    for key in keys:
        slot = pair_slot(slots, key, key)
        count += slots[slot] != key and key != 0
        slots[slot] = key
        slots[slot + 1] = 1
    return count


@kernel
def write_names(rows, properties, scratch, tape, state, slots, keys, symbols, ends):
    """Copy the first feature of each wanted key from the tape; False where the tape is too short.

    Called again with a longer tape, it resumes where it stopped.
    """
    while state[TREE] < len(rows.starts) - 1 and state[N_FOUND] < len(keys):
        spell(rows, state[TREE], properties, scratch, tape)
        if tape.used[FULL]:
            return False
        for f in range(tape.used[COUNT]):
            key = key_at(tape, properties.hashes, f)
            slot = pair_slot(slots, key, key)
            if slots[slot] == 0 or slots[slot + 1] == 0:
                continue
            slots[slot + 1] = 0
            index = state[N_FOUND]
            end = ends[index]
            for p in range(tape.ends[f], tape.ends[f + 1]):
                symbols[end] = tape.symbols[p]
                end += 1
            ends[index + 1] = end
            keys[index] = key
            state[N_FOUND] = index + 1
        state[TREE] += 1
    return True

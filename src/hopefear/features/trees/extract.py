"""Keys of the features of trees.

Families spell the features of one tree on a tape; a key is the hash of what stands there, mixed
from hashes of strings. So keys mean the same for every file, however its symbols are numbered.
"""

from __future__ import annotations

import numpy as np

from hopefear.core.arrays import frozen
from hopefear.core.component import inlined, kernel
from hopefear.core.hashing import mix
from hopefear.features.brackets.rows import TreeRows, Trees
from hopefear.features.lists.keyed import Keyed
from hopefear.features.trees.coordination import conjuncts
from hopefear.features.trees.dependencies import double_heads, heads
from hopefear.features.trees.families import TreeFamilies
from hopefear.features.trees.kinds import KINDS
from hopefear.features.trees.leaves import head_trees, leaf_ngrams, words
from hopefear.features.trees.local import child_ngrams, frames, rules
from hopefear.features.trees.spans import spans, weights
from hopefear.features.trees.symbols import SymbolFacts, symbol_facts
from hopefear.features.trees.tape import COUNT, FULL, Tape, kinds_on, new_tape
from hopefear.features.trees.tree import Scratch, find_heads, new_scratch, prepare, view

_FEATURES = 1 << 12  # of one tree, to begin with
_A_NODE = 32  # features, to begin with
TREE, DONE = 0, 1  # positions in the state of `write_keys`


class Extractor:
    """Everything that the trees of one block share."""

    def __init__(self, trees: Trees, families: TreeFamilies) -> None:
        trees = trees.compact()  # facts of symbols are worked out for this block only
        self.rows = TreeRows(*map(frozen, trees.rows))
        self.facts: SymbolFacts
        self.facts, self.strings = symbol_facts(trees.symbols, families.lower)
        nodes = np.diff(self.rows.starts)
        self.scratch: Scratch = new_scratch(int(nodes.max(initial=1)))
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
                self.facts,
                self.scratch,
                self.tape,
                state,
                indptr,
                keys,
                values,
            ):
                if not self.lengthened():
                    more = len(keys) // 2 + len(self.tape.amounts)
                    keys = np.concatenate([keys, np.empty(more, np.uint64)])
                    values = np.concatenate([values, np.empty(more, np.float32)])
        used = int(state[DONE])
        return Keyed(indptr, keys[:used], values[:used])

    def lengthened(self) -> bool:
        """Whether the tape was too short; then it is longer now."""
        full = bool(self.tape.used[FULL])
        if full:
            self.tape = new_tape(self.on, 2 * len(self.tape.amounts))
        return full


def tree_keys(trees: Trees, families: TreeFamilies) -> Keyed:
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
def spell(rows, t, facts, scratch, tape):
    """Write the features of tree t on the tape."""
    tape.used[:] = 0
    prepare(rows, t, facts.bits, facts.lower, scratch)
    tree = view(rows, t, scratch)
    find_heads(tree, facts.heads)
    rules(tree, tape)
    child_ngrams(tree, tape)
    frames(tree, tape, facts.hashes)
    words(tree, tape)
    head_trees(tree, tape)
    leaf_ngrams(tree, tape)
    heads(tree, tape)
    double_heads(tree, tape)
    spans(tree, tape)
    weights(tree, tape)
    conjuncts(tree, tape, facts.heads.joins)


@inlined
def key_at(tape, hashes, f):
    """Key of the feature f on the tape."""
    h = hashes[tape.symbols[tape.ends[f]]]
    for p in range(tape.ends[f] + 1, tape.ends[f + 1]):
        h = mix(h, hashes[tape.symbols[p]])
    return h if h != np.uint64(0) else np.uint64(1)  # 0 marks an empty slot


@kernel
def write_keys(rows, first, last, facts, scratch, tape, state, indptr, keys, values):
    """Keys of the trees from ``state`` on, before last; False where tape or keys are too short.

    Called again with more room, it goes on where it stopped.
    """
    hashes = facts.hashes
    while state[TREE] < last:
        t, done = state[TREE], state[DONE]
        spell(rows, t, facts, scratch, tape)
        count = tape.used[COUNT]
        if tape.used[FULL] or done + count > len(keys):
            return False
        for f in range(count):
            keys[done + f] = key_at(tape, hashes, f)
            values[done + f] = tape.amounts[f]
        state[TREE] = t + 1
        state[DONE] = done + count
        indptr[t + 1 - first] = done + count
    return True

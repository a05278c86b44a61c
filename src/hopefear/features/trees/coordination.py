"""Features of conjuncts: CoPar, CoLenPar."""

from __future__ import annotations

from hopefear.core.component import inlined, kernel
from hopefear.features.trees.kinds import (
    COLENPAR,
    COLENPAR_LABEL,
    COPAR,
    COPAR_LABEL,
    NO,
    YES,
    ZERO,
)
from hopefear.features.trees.tape import close, put, start
from hopefear.features.trees.tree import NODES, inner, punctuates

_DEEPEST = 5
_LONGEST = 5  # differences beyond count as this


@kernel
def conjuncts(tree, tape, joins):
    """Every two conjuncts of a node that follow each other.

    Conjuncts are children of a node with a conjunction between two children; conjunctions or
    punctuation keep them apart.
    """
    for v in range(tree.size[NODES]):
        if not inner(tree, v) or not _coordinates(tree, joins, v):
            continue
        left, right = -1, -1  # the pair before, which is the last if no other comes
        before, apart = -1, False
        child, end = v + 1, tree.nexts[v]
        while child < end:
            if punctuates(tree, child) or joins[tree.labels[child]]:
                apart = True
            else:
                if before >= 0 and apart:
                    if left >= 0:
                        _lengths(tree, tape, v, left, right, False)
                    left, right = before, child
                    _likeness(tree, tape, v, left, right)
                before, apart = child, False
            child = tree.nexts[child]
        if left >= 0:
            _lengths(tree, tape, v, left, right, True)


@inlined
def _coordinates(tree, joins, v):
    child = tree.lefts[tree.lasts[v]]
    while child >= 0:
        if joins[tree.labels[child]] and tree.lefts[child] >= 0:
            return True
        child = tree.lefts[child]
    return False


@inlined
def _lengths(tree, tape, v, left, right, last):
    """CoLenPar: by how many words the right conjunct is longer, and whether it is the last."""
    more = (tree.ends[right] - tree.begins[right]) - (tree.ends[left] - tree.begins[left])
    more = min(max(more, -_LONGEST), _LONGEST)
    for kind in range(COLENPAR, COLENPAR_LABEL + 1):
        if start(tape, kind):
            if kind == COLENPAR_LABEL:
                put(tape, tree.labels[v])
            put(tape, ZERO + more)
            put(tape, YES if last else NO)
            close(tape, 1.0)


@inlined
def _likeness(tree, tape, v, left, right):
    """CoPar: whether conjuncts have the same labels down to each depth."""
    for depth in range(1, _DEEPEST + 1):
        same = _alike(tree, left, right, depth)
        for kind in range(COPAR, COPAR_LABEL + 1):
            if start(tape, kind):
                if kind == COPAR_LABEL:
                    put(tape, tree.labels[v])
                put(tape, ZERO + depth)
                put(tape, YES if same else NO)
                close(tape, 1.0)


@inlined
def _alike(tree, a, b, depth):
    end_a, end_b = tree.nexts[a], tree.nexts[b]
    down = tree.depths[b] - tree.depths[a]
    lowest = tree.depths[a] + depth - 1
    while a < end_a and b < end_b:
        if tree.labels[a] != tree.labels[b] or tree.depths[b] - tree.depths[a] != down:
            return False
        deep = tree.depths[a] >= lowest
        a = tree.nexts[a] if deep else a + 1
        b = tree.nexts[b] if deep else b + 1
    return a >= end_a and b >= end_b

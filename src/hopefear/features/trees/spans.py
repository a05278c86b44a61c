"""Features of where a node begins and ends: Heavy, Neighbours, Edges, WordEdges, SpanShape."""

from __future__ import annotations

import numpy as np

from hopefear.core.component import kernel
from hopefear.features.trees.kinds import (
    EDGES_AROUND,
    EDGES_INNER,
    EDGES_LEFT,
    EDGES_LEFT2,
    EDGES_LEFT_LENGTH,
    EDGES_OUTER,
    EDGES_RIGHT,
    EDGES_RIGHT2,
    EDGES_RIGHT_LENGTH,
    HEAVY,
    NEIGHBOURS1,
    NEIGHBOURS2,
    NO,
    OUTSIDE,
    RIGHT_BRANCH,
    SPAN_SHAPE,
    WORD_EDGES_AFTER,
    WORD_EDGES_BEFORE,
    WORD_EDGES_FIRST,
    WORD_EDGES_LAST,
    WORD_EDGES_LEFT,
    WORD_EDGES_RIGHT,
    YES,
)
from hopefear.features.trees.tape import close, put, start
from hopefear.features.trees.tree import NODES, TOKENS, binned, inner, label_above, punctuates

# Tokens to show, counted from the one behind an edge.
_LEFT, _RIGHT, _NONE = 10, 20, 0
_BEFORE2, _BEFORE, _FIRST, _SECOND = (_LEFT + k for k in (-2, -1, 0, 1))
_LAST2, _LAST, _AFTER, _AFTER2 = (_RIGHT + k for k in (-2, -1, 0, 1))
_PLAIN, _MEASURED, _UNDER, _WORDS = 0, 1, 2, 4  # bits: with its length, its parent; words, not tags

# A row for each kind: what to show, and up to four tokens.
_SHOWN = np.array(
    [
        (NEIGHBOURS1, _MEASURED, _BEFORE, _AFTER, _NONE, _NONE),
        (NEIGHBOURS2, _MEASURED, _BEFORE2, _BEFORE, _AFTER, _NONE),
        (EDGES_LEFT, _PLAIN, _BEFORE, _FIRST, _NONE, _NONE),
        (EDGES_RIGHT, _PLAIN, _LAST, _AFTER, _NONE, _NONE),
        (EDGES_INNER, _PLAIN, _FIRST, _LAST, _NONE, _NONE),
        (EDGES_OUTER, _PLAIN, _BEFORE, _AFTER, _NONE, _NONE),
        (EDGES_AROUND, _PLAIN, _BEFORE, _FIRST, _LAST, _AFTER),
        (EDGES_LEFT_LENGTH, _MEASURED, _BEFORE, _FIRST, _NONE, _NONE),
        (EDGES_RIGHT_LENGTH, _MEASURED, _LAST, _AFTER, _NONE, _NONE),
        (EDGES_LEFT2, _PLAIN, _BEFORE2, _BEFORE, _FIRST, _SECOND),
        (EDGES_RIGHT2, _PLAIN, _LAST2, _LAST, _AFTER, _AFTER2),
        (WORD_EDGES_FIRST, _WORDS | _MEASURED, _FIRST, _NONE, _NONE, _NONE),
        (WORD_EDGES_LAST, _WORDS | _MEASURED, _LAST, _NONE, _NONE, _NONE),
        (WORD_EDGES_BEFORE, _WORDS | _MEASURED, _BEFORE, _NONE, _NONE, _NONE),
        (WORD_EDGES_AFTER, _WORDS | _MEASURED, _AFTER, _NONE, _NONE, _NONE),
        (WORD_EDGES_LEFT, _WORDS, _BEFORE, _FIRST, _NONE, _NONE),
        (WORD_EDGES_RIGHT, _WORDS, _LAST, _AFTER, _NONE, _NONE),
        (SPAN_SHAPE, _UNDER | _MEASURED, _FIRST, _LAST, _NONE, _NONE),
    ],
    np.int32,
)


@kernel
def spans(tree, tape):
    """Every node with children but the root, and the tags or words at its edges."""
    tokens = tree.size[TOKENS]
    for v in range(1, tree.size[NODES]):
        if not inner(tree, v):
            continue
        b, e = tree.begins[v], tree.ends[v]
        for r in range(len(_SHOWN)):
            if not start(tape, _SHOWN[r, 0]):
                continue
            shown = _SHOWN[r, 1]
            put(tape, tree.labels[v])
            if shown & _MEASURED:
                put(tape, binned(e - b))
            if shown & _UNDER:
                put(tape, label_above(tree, v))
            for c in range(2, 6):
                place = _SHOWN[r, c]
                if place == _NONE:
                    break
                k = b + place - _LEFT if place < _RIGHT - 2 else e + place - _RIGHT
                symbol = OUTSIDE
                if 0 <= k < tokens:
                    leaf = tree.leaves[k]
                    symbol = tree.words[leaf] if shown & _WORDS else tree.labels[leaf]
                put(tape, symbol)
            close(tape, 1.0)


@kernel
def weights(tree, tape):
    """Heavy: every node with children but the root, how long it is and what follows.

    RightBranch: nodes above the last tag that is no punctuation, and all others.
    """
    tokens = tree.size[TOKENS]
    end = tokens  # behind the last token that is no punctuation
    while end > 0 and punctuates(tree, tree.leaves[end - 1]):
        end -= 1
    total = 0
    for v in range(tree.size[NODES]):
        if not inner(tree, v):
            continue
        total += 1
        if v > 0 and start(tape, HEAVY):
            e = tree.ends[v]
            put(tape, tree.labels[v])
            put(tape, binned(e - tree.begins[v]))
            put(tape, YES if e >= end else NO)
            put(tape, YES if e < tokens and punctuates(tree, tree.leaves[e]) else NO)
            close(tape, 1.0)
    on = tree.depths[tree.leaves[end - 1]] if end > 0 else 0
    for side in range(2):
        if start(tape, RIGHT_BRANCH):
            put(tape, NO if side else YES)
            close(tape, total - on if side else on)

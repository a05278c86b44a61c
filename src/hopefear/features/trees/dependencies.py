"""Features of heads and what governs them: Heads, LexFunHeads, Distance."""

from __future__ import annotations

import numpy as np

from hopefear.core.component import kernel
from hopefear.features.brackets.heads import SEMANTIC, SYNTACTIC
from hopefear.features.trees.kinds import (
    AFTER_HEAD,
    BEFORE_HEAD,
    DISTANCE_TT,
    DISTANCE_TW,
    DISTANCE_WT,
    HEADS_LABEL,
    HEADS_STT,
    HEADS_STTT,
    HEADS_STW,
    HEADS_SWT,
    HEADS_SWW,
    HEADS_TT,
    HEADS_TTT,
    HEADS_TTW,
    HEADS_TW,
    HEADS_WT,
    HEADS_WW,
    LEX_FUN_FUNCTION,
    LEX_FUN_TAGS,
    LEX_FUN_WORDS,
    OUTSIDE,
)
from hopefear.features.trees.tape import close, put, start
from hopefear.features.trees.tree import NODES, TOKENS, binned, inner, punctuates

_TAG, _WORD, _SKIP = 0, 1, 2
_DISTANCE, _LABELS = 1, 2

# A row for each kind: kind of heads; what to show of the upper governor, the governor and the head;
# what else.
_SHOWN = np.array(
    [
        (HEADS_TT, SYNTACTIC, _SKIP, _TAG, _TAG, 0),
        (HEADS_TW, SYNTACTIC, _SKIP, _TAG, _WORD, 0),
        (HEADS_WT, SYNTACTIC, _SKIP, _WORD, _TAG, 0),
        (HEADS_WW, SYNTACTIC, _SKIP, _WORD, _WORD, 0),
        (HEADS_LABEL, SYNTACTIC, _SKIP, _TAG, _TAG, _LABELS),
        (HEADS_TTT, SYNTACTIC, _TAG, _TAG, _TAG, 0),
        (HEADS_TTW, SYNTACTIC, _TAG, _TAG, _WORD, 0),
        (HEADS_STT, SEMANTIC, _SKIP, _TAG, _TAG, 0),
        (HEADS_STW, SEMANTIC, _SKIP, _TAG, _WORD, 0),
        (HEADS_SWT, SEMANTIC, _SKIP, _WORD, _TAG, 0),
        (HEADS_SWW, SEMANTIC, _SKIP, _WORD, _WORD, 0),
        (HEADS_STTT, SEMANTIC, _TAG, _TAG, _TAG, 0),
        (DISTANCE_TT, SYNTACTIC, _SKIP, _TAG, _TAG, _DISTANCE),
        (DISTANCE_TW, SYNTACTIC, _SKIP, _TAG, _WORD, _DISTANCE),
        (DISTANCE_WT, SYNTACTIC, _SKIP, _WORD, _TAG, _DISTANCE),
    ],
    np.int32,
)


@kernel
def heads(tree, tape):
    """Heads and Distance: each word but punctuation with its governor, and the governor of that."""
    for k in range(tree.size[TOKENS]):
        leaf = tree.leaves[k]
        if punctuates(tree, leaf):
            continue
        for r in range(len(_SHOWN)):
            kind = _SHOWN[r, 1]
            top = tree.tops[kind, leaf]
            above = tree.parents[top]
            if above < 0 or not start(tape, _SHOWN[r, 0]):
                continue
            governor = tree.leads[kind, above]
            if _SHOWN[r, 2] != _SKIP:
                highest = tree.parents[tree.tops[kind, governor]]
                upper = tree.leads[kind, highest] if highest >= 0 else -1
                put(tape, tree.labels[upper] if upper >= 0 else OUTSIDE)
                put(tape, BEFORE_HEAD if governor < upper else AFTER_HEAD)
            if _SHOWN[r, 5] == _LABELS:
                put(tape, tree.labels[above])
                put(tape, tree.labels[tree.heads[kind, above]])
                put(tape, tree.labels[top])
            put(tape, tree.words[governor] if _SHOWN[r, 3] == _WORD else tree.labels[governor])
            put(tape, BEFORE_HEAD if leaf < governor else AFTER_HEAD)
            put(tape, tree.words[leaf] if _SHOWN[r, 4] == _WORD else tree.labels[leaf])
            if _SHOWN[r, 5] == _DISTANCE:
                put(tape, binned(abs(tree.begins[leaf] - tree.begins[governor])))
            close(tape, 1.0)


@kernel
def double_heads(tree, tape):
    """LexFunHeads: the two heads of a node, where they differ and the node above has others."""
    for v in range(tree.size[NODES]):
        form, content = tree.leads[SYNTACTIC, v], tree.leads[SEMANTIC, v]
        if not inner(tree, v) or form == content:
            continue
        above = tree.parents[v]
        if (
            above >= 0
            and tree.leads[SYNTACTIC, above] == form
            and tree.leads[SEMANTIC, above] == content
        ):
            continue
        for kind in range(LEX_FUN_TAGS, LEX_FUN_WORDS + 1):
            if start(tape, kind):
                put(tape, tree.labels[v])
                put(tape, tree.words[form] if kind >= LEX_FUN_FUNCTION else tree.labels[form])
                put(tape, tree.words[content] if kind == LEX_FUN_WORDS else tree.labels[content])
                close(tape, 1.0)

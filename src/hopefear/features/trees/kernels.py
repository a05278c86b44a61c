"""Kernels that spell the features of one tree, family by family.

Of a node and its children: Rule, NGram, Subcat. Of words and of what stands above them: Word,
WProj, HeadTree, NGramTree. Of where a node begins and ends: Heavy, Neighbours, Edges, WordEdges,
SpanShape. Of heads and what governs them: Heads, LexFunHeads, Distance. Of conjuncts: CoPar,
CoLenPar.
"""

from __future__ import annotations

import numpy as np

from hopefear.core.component import helper, kernel
from hopefear.features.trees.families import (
    AFTER_HEAD,
    ARROW,
    BEFORE_HEAD,
    CLOSE,
    COLENPAR,
    COLENPAR_LABEL,
    COPAR,
    COPAR_LABEL,
    DISTANCE_TT,
    DISTANCE_TW,
    DISTANCE_WT,
    EDGES_AROUND,
    EDGES_INNER,
    EDGES_LEFT,
    EDGES_LEFT2,
    EDGES_LEFT_LENGTH,
    EDGES_OUTER,
    EDGES_RIGHT,
    EDGES_RIGHT2,
    EDGES_RIGHT_LENGTH,
    GAP,
    HEAD,
    HEAD_TREE,
    HEAD_TREE_SEMANTIC,
    HEAD_TREE_SEMANTIC_WORD,
    HEAD_TREE_WORD,
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
    HEAVY,
    LEX_FUN_FUNCTION,
    LEX_FUN_TAGS,
    LEX_FUN_WORDS,
    NEIGHBOURS1,
    NEIGHBOURS2,
    NGRAM2,
    NGRAM2_FUNCTION,
    NGRAM2_TAG,
    NGRAM2_UP,
    NGRAM2_WORD,
    NGRAM3,
    NGRAM3_TAG,
    NGRAM3_UP,
    NGRAM_TREE2,
    NGRAM_TREE2_FUNCTION,
    NGRAM_TREE2_WORD,
    NGRAM_TREE3,
    NGRAM_TREE3_FUNCTION,
    NO,
    OUTSIDE,
    RIGHT_BRANCH,
    RULE,
    RULE_CONTENT,
    RULE_FUNCTION,
    RULE_TAG,
    RULE_UP,
    RULE_UP2,
    RULE_WORD,
    SPAN_SHAPE,
    SUBCAT_TAG,
    SUBCAT_WORD,
    UP,
    WORD1,
    WORD2,
    WORD3,
    WORD_EDGES_AFTER,
    WORD_EDGES_BEFORE,
    WORD_EDGES_FIRST,
    WORD_EDGES_LAST,
    WORD_EDGES_LEFT,
    WORD_EDGES_RIGHT,
    WPROJ_TAG,
    WPROJ_WORD,
    YES,
    ZERO,
)
from hopefear.features.trees.tree import (
    AT,
    NODES,
    SEMANTIC,
    SYNTACTIC,
    TOKENS,
    binned,
    close,
    functional,
    inner,
    label_above,
    punctuates,
    put,
    start,
)


@kernel
def rules(tree, tape):
    """Rule: every node with all its children."""
    for v in range(tree.size[NODES]):
        if not inner(tree, v):
            continue
        parent = tree.parents[v]
        lead, content = tree.leads[SYNTACTIC, v], tree.leads[SEMANTIC, v]
        spelt = False
        child = tree.lasts[v]
        while child >= 0:
            spelt |= functional(tree, child)
            child = tree.lefts[child]
        for kind in range(RULE, RULE_FUNCTION + 1):
            if (
                (parent < 0 and kind in (RULE_UP, RULE_UP2))
                or (kind == RULE_CONTENT and content == lead)
                or (kind == RULE_FUNCTION and not spelt)
                or not start(tape, kind)
            ):
                continue
            put(tape, tree.labels[v])
            put(tape, ARROW)
            _put_children(tree, tape, v, kind == RULE_TAG, kind == RULE_FUNCTION)
            if kind in (RULE_UP, RULE_UP2):
                put(tape, UP)
                put(tape, tree.labels[parent])
            if kind == RULE_UP2:
                put(tape, label_above(tree, parent))
            if kind == RULE_TAG:
                put(tape, HEAD)
                put(tape, tree.labels[lead])
            if kind == RULE_WORD:
                put(tape, HEAD)
                put(tape, tree.words[lead])
            if kind == RULE_CONTENT:
                put(tape, HEAD)
                put(tape, tree.words[content])
            close(tape, 1.0)


@helper(inline=True)
def _put_children(tree, tape, v, marked, spelt):
    child, end = v + 1, tree.nexts[v]
    while child < end:
        put(tape, tree.labels[child])
        if marked and child == tree.heads[SYNTACTIC, v]:
            put(tape, HEAD)
        if spelt and functional(tree, child):
            put(tape, tree.words[child])
        child = tree.nexts[child]


@kernel
def child_ngrams(tree, tape):
    """NGram: two and three adjacent children; three only where they are not the whole rule."""
    for v in range(tree.size[NODES]):
        if not inner(tree, v) or tree.lefts[tree.lasts[v]] < 0:
            continue
        several = tree.lefts[tree.lefts[tree.lasts[v]]] >= 0
        second, third = -1, -1  # the children before; -1 beyond the first
        child, end = v + 1, tree.nexts[v]
        while True:
            last = child if child < end else -1
            _bigram(tree, tape, v, third, last)
            if several and third >= 0:
                _trigram(tree, tape, v, second, third, last)
            if last < 0:
                break
            second, third = third, child
            child = tree.nexts[child]


@helper(inline=True)
def _bigram(tree, tape, v, a, b):
    lead = tree.leads[SYNTACTIC, v]
    spelt = (a >= 0 and functional(tree, a)) or (b >= 0 and functional(tree, b))
    for kind in range(NGRAM2, NGRAM2_FUNCTION + 1):
        if (kind == NGRAM2_FUNCTION and not spelt) or not start(tape, kind):
            continue
        put(tape, tree.labels[v])
        _put_item(tree, tape, v, a, kind == NGRAM2_FUNCTION)
        _put_item(tree, tape, v, b, kind == NGRAM2_FUNCTION)
        _put_side(tree, tape, v, a, b)
        if kind == NGRAM2_UP:
            put(tape, UP)
            put(tape, label_above(tree, v))
        if kind == NGRAM2_TAG:
            put(tape, tree.labels[lead])
        if kind == NGRAM2_WORD:
            put(tape, tree.words[lead])
        close(tape, 1.0)


@helper(inline=True)
def _trigram(tree, tape, v, a, b, c):
    for kind in range(NGRAM3, NGRAM3_TAG + 1):
        if not start(tape, kind):
            continue
        put(tape, tree.labels[v])
        _put_item(tree, tape, v, a, False)
        _put_item(tree, tape, v, b, False)
        _put_item(tree, tape, v, c, False)
        _put_side(tree, tape, v, a, c)
        if kind == NGRAM3_UP:
            put(tape, UP)
            put(tape, label_above(tree, v))
        if kind == NGRAM3_TAG:
            put(tape, tree.labels[tree.leads[SYNTACTIC, v]])
        close(tape, 1.0)


@helper(inline=True)
def _put_item(tree, tape, v, child, spelt):
    if child < 0:
        put(tape, OUTSIDE)
        return
    put(tape, tree.labels[child])
    if child == tree.heads[SYNTACTIC, v]:
        put(tape, HEAD)
    if spelt and functional(tree, child):
        put(tape, tree.words[child])


@helper(inline=True)
def _put_side(tree, tape, v, first, last):
    """Puts the position of the head among children without it; beyond the first is before it."""
    head = tree.heads[SYNTACTIC, v]
    if 0 <= last < head:
        put(tape, BEFORE_HEAD)
    elif first > head:
        put(tape, AFTER_HEAD)


@kernel
def frames(tree, tape, hashes):
    """Subcat: the phrases on either side of a head, in no order."""
    for v in range(tree.size[NODES]):
        if not inner(tree, v):
            continue
        head = tree.heads[SYNTACTIC, v]
        lead = tree.leads[SYNTACTIC, v]
        for kind in range(SUBCAT_TAG, SUBCAT_WORD + 1):
            if not start(tape, kind):
                continue
            put(tape, tree.labels[v])
            put(tape, tree.labels[head])
            put(tape, tree.labels[lead] if kind == SUBCAT_TAG else tree.words[lead])
            first = tape.used[AT]
            child, end = v + 1, tree.nexts[v]
            while child < end:
                if child == head:
                    put(tape, GAP)
                    first = tape.used[AT]
                elif inner(tree, child) and not punctuates(tree, child):
                    _put_sorted(tape, hashes, first, tree.labels[child])
                child = tree.nexts[child]
            close(tape, 1.0)


@helper(inline=True)
def _put_sorted(tape, hashes, first, symbol):
    """Insert a symbol behind those of lesser hash: an order that no numbering changes."""
    put(tape, symbol)
    at = tape.used[AT] - 1
    if at >= len(tape.symbols):
        return
    while at > first and hashes[tape.symbols[at - 1]] > hashes[symbol]:
        tape.symbols[at] = tape.symbols[at - 1]
        at -= 1
    tape.symbols[at] = symbol


@kernel
def words(tree, tape):
    """Word: a word, its tag and up to two nodes above; WProj: all its projections."""
    for k in range(tree.size[TOKENS]):
        leaf = tree.leaves[k]
        for kind in range(WORD1, WORD3 + 1):
            if start(tape, kind):
                put(tape, tree.words[leaf])
                put(tape, tree.labels[leaf])
                if kind >= WORD2:
                    put(tape, label_above(tree, leaf))
                if kind >= WORD3:
                    put(tape, label_above(tree, tree.parents[leaf]))
                close(tape, 1.0)
        for kind in range(WPROJ_TAG, WPROJ_WORD + 1):
            if start(tape, kind):
                top = tree.tops[SYNTACTIC, leaf]
                put(tape, tree.words[leaf] if kind == WPROJ_WORD else tree.labels[leaf])
                v = leaf
                while v != top:
                    v = tree.parents[v]
                    put(tape, tree.labels[v])
                put(tape, UP)
                put(tape, label_above(tree, top))
                close(tape, 1.0)


@kernel
def head_trees(tree, tape):
    """HeadTree: every projection of a tag, with the children around the one below.

    Projections by semantic heads only where they are not those by syntactic heads.
    """
    for k in range(tree.size[TOKENS]):
        leaf = tree.leaves[k]
        for kind in range(HEAD_TREE, HEAD_TREE_SEMANTIC_WORD + 1):
            heads = SYNTACTIC if kind < HEAD_TREE_SEMANTIC else SEMANTIC
            top = tree.tops[heads, leaf]
            is_same_leaf = heads == SEMANTIC and top == tree.tops[SYNTACTIC, leaf]
            if top == leaf or is_same_leaf or not start(tape, kind):
                continue
            if kind in (HEAD_TREE_WORD, HEAD_TREE_SEMANTIC_WORD):
                put(tape, tree.words[leaf])
            put(tape, tree.labels[leaf])
            v = leaf
            while v != top:
                parent = tree.parents[v]
                put(tape, UP)
                put(tape, tree.labels[parent])
                _put_siblings(tree, tape, parent, v)
                v = parent
            close(tape, 1.0)


@helper(inline=True)
def _put_siblings(tree, tape, parent, v):
    child, end = parent + 1, tree.nexts[parent]
    while child < end:
        put(tape, GAP if child == v else tree.labels[child])
        child = tree.nexts[child]


@kernel
def leaf_ngrams(tree, tape):
    """NGramTree: the smallest tree over two or three adjacent tags, and nothing beside it."""
    tokens = tree.size[TOKENS]
    for k in range(tokens - 1):
        top = _over(tree, tree.leaves[k], k + 2)
        spelt = functional(tree, tree.leaves[k]) or functional(tree, tree.leaves[k + 1])
        for kind in range(NGRAM_TREE2, NGRAM_TREE2_WORD + 1):
            if (kind == NGRAM_TREE2_FUNCTION and not spelt) or not start(tape, kind):
                continue
            _put_between(
                tree, tape, top, k, k + 2, kind == NGRAM_TREE2_FUNCTION, kind == NGRAM_TREE2_WORD
            )
            close(tape, 1.0)
        if k + 2 == tokens:
            continue
        top = _over(tree, top, k + 3)
        spelt |= functional(tree, tree.leaves[k + 2])
        for kind in range(NGRAM_TREE3, NGRAM_TREE3_FUNCTION + 1):
            if (kind == NGRAM_TREE3_FUNCTION and not spelt) or not start(tape, kind):
                continue
            _put_between(tree, tape, top, k, k + 3, kind == NGRAM_TREE3_FUNCTION, False)
            close(tape, 1.0)


@helper(inline=True)
def _over(tree, v, end):
    """The lowest node from v on upwards that reaches over the tokens before ``end``."""
    while tree.ends[v] < end:
        v = tree.parents[v]
    return v


@helper(inline=True)
def _put_between(tree, tape, top, begin, end, function_words, all_words):
    """Puts labels of nodes under ``top`` that cover the tokens; `CLOSE` ascends."""
    v, here = top, top
    while v < tree.nexts[top]:
        if tree.ends[v] <= begin:
            v = tree.nexts[v]
            continue
        if tree.begins[v] >= end:
            break
        if v != top:
            while here != tree.parents[v]:
                put(tape, CLOSE)
                here = tree.parents[here]
        put(tape, tree.labels[v])
        here = v
        if tree.lasts[v] < 0 and (all_words or (function_words and functional(tree, v))):
            put(tape, tree.words[v])
        v += 1


# Tokens to show, counted from the one behind an edge.
_LEFT, _RIGHT, _NONE = 10, 20, 0
_BEFORE2, _BEFORE, _FIRST, _SECOND = (_LEFT + k for k in (-2, -1, 0, 1))
_LAST2, _LAST, _AFTER, _AFTER2 = (_RIGHT + k for k in (-2, -1, 0, 1))
_PLAIN, _MEASURED, _UNDER, _WORDS = 0, 1, 2, 4  # bits: with its length, its parent; words, not tags

# A row for each kind: what to show, and up to four tokens.
_SPAN_FORMS = np.array(
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
        for r in range(len(_SPAN_FORMS)):
            if not start(tape, _SPAN_FORMS[r, 0]):
                continue
            form = _SPAN_FORMS[r, 1]
            put(tape, tree.labels[v])
            if form & _MEASURED:
                put(tape, binned(e - b))
            if form & _UNDER:
                put(tape, label_above(tree, v))
            for c in range(2, 6):
                slot = _SPAN_FORMS[r, c]
                if slot == _NONE:
                    break
                k = b + slot - _LEFT if slot < _RIGHT - 2 else e + slot - _RIGHT
                symbol = OUTSIDE
                if 0 <= k < tokens:
                    leaf = tree.leaves[k]
                    symbol = tree.words[leaf] if form & _WORDS else tree.labels[leaf]
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


_TAG, _WORD, _SKIP = 0, 1, 2
_DISTANCE, _LABELS = 1, 2

# A row for each kind: kind of heads; what to show of the upper governor, the governor and the head;
# what else.
_HEAD_FORMS = np.array(
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
        for r in range(len(_HEAD_FORMS)):
            kind = _HEAD_FORMS[r, 1]
            top = tree.tops[kind, leaf]
            above = tree.parents[top]
            if above < 0 or not start(tape, _HEAD_FORMS[r, 0]):
                continue
            governor = tree.leads[kind, above]
            if _HEAD_FORMS[r, 2] != _SKIP:
                highest = tree.parents[tree.tops[kind, governor]]
                upper = tree.leads[kind, highest] if highest >= 0 else -1
                put(tape, tree.labels[upper] if upper >= 0 else OUTSIDE)
                put(tape, BEFORE_HEAD if governor < upper else AFTER_HEAD)
            if _HEAD_FORMS[r, 5] == _LABELS:
                put(tape, tree.labels[above])
                put(tape, tree.labels[tree.heads[kind, above]])
                put(tape, tree.labels[top])
            put(tape, tree.words[governor] if _HEAD_FORMS[r, 3] == _WORD else tree.labels[governor])
            put(tape, BEFORE_HEAD if leaf < governor else AFTER_HEAD)
            put(tape, tree.words[leaf] if _HEAD_FORMS[r, 4] == _WORD else tree.labels[leaf])
            if _HEAD_FORMS[r, 5] == _DISTANCE:
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
        left, right = -1, -1  # the pair before, which is the last one at the end
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


@helper(inline=True)
def _coordinates(tree, joins, v):
    child = tree.lefts[tree.lasts[v]]
    while child >= 0:
        if joins[tree.labels[child]] and tree.lefts[child] >= 0:
            return True
        child = tree.lefts[child]
    return False


@helper(inline=True)
def _lengths(tree, tape, v, left, right, last):
    """CoLenPar: by how many words the right conjunct is longer, and whether it is the last."""
    difference = (tree.ends[right] - tree.begins[right]) - (tree.ends[left] - tree.begins[left])
    difference = min(max(difference, -_LONGEST), _LONGEST)
    for kind in range(COLENPAR, COLENPAR_LABEL + 1):
        if start(tape, kind):
            if kind == COLENPAR_LABEL:
                put(tape, tree.labels[v])
            put(tape, ZERO + difference)
            put(tape, YES if last else NO)
            close(tape, 1.0)


@helper(inline=True)
def _likeness(tree, tape, v, left, right):
    """CoPar: whether conjuncts have the same labels down to each depth."""
    for depth in range(1, _DEEPEST + 1):
        are_alike = _alike(tree, left, right, depth)
        for kind in range(COPAR, COPAR_LABEL + 1):
            if start(tape, kind):
                if kind == COPAR_LABEL:
                    put(tape, tree.labels[v])
                put(tape, ZERO + depth)
                put(tape, YES if are_alike else NO)
                close(tape, 1.0)


@helper(inline=True)
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

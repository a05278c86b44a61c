"""Features of words and of what stands above them: Word, WProj, HeadTree, NGramTree."""

from __future__ import annotations

from hopefear.core.component import inlined, kernel
from hopefear.features.brackets.heads import SEMANTIC, SYNTACTIC
from hopefear.features.trees.kinds import (
    CLOSE,
    GAP,
    HEAD_TREE,
    HEAD_TREE_SEMANTIC,
    HEAD_TREE_SEMANTIC_WORD,
    HEAD_TREE_WORD,
    NGRAM_TREE2,
    NGRAM_TREE2_FUNCTION,
    NGRAM_TREE2_WORD,
    NGRAM_TREE3,
    NGRAM_TREE3_FUNCTION,
    UP,
    WORD1,
    WORD2,
    WORD3,
    WPROJ_TAG,
    WPROJ_WORD,
)
from hopefear.features.trees.tape import close, put, start
from hopefear.features.trees.tree import TOKENS, functional, label_above


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
            same = heads == SEMANTIC and top == tree.tops[SYNTACTIC, leaf]
            if top == leaf or same or not start(tape, kind):
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


@inlined
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


@inlined
def _over(tree, v, end):
    """The lowest node from v on upwards that reaches over the tokens before ``end``."""
    while tree.ends[v] < end:
        v = tree.parents[v]
    return v


@inlined
def _put_between(tree, tape, top, begin, end, function_words, all_words):
    """Labels of the nodes under ``top`` that cover tokens from begin to end; `CLOSE` goes up."""
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

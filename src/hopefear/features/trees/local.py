"""Features of a node and its children: Rule, NGram, Subcat."""

from __future__ import annotations

from hopefear.core.component import inlined, kernel
from hopefear.features.brackets.heads import SEMANTIC, SYNTACTIC
from hopefear.features.trees.kinds import (
    AFTER_HEAD,
    ARROW,
    BEFORE_HEAD,
    GAP,
    HEAD,
    NGRAM2,
    NGRAM2_FUNCTION,
    NGRAM2_TAG,
    NGRAM2_UP,
    NGRAM2_WORD,
    NGRAM3,
    NGRAM3_TAG,
    NGRAM3_UP,
    OUTSIDE,
    RULE,
    RULE_CONTENT,
    RULE_FUNCTION,
    RULE_TAG,
    RULE_UP,
    RULE_UP2,
    RULE_WORD,
    SUBCAT_TAG,
    SUBCAT_WORD,
    UP,
)
from hopefear.features.trees.tape import AT, close, put, start
from hopefear.features.trees.tree import NODES, functional, inner, label_above, punctuates


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


@inlined
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


@inlined
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


@inlined
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


@inlined
def _put_item(tree, tape, v, child, spelt):
    if child < 0:
        put(tape, OUTSIDE)
        return
    put(tape, tree.labels[child])
    if child == tree.heads[SYNTACTIC, v]:
        put(tape, HEAD)
    if spelt and functional(tree, child):
        put(tape, tree.words[child])


@inlined
def _put_side(tree, tape, v, first, last):
    """Where the head lies of children it is not one of; beyond the first is before it."""
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


@inlined
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

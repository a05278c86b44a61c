"""Bracketed trees: text into arrays and back, and what is no tree."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopefear.data.lists.trees import Symbols, TreeTextError, parse_trees, scan_texts
from hopefear.features.brackets import bracketed, take_trees, words_of

# Everything that is neither bracket nor white space may be in a label or a word.
NAMES = st.text(
    st.characters(codec="utf-8", exclude_characters="()\t\n\x0b\x0c\r "), min_size=1, max_size=4
)
NESTED = st.recursive(
    st.tuples(NAMES, NAMES),
    lambda inner: st.tuples(NAMES | st.just(""), st.lists(inner, min_size=1, max_size=4)),
    max_leaves=12,
)
BLANKS = st.sampled_from(["", " ", "\n", " \t "])


def spaced(tree, blank):
    """A tree with white space wherever it may be."""
    label, inside = tree
    if isinstance(inside, str):
        return f"{blank()}({blank()}{label} {blank()}{inside}{blank()})"
    children = "".join(spaced(child, blank) for child in inside)
    return f"{blank()}({blank()}{label}{children}{blank()})"


def plain(tree):
    label, inside = tree
    if isinstance(inside, str):
        return f"({label} {inside})"
    return f"({label} {' '.join(map(plain, inside))})"


def nodes_of(tree):
    """``[label, word, parent, next, begin, end]`` of each node, in preorder."""
    found = []

    def walk(node, parent, token):
        label, inside = node
        row = [label, None, parent, 0, token, token + 1]
        here = len(found)
        found.append(row)
        if isinstance(inside, str):
            row[1] = inside
        else:
            row[5] = token
            for child in inside:
                row[5] = walk(child, here, row[5])
        row[3] = len(found)
        return row[5]

    walk(tree, -1, 0)
    return found


@settings(max_examples=150, deadline=None)
@given(st.lists(NESTED, min_size=1, max_size=4), st.data())
def test_trees_come_back_as_they_were_whatever_the_white_space(nested, data):
    trees = parse_trees([spaced(tree, lambda: data.draw(BLANKS)) for tree in nested])
    assert [bracketed(trees, t) for t in range(len(trees))] == [plain(tree) for tree in nested]


@settings(max_examples=100, deadline=None)
@given(st.lists(NESTED, min_size=1, max_size=3))
def test_arrays_say_what_the_tree_is(nested):
    trees = parse_trees([plain(tree) for tree in nested])
    rows, names = trees.rows, trees.symbols
    expected = [nodes_of(tree) for tree in nested]
    assert np.diff(rows.starts).tolist() == [len(tree) for tree in expected]
    found = [
        [names[label], None if word < 0 else names[word], *rest]
        for label, word, *rest in zip(
            rows.labels, rows.words, rows.parents, rows.nexts, rows.begins, rows.ends, strict=True
        )
    ]
    assert found == [row for tree in expected for row in tree]
    assert all(not array.flags.writeable for array in rows)


@pytest.mark.parametrize(
    ("text", "expected", "character"),
    [
        ("", "begins with '('", 1),
        ("  S (NP it)", "begins with '('", 3),
        ("(S (NP (PRP it)) (VP (VBZ is))", "a ')' for every '('", 1),
        ("(S (NP (PRP it)) (VP (VBZ is)", "a ')' for every '('", 18),
        ("(S (NP é) (VP", "a ')' for every '('", 11),
        ("(S (NP it)) )", "nothing behind the tree", 13),
        ("(S (NP it)) (S (NP it))", "nothing behind the tree", 13),
        ("(S (NP it) (VP ))", "a word or a constituent", 12),
        ("(S (NP it) ())", "a word or a constituent", 12),
        ("(S (NP it is))", "one word", 11),
        ("(S it (NP is))", "not both", 7),
        ("(S (NP é) is)", "not both", 11),
        ("(S (NN \ud800))", "Unicode", 8),
    ],
)
def test_what_is_no_tree_is_told_with_its_place(text, expected, character):
    with pytest.raises(TreeTextError) as caught:
        parse_trees(["(A b)", text])
    assert expected in caught.value.expected
    assert (caught.value.tree, caught.value.character) == (1, character)
    assert f"tree 2: expected {caught.value.expected} (character {character}:" in str(caught.value)


def test_bad_trees_among_good_ones_leave_these_alone():
    trees, errors = scan_texts(["(A b)", "(A (B c)", "(A ())", "(C (D e) (F g))"], Symbols())
    assert [error.tree for error in errors] == [1, 2]
    assert np.diff(trees.rows.starts).tolist() == [1, 0, 0, 3]
    assert bracketed(trees, 3) == "(C (D e) (F g))"


def test_symbols_keep_their_numbers_from_block_to_block():
    symbols = Symbols()
    first = parse_trees(["(NP (NN dog))"], symbols)
    before = first.rows.labels.tolist(), first.rows.words.tolist()
    second = parse_trees(["(VP (VB go) (NP (NN dog)))"], symbols)
    assert first.symbols is second.symbols
    assert (before[0], second.rows.labels[2:].tolist()) == ([0, 1], [0, 1])
    assert second.rows.words[3] == before[1][1]
    assert (bracketed(first, 0), words_of(second, 0)) == ("(NP (NN dog))", ["go", "dog"])


def test_roots_without_label_and_brackets_as_words():
    trees = parse_trees(["( (S (-LRB- -LRB-) (NN x)))", "((S (NN x)))"])
    assert [trees.symbols[trees.rows.labels[t]] for t in trees.rows.starts[:2]] == ["", ""]
    assert words_of(trees, 0) == ["-LRB-", "x"]
    assert bracketed(trees, 1) == "( (S (NN x)))"


def test_deep_trees_need_no_stack():
    text = "(A " * 20_000 + "(B c)" + ")" * 20_000
    trees = parse_trees([text])
    assert trees.rows.parents[-1] == 19_999
    assert bracketed(trees, 0) == text


def test_some_trees_out_of_many():
    texts = ["(A b)", "(A (B c) (D e))", "(F (G h))"]
    some = take_trees(parse_trees(texts), np.array([0, 2]))
    assert [bracketed(some, t) for t in range(len(some))] == [texts[0], texts[2]]
    assert some.rows.starts.tolist() == [0, 1, 3]

"""Brackets counted as EVALB counts them, against plain Python and published counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from places import DATA

from hopefear.data.lists.files import read_lists
from hopefear.data.lists.trees import Symbols, parse_trees
from hopefear.errors import HopefearError
from hopefear.features.brackets import bracket_counts
from hopefear.metrics.parseval import Evalb, Parseval
from hopefear.metrics.significance import paired_bootstrap

pytestmark = pytest.mark.interpreted

PUNCTUATION = {",", ":", "``", "''", ".", "-NONE-"}
LABELS = st.sampled_from(["NP", "NP-SBJ", "VP", "ADVP", "PRT", "S", "S1", "TOP"])
TAGS = st.sampled_from(["NN", "VB", ",", ".", "``", "-NONE-"])


@st.composite
def labelled(draw, n):
    """A tree over n words as ``(label, [children])`` and ``(tag, word)``."""
    tags = [(draw(TAGS), f"w{k}") for k in range(n)]

    def tree(begin, end, depth):
        if end - begin == 1 and (depth > 2 or draw(st.booleans())):
            return tags[begin]
        if depth > 3:
            return (draw(LABELS), tags[begin:end])
        cuts = sorted(draw(st.sets(st.integers(begin + 1, end - 1)))) if end - begin > 1 else []
        spans = zip([begin, *cuts], [*cuts, end], strict=True)
        return (draw(LABELS), [tree(a, b, depth + 1) for a, b in spans])

    return ("S1", [tree(0, n, 0)])


PAIRS = st.integers(1, 6).flatmap(lambda n: st.tuples(labelled(n), labelled(n)))


def text_of(tree):
    label, inside = tree
    return f"({label} {inside if isinstance(inside, str) else ' '.join(map(text_of, inside))})"


def leaves(tree):
    inside = tree[1]
    return [tree] if isinstance(inside, str) else [leaf for t in inside for leaf in leaves(t)]


def brackets(tree, deleted):
    """Counter of ``(label, words covered)``; words are known by their numbers."""
    found = Counter()

    def walk(node):
        label, inside = node
        if isinstance(inside, str):
            return () if inside in deleted else (inside,)
        words = tuple(word for child in inside for word in walk(child))
        label = label.split("-")[0]
        if words and label not in ("S1", "TOP"):
            found[("ADVP" if label == "PRT" else label), words] += 1
        return words

    walk(tree)
    return found


def deleted_words(tree):
    return {word for tag, word in leaves(tree) if tag in PUNCTUATION}


def parsed(*trees, symbols=None):
    return parse_trees([text_of(tree) for tree in trees], symbols)


@settings(max_examples=200, deadline=None)
@given(st.lists(PAIRS, min_size=1, max_size=3), st.booleans())
def test_gold_tags_delete_from_both_trees(pairs, shared):
    symbols = Symbols() if shared else None
    gold, trees = (parsed(*part, symbols=symbols) for part in zip(*pairs, strict=True))
    wanted = []
    for ours, theirs in pairs:
        a, b = (brackets(tree, deleted_words(ours)) for tree in (ours, theirs))
        wanted.append([(a & b).total(), a.total(), b.total()])
    assert Parseval().statistics(gold, trees).tolist() == wanted


@settings(max_examples=200, deadline=None)
@given(st.lists(PAIRS, min_size=1, max_size=3))
def test_own_tags_as_the_official_scorer(pairs):
    gold, trees = (parsed(*part) for part in zip(*pairs, strict=True))
    rows = Evalb().statistics(gold, trees)
    for row, (ours, theirs) in zip(rows.tolist(), pairs, strict=True):
        left, right = (
            [leaf for leaf in leaves(tree) if leaf[0] not in PUNCTUATION] for tree in (ours, theirs)
        )
        if not right:
            assert row == [0] * 11 + [1]
            continue
        if [word for _, word in left] != [word for _, word in right]:
            assert row == [0] * 10 + [1, 0]
            continue
        a, b = brackets(ours, deleted_words(ours)), brackets(theirs, deleted_words(theirs))
        crossing = sum(
            n
            for (_, one), n in b.items()
            if any(
                set(one) & set(two) and set(one) - set(two) and set(two) - set(one) for _, two in a
            )
        )
        tags = sum(x[0] == y[0] for x, y in zip(left, right, strict=True))
        assert row == [
            (a & b).total(),
            a.total(),
            b.total(),
            a == b,
            crossing,
            crossing == 0,
            crossing <= 2,
            tags,
            len(left),
            1,
            0,
            0,
        ]


def test_labels_that_count_as_one_and_labels_that_count_not():
    gold = parse_trees(["(TOP (S (NP-SBJ-1 (NN a)) (PRT (RP b)) (NP (-NONE- *)) (VP (, ,))))"])
    test = parse_trees(["( (S (NP=2 (NN a)) (ADVP (RP b)) (X (-NONE- *)) (ADVP (, ,))))"])
    assert Parseval().total(gold, test).tolist() == [3, 3, 3]
    plain = parse_trees(["(ROOT (NN a) (RP b) (-NONE- *) (, ,))"])
    assert Parseval().total(plain, test).tolist() == [0, 0, 3]


def test_candidates_of_one_gold_tree():
    gold = parse_trees(["(S1 (NP (NN a)))", "(S1 (NP (NN a) (NN b)))"])
    trees = parse_trees(["(S1 (NP (NN a) (NN b)))", "(S1 (X (NP (NN a))))", "(S1 (VP (NN a)))"])
    assert bracket_counts(gold, trees, np.array([1, 0, 0])).tolist() == [
        [1, 1, 1],
        [1, 1, 2],
        [0, 1, 1],
    ]


def test_scores_of_sums_and_of_nothing():
    assert Parseval().scores(np.zeros(3, np.int64)) == {"f1": 0.0, "precision": 0.0, "recall": 0.0}
    many = Parseval().scores(np.array([[1, 2, 1], [0, 0, 0]]))
    assert many["f1"].tolist() == [pytest.approx(200 / 3), 0.0]
    assert Parseval().costs(np.array([[1, 2, 1], [0, 0, 0]])).tolist() == [pytest.approx(1 / 3), 0]
    rows = np.array([[1, 2, 1], [2, 2, 2]] * 10)
    test = paired_bootstrap(Parseval(), rows, rows[:, [0, 1, 1]], "f1", replicates=50)
    assert test.first > test.second


def test_scores_that_the_official_scorer_prints():
    gold = parse_trees(["(S (A (B b) (C c)) (D d))", "(S (, x))", "(S (A (B b)))"])
    test = parse_trees(["(S (B b) (A (C c) (E d)))", "(S (, x))", "(S (A (, b)) (C c))"])
    metric = Evalb()
    scores = metric.scores(metric.total(gold, test))
    assert scores["f1"] == 50.0
    assert (scores["sentences"], scores["errors"]) == (1, 1)
    assert (scores["crossing"], scores["no_crossing"], scores["exact"]) == (1.0, 0.0, 0.0)
    assert scores["two_or_less_crossing"] == 100.0
    assert scores["tag_accuracy"] == pytest.approx(200 / 3)
    assert "tags:own" in metric.signature


def test_trees_that_do_not_pair_up_are_refused():
    one, two = parse_trees(["(S (A b))"]), parse_trees(["(S (A b) (A c))", "(S (A b))"])
    with pytest.raises(HopefearError, match="tree 1 has 2 words, its gold tree 1"):
        bracket_counts(one, two, np.array([0, 0]))
    with pytest.raises(HopefearError, match="2 trees and 1 gold trees"):
        Parseval().statistics(one, two)
    with pytest.raises(HopefearError, match="out of 1"):
        bracket_counts(one, two, np.array([0, 1]))


@pytest.mark.compiled
def test_counts_of_real_lists_are_reproduced():
    path = DATA / "ptb-nbest" / "dev.jsonl.xz"
    if not path.exists():
        pytest.skip(f"no lists at {path}; set HOPEFEAR_DATA to a folder that holds ptb-nbest")
    given = list(read_lists(path))
    counted = list(read_lists(path, recount=True))
    assert sum(map(len, given)) == 409
    for one, two in zip(given, counted, strict=True):
        assert np.array_equal(one.counts, two.counts)
    firsts = sum(lists.counts[lists.starts[:-1]].sum(axis=0) for lists in counted)
    assert round(Parseval().scores(firsts)["f1"], 2) == 84.49

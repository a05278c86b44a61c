"""What people hand to a tagger: read as documented, or refused with its place."""

from __future__ import annotations

import numpy as np
import pytest

from hopefear.data.sequences import Sentences
from hopefear.data.token_input import TokenInput, read_allowed, read_labels
from hopefear.errors import HopefearError
from hopefear.features.attributes import AttributeRows

pytestmark = pytest.mark.interpreted

PAIR = ("word", "pos")


def read(X, columns=None, features="auto"):
    return TokenInput.of(X, columns, features).read(X)


@pytest.mark.parametrize(
    ("X", "columns", "features", "expected"),
    [
        ([["a", "b"], ["c"]], None, "auto", ("word",)),
        ([["a", "b"]], None, "pos", ("word",)),
        ([["a"]], "form", "auto", ("form",)),
        ([[("a", "D")]], PAIR, "auto", PAIR),
        ([[["a", "D"]]], PAIR, "chunking", PAIR),
        ([[{"word": "a", "pos": "D"}]], None, "chunking", PAIR),
        ([[{"pos": "D", "word": "a", "more": "x"}]], PAIR, "auto", PAIR),
        ([[("a", "D")]], None, "auto", PAIR),
        ([[("a", "D")]], None, "attributes", ()),
        ([[("w=a", "D")]], None, "auto", ()),
        ([[{"word": "a"}]], None, "auto", ()),
        ([[{"word": "a"}]], None, "attributes", ()),
        ([], None, "auto", ("word",)),
    ],
)
def test_what_tokens_mean(X, columns, features, expected):
    reader = TokenInput.of(X, columns, features)
    assert reader.columns == expected
    content = reader.read(X).content
    assert isinstance(content, Sentences if expected else AttributeRows)


def test_columns_are_taken_apart():
    rows = [[("a", "D"), ("b", "N")], [], [("a", "N")]]
    forms = [
        rows,
        [[list(t) for t in s] for s in rows],
        [[dict(zip(PAIR, t, strict=True)) for t in s] for s in rows],
    ]
    for X in forms:
        tokens = TokenInput(PAIR).read(X)
        assert tokens.starts.tolist() == [0, 2, 2, 3]
        assert tokens.content.columns["word"].texts() == ["a", "b", "a"]
        assert tokens.content.columns["pos"].texts() == ["D", "N", "N"]
    arrays = TokenInput(("word",)).read(np.array([["a", "b"], ["b", "c"]]))
    assert arrays.content.columns["word"].texts() == ["a", "b", "b", "c"]
    assert TokenInput(PAIR).read([[], []]).content.columns["pos"].texts() == []


@pytest.mark.parametrize(
    ("X", "columns", "features", "message"),
    [
        ("text", None, "auto", "expected a list of lists of tokens, not 'text'"),
        (7, None, "auto", "expected a list of lists of tokens, not 7"),
        (["one", "two"], None, "auto", "sequence 0: expected a list of tokens, not 'one'"),
        ([["a"], {"w": 1}], None, "auto", "sequence 1: expected a list of tokens"),
        ([["a"], ["b", 3]], None, "auto", "sequence 1, token 1: expected a word in the form"),
        ([["a"], ["b", None]], None, "auto", "sequence 1, token 1: expected a word"),
        ([[("a", "D")], [("b", "N"), ("c",)]], PAIR, "auto", "sequence 1, token 1: expected the"),
        ([["a"]], PAIR, "auto", "sequence 0, token 0: expected the columns word, pos, not 'a'"),
        ([[("a", "D"), ["b", "N"], "c"]], PAIR, "auto", "sequence 0, token 1"),
        ([[("a", 1)]], PAIR, "auto", "sequence 0, token 0: the column 'pos' holds strings, not 1"),
        ([[{"word": "a"}]], PAIR, "auto", "sequence 0, token 0: expected the columns word, pos"),
        ([["a", "\ud800"]], None, "auto", "sequence 0, token 1: .* no Unicode text"),
        ([[["a", "D"]]], None, "chunking", "do not name them; say columns="),
        ([["a"]], None, "attributes", "needs tokens that are dicts or lists of strings"),
        ([[["a"]]], PAIR, "attributes", "exclude each other"),
        ([["a"]], (), "auto", "columns are names"),
        ([["a"]], (1, 2), "auto", "columns are names"),
        ([["a"]], ("word", "word"), "auto", "have one name"),
        ([[["w=a"]], ["b"]], None, "auto", "sequence 1, token 0: a token is a dict or a list"),
        ([[{"w": float("nan")}]], None, "auto", "sequence 0, token 0: .* needs a finite number"),
    ],
)
def test_odd_tokens_are_refused_with_their_place(X, columns, features, message):
    with pytest.raises(HopefearError, match=message):
        read(X, columns, features)


def test_labels_keep_their_kind():
    starts = np.array([0, 2, 3])
    names, labels = read_labels([["B", "A"], ["B"]], starts)
    assert (names.texts(), labels) == (["B", "A", "B"], ["B", "A"])
    names, labels = read_labels([[5, -1], [5]], starts)
    assert (names.texts(), labels) == (["5", "-1", "5"], [5, -1])
    names, labels = read_labels(np.array([[1, 2], [2, 1]]), np.array([0, 2, 4]))
    assert (names.texts(), labels) == (["1", "2", "2", "1"], [1, 2])
    names, labels = read_labels([np.array(["x", "y"]), ["x"]], starts)
    assert all(type(label) is str for label in labels)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([["A", "B"]], "2 sequences of tokens, but 1 of labels"),
        ([["A"], ["B"]], "sequence 0: 2 tokens, but 1 labels"),
        ([["A", 1], ["B"]], "sequence 0, token 1: labels are all strings or all whole numbers"),
        ([[1, 2], ["B"]], "sequence 1, token 0: .* so 'B' cannot be one"),
        ([[1, 2.5], [3]], "sequence 0, token 1: .* so 2.5"),
        ([["A", None], ["B"]], "sequence 0, token 1: .* so None"),
        ([[True, False], [True]], "so True cannot be one"),
        ([["A", "\udcff"], ["B"]], "sequence 0, token 1: the label holds"),
        (["AB", "C"], "sequence 0: expected a list of labels, not 'AB'"),
    ],
)
def test_odd_labels_are_refused_with_their_place(y, message):
    with pytest.raises(HopefearError, match=message):
        read_labels(y, np.array([0, 2, 3]))


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        ([None], "2 sequences of tokens, but 1 of allowed labels"),
        ([[None], None], "sequence 0: 2 tokens, but 1 allowed labels"),
        ([[None, []], None], r"sequence 0, token 1: allowed labels \(none\)"),
        ([[None, ["X"]], None], "sequence 0, token 1: allowed labels 'X', but the labels are A, B"),
        ("AB", "a list with an entry a sequence"),
    ],
)
def test_odd_permissions_are_refused_with_their_place(allowed, message):
    with pytest.raises(HopefearError, match=message):
        read_allowed(allowed, np.array([0, 2, 3]), {"A": "A", "B": "B"})


def test_permissions_come_in_the_order_of_the_labels():
    known = {1: "1", 2: "2", 3: "3"}
    found = read_allowed([[{3, 1}, 2], [None]], np.array([0, 2, 3]), known)
    assert found == [[["1", "3"], ["2"]], [None]]

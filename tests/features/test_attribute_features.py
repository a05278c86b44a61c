"""Attributes by name: python-crfsuite's conventions, against a plain dict of strings."""

from __future__ import annotations

import json
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hopefear.core import hashing
from hopefear.core.arrays import Strings
from hopefear.core.hashing import StringTable
from hopefear.errors import HopefearError, ModelError
from hopefear.features.attributes import AttributeFeatures, AttributeRows

pytestmark = pytest.mark.interpreted


def named(rows: AttributeRows) -> list[list[tuple[str, float]]]:
    """Name and value of all attributes, token by token."""
    values = rows.values if rows.values.size else np.ones(len(rows.ids), np.float32)
    return [
        [(rows.strings.get(rows.ids[e]), float(values[e])) for e in range(a, b)]
        for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    ]


@pytest.mark.parametrize(
    ("token", "attributes"),
    [
        (["a", "b:c", ""], [("a", 1), ("b:c", 1), ("", 1)]),
        (("a", "a"), [("a", 1), ("a", 1)]),
        ([], []),
        ({}, []),
        ({"w": "dog"}, [("w:dog", 1)]),
        ({"w": ""}, [("w:", 1)]),
        ({"title": True, "digit": False, "n": 0}, [("title", 1)]),
        ({"n": 3, "p": 0.25, "f": Fraction(1, 2)}, [("n", 3), ("p", 0.25), ("f", 0.5)]),
        ({"n": np.float64(2), "b": np.bool_(True)}, [("n", 2), ("b", 1)]),
        ({"a": {"b": {"c": "d"}, "e": 2}}, [("a:b:c:d", 1), ("a:e", 2)]),
        ({"a": ["y", "x"], "b": ("z",)}, [("a:y", 1), ("a:x", 1), ("b:z", 1)]),
        ({"a": {"z", "y", "x", "w"}}, [("a:w", 1), ("a:x", 1), ("a:y", 1), ("a:z", 1)]),
        (frozenset({"z", "y", "x", "w"}), [("w", 1), ("x", 1), ("y", 1), ("z", 1)]),
        ({"a": frozenset({"x"})}, [("a:x", 1)]),
        ({"été": "ß\0\n"}, [("été:ß\0\n", 1)]),
        ({b"a": "\xe9".encode(), "b": {b"c"}}, [("a:é", 1), ("b:c", 1)]),
        ({"b": 0, "a": {}}.keys(), [("b", 1), ("a", 1)]),
        ([b"b", "a"], [("b", 1), ("a", 1)]),
    ],
)  # fmt: skip
def test_what_a_token_may_be(token, attributes: list) -> None:
    for sequences in ([[token]], [[{"other": {"x": 1}}], [token]]):
        assert named(AttributeRows.of(sequences))[-1] == attributes


def test_sequences_and_mixed_tokens() -> None:
    rows = AttributeRows.of([[["a"], {"a": True}], [], ({"b": 2},)])
    assert rows.starts.tolist() == [0, 2, 2, 3]
    assert named(rows) == [[("a", 1.0)], [("a", 1.0)], [("b", 2.0)]]
    assert AttributeRows.of([]).starts.tolist() == [0]
    assert named(AttributeRows.of(s for s in [[["a"]]])) == [[("a", 1.0)]]
    assert AttributeRows.of([[["a"]]]).values.size == 0


@pytest.mark.parametrize(
    ("sequences", "message"),
    [
        ([[["a"]], [["b"], {"x": math.nan}]], "sequence 1, token 1: the attribute 'x' needs a fin"),
        ([[{"x": -math.inf}]], "sequence 0, token 0: the attribute 'x' needs a finite number"),
        ([[{"x": 1e39}]], "needs a finite number within float32, not 1e"),
        ([[{"a": {"b": math.nan}}]], "sequence 0, token 0: the attribute 'a:b' needs a finite"),
        ([[{"a": "x"}], [{"a": "x"}, {"a": None}]], "sequence 1, token 1: the attribute 'a' needs"),
        ([[["a"], ["b", 3]]], "sequence 0, token 1: names of attributes are strings, not 3"),
        ([[["a"], [["b"]]]], "sequence 0, token 1: names of attributes are strings"),
        ([[{3: "a"}]], "sequence 0, token 0: names of attributes are strings, not 3"),
        ([[{"a": {3: "a"}}]], "sequence 0, token 0: names of attributes are strings, not 3"),
        ([[["a\ud800"]]], "sequence 0, token 0: the attribute .* is no Unicode text"),
        ([[{"a": "\ud800"}]], "sequence 0, token 0: the attribute .* is no Unicode text"),
        ([[["a"], [b"\xff"]]], "sequence 0, token 1: the attribute .* is no UTF-8 text"),
        ([[{"a": np.array([1.0])}]], "sequence 0, token 0: names of attributes are strings"),
        ([["word"]], "sequence 0, token 0: a token is a dict or a list of strings, not 'word'"),
        ([[["a"], 3]], "sequence 0, token 1: a token is a dict or a list of strings, not 3"),
        (["word"], "sequence 0: expected a list of tokens, not 'word'"),
        ([{"a": 1}], "sequence 0: expected a list of tokens"),
        ([3], "sequence 0: expected a list of tokens, not 3"),
        ("text", "expected a list of lists of tokens"),
    ],
)
def test_refusals_name_the_place(sequences, message: str) -> None:
    with pytest.raises(HopefearError, match=message):
        AttributeRows.of(sequences)


NAMES = st.sampled_from(["a", "b", "ab", "ä", "w[0]=the", "w[0]=the longer one", "", "\0", "a\0b"])
SEQUENCES = st.lists(st.lists(st.lists(NAMES, max_size=6), max_size=4), max_size=5)


@settings(max_examples=80, deadline=None)
@given(SEQUENCES, SEQUENCES, st.integers(1, 3))
def test_equals_a_plain_dict(train: list, new: list, cut: int) -> None:
    counts = Counter(name for s in train for token in s for name in token)
    columns = {name: j for j, name in enumerate(n for n, c in counts.items() if c >= cut)}
    features = AttributeFeatures.fit(AttributeRows.of(train), min_count=cut)
    assert features.names(range(features.size)) == list(columns)
    for data in (train, new):
        found = features.encode(AttributeRows.of(data))
        tokens = [Counter(columns[n] for n in t if n in columns) for s in data for t in s]
        assert np.diff(found.indptr).tolist() == [len(t) for t in tokens]
        assert found.indices.tolist() == [j for t in tokens for j in t]
        values = found.values if found.values.size else np.ones(len(found.indices))
        assert values.tolist() == [c for t in tokens for c in t.values()]
        assert (found.edge_indptr.tolist(), found.edge_indices.size, found.edge_values.size) == (
            [0],
            0,
            0,
        )
        kinds = [a.dtype.str[1:] for a in found]
        assert kinds == ["i8", "i4", "f4", "i8", "i4", "f4"]


def test_an_attribute_of_nothing_gets_no_column() -> None:
    rows = AttributeRows.of([[{"never": 0, "once": 2}, {"often": True}, {"often": False}]])
    features = AttributeFeatures.fit(rows)
    assert features.names(range(features.size)) == ["once", "often"]
    assert np.diff(features.encode(rows).indptr).tolist() == [1, 1, 0]


def test_exact_rows_keep_zeros_and_float64() -> None:
    token = {"a": 0.1, "b": 0, "c": False, "d": 1e-60}
    rows = AttributeRows.of([[token]], exact=True)
    assert named(rows) == [[("a", 0.1), ("b", 0.0), ("c", 0.0), ("d", 1e-60)]]
    assert named(rows.nonzero()) == named(AttributeRows.of([[token]])) == [[("a", np.float32(0.1))]]
    assert AttributeRows.of([[["a"], {"b": 1}]], exact=True).values.size == 0


def test_repeated_values_are_summed_and_stay_finite() -> None:
    rows = AttributeRows.of([[{"a": 1.5, "b": {"c": 1}}, {"b:c": 2, "b": ["c"]}]])
    features = AttributeFeatures.fit(rows)
    found = features.encode(rows)
    assert (found.indices.tolist(), found.values.tolist()) == ([0, 1, 1], [1.5, 1.0, 3.0])
    large = AttributeRows.of([[{"a:b": 3e38, "a": {"b": 3e38}}]])
    with pytest.raises(HopefearError, match="sequence 0, token 0: the values of 'a:b' add up"):
        AttributeFeatures.fit(large).encode(large)


def test_parts_round_trip_and_forgeries() -> None:
    rows = AttributeRows.of([[["ä", "b", ""], ["b"]]])
    features = AttributeFeatures.fit(rows)
    header, arrays = json.loads(json.dumps(features.to_header())), features.arrays()
    assert header == {"kind": "attributes", "size": 3}
    back = AttributeFeatures.from_parts(header, arrays)
    assert back.names(range(3)) == ["ä", "b", ""]
    assert back.encode(rows).indices.tolist() == [0, 1, 2, 1]
    assert (back.size, back.edge_size) == (3, 0)
    twice = Strings.pack(["a", "b", "a"]).arrays("names")
    for wrong_header, wrong_arrays, message in [
        ({**header, "size": 4}, arrays, "says 4 attributes, the table has 3"),
        ({**header, "size": -1}, arrays, "size to be a whole number"),
        (header, {**arrays, "x": arrays["names_text"]}, "unexpected array"),
        (header, {"names_text": arrays["names_text"]}, "is missing"),
        (header, twice, "an attribute has two columns"),
        (header, {**arrays, "names_offsets": arrays["names_offsets"][::-1].copy()}, "do not span"),
    ]:
        with pytest.raises(ModelError, match=message):
            AttributeFeatures.from_parts(wrong_header, wrong_arrays)


def test_columns_that_do_not_exist() -> None:
    features = AttributeFeatures.fit(AttributeRows.of([[["a"]]]))
    with pytest.raises(HopefearError, match="column 1 does not exist"):
        features.name(1)
    with pytest.raises(HopefearError, match="no edges"):
        features.edge_name(0)
    with pytest.raises(HopefearError, match="min_count must be at least 1"):
        AttributeFeatures.fit(AttributeRows.of([[["a"]]]), min_count=0)


def test_the_table_grows_across_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "_BATCH", 7)
    words = [f"word number {i * i % 53}" + "x" * (i % 20) for i in range(300)]
    table = StringTable(1)
    numbers = table.intern(iter(words))
    first = {word: i for i, word in enumerate(dict.fromkeys(words))}
    assert numbers.tolist() == [first[word] for word in words]
    assert [table.strings().get(i) for i in range(table.size)] == list(first)
    assert table.find(Strings.pack([words[3], "absent"])).tolist() == [first[words[3]], -1]
    text = np.frombuffer("|".join(words).encode(), np.uint8)
    ends = np.append(np.flatnonzero(text == ord("|")), len(text))
    begins = np.concatenate([[0], ends[:-1] + 1])
    assert StringTable(1).intern_spans(text, begins, ends).tolist() == numbers.tolist()
    every = StringTable(1).intern_spans(text, begins, ends, 2, 3)
    assert every.tolist() == StringTable(1).intern(words[2::3]).tolist()


@given(st.lists(st.text("aé\ud800€", max_size=3), max_size=5))
def test_packed_strings_come_back(strings: list[str]) -> None:
    packed = Strings.pack(strings)
    wanted = [s.encode("utf-8", "replace").decode() for s in strings]
    assert packed.texts() == [packed.get(i) for i in range(packed.size)] == wanted

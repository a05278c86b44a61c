"""Tokens as numbers: what is known, what is not, and what model files hold of it."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from hopefear.data.sequences import Column, Sentences
from hopefear.errors import HopefearError, ModelError
from hopefear.features.parts import token_features_from_parts
from hopefear.features.token_ids import LONGEST, TokenIds, TokenIdSettings, shape_of

pytestmark = pytest.mark.interpreted


def text_of(words, pos=None, **more):
    columns = {"word": Column.of(words)}
    if pos is not None:
        columns["pos"] = Column.of(pos)
    columns |= {name: Column.of(texts) for name, texts in more.items()}
    return Sentences(np.array([0, len(words)]), columns)


def rows_of(features, attributes):
    ends = attributes.indptr
    return [
        [features.name(k) for k in attributes.indices[a:b].tolist()]
        for a, b in pairwise(ends.tolist())
    ]


def test_a_row_has_word_shape_columns_and_characters():
    features, attributes = TokenIdSettings().fit_encode(text_of(["The", "cat"], ["DT", "NN"]))
    assert rows_of(features, attributes)[0] == [
        *("word=the", "shape=Xxx", "pos=DT"),
        *("character=T", "character=h", "character=e"),
    ]
    assert features.slots == ("word", "shape", "pos") and features.needs == ("word", "pos")


def test_what_training_has_not_seen_is_unknown():
    features, _ = TokenIdSettings().fit_encode(text_of(["cat"], ["NN"]))
    (row,) = rows_of(features, features.encode(text_of(["CAB"], ["VB"])))
    unknown = [f"{name}=(unknown)" for name in ("word", "shape", "pos", "character")]
    assert row == [*unknown, "character=(unknown)", "character=(unknown)"]


def test_long_words_keep_their_ends():
    word = "a" * 20 + "b" * 80
    features, attributes = TokenIdSettings().fit_encode(text_of([word]))
    (row,) = rows_of(features, attributes)
    assert row[2:] == ["character=a"] * (LONGEST // 2) + ["character=b"] * (LONGEST // 2)


def test_rare_words_may_be_left_out():
    features, _ = TokenIdSettings().fit_encode(text_of(["a", "a", "b"]), min_count=2)
    assert features.tables["word"] == ["a"] and features.n_frequent == 1


def test_a_map_comes_back_from_its_parts():
    text = text_of(["The", "cat", "É"], ["DT", "NN", "NN"])
    features, attributes = TokenIdSettings(templates="pos").fit_encode(text)
    again = token_features_from_parts(features.to_header(), features.arrays())
    assert isinstance(again, TokenIds) and again.families == features.families
    for one, other in zip(attributes, again.encode(text), strict=True):
        assert np.array_equal(one, other)
    assert rows_of(again, attributes) == rows_of(features, attributes)
    assert again.known_words >= {"the", "The", "THE"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"columns": []}, "missing"),
        ({"columns": ["word", "shape"]}, "twice"),
        ({"columns": "word"}, "list of names"),
        ({"lower": 1}, "missing"),
        ({"seen": 99}, "seen"),
        ({"kind": "other"}, "kind"),
    ],
)
def test_parts_are_not_trusted(change, message):
    features, _ = TokenIdSettings().fit_encode(text_of(["cat"], ["NN"]))
    with pytest.raises(ModelError, match=message):
        token_features_from_parts({**features.to_header(), **change}, features.arrays())


def test_arrays_are_not_trusted():
    features, _ = TokenIdSettings().fit_encode(text_of(["cat", "cat"]))
    arrays = features.arrays()
    with pytest.raises(ModelError, match="unexpected"):
        token_features_from_parts(features.to_header(), {**arrays, "more": np.zeros(1)})
    with pytest.raises(ModelError, match="does not name"):
        token_features_from_parts(features.to_header(), {**arrays, "sparse.x": np.zeros(1)})


@pytest.mark.parametrize(
    ("columns", "message"),
    [(("word", "lemma"), "has no column 'lemma'"), (("word", "shape"), "called shape")],
)
def test_columns_that_cannot_be_read_are_named(columns, message):
    with pytest.raises(HopefearError, match=message):
        TokenIdSettings(columns).fit_encode(text_of(["cat"], shape=["x"]))


def test_shapes_are_short():
    assert shape_of("McDonald's") == "XxXxx'x"
    assert shape_of("") == ""

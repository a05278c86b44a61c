"""Features of segments: their names, what fires where, and what a model file holds."""

from __future__ import annotations

import json

import numpy as np
import pytest

from hopefear.data.schemes import spans
from hopefear.data.segments import SegmentDataset, SegmentRows, segment_codes, shorten_spans
from hopefear.data.sequences import Column, Sentences
from hopefear.errors import HopefearError, ModelError
from hopefear.features.parts import token_features_from_parts
from hopefear.features.segments import SegmentFeatures
from hopefear.features.templates.loading import parse_toml

pytestmark = pytest.mark.interpreted

WORDS = ["in", "New", "York", "and", "York", "New", "York", "City"]
TAGS = ["O", "B-L", "I-L", "O", "B-L", "B-L", "I-L", "I-L"]
TEMPLATES = """
[lexicons]
places = "places"
[[templates]]
features = ["word[0]", "lexicon(places, lower(word))[0]"]
optional = true
[[templates]]
edges = true
features = ["word[0]"]
"""


def text_of(words=WORDS * 2, tags=TAGS * 2, starts=(0, 4, 8, 12, 16)):
    columns = {"word": Column.of(words), "label": Column.of(tags)}
    return Sentences(np.array(starts), columns)


def fitted(longest=3, **options):
    text = text_of()
    templates = parse_toml(TEMPLATES, "memory", lambda name, path: ("new york", "york city"))
    found = spans(text.columns["label"], text.starts, "bio")
    return SegmentFeatures.fit_encode(
        templates, text, (found.first, found.after), longest, **options
    )


def names_at(features, attributes, token, size):
    segment = token * features.longest + size - 1
    first, last = attributes.span_indptr[segment : segment + 2]
    return features.names(attributes.span_indices[first:last])


def test_what_fires_on_segments():
    features, attributes = fitted()
    assert names_at(features, attributes, 1, 2) == [
        *("length=2", "words=new york", "shape=Xx Xx", "last=york", "lexicon=places")
    ]
    assert names_at(features, attributes, 4, 1) == [
        *("length=1", "words=york", "shape=Xx", "last=york")
    ]
    assert names_at(features, attributes, 0, 1) == ["length=1"]  # no span begins or ends so
    assert names_at(features, attributes, 6, 2) == [
        *("length=2", "shape=Xx Xx", "last=city", "lexicon=places")
    ]
    assert names_at(features, attributes, 3, 2) == []  # this leaves its sentence
    assert features.name(0).startswith("word[0]=")
    assert features.edge_size == 0


def test_min_count_and_names():
    features, _ = fitted(min_count=3)
    names = features.names(range(features.size))
    assert [name for name in names if name.startswith(("words", "shape", "last"))] == ["last=york"]
    assert fitted(keep_names=False)[0].name(features.size - 1).startswith("#")


def test_other_text_is_encoded_alike():
    features, attributes = fitted()
    again = features.encode(text_of())
    for one, other in zip(attributes, again, strict=True):
        np.testing.assert_array_equal(one, other)
    other = features.encode(text_of(["NEW", "York", "!"], ["O"] * 3, (0, 3)))
    assert names_at(features, other, 0, 2)[1:] == ["words=new york", "last=york", "lexicon=places"]


def test_chunks_change_nothing(monkeypatch):
    features, attributes = fitted()
    monkeypatch.setattr("hopefear.features.segments._CHUNK", 3)
    again, pieces = fitted()
    assert again.names(range(again.size)) == features.names(range(features.size))
    for one, other in zip(attributes, pieces, strict=True):
        np.testing.assert_array_equal(one, other)


def test_parts_of_a_model_file():
    features, attributes = fitted()
    header = json.loads(json.dumps(features.to_header()))
    loaded = token_features_from_parts(header, features.arrays())
    assert loaded.names(range(loaded.size)) == features.names(range(features.size))
    for one, other in zip(attributes, loaded.encode(text_of()), strict=True):
        np.testing.assert_array_equal(one, other)
    arrays = features.arrays()
    for broken, reason in (
        ({"segments": 3}, "different keys"),
        ({"longest": 0}, "longest"),
        ({"column": 3}, "column of words"),
        ({"tokens": {"kind": "identity"}}, "over templates"),
    ):
        with pytest.raises(ModelError, match=reason):
            SegmentFeatures.from_parts({**header, **broken}, arrays)
    with pytest.raises(ModelError, match="different keys"):
        SegmentFeatures.from_parts(
            header, {**arrays, "segment_keys": arrays["segment_keys"] * np.uint64(0)}
        )


def test_lengths_are_checked():
    with pytest.raises(HopefearError, match="1 to 1000 tokens, not 0"):
        fitted(longest=0)


# --- data ---------------------------------------------------------------------------------------


def dataset():
    features, _ = fitted()
    attributes = features.encode(text_of(WORDS, TAGS, (0, 4, 8)))
    labels = ("O", "B-L", "I-L")
    codes = [labels.index(tag) for tag in TAGS]
    rows = SegmentRows(np.array([0, 4, 8]), *attributes, codes, np.ones(2))
    return SegmentDataset(rows, labels, features)


def test_some_of_the_sequences():
    data = dataset()
    second = data.take([1])
    assert len(second) == 1 and second.n_tokens == 4
    assert second.rows.labels.tolist() == data.rows.labels[4:].tolist()
    for s in range(12):
        here, there = (
            one.rows.span_indices[one.rows.span_indptr[k] : one.rows.span_indptr[k + 1]].tolist()
            for one, k in ((second, s), (data, 12 + s))
        )
        assert here == there
    assert data.take([0, 1]).digest == data.digest != second.digest
    assert data.weighted([1.0, 2.0]).rows.weights.tolist() == [1.0, 2.0]
    parts = data.spans(1, 2)
    assert parts["span_indptr"] == (12, 24) and parts["labels"] == (4, 8)


def test_rows_that_lead_out_of_their_arrays_are_refused():
    data = dataset()
    for broken, reason in (
        ({"span_indptr": data.rows.span_indptr[:-1]}, "span_indptr"),
        ({"span_indices": data.rows.span_indices + np.int32(10_000)}, "span_indices"),
        ({"labels": data.rows.labels + np.int32(3)}, "labels"),
        ({"values": np.ones(1)}, "values"),
    ):
        with pytest.raises(HopefearError, match=reason):
            SegmentDataset(data.rows._replace(**broken), data.labels, data.features)
    with pytest.raises(HopefearError, match="need as many weights"):
        data.weighted([1.0])


def test_long_spans_are_cut():
    column = Column.of(["O", "B-x", "I-x", "I-x", "I-x", "I-x", "B-x", "I-x", "B-y"])
    short = shorten_spans(column, 2)
    assert short.labels.texts() == [*("O", "B-x", "I-x", "B-x", "I-x", "B-x", "B-x", "I-x", "B-y")]
    assert short.n_cut == 1
    assert shorten_spans(column, 5) == (column, 0)


@pytest.mark.parametrize("labels", [["O", "I-x"], ["N", "V"], ["O", "B-x", "E-x"]])
def test_labels_that_begin_no_segment_are_refused(labels):
    with pytest.raises(HopefearError, match="BIO labels that begin with B-"):
        segment_codes(labels)

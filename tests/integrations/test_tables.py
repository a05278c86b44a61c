"""Tables of other libraries as input, each where it is installed."""

from __future__ import annotations

import pandas
import pytest

from hopefear import Classifier, HopefearError, Tagger

pytestmark = pytest.mark.interpreted
TEXTS = {
    "text": ["good fun", "no fun", "so good", "so bad"],
    "label": ["pos", "neg", "pos", "neg"],
    "stars": [5, 1, 4, 1],
}
TOKENS = {
    "tokens": [["Ann", "sings"], ["Bo", "Lee", "sings"]],
    "tags": [["B-P", "O"], ["B-P", "I-P", "O"]],
}


@pytest.mark.needs("integrations")
def polars_frame(columns):
    import polars

    return polars.DataFrame(columns)


@pytest.mark.needs("integrations")
def arrow_table(columns):
    import pyarrow

    return pyarrow.table(columns)


@pytest.mark.needs("integrations")
def dataset(columns):
    import datasets

    return datasets.Dataset.from_dict(columns)


OTHERS = (polars_frame, arrow_table, dataset)
TABLES = [pandas.DataFrame, *(pytest.param(table, marks=table.pytestmark) for table in OTHERS)]


@pytest.mark.parametrize("table", TABLES)
def test_texts_and_labels(table):
    frame = table(TEXTS)
    plain = Classifier("perceptron").fit(TEXTS["text"], TEXTS["label"])
    model = Classifier("perceptron").fit(frame, X_val=frame)
    assert model.predict(frame).tolist() == plain.predict(TEXTS["text"]).tolist()
    assert model.predict_proba(frame).shape == (4, 2)
    assert Classifier("perceptron").fit(frame, "stars").classes_.tolist() == [1, 4, 5]
    assert Classifier("perceptron").fit(frame, TEXTS["label"]).classes_.tolist() == ["neg", "pos"]
    with pytest.raises(HopefearError, match="no column 'mood'; it has text, label, stars"):
        Classifier("perceptron").fit(frame, "mood")


@pytest.mark.parametrize("table", TABLES)
def test_tokens_and_tags(table):
    frame = table(TOKENS)
    tagger = Tagger("perceptron").fit(frame, X_val=frame)
    plain = Tagger("perceptron").fit(TOKENS["tokens"], TOKENS["tags"])
    assert tagger.predict(frame) == plain.predict(TOKENS["tokens"])
    assert tagger.score(frame) == tagger.score(TOKENS["tokens"], TOKENS["tags"])


@pytest.mark.needs("integrations")
def test_named_classes_of_datasets_are_names():
    import datasets

    names = ["O", "B-P", "I-P"]
    lists = getattr(datasets, "List", datasets.Sequence)
    tags = [[names.index(tag) for tag in row] for row in TOKENS["tags"]]
    features = datasets.Features(
        tokens=lists(datasets.Value("string")), ner_tags=lists(datasets.ClassLabel(names=names))
    )
    columns = {"tokens": TOKENS["tokens"], "ner_tags": tags}
    data = datasets.Dataset.from_dict(columns, features=features)
    assert set(Tagger("perceptron").fit(data, "ner_tags").classes_) == set(names)
    kinds = datasets.ClassLabel(names=["neg", "pos"])
    features = datasets.Features(text=datasets.Value("string"), label=kinds)
    columns = {"text": TEXTS["text"], "label": [1, 0, 1, 0]}
    data = datasets.Dataset.from_dict(columns, features=features)
    assert Classifier("perceptron").fit(data).classes_.tolist() == ["neg", "pos"]
    with pytest.raises(HopefearError, match=r"several splits: give one of them, .*'train'"):
        Classifier().fit(datasets.DatasetDict(train=data))


def test_numbers_in_tables_stay_what_they_were():
    frame = pandas.DataFrame({"a": [1.0, 0.0], "b": [0.0, 1.0]})
    model = Classifier("perceptron").fit(frame, ["x", "y"])
    assert model.feature_names_in_.tolist() == ["a", "b"]
    with pytest.raises(ValueError, match="need labels"):
        Tagger("perceptron").fit([["a"]])


@pytest.mark.parametrize("empty", [None, float("nan")])
def test_rows_without_a_label_are_refused(empty):
    table = pandas.DataFrame({**TEXTS, "label": ["pos", empty, "pos", "neg"]})
    with pytest.raises(ValueError, match="row 1 of the table has no label in its column 'label'"):
        Classifier("perceptron").fit(table)


def test_a_table_of_numbers_is_a_matrix_whatever_its_columns_are_called():
    table = pandas.DataFrame({"text": [1.0, 2.0, 3.0, 4.0], "b": [1.0, 0.0, 1.0, 0.0]})
    model = Classifier("perceptron").fit(table, ["a", "a", "b", "b"])
    assert model.feature_names_in_.tolist() == ["text", "b"]


def test_classifiers_score_tables_and_say_what_they_lack():
    table = pandas.DataFrame(TEXTS)
    model = Classifier("perceptron").fit(table)
    assert model.score(table) == model.score(table, "label") == 1.0
    with pytest.raises(ValueError, match="a table with a column label"):
        model.fit(table[["text"]])

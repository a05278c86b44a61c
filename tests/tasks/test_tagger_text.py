"""Text tagged from Python, and scores of spans that searches optimise."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV

import hopefear
from hopefear import Tagger
from hopefear.data.tokenizer import Tokenizer
from hopefear.errors import HopefearError
from hopefear.metrics import span_f1
from hopefear.tasks.tag.answers import Span

pytestmark = pytest.mark.interpreted

X = [
    ["Ann", "Lee", "left", "Rome", "."],
    ["Bo", "does", "n't", "like", "Ann", "Lee", "."],
    ["Rome", "sleeps", "."],
] * 3
Y = [
    ["B-PER", "I-PER", "O", "B-LOC", "O"],
    ["B-PER", "O", "O", "O", "B-PER", "I-PER", "O"],
    ["B-LOC", "O", "O"],
] * 3
TEXT = "Ann Lee left Rome. Bo\ndoesn't like Ann.\n\nRome sleeps"


@pytest.fixture(scope="module")
def tagger():
    return Tagger("perceptron", epochs=3).fit(X, Y)


def test_text_becomes_sentences_with_spans_of_characters(tagger):
    sentences = tagger.predict_text(TEXT)
    assert [repr(sentence) for sentence in sentences] == [
        "<[PER Ann Lee] left [LOC Rome] .>",
        "<[PER Bo] does n't like [PER Ann] .>",
        "<[LOC Rome] sleeps>",
    ]
    for sentence in sentences:
        assert TEXT[sentence.start : sentence.end] == sentence.text
        for piece in (*sentence.tokens, *sentence.spans):
            assert TEXT[piece.start : piece.end] == piece.text
    assert sentences[0].labels == Y[0]
    assert sentences[1].spans == (
        Span(19, 21, "PER", None, "Bo"),
        Span(35, 38, "PER", None, "Ann"),
    )
    assert tagger.predict_text(" \n ") == []


def test_text_is_cut_as_training_data_was(tagger):
    assert tagger.model_.tokenizer.clitics == "english"
    assert tagger.predict_text("Ann doesn't")[0].labels == tagger.predict(
        [["Ann", "does", "n't"]]
    )[0]  # fmt: skip
    whole = tagger.predict_text("Ann doesn't", tokenizer=Tokenizer("none"))[0]
    assert [token.text for token in whole.tokens] == ["Ann", "doesn't"]
    assert pickle.loads(pickle.dumps(tagger)).predict_text("Ann Lee")[0].spans[0].label == "PER"


def test_labels_that_are_no_spans_and_whole_numbers():
    numbers = Tagger("perceptron", epochs=2).fit([["a", "b"]] * 2, [[1, 2]] * 2)
    (sentence,) = numbers.predict_text("a b")
    assert sentence.labels == [1, 2] and sentence.spans == ()
    assert repr(sentence) == "<a/1 b/2>"


def test_features_that_text_cannot_give_are_named():
    rows = [[("Ann", "NNP"), ("sleeps", "VBZ")]] * 2
    chunks = Tagger("perceptron", columns=("word", "pos"), epochs=1).fit(
        rows, [["B-NP", "B-VP"]] * 2
    )
    with pytest.raises(ValueError, match=r"need the column pos too; .*words alone"):
        chunks.predict_text("Ann sleeps")
    attributes = Tagger("perceptron", epochs=1).fit([[{"w": "a"}], [{"w": "b"}]], [["A"], ["B"]])
    with pytest.raises(ValueError, match=r"attributes that were made elsewhere; .*tokenizer"):
        attributes.predict_text("a")


def test_only_text_is_text(tagger):
    with pytest.raises(ValueError, match="takes one string, not list; predict takes"):
        tagger.predict_text(["Ann"])


def test_score_is_f1_where_labels_are_spans(tagger):
    wrong = [["B-PER", "O", *labels[2:]] if labels[1] == "I-PER" else labels for labels in Y]
    assert tagger.score(X, Y) == span_f1(tagger, X, Y) == 1.0
    metrics = tagger.metrics(X, wrong)
    assert tagger.score(X, wrong) == pytest.approx(metrics["f1"] / 100)
    assert span_f1(tagger, X, wrong) == pytest.approx(metrics["f1"] / 100)
    assert metrics["f1"] < metrics["accuracy"]
    plain = Tagger("perceptron", scheme=None, epochs=3).fit(X, Y)
    assert plain.score(X, wrong) == pytest.approx(plain.metrics(X, wrong)["accuracy"] / 100)
    weights = [0.0 if one != other else 1.0 for one, other in zip(wrong, Y, strict=True)]
    assert tagger.score(X, wrong, weights) == 1.0


def test_a_search_optimises_f1():
    parts = [[0, 1, 2], [3, 4, 5]]
    wanted = []
    for train, test in (parts, parts[::-1]):
        tagger = Tagger("perceptron", epochs=2)
        tagger.fit(*[[of[i] for i in train] for of in (X, Y)])
        wanted.append(tagger.metrics(*[[of[i] for i in test] for of in (X, Y)])["f1"] / 100)
    for scoring in (None, span_f1):
        search = GridSearchCV(
            Tagger("perceptron"), {"epochs": [1, 2]}, cv=2, scoring=scoring, error_score="raise"
        ).fit(X[:6], Y[:6])
        assert search.cv_results_["mean_test_score"][1] == pytest.approx(np.mean(wanted))
        assert search.best_score_ == max(search.cv_results_["mean_test_score"])


def test_labels_that_spell_no_spans_have_no_f1():
    tagger = Tagger("perceptron", epochs=1).fit([["a", "b"]] * 2, [["NN", "VB"]] * 2)
    with pytest.raises(HopefearError, match="labels that spell spans, such as B-PER and O"):
        span_f1(tagger, [["a"]], [["NN"]])


def test_load_gives_back_every_estimator(tmp_path, tagger):
    classifier = hopefear.Classifier("perceptron").fit([[1.0], [-1.0]], ["a", "b"])
    reranker = hopefear.Reranker("perceptron").fit([[{"a": 1}, {"b": 1}]] * 2, [[1, 0]] * 2)
    for estimator in (tagger, classifier, reranker):
        estimator.save(tmp_path / "model")
        loaded = hopefear.load(tmp_path / "model")
        assert type(loaded) is type(estimator)
        assert loaded.to_bytes() == estimator.to_bytes()
        assert len(repr(loaded)) < 80 and len(repr(loaded.model_)) < 80
        assert type(hopefear.load_model(tmp_path / "model")) is type(estimator.model_)

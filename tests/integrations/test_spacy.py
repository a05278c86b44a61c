"""Components of spaCy, where it is installed."""

from __future__ import annotations

import pytest
import spacy

from hopefear import HopefearError, Parser, Tagger

pytestmark = [
    pytest.mark.needs("spacy"),
    pytest.mark.interpreted,
    pytest.mark.filterwarnings("ignore"),
]


def test_spans_are_entities(tmp_path):
    X, y = [["Ann", "Lee", "sings", "."]] * 2, [["B-PER", "I-PER", "O", "O"]] * 2
    Tagger("perceptron").fit(X, y).save(tmp_path / "names")
    nlp = spacy.blank("en")
    nlp.add_pipe("sentencizer")
    nlp.add_pipe("hopefear_tagger", config={"model": str(tmp_path / "names")})
    doc = nlp("Ann Lee sings. Ann sings.")
    assert [(e.text, e.label_) for e in doc.ents] == [("Ann Lee", "PER"), ("Ann", "PER")]
    assert len(nlp("")) == 0


def test_tags_go_to_tokens_and_from_them_to_parsers(tmp_path):
    X = [["a", "dog", "sleeps"], ["dogs", "sleep"]]
    Tagger("perceptron").fit(X, [["D", "N", "V"], ["N", "V"]]).save(tmp_path / "tags")
    words = [[("a", "D"), ("dog", "N"), ("sleeps", "V")], [("dogs", "N"), ("sleep", "V")]]
    trees = [[(2, "det"), (3, "nsubj"), (0, "root")], [(2, "nsubj"), (0, "root")]]
    parser = Parser("perceptron", order=1, epochs=5).fit(words, trees)
    parser.save(tmp_path / "trees")
    nlp = spacy.blank("en")
    nlp.add_pipe("hopefear_tagger", config={"model": str(tmp_path / "tags")})
    nlp.add_pipe("hopefear_parser", config={"model": str(tmp_path / "trees")})
    doc = nlp("a dog sleeps")
    assert [token.tag_ for token in doc] == ["D", "N", "V"]
    assert [(t.head.text, t.dep_) for t in doc] == [
        ("dog", "det"), ("sleeps", "nsubj"), ("sleeps", "ROOT"),
    ]  # fmt: skip
    assert len(list(doc.sents)) == 1


def test_wrong_models_are_refused(tmp_path):
    Tagger("perceptron").fit([["a", "b"]], [["A", "B"]]).save(tmp_path / "tags")
    nlp = spacy.blank("en")
    with pytest.raises(HopefearError, match="hopefear_parser needs one of the task parse"):
        nlp.add_pipe("hopefear_parser", config={"model": str(tmp_path / "tags")})
    for config, message in (
        ({}, "hopefear_tagger needs a model: config="),
        ({"model": "not there"}, "hopefear_tagger needs a model, and not there does not exist"),
    ):
        nlp = spacy.blank("en")
        nlp.add_pipe("hopefear_tagger", config=config)
        with pytest.raises(HopefearError, match=message):
            nlp("a b")
        with pytest.raises(HopefearError, match=message):
            nlp.to_bytes()


def test_a_saved_pipeline_holds_its_models(tmp_path):
    X = [["a", "dog", "sleeps"], ["dogs", "sleep"]]
    y = [["DET", "NOUN", "VERB"], ["NOUN", "VERB"]]
    Tagger("perceptron").fit(X, y).save(tmp_path / "tags")
    trees = [[(2, "det"), (3, "nsubj"), (0, "root")], [(2, "nsubj"), (0, "root")]]
    Parser("perceptron", order=1, epochs=5).fit(X, trees).save(tmp_path / "trees")
    nlp = spacy.blank("en")
    config = {"model": str(tmp_path / "tags"), "attribute": "pos_"}
    nlp.add_pipe("hopefear_tagger", config=config)
    nlp.add_pipe("hopefear_parser", config={"model": str(tmp_path / "trees")})
    nlp.to_disk(tmp_path / "nlp")
    data, text = nlp.to_bytes(), "a dog sleeps"
    for name in ("tags", "trees"):
        (tmp_path / name).unlink()
    empty = spacy.blank("en")
    empty.add_pipe("hopefear_tagger", config={"attribute": "pos_"})
    empty.add_pipe("hopefear_parser")
    for other in (
        spacy.load(tmp_path / "nlp"),
        spacy.blank("en").from_config(nlp.config).from_bytes(data),
        empty.from_bytes(data),
    ):
        assert [t.pos_ for t in other(text)] == ["DET", "NOUN", "VERB"]
        assert [t.dep_ for t in other(text)] == ["det", "nsubj", "ROOT"]
    assert spacy.load(tmp_path / "nlp").to_bytes() == nlp.to_bytes()
    swapped = spacy.blank("en")
    swapped.add_pipe("hopefear_parser", name="hopefear_tagger")
    with pytest.raises(HopefearError, match="expected a model for the task 'parse', found 'tag'"):
        swapped.from_bytes(data)

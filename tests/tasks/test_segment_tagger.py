"""Taggers by segments: from Python to a model file and back, and what is refused."""

from __future__ import annotations

import json

import pytest

from hopefear import Tagger
from hopefear.errors import DataWarning, HopefearError
from hopefear.tasks.tag.model import SequenceModel

pytestmark = pytest.mark.interpreted

CITIES = ["New York", "York", "New York City", "Paris"]
X = [[*(["she", "saw"]), *city.split(), *(["last", "May"])] for city in CITIES] * 3
Y = [["O", "O", "B-L", *["I-L"] * (len(x) - 5), "O", "O"] for x in X]


@pytest.fixture(scope="module")
def tagger():
    return Tagger("crf", segments=3, features="ner", epochs=8).fit(X, Y)


def test_a_tagger_learns_spans(tagger):
    assert tagger.predict(X[:4]) == Y[:4]
    assert tagger.score(X, Y) == 1.0
    assert tagger.scheme_ == "bio" and tagger.model_.features.longest == 3
    assert "segments:3" in tagger.model_.signature
    features = tagger.model_.features
    names = set(features.names(range(features.size)))
    assert {"length=1", "words=new york city", "last=york", "word[0]=saw"} <= names


@pytest.mark.parametrize("learner", ["perceptron", "nbest-mira", "sapo", "ssvm", "arow", "ssvm-cp"])
def test_learners(learner):
    assert Tagger(learner, segments=3, features="ner", epochs=5).fit(X, Y).score(X, Y) > 0.9


def test_probabilities_of_spans_are_those_of_their_segments(tagger):
    """The same by adding up all outputs that have the span."""
    records = tagger.predict_records(X[:4], proba=True)
    for x, record, outputs in zip(X, records, tagger.predict_nbest(X[:4], 100_000), strict=False):
        (span,) = record["spans"]
        bounds = range(span["start"], span["end"])
        share = sum(
            output.probability
            for output in outputs
            if [output.labels[t] for t in bounds] == ["B-L", *["I-L"] * (len(bounds) - 1)]
            and (span["end"] == len(x) or output.labels[span["end"]] != "I-L")
        )
        assert span["probability"] == pytest.approx(share, rel=1e-5)
        assert sum(output.probability for output in outputs) == pytest.approx(1.0, rel=1e-5)


def test_answers_keep_to_what_is_allowed(tagger):
    allowed = [[None, None, None, ["O"], None, None]]
    best = tagger.predict(X[:1], allowed=allowed)[0]
    assert best[3] == "O"
    assert "I-L" not in best


def test_a_model_file_gives_the_same_answers(tagger, tmp_path):
    model = tagger.model_
    loaded = SequenceModel.from_bytes(model.to_bytes())
    assert loaded.to_bytes() == model.to_bytes()
    again = Tagger.from_model(loaded)
    assert again.segments == 3
    assert again.predict(X[:4]) == Y[:4]
    assert again.predict_marginals(X[:2]) == tagger.predict_marginals(X[:2])
    records = [json.dumps(one.predict_records("She saw New York.")) for one in (tagger, again)]
    assert records[0] == records[1]


def test_why_a_label(tagger):
    reasons = tagger.explain(X, sequence=0, token=2)
    assert reasons.label == "B-L" and reasons.runner_up != "B-L"
    assert {name for name, _ in reasons.contributions} & {"words=new york", "length=2"}
    total = sum(amount for _, amount in reasons.contributions)
    assert total == pytest.approx(reasons.gap, rel=1e-4)


def test_long_spans_are_cut_and_counted():
    with pytest.warns(DataWarning, match="3 spans of more than 2 tokens are learned as spans of 2"):
        tagger = Tagger("crf", segments=2, features="ner", epochs=4).fit(X, Y)
    assert tagger.predict(X[2:3])[0][2:5].count("I-L") < 2


def test_other_schemes_are_learned_in_bio():
    letters = {1: ["S-L"], 2: ["B-L", "E-L"], 3: ["B-L", "I-L", "E-L"]}
    y = [["O", "O", *letters[len(x) - 4], "O", "O"] for x in X]
    tagger = Tagger("crf", segments=3, features="ner", epochs=8).fit(X, y)
    assert tagger.predict(X[:4]) == Y[:4]
    assert tagger.predict(X[:4], scheme="iobes") == y[:4]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"order": 2}, "segments go with order 1"),
        ({"convert": "iobes"}, "segments are learned in BIO"),
        ({"scheme": None}, "are no spans"),
        ({"learner": "crf-lbfgs"}, "the batch CRF learns label chains alone"),
        ({"averaging": "voted"}, "segments have no votes"),
        ({"segments": 0}, "1 to 1000 tokens, not 0"),
        ({"learner": "swvp"}, "a mixture of two segmentations is none"),
        ({"learner": "m3n"}, "marginals are those of label chains"),
    ],
)
def test_what_does_not_go_together(options, words):
    tagger = Tagger(**{"learner": "perceptron", "segments": 3, "features": "ner", **options})
    with pytest.raises((HopefearError, ValueError), match=words):
        tagger.fit(X, Y)


def test_streams_and_attributes_are_refused():
    with pytest.raises(ValueError, match="learned from all data at once"):
        Tagger("perceptron", segments=3).partial_fit(X, Y)
    with pytest.raises(ValueError, match="segments have words"):
        Tagger("perceptron", segments=3).fit([[["a"], ["b"]]] * 2, [["B-L", "O"]] * 2)

"""The same sentences give the same model and the same records, wherever they come from."""

from __future__ import annotations

import io
import json
import sys
from itertools import pairwise

import numpy as np
import pytest

import hopefear
from hopefear import Tagger
from hopefear.cli import main
from hopefear.data.generators import chunks
from hopefear.errors import DataWarning
from hopefear.tasks import service_of

pytestmark = pytest.mark.interpreted


@pytest.fixture(scope="module")
def sentences():
    """Rows of a word, a tag and a label."""
    made = chunks(30, seed=1)
    words, labels = (made.columns[name].texts() for name in ("word", "label"))
    rows = [(word, word[-1].upper(), label) for word, label in zip(words, labels, strict=True)]
    starts = made.starts.tolist()
    return [rows[a:b] for a, b in pairwise(starts)]


def written(rows, form):
    if form == "crfsuite":
        lines = [[f"{label}\tw={word}\tt={tag}" for word, tag, label in each] for each in rows]
    else:
        lines = [[f"{word} {tag} {label}" for word, tag, label in each] for each in rows]
    return "".join("\n".join(each) + "\n\n" for each in lines)


def python_rows(rows, form):
    if form == "crfsuite":
        return [[[f"w={word}", f"t={tag}"] for word, tag, _ in each] for each in rows]
    return [[(word, tag) for word, tag, _ in each] for each in rows]


def content(model):
    """All of a model but the name of its source."""
    # How tokens are given is said where features look at fewer columns than there are.
    about = {key: n for key, n in model.about.items() if key not in ("config", "estimator")}
    about["data"] = {key: n for key, n in about["data"].items() if key != "source"}
    for event in about["training"]["history"]:
        for key in [key for key in event if "seconds" in key]:
            del event[key]
    arrays = {name: array.tobytes() for name, array in model._arrays().items()}
    return {**model._header(), "about": about}, arrays


CASES = {
    "templates": ("columns", [], {}),
    "attributes": ("crfsuite", [], {}),
    "conversion": ("columns", ["--convert", "iobes"], {"convert": "iobes"}),
    "options": (
        "columns",
        ["--features", "pos", "--min-count", "2", "--no-names", "--no-temperature", "--seed", "3"],
        {
            "features": "pos",
            "min_count": 2,
            "names": False,
            "temperature": False,
            "random_state": 3,
        },
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_model_does_not_depend_on_where_its_data_come_from(
    case, sentences, tmp_path, monkeypatch
):
    form, argv, params = CASES[case]
    monkeypatch.chdir(tmp_path)
    text = written(sentences, form)
    (tmp_path / "train").write_text(text)
    options = ["--format", form, "--learner", "sapo", "--epochs", "2", *argv, "--quiet"]
    X, y = python_rows(sentences, form), [[row[-1] for row in each] for each in sentences]
    tagger = Tagger("sapo", epochs=2, **params).fit(X, y)
    wanted = content(tagger.model_)
    sources = {"file": ["--train", "train"], "pipe": ["--train", "-", "--no-stream"]}
    if form == "columns":
        sources["cache"] = ["--train", "train", "--cache", "folder"]
    for name, source in sources.items():
        if name == "pipe":
            stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
            monkeypatch.setattr(sys, "stdin", stdin)
        assert main(["train", "tag", *source, *options, "--model", name]) == 0
        model = hopefear.load_model(name)
        header, arrays = content(model)
        assert arrays == wanted[1], name
        assert json.loads(json.dumps(header)) == json.loads(json.dumps(wanted[0])), name
        if case != "options":  # whose features look at words alone, so tokens are words
            assert Tagger.load(name).predict(X[:5]) == tagger.predict(X[:5])


@pytest.mark.parametrize("n", [None, 2])
@pytest.mark.parametrize("proba", [False, True])
def test_records_are_the_same_everywhere(sentences, tmp_path, monkeypatch, capsys, n, proba):
    monkeypatch.chdir(tmp_path)
    X = [[word for word, *_ in each] for each in sentences]
    tagger = Tagger("perceptron", epochs=1).fit(
        X, [[row[-1] for row in each] for each in sentences]
    )
    tagger.save("m")
    new = X[:2]
    (tmp_path / "new").write_text("".join("\n".join(each) + "\n\n" for each in new))
    argv = ["predict", "--model", "m", "--input", "new", "--output-format", "json", "--quiet"]
    argv += ["--nbest", str(n)] * (n is not None) + ["--proba"] * proba
    capsys.readouterr()
    assert main(argv) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    records = tagger.predict_records(new, n=n, proba=proba)
    flat = records if n is None else [one for each in records for one in each["outputs"]]
    assert json.loads(json.dumps(flat)) == lines
    assert ("probability" in flat[0]["tokens"][0]) == proba
    assert all(("probability" in span) == proba for one in flat for span in one["spans"])
    service = service_of(tagger.model_)
    inputs = [service.read(each) for each in new]
    if n is None:
        assert [one["sentences"][0] for one in service.predict(inputs, proba)] == records
    if n is not None and not proba:
        assert [one["sentences"][0] for one in service.nbest(inputs, n)] == records


def test_text_has_places_in_every_answer(sentences):
    X = [[word for word, *_ in each] for each in sentences]
    tagger = Tagger("perceptron", epochs=1).fit(
        X, [[row[-1] for row in each] for each in sentences]
    )
    text = " ".join(X[0]) + "\n\n" + " ".join(X[1])
    sentence, _ = tagger.predict_text(text, proba=True)
    for piece in (*sentence.tokens, *sentence.spans):
        assert text[piece.start : piece.end] == piece.text and 0.0 <= piece.probability <= 1.0
    assert tagger.predict_records(text, proba=True)[0] == sentence.as_dict()
    service = service_of(tagger.model_)
    (answer,) = service.predict([service.read(text)])
    assert answer["sentences"] == tagger.predict_records(text)


def test_converted_labels_are_spelled_as_wanted(sentences):
    X = [[word for word, *_ in each] for each in sentences]
    y = [[row[-1] for row in each] for each in sentences]
    tagger = Tagger("perceptron", epochs=5, convert="iobes").fit(X, y)
    assert tagger.scheme_ == "iobes" and {label[0] for label in tagger.classes_} <= set("OBIES")
    plain = tagger.predict(X, scheme="bio")
    assert np.mean([a == b for a, b in zip(plain, y, strict=True)]) > 0.8
    assert Tagger.from_bytes(tagger.to_bytes()).score(X, y) == tagger.score(X, y)


def test_labels_that_training_lacked_are_a_warning(sentences):
    X = [[word for word, *_ in each] for each in sentences]
    y = [[row[-1] for row in each] for each in sentences]
    tagger = Tagger("perceptron", epochs=1).fit(X, y)
    with pytest.warns(DataWarning, match="1 tokens have labels that training did not see"):
        tagger.score([["he"]], [["B-NEW"]])

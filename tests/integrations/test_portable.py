"""Exported models predict with plain Python what they predict here."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
from pathlib import Path

import numpy as np
import pandas
import pytest
from golden import files

from hopefear import Classifier, HopefearError, Tagger
from hopefear.cli import main
from hopefear.features.templates import BUILT_IN, parse_templates
from hopefear.integrations.portable import as_json, portable
from hopefear.tasks.tag.model import SequenceModel

pytestmark = pytest.mark.interpreted
READERS = Path(__file__).resolve().parents[2] / "examples/portable"


def reader(name):
    spec = importlib.util.spec_from_file_location(name, READERS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TAG, CLASSIFY = reader("read_json_tagger").tag, reader("read_json_classifier").classify
TEXT = "The IL-2 gene alpha-actin rose 3.5 % in 1999 , said McDonald's IV . new york café ½ a"
WORDS = TEXT.split()


def sentences(n, seed, columns=("word", "pos", "chunk")):
    """Tokens as tuples, and labels that follow from words and neighbours most of the time."""
    dice = random.Random(seed)
    X, y = [], []
    for _ in range(n):
        words = [dice.choice(WORDS) for _ in range(dice.randrange(1, 9))]
        X.append([(w, w[:1].upper(), str(len(w)))[: len(columns)] for w in words])
        inside, labels = False, []
        for w in words:
            kind = "B" if w[0].isupper() and dice.random() < 0.9 else "O"
            kind = "I" if kind == "O" and inside and w.islower() else kind
            inside = kind != "O"
            labels.append(kind if kind == "O" else f"{kind}-X")
        y.append(labels)
    return X, y


def rows_of(sentence, columns):
    return {name: [token[i] for token in sentence] for i, name in enumerate(columns)}


def same(tagger, X, columns):
    document = json.loads(as_json(tagger))
    mine = [TAG(document, rows_of(sentence, columns)) for sentence in X]
    assert mine == tagger.predict(X)
    return document


@pytest.mark.parametrize("features", BUILT_IN)
def test_taggers_of_every_built_in_set_of_templates(features):
    columns = ("word", "pos", "chunk")
    X, y = sentences(15, 1)
    tagger = Tagger("perceptron", features=features, columns=columns, epochs=2).fit(X, y)
    document = same(tagger, [*sentences(15, 2)[0], *X], columns)
    assert document["labels"] == list(tagger.model_.labels)


TEMPLATES = """
padding = {padding}
[lexicons]
places = "places.txt"
[[templates]]
features = ["bias", "lower(word)[-1..1]", "length(word)", "substrings(lower(word), 2..3)",
  "lexicon(places, lower(word))[-1..1]", "is(word, roman)[1]", "eos pos[0]", "bos"]
optional = true
[[templates]]
edges = true
features = ["lower(word)[0]", "short_shape(word)[-1..0]"]
optional = true
"""


@pytest.mark.parametrize("padding", ["true", "false"])
def test_lexicons_edges_and_ends(tmp_path, padding):
    (tmp_path / "places.txt").write_text("new york\nyork\nthe gene\n")
    path = tmp_path / "own.toml"
    path.write_text(TEMPLATES.format(padding=padding))
    X, y = sentences(40, 3, ("word", "pos"))
    tagger = Tagger("crf", features=str(path), columns=("word", "pos"), epochs=3).fit(X, y)
    document = same(tagger, [*sentences(40, 4, ("word", "pos"))[0], *X], ("word", "pos"))
    assert document["lexicons"] and document["edge_weights"]


def test_numbers_as_values():
    text = '[[templates]]\nfeatures = ["bias", "word[0]", "number(size)[0]", "number(size)[-1]"]'
    templates = parse_templates(text)
    X = [[(w, str(len(w))) for w in s] for s in (["a", "bcd"], ["bcd", "a", "ef"])]
    y = [["A", "B"], ["B", "A", "C"]]
    tagger = Tagger("perceptron", features=templates, columns=("word", "size")).fit(X, y)
    same(tagger, X, ("word", "size"))


def test_taggers_of_attributes():
    X = [[["w=a", "bos"], ["w=b"]], [["w=b", "bos"], ["w=a"]]]
    tagger = Tagger("perceptron").fit(X, [["A", "B"], ["B", "A"]])
    document = json.loads(as_json(tagger))
    rows = [{"attributes": [dict.fromkeys(token, 1.0) for token in s]} for s in X]
    assert [TAG(document, row) for row in rows] == tagger.predict(X)


def texts(n, seed):
    dice = random.Random(seed)
    marks = [" ", ", ", "! ", "'", "_", " ’", " – ", "?", "$", "#", "\n"]
    return ["".join(dice.choice(WORDS) + dice.choice(marks) for _ in range(7)) for _ in range(n)]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"ngrams": 3, "norm": "none", "intercept": 0.0},
        {"ngrams": 2, "chars": (1, 4), "values": "tfidf", "marks": True},
        {"ngrams": 0, "chars": (2, 3), "lowercase": False, "values": "log"},
        {"ngrams": 2, "values": "nb", "max_share": 0.4, "min_count": 2},
        {"values": "presence", "learner": "adagrad-rda", "l1": 1e-3},
    ],
)
def test_classifiers_of_texts(options, n_classes):
    X = texts(60, 1)
    y = [f"c{(len(x) // 2 + ('alpha' in x)) % n_classes}" for x in X]
    model = Classifier(**{"learner": "perceptron", **options}).fit(X, y)
    document = json.loads(as_json(model))
    new = [*X, *texts(60, 2), "", "quite other words"]
    assert [CLASSIFY(document, x) for x in new] == model.predict(new).tolist()


def test_classifiers_of_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 6)) * (rng.random((40, 6)) < 0.6)
    y = (X @ rng.normal(size=6) > 0).astype(int)
    model = Classifier("perceptron").fit(X, y)
    document = json.loads(as_json(model))
    rows = [{j: v for j, v in enumerate(row) if v} for row in X.tolist()]
    assert [int(CLASSIFY(document, row)) for row in rows] == model.predict(X).tolist()


def test_columns_keep_their_names():
    frame = pandas.DataFrame({"a": [1.0, 0.0] * 4, "b": [0.0, 1.0] * 4})
    model = Classifier("perceptron").fit(frame, ["x", "y"] * 4)
    assert set(json.loads(as_json(model))["words"]) == {"a", "b"}


def test_what_cannot_be_exported_says_why():
    X, y = sentences(5, 1, ("word",))
    words = [[token[0] for token in sentence] for sentence in X]
    for model, reason in (
        (Tagger("perceptron", hash_bits=12).fit(words, y), "hashed"),
        (Tagger("perceptron", order=2).fit(words, y), "order 2"),
        (Tagger("perceptron", averaging="voted").fit(words, y), "voted"),
        (Classifier(hash_bits=12).fit(["a b", "c"], [0, 1]), "without --hash-bits"),
    ):
        with pytest.raises(HopefearError, match=reason):
            portable(model)


def test_inspect_writes_it_and_the_readers_need_nothing_of_ours(tmp_path, monkeypatch):
    files.write(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert (
        main(
            [
                "train",
                "tag",
                "--train",
                "train-chunks.txt",
                "--model",
                "m",
                "--quiet",
                "--epochs",
                "2",
            ]
        )
        == 0
    )
    assert main(["inspect", "--model", "m", "--export", "m.json"]) == 0
    model, document = SequenceModel.load("m"), json.loads(Path("m.json").read_text())
    assert document["signature"] == model.signature
    for path in READERS.glob("*.py"):
        text = path.read_text()
        assert sum(map(bool, map(str.strip, text.splitlines()))) <= 60
        names = {line.split()[1].partition(".")[0] for line in text.splitlines()
                 if line.startswith(("import ", "from "))}  # fmt: skip
        assert names <= sys.stdlib_module_names


def test_patterns_of_wapiti_are_not_exported():
    templates = parse_templates('U:%m[0,0,".?$"]')
    tagger = Tagger("perceptron", features=templates, columns="word", epochs=1)
    with pytest.raises(HopefearError, match=r"template 'U:%m.*are not exported"):
        portable(tagger.fit([["a", "b"]], [["A", "B"]]).model_)

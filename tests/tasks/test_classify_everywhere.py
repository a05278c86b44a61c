"""Classifiers are the same from the command line, Python, a pipe, a cache and a server."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import hopefear
from hopefear.cli import main, parsed
from hopefear.cli.surface import NO_PARAMETERS, RENAMED, surface_of
from hopefear.tasks.classify.answers import ClassifyService
from hopefear.tasks.classify.model import Model

pytestmark = pytest.mark.interpreted
TEXTS = ["good fun, all day", "so bad it hurts", "fun and good", "bad, bad film", "nice fun!"]
TEXTS += ["awful and bad", "a fine day", "what a bore"]
LABELS = ["10", "9", "10", "9", "10", "9", "10", "9"]  # by number: 9, 10
OPTIONS = ["--epochs", "2", "-p", "l1=0.001", "--values", "log", "--min-count", "1"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{label}\t{text}\n" for label, text in zip(LABELS, TEXTS, strict=True)]
    Path("train.tsv").write_text("".join(lines))
    rows = [f"{1 + i % 2} {1 + i % 3}:1 {4 + i % 5}:0.5\n" for i in range(24)]
    Path("train.svm").write_text("".join(rows))
    return tmp_path


def trained(*argv):
    assert main(["train", "classify", *argv, "--model", "m", "--quiet"]) == 0
    return Model.load("m")


def told(model):
    """A header without what names the source, numbers as numbers."""
    header = json.loads(json.dumps(model._header()))
    header["about"]["data"].pop("source")
    given = header["about"].pop("given", {})
    return header, {name: float(value) for name, value in given.items()}


def assert_same(one, other):
    assert told(one) == told(other)
    arrays = one._arrays(), other._arrays()
    assert arrays[0].keys() == arrays[1].keys()
    for name, array in arrays[0].items():
        assert array.tobytes() == arrays[1][name].tobytes(), name


def test_texts_give_the_same_model_from_everywhere(folder, monkeypatch):
    typed = trained("--train", "train.tsv", *OPTIONS)
    python = hopefear.Classifier(epochs=2, l1=0.001, values="log").fit(TEXTS, LABELS)
    assert python.classes_.tolist() == list(typed.classes) == ["9", "10"]
    assert_same(typed, python.model_)
    stdin = SimpleNamespace(buffer=io.BufferedReader(io.BytesIO(Path("train.tsv").read_bytes())))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert_same(typed, trained("--train", "-", "--no-stream", *OPTIONS))


def test_rows_give_the_same_model_from_everywhere(folder):
    how = ["--train", "train.svm", "--epochs", "2"]
    typed, cached = trained(*how), trained(*how, "--cache", "caches")
    X, y, _ = hopefear.read("train.svm")
    python = hopefear.Classifier(epochs=2).fit(X, y)
    blocks = hopefear.Classifier(epochs=2, by_block=True).fit(X, y)
    assert blocks.model_.about.pop("config") == {"by-block": True}
    for model in (cached, python.model_, blocks.model_):
        assert_same(typed, model)


def test_held_out_rows_choose_the_same_epoch(folder):
    how = ["--train", "train.svm", "--dev", "train.svm", "--epochs", "4", "--patience", "1"]
    typed = trained(*how, "--norm", "none", "--class-weight", "1=2")
    X, y, _ = hopefear.read("train.svm")
    made = hopefear.Classifier(epochs=4, patience=1, norm="none", class_weight={"1": 2})
    made.fit(X, y, X_val=X, y_val=y)
    assert typed.signature == made.model_.signature
    assert typed.weights.tobytes() == made.model_.weights.tobytes()
    assert typed.temperature == made.model_.temperature


def test_options_are_parameters_of_the_estimator():
    args = parsed(["train", "classify", "--train", "x", "--model", "m"])
    surface, usual = surface_of("classify"), hopefear.Classifier().get_params()
    known = {"learner", *(NO_PARAMETERS - {"params"}), *surface.no_parameters}
    for option in vars(args).keys() - known - {"param", "shards"}:
        name = RENAMED.get(option, option).removeprefix("no_")
        assert name in usual, option
        value = args.default_of(option)
        if value is not None:
            assert (not value if option.startswith("no_") else value) == usual[name], option
    prepared = surface.parameters(args)
    assert prepared["shuffle"] is True and prepared["params"] == {} and prepared["n_jobs"] == 1


@pytest.mark.parametrize(("more", "question"), [
    ([], {}),
    (["--proba"], {"proba": True}),
    (["--nbest", "2"], {"n": 2}),
    (["--unknown", "0.9", "--unknown-label", "?"], {"unknown": 0.9, "unknown_label": "?"}),
])  # fmt: skip
def test_records_are_the_same_everywhere(folder, capsys, more, question):
    model = trained("--train", "train.tsv", *OPTIONS)
    Path("new.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    ask = ["predict", "--model", "m", "--input", "new.txt", "--input-format", "text", "--quiet"]
    assert main([*ask, "--output-format", "json", *more]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    estimator = hopefear.Classifier.load("m")
    assert estimator.predict_records(TEXTS, **question) == lines
    service = ClassifyService(model)
    inputs = [service.read(text) for text in TEXTS]
    if "n" in question:
        assert service.nbest(inputs, 2) == lines
        best = [[output.label for output in row] for row in estimator.predict_nbest(TEXTS, n=2)]
        assert best == [[output["label"] for output in line["outputs"]] for line in lines]
    elif "proba" in question:
        table = [list(line["probabilities"].values()) for line in lines]
        np.testing.assert_allclose(estimator.predict_proba(TEXTS), table)
        assert service.predict(inputs, proba=True) == lines
    else:
        assert service.predict(inputs, **question) == lines
        assert [line["label"] for line in lines] == estimator.predict(TEXTS, **question).tolist()


def predicted(capsys, name, *more):
    assert main(["predict", "--model", "m", "--input", name, "--quiet", *more]) == 0
    return capsys.readouterr().out


def test_rows_come_back_with_columns_more(folder, capsys):
    trained("--train", "train.tsv", *OPTIONS)
    rows = 'id;text;label\n1;"good; fun";x\n2;"two\nlines, bad";y\n'
    Path("new.csv").write_text(rows)
    labels = predicted(capsys, "new.csv").split()
    out = predicted(capsys, "new.csv", "--output-format", "columns")
    head, *lines = out.splitlines()
    assert head == "id;text;label;predicted_label;probability"
    assert lines[0].startswith(f'1;"good; fun";x;{labels[0]};0.')
    assert lines[2].startswith(f'lines, bad";y;{labels[1]};0.')
    Path("new.tsv").write_text("9\tso bad\n10\tfun\n")
    out = predicted(capsys, "new.tsv", "--output-format", "columns", "--proba").splitlines()
    assert [line.split("\t")[:2] for line in out] == [["9", "so bad"], ["10", "fun"]]
    assert [len(line.split("\t")) for line in out] == [6, 6]
    Path("new.jsonl").write_text('{"text": "so bad", "label": "9", "id": [1]}\n{"text": "fun"}\n')
    for form in ("columns", "json"):
        out = predicted(capsys, "new.jsonl", "--output-format", form).splitlines()
        first, second = map(json.loads, out)
        assert (first["id"], first["label"], second["text"]) == ([1], "9", "fun")
        assert first["predicted_label"] == "9" and 0.5 <= second["probability"] <= 1.0


def test_bad_rows_are_left_out_of_what_comes_back(folder, capsys):
    trained("--train", "train.tsv", *OPTIONS)
    Path("new.csv").write_text("text,label\ngood fun,x\nso bad,y,z\nfun,x\n")
    out = predicted(capsys, "new.csv", "--output-format", "columns", "--on-error", "skip")
    assert [line.split(",")[0] for line in out.splitlines()] == ["text", "good fun", "fun"]
    ask = ["predict", "--model", "m", "--input", "new.csv", "--output-format", "columns"]
    assert main([*ask, "--quiet"]) == 1
    assert "new.csv:3" in capsys.readouterr().err


def test_rows_of_features_have_no_columns_to_add_to(folder, capsys):
    trained("--train", "train.svm", "--epochs", "1")
    ask = ["predict", "--model", "m", "--input", "train.svm", "--quiet", "--output-format"]
    assert main([*ask, "columns"]) == 1
    assert "which has no columns" in capsys.readouterr().err
    assert main([*ask, "json"]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["label"] in ("1", "2")

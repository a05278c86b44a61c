"""Networks on the command line: the same verbs, options and files as for other taggers."""

from __future__ import annotations

import json

import pytest
import torch

import hopefear
from hopefear.cli import main

pytestmark = [pytest.mark.needs("neural"), pytest.mark.interpreted]
SMALL = (
    *("hidden=6", "word_dim=6", "shape_dim=2", "column_dim=3", "char_dim=4", "char_hidden=4"),
    *("batch_size=3", "rate=0.05", "average=0.5"),
)
TEXT = (
    "Ann NNP B-PER\nLee NNP I-PER\nsees VBZ O\nthe DT O\ncat NN O\n\nBo NNP B-PER\nsits VBZ O\n\n"
)
P = [word for value in SMALL for word in ("-p", value)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("networks")
    (folder / "train.txt").write_text(TEXT * 4)
    (folder / "other.crfsuite").write_text("A\tw=a\nB\tw=b\n\n" * 3)
    (folder / "vectors.txt").write_text("ann 1 0\ncat 0 1\nlion 0 1\n")
    words = ["train", "tag", "--train", "train.txt", "--learner", "bilstm-crf", "--epochs", "6"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main([*words, *P, "--model", "m", "--quiet"]) == 0
    return folder


def test_training_says_what_it_read_and_made(run, folder):
    status, out, err = run(
        *("train", "tag", "--train", "train.txt", "--dev", "train.txt", "--epochs", "2"),
        *("--learner", "bilstm-sapo", "--vectors", "vectors.txt", "--device", "cpu", "--json"),
        *[word for value in SMALL if "word_dim" not in value for word in ("-p", value)],
        *("--model", "v", "--run", "runs"),
    )
    assert status == 0, err
    result = json.loads(out)
    assert result["feature_set"] == "word, pos, shapes, characters" and "f1" in result["dev"]
    assert "(word, pos, shapes, characters)" in err
    # No output is searched for, so none is called wrong.
    unsure = "(gold has at most half of the probability, or any loss)"
    assert unsure in err and "mistakes" not in err and "wrong" not in err
    assert "vectors=vectors.txt" in result["signature"] and "device" not in result["signature"]
    settings = json.loads((folder / "runs" / "run.json").read_text())
    assert settings["versions"]["torch"] and settings["parameters"]["network"]["hidden"] == 6
    assert "lion" in hopefear.load("v").model_.features.tables["word"]


def test_answers_come_as_from_other_taggers(run):
    status, out, _ = run("predict", "--model", "m", "--input", "train.txt")
    assert status == 0 and out.startswith("Ann NNP B-PER B-PER\n")
    status, out, _ = run("predict", "--model", "m", "--input", "train.txt", "--nbest", "2")
    assert "# rank = 2" in out
    status, out, _ = run("predict", "--model", "m", "--input", "train.txt", "--proba")
    assert status == 0 and "# probability = " in out
    status, out, _ = run("predict", "--model", "m", "--input", "train.txt", "--device", "cpu")
    assert status == 0
    status, out, _ = run("evaluate", "--model", "m", "--data", "train.txt", "--proba", "--json")
    scores = json.loads(out)
    assert scores["f1"] > 90 and scores["unknown_words"] == 0 and scores["calibration"]["spans"]


def test_reasons_are_scores_of_tokens_and_transitions(run):
    status, out, _ = run(
        "predict", "--model", "m", "--input", "train.txt", "--explain-token", "1:2"
    )
    assert status == 0 and "score of the network" in out


def test_inspect_shows_layers_and_transitions(run):
    status, _, err = run("inspect", "--model", "m")
    assert status == 0 and "encoder.lstm" in err and "transitions sought" in err
    assert "votes" not in err
    facts = json.loads(run("inspect", "--model", "m", "--json")[1])
    assert facts["layers"]["transitions"] == [3, 3] and facts["density"] <= 100.0


def test_networks_are_compared_with_other_learners(run):
    small = ":".join(SMALL)
    status, out, err = run(
        *("compare", "tag", "--train", "train.txt", "--test", "train.txt", "--epochs", "2"),
        *("--learners", f"perceptron,bilstm:{small},bilstm-crf:wide=true:{small}", "--json"),
        *("--dev", "train.txt", "--device", "cpu", "--report", "page.html"),
    )
    assert status == 0, err
    rows = json.loads(out)["learners"]
    assert [row["learner"].split(":")[0] for row in rows] == ["perceptron", "bilstm", "bilstm-crf"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--learner", "perceptron", "--vectors", "vectors.txt"], "--vectors is for networks"),
        (["--learner", "bilstm", "--features", "pos"], "wide=true"),
        (["--learner", "bilstm", "--device", "cuda"], "finds no GPU"),
        (["--learner", "bilstm", "--vectors", "none.txt"], "none.txt: cannot be read"),
        (["--learner", "bilstm", "--vectors", "vectors.txt", "-p", "vectors=x"], "give one"),
        (["--learner", "bilstm", "-p", "hiden=3"], "did you mean 'hidden'"),
        (["--learner", "bilstm", "--order", "2"], "order 1"),
        (["--learner", "bilstm", "--train", "other.crfsuite"], "reads words"),
    ],
)
def test_what_makes_no_sense_is_one_line(run, monkeypatch, words, message):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    status, _, err = run("train", "tag", "--train", "train.txt", *words, "--model", "x")
    assert status != 0 and message in err and "Traceback" not in err


def test_devices_are_for_networks(run):
    run("train", "tag", "--train", "train.txt", "--learner", "perceptron", "--model", "p")
    status, _, err = run("predict", "--model", "p", "--input", "train.txt", "--device", "cpu")
    assert status == 1 and "is for networks" in err


def test_without_torch_learners_are_listed_and_training_names_the_extra(run, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name, package=None: None)
    assert "bilstm-crf: " in run("learners", "--task", "tag")[1]
    assert run("learners", "bilstm-crf")[0] == run("train", "tag", "--help")[0] == 0
    for words in (
        ["train", "tag", "--train", "train.txt", "--learner", "bilstm-crf", "--model", "x"],
        ["predict", "--model", "m", "--input", "train.txt"],
    ):
        status, _, err = run(*words)
        assert status == 1 and err.count("\n") <= 2 and "pip install 'hopefear[neural]'" in err

"""`train rerank`, `predict` and `evaluate` on N-best lists of Moses."""

from __future__ import annotations

import json

import pytest
import tuning_files

from hopefear.cli import main

pytestmark = pytest.mark.interpreted

TRAIN = ("train", "rerank", "--learner", "perceptron", "--epochs", "2", "--quiet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("moses")
    tuning_files.write(folder, "a", 0, 12, candidates=6)
    tuning_files.write(folder, "b", 12, 18, candidates=6)
    return folder


@pytest.fixture
def run(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)

    def call(*argv, status=0):
        assert main(list(argv)) == status
        out, err = capsys.readouterr()
        return err if status else out

    return call


def test_a_reranker_is_trained_on_lists_of_moses(run):
    files = ("--train", "a.nbest", "--refs", "a.ref", "--dev", "b.nbest", "--dev-refs", "b.ref")
    assert "rule:" in json.loads(run(*TRAIN, *files, "--model", "a.model", "--json"))["signature"]
    out = json.loads(
        run("evaluate", "--model", "a.model", "--data", "b.nbest", "--refs", "b.ref", "--json")
    )
    assert out["oracle_bleu"] >= out["bleu"] > 0.0
    lines = run("predict", "--model", "a.model", "--input", "b.nbest", "--quiet").splitlines()
    assert [json.loads(line)["id"] for line in lines] == [str(i) for i in range(6)]


def test_references_belong_to_lists_of_moses(run):
    err = run(*TRAIN, "--train", "a.nbest", "--model", "x.model", status=1)
    assert "a.nbest: expected references" in err and "give them with --refs FILE" in err
    files = ("--train", "a.nbest", "--refs", "a.ref", "--dev", "b.nbest")
    err = run(*TRAIN, *files, "--model", "x.model", status=1)
    assert "give them with --dev-refs FILE" in err
    err = run(*TRAIN, "--train", "a.nbest", "--dev-refs", "b.ref", "--model", "x", status=2)
    assert "--dev-refs belongs to the lists of --dev" in err
    err = run(*TRAIN, *files[:4], "--metric", "cost", "--model", "x.model", status=1)
    assert "a metric of texts, such as bleu" in err

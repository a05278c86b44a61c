"""Lists in JSON, as rerankers read them, are tuned on like N-best lists of Moses."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tuning_files

from hopefear import Tuner
from hopefear.errors import HopefearError
from hopefear.translation.lists import read
from hopefear.translation.task import tune
from hopefear.translation.weights import Weights

pytestmark = pytest.mark.interpreted


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same lists for Moses and in JSON, with and without references."""
    folder = tmp_path_factory.mktemp("json")
    tuning_files.write(folder, "a", 0, 12, candidates=6)
    references = (folder / "a.ref").read_text().splitlines()
    lists: dict[str, list] = {}
    for line in (folder / "a.nbest").read_text().splitlines():
        name, text, features, score, _ = line.split(" ||| ")
        values: dict[str, list[float]] = {}
        for token in features.split():
            if token.endswith("="):
                values[token[:-1]] = []
            else:
                values[list(values)[-1]].append(float(token))
        flat = {
            key if len(found) == 1 else f"{key}.{k}": value
            for key, found in values.items()
            for k, value in enumerate(found)
        }
        lists.setdefault(name, []).append({"text": text, "features": flat, "score": float(score)})
    for path, own in (("own.jsonl", True), ("bare.jsonl", False)):
        records = [
            {"id": name, "candidates": found}
            | ({"reference": references[int(name)]} if own else {})
            for name, found in lists.items()
        ]
        (folder / path).write_text("\n".join(map(json.dumps, records)))
    return folder


def test_json_and_moses_are_the_same_lists(folder):
    moses = read(folder / "a.nbest", folder / "a.ref")
    for path, refs in (("own.jsonl", None), ("bare.jsonl", folder / "a.ref")):
        lists = read(folder / path, refs)
        assert lists.names == moses.names == ("LM0", "TM0.0", "TM0.1")
        assert np.array_equal(lists.dense, moses.dense)
        assert np.array_equal(lists.scores, moses.scores)
        assert np.array_equal(lists.counts, moses.counts)
        assert len(lists.sparse.names) == len(moses.sparse.names)
        assert np.array_equal(lists.starts, moses.starts)


def test_both_give_the_same_weights(folder):
    both = [
        tune(read(*files), "perceptron", {"epochs": 2}, start="uniform").weights
        for files in ((folder / "a.nbest", folder / "a.ref"), (folder / "own.jsonl",))
    ]
    assert both[0].dense.tolist() == both[1].dense.tolist()
    assert both[0].sparse == both[1].sparse


def test_files_are_merged_by_id_and_copies_left_out(folder):
    once = read(folder / "own.jsonl")
    twice = read([folder / "own.jsonl", folder / "bare.jsonl"])
    assert np.array_equal(once.starts, twice.starts)
    every = read([folder / "own.jsonl", folder / "bare.jsonl"], dedup="none")
    assert every.n_candidates == 2 * 12 * 6


def test_the_estimator_reads_them(folder):
    tuner = Tuner("perceptron", epochs=1).fit(folder / "own.jsonl")
    moses = Tuner("perceptron", epochs=1).fit(folder / "a.nbest", folder / "a.ref")
    assert tuner.predict(folder / "bare.jsonl") == moses.predict(folder / "a.nbest")
    assert tuner.score(folder / "own.jsonl") == moses.score(folder / "a.nbest", folder / "a.ref")


def test_what_is_missing_is_said(folder):
    with pytest.raises(HopefearError, match="12 of 12 lists have no references"):
        read(folder / "bare.jsonl")
    with pytest.raises(HopefearError, match=r"Moses need references .*--refs FILE"):
        read(folder / "a.nbest")
    with pytest.raises(HopefearError, match="whose lists are JSON"):
        read(folder / "own.jsonl", source=folder / "a.src")


def test_the_command_reads_them(folder, monkeypatch, capsys):
    from hopefear.cli import main

    monkeypatch.chdir(folder)
    argv = ["tune", "--learner", "perceptron", "--epochs", "1", "--start", "uniform", "--quiet"]
    assert main([*argv, "--nbest", "own.jsonl", "--weights", "json.txt"]) == 0
    assert main([*argv, "--nbest", "a.nbest", "--refs", "a.ref", "--weights", "moses.txt"]) == 0
    ours, theirs = (Weights.read(folder / name) for name in ("json.txt", "moses.txt"))
    assert ours.dense.tolist() == theirs.dense.tolist() and ours.sparse == theirs.sparse
    assert main([*argv, "--nbest", "a.nbest", "--weights", "moses.txt"]) == 2
    assert "references are needed: give --refs FILE" in capsys.readouterr().err
    scores = []
    for files in (["own.jsonl"], ["bare.jsonl", "--refs", "a.ref"]):
        assert main(["evaluate", "--weights", "json.txt", "--nbest", *files, "--json"]) == 0
        scores.append(json.loads(capsys.readouterr().out)["bleu"])
    assert scores[0] == scores[1]
    chosen = []
    for weights, path in (("json.txt", "own.jsonl"), ("json.txt", "bare.jsonl")):
        assert main(["predict", "--weights", weights, "--input", path, "--quiet"]) == 0
        chosen.append(capsys.readouterr().out)
    assert chosen[0] == chosen[1] and len(chosen[0].splitlines()) == 12

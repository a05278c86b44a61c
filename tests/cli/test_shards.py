"""``hopefear train --shards``: every task, and what cannot be meant."""

from __future__ import annotations

import importlib.util
import json

import numpy as np
import pytest

from hopefear import storage

pytestmark = pytest.mark.interpreted

TEXT = "".join(f"{w} {t}\n" for w, t in [("the", "D"), ("cat", "N"), ("runs", "V")]) + "\n"
TREE = (
    "1\tthe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n2\tcat\tcat\tNOUN\tNN\t_\t3\tnsubj\t_\t_\n"
    "3\truns\trun\tVERB\tVB\t_\t0\troot\t_\t_\n\n"
)
LISTS = "".join(
    json.dumps(
        {
            "id": i,
            "candidates": [
                {"cost": c, "features": {f"f{i % 3}": 1 + c, "lm": -c}} for c in (0.0, 0.5)
            ],
        }
    )
    + "\n"
    for i in range(8)
)
FILES = {
    "classify": "".join(f"{i % 2} {1 + i % 2}:1 {3 + i % 5}:1\n" for i in range(12)),
    "tag": 6 * TEXT,
    "rerank": LISTS,
    "parse": 6 * TREE,
}


@pytest.fixture
def folder(tmp_path):
    for task, text in FILES.items():
        (tmp_path / ("parse.conllu" if task == "parse" else task)).write_text(text)
    return tmp_path


@pytest.mark.parametrize("task", FILES)
def test_every_task_learns_on_shards(run, folder, task):
    file = "parse.conllu" if task == "parse" else task
    small = ("--order", 1, "--features", "light", "--hash-bits", 10) if task == "parse" else ()
    words = ("train", task, "--train", file, "--epochs", 2, "--json", "--quiet", *small)
    learner = ("--learner", "perceptron", "--shards", 2, "--run", "log")
    status, out, err = run(*words, *learner, "--model", "threads", "--rounds", 2)
    assert status == 0, err
    assert "shards:2|mix:moved|rounds:2" in json.loads(out)["signature"]
    events = (folder / "log" / "events.jsonl").read_text().splitlines()
    assert json.loads(events[-1])["rounds"] == 4
    more = ("--workers", "processes", "--rounds", 2)
    status, _, err = run(*words, *learner, "--model", "processes", *more)
    assert status == 0, err
    assert (folder / "threads").read_bytes() == (folder / "processes").read_bytes()


@pytest.mark.parametrize("task", FILES)
def test_every_task_has_blocks_that_shards_search_together(run, folder, task):
    file = "parse.conllu" if task == "parse" else task
    small = ("--order", 1, "--features", "light", "--hash-bits", 10) if task == "parse" else ()
    words = ("train", task, "--train", file, "--epochs", 2, "--json", "--quiet", *small)
    learner = ("--learner", "perceptron", "-p", "block=3")
    signatures = set()
    for more in ((), ("--shards", 2, "--mix", "blocks", "--workers", "processes")):
        status, out, err = run(*words, *learner, *more, "--model", f"m{len(more)}")
        assert status == 0, err
        signatures.add(json.loads(out)["signature"])
    assert len(signatures) == 1
    alone, together = (
        storage.unpack((folder / name).read_bytes(), kind="model", name=name)[1]
        for name in ("m0", "m6")
    )
    assert alone.keys() == together.keys()
    assert all(np.array_equal(alone[name], together[name]) for name in alone)


def test_shards_learn_in_blocks(run, folder):
    words = ("train", "tag", "--train", "tag", "--epochs", 2, "--json", "--quiet")
    learner = ("--learner", "perceptron", "--shards", 2, "-p", "block=2")
    status, out, err = run(*words, *learner, "--model", "threads", "--jobs", 2)
    assert status == 0, err
    assert "|block:2|" in json.loads(out)["signature"]
    status, _, err = run(*words, *learner, "--model", "processes", "--workers", "processes")
    assert status == 0, err
    assert (folder / "threads").read_bytes() == (folder / "processes").read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--mix", "uniform"), "--mix is about shards: give --shards N too"),
        (("--select", 5), "--select is about shards"),
        (("--shards", 2, "--cluster-folder", "x"), "--cluster-folder needs --cluster"),
        (("--shards", 2, "--cluster", "auto", "--workers", "threads"), "give one"),
        (("--shards", 0), "must be at least 1"),
        (("--mix", "blocks"), "give --shards N too"),
    ],
)
def test_what_cannot_be_meant_is_refused(run, folder, words, message):
    status, _, err = run("train", "classify", "--train", "classify", "--model", "m", *words)
    assert status == 2 and message in err
    assert not (folder / "m").exists()


def test_ray_that_is_absent_is_named_with_its_extra(run, folder, monkeypatch):
    present = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == "ray" else present(name)
    )
    words = ("train", "classify", "--train", "classify", "--model", "m", "--shards", 2)
    status, _, err = run(*words, "--cluster", "auto")
    assert status == 1 and "pip install 'hopefear[ray]'" in err and len(err.splitlines()) < 4

"""``hopefear train --shards``: every task, and what cannot be meant."""

from __future__ import annotations

import importlib.util
import json

import pytest

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
    status, out, err = run(*words, *learner, "--model", "threads", "--merges", 2)
    assert status == 0, err
    assert "shards:2|merge:mean-of-updated|merges:2" in json.loads(out)["signature"]
    events = (folder / "log" / "events.jsonl").read_text().splitlines()
    assert json.loads(events[-1])["merges"] == 4
    status, _, err = run(*words, *learner, "--model", "again", "--merges", 2)
    assert status == 0, err
    assert (folder / "threads").read_bytes() == (folder / "again").read_bytes()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--merge", "mean"), "--merge is about shards: give --shards N too"),
        (("--max-features", 5), "--max-features is about shards"),
        (("--cluster", "auto"), "--cluster is about shards"),
        (("--shards", 0), "must be at least 1"),
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

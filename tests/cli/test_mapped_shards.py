"""``--cache`` with ``--shards``: the same model from the cache of every run."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hopefear.cli import main
from hopefear.cli.surface import cache_folder
from hopefear.tasks import TASKS
from hopefear.training import passes
from tests.support import small_trees

# Sums of 64 bits wrap on purpose; only plain Python tells of it.
pytestmark = [pytest.mark.interpreted, pytest.mark.filterwarnings("ignore:overflow")]
quick = small_trees.quick


def written(task: str) -> str:
    dice = np.random.default_rng(2)
    if task == "classify":
        rows = (np.sort(dice.choice(40, 5, replace=False)) + 1 for _ in range(60))
        return "".join(f"{ids[0] % 2} {' '.join(f'{i}:1' for i in ids)}\n" for ids in rows)
    if task == "tag":
        words = dice.integers(0, 9, (40, 3)).tolist()
        return "\n".join("".join(f"w{w} T{w % 3}\n" for w in sentence) for sentence in words) + "\n"
    if task == "parse":
        return small_trees.written_treebank(12, seed=1).file.text.decode()
    lines = []
    for k in range(40):
        costs = dice.permutation(4).tolist()
        candidates = [{"cost": c, "features": {f"f{c}": 1, f"g{k % 5}": c}} for c in costs]
        lines.append(json.dumps({"id": k, "candidates": candidates}) + "\n")
    return "".join(lines)


SMALL = {"parse": ("--order", "2", "--features", "light", "--hash-bits", "10")}


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for task in ("classify", "tag", "rerank", "parse"):
        (tmp_path / f"{task}.conllu" if task == "parse" else tmp_path / task).write_text(
            written(task)
        )
    monkeypatch.setattr(passes, "_BLOCK", 1500)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def arguments(task: str, *more: str) -> list[str]:
    file = f"{task}.conllu" if task == "parse" else task
    words = ["train", task, "--train", file, "--learner", "perceptron", "--epochs", "2", "--quiet"]
    return [*words, *SMALL.get(task, ()), "--model", "m", *more]


def trained(task: str, *more: str) -> bytes:
    assert main(arguments(task, *more)) == 0
    return Path("m").read_bytes()


@pytest.mark.parametrize("task", ["classify", "tag", "rerank", "parse"])
def test_a_cache_gives_the_same_model_again(place, task) -> None:
    shards = ("--shards", "2", "--merges", "2", "--cache", "c")
    made = trained(task, *shards)  # from a cache that is made for it
    assert b"by_block:true" in made
    assert trained(task, *shards) == made


def test_large_files_are_cached_for_shards_too(place, capsys, monkeypatch) -> None:
    monkeypatch.setitem(TASKS, "classify", replace(TASKS["classify"], large=100))
    monkeypatch.setenv("HOPEFEAR_CACHE", str(place / "usual"))
    argv = arguments("classify", "--shards", "2")
    assert main([word for word in argv if word != "--quiet"]) == 0
    assert f"cached in {place / 'usual' / 'data'}" in capsys.readouterr().err
    assert b"by_block:true" in Path("m").read_bytes()


def test_no_file_is_cached_unasked_for_a_cluster(monkeypatch) -> None:
    monkeypatch.setitem(TASKS, "classify", replace(TASKS["classify"], large=0))
    args = Namespace(task="classify", train="classify", cache=None, bounds=False, cluster="auto")
    assert cache_folder(args, Namespace(say=print)) is None


def test_a_run_that_was_broken_off_goes_on(place, monkeypatch) -> None:
    words = ("--shards", "2", "--merges", "2", "--cache", "c")
    whole = trained("tag", *words)
    saved = ("--checkpoint", "saved", "--checkpoint-every", "0.000001")
    learn, calls = passes.Passes.at, []

    def broken(self, *args):
        for piece in learn(self, *args):
            calls.append(1)
            if len(calls) >= 12:
                raise KeyboardInterrupt
            yield piece

    with monkeypatch.context() as patch:
        patch.setattr(passes.Passes, "at", broken)
        assert main(arguments("tag", *words, *saved)) != 0
    assert list(Path("saved").iterdir())
    assert trained("tag", *words, *saved, "--resume") == whole

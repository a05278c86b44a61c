"""``--cache`` with ``--shards``: the same model from the cache of every run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hopefear.cli import main
from hopefear.training import passes

# Sums of 64 bits wrap on purpose; only plain Python tells of it.
pytestmark = [pytest.mark.interpreted, pytest.mark.filterwarnings("ignore:overflow")]


def written(task: str) -> str:
    dice = np.random.default_rng(2)
    if task == "classify":
        rows = (np.sort(dice.choice(40, 5, replace=False)) + 1 for _ in range(60))
        return "".join(f"{ids[0] % 2} {' '.join(f'{i}:1' for i in ids)}\n" for ids in rows)
    words = dice.integers(0, 9, (40, 3)).tolist()
    return "\n".join("".join(f"w{w} T{w % 3}\n" for w in sentence) for sentence in words) + "\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for task in ("classify", "tag"):
        (tmp_path / task).write_text(written(task))
    monkeypatch.setattr(passes, "_BLOCK", 1500)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def arguments(task: str, *more: str) -> list[str]:
    words = ["train", task, "--train", task, "--learner", "perceptron", "--epochs", "2", "--quiet"]
    return [*words, "--model", "m", *more]


def trained(task: str, *more: str) -> bytes:
    assert main(arguments(task, *more)) == 0
    return Path("m").read_bytes()


@pytest.mark.parametrize("task", ["classify", "tag"])
def test_a_cache_gives_the_same_model_again(place, task) -> None:
    shards = ("--shards", "2", "--merges", "2", "--cache", "c")
    made = trained(task, *shards)  # from a cache that is made for it
    assert b"by_block:true" in made
    assert trained(task, *shards) == made


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

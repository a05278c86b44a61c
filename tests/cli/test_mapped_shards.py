"""``--cache`` with ``--shards``: the model of threads wherever shards run, and no other file."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.support import small_trees

from hopefear import storage
from hopefear.cli import main
from hopefear.cli.surface import cache_folder
from hopefear.data import cache
from hopefear.tasks import TASKS
from hopefear.training import passes

# Sums of 64 bits wrap on purpose; only plain Python tells of it.
pytestmark = [pytest.mark.interpreted, pytest.mark.filterwarnings("ignore:overflow")]
quick = small_trees.quick

PROCESSES = ("--workers", "processes")
BLOCK = ("-p", "block=7")
BLOCKS = ("--mix", "blocks", *BLOCK)


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


def numbers(model: bytes) -> dict[str, bytes]:
    """The arrays of a model file, whatever it says of how it came about."""
    return {k: a.tobytes() for k, a in storage.unpack(model, kind="model", name="m")[1].items()}


@pytest.mark.parametrize("task", ["classify", "tag", "rerank", "parse"])
def test_processes_give_the_model_of_threads(place, task) -> None:
    shards = ("--shards", "2", "--rounds", "2", "--cache", "c")
    made = trained(task, *shards, *PROCESSES)  # from a cache that is made for it
    assert b"by_block:true" in made
    assert trained(task, *shards) == made
    assert trained(task, *shards, *PROCESSES) == made


@pytest.mark.parametrize("task", ["classify", "tag", "rerank", "parse"])
@pytest.mark.parametrize("order", [(), ("--no-shuffle",)])
def test_blocks_are_those_of_one_learner(place, task, order) -> None:
    words = ("--cache", "c", *order)
    alone = numbers(trained(task, *words, *BLOCK))
    assert alone == numbers(trained(task, *words, "--shards", "3", *BLOCKS))
    assert alone == numbers(trained(task, *words, "--shards", "3", *BLOCKS, *PROCESSES))


@pytest.mark.parametrize("more", [(), BLOCKS])
def test_weights_that_the_cache_does_not_hold_go_along(place, more) -> None:
    Path("w").write_text("".join(f"{k % 4 * 0.75}\n" for k in range(60)))
    shards = ("--shards", "2", "--cache", "c", *more)
    plain = trained("classify", *shards, *PROCESSES)
    for weights in (("--class-weight", "balanced"), ("--weights", "w")):
        model = trained("classify", *shards, *weights, *PROCESSES)
        assert trained("classify", *shards, *weights) == model != plain


@pytest.mark.parametrize("where", [(), PROCESSES])
def test_large_files_are_cached_wherever_shards_run(place, capsys, monkeypatch, where) -> None:
    monkeypatch.setitem(TASKS, "classify", replace(TASKS["classify"], large=100))
    monkeypatch.setenv("HOPEFEAR_CACHE", str(place / "usual"))
    argv = arguments("classify", "--shards", "2", *where)
    assert main([word for word in argv if word != "--quiet"]) == 0
    assert f"cached in {place / 'usual' / 'data'}" in capsys.readouterr().err
    assert b"by_block:true" in Path("m").read_bytes()


def test_on_a_cluster_they_are_cached_where_all_machines_see_them(place, monkeypatch) -> None:
    monkeypatch.setitem(TASKS, "classify", replace(TASKS["classify"], large=100))
    said: list[str] = []
    args = Namespace(task="classify", train="classify", cache=None, bounds=False)
    args.cluster_folder = "all"
    assert cache_folder(args, Namespace(say=said.append)) == "all" and "cached in all" in said[0]
    args.cache = "mine"
    assert cache_folder(args, Namespace(say=said.append)) == "mine" and len(said) == 1


def test_a_run_that_was_broken_off_goes_on_elsewhere(place, monkeypatch) -> None:
    words = ("--shards", "2", "--rounds", "2", "--cache", "c")
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
    assert trained("tag", *words, *saved, "--resume", *PROCESSES) == whole


def spoiled(which: str, file: Path) -> None:
    content = bytearray(file.read_bytes())
    if which == "missing":
        file.unlink()
    elif which == "version":
        file.write_bytes(content.replace(cache.MAGIC, b"hopefear-cache 1", 1))
    elif which == "content":
        content[cache.cache_header(file)["arrays"]["labels"]["offset"]] ^= 1
        file.write_bytes(content)
    else:
        Path("classify").write_text(written("classify").replace(" 7:1", ""))
        trained("classify", "--cache", "c")  # another cache under the same name


@pytest.mark.parametrize("mix", [(), BLOCKS])
@pytest.mark.parametrize(
    ("which", "said"),
    [
        ("missing", "cannot be read: No such file"),
        ("version", "a cache of another format version"),
        ("content", "the section labels has changed"),
        ("other", "not the cache that training began with"),
    ],
)
def test_a_worker_refuses_any_other_file(place, capsys, monkeypatch, which, said, mix) -> None:
    """What changes between the first look at a cache and the moment a worker opens it."""
    words = ("--shards", "2", "--cache", "c", *mix, *PROCESSES)
    trained("classify", *words)
    (file,) = Path("c").iterdir()
    portable = passes.Passes.portable

    def late(self):
        told = portable(self)
        monkeypatch.setattr(passes.Passes, "portable", portable)
        spoiled(which, file)
        capsys.readouterr()
        return told

    monkeypatch.setattr(passes.Passes, "portable", late)
    assert main(arguments("classify", *words)) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert str(file.absolute()) in line and said in line and "give --cache a folder" in line

"""``--cache``: the model that the same order gives in memory, and never a stale copy."""

from __future__ import annotations

import errno
import io
import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from hopefear.cli import main
from hopefear.core.memory import available_memory
from hopefear.data import cache
from hopefear.errors import HopefearError
from hopefear.training import passes
from hopefear.training.checkpoints import Checkpoints

pytestmark = pytest.mark.interpreted


def columns(n: int, seed: int = 1) -> str:
    rng = np.random.default_rng(seed)
    kinds, lines = ("NP", "VP", "PP"), []
    for _ in range(n):
        for kind in rng.integers(0, 3, rng.integers(1, 4)).tolist():
            lines += [f"{kinds[kind]}w{rng.integers(9)} P{kind} B-{kinds[kind]}"]
            lines += [f"in{rng.integers(5)} Q I-{kinds[kind]}"] * int(rng.integers(0, 2))
        lines += [". . O", ""]
    return "\n".join(lines) + "\n"


def svmlight(n: int, seed: int = 1) -> str:
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(n):
        label = rng.choice([-1, 1])
        ids = np.sort(rng.choice(60, 6, replace=False)) + 1
        rows.append(f"{label} " + " ".join(f"{i}:{label * (i % 3) + 1}" for i in ids))
    return "\n".join(rows) + "\n"


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "_BLOCK", 2000)
    from hopefear.cli import tag_input as cached

    monkeypatch.setattr(cached, "PIECE_BYTES", 600)


@pytest.fixture
def in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data in memory is visited as a cache is."""

    def by_block(*args):
        return passes.Passes(*args[:5], True)

    monkeypatch.setattr("hopefear.tasks.base.Passes", by_block)


def trained(place: Path, task: str, name: str, *more: str) -> bytes:
    model = place / "m"
    argv = ["train", task, "--train", str(place / name), "--learner", "perceptron"]
    status = main([*argv, "--epochs", "2", "--quiet", "--model", str(model), *more])
    assert status == 0
    return model.read_bytes()


TAG = [
    (),
    ("--min-count", "2"),
    ("--hash-bits", "8"),
    ("--no-names", "--convert", "iobes"),
    ("--class-weight", "B-NP=2", "--learner", "mira"),
]


@pytest.mark.parametrize("more", TAG)
def test_tokens_give_the_model_of_memory(tmp_path, small_blocks, in_blocks, more) -> None:
    (tmp_path / "a.txt").write_text(columns(60))
    memory = trained(tmp_path, "tag", "a.txt", *more)
    folder = ("--cache", str(tmp_path / "caches"))
    assert trained(tmp_path, "tag", "a.txt", *more, *folder) == memory
    assert trained(tmp_path, "tag", "a.txt", *more, *folder) == memory  # from the fresh cache


def test_spans_that_come_late_are_seen_before_a_cache_is_made(
    tmp_path, small_blocks, in_blocks
) -> None:
    """The first piece has no spans, as if labels were tags of words."""
    late = "".join(f"w{i} N O\n\n" for i in range(200)) + columns(30)
    assert len(late.split("B-")[0]) > 1200
    (tmp_path / "a.txt").write_text(late)
    memory = trained(tmp_path, "tag", "a.txt")
    assert trained(tmp_path, "tag", "a.txt", "--cache", str(tmp_path / "caches")) == memory


@pytest.mark.parametrize("more", [(), ("--values", "log"), ("--norm", "none")])
def test_examples_give_the_model_of_memory(tmp_path, small_blocks, in_blocks, more) -> None:
    (tmp_path / "a.svm").write_text(svmlight(80))
    memory = trained(tmp_path, "classify", "a.svm", *more)
    folder = ("--cache", str(tmp_path / "caches"))
    assert trained(tmp_path, "classify", "a.svm", *more, *folder) == memory


def test_blocks_are_shuffled_and_passes_go_on(tmp_path, small_blocks) -> None:
    from hopefear.data.svmlight import read_svmlight

    (tmp_path / "a.svm").write_text(svmlight(80))
    visits = passes.Passes(read_svmlight(tmp_path / "a.svm"), seed=3, by_block=True)
    first, second = (
        [(rows.values.copy(), order) for rows, order in visits.pieces(e)] for e in (0, 1)
    )
    assert len(first) == visits.n_pieces > 2
    assert sum(len(order) for _, order in first) == visits.n == 80
    assert any(not np.array_equal(a[0], b[0]) for a, b in zip(first, second, strict=True))
    rest = list(visits.pieces(0, skip=2))
    assert all(np.array_equal(a[1], b[1]) for a, b in zip(first[2:], rest, strict=True))


@pytest.mark.parametrize(
    ("task", "name", "text"),
    [("classify", "a.svm", svmlight), ("tag", "a.txt", columns)],
)
def test_a_stale_cache_is_built_again_and_said(tmp_path, capsys, monkeypatch, task, name, text):
    (tmp_path / name).write_text(text(20))
    argv = ["train", task, "--train", str(tmp_path / name), "--learner", "perceptron"]
    argv += ["--epochs", "1", "--model", str(tmp_path / "m"), "--cache", str(tmp_path / "c")]

    def said(*more: str) -> str:
        assert main([*argv, *more]) == 0
        return capsys.readouterr().err

    assert "building the cache" in said()
    assert "fresh and used again" in said()
    other = ("--norm", "none") if task == "classify" else ("--min-count", "2")
    assert f"other options ({other[0][2:].replace('-', '_')}); building it again" in said(*other)
    (tmp_path / name).write_text(text(21))
    assert "has changed since; building it again" in said(*other)
    (folder,) = (tmp_path / "c").iterdir()
    monkeypatch.setattr(cache, "__version__", "9.9")
    assert "and this is 9.9; building it again" in said(*other)
    header = folder / cache.HEADER
    header.write_text(header.read_text().replace(f'"format": {cache.FORMAT}', '"format": 1', 1))
    assert "another format version; building it again" in said(*other)
    broken = bytearray((folder / "labels.npy").read_bytes())
    broken[-1] ^= 1
    (folder / "labels.npy").write_bytes(broken)
    assert "labels.npy has changed; building it again" in said(*other)
    header.unlink()  # as a run that was killed while it removed a cache leaves it
    assert "building it again" in said(*other)
    assert "fresh and used again" in said(*other)
    assert os.listdir(tmp_path / "c") == [folder.name]


@pytest.mark.parametrize(
    ("task", "name", "text"),
    [("classify", "a.svm", svmlight), ("tag", "a.txt", columns)],
)
@pytest.mark.parametrize("where", ["spool", "cache"])
def test_a_full_disk_leaves_nothing(tmp_path, capsys, monkeypatch, task, name, text, where):
    (tmp_path / name).write_text(text(20))

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if where == "spool":

        class Full(io.BytesIO):
            write = full  # type: ignore[assignment]

        monkeypatch.setattr(cache.tempfile, "TemporaryFile", lambda dir: Full())
    else:
        monkeypatch.setattr(cache._ArrayWriter, "write", full)
    argv = ["train", task, "--train", str(tmp_path / name), "--learner", "perceptron"]
    folder = tmp_path / "c"
    assert main([*argv, "--model", str(tmp_path / "m"), "--cache", str(folder)]) == 1
    error = capsys.readouterr().err
    assert "No space left" in error and f"{folder}" in error
    assert os.listdir(folder) == [] and not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("a.crf", (), "CRFsuite file"),
        pytest.param(
            "a.txt", ("--learner", "bilstm-crf"), "bilstm-crf", marks=pytest.mark.needs("neural")
        ),
        ("a.txt", ("--cache", "a.txt"), "is a file"),
    ],
)
def test_what_cannot_be_cached_is_refused(
    tmp_path, capsys, monkeypatch, name, more, message
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text(columns(5))
    Path("a.crf").write_text("A\tw=1\nB\tw=2\n\n")
    assert main(["train", "tag", "--train", name, "--model", "m", "--cache", "c", *more]) == 1
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("task", ["rerank", "parse"])
def test_tasks_that_hold_their_data_in_memory_have_no_cache(tmp_path, capsys, task) -> None:
    (tmp_path / "a").write_text("")
    argv = ["train", task, "--train", str(tmp_path / "a"), "--model", str(tmp_path / "m")]
    assert main([*argv, "--cache", str(tmp_path / "c")]) == 1
    assert f"the task {task} holds its data in memory, and has no cache" in capsys.readouterr().err
    assert not (tmp_path / "c").exists()


def test_a_block_larger_than_memory_is_said(tmp_path, capsys, monkeypatch) -> None:
    assert available_memory() is None or available_memory() > 0
    monkeypatch.setattr(passes, "available_memory", lambda: 1000)
    (tmp_path / "a.svm").write_text(svmlight(80))
    argv = ["train", "classify", "--train", str(tmp_path / "a.svm"), "--model", str(tmp_path / "m")]
    assert main([*argv, "--cache", str(tmp_path / "c")]) == 1
    assert "are one block and take" in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(("task", "text"), [("classify", svmlight), ("tag", columns)])
def test_a_cache_that_is_cut_while_it_is_read_ends_the_run_in_words(tmp_path, task, text) -> None:
    (tmp_path / "a").write_text(text(60))
    model = trained(tmp_path, task, "a", "--cache", str(tmp_path / "caches"))
    (cached,) = (tmp_path / "caches").iterdir()
    words = f"-m hopefear train {task} --train a --cache caches --model m --learner perceptron"
    words += " --epochs 100000 --checkpoint points --checkpoint-every 0.01 --quiet"
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        [sys.executable, *words.split()], cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True
    ) as run:
        points = [tmp_path / "points" / f"checkpoint.{k}" for k in (0, 1)]
        while not all(point.exists() for point in points):
            assert run.poll() is None
            time.sleep(0.01)
        os.truncate(cached / "weights.npy", 150)
        _, error = run.communicate(timeout=60)
    assert run.returncode == 1 and error.count("\n") == 1
    assert (
        f"{cached.name}: the cache is damaged: weights.npy " in error and "build it again" in error
    )
    assert (tmp_path / "m").read_bytes() == model
    assert Checkpoints(tmp_path / "points").find() is not None


FORGED = [None, True, -1, 0, 3, 2**63, 10**400, 0.5, "", "x", "<V4", "\ud800", "a\0b", [], [1], {}]


def places(value, path=()):
    """Paths to everything inside of a JSON value."""
    inner = value.items() if isinstance(value, dict) else ()
    for key, one in enumerate(value) if isinstance(value, list) else inner:
        yield (*path, key)
        yield from places(one, (*path, key))


def forged(data: str, rng: random.Random) -> str:
    """A header with something else in it, and the right hash."""
    header = json.loads(data)
    *path, last = rng.choice(list(places(header)))
    inner = header
    for key in path:
        inner = inner[key]
    if rng.random() < 0.25:
        del inner[last]
    else:
        inner[last] = rng.choice(FORGED)
    return json.dumps({**header, "sha256": cache._header_hash(header)})


@pytest.mark.parametrize(("task", "text"), [("classify", svmlight), ("tag", columns)])
def test_forged_headers_with_right_hashes_are_refused_in_words(
    tmp_path, capsys, task, text
) -> None:
    (tmp_path / "a").write_text(text(8))
    folder = ("--cache", str(tmp_path / "caches"))
    trained(tmp_path, task, "a", *folder)
    (cached,) = (tmp_path / "caches").iterdir()
    header, rng = cached / cache.HEADER, random.Random(4)
    data = header.read_text()
    argv = ["train", task, "--train", str(tmp_path / "a"), "--learner", "perceptron", "--quiet"]
    argv += ["--epochs", "1", "--model", str(tmp_path / "m"), *folder]
    refused = 0
    for _ in range(40):
        forgery = forged(data, rng)
        header.write_text(forgery)
        status, error = main(argv), capsys.readouterr().err
        assert status in (0, 1) and "internal error" not in error, error
        header.write_text(forgery)
        try:
            cache.open_cache(cached, verify=True)
        except HopefearError:
            refused += 1
    assert refused > 12

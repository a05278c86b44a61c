"""Pipes: what is looked at to know the format is read too, and nothing is read twice."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from hopefear.cli import main
from hopefear.data.sources import Source
from hopefear.errors import HopefearError

pytestmark = pytest.mark.interpreted

SVM = b"".join(b"%d %d:1 9:0.5\n" % (i % 2, i % 7 + 1) for i in range(300))
TSV = b"".join(b"%s\tword%d here\n" % ((b"good", b"bad")[i % 2], i % 2) for i in range(300))
CONLL = b"".join(b"Ann%d B-PER\nsings O\n\n" % (i % 3) for i in range(60))
CRFSUITE = b"".join(b"B-PER\tw=Ann\tcap\nO\tw=sings\tlow\n\n" for _ in range(60))
LISTS = b"".join(
    b'{"id": "%d", "candidates": [{"text": "a", "cost": 0, "features": {"f": 1}}, '
    b'{"text": "b", "cost": 1, "features": {"g": 1}}]}\n' % i
    for i in range(40)
)
MOSES = b"".join(
    b"%d ||| a b c d ||| LM0= -1 TM0= -2 ||| -3\n%d ||| x b c d ||| LM0= -2 TM0= -1 ||| -3\n"
    % (i, i)
    for i in range(30)
)


@contextmanager
def pipe(folder, data, name="pipe"):
    """A named pipe that another thread fills, a few bytes at first."""
    path = str(folder / name)
    os.mkfifo(path)

    def fill():
        try:
            with open(path, "wb", buffering=0) as out:
                out.write(data[:3])
                out.write(data[3:])
        except BrokenPipeError:
            pass

    thread = threading.Thread(target=fill, daemon=True)
    thread.start()
    yield path
    thread.join(10)
    assert not thread.is_alive()


def trained(task, path, folder, capsys, *more):
    capsys.readouterr()
    assert main(["train", task, "--train", path, "--model", str(folder / "m"), "--epochs", "1",
                 "--quiet", "--json", *more]) == 0  # fmt: skip
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("task", "data", "key", "count"),
    [
        ("classify", SVM, "examples", 300),
        ("classify", TSV, "examples", 300),
        ("tag", CONLL, "sentences", 60),
        ("tag", CRFSUITE, "sentences", 60),
        ("rerank", LISTS, "lists", 40),
    ],
)
def test_training_data_from_a_pipe_is_read_whole(
    task, data, key, count, pack, tmp_path, capsys
) -> None:
    with pipe(tmp_path, pack(data)) as path:
        assert trained(task, path, tmp_path, capsys)[key] == count


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_lists_of_moses_from_a_pipe(pack, tmp_path, capsys) -> None:
    refs = tmp_path / "refs"
    refs.write_text("a b c d\n" * 30)
    with pipe(tmp_path, pack(MOSES)) as path:
        assert trained("rerank", path, tmp_path, capsys, "--refs", str(refs))["lists"] == 30
    with pipe(tmp_path, pack(MOSES), "nbest") as path:
        assert main(["tune", "--nbest", path, "--refs", str(refs), "--weights",
                     str(tmp_path / "w"), "--quiet", "--json"]) == 0  # fmt: skip
    assert json.loads(capsys.readouterr().out)["lists"] == 30


def test_process_substitution_and_standard_input(tmp_path, capsys) -> None:
    train = tmp_path / "a.txt"
    train.write_bytes(SVM)
    command = (
        f"{sys.executable} -m hopefear train classify --train {{}} --model {tmp_path}/m --epochs 1 "
        "--quiet --json"
    )
    for form in (
        f"<(cat {train})",
        f"<(gzip -c {train})",
        f"- --hash-bits 8 < {train}",
        f"- --hash-bits 8 < <(gzip -c {train})",
    ):
        done = subprocess.run(
            ["bash", "-c", command.format(form)], capture_output=True, text=True, timeout=100
        )
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["examples"] == 300, form


def test_a_pipe_is_opened_once(tmp_path) -> None:
    with pipe(tmp_path, b"hope\nfear\n") as path:
        source = Source(path)
        assert [*source.look()] == [*source.look()] == [b"hope", b"fear"]
        assert source.open().read() == b"hope\nfear\n"
        with pytest.raises(HopefearError, match="is a pipe and has been read already"):
            source.open()


def test_marks_blank_files_and_plain_files_are_looked_at(tmp_path) -> None:
    plain = tmp_path / "plain"
    for data, lines in (
        (b"", []),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbfa\n\nb", [b"a", b"", b"b"]),
    ):
        plain.write_bytes(data)
        source = Source(plain)
        assert [*source.look()] == lines
        for _ in range(2):
            assert source.open().read() == data

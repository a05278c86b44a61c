"""Files that memory cannot hold are refused before they are read, and no others."""

from __future__ import annotations

import bz2
import gzip
import lzma
from pathlib import Path

import pytest

from hopefear.cli import main
from hopefear.data import sizes
from hopefear.data.sizes import check_fits, growth_of
from hopefear.errors import HopefearError
from hopefear.tasks import TASKS

TEXT = b"".join(b"%d 1:%d 2:%d\n" % (i % 2, i, i * i) for i in range(20_000))
MIB = 1 << 20


@pytest.fixture
def available(monkeypatch: pytest.MonkeyPatch):
    """Forges the memory that is left."""

    def forge(size: int | None) -> None:
        monkeypatch.setattr(sizes, "available_memory", lambda: size)

    return forge


def test_what_fits_is_read_and_what_clearly_does_not_is_refused(tmp_path, available) -> None:
    path = tmp_path / "a.svm"
    path.write_bytes(TEXT)
    available(2 * len(TEXT))
    check_fits(path, 2.0, "")
    available(2 * len(TEXT) - 1)
    with pytest.raises(HopefearError, match=r"a\.svm: 0\.4 MiB of text take at least 0\.8 MiB"):
        check_fits(path, 2.0, "")
    available(None)  # the system does not tell
    check_fits(path, 1e9, "")


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_packed_files_are_judged_by_their_text(tmp_path, available, monkeypatch, pack) -> None:
    packed = pack(TEXT)
    path = tmp_path / "a"  # what the bytes say counts, as it does for readers
    path.write_bytes(packed)
    assert growth_of(path) == pytest.approx(len(TEXT) / len(packed), rel=1e-6)
    available(len(TEXT))
    check_fits(path, 0.9, "")
    with pytest.raises(HopefearError, match=r"packed, about 0\.4 MiB of text take at least"):
        check_fits(path, 1.1, "")
    monkeypatch.setattr(sizes, "_LOOKED_AT", len(packed) // 2)
    assert growth_of(path) == pytest.approx(len(TEXT) / len(packed), rel=0.9)


def test_what_has_no_size_or_cannot_be_read_is_left_to_the_reader(tmp_path, available) -> None:
    available(1)
    for name in ("-", tmp_path / "missing", tmp_path):
        check_fits(name, 100.0, "")
    (tmp_path / "a.gz").write_bytes(b"no gzip data" * 100)
    assert growth_of(tmp_path / "a.gz") == 1.0


@pytest.mark.parametrize("verb", ["train", "compare"])
@pytest.mark.parametrize("task", ["classify", "tag", "parse", "rerank"])
def test_commands_refuse_what_memory_cannot_hold(
    tmp_path, capsys, available, monkeypatch, verb, task
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a").write_text("x y\n" * 1000)
    available(int(4000 * TASKS[task].memory) - 1)
    words = ["--learner", "perceptron", "--model", "m"]
    if verb == "compare":
        words = ["--learners", "perceptron", "--test", "a"]
    assert main([verb, task, "--train", "a", *words]) == 1
    error = capsys.readouterr().err
    assert "a: 0.0 MiB of text take at least" in error and "are available" in error
    assert ("--cache DIR" in error) == (task in ("classify", "tag")) == ("--stream" in error)
    assert TASKS[task].memory > 0.0


def test_caches_and_streams_are_not_refused(tmp_path, available, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a").write_text("1 1:1\n-1 2:1\n" * 50)
    available(1)
    words = ["train", "classify", "--train", "a", "--learner", "perceptron", "--quiet"]
    assert main([*words, "--model", "m"]) == 1
    assert main([*words, "--model", "m", "--epochs", "1", "--cache", "c"]) == 0
    assert main([*words, "--model", "m", "--stream"]) == 0

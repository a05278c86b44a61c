"""``train parse --cache``: the parser that the same order gives in memory; no stale copy."""

from __future__ import annotations

import errno
import gzip
import io
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support import small_trees

from hopefear.cli import main
from hopefear.cli.parse import corpus
from hopefear.data import cache
from hopefear.data.treebank import read_treebank
from hopefear.tasks import TASKS
from hopefear.training import passes

# Sums of 64 bits wrap on purpose; only plain Python tells of it.
pytestmark = [pytest.mark.interpreted, pytest.mark.filterwarnings("ignore:overflow")]
quick = small_trees.quick
SMALL = ("--features", "light", "--epochs", "2", "--learner", "perceptron")
FEW = ("--hash-bits", "10")  # uncompiled, every weight costs
# Arcs that cross, two roots, and a relation and a tag that come late.
CROSSING = "\n".join(
    f"{k}\tw{k}\tl{k}\tNOUN\tNN{k}\tNumber=Sing|Case={k}\t{head}\t{name}\t_\t_"
    for k, head, name in ((1, 3, "obj"), (2, 4, "late"), (3, 0, "root"), (4, 0, "root"))
)


@pytest.fixture
def in_small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Data in memory is visited as a cache is, and both in several pieces."""

    def by_block(*args, **_):
        return passes.Passes(*args[:5], by_block=True)

    for place in ("hopefear.tasks.base", "hopefear.tasks.parse.pruning"):
        monkeypatch.setattr(f"{place}.Passes", by_block)
    monkeypatch.setattr(passes, "_BLOCK", 3000)
    monkeypatch.setattr(corpus, "PIECE_BYTES", 700)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, n, seed in (("train", 7, 1), ("dev", 2, 2)):
        text = small_trees.written_treebank(n, seed=seed).file.text
        more = f"{CROSSING}\n\n".encode() if name == "train" else b""
        (tmp_path / f"{name}.conllu").write_bytes(text + more)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def trained(*more: str, data: str = "train.conllu") -> bytes:
    argv = ["train", "parse", "--train", os.path.abspath(data), *SMALL, "--quiet", "--model", "m"]
    assert main([*argv, *(() if "--dictionary" in more else FEW), *more]) == 0
    return Path("m").read_bytes()


@pytest.mark.parametrize(
    "more",
    [
        ("--order", "2", "--dev", "dev.conllu"),
        ("--order", "1", "--tree", "projective", "--learner", "mira", "--hash-bits", "12"),
        ("--order", "1", "--dictionary"),
        ("--order", "1", "--unlabelled", "--tags", "pos", "--seed", "3"),
    ],
)
def test_trees_give_the_model_of_memory(place, in_small_blocks, more) -> None:
    memory = trained(*more)
    assert b"|by_block:true|" in memory and b"|pruner:by_block|" in memory
    assert trained(*more, "--cache", "caches") == memory
    assert trained(*more, "--cache", "caches") == memory  # from the fresh cache
    assert [path.suffix for path in (place / "caches").iterdir()] == [".cache"]


def test_a_tagger_tags_the_pieces(place, in_small_blocks, capsys) -> None:
    words = ("--train", "train.conllu", "--column", "upos", "--features", "pos", "--epochs", "1")
    assert main(["train", "tag", *words, "--quiet", "--model", "tagger"]) == 0
    more = ("--order", "1", "--tagger", "tagger")
    memory = trained(*more, "--jackknife", "0")
    assert trained(*more, "--jackknife", "0", "--cache", "c") == memory
    argv = ["train", "parse", "--train", "train.conllu", "--model", "m", *more]
    assert main([*argv, "--cache", "c"]) == 1
    assert "give --jackknife 0, or leave out --cache" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("folder", "more", "message"),
    [
        pytest.param(
            *("c", ("--learner", "biaffine"), "biaffine reads words and holds its data in memory"),
            marks=pytest.mark.needs("neural"),
        ),
        ("dev.conllu", (), "is a file, and caches lie in a folder"),
        ("c", ("--tags", "head"), "has no column 'head' for tags"),
        ("c", ("--bounds", *SMALL, "--order", "1"), "bounds look at old mistakes again"),
    ],
)
def test_what_cannot_be_cached_is_refused(place, capsys, folder, more, message) -> None:
    argv = ["train", "parse", "--train", "train.conllu", "--model", "m", "--cache"]
    assert main([*argv, folder, *more]) == 1
    assert message in capsys.readouterr().err
    assert not Path("m").exists()


@pytest.mark.parametrize("skip", [False, True])
def test_bad_trees_are_refused_with_their_line_or_left_out(
    place, in_small_blocks, capsys, skip
) -> None:
    text = Path("train.conllu").read_text()
    bad = "1\ta\t_\tX\tX\t_\t7\tdep\t_\t_\n\n"
    short = "1\tshort\n\n" if skip else ""
    Path("train.conllu").write_text(f"# first\n{text}{bad}{short}{text}{bad * 40}# last\n")
    if not skip:
        argv = ["train", "parse", "--train", "train.conllu", *SMALL, "--model", "m"]
        said = []
        for more in ((), ("--cache", "c")):
            assert main([*argv, *more]) == 1
            said.append(capsys.readouterr().err.splitlines()[-1])
        assert said[0] == said[1] and f"train.conllu:{text.count(chr(10)) + 2}" in said[0]
        assert os.listdir("c") == []
        return
    memory = trained("--on-error", "skip", "--order", "1")
    assert trained("--on-error", "skip", "--order", "1", "--cache", "c") == memory


def test_a_stale_cache_is_built_again_and_said(place, capsys, monkeypatch) -> None:
    def said(*more: str) -> str:
        argv = ["train", "parse", "--train", "train.conllu", *SMALL, *FEW, "--model", "m"]
        argv += ["--order", "1", "--tree", "projective", "--epochs", "1", "--cache", "c"]
        assert main([*argv, *more]) == 0
        return capsys.readouterr().err

    first = said()
    assert "building the cache" in first
    again = said()
    assert "fresh and used again" in again
    size = read_treebank("train.conllu").describe()
    for word in (f"train.conllu: {size}, ", "cross others, in 1 sentences, were lifted"):
        assert word in first and word in again
    assert "other options (heads); building it again" in said("--heads", "5")
    assert "other options (heads, seed); building it again" in said("--seed", "2")
    content = (place / "train.conllu").read_bytes()
    (place / "train.conllu").write_bytes(content + f"{CROSSING}\n\n".encode())
    assert "has changed since; building it again" in said("--seed", "2")
    said()
    (file,) = (place / "c").iterdir()
    with monkeypatch.context() as patch:
        patch.setattr(cache, "__version__", "9.9")
        assert "and this is 9.9; building it again" in said()
    said()
    content = file.read_bytes()
    file.write_bytes(content.replace(cache.MAGIC, b"hopefear-cache 1", 1))
    assert "another format version; building it again" in said()
    model = Path("m").read_bytes()
    for section in ("starts", "words", "heads", "features.reach", "pruner.weights.values"):
        broken = bytearray(content)
        broken[cache.cache_header(file)["arrays"][section]["offset"] + 1] ^= 1
        file.write_bytes(broken)
        assert "damaged" in said(), section
        assert Path("m").read_bytes() == model and file.read_bytes() == content
    assert os.listdir("c") == [file.name]


@pytest.mark.parametrize("where", ["spool", "cache", "last"])
def test_a_full_disk_leaves_nothing(place, capsys, monkeypatch, where) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if where == "spool":

        class Full(io.BytesIO):
            write = full  # type: ignore[assignment]

        monkeypatch.setattr(cache.tempfile, "TemporaryFile", lambda dir: Full())
    else:
        calls = iter([where == "cache", True])  # the arcs of the pruner, the cache itself
        sync = os.fsync
        monkeypatch.setattr(
            "hopefear.storage.atomic.os.fsync", lambda file: (full if next(calls) else sync)(file)
        )
    argv = ["train", "parse", "--train", "train.conllu", *SMALL, "--order", "1", "--model", "m"]
    assert main([*argv, "--cache", "c"]) == 1
    assert "No space left" in capsys.readouterr().err
    assert os.listdir("c") == [] and not Path("m").exists()


def test_an_interrupt_while_the_pruner_learns_leaves_nothing(place, capsys, monkeypatch) -> None:
    lying = []

    def interrupted(*_: object) -> None:
        lying.extend(os.listdir("c"))
        raise KeyboardInterrupt

    monkeypatch.setattr("hopefear.tasks.parse.pruning.OnlineTrainer.learn", interrupted)
    argv = ["train", "parse", "--train", "train.conllu", *SMALL, "--order", "1", "--model", "m"]
    assert main([*argv, "--cache", "c"]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "hopefear: interrupted"
    assert lying == os.listdir("c") == [] and not Path("m").exists()


def test_large_treebanks_are_cached_without_being_asked(place, capsys, monkeypatch) -> None:
    monkeypatch.setenv("HOPEFEAR_CACHE", str(place / "usual"))
    monkeypatch.setitem(TASKS, "parse", replace(TASKS["parse"], large=10))
    trained("--order", "1", "--learner", "mira", "--bounds")  # which needs the data in memory
    assert not (place / "usual" / "data").exists()
    (place / "train.conllu.gz").write_bytes(gzip.compress(Path("train.conllu").read_bytes()))
    trained("--order", "1")
    trained("--order", "1", data="train.conllu.gz")
    assert len(list((place / "usual" / "data").iterdir())) == 2

"""Closed descriptors, full devices, null bytes, half characters: one message, the right status."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hopefear
from hopefear import storage
from hopefear.cli.config import read_config, with_place_of_best
from hopefear.cli.serve import _token as token_of
from hopefear.data import sources
from hopefear.data.lists.files import read_lists
from hopefear.data.sidecars import read_weights
from hopefear.data.svmlight import read_svmlight
from hopefear.errors import HopefearError
from hopefear.features.templates import load_templates, parse_templates
from hopefear.features.templates.spec import read_lexicon
from hopefear.recipes.base import position_sets
from hopefear.tasks.parse.prepare import templates_of
from hopefear.tasks.tag.label_costs import read_prices
from hopefear.training.checkpoints import Checkpoints
from hopefear.training.events import EventLog
from hopefear.translation.weights import Weights

pytestmark = [
    pytest.mark.interpreted,
    pytest.mark.skipif(os.name != "posix", reason="descriptors of POSIX"),
]
SOURCE = str(Path(hopefear.__file__).parents[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("edges")
    hopefear.Classifier("perceptron").fit([[1.0], [-1.0]], [1, 2]).save(place / "m")
    (place / "rows").write_text("1 0:1\n2 0:-1\n")
    return place


def shell(folder, words):
    command = f"{shlex.quote(sys.executable)} -m hopefear {words}"
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": SOURCE}
    return subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, cwd=folder, env=env, timeout=100
    )


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("--help >&-", 1, "cannot write standard output: it is closed"),
        ("train tag --help > /dev/full", 1, "cannot write standard output: No space left"),
        ("--version > /dev/full", 1, "cannot write standard output: No space left"),
        ("inspect --model m --json >&-", 1, "cannot write standard output: it is closed"),
        ("predict --model m --input rows >&-", 1, "cannot write standard output: it is closed"),
        ("predict --model m --input rows --output out >&- <&-", 0, None),
        ("predict --model m --input - <&-", 1, "cannot be read: it is closed"),
        ("inspect --model - <&-", 1, "standard input: it is closed"),
        ("inspect --model nothing 2>&-", 1, ""),
        ("inspect --model m >&- 2>&- <&-", 0, ""),
        ("inspect 2>&-", 2, ""),
    ],
)
def test_streams_that_are_closed_or_full(folder, words, status, said):
    answer = shell(folder, words)
    assert answer.returncode == status, answer.stderr
    assert answer.stdout == "" and "Traceback" not in answer.stderr
    if said:
        assert said in answer.stderr and answer.stderr.count("\n") == 1
    elif said == "":
        assert answer.stderr == ""


def test_no_file_takes_the_place_of_a_closed_stream(folder):
    answer = shell(folder, "predict --model m --input rows --output out2 2>&- >&- <&-")
    assert answer.returncode == 0 and (folder / "out2").read_text() == "1\n2\n"


@pytest.mark.parametrize(
    "action",
    [
        hopefear.load,
        read_svmlight,
        load_templates,
        Weights.read,
        EventLog,
        lambda path: storage.save(path, "model", {}, {}),
        lambda path: Checkpoints(path).make_folder(),
        lambda path: Weights((("a", 1),), [1.0]).write(path),
    ],
    ids=range(8),
)
def test_a_null_byte_in_a_path(action, tmp_path):
    with pytest.raises(HopefearError, match="embedded null"):
        action(f"{tmp_path}/a\0b")


def test_a_null_byte_in_the_name_of_a_lexicon(tmp_path):
    path = tmp_path / "t.toml"
    path.write_text('[lexicons]\na = "x\\u0000y"\n[[templates]]\nfeatures = ["lexicon(a)"]\n')
    with pytest.raises(HopefearError, match=r"a readable lexicon \(embedded null byte\)"):
        load_templates(path)


@pytest.mark.parametrize(
    "text",
    [
        "padding = 1" + "0" * 5000,
        "padding = " + "[" * 100_000,
        "padding = " + "{a=" * 3000,
        "a" + ".a" * 100_000 + " = 1",
        "[a" + ".a" * 100_000 + "]",
        '[[templates]]\nfeatures = ["word[' + "9" * 5000 + ']"]',
        '[[templates]]\nfeatures = ["suffix(word,1..' + "9" * 5000 + ')"]',
    ],
    ids=range(7),
)
def test_templates_without_end(text):
    with pytest.raises(HopefearError) as caught:
        parse_templates(text, "t.toml")
    assert len(str(caught.value)) < 500


HALF = "\udc80"


def test_half_a_character_in_tokens_and_classes(tmp_path):
    candidates = [{"tree": "(S (A a))", "logprob": 1.0}]
    record = {"id": "1", "gold": "(S (A a))", "tokens": [HALF], "candidates": candidates}
    path = tmp_path / "p.jsonl"
    path.write_text(json.dumps(record))
    with pytest.raises(HopefearError, match=r"p.jsonl:1: expected a list as JSON.*surrogate"):
        list(read_lists(path, format="ptb"))
    with pytest.raises(
        (HopefearError, ValueError), match=r"the label '\\udc80' is no Unicode text"
    ):
        hopefear.Classifier("perceptron").fit([[1.0], [-1.0]], [HALF, "b"])


def test_messages_spell_out_what_terminals_obey(folder):
    answer = shell(folder, "inspect --model $(printf 'a\\033[31mb')")
    assert answer.stderr == "hopefear: cannot read a\\x1b[31mb: No such file or directory\n"


@pytest.mark.parametrize(
    "read",
    [
        lambda path: read_config(["--config", path]),
        load_templates,
        lambda path: read_lexicon(Path(path), "t.toml"),
        templates_of,
        position_sets,
        read_prices,
        lambda path: read_weights(path, 100),
        Weights.read,
        token_of,
    ],
    ids=range(9),
)
def test_small_files_that_have_no_end(read, tmp_path):
    path = tmp_path / "zeros.toml"
    path.symlink_to("/dev/zero")
    with pytest.raises(HopefearError, match=r"zeros\.toml.* at most [0-9,]* bytes"):
        read(str(path))


def test_what_a_search_wrote_is_looked_for_on_a_short_line():
    assert with_place_of_best(["--config", "/dev/zero"]) == ["--config", "/dev/zero"]


@pytest.mark.parametrize("name", ["a.txt", "a.txt.zst"])
@pytest.mark.parametrize("task", ["tag", "parse"])
def test_zeros_are_not_taken_for_a_sentence(name, task, tmp_path, capsys):
    zstandard = pytest.importorskip("zstandard")
    path, zeros = tmp_path / name, bytes(1 << 24)
    if name == "a.txt":
        path.symlink_to("/dev/zero")
    else:
        packer = zstandard.ZstdCompressor().compressobj()
        path.write_bytes(b"".join(packer.compress(zeros) for _ in range(8)) + packer.flush())
    assert hopefear.cli.main(["train", task, "--train", str(path), "--model", f"{tmp_path}/m"]) == 1
    error = capsys.readouterr().err
    assert re.search(rf"{name}: expected sentences.*without a blank line", error), error


def test_sentences_may_be_long_but_not_endless(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "MAX_SENTENCE_BYTES", 3 << 20)
    path = tmp_path / "a.txt"
    for end in (b"\n\n", b"\r\n\r\n", b"\n \t\n"):
        path.write_bytes((b"a A\n" * (1 << 19) + end) * 5)
        assert len(sources.load(path)) == path.stat().st_size
    path.write_bytes(b"a A\n" * (1 << 20))
    with pytest.raises(HopefearError, match=r"a\.txt: expected sentences"):
        sources.load(path)


def test_what_is_made_from_private_data_is_private(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("rows").write_text("1 0:1\n2 0:-1\n" * 9)
    words = "train classify --train rows --learner perceptron --quiet --cache caches"
    old = os.umask(0o022)
    try:
        for mode, file, folder in (
            (0o600, 0o600, 0o700),
            (0o640, 0o640, 0o750),
            (0o644, 0o644, 0o755),
        ):
            os.chmod("rows", mode)
            place = f"{mode:o}"
            more = f"--model {place} --run run-{place} --checkpoint points-{place}"
            assert hopefear.cli.main([*words.split(), *more.split()]) == 0
            (cache,) = Path("caches").iterdir()
            made = [Path(place), *Path(f"run-{place}").iterdir(), *cache.iterdir()]
            assert len(made) > 3 and {path.stat().st_mode & 0o777 for path in made} == {file}
            for name in (f"run-{place}", "caches", cache, f"points-{place}"):
                assert Path(name).stat().st_mode & 0o777 == folder
            shutil.rmtree("caches")
        assert os.umask(0o022) == 0o022
    finally:
        os.umask(old)


@pytest.mark.parametrize(
    ("task", "name", "text", "learner"),
    [
        ("classify", "x.svm", "1 0:1\n2 0:-1\n" * 2, "vrda -p l1=100"),
        ("tag", "x.txt", "a A\nb B\n\n" * 3, "crf-owlqn -p l1=100"),
        ("rerank", "x.jsonl", '{"id": "q", "candidates": [{"cost": 0, "features": {"f": 1}}, '
                              '{"cost": 1, "features": {"f": 2}}]}\n', "vrda -p l1=100"),
        ("parse", "x.conllu", "1\tStop\tstop\tVERB\tVB\t_\t0\troot\t_\t_\n\n" * 3,
         "perceptron"),
    ],
)  # fmt: skip
def test_an_empty_model_is_said(run, folder, task, name, text, learner):
    (folder / name).write_text(text)
    status, _, err = run(
        *("train", task, "--train", name, "--learner", *learner.split(), "--epochs", 2),
        *("--model", "empty.model", "--quiet"),
    )
    assert status == 0 and err.startswith("hopefear: warning: "), err
    assert "all weights are zero" in err and err.count("\n") == 1
    assert json.loads(run("inspect", "--model", "empty.model", "--json")[1])["nnz"] == 0

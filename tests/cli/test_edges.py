"""Closed descriptors, full devices, null bytes, half characters: one message, the right status."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import hopefear
from hopefear import storage
from hopefear.data.lists.files import read_lists
from hopefear.data.svmlight import read_svmlight
from hopefear.errors import HopefearError
from hopefear.features.templates import load_templates, parse_templates
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
    with pytest.raises(HopefearError, match=r"p.jsonl:1: .*Unicode text as tokens"):
        list(read_lists(path, format="ptb"))
    with pytest.raises(
        (HopefearError, ValueError), match=r"the label '\\udc80' is no Unicode text"
    ):
        hopefear.Classifier("perceptron").fit([[1.0], [-1.0]], [HALF, "b"])


def test_messages_spell_out_what_terminals_obey(folder):
    answer = shell(folder, "inspect --model $(printf 'a\\033[31mb')")
    assert answer.stderr == "hopefear: cannot read a\\x1b[31mb: No such file or directory\n"


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

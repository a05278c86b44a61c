"""``train --stream``: lines of a pipe are learnt once as they come, and models are always whole."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from hopefear.cli import main
from hopefear.tasks.classify.model import Model
from hopefear.tasks.tag.model import SequenceModel
from hopefear.training.streams import Standing

pytestmark = pytest.mark.interpreted


def lines(n: int, seed: int = 1) -> list[str]:
    rng = np.random.default_rng(seed)
    labels = rng.choice([-1, 1], n)
    return [f"{y} {3 + y}:1 {10 + int(rng.integers(9))}:1\n" for y in labels]


def texts(n: int) -> list[str]:
    return [
        f"{'good' if i % 2 else 'bad'}\t{'fine' if i % 2 else 'dull'} film {i}\n" for i in range(n)
    ]


def sentences(n: int) -> list[str]:
    rng = np.random.default_rng(2)
    out = []
    for _ in range(n):
        kinds = rng.integers(0, 2, int(rng.integers(2, 5)))
        out.append("".join(f"{'dog' if k else 'runs'} {'N' if k else 'V'}\n" for k in kinds) + "\n")
    return out


@pytest.fixture
def pipe(tmp_path: Path):
    """A named pipe that a thread writes pieces to, and what it does at the end."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    threads = []

    def writing(pieces, then=lambda: None) -> str:
        def write() -> None:
            with open(path, "w") as out:
                for piece in pieces:
                    out.write(piece)
                    out.flush()
                then()

        threads.append(threading.Thread(target=write, daemon=True))
        threads[-1].start()
        return str(path)

    yield writing
    for thread in threads:
        thread.join(10)


def run(task: str, path: str, model: Path, *more: str) -> int:
    argv = ["train", task, "--stream", "--train", path, "--learner", "perceptron"]
    plain = ["--no-temperature"] if task == "tag" else []  # which takes long to fit
    return main([*argv, "--hash-bits", "10", "--model", str(model), *plain, *more])


def test_examples_of_a_pipe(tmp_path, pipe, capsys) -> None:
    model = tmp_path / "m"
    path = pipe(lines(300))
    assert run("classify", path, model, "--format", "svmlight", "--json") == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert result["examples"] == result["weight"] == 300 and result["saved"] == 1
    counters = [int(line.split()[2].replace(",", "")) for line in err.splitlines()
                if len(line.split()) == 6 and line.split()[0][0].isdigit()]  # fmt: skip
    assert counters == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    assert 0.0 < result["online_error"] < 20.0
    (tmp_path / "new.svm").write_text("".join(lines(50, seed=9)))
    assert (
        main(["evaluate", "--model", str(model), "--data", str(tmp_path / "new.svm"), "--json"])
        == 0
    )
    assert json.loads(capsys.readouterr().out)["accuracy"] > 95.0


@pytest.mark.parametrize("size", [1, 7, 400])
def test_the_model_does_not_depend_on_how_lines_come(tmp_path, pipe, size) -> None:
    text = "".join(lines(60))
    pieces = [text[i : i + size * 10] for i in range(0, len(text), size * 10)]
    assert run("classify", pipe(pieces), tmp_path / "m", "--format", "svmlight", "--quiet") == 0
    (tmp_path / "whole.svm").write_text(text)
    whole = str(tmp_path / "whole.svm")
    assert run("classify", whole, tmp_path / "n", "--format", "svmlight", "--quiet") == 0
    assert (tmp_path / "m").read_bytes() == (tmp_path / "n").read_bytes()


def test_texts_and_labels_that_are_named(tmp_path, pipe, capsys) -> None:
    model = tmp_path / "m"
    more = ("--format", "tsv", "--classes", "bad,good,odd", "--dev", str(tmp_path / "dev.tsv"))
    (tmp_path / "dev.tsv").write_text("".join(texts(20)))
    assert run("classify", pipe([*texts(80), "odd\twhat\n"]), model, *more, "--json") == 0
    assert json.loads(capsys.readouterr().out)["dev"]["accuracy"] > 90.0
    assert Model.load(model).classes == ("bad", "good", "odd")


def test_models_are_written_again_and_again(tmp_path, pipe) -> None:
    model, sizes = tmp_path / "m", []

    def pieces():
        for part in range(1, 4):
            yield "".join(lines(120, seed=part))
            for _ in range(300):  # until it has been learnt
                if model.exists() and examples() >= 120 * part:
                    break
                time.sleep(0.1)
            sizes.append(examples())

    def examples() -> int:
        return Model.load(model).about["training"]["samples"]

    more = ("--format", "svmlight", "--classes=-1,1", "--save-every", "40", "--quiet")
    assert run("classify", pipe(pieces()), model, *more) == 0
    assert sizes == [120, 240, 360]
    assert sorted(os.listdir(tmp_path)) == ["m", "pipe"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_interrupt_saves_the_model_though_nothing_comes(tmp_path, pipe, capsys, number) -> None:
    done, model = threading.Event(), tmp_path / "m"

    def interrupt() -> None:
        while not model.exists():
            time.sleep(0.1)
        os.kill(os.getpid(), number)
        done.wait(10)

    more = ("--format", "svmlight", "--classes=-1,1", "--save-every", "50")
    status = run("classify", pipe(["".join(lines(190))], interrupt), model, *more)
    done.set()
    err = capsys.readouterr().err
    assert status == 128 + number, err
    assert "interrupted after" in err and "the model of all of them is in" in err
    assert Model.load(model).about["training"]["samples"] >= 50


def test_new_labels_and_bad_lines(tmp_path, pipe, capsys) -> None:
    model = tmp_path / "m"
    many = "".join(lines(6000))  # more than comes at once
    assert run("classify", pipe([many, "7 4:1\n"]), model, "--format", "svmlight", "--quiet") == 1
    err = capsys.readouterr().err
    assert ":6001" in err and "what came before" in err and "--on-error skip" in err
    assert Model.load(model).about["training"]["samples"] > 0
    more = ("--format", "svmlight", "--on-error", "skip", "--json", "--classes=-1,1")
    pieces = [*lines(200), "7 4:1\n", "what?\n", *lines(10)]
    assert run("classify", pipe(pieces), model, *more) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["examples"] == 210 and json.loads(out)["skipped"] == 2
    assert run("classify", pipe(["1 1:1\n"]), model, "--format", "svmlight") == 1
    assert "name all of them with --classes" in capsys.readouterr().err


def test_sentences(tmp_path, pipe, capsys) -> None:
    model = tmp_path / "m"
    (tmp_path / "dev.txt").write_text("".join(sentences(10)))
    more = (
        "--format",
        "columns",
        "--dev",
        str(tmp_path / "dev.txt"),
        "--json",
        "--save-every",
        "50",
    )
    assert run("tag", pipe(sentences(120)), model, *more) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["examples"], result["saved"]) == (120, 3)
    assert result["dev"]["accuracy"] > 95.0
    assert set(SequenceModel.load(model).labels) == {"N", "V"}
    new = "dog X\n\n"
    pieces = [*sentences(1000), new, *sentences(5)]
    assert run("tag", pipe(pieces), model, "--format", "columns", "--quiet") == 1
    assert "one of the labels" in capsys.readouterr().err
    assert (
        run("tag", pipe(pieces), model, "--format", "columns", "--on-error", "skip", "--json") == 0
    )
    assert json.loads(capsys.readouterr().out)["skipped"] == 1


@pytest.mark.parametrize(
    ("task", "more", "status", "said"),
    [
        ("classify", ("--epochs", "2"), 2, "comes once"),
        ("classify", ("--cache", "c"), 2, "not with --stream"),
        ("classify", ("--values", "tfidf"), 1, "read as a whole"),
        ("classify", ("--learner", "batch-maxent"), 1, ""),
        ("tag", ("--learner", "batch-crf"), 1, ""),
        ("tag", ("--min-count", "2"), 1, "read as a whole"),
        ("rerank", (), 1, "read as a whole"),
        ("parse", (), 1, "read as a whole"),
    ],
)
def test_what_streams_cannot_have(tmp_path, capsys, task, more, status, said) -> None:
    (tmp_path / "a").write_text("".join(lines(5)))
    argv = [
        "train",
        task,
        "--stream",
        "--train",
        str(tmp_path / "a"),
        "--model",
        str(tmp_path / "m"),
    ]
    assert main([*argv, *more]) == status
    assert said in capsys.readouterr().err
    assert not (tmp_path / "m").exists()


@pytest.fixture
def standard_input(monkeypatch):
    """Put bytes into standard input."""

    def filled(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    return filled


def piped(tmp_path: Path, *more: str) -> int:
    argv = ["train", "classify", "--train", "-", "--model", str(tmp_path / "m")]
    return main([*argv, "--format", "svmlight", *more])


def test_standard_input_is_a_stream_by_itself(tmp_path, standard_input, capsys) -> None:
    standard_input("".join(lines(300)))
    more = ("--learner", "perceptron", "--hash-bits", "10", "--save-every", "100")
    assert piped(tmp_path, *more, "--json") == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["saved"] == 4 and "since" in err
    assert err.count("as it comes, once (--no-stream") == 1
    (tmp_path / "a").write_text("".join(lines(300)))
    assert run("classify", str(tmp_path / "a"), tmp_path / "n", "--format", "svmlight") == 0
    one, other = (Model.load(tmp_path / name) for name in "mn")
    assert one.signature == other.signature
    np.testing.assert_array_equal(one.weights, other.weights)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        (("--no-stream",), ""),
        (("--epochs", "2"), "--epochs 2 needs data that can be read again"),
        (("--no-shuffle",), "--no-shuffle needs data that can be read again"),
        (("--learner", "ssvm-bcfw"), "ssvm-bcfw learns from all data at once"),
        (("--values", "tfidf"), "--values tfidf needs all of it"),
        (("--class-weight", "balanced"), "--class-weight balanced needs all of it"),
    ],
)
def test_standard_input_is_read_whole_where_it_must_be(
    tmp_path, standard_input, capsys, more, reason
) -> None:
    standard_input("".join(lines(60)))
    assert piped(tmp_path, *more, "--json") == 0
    out, err = capsys.readouterr()
    assert "saved" not in json.loads(out)
    assert err.count("standard input is") == bool(reason) and reason in err


def test_a_class_that_comes_late_names_what_can_be_done(tmp_path, standard_input, capsys) -> None:
    standard_input("".join([*lines(2200), "late 1:1\n"]))
    assert piped(tmp_path, "--hash-bits", "8") == 1
    assert "--no-stream reads standard input to its end first" in capsys.readouterr().err


def test_what_is_no_stream_cannot_be_saved_on_the_way(tmp_path, standard_input, capsys) -> None:
    standard_input("".join(lines(60)))
    assert piped(tmp_path, "--epochs", "3", "--save-every", "10") == 2
    assert "--save-every belongs to streams, and --epochs 3 needs" in capsys.readouterr().err


def test_saving_belongs_to_streams(tmp_path, capsys) -> None:
    argv = ["train", "classify", "--train", "a", "--model", "m", "--save-every", "3"]
    assert main(argv) == 2
    assert "belongs to --stream" in capsys.readouterr().err
    assert Standing().error == Standing().mean_loss == 0.0

"""Bad input by way of the command: one line, its place, status 1, nothing half written."""

from __future__ import annotations

import gzip
import json

import pytest

from hopefear import storage
from hopefear.cli import main
from hopefear.data.generators import sparse_linear
from hopefear.data.write_svmlight import write_svmlight
from hopefear.tasks.classify.model import Model

pytestmark = pytest.mark.interpreted

GOOD = b"1 1:1 2:0.5\n-1 2:1\n"
BAD_LINES = {
    "ragged": (b"1 1:2 3\n", "id:value"),
    "no number": (b"1 1:x\n", "number"),
    "no label": (b"one 1:2\n", "label"),
    "nan": (b"1 1:nan\n", "finite"),
    "inf": (b"1 1:1e999\n", "finite"),
    "negative id": (b"1 -1:2\n", "feature id"),
    "huge id": (b"1 9223372036854775808:1\n", "2**63"),
    "binary": (b"\x00\x01\x02\xff\xfe\n", "label"),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    data = sparse_linear(200, 30, per_row=(3, 8), true_weights=10, seed=2).dataset()
    write_svmlight(folder / "train.svm", data)
    path = folder / "good.model"
    assert main(["train", "classify", "--quiet", "--train", str(folder / "train.svm"), "--model",
                 str(path)]) == 0  # fmt: skip
    return path


@pytest.fixture
def refused(tmp_path, capsys, monkeypatch, model):
    """Each verb must refuse a file with one line that says all of ``told``."""
    monkeypatch.chdir(tmp_path)

    def check(name, *told, verbs=("train", "predict", "evaluate")):
        commands = {
            "train": ["train", "classify", "--train", name, "--model", "out.model", "--quiet",
                      "--run", "run", "--checkpoint", "state"],
            "predict": ["predict", "--model", str(model), "--input", name, "--output", "out.txt"],
            "evaluate": ["evaluate", "--model", str(model), "--data", name, "--json"],
        }  # fmt: skip
        before = set(tmp_path.iterdir())
        for verb in verbs:
            capsys.readouterr()
            assert main(commands[verb]) == 1, verb
            out, err = capsys.readouterr()
            assert out == "", verb
            assert err.startswith("hopefear: "), err
            assert err.count("\n") == 1, err
            for word in told:
                assert word in err, (verb, err)
            assert set(tmp_path.iterdir()) == before, verb

    return check


@pytest.mark.parametrize("kind", BAD_LINES)
def test_bad_lines_are_told_with_their_place(refused, tmp_path, kind):
    line, told = BAD_LINES[kind]
    (tmp_path / "bad.svm").write_bytes(GOOD + line + GOOD)
    refused("bad.svm", "bad.svm:3: ", told)


@pytest.mark.parametrize("kind", BAD_LINES)
def test_bad_lines_can_be_skipped_counted_and_listed(tmp_path, capsys, monkeypatch, model, kind):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.svm").write_bytes(GOOD + BAD_LINES[kind][0] + GOOD)
    argv = ["evaluate", "--model", str(model), "--data", "bad.svm", "--on-error", "skip"]
    assert main(argv) == 0
    err = capsys.readouterr().err
    assert "1 bad line skipped" in err and "bad.svm:3: " in err


def test_files_that_are_empty_absent_or_cut_short(refused, tmp_path):
    (tmp_path / "empty.svm").touch()
    refused("empty.svm", "empty.svm", "at least one row")
    refused("absent.svm", "absent.svm", "No such file")
    refused(".", "cannot be read")
    (tmp_path / "cut.svm.gz").write_bytes(gzip.compress(GOOD * 5000)[:-20])
    refused("cut.svm.gz", "cut.svm.gz", "cut short")
    (tmp_path / "plain.gz").write_bytes(GOOD)
    refused("plain.gz", "plain.gz", "gzip")


def test_one_class_only(refused, tmp_path):
    (tmp_path / "one.svm").write_bytes(b"1 1:1\n1 2:1\n")
    refused("one.svm", "one.svm", "two classes", verbs=["train"])


def test_a_label_that_training_never_saw_is_a_mistake(tmp_path, model, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.svm").write_bytes(GOOD + b"3 1:1\n")
    evaluate = ["evaluate", "--model", str(model), "--data", "new.svm"]
    assert main([*evaluate, "--json", "--report", "new.html"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["new_classes"] == ["3"] and scores["examples"] == 3
    assert scores["classes"]["3"] == {
        **dict.fromkeys(("precision", "recall", "f1"), 0.0),
        **{"support": 1, "predicted": 0},
    }
    assert main(evaluate) == 0
    assert "1 examples of 3, which training lacked" in capsys.readouterr().err
    assert main(["predict", "--model", str(model), "--input", "new.svm"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    train = ["train", "classify", "--train", str(model.parent / "train.svm"), "--dev", "new.svm",
             "--model", "x.model"]  # fmt: skip
    assert main(train) == 1
    assert "new.svm:3: " in capsys.readouterr().err


def test_text_has_its_own_mistakes(refused, tmp_path):
    (tmp_path / "ragged.tsv").write_bytes(b"pos\tgood\nneg bad\n")
    refused("ragged.tsv", "ragged.tsv:2: ", "<TAB>", verbs=["train"])
    (tmp_path / "latin.tsv").write_bytes(b"pos\tgood\nneg\tcaf\xe9\n")
    refused("latin.tsv", "latin.tsv:2: ", "UTF-8", verbs=["train"])


def test_models_of_another_kind_task_version_or_none(tmp_path, capsys, model):
    data = model.read_bytes()
    newer = bytearray(data)
    newer[8] += 1
    cases = {
        "junk": (b"\x93junk" * 100, "model"),
        "empty": (b"", "empty"),
        "cut": (data[:-10], "truncated"),
        "changed": (data[:300] + bytes([data[300] ^ 1]) + data[301:], ""),
        "newer": (bytes(newer), ""),
        "other task": (storage.pack({"task": "guess"}, {}, kind="model"), "'guess'"),
        "empty tagger": (storage.pack({"task": "tag"}, {}, kind="model"), "signature is missing"),
        "checkpoint": (storage.pack({}, {}, kind="checkpoint"), "checkpoint"),
    }
    (tmp_path / "good.svm").write_bytes(GOOD)
    for name, (content, told) in cases.items():
        path = tmp_path / f"{name}.model"
        path.write_bytes(content)
        for argv in (
            ["predict", "--model", path, "--input", tmp_path / "good.svm"],
            ["evaluate", "--model", path, "--data", tmp_path / "good.svm"],
            ["inspect", "--model", path],
        ):
            assert main(list(map(str, argv))) == 1, name
            out, err = capsys.readouterr()
            assert out == "" and err.count("\n") == 1 and told in err, (name, err)


def test_unwritable_outputs_are_told_before_the_work(tmp_path, capsys, model):
    train = str(model.parent / "train.svm")
    for argv, told in (
        (["train", "classify", "--train", train, "--model", str(tmp_path)], "folder"),
        (["train", "classify", "--train", train, "--model", f"{tmp_path}/no/m"], "no folder"),
        (["predict", "--model", str(model), "--input", train, "--output", f"{tmp_path}/no/x"],
         "no folder"),
        (["compare", "classify", "--train", train, "--test", train, "--learners", "rda",
          "--report", f"{tmp_path}/no/x.html"], "no folder"),
        (["report", "absent", "--out", f"{tmp_path}/r.html"], "run.json"),
        (["report", "absent", "--out", f"{tmp_path}/no/r.html"], "no folder"),
    ):  # fmt: skip
        assert main(argv) == 1
        out, err = capsys.readouterr()
        assert out == "" and err.count("\n") == 1 and told in err, err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        (["-p", "l1=-1"], "negative"),
        (["--dev", "train.svm", "--metric", "bleu"], "'bleu'"),
        (["--learner", "cw", "-p", "loss=logistic"], "ConfidenceWeighted"),
        (["--learner", "vrda", "--bounds", "--cache", "c.cache"], "in memory"),
    ],
)
def test_impossible_wishes(capsys, model, monkeypatch, extra, told):
    monkeypatch.chdir(model.parent)
    assert main(["train", "classify", "--quiet", "--train", "train.svm", "--model", "x.model",
                 *extra]) == 1  # fmt: skip
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1 and told in err
    assert not (model.parent / "x.model").exists()


def test_a_strangling_penalty_warns_in_one_line(capsys, model, monkeypatch):
    monkeypatch.chdir(model.parent)
    assert main(["train", "classify", "--quiet", "--train", "train.svm", "--model", "zero.model",
                 "--learner", "vrda", "-p", "l1=10"]) == 0  # fmt: skip
    err = capsys.readouterr().err
    assert err.startswith("hopefear: warning: all weights are zero") and err.count("\n") == 1


def test_debug_shows_where(capsys, tmp_path):
    argv = ["train", "classify", "--train", str(tmp_path / "no"), "--model", str(tmp_path / "m")]
    assert main([*argv, "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err
    assert main(argv) == 1
    assert "Traceback" not in capsys.readouterr().err


def trains(capsys, *argv):
    """The exit status of a command that trains, and the line that refuses."""
    common = ["--model", "x.model", "--quiet", "--learner", "perceptron", "--epochs", "1"]
    status = main(["train", "classify", *argv, *common])
    return status, capsys.readouterr().err


@pytest.mark.parametrize("how", [[], ["--stream", "--hash-bits", "8"], ["--cache", "caches"]])
def test_a_class_for_every_second_row_is_asked_for(capsys, tmp_path, monkeypatch, how):
    monkeypatch.chdir(tmp_path)
    for text in (
        "".join(f"{i / 7:.3f}\ta film {i}\n" for i in range(50)),
        "".join(f"film number {i}\tgood\n" for i in range(50)),
        "".join(f"{i // 2} 1:{i}\n" for i in range(49)),
    ):
        (tmp_path / "some").write_text(text)
        status, err = trains(capsys, "--train", "some", *how)
        assert status == 1 and err.count("\n") == 1
        assert "different labels" in err and "--many-classes" in err
        assert trains(capsys, "--train", "some", "--many-classes", *how) == (0, "")


def test_a_stream_whose_classes_are_named_is_not_asked(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "some").write_text("".join(f"c{i}\ta film {i}\n" for i in range(30)))
    classes = ",".join(f"c{i}" for i in range(30))
    assert trains(
        capsys, "--train", "some", "--stream", "--hash-bits", "8", "--classes", classes
    ) == (0, "")


def test_qid_is_left_out_and_said(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ranks.svm").write_text("1 qid:1 1:1\n0 qid:1 2:1\n" * 4)
    assert main(["train", "classify", "--train", "ranks.svm", "--model", "x.model"]) == 0
    assert "8 lines with a qid:" in capsys.readouterr().err


def test_few_filled_columns_keep_their_length(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    numbers = [1 + 37 * i % 100 for i in range(400)]
    (tmp_path / "one.svm").write_text("".join(f"{int(i > 50)} 1:{i / 10}\n" for i in numbers))
    argv = ["train", "classify", "--train", "one.svm", "--dev", "one.svm", "--model", "m"]
    for how in ([], ["--cache", "caches"], ["--stream", "--hash-bits", "4"]):
        assert main([*argv, *how]) == 0
        err = capsys.readouterr().err
        model = Model.load("m")
        assert model.transform["norm"] == "none"
        assert "one.svm: 2 columns that most rows fill, so rows keep their length" in err
        assert main(["evaluate", "--model", "m", "--data", "one.svm", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["accuracy"] > 80.0
    status, err = trains(capsys, "--train", "one.svm", "--norm", "l2")
    assert status == 1 and "one.svm has one column, and norm l2 leaves nothing" in err
    wide = "".join(f"{int(i > 50)} 1:{i / 10} 60:1\n" for i in numbers)
    for name, text in (("wide.svm", wide), ("few.tsv", "a\tgood\nb\tbad\n")):
        (tmp_path / name).write_text(text)
        assert main(["train", "classify", "--train", name, "--model", "m"]) == 0
        assert "rows keep" not in capsys.readouterr().err
        assert Model.load("m").transform["norm"] == "l2"


def test_a_file_of_targets_is_not_taken_for_new_classes(tmp_path, model, capsys):
    path = tmp_path / "targets.svm"
    path.write_text("".join(f"{i / 7:.4f} 1:1\n" for i in range(1100)))
    assert main(["evaluate", "--model", str(model), "--data", str(path)]) == 1
    assert "more than 1,000 classes that the model lacks" in capsys.readouterr().err

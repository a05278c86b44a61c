"""Verbs on classifiers, and those without a task, as a user types them, in one process."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import sys

import numpy as np
import pytest

from hopefear.cli import main
from hopefear.data.generators import sparse_linear
from hopefear.data.write_svmlight import write_svmlight
from hopefear.tasks.classify.model import Model

pytestmark = pytest.mark.interpreted

TEXTS = ["good fun and good cheer", "a bad film", "not bad at all", "dull and bad", "great fun",
         "boring dull plot"]  # fmt: skip
LABELS = ["pos", "neg", "pos", "neg", "pos", "neg"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("cli")
    for classes in (2, 4):
        first, rest = sparse_linear(
            700, 120, per_row=(4, 12), true_weights=40, classes=classes, seed=5
        ).split(500)
        write_svmlight(place / f"train{classes}.svm", first.dataset())
        write_svmlight(place / f"test{classes}.svm", rest.dataset())
    lines = [f"{label}\t{text}" for label, text in zip(LABELS, TEXTS, strict=True)] * 5
    (place / "train.tsv").write_text("\n".join(lines) + "\n")
    for argv in (
        ["--train", place / "train2.svm", "--model", place / "two.model"],
        ["--train", place / "train4.svm", "--model", place / "four.model"],
        ["--train", place / "train.tsv", "--ngrams", "2", "--model", place / "text.model"],
    ):
        assert main(["train", "classify", "--quiet", *map(str, argv)]) == 0
    return place


def _lines(run):
    return (run / "events.jsonl").read_text().splitlines()


def test_parameters_and_parts_reach_the_learner(run):
    run("train", "classify", "--train", "train2.svm", "--learner", "vrda", "-p", "l1=0.001", "-p",
        "loss=logistic", "-p", "averaging=last", "--model", "p.model")  # fmt: skip
    signature = Model.load("p.model").signature
    assert (
        "loss:logistic" in signature and "l1=0.001" in signature and "averaging:last" in signature
    )


def test_transforms_intercept_and_class_weights(run):
    run("train", "classify", "--train", "train2.svm", "--values", "log", "--norm", "none",
        "--intercept", "0.5", "--class-weight", "1=2,-1=0.5", "--model", "t.model")  # fmt: skip
    model = Model.load("t.model")
    assert dict(model.transform) == {"values": "log", "norm": "none"}
    assert model.structure.bias == 0.5
    assert main(["train", "classify", "--train", "train2.svm", "--class-weight", "7=2", "--model",
                 "x.model"]) == 1  # fmt: skip


def test_norm_is_l2_by_default(folder):
    assert Model.load(folder / "two.model").transform["norm"] == "l2"


def test_names_come_back(run, folder):
    (folder / "names.txt").write_text("".join(f"word{i}\n" for i in range(1, 200)))
    run("train", "classify", "--train", "train2.svm", "--names", "names.txt", "--model", "n.model")
    status, _, err = run("inspect", "--model", "n.model", "--top", 3)
    assert status == 0 and "word" in err


def test_cache_is_built_used_again_and_refreshed(run, folder):
    argv = ["train", "classify", "--train", "cached.svm", "--cache", "c.cache", "--learner",
            "perceptron", "--model", "c.model"]  # fmt: skip
    (folder / "cached.svm").write_bytes((folder / "train2.svm").read_bytes())
    _, _, err = run(*argv)
    assert "building the cache" in err
    first = (folder / "c.model").read_bytes()
    _, _, err = run(*argv, "--class-weight", "balanced")
    assert "used again" in err
    _, _, err = run(*argv)
    assert (folder / "c.model").read_bytes() == first
    with open(folder / "cached.svm", "a") as file:
        file.write("1 1:1\n")
    _, _, err = run(*argv)
    assert "again" in err and "501 examples" in err
    status, _, err = run(*argv[:5], "cached.svm", *argv[6:])
    assert status == 1 and "caches lie in a folder" in err
    assert (folder / "cached.svm").read_text().endswith("1 1:1\n"), "a user's file was overwritten"


def test_bounds_are_shown_and_hold(run, folder):
    status, out, err = run("train", "classify", "--train", "train2.svm", "--learner", "vrda",
                           "--bounds", "--run", "runs/bounds", "--model", "b.model",
                           "--json", "--epochs", 2)  # fmt: skip
    assert status == 0 and "Theorem 1" in err
    bound = json.loads(out)["theory"]
    assert bound["holds"] and bound["mistakes"] <= bound["theorem1"]
    events = [json.loads(line) for line in _lines(folder / "runs/bounds")]
    assert len(events) == 40 and all(e["theory"]["holds"] for e in events)
    run("train", "classify", "--train", "train2.svm", "--learner", "vrda", "--model", "nb.model",
        "--epochs", 2)  # fmt: skip
    assert (folder / "b.model").read_bytes() == (folder / "nb.model").read_bytes()
    status, out, _ = run("train", "classify", "--train", "train2.svm", "--learner", "vrda",
                         "--bounds", "--comparator", "nb.model", "--model", "b2.model",
                         "--json")  # fmt: skip
    assert status == 0 and json.loads(out)["theory"]["holds"]
    status, _, err = run("train", "classify", "--train", "train2.svm", "--bounds", "--model", "x")
    assert status == 1 and "RDA" in err


@pytest.mark.parametrize("which", ["2", "4"])
def test_predict_gives_a_label_a_line_however_the_file_is_packed(run, folder, which):
    model = {"2": "two.model", "4": "four.model"}[which]
    text = (folder / f"test{which}.svm").read_bytes()
    status, out, err = run("predict", "--model", model, "--input", f"test{which}.svm", "--quiet")
    assert (status, err) == (0, "")
    assert len(out.splitlines()) == 200
    assert set(out.split()) <= set(Model.load(model).classes)
    (folder / "packed").write_bytes(gzip.compress(text))
    (folder / "packed.xz").write_bytes(lzma.compress(text))
    bare = b"\n".join(line.split(b" ", 1)[1] for line in text.splitlines())
    for name, stdin in (("packed", b""), ("packed.xz", b""), ("-", text), ("-", bare)):
        assert run("predict", "--model", model, "--input", name, stdin=stdin)[1] == out
    run("predict", "--model", model, "--input", f"test{which}.svm", "--output", "labels.txt")
    assert (folder / "labels.txt").read_text() == out


def test_probabilities_and_nbest_agree_with_the_model(run):
    _, labels, _ = run("predict", "--model", "four.model", "--input", "test4.svm")
    _, out, _ = run("predict", "--model", "four.model", "--input", "test4.svm", "--proba")
    rows = [line.split("\t") for line in out.splitlines()]
    assert [row[0] for row in rows] == labels.split()
    shares = np.array([[float(cell.rpartition(":")[2]) for cell in row[1:]] for row in rows])
    assert shares.shape == (200, 4)
    assert np.allclose(shares.sum(axis=1), 1.0, atol=1e-4)
    _, out, _ = run("predict", "--model", "four.model", "--input", "test4.svm", "--nbest", 2)
    best = [[cell.rpartition(":") for cell in line.split("\t")] for line in out.splitlines()]
    assert [row[0][0] for row in best] == labels.split()
    assert all(len(row) == 2 and float(row[0][2]) >= float(row[1][2]) for row in best)
    _, out, _ = run("predict", "--model", "two.model", "--input", "test2.svm", "--nbest", 9,
                    "--proba")  # fmt: skip
    first = out.splitlines()[0].split("\t")
    assert sum(float(cell.rpartition(":")[2]) for cell in first) == pytest.approx(1.0, abs=1e-4)


def test_text_models_read_text(run):
    _, out, err = run("predict", "--model", "text.model", "--input", "-",
                      stdin=b"good fun\nbad dull thing\n")  # fmt: skip
    assert out == "pos\nneg\n"
    assert "never seen" in err
    _, out, _ = run("evaluate", "--model", "text.model", "--data", "train.tsv", "--json")
    assert json.loads(out)["accuracy"] == 100.0
    _, _, err = run("inspect", "--model", "text.model", "--top", 2)
    assert "good" in err or "dull" in err


def test_hashed_text(run):
    run("train", "classify", "--train", "train.tsv", "--hash-bits", 8, "--model", "h.model")
    _, out, _ = run("inspect", "--model", "h.model", "--json")
    found = json.loads(out)
    assert found["features"] == 256 and 0 <= found["hash_collisions"] <= 100


def test_evaluate_json_has_the_usual_names(run):
    status, out, err = run("evaluate", "--model", "two.model", "--data", "test2.svm", "--json",
                           "--quiet")  # fmt: skip
    assert (status, err) == (0, "")
    found = json.loads(out)
    for name in ("accuracy", "error", "f1", "precision", "recall", "log_loss", "nnz", "examples",
                 "signature"):  # fmt: skip
        assert name in found
    assert found["accuracy"] + found["error"] == pytest.approx(100)
    low, high = found["accuracy_interval"]
    assert low < found["accuracy"] < high
    _, labels, _ = run("predict", "--model", "two.model", "--input", "test2.svm")
    with open("test2.svm") as file:
        gold = [line.split()[0].lstrip("+") for line in file]
    right = sum(a == b for a, b in zip(gold, labels.split(), strict=True))
    assert found["accuracy"] == pytest.approx(100 * right / 200)


def test_evaluate_shows_a_row_for_every_class(run):
    status, out, err = run("evaluate", "--model", "four.model", "--data", "test4.svm")
    assert (status, out) == (0, "")
    rows = [line.split()[0] for line in err.split("class  ")[1].splitlines()[1:5]]
    assert rows == ["0", "1", "2", "3"]
    assert "95 %" in err and "metric:" in err


def test_voted_models_can_be_inspected_and_used(run):
    run("train", "classify", "--train", "train2.svm", "--learner", "perceptron", "-p",
        "averaging=voted", "--model", "voted.model", "--epochs", 2)  # fmt: skip
    status, _, err = run("inspect", "--model", "voted.model")
    assert status == 0 and "predictors" in err and "no single weight" in err
    _, out, _ = run("inspect", "--model", "voted.model", "--json")
    assert json.loads(out)["votes"]["examples"] == 1000
    assert run("evaluate", "--model", "voted.model", "--data", "test2.svm")[0] == 0


def test_inspect_json(run):
    status, out, err = run("inspect", "--model", "four.model", "--top", 2, "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert found["classes"] == ["0", "1", "2", "3"] and len(found["top"]["0"]) <= 2
    assert found["about"]["data"]["examples"] == 500


def test_model_through_standard_streams(folder, monkeypatch, run):
    class Output(io.TextIOWrapper):
        pass

    stream = Output(io.BytesIO(), write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.chdir(folder)
    assert main(["train", "classify", "--train", "train2.svm", "--model", "-"]) == 0
    data = stream.buffer.getvalue()
    assert data == (folder / "two.model").read_bytes()


def test_learners_lists_all_with_effects(run):
    from hopefear.tasks import TASKS, recipes_of

    tables = {task: recipes_of(task) for task in TASKS}
    status, out, err = run("learners")
    assert (status, err) == (0, "")
    for task, recipes in tables.items():
        part = out.split(f"task {task}: ")[1].split("\ntask ")[0]
        assert all(f"\n{name}: " in part for name in recipes)
    _, out, _ = run("learners", "--json")
    found = json.loads(out)
    assert {task: set(found["learners"][task]) for task in tables} == {
        task: set(recipes) for task, recipes in tables.items()
    }
    assert "voted" in found["averaging"] and "rda" in found["rules"]
    for facts in (f for learners in found["learners"].values() for f in learners.values()):
        assert all(p["effect"] for p in facts["parameters"].values()), facts["name"]
    _, out, _ = run("learners", "tg")
    assert "gravity=1e-06" in out and "fewer non-zero weights" in out
    _, out, _ = run("learners", "swvp")
    assert "task tag" in out and "task classify" not in out and "-p beta=1" in out
    status, _, err = run("learners", "swvp", "--task", "classify")
    assert status == 1 and "swvp is a learner for the task tag" in err

    status, _, err = run("learners", "tgg")
    assert status == 1 and "did you mean 'tg'" in err


@pytest.mark.parametrize(
    "words",
    [
        "reproduce sapo --out o",
        "reproduce --help",
        "train classify --train train2.svm --bounds --model x",
    ],
)
def test_without_the_papers_their_commands_say_where_they_are(run, monkeypatch, words):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [])
    status, out, err = run(*words.split())
    assert status == 1 and not out
    assert "hopefear-papers, which is not installed" in err.strip().splitlines()[-1]


def test_commands_are_completed_without_the_papers(run, monkeypatch):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: [])
    status, out, _ = run("completion", "bash")
    assert status == 0 and "evaluate" in out


def test_reproduce_names_its_experiments(run):
    status, _, err = run("reproduce", "nothing", "--out", "o")
    assert status == 2 and "vrda-classification" in err
    status, _, err = run("reproduce", "vrda-classification", "--data", "nowhere", "--out", "o")
    assert status == 1 and "nowhere" in err


@pytest.mark.parametrize(
    ("argv", "told"),
    [
        ([], "a verb is needed"),
        (["trian"], "did you mean 'train'"),
        (["juggle"], "there is no verb"),
        (["train", "tune", "--nbest", "a"], "`hopefear tune` is a verb"),
        (["--quiet", "demo"], "usage"),
        (["train", "sing", "--train", "a", "--model", "b"], "there are classify, tag"),
        (["train", "--train", "a", "--model", "b", "classify"], "a task comes first"),
        (["train", "classify", "--train", "a"], "--model"),
        (["train", "classify", "--train", "a", "--model", "b", "--class-weight", "x"], "LABEL"),
        (["train", "classify", "--train", "a", "--model", "b", "--norm", "l1"], "l2"),
        (["predict", "--model", "-", "--input", "-"], "standard input"),
    ],
)
def test_wrong_usage_is_status_two(run, argv, told):
    status, out, err = run(*argv)
    assert (status, out) == (2, "")
    assert told in err


@pytest.mark.parametrize("verb", ["demo", "learners", "train", "predict", "evaluate", "compare",
                                  "inspect", "tune", "report", "reproduce"])  # fmt: skip
def test_help_teaches(run, verb):
    status, out, err = run(verb, "--help")
    assert (status, err) == (0, "")
    assert out.count(f"  hopefear {verb}") + out.count(f"| hopefear {verb}") >= 2, "two examples"
    assert verb in run("--help")[1]


def test_weights_from_a_file_are_visits(run, folder):
    lines = (folder / "train2.svm").read_text().splitlines()
    weights = [i % 3 for i in range(len(lines))]
    repeated = [line for line, w in zip(lines, weights, strict=True) for _ in range(w)]
    (folder / "weights").write_text("".join(f"{w}\n" for w in weights))
    (folder / "repeated.svm").write_text("\n".join(repeated) + "\n")
    common = ["--learner", "rda", "-p", "rate=3", "--intercept", "1", "--no-shuffle"]
    common = ["train", "classify", *common, "--quiet", "--json", "--train"]
    _, weighted, _ = run(*common, "train2.svm", "--weights", "weights", "--model", "w.model")
    _, plain, _ = run(*common, "repeated.svm", "--model", "r.model")
    keys = ("nnz", "updates", "mistakes", "loss")
    assert [json.loads(weighted)[k] for k in keys] == [json.loads(plain)[k] for k in keys]


@pytest.mark.parametrize(
    ("text", "message"),
    [("1\nx\n", "weights:2: expected a weight"), ("1\n", "expected 500 weights, one a line"),
     ("-1\n", "weights:1: expected a weight of at least zero, found '-1'")],
)  # fmt: skip
def test_bad_weights_are_told_by_line(run, folder, text, message):
    (folder / "weights").write_text(text)
    argv = ["train", "classify", "--train", "train2.svm", "--weights", "weights"]
    status, _, err = run(*argv, "--model", "x.model")
    assert status == 1 and message in err
    assert not (folder / "x.model").exists()


def test_text_options_are_refused_where_they_would_be_ignored(run):
    argv = ["train", "classify", "--train", "train2.svm", "--model", "x.model", "--ngrams", "2"]
    status, _, err = run(*argv)
    assert status == 1 and "--ngrams 2 is for texts" in err


def test_a_comparator_of_other_columns_is_refused(run):
    argv = ["train", "classify", "--train", "train4.svm", "--learner", "vrda", "--bounds"]
    status, _, err = run(*argv, "--comparator", "two.model", "--model", "x.model")
    assert status == 1 and "other classes or features" in err

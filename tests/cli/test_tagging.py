"""What only taggers do, as a user types it, in one process."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hopefear as package
from hopefear.cli import main
from hopefear.data.generators import chunks
from hopefear.tasks.tag.model import SequenceModel

CONLLU = """# sent_id = 1
# text = She sleeps
1\tShe\tshe\tPRON\tPRP\t_\t2\tnsubj\t_\t_
2\tsleeps\tsleep\tVERB\tVBZ\t_\t0\troot\t_\tSpaceAfter=No
3\t.\t.\tPUNCT\t.\t_\t2\tpunct\t_\t_

# sent_id = 2
1-2\tdon't\t_\t_\t_\t_\t_\t_\t_\t_
1\tdo\tdo\tAUX\tVBP\t_\t2\taux\t_\t_
2\tn't\tnot\tPART\tRB\t_\t0\troot\t_\t_
2.1\tsleep\tsleep\tVERB\tVB\t_\t_\t_\t_\t_

"""


def written(path, text, column=True):
    """Sentences as a file of columns."""
    words, labels = text.columns["word"], text.columns["label"]
    with open(path, "w") as file:
        for i in range(len(text)):
            for k in range(text.starts[i], text.starts[i + 1]):
                file.write(f"{words[k]} {labels[k]}\n" if column else f"{words[k]}\n")
            file.write("\n")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("tagging")
    for name, n, seed in (("train", 150, 1), ("dev", 40, 2), ("test", 40, 3)):
        written(place / f"{name}.txt", chunks(n, 60, seed=seed))
    written(place / "bare.txt", chunks(40, 60, seed=3), column=False)
    (place / "train.conllu").write_text(CONLLU * 8)
    (place / "train.crfsuite").write_text("B-NP\tw=He\tlen:2\nB-VP\tw=is\n\nO\tw=\\:\n\n" * 4)
    for name in ("train.txt", "train.conllu", "train.crfsuite"):
        argv = ["--train", place / name, "--model", place / f"{name}.model", "--epochs", 4]
        words = ["train", "tag", "--quiet", "--learner", "perceptron", *map(str, argv)]
        assert main(words) == 0
    return place


def labels(text, column=-1):
    """A column of what predict printed, by sentence."""
    return [
        [line.split()[column] for line in block.splitlines() if not line.startswith("# ")]
        for block in text.strip().split("\n\n")
    ]


def train(*more):
    return ("train", "tag", "--train", "train.txt", "--learner", "perceptron", *more)


def test_threads_change_nothing(run, folder):
    for jobs in (1, 2):
        run(*train("--epochs", 2, "--model", f"{jobs}.model", "--jobs", jobs))
    assert (folder / "1.model").read_bytes() == (folder / "2.model").read_bytes()


def test_segments(run, folder):
    """Columns in BIO come out, with probabilities of spans, and the same again from the file."""
    run(*train("--epochs", 4, "--dev", "dev.txt", "--segments", 4, "--model", "seg.model"))
    _, out, _ = run("predict", "--model", "seg.model", "--input", "test.txt", "--proba")
    assert {label[0] for sentence in labels(out, -3) for label in sentence} == set("BIO")
    _, ranked, _ = run("predict", "--model", "seg.model", "--input", "test.txt", "--nbest", 2)
    assert ranked.count("# rank = 2") == 40
    facts = json.loads(run("evaluate", "--model", "seg.model", "--data", "test.txt", "--json")[1])
    assert facts["f1"] > 80.0
    facts = json.loads(run("inspect", "--model", "seg.model", "--json")[1])
    assert facts["segments"] == 4 and facts["feature_kind"] == "segments"


@pytest.mark.parametrize("more", [("--stream",), ("--cache", "folder")])
def test_segments_need_all_data_at_once(run, more):
    status, _, words = run(*train("--segments", 4, "--model", "seg.model", *more))
    assert status == 1
    assert "segments are learned from data in memory" in words


def test_parameters_go_to_the_default_learner(run):
    run("train", "tag", "--train", "train.txt", "--epochs", 1, "-p", "n=3", "--model", "s.model")
    assert "loss:nbest-mira(cost=hamming,n=3," in SequenceModel.load("s.model").signature


def test_options_reach_the_model(run):
    run(*train("--order", 2, "--constraints", "never", "--min-count", 2, "--no-names",
               "--features", "pos", "--epochs", 1, "--model", "o.model"))  # fmt: skip
    model = SequenceModel.load("o.model")
    assert (model.order, model.search, model.constrained) == (2, "astar", False)
    assert model.features.name(0) == "#0"
    _, out, _ = run("evaluate", "--model", "o.model", "--data", "test.txt", "--json")
    assert "f1" in json.loads(out), "spans are scored, though nothing constrains them"


@pytest.mark.parametrize("search", ["list", "beam"])
def test_searches_reach_the_model_uncompiled(folder, tmp_path, search):
    (tmp_path / "few.txt").write_text("\n\n".join(
        (folder / "train.txt").read_text().split("\n\n")[:4]) + "\n")  # fmt: skip
    argv = ["train", "tag", "--train", "few.txt", "--search", search, "--beam", "7", "--epochs",
            "2", "--model", "m"]  # fmt: skip
    paths = filter(None, [str(Path(package.__file__).parents[1]), os.environ.get("PYTHONPATH")])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "NUMBA_DISABLE_JIT": "1"}
    for words in (argv, ["predict", "--model", "m", "--input", "few.txt", "--nbest", "2"]):
        answer = subprocess.run([sys.executable, "-m", "hopefear", *words], cwd=tmp_path,
                                env=environment, capture_output=True, text=True)  # fmt: skip
        assert answer.returncode == 0, answer.stderr
    assert answer.stdout.count("# rank = 2 ") == 4
    model = SequenceModel.load(tmp_path / "m")
    assert (model.search, model.beam) == (search, 7)


def test_hashing_tells_its_collisions(run):
    _, out, err = run(*train("--hash-bits", 8, "--epochs", 1, "--model", "h.model", "--json"))
    found = json.loads(out)
    assert found["features"] == 256 and 0 < found["hash_collisions"] <= 100
    assert "hash collisions" in err


def test_labels_can_be_learned_in_another_scheme(run):
    _, _, err = run(*train("--convert", "iobes", "--epochs", 3, "--model", "c.model"))
    assert "BIO spans learned as IOBES" in err
    model = SequenceModel.load("c.model")
    assert model.scheme == "iobes" and "S-PP" in model.labels
    _, out, _ = run("evaluate", "--model", "c.model", "--data", "test.txt", "--json")
    found = json.loads(out)
    assert found["scheme"] == "bio" and found["f1"] > 60 and found["unknown_labels"] == 0
    _, iobes, _ = run("predict", "--model", "c.model", "--input", "bare.txt")
    _, bio, _ = run("predict", "--model", "c.model", "--input", "bare.txt", "--scheme", "bio")
    assert "S-PP" in iobes and "S-PP" not in bio
    assert [[x[0] for x in s] for s in labels(bio)] == [
        [{"S": "B", "E": "I"}.get(x[0], x[0]) for x in s] for s in labels(iobes)
    ]


def test_a_column_is_added_and_all_else_stays(run, folder):
    _, out, err = run("predict", "--model", "train.txt.model", "--input", "test.txt", "--quiet")
    assert err == ""
    before = (folder / "test.txt").read_text()
    assert [line.rpartition(" ")[0] for line in out.splitlines()] == before.splitlines()
    found = labels(out)
    _, bare, _ = run("predict", "--model", "train.txt.model", "--input", "bare.txt")
    assert labels(bare) == found, "labels in the input change nothing"
    (folder / "packed.gz").write_bytes(gzip.compress(before.encode()))
    marked = "\ufeff# a comment of these words\r\n" + before.replace("\n", "\r\n")
    for name, stdin in (("packed.gz", b""), ("-", before.encode()), ("-", marked.encode())):
        _, again, _ = run("predict", "--model", "train.txt.model", "--input", name, stdin=stdin)
        assert labels(again.replace("\r", "").lstrip("\ufeff")) == found
    assert again.startswith("\ufeff# a comment of these words\r\n")
    run("predict", "--model", "train.txt.model", "--input", "test.txt", "--output", "out.txt")
    assert (folder / "out.txt").read_text() == out


def test_probabilities_of_labels_spans_and_sentences(run):
    argv = ("predict", "--model", "train.txt.model", "--input", "bare.txt")
    best = labels(run(*argv)[1])
    out = run(*argv, "--proba")[1]
    assert labels(out, 1) == best
    whole = [float(x.split()[3]) for x in out.splitlines() if x.startswith("# probability = ")]
    assert len(whole) == 40 and all(0.0 < p <= 1.0 for p in whole)
    for tags, each, spans, p in zip(best, labels(out, 2), labels(out, 3), whole, strict=True):
        assert all(p <= float(one) + 1e-3 for one in each), "a whole is rarer than its parts"
        for tag, one, span in zip(tags, each, spans, strict=True):
            assert (span == "_") == (tag == "O")
            assert span == "_" or float(span) <= float(one) + 1e-3


def test_nbest_comes_in_blocks(run, folder):
    argv = ("predict", "--model", "train.txt.model", "--input", "bare.txt")
    best = labels(run(*argv)[1])
    status, out, _ = run(*argv, "--nbest", 3)
    assert status == 0
    blocks = out.strip().split("\n\n")
    heads = [block.splitlines()[0].split() for block in blocks]
    assert len(blocks) == 120
    assert [h[3] for h in heads] == ["1", "2", "3"] * 40 and heads[0][1] == "rank"
    scores, p = ([float(h[k]) for h in heads] for k in (6, 9))
    for i in range(0, 120, 3):
        assert scores[i] >= scores[i + 1] >= scores[i + 2]
        assert sum(p[i : i + 3]) <= 1.0 + 1e-3
    tags = labels(out)
    assert tags[::3] == best
    assert all(len({tuple(t) for t in tags[i : i + 3]}) == 3 for i in range(0, 120, 3))
    words = [[line.split()[0] for line in b.splitlines()[1:]] for b in blocks]
    assert words[::3] == words[1::3] == labels((folder / "bare.txt").read_text(), 0)


def test_conllu_keeps_what_is_no_token(run, folder):
    argv = ("predict", "--model", "train.conllu.model", "--input", "train.conllu")
    out = run(*argv)[1]
    assert out == CONLLU * 8, "learned by heart, so the column is what it was"
    out = run(*argv, "--proba")[1]
    assert out.count("\n1-2\tdon't\t") == 8 and out.count("\n2.1\tsleep\t") == 8
    assert "\tSpaceAfter=No|Probability=" in out and "# probability = " in out
    out = run(*argv, "--nbest", 2)[1]
    assert out.count("# sent_id = 1\n# text = She sleeps\n# rank = 1 score") == 8
    assert out.count("\n1-2\tdon't\t") == 16 and out.count("\n\n") == 32
    _, out, _ = run("evaluate", "--model", "train.conllu.model", "--data", "train.conllu", "--json")
    found = json.loads(out)
    assert found["accuracy"] == 100.0 and found["labels"]["PUNCT"]["gold"] == 8
    assert found["unknown_words"] == 0 and "f1" not in found


def test_conllu_columns_by_name(run):
    argv = ["train", "tag", "--train", "train.conllu", "--column", "xpos", "--learner",
            "perceptron", "--epochs", 4, "--model", "x.model"]  # fmt: skip
    assert run(*argv)[0] == 0
    assert "VBZ" in SequenceModel.load("x.model").labels
    assert run("predict", "--model", "x.model", "--input", "train.conllu")[1] == CONLLU * 8


def test_crfsuite_files_give_labels_alone(run):
    argv = ("predict", "--model", "train.crfsuite.model", "--input", "train.crfsuite")
    assert run(*argv)[1] == "B-NP\nB-VP\n\nO\n\n" * 4
    out = run(*argv, "--nbest", 2, "--proba")[1]
    assert out.startswith("# rank = 1 score = ") and len(out.split("\n\n")[0].splitlines()) == 3
    _, out, err = run("inspect", "--model", "train.crfsuite.model")
    assert "attributes" in err and "w=is" in err


def test_columns_have_names(run, folder):
    lines = (folder / "train.txt").read_text().splitlines()
    wide = [" ".join((line.split()[0], line.split()[1], "x")) if line else "" for line in lines]
    (folder / "wide.txt").write_text("\n".join(wide) + "\n")
    argv = ("train", "tag", "--train", "wide.txt", "--learner", "perceptron", "--epochs", 2)
    run(*argv, "--columns", "word,chunk,other", "--column", "chunk", "--model", "w1.model")
    run(*argv, "--column", 1, "--model", "w2.model")
    assert SequenceModel.load("w1.model").labels == SequenceModel.load("w2.model").labels
    status, out, _ = run("predict", "--model", "w1.model", "--input", "bare.txt")
    assert status == 0 and len(labels(out)) == 40
    status, _, err = run(*argv, "--column", "names", "--model", "w3.model")
    assert status == 1 and "no column 'names'; there are word, pos, label" in err


def test_explanations_add_up(run):
    argv = ("predict", "--model", "train.txt.model", "--input", "bare.txt", "--top", 10_000)
    found = [json.loads(x) for x in run(*argv, "--explain", "--json")[1].splitlines()]
    best = [tag for tags in labels(run(*argv)[1]) for tag in tags]
    assert [facts["label"] for facts in found] == best
    for facts in found:
        assert facts["gap"] >= -1e-3 and facts["runner_up"] != facts["label"]
        assert sum(f["amount"] for f in facts["features"]) == pytest.approx(facts["gap"], abs=1e-3)
    one = run(*argv, "--explain-token", "2:1")[1]
    assert one.startswith("sentence 2, token 1: ") and ", not " in one and "word[0]=" in one
    status, _, err = run(*argv, "--explain-token", "99:1")
    assert status == 1 and "99:1: there is no such token in bare.txt" in err


def test_evaluate_reports_as_the_official_script(run):
    argv = ("evaluate", "--model", "train.txt.model", "--data", "test.txt")
    status, out, err = run(*argv, "--conlleval", "--proba")
    assert status == 0
    first = out.splitlines()[0]
    assert first.startswith("processed ") and " phrases; correct: " in first
    for word in ("F1", "95 %", "unknown words", "calibration", "confusion", "metric:"):
        assert word in err
    _, out, _ = run(*argv, "--json", "--proba")
    found = json.loads(out)
    assert f"FB1: {found['f1']:6.2f}" in run(*argv, "--conlleval", "--quiet")[1]
    low, high = found["f1_interval"]
    assert low < found["f1"] < high
    assert set(found["types"]) == {"NP", "VP", "PP", "ADVP"}
    assert found["gold"] == sum(t["gold"] for t in found["types"].values())
    assert 0 <= found["calibration"]["tokens"]["ece"] <= 100
    assert sum(found["calibration"]["spans"]["counts"]) == found["found"]


def test_inspect_shows_templates_transitions_and_features(run):
    status, out, err = run("inspect", "--model", "train.txt.model", "--top", 3)
    assert (status, out) == (0, "")
    for word in ("templates", "word[-1] word[0]", "transitions sought", "transitions shunned",
                 "bio", "order 1", "train.txt"):  # fmt: skip
        assert word in err
    _, out, _ = run("inspect", "--model", "train.txt.model", "--top", 3, "--json")
    found = json.loads(out)
    assert found["task"] == "tag" and len(found["transitions"]["sought"]) == 3
    weights = [w for _, _, w in found["transitions"]["shunned"]]
    assert weights == sorted(weights) and weights[-1] < 0


def test_models_of_one_task_refuse_options_of_another(run):
    argv = ("predict", "--model", "train.txt.model", "--input", "bare.txt")
    status, _, err = run(*argv, "--format", "svmlight")
    assert status == 1 and "columns, conllu, crfsuite" in err
    status, _, err = run(*argv, "--format", "crfsuite")
    assert status == 1 and "templates over columns" in err
    status, _, err = run(*argv, "--explain", "--nbest", 2)
    assert status == 2 and "leave out" in err


@pytest.mark.parametrize(("visits", "epochs"), [(12, 12), (1, 10), (1_000, 30)])
def test_the_default_learner_makes_epochs_by_the_size_of_the_data(
    visits, epochs, tmp_path, monkeypatch, capsys
):
    """So from Python as on the command line; a third of them without a gain end it."""
    monkeypatch.chdir(tmp_path)
    X, y = [["a", "b"], ["c", "b", "b"]], [["X", "Y"], ["X", "Y", "Z"]]
    monkeypatch.setattr("hopefear.tasks.tag.task.VISITS", 5 * visits)
    lines = ["".join(map("{} {}\n".format, *pair)) for pair in zip(X, y, strict=True)]
    Path("train.txt").write_text("\n".join(lines))
    tagger = package.Tagger().fit(X, y, X_val=X, y_val=y)
    typed = ["--train", "train.txt", "--dev", "train.txt", "--model", "m", "--json"]
    assert main(["train", "tag", *typed]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["learner"] == tagger.learner == "nbest-mira"
    assert f"|epochs:{epochs}|" in facts["signature"]
    assert f"|epochs:{epochs}|" in tagger.model_.signature
    assert f"|stopping:accuracy,{max(3, epochs // 3)}|" in facts["signature"]
    assert len(tagger.history_) == facts["epochs"] == facts["best_epoch"] + max(3, epochs // 3)

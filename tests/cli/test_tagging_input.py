"""Bad tokens by way of the command: one line, its place, status 1, nothing half written."""

from __future__ import annotations

import json

import pytest

import hopefear
from hopefear.cli import main

pytestmark = pytest.mark.interpreted

GOOD = b"He PRP B-NP\nsleeps VBZ B-VP\nwell RB I-VP\n. . O\n\n"
BAD = {
    "ragged": (b"one two\n", ":6: expected 3 columns as in line 1"),
    "broken UTF-8": (b"caf\xe9 NN B-NP\n", ":6: expected UTF-8"),
    "outside the scheme": (b"a NN NP\n", ":6: expected one scheme in all labels"),
}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    (folder / "good.txt").write_bytes(GOOD * 4)
    argv = ["train", "tag", "--quiet", "--learner", "perceptron", "--epochs", "2", "--train",
            str(folder / "good.txt"), "--model", str(folder / "good.model")]  # fmt: skip
    assert main(argv) == 0
    return folder / "good.model"


@pytest.fixture
def refused(tmp_path, capsys, monkeypatch):
    """Training must refuse with one line that says all of ``told``, and leave no trace."""
    monkeypatch.chdir(tmp_path)

    def check(*told, argv=("--train", "bad.txt"), status=1):
        before = set(tmp_path.iterdir())
        capsys.readouterr()
        words = ["train", "tag", *argv, "--model", "out.model", "--quiet", "--run", "run",
                 "--learner", "perceptron", "--epochs", "1", "--checkpoint", "state"]  # fmt: skip
        assert main(words) == status
        out, err = capsys.readouterr()
        assert out == "" and err.startswith("hopefear: ") and err.count("\n") == 1, err
        for word in told:
            assert word in err, err
        assert set(tmp_path.iterdir()) == before

    return check


@pytest.mark.parametrize("kind", BAD)
def test_bad_lines_are_told_with_their_place(refused, tmp_path, kind):
    lines, told = BAD[kind]
    (tmp_path / "bad.txt").write_bytes(GOOD + lines + GOOD)
    refused("bad.txt:", told)


def test_bad_lines_cost_their_sentence_when_skipped(tmp_path, monkeypatch, capsys, model):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.txt").write_bytes(GOOD + BAD["ragged"][0] + GOOD)
    argv = ["evaluate", "--model", str(model), "--data", "bad.txt", "--on-error", "skip"]
    assert main(argv) == 0
    err = capsys.readouterr().err
    assert "1 bad line skipped" in err and "bad.txt:6: " in err and "1 with 4 tokens" in err


def test_wishes_that_cannot_be_met(refused, tmp_path):
    (tmp_path / "bad.txt").write_bytes(GOOD * 2)
    given = ("--train", "bad.txt")
    refused("no tag scheme 'boi'", argv=(*given, "--scheme", "boi"))
    refused("bad.txt:2: ", "IOBES", argv=(*given, "--scheme", "iobes"))
    refused("--convert iobes", "no spans", argv=(*given, "--scheme", "none", "--convert", "iobes"))
    refused("no such template file", argv=(*given, "--features", "chunkng"))
    refused("no column 'names'", argv=(*given, "--column", "names"))
    refused("did you mean 'rate'", argv=(*given, "-p", "rat=1"))
    refused("no score 'bleu'", argv=(*given, "--dev", "bad.txt", "--metric", "bleu"))
    refused("bad.txt:1: expected 2 columns", argv=(*given, "--columns", "word,label"))
    refused("it is also an input", argv=("--train", "out.model"))
    (tmp_path / "own.toml").write_text('[[templates]]\nfeatures = ["lemma[0]"]\n')
    refused("own.toml:2: ", "'lemma'", argv=(*given, "--features", "own.toml"))
    (tmp_path / "none.toml").write_text('[[templates]]\nfeatures = ["word[0]", "word[-9]"]\n')
    refused("none.toml:2: ", "fires on nothing", argv=(*given, "--features", "none.toml"))
    (tmp_path / "a.crfsuite").write_bytes(b"A\tw=1\nB\tw=2\n\n")
    refused("features are given", argv=("--train", "a.crfsuite", "--features", "pos"))
    refused("labels come first", argv=("--train", "a.crfsuite", "--column", "2"))


def test_files_without_anything_to_learn(refused, tmp_path):
    for name, content, told in (
        ("empty", b"", "at least one token"),
        ("blank", b"\n\n-DOCSTART- -X- O\n\n", "at least one token"),
        ("single", b"word\nonly\n", "two or more columns"),
        ("one label", b"a X\nb X\n", "two labels"),
    ):
        (tmp_path / name).write_bytes(content)
        refused(name, told, argv=("--train", name))
    refused("absent", "No such file", argv=("--train", "absent"))


def test_documents_carriage_returns_and_marks(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    content = b"-DOCSTART- -X- O\n\n" + GOOD * 4
    (tmp_path / "unix.txt").write_bytes(content)
    (tmp_path / "dos.txt").write_bytes(b"\xef\xbb\xbf" + content.replace(b"\n", b"\r\n"))
    for name in ("unix", "dos"):
        argv = ["train", "tag", "--learner", "perceptron", "--epochs", "2", "--model", name]
        assert main([*argv, "--train", f"{name}.txt", "--json"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert '"sentences": 4, "tokens": 16' in first
    assert (
        first.partition('"features"')[2].partition('"seconds"')[0]
        == (second.partition('"features"')[2].partition('"seconds"')[0])
    )


def test_strange_labels_in_held_out_data_are_mistakes(tmp_path, monkeypatch, capsys, model):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dev.txt").write_bytes(GOOD + b"Ha UH B-INTJ\nho UH I-INTJ\n\n")
    train = ["train", "tag", "--quiet", "--train", str(model.parent / "good.txt"), "--learner",
             "perceptron", "--epochs", "2", "--dev", "dev.txt", "--model", "m"]  # fmt: skip
    assert main(train) == 0
    told = "2 tokens have labels that training did not see (B-INTJ, I-INTJ); they count as mistakes"
    err = capsys.readouterr().err
    assert err == f"hopefear: warning: dev.txt: {told}\n"
    assert main(["evaluate", "--model", str(model), "--data", "dev.txt", "--json"]) == 0
    out, err = capsys.readouterr()
    assert told in err and '"unknown_labels": 2' in out and '"accuracy": 66.66' in out


def test_evaluation_needs_labels(tmp_path, capsys, model):
    path = tmp_path / "bare.txt"
    path.write_bytes(b"He PRP\n")
    assert main(["evaluate", "--model", str(model), "--data", str(path)]) == 1
    assert "no column 'label'; there are word, pos" in capsys.readouterr().err
    path.write_bytes(b"He\n")
    assert main(["predict", "--model", str(model), "--input", str(path)]) == 1
    assert "bare.txt:1: expected 2 to 3 columns (word, pos, label)" in capsys.readouterr().err


@pytest.mark.compiled
def test_a_very_long_sentence_is_tagged(tmp_path, capsys, model):
    path, n = tmp_path / "long.txt", 200_000
    path.write_bytes(b"He PRP\n" * n)
    out = tmp_path / "out.txt"
    assert main(["predict", "--model", str(model), "--input", str(path), "--output", str(out)]) == 0
    assert out.read_bytes().count(b"He PRP ") == n


def objects(name, *rows):
    with open(name, "w") as file:
        for tokens, tags in rows * 4:
            file.write(json.dumps({"tokens": tokens.split(), "ner_tags": tags}) + "\n")


NER = [("Ann sees Rome .", ["B-PER", "O", "B-LOC", "O"]), ("Bo sleeps", ["B-PER", "O"])]


@pytest.mark.parametrize("how", [(), ("--stream",), ("--cache", "cache")])
def test_json_lines_of_tokens(tmp_path, monkeypatch, capsys, how):
    def run(*argv, status=0):
        capsys.readouterr()
        assert main([*argv]) == status
        return capsys.readouterr()

    monkeypatch.chdir(tmp_path)
    objects("a.jsonl", *NER)
    train = ("train", "tag", "--train", "a.jsonl", "--learner", "perceptron", "--quiet")
    run(*train, "--model", "m", *how)
    scores = json.loads(run("evaluate", "--model", "m", "--data", "a.jsonl", "--json").out)
    assert (scores["sentences"], scores["f1"]) == (8, 100.0)
    bare = json.dumps({"id": 1, "tokens": ["Ann", "sleeps"]})
    (tmp_path / "new.jsonl").write_text(f"{bare}\n{bare}")
    predict = ("predict", "--model", "m", "--input", "new.jsonl", "--quiet")
    for more in ((), ("--stream",)):
        lines = run(*predict, *more).out.split("\n")
        assert json.loads(lines[0]) == {**json.loads(bare), "ner_tags": ["B-PER", "O"]}
        assert lines[0] == lines[1] and lines[2:] in ([], [""])
    (answer, _) = map(json.loads, run(*predict, "--proba").out.splitlines())
    assert answer["spans"][0]["label"] == "PER" and answer["tokens"][0]["probability"] > 0
    assert len(run(*predict, "--nbest", "2").out.splitlines()) == 4
    assert run(*predict, "--output-format", "columns").out.startswith("Ann\tB-PER\n")
    (tmp_path / "new.txt").write_text("Ann\nsleeps\n")
    assert run(*predict[:4], "new.txt", "--quiet").out == "Ann B-PER\nsleeps O\n"
    # Numbers are names of labels that their data set alone can tell.
    objects("n.jsonl", ("Ann sees", [3, 0]))
    for argv in ((*train[:3], "n.jsonl", "--model", "x", *how),
                 ("evaluate", "--model", "m", "--data", "n.jsonl")):  # fmt: skip
        assert "n.jsonl:1: expected names of labels under ner_tags" in run(*argv, status=1).err
    run("predict", "--model", "m", "--input", "n.jsonl", "--quiet")


def test_a_model_of_columns_tags_json_lines(tmp_path, monkeypatch, capsys, model):
    monkeypatch.chdir(tmp_path)
    line = {"tokens": ["He", "sleeps"], "pos": ["PRP", "VBZ"]}
    (tmp_path / "new.jsonl").write_text(json.dumps(line))
    capsys.readouterr()
    assert main(["predict", "--model", str(model), "--input", "new.jsonl", "--quiet"]) == 0
    assert json.loads(capsys.readouterr().out) == {**line, "label": ["B-NP", "B-VP"]}
    (tmp_path / "new.jsonl").write_text(json.dumps({"tokens": ["He"]}))
    assert main(["predict", "--model", str(model), "--input", "new.jsonl", "--quiet"]) == 1
    assert "pos" in capsys.readouterr().err


def test_headers_and_numbered_tokens(refused, tmp_path, capsys):
    (tmp_path / "bad.txt").write_text("id\tword\tlabel\n1\tHe\tO\n2\tsleeps\tO\n3\t.\tO\n")
    refused("bad.txt:1: expected words in the first column", "--columns id,word,label")
    (tmp_path / "good.txt").write_bytes(b"Word POS Tag\n" + GOOD)
    train = ["train", "tag", "--train", "good.txt", "--learner", "perceptron", "--epochs", "1"]
    assert main([*train, "--model", "m", "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["tokens"] == 4
    assert "good.txt:1: 'Word POS Tag' names the columns and is no token" in err


def test_conllu_plus_by_its_columns(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = ["# global.columns = ID FORM UPOS PARSEME:MWE", "1\tgive\tVERB\t1:VPC", "2\tup\tADP\t1",
             "", "1\tgo\tVERB\t*", ""] * 2  # fmt: skip
    (tmp_path / "a.cupt").write_text("\n".join(lines) + "\n")
    train = ["train", "tag", "--train", "a.cupt", "--learner", "perceptron", "--epochs", "3"]
    for column, labels in (("upos", {"VERB", "ADP"}), ("PARSEME:MWE", {"1:VPC", "1", "*"})):
        assert main([*train, "--column", column, "--model", "m", "--quiet"]) == 0
        assert set(hopefear.load("m").classes_) == labels
        capsys.readouterr()
        assert main(["predict", "--model", "m", "--input", "a.cupt", "--quiet"]) == 0
        assert capsys.readouterr().out == (tmp_path / "a.cupt").read_text()
        assert main(["evaluate", "--model", "m", "--data", "a.cupt", "--quiet", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["accuracy"] == 100.0
    (tmp_path / "a.cupt").write_text("# global.columns = ID FORM\n1\tgo\n")
    assert main([*train, "--model", "m", "--quiet"]) == 1
    assert "has no column 'upos'; there are id, form" in capsys.readouterr().err

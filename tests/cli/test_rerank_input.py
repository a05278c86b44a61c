"""Bad lists by way of the command: one line, file, line and id, status 1, nothing half written."""

from __future__ import annotations

import json

import pytest

from hopefear.cli import main

pytestmark = pytest.mark.interpreted

TREE = "(S1 (NP (DT the) (NN cat)))"
OTHER = "(S1 (S (NP (DT the)) (NN cat)))"


def record(name, *candidates, **more):
    return json.dumps({"id": name, "candidates": list(candidates), **more}) + "\n"


def good(name="a"):
    one, other = {"cost": 1, "features": {"f": 1}}, {"cost": 0, "features": {"g": 2.5}}
    return record(name, {**one, "score": 2}, {**other, "score": 1})


def tree_list(name, *trees):
    return record(name, *({"tree": t, "logprob": -1.0} for t in (*trees, OTHER)), gold=TREE)


NAN = good("b").replace('"score": 2', '"score": NaN')
BAD = {
    "missing cost": (
        good(), record("b", {"features": {"f": 1}}, {"cost": 0, "features": {}}),
        ":2: expected a cost, as other candidates have, in candidate 1 of list 'b'",
    ),
    "no costs at all": (
        good(), record("b", {"features": {"f": 1}}), ":2: expected costs in list 'b'",
    ),
    "empty list": (
        good(), record("b"),
        ":2: expected a list that is not empty as candidates in list 'b'",
    ),
    "NaN score": (good(), NAN, ":2: expected a list as JSON, with finite numbers"),
    "duplicate ids": (good(), good(), ":2: expected every id once", "'a' comes again"),
    "ids out of order": (
        good(), good("b") + good(), ":3: expected every id once", "'a' comes again",
    ),
    "a feature that is a list": (
        good(), good("b").replace("2.5", "[1]"), ":2: expected a number or a string as a feature "
        "in candidate 2 of list 'b'",
    ),
    "features that are a list": (
        good(), good("b").replace('{"f": 1}', "[1]"), ":2: expected an object as features",
        "candidate 1 of list 'b'",
    ),
    "no JSON": (good(), '{"id": "b"\n', ":2: expected a list as JSON"),
    "unbalanced brackets": (
        tree_list("a", TREE), tree_list("b", TREE, "(S1 (NP (DT the) (NN cat))"),
        ":2: expected ", "candidate 2 of list 'b'",
    ),
    "another yield": (
        tree_list("a", TREE), tree_list("b", "(S1 (NP (DT the) (NN dog)))"),
        ":2: expected 'cat' as word 2, as in the sentence, in candidate 1 of list 'b'",
    ),
    "unbalanced gold": (
        tree_list("a", TREE), tree_list("b", TREE).replace('"gold": "', '"gold": "('),
        ":2: expected ", "the gold tree of list 'b'",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    (folder / "texts.jsonl").write_text(good())
    (folder / "trees.jsonl").write_text(tree_list("a", TREE))
    for name in ("texts", "trees"):
        argv = ["train", "rerank", "--quiet", "--learner", "perceptron", "--epochs", "2", "--train",
                str(folder / f"{name}.jsonl"), "--min-count", "1", "--model",
                str(folder / f"{name}.model")]  # fmt: skip
        assert main(argv) == 0
    return folder


@pytest.fixture
def refused(tmp_path, capsys, monkeypatch):
    """Training must refuse with one line that says all of ``told``, and leave no trace."""
    monkeypatch.chdir(tmp_path)

    def check(*told, argv=("--train", "bad.jsonl"), status=1):
        before = set(tmp_path.iterdir())
        capsys.readouterr()
        words = ["train", "rerank", *argv, "--model", "out.model", "--quiet", "--run", "run",
                 "--learner", "perceptron", "--epochs", "1", "--checkpoint", "state"]  # fmt: skip
        assert main(words) == status
        out, err = capsys.readouterr()
        if status == 1:
            assert out == "" and err.startswith("hopefear: ") and err.count("\n") == 1, err
        for word in told:
            assert word in err, err
        assert set(tmp_path.iterdir()) == before

    return check


@pytest.mark.parametrize("kind", BAD)
def test_bad_lists_are_told_with_file_line_and_id(refused, tmp_path, kind):
    fine, bad, *told = BAD[kind]
    (tmp_path / "bad.jsonl").write_text(fine + bad)
    refused("bad.jsonl:", *told)


@pytest.mark.parametrize("kind", ["NaN score", "unbalanced brackets"])
def test_predict_refuses_too_and_writes_nothing(tmp_path, monkeypatch, capsys, models, kind):
    monkeypatch.chdir(tmp_path)
    fine, bad, *told = BAD[kind]
    (tmp_path / "bad.jsonl").write_text(fine + bad)
    model = models / ("trees.model" if "tree" in fine else "texts.model")
    argv = ["predict", "--model", str(model), "--input", "bad.jsonl", "--output", "out.jsonl",
            "--quiet"]  # fmt: skip
    assert main(argv) == 1
    err = capsys.readouterr().err
    assert all(word in err for word in ("bad.jsonl:2:", *told)) and err.count("\n") == 1
    assert not (tmp_path / "out.jsonl").exists()


@pytest.mark.parametrize("kind", sorted(set(BAD) - {"ids out of order"}))
def test_bad_lists_can_be_skipped_and_are_listed(tmp_path, monkeypatch, capsys, models, kind):
    monkeypatch.chdir(tmp_path)
    fine, bad, *told = BAD[kind]
    (tmp_path / "bad.jsonl").write_text(fine + bad)
    model = models / ("trees.model" if "tree" in fine else "texts.model")
    argv = ["evaluate", "--model", str(model), "--data", "bad.jsonl", "--on-error", "skip"]
    assert main(argv) == 0
    err = capsys.readouterr().err
    assert "1 bad line skipped" in err and told[0] in err


def test_texts_without_costs_hint_at_metrics(refused, tmp_path):
    text = record("a", {"text": "x"}, {"text": "y"}, reference="x")
    (tmp_path / "bad.jsonl").write_text(text)
    refused("bad.jsonl:1: expected costs in list 'a'", "--metric NAME")
    (tmp_path / "bad.jsonl").write_text(record("a", {"text": "x", "cost": 1}))
    refused("bad.jsonl:1:", "references", "'a'", argv=("--train", "bad.jsonl", "--metric", "bleu"))


def test_wishes_that_make_no_sense(refused, tmp_path):
    (tmp_path / "texts.jsonl").write_text(good())
    (tmp_path / "trees.jsonl").write_text(tree_list("a", TREE))
    texts, trees = ("--train", "texts.jsonl"), ("--train", "trees.jsonl")
    refused("the metric wer is for texts", "trees.jsonl", argv=(*trees, "--metric", "wer"))
    refused("these features are of trees", "texts.jsonl", argv=(*texts, "--features", "ptb"))
    refused("nothing is called 'Rules'", argv=(*texts, "--features", "Rules"))
    refused("no parameter 'smooth'", argv=(*texts, "--metric", "bleu", "--metric-option",
                                           "smooth=exp"))  # fmt: skip
    refused("lowercase must be true or false", argv=(*texts, "--metric", "wer", "--metric-option",
                                                     "lowercase=maybe"))  # fmt: skip
    refused("give --metric NAME", argv=(*texts, "--metric-option", "smoothing=exp"))
    refused("a file of gold trees goes with", argv=(*trees, "--gold", "texts.jsonl"))
    refused("--patience needs held-out data", argv=(*texts, "--patience", "2"), status=2)
    refused("invalid choice: 'rouge'", argv=(*texts, "--metric", "rouge"), status=2)
    refused("missing.jsonl", argv=("--train", "missing.jsonl"))


def test_lists_that_all_teach_nothing_are_refused(refused, tmp_path):
    (tmp_path / "bad.jsonl").write_text(record("a", {"cost": 1}, {"cost": 1}))
    refused("bad.jsonl", "all candidates cost the same")


def test_there_is_no_such_list_to_explain(tmp_path, monkeypatch, capsys, models):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.jsonl").write_text(good())
    argv = ["predict", "--model", str(models / "texts.model"), "--input", "new.jsonl", "--explain"]
    assert main([*argv, "--list", "z"]) == 1
    assert "--list z: there is no list of this id in new.jsonl" in capsys.readouterr().err
    assert main([*argv, "--pair", "0:5"]) == 1
    assert "list 'a' has no candidate 5" in capsys.readouterr().err
    assert main([*argv, "--pair", "1:1"]) == 2
    assert main([*argv[:-1], "--list", "a"]) == 2


def test_text_output_needs_texts(tmp_path, monkeypatch, capsys, models):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.jsonl").write_text(good())
    argv = ["predict", "--model", str(models / "texts.model"), "--input", "new.jsonl"]
    assert main([*argv, "--output-format", "text"]) == 1
    assert "list 'a' have no texts" in capsys.readouterr().err

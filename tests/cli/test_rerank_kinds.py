"""Costs, gold trees and formats of rerankers by way of the command."""

from __future__ import annotations

import json

import pytest

from hopefear.cli import main

pytestmark = pytest.mark.interpreted

TREE = "(S1 (NP (DT the) (NN cat)))"
OTHER = "(S1 (S (NP (DT the)) (NN cat)))"


def lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def texts(name, costs=(1.0, 0.0), **more):
    found = [
        {"text": "a", "cost": costs[0], "score": 2, "features": {"f": 1}, "derivation": "h1"},
        {"text": "b", "cost": costs[1], "score": 1, "features": {"g": 2.5}},
    ]
    found = [{k: v for k, v in one.items() if v is not None} for one in found]
    return {"id": name, "candidates": found, **more}


def parses(name, *costs, **more):
    found = [{"tree": t, "logprob": -1.0 - c} for c, t in enumerate((OTHER, TREE))]
    for one, cost in zip(found, costs, strict=False):
        one["cost"] = cost
    return {"id": name, "candidates": found, **more}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kinds")
    (folder / "texts.jsonl").write_text(lines(texts("a"), texts("b")))
    (folder / "trees.jsonl").write_text(lines(parses("a", gold=TREE), parses("b", gold=TREE)))
    printed = f"2\t{{}}\n-1\n{OTHER}\n-2\n{TREE}\n\n"
    (folder / "trees.nbest").write_text(printed.format("a") + printed.format("b"))
    (folder / "gold.mrg").write_text(f"{TREE}\n" * 2)
    return folder


@pytest.fixture
def run(files, capsys, monkeypatch):
    monkeypatch.chdir(files)

    def call(*argv, status=0):
        capsys.readouterr()
        assert main([str(word) for word in argv]) == status
        out, err = capsys.readouterr()
        return out if status == 0 else err

    return call


TRAIN = ("train", "rerank", "--learner", "perceptron", "--epochs", 2, "--min-count", 1, "--json")
GOLDEN = ("--format", "bllip", "--gold", "gold.mrg")


@pytest.fixture(scope="module", autouse=True)
def models(files):
    for name in ("texts", "trees"):
        argv = [*map(str, TRAIN), "--quiet", "--train", str(files / f"{name}.jsonl")]
        assert main([*argv, "--model", str(files / f"{name}.model")]) == 0


def test_costs_of_trees_are_read(run, files):
    (files / "costs.jsonl").write_text(lines(parses("a", 0.0, 7.0), parses("b", 0.0, 7.0)))
    both = parses("a", 0.0, 7.0, gold=TREE)
    (files / "both.jsonl").write_text(lines(both))
    model = ("--model", "costs.model", "--quiet")
    for train, *more in (("costs.jsonl",), ("both.jsonl", "--metric", "cost")):
        found = json.loads(run(*TRAIN, "--train", train, "--dev", train, *model, *more))
        assert (found["metric"], found["dev"]["cost"]) == ("cost", 0.0)
        out = run("evaluate", "--model", "costs.model", "--data", "both.jsonl", "--json")
        assert (json.loads(out)["metric"], json.loads(out)["worst_cost"]) == ("cost", 7.0)
    found = json.loads(run(*TRAIN, "--train", "both.jsonl", *model))
    assert found["metric"] == "parseval"


def test_every_file_may_have_gold_trees_of_its_own(run):
    model = ("--model", "g.model", "--quiet")
    printed = ("--train", "trees.nbest", *GOLDEN)
    for dev in (("trees.nbest", "--dev-gold", "gold.mrg"), ("trees.jsonl",)):
        found = json.loads(run(*TRAIN, *printed, *model, "--dev", *dev))
        assert found["dev"]["f1"] == 100.0
    run(*TRAIN, "--train", "trees.jsonl", "--format", "ptb", "--dev", "trees.nbest", "--dev-gold",
        "gold.mrg", *model)  # fmt: skip
    compare = ("compare", "rerank", *printed, "--learners", "perceptron", "--min-count", 1,
               "--epochs", 1, "--report", "r.html", "--json", "--quiet")  # fmt: skip
    more = ("--test", "trees.nbest", "--test-gold", "gold.mrg", "--dev", "trees.nbest")
    found = json.loads(run(*compare, *more, "--dev-gold", "gold.mrg"))
    assert found["oracle_f1"] == 100.0
    err = run(*compare, *more, status=1)
    assert "trees.nbest:1: expected a gold tree in list 'a'" in err
    assert "give them with --dev-gold FILE" in err and err.count("\n") == 1
    assert json.loads(run(*compare, "--test", "trees.jsonl"))["oracle_f1"] == 100.0
    err = run(*TRAIN, *printed, *model, "--dev-gold", "gold.mrg", status=2)
    assert "--dev-gold belongs to the lists of --dev" in err


def test_gold_trees_that_are_missing_are_asked_for(run):
    err = run("evaluate", "--model", "trees.model", "--data", "trees.nbest", status=1)
    assert "expected a gold tree in list 'a'" in err and "--gold FILE" in err


def test_costs_are_not_looked_at_where_nobody_needs_them(run, files):
    (files / "mixed.jsonl").write_text(
        lines(texts("a", (1, None)), texts("b", ("x", 1)), texts("c", (None, None)))
    )
    out = run("predict", "--model", "texts.model", "--input", "mixed.jsonl", "--quiet")
    assert [json.loads(line)["best"] for line in out.splitlines()] == [1, 1, 1]
    argv = ("--input", "mixed.jsonl", "--explain", "--list", "c", "--json")
    assert json.loads(run("predict", "--model", "texts.model", *argv))
    (files / "halves.jsonl").write_text(lines(parses("a", 1.0), parses("b", gold=TREE)))
    out = run("predict", "--model", "trees.model", "--input", "halves.jsonl", "--quiet")
    assert len(out.splitlines()) == 2


def test_predictions_give_derivations_back(run):
    argv = ("predict", "--model", "texts.model", "--input", "texts.jsonl", "--quiet")
    best = json.loads(run(*argv).splitlines()[0])
    both = json.loads(run(*argv, "--nbest", 2).splitlines()[0])["candidates"]
    assert "derivation" not in best and [one.get("derivation") for one in both] == [None, "h1"]


def test_negative_costs_teach_as_their_differences_do(run, files):
    (files / "less.jsonl").write_text(lines(texts("a", (-1.5, -2.5)), texts("b", (-9, -10))))
    model = ("--model", "less.model", "--quiet")
    for learner in ("maxent", "mira", "nbest-mira", "risk", "rampion", "vrda"):
        argv = ("train", "rerank", "--learner", learner, "--epochs", 3, "--json")
        argv = (*argv, *model, "--train")
        less, more = (json.loads(run(*argv, f"{n}.jsonl")) for n in ("less", "texts"))
        assert [less[k] for k in ("loss", "nnz")] == pytest.approx(
            [more[k] for k in ("loss", "nnz")]
        )
    out = json.loads(run("evaluate", "--model", "less.model", "--data", "less.jsonl", "--json"))
    assert (out["oracle_cost"], out["worst_cost"]) == (-6.25, -5.25)


def test_signatures_count_references(run, files):
    (files / "refs.jsonl").write_text(
        lines(texts("a", references=["b", "c"]), texts("b", references=["b", "d"]))
    )
    (files / "vary.jsonl").write_text(
        lines(texts("a", references=["b", "c"]), texts("b", reference="b"))
    )
    model = ("--model", "bleu.model", "--quiet")
    run(*TRAIN, "--train", "refs.jsonl", "--metric", "bleu", *model)
    for data, told in (("refs.jsonl", "nrefs:2"), ("vary.jsonl", "nrefs:var")):
        out = json.loads(run("evaluate", "--model", "bleu.model", "--data", data, "--json"))
        assert told in out["signature"]


def test_what_is_missing_is_said(run, files):
    (files / "bad.jsonl").write_text(
        lines({"id": "x", "reference": "a", "candidates": [{"text": "a"}, {}]})
    )
    argv = (*TRAIN, "--model", "bad.model", "--quiet", "--train")
    err = run(*argv, "bad.jsonl", "--metric", "wer", status=1)
    assert "bad.jsonl:1: expected a text in candidate 2 of list 'x'" in err
    err = run(*argv, "texts.jsonl", "--metric", "parseval", status=1)
    assert "texts.jsonl: the metric parseval is for trees" in err
    (files / "bad.jsonl").write_text(lines({"id": "x", "candidates": [{"cost": 1}, {"cost": 0}]}))
    err = run(*argv, "bad.jsonl", status=1)
    assert "bad.jsonl: no feature tells the candidates of a list apart" in err
    (files / "bad.txt").write_text("0 ||| a b ||| lm= -1 ||| -2\n")
    err = run(*argv, "bad.txt", status=1)
    assert "bad.txt: expected references" in err and "give them with --refs FILE" in err

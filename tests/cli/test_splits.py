"""Parts of --train held out, and cross-validation, as a user types them."""

from __future__ import annotations

import json

import pytest

import hopefear
from hopefear import Classifier, Parser, Reranker, Tagger
from hopefear.data.generators import candidate_lists, sparse_linear
from hopefear.data.grammar import synthetic_treebank
from hopefear.data.write_svmlight import write_svmlight
from hopefear.tasks.prepare import folds

pytestmark = pytest.mark.interpreted


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("splits")
    sentences = [["Ann B", "met O", "Bo B"], ["Bo B", "left O"], ["it O", "rains O"]] * 7
    (place / "train.txt").write_text("".join("\n".join(each) + "\n\n" for each in sentences))
    (place / "train.conllu").write_bytes(synthetic_treebank(16, seed=1).file.text)
    problem = sparse_linear(90, 20, per_row=(3, 6), true_weights=10, seed=5)
    write_svmlight(place / "train.svm", problem.dataset())
    write_lists(place / "train.jsonl", candidate_lists(40, 5, 12, doubt=3.0, seed=4))
    return place


def write_lists(path, lists):
    with open(path, "w") as file:
        for i, (start, end) in enumerate(zip(lists.starts, lists.starts[1:], strict=False)):
            candidates = [
                {
                    "text": f"text {c}",
                    "score": float(lists.scores[c]),
                    "cost": float(lists.costs[c]),
                    "features": lists.features_of(c),
                }
                for c in range(start, end)
            ]
            print(json.dumps({"id": f"list {i}", "candidates": candidates}), file=file)


TASKS = [("classify", "svm", Classifier), ("rerank", "jsonl", Reranker), ("tag", "txt", Tagger)]
TREES = {"order": 1, "features": "light", "hash_bits": 12}


@pytest.mark.parametrize(("task", "ending", "estimator"), TASKS)
def test_a_part_is_held_out_as_python_does(run, folder, task, ending, estimator):
    file = f"train.{ending}"
    argv = ["train", task, "--train", file, "--learner", "perceptron", "--epochs", 6]
    status, out, err = run(*argv, "--dev", "20%", "--seed", 3, "--model", "a.model", "--json")
    assert status == 0 and "held out: " in err and json.loads(out)["dev"]
    X, y, _ = hopefear.read(folder / file, task=task)
    common = {"epochs": 6, "early_stopping": True, "validation_fraction": 0.2, "random_state": 3}
    model = estimator("perceptron", **common).fit(X, y).model_
    other = hopefear.load_model(folder / "a.model")
    assert (model.weights == other.weights).all() and model.signature == other.signature


@pytest.mark.parametrize(("task", "ending", "estimator"), TASKS)
def test_folds_score_each_part_and_the_model_learns_from_all(run, folder, task, ending, estimator):
    argv = ["train", task, "--train", f"train.{ending}", "--learner", "perceptron", "--epochs", 2]
    status, out, err = run(*argv, "--folds", 4, "--model", "folds.model", "--json")
    result = json.loads(out)["folds"]
    assert status == 0 and len(result["scores"]) == 4 and "standard deviation" in err
    name = next(iter(result["mean"]))
    values = [fold[name] for fold in result["scores"]]
    assert result["mean"][name] == pytest.approx(sum(values) / 4)
    assert result["deviation"][name] > 0.0
    run(*argv, "--model", "plain.model")
    assert (folder / "folds.model").read_bytes() == (folder / "plain.model").read_bytes()


def test_a_part_of_a_treebank_is_held_out_as_python_does(run, folder):
    more = ["--order", 1, "--features", "light", "--hash-bits", 12, "--learner", "perceptron"]
    argv = ["train", "parse", "--train", "train.conllu", "--epochs", 2, *more, "--dev", "25%"]
    assert run(*argv, "--model", "trees.model")[0] == 0
    X, y, _ = hopefear.read(folder / "train.conllu", task="parse")
    common = {"epochs": 2, "early_stopping": True, "validation_fraction": 0.25, **TREES}
    model, other = Parser("perceptron", **common).fit(X, y).model_, folder / "trees.model"
    assert (model.weights == hopefear.load_model(other).weights).all()


def test_every_example_is_in_one_part():
    parts = folds(11, 3, seed=1)
    assert sorted(i for _, part in parts for i in part.tolist()) == list(range(11))
    assert all(set(rest.tolist()).isdisjoint(part.tolist()) for rest, part in parts)


@pytest.mark.parametrize(
    ("options", "status", "words"),
    [
        (["--dev", "0%"], 2, "expected a file or a part such as 10%"),
        (["--dev", "100%"], 2, "expected a file or a part such as 10%"),
        (["--dev", "20%", "--folds", "3"], 2, "give one"),
        (["--folds", "1"], 2, "must be at least 2"),
        (["--folds", "1000"], 1, "cannot be dealt to 1000 folds"),
        (["--dev", "0.1%"], 1, "leaves none"),
        (["--dev", "10%", "--stream"], 2, "--dev 10% needs data that can be read again"),
    ],
)
def test_parts_that_cannot_be_are_refused(run, options, status, words):
    argv = ["train", "classify", "--train", "train.svm", "--learner", "perceptron"]
    code, _, err = run(*argv, *options, "--model", "m")
    assert (code, words in err) == (status, True), err

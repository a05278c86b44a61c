"""Rerankers as scikit-learn estimators: what they read, learn, answer and refuse."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import hopefear
from hopefear import Reranker
from hopefear.data.generators import candidate_lists
from hopefear.data.lists.files import read_lists
from hopefear.metrics.lists import metric_named
from hopefear.training.loop import LearningWarning

LISTS = candidate_lists(80, candidates=5, features=15, doubt=3.0, seed=4)


def as_objects(block=LISTS):
    """``(X, y)``: dicts of features, and costs."""
    named, names = block.sparse, block.sparse.names
    X, y = [], []
    for i in range(len(block)):
        span = range(block.starts[i], block.starts[i + 1])
        X.append(
            [
                {
                    names[named.ids[e]]: float(named.values[e])
                    for e in range(named.indptr[c], named.indptr[c + 1])
                }
                for c in span
            ]
        )
        y.append([float(block.costs[c]) for c in span])
    return X, y


X, Y = as_objects()
TREES = [
    [
        {"tree": "(S (NP (DT the) (NN cat)) (VP (VBZ sits)))", "logprob": -2.0},
        {"tree": "(S (NP (DT the)) (VP (NN cat) (VBZ sits)))", "logprob": -1.0},
    ],
    [
        {"tree": "(S (NP (DT the)) (VP (NN dog) (VBZ runs)))", "logprob": -1.0},
        {"tree": "(S (NP (DT the) (NN dog)) (VP (VBZ runs)))", "logprob": -1.5},
    ],
]
GOLD = [TREES[0][0]["tree"], TREES[1][1]["tree"]]


def test_dicts_matrices_and_records_are_the_same_lists():
    first = Reranker("perceptron", epochs=3).fit(X, Y)
    best = first.predict(X)
    assert first.score(X, Y) > -0.05
    records = [
        {
            "id": str(i),
            "candidates": [{"features": f, "cost": c} for f, c in zip(a, b, strict=True)],
        }
        for i, (a, b) in enumerate(zip(X, Y, strict=True))
    ]
    second = Reranker("perceptron", epochs=3).fit(records)
    assert second.predict(records).tolist() == best.tolist()
    columns = sorted({name for a in X for f in a for name in f})
    tables = [sparse.csr_matrix([[f.get(name, 0.0) for name in columns] for f in a]) for a in X]
    for rows in (tables, [table.toarray() for table in tables]):
        found = Reranker("perceptron", epochs=3).fit(rows, Y)
        assert found.score(rows, Y) > -0.05
        assert found.predict(rows[:3]).shape == (3,)
    blocks = Reranker("perceptron", features="named", epochs=3).fit(LISTS)
    assert blocks.predict([LISTS]).tolist() == best.tolist()


def test_answers_agree_with_each_other():
    model = Reranker("maxent", epochs=3).fit(X, Y)
    best, ranks = model.predict(X), model.rank(X)
    points, shares = model.decision_function(X), model.predict_proba(X)
    for i, row in enumerate(points):
        assert best[i] == ranks[i][0] == row.argmax() == shares[i].argmax()
        np.testing.assert_array_equal(ranks[i], np.argsort(-row, kind="stable"))
        assert shares[i].sum() == pytest.approx(1.0)
    cost = np.mean([y[b] for y, b in zip(Y, best, strict=True)])
    assert model.score(X, Y) == pytest.approx(-cost)
    found = model.evaluate(X, Y, samples=20)
    assert found.model.scores["cost"] == pytest.approx(cost)
    assert model.predict([]).shape == (0,)


def test_lists_of_texts_and_references():
    lists = [
        [
            {"text": "the cat sat", "features": {"bad": 0}},
            {"text": "cat the", "features": {"bad": 1}},
        ],
        [{"text": "a dig", "features": {"bad": 1}}, {"text": "a dog", "features": {"bad": 0}}],
    ]
    refs = ["the cat sat", ["a dog", "the dog"]]
    model = Reranker("perceptron", metric="wer", epochs=2).fit(lists, refs)
    assert model.predict(lists).tolist() == [0, 1]
    assert model.score(lists, refs) == 0.0 and model.metrics(lists, refs)["wer"] == 0.0
    metric = metric_named("chrf", word_order=2)
    again = Reranker("perceptron", metric=metric, epochs=2).fit(lists, refs)
    assert hopefear.RerankModel.from_bytes(again.to_bytes()).metric == metric
    with pytest.raises(ValueError, match="expected a cost for every candidate, or references and"):
        Reranker("perceptron").fit(lists, refs)


def test_lists_of_trees_and_gold_trees():
    model = Reranker("perceptron", min_count=1, epochs=2).fit(TREES, GOLD)
    assert model.features_.extraction.trees is not None
    assert model.predict(TREES).tolist() == [0, 1]
    assert model.score(TREES, GOLD) == 100.0
    broken = [[TREES[0][0], {"tree": "(S (NP", "logprob": 0.0}]]
    with pytest.raises(ValueError, match="list 0, candidate 1: expected"):
        model.predict(broken)
    with pytest.raises(ValueError, match="the gold tree of list 1: expected"):
        model.score(TREES, [GOLD[0], "(S"])


@pytest.mark.parametrize(
    ("lists", "costs", "message"),
    [
        (5, None, "expected lists of candidates, found 5"),
        ([5], None, "list 0: expected a list of candidates or a matrix"),
        ([[{"a": 1}], []], None, "list 1 has no candidates"),
        ([[{"a": 1}, 7]], None, "list 0, candidate 1: expected a dict, found 7"),
        ([[{"a": None}]], None, "list 0, candidate 0: feature 'a' must be a finite number"),
        ([[{"a": [1]}]], None, "list 0, candidate 0: feature 'a' must be a finite number"),
        ([[{"a": 1}, {"a": np.nan}]], None, "list 0, candidate 1: feature 'a' must be a finite"),
        ([[{3: 1.0, "a": 2}]], None, "names of features are strings, not 3"),
        ([[{"score": "x"}]], None, "list 0, candidate 0: score must be a finite number"),
        ([[{"features": [1]}]], None, "list 0, candidate 0: expected features in a dict"),
        ([[{"cost": 1}, {"score": 1}]], None, "1 of 2 candidates have a cost"),
        ([np.array([[1.0], [np.inf]])], None, "list 0, candidate 1: a feature is not a finite"),
        ([[{"a": 1}, {"b": 1}]], [[1.0]], r"y\[0\]: list 0 has 2 candidates, .*shape \(1,\)"),
        ([[{"a": 1}, {"b": 1}]], [[1.0, np.nan]], r"y\[0\]\[1\] is nan"),
        ([[{"a": 1}, {"b": 1}]], [[0, 1], [0, 1]], "X has 1 lists, y has 2 entries"),
        ([[{"a": 1}], [{"a": 1}]], ["x", [1.0]], r"y\[1\] is no text"),
        ([[{"a": 1}, {"b": 1}]], None, "expected a cost for every candidate"),
        ([[{"a": 1}, {"b": 1}]], [{}], r"y\[0\]: expected the costs of 2 candidates"),
    ],
)
def test_wrong_shapes_are_named_by_list_and_candidate(lists, costs, message):
    with pytest.raises(ValueError, match=message):
        Reranker("perceptron").fit(lists, costs)


def test_a_key_that_is_none_of_a_record_is_refused_when_records_are_known():
    model = Reranker("perceptron").fit([[{"score": 1.0}, {"score": 2.0}]], [[0, 1]])
    with pytest.raises(ValueError, match="list 0, candidate 0: no key 'lm'; a candidate has feat"):
        model.predict([[{"lm": 1.0, "score": 0.5}]])


def test_parameters_are_cloned_and_checked_when_fitting():
    model = Reranker("vrda", features="named", l1=1e-3)
    assert model.get_params()["l1"] == 1e-3
    copied = clone(model).set_params(l1=1e-2, epochs=2)
    changed = {"learner": "vrda", "l1": 1e-2, "epochs": 2, "features": "named"}
    assert changed.items() <= copied.get_params().items()
    with pytest.raises(ValueError, match="has no parameter 'l3'"):
        Reranker("vrda", l3=1).fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_streams_learn_what_is_given_in_order():
    whole = Reranker("perceptron", shuffle=False, epochs=1).fit(X, Y)
    parts = Reranker("perceptron")
    parts.partial_fit(X, Y)
    np.testing.assert_array_equal(parts.model_.weights, whole.model_.weights)
    parts.partial_fit(X[:10], Y[:10])
    kept = copy.deepcopy(parts)  # through its state, as when it is sent to another process
    assert kept.predict(X).tolist() == parts.predict(X).tolist()
    for one in (parts, kept):
        one.partial_fit(X[10:], Y[10:])
    assert kept.to_bytes() == parts.to_bytes()
    twice = Reranker("perceptron", shuffle=False, epochs=2).fit(X, Y)
    np.testing.assert_array_equal(parts.model_.weights, twice.model_.weights)
    assert not hasattr(Reranker("maxent-lbfgs"), "partial_fit")
    with pytest.raises(ValueError, match="this reranker cannot go on"):
        Reranker.from_bytes(parts.to_bytes()).partial_fit(X, Y)


def test_weights_are_so_many_copies():
    weights = np.ones(len(X))
    weights[:2] = [0.0, 2.0]
    one = Reranker("perceptron", shuffle=False, epochs=2).fit(X, Y, sample_weight=weights)
    two = Reranker("perceptron", shuffle=False, epochs=2).fit(
        [X[1], X[1], *X[2:]], [Y[1], Y[1], *Y[2:]]
    )
    assert one.predict(X).tolist() == two.predict(X).tolist()
    with pytest.raises(ValueError, match="80 lists need as many weights"):
        Reranker("perceptron").fit(X, Y, sample_weight=[1.0])
    with pytest.raises(ValueError, match=r"sample_weight\[0\] is -1"):
        Reranker("perceptron").fit(X[:1], Y[:1], sample_weight=[-1.0])


def test_held_out_lists_choose_the_pass():
    model = Reranker("perceptron", epochs=6, patience=0).fit(X[:60], Y[:60], None, X[60:], Y[60:])
    costs = [event["dev"]["cost"] for event in model.history_]
    assert model.best_epoch_ == 1 + int(np.argmin(costs))
    assert -model.score(X[60:], Y[60:]) == pytest.approx(min(costs))
    short = Reranker("perceptron", epochs=50, patience=2, early_stopping=True).fit(X, Y)
    assert short.n_iter_ < 50 and short.converged_
    assert short.n_iter_ == short.best_epoch_ + 2


def test_a_model_that_never_beats_the_1_best_is_warned_of():
    lists = [[{"score": 0.0}, {"score": -1.0, "features": {"second": 1.0}}]] * 6
    fits = hopefear.Reranker("perceptron", epochs=2)
    with pytest.warns(LearningWarning, match="no epoch beats the generator's 1-best"):
        fits.fit(lists, [[1.0, 0.0]] * 6, X_val=lists, y_val=[[0.0, 1.0]] * 5 + [[1.0, 0.0]])
    dev = fits.history_[0]["dev"]
    assert (dev["baseline_cost"], dev["oracle_cost"]) == pytest.approx((1 / 6, 0.0))
    fits.fit(lists, [[1.0, 0.0]] * 6, X_val=lists, y_val=[[1.0, 0.0]] * 6)  # warnings are errors


def test_files_are_read_and_models_loaded(tmp_path):
    path = tmp_path / "lists.jsonl"
    with open(path, "w") as file:
        for i, (a, b) in enumerate(zip(X, Y, strict=True)):
            items = [{"features": f, "cost": c} for f, c in zip(a, b, strict=True)]
            print(json.dumps({"id": str(i), "candidates": items}), file=file)
    model = Reranker("perceptron", epochs=3).fit(read_lists(path), None, None, read_lists(path))
    read = Reranker.read(path)
    assert (
        model.predict(read).tolist()
        == Reranker("perceptron", epochs=3).fit(read, None, None, read).predict(X).tolist()
    )
    model.save(tmp_path / "model")
    loaded = hopefear.load_model(tmp_path / "model")
    assert isinstance(loaded, hopefear.RerankModel)
    assert Reranker.load(tmp_path / "model").predict(read).tolist() == model.predict(read).tolist()
    assert loaded.predict(read).tolist() == model.predict(read).tolist()
    with pytest.raises(ValueError, match=r"lists\.jsonl"):
        Reranker.read(tmp_path / "no" / "lists.jsonl")


def test_metrics_of_texts_are_refused_for_trees():
    gold = [TREES[0][0]["tree"], TREES[1][1]["tree"]]
    with pytest.raises(ValueError, match="the metric bleu is for texts, and these candidates are"):
        Reranker("perceptron", metric="bleu", min_count=1).fit(TREES, gold)
    heard = [[{"text": "a", "score": 1}, {"text": "b", "score": 2}]]
    with pytest.raises(ValueError, match="the metric parseval is for trees, and these candidates"):
        Reranker("perceptron", metric="parseval").fit(heard, ["a"])


def test_costs_of_trees_stand_beside_gold_trees():
    costs = [(5.0, 1.0), (1.0, 5.0)]
    lists = [
        {
            "gold": parses[0]["tree"],
            "candidates": [one | {"cost": c} for one, c in zip(parses, cost, strict=True)],
        }
        for parses, cost in zip(TREES, costs, strict=True)
    ]
    given = Reranker("perceptron", metric="cost", min_count=1).fit(lists)
    assert given.evaluate(lists).as_dict()["oracle_cost"] == 1.0
    counted = Reranker("perceptron", min_count=1).fit(lists)
    assert counted.evaluate(lists).as_dict()["metric"] == "parseval"


def test_gold_trees_may_have_traces():
    gold = [parses[k]["tree"] for parses, k in zip(TREES, (0, 1), strict=True)]
    traced = [tree.replace("(VP", "(VP (NP (-NONE- *))") for tree in gold]
    found = Reranker("perceptron", min_count=1).fit(TREES, traced)
    assert found.metrics(TREES, traced) == found.metrics(TREES, gold)


def test_costs_are_not_looked_at_where_nobody_needs_them():
    lists = [
        [{"features": x, "cost": c} for x, c in zip(*one, strict=True)]
        for one in zip(X, Y, strict=True)
    ]
    reranker = Reranker("perceptron").fit(lists)
    mixed = [[{"features": lists[0][0]["features"], "cost": None}, *lists[0][1:]], *lists[1:]]
    mixed[1] = [{"features": one["features"], "cost": "high"} for one in lists[1]]
    assert reranker.predict(mixed).tolist() == reranker.predict(lists).tolist()


def test_values_that_single_precision_cannot_hold_are_refused():
    for big in ([[{"a": 1e39}, {"b": 1}]], [[{"features": {}, "score": -1e16}]]):
        with pytest.raises(ValueError, match=r"list 0, candidate 0: .* at most 1e15 in size"):
            Reranker("perceptron").fit(big, [[0.0] * len(big[0])])
    with pytest.raises(ValueError, match=r"list 0, candidate 1: .* at most 1e15 in size"):
        Reranker("perceptron").fit([np.array([[1.0], [1e39]])], [[0.0, 1.0]])


def test_files_with_duplicates_and_gold_trees_of_their_own(tmp_path):
    tree, other = TREES[0][0]["tree"], TREES[0][1]["tree"]
    (tmp_path / "nbest").write_text(f"3\tx\n-3\n{other}\n-2\n{tree}\n-1\n{other}\n")
    (tmp_path / "gold").write_text(tree + "\n")
    nbest, gold = tmp_path / "nbest", tmp_path / "gold"
    reranker = Reranker("perceptron", min_count=1, epochs=2, dedup="best")
    block = Reranker.read(nbest, gold=gold, format="bllip", dedup="none")
    reranker.fit(block, X_val=block)
    assert reranker.model_.about["reading"] == {"dedup": "best"}
    reranker.save(tmp_path / "model")
    kept = Reranker.load(tmp_path / "model").model_.about
    assert kept["reading"] == {"dedup": "best"}

"""The estimator of sequences: scikit-learn's contract where it applies, and its own promises."""

from __future__ import annotations

import copy
import json
import pickle
import resource
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import sklearn
from places import ROOT
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score

import hopefear
from hopefear import Tagger
from hopefear.data.generators import chunks
from hopefear.data.sequences import Column, Sentences
from hopefear.errors import DataWarning, HopefearError, ModelError
from hopefear.features.templates import load_templates
from hopefear.tasks.tag import task as tagging
from hopefear.tasks.tag.task import suitable


def sentences(n, seed):
    """Names and verbs: names are spans of one or two words, told by their shape."""
    rng = np.random.default_rng(seed)
    first, last = ["Ann", "Bo", "Cy", "Di"], ["Lee", "May", "Orr", "Poe"]
    X, y = [], []
    for _ in range(n):
        x, labels = [], []
        for _ in range(rng.integers(1, 4)):
            x.append(str(rng.choice(first)))
            labels.append("B-PER")
            if rng.random() < 0.5:
                x.append(str(rng.choice(last)))
                labels.append("I-PER")
            x.append(str(rng.choice(["sees", "and", "hears", "near"])))
            labels.append("O")
        X.append(x)
        y.append(labels)
    return X, y


@pytest.fixture(scope="module")
def problem():
    return sentences(60, seed=1)


@pytest.mark.interpreted
def test_outputs_of_folds_are_joined():
    X, y = sentences(6, seed=4)
    for cv in (2, 6):  # some folds have sequences of one length
        found = cross_val_predict(Tagger("perceptron", epochs=1), X, y, cv=cv)
        assert (found.shape, found.dtype) == ((6,), object)
        assert [len(labels) for labels in found] == [len(labels) for labels in y]
    found = Tagger("perceptron", epochs=1).fit(X, y).predict(X[:1] * 2)
    assert isinstance(found, list) and np.asarray(found).shape == (2,)


@pytest.fixture(scope="module")
def new():
    return sentences(30, seed=2)


@pytest.fixture(scope="module")
def fitted(problem):
    return Tagger("perceptron", epochs=3).fit(*problem)


def attributes(X):
    """Tokens as dicts, the way CRFsuite's users write them."""
    return [
        [{"w": w, "title": w.istitle(), "before": x[t - 1] if t else "-"} for t, w in enumerate(x)]
        for x in X
    ]


def test_parameters_of_learners_are_parameters(problem):
    tagger = Tagger("sapo", n=3, epochs=2)
    assert tagger.get_params()["n"] == 3
    assert repr(tagger) == "Tagger(epochs=2, learner='sapo', n=3)"
    twin = clone(tagger)
    assert twin is not tagger
    assert twin.get_params() == tagger.get_params()
    tagger.set_params(n=7, ratio=20.0, epochs=1)
    assert repr(tagger) == "Tagger(epochs=1, learner='sapo', n=7, ratio=20.0)"
    assert repr(twin) == "Tagger(epochs=2, learner='sapo', n=3)"
    assert "n=7" in tagger.fit(*problem).model_.signature
    with pytest.raises(ValueError, match="sapo has no parameter 'nn'; did you mean 'n'"):
        Tagger("sapo", nn=3).fit(*problem)
    with pytest.raises(ValueError, match="no learner 'sapa'"):
        Tagger("sapa").fit(*problem)


def test_searches_and_cross_validation(problem):
    X, y = problem
    search = GridSearchCV(
        Tagger(epochs=2),
        [{"learner": ["sapo"], "n": [1, 4]}, {"learner": ["perceptron"], "min_count": [1, 2]}],
        cv=3,
        error_score="raise",
    ).fit(X, y)
    assert search.best_score_ > 0.9
    assert len(search.cv_results_["params"]) == 4
    scores = cross_val_score(Tagger("perceptron", epochs=2), X, y, cv=3, error_score="raise")
    assert scores.shape == (3,)
    with sklearn.config_context(enable_metadata_routing=True):
        tagger = Tagger("perceptron", epochs=2).set_fit_request(sample_weight=True)
        tagger.set_score_request(sample_weight=True)
        weights = np.linspace(0.0, 2.0, len(X))
        routed = GridSearchCV(tagger, {"epochs": [1, 2]}, cv=2, error_score="raise")
        assert routed.fit(X, y, sample_weight=weights).best_score_ > 0.8


def test_is_the_same_as_training_by_the_task(problem):
    X, y = problem
    flat = [w for x in X for w in x], [c for labels in y for c in labels]
    starts = np.concatenate([[0], np.cumsum([len(x) for x in X])])
    columns = {"word": Column.of(flat[0]), "label": Column.of(flat[1])}
    data = tagging.dataset(Sentences(starts, columns), "ner")
    model = tagging.train(data, "perceptron", epochs=3).model
    ours = Tagger("perceptron", epochs=3, features="ner").fit(X, y).model_
    assert np.array_equal(ours.weights, model.weights)
    assert ours.signature == model.signature
    auto = Tagger("perceptron", epochs=3).fit(X, y).model_
    assert np.array_equal(auto.weights, model.weights)
    given = Tagger("perceptron", epochs=3, features=load_templates("ner")).fit(X, y).model_
    assert np.array_equal(given.weights, model.weights)


def test_answers_agree_with_each_other(fitted, new):
    X, y = new
    tags = fitted.predict(X)
    assert [len(labels) for labels in tags] == [len(x) for x in X]
    assert fitted.predict([]) == []
    assert fitted.predict([[], X[0], []]) == [[], tags[0], []]
    assert fitted.predict_single(X[0]) == tags[0]
    for best, labels in zip(fitted.predict_nbest(X, 3), tags, strict=True):
        assert best[0].labels == labels
        assert sorted(best, key=lambda output: -output.score) == best
        assert sum(output.share for output in best) == pytest.approx(1.0)
        assert sum(output.probability for output in best) <= 1.0 + 1e-9
    for x, rows in zip(X, fitted.predict_marginals(X), strict=True):
        assert len(rows) == len(x)
        assert all(sum(row.values()) == pytest.approx(1.0) for row in rows)
        assert set(rows[0]) == {"B-PER", "I-PER", "O"}
    assert fitted.predict_marginals_single(X[0]) == fitted.predict_marginals(X[:1])[0]
    right = sum(
        a == b for one, two in zip(y, tags, strict=True) for a, b in zip(one, two, strict=True)
    )
    metrics = fitted.metrics(X, y)
    assert metrics["accuracy"] == pytest.approx(100 * right / sum(map(len, y)))
    assert metrics["f1"] == pytest.approx(100 * fitted.score(X, y))
    assert metrics["f1"] > 90
    assert fitted.classes_.tolist() == ["B-PER", "O", "I-PER"] or set(fitted.classes_) == {
        "B-PER",
        "I-PER",
        "O",
    }
    assert fitted.scheme_ == "bio"
    for x, spans in zip(X, fitted.predict_spans(X), strict=True):
        assert all(0 <= s.start < s.end <= len(x) and s.label == "PER" for s in spans)
        assert all(0.0 <= s.probability <= 1.0 + 1e-9 for s in spans)


def test_weights_of_sequences_count_in_the_score(fitted, new):
    X, y = new
    wrong = [["O"] * len(y[0]), *y[1:]]
    weights = np.ones(len(X))
    weights[0] = 0.0
    assert fitted.score(X, wrong, weights) == pytest.approx(fitted.score(X[1:], y[1:]))
    with pytest.warns(DataWarning, match=r"labels that training did not see \(new\)"):
        assert fitted.score(X, [["new"] * len(x) for x in X]) == 0.0
    with pytest.raises(ValueError, match="no tokens to score"):
        fitted.score([], [])


def test_whole_weights_are_repetitions_and_zero_is_absence(problem):
    X, y = problem
    weights = np.random.default_rng(1).integers(0, 3, len(X))
    tagger = Tagger("perceptron", epochs=2)
    weighted = clone(tagger).fit(X, y, sample_weight=weights)
    repeat = np.repeat(np.arange(len(X)), weights)
    repeated = clone(tagger).fit([X[i] for i in repeat], [y[i] for i in repeat])
    assert np.array_equal(weighted.model_.weights, repeated.model_.weights)
    for wrong, message in [
        (weights[:-1], "need as many weights"),
        (-1.0 * weights, r"sample_weight\[\d+\] is -"),
        (0 * weights, "every sample weight is zero"),
    ]:
        with pytest.raises(ValueError, match=message):
            clone(tagger).fit(X, y, sample_weight=wrong)


def test_weights_of_sequences_reach_batch_learners():
    X = [["a", "b", "c"], ["b", "a"], ["c", "c", "a"], ["a", "b", "c"]]
    y = [["B", "A", "B"], ["B", "A"], ["B", "B", "A"], ["A", "B", "B"]]
    weighted = Tagger("crf-lbfgs").fit(X, y, sample_weight=[3, 1, 1, 1])
    repeated = Tagger("crf-lbfgs").fit([X[0]] * 2 + X, [y[0]] * 2 + y)
    np.testing.assert_allclose(weighted.model_.weights, repeated.model_.weights, atol=1e-3)


def test_batch_learners_run_until_they_are_done():
    X, y = [["a", "b"], ["b", "a"]], [["A", "B"], ["B", "A"]]
    tagger = Tagger("crf-lbfgs").fit(X, y)
    assert tagger.converged_
    assert tagger.n_iter_ == len(tagger.history_) > 2
    assert Tagger("crf-lbfgs", epochs=2).fit(X, y).n_iter_ == 2
    assert not hasattr(tagger, "partial_fit")


def test_outputs_are_legal_unless_told_otherwise(problem):
    X, y = problem
    tagger = Tagger("perceptron", epochs=1).fit(X, y)
    odd = [["Lee", "Lee", "May"], ["and", "Poe"]]
    free = tagger.predict(odd, constrained=False)
    legal = tagger.predict(odd)
    assert any(x[0].startswith("I-") or "O,I-" in ",".join(x) for x in free)
    for labels in legal:
        assert all(
            not b.startswith("I-") or a[1:] == b[1:]
            for a, b in zip(["O", *labels], labels, strict=False)
        )
    never = Tagger("perceptron", epochs=1, constraints="never").fit(X, y)
    assert never.predict(odd) == free
    assert never.metrics(X, y).keys() >= {"f1"}
    always = Tagger("perceptron", epochs=1, constraints="always").fit(X, y)
    assert always.score(X, y) > 0.8


def test_permitted_labels(fitted):
    X = [["Ann", "sees"], ["Bo", "Lee"]]
    allowed = [[["O"], None], None]
    assert fitted.predict(X, allowed=allowed)[0][0] == "O"
    assert fitted.predict(X, allowed=allowed)[1] == fitted.predict(X)[1]
    assert fitted.predict_marginals(X, allowed=allowed)[0][0]["O"] == pytest.approx(1.0)
    best = fitted.predict_nbest(X, 5, allowed=allowed)[0]
    assert {output.labels[0] for output in best} == {"O"}
    with pytest.raises(ValueError, match="sequence 0, token 0: allowed labels 'X'"):
        fitted.predict(X, allowed=[[["X"], None], None])
    with pytest.raises(ValueError, match="sequence 1: 2 tokens, but 1 allowed labels"):
        fitted.predict(X, allowed=[None, [None]])


@pytest.mark.parametrize("form", ["strings", "tuples", "dicts of columns", "dicts", "lists"])
def test_forms_of_tokens(form, problem, new, tmp_path):
    def made(X):
        if form == "strings":
            return X
        if form == "tuples":
            return [[(w, w[0].lower()) for w in x] for x in X]
        if form == "dicts of columns":
            return [[{"pos": w[0].lower(), "word": w} for w in x] for x in X]
        if form == "dicts":
            return attributes(X)
        return [[[f"w={w}", f"title={w.istitle()}"] for w in x] for x in X]

    columns = ("word", "pos") if form in ("tuples", "dicts of columns") else None
    tagger = Tagger("perceptron", epochs=2, columns=columns).fit(made(problem[0]), problem[1])
    X = made(new[0])
    assert tagger.score(X, new[1]) > 0.9
    expected = "attributes" if form in ("dicts", "lists") else "templates"
    assert tagger.features_.kind == expected
    tagger.save(tmp_path / "m")
    loaded = Tagger.load(tmp_path / "m")
    assert loaded.predict(X) == tagger.predict(X)
    assert loaded.metrics(X, new[1]) == tagger.metrics(X, new[1])
    assert hopefear.load(tmp_path / "m").to_bytes() == tagger.to_bytes()


def test_templates_that_suit():
    assert suitable(["word", "pos"], ["N", "V"], False) == "pos"
    assert suitable(["word", "pos", "chunk"], ["B-PER", "O"], True) == "ner"
    assert suitable(["word", "pos"], ["S-NP", "O"], True) == "chunking"
    assert suitable(["word"], ["B-NP", "O"], True) == "ner"


def test_whole_numbers_as_labels(problem, tmp_path):
    X, y = problem
    number = {"B-PER": 7, "I-PER": -3, "O": 0}
    y = [[number[c] for c in labels] for labels in y]
    tagger = Tagger("perceptron", epochs=2).fit(X, y)
    assert tagger.scheme_ is None
    assert set(tagger.classes_.tolist()) == {7, -3, 0}
    assert tagger.score(X, y) > 0.9
    assert tagger.predict(X[:1], allowed=[[7] * len(X[0])]) == [[7] * len(X[0])]
    tagger.save(tmp_path / "m")
    loaded = Tagger.load(tmp_path / "m")
    assert loaded.predict(X) == tagger.predict(X)
    assert type(loaded.predict(X[:1])[0][0]) is int
    assert loaded.learner == "perceptron"


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
def test_copies_predict_and_go_on_learning(copied, problem):
    X, y = problem
    tagger = Tagger("perceptron", epochs=1, hash_bits=12).fit(X[:30], y[:30])
    twin = copied(tagger)
    assert twin.predict_marginals(X) == tagger.predict_marginals(X)
    one, two = tagger.partial_fit(X[30:], y[30:]), twin.partial_fit(X[30:], y[30:])
    assert np.array_equal(one.model_.weights, two.model_.weights)
    assert copied(one).to_bytes() == one.to_bytes()
    assert not hasattr(copied(Tagger("perceptron")), "classes_")


def test_chunks_of_a_pass_are_the_pass(problem):
    X, y = problem
    tagger = Tagger("perceptron", epochs=1, shuffle=False, hash_bits=14, features="ner")
    whole = clone(tagger).fit(X, y)
    parts = clone(tagger)
    for start in range(0, len(X), 25):
        chunk = slice(start, start + 25)
        parts.partial_fit(X[chunk], y[chunk], classes=whole.classes_.tolist())
    assert np.array_equal(whole.model_.weights, parts.model_.weights)
    assert parts.predict(X) == whole.predict(X)
    assert parts.model_.about["training"]["samples"] == len(X)


def test_streams_refuse_what_they_cannot_learn(problem, tmp_path):
    X, y = problem
    tagger = Tagger("perceptron").partial_fit(X[:20], y[:20])
    before = tagger.model_.weights.copy()
    with pytest.raises(ValueError, match="sequence 0, token 1: the label 'B-LOC' is not one of"):
        tagger.partial_fit([["Ann", "Rome"]], [["B-PER", "B-LOC"]])
    with pytest.raises(ValueError, match="are not those of the first call"):
        tagger.partial_fit(X, y, classes=["O", "B-LOC"])
    with pytest.raises(ValueError, match="sequence 1 has no tokens"):
        tagger.partial_fit([["Ann"], []], [["O"], []])
    assert np.array_equal(before, tagger.model_.weights)
    size = tagger.features_.size
    tagger.partial_fit([["Zoe", "ponders"]], [["B-PER", "O"]])
    assert tagger.features_.size == size
    tagger.save(tmp_path / "m")
    with pytest.raises(ValueError, match="not what learns"):
        Tagger.load(tmp_path / "m").partial_fit(X, y)
    with pytest.raises(ValueError, match="the label 'X' is not one of"):
        Tagger("perceptron").partial_fit([["a", "b"]], [["X", "Y"]], classes=["Y", "Z"])


def test_early_stopping_keeps_the_best_pass(problem, new):
    X, y = problem
    events = []
    tagger = Tagger("perceptron", epochs=8, patience=2, callbacks=[events.append])
    tagger.fit(X, y, X_val=new[0], y_val=new[1])
    history = [event["dev"]["f1"] for event in tagger.history_]
    assert tagger.best_epoch_ == 1 + int(np.argmax(history))
    assert tagger.metrics(*new)["f1"] == history[tagger.best_epoch_ - 1]
    assert tagger.converged_ == (tagger.n_iter_ < 8 or 8 - tagger.best_epoch_ >= 2)
    assert sum("dev" in event for event in events) == tagger.n_iter_
    held = Tagger("perceptron", epochs=4, early_stopping=True, validation_fraction=0.2, patience=0)
    held.fit(X, y)
    assert held.n_iter_ == 4
    assert held.best_epoch_ is not None
    for how, message in [
        ({"metric": "bleu"}, "no score 'bleu'"),
        ({"validation_fraction": 1.5}, "between 0 and 1"),
        ({"validation_fraction": 0.001}, "leaves none on one side"),
    ]:
        with pytest.raises(ValueError, match=message):
            Tagger("perceptron", early_stopping=True).set_params(**how).fit(X, y)
    with pytest.raises(ValueError, match="belong together"):
        Tagger().fit(X, y, X_val=X)
    with pytest.warns(DataWarning, match=r"1 tokens have labels that training did not see"):
        unseen = Tagger("perceptron", epochs=1).fit(X, y, X_val=[["Rome"]], y_val=[["B-LOC"]])
    assert unseen.history_[0]["dev"]["f1"] == 0.0


def test_a_failed_fit_leaves_the_old_model(problem):
    X, y = problem
    tagger = Tagger("perceptron", epochs=1).fit(X, y)
    before = tagger.predict(X)
    with pytest.raises(ValueError, match="sequence 0"):
        tagger.fit(X, [labels[:-1] for labels in y])
    assert tagger.predict(X) == before
    with pytest.raises(NotFittedError):
        Tagger().predict(X)
    with pytest.raises(NotFittedError):
        Tagger().score(X, y)


@pytest.mark.parametrize(
    ("X", "y", "how", "message"),
    [
        ([], [], {}, "no tokens to learn from"),
        ([["a"], []], [["A"], []], {}, "sequence 1 has no tokens"),
        ([["a", "b"]], [["A", "A"]], {}, "at least two labels"),
        (
            [["a", "b", "c"]],
            [["B-X", "E-X", "L-X"]],
            {},
            r"token .*\(scheme=None\) takes",
        ),
        ([["a", "b", "c"]], [["A", "A ", "B"]], {}, "'A' and 'A ' differ by white space only"),
        ([[b"a", b"b"]], [["A", "B"]], {}, "token 0: a token is .* not b'a'"),
        ([["a", "b"]], [["A", "B"]], {"scheme": "bio"}, "bio|BIO"),
        ([["a", "b"]], [["A", "B"]], {"features": "nosuchset"}, "no built-in set"),
        ([["a", "b"]], [["A", "B"]], {"features": "chunking", "columns": "form"}, "word"),
        ([["a", "b"]], [["A", "B"]], {"order": 3}, "order must be 1 or 2"),
        ([["a", "b"]], [["A", "B"]], {"search": "random"}, "search is one of"),
        ([["a", "b"]], [["A", "B"]], {"constraints": "maybe"}, "constraints is one of"),
        ([["a", "b"]], [["A", "B"]], {"epochs": 0}, "epochs must be"),
        ([["a", "b"]], [["A", "B"]], {"min_count": 0}, "min_count"),
        (
            [[{"w": "a"}, {"w": "b"}]],
            [["A", "B"]],
            {"hash_bits": 8},
            r"\(hash_bits\) belongs",
        ),
    ],
)
def test_refusals(X, y, how, message):
    with pytest.raises(ValueError, match=message) as caught:
        Tagger("perceptron", **how).fit(X, y)
    assert isinstance(caught.value, HopefearError)


def test_threads_and_jobs_make_no_difference(fitted, new):
    X = new[0] * 4
    alone = fitted.predict(X), fitted.predict_marginals(X)
    with ThreadPoolExecutor(8) as pool:
        together = list(
            pool.map(lambda _: (fitted.predict(X), fitted.predict_marginals(X)), range(8))
        )
    assert all(answer == alone for answer in together)
    assert clone(fitted).set_params(n_jobs=2).fit(*new).predict(X) == clone(fitted).fit(
        *new
    ).predict(X)


def test_predicting_keeps_no_memory(fitted, new):
    X = new[0] * 10
    for _ in range(20):
        fitted.predict(X)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(200):
        fitted.predict(X)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 5 * 1024


def test_reasons(fitted):
    reason = fitted.explain([["Ann", "Lee"]], 0, 0)
    assert reason.label == "B-PER"
    assert sum(gain for _, gain in reason.contributions) == pytest.approx(reason.gap, rel=1e-4)


def test_progress_is_told_when_asked_for(problem, capsys):
    Tagger("perceptron", epochs=2, verbose=1).fit(*problem, X_val=problem[0], y_val=problem[1])
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0].startswith("epoch 1: dev f1 ") and ", training error " in lines[0]
    assert "dev f1 " in lines[1]
    Tagger("perceptron", epochs=1).fit(*problem)
    assert capsys.readouterr() == ("", "")


def test_files_of_every_task_are_told_apart(fitted, tmp_path):
    fitted.save(tmp_path / "tag")
    hopefear.Classifier("perceptron").fit([[1.0], [-1.0]], ["a", "b"]).save(tmp_path / "classify")
    assert isinstance(hopefear.load_model(tmp_path / "tag"), hopefear.SequenceModel)
    assert isinstance(hopefear.load_model(tmp_path / "classify"), hopefear.Model)
    tagger, classifier = hopefear.load(tmp_path / "tag"), hopefear.load(tmp_path / "classify")
    assert isinstance(tagger, Tagger) and isinstance(classifier, hopefear.Classifier)
    assert tagger.predict([["Ann"]]) == fitted.predict([["Ann"]])
    assert max(map(len, map(repr, (tagger, tagger.model_, classifier, classifier.model_)))) < 100
    with pytest.raises(ModelError, match="expected a model for the task 'tag', found 'classify'"):
        Tagger.load(tmp_path / "classify")
    hopefear.storage.save(tmp_path / "odd", "model", {"task": "dream"}, {"a": np.zeros(1)})
    with pytest.raises(ModelError, match="task 'dream', which this version does not know"):
        hopefear.load(tmp_path / "odd")


def test_two_processes_make_the_same_bytes(problem):
    code = (
        "import json, sys, hashlib, hopefear\n"
        "X, y = json.load(sys.stdin)\n"
        "X = [[{'w': w, 'in': set(w)} for w in x] for x in X]\n"
        "t = hopefear.Tagger('perceptron', epochs=2).fit(X, y)\n"
        "print(hashlib.sha256(t.to_bytes()).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            input=json.dumps(problem),
            env={
                "PYTHONPATH": str(ROOT / "src"),
                "PYTHONHASHSEED": seed,
                "PATH": "/usr/bin:/bin",
                "HOME": str(Path.home()),
            },
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in "12"
    }
    assert len(found) == 1


@pytest.mark.interpreted
def test_probabilities_are_fitted_on_sentences_that_training_left_out():
    """Training sentences are all right in the end, and tell of no temperature."""
    drawn = chunks(160, 120, seed=3)
    words, labels = (drawn.columns[name].texts() for name in ("word", "label"))
    cuts = drawn.starts[1:-1]
    X, y = ([list(part) for part in np.split(np.array(texts), cuts)] for texts in (words, labels))
    tagger = Tagger("nbest-mira", epochs=6).fit(X[:100], y[:100])
    marginals = tagger.predict_marginals(X[100:])
    sure = np.array([max(token.values()) for sentence in marginals for token in sentence])
    gold = np.concatenate(y[100:])
    right = np.concatenate(tagger.predict(X[100:])) == gold
    assert 0.01 < tagger.model_.temperature < 0.9
    assert abs(sure.mean() - right.mean()) < 0.05

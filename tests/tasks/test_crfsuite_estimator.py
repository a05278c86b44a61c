"""The estimator with sklearn-crfsuite's names: its mapping, and the original's own answers."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from hopefear import crfsuite
from hopefear.crfsuite import CRF, metrics, scorers
from hopefear.crfsuite.estimator import choice
from hopefear.errors import HopefearError

pytestmark = pytest.mark.interpreted


def sequences(n, seed):
    rng = np.random.default_rng(seed)
    X, y = [], []
    for _ in range(n):
        x, labels = [], []
        for t in range(rng.integers(2, 7)):
            word = str(rng.choice(list("abcdefgh")))
            label = "X" if word in "abc" else ("Y" if t and labels[-1] == "X" else "Z")
            if rng.random() < 0.15:
                label = str(rng.choice(["X", "Y", "Z"]))
            x.append({"w": word, "first": t == 0, "length": 0.5, "bias": 1.0})
            labels.append(label)
        X.append(x)
        y.append(labels)
    return X, y


@pytest.fixture(scope="module")
def problem():
    return sequences(80, seed=3)


@pytest.mark.parametrize(
    ("given", "learner", "params", "epochs"),
    [
        ({"algorithm": "ap"}, "perceptron", {}, 100),
        ({"algorithm": "l2sgd", "c2": 0.5, "max_iterations": 7}, "crf", {"lam": 0.5}, 7),
        ({"algorithm": "pa", "error_sensitive": False, "averaging": False, "pa_type": 2}, "pa",
         {"C": 1.0, "variant": 2, "readout": "last"}, 100),
        ({"algorithm": "arow", "gamma": 3.0, "variance": 1}, "arow", {"r": 3.0}, 100),
    ],
)  # fmt: skip
def test_names_of_learners(given, learner, params, epochs):
    assert choice(given) == (learner, params, epochs)


def test_names_of_the_default():
    learner, params, epochs = choice({})
    assert (learner, params["l1"], params["l2"], params["observed"]) == (
        "crf-lbfgs",
        0.0,
        1.0,
        True,
    )
    assert epochs >= 100_000
    assert choice({"all_possible_transitions": True}).params["observed"] is False
    assert choice({"c1": 0.1, "max_iterations": 100})[1:] == (
        {**params, "l1": 0.1},
        100,
    )


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"algorithm": "adam"}, "algorithm is one of lbfgs, l2sgd, ap, pa, arow, not 'adam'"),
        ({"algorithm": "arow", "variance": 2.0}, "variance 1, not 2.0"),
        ({"model_filename": "m.crfsuite"}, "model_filename belongs to CRFsuite"),
        ({"trainer_cls": object}, "trainer_cls belongs to CRFsuite"),
    ],
)
def test_refusals(how, message, problem):
    with pytest.raises(ValueError, match=message) as caught:
        CRF(**how).fit(*problem)
    assert isinstance(caught.value, HopefearError)


@pytest.mark.needs("bench")
def test_same_parameters_as_the_original():
    import sklearn_crfsuite as original

    ours, theirs = (inspect.signature(c.__init__).parameters for c in (CRF, original.CRF))
    assert list(ours) == list(theirs)
    assert {k: v.default for k, v in ours.items()} == {k: v.default for k, v in theirs.items()}
    for name in ("fit", "predict", "predict_single", "predict_marginals", "score"):
        wanted = list(inspect.signature(getattr(original.CRF, name)).parameters)
        found = list(inspect.signature(getattr(CRF, name)).parameters)
        assert len(found) >= len(wanted), name


@pytest.mark.needs("bench")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("how", [{}, {"c1": 0.2, "c2": 0.05}], ids=["l2", "elastic net"])
def test_same_optimum_as_the_original(how, problem):
    import sklearn_crfsuite as original

    X, y = problem
    exact = {"delta": 1e-9, "period": 20, "max_iterations": 2000, **how}
    theirs = original.CRF(algorithm="lbfgs", epsilon=1e-9, **exact).fit(X, y)
    ours = CRF(algorithm="lbfgs", **exact).fit(X, y)
    assert set(ours.classes_) == set(theirs.classes_)
    a, b = ours.transition_features_, theirs.transition_features_
    assert max(abs(a.get(k, 0.0) - b.get(k, 0.0)) for k in a.keys() | b.keys()) < 0.01
    a, b = ours.state_features_, theirs.state_features_
    assert max(abs(a.get(k, 0.0) - b.get(k, 0.0)) for k in a.keys() | b.keys()) < 0.01
    for one, two in zip(ours.predict_marginals(X), theirs.predict_marginals(X), strict=True):
        for p, q in zip(one, two, strict=True):
            assert p == pytest.approx(dict(q), abs=2e-3)
    assert ours.predict(X) == [list(labels) for labels in theirs.predict(X)]


@pytest.mark.parametrize("algorithm", ["lbfgs", "ap", "pa"])
def test_every_kind_learns_and_is_kept(algorithm, problem, tmp_path):
    X, y = problem
    crf = CRF(algorithm=algorithm, max_iterations=20)
    assert clone(crf).get_params() == crf.get_params()
    crf.fit(X, y, X_dev=X[:20], y_dev=y[:20])
    assert len(crf.history_) <= 20
    assert "accuracy" in crf.history_[-1]["dev"]
    assert crf.score(X, y) > 0.75
    assert crf.score(X, y) == metrics.flat_accuracy_score(y, crf.predict(X))
    assert pickle.loads(pickle.dumps(crf)).predict(X) == crf.predict(X)
    crf.save(tmp_path / "m")
    assert CRF.load(tmp_path / "m").predict(X) == crf.predict(X)
    assert crf.size_ == (tmp_path / "m").stat().st_size
    assert set(crf.attributes_) == {name for name, _ in crf.state_features_}
    assert crf.num_attributes_ == len(crf.attributes_)
    assert ("X", "Y") in crf.transition_features_


def test_rare_attributes_are_left_out():
    X, y = [[{"w": "a"}, {"w": "b"}], [{"w": "a"}, {"w": "c"}]], [["A", "B"], ["A", "B"]]
    crf = CRF(algorithm="ap", min_freq=2, max_iterations=3).fit(X, y)
    assert [crf.features_.name(a) for a in range(crf.features_.size)] == ["w:a"]
    with pytest.raises(ValueError, match="belong together"):
        CRF(algorithm="ap").fit(X, y, X_dev=X)


def test_scores_in_searches(problem):
    search = GridSearchCV(
        CRF(algorithm="ap"),
        {"max_iterations": [1, 3]},
        scoring={"tokens": scorers.flat_accuracy, "all": scorers.sequence_accuracy},
        refit="tokens",
        cv=2,
        error_score="raise",
    ).fit(*problem)
    assert search.best_score_ > 0.7
    assert crfsuite.metrics is metrics


def test_scores_of_tokens():
    y, z = [["A", "B"], ["A"]], [["A", "A"], ["A"]]
    assert metrics.flat_precision_score(y, z, pos_label="A") == pytest.approx(2 / 3)
    assert metrics.flat_recall_score(y, z, pos_label="A") == 1.0
    assert metrics.flat_fbeta_score(y, z, beta=1, pos_label="A") == pytest.approx(0.8)
    report = metrics.flat_classification_report(y, z, labels=["A"], output_dict=True)
    assert report["A"]["support"] == 2
    assert metrics.sequence_accuracy_score([], []) == 0.0
    with pytest.raises(ValueError, match="sequence 0: 2 true labels, but 1 predicted"):
        metrics.flat_accuracy_score(y, [["A"], ["A"]])
    with pytest.raises(ValueError, match="2 sequences of true labels, but 1 predicted"):
        metrics.sequence_accuracy_score(y, z[:1])

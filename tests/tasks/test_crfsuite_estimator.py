"""The estimator with sklearn-crfsuite's names: its mapping, and the original's own answers."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score

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
         {"C": 1.0, "variant": 2, "averaging": "last"}, 100),
        ({"algorithm": "arow", "gamma": 3.0, "variance": 1}, "arow", {"r": 3.0}, 100),
    ],
)  # fmt: skip
def test_names_of_learners(given, learner, params, epochs):
    assert choice(given) == (learner, params, epochs)


def test_names_of_the_default():
    learner, params, epochs = choice({})
    assert (learner, params["l1"], params["l2"]) == ("crf-lbfgs", 0.0, 1.0)
    assert epochs >= 100_000
    assert choice({"c1": 0.1, "max_iterations": 100})[1:] == (
        {**params, "l1": 0.1},
        100,
    )


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"algorithm": "adam"}, "algorithm is one of lbfgs, l2sgd, ap, pa, arow, not 'adam'"),
        ({"algorithm": "arow", "variance": 2.0}, "variance 1, not 2.0"),
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
    assert ours.predict(X).tolist() == [list(labels) for labels in theirs.predict(X)]


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
    assert (pickle.loads(pickle.dumps(crf)).predict(X) == crf.predict(X)).all()
    crf.save(tmp_path / "m")
    assert not (CRF.load(tmp_path / "m").predict(X) != crf.predict(X)).any()
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


# One day's doings a token: values of all kinds, a day without any, bytes.
DAYS = [
    {"rain": 1, "wind": 0.5},
    {"rain": 1},
    {"rain": 1, "sun": 0.5},
    {"wind": 0.5, "sun": 0.5},
    {"rain": 0.5, "sun": 1},
    {"sun": 1, "wind": 0.1},
    {"rain": 1, "wind": 0.5},
    {},
    {"sun": 1},
    {"wört": "zwölf".encode(), "sun": 1},
]
PLACES = ["in", "in", "in", "out", "out", "out", "in", "in", "out", "out"]
ALGORITHMS = ["lbfgs", "l2sgd", "pa", "ap", "arow"]
LEARNED = ("tagger_", "size_", "classes_", "num_attributes_", "attributes_", "state_features_",
           "transition_features_")  # fmt: skip


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_programs_for_the_original(algorithm, capsys):
    crf = CRF(algorithm)
    with pytest.raises(ValueError, match="not fitted"):
        crf.predict([DAYS])
    crf.fit([DAYS], [PLACES])
    (marginals,) = crf.predict_marginals([DAYS])
    assert [set(token) for token in marginals] == [set(crf.tagger_.labels())] * len(DAYS)
    assert [sum(token.values()) for token in marginals] == pytest.approx([1.0] * len(DAYS))
    again = pickle.loads(pickle.dumps(crf))
    verbose = CRF(algorithm, verbose=True).fit(
        X=[DAYS] * 2, y=[PLACES] * 2, X_dev=[DAYS], y_dev=[PLACES]
    )
    for fitted in (crf, again, verbose):
        assert fitted.algorithm == algorithm
        if algorithm == "ap":  # its averages are less sure, there too
            assert fitted.score([DAYS], [PLACES]) > 0.8
            continue
        assert fitted.score([DAYS], [PLACES]) == 1.0
        found = fitted.predict([DAYS])
        assert (found == PLACES).all() and (found == [PLACES]).all()
        assert found.tolist() == [PLACES] and found[0] == PLACES
    assert "epoch 1: " in capsys.readouterr().err


def test_what_is_learned_is_none_before():
    crf = CRF()
    assert [getattr(crf, name) for name in LEARNED] == [None] * len(LEARNED)
    crf.fit([DAYS] * 3, [PLACES] * 3)
    assert crf.size_ > 1000 and set(crf.classes_) == {"in", "out"}
    assert len(crf.attributes_) == crf.num_attributes_ == 4
    assert set(crf.attributes_) == {"rain", "wind", "sun", "wört:zwölf"}
    for features, sources in (
        (crf.state_features_, crf.attributes_),
        (crf.transition_features_, crf.classes_),
    ):
        assert {source for source, _ in features} == set(sources)
        assert all(isinstance(weight, float) for weight in features.values())


def test_the_tagger_of_a_model():
    tagger = CRF().fit([DAYS], [PLACES]).tagger_
    assert tagger.tag(DAYS) == PLACES
    probabilities = [tagger.marginal(label, 0) for label in tagger.labels()]
    assert sum(probabilities) == pytest.approx(1.0)
    tagger.set(DAYS[:1])
    assert tagger.probability(["in"]) == pytest.approx(tagger.marginal("in", 0))
    assert tagger.tag() == ["in"]
    with pytest.raises(ValueError, match="the label 'up' is not one of in, out"):
        tagger.probability(["up"])
    info = tagger.info()
    assert info.header["num_attrs"] == str(len(info.attributes)) == "4"
    assert info.state_features["rain", "in"] > 0.0 and ("in", "out") in info.transitions


def test_a_model_file_is_written_and_read(tmp_path):
    path = str(tmp_path / "days.model")
    assert CRF(model_filename=path).classes_ is None
    crf = CRF(model_filename=path).fit([DAYS], [PLACES])
    for same in (CRF(model_filename=path), pickle.loads(pickle.dumps(crf))):
        assert same.score([DAYS], [PLACES]) == 1.0
        assert same.state_features_ == crf.state_features_
    (tmp_path / "other").write_text("lCRF", "utf-8")
    with pytest.raises(ValueError, match="other is not a hopefear file"):
        CRF(model_filename=str(tmp_path / "other")).predict([DAYS])


def test_tokens_of_every_kind():
    X = [[{"w": b"a", b"b": 1}, {"w:a": 0, "c": {"d": [b"e"]}}.keys(), [b"w:a", "f"]]]
    crf = CRF("ap", max_iterations=2).fit(X, [["A", "B", "A"]])
    names = [crf.features_.name(a) for a in range(crf.features_.size)]
    assert names == ["w:a", "b", "c", "f"]
    with pytest.raises(ValueError, match=r"token 1: the attribute .* is no UTF-8 text"):
        CRF().fit([[{"w": 1}, {"w": b"\xff"}]], [["A", "B"]])


@pytest.mark.needs("bench")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("min_freq", [None, 0.5, 2])
@pytest.mark.parametrize("states", [None, True])
@pytest.mark.parametrize("transitions", [None, True])
def test_same_features_as_the_original(min_freq, states, transitions):
    import sklearn_crfsuite as original

    rng = np.random.default_rng(7)
    X, y = [], []
    for _ in range(10):
        n = rng.integers(1, 5)
        X.append([
            {"w": str(rng.choice(list("abcd"))), "first": t == 0, "zero": 0, "odd": False,
             "neg": -int(rng.integers(2)), "any": float(rng.integers(-2, 3)) / 2}
            for t in range(n)
        ])  # fmt: skip
        X[-1][0] = X[-1][0] | {"of": {"x": True, "y": ["z"]}}
        y.append(rng.choice(list("XYZ"), n).tolist())
    X[0][0] = X[0][0].keys()
    how = {
        "min_freq": min_freq,
        "all_possible_states": states,
        "all_possible_transitions": transitions,
        "max_iterations": 30,
    }
    ours, theirs = CRF(**how).fit(X, y), original.CRF("lbfgs", **how).fit(X, y)
    assert ours.state_features_.keys() == theirs.state_features_.keys()
    assert ours.transition_features_.keys() == theirs.transition_features_.keys()
    assert set(ours.attributes_) == set(theirs.attributes_)
    assert ours.num_attributes_ == theirs.num_attributes_
    for name in ("state_features_", "transition_features_"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name), abs=0.01)


def test_features_follow_occurrence_and_sums():
    X = [[{"on": True}, {"on": False}, {"on": True}, {"less": -1.0}, {"less": 0.5}]]
    y = [["A", "B", "A", "A", "B"]]
    plain, states, edges = (
        CRF(**how).fit(X, y)
        for how in ({}, {"all_possible_states": True}, {"all_possible_transitions": True})
    )
    assert plain.state_features_.keys() == {("on", "A"), ("on", "B"), ("less", "B")}
    assert states.state_features_.keys() == plain.state_features_.keys()
    assert edges.state_features_.keys() == plain.state_features_.keys()
    pairs = {("A", "B"), ("B", "A"), ("A", "A")}
    assert plain.transition_features_.keys() == states.transition_features_.keys() == pairs
    assert edges.transition_features_.keys() == pairs | {("B", "B")}
    assert CRF(min_freq=2).fit(X, y).state_features_.keys() == {("on", "A")}
    assert CRF(min_freq=2).fit(X, y).transition_features_.keys() == {("A", "B")}
    with pytest.warns(UserWarning, match="the model is empty"):
        assert CRF(min_freq=100).fit(X, y).num_attributes_ == 0


def test_outputs_of_folds_are_joined():
    X, y = sequences(9, seed=1)
    for cv in (3, 9):  # some folds have sequences of one length
        found = cross_val_predict(CRF("ap", max_iterations=2), X, y, cv=cv)
        assert (found.shape, found.dtype) == ((9,), object)
        assert [len(labels) for labels in found] == [len(labels) for labels in y]
    assert metrics.flat_accuracy_score(y, found) > 0.4


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
    assert cross_val_score(CRF(), [DAYS] * 4, [PLACES] * 4, cv=2, n_jobs=2).mean() == 1.0
    assert crfsuite.metrics is metrics


def test_scores_of_tokens():
    y, z = [["A", "B"], ["A"]], [["A", "A"], ["A"]]
    assert metrics.flat_precision_score(y, z, pos_label="A") == pytest.approx(2 / 3)
    assert metrics.flat_recall_score(y, z, pos_label="A") == 1.0
    assert metrics.flat_fbeta_score(y, z, beta=1, pos_label="A") == pytest.approx(0.8)
    assert metrics.flat_f1_score(y, y, average="weighted") == 1.0
    assert metrics.flat_accuracy_score(y, z) == 2 / 3
    assert metrics.sequence_accuracy_score([[1, 2], [3], [4]], [[1, 2], [4], [4]]) == 2 / 3
    assert metrics.sequence_accuracy_score([[1, 2], [3]], [[3], [1, 2]]) == 0
    report = metrics.flat_classification_report(y, z, labels=["A"], output_dict=True)
    assert report["A"]["support"] == 2
    assert metrics.sequence_accuracy_score([], []) == 0.0
    with pytest.raises(ValueError, match="sequence 0: 2 true labels, but 1 predicted"):
        metrics.flat_accuracy_score(y, [["A"], ["A"]])
    with pytest.raises(ValueError, match="2 sequences of true labels, but 1 predicted"):
        metrics.sequence_accuracy_score(y, z[:1])

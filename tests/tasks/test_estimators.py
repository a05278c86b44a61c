"""The scikit-learn face: its contract, and the promises that go beyond it."""

from __future__ import annotations

import ast
import pickle
import signal
import subprocess
import sys

import numpy as np
import pandas
import pytest
import sklearn
from places import ROOT
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from sklearn.utils import estimator_checks

import hopefear
from hopefear.data.generators import sparse_linear
from hopefear.data.sparse import SparseDataset
from hopefear.errors import HopefearError
from hopefear.tasks import recipes_of
from hopefear.tasks.classify.estimator import Classifier
from hopefear.tasks.classify.prepare import split_classes
from hopefear.training.passes import Passes, content_order

# The tutorial has a test of its own.
EXAMPLES = sorted(set((ROOT / "examples").glob("*.py")) - set((ROOT / "examples").glob("sk*.py")))

# Learners of every kind: dual averaging, additive, second order, passive-aggressive, votes.
SPREAD = [
    {},
    {"learner": "perceptron"},
    {"learner": "vrda"},
    {"learner": "rda"},
    {"learner": "arow"},
    {"learner": "pa"},
    {"learner": "vrda", "averaging": "voted"},
]
# Checks that learners cannot pass, with the reasons that docs/estimators.md gives.
NOT_CONVEX = "local optima depend on the order of the examples"
APPROXIMATE = "it stops within its gap of the optimum, on another path for other examples"
SAME_WEIGHTS = (
    "check_sample_weight_equivalence_on_dense_data",
    "check_sample_weight_equivalence_on_sparse_data",
)
EXPECTED_FAILURES = {
    "cw": dict.fromkeys(
        ["check_classifiers_train", "check_class_weight_classifiers"],
        "it satisfies every example outright",
    ),
    "ramp": dict.fromkeys(
        ["check_classifiers_train", "check_class_weight_classifiers"], NOT_CONVEX
    ),
    "rampion-cccp": dict.fromkeys(SAME_WEIGHTS, NOT_CONVEX),
    "ssvm-cp": dict.fromkeys(SAME_WEIGHTS, APPROXIMATE),
    "ssvm-bcfw": dict.fromkeys(SAME_WEIGHTS, APPROXIMATE),
}


@pytest.fixture(scope="module")
def problem():
    data = sparse_linear(600, 80, per_row=(5, 15), true_weights=30, seed=4).dataset()
    return data.to_csr(), np.array(["fear", "hope"])[data.rows.labels]


@pytest.fixture(scope="module")
def three():
    rng = np.random.default_rng(5)
    y = rng.integers(3, size=300)
    return rng.normal(size=(300, 6)) + 2.0 * np.eye(6)[y], y


@estimator_checks.parametrize_with_checks([Classifier(**how) for how in SPREAD])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("learner", [*recipes_of("classify")])
def test_scikit_learn_contract_of_every_learner(learner):
    known = EXPECTED_FAILURES.get(learner, {})
    estimator = Classifier(learner)
    results = estimator_checks.check_estimator(
        estimator, expected_failed_checks=known, on_fail=None, on_skip=None
    )
    assert len(results) > 50
    assert {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"} == {}


def test_expected_failures_are_explained():
    page = (ROOT / "docs" / "estimators.md").read_text("utf-8")
    for learner, checks in EXPECTED_FAILURES.items():
        (line,) = (line for line in page.splitlines() if line.startswith(f"| `{learner}` |"))
        assert [check for check in checks if f"`{check}`" not in line] == []


@pytest.mark.parametrize(
    ("online", "batch"),
    [
        (Classifier("perceptron"), Classifier("ssvm-cp")),
        (hopefear.Tagger("crf"), hopefear.Tagger("crf-lbfgs")),
        (hopefear.Tagger("sapo"), hopefear.Tagger("bilstm-crf")),
        (hopefear.Parser("mira"), hopefear.Parser("ssvm-bcfw")),
        (hopefear.Reranker("rda"), hopefear.Reranker("maxent-lbfgs")),
    ],
)
def test_partial_fit_is_there_where_it_works(online, batch):
    assert hasattr(online, "partial_fit") and hasattr(type(batch), "partial_fit")
    assert not hasattr(batch, "partial_fit")
    with pytest.raises(AttributeError, match="has no attribute 'partial_fit'") as caught:
        _ = batch.partial_fit
    assert f"{batch.learner} learns from all data at once; use fit" in str(caught.value.__cause__)
    with pytest.raises(ValueError, match="did you mean 'perceptron'"):
        Classifier("perceptrn").partial_fit([[1.0], [0.0]], [0, 1], classes=[0, 1])


def test_logarithms_of_probabilities(three):
    X, y = three
    model = Classifier("vrda", averaging="voted").fit(X, y)
    with np.errstate(divide="ignore"):
        assert np.array_equal(model.predict_log_proba(X), np.log(model.predict_proba(X)))
    assert np.isneginf(model.predict_log_proba(X)).any()
    table = cross_val_predict(Classifier(), X, y, cv=3, method="predict_log_proba")
    np.testing.assert_allclose(np.exp(table).sum(axis=1), 1.0)


def test_balanced_classes_are_the_same_by_name_and_by_hand():
    estimator_checks.check_class_weight_balanced_linear_classifier("Classifier", Classifier())


@pytest.mark.parametrize("how", SPREAD, ids=str)
def test_order_of_rows_makes_no_difference(how, problem):
    X, y = problem
    order = np.random.default_rng(0).permutation(len(y))
    one = Classifier(**how, epochs=2).fit(X, y)
    two = Classifier(**how, epochs=2).fit(X[order].toarray(), y[order])
    assert np.array_equal(one.decision_function(X), two.decision_function(X))
    other = Classifier(**how, epochs=2, random_state=7).fit(X, y)
    assert not np.array_equal(one.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("how", SPREAD, ids=str)
def test_whole_weights_are_repetitions(how, shuffle, problem):
    X, y = problem
    weights = np.random.default_rng(1).integers(0, 4, len(y))
    model = Classifier(**how, epochs=2, shuffle=shuffle)
    weighted = clone(model).fit(X, y, sample_weight=weights)
    repeated = clone(model).fit(X[np.repeat(np.arange(len(y)), weights)], np.repeat(y, weights))
    assert np.array_equal(weighted.decision_function(X), repeated.decision_function(X))


def test_fractions_scale_and_large_weights_stay_affordable():
    data = SparseDataset.from_csr(np.ones((4, 1)), [0, 1, 0, 1], sample_weight=[0.5, 2.5, 2, 0])
    passes = Passes(data, shuffle=False)
    (rows, order), *more = passes.pieces(0)
    assert order.tolist() == [0, 1, 1, 1, 2, 2]
    assert more == []
    total = np.bincount(order, rows.weights[order], minlength=4)
    np.testing.assert_allclose(total, [0.5, 2.5, 2, 0], rtol=1e-6)
    weights = np.random.default_rng(0).random(100) * 1e6
    data = SparseDataset.from_csr(np.ones((100, 1)), np.arange(100) % 2, sample_weight=weights)
    passes = Passes(data)
    assert 10 * 100 <= passes.n <= 11 * 100
    rows, order = next(iter(passes.pieces(0)))
    total = np.bincount(order, rows.weights[order], minlength=100)
    np.testing.assert_allclose(total, weights, rtol=1e-5)


def test_hash_sees_places_values_labels_and_weights():
    X = np.array([[1, 2, 0], [2, 1, 0], [1, 0, 2], [1, 2, 0], [1, 2, 0], [0, 0, 0]], float)
    y, w = [0, 0, 0, 1, 0, 0], [1, 1, 1, 1, 0.5, 1]
    data = SparseDataset.from_csr(X, y, w)
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(len(y))
        other = data.take(order)
        assert order[content_order(other.rows)].tolist() == content_order(data.rows).tolist()
    stored = sparse.csr_array(X)
    stored.data[stored.data == 2.0] = 0.0
    dropped = stored.copy()
    dropped.eliminate_zeros()
    orders = [content_order(SparseDataset.from_csr(m, y, w).rows) for m in (stored, dropped)]
    assert orders[0].tolist() == orders[1].tolist()


@pytest.mark.parametrize("how", SPREAD, ids=str)
def test_chunks_of_a_pass_are_the_pass(how, problem):
    X, y = problem
    rate = {} if how.get("learner") in ("arow", "pa") else {"rate": 0.5}
    model = Classifier(**how, **rate, epochs=1, shuffle=False, intercept=0.5, values="log")
    whole = clone(model).fit(X, y)
    parts = clone(model)
    for start in range(0, 600, 70):
        parts.partial_fit(X[start : start + 70], y[start : start + 70], classes=["hope", "fear"])
        parts = pickle.loads(pickle.dumps(parts))
    assert np.array_equal(whole.decision_function(X), parts.decision_function(X))
    assert parts.model_.about["training"]["samples"] == 600
    again = whole.partial_fit(X, y).decision_function(X)
    assert np.array_equal(again, parts.partial_fit(X, y).decision_function(X))


def test_streams_refuse_new_labels(problem):
    X, y = problem
    with pytest.raises(ValueError, match="needs classes: all the labels"):
        Classifier().partial_fit(X, y)
    model = Classifier("perceptron").partial_fit(X, y, classes=["fear", "hope"])
    before = model.decision_function(X)
    with pytest.raises(ValueError, match="'maybe' is not one of the classes"):
        model.partial_fit(X[:1], ["maybe"])
    with pytest.raises(ValueError, match="not the same as in the first call"):
        model.partial_fit(X, y, classes=["fear", "hope", "maybe"])
    assert np.array_equal(before, model.decision_function(X))
    with pytest.raises(ValueError, match="balanced' needs all the data"):
        Classifier(class_weight="balanced").partial_fit(X, y, classes=["fear", "hope"])


@pytest.mark.parametrize("intercept", ["auto", 0, 2.0])
def test_coefficients_give_the_scores(intercept, problem, three):
    X, y = problem
    model = Classifier(intercept=intercept, norm="none").fit(X, y)
    scores = X @ model.coef_[0].astype(float) + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-4, atol=1e-5)
    assert model.coef_.shape == (1, 80)
    assert (model.intercept_ == 0).all() == (intercept == 0)
    X, y = three
    model = Classifier(intercept=intercept, norm="none").fit(X, y)
    scores = X @ model.coef_.T.astype(float) + model.intercept_
    np.testing.assert_allclose(model.decision_function(X), scores, rtol=1e-4, atol=1e-4)
    assert np.array_equal(model.predict(X), model.classes_[scores.argmax(axis=1)])
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_votes_have_no_coefficients(problem):
    X, y = problem
    model = Classifier("vrda", averaging="voted").fit(X, y)
    assert not hasattr(model, "coef_")
    with pytest.raises(HopefearError, match="no single weight for a feature"):
        _ = model.coef_
    assert ((model.decision_function(X) > 0) == (model.predict(X) == "hope")).all()


@pytest.mark.parametrize(
    "labels", [[3, 7], [1.0, 2.0], [False, True], ["no", "yes"], np.array(["a", "b"], object)]
)
def test_labels_survive_the_model_file(labels, problem, tmp_path):
    X, y = problem
    y = np.asarray(labels)[(y == "hope").astype(int)]
    model = Classifier().fit(X, y)
    model.save(tmp_path / "m")
    loaded = Classifier.load(tmp_path / "m")
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert loaded.classes_.tolist() == list(labels)
    assert loaded.model_.to_bytes() == hopefear.load(tmp_path / "m").to_bytes()
    with pytest.raises(ValueError, match="not what learns"):
        loaded.partial_fit(X, y)


def test_early_stopping_keeps_the_best_pass(problem):
    X, y = problem
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(400) < 0.3, "hope", y[:400])
    model = Classifier(epochs=40, patience=2, rate=5.0, l1=0.0)
    model.fit(X[:400], noisy, X_val=X[400:], y_val=y[400:])
    scores = [event["dev"]["accuracy"] for event in model.history_]
    assert model.best_epoch_ == int(np.argmax(scores)) + 1
    assert model.n_iter_ == len(scores) == model.best_epoch_ + 2 < 40
    assert model.converged_
    assert 100 * model.score(X[400:], y[400:]) == pytest.approx(max(scores))
    plain = Classifier(epochs=model.best_epoch_, rate=5.0, l1=0.0).fit(X[:400], noisy)
    assert np.array_equal(plain.coef_, model.coef_)
    assert plain.best_epoch_ is None
    assert not plain.converged_
    with pytest.raises(ValueError, match="belong together"):
        model.fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="'other' is not one of the classes"):
        model.fit(X, y, X_val=X[:2], y_val=["hope", "other"])


def test_a_part_of_every_class_is_held_out(problem):
    X, _ = problem
    y = np.repeat([0, 1, 2], [500, 90, 10])
    data = SparseDataset.from_csr(X, y)
    rest, held = split_classes(data, 0.1, seed=1)
    assert np.bincount(held.rows.labels).tolist() == [50, 9, 1]
    assert len(rest) + len(held) == 600
    order = np.random.default_rng(0).permutation(600)
    _, again = split_classes(data.take(order), 0.1, seed=1)
    assert sorted(map(str, again.to_csr().toarray())) == sorted(map(str, held.to_csr().toarray()))
    model = Classifier(early_stopping=True, patience=1).fit(X, y)
    assert all("dev" in event for event in model.history_)
    with pytest.raises(ValueError, match="between 0 and 1"):
        Classifier(early_stopping=True, validation_fraction=1.0).fit(X, y)
    with pytest.raises(ValueError, match="leaves none to hold out"):
        Classifier(early_stopping=True).fit(X[[0, 599]], [0, 1])


def test_search_reaches_learners_and_their_parameters(problem):
    X, y = problem
    grid = {"classifier__l1": [1e-5, 10.0], "classifier__eps": [None, 1e-3]}
    search = GridSearchCV(make_pipeline(MaxAbsScaler(), Classifier(rate=0.5)), grid, cv=2)
    with pytest.warns(UserWarning, match="all weights are zero"):
        search.fit(X, y)
    assert search.best_params_["classifier__l1"] == 1e-5
    assert "l1=1e-05" in search.best_estimator_[-1].model_.signature


@pytest.mark.parametrize("estimator", [Classifier, hopefear.Tagger, hopefear.Reranker])
def test_the_same_things_have_the_same_names_and_defaults(estimator):
    common = {"epochs": None, "shuffle": True, "random_state": 1, "patience": None, "verbose": 0}
    common |= {"early_stopping": False, "validation_fraction": 0.1, "callbacks": None}
    usual = estimator().get_params()
    assert common.items() <= usual.items()
    assert not {"seed", "params"} & usual.keys()
    assert {"rate": 2.0, "l1": None}.items() <= clone(
        estimator(rate=2.0, l1=None)
    ).get_params().items()


@pytest.mark.parametrize("routing", [True, False])
def test_weights_travel_through_pipelines(routing, problem):
    X, y = problem
    weights = (np.arange(600) % 2).astype(float)
    direct = Classifier().fit(X[1::2], y[1::2]).coef_
    with sklearn.config_context(enable_metadata_routing=routing):
        if routing:
            pipe = make_pipeline(Classifier().set_fit_request(sample_weight=True))
            pipe.fit(X, y, sample_weight=weights)
        else:
            pipe = make_pipeline(Classifier()).fit(X, y, classifier__sample_weight=weights)
    assert np.array_equal(pipe[-1].coef_, direct)


def test_class_weights_multiply_sample_weights(three):
    X, y = three
    weights = np.random.default_rng(0).random(300) + 0.5
    factors = {0: 2.0, 2: 0.25}
    one = Classifier(class_weight=factors).fit(X, y, sample_weight=weights)
    product = weights.astype(np.float32) * np.array([2.0, 1.0, 0.25], np.float32)[y]
    two = Classifier().fit(X, y, sample_weight=product)
    assert np.array_equal(one.coef_, two.coef_)
    with pytest.raises(ValueError, match=r"class_weight names \['9'\]"):
        Classifier(class_weight={9: 1.0}).fit(X, y)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"learner": "perceptrn"}, "did you mean 'perceptron'"),
        ({"epocs": 3}, "Classifier has no parameter 'epocs'; did you mean 'epochs'"),
        ({"loss": "logistic", "learner": "cw"}, "ConfidenceWeighted and Logistic"),
        ({"C": 1.0}, "has no parameter 'C'"),
        ({"epochs": 0}, "epochs must be a whole number"),
        ({"values": "tf"}, "values must be one of"),
        ({"l2": -1.0, "learner": "sgd"}, "must not be negative"),
        ({"metric": "bleu", "early_stopping": True}, "no score 'bleu'"),
    ],
)
def test_bad_parameters_are_value_errors(how, message, three):
    with pytest.raises(ValueError, match=message) as caught:
        Classifier(**how).fit(*three)
    assert isinstance(caught.value, HopefearError)


def test_bad_numbers_are_refused_with_their_place(three):
    X, y = three
    model = Classifier().fit(X, y)
    for bad in (np.nan, np.inf, 1e300):
        broken = X.copy()
        broken[7, 2] = bad
        for call in (model.predict, lambda Z: clone(model).fit(Z, y)):
            with pytest.raises(ValueError, match=r"X\[7, 2\]: expected a number"):
                call(broken)
    failed = Classifier()
    with pytest.raises(ValueError, match="one class only"):
        failed.fit(X, np.ones(300))
    with pytest.raises(NotFittedError):
        failed.predict(X)


def test_silence_events_and_lines(capfd, three):
    Classifier().fit(*three)
    assert capfd.readouterr() == ("", "")
    events = []
    model = Classifier(epochs=3, callbacks=[events.append], verbose=1).fit(*three)
    assert [event["epoch"] for event in events] == [1, 2, 3]
    assert [e["nnz"] for e in events] == [e["nnz"] for e in model.history_]
    out, err = capfd.readouterr()
    assert out == ""
    assert [line[:8] for line in err.splitlines()] == ["epoch 1:", "epoch 2:", "epoch 3:"]


@pytest.fixture
def heeded():
    """Control-C as a terminal's jobs have it; jobs in the background may ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeded")
def test_an_interrupt_is_a_keyboard_interrupt(three):
    def stop(event):
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        Classifier(callbacks=[stop]).fit(*three)


def test_random_states(three):
    X, y = three

    def coefficients(state):
        return Classifier(random_state=state).fit(X, y).coef_

    assert np.array_equal(coefficients(1), Classifier().fit(X, y).coef_)
    same = [coefficients(np.random.RandomState(3)) for _ in range(2)]
    assert np.array_equal(*same)
    assert not np.array_equal(coefficients(None), coefficients(None))


def test_explanations_add_up(problem, three):
    X, y = problem
    model = Classifier().fit(X, y)
    for row in range(3):
        total = sum(gain for _, gain in model.explain(X, row).contributions)
        assert total == pytest.approx(abs(model.decision_function(X)[row]), rel=1e-4)
    X, y = three
    model = Classifier().fit(X, y)
    scores = np.sort(model.decision_function(X)[0])
    gains = dict(model.explain(X).contributions)
    assert sum(gains.values()) == pytest.approx(scores[-1] - scores[-2], rel=1e-4)
    assert set(gains) <= {*"012345", "(intercept)"}


def test_column_names_of_tables(three, tmp_path):
    X, y = three
    table = pandas.DataFrame(X, columns=[f"height {c}" for c in "abcdef"])
    model = Classifier().fit(table, y)
    assert model.feature_names_in_.tolist() == table.columns.tolist()
    assert {name for name, _ in model.explain(table).contributions} <= {
        *table.columns,
        "(intercept)",
    }
    model.save(tmp_path / "m")
    assert Classifier.load(tmp_path / "m").feature_names_in_.tolist() == table.columns.tolist()


def test_public_names_are_there_and_typed():
    for name in hopefear.__all__:
        assert getattr(hopefear, name) is not None
        assert name in dir(hopefear)
    stub = ast.parse((ROOT / "src" / "hopefear" / "__init__.pyi").read_text("utf-8"))
    typed = next(
        ast.literal_eval(node.value)
        for node in stub.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "__all__"  # type: ignore[attr-defined]
    )
    assert typed == hopefear.__all__
    with pytest.raises(AttributeError, match="no attribute 'Clasifier'"):
        _ = hopefear.Clasifier


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_run(path, tmp_path):
    answer = subprocess.run(
        [sys.executable, "-W", "error", str(path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stderr
    assert len(answer.stdout.splitlines()) >= 4
    assert answer.stderr == ""


def test_a_loaded_estimator_has_the_learners_parameters(tmp_path):
    classifier = hopefear.Classifier("mira", C=0.5).fit([[1.0], [-1.0]], ["a", "b"])
    classifier.save(tmp_path / "model")
    loaded = hopefear.load(tmp_path / "model")
    assert loaded.get_params()["C"] == 0.5 and repr(loaded) == repr(classifier)

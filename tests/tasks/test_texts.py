"""Classifiers of texts: strings in Python, lines on the command line, one model file for both."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
from sklearn.base import clone
from sklearn.feature_extraction import DictVectorizer
from sklearn.model_selection import GridSearchCV

import hopefear
from hopefear.cli import main
from hopefear.errors import ModelError
from hopefear.features.ngrams import Grams
from hopefear.tasks.classify.answers import ClassifyService
from hopefear.tasks.classify.estimator import Classifier
from hopefear.tasks.classify.model import Model

pytestmark = pytest.mark.interpreted

GOOD = ["Good fun", "a GOOD film!", "good , so good", "touching and fine", "fine été", "it's fun"]
BAD = ["bad", "a bad film", "so dull , so bad", "dull and loud", "no fun at all", "It isn't"]
TEXTS = [*GOOD, *BAD]
LABELS = ["pos"] * len(GOOD) + ["neg"] * len(BAD)
NEW = ["so good!", "loud and DULL", "", "tab\tand\nline", "unbekannt"]

SETTINGS = [
    {},
    {"ngrams": 2, "chars": (2, 4), "values": "tfidf"},
    {"ngrams": 0, "chars": (3, 3), "values": "nb", "norm": "none"},
    {"ngrams": 2, "values": "nb", "lowercase": False, "min_count": 2},
    {"ngrams": 2, "chars": (2, 4), "values": "nb", "nb_share": 0.6},
    {"chars": (2, 3), "values": "log", "max_share": 0.4, "marks": True},
    {"chars": (2, 3), "values": "tfidf", "hash_bits": 12},
]


def options(settings: dict) -> list[str]:
    """The same settings on the command line."""
    words = []
    for name, value in settings.items():
        option = f"--{name.replace('_', '-')}"
        if name == "chars":
            words += [option, "-".join(map(str, value))]
        elif name == "lowercase":
            words += [] if value else ["--no-lowercase"]
        elif name == "marks":
            words += [option if value else "--no-marks"]
        else:
            words += [option, str(value)]
    return words


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "train.tsv"
    rows = zip(LABELS, TEXTS, strict=True)
    path.write_text("".join(f"{label}\t{text}\n" for label, text in rows), "utf-8")
    return path


def as_dev(tmp_path: Path) -> Path:
    path = tmp_path / "new.tsv"
    path.write_text("".join("\t" + " ".join(text.split()) + "\n" for text in NEW), "utf-8")
    return path


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_model_of_the_command_line_answers_strings(
    settings: dict, lines: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, new = str(tmp_path / "m"), str(as_dev(tmp_path))
    train = ["train", "classify", "--quiet", "--train", str(lines), "--model", file]
    assert main([*train, "--learner", "perceptron", *options(settings)]) == 0
    capsys.readouterr()
    assert main(["predict", "--model", file, "--input", new, "--proba"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    loaded, model = hopefear.load(file), hopefear.load_model(file)
    assert loaded.predict(NEW).tolist() == model.predict(NEW) == [row[0] for row in rows]
    shown = [[float(cell.rsplit(":", 1)[1]) for cell in row[1:]] for row in rows]
    np.testing.assert_allclose(loaded.predict_proba(NEW), shown, atol=1e-4)
    for name in set(settings) - {"min_count", "max_share"}:  # these are done with
        assert getattr(loaded, name) == settings[name]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_a_model_of_python_answers_lines(
    settings: dict, lines: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Classifier("perceptron", **settings).fit(TEXTS, LABELS)
    model.save(tmp_path / "m")
    assert main(["predict", "--model", str(tmp_path / "m"), "--input", str(as_dev(tmp_path))]) == 0
    answers = capsys.readouterr().out.splitlines()
    assert answers == model.predict(NEW).tolist()
    again = Classifier.load(tmp_path / "m")
    assert np.array_equal(again.decision_function(NEW), model.decision_function(NEW))
    assert np.array_equal(
        pickle.loads(pickle.dumps(model)).decision_function(NEW), model.decision_function(NEW)
    )
    assert again.to_bytes() == model.to_bytes()


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_same_data_gives_the_same_features_weights_and_rows(
    settings: dict, lines: Path, tmp_path: Path
) -> None:
    file = str(tmp_path / "m")
    train = ["train", "classify", "--quiet", "--train", str(lines), "--model", file]
    assert main([*train, *options(settings)]) == 0
    theirs = hopefear.load_model(file)
    ours = Classifier(**settings).fit(TEXTS, LABELS).model_
    assert ours.features.to_header() == theirs.features.to_header()
    for name, array in ours.features.arrays().items():
        assert np.array_equal(array, theirs.features.arrays()[name])
    assert ours.transform == theirs.transform
    assert (ours.scale is None) == (theirs.scale is None)
    assert ours.scale is None or np.array_equal(ours.scale, theirs.scale)
    assert ours.predictor.weights.tobytes() == theirs.predictor.weights.tobytes()
    for mine, other in zip(ours.prepared(NEW), theirs.prepared(NEW), strict=True):
        assert np.array_equal(mine, other)
    assert ours.structure == theirs.structure


def test_any_holder_of_texts_will_do() -> None:
    model = Classifier("perceptron").fit(iter(TEXTS), np.array(LABELS))
    wanted = model.predict(NEW).tolist()
    for X in (tuple(NEW), np.array(NEW), np.array(NEW, dtype=object), iter(NEW)):
        assert model.predict(X).tolist() == wanted
    assert model.predict(pandas.Series(NEW)).tolist() == wanted
    assert model.score(TEXTS, LABELS) == 1.0
    assert model.coef_.shape == (1, model.features_.size)


def test_explanations_and_inspection_speak_in_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = Classifier(ngrams=2, chars=(3, 4), values="nb").fit(TEXTS, LABELS)
    reason = model.explain(["such a good film"])
    names = [name for name, _ in reason.contributions]
    assert "good" in names and "c=·goo" in names
    gains = sum(gain for _, gain in reason.contributions)
    np.testing.assert_allclose(gains, abs(model.decision_function(["such a good film"])[0]), 1e-5)
    model.save(tmp_path / "m")
    assert main(["inspect", "--model", str(tmp_path / "m"), "--json", "--top", "20"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert "good" in [name for name, _ in facts["top"]["pos"]]
    assert facts["transform"] == {"values": "nb", "norm": "l2"}


def test_held_out_texts_are_scaled_by_the_training_texts() -> None:
    model = Classifier(values="tfidf", chars=(2, 3), epochs=3, patience=0)
    model.fit(TEXTS, LABELS, X_val=NEW[:2], y_val=["pos", "neg"])
    best = model.history_[model.best_epoch_ - 1]["dev"]["accuracy"]
    assert model.score(NEW[:2], ["pos", "neg"]) == best / 100.0
    early = Classifier(ngrams=2, early_stopping=True, validation_fraction=0.3).fit(TEXTS, LABELS)
    assert early.best_epoch_ is not None


def test_searches_clones_and_weights() -> None:
    search = GridSearchCV(
        Classifier("perceptron"), {"ngrams": [1, 2], "chars": [None, (2, 3)]}, cv=2
    ).fit(TEXTS, LABELS)
    assert search.best_estimator_.predict(["good"]).tolist() == ["pos"]
    assert clone(Classifier(chars=(2, 3), values="nb")).chars == (2, 3)
    for values in ("counts", "tfidf", "nb"):
        weighted = Classifier(values=values, shuffle=False).fit(
            TEXTS, LABELS, sample_weight=[1.0] * (len(TEXTS) - 1) + [2.0]
        )
        repeated = Classifier(values=values, shuffle=False).fit(
            [*TEXTS, TEXTS[-1]], [*LABELS, LABELS[-1]]
        )
        np.testing.assert_allclose(
            weighted.decision_function(TEXTS), repeated.decision_function(TEXTS), rtol=1e-4
        )


def test_streams_of_texts() -> None:
    model = Classifier("perceptron", hash_bits=14, chars=(2, 3))
    for i in range(0, len(TEXTS), 3):
        model.partial_fit(TEXTS[i : i + 3], LABELS[i : i + 3], classes=["neg", "pos"])
    assert model.predict(["bad"]).tolist() == ["neg"]
    model = Classifier("perceptron", values="tfidf").fit(TEXTS, LABELS)
    model.partial_fit(["good or bad", "never seen"], ["neg", "pos"])
    assert model.predict(["good"]).shape == (1,)


@pytest.mark.parametrize(
    ("settings", "X", "message"),
    [
        ({}, "one text", "give a list of texts"),
        ({}, ["a", 1, "b"], r"X\[1\] is 1"),
        ({"ngrams": 2}, [[1.0], [2.0], [3.0]], "ngrams=2 is for texts"),
        ({"chars": (5, 2)}, ["a", "b", "c"], "1 to 8 characters"),
        ({"values": "bm25"}, ["a", "b", "c"], "one of counts, presence, log, tfidf, nb"),
        ({"max_share": 2}, ["a", "b", "c"], "max_share"),
        ({}, ["a", "b"], "inconsistent numbers of samples"),
    ],
)
def test_refusals(settings: dict, X: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Classifier(**settings).fit(X, ["x", "y", "x"])


def test_refusals_between_texts_and_numbers() -> None:
    numbers = Classifier("perceptron").fit([[1.0], [-1.0]], [0, 1])
    with pytest.raises(ValueError, match="numeric ids, which text lacks"):
        numbers.predict(["a"])
    texts = Classifier("perceptron").fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="features"):
        texts.predict([[1.0]])
    with pytest.raises(ValueError, match="give hash_bits"):
        Classifier("perceptron").partial_fit(TEXTS, LABELS, classes=["neg", "pos"])
    with pytest.raises(ValueError, match="is measured on all examples"):
        Classifier("perceptron", hash_bits=9, values="nb").partial_fit(
            TEXTS, LABELS, classes=["neg", "pos"]
        )


def test_forged_scales_are_refused() -> None:
    model = Classifier("perceptron", values="tfidf").fit(TEXTS, LABELS).model_
    scale = model.scale
    assert Model.from_bytes(model.to_bytes()).predict(NEW) == model.predict(NEW)
    for forged in (
        replace(model, scale=None),
        replace(model, scale=scale[:-1]),
        replace(model, scale=-scale),
        replace(model, scale=scale.astype(np.float64)),
        replace(model, transform={"values": "counts", "norm": "l2"}),
        replace(model, transform={"values": "bm25", "norm": "l2"}),
    ):
        with pytest.raises(ModelError):
            Model.from_bytes(forged.to_bytes())


def test_command_line_refuses(lines: Path, capsys: pytest.CaptureFixture[str]) -> None:
    numbers = lines.with_name("train.svm")
    numbers.write_text("1 1:1\n2 2:1\n")
    train = ["train", "classify", "--quiet", "--model", str(lines.with_name("m")), "--train"]
    assert main([*train, str(numbers), "--chars", "2-3"]) == 1
    assert "--chars" in capsys.readouterr().err
    assert main([*train, str(lines), "--chars", "2-9"]) == 1
    assert "1 to 8 characters" in capsys.readouterr().err
    cache = ["--cache", str(lines.with_name("c"))]
    assert main([*train, str(lines), "--values", "tfidf", *cache]) == 1
    assert "without a cache" in capsys.readouterr().err
    for wrong in (["--chars", "a-b"], ["--max-share", "0"], ["--values", "idf"]):
        assert main([*train, str(lines), *wrong]) == 2
        assert f"argument {wrong[0]}" in capsys.readouterr().err
    assert main([*train, str(lines), "--chars", "2-3", "--learner", "perceptron", *cache]) == 0
    assert main([*train, str(lines), "--chars", "2-3", "--learner", "perceptron", *cache]) == 0
    assert "again" not in capsys.readouterr().err


def test_a_share_of_naive_bayes_is_mixed_into_the_weights() -> None:
    """Against plain NumPy: two classes, three classes, held-out texts."""
    three = ["pos", "neg", "odd"] * (len(TEXTS) // 3)
    for labels in (LABELS, three):
        plain, mixed = (
            Classifier("softmax", values="nb", nb_share=share).fit(TEXTS, labels)
            for share in (0.0, 0.6)
        )
        data = plain.model_.read(TEXTS)
        present = data.to_csr().toarray() != 0
        ratios = []
        for name in plain.classes_:
            own = np.array([label == name for label in labels])
            p, q = 1.0 + present[own].sum(axis=0), 1.0 + present[~own].sum(axis=0)
            ratios.append(np.log((p / p.sum()) / (q / q.sum())))
        signs = np.array(ratios) / np.abs(ratios).max(axis=0)
        signs = signs[1:] if len(signs) == 2 else signs
        wanted = 0.4 * plain.coef_ + 0.6 * np.abs(plain.coef_).mean() * signs
        np.testing.assert_allclose(mixed.coef_, wanted, atol=1e-6)
        np.testing.assert_allclose(mixed.intercept_, 0.4 * plain.intercept_, atol=1e-6)
        assert "|nb_share:0.6|" in mixed.model_.signature
        rest = mixed.fit(TEXTS, labels, X_val=TEXTS, y_val=labels)
        assert rest.history_[rest.best_epoch_ - 1]["dev"]["accuracy"] == pytest.approx(
            100.0 * rest.score(TEXTS, labels)
        )


def test_a_share_of_naive_bayes_needs_its_values_weights_and_all_data(
    lines: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for share in (-0.1, 1.0, "half", True):
        with pytest.raises(ValueError, match="nb_share must be from 0 to below 1"):
            Classifier(values="nb", nb_share=share).fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="give values='nb', or leave nb_share out"):
        Classifier(values="tfidf", nb_share=0.5).fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match="votes have none"):
        Classifier("vrda", averaging="voted", values="nb", nb_share=0.5).fit(TEXTS, LABELS)
    model = Classifier(values="nb", nb_share=0.5).fit(TEXTS, LABELS)
    with pytest.raises(ValueError, match=r"nb_share=0\.5 needs all the data"):
        model.partial_fit(TEXTS, LABELS)
    train = ["train", "classify", "--train", str(lines), "--model", str(tmp_path / "m")]
    for wrong, message in (
        (["--nb-share", "0.5"], "--nb-share belongs to --values nb"),
        (["--nb-share", "1", "--values", "nb"], "--nb-share: must be at least 0 and below 1"),
    ):
        assert main([*train, *wrong]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:The number of unique classes")
def test_targets_of_regression_are_no_classes():
    texts = [f"good film {i}" for i in range(30)]
    for y in ([float(i) for i in range(30)], [7 * i for i in range(30)], texts):
        for X in (texts, np.eye(30)):
            with pytest.raises(ValueError, match="look like targets of regression"):
                Classifier("perceptron").fit(X, y)
            model = Classifier("perceptron", many_classes=True).fit(X, y)
            assert len(model.classes_) == 30
    with pytest.raises(ValueError, match="differ by white space only"):
        Classifier("perceptron").fit(["a", "b", "c"], ["x", "x ", "y"])


DICTS = [
    {"size": 2, "kind": "a", "wet": True},
    {"size": np.float32(0.5), "kind": "b"},
    {"size": 0, "kind": "a"},
    {"kind": "b", "old": "no"},
]


def test_rows_may_be_dicts(tmp_path):
    y = ["x", "y", "x", "y"]
    vectorizer = DictVectorizer(sort=False)
    X = vectorizer.fit_transform(DICTS)
    new = [{"size": 3, "kind": "b", "colour": "red", "length": 7}, {}]
    named = Classifier("perceptron").fit(DICTS, y)
    plain = Classifier("perceptron").fit(X, y)
    assert named.features_.names(range(5)) == vectorizer.get_feature_names_out().tolist()
    wanted = plain.decision_function(vectorizer.transform([*DICTS, *new]))
    assert np.array_equal(named.decision_function([*DICTS, *new]), wanted)
    assert np.array_equal(named.decision_function(pandas.Series([*DICTS, *new])), wanted)
    assert np.array_equal(named.partial_fit(DICTS, y).coef_, plain.partial_fit(X, y).coef_)
    assert named.explain(DICTS[:1]).contributions[0][0] in named.features_.names(range(5))
    named.save(tmp_path / "model")
    loaded = hopefear.load(tmp_path / "model")
    assert loaded.predict(DICTS).tolist() == named.predict(DICTS).tolist() == y
    assert loaded.model_.predict(DICTS) == y
    service = ClassifyService(loaded.model_)
    inputs = [service.read({"size": 2, "kind": "a", "colour": "red"})]
    assert service.predict(inputs)[0]["label"] == "x"


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([{"a": 1}, {"a": [1]}], r"X\[1\]: the feature 'a' needs a string, or a finite number"),
        ([{"a": 1}, {"a": np.nan}], r"X\[1\]: the feature 'a' needs .* not nan"),
        ([{"a": 1}, {1: 2}], r"X\[1\]: the feature 1 has no name"),
        ([{"a": 1}, [1]], r"X has dicts, but X\[1\] is \[1\]"),
        ([{"a": b"x"}, {}], "needs a string"),
        ({"a": 1}, "X is one dict; give a list"),
        ([b"good", b"bad"], r"X\[0\] is bytes, b'good'; decode it"),
        (["good", b"bad"], r"X\[1\] is bytes, b'bad'; decode it"),
        (np.array([b"good", b"bad"]), r"X\[0\] is bytes"),
        (b"go", "X is bytes; give a list of texts"),
    ],
)
def test_what_cannot_be_a_row_is_refused_in_words(X, message):
    known = Classifier("perceptron").fit(DICTS, [0, 1, 0, 1])
    for ask in (lambda: Classifier("perceptron").fit(X, [0, 1]), lambda: known.predict(X)):
        with pytest.raises(ValueError, match=message):
            ask()


def test_dicts_need_a_model_of_names():
    with pytest.raises(ValueError, match="begin with fit, or give rows of"):
        Classifier("perceptron").partial_fit(DICTS, [0, 1, 0, 1], classes=[0, 1])
    with pytest.raises(ValueError, match="features of this model have no names"):
        Classifier("perceptron").fit(["a", "b"], [0, 1]).predict(DICTS)
    with pytest.raises(ValueError, match="ngrams=2 is for texts"):
        Classifier("perceptron", ngrams=2).fit(DICTS, [0, 1, 0, 1])
    with pytest.raises(TypeError, match="labels represented as bytes"):
        Classifier("perceptron").fit(["a", "b"], [b"x", b"y"])


def test_few_filled_columns_keep_their_length():
    X = np.linspace(1.0, 100.0, 200)[:, None]
    y = X[:, 0] > 50.0
    learned = Classifier().fit(X, y)
    assert learned.model_.transform["norm"] == "none" and learned.score(X, y) > 0.9
    streamed = Classifier().partial_fit(X[:150], y[:150], classes=[False, True])
    assert streamed.partial_fit(X[150:], y[150:]).model_.transform["norm"] == "none"
    with pytest.raises(ValueError, match="one column, and norm l2 leaves nothing of its values"):
        Classifier(norm="l2").fit(X, y)
    sparse = np.zeros((200, 20))
    sparse[np.arange(200), np.arange(200) % 20] = X[:, 0]
    for other in (sparse, np.hstack([X] * 51), ["a", "b"] * 100):
        assert Classifier().fit(other, y).model_.transform["norm"] == "l2"


def test_words_pairs_and_characters_are_counted_unless_said(lines: Path, tmp_path: Path) -> None:
    file = str(tmp_path / "m")
    assert main(["train", "classify", "--quiet", "--train", str(lines), "--model", file]) == 0
    for model in (hopefear.load_model(file), Classifier().fit(TEXTS, LABELS).model_):
        assert model.features.grams == Grams(2, (2, 5), marks=True)
        assert model.transform == {"values": "tfidf", "norm": "l2"}
    argv = ["train", "classify", "--quiet", "--train", str(lines), "--model", file]
    assert main([*argv, "--ngrams", "1", "--chars", "0", "--no-marks", "--values", "log"]) == 0
    plain = Classifier(ngrams=1, chars=None, marks=False, values="log").fit(TEXTS, LABELS).model_
    assert plain.features.grams == hopefear.load_model(file).features.grams == Grams()
    assert plain.transform["values"] == "log"


def test_streams_caches_and_numbers_have_counts(lines: Path, tmp_path: Path) -> None:
    stream = Classifier("perceptron", hash_bits=12).partial_fit(TEXTS, LABELS, ["neg", "pos"])
    numbers = Classifier("perceptron").fit([[1.0, 0.0], [0.0, 1.0]], ["neg", "pos"])
    models = [stream.model_, numbers.model_]
    argv = ["train", "classify", "--quiet", "--train", str(lines), "--model", str(tmp_path / "m")]
    for more in (["--cache", str(tmp_path / "cache")], ["--stream"]):
        assert main([*argv, *more]) == 0
        models.append(hopefear.load_model(str(tmp_path / "m")))
    assert {model.transform["values"] for model in models} == {"counts"}
    assert all(model.features.grams == Grams() for model in models if model is not models[1])


def drawn(n: int, n_classes: int, seed: int = 1) -> tuple[list[str], list[str]]:
    """Texts of which each class has words of its own, and some labels are wrong."""
    rng = np.random.default_rng(seed)
    own = rng.integers(0, n_classes, n)
    texts = [
        " ".join(
            [f"k{c}w{w}" for w in rng.integers(0, 6, 2)]
            + [f"other{w}" for w in rng.integers(0, 40, 5)]
        )
        for c in own
    ]
    labels = np.where(rng.random(n) < 0.15, rng.integers(0, n_classes, n), own)
    return texts, [f"c{c}" for c in labels]


@pytest.mark.parametrize("learner", ["adagrad-rda", "softmax", "perceptron", "mira"])
@pytest.mark.parametrize("n_classes", [2, 8])
def test_answers_are_as_probable_as_they_are_often_right(learner: str, n_classes: int) -> None:
    words = {"ngrams": 1, "chars": None, "epochs": 2}
    model = Classifier(learner, **words).fit(*drawn(500, n_classes))
    texts, labels = drawn(400, n_classes, seed=2)
    table = model.predict_proba(texts)
    assert (model.classes_[table.argmax(axis=1)] == model.predict(texts)).all()
    right = np.mean(model.predict(texts) == np.array(labels))
    plain = replace(model.model_, temperature=1.0).probabilities(texts)
    off, plain_off = (abs(float(p.max(axis=1).mean()) - right) for p in (table, plain))
    assert off < 0.12 and off < plain_off + 0.02
    assert np.array_equal(Classifier.from_bytes(model.to_bytes()).predict_proba(texts), table)


def test_held_out_texts_fit_the_temperature() -> None:
    texts, labels = drawn(300, 4)
    words = {"ngrams": 1, "chars": None, "epochs": 2, "patience": 0}
    fitted = {
        model.model_.temperature
        for model in (
            Classifier("mira", **words).fit(texts, labels),
            Classifier("mira", **words).fit(texts, labels, X_val=texts[:60], y_val=labels[:60]),
        )
    }
    assert len(fitted) == 2 and 1.0 not in fitted


def test_weights_are_repetitions_for_probabilities_too() -> None:
    rng = np.random.default_rng(4)
    rows = rng.random((120, 9)).astype(np.float32)
    labels = (rows @ rng.normal(size=(9, 3)) + 0.3 * rng.normal(size=(120, 3))).argmax(axis=1)
    times = rng.integers(0, 3, 120)
    order = rng.permutation(int(times.sum()))
    weighted = Classifier("perceptron").fit(rows, labels, sample_weight=times)
    repeated = Classifier("perceptron").fit(
        np.repeat(rows, times, axis=0)[order], np.repeat(labels, times)[order]
    )
    assert weighted.model_.temperature == pytest.approx(repeated.model_.temperature, rel=1e-6)


def test_a_temperature_can_be_left_out(lines: Path, tmp_path: Path) -> None:
    path, file = tmp_path / "drawn.tsv", str(tmp_path / "m")
    texts, labels = drawn(200, 3)
    path.write_text("".join(f"{y}\t{x}\n" for x, y in zip(texts, labels, strict=True)))
    argv = ["train", "classify", "--quiet", "--train", str(path), "--epochs", "2", "--model", file]
    argv += ["--ngrams", "1", "--chars", "0", "--learner", "perceptron"]
    temperatures, weights = [], []
    for more in ([], ["--no-temperature"], ["--dev", str(path)]):
        assert main([*argv, *more]) == 0
        model = hopefear.load_model(file)
        temperatures.append(model.temperature)
        weights.append(model.weights.tobytes())
        assert ("temperature:none" in model.signature) == (more == ["--no-temperature"])
    assert temperatures[1] == 1.0 and len({*temperatures}) == 3
    assert weights[0] == weights[1]


def test_what_is_not_probable_is_unknown(
    lines: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    texts, labels = drawn(200, 3)
    model = Classifier("perceptron", ngrams=1, chars=None, epochs=2).fit(texts, labels)
    new = [*drawn(20, 3, seed=5)[0], "nothing that it knows"]
    sure = model.predict_proba(new).max(axis=1)
    least = float(np.sort(sure)[6])
    expected = np.where(sure >= least, model.predict(new), "other").tolist()
    assert 0 < expected.count("other") < len(new)
    assert model.predict(new, unknown=least, unknown_label="other").tolist() == expected
    model.save(tmp_path / "m")
    (tmp_path / "new.txt").write_text("".join(f"{text}\n" for text in new))
    argv = ["predict", "--model", str(tmp_path / "m"), "--input", str(tmp_path / "new.txt")]
    argv += ["--unknown", repr(least)]
    assert main([*argv, "--unknown-label", "other"]) == 0
    assert capsys.readouterr().out.splitlines() == expected
    assert main([*argv, "--proba"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [row[0] == "unknown" for row in rows] == [label == "other" for label in expected]
    for wrong in (["--nbest", "2"], ["--explain"]):
        assert main([*argv, *wrong]) == 2
        assert "--unknown is about single labels" in capsys.readouterr().err
    numbers = Classifier("perceptron").fit([[1.0], [-1.0]], [3, 4])
    assert numbers.predict([[1.0], [0.0]], unknown=0.6, unknown_label=-1).tolist() == [3, -1]
    with pytest.raises(ValueError, match="unknown must be between 0 and 1"):
        numbers.predict([[1.0]], unknown=1.5)


def test_halves_that_are_too_few_for_the_shards_give_no_temperature() -> None:
    texts, labels = drawn(48, 2)
    plain = {"ngrams": 1, "chars": None, "epochs": 1}
    model = Classifier("perceptron", shards=40, **plain).fit(texts, labels)
    assert model.model_.temperature == 1.0
    assert Classifier("perceptron", shards=2, **plain).fit(texts, labels).model_.temperature != 1.0


def test_rows_of_a_file_give_the_weights_of_the_command_line(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    path, file = tmp_path / "rows.svm", str(tmp_path / "m")
    rows = rng.random((60, 5)).round(3)
    signs = np.where(rows[:, 0] > rows[:, 1], 1, -1)
    lines = [" ".join(f"{j + 1}:{v}" for j, v in enumerate(row)) for row in rows]
    path.write_text("".join(f"{y} {line}\n" for y, line in zip(signs, lines, strict=True)))
    assert main(["train", "classify", "--quiet", "--train", str(path), "--model", file]) == 0
    X, y, _ = hopefear.read(path)
    ours, theirs = Classifier().fit(X, y).model_, hopefear.load_model(file)
    assert ours.weights.tobytes() == theirs.weights.tobytes()
    assert ours.temperature == theirs.temperature

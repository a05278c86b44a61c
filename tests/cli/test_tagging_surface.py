"""What people can ask of taggers: parameters that do what they say, weights that can be seen."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from hopefear import Tagger
from hopefear.cli import main
from hopefear.core.interfaces import n_weights
from hopefear.data.sequences import SequenceDataset, TokenRows
from hopefear.data.token_input import TokenInput, with_labels
from hopefear.errors import HopefearError
from hopefear.structures.chain.chain import Chain
from hopefear.structures.chain.likelihood import CRFObjective
from hopefear.tasks import recipe
from hopefear.tasks.tag.model import SequenceModel
from hopefear.tasks.tag.prepare import prepare
from hopefear.tasks.tag.task import train
from hopefear.training.batch import Batch
from hopefear.training.decoders.chains import ChainDecoder
from hopefear.training.loop import fit
from hopefear.training.passes import Whole
from hopefear.training.predictors import LinearPredictor

pytestmark = pytest.mark.interpreted

X = [["Ann", "Lee", "sees", "Bo"], ["Bo", "runs"], ["the", "dog", "sees", "May", "Poe"]]
Y = [["B-P", "I-P", "O", "B-P"], ["B-P", "O"], ["O", "O", "O", "B-P", "I-P"]]
FEW = X[:2], Y[:2]


@pytest.fixture(scope="module")
def data():
    examples = with_labels(TokenInput(("word",)).read(X), Y)
    return prepare(examples, {"features": "pos"}).data


# Batch learners


@pytest.mark.parametrize("name", ["crf-lbfgs", "crf-owlqn"])
def test_threads_are_no_parameter_of_a_learner(name):
    assert "n_jobs" not in recipe(name, "tag").parameters()
    with pytest.raises(HopefearError, match=f"{name} has no parameter 'n_jobs'"):
        recipe(name, "tag").build(n_jobs=2)


def test_models_tell_how_many_iterations_were_allowed(data):
    model = train(data, "crf-lbfgs", {"max_iter": 50}, epochs=2).model
    assert model.about["parameters"]["batch"]["max_iter"] == 2
    assert "max_iter=2," in model.signature and len(model.about["training"]["history"]) == 2
    assert "max_iter=50," in train(data, "crf-lbfgs", {"max_iter": 50}).model.signature


@pytest.mark.parametrize("order", [1, 2])
def test_sentences_of_weight_0_give_no_weights(data, order):
    chain = Chain.new(data.features.size, len(data.labels), order=order)
    without = CRFObjective(chain, data.take([0, 1]).rows)
    absent = CRFObjective(chain, data.weighted([1, 1, 0]).rows)
    np.testing.assert_array_equal(absent.coordinates, without.coordinates)
    assert CRFObjective(chain, data.rows).n > without.n
    fits = [
        fit(chain, Batch(max_iter=5, observed=True), Whole(rows))
        for rows in (data.take([0, 1]).rows, data.weighted([1, 1, 0]).rows)
    ]
    np.testing.assert_allclose(fits[1].predictor.weights, fits[0].predictor.weights, atol=1e-5)
    assert fits[1].history[-1]["loss"] == pytest.approx(fits[0].history[-1]["loss"])
    assert fits[1].history[-1]["samples"] == fits[0].history[-1]["samples"]


def test_weights_that_are_all_0_are_refused(data):
    chain = Chain.new(data.features.size, len(data.labels))
    with pytest.raises(HopefearError, match="no examples to learn from, of weight above 0"):
        fit(chain, Batch(), Whole(data.weighted([0, 0, 0]).rows))


# Starting from earlier weights


def test_a_warm_start_begins_where_the_last_fit_ended():
    how = {"l2": 0.1, "tolerance": 1e-6, "warm_start": True}
    tagger = Tagger("crf-lbfgs", **how).fit(*FEW)
    cold, weights = tagger.history_, tagger.model_.weights
    warm = tagger.fit(*FEW).history_
    assert warm[0]["objective"] <= cold[-1]["objective"] * (1 + 1e-6) < cold[0]["objective"]
    assert len(warm) < len(cold)
    np.testing.assert_allclose(tagger.model_.weights, weights, atol=1e-2)
    assert tagger.set_params(warm_start=False).fit(*FEW).history_ == cold


def test_a_warm_start_takes_up_a_loaded_model(tmp_path):
    tagger = Tagger("crf-lbfgs", l2=0.1).fit(*FEW)
    tagger.save(tmp_path / "m")
    again = Tagger.load(tmp_path / "m").set_params(warm_start=True, l2=0.1).fit(*FEW)
    last = tagger.history_[-1]["objective"]
    assert again.history_[0]["objective"] <= last * (1 + 1e-6) < tagger.history_[0]["objective"]


def test_other_labels_or_features_start_from_zero():
    tagger = Tagger("crf-lbfgs", warm_start=True, epochs=3).fit(X, Y)
    renamed = [[label.replace("P", "Q") for label in y] for y in Y]
    for others in ((X[:2], Y[:2]), (X, renamed)):
        again = tagger.fit(*others)
        fresh = Tagger("crf-lbfgs", epochs=3).fit(*others)
        np.testing.assert_array_equal(again.model_.weights, fresh.model_.weights)


def test_online_learners_are_told_of_partial_fit(data):
    with pytest.raises(ValueError, match="crf learns online: partial_fit goes on"):
        Tagger("crf", warm_start=True).fit(X, Y)
    with pytest.raises(HopefearError, match="only batch learners start from given weights"):
        train(data, "perceptron", start=np.zeros(3))


# Weights of labels


def test_missed_labels_cost_what_was_said(data):
    made = train(data, "mira", class_weight={"B-P": 5.0}, epochs=1).learner
    b, i, o = map(data.labels.index, ("B-P", "I-P", "O"))
    price = made.loss.cost.label_cost
    assert (price(b, o), price(b, i), price(o, b), price(b, b)) == (5.0, 5.0, 1.0, 0.0)
    balanced = train(data, "ssvm", class_weight="balanced", epochs=1).learner.loss.cost
    counts = np.bincount(data.rows.labels)
    np.testing.assert_allclose(balanced.table[o, b], counts.sum() / (3 * counts[o]))
    twice = data.weighted([2, 2, 2])
    same = train(twice, "ssvm", class_weight="balanced", epochs=1).learner.loss.cost
    np.testing.assert_allclose(same.table, balanced.table)


def test_a_dear_label_is_missed_less_often():
    """Words that say nothing: one in four has the label A."""
    tokens, labels = [["x"]] * 40, [["A"], ["B"], ["B"], ["B"]] * 10
    found = [
        Tagger("mira", class_weight=factors, C=1.0, epochs=5).fit(tokens, labels).predict([["x"]])
        for factors in (None, {"A": 10.0})
    ]
    assert found == [[["B"]], [["A"]]]


def test_whole_numbers_name_labels_too():
    tagger = Tagger("mira", class_weight={1: 2.0}, epochs=1).fit([["a", "b"]], [[1, 2]])
    assert "cost=weighted(" in tagger.model_.signature


@pytest.mark.parametrize(
    ("learner", "params", "message"),
    [
        ("sapo", {"class_weight": "balanced"}, "use mira, nbest-mira, ssvm, arow"),
        ("crf-lbfgs", {"class_weight": "balanced"}, "use mira"),
        ("mira", {"class_weight": {"B-Q": 2.0}}, r"names \['B-Q'\], which is not among"),
        ("mira", {"class_weight": {"O": -1.0}}, "finite and not negative"),
        ("mira", {"class_weight": "even"}, "'balanced' or a mapping, not 'even'"),
        ("mira", {"class_weight": "balanced", "cost": {("O", "*"): 2.0}}, "give one"),
        ("mira", {"class_weight": "balanced", "loss": "perceptron"}, "learns without costs"),
    ],
)
def test_weights_of_labels_that_make_no_sense(learner, params, message):
    with pytest.raises(ValueError, match=message):
        Tagger(learner, **params).fit(X, Y)


def test_a_loss_with_costs_may_be_chosen():
    tagger = Tagger("perceptron", class_weight="balanced", loss="structured-hinge", epochs=1)
    assert "cost=weighted(" in tagger.fit(X, Y).model_.signature


def test_streams_have_no_weights_of_labels():
    with pytest.raises(ValueError, match="class_weight needs all data"):
        Tagger("mira", class_weight="balanced").partial_fit(X, Y)


# Schemes that outputs need not follow


def test_spans_are_there_though_outputs_are_free(tmp_path):
    tagger = Tagger("perceptron", constraints="never", epochs=3).fit(X, Y)
    model = tagger.model_
    assert (model.scheme, model.constrained) == ("bio", False)
    assert model.structure().limits.start.size == 0
    assert [span[:3] for span in tagger.predict_spans(X[:1])[0]] == [(0, 2, "P"), (3, 4, "P")]
    tagger.save(tmp_path / "m")
    again = SequenceModel.load(tmp_path / "m")
    assert (again.scheme, again.constrained) == ("bio", False)
    assert again.to_bytes() == model.to_bytes()


# Weights of label pairs and triples


def sparse_model(order):
    """A model without weights, and a sentence whose tokens have the edge attributes 0 and 1."""
    features = SimpleNamespace(
        size=1, edge_size=2, name="node {}".format, edge_name="edge {}".format
    )
    labels = ("A", "B", "C")
    chain = Chain.new(1, 3, 2, order)
    model = SequenceModel(
        LinearPredictor(np.zeros(n_weights(chain), np.float32)), labels, features, order
    )
    rows = TokenRows([0, 3], [0] * 4, [], [], [0, 0, 1, 2], [0, 1], [], [-1] * 3, [1.0])
    return model, chain, SequenceDataset(rows, labels, features)


@pytest.mark.parametrize("order", [1, 2])
def test_edges_are_named_as_they_score(order):
    model, chain, data = sparse_model(order)
    weights = model.weights
    seen = set()
    for j in range((1 + chain.width) * chain.width, n_weights(chain)):
        weights[:] = 0.0
        weights[j] = 2.0
        tags = [
            model.labels[c]
            for c in ChainDecoder(chain, LinearPredictor(weights)).predict(data.rows)
        ]
        for name, before, label, weight in model.edge_top(5):
            t = 1 + int(name.removeprefix("edge "))
            assert (tags[t - 1], tags[t], weight) == (before, label, 2.0)
            seen.add((name, before, label))
        for *labels, weight in model.triples(5):
            assert (labels, weight) == (tags, 2.0)
            seen.add(tuple(labels))
    assert len(seen) == 2 * 9 + (27 if order == 2 else 0)


def test_the_heaviest_come_first_whatever_their_sign():
    model, _, _ = sparse_model(2)
    rng = np.random.default_rng(1)
    model.weights[:] = rng.normal(size=model.weights.size)
    for everything, some in (
        (model.edge_top(1000), model.edge_top(7)),
        (model.triples(1000), model.triples(7)),
    ):
        sizes = [abs(row[-1]) for row in everything]
        assert sizes == sorted(sizes, reverse=True) and some == everything[:7]
        assert min(row[-1] for row in some) < 0.0 < max(row[-1] for row in some)
    assert len(model.edge_top(1000)) == 18 and len(model.triples(1000)) == 27


def test_what_speaks_for_and_against_a_label(data):
    model = train(data, "perceptron", epochs=2).model
    for name in model.labels:
        top, bottom = model.top(3)[name], model.bottom(3)[name]
        assert [w for _, w in top] == sorted((w for _, w in top), reverse=True)
        assert [w for _, w in bottom] == sorted(w for _, w in bottom)
        assert all(w > 0.0 for _, w in top) and all(w < 0.0 for _, w in bottom)
        assert top and bottom and len(model.bottom(10**6)[name]) > 3


# The command


def written(path, sentences):
    path.write_text("\n\n".join("\n".join(lines) for lines in sentences) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("surface")
    pairs = [[f"{w} {c}" for w, c in zip(x, y, strict=True)] for x, y in zip(X, Y, strict=True)]
    written(folder / "train.txt", pairs)
    written(folder / "iobes.txt", [["a B-X", "b E-X"], ["c B-X", "d E-X"]])
    (folder / "edges.toml").write_text('[[templates]]\nedges = "both"\nfeatures = ["word"]\n')
    return folder


@pytest.mark.parametrize("more", [[], ["--nbest", "2"]])
def test_a_sentence_without_legal_labels_counts_once(corpus, capsys, monkeypatch, more):
    model, kept = str(corpus / "iobes.model"), []
    main(["train", "tag", "--train", str(corpus / "iobes.txt"), "--scheme", "iobes", "--learner",
          "perceptron", "--epochs", "1", "--quiet", "--model", model])  # fmt: skip
    source = written(corpus / "one.txt", [["a"], ["a", "b"]])
    plain = ChainDecoder.log_likelihoods

    def watched(self, rows):
        kept.append(rows.labels.flags.writeable)
        return plain(self, rows)

    monkeypatch.setattr(ChainDecoder, "log_likelihoods", watched)
    capsys.readouterr()
    assert main(["predict", "--model", model, "--input", source, "--proba", *more]) == 0
    assert "1 sentences have no legal labels" in capsys.readouterr().err
    assert kept == ([] if more else [False])


def test_inspect_shows_pairs_triples_and_what_speaks_against(corpus, capsys):
    model = str(corpus / "edges.model")
    main(["train", "tag", "--train", str(corpus / "train.txt"), "--order", "2", "--constraints",
          "never", "--features", str(corpus / "edges.toml"), "--learner", "perceptron", "--columns",
          "word,label", "--epochs", "3", "--quiet", "--model", model])  # fmt: skip
    capsys.readouterr()
    assert main(["inspect", "--model", model]) == 0
    told = capsys.readouterr().err
    for words in ("label triples, heaviest", "features of label pairs", "bio, which outputs need"):
        assert words in told
    assert main(["inspect", "--model", model, "--json", "--top", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [len(found[key]) for key in ("edges", "triples")] == [2, 2]
    assert found["constrained"] is False and min(w for _, w in found["bottom"]["O"]) < 0.0


def test_labels_are_weighted_on_the_command_line(corpus, capsys):
    argv = ["train", "tag", "--train", str(corpus / "train.txt"), "--epochs", "1", "--model",
            str(corpus / "w.model"), "--json", "--quiet"]  # fmt: skip
    assert main([*argv, "--learner", "mira", "--class-weight", "B-P=3"]) == 0
    assert "cost=weighted(" in json.loads(capsys.readouterr().out)["signature"]
    assert main([*argv, "--learner", "sapo", "--class-weight", "balanced"]) == 1
    assert "sapo learns without costs" in capsys.readouterr().err

"""Taggers with a network: they learn, repeat, resume, answer, and say what cannot be."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

import hopefear
from hopefear.data.sequences import Column, Sentences
from hopefear.errors import HopefearError, ModelError
from hopefear.neural.encoders import Noise
from hopefear.neural.inputs import InputTable, bucketed
from hopefear.neural.network import enough_memory
from hopefear.neural.optimiser import Adam
from hopefear.neural.predictor import NetworkPredictor
from hopefear.recipes import CHAIN_RECIPES, LOSSES, NetworkRecipe
from hopefear.storage import pack, unpack
from hopefear.tasks import recipe
from hopefear.tasks.tag.model import SequenceModel
from hopefear.tasks.tag.task import dataset, train
from hopefear.training.checkpoints import Checkpoints
from hopefear.training.loop import Event
from hopefear.training.stopping import Stopping

pytestmark = [pytest.mark.needs("neural"), pytest.mark.interpreted]
NETWORKS = [name for name, one in CHAIN_RECIPES.items() if isinstance(one, NetworkRecipe)]
SMALL = {
    **{"hidden": 6, "word_dim": 6, "shape_dim": 2, "column_dim": 3, "char_dim": 4},
    **{"char_hidden": 4, "batch_size": 3, "rate": 0.05, "average": 0.5, "dropout": 0.1},
}


def sentences(n=8, seed=1):
    rng = np.random.default_rng(seed)
    nouns, verbs = ["cat", "Dog", "tree"], ["sees", "Eats"]
    words, tags, lengths = [], [], []
    for _ in range(n):
        plan = "DNVDN"[: rng.integers(2, 6)]
        texts = {"D": ["the", "A"], "N": nouns, "V": verbs}
        words += [str(rng.choice(texts[tag])) for tag in plan]
        tags += list(plan)
        lengths.append(len(plan))
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return Sentences(starts, {"word": Column.of(words), "label": Column.of(tags)})


def data_for(name, params=SMALL, text=None, templates=None):
    return dataset(text or sentences(), recipe(name, "tag").inputs(params, templates))


def trained(name="bilstm-crf", more=None, epochs=4, templates=None, **how):
    params = {**SMALL, **(more or {})}
    return train(data_for(name, params, templates=templates), name, params, epochs=epochs, **how)


@pytest.mark.parametrize("name", NETWORKS)
def test_every_network_learns(name):
    model = trained(name, epochs=20 if name == "bilstm-risk" else 6).model
    text = sentences()
    gold = text.columns["label"].texts()
    assert np.mean(np.array(model.tag(text).texts()) == np.array(gold)) > 0.9
    pairs = model.predictor.transitions
    assert (pairs is None) == (name == "bilstm")


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_every_loss_trains_a_network(loss):
    history = trained("bilstm-crf", {"loss": loss}, epochs=2).fit.history
    assert all(np.isfinite(event["loss"]) for event in history)
    assert f"loss:{loss}" in trained("bilstm-crf", {"loss": loss}, epochs=1).model.signature


@pytest.mark.parametrize(
    "more",
    [
        {"char": "lstm", "char_hidden": 3},
        {"char": "none", "shape_dim": 0},
        {"layers": 2, "l2": 0.01, "clip": 0.5},
        {"average": 0.0, "dropout": 0.0, "word_dropout": 0.0, "batch_size": 1},
        {"wide": True},
        {"lower": False, "inputs": "word"},
    ],
    ids=str,
)
def test_parts_can_be_chosen_and_come_back_from_files(more):
    model = trained(more=more, epochs=2, templates="pos").model
    again = SequenceModel.from_bytes(model.to_bytes())
    text = sentences(5, seed=2)
    assert np.array_equal(again.marginals(text), model.marginals(text))
    assert again.to_bytes() == model.to_bytes()
    assert ("table.template" in model.predictor.layers()) == ("wide" in more)


def test_the_same_seed_gives_the_same_bytes_however_a_pass_is_cut():
    whole, pieces = (trained(pieces=n, n_jobs=n).model.to_bytes() for n in (1, 3))
    assert whole == pieces
    assert trained(seed=2).model.to_bytes() != whole


@pytest.mark.parametrize("more", [{}, {"wide": True, "average": 0.0}], ids=["deep", "wide"])
def test_a_run_that_is_resumed_ends_as_if_nothing_had_been(tmp_path, more):
    dev = data_for("bilstm-crf", {**SMALL, **more}, templates="pos")
    how = {"epochs": 3, "pieces": 3, "templates": "pos", "dev": dev}
    whole = trained(more=more, stopping=Stopping(patience=0), **how).model.to_bytes()

    class EnoughError(Exception):
        pass

    def stop(event: Event) -> None:
        if event["samples"] >= 12:
            raise EnoughError

    def again(**late):
        checkpoints = Checkpoints(tmp_path, every=0.0)
        return trained(
            more=more, stopping=Stopping(patience=0), checkpoints=checkpoints, **how, **late
        )

    with pytest.raises(EnoughError):
        again(on_event=[stop])
    assert again(resume=True).model.to_bytes() == whole


def test_a_checkpoint_of_other_vectors_is_refused(tmp_path):
    files = [tmp_path / name for name in ("a.txt", "b.txt")]
    for k, file in enumerate(files):
        file.write_text(f"the {k} 1\ncat 1 0\n")
    run = {"checkpoints": Checkpoints(tmp_path / "saved"), "epochs": 1}
    trained(more={"vectors": str(files[0]), "word_dim": 0}, **run)
    files[0].write_text(files[1].read_text())
    with pytest.raises(HopefearError, match="vectors"):
        trained(more={"vectors": str(files[0]), "word_dim": 0}, resume=True, **run)


def test_scores_do_not_depend_on_what_else_is_in_a_batch():
    model, text = trained().model, sentences(6, seed=3)
    rows = model.encode(text).rows
    together = model.predictor.node_scores(rows)
    alone = [model.predictor.node_scores(model.encode(text.take([i])).rows) for i in range(6)]
    assert np.allclose(together, np.concatenate(alone), atol=1e-5)


def test_answers_agree_with_each_other():
    model, text = trained().model, sentences(4, seed=4)
    best, lists = model.tag(text), model.nbest(text, 3)
    assert np.array_equal(best.ids, np.concatenate([ranked.labels[0] for ranked in lists]))
    assert np.allclose(model.marginals(text).sum(axis=1), 1.0)
    logs = model.decoder().log_likelihoods(model.encode(text).rows._replace(labels=best.ids))
    assert np.allclose(np.exp(logs), [ranked.probabilities[0] for ranked in lists], atol=1e-6)
    reason = model.explain(text, 0, 1)
    assert reason.label == best[1] and np.isclose(
        reason.gap, sum(gain for _, gain in reason.contributions)
    )


def test_a_margin_gets_a_temperature():
    assert trained("bilstm-ssvm").model.temperature != 1.0
    assert trained("bilstm-crf", epochs=1).model.temperature == 1.0


def test_vectors_stay_where_they_must_and_are_in_the_model(tmp_path):
    (tmp_path / "v.txt").write_text("the 3 1\ncat 1 3\nzebra 2 2\n")
    base = {"vectors": str(tmp_path / "v.txt"), "word_dim": 0, "average": 0.0}
    fixed = trained(more={**base, "tune": False}, epochs=2).model
    words = ["(unknown)", *fixed.features.tables["word"]]
    table = fixed.predictor.weights_by_name["table.word"]
    assert table[words.index("the")].tolist() == [3, 1]
    assert table[words.index("zebra")].tolist() == [2, 2]
    assert "zebra" not in fixed.known_words()
    shrunk = trained(more={**base, "tune": False, "l2": 0.5}, epochs=2).model
    assert shrunk.predictor.weights_by_name["table.word"][words.index("the")].tolist() == [3, 1]
    tuned = trained(more=base, epochs=2).model
    assert tuned.predictor.weights_by_name["table.word"][words.index("the")].tolist() != [3, 1]
    small = trained(more={**base, "unseen": False}, epochs=1).model
    assert "zebra" not in small.features.tables["word"]
    (tmp_path / "v.txt").unlink()  # models are complete
    assert SequenceModel.from_bytes(tuned.to_bytes()).tag(sentences(2)).ids.size


@pytest.mark.parametrize(
    ("text", "more", "message"),
    [
        ("zebra 1 2\n", {"unseen": False}, "none of the words"),
        ("cat 1 2\n", {"word_dim": 7}, "vectors of 2 numbers, and word_dim is 7"),
    ],
)
def test_vectors_that_do_not_fit_are_refused(tmp_path, text, more, message):
    (tmp_path / "v.txt").write_text(text)
    with pytest.raises(HopefearError, match=message):
        trained(more={"vectors": str(tmp_path / "v.txt"), "word_dim": 0, **more})


@pytest.mark.parametrize(
    ("more", "how", "message"),
    [
        ({}, {"order": 2}, "order 1"),
        ({"device": "cuda"}, {}, "no GPU"),
        ({"device": "tpu"}, {}, "device is one of"),
        ({"char": "gru"}, {}, "char is one of"),
        ({"dropout": 1.0}, {}, "below 1"),
        ({"hidden": 0}, {}, "at least 1"),
        ({"inputs": "word,lemma"}, {}, "no column 'lemma'"),
        ({"rate": 1e30, "clip": 0.0}, {}, "finite"),
    ],
)
def test_what_cannot_be_is_said(monkeypatch, more, how, message):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(HopefearError, match=message):
        trained(more=more, **how)


def test_a_gpu_without_memory_is_said():
    with (
        pytest.raises(HopefearError, match="no memory for this batch"),
        enough_memory("pray"),
    ):
        raise torch.OutOfMemoryError


def test_labels_follow_their_scheme_in_training_too():
    words, tags = Column.of(["Ann", "Lee", "left"] * 4), Column.of(["B-P", "I-P", "O"] * 4)
    text = Sentences(np.arange(0, 13, 3), {"word": words, "label": tags})
    data = data_for("bilstm-crf", text=text)
    model = train(data, "bilstm-crf", SMALL, epochs=2, constraints="always").model
    illegal = [[["I-P"], ["O"], ["O"]]]
    assert model.scheme == "bio"
    # Nothing legal is left, so that only what is allowed counts.
    assert model.tag(text.take([0]), allowed=illegal).texts() == ["I-P", "O", "O"]


def test_sentences_longer_than_memory_are_refused(monkeypatch):
    monkeypatch.setattr("hopefear.neural.network.MOST_BYTES", 10_000)
    with pytest.raises(HopefearError, match="a sentence of 5 tokens"):
        trained()


def test_networks_and_templates_are_not_mixed_up():
    with pytest.raises(HopefearError, match="does not read"):
        train(dataset(sentences(), "pos"), "bilstm", SMALL)
    with pytest.raises(HopefearError, match="does not read"):
        train(data_for("bilstm"), "perceptron")


@pytest.mark.parametrize("loss", ["perceptron", "hinge"])
def test_scores_that_are_no_numbers_end_training(loss):
    params = {**SMALL, "loss": loss, "rate": 1e30, "clip": 0.0}
    with pytest.raises(HopefearError, match="no longer finite; lower the rate"):
        train(data_for("bilstm-crf", params), "bilstm-crf", params, epochs=8)


def test_a_column_with_a_dot_is_refused():
    text = sentences()
    text.columns["a.b"] = text.columns["word"]
    with pytest.raises(HopefearError, match=r"'a.b', whose name has a dot"):
        data_for("bilstm", {**SMALL, "inputs": "word,a.b"}, text)


def test_without_torch_one_line_names_the_extra(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(HopefearError, match=r"pip install 'hopefear\[neural\]'"):
        trained()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"hidden": 7}, "shapes"),
        ({"hidden": 10**9}, "no network"),
        ({"labels": "x"}, "sizes"),
        ({"labels": 2}, "ends in tag of 2 labels"),
        ({"layers": 10**9}, "layers"),
        ({"hidden": 0}, "without width"),
        ({"characters": 1}, "other ids"),
        ({"head": "other"}, "not known"),
        ({"slots": {}}, "no words"),
        ({"layers": -1}, "sizes"),
        ({"coordinates": 3}, "do not fit together"),
    ],
)
def test_files_are_not_trusted(change, message):
    header, arrays = unpack(trained(epochs=1).model.to_bytes(), kind="model")
    spec = {**json.loads(arrays["network.spec"].tobytes()), **change}
    arrays["network.spec"] = np.frombuffer(json.dumps(spec).encode(), np.uint8)
    with pytest.raises(ModelError, match=message):
        SequenceModel.from_bytes(pack(header, arrays, kind="model")).tag(sentences(2))


def test_weights_that_are_not_finite_are_refused():
    arrays = dict(trained(epochs=1).model.predictor.arrays())
    arrays["network.weights.head.bias"] = np.full(3, np.nan, np.float32)
    with pytest.raises(ModelError, match="finite"):
        NetworkPredictor.from_arrays(arrays)


def test_rows_that_wait_are_averaged_as_if_they_had_not():
    rng = torch.Generator().manual_seed(1)
    start = torch.rand(5, 3, generator=rng)
    lazy = Adam({}, {"t": start.clone()}, share=0.8)
    dense = start.clone()
    average, moments = start.clone(), [torch.zeros(5, 3), torch.zeros(5, 3)]
    for t in range(1, 30):
        rows = torch.randperm(5, generator=rng)[: 1 + t % 3].sort().values
        gradient = torch.randn(len(rows), 3, generator=rng)
        lazy.step({}, {"t": (rows, gradient.clone())}, 0.1)
        for row, g in zip(rows.tolist(), gradient, strict=True):
            moments[0][row] = 0.9 * moments[0][row] + 0.1 * g
            moments[1][row] = 0.999 * moments[1][row] + 0.001 * g * g
            first, second = moments[0][row] / (1 - 0.9**t), moments[1][row] / (1 - 0.999**t)
            dense[row] -= 0.1 * first / (second.sqrt() + 1e-8)
        share = min(0.8, t / (t + 9))
        average = share * average + (1 - share) * dense
    assert torch.allclose(lazy.tables["t"].weights, dense, atol=1e-5)
    assert torch.allclose(lazy.kept()["table.t"], average, atol=1e-5)


def test_gradients_are_cut_to_a_length():
    adam = Adam({"w": torch.zeros(2)}, {}, clip=1.0)
    gradient = torch.tensor([3.0, 4.0])
    adam.step({"w": gradient}, {}, 0.1)
    assert torch.allclose(gradient, torch.tensor([0.6, 0.8]), atol=1e-4)


def test_noise_is_shared_over_time():
    x = Noise(3, 0.5).shared(torch.ones(2, 4, 50))
    assert (x == x[:, :1]).all() and not (x[0] == x[1]).all()
    assert torch.equal(x, Noise(3, 0.5).shared(torch.ones(2, 4, 50)))


def test_batches_have_all_sentences_once_and_are_small():
    lengths = np.array([5, 1, 9, 5, 2, 40, 5, 1])
    batches = bucketed(np.arange(8), lengths, 3, 20, np.random.default_rng(1))
    assert sorted(np.concatenate(batches).tolist()) == list(range(8))
    for batch in batches:
        assert len(batch) == 1 or len(batch) * lengths[batch].max() <= 20


def test_inputs_are_padded():
    features, attributes = recipe("bilstm", "tag").inputs(SMALL, None).fit_encode(sentences(3))
    text = sentences(3)
    table = InputTable(features.families, text.starts, attributes.indptr, attributes.indices)
    inputs = table.batch(np.array([2, 0]))
    assert inputs.shape == (2, int(max(table.lengths[[2, 0]])))
    words = inputs.slots["word"][0, : table.lengths[2]].tolist()
    assert [features.tables["word"][k - 1] for k in words] == [
        text.columns["word"][k].lower() for k in range(text.starts[2], text.starts[3])
    ]


def test_a_tagger_takes_networks(tmp_path):
    X = [["the", "cat", "sleeps"], ["a", "dog", "sleeps"]] * 3
    y = [["D", "N", "V"]] * 6
    tagger = hopefear.Tagger("bilstm-crf", epochs=8, **SMALL).fit(X, y)
    assert tagger.predict([["the", "dog"]], allowed=[[None, ["V"]]]) == [["D", "V"]]
    assert len(tagger.predict_nbest([["the", "dog"]], n=3)[0]) == 3
    tagger.save(tmp_path / "model")
    assert hopefear.load(tmp_path / "model").predict(X) == tagger.predict(X)
    assert not hasattr(tagger, "partial_fit")
    for bad, message in (
        (lambda: tagger.model_.top(3), "no single weight"),
        (lambda: hopefear.Tagger("bilstm").fit([[{"w": 1}]] * 2, [["A"], ["B"]]), "reads words"),
    ):
        with pytest.raises(HopefearError, match=message):
            bad()

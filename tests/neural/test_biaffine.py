"""Networks that parse: scores of arcs and relations, and the same verbs as other parsers."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import hopefear
from hopefear.cli import main
from hopefear.data.grammar import synthetic_treebank
from hopefear.data.treebank import read_treebank, with_trees
from hopefear.errors import HopefearError
from hopefear.losses.log import Log
from hopefear.losses.perceptron import Perceptron
from hopefear.neural import TreeLoss
from hopefear.neural.biaffine import by_word
from hopefear.neural.learner import Biaffine
from hopefear.storage import load
from tests.support.small_trees import dataset, held_out, train

pytestmark = [pytest.mark.needs("neural"), pytest.mark.interpreted]

SMALL = {
    **{"hidden": 6, "layers": 1, "arc_dim": 6, "relation_dim": 4, "word_dim": 5},
    **{"char_hidden": 4, "char_dim": 3, "column_dim": 4, "shape_dim": 2, "rate": 0.02},
}


@pytest.fixture(scope="module")
def bank():
    return synthetic_treebank(12, seed=1)


def data_of(bank, name="biaffine", **how):
    return dataset(bank, learner=name, params=SMALL, **how)


@pytest.fixture(scope="module")
def trained(bank):
    data = data_of(bank)
    return train(data, "biaffine", SMALL, epochs=3, dev=held_out(data, bank.take([0, 1])))


def test_heads_one_by_one_are_cross_entropy():
    torch.manual_seed(1)
    arcs, relations = torch.randn(2, 4, 4), torch.randn(2, 4, 4, 3)
    heads = np.array([[0, 0, 1, 2], [0, 2, 0, 1]])
    names = np.array([[0, 1, 2, 0], [0, 2, 1, 0]])
    values = by_word(arcs, relations, heads, names, torch.tensor([3, 2]))
    wanted = []
    for i, n in enumerate((3, 2)):
        total = 0.0
        for m in range(1, n + 1):
            some = [h for h in range(n + 1) if h != m]
            logs = arcs[i, m, some].log_softmax(0)
            total -= logs[some.index(heads[i, m])]
            total -= relations[i, m, heads[i, m]].log_softmax(0)[names[i, m]]
        wanted.append(float(total))
    np.testing.assert_allclose(values.numpy(), wanted, rtol=1e-5)


def test_long_sentences_are_scored_in_parts_that_fit(bank, trained, monkeypatch):
    predictor = trained.model.predictor
    rows = data_of(bank).rows
    whole = [(which.tolist(), scores[0]) for which, scores in predictor.run(rows)]
    need = predictor._loaded[1].bytes_of(int(np.diff(rows.starts).max()))
    monkeypatch.setattr("hopefear.neural.network.MOST_BYTES", 2 * need)
    parts = [which.tolist() for which, _ in predictor.run(rows)]
    assert len(parts) > len(whole) and max(map(len, parts)) <= 2
    assert [i for which in parts for i in which] == [i for which, _ in whole for i in which]


def test_models_are_saved_whole_and_answer_all_questions(bank, trained, tmp_path):
    model = trained.model
    model.save(tmp_path / "parser.model")
    same = hopefear.load_model(tmp_path / "parser.model")
    heads, relations = model.parse(bank)
    again, names = same.parse(bank)
    assert np.array_equal(heads, again) and relations.texts() == names.texts()
    ranked = same.nbest(bank, 3)
    first = np.concatenate([some.labels[0] for some in ranked])
    assert np.array_equal(first // len(model.labels), heads)
    shares = same.arc_probabilities(bank, heads)
    assert shares.shape == heads.shape and (shares > 0).all() and (shares <= 1 + 1e-9).all()
    allowed = [None] * bank.n_tokens
    allowed[0] = [0]
    assert same.parse(bank, heads=allowed)[0][0] == 0
    only = [None] * bank.n_tokens
    only[0] = model.labels[-1]
    assert same.parse(bank, relations=only)[1].texts()[0] == model.labels[-1]
    with pytest.raises(HopefearError, match="a network has no single weight for a feature"):
        same.explain(bank, 0, 0)


def test_the_scores_of_a_model_are_those_of_the_loss(bank, trained):
    """Log likelihoods of the decoder are minus the losses that training would have seen."""
    data, model = data_of(bank), trained.model
    logs = model.decoder().log_likelihoods(data.rows)
    network = model.predictor._loaded[1]
    for which, (arcs, relations) in model.predictor.run(data.rows):
        heads, names = network.gold(data.rows, which)
        lengths = np.diff(data.rows.starts)[which]
        losses = TreeLoss(Log(), kind=data.kind, reduction="none")(
            arcs, relations, heads, names, lengths
        )
        np.testing.assert_allclose(-logs[which], losses.numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["biaffine-crf", "biaffine-ssvm", "biaffine-sapo"])
def test_losses_of_whole_trees_are_learned(bank, name):
    some = bank.take(np.argsort(np.diff(bank.starts))[:2])
    params = {**SMALL, "dropout": 0.0, "word_dropout": 0.0, "average": 0.0, "batch_size": 1}
    model = train(data_of(some, name), name, params, epochs=25, seed=2).model
    assert (model.parse(some)[0] == some.heads).mean() > 0.9


def test_seeds_repeat_bit_for_bit(bank):
    runs = [train(data_of(bank), "biaffine", SMALL, epochs=1).model for _ in range(2)]
    one, other = (run.predictor.weights_by_name for run in runs)
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_verbs(bank, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with open("trees.conllu", "wb") as file:
        file.writelines(with_trees(bank, bank.heads, bank.relations))
    params = [word for key, value in SMALL.items() for word in ("-p", f"{key}={value}")]
    learn = ["train", "parse", "--train", "trees.conllu", "--learner", "biaffine", *params]
    learn += ["--device", "cpu"]
    assert main([*learn, "--epochs", "2", "--model", "m"]) == 0
    ask = ["predict", "--model", "m", "--input", "trees.conllu", "--output", "out"]
    assert main([*ask, "--nbest", "2", "--proba"]) == 0
    assert len(read_treebank("out")) == 2 * len(bank)
    capsys.readouterr()
    assert main(["evaluate", "--model", "m", "--data", "trees.conllu", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["order"] == 1
    assert main(["inspect", "--model", "m"]) == 0
    assert "arc_map" in capsys.readouterr().err
    Path("vectors.txt").write_text("cat 1 0 0 0 0\nlion 0 1 0 0 0\n")
    assert main([*learn, "--vectors", "vectors.txt", "--epochs", "1", "--model", "v"]) == 0
    signatures = [load(name, "model")[0]["signature"] for name in "mv"]
    assert ["vectors:" in signature for signature in signatures] == [False, True]
    assert not any("device" in signature for signature in signatures)
    assert main([*learn, "--order", "2", "--model", "m"]) == 1
    assert "a network scores arcs one by one" in capsys.readouterr().err
    assert main([*learn, "--features", "light", "--model", "m"]) == 1
    assert "biaffine reads words and tags; leave it out" in capsys.readouterr().err


def test_networks_are_compared_with_parsers_of_second_order(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = (("1", "dogs", "N", "2", "nsubj"), ("2", "bark", "V", "0", "root"))
    lines = [f"{i}\t{word}\t_\t{tag}\t{tag}\t_\t{h}\t{r}\t_\t_" for i, word, tag, h, r in words]
    Path("trees.conllu").write_text("\n".join([*lines, "", ""]) * 2)
    Path("few.toml").write_text('arc = ["h.tag m.tag"]\nsibling = ["h.tag s.tag m.tag"]\n')
    small = ":".join(["biaffine", *(f"{key}={value}" for key, value in SMALL.items())])
    compare = ["compare", "parse", "--train", "trees.conllu", "--test", "trees.conllu"]
    compare += [
        "--hash-bits",
        "10",
        "--features",
        "few.toml",
        "--order",
        "2",
        "--epochs",
        "1",
        "--device",
        "cpu",
    ]
    assert main([*compare, "--learners", f"perceptron,{small}", "--json"]) == 0
    names = [one["learner"] for one in json.loads(capsys.readouterr().out)["learners"]]
    assert names[0] == "perceptron" and names[1].startswith("biaffine")


def test_parser_takes_networks():
    X = [[("the", "D"), ("cat", "N"), ("sleeps", "V")], [("dogs", "N"), ("bark", "V")]]
    y = [[(2, "det"), (3, "nsubj"), (0, "root")], [(2, "nsubj"), (0, "root")]]
    parser = hopefear.Parser("biaffine", epochs=25, **{**SMALL, "dropout": 0.0, "average": 0.0})
    assert parser.fit(X, y).predict(X) == y


def test_what_does_not_go_together(bank):
    with pytest.raises(HopefearError, match="heads are learned one by one by cross entropy"):
        Biaffine(trees=False, loss=Perceptron())
    with pytest.raises(HopefearError, match="encoded as arcs, which this learner does not read"):
        train(dataset(bank, order=1, heads=0), "biaffine", SMALL)
    with pytest.raises(HopefearError, match="encoded as token-arcs, which this learner"):
        train(data_of(bank), "perceptron")
    with pytest.raises(HopefearError, match="use order 1, or leave it out"):
        data_of(bank, order=2)

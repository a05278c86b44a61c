"""Parsing from Python: kinds of trees, pruning, models that come back, limits that hold."""

from __future__ import annotations

import numpy as np
import pytest

from hopefear.core.interfaces import n_weights
from hopefear.errors import HopefearError, ModelError
from hopefear.features.arcs.naming import Sentence
from hopefear.features.arcs.templates import ArcTemplates
from hopefear.recipes import TREE_RECIPES, Recipe
from hopefear.tasks.parse import explaining
from hopefear.tasks.parse.model import ParseModel
from tests.support import small_trees
from tests.support.small_trees import dataset, held_out, small_treebank, train

pytestmark = pytest.mark.interpreted

FLAT, OTHER = small_treebank(12, seed=1), small_treebank(5, seed=2)
CROSSING = small_treebank(12, seed=1, crossing=0.5)
FEW = ArcTemplates.of(small_trees.FEW)
BITS = {"features": FEW, "hash_bits": 14}
quick = small_trees.quick


@pytest.fixture(scope="module")
def models():
    made = {}
    for name, bank, order in (("flat", FLAT, 1), ("crossing", CROSSING, 2)):
        data = dataset(bank, order, **BITS)
        made[name] = train(data, "mira", epochs=2, dev=held_out(data, OTHER)).model
    return made


def test_the_data_says_which_trees_there_are():
    assert dataset(FLAT, 1, **BITS).kind == (1, True, True)
    assert dataset(CROSSING, 1, **BITS).kind.projective is False
    forced = dataset(CROSSING, 1, "projective", **BITS)
    assert forced.lifted > 0 and forced.kind.projective
    with pytest.raises(HopefearError, match="tree"):
        dataset(FLAT, 1, "crossing")
    with pytest.raises(HopefearError, match="order must be 1 or 2"):
        dataset(FLAT, 3)


def test_pruning_keeps_gold_in_training_and_few_heads_anywhere():
    data = dataset(FLAT, 2, heads=3, **BITS)
    rows, owners = data.rows, np.repeat(np.arange(data.n_tokens), np.diff(data.rows.ptr))
    gold = np.zeros(data.n_tokens, bool)
    gold[owners[rows.heads == FLAT.heads[owners]]] = True
    assert gold.all()
    assert np.diff(rows.ptr).max() <= 3 + 3  # gold, the best tree, and the word before
    assert dataset(FLAT, 1, heads=0, **BITS).pruner is None
    with pytest.raises(HopefearError, match="heads"):
        dataset(FLAT, 2, heads=0)


def test_models_come_back_from_their_files_byte_for_byte(models, tmp_path):
    for model in models.values():
        model.save(tmp_path / "m")
        again = ParseModel.load(tmp_path / "m")
        assert again.to_bytes() == model.to_bytes()
        ours, theirs = model.parse(OTHER), again.parse(OTHER, n_jobs=2)
        assert np.array_equal(ours[0], theirs[0]) and ours[1].texts() == theirs[1].texts()
        header = model._header()
        for forged in ({"order": 3}, {"temperature": 0.0}, {"pruner": 3}, {"labels": "x"}):
            with pytest.raises(ModelError):
                ParseModel.from_file_parts({**header, **forged}, model._arrays())


def test_heads_and_relations_can_be_given(models):
    model, bank = models["flat"], OTHER.take(np.array([0]))
    heads, relations = model.parse(bank)
    allowed = [None] * bank.n_tokens
    allowed[1] = [h for h in range(bank.n_tokens + 1) if h not in (2, int(heads[1]))]
    names = [None] * bank.n_tokens
    names[0] = [name for name in model.labels if name != relations[0]]
    others, renamed = model.parse(bank, heads=allowed, relations=names)
    assert others[1] != heads[1] and renamed[0] != relations[0]
    for wrong in ([[99]], [[1]], [[]]):
        with pytest.raises(HopefearError, match="allowed heads"):
            model.parse(bank, heads=[*wrong, *[None] * (bank.n_tokens - 1)])
    with pytest.raises(HopefearError, match="for every word"):
        model.parse(bank, heads=[None])
    with pytest.raises(HopefearError, match="allowed relations"):
        model.parse(bank, relations=["nonsense", *[None] * (bank.n_tokens - 1)])


def test_the_best_of_n_is_the_tree_and_probabilities_add_up(models):
    for name, model in models.items():
        heads, _ = model.parse(OTHER)
        ranked = model.nbest(OTHER, 4)
        best = np.concatenate([one.labels[0] // len(model.labels) for one in ranked])
        assert np.array_equal(best, heads), name
        assert all((np.diff(one.scores) <= 1e-9).all() for one in ranked)
        rows = model.encode(OTHER).rows
        shares = model.decoder().probabilities(rows)
        sums = np.add.reduceat(shares, rows.ptr[:-1])
        assert np.allclose(sums, 1.0)
        assert (model.arc_probabilities(OTHER, heads) > 0.0).all()


def test_relations_that_training_did_not_have_are_wrong_and_no_more():
    data = dataset(FLAT, 1, **BITS)
    odd = OTHER.take(np.array([0]))
    strange = type(odd).of(odd.sentences, odd.heads, ["strange"] * odd.n_tokens)
    held = held_out(data, strange)
    assert (held.rows.labels == -1).all()
    model = train(data, "perceptron", epochs=1, dev=held).model
    assert model.about["training"]["history"][-1]["dev"]["las"] == 0.0


def test_unlabelled_trees_have_heads_alone():
    data = dataset(FLAT, 1, unlabelled=True, **BITS)
    model = train(data, "perceptron", epochs=1).model
    heads, relations = model.parse(OTHER)
    assert relations is None and heads.max() <= np.diff(OTHER.starts).max()


LINEAR = [name for name, one in TREE_RECIPES.items() if isinstance(one, Recipe)]


@pytest.mark.parametrize("name", LINEAR)
def test_every_learner_learns_trees(name):
    some = FLAT.take(np.arange(5))
    data = dataset(some, 1, features=FEW, hash_bits=12)
    trained = train(data, name, epochs=3)
    heads, _ = trained.model.parse(some)
    assert (heads == some.heads).mean() > 0.6


def test_batch_learners_too():
    some = FLAT.take(np.arange(4))
    data = dataset(some, 1, features=FEW, hash_bits=10)
    model = train(data, "crf-lbfgs", epochs=4).model
    heads, _ = model.parse(some)
    assert (heads == some.heads).mean() > 0.6


def test_what_trees_cannot_do_says_what_can():
    crossing = dataset(CROSSING, 2, "nonprojective", **BITS)
    with pytest.raises(HopefearError, match="use projective trees, or order 1"):
        train(crossing, "crf", epochs=1)
    with pytest.raises(HopefearError, match="by vote"):
        train(dataset(FLAT, 1, **BITS), "perceptron", {"averaging": "voted"}, epochs=1)


def test_every_option_that_changes_a_model_is_in_its_signature():
    bank, usual = small_treebank(6), {"order": 1, "features": "light", "heads": 0}
    usual |= {"hash_bits": 10}
    more = ArcTemplates(("h.tag m.tag",), ("m.tag",))
    others = (
        *({"order": 2, "heads": 2}, {"tree": "nonprojective"}, {"features": more}, {"heads": 3}),
        *({"tags": "upos"}, {"unlabelled": True}, {"hash_bits": 11}),
        {"dictionary": True},
    )
    signatures = [
        train(dataset(bank, **usual | other), "perceptron", epochs=1).model.signature
        for other in ({}, *others)
    ]
    assert len(set(signatures)) == len(signatures)


@pytest.mark.parametrize("order", [1, 2])
def test_a_dictionary_has_the_features_of_the_trees_and_no_others(order, tmp_path):
    bank = small_treebank(6, crossing=0.3)
    data = dataset(bank, order, features="light", heads=3, dictionary=True)
    features, names = data.features, ({}, {})
    for i in range(len(bank)):
        sentence = Sentence(features, bank.sentences, i)
        first, after = bank.starts[i : i + 2].tolist()
        for part, _ in explaining._parts(2 * bank.heads[first:after], 2, order):
            for name, number in sentence.features_of(part):
                kind = names[part.family == "label"]
                assert kind.setdefault(f"{part.family} {name}", number) == number
    blocks = features.blocks
    for kind, step in ((names[0], 1), (names[1], blocks)):
        assert sorted(kind.values()) == list(range(0, step * len(kind), step))
    assert features.size == len(names[0]) + len(names[1])
    model = train(data, "perceptron", epochs=3).model
    assert n_weights(model.structure()) < 500
    model.save(tmp_path / "m")
    again = ParseModel.load(tmp_path / "m")
    np.testing.assert_array_equal(again.parse(bank)[0], model.parse(bank)[0])
    assert again.to_bytes() == model.to_bytes()

"""Nothing that a user, a stream or a forged file says leads a kernel out of its arrays."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from chain_oracle import corpus

from hopefear import storage
from hopefear.averaging.last import Last
from hopefear.averaging.voted import Voted
from hopefear.core.learner import Learner
from hopefear.costs.weighted import Weighted
from hopefear.data.sequences import Column, Sentences, SequenceDataset
from hopefear.errors import CombinationError, HopefearError, InputError, ModelError
from hopefear.features.attributes import AttributeRows
from hopefear.features.templates import TemplateFeatures, parse_templates
from hopefear.losses.log import Log
from hopefear.losses.ramp import Ramp
from hopefear.losses.sapo import SAPO
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.losses.swvp import SWVP
from hopefear.rules.sgd import SGD
from hopefear.structures.chain.chain import Chain
from hopefear.tasks.tag.estimator import Tagger
from hopefear.tasks.tag.model import SequenceModel
from hopefear.tasks.tag.task import dataset, train
from hopefear.training.online import DivergedError, OnlineTrainer
from hopefear.training.predictors import VotedPredictor, predictor_from_arrays
from hopefear_papers.theorems.observed import Observed

pytestmark = pytest.mark.interpreted

DATA = corpus(3, n=12)
X = [["the", "cat", "sleeps"], ["a", "dog"]]
Y = [["D", "N", "V"], ["D", "N"]]
TEXT = Sentences(
    np.array([0, 3, 5]),
    {
        "word": Column.of([w for s in X for w in s]),
        "size": Column.of(["1", "2", "1", "1", "3"]),
        "label": Column.of([c for s in Y for c in s]),
    },
)


@pytest.mark.parametrize("loss", [SAPO(n=5), Log(), Ramp()], ids=lambda loss: type(loss).__name__)
@pytest.mark.parametrize("averaging", [Voted(), Observed(Voted())], ids=["voted", "observed"])
def test_votes_refuse_every_loss_of_many_outputs(loss, averaging):
    with pytest.raises(CombinationError, match=r"and Voted: .*use averaging=averaged"):
        OnlineTrainer(Chain.new(3, 3), Learner(loss, SGD(), averaging, "mistakes"))


@pytest.mark.parametrize("loss", [SAPO(n=1), SWVP()], ids=lambda loss: type(loss).__name__)
def test_votes_take_updates_between_gold_and_one_output(loss):
    chain = Chain.new(DATA.features.size, 3)
    trainer = OnlineTrainer(chain, Learner(loss, SGD(), Voted(), "mistakes"))
    trainer.learn(DATA.rows, np.arange(len(DATA)))
    assert isinstance(trainer.predictor(), VotedPredictor)


def test_streams_refuse_what_votes_cannot_keep():
    with pytest.raises(ValueError, match="SAPO and Voted"):
        Tagger("sapo", averaging="voted").partial_fit(X, Y)


def test_prices_must_be_those_of_the_labels():
    learner = Learner(StructuredHinge(Weighted(1.0 - np.eye(2))), SGD(), Last(), "all")
    with pytest.raises(CombinationError, match=r"prices for 2 labels, .* has 3"):
        OnlineTrainer(Chain.new(3, 3), learner)
    with pytest.raises(HopefearError, match="prices for 2 labels"):
        train(DATA, "ssvm", {"cost": Weighted(1.0 - np.eye(2))}, epochs=1)
    with pytest.raises(ValueError, match="prices for 2 labels"):
        Tagger("ssvm", cost=Weighted(1.0 - np.eye(2))).partial_fit(X, Y)


def test_streams_refuse_illegal_gold_by_its_place():
    tagger = Tagger("perceptron", scheme="bio", scheme_errors="raise", constraints="always")
    good = [["B-X", "I-X", "O"], ["O", "B-X"]]
    bad = [["O", "I-X", "O"], ["O", "B-X"]]
    with pytest.raises(ValueError, match=r"a label that BIO allows after 'O', found 'I-X'"):
        copy.copy(tagger).partial_fit(X, bad)
    tagger.partial_fit(X, good)
    with pytest.raises(ValueError, match=r"a label that BIO allows after 'O', found 'I-X'"):
        tagger.partial_fit(X, bad)
    tagger.partial_fit(X, good)
    with pytest.raises(ValueError, match="constraints is one of predict, always, never"):
        Tagger("perceptron", constraints="sometimes").partial_fit(X, Y)


def test_a_trainer_that_overflowed_can_go_on_with_other_data():
    chain = Chain.new(DATA.features.size, 3)
    trainer = OnlineTrainer(chain, Learner(SAPO(n=1), SGD(), Last(), "mistakes"))
    wild = DATA.rows._replace(values=np.full(DATA.rows.indices.size, np.inf, np.float32))
    trainer.learn(DATA.rows, np.arange(len(DATA)))
    with np.errstate(all="ignore"), pytest.raises(DivergedError, match="scores overflowed"):
        trainer.learn(wild, np.arange(len(DATA)))
    trainer.learn(DATA.rows, np.arange(len(DATA)))


def rows_with(**arrays):
    return SequenceDataset(DATA.rows._replace(**arrays), DATA.labels, DATA.features)


def changed(name, place, value):
    array = np.array(getattr(DATA.rows, name))
    array[place] = value
    return {name: array}


NNZ = DATA.rows.indices.size


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (changed("indices", 5, -1), "indices go from -1"),
        (changed("indices", 5, DATA.features.size), "indices go from 0 to"),
        (changed("labels", 2, 3), "labels go from 0 to 3, .* -1 to 2"),
        (changed("labels", 2, -2), "labels go from -2"),
        (changed("starts", 0, 1), "starts must be"),
        (changed("starts", -1, 3), "starts must be"),
        (changed("starts", 2, 10**6), "starts must be"),
        (changed("indptr", 3, 0), "indptr must be"),
        (changed("indptr", -1, NNZ + 1), "indptr must be"),
        ({"indptr": DATA.rows.indptr[:-1]}, "indptr must be"),
        ({"weights": np.ones(2)}, "starts must be"),
        ({"edge_indptr": [0, 1], "edge_indices": [0]}, "edge_indptr must be"),
        ({"edge_indptr": [1]}, "edge_indptr must begin"),
        ({"edge_indices": [0]}, "edge_indptr must be"),
        ({"values": np.ones(NNZ - 1)}, "need as many values"),
        ({"values": np.full(NNZ, np.nan)}, "value of an attribute is not finite"),
        ({"values": np.full(NNZ, -np.inf)}, "value of an attribute is not finite"),
        (changed("weights", 0, -1.0), "weights must be finite and not negative"),
        (changed("weights", 0, np.nan), "weights must be finite and not negative"),
        ({"labels": DATA.rows.labels[None]}, "labels must have one dimension"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_datasets_refuse_numbers_that_lead_astray(arrays, message):
    with pytest.raises(HopefearError, match=message):
        rows_with(**arrays)


def test_edges_need_their_pointers():
    class Sizes:
        size, edge_size = DATA.features.size, 2

    with pytest.raises(HopefearError, match="edge_indptr must be"):
        SequenceDataset(DATA.rows, DATA.labels, Sizes())
    tokens = DATA.n_tokens
    edges = {"edge_indptr": np.arange(tokens + 1), "edge_indices": np.arange(tokens) % 3}
    with pytest.raises(HopefearError, match=r"edge_indices go from 0 to 2, .* 0 to 1"):
        SequenceDataset(DATA.rows._replace(**edges), DATA.labels, Sizes())


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([0, 1, 2, 3, 5], "'word' has 5 strings, and its ids go from 0 to 5"),
        ([0, 1, 2, 3, -1], "ids go from -1"),
        ([0], "'word' has 1 rows for 5 tokens"),
    ],
)
def test_templates_refuse_columns_without_their_strings(ids, message):
    words = Column(TEXT.columns["word"].strings, np.array(ids, np.int32))
    text = Sentences(TEXT.starts, {**TEXT.columns, "word": words})
    with pytest.raises(HopefearError, match=message):
        dataset(text, "pos")


TEMPLATES = [
    "bias",
    "word[0]",
    "word[-1] word[0]",
    "lower(word)",
    "suffix(word,1..2)",
    "substrings(word,1..2)",
    "number(size)",
    "word[0] number(size)",
    "lexicon(animals)",
    "lexicon(animals,lower(word))[-1] bos",
]


def features_of(expression, edges, tmp_path, **options):
    (tmp_path / "animals.txt").write_text("cat\ndog\n")
    path = tmp_path / "templates.toml"
    lexicons = '\n[lexicons]\nanimals = "animals.txt"\n' if "lexicon" in expression else ""
    group = f'[[templates]]\nfeatures = ["{expression}"]\nedges = {edges}\noptional = true\n'
    path.write_text(f"padding = true\n{group}{lexicons}")
    return TemplateFeatures.fit_encode(str(path), TEXT, **options)


@pytest.mark.parametrize("edges", ["false", "true", '"both"'])
@pytest.mark.parametrize("options", [{}, {"keep_names": False}, {"hash_bits": 4}], ids=str)
@pytest.mark.parametrize("expression", TEMPLATES)
def test_every_kind_of_template_is_stored_by_itself(expression, options, edges, tmp_path):
    made, attributes = features_of(expression, edges, tmp_path, **options)
    data = storage.pack(made.to_header(), made.arrays())
    again = TemplateFeatures.from_parts(*storage.unpack(data, kind="model"))
    assert (again.size, again.edge_size) == (made.size, made.edge_size)
    assert again.names(range(made.size)) == made.names(range(made.size))
    for mine, theirs in zip(again.encode(TEXT), attributes, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_edge_attributes_need_an_edge_template(tmp_path):
    made, _ = features_of("word[0]", "false", tmp_path, keep_names=False)
    header, arrays = made.to_header(), made.arrays()
    header["edge_size"], arrays["edge_keys"] = 1, np.array([7], np.uint64)
    with pytest.raises(ModelError, match="1 edge attributes, but no template"):
        TemplateFeatures.from_parts(header, arrays)


@pytest.mark.parametrize("outer", ["", "lexicon(animals,"])
def test_views_lie_in_each_other_a_few_times_only(outer):
    def text(depth):
        expression = f"{outer}{'lower(' * depth}word{')' * depth}{')' if outer else ''}"
        return f'[[templates]]\n\nfeatures = ["{expression}"]'

    with pytest.raises(InputError, match="3: expected at most 20 views inside of each") as caught:
        parse_templates(text(3000))
    assert len(str(caught.value)) < 500
    if not outer:
        assert parse_templates(text(20)).templates


def trained(params=None, text=TEXT, features="pos"):
    return train(dataset(text, features), "perceptron", params, epochs=2, scheme=None).model


def test_votes_want_limits_for_every_token():
    model = trained({"averaging": "voted"})
    allowed = [[None, ["N"], None], [None, None]]
    assert model.tag(TEXT, allowed=allowed).texts()[1] == "N"
    with pytest.raises(HopefearError, match="allowed for 3 tokens, but there are 5"):
        model.tag(TEXT, allowed=allowed[:1])


@pytest.mark.parametrize("name", ["coordinates", "starts", "begin", "end"])
@pytest.mark.parametrize("dtype", [np.uint64, np.int32, np.float64], ids=lambda t: t.__name__)
def test_votes_count_in_64_bits_with_a_sign(name, dtype):
    arrays = trained({"averaging": "voted"}).predictor.arrays()
    arrays[f"votes.{name}"] = arrays[f"votes.{name}"].astype(dtype)
    with pytest.raises(ModelError, match="contradict"):
        predictor_from_arrays(arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights.ids": np.array([2, 1], np.uint64)}, "64 bits"),
        ({"weights.size": np.zeros(0, np.int64)}, "64 bits"),
        ({"weights.size": np.array([2**39])}, "549755813888 weights, 4 coordinates expected"),
        ({"weights.size": np.array([2**62])}, "do not fit"),
        ({"weights.values": np.array([1.0, 1e300])}, "not finite"),
        ({"weights.ids": np.array([2, 1])}, "not sorted"),
    ],
)
def test_weights_are_checked_before_they_take_memory(change, message):
    arrays = {
        "weights.ids": np.array([0, 3]),
        "weights.values": np.ones(2, np.float32),
        "weights.size": np.array([4]),
    }
    assert predictor_from_arrays(arrays, 4).weights.tolist() == [1.0, 0.0, 0.0, 1.0]
    with pytest.raises(ModelError, match=message):
        predictor_from_arrays({**arrays, **change}, 4)
    del arrays["weights.size"]
    with pytest.raises(ModelError, match="lack"):
        predictor_from_arrays(arrays)


VALUES = [None, -1, 0, 1, 2, 3, 2**31, 2**70, -0.5, 1e300, True, "", "x", "bio", "beam", [], [1]]
VALUES += [{}, ["a", "b"], [["word[0]", "both", 1]], float("inf")]


def leaves(value, path=()):
    """Places in a header, those that hold others too."""
    if path:
        yield path
    if isinstance(value, dict | list):
        for key, inside in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inside, (*path, key))


def broken(rng, header, arrays):
    """Header and arrays with something replaced, or left out."""
    header, arrays = copy.deepcopy(header), dict(arrays)
    if rng.random() < 0.5:
        places = [p for p in leaves(header) if p[0] != "about"]
        *path, last = places[rng.integers(len(places))]
        inside = header
        for key in path:
            inside = inside[key]
        if rng.random() < 0.1:
            del inside[last]
        else:
            inside[last] = VALUES[rng.integers(len(VALUES))]
        return header, arrays
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = np.array(arrays[name])
    how = rng.integers(6)
    if how == 0:
        del arrays[name]
        return header, arrays
    if how == 1:
        kinds = [np.int8, np.uint8, np.int32, np.uint64, np.int64, np.float32, np.float64, bool]
        array = array.astype(kinds[rng.integers(len(kinds))])
    elif how == 2:
        array = array[: rng.integers(array.size + 1)]
    elif how == 3:
        array = np.concatenate([array, array])
    elif how == 4:
        array = array[:, None] if rng.random() < 0.5 else array[:0]
    elif array.size and array.dtype != bool:
        info = np.finfo(array.dtype) if array.dtype.kind == "f" else np.iinfo(array.dtype)
        extreme = [info.min, info.max, 0, 1, array.size]
        array[rng.integers(array.size)] = extreme[rng.integers(len(extreme))]
    arrays[name] = array
    return header, arrays


MODELS = {
    "templates": lambda: trained(),
    "voted": lambda: trained({"averaging": "voted"}),
    "edges": lambda: trained(features=EDGES),
    "unnamed": lambda: (
        train(dataset(TEXT, EDGES, keep_names=False), "sapo", epochs=1, order=2, scheme=None).model
    ),
    "hashed": lambda: train(dataset(TEXT, EDGES, hash_bits=5), "crf", epochs=1, scheme=None).model,
    "attributes": lambda: Tagger("sapo", epochs=1).fit(ATTRIBUTES, Y).model_,
}
ATTRIBUTES = [[{"w": w, "n": 0.5} for w in s] for s in X]
EDGES = parse_templates(
    '[[templates]]\nfeatures = ["word[-1]", "substrings(word,1..2)"]\n'
    '[[templates]]\nedges = true\nfeatures = ["word[0]"]'
)


@pytest.mark.filterwarnings("ignore:overflow|invalid:RuntimeWarning")
@pytest.mark.parametrize("kind", MODELS)
def test_forged_files_are_refused_or_work(kind):
    """Every hash is right, so only the checks of the content stand in the way."""
    model = MODELS[kind]()
    header, arrays = storage.unpack(model.to_bytes(), kind="model")
    rng, refused = np.random.default_rng(5), 0
    text = AttributeRows.of(ATTRIBUTES) if kind == "attributes" else TEXT
    for _ in range(80):
        try:
            forged = storage.pack(*broken(rng, header, arrays), kind="model")
        except HopefearError:  # infinity is not written
            continue
        try:
            found = SequenceModel.from_bytes(forged)
        except ModelError:
            refused += 1
            continue
        try:
            assert len(found.tag(text).texts()) == 5
            assert all(c in found.labels for c in found.tag(text).texts())
            assert len(found.nbest(text, 2)) == 2
            if kind != "voted":
                assert np.isfinite(found.marginals(text)).all()
                found.top(2)
            SequenceModel.from_bytes(found.to_bytes())
        except HopefearError:
            refused += 1
    assert refused > 20

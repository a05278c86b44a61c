"""Taggers as objects and files: limits hold, bytes are the same, nothing changed is accepted."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from chain_oracle import corpus

from hopefear import storage
from hopefear.core.interfaces import n_weights
from hopefear.data.schemes import Constraints
from hopefear.data.sequences import Column, Sentences
from hopefear.errors import HopefearError, ModelError
from hopefear.features.attributes import AttributeRows
from hopefear.features.templates import TemplateFeatures
from hopefear.structures.lattice import padded_width
from hopefear.tasks.tag.model import SequenceModel, chain_of, encoded, scheme_limits
from hopefear.training.predictors import LinearPredictor

pytestmark = pytest.mark.interpreted

BIO = ("B-X", "I-X", "O", "B-Y", "I-Y")
DATA = corpus(4, n=30, labels=BIO)


def random_model(seed=1, order=1, **more):
    """Weights that mean nothing, so that illegal outputs are common."""
    n = n_weights(chain_of(DATA.features, BIO, order, None))
    weights = np.random.default_rng(seed).normal(size=n).astype(np.float32)
    weights[::3] = 0.0
    more = {"scheme": "bio", "temperature": 1.5, "signature": "by hand", **more}
    return SequenceModel(LinearPredictor(weights), BIO, DATA.features, order, **more)


def legal(tags):
    """BIO: inside only after a label of the same type."""
    for before, tag in itertools.pairwise(["O", *tags]):
        if tag.startswith("I-") and before[1:] != tag[1:]:
            return False
    return True


def split(texts, starts=DATA.rows.starts):
    return [texts[a:b] for a, b in itertools.pairwise(starts)]


@pytest.mark.parametrize("order", [1, 2])
def test_outputs_are_legal_by_default_and_may_be_freed(order):
    wild = 0
    for seed in range(5):
        model = random_model(seed, order)
        assert all(map(legal, split(model.tag(DATA).texts())))
        for found in model.nbest(DATA, 4):
            assert all(legal([BIO[c] for c in y]) for y in found.labels)
        wild += not all(map(legal, split(model.tag(DATA, constrained=False).texts())))
    assert wild == 5


def test_marginals_give_nothing_to_what_is_illegal():
    model = random_model()
    table = model.marginals(DATA)
    np.testing.assert_allclose(table.sum(axis=1), 1.0, atol=1e-6)
    first = DATA.rows.starts[:-1]
    assert (table[first][:, [1, 4]] == 0).all()
    assert (model.marginals(DATA, constrained=False)[first][:, [1, 4]] > 0).all()


def sets(of):
    """Allowed labels for every token of the data."""
    return [[of(i, t) for t in range(b - a)]
            for i, (a, b) in enumerate(itertools.pairwise(DATA.rows.starts))]  # fmt: skip


def test_labels_allowed_for_single_tokens_are_kept_to():
    model = random_model()
    allowed = sets(lambda i, t: ["O", "B-Y"] if (i + t) % 2 else None)
    tags = split(model.tag(DATA, allowed=allowed).texts())
    for tagged, limits in zip(tags, allowed, strict=True):
        assert legal(tagged)
        assert all(one is None or tag in one for tag, one in zip(tagged, limits, strict=True))
    table = model.marginals(DATA, allowed=allowed)
    flat = [one for sequence in allowed for one in sequence]
    for row, one in zip(table, flat, strict=True):
        if one is not None:
            assert row[[0, 1, 4]].max() == 0


def test_the_scheme_is_lifted_where_it_leaves_nothing_and_that_is_counted():
    model = random_model()
    allowed = sets(lambda i, t: ["I-X"] if t == 0 and i < 3 else None)
    decoder = model.decoder(allowed=allowed)
    tags = decoder.predict(DATA.rows)
    assert decoder.unlimited == 3
    free = model.decoder(constrained=False, allowed=allowed).predict(DATA.rows)
    end = DATA.rows.starts[3]
    np.testing.assert_array_equal(tags[:end], free[:end])
    alone = model.tag(DATA, constrained=False, allowed=allowed).texts()
    assert [alone[k] for k in DATA.rows.starts[:3]] == ["I-X"] * 3


@pytest.mark.parametrize(
    ("allowed", "message"),
    [
        (sets(lambda i, t: ["B-Z"]), "allowed labels of token 1: .*B-Z.*the model has B-X"),
        (sets(lambda i, t: []), "allowed labels of token 1: none"),
        (sets(lambda i, t: None)[:-1], r"allowed for \d+ tokens, but there are \d+"),
    ],
)
def test_bad_sets_of_labels_are_refused(allowed, message):
    with pytest.raises(HopefearError, match=message):
        random_model().tag(DATA, allowed=allowed)


def test_attributes_with_other_numbers_are_refused():
    other = corpus(5, n=12, labels=BIO)
    assert other.features.size != DATA.features.size
    with pytest.raises(HopefearError, match="read the data with the model's feature map"):
        random_model().tag(other)


def test_text_is_encoded_with_the_map_of_the_model():
    model = random_model()
    text = AttributeRows.of([[["w00", "bias"], ["never seen"]], [["bias"]]])
    tags = model.tag(text).texts()
    assert len(tags) == 3 and legal(tags[:2]) and legal(tags[2:])
    words = Sentences(
        np.array([0, 2]),
        {"word": Column.of(["the", "cat"]), "label": Column.of(["O", "strange"])},
    )
    features, attributes = TemplateFeatures.fit_encode("pos", words)
    data = encoded(words, attributes, BIO, words.columns["label"], features)
    assert data.labels == (*BIO, "strange")
    assert data.rows.labels.tolist() == [2, 5]
    n = n_weights(chain_of(features, BIO, 1, None))
    model = SequenceModel(LinearPredictor(np.zeros(n, np.float32)), BIO, features)
    assert model.encode(words, "label").rows.labels.tolist() == [2, 5]
    assert model.encode(words).rows.labels.tolist() == [-1, -1]
    assert model.tag(words).texts() == ["B-X", "B-X"]


@pytest.mark.parametrize("order", [1, 2])
def test_a_round_trip_changes_neither_bytes_nor_answers(order, tmp_path):
    model = random_model(3, order, search="astar", beam=7, about={"learner": "none", "n": [1, 2]})
    again = SequenceModel.from_bytes(model.to_bytes())
    assert again.to_bytes() == model.to_bytes()
    model.save(tmp_path / "a.model")
    read = SequenceModel.load(tmp_path / "a.model")
    assert (tmp_path / "a.model").read_bytes() == model.to_bytes() == read.to_bytes()
    for name in ("labels", "order", "scheme", "search", "beam", "temperature", "signature"):
        assert getattr(read, name) == getattr(model, name)
    assert dict(read.about) == dict(model.about)
    assert read.tag(DATA).texts() == model.tag(DATA).texts()
    np.testing.assert_array_equal(read.marginals(DATA), model.marginals(DATA))
    assert read.nnz == model.nnz == np.count_nonzero(model.predictor.weights)
    assert read.classes == BIO


def test_five_hundred_mutations_are_refused():
    rng, file = random.Random(1), random_model().to_bytes()
    for _ in range(500):
        data = bytearray(file)
        where = rng.randrange(len(data))
        kind = rng.randrange(3)
        if kind == 0:
            data[where] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[where:]
        else:
            data[where:where] = bytes([rng.randrange(256)])
        with pytest.raises(ModelError):
            SequenceModel.from_bytes(bytes(data))


FORGERIES = {
    "another task": lambda h, a: h.update(task="classify"),
    "order 3": lambda h, a: h.update(order=3),
    "order 2 without its weights": lambda h, a: h.update(order=2),
    "no scheme at all": lambda h, a: h.pop("scheme"),
    "an unknown scheme": lambda h, a: h.update(scheme="bioes2"),
    "labels outside the scheme": lambda h, a: h.update(labels=["a", "b", "c", "d", "e"]),
    "a label twice": lambda h, a: h.update(labels=["O", "O", "B-X", "I-X", "B-Y"]),
    "too many labels": lambda h, a: h.update(labels=[f"B-{i}" for i in range(900)]),
    "labels that are none": lambda h, a: h.update(labels=None),
    "an unknown search": lambda h, a: h.update(search="luck"),
    "a beam of none": lambda h, a: h.update(search="beam", beam=0),
    "no temperature": lambda h, a: h.update(temperature=0.0),
    "a temperature that is none": lambda h, a: h.update(temperature="hot"),
    "an unknown map": lambda h, a: h["features"].update(kind="magic"),
    "a larger map": lambda h, a: h["features"].update(size=10**6),
    "a weight beyond the last": lambda h, a: a["weights.ids"].__setitem__(-1, 10**6),
    "a negative coordinate": lambda h, a: a["weights.ids"].__setitem__(0, -1),
    "a weight that is not finite": lambda h, a: a["weights.values"].__setitem__(0, np.nan),
    "too many weights": lambda h, a: a["weights.size"].__setitem__(0, 2**45),
    "no weights": lambda h, a: a.pop("weights.values"),
}


@pytest.mark.parametrize("change", FORGERIES.values(), ids=list(FORGERIES))
def test_forgeries_with_right_hashes_are_refused(change):
    header, arrays = storage.unpack(random_model().to_bytes(), kind="model")
    arrays = {name: np.array(array) for name, array in arrays.items()}
    change(header, arrays)
    with pytest.raises(ModelError):
        SequenceModel.from_bytes(storage.pack(header, arrays, kind="model"))


def test_a_model_says_what_it_has_learnt():
    model = random_model()
    W = padded_width(len(BIO))
    table = model.weights[: DATA.features.size * W].reshape(-1, W)
    top = model.top(3)
    assert list(top) == list(BIO)
    for c, name in enumerate(BIO):
        wanted = sorted(((w, -a) for a, w in enumerate(table[:, c]) if w > 0), reverse=True)[:3]
        assert top[name] == [(DATA.features.name(-a), pytest.approx(w)) for w, a in wanted]
    moves = model.transitions()
    assert moves.shape == (5, 5)
    start = DATA.features.size * W
    for before, after in itertools.product(range(5), repeat=2):
        assert moves[before, after] == model.weights[start + after * W + before]


def test_limits_of_a_scheme_are_those_of_its_rules():
    limits = scheme_limits(BIO, "bio")
    W = padded_width(len(BIO))
    step = limits.step.reshape(W, W)
    for a, b in itertools.product(range(5), repeat=2):
        assert (step[b, a] == 0) == legal([BIO[a].replace("I-", "B-"), BIO[b]])
    assert scheme_limits(BIO, None).step.size == 0
    with pytest.raises(HopefearError):
        scheme_limits(("NN", "VB"), "bio")
    iobes = ("O", "B-X", "I-X", "E-X", "S-X")
    assert np.isneginf(scheme_limits(iobes, "iobes").end[:5]).tolist() == [0, 1, 1, 0, 0]


def test_limits_of_ones_own_are_obeyed():
    rules = Constraints(
        np.array([True, False]), np.array([True, True]), np.array([[True, False], [True, True]])
    )
    limits = scheme_limits(["A", "B"], rules)
    assert limits.start[:2].tolist() == [0.0, -np.inf]
    assert limits.step.reshape(4, 4)[1, 0] == -np.inf  # B after A
    with pytest.raises(HopefearError, match="constraints on 3 labels"):
        scheme_limits(["A", "B", "C"], rules)

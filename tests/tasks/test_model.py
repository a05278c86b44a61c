"""Model files: the same bytes for the same model, and nothing accepted that was changed."""

from __future__ import annotations

import random

import numpy as np
import pytest
from classes import train

from hopefear import storage
from hopefear.data.generators import sparse_linear
from hopefear.data.text import read_text
from hopefear.errors import HopefearError, ModelError
from hopefear.tasks.classify.model import Model

pytestmark = pytest.mark.interpreted

AVERAGINGS = ["last", "averaged", "voted"]


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "a.tsv"
    path.write_text("good\tfine day, fine sun\nbad\train and more rain\n" * 8)
    two, three = (
        sparse_linear(150, 30, per_row=(3, 6), true_weights=9, classes=k, seed=2).dataset()
        for k in (2, 3)
    )
    return {"two": two, "three": three, "text": read_text(path, ngrams=2)}


@pytest.fixture(scope="module")
def models(problems):
    return {
        (name, averaging): train(data, "vrda", {"averaging": averaging}, epochs=2).model
        for name, data in problems.items()
        for averaging in AVERAGINGS
    }


@pytest.mark.parametrize("name", ["two", "three", "text"])
@pytest.mark.parametrize("averaging", AVERAGINGS)
def test_a_round_trip_changes_neither_bytes_nor_decisions(models, problems, name, averaging):
    model = models[name, averaging]
    again = Model.from_bytes(model.to_bytes())
    assert again.to_bytes() == model.to_bytes()
    assert again.predict(problems[name]) == model.predict(problems[name])
    np.testing.assert_array_equal(
        again.probabilities(problems[name]), model.probabilities(problems[name])
    )


def test_two_thousand_mutations_of_models_are_refused(models):
    rng, files = random.Random(1), [model.to_bytes() for model in models.values()]
    for _ in range(2000):
        data = bytearray(rng.choice(files))
        where = rng.randrange(len(data))
        kind = rng.randrange(4)
        if kind == 0:
            data[where] ^= 1 << rng.randrange(8)
        elif kind == 1:
            del data[where:]
        elif kind == 2:
            data[where:where] = bytes([rng.randrange(256)])
        else:
            data[where : where + 4] = bytes(4) if any(data[where : where + 4]) else b"\xff" * 4
        with pytest.raises(ModelError):
            Model.from_bytes(bytes(data))


def forged(model, change):
    """A file with right hashes and wrong content."""
    header, arrays = storage.unpack(model.to_bytes(), kind="model")
    arrays = {name: np.array(array) for name, array in arrays.items()}
    change(header, arrays)
    return storage.pack(header, arrays, kind="model")


FORGERIES = {
    "a weight beyond the last": lambda h, a: a["weights.ids"].__setitem__(-1, 10**6),
    "a negative coordinate": lambda h, a: a["weights.ids"].__setitem__(0, -1),
    "a weight that is not finite": lambda h, a: a["weights.values"].__setitem__(0, np.nan),
    "too many weights": lambda h, a: a["weights.size"].__setitem__(0, 2**45),
    "another number of features": lambda h, a: h["structure"].update(n_features=10**7),
    "another number of classes": lambda h, a: h.update(classes=["a", "b", "c"]),
    "another task": lambda h, a: h.update(task="parse"),
    "an unknown structure": lambda h, a: h["structure"].update(kind="lattice"),
    "no classes": lambda h, a: h.pop("classes"),
    "no weights": lambda h, a: a.pop("weights.values"),
}


@pytest.mark.parametrize("change", FORGERIES.values(), ids=list(FORGERIES))
def test_forgeries_with_right_hashes_are_refused(models, change):
    with pytest.raises(ModelError):
        Model.from_bytes(forged(models["two", "averaged"], change))


VOTES = {
    "a line beyond the last predictor": lambda a: a["votes.end"].__setitem__(0, 10**9),
    "a line before the first": lambda a: a["votes.begin"].__setitem__(0, -5),
    "lines of a coordinate out of order": lambda a: a["votes.begin"].__setitem__(
        a["votes.starts"][np.argmax(np.diff(a["votes.starts"]))] + 1, 0
    ),
    "a coordinate beyond the last": lambda a: a["votes.coordinates"].__setitem__(-1, 10**6),
    "lines of nobody": lambda a: a["votes.starts"].__setitem__(-1, 10**6),
    "a drop that is not finite": lambda a: a["votes.drops"].__setitem__(-1, np.inf),
    "no survival counts": lambda a: a.pop("votes.survived"),
    "levels of another type": lambda a: a.update(
        {"votes.level": a["votes.level"].astype(np.float32)}
    ),
}


@pytest.mark.parametrize("change", VOTES.values(), ids=list(VOTES))
def test_forged_votes_are_refused(models, change):
    with pytest.raises(ModelError):
        Model.from_bytes(forged(models["two", "voted"], lambda h, a: change(a)))


def test_a_model_explains_itself(models, problems):
    model, data = models["text", "averaged"], problems["text"]
    top = model.top(3)
    assert set(top) == {"good", "bad"}
    assert any("rain" in name for name, _ in top["bad"])
    (name, gain), *_ = model.explain(data, 0).contributions
    assert gain != 0.0 and isinstance(name, str)
    _, scores = model.decide(data)
    total = sum(gain for _, gain in model.explain(data, 0).contributions)
    assert total == pytest.approx(abs(scores[0, 0]), rel=1e-4)
    with pytest.raises(HopefearError, match="averaging=averaged"):
        models["text", "voted"].top()


def test_data_of_another_width_is_refused(models, problems):
    with pytest.raises(HopefearError, match="read the data with the model's feature map"):
        models["two", "last"].predict(problems["text"])


def test_a_matrix_is_as_good_as_a_dataset(models, problems):
    model, data = models["two", "averaged"], problems["two"]
    assert model.predict(data.to_csr()) == model.predict(data)
    assert model.predict(data.to_csr().toarray()) == model.predict(data)

"""Every learner of the task ``tag``: broken off and resumed, saved and read, limits in training."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from chain_oracle import corpus

from hopefear.averaging.voted import Voted
from hopefear.core.learner import Learner
from hopefear.data.sequences import SequenceDataset
from hopefear.losses.perceptron import Perceptron
from hopefear.losses.structured_hinge import StructuredHinge
from hopefear.losses.swvp import SWVP
from hopefear.recipes import CHAIN_RECIPES
from hopefear.rules.sgd import SGD
from hopefear.structures.chain.chain import Chain
from hopefear.tasks.tag.model import SequenceModel
from hopefear.tasks.tag.task import train
from hopefear.training.checkpoints import Checkpoints
from hopefear.training.online import OnlineTrainer

pytestmark = pytest.mark.interpreted

DATA = corpus(21, n=12, longest=4)
BIO = SequenceDataset(DATA.rows, ("B-X", "O", "B-Y"), DATA.features)
ONLINE = [name for name, recipe in CHAIN_RECIPES.items() if hasattr(recipe, "rule")]


class StopError(Exception):
    """Stands for the end of the process."""


def stop(event):
    if event["epoch"] >= 1.5:
        raise StopError


def fitted(name, data=DATA, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a tiny corpus may leave a sparse learner at zero
        return train(data, name, **{"epochs": 2, "pieces": 2, **more}).model


@pytest.mark.parametrize("name", ONLINE)
def test_resumed_saved_and_read_again(name, tmp_path):
    whole = fitted(name).to_bytes()
    with pytest.raises(StopError):
        fitted(name, on_event=[stop], checkpoints=Checkpoints(tmp_path, every=0.0))
    again = fitted(name, resume=True, checkpoints=Checkpoints(tmp_path, every=0.0))
    assert again.to_bytes() == whole
    model = SequenceModel.from_bytes(whole)
    assert model.tag(DATA).texts() == again.tag(DATA).texts()
    assert model.about["parameters"]["loss"] is not None


@pytest.mark.parametrize("search", ["astar", "list", "beam"])
@pytest.mark.parametrize("name", ["sapo", "nbest-mira"])
def test_searches_are_exchangeable_where_they_are_exact(name, search):
    model = fitted(name, search=search, beam=200)
    np.testing.assert_allclose(model.weights, fitted(name).weights, atol=1e-5)
    assert SequenceModel.from_bytes(model.to_bytes()).search == search


@pytest.mark.parametrize("name", ["perceptron", "sapo", "crf", "ssvm", "nbest-mira"])
@pytest.mark.parametrize("order", [1, 2])
def test_limits_in_training(name, order):
    model = fitted(name, BIO, constraints="always", order=order)
    assert model.scheme == "bio"
    assert np.isfinite(model.weights).all()


@pytest.mark.parametrize("shape", [{}, {"order": 2}, {"edge_attributes": 3}], ids=str)
@pytest.mark.parametrize(
    "loss", [Perceptron(), StructuredHinge(), SWVP(jj=3, checked=False)], ids=lambda x: str(x)[:12]
)
def test_votes_have_room_for_every_update(loss, shape):
    """Long sequences of many labels, so that hardly any two updates share a coordinate."""
    rng = np.random.default_rng(3)
    T, labels, edges = 12, 7, shape.get("edge_attributes", 0)
    counts = {"edge_indptr": np.arange(2 * T + 1) * 3, "edge_indices": rng.integers(0, 3, 6 * T)}
    rows = DATA.rows._replace(
        starts=np.array([0, T, 2 * T]),
        indptr=np.arange(2 * T + 1),
        indices=rng.integers(0, 5, 2 * T),
        values=np.empty(0),
        labels=rng.integers(0, labels, 2 * T),
        weights=np.ones(2),
        **(counts if edges else {}),
    )
    rows = SequenceDataset(rows, [str(c) for c in range(labels)], None).rows
    chain = Chain.new(5, labels, **shape)
    trainer = OnlineTrainer(chain, Learner(loss, SGD(), Voted(), "mistakes"), np.float64)
    for i in (0, 1, 0, 1):  # one at a time: no example can use the room of another
        trainer.learn(rows, np.array([i]))
    assert trainer.updates >= 2
    assert trainer.memory.counts[1] > 0

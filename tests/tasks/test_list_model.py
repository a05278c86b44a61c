"""Reranking models: what they answer, what their files keep, and that forged ones do no harm."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest

import hopefear
from hopefear import storage
from hopefear.data.generators import candidate_lists
from hopefear.errors import HopefearError, ModelError
from hopefear.metrics.lists import metric_named
from hopefear.tasks.answers import Question
from hopefear.tasks.base import train
from hopefear.tasks.rerank.answers import answer
from hopefear.tasks.rerank.model import RerankModel
from hopefear.tasks.rerank.prepare import dataset
from hopefear.tasks.rerank.task import Reranking
from hopefear.training.predictors import LinearPredictor

pytestmark = pytest.mark.interpreted

LISTS = candidate_lists(30, candidates=5, features=25, doubt=2.0, seed=6)
DATA = dataset(LISTS)


def trained(learner="vrda", lists=LISTS, baseline="feature", **params) -> RerankModel:
    return train(Reranking(), dataset(lists, baseline=baseline), learner, params, epochs=2).model


def test_a_file_keeps_only_features_that_have_a_weight(tmp_path):
    model = trained(l1=0.2, rate=0.5)
    assert 0 < model.nnz < model.features.size
    model.save(tmp_path / "model")
    found = hopefear.load_model(tmp_path / "model")
    assert found.features.size == found.nnz == model.nnz
    names = {model.features.name(j): model.weights[j] for j in np.flatnonzero(model.weights)}
    assert {found.features.name(j): found.weights[j] for j in range(found.nnz)} == names
    np.testing.assert_allclose(found.score(LISTS), model.score(LISTS), atol=1e-6)
    np.testing.assert_array_equal(found.predict(LISTS), model.predict(LISTS))
    assert found.to_bytes() == model.to_bytes()
    assert (found.signature, found.about) == (model.signature, dict(model.about))
    with pytest.raises(HopefearError, match="read the data with the model's feature map"):
        found.predict(DATA)


@pytest.mark.parametrize("baseline", ["feature", "offset", "none"])
def test_what_the_score_is_survives_the_file(baseline):
    model = trained("perceptron", baseline=baseline)
    found = RerankModel.from_bytes(model.to_bytes())
    assert found.baseline == baseline
    np.testing.assert_allclose(found.score(LISTS), model.score(LISTS), atol=1e-5)
    moved = replace(LISTS, scores=np.random.default_rng(1).normal(size=LISTS.n_candidates) * 50)
    same = np.allclose(found.score(moved), found.score(LISTS))
    assert same == (baseline == "none")


def test_votes_survive_the_file():
    model = trained(averaging="voted")
    found = RerankModel.from_bytes(model.to_bytes())
    assert found.nnz == found.features.size == model.nnz
    np.testing.assert_array_equal(found.score(LISTS), model.score(LISTS))
    with pytest.raises(HopefearError, match="no single weight"):
        found.top()


def test_a_model_of_no_weights_keeps_the_order_given():
    model = trained("perceptron")
    empty = replace(model, predictor=LinearPredictor(0 * model.weights))
    found = RerankModel.from_bytes(empty.to_bytes())
    assert (found.features.size, found.nnz) == (0, 0)
    assert not found.predict(LISTS).any() and found.top() == found.bottom() == []
    shares = answer(found, LISTS, Question(proba=True)).probabilities
    np.testing.assert_allclose(shares, 0.2)


def test_answers_are_the_same_for_blocks_and_for_data():
    model = train(Reranking(), DATA, "perceptron", epochs=2).model
    np.testing.assert_array_equal(model.score(LISTS), model.score(DATA))
    np.testing.assert_array_equal(model.predict([LISTS, LISTS])[30:], model.predict(DATA))
    ranks = answer(model, LISTS, Question()).ranks
    assert [r[0] for r in ranks] == model.predict(LISTS).tolist()
    assert all(sorted(r) == list(range(5)) for r in ranks)


def test_reasons_add_up_to_the_difference():
    model = train(Reranking(), DATA, "perceptron", epochs=2).model
    points = model.score(DATA)[10:15]  # of list 2
    for one, other in ((0, 1), (3, 2)):
        parts = model.explain(LISTS, 2, one, other).contributions
        total = sum(part for _, part in parts)
        assert total == pytest.approx(points[one] - points[other], abs=1e-4)
        sizes = [abs(part) for _, part in parts]
        assert sizes == sorted(sizes, reverse=True)
    with pytest.raises(HopefearError, match="list 2 has 5 candidates, no 5"):
        model.explain(LISTS, 2, 0, 5)


def test_the_heaviest_features_come_first():
    model = train(Reranking(), DATA, "perceptron", epochs=2).model
    weights = {DATA.features.name(j): float(model.weights[j]) for j in range(DATA.features.size)}
    assert model.top(1) == [max(weights.items(), key=lambda item: item[1])]
    assert model.bottom(1) == [min(weights.items(), key=lambda item: item[1])]
    assert all(w > 0 for _, w in model.top(100)) and all(w < 0 for _, w in model.bottom(100))


def test_metrics_survive_with_their_parameters():
    metric = metric_named("bleu", smoothing="exp", lowercase=True)
    model = replace(trained("perceptron"), metric=metric)
    assert RerankModel.from_bytes(model.to_bytes()).metric == metric


def test_models_of_other_tasks_are_refused():
    header, arrays = storage.unpack(trained("perceptron").to_bytes(), kind="model")
    with pytest.raises(ModelError, match="for the task 'rerank', found 'tag'"):
        RerankModel.from_file_parts({**header, "task": "tag"}, arrays)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"baseline": "offset"}, "do not fit together"),
        ({"baseline": "x"}, "baseline must be one of"),
        ({"temperature": 0.0}, "temperature above zero"),
        ({"temperature": float("nan")}, "temperature above zero"),
        ({"metric": {"name": "chrf", "parameters": {"word_order": 2**40}}}, "cannot have word_ord"),
        ({"metric": {"name": "bleu", "parameters": {"lowercase": "x"}}}, "cannot have lowercase"),
        ({"metric": {"name": "none", "parameters": {}}}, "no metric 'none'"),
        ({"metric": 3}, "makes no sense"),
    ],
)
def test_headers_that_make_no_sense_are_refused(change, message):
    header, arrays = storage.unpack(trained("perceptron").to_bytes(), kind="model")
    with pytest.raises(ModelError, match=message):
        RerankModel.from_file_parts({**header, **change}, arrays)


def test_votes_with_a_fixed_score_are_refused():
    header, arrays = storage.unpack(
        trained(averaging="voted", baseline="none").to_bytes(), kind="model"
    )
    with pytest.raises(ModelError, match="do not fit together"):
        RerankModel.from_file_parts({**header, "baseline": "offset"}, arrays)


VALUES = [None, -1, 0, 1, 2**31, 2**70, -0.5, 1e300, True, False, "", "x", "none", "offset", [], {}]


def leaves(value, path=()):
    """Places in a header, those that hold others too."""
    if path:
        yield path
    if isinstance(value, dict):
        for key, inside in value.items():
            yield from leaves(inside, (*path, key))


def broken(rng, header, arrays):
    """Header and arrays with something replaced, cut, or left out."""
    header, arrays = copy.deepcopy(header), dict(arrays)
    if rng.random() < 0.4:
        places = [p for p in leaves(header) if p[0] != "about"]
        *path, last = places[rng.integers(len(places))]
        inside = header
        for key in path:
            inside = inside[key]
        inside[last] = VALUES[rng.integers(len(VALUES))]
        return header, arrays
    name = sorted(arrays)[rng.integers(len(arrays))]
    array, how = np.array(arrays[name]), rng.integers(5)
    if how == 0:
        del arrays[name]
        return header, arrays
    if how == 1:
        kinds = [np.int8, np.uint8, np.int32, np.uint64, np.int64, np.float32, np.float64]
        array = array.astype(kinds[rng.integers(len(kinds))])
    elif how == 2:
        array = array[: rng.integers(array.size + 1)]
    elif how == 3:
        array = np.concatenate([array, array])
    elif array.size:
        info = np.finfo(array.dtype) if array.dtype.kind == "f" else np.iinfo(array.dtype)
        extreme = [info.min, info.max, 0, 1, min(array.size, info.max)]
        array[rng.integers(array.size)] = extreme[rng.integers(len(extreme))]
    arrays[name] = array
    return header, arrays


@pytest.mark.filterwarnings("ignore:overflow|invalid:RuntimeWarning")
@pytest.mark.parametrize("averaging", ["averaged", "voted"])
def test_forged_files_are_refused_or_work(averaging):
    """Every hash is right, so only the checks of the content stand in the way."""
    model = trained("vrda", averaging=averaging)
    header, arrays = storage.unpack(model.to_bytes(), kind="model")
    rng, refused = np.random.default_rng(5), 0
    for _ in range(150):
        try:
            forged = storage.pack(*broken(rng, header, arrays), kind="model")
        except HopefearError:
            continue
        try:
            found = RerankModel.from_bytes(forged)
        except ModelError:
            refused += 1
            continue
        best = found.predict(LISTS)
        assert best.shape == (30,) and best.min() >= 0 and best.max() < 5
        assert len(answer(found, LISTS, Question()).ranks) == 30
        if averaging != "voted":
            found.top(2)
        RerankModel.from_bytes(found.to_bytes())
    assert refused > 40

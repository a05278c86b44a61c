"""What would go wrong without a word is refused instead, before any work is done."""

from __future__ import annotations

import math

import numpy as np
import pytest
from classes import train
from scipy.sparse import csr_array

from hopefear.data.cache import open_cache
from hopefear.data.cached_examples import cache_examples
from hopefear.data.generators import sparse_linear
from hopefear.data.sparse import SparseDataset
from hopefear.data.svmlight import read_svmlight
from hopefear.data.write_svmlight import write_svmlight
from hopefear.errors import HopefearError
from hopefear.training.checkpoints import Checkpoints
from hopefear.training.stopping import Stopping

pytestmark = pytest.mark.interpreted


@pytest.fixture(scope="module")
def data():
    return sparse_linear(120, 20, per_row=(3, 6), true_weights=8, seed=4).dataset()


def test_held_out_data_of_another_width_is_refused(data):
    wider = SparseDataset.from_csr(np.ones((2, data.n_features + 1)), [-1, 1])
    with pytest.raises(HopefearError, match=r"has 21 features .* has 20 and"):
        train(data, dev=wider)


def test_held_out_data_whose_codes_mean_other_classes_is_refused(data):
    swapped = SparseDataset(data.rows, data.n_features, data.classes[::-1], data.features)
    with pytest.raises(HopefearError, match=r"classes \['1', '-1'\]"):
        train(data, dev=swapped)


@pytest.mark.parametrize("weight", [-1.0, math.nan, math.inf])
def test_a_class_weight_that_is_no_weight_is_refused(data, weight):
    with pytest.raises(HopefearError, match="finite and not negative"):
        train(data, class_weight={"1": weight})


@pytest.mark.parametrize("intercept", [None, "none", math.nan])
def test_an_intercept_that_is_no_number_is_refused(data, intercept):
    with pytest.raises(HopefearError, match="'auto' or a finite number"):
        train(data, intercept=intercept)


@pytest.mark.parametrize("metric", ["bleu", "signature", "count"])
def test_a_metric_that_cannot_be_compared_is_refused_before_the_first_pass(data, metric):
    seen = []
    with pytest.raises(HopefearError, match=f"no score '{metric}'.*accuracy"):
        train(data, dev=data, stopping=Stopping(metric), on_event=[seen.append])
    assert not seen


@pytest.mark.parametrize(
    "other",
    [
        {"dev": slice(60, 120)},
        {"dev": slice(0, 60), "metric": "f1"},
        {"dev": slice(0, 60), "patience": 1},
        {},
    ],
)
def test_a_run_chosen_by_other_held_out_scores_is_another_run(data, tmp_path, other):
    def go(dev=None, metric="accuracy", patience=0, resume=True):
        rows = None if dev is None else data.take(np.arange(120)[dev])
        stopping = None if dev is None else Stopping(metric, patience)
        checkpoints = Checkpoints(tmp_path)
        train(data, dev=rows, stopping=stopping, checkpoints=checkpoints, resume=resume)

    go(slice(0, 60), resume=False)
    go(slice(0, 60))
    with pytest.raises(HopefearError, match="of another run"):
        go(**other)


def test_pieces_of_data_in_memory_are_not_those_of_a_cache(data, tmp_path):
    write_svmlight(tmp_path / "a.svm", data)
    cache_examples(tmp_path / "a.svm", tmp_path / "cache", format="svmlight")
    read, mapped = read_svmlight(tmp_path / "a.svm"), open_cache(tmp_path / "cache")
    assert read.digest == mapped.digest
    train(read, checkpoints=Checkpoints(tmp_path / "state"))
    with pytest.raises(HopefearError, match="its by_block is False, not True"):
        train(mapped, checkpoints=Checkpoints(tmp_path / "state"), resume=True)


@pytest.mark.parametrize("epochs", [0, 2.5, "3"])
def test_passes_come_in_whole_numbers(data, epochs):
    with pytest.raises(HopefearError, match="epochs must be a whole number"):
        train(data, epochs=epochs)


@pytest.mark.parametrize("patience", [-1, 1.5])
def test_patience_comes_in_whole_numbers(data, patience):
    with pytest.raises(HopefearError, match="patience must be a whole number"):
        train(data, dev=data, stopping=Stopping("accuracy", patience))


def test_columns_outside_the_matrix_are_refused():
    matrix = csr_array((np.ones(2), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
    matrix.indices[1] = 7
    with pytest.raises(HopefearError, match="columns from 0 to 1"):
        SparseDataset.from_csr(matrix)


@pytest.mark.parametrize("value", [1.1e15, -1e30, 1e39])
def test_a_value_whose_squares_would_overflow_is_refused(value, tmp_path):
    with pytest.raises(HopefearError, match=r"X\[1, 0\]: expected a number of at most 1e15"):
        SparseDataset.from_csr([[1.0, 2.0], [value, 1.0]])
    (tmp_path / "a.svm").write_text(f"1 1:2\n-1 1:{value}\n")
    with pytest.raises(HopefearError, match=r"a.svm:2: expected a finite number of at most 1e15"):
        read_svmlight(tmp_path / "a.svm")


@pytest.mark.parametrize("learner", ["adagrad-rda", "adagrad", "ftrl"])
def test_a_large_value_is_learned_from_and_not_lost(learner):
    large = SparseDataset.from_csr([[1e15, 1.0], [-1e15, 1.0]] * 10, [1, -1] * 10)
    model = train(large, learner, {"l1": 0.0}, epochs=3).model
    assert np.isfinite(model.predictor.weights).all()
    assert model.predict(large) == ["1", "-1"] * 10

"""Likelihoods by NumPy against those of a decoder, which are tested against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopefear.data.sequences import SequenceDataset, TokenRows
from hopefear.errors import HopefearError
from hopefear.structures.chain.chain import Chain
from hopefear.training import likelihoods
from hopefear.training.decoding import Decoder
from hopefear.training.likelihoods import Likelihoods

pytestmark = pytest.mark.interpreted


def text(chain, lengths, counts, rng, plain=False):
    """Sequences whose tokens have some attributes each; plain ones have no values."""
    tokens = sum(lengths)
    sizes = rng.choice(counts, tokens)
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    rows = TokenRows(
        np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        indptr,
        rng.integers(0, chain.attributes, indptr[-1]),
        np.empty(0) if plain else rng.integers(1, 4, indptr[-1]) / 2,
        [0],
        np.empty(0),
        np.empty(0),
        rng.integers(0, chain.labels, tokens),
        np.ones(len(lengths)),
    )
    return SequenceDataset(rows, [str(c) for c in range(chain.labels)], None).rows


@given(
    st.integers(1, 6),
    st.lists(st.integers(0, 5), max_size=6),
    st.booleans(),
    st.sampled_from([0.01, 0.3, 1.0, 1.5, 100.0]),
    st.sampled_from([0.1, 3.0, 400.0]),
    st.integers(0, 10**6),
)
def test_they_are_those_of_a_decoder(labels, lengths, plain, temperature, size, seed):
    """Scores of 400 at temperature 0.01 are far too large for exponentials."""
    rng, chain = np.random.default_rng(seed), Chain.new(4, labels)
    rows = text(chain, lengths, [0, 1, 3], rng, plain)
    weights = size * rng.standard_normal(chain.n_coordinates())
    wanted = Decoder(chain, weights, temperature).log_likelihoods(rows)
    logs = Likelihoods(chain, weights, rows).at(temperature)
    np.testing.assert_allclose(logs, wanted, rtol=1e-9, atol=1e-12 * (1.0 + size / temperature))


def test_sums_in_logarithms_may_be_taken_in_pieces(monkeypatch):
    rng, chain = np.random.default_rng(1), Chain.new(4, 3)
    rows = text(chain, [2, 5, 1, 4, 3], [2], rng)
    weights = 900.0 * rng.standard_normal(chain.n_coordinates())
    whole = Likelihoods(chain, weights, rows).at(1.0)
    monkeypatch.setattr(likelihoods, "_TOGETHER", 20)
    np.testing.assert_array_equal(Likelihoods(chain, weights, rows).at(1.0), whole)


def test_scores_have_the_precision_of_the_weights():
    rng, chain = np.random.default_rng(2), Chain.new(50, 5)
    rows = text(chain, [6, 3, 8], [10, 30], rng)
    weights = rng.standard_normal(chain.n_coordinates()).astype(np.float32)
    wanted = Decoder(chain, weights).log_likelihoods(rows)
    np.testing.assert_allclose(Likelihoods(chain, weights, rows).at(1.0), wanted, rtol=1e-13)


@pytest.mark.parametrize("code", [-1, 3])
def test_labels_without_a_number_of_the_model_are_impossible(code):
    rng, chain = np.random.default_rng(3), Chain.new(4, 3)
    rows = text(chain, [2, 0, 3], [1], rng)
    labels = rows.labels.copy()
    labels[1] = code
    logs = Likelihoods(chain, np.ones(chain.n_coordinates()), rows._replace(labels=labels)).at(0.5)
    assert logs[0] == -np.inf and logs[1] == 0.0 and np.isfinite(logs[2])


def test_weights_that_are_not_finite_are_an_error():
    chain = Chain.new(4, 3)
    rows = text(chain, [2], [1], np.random.default_rng(4))
    with pytest.raises(HopefearError, match="not finite"):
        Likelihoods(chain, np.full(chain.n_coordinates(), np.nan), rows)

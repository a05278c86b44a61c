"""Decoders against the list of all outputs: tags, n best, probabilities, limits."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from chain_oracle import feature_vector, permitted, softmax

from hopefear.core.interfaces import n_weights
from hopefear.data.sequences import SequenceDataset, TokenRows
from hopefear.errors import HopefearError
from hopefear.structures.chain.chain import Chain
from hopefear.structures.chain.theta import Limits, no_limits
from hopefear.structures.lattice import padded_width
from hopefear.training.decoders import chains
from hopefear.training.decoders.chains import ChainDecoder
from hopefear.training.predictors import LinearPredictor

pytestmark = pytest.mark.interpreted

LENGTHS = [3, 0, 1, 4, 2, 0, 3, 1]
# One type of arguments, so that every kernel is compiled once.
CHAINS = {
    "first": Chain.new(5, 3),
    "two labels": Chain.new(5, 2),
    "rich": Chain.new(5, 3, edge_attributes=2),
    "second": Chain.new(5, 3, order=2),
}


def decoder_of(chain, w, *more, **how):
    return ChainDecoder(chain, LinearPredictor(w), *more, **how)


def text(chain, seed=1, lengths=LENGTHS):
    """Rows with gold labels, values and edge attributes; halves, so that float32 is exact."""
    rng = np.random.default_rng(seed)
    tokens = sum(lengths)
    indptr = np.arange(0, 2 * tokens + 1, 2)
    edges = np.arange(tokens + 1) if chain.edge_attributes else [0]
    some = tokens if chain.edge_attributes else 0
    rows = TokenRows(
        np.concatenate([[0], np.cumsum(lengths)]),
        indptr,
        rng.integers(0, chain.attributes, 2 * tokens),
        rng.integers(1, 4, 2 * tokens) / 2,
        edges,
        rng.integers(0, max(1, chain.edge_attributes), some),
        np.empty(0),
        rng.integers(0, chain.labels, tokens),
        np.ones(len(lengths)),
    )
    return SequenceDataset(rows, [str(c) for c in range(chain.labels)], None).rows


def weights(chain, seed=2, steps=8):
    """Multiples of one over ``steps``; few steps make ties."""
    rng = np.random.default_rng(seed)
    return (rng.integers(-2 * steps, 2 * steps, n_weights(chain)) / steps).astype(np.float32)


def outputs(chain, rows, i, w):
    """(outputs, scores), best first."""
    first, last = rows.starts[i], rows.starts[i + 1]
    every = itertools.product(range(chain.labels), repeat=int(last - first))
    ys = [y for y in every if permitted(chain.limits, chain.width, first, y)]
    scores = np.array([feature_vector(chain, rows, i, y) @ w.astype(float) for y in ys])
    order = sorted(range(len(ys)), key=lambda k: (-scores[k], k))
    return [ys[k] for k in order], scores[order]


def sequences(rows):
    return [i for i in range(rows.weights.size) if rows.starts[i + 1] > rows.starts[i]]


@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("steps", [1, 8], ids=["ties", "fine"])
@pytest.mark.parametrize("temperature", [1.0, 2.5])
def test_answers_equal_enumeration(name, steps, temperature):
    chain = CHAINS[name]
    rows, w = text(chain), weights(chain, steps=steps)
    decoder = decoder_of(chain, w, temperature)
    tags, ranked = decoder.predict(rows), decoder.k_best(rows, 5)
    marginals, logs = decoder.probabilities(rows), decoder.log_likelihoods(rows)
    assert len(ranked) == len(LENGTHS)
    for i in sequences(rows):
        span = slice(rows.starts[i], rows.starts[i + 1])
        ys, scores = outputs(chain, rows, i, w)
        P = softmax(scores / temperature)
        assert tuple(tags[span]) == ys[0]
        best = ranked[i]
        assert [tuple(y) for y in best.labels] == ys[:5]
        np.testing.assert_allclose(best.scores, scores[:5], atol=1e-6)
        np.testing.assert_allclose(best.probabilities, P[:5], rtol=1e-5)
        np.testing.assert_allclose(best.shares, P[:5] / P[:5].sum(), rtol=1e-5)
        wanted = np.zeros((span.stop - span.start, chain.labels))
        for y, p in zip(ys, P, strict=True):
            wanted[np.arange(len(y)), y] += p
        np.testing.assert_allclose(marginals[span], wanted, atol=1e-6)
        gold = ys.index(tuple(rows.labels[span].tolist()))
        assert logs[i] == pytest.approx(np.log(P[gold]), rel=1e-5)


@pytest.mark.parametrize("name", CHAINS)
def test_probabilities_of_all_outputs_sum_to_one(name):
    chain = CHAINS[name]
    rows = text(chain)
    for found in decoder_of(chain, weights(chain), 0.7).k_best(rows, 3**4 + 5):
        T = found.labels.shape[1]
        assert len(found.labels) == len({tuple(y) for y in found.labels}) == chain.labels**T
        assert found.probabilities.sum() == pytest.approx(1.0, abs=1e-5)
        assert found.shares.sum() == pytest.approx(1.0)
        assert (np.diff(found.scores) <= 0).all()


def test_empty_sequences_have_one_output_of_no_labels():
    chain = CHAINS["first"]
    rows = text(chain, lengths=[0, 2, 0])
    decoder = decoder_of(chain, weights(chain))
    found = decoder.k_best(rows, 3)
    for i in (0, 2):
        assert found[i].labels.shape == (1, 0)
        assert found[i].probabilities.tolist() == [1.0]
    assert decoder.log_likelihoods(rows)[[0, 2]].tolist() == [0.0, 0.0]
    nothing = text(chain, lengths=[0])
    assert decoder.predict(nothing).size == decoder.probabilities(nothing).size == 0
    assert [len(f.labels) for f in decoder.k_best(nothing, 2)] == [1]


def test_no_data_at_all():
    chain = CHAINS["first"]
    decoder = decoder_of(chain, weights(chain))
    rows = text(chain, lengths=[])
    assert decoder.predict(rows).size == 0
    assert decoder.k_best(rows, 2) == []
    assert decoder.log_likelihoods(rows).size == 0


@pytest.mark.parametrize("n_jobs", [2, 3, 50])
def test_threads_change_nothing(n_jobs):
    chain = CHAINS["rich"]
    rows, w = text(chain, lengths=[3, 0, 1, 2, 4, 1, 1, 5, 2] * 3), weights(chain)
    one, many = (
        decoder_of(chain, w),
        decoder_of(chain, w, n_jobs=n_jobs),
    )
    np.testing.assert_array_equal(one.predict(rows), many.predict(rows))
    np.testing.assert_array_equal(one.probabilities(rows), many.probabilities(rows))
    np.testing.assert_array_equal(one.log_likelihoods(rows), many.log_likelihoods(rows))
    for a, b in zip(one.k_best(rows, 4), many.k_best(rows, 4), strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


def limited(chain, rows, allow):
    """Limits that let each token have the labels ``allow[k]`` only, and no label twice running."""
    W = padded_width(chain.labels)
    tokens = np.full((rows.labels.size, W), -np.inf, np.float32)
    for k, labels in enumerate(allow):
        tokens[k, labels] = 0.0
    step = np.zeros((W, W), np.float32)
    np.fill_diagonal(step, -np.inf)
    zero = np.zeros(W, np.float32)
    return chain._replace(limits=Limits(zero, zero, step.ravel(), tokens.ravel()))


@pytest.mark.parametrize("name", ["first", "rich", "second"])
def test_limits_hold_and_probabilities_are_of_what_is_allowed(name):
    plain = CHAINS[name]
    rows, w = text(plain), weights(plain)
    chain = limited(plain, rows, [[0, 1, 2] if k % 3 else [1, 2] for k in range(sum(LENGTHS))])
    decoder = decoder_of(chain, w)
    tags, ranked, marginals = (
        decoder.predict(rows),
        decoder.k_best(rows, 4),
        decoder.probabilities(rows),
    )
    logs = decoder.log_likelihoods(rows)
    for i in sequences(rows):
        span = slice(rows.starts[i], rows.starts[i + 1])
        ys, scores = outputs(chain, rows, i, w)
        P = softmax(scores)
        assert tuple(tags[span]) == ys[0]
        assert [tuple(y) for y in ranked[i].labels] == ys[:4]
        np.testing.assert_allclose(ranked[i].probabilities, P[:4], rtol=1e-5)
        np.testing.assert_allclose(marginals[span].sum(axis=1), 1.0, atol=1e-6)
        gold = tuple(rows.labels[span].tolist())
        wanted = np.log(P[ys.index(gold)]) if gold in ys else -np.inf
        assert logs[i] == pytest.approx(wanted, rel=1e-5)
    assert decoder.unlimited == 0


def test_a_sequence_without_a_legal_output_keeps_the_limits_of_its_tokens_and_is_counted():
    plain = CHAINS["first"]
    rows, w = text(plain), weights(plain)
    # Of these, the sequences of more than one token cannot change labels as they must.
    chain = limited(plain, rows, [[1]] * sum(LENGTHS))
    for n_jobs in (1, 3):
        decoder = decoder_of(chain, w, n_jobs=n_jobs)
        tags = decoder.predict(rows)
        assert decoder.unlimited == len([i for i in sequences(rows) if LENGTHS[i] > 1])
        np.testing.assert_array_equal(tags, np.ones(rows.labels.size))
        for i, found in enumerate(decoder.k_best(rows, 3)):
            if LENGTHS[i] > 0:
                np.testing.assert_array_equal(found.labels, np.ones((1, LENGTHS[i])))
        np.testing.assert_allclose(decoder.probabilities(rows)[:, 1], 1.0, atol=1e-6)


def test_labels_without_a_number_of_the_model_are_impossible():
    chain = CHAINS["first"]
    rows = text(chain, lengths=[2, 2])
    for code in (-1, 3):
        labels = rows.labels.copy()
        labels[0] = code
        labels.flags.writeable = False
        logs = decoder_of(chain, weights(chain)).log_likelihoods(rows._replace(labels=labels))
        assert logs[0] == -np.inf and np.isfinite(logs[1])


@pytest.mark.parametrize("bound", [False, True], ids=["free", "limited"])
def test_weights_that_are_not_finite_are_an_error(bound):
    chain = CHAINS["first"]
    rows = text(chain)
    limits = limited(chain, rows, [[0, 1, 2]] * sum(LENGTHS)).limits if bound else no_limits()
    w = np.full(n_weights(chain), -np.inf, np.float32)
    decoder = decoder_of(chain._replace(limits=limits), w)
    for ask in (decoder.predict, decoder.probabilities, lambda rows: decoder.k_best(rows, 2)):
        with np.errstate(invalid="ignore"), pytest.raises(HopefearError, match="not finite"):
            ask(rows)


def test_bad_numbers_of_outputs_and_endless_sequences_are_refused(monkeypatch):
    chain = CHAINS["second"]
    decoder = decoder_of(chain, weights(chain))
    with pytest.raises(HopefearError, match="n must be at least 1, not 0"):
        decoder.k_best(text(chain), 0)
    monkeypatch.setattr(chains, "MOST_BYTES", 1 << 10)
    with pytest.raises(HopefearError, match=r"a sequence of 40 tokens needs .* split it"):
        decoder.predict(text(chain, lengths=[40]))


def test_cold_and_hot():
    chain = CHAINS["first"]
    rows, w = text(chain), weights(chain)
    cold, hot = (decoder_of(chain, w, t).k_best(rows, 2) for t in (0.005, 1e4))
    for i in sequences(rows):
        if cold[i].scores[0] > cold[i].scores[1]:
            assert cold[i].probabilities[0] == pytest.approx(1.0, abs=1e-4)
        flat = 3.0 ** -LENGTHS[i]
        assert hot[i].probabilities[0] == pytest.approx(flat, rel=0.01)
        np.testing.assert_array_equal(cold[i].labels, hot[i].labels)

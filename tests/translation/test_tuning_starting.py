"""Weights to begin with: the decoder's found out, those of Moses, even ones, given ones."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from tuning_plain import small_lists

from hopefear.data.lists.candidates import CandidateLists
from hopefear.errors import HopefearError
from hopefear.translation import task
from hopefear.translation.examples import DECODER
from hopefear.translation.lists import lists_in_memory
from hopefear.translation.task import decoder_weights, start_weights
from hopefear.translation.weights import Weights

pytestmark = pytest.mark.interpreted

LISTS = small_lists(30, 8, seed=6)


def shares(values):
    return np.asarray(values) / np.abs(values).sum()


def test_the_decoders_weights_are_recovered_from_its_scores():
    found, explained = decoder_weights(LISTS)
    assert explained == pytest.approx(1.0, abs=1e-9)
    np.testing.assert_allclose(found, DECODER, atol=1e-5)
    for start in ("auto", "decoder"):
        np.testing.assert_allclose(start_weights(LISTS, start).dense, shares(DECODER), atol=1e-5)


def test_what_a_whole_list_has_in_common_does_not_matter():
    rng = np.random.default_rng(2)
    penalty = np.repeat(-100.0 * rng.integers(0, 3, len(LISTS)), np.diff(LISTS.starts))
    other = replace(LISTS, scores=(LISTS.scores + penalty).astype(np.float32))
    np.testing.assert_allclose(decoder_weights(other)[0], DECODER, atol=1e-3)


def test_features_that_say_the_same_share_their_weight():
    again = replace(
        LISTS,
        layout=(*LISTS.layout, ("LM1", 1)),
        dense=np.hstack([LISTS.dense, LISTS.dense[:, :1]]),
    )
    found, explained = decoder_weights(again)
    assert explained > 0.999999
    np.testing.assert_allclose([found[0], found[-1]], [DECODER[0] / 2] * 2, atol=1e-4)


def test_scores_of_another_origin_are_not_taken_for_the_decoders():
    rng = np.random.default_rng(1)
    other = replace(LISTS, scores=rng.normal(size=LISTS.n_candidates).astype(np.float32))
    usual = start_weights(other, "auto")
    np.testing.assert_allclose(usual.dense, shares([0.5, 0.1, 0.1, -1.0, 0.3]))
    assert usual == start_weights(other, "moses")
    with pytest.raises(HopefearError, match=r"the best explain \d"):
        start_weights(other, "decoder")
    silent = replace(LISTS, scores=np.zeros(LISTS.n_candidates, np.float32))
    assert start_weights(silent) == usual


def test_even_and_given_weights():
    assert start_weights(LISTS, "uniform").dense.tolist() == [0.2] * 5
    given = Weights(LISTS.layout, [2.0, 0, 0, 0, -2.0], {"a_b": 4.0})
    found = start_weights(LISTS, given.arranged(tuple(reversed(LISTS.layout))))
    assert found.layout == LISTS.layout
    assert found.dense.tolist() == [0.5, 0, 0, 0, -0.5] and found.sparse == {"a_b": 1.0}
    zeros = Weights(LISTS.layout, np.zeros(5), {"a_b": 4.0})
    assert start_weights(LISTS, zeros) == zeros
    with pytest.raises(HopefearError, match="one of auto, decoder, moses, uniform"):
        start_weights(LISTS, "best")
    with pytest.raises(HopefearError, match=r"no more dense features in the weights, TM0 \(2"):
        start_weights(LISTS, Weights((("LM0", 1),), [1.0]))


def test_lists_of_sparse_features_only_have_nothing_to_start_from():
    lists = lists_in_memory([[("a", {"x": 1}), ("b", {"y": 1})]], ["a"])
    for start in ("auto", "moses", "uniform"):
        assert start_weights(lists, start).dense.size == 0


def test_lists_are_looked_at_in_blocks(monkeypatch):
    rng = np.random.default_rng(4)
    noisy = replace(
        LISTS, scores=(LISTS.scores + 0.3 * rng.normal(size=LISTS.n_candidates)).astype(np.float32)
    )
    whole, explained = decoder_weights(noisy)
    monkeypatch.setattr(task, "_BLOCK", 7)
    found, share = decoder_weights(noisy)
    np.testing.assert_allclose(found, whole, rtol=1e-9)
    assert share == pytest.approx(explained, rel=1e-9) and 0.1 < share < 0.99
    # The share is that of the variance within lists.
    missed = noisy.scores - noisy.dense.astype(float) @ found
    parts = [
        (missed[a:b].var() * (b - a), noisy.scores[a:b].astype(float).var() * (b - a))
        for a, b in zip(noisy.starts[:-1], noisy.starts[1:], strict=True)
    ]
    left, total = np.sum(parts, axis=0)
    assert share == pytest.approx(1.0 - left / total, rel=1e-6)


def test_room_does_not_grow_with_the_lists():
    many = lists_of(16_000)
    decoder_weights(lists_of(10))
    tracemalloc.start()
    try:
        decoder_weights(many)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < many.dense.nbytes


def lists_of(n):
    rng = np.random.default_rng(1)
    dense = rng.normal(size=(10 * n, 8)).astype(np.float32)
    return CandidateLists(
        [str(i) for i in range(n)],
        np.arange(0, 10 * n + 1, 10),
        (),
        dense[:, 0].copy(),
        layout=(("TM0", 8),),
        dense=dense,
    )

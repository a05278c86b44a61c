"""Numbered features of lists of translations against brute force."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tuning_lists import BLEU, differences, encoded_matrix, matrix, rich
from tuning_plain import slices

from hopefear.data.lists.candidates import NamedEntries
from hopefear.errors import HopefearError
from hopefear.translation.features import GROUPS, TuningFeatures, learned
from hopefear.translation.lists import lists_in_memory
from hopefear.translation.weights import Weights

pytestmark = pytest.mark.interpreted

LISTS = rich()


@pytest.mark.parametrize("groups", [("dense",), ("sparse",), ("phrases",), GROUPS])
def test_values_are_those_of_the_lists_up_to_what_all_candidates_share(groups):
    data = learned(LISTS, BLEU, groups)
    wanted = matrix(LISTS, data.features)
    found = encoded_matrix(data)
    np.testing.assert_allclose(differences(found, LISTS), differences(wanted, LISTS), atol=1e-5)
    np.testing.assert_array_equal(data.rows.costs, BLEU.costs(LISTS.counts))
    for s, oracle in zip(slices(LISTS), data.rows.oracles, strict=True):
        assert oracle == np.argmin(data.rows.costs[s])


def test_many_blocks_are_one(monkeypatch):
    whole = learned(LISTS, BLEU, GROUPS, 2)
    monkeypatch.setattr("hopefear.translation.features._BLOCK", 3)
    cut = learned(LISTS, BLEU, GROUPS, 2)
    assert cut.features.size == whole.features.size
    np.testing.assert_array_equal(encoded_matrix(cut), encoded_matrix(whole))


@pytest.mark.parametrize("least", [1, 2, 4, 99])
def test_rare_features_are_left_out_by_the_lists_they_tell_apart(least):
    data = learned(LISTS, BLEU, GROUPS, least)
    everything = learned(LISTS, BLEU, GROUPS).features
    table = matrix(LISTS, everything)
    often = np.zeros(everything.size)
    for s in slices(LISTS):
        often += np.ptp(table[s], axis=0) > 0
    wanted = {
        everything.name(j)
        for j in range(everything.size)
        if j < everything.n_dense or often[j] >= least
    }
    assert {data.features.name(j) for j in range(data.features.size)} == wanted
    assert data.features.n_dense == 5


def test_other_lists_get_the_same_numbers_and_unknown_names_none():
    data = learned(LISTS, BLEU, GROUPS, 2)
    again = data.features.encode(LISTS, BLEU)
    np.testing.assert_array_equal(encoded_matrix(again), encoded_matrix(data))
    other = rich(8, seed=5, names=60)
    held = data.features.encode(other, BLEU)
    wanted = matrix(other, data.features)
    np.testing.assert_allclose(
        differences(encoded_matrix(held), other), differences(wanted, other), atol=1e-5
    )
    unknown = [other.sparse.names[j] for j in range(len(other.sparse.names))]
    known = {data.features.name(j) for j in range(data.features.size)}
    assert not set(unknown) <= known


def test_scores_are_those_of_weights_by_name():
    from hopefear.translation.scoring import scores

    data = learned(LISTS, BLEU, GROUPS, 2)
    values = np.random.default_rng(3).normal(size=data.features.size)
    weights = Weights.of(data.features, values)
    by_number, by_name = encoded_matrix(data) @ values, scores(LISTS, weights)
    np.testing.assert_allclose(
        differences(by_number[:, None], LISTS), differences(by_name[:, None], LISTS), atol=1e-4
    )
    np.testing.assert_allclose(weights.on(data.features), values)


def test_lists_without_named_features_may_be_judged_by_weights_with_them():
    data = learned(LISTS, BLEU, ("dense", "sparse"))
    bare = replace(LISTS, sparse=None, phrases=None)
    held = data.features.encode(bare, BLEU)
    assert int(held.rows.features.max()) < data.features.n_dense


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        (
            (("LM0", 1), ("TM0", 3)),
            r"TM0 \(3 numbers\) in the weights, TM0 \(2 numbers\) in memory",
        ),
        ((("XM0", 1),), r"XM0 \(1 number\) in the weights, LM0 \(1 number\) in memory"),
        ((("LM0", 1),), "no more dense features in the weights, TM0"),
        (
            (("LM0", 1), ("TM0", 2), ("WordPenalty0", 1), ("Distortion0", 1), ("More0", 1)),
            r"More0 \(1 number\) in the weights, no more",
        ),
    ],
)
def test_other_dense_features_are_refused_by_name(layout, said):
    with pytest.raises(HopefearError, match=said):
        TuningFeatures(layout).encode(LISTS, BLEU)


def test_refusals():
    with pytest.raises(HopefearError, match="dense, sparse, phrases, not 'words'"):
        learned(LISTS, BLEU, ("words",))
    with pytest.raises(HopefearError, match="min_count must be at least 1"):
        learned(LISTS, BLEU, GROUPS, 0)
    with pytest.raises(HopefearError, match="phrase pairs were not read"):
        learned(replace(LISTS, phrases=None), BLEU, GROUPS)
    with pytest.raises(HopefearError, match="give references"):
        learned(replace(LISTS, counts=None), BLEU)


def test_entries_of_one_name_in_a_derivation_add_up():
    pairs = NamedEntries(
        ["a ||| b", "c ||| d"],
        np.arange(LISTS.n_candidates + 1) * 2,
        np.tile([0, 0, 0, 1], LISTS.n_candidates)[: 2 * LISTS.n_candidates].astype(np.int32),
    )
    lists = replace(LISTS, phrases=pairs, sparse=None)
    data = learned(lists, BLEU, ("phrases",))
    np.testing.assert_allclose(
        differences(encoded_matrix(data), lists), differences(matrix(lists, data.features), lists)
    )


def test_pairs_of_objects_count_once_in_a_derivation():
    lists = lists_in_memory(
        [
            [
                ("x", {}, 0.0, ["b ||| y", ("a", "x"), "b ||| y"]),
                ("y", {}, 0.0, ["a ||| x", "b ||| y"]),
            ]
        ]
    )
    assert lists.phrases.indptr.tolist() == [0, 2, 4]
    assert lists.phrases.ids.tolist() == [0, 1, 0, 1]

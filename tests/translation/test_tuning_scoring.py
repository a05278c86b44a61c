"""Scores under named weights, and models that become one feature and are taken apart again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tuning_lists import named_values, rich
from tuning_plain import slices

from hopefear.errors import HopefearError
from hopefear.translation.lists import lists_in_memory
from hopefear.translation.scoring import best, choice, scores, with_scores, without_scores
from hopefear.translation.weights import Weights

pytestmark = pytest.mark.interpreted

LISTS = rich(10, seed=4)
LAYOUT = LISTS.layout


def some_weights(seed, layout=LAYOUT):
    rng = np.random.default_rng(seed)
    width = sum(size for _, size in layout)
    return Weights(
        layout,
        rng.normal(size=width),
        {f"s_{j}": float(rng.normal()) for j in range(0, 30, 2)} | {"nowhere_1": 5.0},
        {f"q{j} x ||| t{j}": float(rng.normal()) for j in range(0, 30, 3)},
    )


def plain_scores(lists, weights):
    found = []
    for c in range(lists.n_candidates):
        total = float(lists.dense[c].astype(float) @ weights.dense) if weights.layout else 0.0
        for entries, known in ((lists.sparse, weights.sparse), (lists.phrases, weights.phrases)):
            total += sum(known.get(k, 0.0) * v for k, v in named_values(entries, c).items())
        found.append(total)
    return np.array(found)


def test_scores_and_choices_are_those_of_a_loop_over_names():
    weights = some_weights(1)
    wanted = plain_scores(LISTS, weights)
    np.testing.assert_allclose(scores(LISTS, weights), wanted, atol=1e-6)
    assert choice(LISTS, weights).tolist() == [int(np.argmax(wanted[s])) for s in slices(LISTS)]


def test_equals_are_chosen_as_they_stand():
    points = np.zeros(LISTS.n_candidates)
    assert best(points, LISTS).tolist() == [0] * len(LISTS)
    points[LISTS.starts[:-1] + 2] = 1.0
    points[LISTS.starts[:-1] + 4] = 1.0
    assert best(points, LISTS).tolist() == [2] * len(LISTS)


def test_candidates_with_the_same_entries_are_equal():
    # Differences of running sums would depend on what stands before.
    words, rng = [f"s_{j}" for j in range(5)], np.random.default_rng(1)
    weights = Weights((), [], dict(zip(words, rng.random(5), strict=True)))
    one = ("a", dict.fromkeys(words[:3], 1.0))
    found = lists_in_memory([[one, ("b", {words[4]: 1e6}), ("c", {}), one, one]] * 20)
    points = scores(found, weights).reshape(20, 5)
    assert (points[:, [0, 3, 4]] == points[0, 0]).all() and (points[:, 2] == 0.0).all()


def test_dense_weights_are_found_by_name_whatever_their_order():
    weights = some_weights(2)
    turned = weights.arranged(tuple(reversed(LAYOUT)))
    np.testing.assert_allclose(scores(LISTS, turned), scores(LISTS, weights), atol=1e-9)
    with pytest.raises(HopefearError, match="LM0"):
        scores(LISTS, Weights((("LM0", 2),), [1.0, 2.0]))


@pytest.mark.parametrize("dense", [True, False])
def test_added_scores_can_be_taken_apart_again(dense):
    model = some_weights(3) if dense else replace(some_weights(3), layout=(), dense=np.zeros(0))
    other = replace(some_weights(4), layout=(), dense=np.zeros(0), phrases={})
    longer = with_scores(LISTS, {"Model0": model, "Other0": other})
    assert longer.names == (*LISTS.names, "Model0", "Other0")
    np.testing.assert_allclose(longer.dense[:, -2], scores(LISTS, model), rtol=1e-5, atol=1e-5)
    on_top = replace(some_weights(5, longer.layout), sparse={"s_1": 2.0, "s_2": 1.0}, phrases={})
    apart = without_scores(on_top, {"Model0": model, "Other0": other})
    assert apart.layout == LAYOUT
    np.testing.assert_allclose(scores(LISTS, apart), scores(longer, on_top), atol=1e-4)


def test_what_cannot_be_scored_is_said():
    with pytest.raises(HopefearError, match="has a feature LM0 already"):
        with_scores(LISTS, {"LM0": some_weights(1)})
    with pytest.raises(HopefearError, match="phrase pairs"):
        scores(replace(LISTS, phrases=None), some_weights(1))
    no_sparse = replace(LISTS, sparse=None)
    assert np.isfinite(scores(no_sparse, some_weights(1))).all()

"""Costs in a growing corpus against plain Python: over whole passes, list by list."""

from __future__ import annotations

import numpy as np
import pytest
from tuning_plain import PlainCorpus, corpus_bleu, slices, small_lists

from hopefear.core.component import kernel
from hopefear.core.workspace import Example
from hopefear.costs.given import Given
from hopefear.costs.pseudo_corpus import PseudoCorpus, gain
from hopefear.data.lists.dataset import ListRows
from hopefear.metrics.lists import metric_named
from hopefear.translation.features import learned

pytestmark = pytest.mark.interpreted

BLEU = metric_named("bleu", tokenize="none")
LISTS = small_lists(15, 5, seed=2)


@kernel
def one_pass(pricing, rows, order, points, longest):
    """What the structure does once it has scored a list."""
    theta = np.zeros(longest)
    for n in range(order.size):
        i = order[n]
        size = rows.starts[i + 1] - rows.starts[i]
        theta[:size] = points[rows.starts[i] : rows.starts[i + 1]]
        pricing.update_costs(Example(rows, i), theta)


def writable(rows):
    return ListRows(*rows)._replace(costs=rows.costs.copy(), oracles=rows.oracles.copy())


@pytest.mark.parametrize("memory", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("enters", PseudoCorpus.choices["enters"])
def test_a_whole_pass_is_that_of_plain_python(enters, memory):
    rng = np.random.default_rng(5)
    rows = writable(learned(LISTS, BLEU, ("dense",)).rows)
    points = rng.normal(size=LISTS.n_candidates)
    counts = np.asarray(LISTS.counts, np.int32)
    kind = PseudoCorpus.choices["enters"].index(enters)
    pricing = PseudoCorpus(counts, np.ones(10), 11.0, memory, kind, 4.0)
    order = rng.permutation(len(LISTS))
    one_pass(pricing, rows, order, points, 5)
    plain, costs = PlainCorpus(11.0, memory, enters, 4.0), np.zeros(LISTS.n_candidates)
    where = slices(LISTS)
    for i in order:
        costs[where[i]] = plain.costs(counts[where[i]].astype(float), points[where[i]])
    np.testing.assert_allclose(rows.costs, costs, rtol=1e-12)
    np.testing.assert_allclose(pricing.background, plain.sums, rtol=1e-12)
    oracles = [int(np.argmin(costs[s])) for s in where]
    assert rows.oracles.tolist() == oracles
    if enters == "oracle":  # with all memory the corpus is the sum of all oracles
        sums = sum(counts[s][o].astype(float) for s, o in zip(where, oracles, strict=True))
        if memory == 1.0:
            np.testing.assert_allclose(pricing.background, 1.0 + sums)


def test_every_earlier_sentence_has_faded_once_more():
    rows = writable(learned(LISTS, BLEU, ("dense",)).rows)
    counts, zeros = np.asarray(LISTS.counts, np.int32), np.zeros(LISTS.n_candidates)
    pricing = PseudoCorpus(counts, np.zeros(10), 1.0, 0.9, 1, 1.0)  # the first enters: all points 0
    one_pass(pricing, rows, np.arange(2), zeros, 5)
    one, two = (counts[s][0].astype(float) for s in slices(LISTS)[:2])
    np.testing.assert_allclose(pricing.background, 0.81 * one + 0.9 * two, rtol=1e-12)


def test_a_fresh_corpus_of_ones_divides_by_nothing_that_is_zero():
    empty, nothing = np.zeros(10), np.ones(10)
    assert gain(nothing, empty) == 1.0  # one of everything, matched
    assert gain(nothing, np.array([0, 0, 0, 0, 0, 0, 0, 0, 0, 9])) == pytest.approx(
        10 * np.exp(1 - 10.0)
    )
    assert gain(np.zeros(10), empty) == 0.0
    assert gain(np.zeros(10), np.array([0, 0, 0, 0, 0, 0, 0, 0, 0, 9])) == 0.0


def test_gain_is_corpus_bleu_times_reference_length():
    rng = np.random.default_rng(1)
    for _ in range(50):
        candidate = LISTS.counts[rng.integers(LISTS.n_candidates)].astype(float)
        background = 20 * rng.random(10) + LISTS.counts[rng.integers(LISTS.n_candidates)]
        background[4:8] = np.maximum(background[4:8], background[:4])
        wanted = corpus_bleu(background + candidate) * (background + candidate)[9]
        assert gain(background, candidate) == pytest.approx(wanted, rel=1e-12)


def test_given_costs_stay():
    rows = writable(learned(LISTS, BLEU, ("dense",)).rows)
    before = rows.costs.copy(), rows.oracles.copy()
    one_pass(Given(), rows, np.arange(len(LISTS)), np.zeros(LISTS.n_candidates), 5)
    np.testing.assert_array_equal(before[0], rows.costs)
    np.testing.assert_array_equal(before[1], rows.oracles)

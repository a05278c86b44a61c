"""The best choice that lists allow, against all choices there are."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from tuning_plain import corpus_bleu, sentence_costs, slices, small_lists

from hopefear.metrics.lists import metric_named
from hopefear.translation.lists import tuning_metric
from hopefear.translation.task import corpus_oracle
from hopefear.translation.tuners.corpus import oracle_choice

pytestmark = pytest.mark.interpreted

BLEU = tuning_metric("bleu")


def value(metric, counts):
    found = float(metric.scores(counts.sum(axis=0))[metric.main])
    return found if metric.higher else -found


@pytest.mark.parametrize("metric", ["bleu", "chrf", "ter"])
@pytest.mark.parametrize("seed", range(8))
def test_no_single_exchange_helps_and_the_sentence_oracle_is_not_better(seed, metric):
    lists = small_lists(4, 4, seed, metric=metric)
    judge, where = tuning_metric(metric), slices(lists)
    first = lists.starts[:-1]
    chosen = oracle_choice(lists, judge)
    found = value(judge, lists.counts[first + chosen])
    alone = [int(np.argmin(judge.costs(lists.counts)[s])) for s in where]
    assert found >= value(judge, lists.counts[first + alone]) - 1e-9
    everything = [
        value(judge, lists.counts[first + np.array(one)])
        for one in itertools.product(*(range(s.stop - s.start) for s in where))
    ]
    assert found <= max(everything) + 1e-9
    # Exchanging one at a time may end below the best of all, but not far below.
    assert found >= max(everything) - 5.0
    for i in range(len(lists)):
        for c in range(4):
            other = chosen.copy()
            other[i] = c
            assert value(judge, lists.counts[first + other]) <= found + 1e-9
    assert corpus_oracle(lists, judge) == pytest.approx(abs(found))


def test_most_are_the_best_of_all():
    hits = 0
    for seed in range(12):
        lists = small_lists(4, 4, seed)
        first = lists.starts[:-1]
        found = corpus_bleu(lists.counts[first + oracle_choice(lists, BLEU)].sum(axis=0))
        best = max(
            corpus_bleu(lists.counts[first + np.array(one)].sum(axis=0))
            for one in itertools.product(range(4), repeat=4)
        )
        hits += found >= best - 1e-12
    assert hits >= 9


def test_costs_of_sentences_are_smoothed_bleu():
    lists = small_lists(6, 5)
    np.testing.assert_allclose(
        metric_named("bleu", tokenize="none").costs(lists.counts), sentence_costs(lists.counts)
    )

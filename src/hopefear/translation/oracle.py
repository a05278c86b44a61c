"""The best choice that lists allow, for metrics that are no sums over sentences."""

from __future__ import annotations

import numpy as np

from hopefear.data.lists.dataset import cheapest
from hopefear.data.moses.lists import TuningLists
from hopefear.metrics.lists import ListMetric
from hopefear.translation.tuners.quick_worth import quick_worth

_ROUNDS = 10


def oracle_choice(lists: TuningLists, metric: ListMetric) -> np.ndarray:
    """Position of a candidate of each list (int64) that together score high.

    Starts from the candidate of lowest cost of each list and exchanges one at a time while that
    gains: a lower bound of what is possible.

    Examples
    --------
    >>> from hopefear.metrics.lists import metric_named
    >>> from hopefear.translation.examples import tiny_lists
    >>> oracle_choice(tiny_lists(), metric_named("bleu", tokenize="none")).tolist()
    [1, 1]
    """
    assert lists.counts is not None
    counts, starts = lists.counts, lists.starts
    chosen = cheapest(metric.costs(counts), starts).astype(np.int64)
    value = quick_worth(metric)
    sums = counts[starts[:-1] + chosen].sum(axis=0, dtype=np.float64)
    for _ in range(_ROUNDS):
        moved = False
        for i in range(len(lists)):
            own = counts[starts[i] : starts[i + 1]].astype(np.float64)
            rest = sums - own[chosen[i]]
            worth = value(rest + own)
            best = int(worth.argmax())
            if worth[best] > worth[chosen[i]]:
                chosen[i], sums, moved = best, rest + own[best], True
        if not moved:
            break
    return chosen

"""A choice from all lists: what it is worth, the best there is, what candidates cost beside it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from hopefear.core.component import kernel
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dataset import cheapest, counts_of
from hopefear.errors import HopefearError
from hopefear.metrics.lists import Bleu, ListMetric
from hopefear.metrics.lists.bleu import ORDERS

if TYPE_CHECKING:
    from hopefear.translation.tuners.problem import TuningProblem

Worth = Callable[[np.ndarray], np.ndarray]  # sums [m, S] to numbers [m], more is better


def quick_worth(metric: ListMetric) -> Worth:
    """Returns a function of sums: the metric's main score, higher is better; a kernel for BLEU.

    >>> from hopefear.metrics.lists import Ter
    >>> quick_worth(Ter())(np.array([[1.0, 4.0]])).tolist()
    [-25.0]
    """
    if isinstance(metric, Bleu):
        return _bleu

    def worth(sums: np.ndarray) -> np.ndarray:
        scores = np.asarray(metric.scores(sums)[metric.main])
        return scores if metric.higher else -scores

    return worth


@kernel
def _bleu(sums):
    """Corpus BLEU as sacreBLEU smooths it, without a logarithm."""
    scores = np.zeros(len(sums))
    for k in range(len(sums)):
        product, missed, hit = 1.0, 1.0, False
        for n in range(ORDERS):
            matches, total = float(sums[k, n]), sums[k, ORDERS + n]
            if total == 0:
                product = 0.0
                break
            if matches > 0.0:
                hit = True
            else:
                missed *= 0.5
                matches = missed
            product *= matches / total
        length, reference = sums[k, 2 * ORDERS], sums[k, 2 * ORDERS + 1]
        if hit and length > 0:
            brevity = 1.0 if length >= reference else math.exp(1.0 - reference / length)
            scores[k] = 100.0 * brevity * math.sqrt(math.sqrt(product))
    return scores


_BLOCK = 1 << 16  # candidates whose sums are in memory at a time
_SWEEPS = 10  # over the lists, for oracles; two or three settle them


def corpus_costs(problem: TuningProblem, share: float = 1.0) -> np.ndarray:
    """Returns the loss of a corpus of oracles when a candidate replaces its list's oracle.

    ``share * loss of the corpus + (1 - share) * cost of the sentence``

    Parameters
    ----------
    share : float
        0: the costs there are. 1: only what happens to the corpus counts, in which a length or a
        rare match is worth what it is worth there.

    Notes
    -----
    Metrics of sentences reward what a corpus does not: those who tune on sentence BLEU get
    translations that are too short (Nakov, Guzmán and Vogel, 2012). Losses of the corpus are
    stretched so that they scatter within lists as much as the costs do. The corpus is one of
    oracles, not of best candidates, whose length may be far from that of the references: then one
    word more or less would outweigh everything else.

    Examples
    --------
    >>> from hopefear.data.lists.dataset import ListDataset, ListRows
    >>> from hopefear.metrics.lists import GivenCost
    >>> from hopefear.translation.tuners.problem import TuningProblem
    >>> rows = ListRows([0, 2], [0, 1], [7], [0, 0, 1], [0], [1.0], [0, 0], [0.5, 0], [1], [1])
    >>> problem = TuningProblem(ListDataset(rows), GivenCost(), np.zeros(8))
    >>> corpus_costs(problem).tolist()
    [0.5, 0.0]
    """
    if not 0.0 <= share <= 1.0:
        raise HopefearError(f"the share of the corpus in costs is from 0 to 1, not {share:g}")
    costs = problem.data.rows.costs
    if share == 0.0 or not len(costs):
        return costs
    losses = _losses(problem)
    wide = spread_within(losses, problem.data.rows.starts)
    if wide == 0.0:
        return costs
    losses *= spread_within(costs, problem.data.rows.starts) / wide
    return share * losses + (1.0 - share) * costs


def _losses(problem: TuningProblem) -> np.ndarray:
    rows = problem.data.rows
    counts, worth = counts_of(problem.data, problem.metric), quick_worth(problem.metric)
    lengths = np.diff(rows.starts)
    choice = rows.starts[:-1] + rows.oracles
    owners = np.repeat(np.arange(len(lengths)), lengths)
    losses, kind = np.zeros(len(owners)), "f8" if counts.dtype.kind == "f" else "i8"
    for _ in range(_SWEEPS):
        chosen_counts = counts[choice].astype(kind)
        corpus_counts = chosen_counts.sum(axis=0)
        for a in range(0, len(owners), _BLOCK):
            block = slice(a, a + _BLOCK)
            losses[block] = -worth(corpus_counts - chosen_counts[owners[block]] + counts[block])
        better = rows.starts[:-1] + cheapest(losses, rows.starts)
        if (losses[better] == losses[choice]).all():
            break
        choice = better
    return losses - float(np.min(losses))


def spread_within(values: np.ndarray, starts: np.ndarray) -> float:
    """Root mean square of what the values of a list differ from their mean.

    >>> spread_within(np.array([1.0, 3.0, 7.0, 9.0]), np.array([0, 2, 4]))
    1.0
    """
    lengths = np.diff(starts)
    means = np.add.reduceat(values, starts[:-1]) / lengths
    return float(np.sqrt(np.mean(np.square(values - np.repeat(means, lengths)))))


_ROUNDS = 10


def oracle_choice(lists: CandidateLists, metric: ListMetric) -> np.ndarray:
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
    choice = cheapest(metric.costs(counts), starts).astype(np.int64)
    value = quick_worth(metric)
    sums = counts[starts[:-1] + choice].sum(axis=0, dtype=np.float64)
    for _ in range(_ROUNDS):
        better = False
        for i in range(len(lists)):
            list_counts = counts[starts[i] : starts[i + 1]].astype(np.float64)
            sums_without = sums - list_counts[choice[i]]
            worth = value(sums_without + list_counts)
            best = int(worth.argmax())
            if worth[best] > worth[choice[i]]:
                choice[i], sums, better = best, sums_without + list_counts[best], True
        if not better:
            break
    return choice

"""How good a choice from lists of candidates is, beside what the lists allow."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hopefear.errors import HopefearError
from hopefear.metrics.lists.base import ListMetric, checked_starts, columns_of
from hopefear.metrics.lists.choices import first_lowest, numbered, ranks, values_of
from hopefear.metrics.lists.comparing import Resampled, paired_tests
from hopefear.metrics.lists.given import GivenCost
from hopefear.metrics.lists.result import Choice, ListScores
from hopefear.metrics.significance import confidence_interval


def evaluate_lists(
    metric: ListMetric,
    counts: ArrayLike | None,
    starts: ArrayLike,
    chosen: ArrayLike,
    costs: ArrayLike | None = None,
    *,
    scores: ArrayLike | None = None,
    model_scores: ArrayLike | None = None,
    n_references: int = 1,
    samples: int = 1000,
    seed: int = 1,
) -> ListScores:
    """Score the candidates a model chose, the generator's own, the best and the worst ones.

    Parameters
    ----------
    metric : ListMetric
        Turns summed counts into scores.
    counts : array [candidates, S], optional
        What the metric counted; not needed where costs are given and the metric is ``cost``.
    starts : int array
        List i has the candidates ``starts[i] .. starts[i + 1] - 1``.
    chosen : int array
        Position of the chosen candidate in each list.
    costs : float array, optional
        Cost of each candidate; ``metric.costs(counts)`` otherwise.
    scores : float array, optional
        What the generator thought of each candidate; more is better. Without them it thought
        best of the first.
    model_scores : float array, optional
        What the model thinks of each candidate; only the rank of the oracle asks for it.
    n_references : int
        References of a list, for the signature; -1 where lists have different numbers.
    samples : int
        Resamples of whole lists behind bounds and p-values; more make them steadier.
    seed : int
        Same seed, same bounds.

    Notes
    -----
    The oracle is the candidate of lowest cost of each list, the first of equals: the usual
    sentence-level oracle. For scores that are no sums over sentences (F, BLEU) another choice
    may score a little higher.

    Examples
    --------
    >>> from hopefear.metrics.lists import WordErrors
    >>> counts = [[1, 4], [0, 4], [1, 4], [2, 4]]
    >>> found = evaluate_lists(WordErrors(), counts, [0, 2, 4], [1, 0], samples=100)
    >>> found.model.scores, found.baseline.scores, found.worst.scores, found.gap_closed
    ({'wer': 12.5}, {'wer': 25.0}, {'wer': 37.5}, 100.0)
    """
    rows = _rows(metric, counts, costs)
    starts = checked_starts(starts, len(rows))
    if len(starts) == 1:
        raise HopefearError(f"no lists to score with {metric.name}; give at least one")
    cost = values_of(metric.costs(rows) if costs is None else costs, len(rows), "costs")
    opinion = None if scores is None else values_of(scores, len(rows), "scores")
    model = numbered(chosen, starts)
    oracle = first_lowest(cost, starts)
    baseline = starts[:-1] if opinion is None else first_lowest(-opinion, starts)
    worst = first_lowest(-cost, starts)
    given = np.zeros(len(rows)) if opinion is None else opinion
    return ListScores(
        metric,
        model=_choice(metric, rows[model], samples, seed),
        baseline=_choice(metric, rows[baseline], samples, seed),
        oracle=_choice(metric, rows[oracle], samples, seed),
        worst=_choice(metric, rows[worst], samples, seed),
        test=paired_tests(metric, rows[model], rows[baseline], metric.main, samples, seed),
        oracle_rate=100.0 * float(np.mean(cost[model] == cost[oracle])),
        baseline_oracle_rate=100.0 * float(np.mean(cost[baseline] == cost[oracle])),
        oracle_rank=_mean_rank(model_scores, starts, oracle),
        baseline_oracle_rank=float(ranks(given, starts, oracle).mean()),
        better=int(np.sum(cost[model] < cost[baseline])),
        worse=int(np.sum(cost[model] > cost[baseline])),
        lists=len(starts) - 1,
        candidates=len(rows),
        samples=samples,
        seed=seed,
        n_references=n_references,
    )


def _rows(metric: ListMetric, counts: ArrayLike | None, costs: ArrayLike | None) -> NDArray:
    if counts is None and costs is not None and isinstance(metric, GivenCost):
        counts = metric.counts_of(costs)
    if counts is None:
        raise HopefearError(
            f"{metric.name} needs the counts of the candidates; count them with the metric, "
            "or score given costs with the metric cost"
        )
    return np.moveaxis(columns_of(counts, metric), 0, -1)


def _choice(metric: ListMetric, rows: NDArray, samples: int, seed: int) -> Choice:
    interval = confidence_interval(
        Resampled(metric), rows, metric.main, replicates=samples, seed=seed
    )
    return Choice(metric.scores(rows.sum(axis=0)), interval.low, interval.high)


def _mean_rank(scores: ArrayLike | None, starts: NDArray, oracle: NDArray) -> float | None:
    if scores is None:
        return None
    found = values_of(scores, int(starts[-1]), "model_scores")
    return float(ranks(found, starts, oracle).mean())

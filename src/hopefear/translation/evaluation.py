"""What weights are worth on lists: the candidates they put first, beside the decoder's."""

from __future__ import annotations

from typing import Any

from hopefear.data.moses.lists import TuningLists
from hopefear.metrics.lists import ListMetric, ListScores, compare_lists, evaluate_lists
from hopefear.translation.reading import tuning_metric
from hopefear.translation.scoring import best, scores
from hopefear.translation.tune import best_possible
from hopefear.translation.tune_checks import check_lists
from hopefear.translation.weights import Weights


def evaluate(
    lists: TuningLists,
    weights: Weights,
    *,
    metric: str | ListMetric = "bleu",
    samples: int = 1000,
    seed: int = 1,
) -> ListScores:
    """Scores of the candidates that weights put first, the decoder's, and the best there are.

    Parameters
    ----------
    lists : TuningLists
        Candidates with counts of the metric.
    weights : Weights
        What chooses.
    metric : str or ListMetric
        The metric behind the counts.
    samples, seed : int
        Resamples behind bounds and p-values.

    Examples
    --------
    >>> from hopefear.translation.examples import tiny_lists
    >>> weights = Weights((("LM0", 1), ("TM0", 2)), [0.0, 0.0, 1.0])
    >>> round(evaluate(tiny_lists(), weights, samples=10).model.scores["bleu"], 1)
    52.0
    """
    judge = tuning_metric(metric)
    check_lists(lists, judge)
    points = scores(lists, weights)
    return evaluate_lists(
        judge,
        lists.counts,
        lists.starts,
        best(points, lists),
        scores=lists.scores,
        model_scores=points,
        n_references=lists.n_references,
        samples=samples,
        seed=seed,
    )


def corpus_score(lists: TuningLists, weights: Weights, metric: str | ListMetric = "bleu") -> float:
    """The main score of the candidates that weights put first, and nothing else of them.

    Examples
    --------
    >>> from hopefear.translation.examples import tiny_lists
    >>> round(corpus_score(tiny_lists(), Weights((("LM0", 1), ("TM0", 2)), [0.0, 0.0, 1.0])), 1)
    52.0
    """
    judge = tuning_metric(metric)
    check_lists(lists, judge)
    assert lists.counts is not None
    chosen = lists.starts[:-1] + best(scores(lists, weights), lists)
    return float(judge.scores(lists.counts[chosen].sum(axis=0))[judge.main])


def corpus_oracle(lists: TuningLists, metric: str | ListMetric = "bleu") -> float:
    """The highest score of a choice from the lists that exchanging one at a time finds."""
    judge = tuning_metric(metric)
    check_lists(lists, judge)
    return best_possible(lists, judge)


def compare(
    lists: TuningLists,
    first: Weights,
    second: Weights,
    *,
    metric: str | ListMetric = "bleu",
    samples: int = 1000,
    seed: int = 1,
) -> dict[str, Any]:
    """Paired tests of two weights on the same lists, as `compare_lists` gives them."""
    judge = tuning_metric(metric)
    check_lists(lists, judge)
    assert lists.counts is not None
    chosen = [best(scores(lists, weights), lists) for weights in (first, second)]
    return compare_lists(judge, lists.counts, lists.starts, *chosen, samples=samples, seed=seed)

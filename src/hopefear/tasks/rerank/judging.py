"""How good choices from lists are, by the metric that the lists were judged by."""

from __future__ import annotations

import numpy as np

from hopefear.data.lists.dataset import ListDataset
from hopefear.errors import HopefearError
from hopefear.metrics.lists import GivenCost, ListMetric, metric_named


def metric_of(metric: str | ListMetric | None, data: ListDataset) -> ListMetric:
    """The metric meant; it must be the one the data was judged by."""
    judge = metric_named(metric or data.metric) if not isinstance(metric, ListMetric) else metric
    if judge.name not in (data.metric, "cost"):
        raise HopefearError(
            f"{data.source} was judged by {data.metric}, not by {judge.name}; make the dataset "
            f"with metric={judge.name!r}"
        )
    return judge


def counts_of(data: ListDataset, metric: ListMetric) -> np.ndarray:
    """What the metric counts, for every candidate."""
    if isinstance(metric, GivenCost):
        return metric.statistics_of(data.rows.costs)
    if data.counts is None:
        raise HopefearError(
            f"{data.source}: its candidates have no counts of {metric.name}; make the dataset with "
            f"metric={metric.name!r}"
        )
    return data.counts


def scores(data: ListDataset, best: np.ndarray, metric: ListMetric) -> dict[str, float]:
    """Scores of a choice: the metric's, and how often it is as cheap as the oracle, in percent."""
    rows, first = data.rows, data.rows.starts[:-1]
    values = dict(metric.scores(counts_of(data, metric)[first + best].sum(axis=0)))
    right = rows.costs[first + best] == rows.costs[first + rows.oracles]
    return {**values, "oracle_rate": 100.0 * float(right.mean()) if len(right) else 0.0}


def score_names(metric: ListMetric, data: ListDataset) -> tuple[str, ...]:
    """Names of the scores that a reranker gets."""
    return tuple(scores(data, np.asarray(data.rows.oracles, np.int64), metric))


def limits(data: ListDataset, metric: ListMetric) -> dict[str, float]:
    """Returns the main score of the generator's first choices and of the oracle."""
    rows, main = data.rows, metric.main
    choices = {"baseline": data.first_choices, "oracle": np.asarray(rows.oracles, np.int64)}
    return {f"{who}_{main}": scores(data, best, metric)[main] for who, best in choices.items()}

"""Candidates against references: statistics, costs of each, scores of a choice, how sure they are.

A `ListMetric` counts each candidate once. From these statistics come the costs that learners train
on, and, summed over the chosen candidates, the scores that people read: sacreBLEU's for BLEU, chrF
and TER, EVALB's for parses.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from hopefear.errors import HopefearError
from hopefear.metrics.base import GivenCost, ListMetric
from hopefear.metrics.lists.bleu import Bleu
from hopefear.metrics.lists.evaluation import ListScores, compare_lists, evaluate_lists
from hopefear.metrics.lists.texts import CharacterErrors, Chrf, Ter, WordErrors, WordF1
from hopefear.metrics.parseval import Parseval

__all__ = [
    "LIST_METRICS",
    "Bleu",
    "CharacterErrors",
    "Chrf",
    "GivenCost",
    "ListMetric",
    "ListScores",
    "Parseval",
    "Ter",
    "WordErrors",
    "WordF1",
    "compare_lists",
    "evaluate_lists",
    "metric_named",
]

LIST_METRICS: dict[str, type[ListMetric]] = {
    metric.name: metric
    for metric in (GivenCost, Parseval, Bleu, Chrf, Ter, WordErrors, CharacterErrors, WordF1)
}


def metric_named(name: str, **parameters: Any) -> ListMetric:
    """Returns the metric of candidates called ``name``, with these parameters and its defaults.

    Examples
    --------
    >>> metric_named("bleu", smoothing="exp").cost_signature()
    'cost:bleu(smoothing=exp,tokenize=13a,lowercase=False)'
    """
    if name not in LIST_METRICS:
        raise HopefearError(f"no metric {name!r}; choose one of {', '.join(LIST_METRICS)}")
    kind = LIST_METRICS[name]
    names = [field.name for field in fields(kind)]
    for parameter in parameters:
        if parameter not in names:
            takes = f"it takes {', '.join(names)}" if names else "it takes none"
            raise HopefearError(f"metric {name} has no parameter {parameter!r}; {takes}")
    return kind(**parameters)

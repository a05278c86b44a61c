"""Metrics of candidates by name."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from hopefear.errors import HopefearError
from hopefear.metrics.lists.base import ListMetric
from hopefear.metrics.lists.bleu import Bleu
from hopefear.metrics.lists.chrf import Chrf
from hopefear.metrics.lists.edits import CharacterErrors, Ter, WordErrors
from hopefear.metrics.lists.fmeasure import Brackets, WordF1
from hopefear.metrics.lists.given import GivenCost

LIST_METRICS: dict[str, type[ListMetric]] = {
    metric.name: metric
    for metric in (GivenCost, Brackets, Bleu, Chrf, Ter, WordErrors, CharacterErrors, WordF1)
}


def metric_named(name: str, **parameters: Any) -> ListMetric:
    """The metric of candidates called ``name``, with these parameters and defaults for others.

    Examples
    --------
    >>> metric_named("bleu", smoothing="exp").cost_signature()
    'cost:bleu(smoothing=exp,tokenize=13a,lowercase=False)'
    """
    if name not in LIST_METRICS:
        raise HopefearError(f"no metric {name!r}; choose one of {', '.join(LIST_METRICS)}")
    kind = LIST_METRICS[name]
    known = [field.name for field in fields(kind)]
    for parameter in parameters:
        if parameter not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise HopefearError(f"metric {name} has no parameter {parameter!r}; {takes}")
    return kind(**parameters)

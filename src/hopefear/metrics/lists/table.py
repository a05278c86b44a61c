"""Metrics of candidates by name, and the fastest counter of each."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from hopefear.errors import HopefearError
from hopefear.metrics.lists.base import GivenCost, ListMetric
from hopefear.metrics.lists.bleu import Bleu, BleuCounts
from hopefear.metrics.lists.chrf import Chrf
from hopefear.metrics.lists.edits import CharacterErrors, Ter, WordErrors
from hopefear.metrics.lists.fmeasure import Brackets, WordF1
from hopefear.metrics.lists.text import LineCounts, TextMetric

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
    names = [field.name for field in fields(kind)]
    for parameter in parameters:
        if parameter not in names:
            takes = f"it takes {', '.join(names)}" if names else "it takes none"
            raise HopefearError(f"metric {name} has no parameter {parameter!r}; {takes}")
    return kind(**parameters)


@dataclass(frozen=True)
class BleuLineCounts(LineCounts):
    """Counts of `Bleu` from text that may have to be split or lowered first."""

    metric: Bleu = field(default_factory=Bleu)


@dataclass(frozen=True)
class ChrfCounts(LineCounts):
    """Counts of `Chrf` from text."""

    metric: Chrf = field(default_factory=Chrf)


@dataclass(frozen=True)
class TerCounts(LineCounts):
    """Counts of `Ter` from text."""

    metric: Ter = field(default_factory=Ter)


def counts_for(metric: ListMetric) -> BleuCounts | LineCounts:
    """Who counts for a metric while lists are read.

    Parameters
    ----------
    metric : ListMetric
        BLEU, chrF and TER are counted in kernels; text that sacreBLEU must split or mend first
        goes through its Python. Other metrics of text are counted in Python altogether.

    Examples
    --------
    >>> counts_for(Bleu(tokenize="none"))
    BleuCounts()
    >>> counts_for(Chrf(word_order=2))
    ChrfCounts(metric=Chrf(char_order=6, word_order=2, beta=2, lowercase=False))
    """
    if isinstance(metric, Bleu):
        if metric.tokenize == "none" and not metric.lowercase:
            return BleuCounts()
        return BleuLineCounts(metric)
    if isinstance(metric, Chrf):
        return ChrfCounts(metric)
    if isinstance(metric, Ter):
        return TerCounts(metric)
    if isinstance(metric, TextMetric):
        return LineCounts(metric)
    raise HopefearError(
        f"{metric.name} is not counted from translations and references: {metric.made_by}; choose "
        "bleu, chrf, ter, wer, edit or f1"
    )

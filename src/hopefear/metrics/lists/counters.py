"""The fastest counter of each metric of translations."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np

from hopefear.errors import HopefearError
from hopefear.metrics.lists.base import Counts, ListMetric
from hopefear.metrics.lists.bleu import Bleu
from hopefear.metrics.lists.bleu_counts import BleuCounts
from hopefear.metrics.lists.chrf import Chrf
from hopefear.metrics.lists.chrf_counts import ChrfCounts
from hopefear.metrics.lists.edits import Ter
from hopefear.metrics.lists.lines import LineCounts, Lines
from hopefear.metrics.lists.ter_counts import TerCounts
from hopefear.metrics.lists.text import TextMetric


@dataclass(frozen=True)
class BleuLineCounts(LineCounts):
    """Counts of `Bleu` from text: sacreBLEU's tokenizer in Python, the counting in a kernel.

    Parameters
    ----------
    metric : Bleu
        What to count; the counts are equal to its own. With ``tokenize="none"`` and the case as
        it is, `BleuCounts` need not look at the text.

    Examples
    --------
    >>> BleuLineCounts().counts_by_list(["Hope, fear."], [0, 1], [["Hope, fear!"]]).tolist()
    [[3, 2, 1, 0, 4, 3, 2, 1, 4, 4]]
    """

    metric: Bleu = field(default_factory=Bleu)

    def _counts(self, ours: Lines, which: np.ndarray, gold: Lines, starts: np.ndarray) -> Counts:
        sides = []
        for lines in (ours, gold):
            if self.metric.tokenize != "none":
                lines = lines.changed(self._normal)
            elif self.metric.lowercase:
                lines = lines.lowered()
            units = lines.units()
            sides += [units.word_numbers(), units.word_ptr]
        return BleuCounts().word_counts(sides[0], sides[1], which, sides[2], sides[3], starts)

    def _normal(self, line: str) -> str:
        return " ".join(self.metric.words(line))


@dataclass(frozen=True)
class PlainCounts(LineCounts):
    """Counts of any metric of text, by its own means, in Python.

    Parameters
    ----------
    metric : TextMetric
        What to count.

    Examples
    --------
    >>> from hopefear.metrics.lists import WordErrors
    >>> PlainCounts(WordErrors()).counts_by_list(["a b c"], [0, 1], [["a b d"]]).tolist()
    [[1, 3]]
    """

    metric: TextMetric

    def _counts(self, ours: Lines, which: np.ndarray, gold: Lines, starts: np.ndarray) -> Counts:
        lines = gold.strings()
        sets = [lines[a:b] for a, b in itertools.pairwise(starts)]
        return self.metric.counts(ours.strings(), [sets[i] for i in which])


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
        return PlainCounts(metric)
    raise HopefearError(
        f"{metric.name} is not counted from translations and references: {metric.made_by}; choose "
        "bleu, chrf, ter, wer, edit or f1"
    )

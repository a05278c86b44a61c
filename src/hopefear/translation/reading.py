"""N-best lists of Moses as tuning wants them: with what a metric counts, in one call."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from hopefear.data.moses.lists import TuningLists
from hopefear.data.moses.reading import read_moses
from hopefear.metrics.lists import ListMetric, metric_named
from hopefear.metrics.lists.table import counts_for
from hopefear.translation.derived import check_groups, derived

Path = str | os.PathLike[str]


def tuning_metric(metric: str | ListMetric = "bleu") -> ListMetric:
    """The metric meant, of text that is split into words already.

    >>> tuning_metric("bleu").tokenize
    'none'
    """
    if isinstance(metric, ListMetric):
        return metric
    return metric_named(metric, **({"tokenize": "none"} if metric == "bleu" else {}))


def read(
    nbest: Path | Sequence[Path],
    refs: Path | Sequence[Path],
    *,
    metric: str | ListMetric = "bleu",
    source: Path | None = None,
    derive: Sequence[str] = (),
    **more: Any,
) -> TuningLists:
    """Read lists and compare their candidates with references.

    Parameters
    ----------
    nbest : path or sequence of paths
        N-best lists in the format of Moses; several, as of several rounds, are merged.
    refs : path or sequence of paths
        References, one file for each.
    metric : str or ListMetric
        ``bleu``, ``chrf``, ``ter``, or any metric of text; BLEU by name is that of words as they
        are, and ``Bleu()`` splits them as sacreBLEU does.
    source : path, optional
        The sentences that were translated; with them phrase pairs are read too.
    derive : sequence of {"consensus", "ngrams"}
        Features to make from the words of candidates, which are kept then; see
        :mod:`hopefear.translation.derived`.
    more
        As in :func:`hopefear.data.moses.reading.read_moses`.
    """
    check_groups(derive)
    if derive:
        more["texts"] = True
    counter = counts_for(tuning_metric(metric))
    phrases = source is not None
    lists = read_moses(nbest, refs, metric=counter, source=source, phrases=phrases, **more)
    return derived(lists, derive)

"""References for lists that are in memory already."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from hopefear.core.arrays import Strings, frozen
from hopefear.data.moses.lists import TuningLists
from hopefear.errors import HopefearError
from hopefear.metrics.lists import Bleu, ListMetric
from hopefear.metrics.lists.table import BleuLineCounts, counts_for
from hopefear.metrics.lists.text import LineCounts
from hopefear.translation.reading import tuning_metric

Reference = str | Sequence[str]


def counted(
    lists: TuningLists, references: Iterable[Reference], metric: str | ListMetric = "bleu"
) -> TuningLists:
    """The lists with counts of their candidates against these references.

    Parameters
    ----------
    lists : TuningLists
        With texts.
    references : iterable of str or of sequences of str
        Entry i, from 0, is for the list with id i: one reference or several.
    metric : str or ListMetric
        What counts: ``bleu``, ``chrf``, ``ter`` or another metric of text.

    Examples
    --------
    >>> from hopefear.translation.memory import lists_in_memory
    >>> lists = lists_in_memory([[("a b", {"LM0": -1.0}), ("a c", {"LM0": -2.0})]])
    >>> counted(lists, ["a c"], "ter").counts.tolist()
    [[1, 2], [0, 2]]
    """
    if lists.texts is None:
        raise HopefearError(
            f"{lists.source}: candidates without their words cannot be compared with references; "
            "read the lists with texts=True"
        )
    judge = tuning_metric(metric)
    sets = [_several(i, one) for i, one in enumerate(references)]
    _check_number(lists, len(sets))
    gold = Strings.pack(text for several in sets for text in several)
    counts = _counter(judge).text_counts(
        lists.texts.text,
        lists.texts.offsets[:-1],
        lists.texts.offsets[1:],
        np.repeat(lists.ids, np.diff(lists.starts)),
        gold.text,
        gold.offsets[:-1],
        gold.offsets[1:],
        np.cumsum([0, *map(len, sets)]),
    )
    numbers = {len(several) for several in sets}
    return replace(
        lists,
        counts=frozen(counts),
        metric=judge.name,
        columns=judge.columns,
        n_references=numbers.pop() if len(numbers) == 1 else -1,
    )


def _counter(metric: ListMetric) -> LineCounts:
    found = counts_for(metric)
    if isinstance(found, LineCounts):
        return found
    assert isinstance(metric, Bleu)
    return BleuLineCounts(metric)


def _several(i: int, one: Reference) -> list[str]:
    several = [one] if isinstance(one, str) else list(one) if isinstance(one, list | tuple) else []
    if not several or not all(isinstance(text, str) for text in several):
        raise HopefearError(f"references[{i}]: expected a text or a list of texts, found {one!r}")
    if not any(text.strip() for text in several):
        raise HopefearError(f"references[{i}] is empty; give a reference, or leave the list out")
    return several


def _check_number(lists: TuningLists, n: int) -> None:
    """There must be references for all lists, and where ids have no gaps no others."""
    following = int(lists.ids[-1]) + 1 if len(lists) else 0
    if n < following or (n > following and len(lists) == following):
        raise HopefearError(
            f"{lists.source} has {len(lists)} lists (ids up to {following - 1}), and there are "
            f"references for {n}; give one entry for each"
        )

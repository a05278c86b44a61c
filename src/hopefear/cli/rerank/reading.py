"""Files of lists on their way in: by the metric asked for, or as a model wants them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dedup import kept, without_copies
from hopefear.data.lists.files import read_lists
from hopefear.data.lists.kinds import UnjudgedError
from hopefear.data.report import ReadReport
from hopefear.errors import HopefearError
from hopefear.metrics.lists import ListMetric, metric_named
from hopefear.metrics.lists.counters import counts_for
from hopefear.metrics.lists.text import TextMetric
from hopefear.recipes.base import number
from hopefear.tasks.rerank.model import RerankModel


def metric_asked(
    name: str | None, options: Sequence[tuple[str, str]], refs: Sequence[str] | None = None
) -> ListMetric | None:
    """The metric of ``--metric`` and ``--metric-option``; None where files bring their costs.

    Of lists of Moses, which are split into words, with ``--refs`` it is BLEU unless said.

    >>> metric_asked("bleu", [("lowercase", "true")]).lowercase
    True
    """
    if name is None:
        if options:
            raise HopefearError("--metric-option belongs to a metric: give --metric NAME too")
        return None if refs is None else metric_named("bleu", tokenize="none")
    usual = metric_named(name).parameters()
    given = dict(options)
    for key, text in options:
        like = usual.get(key, "")  # what a metric does not know, it refuses itself
        if not isinstance(like, str):
            given[key] = number(key, text, 0.0 if like is None else like)
    return metric_named(name, **given)


def judged_blocks(
    path: str,
    metric: ListMetric | None,
    report: ReadReport,
    gold: str | None = None,
    option: str = "--gold",
    refs: Sequence[str] | None = None,
    **how: Any,
) -> Iterator[CandidateLists]:
    """Blocks of a file in which every candidate must have a cost.

    Parameters
    ----------
    path : str
        The file.
    metric : ListMetric, optional
        Makes the costs; None takes those of the file.
    report : ReadReport
        Where lists are counted.
    gold, option : str
        The file of gold trees, if there is one, and the option that gives it.
    refs : sequence of str, optional
        Files of references, for lists of Moses.
    **how
        As :func:`hopefear.data.lists.files.read_lists` has it.
    """
    try:
        if refs is not None and isinstance(metric, TextMetric):
            how["counter"] = counts_for(metric)
        yield from read_lists(
            path, metric=metric, require_costs=True, gold=gold, refs=refs, report=report, **how
        )
    except UnjudgedError as error:
        if error.format == "bllip":
            raise HopefearError(f"{error}; give them with {option} FILE") from error
        if error.format == "moses" and refs is None:
            raise HopefearError(
                f"{error}; give them with {option.replace('gold', 'refs')} FILE"
            ) from error
        if error.format == "json" and metric is None:
            raise HopefearError(
                f"{error}; --metric NAME makes them of texts and references"
            ) from error
        raise


def reading_of(model: RerankModel) -> dict[str, Any]:
    """How the training data of a model was read; models made elsewhere may not say."""
    return {"dedup": "first", **model.about.get("reading", {})}


def seen_by_model(block: CandidateLists, policy: str) -> tuple[CandidateLists, np.ndarray]:
    """The block as a model sees it, and where its candidates stand in the lists of the file.

    >>> block = CandidateLists(["a"], np.array([0, 3]), ["x", "x", "y"], np.zeros(3))
    >>> seen_by_model(block, "first")[1].tolist()
    [0, 2]
    """
    keep = without_copies(block, policy)
    lengths = np.diff(block.starts)
    places = np.arange(block.n_candidates) - np.repeat(block.starts[:-1], lengths)
    return kept(block, keep), places[keep]

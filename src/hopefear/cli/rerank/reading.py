"""Files of lists on their way in: by the metric asked for, or as a model wants them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hopefear.data.candidates import CandidateLists
from hopefear.data.dedup import deduplicated
from hopefear.data.list_files import read_lists
from hopefear.data.report import ReadReport
from hopefear.errors import HopefearError, InputError
from hopefear.list_model import RerankModel
from hopefear.metrics.lists import ListMetric, metric_named
from hopefear.metrics.lists.text import TextMetric
from hopefear.recipes.base import number


def metric_asked(name: str | None, options: Sequence[tuple[str, str]]) -> ListMetric | None:
    """The metric of ``--metric`` and ``--metric-option``; None where files bring their costs.

    >>> metric_asked("bleu", [("lowercase", "true")]).lowercase
    True
    """
    if name is None:
        if options:
            raise HopefearError("--metric-option belongs to a metric: give --metric NAME too")
        return None
    usual = metric_named(name).parameters()
    given = dict(options)
    for key, text in options:
        like = usual.get(key, "")  # what a metric does not know, it refuses itself
        if not isinstance(like, str):
            given[key] = number(key, text, 0.0 if like is None else like)
    return metric_named(name, **given)


def judged_blocks(
    path: str, metric: ListMetric | None, report: ReadReport, **how: Any
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
    **how
        As :func:`hopefear.data.list_files.read_lists` has it.
    """
    of_texts = metric if isinstance(metric, TextMetric) else None
    blocks = read_lists(path, metric=of_texts, require_costs=True, report=report, **how)
    try:
        for block in blocks:
            if of_texts is not None and block.trees is not None:
                raise HopefearError(
                    f"{path}: --metric {of_texts.name} is for texts, and these candidates are "
                    "trees; leave it out to have F1 of brackets"
                )
            yield block
    except InputError as error:
        if metric is None and ": expected costs in " in str(error):
            raise HopefearError(
                f"{error}; --metric NAME makes costs of texts and references, and --gold FILE of "
                "trees"
            ) from error
        raise


def reading_of(model: RerankModel) -> dict[str, Any]:
    """How the training data of a model was read; models made elsewhere may not say."""
    return {"dedup": "first", **model.about.get("reading", {})}


def without_copies(block: CandidateLists, policy: str) -> tuple[CandidateLists, np.ndarray]:
    """The block as a model sees it, and where its candidates stand in the lists of the file.

    >>> block = CandidateLists(["a"], np.array([0, 3]), ["x", "x", "y"], np.zeros(3))
    >>> without_copies(block, "first")[1].tolist()
    [0, 2]
    """
    lengths = np.diff(block.starts)
    places = np.arange(block.n_candidates) - np.repeat(block.starts[:-1], lengths)
    # Costs follow their candidates and decide nothing: they carry the places through.
    marked = deduplicated(replace(block, costs=places.astype(np.float64)), policy)
    assert marked.costs is not None
    return replace(marked, costs=None, counts=None), marked.costs.astype(np.int64)

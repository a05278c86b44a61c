"""What rerankers are given, in the form that training reads."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from hopefear.core.learner import Learner, parameters_by_part
from hopefear.data.lists.candidates import CandidateLists
from hopefear.data.lists.dataset import ListDataset
from hopefear.data.lists.files import read_lists
from hopefear.errors import HopefearError
from hopefear.metrics.lists import ListMetric, metric_named
from hopefear.recipes.scales import scale_of
from hopefear.structures.nbest import NBest
from hopefear.tasks import recipe
from hopefear.tasks.rerank.gold import judged_by, weighted
from hopefear.tasks.rerank.model import RerankModel
from hopefear.tasks.rerank.reading import ListReader
from hopefear.tasks.rerank.task import baseline_of, check
from hopefear.training.online import OnlineTrainer
from hopefear.training.ranking import check_offsets


def blocks_of(
    X: Any,
    y: Any = None,
    weights: Any = None,
    reader: ListReader | None = None,
    *,
    metric: str | None = None,
    judged: bool = True,
) -> tuple[list[CandidateLists], ListReader]:
    """Lists as readers give them, and how their candidates are written.

    Parameters
    ----------
    X : list of lists of candidates, CandidateLists or several of them
        The lists.
    y, weights
        Costs or references, and a weight, of each list; not for several blocks, which hold theirs.
    reader : ListReader, optional
        How candidates are written, if known.
    metric : str, optional
        Name of what makes the costs.
    judged : bool
        Whether costs and references are looked at.

    Examples
    --------
    >>> blocks, reader = blocks_of([[{"a": 1}, {"b": 1}]])
    >>> blocks[0].n_candidates
    2
    """
    if isinstance(X, CandidateLists):
        block = judged_by(X, y, metric) if judged else X
        return [weighted(block, weights)], reader or ListReader()
    if isinstance(X, list | tuple) and X and all(isinstance(one, CandidateLists) for one in X):
        if y is not None or weights is not None:
            raise HopefearError(
                "X holds blocks as files give them, with their own costs and weights; leave out y "
                "and sample_weight"
            )
        return list(X), reader or ListReader()
    if not isinstance(X, list | tuple | np.ndarray):
        X = list(X) if hasattr(X, "__iter__") and not isinstance(X, str | bytes | dict) else X
    reader = reader or ListReader.of(X)
    return [reader.read(X, y, weights, metric=metric, judged=judged)], reader


def blocks_in(
    path: str | os.PathLike[str], metric: ListMetric | None, **reading: Any
) -> Iterator[CandidateLists]:
    """Lists of a file, judged by the metric."""
    return read_lists(path, metric=metric, **reading)


def held_in(
    path: str | os.PathLike[str] | None,
    gold: str | os.PathLike[str] | None,
    metric: ListMetric | None,
    reading: dict[str, Any],
) -> Iterator[CandidateLists] | None:
    """Held-out lists of a file, with gold trees and perhaps a format of their own."""
    if path is None:
        if gold is not None:
            raise HopefearError("dev_gold belongs to held-out lists: give dev too")
        return None
    own = {"format": "auto", "prefer": reading.get("format", "auto"), "gold": gold}
    return blocks_in(path, metric, **{**reading, **own})


def metric_meant(metric: str | ListMetric | None) -> ListMetric | None:
    """The metric by its name; None where the lists are judged already."""
    if metric is None or metric == "auto":
        return None
    return metric_named(metric) if isinstance(metric, str) else metric


def begun(
    data: ListDataset, learner: str, params: dict[str, Any], tied: bool, metric: ListMetric
) -> tuple[RerankModel, OnlineTrainer]:
    """A model that knows nothing yet, and what will teach it."""
    check(data)
    made = recipe(learner, "rerank").build(scale_of(data), **params)
    if not isinstance(made, Learner):
        raise HopefearError(
            f"{learner} learns from all data at once, so it has no partial_fit; use fit, or an "
            "online learner such as 'perceptron'"
        )
    check_offsets(made.readout, data.rows)
    trainer = OnlineTrainer(NBest(data.features.size, tied), made)
    about = {
        "learner": learner,
        "on": made.on,
        "parameters": parameters_by_part(made),
        "data": {"source": "stream", "features": data.features.size},
    }
    model = RerankModel(
        trainer.predictor(),
        data.features,
        baseline_of(data),
        metric=metric,
        signature=made.signature(),
        about=about,
    )
    return model, trainer

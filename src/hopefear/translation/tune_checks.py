"""What tuning refuses: lists without a choice, senseless seeds, weights that are worth nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from hopefear.data.lists.dataset import ListDataset
from hopefear.data.moses.lists import TuningLists
from hopefear.errors import HopefearError
from hopefear.metrics.lists import ListMetric
from hopefear.translation.tuners.problem import Event, TuningProblem

MOST_SEED = 2**32 - 1
# A share of the score at the start below which weights count as collapsed.
_COLLAPSED = 0.5


class CollapseError(HopefearError):
    """Tuning ended in weights that are worth nothing."""


def check_lists(lists: TuningLists, metric: ListMetric) -> None:
    """Lists must have been compared with references by this metric."""
    if lists.counts is None or lists.metric != metric.name:
        has = f"counts of {lists.metric}" if lists.counts is not None else "no counts"
        raise HopefearError(
            f"{lists.source} has {has}, and tuning is by {metric.name}; read the lists with "
            f"metric={metric.name!r} and references"
        )


def check_seeds(seeds: Any) -> list[int]:
    """The seeds as numbers; HopefearError unless there are some, whole and of 32 bits.

    >>> check_seeds(range(2))
    [0, 1]
    """
    found = list(seeds) if isinstance(seeds, Iterable) and not isinstance(seeds, str) else None
    if not found:
        raise HopefearError(f"seeds are some whole numbers, such as (1, 2, 3), not {seeds!r:.60}")
    for seed in found:
        whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
        if not whole or not 0 <= seed <= MOST_SEED:
            raise HopefearError(
                f"a seed is a whole number from 0 to {MOST_SEED}, not {seed!r:.60}; choose another"
            )
    return [int(seed) for seed in found]


def check_problem(problem: TuningProblem) -> None:
    """Tuning needs a choice that matters, and features."""
    data: ListDataset = problem.data
    if not data.features.size:
        raise HopefearError(
            f"{data.source}: no feature is left to tune; keep rarer ones (min_count), or name "
            "other features"
        )
    costs, begins = data.rows.costs, data.rows.starts[:-1]
    apart = np.maximum.reduceat(costs, begins) > np.minimum.reduceat(costs, begins)
    if not len(data.rows.values):
        raise HopefearError(
            f"{data.source}: all candidates of a list have the same features, so that weights "
            "choose nothing; tune other features, or use lists with more candidates"
        )
    if not apart.any():
        raise HopefearError(
            f"{data.source}: no candidate of a list is better than the others by "
            f"{problem.metric.name}; see whether the references are those of these lists, or use "
            "lists with more candidates"
        )


def check_collapse(
    problem: TuningProblem, weights: np.ndarray, ended: float, before: Event
) -> None:
    """CollapseError where the weights found are no weights, or worth next to nothing.

    Parameters
    ----------
    problem : TuningProblem
        What was tuned on.
    weights : float64 array
        What was found.
    ended : float
        Their score on the tuning lists.
    before : mapping
        Scores of the weights at the start, as `TuningProblem.report` gives them.
    """
    main, higher = problem.metric.main, problem.metric.higher
    began = before["train"][main]
    reason = ""
    remedy = "shorter steps (a smaller C or rate), another start or another learner may help"
    if not np.isfinite(weights).all():
        reason = "some weights are not finite"
    elif not weights.any() and not problem.data.rows.offsets.any():
        reason = "all weights are 0"
    elif not math.isfinite(ended):
        reason = f"{main} is not finite"
    elif higher and began <= 0.0 and ended <= 0.0:
        reason = f"{main} is 0, as it was at the start"
        remedy = "see whether the references are those of these lists, and longer than three words"
    elif higher and ended <= _COLLAPSED * began:
        reason = f"{main} fell from {began:.2f} to {ended:.2f}"
    elif not higher and ended >= began / _COLLAPSED + 1.0:  # the 1 is for starts next to 0
        reason = f"{main} rose from {began:.2f} to {ended:.2f}, and less is better"
    if reason:
        raise CollapseError(f"tuning collapsed: {reason}, and nothing is kept; {remedy}")

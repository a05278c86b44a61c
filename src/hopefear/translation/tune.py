"""Tuning: lists of translations and the name of a learner in, weights out."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hopefear.data.lists.dataset import ListDataset
from hopefear.data.moses.lists import TuningLists
from hopefear.errors import HopefearError
from hopefear.metrics.lists import ListMetric
from hopefear.recipes.scales import scale_of
from hopefear.tasks import TASKS, recipe
from hopefear.translation.features import TuningFeatures, learned
from hopefear.translation.groups import (
    check_start,
    chosen_features,
    fingerprint,
    joined,
    kinds,
    signed_groups,
    tuned_lists,
    with_earlier,
)
from hopefear.translation.oracle import oracle_choice
from hopefear.translation.reading import tuning_metric
from hopefear.translation.starting import start_weights
from hopefear.translation.tune_checks import (
    CollapseError,
    check_collapse,
    check_lists,
    check_problem,
    check_seeds,
)
from hopefear.translation.tuners.problem import Event, Listener, Tuned, TuningProblem
from hopefear.translation.weights import Weights

__all__ = [
    "DEFAULT_LEARNER",
    "CollapseError",
    "Run",
    "Tuning",
    "best_possible",
    "split",
    "tune",
]

DEFAULT_LEARNER = TASKS["tune"].learner


@dataclass(frozen=True)
class Run:
    """What one seed came to."""

    seed: int
    train: float
    dev: float | None
    tuned: Tuned = field(repr=False)


@dataclass(frozen=True)
class Tuning:
    """Weights that were found, and what they are worth.

    Parameters
    ----------
    weights, start : Weights
        What was found, and what tuning began with.
    metric : ListMetric
        Behind all scores.
    before, after, oracle : mapping
        Scores of choices by set of lists (``train``, ``dev``): under the weights at the start and
        at the end, and of the best choice there is.
    runs : tuple of Run
        One for each seed.
    chosen : Run
        The one the weights are from.
    signature : str
        Exactly how they were found.
    features : TuningFeatures
        What was tuned; those whose weight is 0 are not among the weights by name.
    """

    weights: Weights
    start: Weights
    metric: ListMetric
    before: Mapping[str, float]
    after: Mapping[str, float]
    oracle: Mapping[str, float]
    runs: tuple[Run, ...]
    chosen: Run
    signature: str
    features: TuningFeatures = field(repr=False)

    @property
    def history(self) -> list[Event]:
        """Round by round, of the run that was chosen."""
        return self.chosen.tuned.history


def tune(
    lists: TuningLists,
    learner: str = DEFAULT_LEARNER,
    params: Mapping[str, Any] | None = None,
    *,
    metric: str | ListMetric = "bleu",
    start: str | Weights = "auto",
    fixed: Weights | None = None,
    features: Sequence[str] | None = None,
    min_count: int = 1,
    dev: TuningLists | None = None,
    held_out: float = 0.0,
    seeds: Sequence[int] = (1,),
    on_event: Sequence[Listener] = (),
) -> Tuning:
    """Find weights under which the best candidates score high.

    Parameters
    ----------
    lists : TuningLists
        Candidates with counts of the metric (:func:`hopefear.translation.reading.read`).
    learner, params
        Name of a recipe of the task ``tune`` and the parameters to replace.
    metric : str or ListMetric
        The metric behind the counts.
    start : str or Weights
        See :func:`hopefear.translation.starting.start_weights`. Sparse features and phrase pairs
        that the lists say nothing about keep the weights that they have there.
    fixed : Weights, optional
        Weights whose score is a fixed part of every candidate's. Dense features that they know get
        no others; what is tuned starts from 0, and of sparse names that are in both the weights
        add up. Steps are taken in the unit of the fixed dense weights, whose sizes may have any
        sum.
    features : sequence of {"dense", "sparse", "phrases", "consensus", "ngrams"}, optional
        What gets weights: all that the lists have, unless said; without ``fixed`` the dense ones
        must be among them, if there are any. The last two are made from the
        words of candidates, and go with the dense and with the sparse ones: see
        :mod:`hopefear.translation.derived`.
    min_count : int
        Sparse features and phrase pairs that tell candidates apart in fewer lists are left out.
    dev : TuningLists, optional
        Held-out lists: the best round and the best seed are those that score best on them.
    held_out : float
        Without ``dev``, the share of the lists to hold out, at random by the first seed.
    seeds : sequence of int
        Tune once with each, and keep the best.
    on_event : sequence of callables
        Each gets every event as it happens.

    Examples
    --------
    >>> from hopefear.translation.examples import tiny_lists
    >>> found = tune(tiny_lists(), "perceptron", {"epochs": 2}, start="uniform")
    >>> found.before["train"] <= found.after["train"] <= found.oracle["train"]
    True
    """
    judge = tuning_metric(metric)
    check_lists(lists, judge)
    seeds = check_seeds(seeds)
    lists, dev = split(lists, dev, held_out, seeds[0])
    groups = chosen_features(lists, features, fixed)
    unit, kept = 1.0, fixed
    if fixed is not None and fixed.layout:
        if isinstance(start, Weights) or start != "auto":
            raise HopefearError(
                "weights to start from, and fixed ones of the dense features: what is tuned beside "
                "those starts from 0; leave one of the two out"
            )
        unit = float(np.abs(fixed.dense).sum()) or 1.0
        kept = fixed.scaled(1.0 / unit)
    plain, (lists, offsets) = lists, tuned_lists(lists, groups, kept)
    data = learned(lists, judge, kinds(groups), min_count, offsets)
    begin = Weights((), np.zeros(0))
    if isinstance(start, Weights):
        check_start(start, groups, plain)
    if "dense" in kinds(groups):
        begin = begun(plain, lists, start, fixed)
    vector = begin.on(data.features)
    other = None
    if dev is not None:
        dev, offsets = tuned_lists(dev, groups, kept)
        other = data.features.encode(dev, judge, offsets)
    problem = TuningProblem(data, judge, vector, other)
    check_problem(problem)
    made = built(learner, data, judge, params or {})
    before = problem.report(vector)
    runs = tuple(one_run(made, problem, seed, on_event, len(seeds) > 1) for seed in seeds)
    chosen = max(runs, key=lambda run: worth(run, judge))
    check_collapse(problem, chosen.tuned.weights, chosen.train, before)
    main = judge.main
    after = {"train": chosen.train} | ({} if chosen.dev is None else {"dev": chosen.dev})
    signature = made.signature(
        start="given" if isinstance(start, Weights) else begin.about.get("start", "zero"),
        features=signed_groups(groups, fixed),
        min_count=min_count,
        cost=judge.cost_signature().removeprefix("cost:"),
        **({} if fixed is None else {"fixed": fingerprint(fixed)}),
        **({} if other is None else {"dev": other.digest[:8]}),
        seed=chosen.seed,
    )
    oracle = {"train": best_possible(lists, judge)}
    if dev is not None:
        oracle["dev"] = best_possible(dev, judge)
    about = {
        "learner": learner,
        "parameters": made.parameters(),
        "signature": signature,
        "metric": judge.signature_for(lists.n_references),
        "seed": chosen.seed,
        "data": {
            "source": os.path.basename(lists.source),
            "digest": data.digest,
            "lists": len(lists),
            "candidates": lists.n_candidates,
            "features": data.features.size,
        },
        "scores": after,
    }
    found = Weights.of(data.features, unit * chosen.tuned.weights, about)
    found = with_earlier(found, begin, data.features, lists, min_count)
    return Tuning(
        found if fixed is None else joined(fixed, found),
        begin,
        judge,
        {name: value[main] for name, value in before.items()},
        after,
        oracle,
        runs,
        chosen,
        signature,
        data.features,
    )


def begun(
    plain: TuningLists, lists: TuningLists, start: str | Weights, fixed: Weights | None = None
) -> Weights:
    """Weights to begin with; 0 for dense features that only words tell, or beside fixed ones."""
    if fixed is not None and fixed.layout:
        return Weights(lists.layout, np.zeros(lists.dense.shape[1]))
    gained = lists.layout[len(plain.layout) :]
    if isinstance(start, Weights) and {name for name, _ in gained} & dict(start.layout).keys():
        return start_weights(lists, start)
    found = start_weights(plain, start)
    none = np.zeros(sum(width for _, width in gained))
    return replace(found, layout=lists.layout, dense=np.concatenate([found.dense, none]))


def built(learner: str, data: ListDataset, metric: ListMetric, params: Mapping[str, Any]) -> Any:
    """The tuner of that name; by default only BLEU, which needs one, gets a pseudo-corpus."""
    named = recipe(learner, "tune")
    if metric.name != "bleu" and "background" in named.parameters():
        params = {"background": "none", **params}
    return named.build(scale_of(data), **params)


def one_run(
    tuner: Any, problem: TuningProblem, seed: int, on_event: Sequence[Listener], several: bool
) -> Run:
    """Tune with one seed; its number goes on events where there are several."""

    def tagged(listener: Listener) -> Callable[[Event], None]:
        return lambda event: listener({**event, "seed": seed})

    listeners = [tagged(listener) for listener in on_event] if several else on_event
    tuned = tuner.tune(problem, seed=seed, on_event=listeners)
    if not np.isfinite(tuned.weights).all():
        return Run(seed, math.nan, None if problem.dev is None else math.nan, tuned)
    found = problem.report(tuned.weights)
    main = problem.metric.main
    return Run(seed, found["train"][main], found.get("dev", {}).get(main), tuned)


def worth(run: Run, metric: ListMetric) -> float:
    """What a run came to on held-out lists, or without them on its own; more is better."""
    score = run.train if run.dev is None else run.dev
    if not math.isfinite(score):
        return -math.inf
    return score if metric.higher else -score


def split(
    lists: TuningLists, dev: TuningLists | None, held_out: float, seed: int
) -> tuple[TuningLists, TuningLists | None]:
    """Lists to tune on and lists to hold out."""
    if not 0.0 <= held_out < 1.0:
        raise HopefearError(f"held_out is a share of the lists, from 0 to 1, not {held_out:g}")
    if dev is not None or held_out == 0.0:
        if dev is not None and held_out:
            raise HopefearError("give dev lists or held_out, not both")
        return lists, dev
    n = round(held_out * len(lists))
    if not 0 < n < len(lists):
        raise HopefearError(
            f"held_out={held_out:g} of {len(lists)} lists leaves none on one side; use more lists"
        )
    order = np.random.default_rng(seed).permutation(len(lists))
    return lists.take(np.sort(order[n:])), lists.take(np.sort(order[:n]))


def best_possible(lists: TuningLists, metric: ListMetric) -> float:
    """Score of the best choice from the lists (a lower bound of it)."""
    assert lists.counts is not None
    chosen = lists.starts[:-1] + oracle_choice(lists, metric)
    return float(metric.scores(lists.counts[chosen].sum(axis=0))[metric.main])

"""Tuning: lists of translations and the name of a learner in, weights out."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from hopefear.data.list_datasets import fixed_scores
from hopefear.data.lists import ListDataset
from hopefear.data.moses_lists import TuningLists
from hopefear.errors import HopefearError
from hopefear.metrics.lists import ListMetric
from hopefear.recipes import recipe
from hopefear.recipes.scales import scale_of
from hopefear.training.tuning_problem import Event, Listener, Tuned, TuningProblem
from hopefear.tuning.derived import DERIVED, derived
from hopefear.tuning.features import GROUPS, TuningFeatures, learned
from hopefear.tuning.oracle import oracle_choice
from hopefear.tuning.reading import tuning_metric
from hopefear.tuning.scoring import scores
from hopefear.tuning.starting import start_weights
from hopefear.tuning.weights import Weights

DEFAULT_LEARNER = "kbmira"
# A share of the score at the start below which weights count as collapsed.
_COLLAPSED = 0.5


class CollapseError(HopefearError):
    """Tuning ended in weights that are worth nothing."""


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
        Candidates with counts of the metric, as :func:`hopefear.tuning.reading.read` gives them.
    learner, params
        Name of a recipe of the task ``tune`` and the parameters to replace.
    metric : str or ListMetric
        The metric behind the counts.
    start : str or Weights
        See :func:`hopefear.tuning.starting.start_weights`.
    fixed : Weights, optional
        Weights whose score is a fixed part of every candidate's; only other features get weights
        then, and start from 0.
    features : sequence of {"dense", "sparse", "phrases", "consensus", "ngrams"}, optional
        What gets weights: all that the lists have, unless said. The last two are made from the
        words of candidates, and go with the dense and with the sparse ones: see
        :mod:`hopefear.tuning.derived`.
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
    >>> from hopefear.tuning.examples import tiny_lists
    >>> found = tune(tiny_lists(), "perceptron", {"epochs": 2}, start="uniform")
    >>> found.before["train"] <= found.after["train"] <= found.oracle["train"]
    True
    """
    judge = tuning_metric(metric)
    check_lists(lists, judge)
    lists, dev = split(lists, dev, held_out, seeds[0] if seeds else 1)
    groups = chosen_features(lists, features, fixed)
    told = [name for name in groups if name in DERIVED]
    plain, lists = lists, derived(lists, told)
    dev = None if dev is None else derived(dev, told)
    groups = tuple(dict.fromkeys(DERIVED[g].kind if g in DERIVED else g for g in groups))
    data = learned(lists, judge, groups, min_count, offsets(lists, fixed))
    begin = Weights((), np.zeros(0))
    if "dense" in groups:
        begin = begun(plain, lists, start)
    vector = begin.on(data.features)
    other = None if dev is None else data.features.encode(dev, judge, offsets(dev, fixed))
    problem = TuningProblem(data, judge, vector, other)
    check_problem(problem)
    made = built(learner, data, judge, params or {})
    before = problem.report(vector)
    runs = tuple(one_run(made, problem, seed, on_event, len(seeds) > 1) for seed in seeds)
    chosen = max(runs, key=lambda run: worth(run, judge))
    check_collapse(problem, chosen, before)
    main = judge.main
    after = {"train": chosen.train} | ({} if chosen.dev is None else {"dev": chosen.dev})
    signature = made.signature(
        start=start if isinstance(start, str) else "given",
        features="+".join((*groups, *told)),
        min_count=min_count,
        seed=chosen.seed,
    )
    oracle = {"train": best_possible(lists, judge)}
    if dev is not None:
        oracle["dev"] = best_possible(dev, judge)
    about = {
        "learner": learner,
        "parameters": made.parameters(),
        "signature": signature,
        "metric": judge.signature(lists.n_references),
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
    found = Weights.of(data.features, chosen.tuned.weights, about)
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


def begun(plain: TuningLists, lists: TuningLists, start: str | Weights) -> Weights:
    """Weights to begin with; 0 for dense features that only words tell."""
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


def chosen_features(
    lists: TuningLists, features: Sequence[str] | None, fixed: Weights | None
) -> tuple[str, ...]:
    """Groups of features that get weights."""
    if features is not None:
        if not features:
            raise HopefearError(
                f"there are no features to tune; name some of {', '.join((*GROUPS, *DERIVED))}"
            )
        for group in features:
            if group not in (*GROUPS, *DERIVED):
                raise HopefearError(f"features are {', '.join((*GROUPS, *DERIVED))}, not {group!r}")
        groups = tuple(features)
    else:
        there = {"dense": True, "sparse": lists.sparse, "phrases": lists.phrases}
        groups = tuple(name for name, found in there.items() if found)
        if fixed is not None:
            groups = tuple(name for name in groups if name != "dense")
    if fixed is not None and "dense" in groups and fixed.layout:
        raise HopefearError(
            "fixed weights of dense features and tuned ones of the same: name features without "
            "dense, or start from those weights instead"
        )
    return groups


def offsets(lists: TuningLists, fixed: Weights | None) -> np.ndarray | None:
    """Fixed scores of candidates, relative to the best of each list."""
    return None if fixed is None else fixed_scores(scores(lists, fixed), lists.starts)


def joined(fixed: Weights, found: Weights) -> Weights:
    """Fixed weights and those that were found beside them."""
    return Weights(
        fixed.layout or found.layout,
        fixed.dense if fixed.layout else found.dense,
        {**fixed.sparse, **found.sparse},
        {**fixed.phrases, **found.phrases},
        found.about,
    )


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


def check_lists(lists: TuningLists, metric: ListMetric) -> None:
    """Lists must have been compared with references by this metric."""
    if lists.counts is None or lists.metric != metric.name:
        has = f"counts of {lists.metric}" if lists.counts is not None else "no counts"
        raise HopefearError(
            f"{lists.source} has {has}, and tuning is by {metric.name}; read the lists with "
            f"metric={metric.name!r} and references"
        )


def check_problem(problem: TuningProblem) -> None:
    """Tuning needs a choice that matters, and features."""
    data: ListDataset = problem.data
    if not data.features.size:
        raise HopefearError(
            f"{data.source}: no feature is left to tune; keep rarer ones (min_count), or name "
            "other features"
        )
    if float(np.ptp(data.rows.costs)) == 0.0 or not len(data.rows.values):
        raise HopefearError(
            f"{data.source}: all candidates have the same score or the same features, so that "
            "there is nothing to tune; use longer lists"
        )


def check_collapse(problem: TuningProblem, run: Run, before: Event) -> None:
    """CollapseError where the weights found are no weights, or worth next to nothing."""
    main, weights = problem.metric.main, run.tuned.weights
    began, ended = before["train"][main], run.train
    reason = ""
    if not np.isfinite(weights).all():
        reason = "some weights are not finite"
    elif not weights.any() and not problem.data.rows.offsets.any():
        reason = "all weights are 0"
    elif not math.isfinite(ended):
        reason = f"{main} is not finite"
    elif problem.metric.higher and began <= 0.0 and ended <= 0.0:
        reason = f"{main} is 0, as it was at the start"
    elif problem.metric.higher and ended <= _COLLAPSED * began:
        reason = f"{main} fell from {began:.2f} to {ended:.2f}"
    if reason:
        raise CollapseError(
            f"tuning collapsed: {reason}; nothing is kept. Shorter steps (a smaller C or rate), "
            "other weights to start from or another learner may help"
        )

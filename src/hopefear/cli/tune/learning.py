"""From lists that were read to weights."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hopefear.cli import training
from hopefear.cli.console import Console
from hopefear.cli.tune.idle import check_files, check_learner, check_lists
from hopefear.cli.tune.lists import read_lists, told
from hopefear.cli.tune.options import WORDS
from hopefear.cli.tune.outcome import Outcome, first_choices
from hopefear.cli.tune.progress import TuneWatcher
from hopefear.data.moses.lists import TuningLists
from hopefear.errors import HopefearError
from hopefear.metrics.lists import ListMetric
from hopefear.tasks import recipe
from hopefear.translation.derived import needed
from hopefear.translation.scoring import with_scores, without_scores
from hopefear.translation.starting import STARTS
from hopefear.translation.tune import Tuning, split, tune
from hopefear.translation.tuners.problem import Listener
from hopefear.translation.weights import Weights


def parameters(args: argparse.Namespace, metric: ListMetric, console: Console) -> dict[str, Any]:
    """What ``-p`` and ``--epochs`` say; checked before anything is read."""
    wanted = recipe(args.learner, "tune")
    params: dict[str, Any] = {key.replace("-", "_"): value for key, value in args.param}
    known = wanted.parameters()
    if args.epochs is not None:
        if "epochs" in params:
            args.usage_error("--epochs and -p epochs=… say the same: give one of them")
        if "epochs" not in known:
            raise HopefearError(
                f"{args.learner} makes no passes over the lists: leave out --epochs; "
                f"`hopefear learners {args.learner} --task tune` shows what it takes"
            )
        params["epochs"] = args.epochs
    if metric.name != "bleu" and known.get("background", "none") != "none":
        # Made for BLEU, whose sentences are too short for it; others are fine as they are.
        if "background" not in params:
            console.say(f"{metric.name} needs no pseudo-corpus: background=none")
        params.setdefault("background", "none")
    check_learner(args, wanted.build(**params), params)
    return params


def tuned(
    args: argparse.Namespace, metric: ListMetric, params: Mapping[str, Any], console: Console
) -> Outcome:
    """Read the lists of ``--nbest`` and tune on them once."""
    fixed = None if args.fixed is None else Weights.read(args.fixed)
    models = {name: Weights.read(path) for name, path in args.add}
    check_files(args, fixed, models.values())
    texts = wants_words(args.features, [*models.values(), *([] if fixed is None else [fixed])])
    lists = read_lists(args, metric, console, dedup=args.dedup, texts=texts)
    console.say(told(lists, "tuning"))
    check_lists(args, lists)
    dev = held_out_lists(args, metric, console, texts)
    lists, dev = split(lists, dev, args.held_out, args.seed)
    if args.held_out:
        assert dev is not None
        console.say(f"held out: {len(dev):,} of these lists")
    added = {name: added_model(models[name], path, lists) for name, path in args.add}
    first = {} if len(args.nbest) > 1 else {"train": first_choices(lists, metric)}
    if dev is not None and (args.dev_nbest is None or len(args.dev_nbest) == 1) and first:
        first["dev"] = first_choices(dev, metric)
    settings = settings_of(args, lists, metric)
    with contextlib.ExitStack() as scope:
        args.resume = False
        log = scope.enter_context(training.run_folder(args, settings))
        watcher = scope.enter_context(TuneWatcher(console, metric.main))
        listeners: list[Listener] = [watcher] if log is None else [log, watcher]
        start = start_of(args, added)
        found = tuning_of(args, lists, dev, metric, params, start, listeners, added, fixed)
        if log is not None:
            about = found.weights.about
            more = {
                "signature": found.signature,
                "parameters": about["parameters"],
                "data": {**settings["data"], "digest": about["data"]["digest"]},
            }
            log.describe({**settings, **more})
    weights = alone(found.weights, added)
    return Outcome(found, weights, fixed or found.start, lists, first)


def tuning_of(
    args: argparse.Namespace,
    lists: TuningLists,
    dev: TuningLists | None,
    metric: ListMetric,
    params: Mapping[str, Any],
    start: str | Weights,
    on_event: Sequence[Listener],
    added: Mapping[str, Weights] | None = None,
    fixed: Weights | None = None,
) -> Tuning:
    """Tune as the options say."""
    if added:
        lists = with_scores(lists, added)
        dev = None if dev is None else with_scores(dev, added)
    return tune(
        lists,
        args.learner,
        params,
        metric=metric,
        start=start,
        fixed=fixed,
        features=args.features,
        min_count=args.min_count,
        dev=dev,
        seeds=range(args.seed, args.seed + args.seeds),
        on_event=on_event,
    )


def alone(weights: Weights, added: Mapping[str, Weights]) -> Weights:
    """The weights without added features, which are said about them."""
    if not added:
        return weights
    shares = {name: float(weights.dense[weights.names.index(name)]) for name in added}
    return replace(without_scores(weights, added), about={**weights.about, "added": shares})


def wants_words(features: Sequence[str] | None, models: Sequence[Weights]) -> bool:
    """Whether features will be made from the words of candidates."""
    return bool(set(features or ()) & set(WORDS)) or any(map(needed, models))


def held_out_lists(
    args: argparse.Namespace, metric: ListMetric, console: Console, texts: bool
) -> TuningLists | None:
    """The lists of ``--dev-nbest``, if there are any."""
    if args.dev_nbest is None:
        return None
    dev = read_lists(args, metric, console, "dev_", dedup=args.dedup, texts=texts)
    console.say(told(dev, "dev"))
    return dev


def added_model(model: Weights, path: str, lists: TuningLists) -> Weights:
    """Weights of ``--add`` but the dense ones, for dense features get weights of their own."""
    if not (model.sparse or model.phrases):
        raise HopefearError(
            f"{path}: all of its features are dense, and those of {lists.source} are tuned anyway; "
            "add a model of sparse features or phrase pairs"
        )
    return replace(model, layout=(), dense=np.zeros(0))


def start_of(args: argparse.Namespace, added: Mapping[str, Weights]) -> str | Weights:
    """Where ``--start`` says to begin; what it does not know of is 0."""
    if args.start in STARTS:
        return args.start
    if not os.path.exists(args.start) and args.start != "-":
        raise HopefearError(
            f"--start {args.start}: there is no such file, and it is none of {', '.join(STARTS)}"
        )
    found = Weights.read(args.start)
    lacking = tuple((name, 1) for name in added if name not in dict(found.layout))
    return replace(
        found,
        layout=(*found.layout, *lacking),
        dense=np.concatenate([found.dense, np.zeros(len(lacking))]),
    )


def settings_of(
    args: argparse.Namespace, lists: TuningLists | None, metric: ListMetric
) -> dict[str, Any]:
    """What ``run.json`` says."""
    args.task, args.train = "tune", (args.nbest or [args.decoder])[0]
    facts = {} if lists is None else {"examples": len(lists), "candidates": lists.n_candidates}
    more = {
        "metric": metric.signature_for(len(args.refs)),
        "cost": metric.cost_signature(),
        "features": args.features,
        "min_count": args.min_count,
        "start": args.start if args.start in STARTS else os.path.basename(args.start),
        "seeds": args.seeds,
        "held_out": args.held_out,
        "dedup": args.dedup,
    }
    return training.settings(args, args.learner, facts) | more

"""From the options of ``tune`` to weights: what is checked, read, watched and learned."""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

import numpy as np

from hopefear.cli import train
from hopefear.cli.console import Console, scored, tell_skipped
from hopefear.cli.tune.options import WORDS
from hopefear.cli.tune.outcome import FILES, Outcome
from hopefear.core.progress import stage
from hopefear.data.files import ReadReport
from hopefear.data.lists.candidates import CandidateLists, Layout
from hopefear.errors import HopefearError
from hopefear.metrics.lists import ListMetric, metric_named
from hopefear.tasks import recipe
from hopefear.training.cutting_plane import CuttingPlane
from hopefear.translation.features import kinds
from hopefear.translation.lists import read, tuning_metric
from hopefear.translation.scoring import best, with_scores, without_scores
from hopefear.translation.task import STARTS, SeedResult, Tuning, score_of, split, tune
from hopefear.translation.text_features import needed
from hopefear.translation.tuners.annealed_risk import AnnealedRisk
from hopefear.translation.tuners.batch_tuner import BatchTuner
from hopefear.translation.tuners.expected_score import ExpectedScore
from hopefear.translation.tuners.mert import Mert
from hopefear.translation.tuners.online_tuner import OnlineTuner
from hopefear.translation.tuners.pro import Pro
from hopefear.translation.tuners.problem import Listener
from hopefear.translation.weights import Weights


def parameters(args: argparse.Namespace, metric: ListMetric, console: Console) -> dict[str, Any]:
    """What ``-p`` and ``--epochs`` say; checked before anything is read."""
    tuner = recipe(args.learner, "tune")
    params: dict[str, Any] = {key.replace("-", "_"): value for key, value in args.param}
    usual = tuner.parameters()
    if args.epochs is not None:
        if "epochs" in params:
            args.usage_error("--epochs and -p epochs=… say the same: give one of them")
        if "epochs" not in usual:
            raise HopefearError(
                f"{args.learner} makes no passes over the lists: leave out --epochs; "
                f"`hopefear learners {args.learner} --task tune` shows what it takes"
            )
        params["epochs"] = args.epochs
    if metric.name != "bleu" and usual.get("background", "none") != "none":
        # Made for BLEU, whose sentences are too short for it; others are fine as they are.
        if "background" not in params:
            console.say(f"{metric.name} needs no pseudo-corpus: background=none")
        params.setdefault("background", "none")
    check_learner(args, tuner.build(**params), params)
    return params


def tuned(
    args: argparse.Namespace,
    metric: ListMetric,
    params: Mapping[str, Any],
    console: Console,
    runs: Any = None,
) -> Outcome:
    """Read the lists of ``--nbest`` and tune on them once; seeds on ``runs``, a cluster, if any."""
    fixed = None if args.fixed is None else Weights.read(args.fixed, args.allow_outside)
    models = {name: Weights.read(path, args.allow_outside) for name, path in args.add}
    check_files(args, fixed, models.values())
    texts = wants_words(args.features, [*models.values(), *([] if fixed is None else [fixed])])
    texts = texts or args.report is not None  # which the page shows
    lists = read_lists(args, metric, console, dedup=args.dedup, texts=texts)
    console.say(told(lists, "tuning"))
    check_lists(args, lists)
    dev = held_out_lists(args, metric, console, texts, lists.layout)
    lists, dev = split(lists, dev, args.held_out, args.seed)
    if args.held_out:
        assert dev is not None
        console.say(f"held out: {len(dev):,} of these lists")
    added = {name: added_model(models[name], path, lists) for name, path in args.add}
    first: dict[str, float] = {}  # scores of the decoder's own choices, where one decoder wrote
    if len(args.nbest) == 1:
        first["train"] = score_of(lists, metric, best(lists.scores, lists))
    if dev is not None and (args.dev_nbest is None or len(args.dev_nbest) == 1) and first:
        first["dev"] = score_of(dev, metric, best(dev.scores, dev))
    settings = settings_of(args, lists, metric)
    with contextlib.ExitStack() as scope:
        args.resume = False
        log = scope.enter_context(train.run_folder(args, settings))
        watcher = scope.enter_context(TuningLines(console, metric.main, runs is not None))
        listeners: list[Listener] = [watcher] if log is None else [log, watcher]
        start = start_of(args, added)
        elsewhere = None if runs is None else partial(runs.map, on_end=watcher.run_ended)
        tuning = tuning_of(
            args, lists, dev, metric, params, start, listeners, added, fixed, elsewhere
        )
        if log is not None:
            about = tuning.weights.about
            more = {
                "signature": tuning.signature,
                "parameters": about["parameters"],
                "data": {**settings["data"], "digest": about["data"]["digest"]},
            }
            log.describe({**settings, **more})
    weights = alone(tuning.weights, added)
    sets = {"train": lists} | ({} if dev is None else {"dev": dev})
    if added:
        sets = {name: with_scores(some, added) for name, some in sets.items()}
    files = {name: getattr(args, name) for name in FILES}
    return Outcome(tuning, weights, fixed or tuning.start, lists, first, sets, files)


def tuning_of(
    args: argparse.Namespace,
    lists: CandidateLists,
    dev: CandidateLists | None,
    metric: ListMetric,
    params: Mapping[str, Any],
    start: str | Weights,
    on_event: Sequence[Listener],
    added: Mapping[str, Weights] | None = None,
    fixed: Weights | None = None,
    elsewhere: Any = None,
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
        elsewhere=elsewhere,
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
    args: argparse.Namespace,
    metric: ListMetric,
    console: Console,
    texts: bool,
    layout: Layout | None = None,
) -> CandidateLists | None:
    """The lists of ``--dev-nbest``, if there are any; their dense features are these."""
    if args.dev_nbest is None:
        return None
    more: dict[str, Any] = {"dedup": args.dedup, "texts": texts, "layout": layout}
    dev = read_lists(args, metric, console, "dev_", **more)
    console.say(told(dev, "dev"))
    return dev


def added_model(model: Weights, path: str, lists: CandidateLists) -> Weights:
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
    start = Weights.read(args.start, args.allow_outside)
    lacking = tuple((name, 1) for name in added if name not in dict(start.layout))
    return replace(
        start,
        layout=(*start.layout, *lacking),
        dense=np.concatenate([start.dense, np.zeros(len(lacking))]),
    )


def settings_of(
    args: argparse.Namespace, lists: CandidateLists | None, metric: ListMetric
) -> dict[str, Any]:
    """What ``run.json`` says."""
    args.task, args.train = "tune", (args.nbest or [args.decoder])[0]
    facts, references = {}, len(args.refs or ())
    if lists is not None:
        facts = {"examples": len(lists), "candidates": lists.n_candidates}
        references = references or lists.n_references
    more = {
        "metric": metric.signature_for(references),
        "cost": metric.cost_signature(),
        "features": args.features,
        "min_count": args.min_count,
        "start": args.start if args.start in STARTS else os.path.basename(args.start),
        "seeds": args.seeds,
        "held_out": args.held_out,
        "dedup": args.dedup,
    }
    return train.run_settings(args, args.learner, facts) | more


def metric_asked(args: argparse.Namespace) -> ListMetric:
    """The metric of ``--metric`` and ``--smoothing``."""
    if args.smoothing is None:
        return tuning_metric(args.metric or "bleu")
    if args.metric not in (None, "bleu"):
        args.usage_error(f"--smoothing is for sentence BLEU: leave it out with {args.metric}")
    return metric_named("bleu", smoothing=args.smoothing, tokenize="none")


def read_lists(
    args: argparse.Namespace,
    metric: ListMetric,
    console: Console,
    which: str = "",
    nbest: Sequence[str | os.PathLike[str]] | None = None,
    **more: Any,
) -> CandidateLists:
    """The lists of ``--nbest``, or those of ``--dev-nbest`` where ``which`` is ``dev_``."""
    paths = [os.fspath(path) for path in nbest or getattr(args, f"{which}nbest")]
    report = ReadReport()
    lists = read(
        paths,
        getattr(args, f"{which}refs"),
        metric=metric,
        source=getattr(args, f"{which}source"),
        absent=args.absent,
        on_error=args.on_error,
        report=report,
        **more,
    )
    tell_skipped(report, console)
    return lists


def told(lists: CandidateLists, title: str) -> str:
    """What was read, in a line."""
    text = f"{title}: {len(lists):,} lists, {lists.n_candidates:,} candidates"
    if lists.dropped:
        text += f" ({lists.dropped:,} more were equal to others)"
    kinds = [f"{len(lists.names)} dense features"]
    for name, entries in (("sparse features", lists.sparse), ("phrase pairs", lists.phrases)):
        if entries is not None:
            kinds.append(f"{len(entries.names):,} {name}")
    return f"{text}, {', '.join(kinds)}"


def check_learner(args: argparse.Namespace, tuner: Any, params: Collection[str]) -> None:
    """Refuse what this tuner does not look at; ``params`` are those that were given."""
    if args.smoothing is not None and not of_sentences(tuner):
        raise HopefearError(
            f"--smoothing is of the BLEU of single sentences, and {args.learner} does not look at "
            "that here; leave it out, or use -p background=none where there is a pseudo-corpus"
        )
    if "memory" in params and isinstance(tuner, OnlineTuner) and tuner.background == "none":
        raise HopefearError(
            f"-p memory=… is of a pseudo-corpus, and {args.learner} has none here; leave it out, "
            "or name what enters one with -p background=hope"
        )
    fixed = isinstance(tuner, BatchTuner) and isinstance(tuner.learner, CuttingPlane)
    if args.seeds > 1 and (fixed or isinstance(tuner, AnnealedRisk | ExpectedScore)):
        raise HopefearError(
            f"--seeds {args.seeds}: {args.learner} draws nothing at random, so that all seeds give "
            "the same weights; leave it out"
        )


def of_sentences(tuner: Any) -> bool:
    """Whether costs of single sentences make a difference to a tuner."""
    if isinstance(tuner, OnlineTuner):
        return tuner.background == "none"
    if isinstance(tuner, Pro | BatchTuner):
        return tuner.corpus < 1.0
    return not isinstance(tuner, Mert | ExpectedScore)


def check_files(
    args: argparse.Namespace, fixed: Weights | None, added: Collection[Weights] = ()
) -> None:
    """Refuse what these weights and ``--features`` leave no room for."""
    if fixed is not None and fixed.layout and args.start != "auto":
        raise HopefearError(
            f"--start {args.start} and --fixed {args.fixed}: dense features keep the weights of "
            "the latter, and all else begins with 0; leave out --start"
        )
    if args.features is None:
        return
    groups, names = kinds(args.features), ",".join(args.features)
    if args.min_count > 1 and groups == ("dense",):
        raise HopefearError(_uncounted(args, f"--features {names} has none of them"))
    others = [*added, *([] if fixed is None else [fixed])]
    unread = "phrases" not in groups and not any(w.phrases for w in others)
    if args.source is not None and unread and args.report is None:
        raise HopefearError(
            f"--source is for phrase pairs, and nothing here has weights for them: leave it out, "
            f"or use --features {names},phrases"
        )


def check_lists(args: argparse.Namespace, lists: CandidateLists) -> None:
    """Refuse what these lists have nothing for."""
    none = lists.sparse is None and lists.phrases is None
    if args.min_count > 1 and args.features is None and none:
        raise HopefearError(_uncounted(args, f"{lists.source} has none of them"))


def _uncounted(args: argparse.Namespace, reason: str) -> str:
    return (
        f"--min-count {args.min_count} is for sparse features, n-grams and phrase pairs, and "
        f"{reason}; leave it out"
    )


_MANY = 50  # rounds beyond which every tenth gets a line


class TuningLines:
    """Listener of tuning events: a line for each round, and a stage while it is entered.

    Parameters
    ----------
    console : Console
        Where lines go.
    metric : str
        The score to show.
    quiet_lines : bool
        Only the stage: for tuning inside the rounds of a decoder, and for seeds on a cluster.
    """

    def __init__(self, console: Console, metric: str, quiet_lines: bool = False) -> None:
        self.console, self.metric, self.quiet_lines = console, metric, quiet_lines
        self._stage = stage("tuning", None, "rounds")

    def __enter__(self) -> Self:
        self._work = self._stage.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._stage.__exit__(*error)

    def __call__(self, event: dict[str, Any]) -> None:
        epoch, of = event["epoch"], event.get("of")
        scores = ", ".join(
            f"{title} {self.metric} {scored(self.metric, event[name][self.metric])}"
            for name, title in (("train", "tuning"), ("dev", "dev"))
            if self.metric in event.get(name, {})
        )
        seed = f"seed {event['seed']}, " if "seed" in event else ""
        self._work.done, self._work.total = epoch, of
        self._work.text = f"tuning, {seed}round {epoch}{f'/{of}' if of else ''}, {scores}"
        if not self.quiet_lines and (not of or of <= _MANY or epoch % 10 == 0):
            nnz = f", {event['nnz']:,} non-zeros" if "nnz" in event else ""
            time = f", {event['seconds']:.2f} s" if "seconds" in event else ""
            self.console.say(f"{seed}round {epoch}: {scores}{nnz}{time}")

    def run_ended(self, run: SeedResult) -> None:
        """Prints a line for a seed whose run has ended on a cluster."""
        dev = "" if run.dev is None else f", dev {self.metric} {scored(self.metric, run.dev)}"
        rounds = len(run.tuned.history)
        self.console.say(
            f"seed {run.seed}: tuning {self.metric} {scored(self.metric, run.train)}{dev}, "
            f"{rounds} round{'s' * (rounds != 1)}"
        )

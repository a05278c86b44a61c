"""Training data of a reranker: lists, their features, and held-out lists beside them."""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from hopefear.cli.console import Console
from hopefear.cli.progress import Counting
from hopefear.cli.reading import tell_skipped
from hopefear.cli.rerank.reading import judged_blocks, metric_asked
from hopefear.data.lists.dataset import ListDataset, cheapest
from hopefear.data.lists.datasets import Noting
from hopefear.data.report import ReadReport
from hopefear.metrics.lists import ListMetric
from hopefear.tasks.rerank.task import (
    OTHER_COUNT,
    OTHER_FEATURES,
    TREE_COUNT,
    TREE_FEATURES,
    check,
    dataset,
    encoded,
    idle_lists,
    metric_of,
)


@dataclass(frozen=True)
class Corpus:
    """What a reranker is trained on."""

    data: ListDataset
    metric: ListMetric
    features: str  # name of the feature set
    min_count: int
    reading: dict[str, Any]  # what a model must know to read more of this
    skipped: int
    seconds: float

    @property
    def idle(self) -> int:
        """Lists that teach nothing."""
        return int(idle_lists(self.data).sum())

    @property
    def seen(self) -> int | None:
        """Features there were before the rare ones were left out, where the map knows."""
        return getattr(self.data.features, "seen", None)


def corpus(args: argparse.Namespace, console: Console) -> Corpus:
    """Read ``--train``."""
    metric, report, started = _metric(args), ReadReport(), time.perf_counter()
    with Counting(console, "lists") as counting:
        how = {**_how(args), "format": args.format}
        blocks = judged_blocks(args.train, metric, report, args.gold, refs=args.refs, **how)
        data = dataset(
            counting(blocks, args.train),
            args.features or "auto",
            min_count=args.min_count,
            baseline=args.baseline,
            oracle=args.oracle,
            metric=metric,
            folder=args.scratch,
        )
    tell_skipped(report, console)
    check(data)
    trees = data.features.extraction.trees is not None
    return Corpus(
        data,
        metric_of(metric, data),
        args.features or (TREE_FEATURES if trees else OTHER_FEATURES),
        args.min_count or (TREE_COUNT if trees else OTHER_COUNT),
        {"dedup": args.dedup},
        report.skipped,
        time.perf_counter() - started,
    )


class Held(NamedTuple):
    """Lists that are not learned from."""

    data: ListDataset
    first: np.ndarray  # int64: position of what the generator thinks best


def held_out(which: str, like: Corpus, args: argparse.Namespace, console: Console) -> Held:
    """The lists of ``--dev`` or ``--test`` in the same features."""
    path, gold = getattr(args, which), getattr(args, f"{which}_gold")
    report, noting, option = ReadReport(), Noting(), f"--{which}-gold"
    with Counting(console, "lists") as counting:
        how = {**_how(args), "prefer": args.format}
        refs = getattr(args, f"{which}_refs")
        blocks = judged_blocks(path, like.metric, report, gold, option, refs, **how)
        found = encoded(
            noting(counting(blocks, path)),
            like.data.features,
            args.baseline,
            oracle=args.oracle,
            metric=like.metric,
        )
    tell_skipped(report, console)
    return Held(found, cheapest(-noting.scores, found.rows.starts).astype(np.int64))


def tell(found: Corpus, console: Console) -> None:
    """What was read, and what of it is of no use."""
    console.say(describe(found) + f", read in {found.seconds:.1f} s")
    if found.idle:
        console.say(f"lists that teach nothing, of one candidate or of equal costs: {found.idle:,}")


def describe(found: Corpus) -> str:
    """One line about the data."""
    data, kept = found.data, f"{found.data.features.size:,} features"
    if found.seen is not None:
        kept = f"{data.features.size:,} of {found.seen:,} features kept"
    often = f", in {found.min_count} lists or more" if found.min_count > 1 else ""
    return (
        f"{data.source}: {len(data):,} lists, {data.n_candidates:,} candidates, {kept} "
        f"({found.features}{often}), judged by {found.metric.name}"
    )


def _metric(args: argparse.Namespace) -> ListMetric | None:
    return metric_asked(args.metric, args.metric_option, args.refs)


def _how(args: argparse.Namespace) -> dict[str, Any]:
    return {"dedup": args.dedup, "on_error": args.on_error}

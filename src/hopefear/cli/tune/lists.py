"""Lists as the verbs of tuning read them: with counts of a metric, and something to watch."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from hopefear.cli.console import Console
from hopefear.cli.reading import tell_skipped
from hopefear.cli.tune.progress import ReadWatcher
from hopefear.data.files import ReadReport
from hopefear.data.moses.lists import TuningLists
from hopefear.metrics.lists import ListMetric, metric_named
from hopefear.translation.reading import read, tuning_metric


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
) -> TuningLists:
    """The lists of ``--nbest``, or those of ``--dev-nbest`` where ``which`` is ``dev_``."""
    paths = [os.fspath(path) for path in nbest or getattr(args, f"{which}nbest")]
    report = ReadReport()
    name = paths[0] if len(paths) == 1 else f"{len(paths)} files"
    with ReadWatcher(console, name) as watcher:
        lists = read(
            paths,
            getattr(args, f"{which}refs"),
            metric=metric,
            source=getattr(args, f"{which}source"),
            absent=args.absent,
            on_error=args.on_error,
            report=report,
            on_progress=watcher,
            **more,
        )
    tell_skipped(report, console)
    return lists


def told(lists: TuningLists, title: str) -> str:
    """What was read, in a line."""
    text = f"{title}: {len(lists):,} lists, {lists.n_candidates:,} candidates"
    if lists.dropped:
        text += f" ({lists.dropped:,} more were equal to others)"
    kinds = [f"{len(lists.names)} dense features"]
    for name, entries in (("sparse features", lists.sparse), ("phrase pairs", lists.phrases)):
        if entries is not None:
            kinds.append(f"{entries.names.size:,} {name}")
    return f"{text}, {', '.join(kinds)}"

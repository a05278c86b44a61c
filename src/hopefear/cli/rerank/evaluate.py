"""``hopefear evaluate`` with a reranker: its choices beside the 1-best, the oracle, the worst."""

from __future__ import annotations

import argparse
import time

from hopefear.cli.console import Console, print_json
from hopefear.cli.progress import Counting
from hopefear.cli.reading import tell_skipped
from hopefear.cli.rerank.reading import judged_blocks, reading_of
from hopefear.data.report import ReadReport
from hopefear.tasks.rerank.model import RerankModel
from hopefear.tasks.rerank.task import evaluate


def run(args: argparse.Namespace, model: RerankModel, console: Console) -> None:
    """Score the model on ``--data``."""
    report, started = ReadReport(), time.perf_counter()
    with Counting(console, "lists") as counting:
        blocks = judged_blocks(
            args.data,
            model.metric,
            report,
            args.gold,
            refs=args.refs,
            format=args.format,
            dedup=reading_of(model)["dedup"],
            on_error=args.on_error,
        )
        found = evaluate(model, counting(blocks, args.data))
    tell_skipped(report, console)
    if args.json:
        print_json(
            {
                **found.as_dict(),
                "skipped": report.skipped,
                "nnz": model.nnz,
                "learner": model.about.get("learner"),
                "model_signature": model.signature,
                "seconds": round(time.perf_counter() - started, 3),
            }
        )
        return
    console.say(found.text().rstrip("\n"))
    console.say(f"{model.nnz:,} non-zeros, {model.signature}")

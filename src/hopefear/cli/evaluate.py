"""``hopefear evaluate``: scores of a model on data with known answers."""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Mapping
from typing import Any

from hopefear.cli import options
from hopefear.cli.console import Console, check_output, print_json
from hopefear.cli.surface import Surface, opened, use_options
from hopefear.cli.tune import options as own

USAGE = (
    "--model PATH --data FILE [--report FILE.html] [--json] | --weights FILE --nbest FILE... "
    "--refs FILE... [--json]"
)
DESCRIPTION = """
{tasks}

With --report the same goes to an HTML page, with a plot of every label, calibration where there are
probabilities, and the most costly errors.

Score weights, as `hopefear tune` writes them, on N-best lists with references: the metric of the
candidates that they put first, equal to sacreBLEU's, beside the decoder's 1-best, the sentence
oracles and the best choice for all lists together; --against tests them against other weights.
"""
EXAMPLES = """
examples:
{tasks}
  hopefear evaluate --weights tuned.txt --nbest test.nbest.gz --refs test.en --against old.txt
"""


def configure(parser: argparse.ArgumentParser) -> None:
    data = parser.add_argument_group("data")
    options.named(data, "--model", "model file", "PATH")
    options.named(
        data,
        "--data",
        "labelled lines; a class the model does not know is an error, a tag a mistake; of a "
        "reranker, lists",
    )
    options.any_format(data, "evaluate")
    output = parser.add_argument_group("output")
    options.named(output, "--report", "page to write: scores, confusion, errors", "FILE.html")
    options.json_option(output)
    use_options("evaluate", parser, data=data, output=output)
    options.on_error(data)
    weights = parser.add_argument_group("weights")
    options.weights(weights)
    own.lists(weights)
    own.metric(weights)
    own.absent(weights)
    options.named(weights, "--against", "other weights, for a paired test on the same lists")


def run(args: argparse.Namespace) -> int:
    needed = {"model": ("data",), "weights": ("nbest",)}
    if options.by_weights(args, shared=("on_error", "refs"), needed=needed):
        return _by_weights(args)
    options.read_once(args, "model", "data")
    if args.report is not None:
        check_output(args.report, (args.model, args.data))
    from hopefear.cli.console import tell_skipped
    from hopefear.cli.progress import announced
    from hopefear.data.files import ReadReport

    console, report, started = Console(args.quiet), ReadReport(), time.perf_counter()
    with announced(console, "prediction"):
        surface, model = opened(args, "evaluate")
        scores = surface.use.evaluate(args, model, console, report)
    tell_skipped(report, console)
    scores |= {
        "skipped": report.skipped,
        "nnz": model.nnz,
        "model_signature": model.signature,
        "seconds": round(time.perf_counter() - started, 3),
    }
    if args.report is not None:
        _write_page(args, surface, model, scores)
    if args.json:
        print_json(scores)
    else:
        surface.use.show_scores(console, scores)
    if args.report is not None:
        console.say(f"\nwrote {args.report}")
    return 0


def _write_page(
    args: argparse.Namespace, surface: Surface, model: Any, scores: Mapping[str, Any]
) -> None:
    from hopefear.report import evaluation_page

    words, tables = surface.use.findings(scores)
    subtitle = f"{os.path.basename(args.data)}, {model.about.get('learner') or 'model'}"
    title = f"{os.path.basename(args.model)} evaluated"
    evaluation_page(title, subtitle, words, tables, scores).write(args.report)


def _by_weights(args: argparse.Namespace) -> int:
    if args.refs is None and not own.own_references(args.nbest):
        args.usage_error("--weights needs --refs FILE")
    options.read_once(args, "weights", "against", "source", "nbest", "refs")
    from hopefear.cli.progress import announced
    from hopefear.cli.tune.weights import run_evaluate

    console = Console(args.quiet)
    with announced(console, "reading and scoring"):
        run_evaluate(args, console)
    return 0

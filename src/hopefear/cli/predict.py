"""``hopefear predict``: labels for the lines of a file of any size."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hopefear.cli import options
from hopefear.cli.console import Console, check_output
from hopefear.cli.guard import write_out

if TYPE_CHECKING:
    import numpy as np

    from hopefear.model import Model

USAGE = "--model PATH --input FILE [--output FILE] [--nbest N] [--proba]"
DESCRIPTION = """
Print one label for every line of a file, in order. The file is read in blocks, so it may be of
any size and may come from a pipe; labels in it are ignored and may be missing. With --proba the
label is followed by CLASS:PROBABILITY for every class; with --nbest N a line holds the N best
classes as CLASS:SCORE, best first, or as CLASS:PROBABILITY when both are given. Columns are
separated by tabs.
"""
EXAMPLES = """
examples:
  hopefear predict --model news.model --input new.svm --output labels.txt
  zcat reviews.tsv.gz | hopefear predict --model reviews.model --input - --nbest 3 --proba
"""


def configure(parser: argparse.ArgumentParser) -> None:
    data = parser.add_argument_group("data")
    data.add_argument("--model", required=True, metavar="PATH", help="model file")
    data.add_argument(
        "--input",
        required=True,
        metavar="FILE",
        help="lines as for training, with or without labels; - is standard input",
    )
    options.reading(data)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output",
        default="-",
        metavar="FILE",
        help="where the labels go; the file appears only when all of it is written "
        "(default: -, standard output)",
    )
    output.add_argument(
        "--nbest",
        type=options.at_least(1),
        metavar="N",
        help="the N best classes with their scores",
    )
    output.add_argument("--proba", action="store_true", help="probabilities of the classes")


def run(args: argparse.Namespace) -> int:
    if args.model == args.input == "-":
        args.usage_error("--model and --input cannot both be standard input")
    check_output(args.output, (args.model, args.input))
    from hopefear.cli.compiling import announced
    from hopefear.cli.reading import load_model, tell_skipped
    from hopefear.data.report import ReadReport
    from hopefear.storage import write_atomically

    console, report = Console(args.quiet), ReadReport()
    with announced(console, "prediction"):
        model = load_model(args.model)
        lines = _lines(model, args, report)
        if args.output == "-":
            for text in lines:
                write_out(text)
        else:
            write_atomically(args.output, (text.encode() for text in lines))
    tell_skipped(report, console)
    if report.unknown_features:
        console.say(
            f"{report.unknown_features:,} values of features that the model has never seen "
            "were left out"
        )
    return 0


def _lines(model: Model, args: argparse.Namespace, report: Any) -> Iterator[str]:
    """Text for each block of rows."""
    from hopefear.cli.reading import blocks
    from hopefear.model import probabilities

    for data in blocks(args.input, model, args, report, require_labels=False):
        labels, scores = model.decide(data)
        if args.proba:
            scores = probabilities(model.predictor, scores)
        names = [model.classes[i] for i in labels]
        if args.nbest:
            rows = _best(model, scores, args.nbest)
        elif args.proba:
            rows = (_cells(model, name, row) for name, row in zip(names, scores, strict=True))
        else:
            rows = iter(names)
        yield "".join(f"{row}\n" for row in rows)


def _cells(model: Model, label: str, row: np.ndarray) -> str:
    return "\t".join(
        [label, *(f"{name}:{p:.6g}" for name, p in zip(model.classes, row, strict=True))]
    )


def _best(model: Model, scores: np.ndarray, n: int) -> Iterator[str]:
    import numpy as np

    if scores.shape[1] == 1:
        scores = np.hstack([-scores, scores])
    order = np.argsort(-scores, axis=1, kind="stable")[:, :n]
    for row, best in zip(scores, order, strict=True):
        yield "\t".join(f"{model.classes[i]}:{row[i]:.6g}" for i in best)

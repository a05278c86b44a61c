"""``hopefear predict``: what a model says of a file; the model says which task it is for."""

from __future__ import annotations

import argparse

from hopefear.cli import options
from hopefear.cli.console import Console, check_output
from hopefear.cli.explain import check_explained, check_linear, explain_options
from hopefear.cli.guard import put
from hopefear.cli.surface import opened, use_options
from hopefear.cli.tune import options as own

USAGE = (
    "--model PATH | --weights FILE --input FILE [--output FILE] [--nbest N] [--proba] [--explain]"
)
DESCRIPTION = """
{tasks}

With --explain the output tells instead what made each answer beat the runner-up: the features that
speak for one or the other, and by how much; their amounts add up to the difference of the scores.

Weights, as `hopefear tune` writes them, choose from N-best lists of Moses: the best translation of
each list, one a line. With --nbest N it is the N best as N-best lists again, with their new
scores. No references are needed; weights of phrase pairs need --source.
"""
EXAMPLES = """
examples:
{tasks}
  hopefear predict --weights tuned.txt --input test.nbest.gz --output test.out
"""


def configure(parser: argparse.ArgumentParser) -> None:
    data = parser.add_argument_group("data")
    options.named(data, "--model", "model file", "PATH")
    data.add_argument(
        "--input",
        nargs="+",
        metavar="FILE",
        help="lines as for training, with or without labels; - is standard input; N-best lists may "
        "be several, which are merged",
    )
    options.any_format(data, "predict")
    output = parser.add_argument_group("output")
    output.add_argument(
        "--output",
        default="-",
        metavar="FILE",
        help="where the labels go; the file appears only when all of it is written "
        "(default: -, standard output)",
    )
    options.whole(
        output, "--nbest", "the N best classes, label sequences or candidates, with their scores"
    )
    options.flag(output, "--proba", "probabilities of what is printed")
    options.output_format(output)
    explain_options(output)
    use_options("predict", parser, data=data, output=output)
    options.on_error(data)
    weights = parser.add_argument_group("weights")
    options.weights(weights)
    own.source(weights)
    own.absent(weights)


def run(args: argparse.Namespace) -> int:
    shared = ("input", "output", "nbest", "on_error")
    needed = {"model": ("input",), "weights": ("input",)}
    if options.by_weights(args, shared=shared, needed=needed):
        return _by_weights(args)
    if len(args.input) > 1:
        args.usage_error(f"a model takes one --input, not {len(args.input)}")
    (args.input,) = args.input
    explained = check_explained(args)
    options.read_once(args, "model", "input")
    check_output(args.output, (args.model, args.input))
    from hopefear.cli.console import tell_skipped
    from hopefear.cli.progress import announced
    from hopefear.data.files import ReadReport

    console, report = Console(args.quiet), ReadReport()
    with announced(console, "prediction"):
        surface, model = opened(args, "predict")
        write = surface.answers
        if explained:
            check_linear(model, args.model)
            write = surface.reasons
        put(args.output, write(args, model, console, report))
    tell_skipped(report, console)
    if report.unknown_features:
        console.say(
            f"{report.unknown_features:,} values of features that the model has never seen "
            "were left out"
        )
    return 0


def _by_weights(args: argparse.Namespace) -> int:
    options.read_once(args, "weights", "source", "input")
    check_output(args.output, options.paths(args, ("weights", "source", "input")))
    from hopefear.cli.progress import announced
    from hopefear.cli.tune.weights import run_predict

    console = Console(args.quiet)
    with announced(console, "reading"):
        run_predict(args, console)
    return 0

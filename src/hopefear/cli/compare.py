"""``hopefear compare``: several learners on the same data."""

from __future__ import annotations

import argparse
import os
from typing import Any

from hopefear.cli import options
from hopefear.cli.console import Console, check_output, print_json
from hopefear.cli.verbs import task_argument

USAGE = "TASK --train FILE --test FILE --learners A,B,C --report FILE.html [OPTIONS]"
DESCRIPTION = """
Train several learners on the same data, test them on the same test data and show error, F1,
sparsity and speed in one table, with a test of whether each is really worse than the best. The
report is one HTML page with learning curves. A learner may bring parameters:
NAME:KEY=VALUE:KEY=VALUE.
"""
EXAMPLES = """
examples:
  hopefear compare classify --train train.svm --test test.svm \\
      --learners perceptron,vrda,adagrad-rda --report comparison.html
  hopefear compare classify --train a.tsv --test b.tsv --ngrams 2 --epochs 3 \\
      --learners rda:l1=1e-5,rda:l1=1e-4,vrda:readout=voted --report rda.html --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    task_argument(parser)
    data = parser.add_argument_group("data")
    data.add_argument("--train", required=True, metavar="FILE", help="labelled lines to learn from")
    data.add_argument(
        "--test",
        required=True,
        metavar="FILE",
        help="labelled lines to test on; nothing is chosen on them",
    )
    options.reading(data)
    output = parser.add_argument_group("output")
    output.add_argument("--report", required=True, metavar="FILE.html", help="page to write")
    options.json_option(output)
    learning = options.learning(parser)
    learning.add_argument(
        "--learners",
        required=True,
        type=_learners,
        metavar="A,B,C",
        help="names from `hopefear learners`, each with parameters if wanted",
    )
    options.features(parser)


def run(args: argparse.Namespace) -> int:
    if args.train == args.test == "-":
        args.usage_error("--train and --test cannot both be standard input")
    check_output(args.report, (args.train, args.test, args.names))
    from hopefear.cli.compiling import announced
    from hopefear.cli.reading import held_out, training_data
    from hopefear.cli.study import COLUMNS, page_section, study
    from hopefear.recipes import recipe
    from hopefear.report import Page

    for _, name, params in args.learners:
        recipe(name).build(**params)  # what is wrong with the last is told before the first trains
    console = Console(args.quiet)
    with announced(console, "these learners"):
        data, _, _ = training_data(args, console)
        test = held_out(args.test, data, args, console)
        console.say(
            f"{len(data):,} examples to learn from, {len(test):,} to test on, "
            f"{data.n_features:,} features, {len(data.classes)} classes"
        )
        results = study(args.learners, data, test, console, _settings(args))
    page = Page(
        "Learners compared",
        f"{os.path.basename(args.train)}, tested on {os.path.basename(args.test)}",
        signature="\n".join(r.trained.model.signature for r in results),
    )
    page_section(
        page,
        "Results",
        f"{len(data):,} examples, {data.n_features:,} features, "
        f"{len(data.classes)} classes, {args.epochs} passes; tested on {len(test):,}.",
        results,
    )
    page.write(args.report)
    console.say()
    console.table(list(COLUMNS), [r.row() for r in results])
    console.say(f"\nwrote {args.report}")
    if args.json:
        print_json(
            {
                "task": args.task,
                "examples": len(data),
                "test_examples": len(test),
                "features": data.n_features,
                "classes": len(data.classes),
                "report": args.report,
                "learners": [r.facts() for r in results],
            }
        )
    return 0


def _settings(args: argparse.Namespace) -> dict[str, Any]:
    return {
        "epochs": args.epochs,
        "seed": args.seed,
        "shuffle": not args.no_shuffle,
        "intercept": args.intercept,
        "values": args.values,
        "norm": args.norm,
        "class_weight": args.class_weight,
    }


def _learners(text: str) -> list[tuple[str, str, dict[str, str]]]:
    """(label, name, parameters) of each learner named.

    >>> _learners("rda:l1=1e-5,vrda")
    [('rda:l1=1e-5', 'rda', {'l1': '1e-5'}), ('vrda', 'vrda', {})]
    """
    wanted = []
    for label in filter(None, (part.strip() for part in text.split(","))):
        name, *pairs = label.split(":")
        wanted.append((label, name, dict(options.parameter(pair) for pair in pairs)))
    if not wanted:
        raise argparse.ArgumentTypeError("expected names of learners, such as perceptron,vrda")
    if len({label for label, _, _ in wanted}) < len(wanted):
        raise argparse.ArgumentTypeError(f"a learner is named twice in {text!r}")
    return wanted

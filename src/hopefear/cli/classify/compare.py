"""``hopefear compare classify``: several learners of classes on the same data."""

from __future__ import annotations

import argparse
import os
from typing import Any

from hopefear.cli import options
from hopefear.cli.classify import options as own
from hopefear.cli.console import Console, check_output, print_json

USAGE = "--train FILE --test FILE --learners A,B,C --report FILE.html [OPTIONS]"
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
    own.reading(options.compare_data(parser))
    options.report_page(parser)
    learning = options.learning(parser, 5, "5")
    own.class_weights(learning)
    options.learners(learning)
    own.features(parser)


def run(args: argparse.Namespace) -> int:
    if args.train == args.test == "-":
        args.usage_error("--train and --test cannot both be standard input")
    check_output(args.report, (args.train, args.test, args.names))
    from hopefear.cli.classify.reading import held_out, training_data
    from hopefear.cli.classify.study import COLUMNS, page_section, study
    from hopefear.cli.compiling import announced
    from hopefear.report import Page
    from hopefear.tasks import recipe

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

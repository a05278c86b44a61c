"""``hopefear compare tag``: several learners of label chains on the same data."""

from __future__ import annotations

import argparse
import os

from hopefear.cli import options
from hopefear.cli.console import Console, check_output, print_json
from hopefear.cli.tag import options as own

USAGE = "--train FILE --test FILE --learners A,B,C --report FILE.html [OPTIONS]"
DESCRIPTION = """
Train several taggers on the same data with the same features, test them on the same test data and
show span F1, accuracy, sparsity and speed in one table, with a test of whether each is really
worse than the best. The report is one HTML page with learning curves. A learner may bring
parameters: NAME:KEY=VALUE:KEY=VALUE.
"""
EXAMPLES = """
examples:
  hopefear compare tag --train train.txt --test test.txt --learners perceptron,mira,sapo,crf \\
      --report taggers.html
  hopefear compare tag --train train.conllu --test test.conllu --epochs 5 \\
      --learners sapo:n=1,sapo:n=5,sapo:n=20 --report n.html --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    own.reading(options.compare_data(parser))
    options.report_page(parser)
    learning = options.learning(parser, None, "10; of batch learners, their max_iter")
    options.learners(learning)
    own.class_weights(learning)
    own.features(parser)
    own.structure(parser)


def run(args: argparse.Namespace) -> int:
    if args.train == args.test == "-":
        args.usage_error("--train and --test cannot both be standard input")
    check_output(args.report, (args.train, args.test, args.features))
    from hopefear.cli.compiling import announced
    from hopefear.cli.tag.data import corpus, describe
    from hopefear.cli.tag.study import columns, page_section, study
    from hopefear.report import Page
    from hopefear.tasks import recipe
    from hopefear.tasks.tag.label_costs import check_class_weight, resolved_early

    for _, name, params in args.learners:
        # The last one's faults before the first one trains.
        recipe(name, "tag").build(**resolved_early(params))
        check_class_weight(params, name, args.class_weight)
    console = Console(args.quiet)
    with announced(console, "these learners"):
        found = corpus(args, console, args.test)
        data, test = found.data, found.held
        assert test is not None
        told = f"{describe(found)}; tested on {len(test):,} sentences"
        console.say(told)
        settings = {
            "seed": args.seed,
            "shuffle": not args.no_shuffle,
            "order": args.order,
            "search": args.search,
            "beam": args.beam,
            "scheme": found.schemes.model,
            "constraints": args.constraints,
            "class_weight": args.class_weight,
            "n_jobs": options.threads(args.jobs),
        }
        results = study(args.learners, data, test, console, settings, args.epochs)
    page = Page(
        "Taggers compared",
        f"{os.path.basename(args.train)}, tested on {os.path.basename(args.test)}",
        signature="\n".join(r.trained.model.signature for r in results),
    )
    page_section(page, "Results", f"{told}.", results)
    page.write(args.report)
    console.say()
    console.table(columns(results), [r.row() for r in results])
    console.say(f"\nwrote {args.report}")
    if args.json:
        print_json(
            {
                "task": args.task,
                "sentences": len(data),
                "tokens": data.n_tokens,
                "test_sentences": len(test),
                "test_tokens": test.n_tokens,
                "features": data.features.size,
                "labels": len(data.labels),
                "scheme": found.schemes.file,
                "report": args.report,
                "learners": [r.facts() for r in results],
            }
        )
    return 0

"""``hopefear compare rerank``: several learners of lists on the same data."""

from __future__ import annotations

import argparse
import os

from hopefear.cli import options
from hopefear.cli.console import Console, check_output, print_json, scored
from hopefear.cli.rerank import options as own

USAGE = "--train FILE --test FILE [--dev FILE] --learners A,B,C --report FILE.html [OPTIONS]"
DESCRIPTION = """
Train several rerankers on the same lists with the same features, test them on the same test lists
and show their score, sparsity and speed in one table, with a paired test of whether each really
differs from the first one. With held-out lists (--dev) each keeps its best pass on them, without
it the last one. The report is one HTML page with learning curves and the score against the number
of weights. A learner may bring parameters: NAME:KEY=VALUE:KEY=VALUE.
"""
EXAMPLES = """
examples:
  hopefear compare rerank --train train.jsonl.xz --dev dev.jsonl.xz --test test.jsonl.xz \\
      --learners perceptron,vrda,tg,maxent --report parses.html
  hopefear compare rerank --train lists.jsonl --test test.jsonl --metric bleu --epochs 5 \\
      --learners mira,rampion,risk,vrda:l1=1e-3:loss=logistic --report bleu.html --json
"""


def configure(parser: argparse.ArgumentParser) -> None:
    data = options.compare_data(parser)
    data.add_argument("--dev", metavar="FILE", help="held-out lists that choose the pass to keep")
    own.gold(data, "--dev", "--test")
    own.reading(data)
    options.report_page(parser)
    learning = options.learning(parser, None, "5; of batch learners, their max_iter")
    options.learners(learning)
    learning.add_argument(
        "--patience",
        type=options.at_least(0),
        metavar="N",
        help="stop after N passes without a better score on --dev; 0 never stops early "
        "(default: 3)",
    )
    own.candidates(learning)
    own.features(parser)


def run(args: argparse.Namespace) -> int:
    files = (args.train, args.test, args.dev, args.gold, args.test_gold, args.dev_gold)
    files += tuple(path for of in (args.refs, args.test_refs, args.dev_refs) for path in of or ())
    if files.count("-") > 1:
        args.usage_error("only one of the files that are read can be standard input")
    own.check_golds(args, "dev")
    if args.dev is None and args.patience is not None:
        args.usage_error("--patience needs held-out data: give --dev FILE")
    check_output(args.report, files)
    from hopefear.cli.compiling import announced
    from hopefear.cli.rerank.data import corpus, describe, held_out, tell
    from hopefear.cli.rerank.study import columns, limits, page_section, study
    from hopefear.cli.rerank.words import shown_score
    from hopefear.report import Page
    from hopefear.tasks import recipe

    for _, name, params in args.learners:
        recipe(name, "rerank").build(**params)  # the last one's faults before the first one trains
    console = Console(args.quiet)
    with announced(console, "these learners"):
        found = corpus(args, console)
        tell(found, console)
        test, first = held_out("test", found, args, console)
        dev = None if args.dev is None else held_out("dev", found, args, console).data
        bounds = limits(test, first, found.metric)
        name = shown_score(found.metric.main)
        shown = {who: scored(found.metric.main, value) for who, value in bounds.items()}
        told = (
            f"tested on {len(test):,} lists, {name} of 1-best {shown['1-best']}, of the oracle "
            f"{shown['oracle']}"
        )
        console.say(told)
        settings = {
            "epochs": args.epochs,
            "seed": args.seed,
            "shuffle": not args.no_shuffle,
            "tied": args.tied,
            "metric": found.metric,
            "n_jobs": options.threads(args.jobs),
        }
        patience = 3 if args.patience is None else args.patience
        results = study(args.learners, found.data, test, console, settings, dev, patience)
    page = Page(
        "Rerankers compared",
        f"{os.path.basename(args.train)}, tested on {os.path.basename(args.test)}",
        signature="\n".join(r.trained.model.signature for r in results),
    )
    text = f"{describe(found)}; {told}."
    page_section(page, "Results", text, results, found.metric, "Dev" if dev else "Test")
    page.write(args.report)
    console.say()
    console.table(columns(results), [r.row() for r in results])
    console.say(f"\nwrote {args.report}")
    if args.json:
        main = found.metric.main
        print_json(
            {
                "task": args.task,
                "lists": len(found.data),
                "idle_lists": found.idle,
                "candidates": found.data.n_candidates,
                "test_lists": len(test),
                "features": found.data.features.size,
                "features_seen": found.seen,
                "metric": found.metric.name,
                f"baseline_{main}": bounds["1-best"],
                f"oracle_{main}": bounds["oracle"],
                "report": args.report,
                "learners": [r.facts() for r in results],
            }
        )
    return 0

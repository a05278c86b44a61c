"""``hopefear evaluate``: scores of a model on data with known answers."""

from __future__ import annotations

import argparse

from hopefear.cli import options
from hopefear.cli.console import Console
from hopefear.cli.tune import options as own

USAGE = "--model PATH --data FILE [--json] | --weights FILE --nbest FILE... --refs FILE... [--json]"
DESCRIPTION = """
Score a classifier on labelled lines: accuracy, error, precision, recall and F1 in percent, log loss
and Brier score of its probabilities, a 95 % confidence interval, and a row for every class.
With two classes precision, recall and F1 are those of the second one, with more they are means
over classes. The file is read in blocks and may be of any size.

Score a tagger on labelled tokens: accuracy and, where labels have a scheme, precision, recall and
F1 of spans, equal to the conlleval script to the last digit, with a row for every type; accuracy
on words that training did not see, commonest mistakes, a 95 % confidence interval; with --proba
how well probabilities agree with accuracy.

Score a reranker on lists with costs, references or gold trees: its choices beside the generator's
1-best, the oracle and the worst candidates, each with a 95 % confidence interval, and a paired test
of whether the model beats the 1-best. The metric is the one that the model was trained on.

Score weights, as `hopefear tune` writes them, on N-best lists with references: the metric of the
candidates that they put first, equal to sacreBLEU's, beside the decoder's 1-best, the sentence
oracles and the best choice for all lists together; --against tests them against other weights.
"""
EXAMPLES = """
examples:
  hopefear evaluate --model news.model --data test.svm
  hopefear evaluate --model news.model --data test.svm.xz --json | python -m json.tool
  hopefear evaluate --model chunks.model --data test.txt.gz --report
  hopefear evaluate --model parses.model --data test.jsonl.xz
  hopefear evaluate --weights tuned.txt --nbest test.nbest.gz --refs test.en --against old.txt
"""


def configure(parser: argparse.ArgumentParser) -> None:
    data = parser.add_argument_group("data")
    data.add_argument("--model", metavar="PATH", help="model file")
    data.add_argument(
        "--data",
        metavar="FILE",
        help="labelled lines; a class the model does not know is an error, a tag a mistake; of a "
        "reranker, lists",
    )
    options.any_format(data)
    options.columns(data)
    data.add_argument(
        "--column", metavar="NAME", help="tags: column of the labels (default: as trained)"
    )
    data.add_argument(
        "--gold", metavar="FILE", help="lists: gold trees, one a line, where the format is bllip"
    )
    options.on_error(data)
    output = parser.add_argument_group("output")
    options.json_option(output)
    output.add_argument(
        "--report",
        action="store_true",
        help="tags: print what the conlleval script prints on standard output",
    )
    tags = parser.add_argument_group("tags")
    tags.add_argument("--proba", action="store_true", help="calibration of the probabilities")
    tags.add_argument(
        "--no-constraints",
        action="store_true",
        help="also allow label sequences that the scheme forbids",
    )
    options.jobs(tags)
    weights = parser.add_argument_group("weights")
    options.weights(weights)
    own.lists(weights)
    own.metric(weights)
    own.absent(weights)
    weights.add_argument(
        "--against", metavar="FILE", help="other weights, for a paired test on the same lists"
    )


def run(args: argparse.Namespace) -> int:
    needed = {"model": ("data",), "weights": ("nbest",)}
    if options.by_weights(args, shared=("on_error", "refs"), needed=needed):
        return _by_weights(args)
    if args.model == args.data == "-":
        args.usage_error("--model and --data cannot both be standard input")
    if args.json and args.report:
        args.usage_error("--json and --report would share standard output")
    from hopefear.cli.compiling import announced
    from hopefear.cli.models import load_model, verb_of

    console = Console(args.quiet)
    with announced(console, "prediction"):
        task, model = load_model(args.model)
        verb_of(task, "evaluate", args).run(args, model, console)
    return 0


def _by_weights(args: argparse.Namespace) -> int:
    if args.refs is None and not own.own_references(args.nbest):
        args.usage_error("--weights needs --refs FILE")
    read = [args.weights, args.against, args.source, *args.nbest, *(args.refs or ())]
    if read.count("-") > 1:
        args.usage_error("standard input (-) can be read once only")
    from hopefear.cli.compiling import announced
    from hopefear.cli.tune.weights import run_evaluate

    console = Console(args.quiet)
    with announced(console, "reading and scoring"):
        run_evaluate(args, console)
    return 0

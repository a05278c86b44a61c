"""``hopefear predict``: what a model says of a file; the model says which task it is for."""

from __future__ import annotations

import argparse

from hopefear.cli import options
from hopefear.cli.console import Console, check_output
from hopefear.cli.tune import options as own

USAGE = "--model PATH | --weights FILE --input FILE [--output FILE] [--nbest N] [--proba]"
DESCRIPTION = """
A classifier prints one label for every line, in order. The file is read in blocks, so it may be
of any size and may come from a pipe; labels in it are ignored and may be missing. With --proba the
label is followed by CLASS:PROBABILITY for every class; with --nbest N a line holds the N best
classes as CLASS:SCORE, best first, or as CLASS:PROBABILITY when both are given. Columns are
separated by tabs.

A tagger writes the file as it is, comments included, with the labels as one more column (CoNLL-U:
in place of the column it was trained on; CRFsuite files: the labels alone). With --proba there are
also the probability of each label, that of the span it belongs to (_ outside spans) and, in a
comment, that of all labels of the sentence; in CoNLL-U they go to MISC. With --nbest N every
sentence comes N times, best first, each behind a comment `# rank = K score = S probability = P`.
With --explain the output tells instead, for every token, which features made its label beat the
runner-up.

A reranker prints one JSON object for every list: its id, the position of the best candidate (from
0, as in the file), its text and its score. With --nbest N it is the reranked list, N candidates,
best first, which is a file of lists again; with --proba each has its probability. --output-format
text prints the texts alone, one a line. Costs and references are not needed. The file is read in
blocks, so it may be of any size and may come from a pipe.

Weights, as `hopefear tune` writes them, choose from N-best lists of Moses: the best translation of
each list, one a line. With --nbest N it is the N best as N-best lists again, with their new
scores. No references are needed; weights of phrase pairs need --source.
"""
EXAMPLES = """
examples:
  hopefear predict --model news.model --input new.svm --output labels.txt
  zcat reviews.tsv.gz | hopefear predict --model reviews.model --input - --nbest 3 --proba
  hopefear predict --model chunks.model --input new.txt --proba --output tagged.txt
  hopefear predict --model names.model --input new.txt --explain-token 3:7
  hopefear predict --model parses.model --input nbest.jsonl.xz --output-format text > trees.mrg
  hopefear predict --model speech.model --input hypotheses.jsonl --nbest 5 --proba
  hopefear predict --weights tuned.txt --input test.nbest.gz --output test.out
"""


def configure(parser: argparse.ArgumentParser) -> None:
    data = parser.add_argument_group("data")
    data.add_argument("--model", metavar="PATH", help="model file")
    data.add_argument(
        "--input",
        nargs="+",
        metavar="FILE",
        help="lines as for training, with or without labels; - is standard input; N-best lists may "
        "be several, which are merged",
    )
    options.any_format(data)
    options.columns(data)
    options.on_error(data)
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
        help="the N best classes, label sequences or candidates, with their scores",
    )
    output.add_argument("--proba", action="store_true", help="probabilities of what is printed")
    output.add_argument(
        "--output-format",
        choices=("json", "text"),
        help="lists: one JSON object a list, or the texts of the best candidates, one a line; of "
        "--nbest with a blank line behind each list (default: json)",
    )
    tags = parser.add_argument_group("tags")
    tags.add_argument(
        "--scheme",
        metavar="NAME",
        help="write spans in this scheme: bio, iob1, iobes, bilou or bmes (default: as trained)",
    )
    tags.add_argument(
        "--no-constraints",
        action="store_true",
        help="also allow label sequences that the scheme forbids",
    )
    tags.add_argument(
        "--explain", action="store_true", help="the features behind every label, in place of labels"
    )
    tags.add_argument(
        "--explain-token",
        type=_place,
        metavar="I:J",
        help="explain token J of sentence I only, both from 1",
    )
    tags.add_argument(
        "--top",
        type=options.at_least(1),
        default=10,
        metavar="N",
        help="features to show for each token, strongest first (default: 10)",
    )
    tags.add_argument(
        "--json", action="store_true", help="with --explain: one JSON object a token, a line each"
    )
    options.jobs(tags)
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
    if args.model == args.input == "-":
        args.usage_error("--model and --input cannot both be standard input")
    explained = args.explain or args.explain_token
    if explained and (args.nbest or args.proba):
        args.usage_error("--explain is about single labels: leave out --nbest and --proba")
    if args.json and not explained:
        args.usage_error("--json belongs to --explain here; the output of predict is a file")
    check_output(args.output, (args.model, args.input))
    from hopefear.cli.compiling import announced
    from hopefear.cli.models import load_model, verb_of

    console = Console(args.quiet)
    with announced(console, "prediction"):
        task, model = load_model(args.model)
        verb_of(task, "predict", args).run(args, model, console)
    return 0


def _by_weights(args: argparse.Namespace) -> int:
    read = [args.weights, args.source, *args.input]
    if read.count("-") > 1:
        args.usage_error("standard input (-) can be read once only")
    check_output(args.output, read)
    from hopefear.cli.compiling import announced
    from hopefear.cli.tune.weights import run_predict

    console = Console(args.quiet)
    with announced(console, "reading"):
        run_predict(args, console)
    return 0


def _place(text: str) -> tuple[int, int]:
    """Sentence and token, from 1.

    >>> _place("3:7")
    (3, 7)
    """
    sentence, colon, token = text.partition(":")
    if not (colon and sentence.isdecimal() and token.isdecimal() and int(sentence) * int(token)):
        raise argparse.ArgumentTypeError(
            f"expected SENTENCE:TOKEN, both from 1, such as 3:7, found {text!r}"
        )
    return int(sentence), int(token)

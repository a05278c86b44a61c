"""``hopefear tune``: from N-best lists and references to the weights of a decoder."""

from __future__ import annotations

import argparse
import time
from typing import Any

from hopefear.cli.console import Console, check_output, print_json
from hopefear.cli.tune import options as own

USAGE = (
    "(--nbest FILE... | --decoder CMD --run DIR) --refs FILE... [--learner NAME] [-p KEY=VALUE]... "
    "--weights OUT"
)
DESCRIPTION = """
Find weights for the features of a decoder, or of anything that scores translations, under which
the best candidate of each list scores high. Lists are in the format of Moses; features may be a
dozen dense scores, millions of sparse ones, or the phrase pairs of derivations (--source). The
learner is any of `hopefear learners --task tune`. With held-out lists (--dev-nbest, --held-out)
the best round is the one that scores best on them. What is told: the score before and after, of
the decoder's own first choices and of the best choice there is, how far each weight moved, and
how seeds and restarts differ. The same data, options and seed give the same weights, byte for
byte. Weights that are worth nothing are reported and not written.

With --decoder a command is run in rounds: weights in, N-best list out; see docs/decoder.md. What
is written then are the weights that the decoder itself did best with. Lists of --nbest are merged
with those of its rounds.
"""
EXAMPLES = """
examples:
  hopefear tune --nbest dev.nbest.gz --refs dev.en --weights tuned.txt
  hopefear tune --nbest run1.gz run2.gz --refs ref0 ref1 ref2 ref3 --learner mert --seeds 3 \\
      --weights moses.ini
  hopefear tune --nbest train.nbest --refs train.en --source train.de --learner vrda \\
      --features phrases --fixed tuned.txt --min-count 2 --weights phrases.json
  hopefear tune --nbest dev.nbest --refs dev.en --source dev.de --features dense \\
      --add Phrases0=phrases.json --learner mert --weights all.json
  hopefear tune --decoder 'decode.sh {weights} {nbest}' \\
      --refs dev.en --rounds 8 --run runs/dev --weights tuned.txt
"""


def configure(parser: argparse.ArgumentParser) -> None:
    from hopefear.cli.tune.defaults import LEARNER

    data = parser.add_argument_group("data")
    own.lists(data)
    own.metric(data)
    own.features(data)
    own.reading(data)
    own.held_out(parser)
    own.learning(parser, LEARNER)
    own.decoder(parser)
    own.output(parser)


def run(args: argparse.Namespace) -> int:
    check(args)
    from hopefear.cli.compiling import announced
    from hopefear.cli.tune.learning import parameters
    from hopefear.cli.tune.lists import metric_asked

    console, started = Console(args.quiet), time.perf_counter()
    metric = metric_asked(args)
    params = parameters(args, metric, console)
    with announced(console, "this data and learner") as compiling:
        if args.decoder is not None:
            from hopefear.cli.tune.rounds import iterated

            outcome: Any = iterated(args, metric, params, console)
        else:
            from hopefear.cli.tune.learning import tuned

            outcome = tuned(args, metric, params, console)
    outcome.weights.write(args.weights, args.format)
    result = {"task": "tune", "weights": args.weights, **outcome.facts()}
    result["seconds"] = round(time.perf_counter() - started, 3)
    outcome.show(console, result, compiling.seconds)
    if args.report:
        outcome.page(result).write(args.report)
        console.say(f"  wrote {args.report}")
    if args.json:
        print_json(result)
    return 0


def check(args: argparse.Namespace) -> None:
    """Tell what cannot work before anything is read or run."""
    wrong = args.usage_error
    if args.refs is None:
        wrong("references are needed: give --refs FILE")
    if args.decoder is None:
        if args.nbest is None:
            wrong("lists are needed: give --nbest FILE, or --decoder CMD that makes them")
        for name in ("rounds", "patience", "timeout", "resume"):
            if getattr(args, name) != args.default_of(name):
                wrong(f"--{name} belongs to --decoder CMD")
    else:
        if not args.run:
            wrong("--decoder needs --run DIR, where its rounds are kept")
        for name in ("fixed", "add"):
            if getattr(args, name):
                wrong(f"--{name} and --decoder: a decoder needs a weight for each of its features")
    if args.fixed and args.add:
        wrong("--fixed and --add: what is added is tuned with the dense ones, fixed here")
    names = [name for name, _ in args.add]
    for name in {name for name in names if names.count(name) > 1}:
        wrong(f"--add {name}=… twice: features need names of their own")
    if args.seed + args.seeds > 2**32:
        wrong(f"--seed and --seeds: seeds are whole numbers from 0 to {2**32 - 1}")
    check_held_out(args)
    if "-" in (args.weights, args.report) and args.json:
        wrong("--weights - or --report - and --json would share standard output")
    read = inputs(args)
    if read.count("-") > 1:
        wrong("standard input (-) can be read once only")
    if args.report == args.weights:
        wrong("--report and --weights are the same file")
    check_output(args.weights, read)
    if args.report:
        check_output(args.report, read)


def check_held_out(args: argparse.Namespace) -> None:
    """Wrong usage: half of what held-out lists need, or too much."""
    wrong = args.usage_error
    if (args.dev_nbest is None) != (args.dev_refs is None):
        wrong("--dev-nbest and --dev-refs belong together")
    if args.dev_nbest is None and args.dev_source is not None:
        wrong("--dev-source belongs to --dev-nbest")
    if args.dev_nbest is not None:
        if args.held_out:
            wrong("give --dev-nbest or --held-out, not both")
        if (args.source is None) != (args.dev_source is None):
            wrong("--source and --dev-source: give both, or neither")


def inputs(args: argparse.Namespace) -> list[str]:
    """All files that are read."""
    many = [*(args.nbest or ()), *args.refs, *(args.dev_nbest or ()), *(args.dev_refs or ())]
    named = [path for _, path in args.add]
    single = [args.source, args.dev_source, args.fixed, args.start]
    return [*many, *named, *(path for path in single if path is not None)]
